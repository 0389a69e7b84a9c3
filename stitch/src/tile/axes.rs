//! Axes: which dimensions of which values run together. Two dimensions are one axis when an operator maps the one onto
//! the other index by index; cutting the axis then cuts both alike.

use act_hlo::{Graph, NodeId, Op, Shape};
use std::collections::BTreeSet;

/// Index into [`Axes::axes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AxisId(pub u32);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    pub size: u64,
    /// Some operator needs the axis whole: a reduction, a reversal, a slice along it, a reshape that mixes it.
    pub blocked: bool,
    /// Dots that contract over it.
    pub contracted_by: Vec<NodeId>,
    /// A batch dimension of some dot.
    pub batch: bool,
    /// A reshape makes it out of nothing or drops it: it stays of size 1.
    pub unit: bool,
}

/// The axes of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axes {
    pub axes: Vec<Axis>,
    dims: Vec<Vec<AxisId>>,
}

impl Axes {
    pub fn axis(&self, id: AxisId) -> &Axis {
        &self.axes[id.0 as usize]
    }

    /// The axis of every dimension of a node.
    pub fn of(&self, node: NodeId) -> &[AxisId] {
        &self.dims[node.0 as usize]
    }

    pub fn ids(&self) -> impl Iterator<Item = AxisId> + use<> {
        (0..self.axes.len() as u32).map(AxisId)
    }

    /// Whether iterations over parts of the axis are independent: nothing needs it whole, every root has it.
    pub fn is_parallel(&self, graph: &Graph, id: AxisId) -> bool {
        let axis = self.axis(id);
        !axis.blocked
            && axis.contracted_by.is_empty()
            && graph.roots().iter().all(|&root| self.of(root).contains(&id))
    }

    /// Whether the contraction of `dot` over the axis can be a sum over parts of it.
    pub fn is_contraction_of(&self, graph: &Graph, id: AxisId, dot: NodeId) -> bool {
        let axis = self.axis(id);
        !axis.blocked
            && axis.contracted_by == [dot]
            && graph.roots().iter().all(|&root| !self.of(root).contains(&id))
    }

    /// Finds the axes of `graph`, which is in the normal form of [`super::normalize`].
    pub fn of_graph(graph: &Graph) -> Axes {
        let mut finder = Finder::new(graph);
        for id in graph.ids() {
            finder.visit(graph, id);
        }
        finder.finish(graph)
    }
}

/// Union-find over all dimensions of all nodes.
struct Finder {
    /// Number of the first dimension of every node.
    first: Vec<usize>,
    parent: Vec<usize>,
    blocked: BTreeSet<usize>,
    batch: BTreeSet<usize>,
    unit: BTreeSet<usize>,
    contracted: Vec<(usize, NodeId)>,
}

impl Finder {
    fn new(graph: &Graph) -> Finder {
        let mut first = Vec::with_capacity(graph.nodes().len());
        let mut count = 0;
        for node in graph.nodes() {
            first.push(count);
            count += node.shape.rank();
        }
        Finder {
            first,
            parent: (0..count).collect(),
            blocked: BTreeSet::new(),
            batch: BTreeSet::new(),
            unit: BTreeSet::new(),
            contracted: Vec::new(),
        }
    }

    fn dim(&self, node: NodeId, d: usize) -> usize {
        self.first[node.0 as usize] + d
    }

    fn find(&mut self, mut x: usize) -> usize {
        while self.parent[x] != x {
            self.parent[x] = self.parent[self.parent[x]];
            x = self.parent[x];
        }
        x
    }

    fn tie(&mut self, a: (NodeId, usize), b: (NodeId, usize)) {
        let (a, b) = (self.dim(a.0, a.1), self.dim(b.0, b.1));
        let (a, b) = (self.find(a), self.find(b));
        // The smaller number stays the representative, so that axes are numbered in graph order.
        self.parent[a.max(b)] = a.min(b);
    }

    fn block(&mut self, node: NodeId, d: usize) {
        let dim = self.dim(node, d);
        self.blocked.insert(dim);
    }

