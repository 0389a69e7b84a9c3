//! Scalar operators on terms, up to the algebra that a numerics policy permits. Each law that is used is noted: a verdict
//! lists them, and `laws.rs` has those that a solver can prove. Knows neither tensors nor addresses.

mod bounds;
mod convert;
mod products;

use super::laws::{Law, Laws};
use super::term::{Digests, Term, TermMap};
use act_hlo::{Binary, Direction, ElemType, Literal, Op, Shape, Unary, eval_op};
use std::collections::{HashMap, HashSet};

/// How much algebra floats take part in. Integers always have that of their ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// Every operation and every rounding where the program has it.
    Exact,
    /// Sums in any order.
    Reassociated,
    /// And what else XLA's CPU backend does itself: quotients by reciprocals, fewer roundings to narrow types.
    Relaxed,
    /// Floats as real numbers.
    Real,
}

/// Whose terms are being made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Reference,
    Program,
}

/// A term of a type between two known bounds, either of which may be absent.
#[derive(Clone, Copy)]
struct Bounded {
    elem: ElemType,
    base: Term,
    low: Option<u64>,
    high: Option<u64>,
}

/// A maximum or minimum of several terms.
#[derive(Clone, Copy)]
struct Extremum {
    max: bool,
    elem: ElemType,
    members: Term,
}

/// What is known of the terms made so far.
pub(super) struct Algebra {
    pub(super) level: Level,
    side: Side,
    digests: Digests,
    bounded: TermMap<Bounded>,
    extrema: TermMap<Extremum>,
    /// Integers that no sum or product made, with a type whose values they are as numbers.
    numbers: TermMap<ElemType>,
    /// Of sums and products, what they are as numbers: where they were made wider.
    widened: TermMap<(ElemType, Term)>,
    /// Integers that are others brought between the limits of their own type.
    saturated: TermMap<(ElemType, Term)>,
    /// Floats whose value some narrower type has.
    narrow: TermMap<ElemType>,
    /// Floats that an integer became, with that integer.
    whole: TermMap<(ElemType, Term)>,
    negated: TermMap<Term>,
    /// Values made of bytes of others, with these bytes.
    joined: TermMap<(ElemType, [Term; 8])>,
    /// What tells a byte of an element from the others, by type and number.
    byte_tags: Vec<[Term; 8]>,
    /// Sums of two as they were written, for the laws of the exponential.
    sums: TermMap<(Term, Term)>,
    /// What the reference rounds.
    rounded: HashSet<(ElemType, Term)>,
    folded: HashMap<(u64, [u64; 3]), u64>,
    /// The last widenings, by the low bits of the term.
    memo: Vec<(Term, u64, Term)>,
    pub(super) laws: Laws,
    /// Floats were computed with: another level may give other terms.
    pub(super) floats: bool,
}

/// Kinds of operators that have no operator of HLO.
mod kind {
    pub(super) const LEAF: u64 = 1;
    pub(super) const CONSTANT: u64 = 2;
    pub(super) const BOUNDED: u64 = 3;
    pub(super) const EXTREMUM: u64 = 4;
    pub(super) const MEMBER: u64 = 5;
    pub(super) const ROUNDED: u64 = 6;
    pub(super) const SATURATED: u64 = 7;
    pub(super) const PART: u64 = 8;
    pub(super) const BYTES: u64 = 9;
    pub(super) const ATOM: u64 = 10;
    pub(super) const NONE: u64 = 11;
    pub(super) const CONVERT: u64 = 12;
    pub(super) const UNARY: u64 = 13;
    pub(super) const BINARY: u64 = 14;
    pub(super) const COMPARE: u64 = 15;
    pub(super) const SELECT: u64 = 16;
    pub(super) const FMA: u64 = 17;
    pub(super) const PRECISION: u64 = 18;
    pub(super) const FACTOR: u64 = 19;
    pub(super) const SUM: u64 = 20;
}

const MEMO: usize = 1 << 14;

fn tag(kind: u64, operator: u64, elem: ElemType, other: ElemType) -> u64 {
    (kind << 48) | (operator << 16) | ((elem as u64) << 8) | other as u64
}

