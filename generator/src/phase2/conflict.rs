//! Why a problem has no answer: a smallest set of values that cannot lie on chip together, for the message of a refusal.
//! Knows the constraint problem and the fast allocator, which judges every smaller problem.

use super::csp::{Csp, Outcome};
use super::precedence;
use std::collections::{BTreeMap, BTreeSet};

/// Values beyond which no smallest set is looked for.
const MOST_OWNERS: usize = 256;
/// Elementary steps of the search, for each value that may be left out.
const STEPS: u64 = 2_000;

/// Owners of boxes that together have no allocation, while without any one of them the others have one, as far as a
/// short search can tell. Empty where the conditions contradict each other without any box, or nothing was found.
pub(super) fn conflict(csp: &Csp) -> Vec<usize> {
    if let Some(owners) = overfull(csp) {
        return owners;
    }
    let mut kept: BTreeSet<usize> = csp.boxes.iter().map(|b| b.owner).collect();
    if kept.len() > MOST_OWNERS || !has_none(csp, &kept) {
        return Vec::new();
    }
    for owner in kept.clone() {
        kept.remove(&owner);
        if !has_none(csp, &kept) {
            kept.insert(owner);
        }
    }
    kept.into_iter().collect()
}

fn has_none(csp: &Csp, owners: &BTreeSet<usize>) -> bool {
    let mut part = csp.clone();
    part.boxes.retain(|b| owners.contains(&b.owner));
    matches!(precedence::solve(&part, STEPS), Outcome::Unsat { .. })
}

/// The largest values that are live at one time and take more room than their buffer has.
fn overfull(csp: &Csp) -> Option<Vec<usize>> {
    let buffer = csp.overfull_buffer()?;
    let room = csp.capacity[buffer].iter().fold(1i64, |n, &l| n.saturating_mul(l));
    let mine = || csp.boxes.iter().filter(|b| b.buffer == buffer);
    let times: BTreeSet<u32> = mine().map(|b| b.live.0).collect();
    times.into_iter().find_map(|now| {
        let mut sizes: BTreeMap<usize, i64> = BTreeMap::new();
        for b in mine().filter(|b| b.live.0 <= now && now < b.live.1) {
            let most = sizes.entry(b.owner).or_insert(0);
            *most = b.volume().max(*most);
        }
        let mut sizes: Vec<(usize, i64)> = sizes.into_iter().collect();
        sizes.sort_by_key(|&(owner, size)| (std::cmp::Reverse(size), owner));
        let mut sum = 0i64;
        let enough = sizes.iter().position(|&(_, size)| {
            sum = sum.saturating_add(size);
            sum > room
        })?;
        let mut owners: Vec<usize> = sizes[..=enough].iter().map(|&(owner, _)| owner).collect();
        owners.sort_unstable();
        Some(owners)
    })
}

#[cfg(test)]
mod tests {
    use super::super::csp::{SlotBox, Term, Variable};
    use super::*;

    /// Boxes of one buffer of six positions: owner, length, alignment, lifetime.
    fn problem(boxes: &[(usize, i64, i64, (u32, u32))]) -> Csp {
        let variable = |&(_, len, step, _): &(usize, i64, i64, (u32, u32))| Variable {
            min: 0,
            max: 6 - len,
            step,
            residue: 0,
        };
        let placed = boxes.iter().enumerate().map(|(var, &(owner, len, _, live))| SlotBox {
            owner,
            buffer: 0,
            start: vec![Term { var: Some(var), offset: 0 }],
            len: vec![len],
            live,
        });
        Csp {
            vars: boxes.iter().map(variable).collect(),
            boxes: placed.collect(),
            capacity: vec![vec![6]],
            ..Csp::default()
        }
    }

    #[test]
    fn the_largest_that_are_too_much_are_named() {
        let csp = problem(&[(0, 1, 1, (0, 9)), (1, 4, 1, (0, 4)), (2, 3, 1, (2, 6)), (3, 6, 1, (7, 8))]);
        // At time 2 there are eight positions, seven of them without owner 0; at time 7 owner 3 takes all but one.
        assert_eq!(conflict(&csp), [1, 2]);
        assert_eq!(csp.overfull_buffer(), Some(0));
    }

    #[test]
    fn what_fits_by_volume_and_not_by_alignment_is_named_alone() {
        // Multiples of four: there are two such places, 0 and 4; owner 0 is not needed for it.
        let live = (0, 2);
        let csp = problem(&[(0, 1, 1, live), (1, 1, 4, live), (2, 1, 4, live), (3, 1, 4, live)]);
        assert_eq!(conflict(&csp), [1, 2, 3]);
        // There is room by volume; the search itself names the buffer.
        assert_eq!(csp.overfull_buffer(), None);
        assert_eq!(precedence::solve(&csp, STEPS), Outcome::Unsat { buffer: Some(0) });
        let csp = problem(&[(0, 1, 1, live), (1, 1, 4, live), (2, 1, 4, live)]);
        assert_eq!(conflict(&csp), Vec::<usize>::new());
    }
}
