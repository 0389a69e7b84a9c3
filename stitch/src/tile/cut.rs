//! Cutting one tile's graph out of a region: the nodes that some values need, with every dimension shrunk to its tile.

use super::axes::{Axes, AxisId};
use act_hlo::{Graph, GraphError, NodeId, Op, Shape};
use act_isa::{Affine, View};
use std::collections::BTreeMap;

/// The part of an axis that one tile covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TileExtent {
    pub len: u64,
    /// The dimension disappears from the tile's shapes (its length is 1).
    pub squeezed: bool,
    /// First index, in elements of the axis.
    pub offset: Affine,
}

/// What a parameter of a cut graph is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutParam {
    /// Parameter k of the region in normal form.
    Leaf(usize),
    /// A value that another kernel computes.
    Value(NodeId),
}

/// A tile's graph.
pub struct CutGraph {
    pub graph: Graph,
    pub params: Vec<CutParam>,
    /// Node of the cut graph for nodes of the region.
    pub node_of: BTreeMap<NodeId, NodeId>,
}

/// The shape that a value of the region has in a tile.
pub fn tile_shape(graph: &Graph, axes: &Axes, extents: &[TileExtent], id: NodeId) -> Shape {
    let dims = axes.of(id).iter().map(|a| &extents[a.0 as usize]).filter(|e| !e.squeezed).map(|e| e.len);
    Shape::new(graph.shape(id).elem, dims.collect::<Vec<_>>())
}

/// The part of a view that a tile covers; `axes` are those of the view's dimensions. `None` when an address overflows.
pub fn tile_view(view: &View, axes: &[AxisId], extents: &[TileExtent]) -> Option<View> {
    let mut tile = View { dims: Vec::new(), ..view.clone() };
    for (&(_, stride), axis) in view.dims.iter().zip(axes) {
        let extent = &extents[axis.0 as usize];
        tile.start.c0 = tile.start.c0.checked_add(extent.offset.c0.checked_mul(stride)?)?;
        for &(iv, k) in &extent.offset.ivs {
            tile.start.add_term(iv, k.checked_mul(stride)?)?;
        }
        if !extent.squeezed {
            tile.dims.push((extent.len, stride));
        }
    }
    Some(tile)
}

/// Cuts the graph that computes `roots` for one tile; values in `given` become parameters. Parameters stand in the order
/// in which they are first needed. The cut graph has no roots yet.
///
/// # Errors
/// Shape inference refuses a tile: the axes were wrong for it.
pub fn cut(
    graph: &Graph,
    axes: &Axes,
    extents: &[TileExtent],
    roots: &[NodeId],
    given: &[NodeId],
) -> Result<CutGraph, GraphError> {
    let mut needed = vec![false; graph.nodes().len()];
    let mut stack = roots.to_vec();
    while let Some(id) = stack.pop() {
        if !std::mem::replace(&mut needed[id.0 as usize], true) && !given.contains(&id) {
            stack.extend(&graph.node(id).operands);
        }
    }
    let mut out =
        CutGraph { graph: Graph::new(graph.name.clone()), params: Vec::new(), node_of: BTreeMap::new() };
    for id in graph.ids().filter(|id| needed[id.0 as usize]) {
        let node = graph.node(id);
        let shape = tile_shape(graph, axes, extents, id);
        let new = match &node.op {
            _ if given.contains(&id) => {
                out.params.push(CutParam::Value(id));
                out.graph.parameter(shape)
            }
            Op::Parameter(k) => {
                out.params.push(CutParam::Leaf(*k as usize));
                out.graph.parameter(shape)
            }
            _ => {
                let operands: Vec<NodeId> = node.operands.iter().map(|o| out.node_of[o]).collect();
                let op = tile_op(graph, axes, extents, id);
                out.graph.add_declared(op, &operands, Some(&shape))?
            }
        };
        let noted = out.graph.annotate(new);
        noted.name.clone_from(&node.name);
        noted.source.clone_from(&node.source);
        out.node_of.insert(id, new);
    }
    Ok(out)
}

/// The operator with its dimension numbers and sizes as the tile has them.
fn tile_op(graph: &Graph, axes: &Axes, extents: &[TileExtent], id: NodeId) -> Op {
    let node = graph.node(id);
    let squeezed = |node: NodeId, d: usize| extents[axes.of(node)[d].0 as usize].squeezed;
    // Number of dimension d once the squeezed ones before it are gone.
    let renumber = |node: NodeId, d: usize| (0..d).filter(|&e| !squeezed(node, e)).count();
    let kept = |of: NodeId, dims: &[usize]| -> Vec<usize> {
        dims.iter().filter(|&&d| !squeezed(of, d)).map(|&d| renumber(of, d)).collect()
    };
    match &node.op {
        Op::Iota { dim } => Op::Iota { dim: renumber(id, *dim) },
        Op::Broadcast { dims } => Op::Broadcast { dims: kept(id, dims) },
        Op::Transpose { perm } => Op::Transpose { perm: kept(node.operands[0], perm) },
        Op::Reverse { dims } => Op::Reverse { dims: kept(id, dims) },
        Op::Concatenate { dim } => Op::Concatenate { dim: renumber(id, *dim) },
        Op::Reduce { dims, combiner } => {
            Op::Reduce { dims: kept(node.operands[0], dims), combiner: *combiner }
        }
        Op::Slice { start, limit, stride } => {
            let operand = node.operands[0];
            let (mut s, mut l, mut p) = (Vec::new(), Vec::new(), Vec::new());
            for d in (0..start.len()).filter(|&d| !squeezed(id, d)) {
                let whole = super::axes::keeps_dimension(&node.op, d, graph.shape(operand));
                s.push(start[d]);
                l.push(if whole { extents[axes.of(id)[d].0 as usize].len as i64 } else { limit[d] });
                p.push(stride[d]);
            }
            Op::Slice { start: s, limit: l, stride: p }
        }
        Op::Pad { low, high, interior } => {
            let keep = |v: &[i64]| -> Vec<i64> {
                v.iter().enumerate().filter(|(d, _)| !squeezed(id, *d)).map(|(_, &x)| x).collect()
            };
            Op::Pad { low: keep(low), high: keep(high), interior: keep(interior) }
        }
        Op::Dot(dims) => {
            let (lhs, rhs) = (node.operands[0], node.operands[1]);
            Op::Dot(act_hlo::DotDims {
                lhs_batch: kept(lhs, &dims.lhs_batch),
                rhs_batch: kept(rhs, &dims.rhs_batch),
                lhs_contracting: kept(lhs, &dims.lhs_contracting),
                rhs_contracting: kept(rhs, &dims.rhs_contracting),
            })
        }
        op => op.clone(),
    }
}
