//! Floating-point arithmetic as XLA's CPU backend does it.
//!
//! * 16-bit types compute in f32 and round once, to nearest even.
//! * f32 and f64 have no denormals: XLA runs kernels with FTZ and DAZ set, so a denormal operand counts as
//!   a zero of its sign, and so does a result that is tiny before rounding to the denormal grid. Only
//!   arithmetic does this; moving, selecting, negating and taking the absolute value keep the bits.
//! * A NaN that arithmetic makes is the positive quiet NaN without payload: hardware differs here, and the
//!   reference must not.
//! * Transcendental functions of f32 and narrower are computed in f64 and rounded; XLA's own approximations
//!   stay within a few units in the last place of that (tests/golden.rs has the bounds).

use super::element::Element;
use crate::{Binary, Unary};
use half::{bf16, f16};
use std::ops::{Add, Mul};

/// A type that arithmetic is done in: f32 or f64.
pub(super) trait Wide: Copy + PartialOrd + Add<Output = Self> + Mul<Output = Self> {
    const ZERO: Self;
    /// 2^64: lifts a product or quotient near the smallest normal number off the denormal grid.
    const SCALE: Self;
    fn from_f64(value: f64) -> Self;
    fn to_f64(self) -> f64;
    /// A denormal becomes the zero of its sign.
    fn flush(self) -> Self;
    /// Whether a plain result may differ from the flushed one: it is not zero and at most the smallest normal
    /// number.
    fn is_nearly_denormal(self) -> bool;
    /// A result, flushed as if it had been rounded with unbounded exponents. Where rounding to the
    /// denormal grid gave the smallest normal number, `scaled` is the same result times [`Wide::SCALE`].
    fn flush_tiny(self, scaled: impl FnOnce() -> Self) -> Self;
    /// Operands and result flushed.
    fn plus(self, other: Self) -> Self;
    /// Operands and result flushed.
    fn times(self, other: Self) -> Self;
    /// One rounding; operands and result flushed.
    fn multiply_add(self, b: Self, c: Self) -> Self;
    fn larger(self, other: Self) -> Self;
    fn smaller(self, other: Self) -> Self;
    /// The operator with flushed operands and result; `None` where it is not defined on floats.
    fn unary(op: Unary) -> Option<fn(Self) -> Self>;
    /// As [`Wide::unary`].
    fn binary(op: Binary) -> Option<fn(Self, Self) -> Self>;
}

