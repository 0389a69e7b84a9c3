//! The normal form in which a region is tiled: every use of a parameter or of a constant is a leaf of its own, so that
//! `x · xᵀ` can cut its two uses of x differently; constants are scalars under a broadcast, or leaves that live in the
//! constant segment; every dot has a free dimension on both sides.

use super::segments::Segments;
use act_hlo::{Graph, GraphError, Literal, NodeId, Op, Shape};
use act_isa::{Affine, View};

/// What a parameter of the normal graph stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeafSource {
    /// Operand k of the region.
    Operand(usize),
    /// A constant at this byte offset of the region's constants.
    Constant { offset: u64 },
}

/// A parameter of the normal graph and where all of it lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf {
    pub source: LeafSource,
    pub view: View,
}

/// A region ready for tiling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NormalRegion {
    pub graph: Graph,
    /// One per parameter of `graph`.
    pub leaves: Vec<Leaf>,
    /// One per root.
    pub results: Vec<View>,
    /// The region's constants.
    pub consts: Vec<u8>,
    pub segments: Segments,
    /// Copies that the host makes before anything else: from where a leaf lies into the packed segment.
    pub gathers: Vec<(View, View)>,
    /// Bytes of the packed segment that the gathered leaves take.
    pub gathered_bytes: u64,
}

/// Why a region cannot be tiled at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NormalizeError {
    #[error("the region has {params} parameters and {roots} results, but views for {operands} and {results}")]
    ViewCount { params: usize, roots: usize, operands: usize, results: usize },
    #[error("{what} {index} is {shape} but its view is {view}")]
    ViewShape { what: &'static str, index: usize, shape: Shape, view: String },
    #[error(transparent)]
    Graph(#[from] GraphError),
}

/// Alignment of every constant in the constant segment, in bytes: XLA's own for buffers.
const CONSTANT_ALIGN: usize = 16;

/// Brings a region into normal form.
///
/// # Errors
/// Views that do not fit the graph's parameters and roots.
pub fn normalize(graph: &Graph, operands: &[View], results: &[View]) -> Result<NormalRegion, NormalizeError> {
    let counts = (graph.params().len(), graph.roots().len());
    if counts != (operands.len(), results.len()) {
        return Err(NormalizeError::ViewCount {
            params: counts.0,
            roots: counts.1,
            operands: operands.len(),
            results: results.len(),
        });
    }
    for (what, ids, views) in [("operand", graph.params(), operands), ("result", graph.roots(), results)] {
        for (index, (&id, view)) in ids.iter().zip(views).enumerate() {
            let shape = graph.shape(id);
            if view.elem != shape.elem || !view.dims.iter().map(|d| d.0).eq(shape.dims.iter().copied()) {
                let view = format!("{}{:?}", view.elem, view.dims);
                return Err(NormalizeError::ViewShape { what, index, shape: shape.clone(), view });
            }
        }
    }
    let mut normal = Normalizer {
        source: graph,
        operands,
        out: Graph::new(graph.name.clone()),
        leaves: Vec::new(),
        consts: Vec::new(),
        done: vec![None; graph.nodes().len()],
        depth: leaf_depths(graph),
    };
    for id in graph.ids() {
        let node = graph.node(id);
        if !normal.is_leaf(id) {
            let new = normal.rebuild(id)?;
            let noted = normal.out.annotate(new);
            noted.name.clone_from(&node.name);
            noted.source.clone_from(&node.source);
            normal.done[id.0 as usize] = Some(new);
        }
    }
    for &root in graph.roots() {
        let root = normal.value(root)?;
        normal.out.add_root(root)?;
    }
    Ok(NormalRegion {
        graph: normal.out,
        leaves: normal.leaves,
        results: results.to_vec(),
        consts: normal.consts,
        segments: Segments { operands: operands.len() as u16 },
        gathers: Vec::new(),
        gathered_bytes: 0,
    })
}

struct Normalizer<'a> {
    source: &'a Graph,
    operands: &'a [View],
    out: Graph,
    leaves: Vec<Leaf>,
    consts: Vec<u8>,
    done: Vec<Option<NodeId>>,
    /// Operators between a node and its one leaf; `None` for nodes that are built once for all users.
    depth: Vec<Option<usize>>,
}

/// Longest chain above a leaf that is copied with it.
const LEAF_CHAIN: usize = 4;

fn leaf_depths(graph: &Graph) -> Vec<Option<usize>> {
    let mut depths: Vec<Option<usize>> = Vec::with_capacity(graph.nodes().len());
    for node in graph.nodes() {
        let depth = match (&node.op, &node.operands[..]) {
            (Op::Parameter(_) | Op::Constant(_), _) => Some(0),
            (
                Op::Convert
                | Op::BitcastConvert
                | Op::Copy
                | Op::Broadcast { .. }
                | Op::Reshape
                | Op::Transpose { .. },
                [operand],
            ) => depths[operand.0 as usize].map(|d| d + 1).filter(|&d| d <= LEAF_CHAIN),
            _ => None,
        };
        depths.push(depth);
    }
    depths
}

