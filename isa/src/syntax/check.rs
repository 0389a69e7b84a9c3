//! What a lowered description must fulfil: types inside computations for legal attribute values, slices within their
//! buffers, attributes that the compiler can solve, buffers that something writes.

use super::check_encoding::check_fields;
use super::check_flow::check_flow;
use super::diagnostic::{Diagnostic, Problem};
use super::lower::{InstrSpans, LoweredIsa, betas};
use super::reach::unreachable;
use super::sample::{Search, first_legal, legal_alphas};
use crate::AttrVal;
use crate::assembly::check_templates;
use crate::expr::{Cond, Env, EvalExprError, Expr};
use crate::model::{AttrKind, Computation, HbmWindow, Instr, Isa, Slice, Stmt, SymConst};
use crate::semantics::{InstantiateError, Position};
use act_hlo::{ElemType, OpKind};
use std::collections::BTreeSet;

/// Why an f32 attribute is not solved from what is computed of it.
pub(super) const FOLDED: &str = "goes only into what is computed of constants";

/// Values tried for a register that changes.
const MAX_NUMBERS: usize = 16;

/// Every instruction by itself.
pub(super) fn check_instructions(lowered: &LoweredIsa) -> Vec<Diagnostic> {
    let isa = &lowered.isa;
    let mut out = Vec::new();
    let stateful = isa.stateful_instrs();
    for (at, (instr, spans)) in isa.instrs.iter().zip(&lowered.instrs).enumerate() {
        let stateful = stateful.contains(&crate::InstrId(at as u16));
        attributes(instr, spans, stateful, &mut out);
        aliased(instr, spans, &mut out);
        unread(instr, spans, &mut out);
        let stores = instr.outputs.iter().filter(|output| matches!(output, Slice::Hbm(_))).count();
        if stores > 1 && !stateful {
            let problem = Problem::SeveralStores { name: instr.name.clone(), stores };
            out.push(Diagnostic::warning(spans.name, problem));
        }
        samples(isa, instr, spans, &mut out);
        check_fields(isa, instr, &spans.fields, &mut out);
    }
    out
}

/// Checks that need every instruction; run only on descriptions that are right so far.
pub(super) fn check_whole(lowered: &LoweredIsa) -> Vec<Diagnostic> {
    let mut out = Vec::new();
    check_flow(lowered, &mut out);
    if let Err((at, error)) = check_templates(&lowered.isa) {
        let span = lowered.instrs.get(at).map_or(super::Span::default(), |spans| spans.asm);
        out.push(Diagnostic::error(span, Problem::Template(error)));
    }
    out
}

/// Every alpha occurs where matching against a kernel determines it; every beta occurs in an address of one kind. Of a
/// stateful instruction, which the compiler never selects, they need only occur.
fn attributes(instr: &Instr, spans: &InstrSpans, stateful: bool, out: &mut Vec<Diagnostic>) {
    let solvable = solvable_alphas(instr);
    let anywhere = alphas_outside(instr);
    for (k, (decl, &span)) in instr.alpha.iter().zip(&spans.alpha).enumerate() {
        let k = k as u16;
        let settled = solvable.contains(&k) || (stateful && anywhere.contains(&k));
        if !settled {
            let constant = |s: &Stmt| s.op == OpKind::Constant(SymConst::F32Attr(k));
            let folded = instr.computation.stmts.iter().any(constant);
            let why = match (&decl.kind, anywhere.contains(&k)) {
                (AttrKind::F32, _) if folded => FOLDED,
                (_, false) => "is used nowhere",
                (AttrKind::F32, true) => "is not the value of a constant",
                (AttrKind::Int { .. }, true) => "occurs in no size, stride or constant",
            };
            out.push(Diagnostic::error(span, Problem::Unsolvable { name: decl.name.clone(), why }));
        }
    }
    let updating: BTreeSet<u16> = instr.updates.iter().flat_map(|(_, value)| betas(value)).collect();
    let mut in_windows = BTreeSet::new();
    let mut on_chip = BTreeSet::new();
    for slice in instr.inputs.iter().chain(&instr.outputs) {
        match slice {
            Slice::Hbm(window) => in_windows.extend(betas(&window.start)),
            Slice::OnChip(slice) => slice.start.iter().for_each(|s| on_chip.extend(betas(s))),
        }
    }
    for (k, (decl, &span)) in instr.beta.iter().zip(&spans.beta).enumerate() {
        let k = k as u16;
        if in_windows.contains(&k) && on_chip.contains(&k) {
            out.push(Diagnostic::error(span, Problem::MixedBeta(decl.name.clone())));
        } else if !in_windows.contains(&k) && !on_chip.contains(&k) && !updating.contains(&k) {
            out.push(Diagnostic::error(span, Problem::UnusedBeta(decl.name.clone())));
        }
    }
}

