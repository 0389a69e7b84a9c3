//! Products of narrow floats as what they are by definition (facts of XLA's CPU backend): a sum in f32, rounded once. In
//! this form a long contraction can be cut into parts.

use act_hlo::{ElemType, Graph, GraphError, NodeId, Op, Shape};

/// The graph with every product of a narrow float type in f32 and converted; `None` when it has none.
///
/// # Errors
/// The graph is not well-formed.
pub fn widened(graph: &Graph) -> Result<Option<Graph>, GraphError> {
    let narrow = |id: NodeId| {
        matches!(graph.node(id).op, Op::Dot(_))
            && matches!(graph.shape(id).elem, ElemType::BF16 | ElemType::F16)
    };
    if !graph.ids().any(narrow) {
        return Ok(None);
    }
    let mut out = Graph::new(graph.name.clone());
    let mut done: Vec<NodeId> = Vec::with_capacity(graph.nodes().len());
    for id in graph.ids() {
        let node = graph.node(id);
        let operands: Vec<NodeId> = node.operands.iter().map(|o| done[o.0 as usize]).collect();
        let new = match &node.op {
            Op::Parameter(_) => out.parameter(node.shape.clone()),
            op if narrow(id) => {
                let wide = Shape::new(ElemType::F32, node.shape.dims.clone());
                let sum = out.add_declared(op.clone(), &operands, Some(&wide))?;
                out.annotate(sum).source.clone_from(&node.source);
                out.add_declared(Op::Convert, &[sum], Some(&node.shape))?
            }
            op => out.add_declared(op.clone(), &operands, Some(&node.shape))?,
        };
        let noted = out.annotate(new);
        noted.name.clone_from(&node.name);
        noted.source.clone_from(&node.source);
        done.push(new);
    }
    for root in graph.roots() {
        out.add_root(done[root.0 as usize])?;
    }
    Ok(Some(out))
}

#[cfg(test)]
mod tests {
    use super::*;
    use act_hlo::random::{SplitMix64, Values, random_literal};
    use act_hlo::{DotDims, eval};

    fn product(elem: ElemType) -> Graph {
        let mut graph = Graph::new("product");
        let a = graph.parameter(Shape::new(elem, vec![3, 70]));
        let b = graph.parameter(Shape::new(elem, vec![70, 5]));
        let shape = Shape::new(elem, vec![3, 5]);
        let dot = graph.add_declared(Op::Dot(DotDims::matmul()), &[a, b], Some(&shape)).expect("a product");
        graph.add_root(dot).expect("a root");
        graph
    }

    #[test]
    fn the_wide_form_has_the_same_value() {
        let mut random = SplitMix64::new(5);
        for elem in [ElemType::BF16, ElemType::F16] {
            let graph = product(elem);
            let wide = widened(&graph).expect("well-formed").expect("a narrow product");
            assert!(wide.nodes().iter().any(|n| n.shape.elem == ElemType::F32));
            for _ in 0..50 {
                let inputs: Vec<_> = graph
                    .params()
                    .iter()
                    .map(|&p| random_literal(&mut random, graph.shape(p), Values::Unit))
                    .collect();
                assert_eq!(eval(&graph, &inputs), eval(&wide, &inputs));
            }
        }
        assert_eq!(widened(&product(ElemType::F32)), Ok(None));
    }
}