/// The type that arithmetic on a float type is done in.
fn wide(elem: ElemType) -> ElemType {
    if elem == ElemType::F64 { ElemType::F64 } else { ElemType::F32 }
}

/// A known number.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Number {
    Integer(i128),
    Float(f64),
}

fn number(elem: ElemType, bits: u64) -> Number {
    let spare = 64 - elem.bits().max(8);
    match elem {
        ElemType::F16 => Number::Float(half::f16::from_bits(bits as u16).to_f64()),
        ElemType::BF16 => Number::Float(half::bf16::from_bits(bits as u16).to_f64()),
        ElemType::F32 => Number::Float(f64::from(f32::from_bits(bits as u32))),
        ElemType::F64 => Number::Float(f64::from_bits(bits)),
        _ if elem.is_signed_int() => Number::Integer(i128::from((bits << spare) as i64 >> spare)),
        _ => Number::Integer(i128::from(bits)),
    }
}

/// Smallest and largest value of an integer type.
fn limits(elem: ElemType) -> (i128, i128) {
    let bits = elem.bits();
    if elem.is_signed_int() { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
}

fn commutes(op: Binary) -> bool {
    use Binary::{Add, And, Maximum, Minimum, Multiply, Or, Xor};
    matches!(op, Add | Multiply | Maximum | Minimum | And | Or | Xor)
}

impl Algebra {
    pub(super) fn new(level: Level, seed: u64) -> Algebra {
        let digests = Digests::new(seed);
        let mut laws = Laws::default();
        laws.insert(Law::Digest);
        Algebra {
            level,
            side: Side::Reference,
            digests,
            bounded: TermMap::default(),
            extrema: TermMap::default(),
            numbers: TermMap::default(),
            widened: TermMap::default(),
            saturated: TermMap::default(),
            narrow: TermMap::default(),
            whole: TermMap::default(),
            negated: TermMap::default(),
            joined: TermMap::default(),
            byte_tags: convert::byte_tags(&digests),
            sums: TermMap::default(),
            rounded: HashSet::new(),
            folded: HashMap::new(),
            memo: vec![(Term::POISON, 0, Term::POISON); MEMO],
            laws,
            floats: false,
        }
    }

    /// From here on terms of the program are made, no longer of the reference.
    pub(super) fn turn_to_program(&mut self) {
        self.side = Side::Program;
    }

    /// Notes that a term is a number of an integer type.
    pub(super) fn declare(&mut self, elem: ElemType, x: Term) -> Term {
        if elem.is_int() && x.as_constant().is_none() {
            self.numbers.entry(x).or_insert(elem);
        }
        x
    }

    /// An element of an operand.
    pub(super) fn leaf(&self, operand: u64, element: u64) -> Term {
        self.digests.mix(tag(kind::LEAF, operand, ElemType::Pred, ElemType::Pred), &[Term::constant(element)])
    }

    fn mix2(&self, tag: u64, a: Term, b: Term) -> Term {
        self.digests.mix(tag, &[a, b])
    }

    /// As a term that arithmetic may be done with.
    fn atom(&self, x: Term) -> Term {
        if x.is_part() { self.digests.mix(kind::ATOM << 48, &[x]) } else { x }
    }

    /// An operator of known values.
    fn fold(&mut self, key: u64, op: &Op, operands: &[(ElemType, Term)], result: ElemType) -> Option<Term> {
        let mut bits = [0; 3];
        for (slot, (_, x)) in bits.iter_mut().zip(operands) {
            *slot = x.as_constant()?;
        }
        if let Some(&known) = self.folded.get(&(key, bits)) {
            return Some(Term::constant(known));
        }
        let literals: Vec<Literal> =
            operands.iter().zip(bits).map(|((elem, _), bits)| scalar(*elem, bits)).collect();
        let operands: Vec<&Literal> = literals.iter().collect();
        let value = eval_op(op, &operands, &Shape::scalar(result)).ok()?;
        let value = bits_of(&value);
        self.folded.insert((key, bits), value);
        Some(Term::constant(value))
    }

    /// A known or unknown integer in the field.
    fn in_ring(&self, elem: ElemType, x: Term) -> Term {
        match x.as_constant() {
            Some(bits) => match number(elem, bits) {
                Number::Integer(value) => self.digests.integer(value),
                Number::Float(_) => self.digests.mix(tag(kind::CONSTANT, 0, elem, elem), &[x]),
            },
            None => self.atom(x),
        }
    }

    /// A float as a summand.
    fn summand(&self, elem: ElemType, x: Term) -> Term {
        match x.as_constant() {
            Some(bits) if self.level == Level::Real => match number(elem, bits) {
                Number::Float(value) => self
                    .rational(value)
                    .unwrap_or_else(|| self.digests.mix(tag(kind::CONSTANT, 0, elem, elem), &[x])),
                Number::Integer(value) => self.digests.integer(value),
            },
            Some(_) => self.digests.mix(tag(kind::CONSTANT, 0, elem, elem), &[x]),
            None => self.atom(x),
        }
    }

    /// A binary operator on values of type `elem`.
    pub(super) fn binary(&mut self, op: Binary, elem: ElemType, a: Term, b: Term) -> Term {
        if elem.is_float() {
            let (wa, wb) = (self.widen(elem, a), self.widen(elem, b));
            let value = self.wide_binary(op, wide(elem), wa, wb);
            return self.round(elem, value);
        }
        let key = tag(kind::BINARY, op as u64, elem, elem);
        if let Some(known) = self.fold(key, &Op::Binary(op), &[(elem, a), (elem, b)], elem) {
            return known;
        }
        let [ca, cb] = [a, b].map(Term::as_constant);
        let all_ones = if elem == ElemType::Pred { 1 } else { u64::MAX >> (64 - elem.bits()) };
        match op {
            _ if elem == ElemType::Pred => match (op, ca, cb) {
                (Binary::And, Some(1), _) | (Binary::Or, Some(0), _) => return b,
                (Binary::And, _, Some(1)) | (Binary::Or, _, Some(0)) => return a,
                (Binary::And, Some(0), _) | (Binary::And, _, Some(0)) => return Term::constant(0),
                (Binary::Or, Some(1), _) | (Binary::Or, _, Some(1)) => return Term::constant(1),
                (Binary::And | Binary::Or, _, _) if a == b => return a,
                _ => {}
            },
            Binary::Add | Binary::Subtract | Binary::Multiply => {
                self.laws.insert(Law::Ring);
                return match (op, ca, cb) {
                    (Binary::Add, Some(0), _) | (Binary::Multiply, Some(1), _) => b,
                    (Binary::Add | Binary::Subtract, _, Some(0)) | (Binary::Multiply, _, Some(1)) => a,
                    (Binary::Multiply, Some(0), _) | (Binary::Multiply, _, Some(0)) => Term::constant(0),
                    _ => {
                        let (a, b) = (self.in_ring(elem, a), self.in_ring(elem, b));
                        let value = match op {
                            Binary::Add => self.digests.plus(a, b),
                            Binary::Subtract => self.digests.minus(a, b),
                            _ => self.digests.times(a, b),
                        };
                        if value == Term::ZERO { Term::constant(0) } else { value }
                    }
                };
            }
            Binary::Maximum | Binary::Minimum => return self.extremum(op == Binary::Maximum, elem, a, b),
            Binary::ShiftLeft => {
                if let Some(shift) = cb.filter(|&shift| shift < u64::from(elem.bits()) - 1) {
                    self.laws.insert(Law::Ring);
                    let factor = self.digests.integer(1 << shift);
                    return self.digests.times(self.in_ring(elem, a), factor);
                }
            }
            Binary::And if cb == Some(all_ones) => return a,
            Binary::And if ca == Some(all_ones) => return b,
            Binary::Or | Binary::Xor if cb == Some(0) => return a,
            Binary::Or | Binary::Xor if ca == Some(0) => return b,
            _ => {}
        }
        let term = self.opaque(op, key, a, b);
        self.declare(elem, term)
    }

    fn opaque(&mut self, op: Binary, key: u64, a: Term, b: Term) -> Term {
        if commutes(op) && b < a {
            self.laws.insert(Law::Commutes);
            return self.mix2(key, b, a);
        }
        self.mix2(key, a, b)
    }

    /// A binary operator on floats of the type that arithmetic is done in.
    pub(super) fn wide_binary(&mut self, op: Binary, elem: ElemType, a: Term, b: Term) -> Term {
        self.floats = true;
        let key = tag(kind::BINARY, op as u64, elem, elem);
        let [ca, cb] = [a, b].map(Term::as_constant);
        if let (Some(_), Some(_)) = (ca, cb)
            && let Some(known) = self.fold(key, &Op::Binary(op), &[(elem, a), (elem, b)], elem)
        {
            return known;
        }
        let value = |bits: u64| match number(elem, bits) {
            Number::Float(value) => value,
            Number::Integer(value) => value as f64,
        };
        match op {
            Binary::Add | Binary::Subtract if self.level >= Level::Reassociated => {
                if cb.is_some_and(|bits| value(bits) == 0.0) {
                    self.laws.insert(Law::FloatIdentity);
                    return a;
                }
                if op == Binary::Add && ca.is_some_and(|bits| value(bits) == 0.0) {
                    self.laws.insert(Law::FloatIdentity);
                    return b;
                }
                if op == Binary::Add
                    && let Some(sum) = self.pulled(elem, a, b, cb, |x| x.is_finite())
                {
                    return sum;
                }
                if op == Binary::Add
                    && let Some(sum) = self.pulled(elem, b, a, ca, |x| x.is_finite())
                {
                    return sum;
                }
                let other = if op == Binary::Add { b } else { self.negate(elem, b) };
                self.laws.insert(Law::Reassociation);
                let sum = self.digests.plus(self.summand(elem, a), self.summand(elem, other));
                if self.level == Level::Real {
                    self.sums.insert(sum, (a, other));
                }
                return sum;
            }
            Binary::Subtract => {
                let other = self.negate(elem, b);
                return self.wide_binary(Binary::Add, elem, a, other);
            }
            Binary::Add => return self.ordered_sum(elem, self.summand(elem, a), self.summand(elem, b)),
            Binary::Multiply => {
                for (x, c) in [(a, cb), (b, ca)] {
                    let Some(bits) = c else { continue };
                    if value(bits) == 1.0 && self.is_whole(x) {
                        return x;
                    }
                    if self.level >= Level::Reassociated && value(bits) == 1.0 {
                        self.laws.insert(Law::FloatIdentity);
                        return x;
                    }
                    let factor = Term::constant(bits);
                    if let Some(product) = self.scaled(elem, x, factor, value(bits)) {
                        return product;
                    }
                }
                if self.level == Level::Real {
                    self.laws.insert(Law::RealAlgebra);
                    return self.digests.times(self.summand(elem, a), self.summand(elem, b));
                }
                self.laws.insert(Law::Commutes);
                return self.digests.times(self.factor(elem, a), self.factor(elem, b));
            }
            Binary::Divide if self.level == Level::Real => {
                self.laws.insert(Law::RealAlgebra);
                let reciprocal = self.digests.inverse(self.summand(elem, b));
                return self.digests.times(self.summand(elem, a), reciprocal);
            }
            Binary::Divide if self.level == Level::Relaxed && ca.is_none_or(|bits| value(bits) != 1.0) => {
                self.laws.insert(Law::Reciprocal);
                let one = self.float_constant(elem, 1.0);
                let reciprocal = self.wide_binary(Binary::Divide, elem, one, b);
                return self.wide_binary(Binary::Multiply, elem, a, reciprocal);
            }
            Binary::Maximum | Binary::Minimum => return self.extremum(op == Binary::Maximum, elem, a, b),
            _ => {}
        }
        self.opaque(op, key, a, b)
    }

    /// A float as a quotient in the field.
    fn rational(&self, value: f64) -> Option<Term> {
        if !value.is_finite() {
            return None;
        }
        let bits = value.to_bits();
        let exponent = ((bits >> 52) & 0x7ff) as i32;
        let fraction = (bits & ((1 << 52) - 1)) as i128;
        let (mantissa, power) =
            if exponent == 0 { (fraction, -1074) } else { (fraction | (1 << 52), exponent - 1075) };
        let mantissa = self.digests.integer(if value < 0.0 { -mantissa } else { mantissa });
        let two = self.digests.integer(2);
        let base = if power < 0 { self.digests.inverse(two) } else { two };
        Some((0..power.unsigned_abs()).fold(mantissa, |x, _| self.digests.times(x, base)))
    }

    /// A step of a sum or product of the type that it is computed in.
    pub(super) fn arithmetic(&mut self, op: Binary, elem: ElemType, a: Term, b: Term) -> Term {
        if elem.is_float() { self.wide_binary(op, elem, a, b) } else { self.binary(op, elem, a, b) }
    }

    /// The result of such steps in the type that it has in the end.
    pub(super) fn convert_result(&mut self, inner: ElemType, result: ElemType, x: Term) -> Term {
        if inner == result { x } else { self.convert(inner, result, x) }
    }

    fn float_constant(&self, elem: ElemType, value: f64) -> Term {
        let bits = if elem == ElemType::F64 { value.to_bits() } else { u64::from((value as f32).to_bits()) };
        Term::constant(bits)
    }

    fn negate(&mut self, elem: ElemType, x: Term) -> Term {
        let key = tag(kind::UNARY, Unary::Negate as u64, elem, elem);
        if let Some(known) = self.fold(key, &Op::Unary(Unary::Negate), &[(elem, x)], elem) {
            return known;
        }
        if elem.is_int() {
            self.laws.insert(Law::Ring);
            return self.digests.minus(Term::ZERO, self.in_ring(elem, x));
        }
        if self.level == Level::Real {
            return self.digests.minus(Term::ZERO, self.summand(elem, x));
        }
        if let Some(&inner) = self.negated.get(&x) {
            return inner;
        }
        let term = self.digests.mix(key, &[x]);
        self.negated.insert(term, x);
        if let Some(&narrow) = self.narrow.get(&x) {
            self.narrow.insert(term, narrow);
        }
        term
    }

    /// A unary operator on a value of type `elem`.
    pub(super) fn unary(&mut self, op: Unary, elem: ElemType, x: Term, result: ElemType) -> Term {
        if op == Unary::Negate {
            if elem.is_float() {
                let value = self.widen(elem, x);
                let value = self.negate(wide(elem), value);
                return self.round(elem, value);
            }
            return self.negate(elem, x);
        }
        if elem.is_float() && result == elem {
            let x = self.widen(elem, x);
            let value = self.wide_unary(op, wide(elem), x);
            return self.round(elem, value);
        }
        let key = tag(kind::UNARY, op as u64, elem, result);
        if let Some(known) = self.fold(key, &Op::Unary(op), &[(elem, x)], result) {
            return known;
        }
        if op == Unary::Not && elem.is_int() {
            self.laws.insert(Law::Ring);
            return self.digests.minus(self.digests.integer(-1), self.in_ring(elem, x));
        }
        let term = self.digests.mix(key, &[x]);
        self.declare(result, term)
    }

    fn wide_unary(&mut self, op: Unary, elem: ElemType, x: Term) -> Term {
        let key = tag(kind::UNARY, op as u64, elem, elem);
        if let Some(known) = self.fold(key, &Op::Unary(op), &[(elem, x)], elem) {
            return known;
        }
        let monotone =
            matches!(op, Unary::RoundNearestEven | Unary::RoundNearestAfz | Unary::Floor | Unary::Ceil);
        if monotone && self.is_whole(x) {
            return x;
        }
        if monotone && let Some(bounded) = self.bounded(elem, x) {
            return self.monotone(bounded, elem, false, |algebra, x| algebra.wide_unary(op, elem, x));
        }
        if op == Unary::Exp && self.level == Level::Real {
            if let Some(&(a, b)) = self.sums.get(&x) {
                self.laws.insert(Law::RealAlgebra);
                let (a, b) = (self.wide_unary(op, elem, a), self.wide_unary(op, elem, b));
                return self.wide_binary(Binary::Multiply, elem, a, b);
            }
            // exp(-x) = 1 / exp(x): the smaller digest stands for both.
            let opposite = self.digests.minus(Term::ZERO, self.summand(elem, x));
            if opposite < x {
                return self.digests.inverse(self.digests.mix(key, &[opposite]));
            }
        }
        self.digests.mix(key, &[x])
    }

    pub(super) fn compare(&mut self, direction: Direction, elem: ElemType, a: Term, b: Term) -> Term {
        use Direction::{Eq, Ge, Gt, Le, Lt, Ne};
        let key = |direction: Direction| tag(kind::COMPARE, direction as u64, elem, ElemType::Pred);
        let operands = [(elem, a), (elem, b)];
        if let Some(known) = self.fold(key(direction), &Op::Compare(direction), &operands, ElemType::Pred) {
            return known;
        }
        if a == b && !elem.is_float() {
            return Term::constant(u64::from(matches!(direction, Eq | Ge | Le)));
        }
        let (elem, [a, b]) = self.narrowed(elem, [a, b]);
        let key = |direction: Direction| tag(kind::COMPARE, direction as u64, elem, ElemType::Pred);
        match direction {
            Gt => self.mix2(key(Lt), b, a),
            Ge => self.mix2(key(Le), b, a),
            Eq | Ne if b < a => self.mix2(key(direction), b, a),
            _ => self.mix2(key(direction), a, b),
        }
    }

    pub(super) fn select(&mut self, elem: ElemType, predicate: Term, on_true: Term, on_false: Term) -> Term {
        match predicate.as_constant() {
            Some(0) => on_false,
            Some(_) => on_true,
            None if on_true == on_false => on_true,
            None => {
                let (elem, [on_true, on_false]) = self.narrowed(elem, [on_true, on_false]);
                let key = tag(kind::SELECT, 0, elem, elem);
                let term = self.digests.mix(key, &[predicate, on_true, on_false]);
                self.declare(elem, term)
            }
        }
    }

    pub(super) fn clamp(&mut self, elem: ElemType, low: Term, x: Term, high: Term) -> Term {
        let x = self.binary(Binary::Maximum, elem, x, low);
        self.binary(Binary::Minimum, elem, x, high)
    }

    pub(super) fn fma(&mut self, elem: ElemType, a: Term, b: Term, c: Term) -> Term {
        let key = tag(kind::FMA, 0, elem, elem);
        if let Some(known) = self.fold(key, &Op::Fma, &[(elem, a), (elem, b), (elem, c)], elem) {
            return known;
        }
        if elem.is_int() || self.level == Level::Real {
            let product = self.binary(Binary::Multiply, elem, a, b);
            return self.binary(Binary::Add, elem, product, c);
        }
        if self.level >= Level::Reassociated {
            // A fused step of a sum leaves one rounding out.
            self.laws.insert(Law::Fused);
            let [a, b, c] = [a, b, c].map(|x| self.widen(elem, x));
            let product = self.wide_binary(Binary::Multiply, wide(elem), a, b);
            let sum = self.wide_binary(Binary::Add, wide(elem), product, c);
            return self.round(elem, sum);
        }
        let (a, b) = if b < a { (b, a) } else { (a, b) };
        self.digests.mix(key, &[a, b, c])
    }

    pub(super) fn reduce_precision(&mut self, exponent: u32, mantissa: u32, elem: ElemType, x: Term) -> Term {
        let key = tag(kind::PRECISION, u64::from(exponent * 64 + mantissa), elem, elem);
        let op = Op::ReducePrecision { exponent_bits: exponent, mantissa_bits: mantissa };
        if let Some(known) = self.fold(key, &op, &[(elem, x)], elem) {
            return known;
        }
        self.digests.mix(key, &[x])
    }
}

fn scalar(elem: ElemType, bits: u64) -> Literal {
    let width = elem.bytes() as usize;
    let mut bytes = vec![0; width];
    let taken = width.min(8);
    bytes[..taken].copy_from_slice(&bits.to_le_bytes()[..taken]);
    Literal::from_bytes(Shape::scalar(elem), bytes).unwrap_or_else(|_| Literal::zeros(Shape::scalar(elem)))
}

/// The bits of a scalar.
pub(super) fn bits_of(value: &Literal) -> u64 {
    value.bytes().iter().take(8).rev().fold(0, |bits, &b| (bits << 8) | u64::from(b))
}
