//! Banks as a preference: operands that an instruction reads together are put into different ones. Narrows the domains
//! of a problem's variables; whoever solves it goes back to the plain problem where the narrow one has no solution.

use super::csp::{Csp, Term};
use super::skeleton::{BetaTerm, Skeleton};
use act_isa::{Expr, Isa, Slice};
use std::collections::{BTreeMap, BTreeSet};

/// The problem with the operands of every banked buffer on the two sides of a boundary between banks: at the first
/// boundary, or in the middle. Nothing where no instruction reads two slots of one banked buffer.
pub(super) fn apart(isa: &Isa, skeleton: &Skeleton, csp: &Csp) -> Vec<Csp> {
    let mut narrowed: [Csp; 2] = [csp.clone(), csp.clone()];
    let mut any = false;
    for banks in &isa.timing.banks {
        let Some(dim) = banks.count.iter().position(|&count| count > 1) else { continue };
        let buffer = usize::from(banks.buffer.0);
        let pairs = read_together(isa, skeleton, buffer, dim);
        if pairs.is_empty() {
            continue;
        }
        let sides = sides(&pairs);
        let length = i64::try_from(banks.length(isa.buffer(banks.buffer), dim)).unwrap_or(i64::MAX);
        let count = i64::try_from(banks.count[dim]).unwrap_or(1);
        for (csp, boundary) in narrowed.iter_mut().zip([length, length.saturating_mul(count / 2)]) {
            narrow(csp, buffer, dim, &sides, boundary);
        }
        any = true;
    }
    if !any {
        return Vec::new();
    }
    let [first, middle] = narrowed;
    let same = first == middle;
    let list = if same { vec![first] } else { vec![first, middle] };
    list.into_iter().filter(|csp| csp.vars.iter().all(|v| v.min <= v.max)).collect()
}

/// Pairs of variables, the starts along `dim` of two slots of `buffer` that one instruction reads.
fn read_together(isa: &Isa, skeleton: &Skeleton, buffer: usize, dim: usize) -> BTreeSet<(usize, usize)> {
    let mut pairs = BTreeSet::new();
    for step in &skeleton.steps {
        let mut starts: Vec<usize> = Vec::new();
        for slice in &isa.instr(step.op).inputs {
            if let Slice::OnChip(slice) = slice
                && usize::from(slice.buffer.0) == buffer
                && let Some(Expr::Beta(k)) = slice.start.get(dim)
                && let Some(BetaTerm::Slot(Term { var: Some(var), .. })) = step.beta.get(usize::from(*k))
            {
                starts.push(*var);
            }
        }
        for (k, &a) in starts.iter().enumerate() {
            pairs.extend(starts[..k].iter().filter(|&&b| a != b).map(|&b| (a.min(b), a.max(b))));
        }
    }
    pairs
}

/// A side for every variable, such that pairs are on different ones as far as that goes.
fn sides(pairs: &BTreeSet<(usize, usize)>) -> BTreeMap<usize, bool> {
    let mut neighbours: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for &(a, b) in pairs {
        neighbours.entry(a).or_default().push(b);
        neighbours.entry(b).or_default().push(a);
    }
    let mut sides = BTreeMap::new();
    for &first in neighbours.keys() {
        let mut open = vec![(first, false)];
        while let Some((var, side)) = open.pop() {
            if sides.contains_key(&var) {
                continue;
            }
            sides.insert(var, side);
            open.extend(neighbours.get(&var).into_iter().flatten().map(|&other| (other, !side)));
        }
    }
    sides
}

/// Keeps the slots of one side before the boundary and those of the other behind it.
fn narrow(csp: &mut Csp, buffer: usize, dim: usize, sides: &BTreeMap<usize, bool>, boundary: i64) {
    let boxes: Vec<(usize, i64, i64)> = csp
        .boxes
        .iter()
        .filter(|b| b.buffer == buffer)
        .filter_map(|b| Some((b.start.get(dim)?, *b.len.get(dim)?)))
        .filter_map(|(start, len)| Some((start.var?, start.offset, len)))
        .collect();
    for (var, offset, len) in boxes {
        let (Some(side), Some(variable)) = (sides.get(&var), csp.vars.get_mut(var)) else { continue };
        if *side {
            variable.min = variable.min.max(boundary.saturating_sub(offset));
        } else {
            variable.max = variable.max.min(boundary.saturating_sub(offset).saturating_sub(len));
        }
    }
}
