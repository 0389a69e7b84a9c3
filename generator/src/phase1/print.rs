//! A generated rule as readable text: the instruction's semantics as the left side, the solved attributes and the
//! validity conditions as its precondition (the ACT paper's Fig. 11).

use super::matcher::{Form, Matcher, Target};
use super::vocabulary::key;
use act_hlo::OpKind;
use act_isa::{AttrKind, Cond, Expr, Instr, Isa, Slice, SymConst, SymOp};
use std::fmt::Write;

/// The rule as text, one condition a line.
pub(crate) fn rule(isa: &Isa, matcher: &Matcher) -> String {
    let instr = isa.instr(matcher.instr);
    let mut text = String::new();
    let names: Vec<&str> = instr.alpha.iter().map(|a| a.name.as_str()).collect();
    // Writing to a string cannot fail.
    let _ = writeln!(text, "rule {}({}):", instr.name, names.join(", "));
    for (stmt, pattern) in instr.computation.stmts.iter().zip(&matcher.patterns) {
        let dims: Vec<String> = stmt.dims.iter().map(|d| expr(instr, isa, d)).collect();
        let operands: Vec<&str> =
            stmt.operands.iter().map(|&o| instr.computation.stmts[o].name.as_str()).collect();
        let _ = write!(
            text,
            "  {}: {}[{}] = {}({}){}",
            stmt.name,
            stmt.elem,
            dims.join(","),
            key(&stmt.op),
            operands.join(", "),
            attributes(instr, isa, &stmt.op)
        );
        for form in &pattern.forms {
            let note = match form {
                Form::OnChip { buffer, .. } => format!("  in {}", isa.buffer(*buffer).name),
                Form::InHbm { input, view } if view.side.is_empty() => format!("  | view of input {input}"),
                Form::InHbm { input, view } => {
                    format!("  | view of input {input} under {} equations", view.side.len())
                }
                Form::TimesOne { attr, .. } => {
                    format!("  | factor 1 = {}", instr.alpha[usize::from(*attr)].name)
                }
                Form::Same { .. } => "  | the operand itself".to_owned(),
                Form::Splat(_) | Form::Closed => "  constant by value".to_owned(),
                Form::Node { commutes: true, .. } => "  operands in either order".to_owned(),
                Form::Node { .. } => String::new(),
            };
            text.push_str(&note);
        }
        text.push('\n');
    }
    for target in &matcher.targets {
        let _ = match target {
            Target::OnChip { root, buffer, lens, .. } => {
                let what = &instr.computation.stmts[*root].name;
                writeln!(
                    text,
                    "  gives {what} in {}, {} access dimensions",
                    isa.buffer(*buffer).name,
                    lens.len()
                )
            }
            Target::Store { root, view, .. } => {
                let what = &instr.computation.stmts[*root].name;
                writeln!(
                    text,
                    "  stores {what}: {} of {} strided dimensions under {} equations",
                    view.elem,
                    view.dims.len(),
                    view.side.len()
                )
            }
        };
    }
    for (slice, input) in instr.inputs.iter().zip(0..) {
        if let Slice::Hbm(window) = slice {
            let dims: Vec<String> = window
                .dims
                .iter()
                .map(|(len, step)| format!("{} by {}", expr(instr, isa, len), expr(instr, isa, step)))
                .collect();
            let _ = writeln!(text, "  input {input} is u8[{}]", dims.join(", "));
        }
    }
    for attr in &instr.alpha {
        let _ = match attr.kind {
            AttrKind::Int { min, max } => writeln!(text, "  require {min} <= {} <= {max}", attr.name),
            AttrKind::F32 => writeln!(text, "  require {} finite", attr.name),
        };
    }
    for cond in &instr.requires {
        let exists = if cond.mentions_beta() { "exists addresses: " } else { "" };
        let _ = writeln!(text, "  require {exists}{}", condition(instr, isa, cond));
    }
    let _ = writeln!(text, "  cost {}", expr(instr, isa, &instr.cost));
    text
}

