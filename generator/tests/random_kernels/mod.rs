//! Random kernels in the manner of the ACT paper's appendix E: a graph of dot, add, subtract, negate, minimum, maximum,
//! abs or reverse, broadcast, reduce and clamp grows from parameters until it has the wanted number of nodes, and what
//! nothing uses is added up. The same seed gives the same kernel. Knows targets only through [`profiles`].

pub(crate) mod profiles;
pub(crate) mod shrink;

use act_hlo::random::SplitMix64;
use act_hlo::{Binary, DotDims, ElemType, Graph, Literal, NodeId, Op, Shape, Unary};
use act_isa::{Phase, Place, Space, TiledKernel, View};
use profiles::{Draw, Profile};

/// Largest binary logarithm of a float that a kernel may reach: beyond it, products overflow.
const LARGEST: f64 = 40.0;
/// Of a hundred operands, so many are values that nothing uses yet.
const FRESH: u64 = 75;

/// The kernel of a seed, with about `nodes` nodes.
pub(crate) fn kernel(profile: &Profile, seed: u64, nodes: usize) -> TiledKernel {
    let mut draft = Draft::new(profile, seed);
    while draft.graph.nodes().len() + draft.unused().len() < nodes.max(3) {
        let draw = draft.weighted();
        draft.draw(draw);
    }
    draft.finish();
    dense(draft.graph)
}

/// A kernel whose parameters and results are dense row-major tensors in d0.
pub(crate) fn dense(graph: Graph) -> TiledKernel {
    let place = |space, id: &NodeId| Place::Hbm(View::row_major(space, graph.shape(*id)));
    let ins = graph.params().iter().zip(0..).map(|(id, k)| place(Space::Operand(k), id)).collect();
    let outs: Vec<Place> = graph.roots().iter().zip(0..).map(|(id, k)| place(Space::Result(k), id)).collect();
    let accumulators = vec![None; outs.len()];
    TiledKernel { ins, outs, accumulators, phase: Phase::Whole, graph }
}

/// A whole number as a scalar of any numeric type.
fn scalar(elem: ElemType, value: i64) -> Literal {
    act_isa::constant::int_scalar(elem, value).unwrap_or_else(|e| panic!("{elem} {value}: {e}"))
}

struct Draft<'a> {
    profile: &'a Profile,
    rng: SplitMix64,
    graph: Graph,
    /// The lengths that dimensions of this kernel have.
    lens: Vec<u64>,
    /// Per node whether something uses it.
    used: Vec<bool>,
    /// Per node a bound of the binary logarithm of its floats.
    size: Vec<f64>,
    /// Nodes that may be operands: no constants and no scalars.
    values: Vec<NodeId>,
}

