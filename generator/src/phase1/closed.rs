//! Statements of an instruction's semantics that depend on no input: constants of any size, which a kernel may write in
//! another way. They are compared by value. Knows no e-graph.

use super::facts::evaluate;
use act_hlo::{Literal, Op, OpKind, Shape};
use act_isa::constant::{f32_scalar, int_scalar, int_value};
use act_isa::{AttrVal, Computation, Env, Expr, Instr, SymConst};
use std::collections::BTreeMap;

/// Largest tensor that is computed, in bytes.
const BYTES: u64 = 1 << 18;

/// Whether a statement depends on no input.
pub(super) fn is(computation: &Computation, stmt: usize) -> bool {
    let inner = needed(computation, stmt);
    inner.iter().all(|&s| !matches!(computation.stmts[s].op, OpKind::Parameter(_)))
}

/// A statement and what it is computed from, operands first.
fn needed(computation: &Computation, stmt: usize) -> Vec<usize> {
    let mut needed = vec![false; computation.stmts.len()];
    let mut todo = vec![stmt];
    while let Some(s) = todo.pop() {
        if s < needed.len() && !std::mem::replace(&mut needed[s], true) {
            todo.extend(&computation.stmts[s].operands);
        }
    }
    (0..needed.len()).filter(|&s| needed[s]).collect()
}

/// The integer attributes that the value of a statement depends on.
pub(super) fn attributes(instr: &Instr, stmt: usize) -> Vec<u16> {
    let mut found = Vec::new();
    for s in needed(&instr.computation, stmt) {
        instr.computation.stmts[s].for_each_expr(&mut |e| {
            e.for_each_leaf(&mut |leaf| {
                if let Expr::Alpha(k) = leaf {
                    found.push(*k);
                }
            });
        });
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// The value of a statement that depends on no input; `None` where it has none for these attributes, or is too large.
pub(super) fn value(
    instr: &Instr,
    stmt: usize,
    ints: &[Option<i64>],
    alpha: &[Option<AttrVal>],
) -> Option<Literal> {
    let stmts = &instr.computation.stmts;
    let env = Env { alpha: ints, ..Env::default() };
    let mut values: BTreeMap<usize, Literal> = BTreeMap::new();
    for s in needed(&instr.computation, stmt) {
        let stmt = &stmts[s];
        let size = |e: &Expr| e.eval(env).ok();
        let dims = stmt.dims.iter().map(|d| u64::try_from(size(d)?).ok()).collect::<Option<Vec<u64>>>()?;
        let shape = Shape::new(stmt.elem, dims);
        if shape.bytes() > BYTES {
            return None;
        }
        let constant = |c: &SymConst| match c {
            SymConst::Literal(literal) => Some(literal.clone()),
            SymConst::Int(e) => int_scalar(stmt.elem, size(e)?).ok(),
            SymConst::F32Attr(k) => match alpha.get(usize::from(*k))? {
                Some(AttrVal::F32(bits)) => f32_scalar(stmt.elem, *bits).ok(),
                _ => None,
            },
        };
        let op: Op = stmt.op.try_map(|e| size(e).ok_or(()), |c| constant(c).ok_or(())).ok()?;
        let operands: Vec<Literal> =
            stmt.operands.iter().map(|o| values.get(o).cloned()).collect::<Option<_>>()?;
        values.insert(s, evaluate(&op, &operands, &shape)?);
    }
    values.remove(&stmt)
}

/// The value of integer attribute `k`, at least `low`, for which a statement may have the elements of `wanted`, if they
/// change with it by equal steps. Whether it does is for the caller to see.
pub(super) fn solve(
    instr: &Instr,
    stmt: usize,
    ints: &[Option<i64>],
    alpha: &[Option<AttrVal>],
    (k, low): (u16, i64),
    wanted: &Literal,
) -> Option<i64> {
    let at = |v: i64| {
        let mut ints = ints.to_vec();
        *ints.get_mut(usize::from(k))? = Some(v);
        value(instr, stmt, &ints, alpha)
    };
    let (first, second) = (at(low)?, at(low.checked_add(1)?)?);
    if first.shape() != wanted.shape() || second.shape() != wanted.shape() {
        return None;
    }
    let elem = wanted.elem();
    let width = elem.bytes() as usize;
    let element = |literal: &Literal, i: usize| {
        let bytes = literal.bytes().get(i * width..(i + 1) * width)?;
        int_value(elem, bytes).or_else(|| {
            let real = act_isa::constant::float_value(elem, bytes)?;
            (real.fract() == 0.0 && real.abs() < 1e15).then_some(real as i128)
        })
    };
    let count = usize::try_from(wanted.shape().elements()).ok()?;
    let (i, step) = (0..count).find_map(|i| {
        let step = element(&second, i)? - element(&first, i)?;
        (step != 0).then_some((i, step))
    })?;
    let steps = element(wanted, i)? - element(&first, i)?;
    (steps % step == 0).then(|| i64::try_from(i128::from(low) + steps / step).ok())?
}
