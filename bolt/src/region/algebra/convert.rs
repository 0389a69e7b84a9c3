//! Changes of type: widening, rounding, conversion by value and by bits.

use super::{Algebra, Bounded, Level, MEMO, Number, Side, kind, limits, number, tag, wide};
use crate::region::laws::Law;
use crate::region::term::{Digests, Term};
use act_hlo::{ElemType, Op};

impl Algebra {
    /// A value of a float type in the type that arithmetic is done in.
    pub(in super::super) fn widen(&mut self, elem: ElemType, x: Term) -> Term {
        if elem == wide(elem) {
            return x;
        }
        if x.as_constant().is_some() {
            let key = tag(kind::CONVERT, 0, elem, ElemType::F32);
            return self.fold(key, &Op::Convert, &[(elem, x)], ElemType::F32).unwrap_or(x);
        }
        let x = self.atom(x);
        self.narrow.insert(x, elem);
        x
    }

    pub(in super::super) fn is_narrow(&mut self, from: ElemType, to: ElemType, x: Term) -> bool {
        if x.as_constant().is_none() {
            return self.narrow.get(&x) == Some(&to);
        }
        let key = |a, b| tag(kind::CONVERT, 0, a, b);
        let there = self.fold(key(from, to), &Op::Convert, &[(from, x)], to);
        let back = there.and_then(|there| self.fold(key(to, from), &Op::Convert, &[(to, there)], from));
        back == Some(x)
    }

    /// The narrow value of an arithmetic result.
    pub(in super::super) fn round(&mut self, elem: ElemType, x: Term) -> Term {
        let from = wide(elem);
        if elem == from {
            return x;
        }
        self.floats = true;
        if x.as_constant().is_some() {
            let key = tag(kind::CONVERT, 0, from, elem);
            return self.fold(key, &Op::Convert, &[(from, x)], elem).unwrap_or(x);
        }
        if self.narrow.get(&x) == Some(&elem) {
            return x;
        }
        // A maximum flushes denormals, and some of them round to the smallest normal number: where every bit counts, the
        // rounding stays outside.
        if let Some(bounded) = self.bounded(from, x)
            && self.level >= Level::Reassociated
        {
            return self.monotone(bounded, from, false, |algebra, x| {
                let rounded = algebra.round(elem, x);
                algebra.widen(elem, rounded)
            });
        }
        match (self.level, self.side) {
            (Level::Real, _) => {
                self.laws.insert(Law::RealAlgebra);
                return x;
            }
            // The program may round less often than the reference, never where that does not.
            (Level::Relaxed, Side::Reference) => {
                self.rounded.insert((elem, x));
                return x;
            }
            (Level::Relaxed, Side::Program) if self.rounded.contains(&(elem, x)) => {
                self.laws.insert(Law::ExcessPrecision);
                return x;
            }
            _ => {}
        }
        let term = self.digests.mix(tag(kind::ROUNDED, 0, from, elem), &[x]);
        self.narrow.insert(term, elem);
        term
    }

