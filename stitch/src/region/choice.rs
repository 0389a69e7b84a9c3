//! Tile choices worth trying for a region on an accelerator: one per granularity of its instructions, and for a
//! contraction that is longer than a tile, one per buffer that could hold the accumulator.

use super::pack_order::Packing;
use crate::tile::granularity::{DotGranularity, dot_granularities, result_sizes};
use crate::tile::nest::AxisTile;
use crate::tile::{Axes, AxisId, ContractionSplit, NormalRegion, TileChoice};
use act_hlo::{Binary, DotDims, ElemType, Graph, NodeId, Op};
use act_isa::{BufferId, Isa};
use std::collections::BTreeMap;

/// The choices, in the order in which they are tried. `reassociate`: float sums may be split. `level`: how the region
/// is packed, which has been done.
pub fn choices(
    region: &NormalRegion,
    axes: &Axes,
    isa: &Isa,
    reassociate: bool,
    level: Packing,
) -> Vec<TileChoice> {
    let padded = level >= Packing::Padded;
    let graph = &region.graph;
    let dots: Vec<(NodeId, &DotDims)> = graph
        .ids()
        .filter_map(|id| match &graph.node(id).op {
            Op::Dot(dims) => Some((id, dims)),
            _ => None,
        })
        .collect();
    let mut found: Vec<TileChoice> = Vec::new();
    let mut offer = |choice: TileChoice| {
        if !found.contains(&choice) {
            found.push(choice);
        }
    };
    if dots.is_empty() {
        for sizes in result_sizes(isa) {
            let tiles = result_tiles(graph, axes, &sizes, padded);
            offer(TileChoice { tiles, ..TileChoice::default() });
        }
        offer(TileChoice::default());
        return found;
    }
    for granularity in dot_granularities(isa) {
        let tiles = dot_tiles(graph, axes, &dots, granularity, padded);
        let long = dots.iter().find_map(|&(dot, dims)| {
            let lhs = graph.node(dot).operands[0];
            let contracted: Vec<AxisId> = dims.lhs_contracting.iter().map(|&d| axes.of(lhs)[d]).collect();
            let cuttable = contracted.iter().all(|&axis| axes.is_contraction_of(graph, axis, dot));
            let (&last, outer) = contracted.split_last()?;
            let single = outer.is_empty() && axes.axis(last).size <= granularity.depth;
            let summable = match graph.shape(dot).elem {
                _ if single => true,
                // Its parts would be rounded one by one; the sum in f32 is rounded once.
                ElemType::BF16 | ElemType::F16 => false,
                elem => elem.is_int() || reassociate,
            };
            // Zeros beyond the end add nothing, where they are zeros until they are multiplied.
            let padded = padded
                && !axes.axis(last).unit
                && !axes.axis(last).size.is_multiple_of(granularity.depth)
                && graph.node(dot).operands.iter().all(|&o| keeps_zeros(graph, o));
            let long = !single || padded;
            let mut cut: Vec<(AxisId, AxisTile)> = outer.iter().map(|&axis| (axis, AxisTile::ONE)).collect();
            cut.push((last, AxisTile { padded, ..AxisTile::of(granularity.depth) }));
            (long && summable && cuttable).then_some((dot, cut, single))
        });
        let holders: Vec<BufferId> = match &long {
            // In a single step nothing is carried from one to the next.
            Some((_, _, true)) => isa.buffer_ids().take(1).collect(),
            Some((dot, ..)) => {
                isa.buffer_ids().filter(|&b| isa.buffer(b).elem == graph.shape(*dot).elem).collect()
            }
            None => Vec::new(),
        };
        // Nothing may hold the sum from one kernel to the next, or not where the product can be added to it.
        if let (Some((dot, cut, _)), true) = (&long, holders.is_empty() || level == Packing::Grouped)
            && padded
            && let [(axis, tile)] = cut[..]
            && let Some(buffer) = isa.buffer_ids().next()
        {
            // One kernel makes all of it, of whole tiles.
            let len = axes.axis(axis).size.next_multiple_of(tile.len);
            let whole = vec![(axis, AxisTile { len, ..tile })];
            let (rank, addend) = (slot_rank(isa, buffer), None);
            let split =
                ContractionSplit { dot: *dot, axes: whole, addend, buffer, rank, blocks: None, depth: None };
            offer(TileChoice { tiles: tiles.clone(), contraction: Some(split), ..TileChoice::default() });
        }
        // Where nothing can hold the sum, the attempt with the whole contraction tells why.
        let (Some((dot, cut, single)), false) = (long, holders.is_empty()) else {
            offer(TileChoice { tiles, ..TileChoice::default() });
            continue;
        };
        let addend = if single { None } else { addend_of(graph, axes, dot) };
        for buffer in holders {
            for addend in addend.map_or(vec![None], |a| vec![Some(a), None]) {
                let rank = slot_rank(isa, buffer);
                let split = ContractionSplit {
                    dot,
                    axes: cut.clone(),
                    addend,
                    buffer,
                    rank,
                    blocks: None,
                    depth: None,
                };
                offer(TileChoice { tiles: tiles.clone(), contraction: Some(split), ..TileChoice::default() });
            }
        }
    }
    found
}

