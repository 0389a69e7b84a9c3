//! Values in a device's text: what an expression over attributes is when addresses still hold loop variables. Affine as
//! long as that is exact, an operator over such where it is not. Knows no language to write them in.

use crate::assembly::BetaVal;
use crate::expr::{Env, EvalExprError, Expr};
use crate::program::{Affine, LoopId, Space};
use std::collections::BTreeSet;

/// An address or a number that is affine in the loop variables.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Linear {
    /// The segment that an address lies in; its own address is added.
    pub segment: Option<Space>,
    pub affine: Affine,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Linear(Linear),
    Operation(Operator, Box<Value>, Box<Value>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Add,
    Sub,
    Mul,
    Div,
    Mod,
    CeilDiv,
    Shl,
    Shr,
    Min,
    Max,
}

/// Whether addresses keep their segments or are counted from the beginning of theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Addresses {
    Absolute,
    Offsets,
}

impl Linear {
    pub(super) fn constant(c0: i64) -> Linear {
        Linear { segment: None, affine: Affine::constant(c0) }
    }

    /// The number, where it is one.
    pub(super) fn number(&self) -> Option<i64> {
        (self.segment.is_none() && self.affine.ivs.is_empty()).then_some(self.affine.c0)
    }

    /// Smallest and largest value for loop variables below their trip counts; of an address, its offset.
    pub(super) fn range(&self, trip: impl Fn(LoopId) -> Option<u64>) -> Option<(i128, i128)> {
        let mut range = (i128::from(self.affine.c0), i128::from(self.affine.c0));
        for &(iv, factor) in &self.affine.ivs {
            let last = i128::from(trip(iv)?.saturating_sub(1)) * i128::from(factor);
            if last < 0 { range.0 += last } else { range.1 += last }
        }
        Some(range)
    }
}

impl Value {
    /// The value of an expression.
    ///
    /// # Errors
    /// An attribute without a value, division by zero, overflow.
    pub(super) fn of(
        e: &Expr,
        env: Env<'_>,
        beta: &[BetaVal],
        addresses: Addresses,
    ) -> Result<Value, EvalExprError> {
        let (operator, a, b) = match e {
            Expr::Beta(k) => {
                let linear = match beta.get(usize::from(*k)).ok_or(EvalExprError::Unsolved)? {
                    BetaVal::Int(affine) => Linear { segment: None, affine: affine.clone() },
                    BetaVal::Hbm(space, offset) => {
                        let segment = (addresses == Addresses::Absolute).then_some(*space);
                        Linear { segment, affine: offset.clone() }
                    }
                };
                return Ok(Value::Linear(linear));
            }
            Expr::Int(_) | Expr::Alpha(_) | Expr::Register(_) | Expr::Variable(_) => {
                return Ok(Value::Linear(Linear::constant(e.eval(env)?)));
            }
            Expr::Add(a, b) => (Operator::Add, a, b),
            Expr::Sub(a, b) => (Operator::Sub, a, b),
            Expr::Mul(a, b) => (Operator::Mul, a, b),
            Expr::Div(a, b) => (Operator::Div, a, b),
            Expr::Mod(a, b) => (Operator::Mod, a, b),
            Expr::CeilDiv(a, b) => (Operator::CeilDiv, a, b),
            Expr::Shl(a, b) => (Operator::Shl, a, b),
            Expr::Shr(a, b) => (Operator::Shr, a, b),
            Expr::Min(a, b) => (Operator::Min, a, b),
            Expr::Max(a, b) => (Operator::Max, a, b),
        };
        let (a, b) = (Value::of(a, env, beta, addresses)?, Value::of(b, env, beta, addresses)?);
        if let (Value::Linear(x), Value::Linear(y)) = (&a, &b)
            && let Some(linear) = operator.exact(x, y)?
        {
            return Ok(Value::Linear(linear));
        }
        Ok(Value::Operation(operator, a.into(), b.into()))
    }

    /// Loop variables in it.
    pub(super) fn loops(&self, found: &mut BTreeSet<LoopId>) {
        match self {
            Value::Linear(linear) => found.extend(linear.affine.ivs.iter().map(|(iv, _)| *iv)),
            Value::Operation(_, a, b) => {
                a.loops(found);
                b.loops(found);
            }
        }
    }
}

impl Operator {
    /// The result where it is affine; `None` where it is not, or might overflow.
    ///
    /// # Errors
    /// As of expressions, for two numbers.
    fn exact(self, a: &Linear, b: &Linear) -> Result<Option<Linear>, EvalExprError> {
        if let (Some(a), Some(b)) = (a.number(), b.number()) {
            return self.of_numbers(a, b).map(|v| Some(Linear::constant(v)));
        }
        let number = b.number();
        Ok(match (self, number) {
            (Operator::Add, _) if a.segment.is_none() || b.segment.is_none() => {
                let sum = a.affine.checked_add(&b.affine);
                sum.map(|affine| Linear { segment: a.segment.or(b.segment), affine })
            }
            (Operator::Sub, _) if b.segment.is_none() => {
                let difference = scaled(&b.affine, -1).and_then(|b| a.affine.checked_add(&b));
                difference.map(|affine| Linear { segment: a.segment, affine })
            }
            (Operator::Mul, Some(factor)) => times(a, factor),
            (Operator::Mul, None) => a.number().and_then(|factor| times(b, factor)),
            (Operator::Shl, Some(bits)) => self.of_numbers(1, bits).ok().and_then(|factor| times(a, factor)),
            (Operator::Div | Operator::CeilDiv | Operator::Mod, Some(divisor)) => self.divided(a, divisor),
            (Operator::Shr, Some(bits)) => {
                let divisor = u32::try_from(bits).ok().and_then(|b| 1i64.checked_shl(b)).filter(|d| *d > 0);
                divisor.and_then(|divisor| Operator::Div.divided(a, divisor))
            }
            _ => None,
        })
    }

