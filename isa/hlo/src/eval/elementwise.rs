//! Elementwise operators: one typed loop per operator and element type.

use super::element::{Bool, Element, load, store, with_native};
use super::float::{Float, Wide};
use super::integer::{Integer, bool_binary};
use super::{EvalError, unsupported};
use crate::{Binary, Direction, ElemType, Literal, Op, Shape, Unary};

fn map1<T: Element, U: Element>(x: &Literal, result: &Shape, f: impl Fn(T) -> U) -> Literal {
    store(result, load(x).map(f))
}

fn map2<T: Element, U: Element>(a: &Literal, b: &Literal, result: &Shape, f: impl Fn(T, T) -> U) -> Literal {
    store(result, load(a).zip(load(b)).map(|(a, b)| f(a, b)))
}

/// The elements of an operand that may be a scalar standing for every element of `shape`.
fn spread<'a, T: Element + 'a>(x: &'a Literal, shape: &Shape) -> Box<dyn Iterator<Item = T> + 'a> {
    if x.shape().rank() == 0 && shape.rank() != 0 {
        let repeated = load::<T>(x).next().into_iter().cycle();
        Box::new(repeated.take(shape.elements() as usize))
    } else {
        Box::new(load(x))
    }
}

pub(super) fn unary(op: Unary, x: &Literal, result: &Shape) -> Result<Literal, EvalError> {
    let refuse = || unsupported(&Op::Unary(op), x.elem());
    // The count of 4 set bits does not fit in s4.
    if op == Unary::Popcnt && x.elem() == ElemType::S4 {
        return Err(refuse());
    }
    if x.elem() == ElemType::Pred {
        return match op {
            Unary::Not => Ok(map1(x, result, |v: Bool| Bool(!v.0))),
            _ => Err(refuse()),
        };
    }
    with_native!(@int x.elem(), T => {
        let f = T::unary(op).ok_or_else(refuse)?;
        Ok(map1(x, result, f))
    }, with_native!(@float x.elem(), T => float_unary::<T>(op, x, result).ok_or_else(refuse), Err(refuse())))
}

fn float_unary<T: Float>(op: Unary, x: &Literal, result: &Shape) -> Option<Literal> {
    Some(match op {
        Unary::Abs => map1(x, result, T::magnitude),
        Unary::Negate => map1(x, result, T::negate),
        Unary::IsFinite => map1(x, result, |v: T| Bool(v.is_finite())),
        _ => {
            let f = T::Wide::unary(op)?;
            map1(x, result, |v: T| T::narrow(f(v.widen())))
        }
    })
}

pub(super) fn binary(op: Binary, a: &Literal, b: &Literal, result: &Shape) -> Result<Literal, EvalError> {
    let refuse = || unsupported(&Op::Binary(op), a.elem());
    if a.elem() == ElemType::Pred {
        return Ok(map2(a, b, result, bool_binary(op).ok_or_else(refuse)?));
    }
    with_native!(@int a.elem(), T => {
        Ok(map2(a, b, result, T::binary(op).ok_or_else(refuse)?))
    }, with_native!(@float a.elem(), T => {
        let f = <T as Float>::Wide::binary(op).ok_or_else(refuse)?;
        Ok(map2(a, b, result, |a: T, b: T| T::narrow(f(a.widen(), b.widen()))))
    }, Err(refuse())))
}

fn holds<T: PartialOrd>(direction: Direction) -> fn(T, T) -> bool {
    match direction {
        Direction::Eq => |a, b| a == b,
        Direction::Ne => |a, b| a != b,
        Direction::Lt => |a, b| a < b,
        Direction::Le => |a, b| a <= b,
        Direction::Gt => |a, b| a > b,
        Direction::Ge => |a, b| a >= b,
    }
}

pub(super) fn compare(
    direction: Direction,
    a: &Literal,
    b: &Literal,
    result: &Shape,
) -> Result<Literal, EvalError> {
    fn ordered<T: Element + PartialOrd>(
        direction: Direction,
        a: &Literal,
        b: &Literal,
        result: &Shape,
    ) -> Literal {
        let f = holds::<T>(direction);
        map2(a, b, result, |a, b| Bool(f(a, b)))
    }
    if a.elem() == ElemType::Pred {
        return Ok(ordered::<Bool>(direction, a, b, result));
    }
    with_native!(@int a.elem(), T => Ok(ordered::<T>(direction, a, b, result)),
        with_native!(@float a.elem(), T => {
            let f = holds(direction);
            Ok(map2(a, b, result, |a: T, b: T| Bool(f(a.widen().flush(), b.widen().flush()))))
        }, Err(unsupported(&Op::Compare(direction), a.elem()))))
}

/// Moves bytes only, so it takes every element type.
pub(super) fn select(pred: &Literal, on_true: &Literal, on_false: &Literal, result: &Shape) -> Literal {
    let width = result.elem.bytes() as usize;
    let mut bytes = Vec::with_capacity(result.bytes() as usize);
    let pairs = on_true.bytes().chunks_exact(width).zip(on_false.bytes().chunks_exact(width));
    for (choose, (yes, no)) in spread::<Bool>(pred, result).zip(pairs) {
        bytes.extend_from_slice(if choose.0 { yes } else { no });
    }
    super::element::dense(result, bytes)
}

pub(super) fn clamp(lo: &Literal, x: &Literal, hi: &Literal, result: &Shape) -> Result<Literal, EvalError> {
    fn bounded<T: Element>(operands: [&Literal; 3], result: &Shape, f: impl Fn(T, T, T) -> T) -> Literal {
        let [lo, x, hi] = operands;
        let bounds = spread::<T>(lo, result).zip(spread::<T>(hi, result));
        store(result, load(x).zip(bounds).map(|(x, (lo, hi))| f(lo, x, hi)))
    }
    let operands = [lo, x, hi];
    if x.elem() == ElemType::Pred {
        return Ok(bounded(operands, result, |lo: Bool, x, hi| x.max(lo).min(hi)));
    }
    with_native!(@int x.elem(), T => Ok(bounded(operands, result, |lo: T, x: T, hi: T| x.max(lo).min(hi))),
        with_native!(@float x.elem(), T => Ok(bounded(operands, result, |lo: T, x: T, hi: T| {
            T::narrow(x.widen().larger(lo.widen()).smaller(hi.widen()))
        })), Err(unsupported(&Op::Clamp, x.elem()))))
}

/// For 16-bit floats: fused in f32, then rounded to the type.
pub(super) fn fma(a: &Literal, b: &Literal, c: &Literal, result: &Shape) -> Result<Literal, EvalError> {
    fn fused<T: Element>(operands: [&Literal; 3], result: &Shape, f: impl Fn(T, T, T) -> T) -> Literal {
        let [a, b, c] = operands;
        store(result, load(a).zip(load(b)).zip(load(c)).map(|((a, b), c)| f(a, b, c)))
    }
    let operands = [a, b, c];
    with_native!(@int a.elem(), T => Ok(fused(operands, result, T::multiply_add)),
        with_native!(@float a.elem(), T => Ok(fused(operands, result, |a: T, b: T, c: T| {
            T::narrow(a.widen().multiply_add(b.widen(), c.widen()))
        })), Err(unsupported(&Op::Fma, a.elem()))))
}