    /// A conversion by value.
    pub(in super::super) fn convert(&mut self, from: ElemType, to: ElemType, x: Term) -> Term {
        if from == to {
            return x;
        }
        let key = tag(kind::CONVERT, 0, from, to);
        if x.as_constant().is_some()
            && let Some(known) = self.fold(key, &Op::Convert, &[(from, x)], to)
        {
            return known;
        }
        if from.is_float() && to.is_float() {
            return self.convert_float(from, to, x);
        }
        if from.is_int() && to.is_int() {
            return self.convert_integer(key, from, to, x);
        }
        if from.is_int() && to.is_float() {
            return self.float_of_integer(from, to, x);
        }
        if from.is_float() && to.is_int() {
            let x = self.widen(from, x);
            if let Some(&(original, inner)) = self.whole.get(&x) {
                let ((low, high), (to_low, to_high)) = (limits(original), limits(to));
                if original.bits() <= SHORT && to_low <= low && high <= to_high {
                    self.laws.insert(Law::WholeFloat);
                    return self.convert(original, to, inner);
                }
            }
            if let Some(known) = self.bounded_whole(wide(from), to, x) {
                return known;
            }
            let (from, key) = (wide(from), tag(kind::CONVERT, 0, wide(from), to));
            // A NaN becomes 0, which has to lie between the bounds.
            let zero_inside = |at: Option<u64>, below: bool| {
                at.is_none_or(|bits| match number(from, bits) {
                    Number::Float(value) => {
                        if below {
                            value <= 0.0
                        } else {
                            value >= 0.0
                        }
                    }
                    Number::Integer(_) => false,
                })
            };
            if let Some(bounded) = self.bounded(from, x)
                && zero_inside(bounded.low, true)
                && zero_inside(bounded.high, false)
            {
                return self.monotone(bounded, to, false, |algebra, x| algebra.convert(from, to, x));
            }
            if to.bits() < 32 {
                self.laws.insert(Law::FloatSaturation);
                let whole = self.convert(from, ElemType::S32, x);
                return self.saturate(ElemType::S32, to, whole);
            }
            let term = self.digests.mix(key, &[x]);
            return self.declare(to, term);
        }
        self.digests.mix(key, &[x])
    }

    pub(in super::super) fn convert_float(&mut self, from: ElemType, to: ElemType, x: Term) -> Term {
        let x = self.widen(from, x);
        if wide(from) == wide(to) {
            return self.round(to, x);
        }
        let key = tag(kind::CONVERT, 0, wide(from), to);
        self.digests.mix(key, &[x])
    }

    /// A number between the limits of a type that not all of its own type's lie between.
    fn saturate(&mut self, from: ElemType, to: ElemType, x: Term) -> Term {
        let term = self.digests.mix(tag(kind::SATURATED, 0, from, to), &[x]);
        self.saturated.insert(term, (from, x));
        self.declare(to, term)
    }

    /// The narrowest type that a term is known to be a number of, among those whose numbers `from` has.
    fn number_type(&self, from: ElemType, x: Term) -> Option<ElemType> {
        self.numbers.get(&x).copied().filter(|&elem| within(elem, from))
    }

    /// Integers as numbers of the narrowest type that all of them are known to be numbers of: what compares or chooses among
    /// them does the same there.
    pub(super) fn narrowed<const N: usize>(
        &mut self,
        elem: ElemType,
        values: [Term; N],
    ) -> (ElemType, [Term; N]) {
        if !elem.is_int() {
            return (elem, values);
        }
        let unknown = values.iter().filter(|x| x.as_constant().is_none());
        let types = unknown.map(|&x| self.number_type(elem, x).unwrap_or(elem));
        let join = types.reduce(|a, b| match (within(a, b), within(b, a)) {
            (true, _) => b,
            (_, true) => a,
            _ => elem,
        });
        let Some(join) = join else { return (elem, values) };
        let ((low, high), mask) = (limits(join), u64::MAX >> (64 - join.bits().max(8)));
        let fits = |x: &Term| match x.as_constant().map(|bits| number(elem, bits)) {
            Some(Number::Integer(value)) => (low..=high).contains(&value),
            Some(Number::Float(_)) => false,
            None => true,
        };
        if !values.iter().all(fits) {
            return (elem, values);
        }
        if join != elem {
            self.laws.insert(Law::Widening);
            self.laws.insert(Law::Monotone);
        }
        (join, values.map(|x| x.as_constant().map_or(x, |bits| Term::constant(bits & mask))))
    }

    fn float_of_integer(&mut self, from: ElemType, to: ElemType, x: Term) -> Term {
        if let Some(&(original, inner)) = self.widened.get(&x)
            && within(original, from)
        {
            self.laws.insert(Law::Widening);
            return self.convert(original, to, inner);
        }
        if to == wide(to)
            && let Some(bounded) = self.bounded(from, x)
        {
            return self.monotone(bounded, to, false, |algebra, x| algebra.convert(from, to, x));
        }
        let number = self.number_type(from, x).unwrap_or(from);
        if number != from {
            self.laws.insert(Law::Widening);
        }
        let term = self.digests.mix(tag(kind::CONVERT, 0, number, to), &[x]);
        if to == wide(to) {
            self.whole.insert(term, (number, x));
        }
        term
    }

