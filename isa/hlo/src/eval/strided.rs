//! Strided copies between dense arrays: what every data-movement operator comes down to.

/// One side of a copy: where element [0, ..] stands and the step along each dimension, in elements.
pub(super) struct Side {
    pub(super) start: i64,
    pub(super) strides: Vec<i64>,
}

/// Row-major strides of an array of these sizes.
pub(super) fn row_major(dims: &[u64]) -> Vec<i64> {
    let mut strides = vec![1; dims.len()];
    for i in (1..dims.len()).rev() {
        strides[i - 1] = strides[i] * dims[i] as i64;
    }
    strides
}

/// Calls `visit(from, to)` with the element offsets of both sides for each index of `dims`, in row-major order.
pub(super) fn for_each(dims: &[u64], from: &Side, to: &Side, mut visit: impl FnMut(usize, usize)) {
    if dims.contains(&0) {
        return;
    }
    let (inner, outer) = dims.split_last().map_or((1, dims), |(&inner, outer)| (inner, outer));
    let inner_step = |side: &Side| if dims.is_empty() { 0 } else { side.strides[outer.len()] };
    let (from_step, to_step) = (inner_step(from), inner_step(to));
    let mut index = vec![0u64; outer.len()];
    let (mut from_at, mut to_at) = (from.start, to.start);
    loop {
        for i in 0..inner as i64 {
            visit((from_at + i * from_step) as usize, (to_at + i * to_step) as usize);
        }
        let mut d = outer.len();
        loop {
            if d == 0 {
                return;
            }
            d -= 1;
            index[d] += 1;
            from_at += from.strides[d];
            to_at += to.strides[d];
            if index[d] < outer[d] {
                break;
            }
            from_at -= from.strides[d] * index[d] as i64;
            to_at -= to.strides[d] * index[d] as i64;
            index[d] = 0;
        }
    }
}

/// Copies the elements of `width` bytes that `dims` spans.
pub(super) fn copy(width: u64, dims: &[u64], source: (&[u8], &Side), target: (&mut [u8], &Side)) {
    fn typed<const W: usize>(dims: &[u64], source: (&[u8], &Side), target: (&mut [u8], &Side)) {
        let ((bytes, from), (out, to)) = (source, target);
        for_each(dims, from, to, |from, to| {
            out[to * W..][..W].copy_from_slice(&bytes[from * W..][..W]);
        });
    }
    match width {
        1 => typed::<1>(dims, source, target),
        2 => typed::<2>(dims, source, target),
        4 => typed::<4>(dims, source, target),
        8 => typed::<8>(dims, source, target),
        _ => typed::<16>(dims, source, target),
    }
}
