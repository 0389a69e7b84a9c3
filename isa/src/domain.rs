//! Sets of integers that an expression may have as its value: an interval and a residue. Every set is at least as large
//! as what it stands for. Knows no expression.

/// Ends beyond which an interval is open: sums and products of a few such numbers fit 128 bits.
pub(crate) const OPEN: i128 = 1 << 100;

/// Largest modulus that is kept: products of two of them fit 128 bits.
const MODULUS: i128 = 1 << 40;

/// The integers of an interval that leave `residue` when divided by `modulus` (at least 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Domain {
    pub(crate) low: i128,
    pub(crate) high: i128,
    pub(crate) modulus: i128,
    pub(crate) residue: i128,
}

impl Domain {
    pub(crate) const ALL: Domain = Domain { low: -OPEN, high: OPEN, modulus: 1, residue: 0 };
    const NONE: Domain = Domain { low: 1, high: 0, modulus: 1, residue: 0 };

    pub(crate) fn interval(low: i128, high: i128) -> Domain {
        Domain { low: low.clamp(-OPEN, OPEN), high: high.clamp(-OPEN, OPEN), modulus: 1, residue: 0 }
    }

    /// One number; a residue of its own would only grow.
    pub(crate) fn only(value: i128) -> Domain {
        Domain::interval(value, value)
    }

    pub(crate) fn value(self) -> Option<i128> {
        (self.low == self.high && self.low.abs() < OPEN).then_some(self.low)
    }