fn alphas(e: &Expr, found: &mut BTreeSet<u16>) {
    e.for_each_leaf(&mut |leaf| {
        if let Expr::Alpha(k) = leaf {
            found.insert(*k);
        }
    });
}

/// Alphas in sizes of slices and statements, strides, operator attributes and constants.
fn solvable_alphas(instr: &Instr) -> BTreeSet<u16> {
    let mut found = BTreeSet::new();
    for slice in instr.inputs.iter().chain(&instr.outputs) {
        match slice {
            Slice::Hbm(window) => window.dims.iter().for_each(|(len, stride)| {
                alphas(len, &mut found);
                alphas(stride, &mut found);
            }),
            Slice::OnChip(slice) => slice.len.iter().for_each(|len| alphas(len, &mut found)),
        }
    }
    for stmt in &instr.computation.stmts {
        stmt.for_each_expr(&mut |e| alphas(e, &mut found));
    }
    found.extend(splats(&instr.computation));
    // Paths are tried one by one, so conditions and counts determine attributes too.
    if let Some(structured) = &instr.structured {
        structured.for_each_expr(&mut |e| alphas(e, &mut found));
        structured.for_each_stmt(&mut |stmt| {
            if let OpKind::Constant(SymConst::F32Attr(k)) = &stmt.op {
                found.insert(*k);
            }
        });
    }
    found
}

/// f32 attributes that stand in a kernel as the splat which they are: as an f32 constant, possibly broadcast, beside a
/// value that is none, or as the result. What is computed from constants alone is one constant in a kernel, and shows
/// no attribute that went into it.
fn splats(computation: &Computation) -> BTreeSet<u16> {
    let stmts = &computation.stmts;
    // Per statement, whether it is the same in every execution, and the attribute whose splat it is.
    let mut known: Vec<(bool, Option<u16>)> = Vec::with_capacity(stmts.len());
    let mut found = BTreeSet::new();
    for (at, stmt) in stmts.iter().enumerate() {
        let of = |o: &usize| known.get(*o).copied().unwrap_or((false, None));
        let here = match &stmt.op {
            OpKind::Constant(SymConst::F32Attr(k)) => (true, (stmt.elem == ElemType::F32).then_some(*k)),
            OpKind::Parameter(_) => (false, None),
            // What only moves elements leaves the value to be seen.
            OpKind::Broadcast { .. }
            | OpKind::Reshape
            | OpKind::BitcastConvert
            | OpKind::Copy
            | OpKind::Transpose { .. }
            | OpKind::Slice { .. }
            | OpKind::Pad { .. }
            | OpKind::Reverse { .. }
            | OpKind::Concatenate { .. } => {
                let moved = stmt.operands.iter().find_map(|o| of(o).1);
                (stmt.operands.iter().all(|o| of(o).0), moved)
            }
            _ => (stmt.operands.iter().all(|o| of(o).0), None),
        };
        if !here.0 {
            found.extend(stmt.operands.iter().filter_map(|o| of(o).1));
        }
        if computation.roots.contains(&at) {
            found.extend(here.1);
        }
        known.push(here);
    }
    found
}

/// Warns of operands that no result depends on.
fn unread(instr: &Instr, spans: &InstrSpans, out: &mut Vec<Diagnostic>) {
    if instr.structured.is_some() || instr.outputs.is_empty() {
        return;
    }
    let stmts = &instr.computation.stmts;
    let mut used: BTreeSet<usize> = instr.computation.roots.iter().copied().collect();
    for (at, stmt) in stmts.iter().enumerate().rev() {
        if used.contains(&at) {
            used.extend(&stmt.operands);
        }
    }
    let read = |k: usize| {
        stmts.iter().enumerate().any(|(at, s)| used.contains(&at) && s.op == OpKind::Parameter(k as u32))
    };
    let unread = spans.inputs.iter().enumerate().filter(|(k, _)| !read(*k));
    out.extend(unread.map(|(_, &span)| Diagnostic::warning(span, Problem::UnusedInput)));
}

