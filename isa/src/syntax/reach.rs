//! Requirements that nothing fulfils, addresses included: every attribute has an interval and a residue, which the
//! requirements, the sizes of memories and their alignments narrow until nothing changes. An attribute that is left
//! without a value proves that the instruction can never be executed; nothing else is concluded.

use crate::expr::{Cond, Expr, Relation};
use crate::model::{AttrKind, Instr, Isa, Slice};
use std::collections::BTreeSet;

/// Rounds of narrowing; fewer only keep domains wider.
const MAX_ROUNDS: usize = 64;

/// Combinations of computational attributes that are looked through one by one.
const MAX_COMBINATIONS: i128 = 256;

/// Ends beyond which an interval is open: sums and products of a few such numbers fit 128 bits.
const OPEN: i128 = 1 << 100;

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
        start.clone().empty(&all, true)
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
    left.narrow_by(&slices.iter().collect::<Vec<_>>());
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

/// What holds of every execution: slices lie within their memories and start where these allow it. Of main memory an
/// address stands for its offset in a segment, which is no longer than the memory and begins aligned.
fn within_memories(isa: &Isa, instr: &Instr) -> Vec<Cond> {
    let number = |v: u64| Expr::Int(i64::try_from(v).unwrap_or(i64::MAX));
    let mut out = Vec::new();
    let aligned = |start: &Expr, align: u64| {
        let rest = Expr::Mod(start.clone().into(), number(align).into());
        (align > 1).then_some(Cond::Cmp(Relation::Eq, rest, Expr::Int(0)))
    };
    for slice in instr.inputs.iter().chain(&instr.outputs) {
        match slice {
            Slice::Hbm(window) => {
                out.extend(aligned(&window.start, isa.hbm.align));
                // The first element, or all where they are one run of bytes.
                let bytes = match window.dims.as_slice() {
                    [(len, Expr::Int(1))] => len.clone(),
                    _ => Expr::Int(1),
                };
                let end = Expr::Add(window.start.clone().into(), bytes.into());
                let lens = window.dims.iter().map(|(len, _)| len);
                out.push(unless_empty(lens, Cond::Cmp(Relation::Le, end, number(isa.hbm.size))));
            }
            Slice::OnChip(slice) => {
                let Some(buffer) = isa.buffers.get(usize::from(slice.buffer.0)) else { continue };
                for (k, (start, len)) in slice.start.iter().zip(&slice.len).enumerate() {
                    let (Some(&size), Some(&align)) = (buffer.access.get(k), buffer.align.get(k)) else {
                        continue;
                    };
                    out.push(Cond::Cmp(Relation::Ge, start.clone(), Expr::Int(0)));
                    let end = Expr::Add(start.clone().into(), len.clone().into());
                    out.push(unless_empty(slice.len.iter(), Cond::Cmp(Relation::Le, end, number(size))));
                    out.extend(aligned(start, align));
                }
            }
        }
    }
    out
}

/// A slice with a length of 0 lies anywhere.
fn unless_empty<'a>(lens: impl Iterator<Item = &'a Expr>, cond: Cond) -> Cond {
    lens.fold(cond, |cond, len| {
        let empty = Cond::Cmp(Relation::Eq, len.clone(), Expr::Int(0));
        Cond::Or(empty.into(), cond.into())
    })
}

/// The integers of an interval that leave `residue` when divided by `modulus` (at least 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Domain {
    low: i128,
    high: i128,
    modulus: i128,
    residue: i128,
}

impl Domain {
    const ALL: Domain = Domain { low: -OPEN, high: OPEN, modulus: 1, residue: 0 };

    fn interval(low: i128, high: i128) -> Domain {
        Domain { low: low.clamp(-OPEN, OPEN), high: high.clamp(-OPEN, OPEN), modulus: 1, residue: 0 }
    }

    /// One number; a residue of its own would only grow.
    fn only(value: i128) -> Domain {
        Domain::interval(value, value)
    }

    fn value(self) -> Option<i128> {
        (self.low == self.high && self.low.abs() < OPEN).then_some(self.low)
    }

    fn is_empty(self) -> bool {
        self.low > self.high
    }

    /// Ends moved to members.
    fn tight(mut self) -> Domain {
        if self.modulus > 1 {
            if self.low > -OPEN {
                self.low += (self.residue - self.low).rem_euclid(self.modulus);
            }
            if self.high < OPEN {
                self.high -= (self.high - self.residue).rem_euclid(self.modulus);
            }
        }
        self
    }

    fn meet(self, other: Domain) -> Domain {
        let (low, high) = (self.low.max(other.low), self.high.min(other.high));
        let common = gcd(self.modulus, other.modulus);
        if (self.residue - other.residue) % common != 0 {
            return Domain { low: 1, high: 0, modulus: 1, residue: 0 };
        }
        // Of two residues the finer one is kept; both would need their least common multiple.
        let finer = if self.modulus >= other.modulus { self } else { other };
        let (modulus, residue) = (finer.modulus, finer.residue.rem_euclid(finer.modulus));
        Domain { low, high, modulus, residue }.tight()
    }

