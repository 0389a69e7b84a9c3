//! Contractions over several dimensions, such as a convolution's (taps and channels), as contractions over fewer:
//! neighbouring dimensions that lie one after the other in memory on both sides are joined for nothing; all of them
//! are, once the host has gathered the operands (im2col). Knows no convolutions and no accelerator.

use super::normalize::NormalRegion;
use act_hlo::{DotDims, Graph, GraphError, NodeId, Op, Shape};
use act_isa::{Affine, View};
use std::collections::BTreeMap;

/// Which dimensions become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joining {
    /// Those that memory joins already.
    Adjacent,
    /// All; the host gathers what does not lie so.
    Gathered,
}

/// Alignment of a gathered leaf in the packed segment, in bytes.
const GATHER_ALIGN: u64 = 64;

/// Operators between a leaf and the dot whose dimensions are its own.
const LONGEST_CHAIN: usize = 4;

/// An operand of a dot: a leaf, and the operators in between, which keep its dimensions, from the dot down.
struct Operand {
    chain: Vec<NodeId>,
    leaf: usize,
}

/// What happens to a leaf: groups of dimensions, in the new order, each of which becomes one.
type Groups = Vec<Vec<usize>>;

/// The region with every contraction over several dimensions joined as `joining` says; `None` where nothing changes.
///
/// # Errors
/// The joined graph does not infer: a bug of ours, reported as a refusal.
pub fn join_depths(region: &NormalRegion, joining: Joining) -> Result<Option<NormalRegion>, GraphError> {
    let graph = &region.graph;
    let mut leaves: BTreeMap<usize, Groups> = BTreeMap::new();
    let mut chains: BTreeMap<NodeId, usize> = BTreeMap::new();
    let mut dots: BTreeMap<NodeId, DotDims> = BTreeMap::new();
    for id in graph.ids() {
        let Op::Dot(dims) = &graph.node(id).op else { continue };
        let operands = &graph.node(id).operands;
        let (Some(lhs), Some(rhs)) = (operand(graph, operands[0]), operand(graph, operands[1])) else {
            continue;
        };
        let pairs: Vec<(usize, usize)> =
            dims.lhs_contracting.iter().copied().zip(dims.rhs_contracting.iter().copied()).collect();
        let (left, right) = (&region.leaves[lhs.leaf].view, &region.leaves[rhs.leaf].view);
        let mut joined: Vec<Vec<(usize, usize)>> = Vec::new();
        for &pair in &pairs {
            let follows = |group: &Vec<(usize, usize)>| match group.last() {
                Some(&before) => {
                    joining == Joining::Gathered
                        || (adjoins(left, before.0, pair.0) && adjoins(right, before.1, pair.1))
                }
                None => false,
            };
            match joined.last_mut() {
                Some(group) if follows(group) => group.push(pair),
                _ => joined.push(vec![pair]),
            }
        }
        if joined.len() == pairs.len() {
            continue;
        }
        let side = |pick: fn(&(usize, usize)) -> usize| -> Vec<Vec<usize>> {
            joined.iter().map(|group| group.iter().map(pick).collect()).collect()
        };
        let (left, right) = (side(|p| p.0), side(|p| p.1));
        let (lhs_groups, lhs_at) = arranged(graph.shape(operands[0]).rank(), &left);
        let (rhs_groups, rhs_at) = arranged(graph.shape(operands[1]).rank(), &right);
        let moved = |groups: &Groups, old: &[usize]| -> Vec<usize> {
            old.iter().filter_map(|d| groups.iter().position(|g| g == &[*d])).collect()
        };
        dots.insert(
            id,
            DotDims {
                lhs_batch: moved(&lhs_groups, &dims.lhs_batch),
                rhs_batch: moved(&rhs_groups, &dims.rhs_batch),
                lhs_contracting: (lhs_at..lhs_at + left.len()).collect(),
                rhs_contracting: (rhs_at..rhs_at + right.len()).collect(),
            },
        );
        for (operand, groups) in [(lhs, lhs_groups), (rhs, rhs_groups)] {
            operand.chain.into_iter().for_each(|node| {
                chains.insert(node, operand.leaf);
            });
            leaves.insert(operand.leaf, groups);
        }
    }
    if dots.is_empty() {
        return Ok(None);
    }
    rebuild(region, &leaves, &chains, &dots).map(Some)
}

/// The leaf that a dot's operand is made of, when nothing between the two has other dimensions or other users.
fn operand(graph: &Graph, mut at: NodeId) -> Option<Operand> {
    let mut chain = Vec::new();
    loop {
        if graph.ids().filter(|&user| graph.node(user).operands.contains(&at)).count() != 1 {
            return None;
        }
        match &graph.node(at).op {
            Op::Parameter(k) => return Some(Operand { chain, leaf: *k as usize }),
            Op::Convert | Op::Copy if chain.len() < LONGEST_CHAIN => {
                chain.push(at);
                at = graph.node(at).operands[0];
            }
            _ => return None,
        }
    }
}

