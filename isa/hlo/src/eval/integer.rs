//! Integer and truth-value arithmetic as XLA defines it: everything wraps, nothing traps.

use super::element::{Bool, Element, Int4, Uint4};
use crate::{Binary, Unary};

/// Wrapping integers of one width.
pub(super) trait Integer: Element + Ord {
    /// The low bits of `value`.
    fn wrap(value: i128) -> Self;
    /// The value, clamped into range.
    fn saturate(value: i128) -> Self;
    fn widen(self) -> i128;
    /// The operator on this type; `None` where it is not defined on integers.
    fn unary(op: Unary) -> Option<fn(Self) -> Self>;
    /// As [`Integer::unary`].
    fn binary(op: Binary) -> Option<fn(Self, Self) -> Self>;
    fn multiply_add(self, b: Self, c: Self) -> Self;
}

macro_rules! integer {
    ($ty:ty, $repr:ty, $signed:ty, $unsigned:ty, $bits:expr, $is_signed:expr, $get:expr, $make:expr) => {
        impl Integer for $ty {
            fn wrap(value: i128) -> Self {
                $make(value as $repr)
            }

            fn saturate(value: i128) -> Self {
                let (low, high) = if $is_signed {
                    (-(1i128 << ($bits - 1)), (1i128 << ($bits - 1)) - 1)
                } else {
                    (0, (1i128 << $bits) - 1)
                };
                $make(value.clamp(low, high) as $repr)
            }

            fn widen(self) -> i128 {
                i128::from($get(self))
            }

            fn unary(op: Unary) -> Option<fn(Self) -> Self> {
                const SPARE: u32 = <$repr>::BITS - $bits;
                // The value's own bits, without the sign extension of a 4-bit integer.
                fn bits(x: $ty) -> $unsigned {
                    ($get(x) as $unsigned) << SPARE >> SPARE
                }
                Some(match op {
                    Unary::Abs => |x| {
                        if $is_signed && ($get(x) as $signed) < 0 { $make($get(x).wrapping_neg()) } else { x }
                    },
                    Unary::Negate => |x| $make($get(x).wrapping_neg()),
                    Unary::Sign => |x| $make(($get(x) as $signed).signum() as $repr),
                    Unary::Not => |x| $make(!$get(x)),
                    Unary::Clz => |x| $make((bits(x).leading_zeros() - SPARE) as $repr),
                    Unary::Popcnt => |x| $make(bits(x).count_ones() as $repr),
                    _ => return None,
                })
            }

            fn binary(op: Binary) -> Option<fn(Self, Self) -> Self> {
                const SPARE: u32 = <$repr>::BITS - $bits;
                // A shift amount is unsigned: a negative one is out of range.
                fn amount(x: $ty) -> Option<u32> {
                    u32::try_from($get(x) as $unsigned).ok().filter(|&n| n < $bits)
                }
                Some(match op {
                    Binary::Add => |a, b| $make($get(a).wrapping_add($get(b))),
                    Binary::Subtract => |a, b| $make($get(a).wrapping_sub($get(b))),
                    Binary::Multiply => |a, b| $make($get(a).wrapping_mul($get(b))),
                    Binary::Divide => {
                        |a, b| if $get(b) == 0 { $make(!0) } else { $make($get(a).wrapping_div($get(b))) }
                    }
                    Binary::Remainder => {
                        |a, b| if $get(b) == 0 { a } else { $make($get(a).wrapping_rem($get(b))) }
                    }
                    Binary::Maximum => |a, b| a.max(b),
                    Binary::Minimum => |a, b| a.min(b),
                    // XLA's power of integers is not the mathematical one for large or unsigned exponents.
                    Binary::Power | Binary::Atan2 => return None,
                    Binary::And => |a, b| $make($get(a) & $get(b)),
                    Binary::Or => |a, b| $make($get(a) | $get(b)),
                    Binary::Xor => |a, b| $make($get(a) ^ $get(b)),
                    Binary::ShiftLeft => |a, b| amount(b).map_or($make(0), |n| $make($get(a) << n)),
                    Binary::ShiftRightLogical => |a, b| {
                        amount(b).map_or($make(0), |n| {
                            $make((($get(a) as $unsigned) << SPARE >> SPARE >> n) as $repr)
                        })
                    },
                    // The top bit is taken for a sign in unsigned types too.
                    Binary::ShiftRightArithmetic => |a, b| {
                        let n = amount(b).unwrap_or($bits - 1);
                        $make((($get(a) as $signed) << SPARE >> SPARE >> n) as $repr)
                    },
                })
            }

            fn multiply_add(self, b: Self, c: Self) -> Self {
                $make($get(self).wrapping_mul($get(b)).wrapping_add($get(c)))
            }
        }
    };
}

macro_rules! native_integers {
    ($($signed:ty, $unsigned:ty);* $(;)?) => {$(
        integer!($signed, $signed, $signed, $unsigned, <$signed>::BITS, true, |x: $signed| x, |x: $signed| x);
        integer!($unsigned, $unsigned, $signed, $unsigned, <$signed>::BITS, false, |x: $unsigned| x, |x: $unsigned| x);
    )*};
}

native_integers! { i8, u8; i16, u16; i32, u32; i64, u64 }
integer!(Int4, i8, i8, u8, 4, true, Int4::get, Int4::low_bits);
integer!(Uint4, u8, i8, u8, 4, false, Uint4::get, Uint4::low_bits);

/// The operator on truth values; `None` where it is not defined on them.
pub(super) fn bool_binary(op: Binary) -> Option<fn(Bool, Bool) -> Bool> {
    Some(match op {
        Binary::Add | Binary::Maximum | Binary::Or => |a, b| Bool(a.0 | b.0),
        Binary::Multiply | Binary::Minimum | Binary::And => |a, b| Bool(a.0 & b.0),
        Binary::Xor => |a, b| Bool(a.0 ^ b.0),
        _ => return None,
    })
}