fn attributes(instr: &Instr, isa: &Isa, op: &SymOp) -> String {
    let sizes = |v: &[Expr]| v.iter().map(|e| expr(instr, isa, e)).collect::<Vec<_>>().join(",");
    match op {
        OpKind::Parameter(k) => format!(" #{k}"),
        OpKind::Constant(SymConst::Int(e)) => format!(" = {}", expr(instr, isa, e)),
        OpKind::Constant(SymConst::F32Attr(k)) => {
            format!(" = {}", instr.alpha.get(usize::from(*k)).map_or("?", |a| a.name.as_str()))
        }
        OpKind::Constant(SymConst::Literal(literal)) => format!(" = {literal:?}"),
        OpKind::Broadcast { dims } | OpKind::Reverse { dims } | OpKind::Reduce { dims, .. } => {
            format!(" dims={dims:?}")
        }
        OpKind::Transpose { perm } => format!(" perm={perm:?}"),
        OpKind::Iota { dim } | OpKind::Concatenate { dim } => format!(" dim={dim}"),
        OpKind::Compare(direction) => format!(" {}", direction.name()),
        OpKind::Slice { start, limit, stride } => {
            format!(" [{} : {} : {}]", sizes(start), sizes(limit), sizes(stride))
        }
        OpKind::Pad { low, high, interior } => {
            format!(" low={} high={} interior={}", sizes(low), sizes(high), sizes(interior))
        }
        OpKind::DynamicSlice { sizes: s } => format!(" sizes={}", sizes(s)),
        OpKind::Dot(d) => format!(
            " batch={:?},{:?} contracting={:?},{:?}",
            d.lhs_batch, d.rhs_batch, d.lhs_contracting, d.rhs_contracting
        ),
        _ => String::new(),
    }
}

fn condition(instr: &Instr, isa: &Isa, cond: &Cond) -> String {
    let both = |a: &Cond, word: &str, b: &Cond| {
        format!("({}) {word} ({})", condition(instr, isa, a), condition(instr, isa, b))
    };
    match cond {
        Cond::Cmp(relation, a, b) => format!("{} {relation} {}", expr(instr, isa, a), expr(instr, isa, b)),
        Cond::And(a, b) => both(a, "and", b),
        Cond::Or(a, b) => both(a, "or", b),
        Cond::Not(a) => format!("not ({})", condition(instr, isa, a)),
        Cond::In(a, set) => format!("{} in {set:?}", expr(instr, isa, a)),
    }
}

fn expr(instr: &Instr, isa: &Isa, e: &Expr) -> String {
    let two =
        |a: &Expr, op: &str, b: &Expr| format!("({} {op} {})", expr(instr, isa, a), expr(instr, isa, b));
    let call = |f: &str, a: &Expr, b: &Expr| format!("{f}({}, {})", expr(instr, isa, a), expr(instr, isa, b));
    let name = |found: Option<&str>| found.unwrap_or("?").to_owned();
    match e {
        Expr::Int(v) => v.to_string(),
        Expr::Alpha(k) => name(instr.alpha.get(usize::from(*k)).map(|a| a.name.as_str())),
        Expr::Beta(k) => name(instr.beta.get(usize::from(*k)).map(|a| a.name.as_str())),
        Expr::Register(k) => name(isa.registers.get(usize::from(*k)).map(|r| r.0.as_str())),
        // Rules are made of computations without control flow.
        Expr::Variable(_) => name(None),
        Expr::Add(a, b) => two(a, "+", b),
        Expr::Sub(a, b) => two(a, "-", b),
        Expr::Mul(a, b) => two(a, "*", b),
        Expr::Div(a, b) => two(a, "/", b),
        Expr::Mod(a, b) => two(a, "%", b),
        Expr::Shl(a, b) => two(a, "<<", b),
        Expr::Shr(a, b) => two(a, ">>", b),
        Expr::CeilDiv(a, b) => call("ceildiv", a, b),
        Expr::Min(a, b) => call("min", a, b),
        Expr::Max(a, b) => call("max", a, b),
    }
}
