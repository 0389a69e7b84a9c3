//! Addresses as the stitched text gives them: a segment of main memory, or none for a position on chip, and an affine
//! function of loop variables. Evaluates the description's expressions over such addresses. Makes no code.

use act_isa::{Affine, Cond, Env, Expr, LoopId, expr::Relation};

/// Position of a segment: operands, then results, then scratch, then constants.
pub(crate) type SegmentIndex = usize;

/// The value of an addressing attribute.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Address {
    /// For an address in main memory; the offset counts from the segment's start.
    pub(crate) segment: Option<SegmentIndex>,
    pub(crate) offset: Affine,
}

impl Address {
    pub(crate) fn constant(value: i64) -> Address {
        Address { segment: None, offset: Affine::constant(value) }
    }

    /// The sum; `None` when both are in main memory, or on overflow.
    pub(crate) fn plus(&self, other: &Address) -> Option<Address> {
        if self.segment.is_some() && other.segment.is_some() {
            return None;
        }
        let segment = self.segment.or(other.segment);
        Some(Address { segment, offset: self.offset.checked_add(&other.offset)? })
    }

    /// The product with a number; `None` for an address in main memory, or on overflow.
    pub(crate) fn times(&self, factor: i64) -> Option<Address> {
        match self.segment {
            Some(_) => None,
            None => Some(Address { segment: None, offset: scaled(&self.offset, factor)? }),
        }
    }

    /// The number that it is, if it depends on nothing.
    pub(crate) fn as_constant(&self) -> Option<i64> {
        (self.segment.is_none() && self.offset.ivs.is_empty()).then_some(self.offset.c0)
    }
}

pub(crate) fn scaled(affine: &Affine, factor: i64) -> Option<Affine> {
    let mut product = Affine::constant(affine.c0.checked_mul(factor)?);
    for &(iv, k) in &affine.ivs {
        product.add_term(iv, k.checked_mul(factor)?)?;
    }
    Some(product)
}

/// `a - b`.
pub(crate) fn difference(a: &Affine, b: &Affine) -> Option<Affine> {
    a.checked_add(&scaled(b, -1)?)
}

/// Smallest and largest value when every loop variable runs over `0..trips[variable]`. Exact: the variables are
/// independent of each other.
pub(crate) fn range(affine: &Affine, trips: &[u64]) -> (i128, i128) {
    let c0 = i128::from(affine.c0);
    affine.ivs.iter().fold((c0, c0), |(low, high), &(iv, k)| {
        let far = i128::from(k) * i128::from(trip(trips, iv).saturating_sub(1));
        (low + far.min(0), high + far.max(0))
    })
}

pub(crate) fn trip(trips: &[u64], iv: LoopId) -> u64 {
    trips.get(iv.0 as usize).copied().unwrap_or(0)
}

/// The value for given loop variables. `None` on overflow.
pub(crate) fn at(affine: &Affine, variables: &[i64]) -> Option<i64> {
    affine.eval(|iv| variables.get(iv.0 as usize).copied())
}

/// Whether the value is a multiple of `divisor > 0` whatever the loop variables are.
pub(crate) fn is_multiple(affine: &Affine, divisor: i64) -> bool {
    affine.c0 % divisor == 0 && affine.ivs.iter().all(|&(_, k)| k % divisor == 0)
}

/// Attributes of one instruction in the text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attributes<'a> {
    pub(crate) alpha: &'a [Option<i64>],
    pub(crate) registers: &'a [i64],
    pub(crate) beta: &'a [Address],
}