impl<'a> Draft<'a> {
    fn new(profile: &'a Profile, seed: u64) -> Draft<'a> {
        let mut rng = SplitMix64::new(seed);
        let mut lens = Vec::new();
        for _ in 0..2 {
            lens.push(profile.lens[rng.below(profile.lens.len() as u64) as usize]);
        }
        Draft {
            profile,
            rng,
            graph: Graph::new("random"),
            lens,
            used: Vec::new(),
            size: Vec::new(),
            values: Vec::new(),
        }
    }

    fn below(&mut self, n: usize) -> usize {
        self.rng.below(n as u64) as usize
    }

    fn percent(&mut self, p: u64) -> bool {
        self.rng.below(100) < p
    }

    fn weighted(&mut self) -> Draw {
        let total: u64 = self.profile.draws.iter().map(|d| d.1).sum();
        let mut at = self.rng.below(total);
        for &(draw, weight) in self.profile.draws {
            if at < weight {
                return draw;
            }
            at -= weight;
        }
        unreachable!("weights add up to the total")
    }

    fn note(&mut self, size: f64) -> NodeId {
        let id = NodeId(self.graph.nodes().len() as u32 - 1);
        self.used.push(false);
        self.size.push(size);
        for operand in self.graph.node(id).operands.clone() {
            self.used[operand.0 as usize] = true;
        }
        if self.graph.shape(id).rank() > 0 && !matches!(self.graph.node(id).op, Op::Constant(_)) {
            self.values.push(id);
        }
        id
    }

    fn add(&mut self, op: Op, operands: &[NodeId], declared: Option<Shape>, size: f64) -> NodeId {
        let id = self.graph.add_declared(op, operands, declared.as_ref());
        id.unwrap_or_else(|e| panic!("{e}"));
        self.note(size)
    }

    fn parameter(&mut self, elem: ElemType, dims: &[u64]) -> NodeId {
        self.graph.parameter(Shape::new(elem, dims));
        self.note(0.0)
    }

    fn len(&mut self) -> u64 {
        let at = self.below(self.lens.len());
        self.lens[at]
    }

    fn constant(&mut self, elem: ElemType, value: i64) -> NodeId {
        self.add(Op::Constant(scalar(elem, value)), &[], None, (value as f64).abs().max(1.0).log2())
    }

    fn splat(&mut self, elem: ElemType, value: i64, dims: &[u64]) -> NodeId {
        let scalar = self.constant(elem, value);
        let size = self.size[scalar.0 as usize];
        self.add(Op::Broadcast { dims: Vec::new() }, &[scalar], Some(Shape::new(elem, dims)), size)
    }

    /// A value of the type, of these lengths where they are given, or a new parameter.
    fn operand(&mut self, elem: ElemType, rank: usize, dims: &[Option<u64>]) -> NodeId {
        let fits = |s: &Draft<'_>, id: &NodeId| {
            let shape = s.graph.shape(*id);
            shape.elem == elem
                && shape.rank() == rank
                && dims.iter().zip(&shape.dims).all(|(want, have)| want.is_none_or(|w| w == *have))
        };
        let all: Vec<NodeId> = self.values.iter().copied().filter(|id| fits(self, id)).collect();
        let unused: Vec<NodeId> = all.iter().copied().filter(|id| !self.used[id.0 as usize]).collect();
        if !unused.is_empty() && self.percent(FRESH) {
            let at = self.below(unused.len());
            return unused[at];
        }
        if !all.is_empty() && self.percent(FRESH) {
            let at = self.below(all.len());
            return all[at];
        }
        let dims: Vec<u64> =
            (0..rank).map(|d| dims.get(d).copied().flatten().unwrap_or_else(|| self.len())).collect();
        self.parameter(elem, &dims)
    }

    fn draw(&mut self, draw: Draw) {
        match draw {
            Draw::Dot { from, to, converts } => {
                let a = self.operand(from, 2, &[]);
                let k = self.graph.shape(a).dims[1];
                let b = self.operand(from, 2, &[Some(k), None]);
                let size = self.size[a.0 as usize] + self.size[b.0 as usize] + (k as f64).log2();
                if to.is_float() && size > LARGEST {
                    return;
                }
                let (m, n) = (self.graph.shape(a).dims[0], self.graph.shape(b).dims[1]);
                let mut operands = [a, b];
                if converts {
                    operands = operands.map(|x| {
                        let shape = Shape::new(to, self.graph.shape(x).dims.clone());
                        let size = self.size[x.0 as usize];
                        self.add(Op::Convert, &[x], Some(shape), size)
                    });
                }
                let dims =
                    DotDims { lhs_contracting: vec![1], rhs_contracting: vec![0], ..DotDims::default() };
                self.add(Op::Dot(dims), &operands, Some(Shape::new(to, vec![m, n])), size);
            }
            Draw::Binary(op, elem) => {
                let a = self.operand(elem, 2, &[]);
                let dims: Vec<Option<u64>> = self.graph.shape(a).dims.iter().map(|&d| Some(d)).collect();
                let b = self.operand(elem, 2, &dims);
                self.combine(op, a, b);
            }
            Draw::SubtractWidened { from, to } => {
                let a = self.operand(to, 2, &[]);
                let dims: Vec<Option<u64>> = self.graph.shape(a).dims.iter().map(|&d| Some(d)).collect();
                let b = self.operand(from, 2, &dims);
                let wide = self.widened(b, to);
                self.combine(Binary::Subtract, a, wide);
            }
            Draw::NegateWidened { from, to } => {
                let a = self.operand(from, 2, &[]);
                let wide = self.widened(a, to);
                self.add(Op::Unary(Unary::Negate), &[wide], None, 0.0);
            }
            Draw::Unary(op, elem) => {
                let a = self.operand(elem, 2, &[]);
                let size = self.size[a.0 as usize];
                self.add(Op::Unary(op), &[a], None, size);
            }
            Draw::WithConstant(op, elem, range) => {
                let a = self.operand(elem, 2, &[]);
                let value = range.0 + self.rng.below((range.1 - range.0 + 1) as u64) as i64;
                let dims = self.graph.shape(a).dims.clone();
                let c = self.splat(elem, value, &dims);
                self.combine(op, a, c);
            }
            Draw::Clamp(elem, low, high) => {
                let a = self.operand(elem, 2, &[]);
                self.clamp(a, low, high);
            }
            Draw::Narrow { from, to, low, high } => {
                let a = self.operand(from, 2, &[]);
                let clamped = self.clamp(a, low, high);
                let shape = Shape::new(to, self.graph.shape(clamped).dims.clone());
                self.add(Op::Convert, &[clamped], Some(shape), 7.0);
            }
            Draw::Reverse(elem) => {
                let a = self.operand(elem, 2, &[]);
                let dim = self.below(2);
                let size = self.size[a.0 as usize];
                self.add(Op::Reverse { dims: vec![dim] }, &[a], None, size);
            }
            Draw::Broadcast(elem) => {
                let row = self.operand(elem, 1, &[]);
                let (len, dim) = (self.graph.shape(row).dims[0], self.below(2));
                let other = self.len();
                let dims = if dim == 1 { vec![other, len] } else { vec![len, other] };
                let size = self.size[row.0 as usize];
                self.add(Op::Broadcast { dims: vec![dim] }, &[row], Some(Shape::new(elem, dims)), size);
            }
            Draw::Reduce { from, to } => {
                let mut a = self.operand(from, 2, &[]);
                if from != to {
                    a = self.widened(a, to);
                }
                let dim = self.below(2);
                let size = self.size[a.0 as usize] + (self.graph.shape(a).dims[dim] as f64).log2();
                if to.is_float() && size > LARGEST {
                    return;
                }
                let zero = self.constant(to, 0);
                self.add(Op::Reduce { dims: vec![dim], combiner: Binary::Add }, &[a, zero], None, size);
            }
        }
    }