impl Normalizer<'_> {
    /// Leaves are copied at every use, and so are short chains that only re-type or move one leaf: each user cuts its
    /// dimensions in its own way.
    fn is_leaf(&self, id: NodeId) -> bool {
        self.depth[id.0 as usize].is_some()
    }

    fn value(&mut self, id: NodeId) -> Result<NodeId, GraphError> {
        if let Some(done) = self.done[id.0 as usize] {
            return Ok(done);
        }
        let node = self.source.node(id);
        match &node.op {
            Op::Parameter(k) => {
                let index = *k as usize;
                let view = self.operands[index].clone();
                self.leaves.push(Leaf { source: LeafSource::Operand(index), view });
                Ok(self.out.parameter(node.shape.clone()))
            }
            Op::Constant(literal) => self.constant(literal),
            Op::Broadcast { .. } => {
                let splat = node.operands.first().and_then(|&o| match &self.source.node(o).op {
                    Op::Constant(c) => c.splat_value(),
                    _ => None,
                });
                match splat {
                    Some(value) => self.splat(value, &node.shape),
                    None => self.rebuild(id),
                }
            }
            _ => self.rebuild(id),
        }
    }

    fn splat(&mut self, value: Literal, shape: &Shape) -> Result<NodeId, GraphError> {
        let scalar = self.out.add_declared(Op::Constant(value.clone()), &[], Some(value.shape()))?;
        if shape.rank() == 0 {
            return Ok(scalar);
        }
        self.out.add_declared(Op::Broadcast { dims: Vec::new() }, &[scalar], Some(shape))
    }

    fn constant(&mut self, literal: &Literal) -> Result<NodeId, GraphError> {
        if let Some(value) = literal.splat_value() {
            return self.splat(value, literal.shape());
        }
        self.consts.resize(self.consts.len().next_multiple_of(CONSTANT_ALIGN), 0);
        let offset = self.consts.len() as u64;
        self.consts.extend_from_slice(literal.bytes());
        let mut view =
            View::row_major(Segments { operands: self.operands.len() as u16 }.consts(), literal.shape());
        view.start = Affine::constant(offset as i64);
        self.leaves.push(Leaf { source: LeafSource::Constant { offset }, view });
        Ok(self.out.parameter(literal.shape().clone()))
    }

    fn rebuild(&mut self, id: NodeId) -> Result<NodeId, GraphError> {
        let node = self.source.node(id);
        let operands = node.operands.iter().map(|&o| self.value(o)).collect::<Result<Vec<_>, _>>()?;
        match &node.op {
            Op::Dot(dims) => self.dot(dims.clone(), operands[0], operands[1], &node.shape),
            op => self.out.add_declared(op.clone(), &operands, Some(&node.shape)),
        }
    }

    /// A dot whose operand has contracting and batch dimensions only gets a free dimension of size 1 there, which is
    /// reshaped away from the result again.
    fn dot(
        &mut self,
        mut dims: act_hlo::DotDims,
        lhs: NodeId,
        rhs: NodeId,
        shape: &Shape,
    ) -> Result<NodeId, GraphError> {
        let bound = |batch: &[usize], contracting: &[usize]| batch.len() + contracting.len();
        let lhs_free = self.out.shape(lhs).rank() > bound(&dims.lhs_batch, &dims.lhs_contracting);
        let rhs_free = self.out.shape(rhs).rank() > bound(&dims.rhs_batch, &dims.rhs_contracting);
        if lhs_free && rhs_free {
            return self.out.add_declared(Op::Dot(dims), &[lhs, rhs], Some(shape));
        }
        let batch = dims.lhs_batch.len();
        let mut wide = shape.clone();
        let mut operands = [lhs, rhs];
        if !lhs_free {
            // In front of the contraction, the natural order of a left operand.
            operands[0] = self.with_unit_dim(lhs, 0)?;
            for d in dims.lhs_batch.iter_mut().chain(&mut dims.lhs_contracting) {
                *d += 1;
            }
            wide.dims.insert(batch, 1);
        }
        if !rhs_free {
            let end = self.out.shape(rhs).rank();
            operands[1] = self.with_unit_dim(rhs, end)?;
            wide.dims.push(1);
        }
        let dot = self.out.add_declared(Op::Dot(dims), &operands, Some(&wide))?;
        self.out.add_declared(Op::Reshape, &[dot], Some(shape))
    }

    fn with_unit_dim(&mut self, id: NodeId, at: usize) -> Result<NodeId, GraphError> {
        let mut shape = self.out.shape(id).clone();
        shape.dims.insert(at, 1);
        self.out.add_declared(Op::Reshape, &[id], Some(&shape))
    }
}
