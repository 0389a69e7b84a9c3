//! Changes of type: widening, rounding, conversion by value and by bits.

use super::{Algebra, Bounded, Level, MEMO, Number, Side, kind, limits, number, tag, wide};
use crate::region::laws::Law;
use crate::region::term::Term;
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
        if let Some(&bounded) = self.bounded.get(&x)
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
        let term = self.mixer.mix(tag(kind::ROUNDED, 0, from, elem), &[x]);
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
            if let Some(&(original, inner)) = self.widened.get(&x) {
                self.laws.insert(Law::Widening);
                return self.convert(original, to, inner);
            }
            if to == wide(to)
                && let Some(&bounded) = self.bounded.get(&x)
            {
                return self.monotone(bounded, to, false, |algebra, x| algebra.convert(from, to, x));
            }
            if to == wide(to) && from.bits() <= 16 {
                let term = self.mixer.mix(key, &[x]);
                self.whole.insert(term, (from, x));
                return term;
            }
        }
        if from.is_float() && to.is_int() {
            let x = self.widen(from, x);
            if let Some(&(original, inner)) = self.whole.get(&x) {
                let ((low, high), (to_low, to_high)) = (limits(original), limits(to));
                if to_low <= low && high <= to_high {
                    self.laws.insert(Law::WholeFloat);
                    return self.convert(original, to, inner);
                }
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
            if let Some(&bounded) = self.bounded.get(&x)
                && zero_inside(bounded.low, true)
                && zero_inside(bounded.high, false)
            {
                return self.monotone(bounded, to, false, |algebra, x| algebra.convert(from, to, x));
            }
            if to.bits() < 32 {
                self.laws.insert(Law::FloatSaturation);
                let whole = self.convert(from, ElemType::S32, x);
                return self.mixer.mix(tag(kind::SATURATED, 0, ElemType::S32, to), &[whole]);
            }
            return self.mixer.mix(key, &[x]);
        }
        self.mixer.mix(key, &[x])
    }

    pub(in super::super) fn convert_float(&mut self, from: ElemType, to: ElemType, x: Term) -> Term {
        let x = self.widen(from, x);
        if wide(from) == wide(to) {
            return self.round(to, x);
        }
        let key = tag(kind::CONVERT, 0, wide(from), to);
        self.mixer.mix(key, &[x])
    }

    pub(in super::super) fn convert_integer(
        &mut self,
        key: u64,
        from: ElemType,
        to: ElemType,
        x: Term,
    ) -> Term {
        let ((low, high), (to_low, to_high)) = (limits(from), limits(to));
        if to_low <= low && high <= to_high {
            let slot = x.slot(MEMO);
            let (known, known_key, value) = self.memo[slot];
            if known == x && known_key == key {
                return value;
            }
            let value = self.widened_integer(key, from, to, x);
            self.memo[slot] = (x, key, value);
            return value;
        }
        if let Some(&(original, inner)) = self.widened.get(&x) {
            self.laws.insert(Law::Widening);
            return self.convert(original, to, inner);
        }
        if let Some(&Bounded { base, low: Some(low), high: Some(high) }) = self.bounded.get(&x) {
            let inside = |bits| match number(from, bits) {
                Number::Integer(value) => (to_low..=to_high).contains(&value),
                Number::Float(_) => false,
            };
            if inside(low) && inside(high) {
                self.laws.insert(Law::Saturation);
                let base = self.mixer.mix(tag(kind::SATURATED, 0, from, to), &[base]);
                let mask = u64::MAX >> (64 - to.bits().max(8));
                return self.bound(to, base, Some(low & mask), Some(high & mask));
            }
        }
        self.mixer.mix(key, &[x])
    }

    pub(in super::super) fn widened_integer(
        &mut self,
        key: u64,
        from: ElemType,
        to: ElemType,
        x: Term,
    ) -> Term {
        if let Some(&(original, inner)) = self.widened.get(&x) {
            self.laws.insert(Law::Widening);
            return self.convert(original, to, inner);
        }
        if let Some(&bounded) = self.bounded.get(&x) {
            return self.monotone(bounded, to, false, |algebra, x| algebra.convert(from, to, x));
        }
        let value = self.mixer.mix(key, &[x]);
        self.widened.insert(value, (from, x));
        value
    }

    /// The bytes of a value, lowest first.
    pub(in super::super) fn bytes(&self, elem: ElemType, x: Term, mut take: impl FnMut(Term)) {
        let width = elem.bytes();
        if elem == ElemType::U8 {
            take(x);
        } else if let Some(bits) = x.as_constant() {
            (0..width).for_each(|k| take(Term::constant((bits >> (8 * k)) & 0xff)));
        } else if x == Term::POISON {
            (0..width).for_each(|_| take(x));
        } else if let Some(bytes) = self.joined.get(&x) {
            bytes[..width as usize].iter().for_each(|&byte| take(byte));
        } else {
            let x = self.atom(x);
            (0..width).for_each(|k| take(x.part(self.byte_tag(elem, k))));
        }
    }

    pub(in super::super) fn byte_tag(&self, elem: ElemType, k: u64) -> Term {
        self.mixer.mix(tag(kind::PART, k, elem, elem), &[])
    }

    /// The value that bytes are, lowest first.
    pub(in super::super) fn of_bytes(&mut self, elem: ElemType, bytes: &[Term]) -> Term {
        if let (ElemType::U8, [byte]) = (elem, bytes) {
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
            let whole = first.whole(self.byte_tag(elem, 0));
            if rest.iter().zip(1..).all(|(byte, k)| *byte == whole.part(self.byte_tag(elem, k))) {
                return whole;
            }
        }
        // Bytes that were never one value of this type: remembered, as they may be taken apart again.
        let term = self.mixer.mix(tag(kind::BYTES, 0, elem, elem), bytes);
        let mut known = [Term::POISON; 8];
        if bytes.len() <= known.len() {
            known[..bytes.len()].copy_from_slice(bytes);
            self.joined.insert(term, known);
        }
        term
    }
}