    /// Whether a float is an integer that became one: a product with 1 and rounding to integers change nothing.
    pub(super) fn is_whole(&mut self, x: Term) -> bool {
        let Some(&(original, _)) = self.whole.get(&x) else { return false };
        self.laws.insert(if original.bits() <= SHORT { Law::WholeFloat } else { Law::BoundedFloat });
        true
    }

    /// A float that is a bounded integer, as a short integer: the bounds are those of the integer, and the type's.
    fn bounded_whole(&mut self, from: ElemType, to: ElemType, x: Term) -> Option<Term> {
        if to.bits() > SHORT {
            return None;
        }
        let (base, low, high) = self
            .bounded(from, x)
            .map_or((x, None, None), |bounded| (bounded.base, bounded.low, bounded.high));
        let &(original, inner) = self.whole.get(&base)?;
        let ((least, most), (to_least, to_most)) = (limits(original), limits(to));
        // What a bound comes to among the integers of both types.
        let within_both = |at: Option<u64>, otherwise: i128| match at.map(|bits| number(from, bits)) {
            None => Some(otherwise),
            Some(Number::Float(value)) if value == value.trunc() => {
                Some((value as i128).clamp(to_least, to_most))
            }
            Some(_) => None,
        };
        let (low, high) = (within_both(low, to_least)?.max(least), within_both(high, to_most)?.min(most));
        // A bound that no value of the integer's type meets is none of its bounds.
        if low > high {
            return None;
        }
        let mask = u64::MAX >> (64 - original.bits().max(8));
        self.laws.insert(Law::BoundedFloat);
        let inner = self.bound(original, inner, Some(low as u64 & mask), Some(high as u64 & mask));
        Some(self.convert(original, to, inner))
    }

    /// Between integers. A digest is a polynomial over numbers, and a term of n bits its value modulo 2^n: what is cut off
    /// changes no digest, and what is made wider only where it is not one of those numbers.
    fn convert_integer(&mut self, key: u64, from: ElemType, to: ElemType, x: Term) -> Term {
        let wider = within(from, to);
        if wider || to.bits() > from.bits() {
            let slot = x.slot(MEMO);
            let (known, known_key, value) = self.memo[slot];
            if known == x && known_key == key {
                return value;
            }
            let value = self.widened_integer(from, to, x, wider);
            self.memo[slot] = (x, key, value);
            return value;
        }
        if let Some(&(original, inner)) = self.widened.get(&x)
            && to.bits() <= original.bits()
        {
            self.laws.insert(Law::Widening);
            return self.convert(original, to, inner);
        }
        if let Some(Bounded { base, low, high, .. }) = self.bounded(from, x) {
            // What its type bounds already.
            let known = self.number_type(from, base);
            let value = |bits: u64| match number(from, bits) {
                Number::Integer(value) => Some(value),
                Number::Float(_) => None,
            };
            let least = low.map_or_else(|| known.map(|of| limits(of).0), value);
            let most = high.map_or_else(|| known.map(|of| limits(of).1), value);
            let (to_low, to_high) = limits(to);
            let inside = |value: Option<i128>| value.is_some_and(|value| (to_low..=to_high).contains(&value));
            if inside(least) && inside(most) {
                self.laws.insert(Law::Saturation);
                let base = match known {
                    Some(known) if within(known, to) => base,
                    _ => self.saturate(from, to, base),
                };
                let mask = u64::MAX >> (64 - to.bits().max(8));
                return self.bound(to, base, low.map(|low| low & mask), high.map(|high| high & mask));
            }
        }
        self.laws.insert(Law::Truncation);
        x
    }