    /// Division where the divisor divides every factor: then only the constant is rounded.
    fn divided(self, a: &Linear, divisor: i64) -> Option<Linear> {
        if a.segment.is_some() || divisor <= 0 || a.affine.ivs.iter().any(|(_, k)| k % divisor != 0) {
            return None;
        }
        let c0 = self.of_numbers(a.affine.c0, divisor).ok()?;
        let ivs = match self {
            Operator::Mod => Vec::new(),
            _ => a.affine.ivs.iter().map(|&(iv, k)| (iv, k / divisor)).collect(),
        };
        Some(Linear { segment: None, affine: Affine { c0, ivs } })
    }

    fn of_numbers(self, a: i64, b: i64) -> Result<i64, EvalExprError> {
        let make = match self {
            Operator::Add => Expr::Add,
            Operator::Sub => Expr::Sub,
            Operator::Mul => Expr::Mul,
            Operator::Div => Expr::Div,
            Operator::Mod => Expr::Mod,
            Operator::CeilDiv => Expr::CeilDiv,
            Operator::Shl => Expr::Shl,
            Operator::Shr => Expr::Shr,
            Operator::Min => Expr::Min,
            Operator::Max => Expr::Max,
        };
        make(Expr::Int(a).into(), Expr::Int(b).into()).eval(Env::default())
    }
}

fn times(a: &Linear, factor: i64) -> Option<Linear> {
    if a.segment.is_some() {
        return None;
    }
    scaled(&a.affine, factor).map(|affine| Linear { segment: None, affine })
}

fn scaled(affine: &Affine, factor: i64) -> Option<Affine> {
    let mut product = Affine::constant(affine.c0.checked_mul(factor)?);
    for &(iv, k) in &affine.ivs {
        product.add_term(iv, k.checked_mul(factor)?)?;
    }
    Some(product)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int(v: i64) -> Box<Expr> {
        Expr::Int(v).into()
    }

    fn of(e: &Expr, beta: BetaVal) -> Value {
        Value::of(e, Env::default(), &[beta], Addresses::Absolute).unwrap()
    }

    /// 32 i0 - 16 i1 + 5
    fn some() -> BetaVal {
        BetaVal::Int(Affine { c0: 5, ivs: vec![(LoopId(0), 32), (LoopId(1), -16)] })
    }

    #[test]
    fn what_is_affine_agrees_with_the_expression() {
        let b = || Expr::Beta(0).into();
        for e in [
            Expr::Add(b(), int(-7)),
            Expr::Sub(int(3), b()),
            Expr::Mul(b(), int(-3)),
            Expr::Mul(int(5), b()),
            Expr::Shl(b(), int(4)),
            Expr::Shr(b(), int(3)),
            Expr::Div(b(), int(16)),
            Expr::CeilDiv(b(), int(8)),
            Expr::Mod(b(), int(16)),
            Expr::Add(b(), b()),
        ] {
            let Value::Linear(linear) = of(&e, some()) else { panic!("{e:?}") };
            for (i0, i1) in [(0, 0), (1, 0), (0, 1), (3, 7), (2, 100)] {
                let at = |iv: LoopId| Some([i0, i1][iv.0 as usize]);
                let beta = [Some(32 * i0 - 16 * i1 + 5)];
                let expected = e.eval(Env { beta: &beta, ..Env::default() }).unwrap();
                assert_eq!(linear.affine.eval(at), Some(expected), "{e:?} at {i0}, {i1}");
            }
        }
    }

    #[test]
    fn what_is_not_affine_stays_an_operation() {
        let b = || Expr::Beta(0).into();
        for e in [
            Expr::Div(b(), int(3)),
            Expr::Mod(b(), int(12)),
            Expr::Div(b(), int(-16)),
            Expr::Mul(b(), b()),
            Expr::Min(b(), int(1)),
        ] {
            let value = of(&e, some());
            let mut loops = BTreeSet::new();
            value.loops(&mut loops);
            assert!(matches!(value, Value::Operation(..)), "{e:?}");
            assert_eq!(loops.len(), 2);
        }
        // An address divided is not the quotient of its offset.
        let address = BetaVal::Hbm(Space::Operand(1), Affine::constant(64));
        assert!(matches!(of(&Expr::Div(b(), int(4)), address.clone()), Value::Operation(..)));
        let offset = Value::of(&Expr::Div(b(), int(4)), Env::default(), &[address], Addresses::Offsets);
        assert_eq!(offset, Ok(Value::Linear(Linear::constant(16))));
    }

    #[test]
    fn ranges_take_every_loop_at_its_ends() {
        let Value::Linear(linear) = of(&Expr::Beta(0), some()) else { panic!() };
        assert_eq!(linear.range(|iv| Some([4, 3][iv.0 as usize])), Some((5 - 32, 5 + 96)));
        assert_eq!(linear.range(|_| None), None);
    }
}
