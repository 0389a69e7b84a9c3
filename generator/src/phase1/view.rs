//! Algebra of strided views: what a data-movement operator makes of a strided tensor, and back. Knows no e-graph and no
//! accelerator.

use act_hlo::{ElemType, OpKind, Shape};
use act_isa::View;

/// The same view with stride 0 in dimensions of length 1, whose stride means nothing.
pub(crate) fn normalised(mut view: View) -> View {
    for dim in &mut view.dims {
        if dim.0 == 1 {
            dim.1 = 0;
        }
    }
    view
}

pub(crate) fn shape_of(view: &View) -> Shape {
    Shape::new(view.elem, view.dims.iter().map(|d| d.0).collect::<Vec<_>>())
}

/// The view of `op(x)` when `view` is x's and the result has shape `shape`; `None` when it is not strided.
pub(crate) fn through<C>(view: &View, op: &OpKind<i64, C>, shape: &Shape) -> Option<View> {
    let dims = match op {
        OpKind::Copy => return Some(view.clone()),
        OpKind::Reshape => reshaped(&view.dims, &shape.dims)?,
        OpKind::Transpose { perm } => {
            perm.iter().map(|&p| view.dims.get(p).copied()).collect::<Option<Vec<_>>>()?
        }
        OpKind::Broadcast { dims } => {
            let mut out: Vec<(u64, i64)> = shape.dims.iter().map(|&len| (len, 0)).collect();
            for (from, &to) in view.dims.iter().zip(dims) {
                out.get_mut(to)?.1 = from.1;
            }
            out
        }
        OpKind::BitcastConvert => return bitcast(view, shape.elem),
        OpKind::Slice { start, stride, .. } => {
            let mut sliced = view.clone();
            for (d, dim) in sliced.dims.iter_mut().enumerate() {
                let skipped = dim.1.checked_mul(*start.get(d)?)?;
                sliced.start.c0 = sliced.start.c0.checked_add(skipped)?;
                *dim = (*shape.dims.get(d)?, dim.1.checked_mul(*stride.get(d)?)?);
            }
            return Some(normalised(sliced));
        }
        OpKind::Reverse { dims } => {
            let mut reversed = view.clone();
            for &d in dims {
                let dim = reversed.dims.get_mut(d)?;
                let last = dim.1.checked_mul(i64::try_from(dim.0).ok()?.checked_sub(1)?)?;
                reversed.start.c0 = reversed.start.c0.checked_add(last)?;
                dim.1 = dim.1.checked_neg()?;
            }
            return Some(normalised(reversed));
        }
        _ => return None,
    };
    Some(normalised(View { dims, ..view.clone() }))
}

/// Where x must lie for `op(x)` to lie at `view`, for operators that lose nothing of x; `x` is x's shape.
pub(crate) fn back_through<C>(view: &View, op: &OpKind<i64, C>, x: &Shape) -> Option<View> {
    let dims = match op {
        OpKind::Copy => return Some(view.clone()),
        OpKind::Reshape => reshaped(&view.dims, &x.dims)?,
        OpKind::Transpose { perm } => {
            let mut dims = vec![(0, 0); perm.len()];
            for (dim, &p) in view.dims.iter().zip(perm) {
                *dims.get_mut(p)? = *dim;
            }
            dims
        }
        OpKind::BitcastConvert => return bitcast(view, x.elem),
        _ => return None,
    };
    Some(normalised(View { dims, ..view.clone() }))
}

/// The part of a view that operand `index` of a concatenation along `dim` occupies, given all operands' lengths there.
pub(crate) fn part(view: &View, dim: usize, lengths: &[u64], index: usize) -> Option<View> {
    let before: u64 = lengths.get(..index)?.iter().sum();
    let mut part = view.clone();
    let along = part.dims.get_mut(dim)?;
    let skipped = along.1.checked_mul(i64::try_from(before).ok()?)?;
    part.start.c0 = part.start.c0.checked_add(skipped)?;
    along.0 = *lengths.get(index)?;
    Some(normalised(part))
}