macro_rules! wide {
    ($ty:ty) => {
        impl Wide for $ty {
            const ZERO: $ty = 0.0;
            const SCALE: $ty = 18_446_744_073_709_551_616.0;

            fn from_f64(value: f64) -> $ty {
                value as $ty
            }

            fn to_f64(self) -> f64 {
                f64::from(self)
            }

            fn flush(self) -> $ty {
                if self.abs() < <$ty>::MIN_POSITIVE { (0.0 as $ty).copysign(self) } else { self }
            }

            fn is_nearly_denormal(self) -> bool {
                self.abs() <= <$ty>::MIN_POSITIVE && self != 0.0
            }

            fn flush_tiny(self, scaled: impl FnOnce() -> $ty) -> $ty {
                let tiny = self.abs() <= <$ty>::MIN_POSITIVE
                    && (self.abs() < <$ty>::MIN_POSITIVE
                        || scaled().abs() < <$ty>::MIN_POSITIVE * Self::SCALE);
                if tiny { (0.0 as $ty).copysign(self) } else { self }
            }

            fn plus(self, other: $ty) -> $ty {
                // A sum of normal numbers that is denormal is exact, so flushing the rounded sum is right.
                (self.flush() + other.flush()).flush()
            }

            fn times(self, other: $ty) -> $ty {
                let (a, b) = (self.flush(), other.flush());
                let (small, large) = if a.abs() < b.abs() { (a, b) } else { (b, a) };
                (a * b).flush_tiny(|| (small * Self::SCALE) * large)
            }

            fn multiply_add(self, b: $ty, c: $ty) -> $ty {
                let (a, b, c) = (self.flush(), b.flush(), c.flush());
                let (small, large) = if a.abs() < b.abs() { (a, b) } else { (b, a) };
                // Where product and addend cancel to a tiny result, both are small enough to be scaled.
                a.mul_add(b, c).flush_tiny(|| (small * Self::SCALE).mul_add(large, c * Self::SCALE))
            }

            fn larger(self, other: $ty) -> $ty {
                let (a, b) = (self.flush(), other.flush());
                if a.is_nan() || b.is_nan() {
                    <$ty>::NAN
                } else if a > b || (a == b && a.is_sign_positive()) {
                    a
                } else {
                    b
                }
            }

            fn smaller(self, other: $ty) -> $ty {
                let (a, b) = (self.flush(), other.flush());
                if a.is_nan() || b.is_nan() {
                    <$ty>::NAN
                } else if a < b || (a == b && a.is_sign_negative()) {
                    a
                } else {
                    b
                }
            }

            fn unary(op: Unary) -> Option<fn($ty) -> $ty> {
                Some(match op {
                    Unary::Sign => |x| {
                        let x = x.flush();
                        if x == 0.0 || x.is_nan() { x } else { (1.0 as $ty).copysign(x) }
                    },
                    Unary::Ceil => |x| x.flush().ceil(),
                    Unary::Floor => |x| x.flush().floor(),
                    Unary::RoundNearestAfz => |x| x.flush().round(),
                    Unary::RoundNearestEven => |x| x.flush().round_ties_even(),
                    Unary::Sqrt => |x| x.flush().sqrt(),
                    Unary::Rsqrt => |x| through_f64(x, |x| 1.0 / x.sqrt()),
                    Unary::Exp => |x| through_f64(x, libm::exp),
                    Unary::Expm1 => |x| through_f64(x, libm::expm1),
                    Unary::Log => |x| through_f64(x, libm::log),
                    Unary::Log1p => |x| through_f64(x, libm::log1p),
                    Unary::Logistic => |x| through_f64(x, |x| 1.0 / (1.0 + libm::exp(-x))),
                    Unary::Cbrt => |x| through_f64(x, libm::cbrt),
                    Unary::Sin => |x| through_f64(x, libm::sin),
                    Unary::Cos => |x| through_f64(x, libm::cos),
                    Unary::Tan => |x| through_f64(x, libm::tan),
                    Unary::Tanh => |x| through_f64(x, libm::tanh),
                    Unary::Erf => |x| through_f64(x, libm::erf),
                    Unary::Abs
                    | Unary::Negate
                    | Unary::Not
                    | Unary::IsFinite
                    | Unary::Clz
                    | Unary::Popcnt => {
                        return None;
                    }
                })
            }

            fn binary(op: Binary) -> Option<fn($ty, $ty) -> $ty> {
                Some(match op {
                    Binary::Add => Wide::plus,
                    Binary::Subtract => |a, b| Wide::plus(a, -b),
                    Binary::Multiply => Wide::times,
                    Binary::Divide => |a, b| {
                        let (a, b) = (a.flush(), b.flush());
                        (a / b).flush_tiny(|| (a * Self::SCALE) / b)
                    },
                    Binary::Remainder => |a, b| (a.flush() % b.flush()).flush(),
                    Binary::Maximum => Wide::larger,
                    Binary::Minimum => Wide::smaller,
                    Binary::Power => {
                        |a, b| <$ty>::from_f64(libm::pow(a.flush().to_f64(), b.flush().to_f64())).flush()
                    }
                    Binary::Atan2 => {
                        |a, b| <$ty>::from_f64(libm::atan2(a.flush().to_f64(), b.flush().to_f64())).flush()
                    }
                    Binary::And
                    | Binary::Or
                    | Binary::Xor
                    | Binary::ShiftLeft
                    | Binary::ShiftRightArithmetic
                    | Binary::ShiftRightLogical => return None,
                })
            }
        }
    };
}

wide!(f32);
wide!(f64);

fn through_f64<T: Wide>(x: T, function: impl Fn(f64) -> f64) -> T {
    T::from_f64(function(x.flush().to_f64())).flush()
}

/// A floating-point element type and the type its arithmetic is done in.
pub(super) trait Float: Element {
    type Wide: Wide;
    fn widen(self) -> Self::Wide;
    /// Rounds to nearest even; every NaN becomes the canonical one.
    fn narrow(wide: Self::Wide) -> Self;
    fn is_finite(self) -> bool;
    /// Inverts the sign bit.
    fn negate(self) -> Self;
    /// Clears the sign bit.
    fn magnitude(self) -> Self;
}

macro_rules! float {
    ($ty:ty, $wide:ty, $widen:expr, $narrow:expr) => {
        impl Float for $ty {
            type Wide = $wide;

            fn widen(self) -> $wide {
                $widen(self)
            }

            fn narrow(wide: $wide) -> $ty {
                if wide.is_nan() { <$ty>::NAN } else { $narrow(wide) }
            }

            fn is_finite(self) -> bool {
                self.is_finite()
            }

            fn negate(self) -> $ty {
                -self
            }

            fn magnitude(self) -> $ty {
                if self.is_sign_negative() { -self } else { self }
            }
        }
    };
}

float!(f16, f32, f16::to_f32, f16::from_f32);
float!(bf16, f32, bf16::to_f32, bf16::from_f32);
float!(f32, f32, |x| x, |x| x);
float!(f64, f64, |x| x, |x| x);
