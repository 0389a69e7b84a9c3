//! Shape rules of the elementwise operators: equal shapes in, the same sizes out, and which element types
//! each operator is defined on.

use super::{Rule, same_shape};
use crate::{Binary, Direction, ElemType, Shape, Unary};

fn defined(accepted: bool, elem: ElemType) -> Rule<()> {
    if accepted { Ok(()) } else { Err(format!("is not defined on {elem}")) }
}

pub(super) fn unary(op: Unary, x: &Shape) -> Rule<Shape> {
    let e = x.elem;
    let accepted = match op {
        Unary::Abs | Unary::Negate => e != ElemType::Pred,
        Unary::Sign => e.is_signed_int() || e.is_float() || e.is_complex(),
        Unary::Not => e == ElemType::Pred || e.is_int(),
        Unary::Ceil
        | Unary::Floor
        | Unary::RoundNearestAfz
        | Unary::RoundNearestEven
        | Unary::Cbrt
        | Unary::Erf
        | Unary::IsFinite => e.is_float(),
        Unary::Exp
        | Unary::Expm1
        | Unary::Log
        | Unary::Log1p
        | Unary::Logistic
        | Unary::Sqrt
        | Unary::Rsqrt
        | Unary::Sin
        | Unary::Cos
        | Unary::Tan
        | Unary::Tanh => e.is_float() || e.is_complex(),
        Unary::Clz | Unary::Popcnt => e.is_int(),
    };
    defined(accepted, e)?;
    let result = match (op, e) {
        (Unary::IsFinite, _) => ElemType::Pred,
        (Unary::Abs, ElemType::C64) => ElemType::F32,
        (Unary::Abs, ElemType::C128) => ElemType::F64,
        _ => e,
    };
    Ok(Shape::new(result, x.dims.clone()))
}

/// Whether `op` is defined on two values of type `e`. On pred, add and maximum mean or, multiply and minimum
/// mean and.
pub(super) fn binary_accepts(op: Binary, e: ElemType) -> bool {
    match op {
        Binary::Add | Binary::Multiply => true,
        Binary::Maximum | Binary::Minimum => !e.is_complex(),
        Binary::Subtract | Binary::Divide | Binary::Power => e != ElemType::Pred,
        Binary::Remainder => e.is_int() || e.is_float(),
        Binary::Atan2 => e.is_float() || e.is_complex(),
        Binary::And | Binary::Or | Binary::Xor => e == ElemType::Pred || e.is_int(),
        Binary::ShiftLeft | Binary::ShiftRightArithmetic | Binary::ShiftRightLogical => e.is_int(),
    }
}

pub(super) fn binary(op: Binary, a: &Shape, b: &Shape) -> Rule<Shape> {
    same_shape(a, b)?;
    defined(binary_accepts(op, a.elem), a.elem)?;
    Ok(a.clone())
}

pub(super) fn compare(direction: Direction, a: &Shape, b: &Shape) -> Rule<Shape> {
    same_shape(a, b)?;
    if a.elem.is_complex() && !matches!(direction, Direction::Eq | Direction::Ne) {
        return Err(format!("{} has no order, only EQ and NE are defined", a.elem));
    }
    Ok(Shape::new(ElemType::Pred, a.dims.clone()))
}

pub(super) fn select(pred: &Shape, on_true: &Shape, on_false: &Shape) -> Rule<Shape> {
    same_shape(on_true, on_false)?;
    if pred.elem != ElemType::Pred {
        return Err(format!("the predicate has element type {}, expected pred", pred.elem));
    }
    if pred.rank() != 0 && pred.dims != on_true.dims {
        return Err(format!("the predicate {pred} is neither a scalar nor of the sizes of {on_true}"));
    }
    Ok(on_true.clone())
}

pub(super) fn clamp(lo: &Shape, x: &Shape, hi: &Shape) -> Rule<Shape> {
    for (name, bound) in [("lower", lo), ("upper", hi)] {
        if bound.elem != x.elem || (bound.rank() != 0 && bound.dims != x.dims) {
            return Err(format!("the {name} bound {bound} is neither {x} nor a scalar {}", x.elem));
        }
    }
    defined(!x.elem.is_complex(), x.elem)?;
    Ok(x.clone())
}

pub(super) fn fma(a: &Shape, b: &Shape, c: &Shape) -> Rule<Shape> {
    same_shape(a, b)?;
    same_shape(a, c)?;
    defined(a.elem.is_int() || a.elem.is_float(), a.elem)?;
    Ok(a.clone())
}

pub(super) fn convert(x: &Shape, declared: &Shape) -> Rule<Shape> {
    if x.elem.is_complex() && !declared.elem.is_complex() {
        return Err(format!("{} does not convert to the real type {}", x.elem, declared.elem));
    }
    Ok(Shape::new(declared.elem, x.dims.clone()))
}

/// Wider to narrower: a last dimension of their ratio appears. Narrower to wider: it vanishes.
pub(super) fn bitcast_convert(x: &Shape, declared: &Shape) -> Rule<Shape> {
    let (from, to) = (x.elem, declared.elem);
    if from == to {
        return Ok(x.clone());
    }
    if from == ElemType::Pred || to == ElemType::Pred || from.is_complex() != to.is_complex() {
        return Err(format!("{from} cannot be reinterpreted as {to}"));
    }
    let mut dims = x.dims.clone();
    let (wide, narrow) = (from.bits().max(to.bits()), from.bits().min(to.bits()));
    let ratio = u64::from(wide / narrow);
    if from.bits() > to.bits() {
        dims.push(ratio);
    } else if from.bits() < to.bits() && dims.pop() != Some(ratio) {
        return Err(format!("{x} becomes {to} only when its last size is {ratio}"));
    }
    Ok(Shape::new(to, dims))
}

pub(super) fn reduce_precision(exponent_bits: u32, mantissa_bits: u32, x: &Shape) -> Rule<Shape> {
    defined(x.elem.is_float(), x.elem)?;
    if exponent_bits == 0 {
        return Err(format!("e{exponent_bits}m{mantissa_bits} has no exponent bits, at least 1 is needed"));
    }
    Ok(x.clone())
}
