//! Algebra of tensors in d0: what a data-movement operator makes of where a tensor lies, and back. A dimension is a
//! product of strided ones, so that tiled layouts, and what reshapes and transposes make of them, stay exact. Knows no
//! e-graph and no accelerator.

use act_hlo::{ElemType, OpKind, Shape};
use act_isa::{Affine, Space, View};

/// Length in elements and stride in bytes.
type Factor = (u64, i64);

/// Where a tensor lies in d0.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Layout {
    pub(crate) space: Space,
    pub(crate) elem: ElemType,
    /// Per dimension its factors, outermost first: none has length 1, and none continues where the next one ends, so
    /// that equal places are equal values. A dimension of length 1 has none.
    pub(crate) dims: Vec<Vec<Factor>>,
    /// Byte offset of the first element within the segment.
    pub(crate) start: Affine,
}

impl Layout {
    pub(crate) fn of(view: &View) -> Layout {
        let dims = view.dims.iter().map(|&factor| merged([factor])).collect();
        Layout { space: view.space, elem: view.elem, dims, start: view.start.clone() }
    }

    /// Dense and row-major from the first byte of a segment.
    pub(crate) fn row_major(space: Space, shape: &Shape) -> Layout {
        Layout::of(&View::row_major(space, shape))
    }

    /// The same as a strided tensor, when every dimension has one stride. Stride 0 where the length is 1.
    pub(crate) fn strided(&self) -> Option<View> {
        let dims = self.dims.iter().map(|factors| match factors.as_slice() {
            [] => Some((1, 0)),
            [factor] => Some(*factor),
            _ => None,
        });
        Some(View {
            space: self.space,
            elem: self.elem,
            dims: dims.collect::<Option<Vec<_>>>()?,
            start: self.start.clone(),
        })
    }

    /// Per dimension how many elements follow one another at one stride.
    pub(crate) fn runs(&self) -> Vec<u64> {
        self.dims.iter().map(|factors| factors.last().map_or(1, |&(len, _)| len)).collect()
    }

    /// Where `op(x)` lies when x lies here and the result has shape `shape`; `None` when it lies nowhere as a whole.
    pub(crate) fn through<C>(&self, op: &OpKind<i64, C>, shape: &Shape) -> Option<Layout> {
        let dims = match op {
            OpKind::Copy => return Some(self.clone()),
            OpKind::Reshape => regrouped(&self.dims, &shape.dims)?,
            OpKind::Transpose { perm } => {
                perm.iter().map(|&p| self.dims.get(p).cloned()).collect::<Option<Vec<_>>>()?
            }
            OpKind::Broadcast { dims } => {
                let mut out: Vec<Vec<Factor>> = shape.dims.iter().map(|&len| merged([(len, 0)])).collect();
                for (from, &to) in self.dims.iter().zip(dims) {
                    *out.get_mut(to)? = from.clone();
                }
                out
            }
            OpKind::BitcastConvert => return self.bitcast(shape.elem),
            OpKind::Slice { start, stride, .. } => {
                let mut sliced = self.clone();
                for (d, &len) in shape.dims.iter().enumerate() {
                    sliced.cut(d, u64::try_from(*start.get(d)?).ok()?, len, *stride.get(d)?)?;
                }
                return Some(sliced);
            }
            OpKind::Reverse { dims } => {
                let mut reversed = self.clone();
                for &d in dims {
                    for factor in reversed.dims.get_mut(d)? {
                        let last = factor.1.checked_mul(i64::try_from(factor.0).ok()?.checked_sub(1)?)?;
                        reversed.start.c0 = reversed.start.c0.checked_add(last)?;
                        factor.1 = factor.1.checked_neg()?;
                    }
                }
                return Some(reversed);
            }
            _ => return None,
        };
        Some(Layout { dims, ..self.clone() })
    }

    /// Where x must lie for `op(x)` to lie here, for operators that lose nothing of x; `x` is x's shape.
    pub(crate) fn back_through<C>(&self, op: &OpKind<i64, C>, x: &Shape) -> Option<Layout> {
        let dims = match op {
            OpKind::Copy => return Some(self.clone()),
            OpKind::Reshape => regrouped(&self.dims, &x.dims)?,
            OpKind::Transpose { perm } => {
                let mut dims = vec![Vec::new(); perm.len()];
                for (dim, &p) in self.dims.iter().zip(perm) {
                    dims.get_mut(p)?.clone_from(dim);
                }
                dims
            }
            OpKind::BitcastConvert => return self.bitcast(x.elem),
            _ => return None,
        };
        Some(Layout { dims, ..self.clone() })
    }

    /// The part that operand `index` of a concatenation along `dim` occupies, given all operands' lengths there.
    pub(crate) fn part(&self, dim: usize, lengths: &[u64], index: usize) -> Option<Layout> {
        let before: u64 = lengths.get(..index)?.iter().sum();
        let mut part = self.clone();
        part.cut(dim, before, *lengths.get(index)?, 1)?;
        Some(part)
    }

