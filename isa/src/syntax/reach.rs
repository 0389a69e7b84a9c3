//! Requirements that nothing fulfils, addresses included, as faults of a description: found by narrowing what the
//! attributes may be. What is not seen so is no fault.

use crate::domain::{Domain, OPEN};
use crate::expr::{Cond, Expr};
use crate::feasible::within_memories;
use crate::model::{Instr, Isa};
use crate::narrowing::Domains;
use std::collections::BTreeSet;

/// Combinations of computational attributes that are looked through one by one.
const MAX_COMBINATIONS: i128 = 256;

/// A requirement that nothing fulfils.
pub(super) struct Unreachable {
    /// The requirement that leaves nothing.
    pub require: usize,
    /// Whether those before it take part.
    pub together: bool,
    /// What the memories leave of the addresses in it, as text.
    pub addresses: String,
}

/// The first requirement that, with the slices and those before it, cannot hold.
pub(super) fn unreachable(
    isa: &Isa,
    instr: &Instr,
    registers: &[i64],
    mutable: &BTreeSet<u16>,
) -> Option<Unreachable> {
    let slices = within_memories(isa, instr);
    let start = Domains::new(instr, registers, mutable);
    let unreached = |requires: &[Cond]| {
        let all: Vec<&Cond> = slices.iter().chain(requires).collect();
        empty(start.clone(), &all, true)
    };
    // Slices that never fit are told as such.
    if !unreached(&instr.requires) || unreached(&[]) {
        return None;
    }
    let alone = instr.requires.iter().position(|r| unreached(std::slice::from_ref(r)));
    let (require, together) = match alone {
        Some(k) => (k, false),
        None => ((0..instr.requires.len()).find(|&k| unreached(&instr.requires[..=k]))?, true),
    };
    let mut left = start;
    left.narrow_by(slices.iter());
    let mut betas = BTreeSet::new();
    instr.requires[require].for_each_leaf(&mut |leaf| {
        if let Expr::Beta(k) = leaf {
            betas.insert(usize::from(*k));
        }
    });
    let one = |k: &usize| {
        let domain = left.beta.get(*k)?;
        let name = &instr.beta.get(*k)?.name;
        let ends = if domain.high < OPEN {
            format!("{}..{}", domain.low, domain.high)
        } else {
            format!("{}..", domain.low)
        };
        Some(match (domain.modulus, domain.residue) {
            (1, _) => format!("`{name}` is in {ends}"),
            (m, 0) => format!("`{name}` is a multiple of {m} in {ends}"),
            (m, r) => format!("`{name}` is {r} more than a multiple of {m} in {ends}"),
        })
    };
    let addresses = betas.iter().filter_map(one).collect::<Vec<String>>().join(", ");
    Some(Unreachable { require, together, addresses })
}