fn slot_rank(isa: &Isa, buffer: BufferId) -> usize {
    let buffer = isa.buffer(buffer);
    buffer.access.len() + buffer.unit.len()
}

/// Rows and columns of every dot at the granularity; batch dimensions, and all rows and columns but the last, one at a
/// time.
fn dot_tiles(
    graph: &Graph,
    axes: &Axes,
    dots: &[(NodeId, &DotDims)],
    granularity: DotGranularity,
    padded: bool,
) -> BTreeMap<AxisId, AxisTile> {
    let mut tiles: BTreeMap<AxisId, AxisTile> = BTreeMap::new();
    let mut set = |axis: AxisId, tile: AxisTile| {
        let size = axes.axis(axis).size;
        let tile = AxisTile { padded: tile.padded && !axes.axis(axis).unit, ..tile };
        let cuts = tile.squeezed || tile.len < size || (tile.padded && tile.len != size);
        if axes.is_parallel(graph, axis) && cuts {
            let entry = tiles.entry(axis).or_insert(tile);
            if tile.len < entry.len {
                *entry = tile;
            }
        }
    };
    for &(dot, dims) in dots {
        let (lhs, rhs) = (graph.node(dot).operands[0], graph.node(dot).operands[1]);
        for &d in &dims.lhs_batch {
            set(axes.of(lhs)[d], AxisTile::ONE);
        }
        for (operand, batch, contracting, len) in [
            (lhs, &dims.lhs_batch, &dims.lhs_contracting, granularity.rows),
            (rhs, &dims.rhs_batch, &dims.rhs_contracting, granularity.columns),
        ] {
            let free: Vec<AxisId> = (0..axes.of(operand).len())
                .filter(|d| !batch.contains(d) && !contracting.contains(d))
                .map(|d| axes.of(operand)[d])
                .collect();
            if let Some((&last, others)) = free.split_last() {
                others.iter().for_each(|&axis| set(axis, AxisTile::ONE));
                set(last, AxisTile { padded, ..AxisTile::of(len) });
            }
        }
    }
    tiles
}

/// Whether a value is zero wherever the leaf that it is made of is.
fn keeps_zeros(graph: &Graph, mut value: NodeId) -> bool {
    loop {
        let node = graph.node(value);
        match &node.op {
            Op::Parameter(_) => return true,
            Op::Convert | Op::Copy | Op::Transpose { .. } => value = node.operands[0],
            _ => return false,
        }
    }
}

/// The last dimensions of the first root at the given sizes, those before them one at a time. What is computed of padding
/// goes nowhere, since no dimension is cut over which something is summed.
fn result_tiles(graph: &Graph, axes: &Axes, sizes: &[u64], padded: bool) -> BTreeMap<AxisId, AxisTile> {
    let mut tiles = BTreeMap::new();
    let Some(&root) = graph.roots().first() else { return tiles };
    for (from_end, &axis) in axes.of(root).iter().rev().enumerate() {
        let tile = match sizes.len().checked_sub(from_end + 1) {
            Some(at) => {
                let ragged = !axes.axis(axis).size.is_multiple_of(sizes[at].max(1));
                let padded = padded && ragged && !axes.axis(axis).unit;
                AxisTile { padded, ..AxisTile::of(sizes[at]) }
            }
            None => AxisTile::ONE,
        };
        let cuts = tile.squeezed || tile.padded || tile.len < axes.axis(axis).size;
        if axes.is_parallel(graph, axis) && cuts {
            tiles.entry(axis).or_insert(tile);
        }
    }
    tiles
}

/// The addition that is the only user of `dot` and whose other operand does not depend on it.
fn addend_of(graph: &Graph, axes: &Axes, dot: NodeId) -> Option<NodeId> {
    if graph.roots().contains(&dot) {
        return None;
    }
    let mut users = graph.ids().filter(|&id| graph.node(id).operands.contains(&dot));
    let (user, None) = (users.next()?, users.next()) else { return None };
    let node = graph.node(user);
    let other = match (&node.op, &node.operands[..]) {
        (Op::Binary(Binary::Add), &[a, b]) if a == dot && b != dot => b,
        (Op::Binary(Binary::Add), &[a, b]) if b == dot && a != dot => a,
        _ => return None,
    };
    debug_assert_eq!(axes.of(user), axes.of(dot));
    (!depends_on(graph, other, dot)).then_some(user)
}

fn depends_on(graph: &Graph, value: NodeId, on: NodeId) -> bool {
    let mut seen = vec![false; graph.nodes().len()];
    let mut stack = vec![value];
    while let Some(id) = stack.pop() {
        if id == on {
            return true;
        }
        if !std::mem::replace(&mut seen[id.0 as usize], true) {
            stack.extend(&graph.node(id).operands);
        }
    }
    false
}