    /// Keeps `len` elements of a dimension from `start` on, every `step`-th.
    fn cut(&mut self, dim: usize, start: u64, len: u64, step: i64) -> Option<()> {
        let factors = self.dims.get(dim)?;
        let (skipped, kept) = match (factors.as_slice(), step) {
            ([(_, stride)], _) => {
                let skipped = stride.checked_mul(i64::try_from(start).ok()?)?;
                (skipped, vec![(len, stride.checked_mul(step)?)])
            }
            (factors, 1) => sliced(factors, start, len)?,
            (factors, _) if len == 1 => sliced(factors, start, 1)?,
            _ => return None,
        };
        self.start.c0 = self.start.c0.checked_add(skipped)?;
        self.dims[dim] = merged(kept);
        Some(())
    }

    /// Bytes read as another element type: between widths the last dimension appears or vanishes.
    fn bitcast(&self, elem: ElemType) -> Option<Layout> {
        let (from, to) = (self.elem.bytes(), elem.bytes());
        let mut cast = Layout { elem, ..self.clone() };
        if from > to {
            cast.dims.push(vec![(from / to, i64::try_from(to).ok()?)]);
        } else if from < to {
            let last = cast.dims.pop()?;
            if last != [(to / from, i64::try_from(from).ok()?)] {
                return None;
            }
        }
        Some(cast)
    }
}

/// Factors in normal form.
fn merged(factors: impl IntoIterator<Item = Factor>) -> Vec<Factor> {
    let mut out: Vec<Factor> = Vec::new();
    for (len, stride) in factors.into_iter().filter(|f| f.0 != 1) {
        match out.last_mut() {
            Some(outer)
                if i64::try_from(len).ok().and_then(|n| stride.checked_mul(n)) == Some(outer.1)
                    && outer.0.checked_mul(len).is_some() =>
            {
                *outer = (outer.0 * len, stride);
            }
            _ => out.push((len, stride)),
        }
    }
    out
}

/// `len` adjacent elements from `start` on of a product of factors: the bytes skipped and the factors left. `None` when
/// they are no product.
fn sliced(factors: &[Factor], start: u64, len: u64) -> Option<(i64, Vec<Factor>)> {
    let Some((&(_, stride), rest)) = factors.split_first() else {
        return (start == 0 && len == 1).then(|| (0, Vec::new()));
    };
    let inner: u64 = rest.iter().map(|f| f.0).product();
    let skip = |n: u64| stride.checked_mul(i64::try_from(n).ok()?);
    if inner == 0 {
        return None;
    }
    if start.is_multiple_of(inner) && len.is_multiple_of(inner) {
        let kept = std::iter::once((len / inner, stride)).chain(rest.iter().copied());
        return Some((skip(start / inner)?, kept.collect()));
    }
    if start / inner != (start + len).checked_sub(1)? / inner {
        return None;
    }
    let (skipped, kept) = sliced(rest, start % inner, len)?;
    Some((skip(start / inner)?.checked_add(skipped)?, kept))
}

