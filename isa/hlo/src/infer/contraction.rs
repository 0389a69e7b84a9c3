//! Shape rules of reduce and dot.

use super::elementwise::binary_accepts;
use super::{Rule, distinct_dims, same_elem};
use crate::{Binary, DotDims, ElemType, Shape};

/// Only combiners whose result XLA defines independently of the order of elements up to rounding.
pub(super) fn reduce(dims: &[usize], combiner: Binary, x: &Shape, init: &Shape) -> Rule<Shape> {
    distinct_dims("dimension", dims, x)?;
    same_elem("the initial value", init, x)?;
    if init.rank() != 0 {
        return Err(format!("the initial value is {init}, expected a scalar"));
    }
    match combiner {
        Binary::Add
        | Binary::Multiply
        | Binary::Maximum
        | Binary::Minimum
        | Binary::And
        | Binary::Or
        | Binary::Xor => {}
        Binary::Subtract
        | Binary::Divide
        | Binary::Remainder
        | Binary::Power
        | Binary::Atan2
        | Binary::ShiftLeft
        | Binary::ShiftRightArithmetic
        | Binary::ShiftRightLogical => {
            return Err(format!("{} is not associative and cannot combine", combiner.name()));
        }
    }
    if !binary_accepts(combiner, x.elem) {
        return Err(format!("{} is not defined on {}", combiner.name(), x.elem));
    }
    let kept = x.dims.iter().enumerate().filter(|(i, _)| !dims.contains(i)).map(|(_, &d)| d);
    Ok(Shape::new(x.elem, kept.collect::<Vec<_>>()))
}

pub(super) fn dot(dims: &DotDims, lhs: &Shape, rhs: &Shape, declared: Option<ElemType>) -> Rule<Shape> {
    let DotDims { lhs_batch, rhs_batch, lhs_contracting, rhs_contracting } = dims;
    distinct_dims("lhs dimension", lhs_batch.iter().chain(lhs_contracting), lhs)?;
    distinct_dims("rhs dimension", rhs_batch.iter().chain(rhs_contracting), rhs)?;
    for (role, left, right) in
        [("batch", lhs_batch, rhs_batch), ("contracting", lhs_contracting, rhs_contracting)]
    {
        if left.len() != right.len() {
            return Err(format!("{} lhs but {} rhs {role} dimensions", left.len(), right.len()));
        }
        for (&l, &r) in left.iter().zip(right) {
            if lhs.dims[l] != rhs.dims[r] {
                return Err(format!(
                    "{role} dimensions differ: {} in dimension {l} of {lhs}, {} in dimension {r} of {rhs}",
                    lhs.dims[l], rhs.dims[r]
                ));
            }
        }
    }
    let free = |shape: &Shape, batch: &[usize], contracting: &[usize]| {
        (0..shape.rank())
            .filter(|d| !batch.contains(d) && !contracting.contains(d))
            .map(|d| shape.dims[d])
            .collect::<Vec<_>>()
    };
    let mut result: Vec<u64> = lhs_batch.iter().map(|&d| lhs.dims[d]).collect();
    result.extend(free(lhs, lhs_batch, lhs_contracting));
    result.extend(free(rhs, rhs_batch, rhs_contracting));
    Ok(Shape::new(dot_elem(lhs.elem, rhs.elem, declared)?, result))
}

/// The result type: the declared one (XLA's preferred element type) where it can hold the products, else the
/// common operand type. Integers widen only and their signs may differ from each other, as in u8 x s8 to s32;
/// floats may also narrow, since the sum is rounded once.
fn dot_elem(lhs: ElemType, rhs: ElemType, declared: Option<ElemType>) -> Rule<ElemType> {
    let Some(result) = declared else {
        return if lhs == rhs {
            Ok(lhs)
        } else {
            Err(format!("{lhs} by {rhs} needs a declared result type"))
        };
    };
    let all = |kind: fn(ElemType) -> bool| kind(lhs) && kind(rhs) && kind(result);
    let accepted = (lhs == rhs && lhs == result)
        || (all(ElemType::is_int) && result.bits() >= lhs.bits().max(rhs.bits()))
        || all(ElemType::is_float)
        || all(ElemType::is_complex);
    if accepted { Ok(result) } else { Err(format!("{lhs} by {rhs} cannot give {result}")) }
}