/// Whether no values fulfil all conditions. Where that is not seen at once, the values of the computational attributes
/// are gone through if they are few and `split` is set.
fn empty(mut left: Domains, conds: &[&Cond], split: bool) -> bool {
    if !left.narrow_by(conds.iter().copied()) {
        return true;
    }
    if !split {
        return false;
    }
    let open = |d: &Domain| d.high.saturating_sub(d.low).saturating_add(1);
    let total = left.alpha.iter().filter(|d| d.high < OPEN).map(open).fold(1i128, i128::saturating_mul);
    // f32 attributes are in no condition.
    if total > MAX_COMBINATIONS || total <= 1 {
        return false;
    }
    let ranges: Vec<(usize, i128, i128)> = (0..left.alpha.len())
        .filter(|&k| left.alpha[k].high < OPEN)
        .map(|k| (k, left.alpha[k].low, open(&left.alpha[k])))
        .collect();
    (0..total).all(|index| {
        let mut rest = index;
        let mut one = left.clone();
        for &(k, low, len) in &ranges {
            one.alpha[k] = Domain::only(low + rest % len);
            rest /= len;
        }
        empty(one, conds, false)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Env, load_target, targets};

    /// Descriptions with one instruction over small ranges: the verdict against looking through every execution.
    fn verdicts(requires: &str) -> (bool, bool) {
        let text = format!(
            "isa t\nhbm d0: 64 align 4\nbuffer v: u8[12 | ] align(3) init 0\nregister r = 2\n\
             instr f alpha(n: 1..4) beta(a: 0..15, b: 0..80) {{\nin v[a :+ n]\nin d0[b :+ n * 2]\nout v[a :+ n]\n{requires}\n\
             computation {{\nx = u8[n] parameter(0)\ny = u8[n * 2] parameter(1)\n\
             z = u8[n] slice(y), slice={{[0:n]}}\nROOT w = u8[n] add(x, z)\n}}\n}}\n"
        );
        let isa = crate::syntax::parse_unchecked(&text, "t").unwrap_or_else(|e| panic!("{e}"));
        let instr = &isa.instrs[0];
        let said = unreachable(&isa, instr, &[2], &BTreeSet::new()).is_some();
        let all = (1..=4i64).flat_map(|n| (0..=15i64).flat_map(move |a| (0..=80i64).map(move |b| (n, a, b))));
        let possible = all
            .filter(|&(n, a, b)| a % 3 == 0 && a + n <= 12 && b % 4 == 0 && b + 2 * n <= 64)
            .any(|(n, a, b)| {
                let env = Env { alpha: &[Some(n)], beta: &[Some(a), Some(b)], registers: &[2] };
                instr.requires.iter().all(|r| r.eval(env) == Ok(true))
            });
        (said, !possible)
    }

    #[test]
    fn what_nothing_fulfils_is_found() {
        for require in [
            "require a > 11",
            "require a % 3 == 1",
            "require a % 6 == 2",
            "require b % 4 > 0",
            "require b > 1000",
            "require a + n > 12",
            "require a == b + 100",
            "require n * n == 5 and a > 3",
            "require not (a <= 9 or b < 8) or n > 4",
            "require a in {1, 2, 4}",
            "require a > 3 require b == 2 * a + 1",
            "require min(a, b) > 20",
            "require (a + 1) * r == 9",
            "require b / 16 == 4",
            "require b - a < 0 - 12",
            "require b >> 6 != 0",
        ] {
            assert_eq!(verdicts(require), (true, true), "{require}");
        }
    }

    /// Random requirements: what is called unreachable is so.
    #[test]
    fn nothing_possible_is_refused() {
        let mut seed = 7u64;
        let mut next = move |n: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize % n
        };
        let (mut said, mut empty) = (0, 0);
        for _ in 0..400 {
            let mut term = || {
                let leaf = |k: usize| ["a", "b", "n", "r", "3", "7", "40"][k];
                let (x, y) = (leaf(next(7)), leaf(next(7)));
                match next(9) {
                    0 => format!("({x} + {y})"),
                    1 => format!("({x} - {y})"),
                    2 => format!("{x} * {y}"),
                    3 => format!("{x} % 5"),
                    4 => format!("({x} + {y}) % 4"),
                    5 => format!("{x} / 3"),
                    6 => format!("max({x}, {y})"),
                    7 => format!("(2 * {x} - {y}) % 6"),
                    _ => x.to_owned(),
                }
            };
            let (a, b, c, d) = (term(), term(), term(), term());
            let relation = |k: usize| ["<", "<=", ">", ">=", "==", "!="][k];
            let join = ["and", "or", "and not"][next(3)];
            let text = format!("require {a} {} {b} {join} {c} {} {d}", relation(next(6)), relation(next(6)));
            let (verdict, truth) = verdicts(&text);
            assert!(!verdict || truth, "{text}");
            said += usize::from(verdict);
            empty += usize::from(truth);
        }
        assert!(said > 10, "{said} of {empty}");
    }

    #[test]
    fn every_instruction_of_every_target_is_reachable() {
        for (name, _) in targets() {
            let isa = load_target(name).unwrap();
            for instr in &isa.instrs {
                let found = unreachable(&isa, instr, &isa.register_values(), &isa.mutable_registers());
                assert!(found.is_none(), "{name} {}", instr.name);
            }
        }
    }
}
