//! Reduce and dot. Sums run with ascending indices of the contracted dimensions (row-major, in the order in
//! which the operator names them), without fused multiply-add. 16-bit floats accumulate in f32 and round once
//! at the end; integers accumulate in the result type, wrapping.

use super::element::{Bool, Element, load, store, with_native};
use super::float::{Float, Wide};
use super::integer::{Integer, bool_binary};
use super::strided::{Side, for_each, row_major};
use super::{EvalError, unsupported};
use crate::{Binary, DotDims, ElemType, Literal, Op, Shape};

/// The elements of `x` with its dimensions in another order, translated.
fn arranged<T: Element, A: Copy>(x: &Literal, order: &[usize], zero: A, f: impl Fn(T) -> A) -> Vec<A> {
    let strides = row_major(&x.shape().dims);
    let dims: Vec<u64> = order.iter().map(|&d| x.shape().dims[d]).collect();
    let from = Side { start: 0, strides: order.iter().map(|&d| strides[d]).collect() };
    let to = Side { start: 0, strides: row_major(&dims) };
    let width = x.elem().bytes() as usize;
    let mut out = vec![zero; x.shape().elements() as usize];
    for_each(&dims, &from, &to, |from, to| out[to] = f(T::load(&x.bytes()[from * width..][..width])));
    out
}

pub(super) fn reduce(
    dims: &[usize],
    combiner: Binary,
    x: &Literal,
    init: &Literal,
    result: &Shape,
) -> Result<Literal, EvalError> {
    let refuse = || unsupported(&Op::Reduce { dims: dims.to_vec(), combiner }, x.elem());
    if x.elem() == ElemType::Pred {
        let f = bool_binary(combiner).ok_or_else(refuse)?;
        return Ok(folded(dims, (x, init), result, |v: Bool| v, f, |v| v));
    }
    with_native!(@int x.elem(), T => {
        let f = T::binary(combiner).ok_or_else(refuse)?;
        Ok(folded(dims, (x, init), result, |v: T| v, f, |v| v))
    }, with_native!(@float x.elem(), T => {
        let f = <T as Float>::Wide::binary(combiner).ok_or_else(refuse)?;
        Ok(folded(dims, (x, init), result, T::widen, f, T::narrow))
    }, Err(refuse())))
}

fn folded<T: Element, A: Copy>(
    dims: &[usize],
    (x, init): (&Literal, &Literal),
    result: &Shape,
    widen: impl Fn(T) -> A,
    combine: fn(A, A) -> A,
    narrow: impl Fn(A) -> T,
) -> Literal {
    let Some(init) = load::<T>(init).next().map(&widen) else {
        return Literal::zeros(result.clone());
    };
    let rank = x.shape().rank();
    let order: Vec<usize> =
        (0..rank).filter(|d| !dims.contains(d)).chain((0..rank).filter(|d| dims.contains(d))).collect();
    let run: u64 = dims.iter().map(|&d| x.shape().dims[d]).product();
    let values = arranged(x, &order, init, &widen);
    store(
        result,
        (0..result.elements() as usize).map(|i| {
            let group = &values[i * run as usize..][..run as usize];
            narrow(group.iter().fold(init, |sum, &v| combine(sum, v)))
        }),
    )
}

pub(super) fn dot(
    dims: &DotDims,
    lhs: &Literal,
    rhs: &Literal,
    result: &Shape,
) -> Result<Literal, EvalError> {
    let refuse = || unsupported(&Op::Dot(dims.clone()), result.elem);
    let plan = DotPlan::new(dims, lhs.shape(), rhs.shape());
    if result.elem == ElemType::Pred {
        let [a, b] = plan.operands([lhs, rhs], |x, order| arranged(x, order, false, |v: Bool| v.0));
        return Ok(store(
            result,
            plan.product(&a, &b, false, each(|s, a, b| s | (a & b))).into_iter().map(Bool),
        ));
    }
    if result.elem.is_int() {
        return with_native!(@int result.elem, R => {
            let zero = R::wrap(0);
            let [a, b] = plan.operands([lhs, rhs], |x, order| with_native!(@int x.elem(), T => {
                arranged(x, order, zero, |v: T| R::wrap(v.widen()))
            }, Vec::new()));
            Ok(store(result, plan.product(&a, &b, zero, each(|s, a: R, b| a.multiply_add(b, s))).into_iter()))
        }, Err(refuse()));
    }
    let in_f64 = [lhs.elem(), rhs.elem(), result.elem].contains(&ElemType::F64);
    with_native!(@float result.elem, R => Ok(if in_f64 {
        let sums = plan.float_product::<f64>(lhs, rhs);
        store(result, sums.into_iter().map(|v| R::narrow(<R as Float>::Wide::from_f64(v))))
    } else {
        let sums = plan.float_product::<f32>(lhs, rhs);
        store(result, sums.into_iter().map(|v| R::narrow(<R as Float>::Wide::from_f64(v.to_f64()))))
    }), Err(refuse()))
}

