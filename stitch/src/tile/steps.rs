//! One step of a contraction whose tile is more than one instruction computes: its product in the parts that
//! instructions have, added up in the order of the contraction. Knows no accelerator.

use super::slots::{SlotForm, part, seen_as};
use act_hlo::{Binary, Graph, GraphError, Node, NodeId, Op, Shape};

/// How steps are taken apart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Steps {
    pub(super) form: SlotForm,
    /// The most of the contraction that one part has.
    pub(super) depth: Option<u64>,
}

impl Steps {
    /// The sum in the slot `before`, if there is one, with the product of `factors`, like `dot`, added to it.
    pub(super) fn add_product(
        &self,
        graph: &mut Graph,
        before: Option<NodeId>,
        dot: &Node,
        factors: [NodeId; 2],
    ) -> Result<NodeId, GraphError> {
        let form = self.form;
        let (Some((blocks, count)), Op::Dot(dims)) = (form.blocks(&dot.shape), &dot.op) else {
            let before = before.map(|slot| form.take(graph, slot, &dot.shape)).transpose()?;
            let sum = self.by_depth(graph, before, dot, factors, &dot.shape)?;
            return form.put(graph, sum);
        };
        let free = |d: &usize| !dims.rhs_contracting.contains(d) && !dims.rhs_batch.contains(d);
        let column = (0..graph.shape(factors[1]).rank()).find(free).unwrap_or(0);
        let before = match before {
            Some(slot) => {
                form.blocks_in(graph, slot, &dot.shape, blocks, count)?.into_iter().map(Some).collect()
            }
            None => vec![None; count as usize],
        };
        let shape = Shape::new(dot.shape.elem, vec![dot.shape.dims[0], blocks.width]);
        let mut sums = Vec::with_capacity(before.len());
        for (k, before) in (0..).zip(before) {
            let right = part(graph, factors[1], column, k * blocks.width, blocks.width)?;
            sums.push(self.by_depth(graph, before, dot, [factors[0], right], &shape)?);
        }
        let (dim, _) = SlotForm::step(blocks, &dot.shape);
        let sum = graph.add(Op::Concatenate { dim }, &sums)?;
        seen_as(graph, sum, &form.shape(&dot.shape))
    }

    /// The product of `factors`, in parts of the contraction from the first on, added to `before`.
    fn by_depth(
        &self,
        graph: &mut Graph,
        before: Option<NodeId>,
        dot: &Node,
        factors: [NodeId; 2],
        shape: &Shape,
    ) -> Result<NodeId, GraphError> {
        let contracted = match &dot.op {
            Op::Dot(dims) => dims.lhs_contracting.first().copied().zip(dims.rhs_contracting.first().copied()),
            _ => None,
        };
        let add = |graph: &mut Graph, before: Option<NodeId>, factors| {
            let product = product(graph, dot, factors, shape)?;
            match before {
                Some(before) => graph.add(Op::Binary(Binary::Add), &[before, product]),
                None => Ok(product),
            }
        };
        let (Some((left, right)), Some(depth)) = (contracted, self.depth) else {
            return add(graph, before, factors);
        };
        let whole = graph.shape(factors[0]).dims[left];
        let (first, depth) = (depth.clamp(1, whole.max(1)), depth.max(1));
        let first = [part(graph, factors[0], left, 0, first)?, part(graph, factors[1], right, 0, first)?];
        let mut sum = add(graph, before, first)?;
        let mut start = depth;
        while start < whole {
            let len = depth.min(whole - start);
            let next =
                [part(graph, factors[0], left, start, len)?, part(graph, factors[1], right, start, len)?];
            sum = add(graph, Some(sum), next)?;
            start += len;
        }
        Ok(sum)
    }
}

fn product(graph: &mut Graph, dot: &Node, factors: [NodeId; 2], shape: &Shape) -> Result<NodeId, GraphError> {
    let product = graph.add_declared(dot.op.clone(), &factors, Some(shape))?;
    let noted = graph.annotate(product);
    noted.name.clone_from(&dot.name);
    noted.source.clone_from(&dot.source);
    Ok(product)
}
