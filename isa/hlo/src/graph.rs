//! Dataflow graphs of tensor operators: a tiled kernel, a fused region, the semantics of an instruction.

use crate::{Layout, Op, Shape};

/// Index of a node in [`Graph::nodes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u32);

/// Where an operator came from in the user's program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceLoc {
    /// JAX's op_name, e.g. `jit(mlp)/dot_general`.
    pub op_name: String,
    pub file: String,
    /// 1-based; 0 when unknown.
    pub line: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    pub op: Op,
    pub operands: Vec<NodeId>,
    pub shape: Shape,
    /// Physical layout where the source states one; row-major when absent.
    pub layout: Option<Layout>,
    /// Name in the text form; may be empty.
    pub name: String,
    pub source: Option<SourceLoc>,
}

/// A directed acyclic graph in topological order: operands stand before their users, parameters are numbered
/// 0.. without gaps, any number of roots.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Graph {
    pub name: String,
    nodes: Vec<Node>,
    params: Vec<NodeId>,
    roots: Vec<NodeId>,
}

/// Why a node or a root was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GraphError {
    #[error("node {node} does not exist (the graph has {len})")]
    NoSuchNode { node: u32, len: usize },
    #[error("parameter {got} out of order: the next one is {expected}")]
    ParameterOrder { got: u32, expected: u32 },
    #[error(transparent)]
    Shape(#[from] crate::infer::ShapeError),
}

impl Graph {
    pub fn new(name: impl Into<String>) -> Graph {
        Graph { name: name.into(), ..Graph::default() }
    }

    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    /// All node ids in topological order.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = NodeId> + ExactSizeIterator + use<> {
        (0..self.nodes.len() as u32).map(NodeId)
    }

    /// Node of the k-th parameter at index k.
    pub fn params(&self) -> &[NodeId] {
        &self.params
    }

    pub fn roots(&self) -> &[NodeId] {
        &self.roots
    }

    pub fn shape(&self, id: NodeId) -> &Shape {
        &self.node(id).shape
    }

    /// Appends the next parameter.
    pub fn parameter(&mut self, shape: Shape) -> NodeId {
        let id = NodeId(self.nodes.len() as u32);
        self.nodes.push(Node {
            op: Op::Parameter(self.params.len() as u32),
            operands: Vec::new(),
            shape,
            layout: None,
            name: String::new(),
            source: None,
        });
        self.params.push(id);
        id
    }

    /// Appends a node whose shape follows from its operands.
    ///
    /// # Errors
    /// When an operand does not exist or shape inference refuses.
    pub fn add(&mut self, op: Op, operands: &[NodeId]) -> Result<NodeId, GraphError> {
        self.add_declared(op, operands, None)
    }

    /// Appends a node with a declared result shape, checked against what the operands allow.
    ///
    /// # Errors
    /// As [`Graph::add`].
    pub fn add_declared(
        &mut self,
        op: Op,
        operands: &[NodeId],
        declared: Option<&Shape>,
    ) -> Result<NodeId, GraphError> {
        if let Op::Parameter(got) = op {
            let expected = self.params.len() as u32;
            if got != expected {
                return Err(GraphError::ParameterOrder { got, expected });
            }
        }
        let mut shapes = Vec::with_capacity(operands.len());
        for &id in operands {
            self.check(id)?;
            shapes.push(self.shape(id));
        }
        let shape = crate::infer::infer_shape(&op, &shapes, declared)?;
        let id = NodeId(self.nodes.len() as u32);
        if matches!(op, Op::Parameter(_)) {
            self.params.push(id);
        }
        self.nodes.push(Node {
            op,
            operands: operands.to_vec(),
            shape,
            layout: None,
            name: String::new(),
            source: None,
        });
        Ok(id)
    }

    /// Names a node or notes its source or layout.
    pub fn annotate(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[id.0 as usize]
    }

    /// Adds a result.
    ///
    /// # Errors
    /// When the node does not exist.
    pub fn add_root(&mut self, id: NodeId) -> Result<(), GraphError> {
        self.check(id)?;
        self.roots.push(id);
        Ok(())
    }

    fn check(&self, id: NodeId) -> Result<(), GraphError> {
        if (id.0 as usize) < self.nodes.len() {
            Ok(())
        } else {
            Err(GraphError::NoSuchNode { node: id.0, len: self.nodes.len() })
        }
    }
}