/// The row-major reshape to `to`; `None` when a length cuts through a factor.
fn regrouped(from: &[Vec<Factor>], to: &[u64]) -> Option<Vec<Vec<Factor>>> {
    let elements = from.iter().flatten().try_fold(1u64, |n, f| n.checked_mul(f.0))?;
    if elements == 0 || to.iter().try_fold(1u64, |n, &len| n.checked_mul(len))? != elements {
        return None;
    }
    let mut left = merged(from.iter().flatten().copied());
    let mut out = vec![Vec::new(); to.len()];
    for (slot, &len) in out.iter_mut().zip(to).rev() {
        let mut wanted = len;
        let mut taken = Vec::new();
        while wanted != 1 {
            let (run, stride) = left.pop()?;
            if wanted.is_multiple_of(run) {
                taken.push((run, stride));
                wanted /= run;
            } else if run.is_multiple_of(wanted) {
                taken.push((wanted, stride));
                left.push((run / wanted, stride.checked_mul(i64::try_from(wanted).ok()?)?));
                wanted = 1;
            } else {
                return None;
            }
        }
        *slot = merged(taken.into_iter().rev());
    }
    left.is_empty().then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use act_hlo::{Literal, eval_op};

    fn layout(dims: &[Factor]) -> Layout {
        Layout::of(&View {
            space: Space::Operand(0),
            elem: ElemType::U8,
            dims: dims.to_vec(),
            start: Affine::constant(0),
        })
    }

    fn reshaped(from: &[Factor], to: &[u64]) -> Option<Vec<Factor>> {
        let shape = Shape::new(ElemType::U8, to);
        let moved = layout(from).through(&OpKind::<i64, ()>::Reshape, &shape)?;
        moved.strided().map(|view| view.dims)
    }

    #[test]
    fn reshape_splits_and_merges_without_copying_only_where_strides_allow() {
        assert_eq!(reshaped(&[(6, 10), (8, 1)], &[2, 3, 8]), Some(vec![(2, 30), (3, 10), (8, 1)]));
        assert_eq!(reshaped(&[(6, 10), (8, 1)], &[6, 2, 4]), Some(vec![(6, 10), (2, 4), (4, 1)]));
        assert_eq!(reshaped(&[(6, 10), (8, 1)], &[48]), None);
        assert_eq!(reshaped(&[(6, 8), (8, 1)], &[48]), Some(vec![(48, 1)]));
        assert_eq!(reshaped(&[(6, 8), (8, 1)], &[4, 12]), Some(vec![(4, 12), (12, 1)]));
        assert_eq!(reshaped(&[(4, 0), (8, 1)], &[32]), None);
        assert_eq!(reshaped(&[(1, 7), (8, 3)], &[8, 1, 1]), Some(vec![(8, 3), (1, 0), (1, 0)]));
        assert_eq!(reshaped(&[(6, 8), (8, 1)], &[5]), None);
    }

    #[test]
    fn pulling_back_undoes_pushing_through() {
        let bytes = layout(&[(3, 100), (5, 8), (4, 1)]);
        let words = bytes.through(&OpKind::<i64, ()>::BitcastConvert, &Shape::new(ElemType::F32, [3, 5]));
        let words = words.expect("four dense bytes make an f32");
        assert_eq!(words.dims, [[(3, 100)], [(5, 8)]]);
        let shape = Shape::new(ElemType::U8, [3, 5, 4]);
        assert_eq!(words.back_through(&OpKind::<i64, ()>::BitcastConvert, &shape).as_ref(), Some(&bytes));
        let turn = OpKind::<i64, ()>::Transpose { perm: vec![2, 0, 1] };
        let turned = bytes.through(&turn, &Shape::new(ElemType::U8, [4, 3, 5])).expect("a permutation");
        assert_eq!(turned.dims, [[(4, 1)], [(3, 100)], [(5, 8)]]);
        assert_eq!(turned.back_through(&turn, &shape), Some(bytes));
    }

    #[test]
    fn a_slice_moves_the_start() {
        let x = layout(&[(10, 100), (10, 1)]);
        let op = OpKind::<i64, ()>::Slice { start: vec![2, 3], limit: vec![8, 9], stride: vec![2, 1] };
        let cut = x.through(&op, &Shape::new(ElemType::U8, [3, 6])).expect("strided");
        assert_eq!((cut.dims, cut.start.c0), (vec![vec![(3, 200)], vec![(6, 1)]], 203));
    }

    /// The bytes at a layout, in the tensor's order.
    fn gather(memory: &[u8], layout: &Layout) -> Vec<u8> {
        let mut offsets = vec![layout.start.c0];
        for &(len, stride) in layout.dims.iter().flatten() {
            offsets = offsets.iter().flat_map(|&o| (0..len as i64).map(move |i| o + i * stride)).collect();
        }
        offsets.into_iter().map(|o| memory[o as usize]).collect()
    }

    #[test]
    fn chains_over_tiled_tensors_lie_where_the_evaluator_says() {
        // {T(16,4)} of u8[32, 64]: tiles of 16 rows by 4 columns.
        let memory: Vec<u8> = (0..2048u32).map(|i| (i * 7 + i / 256) as u8).collect();
        let mut value =
            Literal::from_bytes(Shape::new(ElemType::U8, [2, 16, 16, 4]), memory.clone()).unwrap();
        let mut at = Layout::row_major(Space::Operand(0), value.shape());
        let slice = |start: [i64; 2], limit: [i64; 2]| OpKind::Slice {
            start: start.to_vec(),
            limit: limit.to_vec(),
            stride: vec![1, 1],
        };
        let steps: [(OpKind<i64, Literal>, &[u64]); 7] = [
            (OpKind::Transpose { perm: vec![0, 2, 1, 3] }, &[2, 16, 16, 4]),
            (OpKind::Reshape, &[32, 64]),
            (OpKind::Transpose { perm: vec![1, 0] }, &[64, 32]),
            (slice([0, 16], [64, 32]), &[64, 16]),
            (slice([8, 0], [40, 16]), &[32, 16]),
            (OpKind::Reshape, &[8, 4, 16]),
            (OpKind::Transpose { perm: vec![0, 2, 1] }, &[8, 16, 4]),
        ];
        for (op, dims) in steps {
            let shape = Shape::new(ElemType::U8, dims);
            value = eval_op(&op, &[&value], &shape).unwrap();
            at = at.through(&op, &shape).unwrap_or_else(|| panic!("{op:?} is no copy"));
            assert_eq!(gather(&memory, &at), value.bytes(), "{op:?}");
        }
        assert_eq!(at.strided().map(|v| v.dims), Some(vec![(8, 64), (16, 4), (4, 1)]));
        // A slice within the second tile begins where that tile does, and four elements on.
        assert_eq!(sliced(&[(2, 1000), (16, 4)], 20, 8), Some((1016, vec![(8, 4)])));
        // A slice across a tile's edge that is no product of factors.
        assert_eq!(sliced(&[(2, 1000), (16, 4)], 8, 16), None);
    }
}
