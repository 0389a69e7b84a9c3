//! A model as text. Parsing the text gives the same model back.

use crate::constant::{float_value, int_value};
use crate::expr::{Cond, Expr};
use crate::model::{AttrDecl, AttrKind, Computation, Instr, Isa, Slice, Stmt, SymConst, SymOp};
use act_hlo::{ElemType, Literal, OpKind};
use std::collections::BTreeMap;
use std::fmt::Write;

impl Isa {
    /// The text form; [`Isa::parse`] reads it back to an equal model.
    pub fn print(&self) -> String {
        let mut out = format!("isa {}\n\n", self.name);
        let _ = write!(out, "hbm {}: {}", self.hbm.name, size(self.hbm.size));
        if self.hbm.align != 1 {
            let _ = write!(out, " align {}", self.hbm.align);
        }
        if self.hbm.ordered {
            out.push_str(" ordered");
        }
        out.push('\n');
        for buffer in &self.buffers {
            let _ = write!(out, "buffer {}: {}[{} |", buffer.name, buffer.elem, list(&buffer.access));
            if !buffer.unit.is_empty() {
                let _ = write!(out, " {}", list(&buffer.unit));
            }
            out.push(']');
            if buffer.align.iter().any(|&a| a != 1) {
                let _ = write!(out, " align({})", list(&buffer.align));
            }
            if buffer.nospill {
                out.push_str(" nospill");
            }
            if let Some(value) = &buffer.init {
                let _ = write!(out, " init {}", literal_text(value));
            }
            out.push('\n');
        }
        for (name, value) in &self.registers {
            let _ = writeln!(out, "register {name} = {value}");
        }
        if !self.units.is_empty() {
            let _ = writeln!(out, "units {}", self.units.join(", "));
        }
        super::timing::print(self, &mut out);
        super::print_encoding::device(self, &mut out);
        for instr in &self.instrs {
            out.push('\n');
            Printer { isa: self, instr, variables: Vec::new() }.instr(&mut out);
        }
        out
    }

    /// The text that stands for this description in keys: comments, spacing and named constants are gone.
    pub fn digest(&self) -> String {
        self.print()
    }
}

fn list<T: std::fmt::Display>(items: &[T]) -> String {
    items.iter().map(T::to_string).collect::<Vec<String>>().join(", ")
}

pub(super) fn size(bytes: u64) -> String {
    let whole = super::parser::SIZE_UNITS
        .iter()
        .rev()
        .find(|(_, unit)| bytes >= *unit && bytes.is_multiple_of(*unit));
    match whole {
        Some((name, unit)) => format!("{} {name}", bytes / unit),
        None => bytes.to_string(),
    }
}

/// Prints expressions with the names of one instruction's attributes.
pub(super) struct Printer<'a> {
    pub isa: &'a Isa,
    pub instr: &'a Instr,
    /// Variables of the enclosing `repeat`s.
    pub variables: Vec<&'a str>,
}

/// Binding strength of the expression's outermost operator; numbers and names bind strongest.
fn strength(e: &Expr) -> u8 {
    match e {
        Expr::Shl(..) | Expr::Shr(..) => 1,
        Expr::Add(..) | Expr::Sub(..) => 2,
        Expr::Mul(..) | Expr::Div(..) | Expr::Mod(..) => 3,
        _ => 4,
    }
}

/// How many of the leading requirements print as enumerated attributes, and the sets of those attributes: alpha, then
/// beta, in the order in which the text form states them.
fn enumerated(instr: &Instr) -> (usize, [BTreeMap<usize, &[i64]>; 2]) {
    let mut sets = [BTreeMap::new(), BTreeMap::new()];
    let mut next = (0, 0);
    let mut used = 0;
    for require in &instr.requires {
        let Cond::In(e, set) = require else { break };
        let (kind, at, attrs) = match e {
            Expr::Alpha(k) => (0, usize::from(*k), &instr.alpha),
            Expr::Beta(k) => (1, usize::from(*k), &instr.beta),
            _ => break,
        };
        let ends = set.iter().min().zip(set.iter().max()).map(|(&min, &max)| AttrKind::Int { min, max });
        if (kind, at) < next || ends.is_none() || attrs.get(at).map(|a| &a.kind) != ends.as_ref() {
            break;
        }
        sets[kind].insert(at, set.as_slice());
        next = (kind, at + 1);
        used += 1;
    }
    (used, sets)
}

/// Computational and addressing attributes with their ranges, and how many of the leading requirements these state.
pub(super) fn attributes(instr: &Instr) -> (String, String, usize) {
    let (stated, sets) = enumerated(instr);
    (attrs(&instr.alpha, &sets[0]), attrs(&instr.beta, &sets[1]), stated)
}