/// Two outputs that are one slice cannot both be written.
fn aliased(instr: &Instr, spans: &InstrSpans, out: &mut Vec<Diagnostic>) {
    for (k, output) in instr.outputs.iter().enumerate() {
        if instr.outputs[..k].contains(output) {
            let span = spans.outputs.get(k).copied().unwrap_or(spans.name);
            out.push(Diagnostic::error(span, Problem::SameOutput));
        }
    }
}

/// Alphas in requirements, cost, updates and addresses.
fn alphas_outside(instr: &Instr) -> BTreeSet<u16> {
    let mut found = BTreeSet::new();
    alphas(&instr.cost, &mut found);
    instr.updates.iter().for_each(|(_, value)| alphas(value, &mut found));
    for require in &instr.requires {
        require.for_each_leaf(&mut |leaf| alphas(leaf, &mut found));
    }
    for slice in instr.inputs.iter().chain(&instr.outputs) {
        match slice {
            Slice::Hbm(window) => alphas(&window.start, &mut found),
            Slice::OnChip(slice) => slice.start.iter().for_each(|s| alphas(s, &mut found)),
        }
    }
    found
}

/// `rows = 1, cols = 16`
fn show(instr: &Instr, alpha: &[AttrVal]) -> String {
    let one = |(decl, value): (&crate::AttrDecl, &AttrVal)| match value {
        AttrVal::Int(v) => format!("{} = {v}", decl.name),
        AttrVal::F32(bits) => format!("{} = {:?}", decl.name, f32::from_bits(*bits)),
    };
    instr.alpha.iter().zip(alpha).map(one).collect::<Vec<String>>().join(", ")
}

/// The first fault of an instruction over sampled legal attribute values.
fn samples(isa: &Isa, instr: &Instr, spans: &InstrSpans, out: &mut Vec<Diagnostic>) {
    let registers = isa.register_values();
    let mutable = isa.mutable_registers();
    if let Some(at) = instr.requires.iter().position(divides_by_zero) {
        let message = EvalExprError::DivisionByZero.to_string();
        let problem = Problem::Type { alpha: String::new(), message, fits: None };
        out.push(Diagnostic::error(spans.requires.get(at).copied().unwrap_or(spans.name), problem));
        return;
    }
    let mut legal = legal_alphas(instr, &registers, &mutable);
    if legal.is_empty() {
        let span = spans.requires.first().copied().unwrap_or(spans.name);
        match first_legal(instr, &registers, &mutable) {
            Search::Found(alpha) => legal.push(alpha),
            Search::Nothing => out.push(Diagnostic::error(span, Problem::Contradiction)),
            Search::TooMany => {
                if !unfulfilled(isa, instr, spans, out) {
                    out.push(Diagnostic::warning(span, Problem::NoLegalAlpha));
                }
            }
        }
    } else {
        unfulfilled(isa, instr, spans, out);
    }
    let states = register_states(isa, instr, &mutable);
    let fault_for = |alpha: &Vec<AttrVal>| {
        let ints: Vec<Option<i64>> = alpha.iter().map(|v| v.as_int()).collect();
        let env = Env { alpha: &ints, beta: &[], registers: &registers };
        let known = Known { env, mutable: &mutable };
        let meaning = states.iter().find_map(|state| instr.meaning(isa, alpha, state).err());
        match meaning {
            Some(error) => {
                let place = error.place();
                Some((place, without_place(&error)))
            }
            None => oversized(isa, instr, &known)
                .or_else(|| bad_cost(instr, &known))
                .or_else(|| bad_update(instr, &known)),
        }
    };
    let Some((alpha, (place, message))) = legal.iter().find_map(|a| Some((a, fault_for(a)?))) else { return };
    let at = |list: &[super::Span], k: usize| list.get(k).copied().unwrap_or(spans.name);
    let span = match place {
        Some(Position::Require(k)) => at(&spans.requires, k),
        Some(Position::Input(k)) => at(&spans.inputs, k),
        Some(Position::Output(k)) => at(&spans.outputs, k),
        Some(Position::Stmt(k)) => at(&spans.stmts, k),
        Some(Position::Update(k)) => at(&spans.updates, k),
        None => spans.cost,
    };
    let fits = legal.iter().find(|a| fault_for(a).is_none()).map(|a| show(instr, a));
    let problem = Problem::Type { alpha: show(instr, alpha), message, fits };
    out.push(Diagnostic::error(span, problem));
}