    fn tie_same_rank(&mut self, graph: &Graph, id: NodeId) {
        let node = graph.node(id);
        for &operand in &node.operands {
            if graph.shape(operand).dims == node.shape.dims {
                for d in 0..node.shape.rank() {
                    self.tie((operand, d), (id, d));
                }
            }
        }
    }

    fn visit(&mut self, graph: &Graph, id: NodeId) {
        let node = graph.node(id);
        let rank = node.shape.rank();
        match &node.op {
            Op::Parameter(_) | Op::Constant(_) => {}
            Op::Iota { dim } => self.block(id, *dim),
            Op::Eye => (0..rank).for_each(|d| self.block(id, d)),
            Op::Unary(_)
            | Op::Binary(_)
            | Op::Compare(_)
            | Op::Select
            | Op::Clamp
            | Op::Fma
            | Op::Convert
            | Op::Copy
            | Op::ReducePrecision { .. } => self.tie_same_rank(graph, id),
            Op::BitcastConvert => {
                let operand = node.operands[0];
                let common = rank.min(graph.shape(operand).rank());
                (0..common).for_each(|d| self.tie((operand, d), (id, d)));
                (common..rank).for_each(|d| self.block(id, d));
                (common..graph.shape(operand).rank()).for_each(|d| self.block(operand, d));
            }
            Op::Broadcast { dims } => {
                for (d, &to) in dims.iter().enumerate() {
                    self.tie((node.operands[0], d), (id, to));
                }
            }
            Op::Transpose { perm } => {
                for (d, &from) in perm.iter().enumerate() {
                    self.tie((node.operands[0], from), (id, d));
                }
            }
            Op::Reshape => self.reshape(graph, id),
            Op::Slice { .. } | Op::Pad { .. } => {
                let operand = node.operands[0];
                for d in 0..rank {
                    if keeps_dimension(&node.op, d, graph.shape(operand)) {
                        self.tie((operand, d), (id, d));
                    } else {
                        self.block(operand, d);
                        self.block(id, d);
                    }
                }
            }
            Op::Reverse { dims } => {
                self.tie_same_rank(graph, id);
                dims.iter().for_each(|&d| self.block(id, d));
            }
            Op::Concatenate { dim } => {
                for &operand in &node.operands {
                    for d in 0..rank {
                        if d == *dim {
                            self.block(operand, d);
                            self.block(id, d);
                        } else {
                            self.tie((operand, d), (id, d));
                        }
                    }
                }
            }
            Op::Reduce { dims, .. } => {
                let operand = node.operands[0];
                let kept = (0..graph.shape(operand).rank()).filter(|d| !dims.contains(d));
                kept.enumerate().for_each(|(to, from)| self.tie((operand, from), (id, to)));
                dims.iter().for_each(|&d| self.block(operand, d));
            }
            Op::DynamicSlice { .. } | Op::DynamicUpdateSlice => {
                (0..rank).for_each(|d| self.block(id, d));
                for &operand in &node.operands {
                    (0..graph.shape(operand).rank()).for_each(|d| self.block(operand, d));
                }
            }
            Op::Dot(dims) => {
                let (lhs, rhs) = (node.operands[0], node.operands[1]);
                for (to, (&l, &r)) in dims.lhs_batch.iter().zip(&dims.rhs_batch).enumerate() {
                    self.tie((lhs, l), (rhs, r));
                    self.tie((lhs, l), (id, to));
                    let dim = self.dim(id, to);
                    self.batch.insert(dim);
                }
                for (&l, &r) in dims.lhs_contracting.iter().zip(&dims.rhs_contracting) {
                    self.tie((lhs, l), (rhs, r));
                    let dim = self.dim(lhs, l);
                    self.contracted.push((dim, id));
                }
                let mut to = dims.lhs_batch.len();
                for (operand, batch, contracting) in [
                    (lhs, &dims.lhs_batch, &dims.lhs_contracting),
                    (rhs, &dims.rhs_batch, &dims.rhs_contracting),
                ] {
                    for d in 0..graph.shape(operand).rank() {
                        if !batch.contains(&d) && !contracting.contains(&d) {
                            self.tie((operand, d), (id, to));
                            to += 1;
                        }
                    }
                }
            }
        }
    }