/// A step over a row of sums from one over a single sum.
fn each<A: Copy>(f: impl Fn(A, A, A) -> A) -> impl FnMut(&mut [A], A, &[A]) {
    move |sums, a, line| sums.iter_mut().zip(line).for_each(|(sum, &b)| *sum = f(*sum, a, b))
}

/// A dot as `batch` products of [m,k] by [k,n], and the dimension orders that bring the operands there.
struct DotPlan {
    batch: usize,
    m: usize,
    k: usize,
    n: usize,
    lhs_order: Vec<usize>,
    rhs_order: Vec<usize>,
}

impl DotPlan {
    fn new(dims: &DotDims, lhs: &Shape, rhs: &Shape) -> DotPlan {
        let free = |shape: &Shape, batch: &[usize], contracting: &[usize]| -> Vec<usize> {
            (0..shape.rank()).filter(|d| !batch.contains(d) && !contracting.contains(d)).collect()
        };
        let size = |shape: &Shape, dims: &[usize]| dims.iter().map(|&d| shape.dims[d] as usize).product();
        let lhs_free = free(lhs, &dims.lhs_batch, &dims.lhs_contracting);
        let rhs_free = free(rhs, &dims.rhs_batch, &dims.rhs_contracting);
        DotPlan {
            batch: size(lhs, &dims.lhs_batch),
            m: size(lhs, &lhs_free),
            k: size(lhs, &dims.lhs_contracting),
            n: size(rhs, &rhs_free),
            lhs_order: [&dims.lhs_batch[..], &lhs_free, &dims.lhs_contracting].concat(),
            rhs_order: [&dims.rhs_batch[..], &dims.rhs_contracting, &rhs_free].concat(),
        }
    }

    fn operands<A>(
        &self,
        [lhs, rhs]: [&Literal; 2],
        arrange: impl Fn(&Literal, &[usize]) -> Vec<A>,
    ) -> [Vec<A>; 2] {
        [arrange(lhs, &self.lhs_order), arrange(rhs, &self.rhs_order)]
    }

    fn float_product<W: Wide>(&self, lhs: &Literal, rhs: &Literal) -> Vec<W> {
        let [a, b] = self.operands([lhs, rhs], |x, order| {
            with_native!(@float x.elem(), T => {
                arranged(x, order, W::ZERO, |v: T| W::from_f64(v.widen().to_f64()).flush())
            }, Vec::new())
        });
        let mut next = vec![W::ZERO; self.n];
        self.product(&a, &b, W::ZERO, |sums, a, line| {
            // Where nothing comes near the denormals, plain arithmetic is the flushed one, and fast.
            let mut near = false;
            for ((next, &sum), &b) in next.iter_mut().zip(&*sums).zip(line) {
                let product = a * b;
                *next = sum + product;
                near |= product.is_nearly_denormal() | next.is_nearly_denormal();
            }
            if near {
                sums.iter_mut().zip(line).for_each(|(sum, &b)| *sum = sum.plus(a.times(b)));
            } else {
                sums.copy_from_slice(&next);
            }
        })
    }

    /// All results in row-major order. `step(sums, a, line)` adds a times each of `line` to the sums of one
    /// row: that order keeps k ascending for each result and the memory accesses contiguous.
    fn product<A: Copy>(
        &self,
        lhs: &[A],
        rhs: &[A],
        zero: A,
        mut step: impl FnMut(&mut [A], A, &[A]),
    ) -> Vec<A> {
        let DotPlan { batch, m, k, n, .. } = *self;
        let mut out = vec![zero; batch * m * n];
        if out.is_empty() {
            return out;
        }
        for (row, sums) in out.chunks_exact_mut(n).enumerate() {
            for p in 0..k {
                step(sums, lhs[row * k + p], &rhs[(row / m * k + p) * n..][..n]);
            }
        }
        out
    }
}
