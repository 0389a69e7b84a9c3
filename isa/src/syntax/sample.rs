//! Legal values of computational attributes to try a description on: ends of ranges, what requirements mention and
//! its neighbours, tile-like values in between.

use crate::AttrVal;
use crate::expr::{Cond, Env, Expr};
use crate::model::{AttrKind, Instr};
use std::collections::BTreeSet;

/// Combinations looked at, and legal ones returned.
const MAX_TRIED: u128 = 4096;
const MAX_LEGAL: usize = 48;

/// Combinations up to which all are looked through.
const MAX_SEARCHED: u128 = 1 << 16;

/// Values tried for an attribute without an upper end.
const OPEN_END: i64 = 1 << 20;

/// Legal combinations, in a fixed order that mixes small and large values. Empty when none was found. Requirements over
/// `mutable` registers hold at some time or other and are not looked at.
pub(super) fn legal_alphas(instr: &Instr, registers: &[i64], mutable: &BTreeSet<u16>) -> Vec<Vec<AttrVal>> {
    let mentioned = mentioned_numbers(&instr.requires);
    let candidates: Vec<Vec<AttrVal>> =
        instr.alpha.iter().map(|decl| candidates(&decl.kind, &mentioned)).collect();
    let total = candidates.iter().fold(1u128, |n, c| n.saturating_mul(c.len() as u128));
    let step = coprime_step(total);
    let mut legal = Vec::new();
    let mut index = 0u128;
    for _ in 0..total.min(MAX_TRIED) {
        let mut rest = index;
        let mut alpha = Vec::with_capacity(candidates.len());
        for list in &candidates {
            let len = list.len() as u128;
            alpha.push(list[(rest % len) as usize]);
            rest /= len;
        }
        if holds(instr, &alpha, registers, mutable) {
            legal.push(alpha);
            if legal.len() == MAX_LEGAL {
                break;
            }
        }
        index = (index + step) % total;
    }
    legal
}

/// What looking through all combinations of attributes finds.
pub(super) enum Search {
    Found(Vec<AttrVal>),
    /// There is no legal combination.
    Nothing,
    /// There are too many to look through.
    TooMany,
}

/// Looks through every combination, where these are few.
pub(super) fn first_legal(instr: &Instr, registers: &[i64], mutable: &BTreeSet<u16>) -> Search {
    let mut ranges = Vec::with_capacity(instr.alpha.len());
    let mut total = 1u128;
    for decl in &instr.alpha {
        // Requirements are over integers: one f32 is as good as another.
        let (min, len) = match decl.kind {
            AttrKind::Int { min, max } => (min, (i128::from(max) - i128::from(min) + 1) as u128),
            AttrKind::F32 => (0, 1),
        };
        total = total.saturating_mul(len);
        ranges.push((min, len));
    }
    if total > MAX_SEARCHED {
        return Search::TooMany;
    }
    for index in 0..total {
        let mut rest = index;
        let values = instr.alpha.iter().zip(&ranges).map(|(decl, &(min, len))| {
            let step = (rest % len) as i64;
            rest /= len;
            match decl.kind {
                AttrKind::Int { .. } => AttrVal::Int(min + step),
                AttrKind::F32 => AttrVal::F32(1f32.to_bits()),
            }
        });
        let alpha: Vec<AttrVal> = values.collect();
        if holds(instr, &alpha, registers, mutable) {
            return Search::Found(alpha);
        }
    }
    Search::Nothing
}

