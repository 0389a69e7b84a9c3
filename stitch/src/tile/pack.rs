//! Packing: a tensor re-arranged by the host so that every tile of it is dense. The blocks of all tiles of one
//! combination of segments stand together in the scratch segment, in tile order.

use super::axes::AxisId;
use super::segment::{AxisCut, Position, scaled};
use act_isa::{Affine, Space, View};

/// Alignment of a group of blocks in the scratch segment, in bytes.
const BLOCK_ALIGN: u64 = 64;

/// Where the tiles of one packed tensor lie.
pub struct Packed {
    view: View,
    space: Space,
    axes: Vec<AxisId>,
    /// Byte offset of every combination of segments, the last dimension's segment varying fastest.
    bases: Vec<u64>,
}

impl Packed {
    /// Reserves memory of segment `space` from `bytes` on. `None` when a size overflows.
    pub fn reserve(
        view: &View,
        axes: &[AxisId],
        cuts: &[AxisCut],
        space: Space,
        bytes: &mut u64,
    ) -> Option<Packed> {
        let mut packed = Packed { view: view.clone(), space, axes: axes.to_vec(), bases: Vec::new() };
        for combination in packed.combinations(cuts) {
            let base = bytes.checked_next_multiple_of(BLOCK_ALIGN)?;
            let mut size = view.elem.bytes();
            for (axis, &segment) in axes.iter().zip(&combination) {
                let segment = cuts[axis.0 as usize].segments.get(segment)?;
                size = size.checked_mul(segment.len)?.checked_mul(segment.trip)?;
            }
            packed.bases.push(base);
            *bytes = base.checked_add(size)?;
        }
        Some(packed)
    }

    /// All combinations of segment numbers, one per dimension.
    fn combinations(&self, cuts: &[AxisCut]) -> Vec<Vec<usize>> {
        self.axes.iter().fold(vec![Vec::new()], |done, axis| {
            let count = cuts[axis.0 as usize].segments.len();
            let extend = |prefix: Vec<usize>| {
                (0..count).map(move |s| prefix.iter().copied().chain([s]).collect::<Vec<usize>>())
            };
            done.into_iter().flat_map(extend).collect()
        })
    }

    /// Byte strides within a block and from tile to tile, per dimension.
    fn strides(&self, cuts: &[AxisCut], combination: &[usize]) -> Option<Vec<(i64, i64)>> {
        let segments: Vec<_> =
            self.axes.iter().zip(combination).map(|(a, &s)| cuts[a.0 as usize].segments[s]).collect();
        let mut step = i64::try_from(self.view.elem.bytes()).ok()?;
        let mut strides = vec![(0, 0); segments.len()];
        for (d, segment) in segments.iter().enumerate().rev() {
            strides[d].0 = step;
            step = step.checked_mul(i64::try_from(segment.len).ok()?)?;
        }
        for (d, segment) in segments.iter().enumerate().rev() {
            strides[d].1 = step;
            step = step.checked_mul(i64::try_from(segment.trip).ok()?)?;
        }
        Some(strides)
    }

    /// The tile at the given positions.
    pub fn tile(&self, cuts: &[AxisCut], positions: &[Position]) -> Option<View> {
        let at: Vec<usize> = self.axes.iter().map(|a| positions[a.0 as usize].segment).collect();
        let number = self.combinations(cuts).iter().position(|c| *c == at)?;
        let mut start = Affine::constant(i64::try_from(self.bases[number]).ok()?);
        let mut dims = Vec::new();
        for (axis, (inner, outer)) in self.axes.iter().zip(self.strides(cuts, &at)?) {
            let (cut, position) = (&cuts[axis.0 as usize], &positions[axis.0 as usize]);
            start = start.checked_add(&scaled(&position.tile, outer)?)?;
            if !cut.squeezed {
                dims.push((cut.segments[position.segment].len, inner));
            }
        }
        Some(View { space: self.space, elem: self.view.elem, dims, start })
    }

    /// The copies between the tensor and its blocks: (view of the tensor, view of the blocks) of equal lengths.
    pub fn copies(&self, cuts: &[AxisCut]) -> Option<Vec<(View, View)>> {
        let mut copies = Vec::new();
        for (combination, &base) in self.combinations(cuts).iter().zip(&self.bases) {
            let mut plain = View { dims: Vec::new(), ..self.view.clone() };
            let start = Affine::constant(i64::try_from(base).ok()?);
            let mut blocks = View { space: self.space, elem: self.view.elem, dims: Vec::new(), start };
            let strides = self.strides(cuts, combination)?;
            for (d, (axis, &s)) in self.axes.iter().zip(combination).enumerate() {
                let segment = cuts[axis.0 as usize].segments[s];
                let stride = self.view.dims[d].1;
                plain.start.c0 =
                    plain.start.c0.checked_add(stride.checked_mul(i64::try_from(segment.start).ok()?)?)?;
                let len = i64::try_from(segment.len).ok()?;
                plain.dims.extend([(segment.trip, stride.checked_mul(len)?), (segment.len, stride)]);
                blocks.dims.extend([(segment.trip, strides[d].1), (segment.len, strides[d].0)]);
            }
            copies.push((plain, blocks));
        }
        Some(copies)
    }
}
