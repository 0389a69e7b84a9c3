//! Tile choices worth trying for a region on an accelerator: one per granularity of its instructions, and for a
//! contraction that is longer than a tile, one per buffer that could hold the accumulator.

use crate::tile::granularity::{DotGranularity, dot_granularities, result_sizes};
use crate::tile::nest::AxisTile;
use crate::tile::{Axes, AxisId, ContractionSplit, NormalRegion, TileChoice};
use act_hlo::{Binary, DotDims, ElemType, Graph, NodeId, Op};
use act_isa::{BufferId, Isa};
use std::collections::BTreeMap;

/// The choices, in the order in which they are tried. `reassociate`: float sums may be split.
pub fn choices(region: &NormalRegion, axes: &Axes, isa: &Isa, reassociate: bool) -> Vec<TileChoice> {
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
            offer(TileChoice { tiles: result_tiles(graph, axes, &sizes), ..TileChoice::default() });
        }
        offer(TileChoice::default());
        return found;
    }
    for granularity in dot_granularities(isa) {
        let tiles = dot_tiles(graph, axes, &dots, granularity);
        let long = dots.iter().find_map(|&(dot, dims)| {
            let lhs = graph.node(dot).operands[0];
            let contracted: Vec<AxisId> = dims.lhs_contracting.iter().map(|&d| axes.of(lhs)[d]).collect();
            let summable = match graph.shape(dot).elem {
                // Its parts would be rounded one by one; the sum in f32 is rounded once.
                ElemType::BF16 | ElemType::F16 => false,
                elem => elem.is_int() || reassociate,
            };
            let cuttable = contracted.iter().all(|&axis| axes.is_contraction_of(graph, axis, dot));
            let (&last, outer) = contracted.split_last()?;
            let long = !outer.is_empty() || axes.axis(last).size > granularity.depth;
            let mut cut: Vec<(AxisId, AxisTile)> =
                outer.iter().map(|&axis| (axis, AxisTile { len: 1, squeezed: true })).collect();
            cut.push((last, AxisTile { len: granularity.depth, squeezed: false }));
            (long && summable && cuttable).then_some((dot, cut))
        });
        let holders: Vec<BufferId> = match &long {
            Some((dot, _)) => {
                isa.buffer_ids().filter(|&b| isa.buffer(b).elem == graph.shape(*dot).elem).collect()
            }
            None => Vec::new(),
        };
        // Where nothing can hold the sum, the attempt with the whole contraction tells why.
        let (Some((dot, cut)), false) = (long, holders.is_empty()) else {
            offer(TileChoice { tiles, ..TileChoice::default() });
            continue;
        };
        let addend = addend_of(graph, axes, dot);
        for buffer in holders {
            for addend in addend.map_or(vec![None], |a| vec![Some(a), None]) {
                let split = ContractionSplit { dot, axes: cut.clone(), addend, buffer };
                offer(TileChoice { tiles: tiles.clone(), contraction: Some(split), ..TileChoice::default() });
            }
        }
    }
    found
}

/// Rows and columns of every dot at the granularity; batch dimensions, and all rows and columns but the last, one at a
/// time.
fn dot_tiles(
    graph: &Graph,
    axes: &Axes,
    dots: &[(NodeId, &DotDims)],
    granularity: DotGranularity,
) -> BTreeMap<AxisId, AxisTile> {
    let mut tiles: BTreeMap<AxisId, AxisTile> = BTreeMap::new();
    let mut set = |axis: AxisId, tile: AxisTile| {
        if axes.is_parallel(graph, axis) && (tile.squeezed || tile.len < axes.axis(axis).size) {
            let entry = tiles.entry(axis).or_insert(tile);
            if tile.len < entry.len {
                *entry = tile;
            }
        }
    };
    for &(dot, dims) in dots {
        let (lhs, rhs) = (graph.node(dot).operands[0], graph.node(dot).operands[1]);
        for &d in &dims.lhs_batch {
            set(axes.of(lhs)[d], AxisTile { len: 1, squeezed: true });
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
                others.iter().for_each(|&axis| set(axis, AxisTile { len: 1, squeezed: true }));
                set(last, AxisTile { len, squeezed: false });
            }
        }
    }
    tiles
}

/// The last dimensions of the first root at the given sizes, those before them one at a time.
fn result_tiles(graph: &Graph, axes: &Axes, sizes: &[u64]) -> BTreeMap<AxisId, AxisTile> {
    let mut tiles = BTreeMap::new();
    let Some(&root) = graph.roots().first() else { return tiles };
    for (from_end, &axis) in axes.of(root).iter().rev().enumerate() {
        let tile = match sizes.len().checked_sub(from_end + 1) {
            Some(at) => AxisTile { len: sizes[at], squeezed: false },
            None => AxisTile { len: 1, squeezed: true },
        };
        if axes.is_parallel(graph, axis) && (tile.squeezed || tile.len < axes.axis(axis).size) {
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
