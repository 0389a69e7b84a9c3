//! What elements are when a program is run: hashes of the terms that made them (uninterpreted functions), integers of
//! their types (concrete), or numbers of a prime field (the ideal arithmetic that functions stand for).

use super::expand::Expanded;
use super::foreign::Foreign;
use super::syntax::*;
use std::collections::HashMap;

/// How elements are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Two elements are equal if and only if the terms are, but for collisions of 62-bit hashes.
    Hashed,
    /// By the definitions of functions where there are some.
    Concrete,
    /// Sums and products in the field of 2^61 - 1 elements, functions by what they stand for: equal values on random
    /// inputs mean equal polynomials, but for one chance in 2^50.
    Ideal,
}

/// A reading with the seed of its random inputs.
#[derive(Clone, Debug)]
pub struct Domain {
    pub reading: Reading,
    seed: u64,
    /// By the number of the name.
    functions: Vec<Option<Function>>,
    /// Operators of HLO, by the number of the function's name.
    foreign: HashMap<Sym, Foreign>,
    types: HashMap<Sym, ElemType>,
}

const PRIME: i128 = (1 << 61) - 1;

/// A step of splitmix64: every input bit reaches every output bit.
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// Keeps hashes clear of the sign.
fn positive(hash: u64) -> i64 {
    i64::try_from(hash >> 2).expect("62 bits fit")
}

impl Domain {
    #[must_use]
    pub fn new(case: &Expanded, reading: Reading, seed: u64) -> Domain {
        let mut functions = vec![None; case.names.len()];
        let mut foreign = HashMap::new();
        for function in &case.functions {
            functions[function.name.0 as usize] = Some(function.clone());
            if let Some(text) = &function.foreign
                && let Ok(operator) = Foreign::new(function, text, &case.names)
            {
                foreign.insert(function.name, operator);
            }
        }
        Domain {
            reading,
            seed: mix(seed),
            functions,
            foreign,
            types: case.types.iter().map(|ty| (ty.name, ty.clone())).collect(),
        }
    }

    /// Whether all of these functions have a definition for concrete runs.
    #[must_use]
    pub fn defines(&self, functions: &[Sym]) -> bool {
        functions
            .iter()
            .all(|name| self.function(*name).concrete.is_some() || self.foreign.contains_key(name))
    }

    fn function(&self, name: Sym) -> &Function {
        self.functions[name.0 as usize].as_ref().expect("a function that was checked to be one")
    }

    fn hash(&self, head: u64, arguments: &[i64]) -> i64 {
        let mut state = mix(self.seed ^ head);
        for argument in arguments {
            state = mix(state ^ argument.cast_unsigned());
        }
        positive(state)
    }

    /// A hash brought into the range of a type.
    fn fit(&self, value: i64, ty: Type) -> i64 {
        match (self.reading, ty) {
            (_, Type::Bits(bits)) => value.rem_euclid(1 << bits),
            (Reading::Concrete, Type::Elem(name)) => {
                self.types.get(&name).map_or(value, |ty| wrap(value, ty.kind, ty.bits))
            }
            (Reading::Ideal, _) => i64::try_from(i128::from(value).rem_euclid(PRIME)).expect("below 2^61"),
            _ => value,
        }
    }

    /// What a buffer holds at first: random, whether an input or left over.
    #[must_use]
    pub fn initial(&self, buffer: Sym, ty: Type, offset: usize) -> i64 {
        let offset = i64::try_from(offset).expect("a buffer fits in memory");
        let value = self.fit(self.hash(1 + (u64::from(buffer.0) << 8), &[offset]), ty);
        match ty {
            Type::Elem(name) if self.reading == Reading::Concrete => match self.types.get(&name) {
                Some(ElemType { kind: ElemKind::Float { exponent }, bits, .. }) => {
                    moderate(value, *exponent, *bits)
                }
                _ => value,
            },
            _ => value,
        }
    }

    /// Whether a function of two does not depend on their order, as far as some random operands show.
    #[must_use]
    pub fn commutes(&self, name: Sym) -> bool {
        const PAIRS: usize = 64;
        let function = self.function(name);
        let operand = |at| function.params.first().map_or(0, |(param, ty)| self.initial(*param, *ty, at));
        (0..PAIRS).all(|at| {
            let (a, b) = (operand(2 * at), operand(2 * at + 1));
            self.apply(name, &[a, b]) == self.apply(name, &[b, a])
        })
    }