    /// The residue that both summands give; a number fits every modulus.
    fn residues(self, other: Domain, join: impl Fn(i128, i128) -> i128) -> (i128, i128) {
        let modulus = match (self.value(), other.value()) {
            (Some(_), Some(_)) => return (1, 0),
            (Some(_), None) => other.modulus,
            (None, Some(_)) => self.modulus,
            (None, None) => gcd(self.modulus, other.modulus),
        };
        let part = |d: Domain| d.value().unwrap_or(d.residue).rem_euclid(modulus);
        (modulus, join(part(self), part(other)).rem_euclid(modulus))
    }

    fn with_residue(self, (modulus, residue): (i128, i128)) -> Domain {
        Domain { modulus, residue, ..self }.tight()
    }
}

fn gcd(a: i128, b: i128) -> i128 {
    if b == 0 { a.max(1) } else { gcd(b, a % b) }
}

/// Least and greatest of a function at the corners, where it is monotonous in each argument.
fn corners(a: Domain, b: Domain, f: impl Fn(i128, i128) -> i128) -> Domain {
    let values = [f(a.low, b.low), f(a.low, b.high), f(a.high, b.low), f(a.high, b.high)];
    let low = values.iter().copied().min().unwrap_or(-OPEN);
    Domain::interval(low, values.iter().copied().max().unwrap_or(OPEN))
}

/// A product of which an open end stays open.
fn times(a: i128, b: i128) -> i128 {
    a.saturating_mul(b).clamp(-OPEN, OPEN)
}

/// Values that attributes and registers may still have.
#[derive(Clone)]
struct Domains {
    alpha: Vec<Domain>,
    beta: Vec<Domain>,
    registers: Vec<Domain>,
}

impl Domains {
    fn new(instr: &Instr, registers: &[i64], mutable: &BTreeSet<u16>) -> Domains {
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

    /// Whether no values fulfil all conditions. Where that is not seen at once, the values of the computational
    /// attributes are gone through if they are few and `split` is set.
    fn empty(mut self, conds: &[&Cond], split: bool) -> bool {
        if !self.narrow_by(conds) {
            return true;
        }
        if !split {
            return false;
        }
        let open = |d: &Domain| d.high.saturating_sub(d.low).saturating_add(1);
        let total = self.alpha.iter().filter(|d| d.high < OPEN).map(open).fold(1i128, i128::saturating_mul);
        // f32 attributes are in no condition.
        if total > MAX_COMBINATIONS || total <= 1 {
            return false;
        }
        let ranges: Vec<(usize, i128, i128)> = (0..self.alpha.len())
            .filter(|&k| self.alpha[k].high < OPEN)
            .map(|k| (k, self.alpha[k].low, open(&self.alpha[k])))
            .collect();
        (0..total).all(|index| {
            let mut rest = index;
            let mut one = self.clone();
            for &(k, low, len) in &ranges {
                one.alpha[k] = Domain::only(low + rest % len);
                rest /= len;
            }
            one.empty(conds, false)
        })
    }

    /// Narrows by every condition until nothing changes. False when nothing is left.
    fn narrow_by(&mut self, conds: &[&Cond]) -> bool {
        for _ in 0..MAX_ROUNDS {
            let before = (self.alpha.clone(), self.beta.clone(), self.registers.clone());
            if !conds.iter().all(|cond| self.assume(cond, true)) {
                return false;
            }
            if before == (self.alpha.clone(), self.beta.clone(), self.registers.clone()) {
                break;
            }
        }
        true
    }

    /// Keeps what a condition leaves, or with `holds` false its opposite. False when nothing is left.
    fn assume(&mut self, cond: &Cond, holds: bool) -> bool {
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
            (Cond::Cmp(relation, a, b), false) => self.compare(opposite(*relation), a, b),
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
            Relation::Ne => x.value().is_none() || x.value() != y.value(),
        }
    }

