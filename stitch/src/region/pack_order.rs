//! Which leaves of a region the host packs, and in which order of dimensions: contractions want rows by depth on the
//! left and depth by columns on the right, whatever the program's own layout.

use crate::tile::granularity::operand_groups;
use crate::tile::rebuild::with_parameters;
use crate::tile::{Axes, AxisId, NormalRegion};
use act_hlo::{Graph, GraphError, NodeId, Op, Shape};
use act_isa::Isa;
use std::collections::BTreeSet;

/// How far the host rearranges operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Packing {
    /// Everything is read and written where it lies.
    None,
    /// Operands of contractions whose dimensions or strides are not in the natural order.
    Unnatural,
    /// All operands and results.
    All,
    /// All, and ragged tiles are padded with zeros to whole ones.
    Padded,
    /// The same, and right operands of contractions keep together so many elements of the contracted dimension as an
    /// instruction of the description takes at once.
    Grouped,
}

impl Packing {
    pub const LEVELS: [Packing; 5] =
        [Packing::None, Packing::Unnatural, Packing::All, Packing::Padded, Packing::Grouped];

    /// Whether everything is packed.
    pub fn is_total(self) -> bool {
        self >= Packing::All
    }
}

/// The region with permuted leaves, and which leaves are packed. `None` when a level adds nothing to the one before.
///
/// # Errors
/// The permuted graph does not infer: a bug of ours, reported as a refusal.
pub fn pack(
    region: &NormalRegion,
    axes: &Axes,
    level: Packing,
) -> Result<Option<(NormalRegion, Vec<bool>)>, GraphError> {
    let orders: Vec<Option<Vec<usize>>> = region
        .graph
        .params()
        .iter()
        .enumerate()
        .map(|(k, &node)| {
            let order = natural_order(&region.graph, axes, node);
            let identity = order.iter().copied().eq(0..order.len());
            let dense =
                region.leaves[k].view.dims.last().is_none_or(|&(len, stride)| {
                    len == 1 || stride == region.leaves[k].view.elem.bytes() as i64
                });
            match level {
                Packing::None => None,
                Packing::Unnatural => (!identity || !dense).then_some(order),
                Packing::All | Packing::Padded | Packing::Grouped => Some(order),
            }
        })
        .collect();
    if level == Packing::Unnatural && orders.iter().all(Option::is_none) {
        return Ok(None);
    }
    let packed = orders.iter().map(Option::is_some).collect();
    Ok(Some((permute_leaves(region, &orders)?, packed)))
}

/// Order of a leaf's dimensions for the contraction that it feeds: batch, then rows and depth (left) or depth and
/// columns (right). Dimensions that play no part keep their place.
fn natural_order(graph: &Graph, axes: &Axes, leaf: NodeId) -> Vec<usize> {
    let own = axes.of(leaf);
    let identity: Vec<usize> = (0..own.len()).collect();
    for id in graph.ids() {
        let Op::Dot(dims) = &graph.node(id).op else { continue };
        let (lhs, rhs) = (graph.node(id).operands[0], graph.node(id).operands[1]);
        let axes_at =
            |node: NodeId, at: &[usize]| -> Vec<AxisId> { at.iter().map(|&d| axes.of(node)[d]).collect() };
        let depth = axes_at(lhs, &dims.lhs_contracting);
        let batch = axes_at(lhs, &dims.lhs_batch);
        let free = |node: NodeId| -> Vec<AxisId> {
            axes.of(node).iter().copied().filter(|a| !depth.contains(a) && !batch.contains(a)).collect()
        };
        if !own.iter().any(|a| depth.contains(a)) {
            continue;
        }
        let (rows, columns) = (free(lhs), free(rhs));
        let rank_of: Box<dyn Fn(&AxisId) -> u8> = if own.iter().any(|a| rows.contains(a)) {
            Box::new(move |a| if batch.contains(a) { 0 } else { 1 + u8::from(depth.contains(a)) })
        } else if own.iter().any(|a| columns.contains(a)) {
            Box::new(move |a| if batch.contains(a) { 0 } else { 2 - u8::from(depth.contains(a)) })
        } else {
            continue;
        };
        let mut order = identity;
        order.sort_by_key(|&d| rank_of(&own[d]));
        return order;
    }
    identity
}

/// The ways to keep the right operands of contractions in groups that the description has: per leaf the contracted axis
/// and the size of the groups.
pub fn leaf_groups(region: &NormalRegion, axes: &Axes, isa: &Isa) -> Vec<Vec<Option<(AxisId, u64)>>> {
    let graph = &region.graph;
    let mut right: Vec<Option<AxisId>> = vec![None; region.leaves.len()];
    for id in graph.ids() {
        let Op::Dot(dims) = &graph.node(id).op else { continue };
        let mut operand = graph.node(id).operands[1];
        let Some(&depth) = dims.rhs_contracting.last() else { continue };
        let axis = axes.of(operand)[depth];
        while let Op::Convert | Op::Copy | Op::Transpose { .. } = graph.node(operand).op {
            operand = graph.node(operand).operands[0];
        }
        if let Op::Parameter(k) = graph.node(operand).op {
            right[k as usize] = Some(axis);
        }
    }
    let elem = |k: usize| region.leaves[k].view.elem;
    let sizes: BTreeSet<u64> = right
        .iter()
        .enumerate()
        .filter(|(_, axis)| axis.is_some())
        .flat_map(|(k, _)| operand_groups(isa, elem(k)))
        .collect();
    let group = |k: usize, axis: &Option<AxisId>, size: u64| {
        axis.filter(|_| operand_groups(isa, elem(k)).contains(&size)).map(|axis| (axis, size))
    };
    let groups = |size| right.iter().enumerate().map(|(k, axis)| group(k, axis, size)).collect();
    sizes.into_iter().rev().map(groups).collect()
}

/// Replaces leaf k by a leaf whose dimension i is the old dimension `orders[k][i]`, under a transpose that undoes it.
fn permute_leaves(region: &NormalRegion, orders: &[Option<Vec<usize>>]) -> Result<NormalRegion, GraphError> {
    let mut leaves = region.leaves.clone();
    let graph = with_parameters(&region.graph, |graph, k, id, _| {
        let shape = region.graph.shape(id);
        let order = orders.get(k).and_then(Option::as_ref);
        let Some(order) = order.filter(|order| !order.iter().copied().eq(0..order.len())) else {
            return Ok(graph.parameter(shape.clone()));
        };
        let dims: Vec<u64> = order.iter().map(|&d| shape.dims[d]).collect();
        leaves[k].view.dims = order.iter().map(|&d| region.leaves[k].view.dims[d]).collect();
        let leaf = graph.parameter(Shape::new(shape.elem, dims));
        let mut perm = vec![0; order.len()];
        order.iter().enumerate().for_each(|(i, &d)| perm[d] = i);
        graph.add_declared(Op::Transpose { perm }, &[leaf], Some(shape))
    })?;
    Ok(NormalRegion { graph, leaves, ..region.clone() })
}