    /// A function of the case applied to values.
    #[must_use]
    pub fn apply(&self, name: Sym, arguments: &[i64]) -> i64 {
        let function = self.function(name);
        let body = match self.reading {
            Reading::Hashed => &None,
            Reading::Concrete => &function.concrete,
            Reading::Ideal => &function.reads,
        };
        if self.reading == Reading::Concrete
            && let Some(operator) = self.foreign.get(&name)
        {
            return self.fit(operator.apply(arguments), function.result);
        }
        if let Some(body) = body {
            let values =
                function.params.iter().map(|(name, _)| *name).zip(arguments.iter().copied()).collect();
            return self.fit(self.evaluate(body, &values), function.result);
        }
        let head = 2 + (u64::from(name.0) << 8);
        let hash = match arguments {
            [a, b] if function.commutative => self.hash(head, &[*a.min(b), *a.max(b)]),
            _ => self.hash(head, arguments),
        };
        self.fit(hash, function.result)
    }

    /// A function of the language applied to elements.
    #[must_use]
    pub fn builtin(&self, builtin: Builtin, a: i64, b: i64) -> i64 {
        match (self.reading, builtin) {
            (Reading::Hashed, Builtin::Sub) => self.hash(3, &[a, b]),
            (Reading::Hashed, _) => self.hash(4 + ((builtin as u64) << 8), &[a.min(b), a.max(b)]),
            (_, Builtin::Max) => a.max(b),
            (_, Builtin::Min) => a.min(b),
            (reading, _) => {
                let (a, b) = (i128::from(a), i128::from(b));
                let value = match builtin {
                    Builtin::Add => a + b,
                    Builtin::Sub => a - b,
                    _ => a * b,
                };
                if reading == Reading::Ideal {
                    i64::try_from(value.rem_euclid(PRIME)).expect("below 2^61")
                } else {
                    i64::try_from(value).unwrap_or(0)
                }
            }
        }
    }

    /// The body of a function on numbers.
    fn evaluate(&self, expr: &Expr, values: &HashMap<Sym, i64>) -> i64 {
        let at = |expr: &Expr| self.evaluate(expr, values);
        match &expr.kind {
            ExprKind::Int(value) => *value,
            ExprKind::Bool(value) => i64::from(*value),
            ExprKind::Name(name) => values.get(name).copied().unwrap_or(0),
            ExprKind::Access(..) => 0,
            ExprKind::Apply(name, arguments) => {
                let arguments: Vec<i64> = arguments.iter().map(at).collect();
                self.apply(*name, &arguments)
            }
            ExprKind::Builtin(builtin, arguments) => {
                self.builtin(*builtin, at(&arguments[0]), at(&arguments[1]))
            }
            ExprKind::Wrap(bits, inner) => at(inner).rem_euclid(1 << bits),
            ExprKind::Negate(inner) => at(inner).wrapping_neg(),
            ExprKind::Not(inner) => i64::from(at(inner) == 0),
            ExprKind::Select(condition, then, other) => at(if at(condition) != 0 { then } else { other }),
            ExprKind::Binary(operator, left, right) => binary(*operator, at(left), at(right)).unwrap_or(0),
        }
    }
}

/// A value brought into a type's range, by its low bits. All 64 of an element are kept as a signed integer has them.
fn wrap(value: i64, kind: ElemKind, bits: u32) -> i64 {
    if bits == 64 {
        return value;
    }
    let size = 1i128 << bits;
    let low = i128::from(value).rem_euclid(size);
    i64::try_from(if kind == ElemKind::Signed && low >= size / 2 { low - size } else { low }).unwrap_or(0)
}

/// A float's bit pattern with an exponent that makes it between 1/4 and 4, so that random data are no infinities.
fn moderate(value: i64, exponent: u32, bits: u32) -> i64 {
    let mantissa = bits - 1 - exponent;
    let bias = (1u64 << (exponent - 1)) - 1;
    let pattern = value.cast_unsigned();
    let field = ((1u64 << exponent) - 1) << mantissa;
    let near = bias - 2 + ((pattern & field) >> mantissa) % 4;
    ((pattern & !field) | (near << mantissa)).cast_signed()
}

/// Integer operators; conditions are 0 and 1. None where a divisor is not positive or the result is beyond 64 bits.
#[must_use]
pub fn binary(operator: Binary, a: i64, b: i64) -> Option<i64> {
    match operator {
        Binary::Add => a.checked_add(b),
        Binary::Sub => a.checked_sub(b),
        Binary::Mul => a.checked_mul(b),
        Binary::Div => (b > 0).then(|| a.div_euclid(b)),
        Binary::Mod => (b > 0).then(|| a.rem_euclid(b)),
        Binary::Eq => Some(i64::from(a == b)),
        Binary::Ne => Some(i64::from(a != b)),
        Binary::Lt => Some(i64::from(a < b)),
        Binary::Le => Some(i64::from(a <= b)),
        Binary::Gt => Some(i64::from(a > b)),
        Binary::Ge => Some(i64::from(a >= b)),
        Binary::And => Some(a & b),
        Binary::Or => Some(a | b),
    }
}
