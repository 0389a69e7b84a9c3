//! Values that the attributes of an instruction may still have: each has a domain, which conditions narrow until nothing
//! changes. An attribute that is left without a value proves that the conditions cannot hold together; nothing else is
//! concluded.

use crate::domain::{Domain, OPEN, dividends, factors, floored, leaving, minus, plus, remainders, times};
use crate::expr::{Cond, Expr, Relation};
use crate::model::{AttrKind, Instr};
use std::collections::BTreeSet;

/// Rounds of narrowing; fewer only keep domains wider.
const MAX_ROUNDS: usize = 64;

/// Values that attributes and registers may still have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Domains {
    pub(crate) alpha: Vec<Domain>,
    pub(crate) beta: Vec<Domain>,
    registers: Vec<Domain>,
}

impl Domains {
    /// The declared ranges, and the values of registers outside of `mutable`.
    pub(crate) fn new(instr: &Instr, registers: &[i64], mutable: &BTreeSet<u16>) -> Domains {
        let range = |decl: &crate::AttrDecl| match decl.kind {
            AttrKind::Int { min, max: i64::MAX } => Domain::interval(min.into(), OPEN),
            AttrKind::Int { min, max } => Domain::interval(min.into(), max.into()),
            AttrKind::F32 => Domain::ALL,
        };
        let register = |(k, &value): (usize, &i64)| {
            if mutable.contains(&(k as u16)) { Domain::ALL } else { Domain::only(value.into()) }
        };
        Domains {
            alpha: instr.alpha.iter().map(range).collect(),
            beta: instr.beta.iter().map(range).collect(),
            registers: registers.iter().enumerate().map(register).collect(),
        }
    }

    fn slot(&mut self, leaf: &Expr) -> Option<&mut Domain> {
        match leaf {
            Expr::Alpha(k) => self.alpha.get_mut(usize::from(*k)),
            Expr::Beta(k) => self.beta.get_mut(usize::from(*k)),
            Expr::Register(k) => self.registers.get_mut(usize::from(*k)),
            _ => None,
        }
    }