fn attrs(attributes: &[AttrDecl], sets: &BTreeMap<usize, &[i64]>) -> String {
    let one = |(k, a): (usize, &AttrDecl)| match (sets.get(&k), &a.kind) {
        (Some(set), _) => format!("{}: {{{}}}", a.name, list(set)),
        (None, AttrKind::F32) => format!("{}: f32", a.name),
        (None, AttrKind::Int { min: 0, max: i64::MAX }) => a.name.clone(),
        (None, AttrKind::Int { min, max: i64::MAX }) => format!("{}: {min}..", a.name),
        (None, AttrKind::Int { min, max }) => format!("{}: {min}..{max}", a.name),
    };
    attributes.iter().enumerate().map(one).collect::<Vec<String>>().join(", ")
}

pub(super) fn quoted(line: &str) -> String {
    let escaped = line.replace('\\', "\\\\").replace('"', "\\\"").replace('\t', "\\t");
    format!("\"{escaped}\"")
}

impl Printer<'_> {
    fn instr(&self, out: &mut String) {
        let instr = self.instr;
        let _ = write!(out, "instr {}", instr.name);
        let (alpha, beta, enumerated) = attributes(instr);
        if !alpha.is_empty() {
            let _ = write!(out, " alpha({alpha})");
        }
        if !beta.is_empty() {
            let _ = write!(out, " beta({beta})");
        }
        out.push_str(" {\n");
        for slice in &instr.inputs {
            let _ = writeln!(out, "  in {}", self.slice(slice));
        }
        for slice in &instr.outputs {
            let _ = writeln!(out, "  out {}", self.slice(slice));
        }
        for require in &instr.requires[enumerated..] {
            let _ = writeln!(out, "  require {}", self.cond(require, 0));
        }
        for (register, value) in &instr.updates {
            let name = self.isa.registers.get(usize::from(*register)).map_or("?", |(name, _)| name.as_str());
            let _ = writeln!(out, "  update {name} = {}", self.expr(value));
        }
        if instr.cost != Expr::Int(1) {
            let _ = writeln!(out, "  cost {}", self.expr(&instr.cost));
        }
        if let Some(unit) = instr.unit.and_then(|u| self.isa.units.get(usize::from(u))) {
            let _ = writeln!(out, "  unit {unit}");
        }
        if !instr.asm.is_empty() {
            let lines: Vec<String> = instr.asm.split('\n').map(quoted).collect();
            let _ = writeln!(out, "  asm {}", lines.join("\n      "));
        }
        for encoding in &instr.encodings {
            let _ = writeln!(out, "  {}", self.encoding(encoding, "  "));
        }
        if let Some(structured) = &instr.structured {
            out.push_str("  computation {\n");
            self.structured(structured, out);
            out.push_str("  }\n");
        } else if !instr.outputs.is_empty() || !instr.computation.stmts.is_empty() {
            out.push_str("  computation {\n");
            self.computation(&instr.computation, out);
            out.push_str("  }\n");
        }
        out.push_str("}\n");
    }

    pub(super) fn slice(&self, slice: &Slice) -> String {
        match slice {
            Slice::Hbm(window) => {
                let start = self.expr(&window.start);
                let name = &self.isa.hbm.name;
                if let [(len, Expr::Int(1))] = window.dims.as_slice() {
                    return format!("{name}[{start} :+ {}]", self.expr(len));
                }
                let last = window.dims.len().saturating_sub(1);
                let dims: Vec<String> = window
                    .dims
                    .iter()
                    .enumerate()
                    .map(|(k, (len, stride))| match stride {
                        Expr::Int(1) if k == last => self.expr(len),
                        _ => format!("{} by {}", self.expr(len), self.expr(stride)),
                    })
                    .collect();
                format!("{name}[{start}; {}]", dims.join(", "))
            }
            Slice::OnChip(slice) => {
                let name = self.isa.buffers.get(usize::from(slice.buffer.0)).map_or("?", |b| b.name.as_str());
                let dims: Vec<String> = slice
                    .start
                    .iter()
                    .zip(&slice.len)
                    .map(|(start, len)| format!("{} :+ {}", self.expr(start), self.expr(len)))
                    .collect();
                format!("{name}[{}]", dims.join(", "))
            }
        }
    }

    pub(super) fn expr(&self, e: &Expr) -> String {
        self.expr_within(e, 0)
    }

    /// `e` where an operator of strength `least` or more may stand bare.
    fn expr_within(&self, e: &Expr, least: u8) -> String {
        let attr = |list: &[AttrDecl], k: u16| {
            list.get(usize::from(k)).map_or_else(|| format!("?{k}"), |a| a.name.clone())
        };
        let own = strength(e);
        let infix = |symbol: &str, a: &Expr, b: &Expr| {
            let text = format!("{} {symbol} {}", self.expr_within(a, own), self.expr_within(b, own + 1));
            if own < least { format!("({text})") } else { text }
        };
        let call = |name: &str, a: &Expr, b: &Expr| format!("{name}({}, {})", self.expr(a), self.expr(b));
        match e {
            Expr::Int(v) => v.to_string(),
            Expr::Alpha(k) => attr(&self.instr.alpha, *k),
            Expr::Beta(k) => attr(&self.instr.beta, *k),
            Expr::Variable(k) => {
                self.variables.get(usize::from(*k)).map_or_else(|| format!("?{k}"), |v| (*v).to_owned())
            }
            Expr::Register(k) => {
                self.isa.registers.get(usize::from(*k)).map_or_else(|| format!("?{k}"), |(n, _)| n.clone())
            }
            Expr::Add(a, b) => infix("+", a, b),
            Expr::Sub(a, b) => infix("-", a, b),
            Expr::Mul(a, b) => infix("*", a, b),
            Expr::Div(a, b) => infix("/", a, b),
            Expr::Mod(a, b) => infix("%", a, b),
            Expr::Shl(a, b) => infix("<<", a, b),
            Expr::Shr(a, b) => infix(">>", a, b),
            Expr::CeilDiv(a, b) => call("ceildiv", a, b),
            Expr::Min(a, b) => call("min", a, b),
            Expr::Max(a, b) => call("max", a, b),
        }
    }

    pub(super) fn cond(&self, c: &Cond, least: u8) -> String {
        let enclose = |own: u8, text: String| if own < least { format!("({text})") } else { text };
        match c {
            Cond::Or(a, b) => enclose(1, format!("{} or {}", self.cond(a, 1), self.cond(b, 2))),
            Cond::And(a, b) => enclose(2, format!("{} and {}", self.cond(a, 2), self.cond(b, 3))),
            Cond::Not(a) => enclose(3, format!("not {}", self.cond(a, 3))),
            Cond::Cmp(relation, a, b) => enclose(4, format!("{} {relation} {}", self.expr(a), self.expr(b))),
            Cond::In(a, set) => enclose(4, format!("{} in {{{}}}", self.expr(a), list(set))),
        }
    }

    fn computation(&self, computation: &Computation, out: &mut String) {
        let names = names(&computation.stmts);
        let single = match computation.roots.as_slice() {
            [root] => Some(*root),
            _ => None,
        };
        for (k, stmt) in computation.stmts.iter().enumerate() {
            let root = if single == Some(k) { "ROOT " } else { "" };
            let dims: Vec<String> = stmt.dims.iter().map(|d| self.expr(d)).collect();
            let _ = write!(out, "    {root}{} = {}[{}] ", names[k], stmt.elem, dims.join(", "));
            self.operation(stmt, &names, out);
            out.push('\n');
        }
        if single.is_none() && !computation.roots.is_empty() {
            let roots: Vec<&str> =
                computation.roots.iter().map(|&r| names.get(r).map_or("?", String::as_str)).collect();
            let _ = writeln!(out, "    return {}", roots.join(", "));
        }
    }

    pub(super) fn operation(&self, stmt: &Stmt, names: &[String], out: &mut String) {
        match &stmt.op {
            OpKind::Parameter(k) => {
                let _ = write!(out, "parameter({k})");
            }
            OpKind::Constant(constant) => {
                let text = match constant {
                    SymConst::Literal(literal) => literal_text(literal),
                    SymConst::Int(e) => self.expr(e),
                    SymConst::F32Attr(k) => self
                        .instr
                        .alpha
                        .get(usize::from(*k))
                        .map_or_else(|| format!("?{k}"), |a| a.name.clone()),
                };
                let _ = write!(out, "constant({text})");
            }
            op => {
                let operands: Vec<&str> =
                    stmt.operands.iter().map(|&o| names.get(o).map_or("?", String::as_str)).collect();
                let _ = write!(out, "{}({})", op.name(), operands.join(", "));
                self.options(op, out);
            }
        }
    }

    /// The attributes of an operator, each behind a comma.
    pub(super) fn options(&self, op: &SymOp, out: &mut String) {
        let exprs = |v: &[Expr]| v.iter().map(|e| self.expr(e)).collect::<Vec<String>>().join(", ");
        let mut braces = |name: &str, text: String| {
            let _ = write!(out, ", {name}={{{text}}}");
        };
        match op {
            OpKind::Broadcast { dims } | OpKind::Transpose { perm: dims } | OpKind::Reverse { dims } => {
                braces("dimensions", list(dims));
            }
            OpKind::Concatenate { dim } => braces("dimensions", dim.to_string()),
            OpKind::Slice { start, limit, stride } => {
                let ranges: Vec<String> = start
                    .iter()
                    .zip(limit)
                    .zip(stride)
                    .map(|((s, l), p)| match p {
                        Expr::Int(1) => format!("[{}:{}]", self.expr(s), self.expr(l)),
                        _ => format!("[{}:{}:{}]", self.expr(s), self.expr(l), self.expr(p)),
                    })
                    .collect();
                braces("slice", ranges.join(", "));
            }
            OpKind::DynamicSlice { sizes } => braces("dynamic_slice_sizes", exprs(sizes)),
            OpKind::Pad { low, high, interior } => {
                braces("low", exprs(low));
                braces("high", exprs(high));
                braces("interior", exprs(interior));
            }
            OpKind::Reduce { dims, combiner } => {
                braces("dimensions", list(dims));
                let _ = write!(out, ", to_apply={}", combiner.name().replace('-', "_"));
            }
            OpKind::Dot(dims) => {
                if !dims.lhs_batch.is_empty() || !dims.rhs_batch.is_empty() {
                    braces("lhs_batch_dims", list(&dims.lhs_batch));
                    braces("rhs_batch_dims", list(&dims.rhs_batch));
                }
                braces("lhs_contracting_dims", list(&dims.lhs_contracting));
                braces("rhs_contracting_dims", list(&dims.rhs_contracting));
            }
            OpKind::Iota { dim } => {
                let _ = write!(out, ", iota_dimension={dim}");
            }
            OpKind::Compare(direction) => {
                let _ = write!(out, ", direction={}", direction.name());
            }
            OpKind::ReducePrecision { exponent_bits, mantissa_bits } => {
                let _ = write!(out, ", exponent_bits={exponent_bits}, mantissa_bits={mantissa_bits}");
            }
            OpKind::Parameter(_)
            | OpKind::Constant(_)
            | OpKind::Eye
            | OpKind::Unary(_)
            | OpKind::Binary(_)
            | OpKind::Select
            | OpKind::Clamp
            | OpKind::Fma
            | OpKind::Convert
            | OpKind::BitcastConvert
            | OpKind::Copy
            | OpKind::Reshape
            | OpKind::DynamicUpdateSlice => {}
        }
    }
}

