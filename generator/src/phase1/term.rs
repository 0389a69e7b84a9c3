//! Right-hand sides of rewrites: small typed terms over e-classes. Building one drops operators that do nothing, so that
//! rules need not test for them.

use super::facts::TensorGraph;
use super::language::{HeadOp, TensorNode};
use act_hlo::{Binary, Direction, DotDims, ElemType, Literal, OpKind, Shape, Unary};
use egg::Id;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Term {
    pub(crate) shape: Shape,
    pub(crate) kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Class(Id),
    /// The class, as this term too: what is equal to an operand becomes one class with it at once.
    Respelled(Id, Box<Term>),
    /// The form of a slot, which is not put into a slot again.
    SlotForm(Box<Term>),
    /// Every element is this scalar.
    Splat(Literal),
    Node(HeadOp, Vec<Term>),
}

impl Term {
    pub(crate) fn node(op: HeadOp, shape: Shape, operands: Vec<Term>) -> Term {
        Term { shape, kind: Kind::Node(op, operands) }
    }

    pub(crate) fn splat(scalar: Literal, dims: &[u64]) -> Term {
        Term { shape: Shape::new(scalar.elem(), dims), kind: Kind::Splat(scalar) }
    }

    pub(crate) fn reshape(self, dims: &[u64]) -> Term {
        if self.shape.dims == dims {
            return self;
        }
        let shape = Shape::new(self.shape.elem, dims);
        match self.kind {
            Kind::Splat(scalar) => Term { shape, kind: Kind::Splat(scalar) },
            _ => Term::node(OpKind::Reshape, shape, vec![self]),
        }
    }

    /// `perm` is a permutation of the dimensions.
    pub(crate) fn transpose(self, perm: &[usize]) -> Term {
        if perm.iter().copied().eq(0..perm.len()) {
            return self;
        }
        let dims: Vec<u64> = perm.iter().map(|&p| self.shape.dims[p]).collect();
        let shape = Shape::new(self.shape.elem, dims);
        match self.kind {
            Kind::Splat(scalar) => Term { shape, kind: Kind::Splat(scalar) },
            _ => Term::node(OpKind::Transpose { perm: perm.to_vec() }, shape, vec![self]),
        }
    }

    /// `dims` maps every dimension to one of `out`.
    pub(crate) fn broadcast(self, dims: &[usize], out: &[u64]) -> Term {
        if self.shape.dims == out && dims.iter().copied().eq(0..out.len()) {
            return self;
        }
        let shape = Shape::new(self.shape.elem, out);
        match self.kind {
            Kind::Splat(scalar) => Term { shape, kind: Kind::Splat(scalar) },
            _ => Term::node(OpKind::Broadcast { dims: dims.to_vec() }, shape, vec![self]),
        }
    }

    pub(crate) fn convert(self, elem: ElemType) -> Term {
        if self.shape.elem == elem {
            return self;
        }
        let shape = Shape::new(elem, self.shape.dims.clone());
        Term::node(OpKind::Convert, shape, vec![self])
    }

    /// The elements `[start, start + len)` of dimension `dim`.
    pub(crate) fn slice(self, dim: usize, start: u64, len: u64) -> Term {
        if start == 0 && self.shape.dims[dim] == len {
            return self;
        }
        let mut shape = self.shape.clone();
        shape.dims[dim] = len;
        let mut from = vec![0i64; shape.rank()];
        from[dim] = start as i64;
        let limit = from.iter().zip(&shape.dims).map(|(s, &n)| s + n as i64).collect();
        let stride = vec![1; shape.rank()];
        match self.kind {
            Kind::Splat(scalar) => Term { shape, kind: Kind::Splat(scalar) },
            _ => Term::node(OpKind::Slice { start: from, limit, stride }, shape, vec![self]),
        }
    }

    /// An elementwise operator of two operands of one shape.
    pub(crate) fn binary(op: Binary, a: Term, b: Term) -> Term {
        let shape = a.shape.clone();
        Term::node(OpKind::Binary(op), shape, vec![a, b])
    }