    pub(crate) fn is_empty(self) -> bool {
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

    pub(crate) fn meet(self, other: Domain) -> Domain {
        let (low, high) = (self.low.max(other.low), self.high.min(other.high));
        // Most often; divisions of 128 bits are slow.
        if self.modulus == 1 && other.modulus == 1 {
            return Domain { low, high, ..Domain::ALL };
        }
        let common = gcd(self.modulus, other.modulus);
        if (self.residue - other.residue) % common != 0 {
            return Domain::NONE;
        }
        let both = self.modulus / common * other.modulus;
        let (modulus, residue) = if both <= MODULUS {
            // The one residue that leaves both: the first one, and the second one's multiples counted by an inverse.
            let (step, over) = (self.modulus / common, other.modulus / common);
            let times = (other.residue - self.residue) / common * inverse(step, over);
            (both, self.residue + self.modulus * times.rem_euclid(over))
        } else {
            let finer = if self.modulus >= other.modulus { self } else { other };
            (finer.modulus, finer.residue)
        };
        Domain { low, high, modulus, residue: residue.rem_euclid(modulus) }.tight()
    }

    /// The residue that both summands give; a number fits every modulus.
    fn residues(self, other: Domain, join: impl Fn(i128, i128) -> i128) -> (i128, i128) {
        let modulus = match (self.value(), other.value()) {
            (Some(_), Some(_)) => return (1, 0),
            (Some(_), None) => other.modulus,
            (None, Some(_)) => self.modulus,
            (None, None) => gcd(self.modulus, other.modulus),
        };
        if modulus == 1 {
            return (1, 0);
        }
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

/// The number below `modulus` whose product with `of`, coprime to it, leaves 1.
fn inverse(of: i128, modulus: i128) -> i128 {
    let (mut a, mut b, mut x, mut y) = (of.rem_euclid(modulus), modulus, 1, 0);
    while b != 0 {
        let whole = a / b;
        (a, b) = (b, a % b);
        (x, y) = (y, x - whole * y);
    }
    x.rem_euclid(modulus)
}

/// Least and greatest of a function at the corners, where it is monotonous in each argument.
fn corners(a: Domain, b: Domain, f: impl Fn(i128, i128) -> i128) -> Domain {
    let values = [f(a.low, b.low), f(a.low, b.high), f(a.high, b.low), f(a.high, b.high)];
    let low = values.iter().copied().min().unwrap_or(-OPEN);
    Domain::interval(low, values.iter().copied().max().unwrap_or(OPEN))
}

/// A product of which an open end stays open.
fn product(a: i128, b: i128) -> i128 {
    a.saturating_mul(b).clamp(-OPEN, OPEN)
}

/// Sums of an interval's ends, of which an open one stays open.
fn span(low: (i128, i128), high: (i128, i128)) -> Domain {
    let lowest = if low.0 <= -OPEN || low.1 <= -OPEN { -OPEN } else { low.0 + low.1 };
    let highest = if high.0 >= OPEN || high.1 >= OPEN { OPEN } else { high.0 + high.1 };
    Domain::interval(lowest, highest)
}

/// `a + b`
pub(crate) fn plus(a: Domain, b: Domain) -> Domain {
    span((a.low, b.low), (a.high, b.high)).with_residue(a.residues(b, |x, y| x + y))
}

/// `a - b`
pub(crate) fn minus(a: Domain, b: Domain) -> Domain {
    span((a.low, -b.high), (a.high, -b.low)).with_residue(a.residues(b, |x, y| x - y))
}

/// `a * b`
pub(crate) fn times(a: Domain, b: Domain) -> Domain {
    let all = corners(a, b, product);
    match (a.value(), b.value()) {
        (Some(c), None) => all.with_residue(multiple(b, c)),
        (None, Some(c)) => all.with_residue(multiple(a, c)),
        _ => all,
    }
}

/// Residue of `c` times a member.
fn multiple(of: Domain, c: i128) -> (i128, i128) {
    match of.modulus.checked_mul(c.abs()) {
        Some(modulus @ 1..=MODULUS) => (modulus, product(of.residue, c).rem_euclid(modulus)),
        _ => (1, 0),
    }
}

/// Quotients by `c`, at least 1, rounded down.
pub(crate) fn floored(a: Domain, c: i128) -> Domain {
    let divide = |v: i128| if v.abs() >= OPEN { v } else { v.div_euclid(c) };
    let all = Domain::interval(divide(a.low), divide(a.high));
    if a.modulus % c == 0 && a.modulus > c {
        all.with_residue((a.modulus / c, a.residue.div_euclid(c)))
    } else {
        all
    }
}

/// Remainders of the division by `c`, at least 1.
pub(crate) fn remainders(a: Domain, c: i128) -> Domain {
    if a.low > -OPEN && a.high < OPEN && a.low.div_euclid(c) == a.high.div_euclid(c) {
        return minus(a, Domain::only(a.low.div_euclid(c) * c));
    }
    let common = gcd(a.modulus, c);
    let rest = a.residue.rem_euclid(common);
    if common == c {
        return Domain::only(rest);
    }
    Domain::interval(0, c - 1).with_residue((common, rest))
}

/// Numbers whose product with `c`, at least 1, lies in the domain.
fn quotient(of: Domain, c: i128) -> Domain {
    let low = if of.low <= -OPEN { -OPEN } else { (of.low + c - 1).div_euclid(c) };
    let high = if of.high >= OPEN { OPEN } else { of.high.div_euclid(c) };
    let divided = Domain { low, high, ..Domain::ALL };
    let modulus = of.modulus / c;
    if of.modulus % c == 0 && of.residue % c == 0 {
        divided.with_residue((modulus.max(1), (of.residue / c).rem_euclid(modulus.max(1))))
    } else {
        divided
    }
}

/// Numbers whose product with a number of `by` lies in the domain.
pub(crate) fn factors(of: Domain, by: Domain) -> Domain {
    match by.value() {
        Some(c) if c > 0 => quotient(of, c),
        Some(c) if c < 0 => {
            let mirrored = minus(Domain::only(0), of);
            quotient(mirrored, -c)
        }
        // Of natural numbers neither factor is greater than the product.
        None if by.low > 0 && of.low >= 0 && of.high < OPEN => {
            let least = if by.high >= OPEN { 0 } else { (of.low + by.high - 1).div_euclid(by.high) };
            Domain::interval(least, of.high.div_euclid(by.low))
        }
        _ => Domain::ALL,
    }
}

/// Numbers whose quotient by `c`, at least 1, rounded down, lies in the domain.
pub(crate) fn dividends(of: Domain, c: i128) -> Domain {
    let low = if of.low <= -OPEN { -OPEN } else { product(of.low, c) };
    let high = if of.high >= OPEN { OPEN } else { product(of.high, c) + c - 1 };
    Domain::interval(low, high)
}

/// Numbers that leave a remainder of the domain when divided by `c`, at least 1, of those in `before`.
pub(crate) fn leaving(of: Domain, c: i128, before: Domain) -> Domain {
    if let Some(rest) = of.value() {
        return Domain { modulus: c, residue: rest.rem_euclid(c), ..Domain::ALL };
    }
    if before.low > -OPEN && before.high < OPEN && before.low.div_euclid(c) == before.high.div_euclid(c) {
        return plus(of, Domain::only(before.low.div_euclid(c) * c));
    }
    let common = gcd(of.modulus, c);
    Domain { modulus: common, residue: of.residue.rem_euclid(common), ..Domain::ALL }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(d: Domain) -> Vec<i128> {
        (d.low..=d.high).filter(|v| v.rem_euclid(d.modulus) == d.residue).collect()
    }

    /// Every function contains what it computes of members, and meeting is exact.
    #[test]
    fn domains_contain_what_they_stand_for() {
        let mut all = Vec::new();
        for modulus in [1, 2, 3, 4, 6] {
            for low in [-7, 0, 5] {
                for len in [0, 4, 13] {
                    let residue = (low + len) % modulus;
                    let d = Domain { low, high: low + len, modulus, residue: residue.rem_euclid(modulus) };
                    all.push(d.tight());
                }
            }
        }
        for &a in &all {
            for c in [1, 2, 3, 8] {
                let (down, rest) = (floored(a, c), remainders(a, c));
                let contains = |d: Domain, v: i128| members(d).contains(&v);
                for v in members(a) {
                    assert!(
                        contains(down, v.div_euclid(c)) && contains(rest, v.rem_euclid(c)),
                        "{a:?} {c} {v}"
                    );
                }
            }
            for &b in &all {
                let (sum, difference, both) = (plus(a, b), minus(a, b), times(a, b));
                let contains = |d: Domain, v: i128| !d.meet(Domain::only(v)).is_empty();
                for x in members(a) {
                    for y in members(b) {
                        assert!(contains(sum, x + y) && contains(difference, x - y) && contains(both, x * y));
                        assert!(y <= 0 || contains(factors(both, b), x), "{a:?} {b:?}");
                    }
                }
                let common: Vec<i128> = members(a).into_iter().filter(|v| members(b).contains(v)).collect();
                assert_eq!(members(a.meet(b)), common, "{a:?} {b:?}");
            }
        }
    }
}
