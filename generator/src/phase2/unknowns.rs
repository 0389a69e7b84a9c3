//! Integer unknowns that differ by known amounts, merged: a union-find with offsets, and what is known of the values
//! of every class. Knows nothing of graphs and slots.

use super::csp::{Term, Variable};

/// An unknown, or the constant 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unknown(usize);

/// Two demands on one unknown contradict each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Contradiction;

#[derive(Clone, Debug)]
struct Domain {
    min: i64,
    max: i64,
    step: i64,
    residue: i64,
}

/// `value(x) = value(parent[x]) + offset[x]`.
#[derive(Clone, Debug)]
pub(super) struct Unknowns {
    parent: Vec<usize>,
    offset: Vec<i64>,
    /// Of the representatives.
    domain: Vec<Domain>,
}

impl Unknowns {
    /// The constant 0, which every table holds.
    pub(super) const ZERO: Unknown = Unknown(0);

    pub(super) fn new() -> Unknowns {
        let zero = Domain { min: 0, max: 0, step: 1, residue: 0 };
        Unknowns { parent: vec![0], offset: vec![0], domain: vec![zero] }
    }

    /// A new unknown in `min..=max`.
    pub(super) fn add(&mut self, min: i64, max: i64) -> Unknown {
        let id = self.parent.len();
        self.parent.push(id);
        self.offset.push(0);
        self.domain.push(Domain { min, max, step: 1, residue: 0 });
        Unknown(id)
    }

    /// The representative of x and the difference of x to it.
    fn find(&self, Unknown(mut x): Unknown) -> (usize, i64) {
        let mut offset = 0i64;
        while self.parent[x] != x {
            offset = offset.saturating_add(self.offset[x]);
            x = self.parent[x];
        }
        (x, offset)
    }

    /// Demands `a == b + offset`.
    pub(super) fn equate(&mut self, a: Unknown, b: Unknown, offset: i64) -> Result<(), Contradiction> {
        let ((a, from_a), (b, from_b)) = (self.find(a), self.find(b));
        let difference =
            from_b.checked_add(offset).and_then(|o| o.checked_sub(from_a)).ok_or(Contradiction)?;
        if a == b {
            return if difference == 0 { Ok(()) } else { Err(Contradiction) };
        }
        // value(a) = value(b) + difference; the constant stays a representative.
        let (child, root, shift) = if a == 0 { (b, a, -difference) } else { (a, b, difference) };
        self.parent[child] = root;
        self.offset[child] = shift;
        let Domain { min, max, step, residue } = self.domain[child].clone();
        self.least(Unknown(root), min.saturating_sub(shift))?;
        self.most(Unknown(root), max.saturating_sub(shift))?;
        self.congruent(Unknown(root), step, residue.saturating_sub(shift))
    }

    /// Demands `x >= bound`.
    pub(super) fn least(&mut self, x: Unknown, bound: i64) -> Result<(), Contradiction> {
        let (root, offset) = self.find(x);
        let domain = &mut self.domain[root];
        domain.min = domain.min.max(bound.saturating_sub(offset));
        if domain.min <= domain.max { Ok(()) } else { Err(Contradiction) }
    }

    /// Demands `x <= bound`.
    pub(super) fn most(&mut self, x: Unknown, bound: i64) -> Result<(), Contradiction> {
        let (root, offset) = self.find(x);
        let domain = &mut self.domain[root];
        domain.max = domain.max.min(bound.saturating_sub(offset));
        if domain.min <= domain.max { Ok(()) } else { Err(Contradiction) }
    }

    /// Demands `x mod step == residue mod step`; `step` is positive.
    pub(super) fn congruent(&mut self, x: Unknown, step: i64, residue: i64) -> Result<(), Contradiction> {
        let (root, offset) = self.find(x);
        let residue = residue.saturating_sub(offset).rem_euclid(step);
        if root == Self::ZERO.0 {
            return if residue == 0 { Ok(()) } else { Err(Contradiction) };
        }
        let domain = &mut self.domain[root];
        // Chinese remainders: domain.residue + domain.step · t == residue (mod step).
        let (common, inverse) = gcd(i128::from(domain.step), i128::from(step));
        let (own, step) = (i128::from(domain.step), i128::from(step));
        let apart = i128::from(residue) - i128::from(domain.residue);
        if apart % common != 0 {
            return Err(Contradiction);
        }
        let t = (apart / common % (step / common) * (inverse % (step / common))).rem_euclid(step / common);
        let merged = i64::try_from(own / common * step).map_err(|_| Contradiction)?;
        let value = i128::from(domain.residue) + own * t;
        domain.residue = i64::try_from(value.rem_euclid(i128::from(merged))).map_err(|_| Contradiction)?;
        domain.step = merged;
        Ok(())
    }

    /// The classes as variables of a constraint problem (unless they are constant), and every unknown over them.
    pub(super) fn solve_classes(&self) -> (Vec<Variable>, impl Fn(Unknown) -> Term + use<'_>) {
        let mut number = vec![None; self.parent.len()];
        let mut vars = Vec::new();
        for (x, number) in number.iter_mut().enumerate().skip(1).filter(|(x, _)| self.parent[*x] == *x) {
            *number = Some(vars.len());
            let Domain { min, max, step, residue } = self.domain[x].clone();
            vars.push(Variable { min, max, step, residue });
        }
        (vars, move |x| {
            let (root, offset) = self.find(x);
            Term { var: number[root], offset }
        })
    }
}

/// The greatest common divisor g of two positive numbers, and x with `a · x == g (mod b)`.
fn gcd(a: i128, b: i128) -> (i128, i128) {
    let (mut r, mut x) = ((a, b), (1, 0));
    while r.1 != 0 {
        let q = r.0 / r.1;
        r = (r.1, r.0 - q * r.1);
        x = (x.1, x.0 - q * x.1);
    }
    (r.0, x.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_bounds_and_congruences_meet_in_the_class() {
        let mut unknowns = Unknowns::new();
        let (a, b, c) = (unknowns.add(0, 100), unknowns.add(0, 100), unknowns.add(0, 50));
        assert_eq!(unknowns.equate(a, b, 10), Ok(()));
        assert_eq!(unknowns.equate(b, c, 20), Ok(()));
        assert_eq!(unknowns.equate(a, c, 31), Err(Contradiction));
        assert_eq!(unknowns.congruent(a, 8, 0), Ok(()));
        assert_eq!(unknowns.congruent(c, 12, 2), Ok(()));
        let (vars, term) = unknowns.solve_classes();
        assert_eq!(vars.len(), 1);
        let (a, c) = (term(a), term(c));
        assert_eq!(a.offset - c.offset, 30);
        // c = a - 30 with a divisible by 8 and c mod 12 == 2: a = 8, 32, 56, 80, of which those >= 30 keep c >= 0.
        let admitted: Vec<i64> = (-200..200).filter(|&v| vars[0].admits(v)).map(|v| v + a.offset).collect();
        assert_eq!(admitted, [32, 56, 80]);
    }

    #[test]
    fn constants_stay_constants() {
        let mut unknowns = Unknowns::new();
        let a = unknowns.add(0, 100);
        assert_eq!(unknowns.equate(Unknowns::ZERO, a, -7), Ok(()));
        let (vars, term) = unknowns.solve_classes();
        assert!(vars.is_empty());
        assert_eq!(term(a), Term { var: None, offset: 7 });
        drop(term);
        assert_eq!(unknowns.congruent(a, 2, 0), Err(Contradiction));
        assert_eq!(unknowns.equate(a, Unknowns::ZERO, 8), Err(Contradiction));
    }
}