/// Names of statements: their own, or numbered ones where those are absent or repeated.
pub(super) fn names(stmts: &[Stmt]) -> Vec<String> {
    let taken = |name: &str| stmts.iter().filter(|s| s.name == name).count();
    let fresh = |k: usize| {
        let mut name = format!("v{k}");
        while taken(&name) > 0 {
            name.push('_');
        }
        name
    };
    let one = |(k, s): (usize, &Stmt)| {
        if !s.name.is_empty() && taken(&s.name) == 1 { s.name.clone() } else { fresh(k) }
    };
    stmts.iter().enumerate().map(one).collect()
}

/// `-3`, `0.5`, `{1, 2}`; nested braces follow the dimensions.
fn literal_text(literal: &Literal) -> String {
    let width = literal.elem().bytes() as usize;
    let items: Vec<String> =
        literal.bytes().chunks_exact(width).map(|b| element_text(literal.elem(), b)).collect();
    nested(&items, &literal.shape().dims)
}

fn nested(items: &[String], dims: &[u64]) -> String {
    match dims {
        [] => items.first().cloned().unwrap_or_default(),
        [_] => format!("{{{}}}", items.join(", ")),
        [_, inner @ ..] => {
            let step = inner.iter().product::<u64>().max(1) as usize;
            let parts: Vec<String> = items.chunks(step).map(|chunk| nested(chunk, inner)).collect();
            format!("{{{}}}", parts.join(", "))
        }
    }
}

fn element_text(elem: ElemType, bytes: &[u8]) -> String {
    if elem == ElemType::Pred {
        return (bytes != [0]).to_string();
    }
    if let Some(value) = int_value(elem, bytes) {
        return value.to_string();
    }
    match float_value(elem, bytes) {
        Some(value) if value.is_nan() => {
            let bits = bytes.iter().rev().map(|b| format!("{b:02x}")).collect::<String>();
            format!("0x{bits}")
        }
        // The shortest text that rounds to the value; of an f32 or narrower it is found among f32.
        Some(value) if elem != ElemType::F64 => format!("{:?}", value as f32),
        Some(value) => format!("{value:?}"),
        None => bytes.iter().map(|b| format!("{b:02x}")).collect(),
    }
}