/// Whether a requirement that nothing fulfils was noted.
fn unfulfilled(isa: &Isa, instr: &Instr, spans: &InstrSpans, out: &mut Vec<Diagnostic>) -> bool {
    let Some(found) = unreachable(isa, instr, &isa.register_values(), &isa.mutable_registers()) else {
        return false;
    };
    let span = spans.requires.get(found.require).copied().unwrap_or(spans.name);
    let problem = Problem::Unreachable { together: found.together, addresses: found.addresses };
    out.push(Diagnostic::error(span, problem));
    true
}

/// The message without the position, which the caret shows.
fn without_place(error: &InstantiateError) -> String {
    let text = error.to_string();
    match error.place() {
        Some(place) => text.strip_prefix(&format!("{place}: ")).map(str::to_owned).unwrap_or(text),
        None => text,
    }
}

/// Values for registers on which the semantics may be judged: the initial ones, and each register that changes at the
/// numbers which updates and semantics mention.
fn register_states(isa: &Isa, instr: &Instr, mutable: &BTreeSet<u16>) -> Vec<Vec<i64>> {
    let mut numbers = BTreeSet::new();
    let mut note = |e: &Expr| {
        e.for_each_leaf(&mut |leaf| {
            if let Expr::Int(v) = leaf {
                numbers.insert(*v);
            }
        });
    };
    if let Some(structured) = &instr.structured {
        structured.for_each_expr(&mut note);
        isa.instrs.iter().flat_map(|i| &i.updates).for_each(|(_, value)| note(value));
    }
    let initial = isa.register_values();
    let mut states = vec![initial.clone()];
    let read = instr.registers_of_meaning();
    for k in read.intersection(mutable) {
        for &value in numbers.iter().take(MAX_NUMBERS) {
            let mut state = initial.clone();
            if let Some(register) = state.get_mut(usize::from(*k)) {
                *register = value;
            }
            states.push(state);
        }
    }
    states
}

/// What is known of one execution: attributes that are given, registers that never change.
struct Known<'a> {
    env: Env<'a>,
    mutable: &'a BTreeSet<u16>,
}

impl Known<'_> {
    fn eval(&self, e: &Expr) -> Result<i64, EvalExprError> {
        let mut changes = false;
        e.for_each_leaf(&mut |leaf| changes |= matches!(leaf, Expr::Register(k) if self.mutable.contains(k)));
        if changes { Err(EvalExprError::Unsolved) } else { e.eval(self.env) }
    }
}

/// A slice that is longer than its buffer, or ends behind it for a fixed start.
fn oversized(isa: &Isa, instr: &Instr, known: &Known<'_>) -> Option<(Option<Position>, String)> {
    let inputs = instr.inputs.iter().enumerate().map(|(k, s)| (Position::Input(k), s));
    let outputs = instr.outputs.iter().enumerate().map(|(k, s)| (Position::Output(k), s));
    for (place, slice) in inputs.chain(outputs) {
        let slice = match slice {
            Slice::OnChip(slice) => slice,
            Slice::Hbm(window) => {
                match oversized_window(isa, instr, window, known, matches!(place, Position::Output(_))) {
                    Some(message) => return Some((Some(place), message)),
                    None => continue,
                }
            }
        };
        let buffer = isa.buffer(slice.buffer);
        for ((start, len), &size) in slice.start.iter().zip(&slice.len).zip(&buffer.access) {
            let len = known.eval(len).unwrap_or(0);
            // A start that depends on beta or a changing register may be 0.
            let start = known.eval(start).unwrap_or(0);
            if start < 0 || start.checked_add(len).is_none_or(|end| end < 0 || end as u64 > size) {
                let message = format!("{start} :+ {len} lies outside 0..{size} of buffer `{}`", buffer.name);
                return Some((Some(place), message));
            }
        }
    }
    None
}

