//! Changes of element type: by value, by bits and by lost precision.

use super::element::{Bool, Element, dense, load, store, with_native};
use super::float::{Float, Wide};
use super::integer::Integer;
use super::{EvalError, unsupported};
use crate::{ElemType, Literal, Op, Shape};
use half::{bf16, f16};

/// A value between two element types, exact.
enum Value {
    Integer(i128),
    /// f64 holds every value of the narrower types.
    Float(f64),
}

/// A source or target of conversion.
trait Convertible: Element {
    fn value(self) -> Value;
    fn from_value(value: Value) -> Self;
}

macro_rules! convertible_integers {
    ($($ty:ty),*) => {$(
        impl Convertible for $ty {
            fn value(self) -> Value {
                Value::Integer(self.widen())
            }

            /// Integers wrap; floats truncate and saturate, and NaN becomes 0.
            fn from_value(value: Value) -> Self {
                match value {
                    Value::Integer(i) => <$ty>::wrap(i),
                    Value::Float(f) => <$ty>::saturate(f as i128),
                }
            }
        }
    )*};
}

convertible_integers!(i8, i16, i32, i64, u8, u16, u32, u64, super::element::Int4, super::element::Uint4);

impl Convertible for Bool {
    fn value(self) -> Value {
        Value::Integer(i128::from(self.0))
    }

    /// Everything but zero is true, NaN included.
    fn from_value(value: Value) -> Self {
        match value {
            Value::Integer(i) => Bool(i != 0),
            Value::Float(f) => Bool(f != 0.0),
        }
    }
}

macro_rules! convertible_floats {
    ($($ty:ty: $from_int:expr, $from_float:expr);* $(;)?) => {$(
        impl Convertible for $ty {
            fn value(self) -> Value {
                Value::Float(self.widen().to_f64())
            }

            fn from_value(value: Value) -> Self {
                match value {
                    Value::Integer(i) => $from_int(i),
                    Value::Float(f) if f.is_nan() => <$ty>::NAN,
                    Value::Float(f) => $from_float(f),
                }
            }
        }
    )*};
}

convertible_floats! {
    f16: |i| f16::from_f32(i as f32), f16_from_f64;
    // XLA goes to bf16 by way of f32 and rounds twice.
    bf16: |i| bf16::from_f32(i as f32), |f| bf16::from_f32(f as f32);
    f32: |i| i as f32, |f| f as f32;
    f64: |i| i as f64, |f| f;
}

/// Rounds once. (The conversion of the half crate goes by way of f32 where the hardware does.)
pub(crate) fn f16_from_f64(value: f64) -> f16 {
    let nearest = value as f32;
    // Rounded to odd, an f32 keeps on which side of every tie between two f16 the value lies.
    let toward_zero =
        if f64::from(nearest).abs() > value.abs() { nearest.to_bits() - 1 } else { nearest.to_bits() };
    let inexact = f64::from(f32::from_bits(toward_zero)) != value && !value.is_nan();
    f16::from_f32(f32::from_bits(toward_zero | u32::from(inexact)))
}

/// f32 and f64 flush denormals where the hardware's instruction would: between each other and on the way to
/// pred; bf16 passes through f32 on its way to f64. Otherwise the 16-bit types convert by their bits.
pub(super) fn convert(x: &Literal, result: &Shape) -> Result<Literal, EvalError> {
    let (from, to) = (x.elem(), result.elem);
    if from == to {
        return Ok(x.clone());
    }
    let wide = |e| matches!(e, ElemType::F32 | ElemType::F64);
    let flush_source =
        (wide(from) && (wide(to) || to == ElemType::Pred)) || (from == ElemType::BF16 && to == ElemType::F64);
    let flush_result = from == ElemType::F64 && to == ElemType::F32;
    let refuse = || unsupported(&Op::Convert, if from.is_complex() { from } else { to });
    with_native!(@real from, S => with_native!(@real to, T => {
        Ok(match (flush_source, flush_result) {
            (false, _) => converted::<S, T>(x, result, |v| v),
            (true, false) => converted::<S, T>(x, result, |v| flushed(v, from)),
            (true, true) => converted::<S, T>(x, result, |v| flushed(flushed(v, from), to)),
        })
    }, Err(refuse())), Err(refuse()))
}