/// Legal combinations of the ends of ranges, open ones included, and of the numbers that requirements mention.
pub(super) fn legal_extremes(instr: &Instr, registers: &[i64], mutable: &BTreeSet<u16>) -> Vec<Vec<AttrVal>> {
    let mentioned = mentioned_numbers(&instr.requires);
    let mut all = vec![Vec::new()];
    for decl in &instr.alpha {
        let values = match decl.kind {
            AttrKind::F32 => vec![AttrVal::F32(1f32.to_bits())],
            AttrKind::Int { min, max } => {
                let near = mentioned.iter().flat_map(|v| [v.saturating_sub(1), *v, v.saturating_add(1)]);
                let mut values: Vec<i64> =
                    [min, max].into_iter().chain(near).filter(|v| (min..=max).contains(v)).collect();
                values.sort_unstable();
                values.dedup();
                // The ends are worth more than what lies between where there is too much to try.
                if (values.len() as u128).saturating_mul(all.len() as u128) > MAX_TRIED {
                    values = vec![min, max];
                }
                values.into_iter().map(AttrVal::Int).collect()
            }
        };
        let with = |list: Vec<AttrVal>| {
            values.iter().map(move |&v| [list.as_slice(), &[v]].concat()).collect::<Vec<_>>()
        };
        all = all.into_iter().flat_map(with).collect();
        all.truncate(MAX_TRIED as usize);
    }
    all.retain(|alpha| holds(instr, alpha, registers, mutable));
    all
}

/// Whether no requirement over these attributes alone is violated.
pub(super) fn holds(instr: &Instr, alpha: &[AttrVal], registers: &[i64], mutable: &BTreeSet<u16>) -> bool {
    let ints: Vec<Option<i64>> = alpha.iter().map(|v| v.as_int()).collect();
    let env = Env { alpha: &ints, beta: &[], registers };
    let fixed = |cond: &Cond| {
        let mut fixed = true;
        cond.for_each_leaf(&mut |leaf| match leaf {
            Expr::Beta(_) => fixed = false,
            Expr::Register(k) => fixed &= !mutable.contains(k),
            _ => {}
        });
        fixed
    };
    instr.requires.iter().filter(|r| fixed(r)).all(|r| r.eval(env) == Ok(true))
}

fn mentioned_numbers(requires: &[Cond]) -> Vec<i64> {
    let mut numbers = Vec::new();
    for require in requires {
        require.for_each_leaf(&mut |leaf| {
            if let Expr::Int(v) = leaf {
                numbers.push(*v);
            }
        });
    }
    numbers
}

/// Never empty.
fn candidates(kind: &AttrKind, mentioned: &[i64]) -> Vec<AttrVal> {
    let &AttrKind::Int { min, max } = kind else {
        return vec![AttrVal::F32(1f32.to_bits()), AttrVal::F32(0.375f32.to_bits())];
    };
    let max = if max == i64::MAX { min.saturating_add(OPEN_END) } else { max };
    let near_min = (0..4).map(|k| min.saturating_add(k));
    let tiles = [7, 8, 15, 16, 17, 32, 64, 100, 128];
    let near_mentioned = mentioned.iter().flat_map(|v| [v.saturating_sub(1), *v, v.saturating_add(1)]);
    let mut values: Vec<i64> = near_min
        .chain(tiles)
        .chain(near_mentioned)
        .chain([max.saturating_sub(1), max])
        .filter(|v| (min..=max).contains(v))
        .collect();
    values.sort_unstable();
    values.dedup();
    values.into_iter().map(AttrVal::Int).collect()
}

/// A step near the golden section of `total` with which `0, step, 2·step, ..` mod `total` meets every index.
fn coprime_step(total: u128) -> u128 {
    let mut step = (total / 8 * 5).max(1);
    while gcd(step, total) != 1 {
        step += 1;
    }
    step
}

fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_meets_every_index() {
        for total in 1..200u128 {
            let step = coprime_step(total);
            let met: BTreeSet<u128> = (0..total).map(|k| k * step % total).collect();
            assert_eq!(met.len() as u128, total);
        }
    }

    #[test]
    fn candidates_keep_to_the_range_and_know_the_requirements() {
        let values = candidates(&AttrKind::Int { min: 1, max: 100 }, &[48]);
        for v in [1, 2, 16, 47, 48, 49, 99, 100] {
            assert!(values.contains(&AttrVal::Int(v)), "{v}");
        }
        assert!(!values.contains(&AttrVal::Int(128)));
        assert_eq!(candidates(&AttrKind::Int { min: 5, max: 5 }, &[]), [AttrVal::Int(5)]);
    }
}
