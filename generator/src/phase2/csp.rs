//! The constraint problem of memory allocation as plain data: variables, boxes that must be apart, conditions. Knows
//! neither the pii graph nor how the problem is solved.

use act_isa::{Cond, Env};

/// An integer unknown: `min <= x <= max` and `x mod step == residue`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Variable {
    pub(super) min: i64,
    pub(super) max: i64,
    /// At least 1.
    pub(super) step: i64,
    /// In `0..step`.
    pub(super) residue: i64,
}

/// `variable + offset`, or a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Term {
    pub(super) var: Option<usize>,
    pub(super) offset: i64,
}

/// Part of a slot that is occupied for some time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SlotBox {
    /// Boxes of one owner need not be apart.
    pub(super) owner: usize,
    pub(super) buffer: usize,
    pub(super) start: Vec<Term>,
    pub(super) len: Vec<i64>,
    /// Half open: first instant of occupation, first instant after it.
    pub(super) live: (u32, u32),
}

/// A condition over the attributes of one instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Condition {
    pub(super) cond: Cond,
    pub(super) alpha: Vec<Option<i64>>,
    pub(super) beta: Vec<Option<Term>>,
}

/// `left >= right`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AtLeast {
    pub(super) left: Term,
    pub(super) right: Term,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Csp {
    pub(super) vars: Vec<Variable>,
    pub(super) boxes: Vec<SlotBox>,
    /// Lengths of the access dimensions of every buffer.
    pub(super) capacity: Vec<Vec<i64>>,
    pub(super) orderings: Vec<AtLeast>,
    pub(super) conditions: Vec<Condition>,
    pub(super) registers: Vec<i64>,
}

/// What an allocator says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// A value of every variable.
    Sat(Vec<i64>),
    /// Proven: there is none. The buffer that is too small, where one can be named.
    Unsat { buffer: Option<usize> },
    /// The budget ran out, or the problem is beyond the allocator.
    GaveUp,
}

impl Variable {
    /// The least value that is at least `bound`; `None` beyond i64.
    pub(super) fn round_up(&self, bound: i64) -> Option<i64> {
        let excess = (i128::from(bound) - i128::from(self.residue)).rem_euclid(i128::from(self.step));
        let up = if excess == 0 { 0 } else { i128::from(self.step) - excess };
        i64::try_from(i128::from(bound) + up).ok()
    }

    /// Whether `value` lies in the domain.
    pub(super) fn admits(&self, value: i64) -> bool {
        self.min <= value && value <= self.max && self.round_up(value) == Some(value)
    }
}

impl Term {
    /// The value under an assignment; saturates, which a bounds check then refuses.
    pub(super) fn value(self, assignment: &[i64]) -> i64 {
        let base = self.var.map_or(0, |v| assignment.get(v).copied().unwrap_or(i64::MAX));
        base.saturating_add(self.offset)
    }
}

impl SlotBox {
    pub(super) fn volume(&self) -> i64 {
        self.len.iter().fold(1i64, |n, &l| n.saturating_mul(l))
    }
}

impl Csp {
    /// Pairs of boxes that occupy one buffer at one time and so must be disjoint in some dimension, the one that is
    /// live first in front.
    pub(super) fn pairs(&self) -> Vec<(usize, usize)> {
        let mut order: Vec<usize> = (0..self.boxes.len()).filter(|&b| self.boxes[b].volume() > 0).collect();
        order.sort_by_key(|&b| (self.boxes[b].live.0, b));
        let mut pairs = Vec::new();
        for (at, &a) in order.iter().enumerate() {
            for &b in &order[at + 1..] {
                let (x, y) = (&self.boxes[a], &self.boxes[b]);
                if y.live.0 >= x.live.1 {
                    // Those behind are live later still.
                    break;
                }
                let together = x.live.0 < y.live.1;
                if together && x.buffer == y.buffer && x.owner != y.owner {
                    pairs.push((a, b));
                }
            }
        }
        pairs
    }

    /// A buffer that is asked to hold more at one time than it has room for.
    pub(super) fn overfull_buffer(&self) -> Option<usize> {
        (0..self.capacity.len()).find(|&buffer| {
            let room = self.capacity[buffer].iter().fold(1i64, |n, &l| n.saturating_mul(l));
            let mine = || self.boxes.iter().filter(|b| b.buffer == buffer && b.volume() > 0);
            mine().any(|now| {
                let mut of_owner = std::collections::BTreeMap::new();
                for b in mine().filter(|b| b.live.0 <= now.live.0 && now.live.0 < b.live.1) {
                    let most = of_owner.entry(b.owner).or_insert(0);
                    *most = b.volume().max(*most);
                }
                of_owner.values().fold(0i64, |n, &v| n.saturating_add(v)) > room
            })
        })
    }

    /// Whether the two boxes overlap under `assignment`.
    pub(super) fn overlap(&self, a: usize, b: usize, assignment: &[i64]) -> bool {
        let (a, b) = (&self.boxes[a], &self.boxes[b]);
        (0..a.len.len()).all(|d| {
            let (x, y) = (a.start[d].value(assignment), b.start[d].value(assignment));
            x < y.saturating_add(b.len[d]) && y < x.saturating_add(a.len[d])
        })
    }

    /// Whether `condition` holds; a condition without a value does not.
    pub(super) fn holds(&self, condition: &Condition, assignment: &[i64]) -> bool {
        let beta: Vec<Option<i64>> = condition.beta.iter().map(|t| t.map(|t| t.value(assignment))).collect();
        let env = Env { alpha: &condition.alpha, beta: &beta, registers: &self.registers };
        condition.cond.eval(env).unwrap_or(false)
    }

    /// Whether an assignment answers the problem.
    pub(super) fn admits(&self, assignment: &[i64]) -> bool {
        assignment.len() == self.vars.len()
            && self.vars.iter().zip(assignment).all(|(var, &value)| var.admits(value))
            && self.orderings.iter().all(|o| o.left.value(assignment) >= o.right.value(assignment))
            && self.conditions.iter().all(|c| self.holds(c, assignment))
            && self.pairs().iter().all(|&(a, b)| !self.overlap(a, b, assignment))
    }
}
