//! The tile sizes that a description speaks of: read off its instructions' semantics and attribute ranges.

use act_hlo::{ElemType, OpKind};
use act_isa::model::AttrKind;
use act_isa::{Cond, Env, Expr, Instr, Isa, Slice};
use std::collections::BTreeSet;

/// The largest M, N, K of a contraction that one instruction computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DotGranularity {
    pub rows: u64,
    pub columns: u64,
    pub depth: u64,
}

/// Granularities of all instructions that contain a two-dimensional dot, without repetition, the largest first.
pub fn dot_granularities(isa: &Isa) -> Vec<DotGranularity> {
    let mut found: Vec<DotGranularity> = isa.instrs.iter().flat_map(dots_of).collect();
    found.sort_by_key(|g| std::cmp::Reverse((g.rows.saturating_mul(g.columns).saturating_mul(g.depth), *g)));
    found.dedup();
    found
}

/// The largest length per access dimension that any instruction writes at once, for regions without a contraction:
/// the sizes of every on-chip result, the largest first.
pub fn result_sizes(isa: &Isa) -> Vec<Vec<u64>> {
    let mut found: Vec<Vec<u64>> = Vec::new();
    for instr in &isa.instrs {
        let Some(&root) = instr.computation.roots.first() else { continue };
        let Some(stmt) = instr.computation.stmts.get(root) else { continue };
        let sizes: Option<Vec<u64>> = stmt.dims.iter().map(|d| largest(instr, d)).collect();
        if let (Some(sizes), Some(Slice::OnChip(_))) = (sizes, instr.outputs.first()) {
            found.push(sizes);
        }
        // Rows as they lie in main memory, where one transfer moves several blocks of them.
        if let Some((mut sizes, reach)) = reach_of(instr).filter(|(rows, _)| !rows.is_empty()) {
            sizes.push(reach);
            found.push(sizes);
        }
    }
    found.sort_by_key(|s| std::cmp::Reverse((s.iter().fold(1u64, |n, &d| n.saturating_mul(d)), s.clone())));
    found.dedup();
    found
}

/// The most adjacent elements that one load or store of the description moves: where that is more than an instruction
/// computes with, larger tiles take fewer of them.
pub fn transfer_reach(isa: &Isa) -> u64 {
    isa.instrs.iter().filter_map(reach_of).map(|(_, reach)| reach).max().unwrap_or(0)
}

/// The rows of main memory that a load or store moves, by dimension, and the elements on chip of each.
fn reach_of(instr: &Instr) -> Option<(Vec<u64>, u64)> {
    let sides = |slices: &[Slice]| {
        slices.iter().find_map(|slice| match slice {
            Slice::Hbm(window) => Some(window.dims.clone()),
            Slice::OnChip(_) => None,
        })
    };
    let chip = |slices: &[Slice]| slices.iter().any(|slice| matches!(slice, Slice::OnChip(_)));
    let stmts = &instr.computation.stmts;
    let (window, value) = match (sides(&instr.inputs), sides(&instr.outputs)) {
        (Some(window), None) => (window, stmts.get(*instr.computation.roots.first()?)?),
        (None, Some(window)) if chip(&instr.inputs) => {
            (window, stmts.iter().find(|stmt| matches!(stmt.op, OpKind::Parameter(0)))?)
        }
        _ => return None,
    };
    let sizes = |dims: &mut dyn Iterator<Item = &Expr>| -> Option<Vec<u64>> {
        dims.map(|size| largest(instr, size)).collect()
    };
    let all = |sizes: &[u64]| sizes.iter().fold(1u64, |n, &d| n.saturating_mul(d));
    let rows = sizes(&mut window.iter().take(window.len().saturating_sub(1)).map(|dim| &dim.0))?;
    let reach = all(&sizes(&mut value.dims.iter())?) / all(&rows);
    Some((rows, reach))
}

/// In how many adjacent elements of this type instructions see the dimension that they contract, more than one at a time:
/// the last dimension of values of rank three. A wrong guess only costs an attempt.
pub fn operand_groups(isa: &Isa, elem: ElemType) -> BTreeSet<u64> {
    let stmts = isa.instrs.iter().flat_map(|instr| &instr.computation.stmts);
    let groups = stmts.filter(|stmt| stmt.elem == elem && stmt.dims.len() == 3).filter_map(|stmt| {
        let Some(Expr::Int(last)) = stmt.dims.last() else { return None };
        u64::try_from(*last).ok().filter(|last| (2..=MOST_TOGETHER).contains(last))
    });
    groups.collect()
}

/// Elements in a group, at most: those of a 32-bit sum are four bytes.
const MOST_TOGETHER: u64 = 8;

fn dots_of(instr: &Instr) -> Vec<DotGranularity> {
    let stmts = &instr.computation.stmts;
    let dots = stmts.iter().filter_map(|stmt| {
        let OpKind::Dot(dims) = &stmt.op else { return None };
        let (lhs, rhs) = (stmts.get(*stmt.operands.first()?)?, stmts.get(*stmt.operands.get(1)?)?);
        if lhs.dims.len() != 2 || rhs.dims.len() != 2 || !dims.lhs_batch.is_empty() {
            return None;
        }
        let (lk, rk) = (*dims.lhs_contracting.first()?, *dims.rhs_contracting.first()?);
        let size = |e: &Expr| largest(instr, e);
        Some(DotGranularity {
            rows: size(lhs.dims.get(1 - lk.min(1))?)?,
            columns: size(rhs.dims.get(1 - rk.min(1))?)?,
            depth: size(lhs.dims.get(lk)?)?,
        })
    });
    dots.collect()
}

/// The largest value of a size expression, at the upper ends of the computational attributes: sizes grow with their
/// attributes in every description worth tiling for; a wrong guess only costs an attempt.
fn largest(instr: &Instr, size: &Expr) -> Option<u64> {
    let upper: Vec<Option<i64>> = (0..instr.alpha.len()).map(|k| upper_end(instr, k)).collect();
    let value = size.eval(Env { alpha: &upper, beta: &[], registers: &[] }).ok()?;
    u64::try_from(value).ok().filter(|&v| v > 0)
}

/// The largest value of attribute `k` that its range and the conditions on it alone allow, among the range's end and
/// the numbers that the conditions name.
fn upper_end(instr: &Instr, k: usize) -> Option<i64> {
    let AttrKind::Int { min, max } = instr.alpha.get(k)?.kind else { return None };
    let mut named = vec![max];
    instr.requires.iter().for_each(|cond| numbers_of(cond, &mut named));
    let allowed = |&v: &i64| {
        let mut alpha = vec![None; instr.alpha.len()];
        alpha[k] = Some(v);
        let env = Env { alpha: &alpha, beta: &[], registers: &[] };
        (min..=max).contains(&v) && instr.requires.iter().all(|cond| cond.eval(env) != Ok(false))
    };
    named.into_iter().flat_map(|v| [v, v.saturating_sub(1)]).filter(allowed).max()
}

fn numbers_of(cond: &Cond, into: &mut Vec<i64>) {
    match cond {
        Cond::Cmp(_, a, b) => into.extend([a, b].iter().filter_map(|e| match e {
            Expr::Int(v) => Some(*v),
            _ => None,
        })),
        Cond::And(a, b) | Cond::Or(a, b) => {
            numbers_of(a, into);
            numbers_of(b, into);
        }
        Cond::Not(a) => numbers_of(a, into),
        Cond::In(_, set) => into.extend(set),
    }
}
