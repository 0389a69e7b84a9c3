//! Reshapes of what lies in memory: a leaf that is read in another shape, and a result that is written in another, are
//! views with other dimensions wherever strides can say so. In that form every dimension of a contraction can be cut.

use super::normalize::{Leaf, NormalRegion};
use act_hlo::{ElemType, Graph, GraphError, NodeId, Op, Shape};
use act_isa::View;

/// A leaf seen through operators that only move or convert it.
#[derive(Clone)]
struct Seen {
    leaf: usize,
    /// Over the dimensions of the node, in the leaf's element type.
    view: View,
    /// Element types that it is converted to, one after the other.
    converts: Vec<ElemType>,
    reshaped: bool,
    transposed: bool,
}

/// The region without the reshapes that views can express; `None` where it has none.
///
/// # Errors
/// The new graph does not infer: a bug of ours, reported as a refusal.
pub fn reshaped_views(region: &NormalRegion) -> Result<Option<NormalRegion>, GraphError> {
    let graph = &region.graph;
    let seen = leaves_seen(region);
    let reshaped = |id: NodeId| seen[id.0 as usize].as_ref().filter(|seen| seen.reshaped);
    let mut results = region.results.clone();
    let mut roots = graph.roots().to_vec();
    let mut changed = false;
    for (root, view) in roots.iter_mut().zip(&mut results) {
        while let (Op::Reshape | Op::Copy, [operand]) =
            (&graph.node(*root).op, &graph.node(*root).operands[..])
        {
            let Some(under) = reshaped_view(view, &graph.shape(*operand).dims) else { break };
            (*root, *view, changed) = (*operand, under, true);
        }
    }
    let mut needed = vec![false; graph.nodes().len()];
    let mut stack = roots.clone();
    while let Some(id) = stack.pop() {
        if !std::mem::replace(&mut needed[id.0 as usize], true) {
            match reshaped(id) {
                Some(_) => changed = true,
                None => stack.extend(&graph.node(id).operands),
            }
        }
    }
    if !changed {
        return Ok(None);
    }
    let mut out =
        NormalRegion { graph: Graph::new(graph.name.clone()), leaves: Vec::new(), results, ..region.clone() };
    let mut node_of: Vec<Option<NodeId>> = vec![None; graph.nodes().len()];
    for id in graph.ids().filter(|id| needed[id.0 as usize]) {
        let node = graph.node(id);
        let new = match (reshaped(id), &node.op) {
            (Some(seen), _) => leaf_as_seen(&mut out, region, seen, &node.shape)?,
            (None, Op::Parameter(k)) => {
                out.leaves.push(region.leaves[*k as usize].clone());
                out.graph.parameter(node.shape.clone())
            }
            (None, op) => {
                let operands: Vec<NodeId> =
                    node.operands.iter().filter_map(|o| node_of[o.0 as usize]).collect();
                out.graph.add_declared(op.clone(), &operands, Some(&node.shape))?
            }
        };
        let noted = out.graph.annotate(new);
        noted.name.clone_from(&node.name);
        noted.source.clone_from(&node.source);
        node_of[id.0 as usize] = Some(new);
    }
    for root in roots.iter().filter_map(|root| node_of[root.0 as usize]) {
        out.graph.add_root(root)?;
    }
    Ok(Some(out))
}

/// Per node the leaf that it is a view of.
fn leaves_seen(region: &NormalRegion) -> Vec<Option<Seen>> {
    let graph = &region.graph;
    let mut all: Vec<Option<Seen>> = Vec::with_capacity(graph.nodes().len());
    for node in graph.nodes() {
        let operand = node.operands.first().and_then(|o| all[o.0 as usize].clone());
        let seen = match (&node.op, operand) {
            (Op::Parameter(k), _) => Some(Seen {
                leaf: *k as usize,
                view: region.leaves[*k as usize].view.clone(),
                converts: Vec::new(),
                reshaped: false,
                transposed: false,
            }),
            (Op::Copy, operand) => operand,
            (Op::Convert, Some(mut seen)) => {
                seen.converts.push(node.shape.elem);
                Some(seen)
            }
            (Op::Transpose { perm }, Some(seen)) => {
                let dims = perm.iter().map(|&d| seen.view.dims[d]).collect();
                Some(Seen { view: View { dims, ..seen.view }, transposed: true, ..seen })
            }
            (Op::Reshape, Some(seen)) => {
                reshaped_view(&seen.view, &node.shape.dims).map(|view| Seen { view, reshaped: true, ..seen })
            }
            _ => None,
        };
        all.push(seen);
    }
    all
}