/// Whether dimension `inner` runs where one step of dimension `outer` leads, so that both together are one.
fn adjoins(view: &View, outer: usize, inner: usize) -> bool {
    let ((outer_len, step), (len, stride)) = (view.dims[outer], view.dims[inner]);
    outer_len == 1 || len == 1 || i64::try_from(len).is_ok_and(|len| len.checked_mul(stride) == Some(step))
}

/// All dimensions of a leaf, the joined ones together where the first of them stood, and where that is.
fn arranged(rank: usize, joined: &[Vec<usize>]) -> (Groups, usize) {
    let contracted: Vec<usize> = joined.iter().flatten().copied().collect();
    let first = contracted.iter().copied().min().unwrap_or(rank);
    let mut groups: Groups = (0..first).map(|d| vec![d]).collect();
    groups.extend(joined.iter().cloned());
    groups.extend((first..rank).filter(|d| !contracted.contains(d)).map(|d| vec![d]));
    (groups, first)
}

fn joined_dims(dims: &[u64], groups: &Groups) -> Vec<u64> {
    groups.iter().map(|group| group.iter().fold(1u64, |n, &d| n.saturating_mul(dims[d]))).collect()
}

/// The view with groups of dimensions as one each, if memory has them so.
fn joined_view(view: &View, groups: &Groups) -> Option<View> {
    let mut dims = Vec::with_capacity(groups.len());
    for group in groups {
        // Dimensions of one element say nothing about where the next lie.
        let wide: Vec<(u64, i64)> = group.iter().map(|&d| view.dims[d]).filter(|d| d.0 != 1).collect();
        for pair in wide.windows(2) {
            if i64::try_from(pair[1].0).ok()?.checked_mul(pair[1].1)? != pair[0].1 {
                return None;
            }
        }
        let len = wide.iter().try_fold(1u64, |n, d| n.checked_mul(d.0))?;
        let stride = wide.last().or(group.last().map(|&d| &view.dims[d]))?.1;
        dims.push((len, stride));
    }
    Some(View { dims, ..view.clone() })
}

fn rebuild(
    region: &NormalRegion,
    leaves: &BTreeMap<usize, Groups>,
    chains: &BTreeMap<NodeId, usize>,
    dots: &BTreeMap<NodeId, DotDims>,
) -> Result<NormalRegion, GraphError> {
    let mut out = NormalRegion { graph: Graph::new(region.graph.name.clone()), ..region.clone() };
    for (&leaf, groups) in leaves {
        let view = &region.leaves[leaf].view;
        match joined_view(view, groups) {
            Some(joined) => out.leaves[leaf].view = joined,
            None => gather(&mut out, leaf, groups),
        }
    }
    let mut node_of: Vec<NodeId> = Vec::with_capacity(region.graph.nodes().len());
    for id in region.graph.ids() {
        let node = region.graph.node(id);
        let operands: Vec<NodeId> = node.operands.iter().map(|o| node_of[o.0 as usize]).collect();
        let joined = |leaf: usize| match leaves.get(&leaf) {
            Some(groups) => Shape::new(node.shape.elem, joined_dims(&node.shape.dims, groups)),
            None => node.shape.clone(),
        };
        let new = match (&node.op, chains.get(&id), dots.get(&id)) {
            (Op::Parameter(k), _, _) => out.graph.parameter(joined(*k as usize)),
            (op, Some(&leaf), _) => out.graph.add_declared(op.clone(), &operands, Some(&joined(leaf)))?,
            (_, _, Some(dims)) => {
                out.graph.add_declared(Op::Dot(dims.clone()), &operands, Some(&node.shape))?
            }
            (op, _, _) => out.graph.add_declared(op.clone(), &operands, Some(&node.shape))?,
        };
        let noted = out.graph.annotate(new);
        noted.name.clone_from(&node.name);
        noted.source.clone_from(&node.source);
        node_of.push(new);
    }
    for root in region.graph.roots() {
        out.graph.add_root(node_of[root.0 as usize])?;
    }
    Ok(out)
}

/// Lets the host copy a leaf into the packed segment, dense in the order of the groups.
fn gather(out: &mut NormalRegion, leaf: usize, groups: &Groups) {
    let view = out.leaves[leaf].view.clone();
    let order: Vec<usize> = groups.iter().flatten().copied().collect();
    let from = View { dims: order.iter().map(|&d| view.dims[d]).collect(), ..view };
    let lens = Shape::new(from.elem, from.dims.iter().map(|d| d.0).collect::<Vec<_>>());
    let start = out.gathered_bytes.next_multiple_of(GATHER_ALIGN);
    let mut to = View::row_major(out.segments.packed(), &lens);
    to.start = Affine::constant(i64::try_from(start).unwrap_or(i64::MAX));
    out.gathered_bytes = start.saturating_add(lens.bytes());
    let joined = joined_dims(&out.leaves[leaf].view.dims.iter().map(|d| d.0).collect::<Vec<_>>(), groups);
    let mut dense = View::row_major(out.segments.packed(), &Shape::new(from.elem, joined));
    dense.start = to.start.clone();
    out.leaves[leaf].view = dense;
    out.gathers.push((from, to));
}