/// A window with more bytes than main memory has, or one that is written and meets itself. Strides that are attributes
/// follow from where a tensor lies; only dimensions with fixed ones are judged.
fn oversized_window(
    isa: &Isa,
    instr: &Instr,
    window: &HbmWindow,
    known: &Known<'_>,
    written: bool,
) -> Option<String> {
    // An attribute without an upper end takes what fits.
    let open = |k: &u16| {
        let kind = instr.alpha.get(usize::from(*k)).map(|a| &a.kind);
        matches!(kind, Some(AttrKind::Int { max: i64::MAX, .. }))
    };
    let mut sizes = BTreeSet::new();
    window.dims.iter().for_each(|(len, _)| alphas(len, &mut sizes));
    if sizes.iter().any(open) {
        return None;
    }
    let fixed = |stride: &Expr| stride.eval(Env::default()).ok();
    let lens = window.dims.iter().map(|(len, _)| known.eval(len).ok());
    let lens: Vec<i64> = lens.collect::<Option<_>>()?;
    if lens.iter().any(|&len| len <= 0) {
        return None;
    }
    let dims: Vec<(i128, i128)> = lens
        .iter()
        .zip(&window.dims)
        .filter_map(|(&len, (_, stride))| Some((i128::from(len), i128::from(fixed(stride)?))))
        .collect();
    let bytes = dims
        .iter()
        .fold(1i128, |n, &(len, stride)| n.saturating_add(stride.saturating_abs().saturating_mul(len - 1)));
    if bytes > i128::from(isa.hbm.size) {
        let (name, size) = (&isa.hbm.name, isa.hbm.size);
        return Some(format!("the window spans {bytes} bytes, and main memory `{name}` has {size}"));
    }
    // Dimensions by growing stride: each must step over all that the smaller ones reach.
    let mut sorted: Vec<(i128, i128)> =
        dims.iter().map(|&(len, stride)| (stride.abs(), len)).filter(|&(_, len)| len > 1).collect();
    sorted.sort_unstable();
    let stands_still = sorted.first().is_some_and(|&(stride, _)| stride == 0);
    let nested_runs = dims.len() == 2 && sorted.len() == 2 && {
        let [(inner, len), (outer, rows)] = [sorted[0], sorted[1]];
        // Two dimensions meet where some multiple of the outer stride is one of the inner within its length.
        (1..rows.min(len)).any(|k| outer * k % inner.max(1) == 0 && outer * k / inner.max(1) < len)
    };
    let met = written && (stands_still || nested_runs);
    met.then(|| "the window that is written meets itself: a byte would get two values".to_owned())
}

fn bad_cost(instr: &Instr, known: &Known<'_>) -> Option<(Option<Position>, String)> {
    match known.eval(&instr.cost) {
        Ok(cost) if cost >= 0 => None,
        Ok(cost) => Some((None, format!("the cost is {cost}"))),
        Err(EvalExprError::Unsolved) if !instr.cost.mentions_beta() => None,
        Err(error) => Some((None, format!("the cost: {error}"))),
    }
}

/// A new register value that cannot be computed.
fn bad_update(instr: &Instr, known: &Known<'_>) -> Option<(Option<Position>, String)> {
    instr.updates.iter().enumerate().find_map(|(k, (_, value))| match known.eval(value) {
        Ok(_) | Err(EvalExprError::Unsolved) => {
            let zero = division_by_zero(value);
            zero.then(|| {
                (Some(Position::Update(k)), format!("the new value: {}", EvalExprError::DivisionByZero))
            })
        }
        Err(error) => Some((Some(Position::Update(k)), format!("the new value: {error}"))),
    })
}

fn divides_by_zero(cond: &Cond) -> bool {
    match cond {
        Cond::Cmp(_, a, b) => division_by_zero(a) || division_by_zero(b),
        Cond::And(a, b) | Cond::Or(a, b) => divides_by_zero(a) || divides_by_zero(b),
        Cond::Not(a) => divides_by_zero(a),
        Cond::In(a, _) => division_by_zero(a),
    }
}

/// Whether a number 0 divides.
fn division_by_zero(e: &Expr) -> bool {
    match e {
        Expr::Div(a, b) | Expr::Mod(a, b) | Expr::CeilDiv(a, b) => {
            **b == Expr::Int(0) || division_by_zero(a) || division_by_zero(b)
        }
        Expr::Add(a, b)
        | Expr::Sub(a, b)
        | Expr::Mul(a, b)
        | Expr::Shl(a, b)
        | Expr::Shr(a, b)
        | Expr::Min(a, b)
        | Expr::Max(a, b) => division_by_zero(a) || division_by_zero(b),
        Expr::Int(_) | Expr::Alpha(_) | Expr::Beta(_) | Expr::Register(_) | Expr::Variable(_) => false,
    }
}