    fn widened(&mut self, x: NodeId, to: ElemType) -> NodeId {
        let shape = Shape::new(to, self.graph.shape(x).dims.clone());
        let size = self.size[x.0 as usize];
        self.add(Op::Convert, &[x], Some(shape), size)
    }

    fn clamp(&mut self, x: NodeId, low: i64, high: i64) -> NodeId {
        let elem = self.graph.shape(x).elem;
        let (low, high) = (self.constant(elem, low), self.constant(elem, high));
        let size = self.size[low.0 as usize].max(self.size[high.0 as usize]);
        self.add(Op::Clamp, &[low, x, high], None, size)
    }

    fn combine(&mut self, op: Binary, a: NodeId, b: NodeId) -> NodeId {
        let (x, y) = (self.size[a.0 as usize], self.size[b.0 as usize]);
        let size = match op {
            Binary::Multiply => x + y,
            Binary::Add | Binary::Subtract => x.max(y) + 1.0,
            _ => x.max(y),
        };
        if size > LARGEST && self.graph.shape(a).elem.is_float() {
            return self.add(Op::Binary(Binary::Minimum), &[a, b], None, x.max(y));
        }
        self.add(Op::Binary(op), &[a, b], None, size)
    }

    fn unused(&self) -> Vec<NodeId> {
        let computed = |id: &&NodeId| !matches!(self.graph.node(**id).op, Op::Parameter(_));
        self.values.iter().filter(computed).copied().filter(|id| !self.used[id.0 as usize]).collect()
    }

    /// What nothing uses is added up, as far as it has one shape; the sums are the results.
    fn finish(&mut self) {
        let mut left = self.unused();
        let mut roots = Vec::new();
        while !left.is_empty() {
            let first = left[0];
            let shape = self.graph.shape(first).clone();
            let (mut alike, others): (Vec<NodeId>, Vec<NodeId>) =
                left.iter().copied().partition(|id| *self.graph.shape(*id) == shape);
            left = others;
            if !self.profile.adds.contains(&shape.elem) || shape.rank() != 2 {
                roots.append(&mut alike);
                continue;
            }
            // A balanced tree.
            while alike.len() > 1 {
                let mut next = Vec::with_capacity(alike.len().div_ceil(2));
                for pair in alike.chunks(2) {
                    next.push(match *pair {
                        [a, b] => self.combine(Binary::Add, a, b),
                        _ => pair[0],
                    });
                }
                alike = next;
            }
            roots.append(&mut alike);
        }
        for root in roots {
            self.graph.add_root(root).unwrap_or_else(|e| panic!("{e}"));
        }
        self.graph = shrink::cleaned(&self.graph);
    }
}
