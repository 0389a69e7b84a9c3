//! Tile choices with several of an instruction's tiles in one: loads and stores that move more than one instruction
//! computes with are fewer then. Made from a choice that has code; which is cheaper, the cost model says.

use crate::tile::granularity::{dot_granularities, transfer_reach};
use crate::tile::nest::AxisTile;
use crate::tile::{Axes, AxisId, Blocks, ContractionSplit, NormalRegion, TileChoice};
use act_hlo::Op;
use act_isa::Isa;

/// Tiles of one instruction along an axis of a larger one, at most: compiling takes as long as there are instructions.
const MOST_TOGETHER: u64 = 4;

/// Choices with larger tiles than `choice`, the largest first; at most three.
pub fn larger_tiles(region: &NormalRegion, axes: &Axes, isa: &Isa, choice: &TileChoice) -> Vec<TileChoice> {
    let reach = transfer_reach(isa);
    let Some(product) = Product::of(region, axes, choice) else { return Vec::new() };
    let times = |tile: Option<(AxisId, u64)>| {
        let (axis, len) = tile?;
        let most = (reach / len.max(1)).min(axes.axis(axis).size.div_ceil(len.max(1))).min(MOST_TOGETHER);
        (most > 1).then_some((axis, len, most))
    };
    let (columns, depth) = (times(product.columns), times(product.depth));
    let mut found: Vec<TileChoice> = Vec::new();
    for (columns, depth) in [(columns, depth), (columns, None), (None, depth)] {
        if let Some(larger) = enlarged(isa, choice, product.rows, columns, depth)
            && larger != *choice
            && !found.contains(&larger)
        {
            found.push(larger);
        }
    }
    found
}

/// The tile of the only product of a region.
struct Product {
    rows: u64,
    /// Axis and length along the columns and along what is contracted, where tiles cut these.
    columns: Option<(AxisId, u64)>,
    depth: Option<(AxisId, u64)>,
}

impl Product {
    /// `None` where tiles of the product do not have rows and columns and nothing else.
    fn of(region: &NormalRegion, axes: &Axes, choice: &TileChoice) -> Option<Product> {
        let graph = &region.graph;
        let mut dots = graph.ids().filter(|&id| matches!(graph.node(id).op, Op::Dot(_)));
        let (dot, None) = (dots.next()?, dots.next()) else { return None };
        let kept = |axis: &&AxisId| choice.tiles.get(axis).is_none_or(|tile| !tile.squeezed);
        let kept: Vec<AxisId> = axes.of(dot).iter().filter(kept).copied().collect();
        let [rows, columns] = kept[..] else { return None };
        let right = axes.of(graph.node(dot).operands[1]);
        let cut =
            |axis: AxisId| choice.tiles.get(&axis).filter(|tile| !tile.padded).map(|tile| (axis, tile.len));
        let split = choice.contraction.as_ref().filter(|split| split.dot == dot);
        let depth =
            split.and_then(|split| split.axes.last()).filter(|(_, tile)| !tile.squeezed && !tile.padded);
        Some(Product {
            rows: choice.tiles.get(&rows).map_or(axes.axis(rows).size, |tile| tile.len),
            columns: cut(columns).filter(|_| right.contains(&columns)),
            depth: depth.map(|&(axis, tile)| (axis, tile.len)),
        })
    }
}

/// An axis, the length of its tiles, and how many of them become one.
type Growth = (AxisId, u64, u64);

fn enlarged(
    isa: &Isa,
    choice: &TileChoice,
    rows: u64,
    columns: Option<Growth>,
    depth: Option<Growth>,
) -> Option<TileChoice> {
    let mut larger = choice.clone();
    if let Some((axis, len, times)) = columns {
        larger.tiles.insert(axis, AxisTile { grain: len, ..AxisTile::of(len * times) });
    }
    if let Some(split) = &mut larger.contraction {
        if let Some((_, len, times)) = depth {
            split.axes.last_mut()?.1.len = len * times;
            split.depth = Some(len);
        }
        if let Some((_, width, times)) = columns {
            split.blocks = Some(blocks(isa, split, rows, width, times)?);
        }
    }
    Some(larger)
}

/// How the sum of a tile of `rows` rows and `times` blocks of `width` columns lies in its buffer, if it fits.
fn blocks(isa: &Isa, split: &ContractionSplit, rows: u64, width: u64, times: u64) -> Option<Blocks> {
    let buffer = isa.buffer(split.buffer);
    let room: Vec<u64> = buffer.access.iter().chain(&buffer.unit).copied().collect();
    let [.., rows_there, columns_there] = room[..] else { return None };
    let beside = width.saturating_mul(times) <= columns_there;
    let fits = beside || rows.saturating_mul(times) <= rows_there;
    let whole = dot_granularities(isa).into_iter().filter(|g| g.columns == width).map(|g| g.rows).max();
    fits.then_some(Blocks { width, rows: whole.unwrap_or(rows), stacked: !beside })
}