    pub(crate) fn unary(op: Unary, x: Term) -> Term {
        let shape = x.shape.clone();
        Term::node(OpKind::Unary(op), shape, vec![x])
    }

    pub(crate) fn compare(direction: Direction, a: Term, b: Term) -> Term {
        let shape = Shape::new(ElemType::Pred, a.shape.dims.clone());
        Term::node(OpKind::Compare(direction), shape, vec![a, b])
    }

    pub(crate) fn select(pred: Term, on_true: Term, on_false: Term) -> Term {
        let shape = on_true.shape.clone();
        Term::node(OpKind::Select, shape, vec![pred, on_true, on_false])
    }

    /// The same bits as another type of the same width.
    pub(crate) fn bitcast(self, elem: ElemType) -> Term {
        if self.shape.elem == elem {
            return self;
        }
        let shape = Shape::new(elem, self.shape.dims.clone());
        Term::node(OpKind::BitcastConvert, shape, vec![self])
    }

    /// The reduction of `dims` with initial value `init`.
    pub(crate) fn reduce(self, combiner: Binary, dims: &[usize], init: Term) -> Term {
        let kept = (0..self.shape.rank()).filter(|d| !dims.contains(d)).map(|d| self.shape.dims[d]);
        let shape = Shape::new(self.shape.elem, kept.collect::<Vec<_>>());
        Term::node(OpKind::Reduce { dims: dims.to_vec(), combiner }, shape, vec![self, init])
    }

    /// A product without batch dimensions.
    pub(crate) fn dot(dims: DotDims, elem: ElemType, a: Term, b: Term) -> Term {
        let free = |t: &Term, contracting: &[usize]| {
            let kept = (0..t.shape.rank()).filter(|d| !contracting.contains(d));
            kept.map(|d| t.shape.dims[d]).collect::<Vec<_>>()
        };
        let out = [free(&a, &dims.lhs_contracting), free(&b, &dims.rhs_contracting)].concat();
        Term::node(OpKind::Dot(dims), Shape::new(elem, out), vec![a, b])
    }

    /// Operands joined along `dim`; they agree in the other dimensions.
    pub(crate) fn concatenate(dim: usize, mut parts: Vec<Term>) -> Term {
        if parts.len() == 1 {
            return parts.swap_remove(0);
        }
        let mut shape = parts[0].shape.clone();
        shape.dims[dim] = parts.iter().map(|p| p.shape.dims[dim]).sum();
        Term::node(OpKind::Concatenate { dim }, shape, parts)
    }

    /// Adds the term to an e-graph.
    pub(crate) fn add_to(&self, egraph: &mut TensorGraph) -> Id {
        match &self.kind {
            Kind::Class(id) => egraph.find(*id),
            Kind::Respelled(id, term) => {
                let other = term.add_to(egraph);
                egraph.union(*id, other);
                egraph.find(*id)
            }
            Kind::SlotForm(term) => {
                let before = egraph.number_of_classes();
                let id = term.add_to(egraph);
                if egraph.number_of_classes() > before {
                    egraph.analysis.note_slot_form(id);
                    egraph[id].data.slot_form = true;
                }
                id
            }
            Kind::Splat(scalar) => {
                let constant = egraph.analysis.intern(scalar.clone());
                let node =
                    TensorNode::new(OpKind::Constant(constant), Shape::scalar(scalar.elem()), Vec::new());
                let scalar = egraph.add(node);
                if self.shape.rank() == 0 {
                    return scalar;
                }
                let broadcast = OpKind::Broadcast { dims: Vec::new() };
                egraph.add(TensorNode::new(broadcast, self.shape.clone(), vec![scalar]))
            }
            Kind::Node(op, operands) => {
                let operands = operands.iter().map(|t| t.add_to(egraph)).collect();
                egraph.add(TensorNode::new(op.clone(), self.shape.clone(), operands))
            }
        }
    }
}
