//! Scalars of every element type from the numbers that descriptions spell. Knows only act-hlo's types.

use act_hlo::{ElemType, Literal, Shape};
use half::{bf16, f16};

/// A number has no exact place in an element type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{value} is no {elem}")]
pub struct ConstantError {
    pub value: String,
    pub elem: ElemType,
}

/// Smallest and largest value of an integer type; pred counts as 0..1. `None` for floats and complex numbers.
fn int_range(elem: ElemType) -> Option<(i128, i128)> {
    let bits = elem.bits();
    if elem == ElemType::Pred {
        Some((0, 1))
    } else if elem.is_signed_int() {
        Some((-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1))
    } else if elem.is_unsigned_int() {
        Some((0, (1i128 << bits) - 1))
    } else {
        None
    }
}

/// Little-endian bytes of the integer `value` in `elem`. Floats take the integers they represent exactly.
///
/// # Errors
/// Out of range, not representable, or a complex type.
pub fn int_bytes(elem: ElemType, value: i128) -> Result<Vec<u8>, ConstantError> {
    let fail = || ConstantError { value: value.to_string(), elem };
    if let Some((lo, hi)) = int_range(elem) {
        if value < lo || value > hi {
            return Err(fail());
        }
        return Ok(value.to_le_bytes().into_iter().take(elem.bytes() as usize).collect());
    }
    let wide = value as f64;
    let bytes = float_bytes(elem, wide)?;
    let back = float_value(elem, &bytes);
    if back.is_some_and(|back| back == wide && wide as i128 == value) { Ok(bytes) } else { Err(fail()) }
}

/// Little-endian bytes of `value` rounded to nearest even in the float type `elem`.
///
/// # Errors
/// `elem` is no float, or a finite value rounds to infinity.
pub fn float_bytes(elem: ElemType, value: f64) -> Result<Vec<u8>, ConstantError> {
    let (bytes, overflow) = match elem {
        ElemType::F16 => (f16::from_f64(value).to_le_bytes().to_vec(), f16::from_f64(value).is_infinite()),
        ElemType::BF16 => (bf16::from_f64(value).to_le_bytes().to_vec(), bf16::from_f64(value).is_infinite()),
        ElemType::F32 => ((value as f32).to_le_bytes().to_vec(), (value as f32).is_infinite()),
        ElemType::F64 => (value.to_le_bytes().to_vec(), value.is_infinite()),
        _ => return Err(ConstantError { value: value.to_string(), elem }),
    };
    if overflow && value.is_finite() {
        return Err(ConstantError { value: value.to_string(), elem });
    }
    Ok(bytes)
}

/// The value of a float element; `None` when `elem` is no float or the bytes are not one element.
pub fn float_value(elem: ElemType, bytes: &[u8]) -> Option<f64> {
    Some(match elem {
        ElemType::F16 => f16::from_le_bytes(bytes.try_into().ok()?).to_f64(),
        ElemType::BF16 => bf16::from_le_bytes(bytes.try_into().ok()?).to_f64(),
        ElemType::F32 => f64::from(f32::from_le_bytes(bytes.try_into().ok()?)),
        ElemType::F64 => f64::from_le_bytes(bytes.try_into().ok()?),
        _ => return None,
    })
}

/// The value of an integer or pred element; `None` for other types.
pub fn int_value(elem: ElemType, bytes: &[u8]) -> Option<i128> {
    int_range(elem)?;
    let negative = elem.is_signed_int() && bytes.last().is_some_and(|b| b & 0x80 != 0);
    let mut wide = [if negative { 0xff } else { 0 }; 16];
    wide.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(i128::from_le_bytes(wide))
}

/// The scalar literal of type `elem` with the integer value `value`.
///
/// # Errors
/// As [`int_bytes`].
pub fn int_scalar(elem: ElemType, value: i64) -> Result<Literal, ConstantError> {
    scalar(elem, int_bytes(elem, i128::from(value))?)
}

/// The scalar literal of float type `elem` with the value of the f32 `bits`.
///
/// # Errors
/// `elem` is no float type or does not hold the value exactly.
pub fn f32_scalar(elem: ElemType, bits: u32) -> Result<Literal, ConstantError> {
    let value = f64::from(f32::from_bits(bits));
    let bytes = float_bytes(elem, value)?;
    if float_value(elem, &bytes) == Some(value) {
        scalar(elem, bytes)
    } else {
        Err(ConstantError { value: value.to_string(), elem })
    }
}

fn scalar(elem: ElemType, bytes: Vec<u8>) -> Result<Literal, ConstantError> {
    Literal::from_bytes(Shape::scalar(elem), bytes)
        .map_err(|e| ConstantError { value: format!("a value of {} bytes", e.got), elem })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_keep_their_range() {
        assert_eq!(int_scalar(ElemType::S8, -128).unwrap().bytes(), [0x80]);
        assert!(int_scalar(ElemType::S8, 128).is_err());
        assert_eq!(int_scalar(ElemType::U8, 255).unwrap().bytes(), [0xff]);
        assert!(int_scalar(ElemType::U8, -1).is_err());
        assert!(int_scalar(ElemType::Pred, 2).is_err());
        assert_eq!(int_value(ElemType::S16, &[0xfe, 0xff]), Some(-2));
    }

    #[test]
    fn floats_are_exact_or_refused() {
        assert_eq!(int_scalar(ElemType::BF16, 3).unwrap().bytes(), bf16::from_f32(3.0).to_le_bytes());
        // 257 needs nine bits of mantissa, bf16 has eight.
        assert!(int_scalar(ElemType::BF16, 257).is_err());
        assert!(int_scalar(ElemType::F16, 70000).is_err());
        assert_eq!(f32_scalar(ElemType::F32, 0.1f32.to_bits()).unwrap().bytes(), 0.1f32.to_le_bytes());
        assert!(f32_scalar(ElemType::BF16, 0.1f32.to_bits()).is_err());
        assert!(f32_scalar(ElemType::S8, 1f32.to_bits()).is_err());
    }
}