    /// Dimensions that a reshape keeps as they are run together; groups that it mixes are needed whole.
    fn reshape(&mut self, graph: &Graph, id: NodeId) {
        let operand = graph.node(id).operands[0];
        let (from, to) = (&graph.shape(operand).dims, &graph.shape(id).dims);
        for (node, dims) in [(operand, from), (id, to)] {
            for d in (0..dims.len()).filter(|&d| dims[d] == 1) {
                let dim = self.dim(node, d);
                self.unit.insert(dim);
            }
        }
        let (mut i, mut o) = (0, 0);
        while i < from.len() || o < to.len() {
            let (group_i, group_o) = (i, o);
            let (mut product_i, mut product_o) = (1u64, 1u64);
            loop {
                if i < from.len() && (product_i <= product_o || o == to.len()) {
                    product_i = product_i.saturating_mul(from[i]);
                    i += 1;
                } else if o < to.len() {
                    product_o = product_o.saturating_mul(to[o]);
                    o += 1;
                }
                if product_i == product_o && (i > group_i || o > group_o)
                    || (i == from.len() && o == to.len())
                {
                    break;
                }
            }
            let wide = |dims: &[u64], range: std::ops::Range<usize>| -> Vec<usize> {
                range.filter(|&d| dims[d] != 1).collect()
            };
            let (wide_i, wide_o) = (wide(from, group_i..i), wide(to, group_o..o));
            match (&wide_i[..], &wide_o[..]) {
                ([a], [b]) if from[*a] == to[*b] => self.tie((operand, *a), (id, *b)),
                _ => {
                    wide_i.iter().for_each(|&d| self.block(operand, d));
                    wide_o.iter().for_each(|&d| self.block(id, d));
                }
            }
        }
    }

    fn finish(mut self, graph: &Graph) -> Axes {
        let mut number = vec![None; self.parent.len()];
        let mut axes: Vec<Axis> = Vec::new();
        let mut dims = Vec::with_capacity(graph.nodes().len());
        for id in graph.ids() {
            let shape = graph.shape(id);
            let mut own: Vec<AxisId> = Vec::with_capacity(shape.rank());
            for d in 0..shape.rank() {
                let root = self.find(self.dim(id, d));
                let axis = *number[root].get_or_insert_with(|| {
                    axes.push(Axis {
                        size: shape.dims[d],
                        blocked: false,
                        contracted_by: Vec::new(),
                        batch: false,
                        unit: false,
                    });
                    AxisId(axes.len() as u32 - 1)
                });
                // One index cannot be in two tiles at once.
                axes[axis.0 as usize].blocked |= own.contains(&axis);
                own.push(axis);
            }
            dims.push(own);
        }
        let axis_of = |finder: &mut Finder, dim: usize| -> usize {
            let root = finder.find(dim);
            // Every dimension was numbered above.
            number[root].map_or(0, |a| a.0 as usize)
        };
        for dim in std::mem::take(&mut self.blocked) {
            axes[axis_of(&mut self, dim)].blocked = true;
        }
        for dim in std::mem::take(&mut self.batch) {
            axes[axis_of(&mut self, dim)].batch = true;
        }
        for dim in std::mem::take(&mut self.unit) {
            axes[axis_of(&mut self, dim)].unit = true;
        }
        for (dim, dot) in std::mem::take(&mut self.contracted) {
            let axis = &mut axes[axis_of(&mut self, dim)];
            if !axis.contracted_by.contains(&dot) {
                axis.contracted_by.push(dot);
            }
        }
        Axes { axes, dims }
    }
}

/// Whether a slice or pad leaves dimension `d` alone.
pub(super) fn keeps_dimension(op: &Op, d: usize, operand: &Shape) -> bool {
    match op {
        Op::Slice { start, limit, stride } => {
            start[d] == 0 && stride[d] == 1 && u64::try_from(limit[d]).is_ok_and(|l| l == operand.dims[d])
        }
        Op::Pad { low, high, interior } => low[d] == 0 && high[d] == 0 && interior[d] == 0,
        _ => false,
    }
}
