//! Packing: a tensor re-arranged by the host so that every tile of it is dense and, where tiles are padded, whole. The blocks of all tiles of one
//! combination of segments stand together in the scratch segment, in tile order.

use super::axes::AxisId;
use super::grouped::Group;
use super::segment::{AxisCut, Position};
use act_isa::{Affine, Space, View};

/// Alignment of a group of blocks in the scratch segment, in bytes.
const BLOCK_ALIGN: u64 = 64;

/// Where the tiles of one packed tensor lie.
#[derive(Clone)]
pub struct Packed {
    view: View,
    space: Space,
    axes: Vec<AxisId>,
    /// Within a block, along a dimension of the view.
    group: Option<Group>,
    /// Byte offset of every combination of segments, the last dimension's segment varying fastest.
    bases: Vec<u64>,
}

impl Packed {
    /// Reserves memory of segment `space` from `bytes` on. `None` when a size overflows.
    pub fn reserve(
        view: &View,
        axes: &[AxisId],
        cuts: &[AxisCut],
        group: Option<Group>,
        space: Space,
        bytes: &mut u64,
    ) -> Option<Packed> {
        let mut packed = Packed { view: view.clone(), space, axes: axes.to_vec(), group, bases: Vec::new() };
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

    /// Whether these are the blocks of `view` cut along `axes`.
    pub fn holds(&self, view: &View, axes: &[AxisId], group: Option<Group>) -> bool {
        self.view == *view && self.axes == axes && self.group == group
    }

    /// How the tiles, whose shapes lack the squeezed dimensions, are kept.
    pub fn tile_group(&self, cuts: &[AxisCut]) -> Option<Group> {
        let group = self.group?;
        let before = self.axes[..group.dim].iter().filter(|axis| !cuts[axis.0 as usize].squeezed);
        Some(Group { dim: before.count(), ..group })
    }

    /// Elements of dimension `d` that stand together behind all other dimensions.
    fn together(&self, d: usize) -> u64 {
        self.group.filter(|group| group.dim == d).map_or(1, |group| group.size)
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

    /// Byte strides within a block, from group to group where elements stand in groups, and from tile to tile, per
    /// dimension.
    fn strides(&self, cuts: &[AxisCut], combination: &[usize]) -> Option<Vec<(i64, i64)>> {
        let segments: Vec<_> =
            self.axes.iter().zip(combination).map(|(a, &s)| cuts[a.0 as usize].segments[s]).collect();
        let group = self.group.map_or(1, |group| group.size);
        let mut step = i64::try_from(self.view.elem.bytes().checked_mul(group)?).ok()?;
        let mut strides = vec![(0, 0); segments.len()];
        for (d, segment) in segments.iter().enumerate().rev() {
            strides[d].0 = step;
            step = step.checked_mul(i64::try_from(segment.len / self.together(d)).ok()?)?;
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
        let strides = self.strides(cuts, &at)?;
        for (d, (axis, (inner, outer))) in self.axes.iter().zip(strides).enumerate() {
            let (cut, position) = (&cuts[axis.0 as usize], &positions[axis.0 as usize]);
            start = start.checked_add(&position.tile.checked_scale(outer)?)?;
            if !cut.squeezed {
                dims.push((cut.segments[position.segment].len / self.together(d), inner));
            }
        }
        if let Some(group) = self.group {
            dims.push((group.size, i64::try_from(self.view.elem.bytes()).ok()?));
        }
        Some(View { space: self.space, elem: self.view.elem, dims, start })
    }

    /// The copies between the tensor and its blocks: (view of the tensor, view of the blocks) of equal lengths.
    pub fn copies(&self, cuts: &[AxisCut]) -> Option<Vec<(View, View)>> {
        let mut copies = Vec::new();
        for (combination, &base) in self.combinations(cuts).iter().zip(&self.bases) {
            let plain = View { dims: Vec::new(), ..self.view.clone() };
            let start = Affine::constant(i64::try_from(base).ok()?);
            let blocks = View { space: self.space, elem: self.view.elem, dims: Vec::new(), start };
            let strides = self.strides(cuts, combination)?;
            let mut pairs = vec![(plain, blocks)];
            for (d, (axis, &s)) in self.axes.iter().zip(combination).enumerate() {
                let cut = &cuts[axis.0 as usize];
                let mut next = Vec::new();
                for (first, part) in cut.existing(cut.segments[s]) {
                    for (plain, blocks) in &pairs {
                        let (mut plain, mut blocks) = (plain.clone(), blocks.clone());
                        let stride = self.view.dims[d].1;
                        let ahead = |count: u64, step: i64| i64::try_from(count).ok()?.checked_mul(step);
                        plain.start.c0 = plain.start.c0.checked_add(ahead(part.start, stride)?)?;
                        blocks.start.c0 = blocks.start.c0.checked_add(ahead(first, strides[d].1)?)?;
                        plain.dims.push((part.trip, ahead(part.len, stride)?));
                        blocks.dims.push((part.trip, strides[d].1));
                        let together = self.together(d);
                        let (whole, rest) = (part.len / together, part.len % together);
                        let width = i64::try_from(self.view.elem.bytes()).ok()?;
                        // Whole groups, then what a padded tile has of its last one.
                        for (first, groups, size) in [(0, whole, together), (whole, 1, rest)] {
                            if groups == 0 || size == 0 {
                                continue;
                            }
                            let (mut plain, mut blocks) = (plain.clone(), blocks.clone());
                            let step = ahead(together, stride)?;
                            plain.start.c0 = plain.start.c0.checked_add(ahead(first, step)?)?;
                            blocks.start.c0 = blocks.start.c0.checked_add(ahead(first, strides[d].0)?)?;
                            plain.dims.push((groups, step));
                            blocks.dims.push((groups, strides[d].0));
                            if together > 1 {
                                plain.dims.push((size, stride));
                                blocks.dims.push((size, width));
                            }
                            next.push((plain, blocks));
                        }
                    }
                }
                pairs = next;
            }
            copies.extend(pairs);
        }
        Some(copies)
    }

    /// Copies of zeros, one element at `zero`, over all blocks that have padding.
    pub fn zeros(&self, cuts: &[AxisCut], zero: &View) -> Option<Vec<(View, View)>> {
        let mut copies = Vec::new();
        for (combination, &base) in self.combinations(cuts).iter().zip(&self.bases) {
            let segments =
                self.axes.iter().zip(combination).map(|(a, &s)| (a, cuts[a.0 as usize].segments[s]));
            let (mut elements, mut padded) = (1u64, false);
            for (axis, segment) in segments {
                let all = segment.len.checked_mul(segment.trip)?;
                elements = elements.checked_mul(all)?;
                padded |= segment.start.checked_add(all)? > cuts[axis.0 as usize].size;
            }
            if padded {
                let width = i64::try_from(zero.elem.bytes()).ok()?;
                let from = View { dims: vec![(elements, 0)], ..zero.clone() };
                let start = Affine::constant(i64::try_from(base).ok()?);
                let dims = vec![(elements, width)];
                copies.push((from, View { space: self.space, elem: zero.elem, dims, start }));
            }
        }
        Some(copies)
    }
}
