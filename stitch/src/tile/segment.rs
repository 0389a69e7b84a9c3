//! How an axis is cut: a run of whole tiles and a ragged rest, and where in them a kernel stands.

use super::cut::TileExtent;
use act_isa::Affine;

/// A run of equal tiles along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// First element.
    pub start: u64,
    /// Elements per tile.
    pub len: u64,
    /// Number of tiles.
    pub trip: u64,
}

/// The cut of one axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AxisCut {
    pub segments: Vec<Segment>,
    pub squeezed: bool,
    /// Elements that the axis has; its last tile may reach beyond them, where memory holds zeros.
    pub size: u64,
}

impl AxisCut {
    /// One tile that is the whole axis.
    pub fn whole(size: u64) -> AxisCut {
        AxisCut { segments: vec![Segment { start: 0, len: size, trip: 1 }], squeezed: false, size }
    }

    /// Tiles of `tile` elements and what is left: whole multiples of `grain`, then the rest. Both are at least 1.
    pub fn tiles(size: u64, tile: u64, grain: u64, squeezed: bool) -> AxisCut {
        let (trip, left) = (size / tile, size % tile);
        let (blocks, rest) = (left / grain * grain, left % grain);
        let parts = [(0, tile, trip), (size - left, blocks, 1), (size - rest, rest, 1)];
        let segments = parts.into_iter().filter(|&(_, len, trip)| len > 0 && trip > 0);
        let segments = segments.map(|(start, len, trip)| Segment { start, len, trip }).collect();
        AxisCut { segments, squeezed, size }
    }

    /// Whole tiles of `tile` elements (at least 1), the last one padded.
    pub fn padded(size: u64, tile: u64) -> AxisCut {
        let segment = Segment { start: 0, len: tile, trip: size.div_ceil(tile) };
        AxisCut { segments: vec![segment], squeezed: false, size }
    }

    /// The elements of a segment that exist: the whole tiles and what a padded tile has of them, each as (first tile,
    /// segment).
    pub fn existing(&self, segment: Segment) -> Vec<(u64, Segment)> {
        let here = self.size.saturating_sub(segment.start).min(segment.len.saturating_mul(segment.trip));
        let (whole, rest) = (here / segment.len.max(1), here % segment.len.max(1));
        let mut parts = Vec::new();
        if whole > 0 {
            parts.push((0, Segment { trip: whole, ..segment }));
        }
        if rest > 0 {
            parts.push((whole, Segment { start: segment.start + whole * segment.len, len: rest, trip: 1 }));
        }
        parts
    }
}

/// A tile of an axis: the segment and the number of the tile within it, affine in the loops around.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    pub segment: usize,
    pub tile: Affine,
}

impl Position {
    pub fn first() -> Position {
        Position { segment: 0, tile: Affine::constant(0) }
    }

    /// The elements covered; `None` when an offset overflows.
    pub fn extent(&self, cut: &AxisCut) -> Option<TileExtent> {
        let segment = cut.segments.get(self.segment)?;
        let mut offset = self.tile.checked_scale(i64::try_from(segment.len).ok()?)?;
        offset.c0 = offset.c0.checked_add(i64::try_from(segment.start).ok()?)?;
        Some(TileExtent { len: segment.len, squeezed: cut.squeezed, offset })
    }
}