impl Attributes<'_> {
    fn fixed(&self) -> Env<'_> {
        Env { alpha: self.alpha, beta: &[], registers: self.registers }
    }

    /// The expression as an address, where it is affine.
    pub(crate) fn address(&self, e: &Expr) -> Option<Address> {
        if !e.mentions_beta() {
            return Some(Address::constant(e.eval(self.fixed()).ok()?));
        }
        let both = |a: &Expr, b: &Expr| Some((self.address(a)?, self.address(b)?));
        match e {
            Expr::Beta(k) => self.beta.get(usize::from(*k)).cloned(),
            Expr::Add(a, b) => both(a, b).and_then(|(a, b)| a.plus(&b)),
            Expr::Sub(a, b) => both(a, b).and_then(|(a, b)| a.plus(&b.times(-1)?)),
            Expr::Mul(a, b) => {
                let (a, b) = both(a, b)?;
                match (a.as_constant(), b.as_constant()) {
                    (_, Some(factor)) => a.times(factor),
                    (Some(factor), _) => b.times(factor),
                    _ => None,
                }
            }
            Expr::Shl(a, b) => {
                let (a, b) = both(a, b)?;
                a.times(1i64.checked_shl(u32::try_from(b.as_constant()?).ok()?).filter(|&f| f > 0)?)
            }
            Expr::Div(a, b) | Expr::Mod(a, b) | Expr::CeilDiv(a, b) => {
                let (a, b) = both(a, b)?;
                let divisor = b.as_constant().filter(|&d| d > 0)?;
                let regular = a.offset.ivs.iter().all(|&(_, k)| k % divisor == 0);
                if a.segment.is_some() || !regular {
                    return None;
                }
                if let Expr::Mod(..) = e {
                    return Some(Address::constant(a.offset.c0.rem_euclid(divisor)));
                }
                let up = i64::from(matches!(e, Expr::CeilDiv(..)) && a.offset.c0.rem_euclid(divisor) != 0);
                let mut quotient = Affine::constant(a.offset.c0.div_euclid(divisor) + up);
                for &(iv, k) in &a.offset.ivs {
                    quotient.add_term(iv, k / divisor)?;
                }
                Some(Address { segment: None, offset: quotient })
            }
            _ => None,
        }
    }

    /// Whether the condition is seen to hold in every iteration. An address counts as its offset.
    pub(crate) fn proves(&self, condition: &Cond, trips: &[u64]) -> bool {
        match condition {
            Cond::Cmp(relation, a, b) => {
                let (Some(a), Some(b)) = (self.address(a), self.address(b)) else { return false };
                let Some(difference) = difference(&a.offset, &b.offset) else { return false };
                let (low, high) = range(&difference, trips);
                match relation {
                    Relation::Lt => high < 0,
                    Relation::Le => high <= 0,
                    Relation::Gt => low > 0,
                    Relation::Ge => low >= 0,
                    Relation::Eq => low == 0 && high == 0,
                    Relation::Ne => low > 0 || high < 0,
                }
            }
            Cond::And(a, b) => self.proves(a, trips) && self.proves(b, trips),
            Cond::Or(a, b) => self.proves(a, trips) || self.proves(b, trips),
            Cond::Not(_) | Cond::In(..) => false,
        }
    }

    /// Values of the addressing attributes for given loop variables; one that overflows has none.
    pub(crate) fn beta_at(&self, variables: &[i64]) -> Vec<Option<i64>> {
        self.beta.iter().map(|b| at(&b.offset, variables)).collect()
    }

    /// The environment with these values.
    pub(crate) fn env<'b>(&'b self, beta: &'b [Option<i64>]) -> Env<'b> {
        Env { alpha: self.alpha, beta, registers: self.registers }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn affine(c0: i64, ivs: &[(u32, i64)]) -> Affine {
        Affine { c0, ivs: ivs.iter().map(|&(iv, k)| (LoopId(iv), k)).collect() }
    }

    #[test]
    fn ranges_and_multiples() {
        let trips = [4, 10];
        assert_eq!(range(&affine(3, &[(0, 5), (1, -1)]), &trips), (3 - 9, 3 + 15));
        assert!(is_multiple(&affine(64, &[(0, 32)]), 32));
        assert!(!is_multiple(&affine(64, &[(0, 33)]), 32));
    }

    #[test]
    fn expressions_stay_affine_where_they_can() {
        let beta = [Address { segment: None, offset: affine(7, &[(0, 16)]) }];
        let attributes = Attributes { alpha: &[], registers: &[], beta: &beta };
        let value = |e: Expr| attributes.address(&e).map(|a| a.offset);
        let b = || Box::new(Expr::Beta(0));
        let int = |v| Box::new(Expr::Int(v));
        assert_eq!(value(Expr::Div(b(), int(8))), Some(affine(0, &[(0, 2)])));
        assert_eq!(value(Expr::CeilDiv(b(), int(8))), Some(affine(1, &[(0, 2)])));
        assert_eq!(value(Expr::Mod(b(), int(8))), Some(affine(7, &[])));
        assert_eq!(value(Expr::Div(b(), int(32))), None);
        assert_eq!(value(Expr::Mul(b(), b())), None);
        let less = |limit| Cond::Cmp(Relation::Lt, Expr::Beta(0), Expr::Int(limit));
        assert!(attributes.proves(&less(7 + 48 + 1), &[4]));
        assert!(!attributes.proves(&less(7 + 48), &[4]));
    }
}
