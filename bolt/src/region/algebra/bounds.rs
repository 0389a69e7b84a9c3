//! Bounds and extrema: maxima and minima with known values kept apart from the rest, and moved outwards through monotone
//! functions, so that a relu before or behind a scale is one term. Knows no conversion.

use super::{Algebra, Bounded, Extremum, Level, Number, kind, limits, number, tag};
use crate::region::laws::Law;
use crate::region::term::Term;
use act_hlo::{Binary, ElemType, Op};

impl Algebra {
    /// The bounds of a term of a type.
    pub(super) fn bounded(&self, elem: ElemType, x: Term) -> Option<Bounded> {
        self.bounded.get(&x).copied().filter(|bounded| bounded.elem == elem)
    }

    /// `x + c` where x is bounded: the bounds move along.
    pub(super) fn pulled(
        &mut self,
        elem: ElemType,
        x: Term,
        c: Term,
        bits: Option<u64>,
        allowed: impl Fn(f64) -> bool,
    ) -> Option<Term> {
        let Number::Float(value) = number(elem, bits?) else { return None };
        let bounded = self.bounded(elem, x)?;
        if !allowed(value) {
            return None;
        }
        Some(self.monotone(bounded, elem, false, |algebra, x| algebra.wide_binary(Binary::Add, elem, x, c)))
    }

    /// `x · c` where x is bounded: the bounds move along.
    pub(super) fn scaled(&mut self, elem: ElemType, x: Term, c: Term, value: f64) -> Option<Term> {
        let bounded = self.bounded(elem, x)?;
        // A denormal factor counts as 0, and 0 times infinity is no number.
        let normal = if elem == ElemType::F64 { value.is_normal() } else { (value as f32).is_normal() };
        if !normal {
            return None;
        }
        Some(self.monotone(bounded, elem, value < 0.0, |algebra, x| {
            algebra.wide_binary(Binary::Multiply, elem, x, c)
        }))
    }

    /// f(bounded) as bounds of f(base), for a monotone f.
    pub(super) fn monotone(
        &mut self,
        x: Bounded,
        result: ElemType,
        falling: bool,
        mut f: impl FnMut(&mut Algebra, Term) -> Term,
    ) -> Term {
        self.laws.insert(Law::Monotone);
        let base = f(self, x.base);
        let mut bound = |algebra: &mut Algebra, at: Option<u64>| {
            at.and_then(|at| f(algebra, Term::constant(at)).as_constant())
        };
        let (low, high) = (bound(self, x.low), bound(self, x.high));
        let (low, high) = if falling { (high, low) } else { (low, high) };
        self.bound(result, base, low, high)
    }

    /// `min(max(base, low), high)` with `low` at most `high`, in normal form.
    pub(super) fn bound(&mut self, elem: ElemType, base: Term, low: Option<u64>, high: Option<u64>) -> Term {
        // Bounds within bounds.
        if let Some(inner) = self.bounded(elem, base) {
            self.laws.insert(Law::Bounds);
            let mut x = inner;
            if let Some(low) = low {
                x.low = Some(x.low.map_or(low, |l| self.larger(elem, l, low)));
                x.high = x.high.map(|h| self.larger(elem, h, low));
            }
            if let Some(high) = high {
                x.high = Some(x.high.map_or(high, |h| self.smaller(elem, h, high)));
                x.low = x.low.map(|l| self.smaller(elem, l, high));
            }
            return self.bound(elem, x.base, x.low, x.high);
        }
        let drops = |algebra: &Algebra, bits: u64, lower: bool| match number(elem, bits) {
            Number::Integer(value) => value == if lower { limits(elem).0 } else { limits(elem).1 },
            Number::Float(value) => {
                algebra.level >= Level::Reassociated
                    && value == if lower { f64::NEG_INFINITY } else { f64::INFINITY }
            }
        };
        let low = low.filter(|&bits| !drops(self, bits, true));
        let high = high.filter(|&bits| !drops(self, bits, false));
        // Bounds that every integer of its type meets.
        let (mut low, mut high) = (low, high);
        if let Some(&(original, _)) = self.whole.get(&base) {
            let (least, most) = limits(original);
            let idle = |bits: u64, lower: bool| match number(elem, bits) {
                Number::Float(value) if lower => value <= least as f64,
                Number::Float(value) => value >= most as f64,
                Number::Integer(_) => false,
            };
            let kept = (low.filter(|&bits| !idle(bits, true)), high.filter(|&bits| !idle(bits, false)));
            if kept != (low, high) {
                self.laws.insert(Law::WholeFloat);
                (low, high) = kept;
            }
        }
        if low.is_none() && high.is_none() {
            return base;
        }
        if base.as_constant().is_some() {
            let mut value = base;
            for (bound, op) in [(low, Binary::Maximum), (high, Binary::Minimum)] {
                let Some(bound) = bound else { continue };
                let key = tag(kind::BINARY, op as u64, elem, elem);
                let operands = [(elem, value), (elem, Term::constant(bound))];
                value = self.fold(key, &Op::Binary(op), &operands, elem).unwrap_or(value);
            }
            return value;
        }
        let none = self.digests.mix(kind::NONE << 48, &[]);
        let side = |bound: Option<u64>| bound.map_or(none, Term::constant);
        let key = tag(kind::BOUNDED, 0, elem, elem);
        let term = self.digests.mix(key, &[base, side(low), side(high)]);
        self.bounded.insert(term, Bounded { elem, base, low, high });
        self.declare(elem, term);
        if let Some(&narrow) = self.narrow.get(&base)
            && [low, high]
                .into_iter()
                .flatten()
                .all(|bits| self.is_narrow(elem, narrow, Term::constant(bits)))
        {
            self.narrow.insert(term, narrow);
        }
        term
    }

