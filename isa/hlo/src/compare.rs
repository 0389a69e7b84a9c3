//! How far two tensors are apart: integers bit for bit, floats in units of their type's rounding.

use crate::{ElemType, Literal};
use std::fmt;

/// The largest difference between two tensors of one shape.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Difference {
    /// Largest absolute difference, divided by the largest magnitude in the expected tensor and by the distance from
    /// 1 to the next number of the element type. Infinite when one side is NaN or infinite and the other is not, and
    /// for any difference of integers.
    pub roundings: f64,
    /// Number of elements that are not the same bits.
    pub elements: u64,
}

/// How many roundings of the result type a float kernel may be off under a policy that permits what XLA's CPU backend
/// does itself: each intermediate value is rounded once more or once less.
pub const PERMITTED_ROUNDINGS: f64 = 16.0;

impl Difference {
    /// Whether all is explained by roundings of intermediate values.
    pub fn within_roundings(&self) -> bool {
        self.roundings <= PERMITTED_ROUNDINGS
    }

    /// The larger of each measure.
    #[must_use]
    pub fn max(self, other: Difference) -> Difference {
        Difference {
            roundings: self.roundings.max(other.roundings),
            elements: self.elements.max(other.elements),
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.elements == 0 {
            return f.write_str("bit for bit");
        }
        let plural = if self.elements == 1 { "" } else { "s" };
        write!(f, "{} element{plural} differ, by at most {:.3} roundings", self.elements, self.roundings)
    }
}

/// Compares element by element. Tensors of different shapes differ infinitely.
pub fn compare(expected: &Literal, got: &Literal) -> Difference {
    if expected.shape() != got.shape() {
        return Difference { roundings: f64::INFINITY, elements: expected.shape().elements() };
    }
    let elem = expected.elem();
    let (mut largest, mut magnitude, mut elements) = (0f64, 0f64, 0u64);
    for i in 0..expected.shape().elements() {
        let (want, have) = (expected.element_bytes(i), got.element_bytes(i));
        let (Some(a), Some(b)) = (real(elem, want), real(elem, have)) else {
            // Integers and complex numbers.
            if want != have {
                elements += 1;
                largest = f64::INFINITY;
            }
            continue;
        };
        if a.is_finite() {
            magnitude = magnitude.max(a.abs());
        }
        if want != have && !(a.is_nan() && b.is_nan()) {
            elements += 1;
            let off = if a == b { 0.0 } else { (a - b).abs() };
            largest = largest.max(if off.is_nan() { f64::INFINITY } else { off });
        }
    }
    let unit = magnitude.max(f64::MIN_POSITIVE) * epsilon(elem);
    let roundings = if largest == 0.0 { 0.0 } else { largest / unit };
    Difference { roundings, elements }
}

/// The value of a real float; `None` for other types.
fn real(elem: ElemType, bytes: &[u8]) -> Option<f64> {
    Some(match elem {
        ElemType::F16 => half::f16::from_le_bytes(bytes.try_into().ok()?).to_f64(),
        ElemType::BF16 => half::bf16::from_le_bytes(bytes.try_into().ok()?).to_f64(),
        ElemType::F32 => f64::from(f32::from_le_bytes(bytes.try_into().ok()?)),
        ElemType::F64 => f64::from_le_bytes(bytes.try_into().ok()?),
        _ => return None,
    })
}

/// Distance from 1 to the next number of a float type.
pub fn epsilon(elem: ElemType) -> f64 {
    match elem {
        ElemType::F16 => 2f64.powi(-10),
        ElemType::BF16 => 2f64.powi(-7),
        ElemType::F64 => f64::EPSILON,
        _ => f64::from(f32::EPSILON),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Shape;

    fn floats(values: &[f32]) -> Literal {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        Literal::from_bytes(Shape::new(ElemType::F32, [values.len() as u64]), bytes).unwrap()
    }

    #[test]
    fn floats_differ_in_roundings_of_the_largest_value() {
        let want = floats(&[2.0, 0.0, f32::NAN]);
        assert_eq!(compare(&want, &want), Difference::default());
        let near = compare(&want, &floats(&[2.0, 4.0 * f32::EPSILON, f32::NAN]));
        assert_eq!((near.roundings, near.elements), (2.0, 1));
        assert!(near.within_roundings());
        assert!(!compare(&want, &floats(&[2.0, 0.1, f32::NAN])).within_roundings());
        assert!(!compare(&want, &floats(&[2.0, f32::NAN, f32::NAN])).within_roundings());
        assert!(!compare(&want, &floats(&[2.0, f32::INFINITY, f32::NAN])).within_roundings());
    }

    #[test]
    fn any_other_integer_is_infinitely_far() {
        let ints = |v: u8| Literal::from_bytes(Shape::new(ElemType::S8, [1]), vec![v]).unwrap();
        assert_eq!(compare(&ints(3), &ints(3)), Difference::default());
        assert!(!compare(&ints(3), &ints(4)).within_roundings());
    }
}