    /// `keeps`: whether the wider type has all values of the other.
    fn widened_integer(&mut self, from: ElemType, to: ElemType, x: Term, keeps: bool) -> Term {
        self.laws.insert(Law::Widening);
        // Most are elements of operands, which have no bounds.
        let of = self.number_type(from, x);
        if keeps && let Some(bounded) = self.bounded(from, x) {
            return self.monotone(bounded, to, false, |algebra, x| algebra.convert(from, to, x));
        }
        if keeps
            && let Some(&(original, base)) = self.saturated.get(&x)
            && self.numbers.get(&x) == Some(&from)
        {
            self.laws.insert(Law::Saturation);
            let ((low, high), (least, most)) = (limits(from), limits(original));
            let (low, high, mask) =
                (low.max(least), high.min(most), u64::MAX >> (64 - original.bits().max(8)));
            let bound = self.bound(original, base, Some(low as u64 & mask), Some(high as u64 & mask));
            return self.convert(original, to, bound);
        }
        if of.is_some() {
            return x;
        }
        let value = self.digests.mix(tag(kind::CONVERT, 0, from, from), &[x]);
        self.widened.insert(value, (from, x));
        self.declare(from, value)
    }

    /// The bytes of a value, lowest first.
    pub(in super::super) fn bytes(&self, elem: ElemType, x: Term, mut take: impl FnMut(Term)) {
        let width = elem.bytes();
        if matches!(elem, ElemType::U8 | ElemType::S8) {
            take(x);
        } else if let Some(bits) = x.as_constant() {
            (0..width).for_each(|k| take(Term::constant((bits >> (8 * k)) & 0xff)));
        } else if x == Term::POISON {
            (0..width).for_each(|_| take(x));
        } else if let Some((of, bytes)) = self.joined.get(&x)
            && width <= of.bytes()
        {
            bytes[..width as usize].iter().for_each(|&byte| take(byte));
        } else {
            let x = self.atom(x);
            let tags = &self.byte_tags[elem as usize];
            (0..width as usize).for_each(|k| take(self.digests.part(x, tags[k])));
        }
    }

    /// The value that bytes are, lowest first.
    pub(in super::super) fn of_bytes(&mut self, elem: ElemType, bytes: &[Term]) -> Term {
        if let (ElemType::U8 | ElemType::S8, [byte]) = (elem, bytes) {
            return *byte;
        }
        if bytes.contains(&Term::POISON) {
            return Term::POISON;
        }
        if bytes.iter().all(|b| b.as_constant().is_some()) && bytes.len() <= 8 {
            let bits = bytes.iter().rev().fold(0, |bits, b| (bits << 8) | b.as_constant().unwrap_or(0));
            return Term::constant(bits);
        }
        if let Some((first, rest)) = bytes.split_first()
            && first.is_part()
        {
            let tags = &self.byte_tags[elem as usize];
            let whole = self.digests.whole(*first, tags[0]);
            if rest.iter().zip(&tags[1..]).all(|(byte, tag)| *byte == self.digests.part(whole, *tag)) {
                return whole;
            }
        }
        // Bytes that were never one value of this type: remembered, as they may be taken apart again.
        let term = self.digests.mix(tag(kind::BYTES, 0, elem, elem), bytes);
        let mut known = [Term::POISON; 8];
        if bytes.len() <= known.len() {
            known[..bytes.len()].copy_from_slice(bytes);
            self.joined.insert(term, (elem, known));
        }
        self.declare(elem, term)
    }
}

/// Integers of so many bits are numbers of every float type that arithmetic is done in.
const SHORT: u32 = 16;

/// Whether a type has all values of another.
fn within(inner: ElemType, outer: ElemType) -> bool {
    let ((low, high), (least, most)) = (limits(inner), limits(outer));
    least <= low && high <= most
}

/// By type and number. Bytes of integers do not depend on the sign.
pub(super) fn byte_tags(digests: &Digests) -> Vec<[Term; 8]> {
    let mut tags = vec![[Term::POISON; 8]; 1 + ElemType::ALL.iter().map(|&e| e as usize).max().unwrap_or(0)];
    for elem in ElemType::ALL {
        let of = match elem {
            ElemType::S16 => ElemType::U16,
            ElemType::S32 => ElemType::U32,
            ElemType::S64 => ElemType::U64,
            other => other,
        };
        tags[elem as usize] = std::array::from_fn(|k| digests.mix(tag(kind::PART, k as u64, of, of), &[]));
    }
    tags
}