fn converted<S: Convertible, T: Convertible>(
    x: &Literal,
    result: &Shape,
    between: impl Fn(Value) -> Value,
) -> Literal {
    store(result, load(x).map(|v: S| T::from_value(between(v.value()))))
}

/// Zero for a value that is denormal in `elem`.
fn flushed(value: Value, elem: ElemType) -> Value {
    match value {
        Value::Float(f) if elem != ElemType::F64 && f.abs() < f64::from(f32::MIN_POSITIVE) => {
            Value::Float(0.0f64.copysign(f))
        }
        Value::Float(f) => Value::Float(f.flush()),
        other => other,
    }
}

/// The bytes stay where they are; only 4-bit elements, which own a byte each, are packed or unpacked.
pub(super) fn bitcast_convert(x: &Literal, result: &Shape) -> Result<Literal, EvalError> {
    let nibbles = |e: ElemType| e.bits() == 4;
    let packed: Vec<u8> = match (nibbles(x.elem()), nibbles(result.elem)) {
        (false, false) => return Ok(x.with_shape(result.clone())?),
        // Between s4 and u4 only the extension of the byte changes.
        (true, true) if result.elem == ElemType::S4 => {
            return Ok(store(result, load::<u8>(x).map(|v| super::element::Int4::low_bits(v as i8))));
        }
        (true, true) => {
            return Ok(store(result, load::<u8>(x).map(super::element::Uint4::low_bits)));
        }
        (true, false) => x.bytes().chunks_exact(2).map(|pair| (pair[0] & 15) | (pair[1] << 4)).collect(),
        (false, true) => x.bytes().iter().flat_map(|&byte| [byte & 15, byte >> 4]).collect(),
    };
    if result.elem == ElemType::S4 {
        let extended = packed.iter().map(|&v| super::element::Int4::low_bits(v as i8));
        return Ok(store(result, extended));
    }
    Ok(dense(result, packed))
}

/// Rounds to a float of `exponent_bits` and `mantissa_bits` and back. Works on bits: nothing is flushed but
/// what the narrower exponent cannot reach.
pub(super) fn reduce_precision(
    exponent_bits: u32,
    mantissa_bits: u32,
    x: &Literal,
    result: &Shape,
) -> Result<Literal, EvalError> {
    let narrower = |bits: u64, exponent: u32, mantissa: u32| {
        round_bits(
            bits,
            FloatFormat { exponent, mantissa },
            FloatFormat { exponent: exponent_bits.min(exponent), mantissa: mantissa_bits.min(mantissa) },
        )
    };
    Ok(match x.elem() {
        ElemType::F16 => store(result, load::<u16>(x).map(|v| narrower(v.into(), 5, 10) as u16)),
        ElemType::BF16 => store(result, load::<u16>(x).map(|v| narrower(v.into(), 8, 7) as u16)),
        ElemType::F32 => store(result, load::<u32>(x).map(|v| narrower(v.into(), 8, 23) as u32)),
        ElemType::F64 => store(result, load::<u64>(x).map(|v| narrower(v, 11, 52))),
        other => return Err(unsupported(&Op::ReducePrecision { exponent_bits, mantissa_bits }, other)),
    })
}

#[derive(Clone, Copy)]
struct FloatFormat {
    exponent: u32,
    mantissa: u32,
}

impl FloatFormat {
    fn bias(self) -> u64 {
        (1 << (self.exponent - 1)) - 1
    }
}

fn round_bits(bits: u64, own: FloatFormat, to: FloatFormat) -> u64 {
    let sign = bits & (1 << (own.exponent + own.mantissa));
    let infinity = ((1 << own.exponent) - 1) << own.mantissa;
    let magnitude = bits & !sign;
    if magnitude > infinity {
        return bits;
    }
    let dropped = own.mantissa - to.mantissa;
    let mut rounded = magnitude;
    if dropped > 0 {
        // To nearest, ties to even; a carry runs on into the exponent, up to infinity.
        let last = (magnitude >> dropped) & 1;
        rounded = (magnitude + (1 << (dropped - 1)) - 1 + last) >> dropped << dropped;
    }
    if to.exponent < own.exponent {
        let exponent = rounded >> own.mantissa;
        if exponent > own.bias() + to.bias() {
            return sign | infinity;
        }
        // The narrower format has no denormals.
        if exponent <= own.bias() - to.bias() {
            return sign;
        }
    }
    sign | rounded
}
