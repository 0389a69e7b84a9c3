//! Operators that make, move, cut or join data: bytes are copied, never computed on. All but iota and eye
//! take every element type.

use super::element::{dense, load, store, with_native};
use super::integer::Integer;
use super::strided::{Side, copy, row_major};
use super::{EvalError, convert, unsupported};
use crate::{ElemType, Literal, Op, Shape};

/// Counts wrap in narrow integers and round in floats.
pub(super) fn iota(dim: usize, result: &Shape) -> Result<Literal, EvalError> {
    let inner: u64 = result.dims[dim + 1..].iter().product();
    let size = result.dims[dim];
    let counts = Shape::new(ElemType::S64, result.dims.clone());
    let counts = store(&counts, (0..result.elements()).map(|i| (i / inner % size) as i64));
    convert::convert(&counts, result).map_err(|_| unsupported(&Op::Iota { dim }, result.elem))
}

pub(super) fn eye(result: &Shape) -> Result<Literal, EvalError> {
    let columns = result.dims[1];
    let ones = Shape::new(ElemType::Pred, result.dims.clone());
    let ones = store(&ones, (0..result.elements()).map(|i| u8::from(i / columns == i % columns)));
    convert::convert(&ones, result).map_err(|_| unsupported(&Op::Eye, result.elem))
}

/// A dense result that is read from `x` through `side`.
fn gather(x: &Literal, side: &Side, result: &Shape) -> Literal {
    let mut out = vec![0; result.bytes() as usize];
    let target = Side { start: 0, strides: row_major(&result.dims) };
    copy(result.elem.bytes(), &result.dims, (x.bytes(), side), (&mut out, &target));
    dense(result, out)
}

/// Writes all of `x` into `out` through `side`.
fn scatter(x: &Literal, side: &Side, out: &mut [u8]) {
    let source = Side { start: 0, strides: row_major(&x.shape().dims) };
    copy(x.elem().bytes(), &x.shape().dims, (x.bytes(), &source), (out, side));
}

pub(super) fn broadcast(dims: &[usize], x: &Literal, result: &Shape) -> Literal {
    let mut strides = vec![0; result.rank()];
    for (&dim, stride) in dims.iter().zip(row_major(&x.shape().dims)) {
        strides[dim] = stride;
    }
    gather(x, &Side { start: 0, strides }, result)
}

pub(super) fn transpose(perm: &[usize], x: &Literal, result: &Shape) -> Literal {
    let strides = row_major(&x.shape().dims);
    gather(x, &Side { start: 0, strides: perm.iter().map(|&p| strides[p]).collect() }, result)
}

fn offset(index: impl IntoIterator<Item = i64>, strides: &[i64]) -> i64 {
    index.into_iter().zip(strides).map(|(i, s)| i * s).sum()
}

pub(super) fn slice(start: &[i64], stride: &[i64], x: &Literal, result: &Shape) -> Literal {
    if result.elements() == 0 {
        return Literal::zeros(result.clone());
    }
    let strides = row_major(&x.shape().dims);
    let first = offset(start.iter().copied(), &strides);
    // A step beyond the array is never taken, but its product could overflow.
    let steps = strides.iter().zip(stride).map(|(a, b)| a.saturating_mul(*b));
    let steps = steps.zip(&result.dims).map(|(step, &size)| if size == 1 { 0 } else { step }).collect();
    gather(x, &Side { start: first, strides: steps }, result)
}

pub(super) fn reverse(dims: &[usize], x: &Literal, result: &Shape) -> Literal {
    if result.elements() == 0 {
        return Literal::zeros(result.clone());
    }
    let mut side = Side { start: 0, strides: row_major(&result.dims) };
    for &d in dims {
        side.start += side.strides[d] * (result.dims[d] as i64 - 1);
        side.strides[d] = -side.strides[d];
    }
    gather(x, &side, result)
}

/// The offset that scalar start indices name once they are clamped so that `window` fits into `array`.
fn clamped_start(starts: &[&Literal], array: &Shape, window: &[u64]) -> i64 {
    let clamped = starts.iter().zip(&array.dims).zip(window).map(|((start, &size), &taken)| {
        let index = with_native!(@int start.elem(), T => load::<T>(start).next().map(T::widen), None);
        index.unwrap_or(0).clamp(0, i128::from(size - taken)) as i64
    });
    offset(clamped, &row_major(&array.dims))
}

pub(super) fn dynamic_slice(x: &Literal, starts: &[&Literal], result: &Shape) -> Literal {
    let start = clamped_start(starts, x.shape(), &result.dims);
    gather(x, &Side { start, strides: row_major(&x.shape().dims) }, result)
}

pub(super) fn dynamic_update_slice(
    x: &Literal,
    update: &Literal,
    starts: &[&Literal],
    result: &Shape,
) -> Literal {
    let mut out = x.bytes().to_vec();
    let start = clamped_start(starts, result, &update.shape().dims);
    scatter(update, &Side { start, strides: row_major(&result.dims) }, &mut out);
    dense(result, out)
}

pub(super) fn pad(low: &[i64], interior: &[i64], x: &Literal, value: &Literal, result: &Shape) -> Literal {
    let mut out = value.bytes().repeat(result.elements() as usize);
    let (from_strides, to_strides) = (row_major(&x.shape().dims), row_major(&result.dims));
    let (mut from, mut to) =
        (Side { start: 0, strides: from_strides }, Side { start: 0, strides: to_strides });
    // Per dimension the operand elements low + i * step that land inside; negative padding cuts the others.
    let mut kept = Vec::with_capacity(result.rank());
    for d in 0..result.rank() {
        let (low, step) = (i128::from(low[d]), i128::from(interior[d]) + 1);
        let first = (-low).max(0).div_euclid(step) + i128::from((-low).max(0).rem_euclid(step) != 0);
        let last = (i128::from(result.dims[d]) - 1 - low).div_euclid(step);
        let last = last.min(i128::from(x.shape().dims[d]) - 1);
        if last < first {
            return dense(result, out);
        }
        kept.push((last - first + 1) as u64);
        from.start += from.strides[d] * first as i64;
        to.start += to.strides[d] * (low + first * step) as i64;
        // With one element kept no step is taken, and it may be of any size.
        to.strides[d] = if last == first { 0 } else { to.strides[d] * step as i64 };
    }
    copy(result.elem.bytes(), &kept, (x.bytes(), &from), (&mut out, &to));
    dense(result, out)
}

pub(super) fn concatenate(dim: usize, operands: &[&Literal], result: &Shape) -> Literal {
    let mut out = vec![0; result.bytes() as usize];
    let strides = row_major(&result.dims);
    let mut at = 0;
    for operand in operands {
        scatter(operand, &Side { start: at * strides[dim], strides: strides.clone() }, &mut out);
        at += operand.shape().dims[dim] as i64;
    }
    dense(result, out)
}