    pub(super) fn larger(&mut self, elem: ElemType, a: u64, b: u64) -> u64 {
        self.known_extremum(Binary::Maximum, elem, a, b)
    }

    pub(super) fn smaller(&mut self, elem: ElemType, a: u64, b: u64) -> u64 {
        self.known_extremum(Binary::Minimum, elem, a, b)
    }

    pub(super) fn known_extremum(&mut self, op: Binary, elem: ElemType, a: u64, b: u64) -> u64 {
        let key = tag(kind::BINARY, op as u64, elem, elem);
        let operands = [(elem, Term::constant(a)), (elem, Term::constant(b))];
        self.fold(key, &Op::Binary(op), &operands, elem).and_then(Term::as_constant).unwrap_or(a)
    }

    /// The larger or smaller of two.
    pub(super) fn extremum(&mut self, max: bool, elem: ElemType, a: Term, b: Term) -> Term {
        // Even the larger of equals is flushed where every operation counts.
        if a == b && (elem.is_int() || self.level >= Level::Reassociated) {
            return a;
        }
        let op = if max { Binary::Maximum } else { Binary::Minimum };
        for (x, c) in [(a, b), (b, a)] {
            if let Some(bits) = c.as_constant() {
                if let Number::Float(value) = number(elem, bits)
                    && value.is_nan()
                {
                    return self.mix2(tag(kind::BINARY, op as u64, elem, elem), x, c);
                }
                return if max {
                    self.bound(elem, x, Some(bits), None)
                } else {
                    self.bound(elem, x, None, Some(bits))
                };
            }
        }
        // A bound on the outer side of one of them bounds the whole.
        for (x, y) in [(a, b), (b, a)] {
            if let Some(Bounded { base, low, high, .. }) = self.bounded(elem, x)
                && (if max { high.is_none() } else { low.is_none() })
            {
                self.laws.insert(Law::Bounds);
                let inner = self.extremum(max, elem, base, y);
                return self.bound(elem, inner, low, high);
            }
        }
        self.laws.insert(Law::Extremum);
        let (elem, [a, b]) = self.narrowed(elem, [a, b]);
        let members = |algebra: &Algebra, x: Term| match algebra.extrema.get(&x) {
            Some(inner) if inner.max == max && inner.elem == elem => inner.members,
            _ => algebra.digests.mix(tag(kind::MEMBER, u64::from(max), elem, elem), &[x]),
        };
        let members = self.digests.plus(members(self, a), members(self, b));
        let term = self.digests.mix(tag(kind::EXTREMUM, u64::from(max), elem, elem), &[members]);
        self.extrema.insert(term, Extremum { max, elem, members });
        self.declare(elem, term);
        if let (Some(&x), Some(&y)) = (self.narrow.get(&a), self.narrow.get(&b))
            && x == y
        {
            self.narrow.insert(term, x);
        }
        term
    }
}
