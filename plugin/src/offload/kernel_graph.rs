//! A region as a graph of its own, with the memory of its operands and results.

use super::flow::{Flow, FlowId};
use super::region::Region;
use act_hlo::proto::HloModule;
use act_hlo::{Graph, GraphError, NodeId, Op};
use act_isa::{Affine, Space, View};
use std::collections::BTreeMap;

/// What the compiler is given.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct KernelGraph {
    pub(crate) graph: Graph,
    /// Value of every parameter; a window where the region looks through one.
    pub(crate) inputs: Vec<FlowId>,
    /// Value of every root.
    pub(crate) outputs: Vec<FlowId>,
    pub(crate) operands: Vec<View>,
    pub(crate) results: Vec<View>,
    /// Value of every node, where it is one's last step.
    pub(crate) value: BTreeMap<NodeId, FlowId>,
}

impl KernelGraph {
    /// # Errors
    /// When the operators do not fit together by our shape rules.
    pub(crate) fn of(module: &HloModule, flow: &Flow, region: &Region) -> Result<KernelGraph, GraphError> {
        let outputs = region.outputs(flow);
        let mut building = Building {
            module,
            flow,
            region,
            graph: Graph::new(""),
            inputs: Vec::new(),
            nodes: BTreeMap::new(),
        };
        for &output in &outputs {
            building.add(output)?;
        }
        let Building { mut graph, inputs, nodes, .. } = building;
        for output in &outputs {
            graph.add_root(nodes[output])?;
        }
        let view = |id: FlowId, space: Space| dense_view(flow, id, space);
        Ok(KernelGraph {
            operands: inputs.iter().enumerate().map(|(k, &id)| view(id, Space::Operand(k as u16))).collect(),
            results: outputs.iter().enumerate().map(|(k, &id)| view(id, Space::Result(k as u16))).collect(),
            value: nodes.into_iter().map(|(value, node)| (node, value)).collect(),
            graph,
            inputs,
            outputs,
        })
    }

    /// The same without names and source positions: what makes two kernels the same kernel.
    pub(crate) fn canonical(&self) -> (Graph, Vec<View>, Vec<View>) {
        let mut graph = self.graph.clone();
        graph.name.clear();
        for id in graph.ids() {
            let node = graph.annotate(id);
            node.name.clear();
            node.source = None;
        }
        (graph, self.operands.clone(), self.results.clone())
    }
}

/// The memory of a value as XLA lays it out, dense, with the strides of its layout; or that of a window.
fn dense_view(flow: &Flow, id: FlowId, space: Space) -> View {
    // Values at a region's border are arrays with a layout: their operator would not be takable otherwise.
    let Some(array) = flow.array(id) else {
        return View { space, elem: act_hlo::ElemType::Pred, dims: Vec::new(), start: Affine::default() };
    };
    let strides = match (&array.layout, flow.window(id)) {
        (_, Some(strides)) => strides,
        (Some(layout), None) => layout.byte_strides(&array.shape),
        (None, None) => array.shape.row_major_strides().iter().map(|&s| s as i64).collect(),
    };
    View {
        space,
        elem: array.shape.elem,
        dims: array.shape.dims.iter().copied().zip(strides).collect(),
        start: Affine::default(),
    }
}

struct Building<'a> {
    module: &'a HloModule,
    flow: &'a Flow,
    region: &'a Region,
    graph: Graph,
    inputs: Vec<FlowId>,
    nodes: BTreeMap<FlowId, NodeId>,
}

impl Building<'_> {
    /// Adds a value after everything it needs; deep chains must not be deep recursions.
    fn add(&mut self, output: FlowId) -> Result<(), GraphError> {
        let mut stack = vec![(output, false)];
        while let Some((id, operands_done)) = stack.pop() {
            if self.nodes.contains_key(&id) {
                continue;
            }
            let inside = self.region.contains(id) || self.flow.node(id).duplicable;
            if inside && !operands_done {
                stack.push((id, true));
                stack.extend(self.flow.node(id).operands.iter().rev().map(|&o| (o, false)));
                continue;
            }
            let node = if inside { self.operator(id)? } else { self.parameter(id) };
            let noted = self.graph.annotate(node);
            noted.name = self.flow.node(id).instruction.name().to_owned();
            noted.source = self.flow.source(self.module, id);
            self.nodes.insert(id, node);
        }
        Ok(())
    }

    fn parameter(&mut self, id: FlowId) -> NodeId {
        self.inputs.push(id);
        // As in `dense_view`: what a takable operator reads is an array.
        let array = self.flow.array(id);
        let shape =
            array.map_or_else(|| act_hlo::Shape::scalar(act_hlo::ElemType::Pred), |a| a.shape.clone());
        self.graph.parameter(shape)
    }

    fn operator(&mut self, id: FlowId) -> Result<NodeId, GraphError> {
        let node = self.flow.node(id);
        let mut operands: Vec<NodeId> = node.operands.iter().map(|o| self.nodes[o]).collect();
        let Ok(converted) = &node.takable else { return Ok(self.parameter(id)) };
        let mut last = NodeId(0);
        for (op, shape) in &converted.steps {
            last = match op {
                Op::Constant(literal) if shape.rank() > 0 => match literal.splat_value() {
                    Some(value) => {
                        let scalar = self.graph.add(Op::Constant(value), &[])?;
                        self.graph.add_declared(Op::Broadcast { dims: Vec::new() }, &[scalar], Some(shape))?
                    }
                    None => self.graph.add_declared(op.clone(), &[], Some(shape))?,
                },
                _ => self.graph.add_declared(op.clone(), &operands, Some(shape))?,
            };
            operands = vec![last];
        }
        Ok(last)
    }
}