    /// Narrows by every condition until nothing changes. False when nothing is left.
    pub(crate) fn narrow_by<'a>(&mut self, conds: impl Iterator<Item = &'a Cond> + Clone) -> bool {
        for _ in 0..MAX_ROUNDS {
            let before = self.clone();
            if !conds.clone().all(|cond| self.assume(cond, true)) {
                return false;
            }
            if before == *self {
                break;
            }
        }
        true
    }

    /// Keeps what a condition leaves, or with `holds` false its opposite. False when nothing is left.
    pub(crate) fn assume(&mut self, cond: &Cond, holds: bool) -> bool {
        match (cond, holds) {
            (Cond::Not(a), _) => self.assume(a, !holds),
            (Cond::And(a, b), true) | (Cond::Or(a, b), false) => {
                self.assume(a, holds) && self.assume(b, holds)
            }
            (Cond::And(a, b), false) | (Cond::Or(a, b), true) => {
                let (mut left, mut right) = (self.clone(), self.clone());
                match (left.assume(a, holds), right.assume(b, holds)) {
                    (false, false) => return false,
                    (true, false) => *self = left,
                    (false, true) => *self = right,
                    (true, true) => {}
                }
                true
            }
            (Cond::In(a, set), true) => {
                let domain = self.domain(a);
                let fits = |v: &&i64| !domain.meet(Domain::only(i128::from(**v))).is_empty();
                let left: Vec<i64> = set.iter().filter(fits).copied().collect();
                match (left.iter().min(), left.iter().max()) {
                    (Some(&low), Some(&high)) => self.restrict(a, Domain::interval(low.into(), high.into())),
                    _ => false,
                }
            }
            (Cond::In(a, set), false) => {
                !self.domain(a).value().is_some_and(|v| set.iter().any(|&m| i128::from(m) == v))
            }
            (Cond::Cmp(relation, a, b), true) => self.compare(*relation, a, b),
            (Cond::Cmp(relation, a, b), false) => self.compare(relation.opposite(), a, b),
        }
    }

    fn compare(&mut self, relation: Relation, a: &Expr, b: &Expr) -> bool {
        let (x, y) = (self.domain(a), self.domain(b));
        let below = |high: i128, by: i128| if high >= OPEN { OPEN } else { high - by };
        let above = |low: i128, by: i128| if low <= -OPEN { -OPEN } else { low + by };
        match relation {
            Relation::Lt | Relation::Le => {
                let by = i128::from(relation == Relation::Lt);
                self.restrict(a, Domain::interval(-OPEN, below(y.high, by)))
                    && self.restrict(b, Domain::interval(above(x.low, by), OPEN))
            }
            Relation::Gt => self.compare(Relation::Lt, b, a),
            Relation::Ge => self.compare(Relation::Le, b, a),
            Relation::Eq => {
                let both = x.meet(y);
                !both.is_empty() && self.restrict(a, both) && self.restrict(b, both)
            }
            Relation::Ne => {
                // A number at an end of the other domain is not of it.
                let others = |v: i128, d: Domain| match v {
                    v if v == d.low => Domain::interval(v + 1, OPEN),
                    v if v == d.high => Domain::interval(-OPEN, v - 1),
                    _ => Domain::ALL,
                };
                match (x.value(), y.value()) {
                    (Some(v), _) => self.restrict(b, others(v, y)),
                    (None, Some(v)) => self.restrict(a, others(v, x)),
                    (None, None) => true,
                }
            }
        }
    }

    /// Values that an expression may have.
    pub(crate) fn domain(&self, e: &Expr) -> Domain {
        let pair = |a: &Expr, b: &Expr| (self.domain(a), self.domain(b));
        let divisor = |b: &Expr| self.domain(b).value().filter(|&c| c > 0);
        match e {
            Expr::Int(v) => Domain::only(i128::from(*v)),
            Expr::Alpha(k) => self.alpha.get(usize::from(*k)).copied().unwrap_or(Domain::ALL),
            Expr::Beta(k) => self.beta.get(usize::from(*k)).copied().unwrap_or(Domain::ALL),
            Expr::Register(k) => self.registers.get(usize::from(*k)).copied().unwrap_or(Domain::ALL),
            Expr::Variable(_) => Domain::ALL,
            Expr::Add(a, b) => plus(self.domain(a), self.domain(b)),
            Expr::Sub(a, b) => minus(self.domain(a), self.domain(b)),
            Expr::Mul(a, b) => times(self.domain(a), self.domain(b)),
            Expr::Shl(a, b) => match self.domain(b).value() {
                Some(by @ 0..=62) => times(self.domain(a), Domain::only(1 << by)),
                _ => Domain::ALL,
            },
            Expr::Shr(a, b) => match self.domain(b).value() {
                Some(by @ 0..=62) => floored(self.domain(a), 1 << by),
                _ => Domain::ALL,
            },
            Expr::Div(a, b) => divisor(b).map_or(Domain::ALL, |c| floored(self.domain(a), c)),
            Expr::CeilDiv(a, b) => {
                divisor(b).map_or(Domain::ALL, |c| floored(plus(self.domain(a), Domain::only(c - 1)), c))
            }
            Expr::Mod(a, b) => divisor(b).map_or(Domain::ALL, |c| remainders(self.domain(a), c)),
            Expr::Min(a, b) => {
                let (a, b) = pair(a, b);
                Domain::interval(a.low.min(b.low), a.high.min(b.high))
            }
            Expr::Max(a, b) => {
                let (a, b) = pair(a, b);
                Domain::interval(a.low.max(b.low), a.high.max(b.high))
            }
        }
    }

    /// Keeps the values for which an expression lies in `wanted`. False when there are none.
    fn restrict(&mut self, e: &Expr, wanted: Domain) -> bool {
        let left = self.domain(e).meet(wanted);
        if left.is_empty() {
            return false;
        }
        // The divisor of a division, as the number that narrowing needs.
        let divisor = |this: &Domains, b: &Expr| this.domain(b).value().filter(|&c| c > 0);
        match e {
            Expr::Alpha(_) | Expr::Beta(_) | Expr::Register(_) => {
                if let Some(slot) = self.slot(e) {
                    *slot = left;
                }
                true
            }
            Expr::Int(_) | Expr::Variable(_) => true,
            Expr::Add(a, b) => {
                let (x, y) = (self.domain(a), self.domain(b));
                self.restrict(a, minus(left, y)) && self.restrict(b, minus(left, x))
            }
            Expr::Sub(a, b) => {
                let (x, y) = (self.domain(a), self.domain(b));
                self.restrict(a, plus(left, y)) && self.restrict(b, minus(x, left))
            }
            Expr::Mul(a, b) => {
                let (x, y) = (self.domain(a), self.domain(b));
                self.restrict(a, factors(left, y)) && self.restrict(b, factors(left, x))
            }
            Expr::Shl(a, b) => match self.domain(b).value() {
                Some(by @ 0..=62) => self.restrict(a, factors(left, Domain::only(1 << by))),
                _ => true,
            },
            Expr::Div(a, b) => divisor(self, b).is_none_or(|c| self.restrict(a, dividends(left, c))),
            Expr::CeilDiv(a, b) => divisor(self, b).is_none_or(|c| {
                let raised = dividends(left, c);
                self.restrict(a, minus(raised, Domain::only(c - 1)))
            }),
            Expr::Shr(a, b) => match self.domain(b).value() {
                Some(by @ 0..=62) => self.restrict(a, dividends(left, 1 << by)),
                _ => true,
            },
            Expr::Mod(a, b) => divisor(self, b).is_none_or(|c| {
                let before = self.domain(a);
                self.restrict(a, leaving(left, c, before))
            }),
            Expr::Min(a, b) | Expr::Max(a, b) => {
                let up = matches!(e, Expr::Max(..));
                let (x, y) = (self.domain(a), self.domain(b));
                // Neither argument lies beyond; one of them is the value, the other one where the first cannot be.
                let within =
                    if up { Domain::interval(-OPEN, left.high) } else { Domain::interval(left.low, OPEN) };
                let is_value = |d: Domain| !d.meet(left).is_empty();
                let bound = |other: Domain| if is_value(other) { within } else { left.meet(within) };
                self.restrict(a, bound(y)) && self.restrict(b, bound(x))
            }
        }
    }
}