    /// Values that an expression may have.
    fn domain(&self, e: &Expr) -> Domain {
        let pair = |a: &Expr, b: &Expr| (self.domain(a), self.domain(b));
        match e {
            Expr::Int(v) => Domain::only(i128::from(*v)),
            Expr::Alpha(k) => self.alpha.get(usize::from(*k)).copied().unwrap_or(Domain::ALL),
            Expr::Beta(k) => self.beta.get(usize::from(*k)).copied().unwrap_or(Domain::ALL),
            Expr::Register(k) => self.registers.get(usize::from(*k)).copied().unwrap_or(Domain::ALL),
            Expr::Variable(_) => Domain::ALL,
            Expr::Add(a, b) => plus(self.domain(a), self.domain(b)),
            Expr::Sub(a, b) => minus(self.domain(a), self.domain(b)),
            Expr::Mul(a, b) => {
                let (a, b) = pair(a, b);
                let product = corners(a, b, times);
                match (a.value(), b.value()) {
                    (Some(c), None) => product.with_residue(multiple(b, c)),
                    (None, Some(c)) => product.with_residue(multiple(a, c)),
                    _ => product,
                }
            }
            Expr::Shl(a, b) => {
                let (a, b) = pair(a, b);
                match b.value() {
                    Some(by @ 0..=62) => {
                        corners(a, Domain::only(1 << by), times).with_residue(multiple(a, 1 << by))
                    }
                    _ => Domain::ALL,
                }
            }
            Expr::Div(a, b) | Expr::CeilDiv(a, b) => {
                let (a, b) = pair(a, b);
                match b.value() {
                    Some(c) if c > 0 => {
                        let up = matches!(e, Expr::CeilDiv(..));
                        let divide = |v: i128| match v {
                            v if v.abs() >= OPEN => v,
                            v => (if up { v + c - 1 } else { v }).div_euclid(c),
                        };
                        Domain::interval(divide(a.low), divide(a.high))
                    }
                    _ => Domain::ALL,
                }
            }
            Expr::Shr(a, b) => {
                let (a, b) = pair(a, b);
                let shift = |v: i128, by: i128| if v.abs() >= OPEN { v } else { v >> by };
                match b.value() {
                    Some(by @ 0..=62) => Domain::interval(shift(a.low, by), shift(a.high, by)),
                    _ => Domain::ALL,
                }
            }
            Expr::Mod(a, b) => {
                let (a, b) = pair(a, b);
                match b.value() {
                    Some(c) if c > 0 => {
                        if a.low >= 0 && a.high < c {
                            return a;
                        }
                        if let Some(v) = a.value() {
                            return Domain::only(v.rem_euclid(c));
                        }
                        let common = gcd(a.modulus, c);
                        let rest = a.residue.rem_euclid(common);
                        if common == c {
                            return Domain::only(rest);
                        }
                        Domain::interval(0, c - 1).with_residue((common, rest))
                    }
                    _ => Domain::ALL,
                }
            }
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
        match e {
            Expr::Alpha(_) | Expr::Beta(_) | Expr::Register(_) => {
                if let Some(slot) = self.slot(e) {
                    *slot = left;
                }
                true
            }
            Expr::Add(a, b) => {
                let (x, y) = (self.domain(a), self.domain(b));
                self.restrict(a, minus(left, y)) && self.restrict(b, minus(left, x))
            }
            Expr::Sub(a, b) => {
                let (x, y) = (self.domain(a), self.domain(b));
                self.restrict(a, plus(left, y)) && self.restrict(b, minus(x, left))
            }
            Expr::Mul(a, b) => match (self.domain(a).value(), self.domain(b).value()) {
                (None, Some(c)) if c > 0 => self.restrict(a, quotient(left, c)),
                (Some(c), None) if c > 0 => self.restrict(b, quotient(left, c)),
                _ => true,
            },
            Expr::Mod(a, b) => match (self.domain(b).value(), left.value()) {
                (Some(c), Some(rest)) if c > 0 => {
                    self.restrict(a, Domain { modulus: c, residue: rest, ..Domain::ALL })
                }
                _ => true,
            },
            _ => true,
        }
    }
}

/// Sums of an interval's ends, of which an open one stays open.
fn span(low: (i128, i128), high: (i128, i128)) -> Domain {
    let lowest = if low.0 <= -OPEN || low.1 <= -OPEN { -OPEN } else { low.0 + low.1 };
    let highest = if high.0 >= OPEN || high.1 >= OPEN { OPEN } else { high.0 + high.1 };
    Domain::interval(lowest, highest)
}

/// `a + b`
fn plus(a: Domain, b: Domain) -> Domain {
    span((a.low, b.low), (a.high, b.high)).with_residue(a.residues(b, |x, y| x + y))
}

/// `a - b`
fn minus(a: Domain, b: Domain) -> Domain {
    span((a.low, -b.high), (a.high, -b.low)).with_residue(a.residues(b, |x, y| x - y))
}

/// Residue of `c` times a member.
fn multiple(of: Domain, c: i128) -> (i128, i128) {
    match of.modulus.checked_mul(c.abs()) {
        Some(modulus @ 1..OPEN) => (modulus, times(of.residue, c).rem_euclid(modulus)),
        _ => (1, 0),
    }
}

/// Numbers whose product with `c`, at least 1, lies in the domain.
fn quotient(of: Domain, c: i128) -> Domain {
    let low = if of.low <= -OPEN { -OPEN } else { (of.low + c - 1).div_euclid(c) };
    let high = if of.high >= OPEN { OPEN } else { of.high.div_euclid(c) };
    let divided = Domain { low, high, ..Domain::ALL };
    if of.modulus % c == 0 && of.residue % c == 0 {
        divided.with_residue(((of.modulus / c).max(1), (of.residue / c).rem_euclid((of.modulus / c).max(1))))
    } else {
        divided
    }
}

fn opposite(relation: Relation) -> Relation {
    match relation {
        Relation::Lt => Relation::Ge,
        Relation::Le => Relation::Gt,
        Relation::Gt => Relation::Le,
        Relation::Ge => Relation::Lt,
        Relation::Eq => Relation::Ne,
        Relation::Ne => Relation::Eq,
    }
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
