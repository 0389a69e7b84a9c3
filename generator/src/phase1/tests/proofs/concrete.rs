//! Terms at given sizes: a kernel with the term as its result, for comparison with what the code of a rule proposes.
//! Knows no rule.

use super::language::{Size, T};
use act_hlo::{ElemType, Graph, Literal, NodeId, Op, OpKind, Shape};
use std::collections::BTreeMap;

pub(super) struct Build<'a> {
    pub(super) graph: Graph,
    sizes: &'a BTreeMap<&'static str, i64>,
    elem: ElemType,
    parameters: BTreeMap<&'static str, NodeId>,
}

impl<'a> Build<'a> {
    pub(super) fn new(elem: ElemType, sizes: &'a BTreeMap<&'static str, i64>) -> Build<'a> {
        Build { graph: Graph::default(), sizes, elem, parameters: BTreeMap::new() }
    }

    fn lens(&self, dims: &[Size]) -> Vec<u64> {
        dims.iter().map(|d| u64::try_from(d.at(self.sizes)).expect("a size")).collect()
    }

    fn add(&mut self, op: Op, operands: &[NodeId], shape: Option<&Shape>) -> NodeId {
        self.graph.add_declared(op, operands, shape).unwrap_or_else(|e| panic!("{e}"))
    }

    /// Adds a term; operands that are names are parameters, in the order of their first use.
    pub(super) fn term(&mut self, term: &T) -> NodeId {
        self.typed(term, self.elem)
    }

    fn typed(&mut self, term: &T, elem: ElemType) -> NodeId {
        let inner = match term {
            T::Convert(..) | T::Bits(..) => self.elem,
            _ => elem,
        };
        if let T::Input(name, dims) = term {
            if let Some(&known) = self.parameters.get(name) {
                return known;
            }
            let shape = Shape::new(elem, self.lens(dims));
            let op = OpKind::Parameter(self.parameters.len() as u32);
            let node = self.add(op, &[], Some(&shape));
            self.parameters.insert(name, node);
            return node;
        }
        if let T::Splat(value, dims) = term {
            let scalar = act_isa::constant::int_scalar(elem, *value).expect("a number of the type");
            let scalar: Literal = scalar;
            let scalar = self.add(OpKind::Constant(scalar), &[], None);
            if dims.is_empty() {
                return scalar;
            }
            let shape = Shape::new(elem, self.lens(dims));
            return self.add(OpKind::Broadcast { dims: Vec::new() }, &[scalar], Some(&shape));
        }
        let operands: Vec<NodeId> = term.operands().into_iter().map(|o| self.typed(o, inner)).collect();
        let dims = self.lens(&term.dims());
        // Bounds of a clamp come first.
        let main = usize::from(matches!(term, T::Clamp(..)));
        let elem = self.graph.shape(operands[main]).elem;
        let number = |s: &Size| s.at(self.sizes);
        let (op, elem): (Op, ElemType) = match term {
            T::Input(..) | T::Splat(..) => unreachable!("handled above"),
            T::Slice(_, ranges) => {
                let start: Vec<i64> = ranges.iter().map(|r| number(&r.0)).collect();
                let stride: Vec<i64> = ranges.iter().map(|r| r.2).collect();
                let limit = (0..start.len()).map(|d| start[d] + (dims[d] as i64 - 1) * stride[d] + 1);
                (OpKind::Slice { limit: limit.collect(), start, stride }, elem)
            }
            T::Transpose(_, perm) => (OpKind::Transpose { perm: perm.clone() }, elem),
            T::Reverse(_, over) => (OpKind::Reverse { dims: over.clone() }, elem),
            T::Concatenate(dim, _) => (OpKind::Concatenate { dim: *dim }, elem),
            T::Broadcast(_, at, _) => (OpKind::Broadcast { dims: at.clone() }, elem),
            T::Reshape(..) => (OpKind::Reshape, elem),
            T::Unary(op, _) => (OpKind::Unary(*op), elem),
            T::Binary(op, ..) => (OpKind::Binary(*op), elem),
            T::Clamp(..) => (OpKind::Clamp, elem),
            T::Convert(to, _) => (OpKind::Convert, *to),
            T::Bits(to, ..) => (OpKind::BitcastConvert, *to),
            T::Dot(dims, ..) => (OpKind::Dot(dims.clone()), elem),
            T::Reduce(op, over, ..) => (OpKind::Reduce { dims: over.clone(), combiner: *op }, elem),
        };
        self.add(op, &operands, Some(&Shape::new(elem, dims)))
    }
}

/// The operators below a node, sorted; parameters and constants do not count, nor do broadcasts of scalars.
pub(super) fn operators(graph: &Graph, node: NodeId) -> Vec<String> {
    let mut found = Vec::new();
    let mut left = vec![node];
    while let Some(id) = left.pop() {
        let n = graph.node(id);
        let scalar = matches!(&n.op, OpKind::Broadcast { dims } if dims.is_empty());
        if !scalar && !matches!(n.op, OpKind::Parameter(_) | OpKind::Constant(_)) {
            found.push(crate::phase1::vocabulary::key(&n.op));
        }
        left.extend(&n.operands);
    }
    found.sort();
    found
}