/// A new leaf, its dimensions in the order of memory, under the converts and the transpose that make `shape` of it.
fn leaf_as_seen(
    out: &mut NormalRegion,
    region: &NormalRegion,
    seen: &Seen,
    shape: &Shape,
) -> Result<NodeId, GraphError> {
    let order = match seen.transposed {
        true => memory_order(&seen.view),
        false => (0..shape.rank()).collect(),
    };
    let dims: Vec<(u64, i64)> = order.iter().map(|&d| seen.view.dims[d]).collect();
    let lens: Vec<u64> = dims.iter().map(|d| d.0).collect();
    let view = View { dims, ..seen.view.clone() };
    let mut node = out.graph.parameter(Shape::new(view.elem, lens.clone()));
    out.leaves.push(Leaf { view, ..region.leaves[seen.leaf].clone() });
    for &elem in &seen.converts {
        node = out.graph.add_declared(Op::Convert, &[node], Some(&Shape::new(elem, lens.clone())))?;
    }
    if order.iter().copied().eq(0..order.len()) {
        return Ok(node);
    }
    let mut perm = vec![0; order.len()];
    order.iter().enumerate().for_each(|(i, &d)| perm[d] = i);
    out.graph.add_declared(Op::Transpose { perm }, &[node], Some(shape))
}

/// The dimensions with the longest strides first; those of one element stay behind the one that they follow.
fn memory_order(view: &View) -> Vec<usize> {
    let mut last = i64::MAX;
    let keys: Vec<i64> = view
        .dims
        .iter()
        .map(|&(len, stride)| {
            if len != 1 {
                last = stride.saturating_abs();
            }
            last
        })
        .collect();
    let mut order: Vec<usize> = (0..view.dims.len()).collect();
    order.sort_by_key(|&d| std::cmp::Reverse(keys[d]));
    order
}

/// The same elements in the same order under other dimensions, if strides can say so.
fn reshaped_view(view: &View, dims: &[u64]) -> Option<View> {
    if dims.contains(&0) {
        return None;
    }
    // Outermost first: runs of elements that lie one after the other.
    let mut runs: Vec<(u64, i64)> = Vec::new();
    for &(len, stride) in view.dims.iter().filter(|d| d.0 != 1) {
        match runs.last_mut() {
            Some(run) if i64::try_from(len).ok()?.checked_mul(stride)? == run.1 => {
                *run = (run.0.checked_mul(len)?, stride);
            }
            _ => runs.push((len, stride)),
        }
    }
    let mut made = vec![(1, 0); dims.len()];
    let mut inner = i64::try_from(view.elem.bytes()).ok()?;
    let mut run = runs.pop();
    for (d, &len) in dims.iter().enumerate().rev() {
        if len == 1 {
            made[d] = (1, inner);
            continue;
        }
        let (left, stride) = run?;
        if !left.is_multiple_of(len) {
            return None;
        }
        made[d] = (len, stride);
        inner = i64::try_from(len).ok()?.checked_mul(stride)?;
        run = match left / len {
            1 => runs.pop(),
            rest => Some((rest, inner)),
        };
    }
    run.is_none().then(|| View { dims: made, ..view.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use act_isa::Space;

    fn view(dims: &[(u64, i64)]) -> View {
        View { dims: dims.to_vec(), ..View::row_major(Space::Operand(0), &Shape::new(ElemType::S16, vec![])) }
    }

    #[test]
    fn what_strides_can_say() {
        let dims = |v: Option<View>| v.map(|v| v.dims);
        let rows = view(&[(4, 12), (6, 2)]);
        assert_eq!(dims(reshaped_view(&rows, &[24])), Some(vec![(24, 2)]));
        assert_eq!(dims(reshaped_view(&rows, &[2, 1, 12])), Some(vec![(2, 24), (1, 24), (12, 2)]));
        assert_eq!(dims(reshaped_view(&rows, &[1, 24, 1])), Some(vec![(1, 48), (24, 2), (1, 2)]));
        let pitched = view(&[(4, 20), (6, 2)]);
        assert_eq!(dims(reshaped_view(&pitched, &[24])), None);
        assert_eq!(
            dims(reshaped_view(&pitched, &[2, 2, 3, 2])),
            Some(vec![(2, 40), (2, 20), (3, 4), (2, 2)])
        );
        assert_eq!(dims(reshaped_view(&view(&[(4, 2), (6, 8)]), &[24])), None);
        assert_eq!(
            dims(reshaped_view(&view(&[(3, 0), (2, 2)]), &[3, 1, 2])),
            Some(vec![(3, 0), (1, 4), (2, 2)])
        );
        assert_eq!(dims(reshaped_view(&view(&[]), &[1, 1])), Some(vec![(1, 2), (1, 2)]));
        assert_eq!(dims(reshaped_view(&view(&[(0, 2)]), &[0, 3])), None);
        assert_eq!(memory_order(&view(&[(4, 2), (1, 0), (6, 8)])), [2, 0, 1]);
    }
}