/// Bytes read as another element type: between widths the last dimension appears or vanishes.
fn bitcast(view: &View, elem: ElemType) -> Option<View> {
    let (from, to) = (view.elem.bytes(), elem.bytes());
    let mut cast = View { elem, ..view.clone() };
    if from > to {
        cast.dims.push((from / to, i64::try_from(to).ok()?));
    } else if from < to {
        let (len, stride) = cast.dims.pop()?;
        if len != to / from || stride != i64::try_from(from).ok()? {
            return None;
        }
    }
    Some(normalised(cast))
}

/// Strides of the row-major reshape of a strided tensor to `to`, when one exists without copying.
fn reshaped(from: &[(u64, i64)], to: &[u64]) -> Option<Vec<(u64, i64)>> {
    let elements = from.iter().try_fold(1u64, |n, d| n.checked_mul(d.0))?;
    if elements == 0 || to.iter().try_fold(1u64, |n, &len| n.checked_mul(len))? != elements {
        return None;
    }
    let mut source = from.iter().copied().filter(|d| d.0 != 1).collect::<Vec<_>>();
    source.reverse();
    let mut out = vec![(1u64, 0i64); to.len()];
    // From the innermost dimension outwards: `run` elements are left of the current source dimension, `step` apart.
    let mut sources = source.into_iter();
    let (mut run, mut step) = (1u64, 0i64);
    for (slot, &len) in out.iter_mut().zip(to).rev() {
        if len == 1 {
            continue;
        }
        if run == 1 {
            (run, step) = sources.next()?;
        }
        let stride = step;
        let mut reach = run;
        while reach % len != 0 {
            // The next source dimension outwards must continue where this one ends.
            let (more, outer) = sources.next()?;
            if outer != step.checked_mul(i64::try_from(reach).ok()?)? {
                return None;
            }
            reach = reach.checked_mul(more)?;
            if reach > elements {
                return None;
            }
        }
        *slot = (len, stride);
        run = reach / len;
        step = stride.checked_mul(i64::try_from(len).ok()?)?;
    }
    (run == 1 && sources.next().is_none()).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use act_isa::Space;

    fn view(dims: &[(u64, i64)]) -> View {
        View {
            space: Space::Operand(0),
            elem: ElemType::U8,
            dims: dims.to_vec(),
            start: act_isa::Affine::constant(0),
        }
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
        let bytes = view(&[(3, 100), (5, 8), (4, 1)]);
        let words = through(&bytes, &OpKind::<i64, ()>::BitcastConvert, &Shape::new(ElemType::F32, [3, 5]));
        let words = words.expect("four dense bytes make an f32");
        assert_eq!(words.dims, [(3, 100), (5, 8)]);
        let back = back_through(&words, &OpKind::<i64, ()>::BitcastConvert, &shape_of(&bytes));
        assert_eq!(back.as_ref(), Some(&bytes));
        let turn = OpKind::<i64, ()>::Transpose { perm: vec![2, 0, 1] };
        let turned = through(&bytes, &turn, &Shape::new(ElemType::U8, [4, 3, 5])).expect("a permutation");
        assert_eq!(turned.dims, [(4, 1), (3, 100), (5, 8)]);
        assert_eq!(back_through(&turned, &turn, &shape_of(&bytes)), Some(bytes));
    }

    #[test]
    fn a_slice_moves_the_start() {
        let x = view(&[(10, 100), (10, 1)]);
        let op = OpKind::<i64, ()>::Slice { start: vec![2, 3], limit: vec![8, 9], stride: vec![2, 1] };
        let cut = through(&x, &op, &Shape::new(ElemType::U8, [3, 6])).expect("strided");
        assert_eq!((cut.dims, cut.start.c0), (vec![(3, 200), (6, 1)], 203));
    }
}
