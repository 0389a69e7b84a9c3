//! The bytes that strided windows of d0 touch, as runs without gaps: whether two windows have one in common, whether
//! several cover another. Knows views only.

use act_isa::View;

/// A half-open range of byte offsets within a segment.
type Run = (i64, i64);

/// Whether two windows, whose loops move them alike, have a byte in common.
pub(super) fn share_bytes(a: &View, b: &View) -> bool {
    let (first, second) = (extent(a), extent(b));
    if first.1 <= second.0 || second.1 <= first.0 {
        return false;
    }
    // Sorted runs met in one walk: the one that ends first has met all it can.
    let (a, b) = (runs(a), runs(b));
    let (mut i, mut j) = (0, 0);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        if x.0 < y.1 && y.0 < x.1 {
            return true;
        }
        if x.1 <= y.1 { i += 1 } else { j += 1 }
    }
    false
}

/// Whether `windows` together have every byte of `window`.
pub(super) fn cover(windows: &[&View], window: &View) -> bool {
    if windows.contains(&window) {
        return true;
    }
    let (first, end) = extent(window);
    let near = windows.iter().filter(|w| extent(w).0 < end && first < extent(w).1);
    let known = joined(near.flat_map(|w| runs(w)).collect());
    let mut at = 0;
    runs(window).iter().all(|&(start, end)| {
        while known.get(at).is_some_and(|k| k.1 <= start) {
            at += 1;
        }
        known.get(at).is_some_and(|k| k.0 <= start && end <= k.1)
    })
}

/// The first byte of a window and the byte behind its last; an empty range for an empty window.
fn extent(view: &View) -> Run {
    let mut span = (view.start.c0, view.start.c0.saturating_add(bytes_of(view)));
    for &(len, stride) in &view.dims {
        let Some(last) = len.checked_sub(1) else { return (0, 0) };
        let reach = i64::try_from(last).unwrap_or(i64::MAX).saturating_mul(stride);
        span = (span.0.saturating_add(reach.min(0)), span.1.saturating_add(reach.max(0)));
    }
    span
}

/// The runs of a window, sorted and apart.
fn runs(view: &View) -> Vec<Run> {
    let mut dims: Vec<(i64, i64)> =
        view.dims.iter().map(|&(len, stride)| (i64::try_from(len).unwrap_or(i64::MAX), stride)).collect();
    dims.sort_by_key(|&(_, stride)| stride.unsigned_abs());
    let mut runs = vec![(view.start.c0, view.start.c0.saturating_add(bytes_of(view)))];
    for (len, stride) in dims {
        if let ([(start, end)], true) = (runs.as_mut_slice(), len > 0 && stride >= 0)
            && stride <= *end - *start
        {
            // Without gaps, however many steps.
            *end = end.saturating_add(stride.saturating_mul(len - 1));
            continue;
        }
        let shifted = |k: i64| {
            let by = stride.saturating_mul(k);
            runs.iter().map(move |&(start, end)| (start.saturating_add(by), end.saturating_add(by)))
        };
        runs = joined((0..len).flat_map(shifted).collect());
    }
    runs
}

fn bytes_of(view: &View) -> i64 {
    i64::try_from(view.elem.bytes()).unwrap_or(i64::MAX)
}

/// The same bytes as runs that are sorted and do not touch.
fn joined(mut runs: Vec<Run>) -> Vec<Run> {
    runs.sort_unstable();
    let mut joined: Vec<Run> = Vec::with_capacity(runs.len());
    for (start, end) in runs {
        match joined.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => joined.push((start, end)),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use act_hlo::ElemType;
    use act_hlo::random::SplitMix64;
    use act_isa::{Affine, Space};
    use std::collections::BTreeSet;

    fn view(start: i64, dims: &[(u64, i64)]) -> View {
        View {
            space: Space::Scratch,
            elem: ElemType::U8,
            dims: dims.to_vec(),
            start: Affine::constant(start),
        }
    }

    /// Byte by byte.
    fn bytes(view: &View) -> BTreeSet<i64> {
        let mut all = vec![view.start.c0];
        for &(len, stride) in &view.dims {
            all = all.iter().flat_map(|at| (0..len as i64).map(move |k| at + k * stride)).collect();
        }
        all.into_iter().collect()
    }

    #[test]
    fn halves_of_interleaved_rows_share_nothing_and_cover_the_whole() {
        let (left, right) = (view(0, &[(16, 32), (16, 1)]), view(16, &[(16, 32), (16, 1)]));
        let whole = view(0, &[(512, 1)]);
        assert!(!share_bytes(&left, &right) && share_bytes(&left, &whole));
        assert!(cover(&[&left, &right], &whole) && !cover(&[&left], &whole));
        assert!(share_bytes(&left, &view(31, &[(17, 32), (2, 1)])), "one byte of a row that wraps");
    }

    #[test]
    fn runs_are_the_bytes() {
        let mut rng = SplitMix64::new(3);
        let mut draw = || {
            let rank = rng.below(4);
            let dims: Vec<(u64, i64)> = (0..rank).map(|_| (rng.below(5), rng.below(13) as i64 - 3)).collect();
            view(rng.below(20) as i64, &dims)
        };
        let (mut shared, mut covered) = (0, 0);
        for _ in 0..4000 {
            let (a, b, c) = (draw(), draw(), draw());
            let (of_a, of_b) = (bytes(&a), bytes(&b));
            assert_eq!(share_bytes(&a, &b), !of_a.is_disjoint(&of_b), "{a:?} {b:?}");
            let union: BTreeSet<i64> = of_a.union(&of_b).copied().collect();
            assert_eq!(cover(&[&a, &b], &c), bytes(&c).is_subset(&union), "{a:?} {b:?} {c:?}");
            shared += u32::from(!of_a.is_disjoint(&of_b));
            covered += u32::from(bytes(&c).is_subset(&union) && !bytes(&c).is_empty());
        }
        assert!(shared > 400 && covered > 100, "{shared} {covered}");
    }
}
