//! The e-graph's language: an HLO operator with all of its attributes and its result shape is the discriminant of a
//! node, so that nodes which differ in an attribute never match. Knows no accelerator and no rewrite.

use super::operators::OperatorNumber;
use act_hlo::{OpKind, Shape};
use egg::Id;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Index of an interned literal in [`crate::phase1::facts::TensorAnalysis`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ConstId(pub(crate) u32);

/// An operator whose constants are interned.
pub(crate) type HeadOp = OpKind<i64, ConstId>;

/// Operator, attributes and result shape.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Head {
    /// Of operator and shape, computed once: an e-graph looks every node up several times. First, since comparisons
    /// begin with it.
    hash: u64,
    /// Of the operator's name, attributes apart.
    pub(crate) operator: OperatorNumber,
    pub(crate) op: HeadOp,
    pub(crate) shape: Shape,
}

impl Head {
    fn new(op: HeadOp, shape: Shape) -> Head {
        // A hasher of its own with fixed keys: the order of nodes must not differ between runs.
        let mut hasher = std::hash::DefaultHasher::new();
        op.hash(&mut hasher);
        shape.hash(&mut hasher);
        Head { hash: hasher.finish(), operator: OperatorNumber::of(op.name()), op, shape }
    }
}

impl Hash for Head {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// An e-node. The head is shared, since e-graphs copy nodes often.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct TensorNode {
    pub(crate) head: Arc<Head>,
    pub(crate) operands: Vec<Id>,
}

impl TensorNode {
    pub(crate) fn new(op: HeadOp, shape: Shape, operands: Vec<Id>) -> TensorNode {
        TensorNode { head: Arc::new(Head::new(op, shape)), operands }
    }

    pub(crate) fn op(&self) -> &HeadOp {
        &self.head.op
    }

    pub(crate) fn shape(&self) -> &Shape {
        &self.head.shape
    }
}

impl egg::Language for TensorNode {
    type Discriminant = Arc<Head>;

    fn discriminant(&self) -> Arc<Head> {
        Arc::clone(&self.head)
    }

    fn matches(&self, other: &Self) -> bool {
        self.head == other.head && self.operands.len() == other.operands.len()
    }

    fn children(&self) -> &[Id] {
        &self.operands
    }

    fn children_mut(&mut self) -> &mut [Id] {
        &mut self.operands
    }
}

/// Whether the operator computes every element of its result from the elements of its operands at the same position.
/// Scalar bounds of clamp and a scalar predicate of select are allowed beside full operands.
pub(crate) fn is_elementwise<D, C>(op: &OpKind<D, C>) -> bool {
    matches!(
        op,
        OpKind::Unary(_)
            | OpKind::Binary(_)
            | OpKind::Compare(_)
            | OpKind::Select
            | OpKind::Clamp
            | OpKind::Fma
            | OpKind::Convert
            | OpKind::ReducePrecision { .. }
    )
}

/// Whether the operator only moves data: every element of its result is one element of its operand.
pub(crate) fn is_movement<D, C>(op: &OpKind<D, C>) -> bool {
    matches!(
        op,
        OpKind::Copy
            | OpKind::Reshape
            | OpKind::Transpose { .. }
            | OpKind::Broadcast { .. }
            | OpKind::Slice { .. }
            | OpKind::BitcastConvert
            | OpKind::Reverse { .. }
    )
}

/// Whether exchanging the two operands leaves the value as it is.
pub(crate) fn is_commutative<D, C>(op: &OpKind<D, C>) -> bool {
    use act_hlo::{Binary, Direction};
    match op {
        OpKind::Binary(b) => matches!(
            b,
            Binary::Add
                | Binary::Multiply
                | Binary::Maximum
                | Binary::Minimum
                | Binary::And
                | Binary::Or
                | Binary::Xor
        ),
        OpKind::Compare(d) => matches!(d, Direction::Eq | Direction::Ne),
        _ => false,
    }
}
