//! What a rule can know of values without their inputs: scalars of a type, the range of an integer, the bits that may be
//! set, zeros and denormals of a float. Knows no rule.

use super::Context;
use crate::numerics::FloatPolicy;
use crate::phase1::language::TensorNode;
use act_hlo::{Binary, ElemType, Literal, OpKind, Shape, Unary};
use egg::Id;
use std::collections::BTreeMap;

/// Operators looked through for a fact.
const DEPTH: usize = 4;

/// Ranges of classes, by how deep they were looked into.
type Ranges = BTreeMap<(Id, usize), Option<(i128, i128)>>;

/// Least and greatest value of an integer type.
pub(super) fn limits(elem: ElemType) -> Option<(i128, i128)> {
    let bits = elem.bits();
    if elem.is_signed_int() {
        Some((-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1))
    } else if elem.is_unsigned_int() {
        Some((0, (1i128 << bits) - 1))
    } else {
        None
    }
}

/// The scalar with this whole value, in a type that holds it exactly.
pub(super) fn whole(elem: ElemType, value: i128) -> Option<Literal> {
    let bytes = act_isa::constant::int_bytes(elem, value).ok()?;
    Literal::from_bytes(Shape::scalar(elem), bytes).ok()
}

/// The integer scalar with the low bits of this value.
pub(super) fn wrapped(elem: ElemType, value: i128) -> Option<Literal> {
    let (low, high) = limits(elem)?;
    let size = high - low + 1;
    whole(elem, (value - low).rem_euclid(size) + low)
}

/// The float scalar nearest to this value.
pub(super) fn float(elem: ElemType, value: f64) -> Option<Literal> {
    let bytes = act_isa::constant::float_bytes(elem, value).ok()?;
    Literal::from_bytes(Shape::scalar(elem), bytes).ok()
}

/// What added to any value leaves it as it is: 0, and -0 among floats.
pub(super) fn nothing_added(elem: ElemType) -> Option<Literal> {
    if elem.is_float() { float(elem, -0.0) } else { whole(elem, 0) }
}

/// The value of an integer or truth value.
pub(super) fn integer(scalar: &Literal) -> Option<i128> {
    act_isa::constant::int_value(scalar.elem(), scalar.bytes())
}

/// k for 2^k.
pub(super) fn power_of_two(value: i128) -> Option<u32> {
    (value > 0 && value & (value - 1) == 0).then(|| value.trailing_zeros())
}

/// The operands of a node with this operator.
pub(super) fn binary(node: &TensorNode, op: Binary) -> Option<(Id, Id)> {
    match (node.op(), &node.operands[..]) {
        (OpKind::Binary(own), &[a, b]) if *own == op => Some((a, b)),
        _ => None,
    }
}

pub(super) fn unary(node: &TensorNode, op: Unary) -> Option<Id> {
    match (node.op(), &node.operands[..]) {
        (OpKind::Unary(own), &[x]) if *own == op => Some(x),
        _ => None,
    }
}

/// Both orders of the operands of a node with this commutative operator.
pub(super) fn either(node: &TensorNode, op: Binary) -> impl Iterator<Item = (Id, Id)> + use<> {
    binary(node, op).into_iter().flat_map(|(a, b)| [(a, b), (b, a)])
}

impl<'a> Context<'a> {
    /// The one whole number of every element.
    pub(super) fn integer(&self, id: Id) -> Option<i128> {
        self.splat(id).and_then(integer)
    }

    pub(super) fn elem(&self, id: Id) -> ElemType {
        self.shape(id).elem
    }

    pub(super) fn binaries(&self, id: Id, op: Binary) -> impl Iterator<Item = (Id, Id)> + use<'a> {
        self.nodes(id).iter().filter_map(move |n| binary(n, op))
    }

    /// Operands in both orders.
    pub(super) fn eithers(&self, id: Id, op: Binary) -> impl Iterator<Item = (Id, Id)> + use<'a> {
        self.nodes(id).iter().flat_map(move |n| either(n, op))
    }

    pub(super) fn unaries(&self, id: Id, op: Unary) -> impl Iterator<Item = Id> + use<'a> {
        self.nodes(id).iter().filter_map(move |n| unary(n, op))
    }

    /// What the class is a conversion of.
    pub(super) fn converted(&self, id: Id) -> impl Iterator<Item = Id> + use<'a> {
        self.nodes(id).iter().filter(|n| *n.op() == OpKind::Convert).map(|n| n.operands[0])
    }

    /// Whether a class is the bitwise or logical complement of another.
    pub(super) fn complements(&self, a: Id, b: Id) -> bool {
        self.unaries(a, Unary::Not).any(|x| self.same(x, b))
            || self.unaries(b, Unary::Not).any(|x| self.same(x, a))
    }

    /// Bounds of every element of an integer or truth value.
    pub(super) fn range(&self, id: Id) -> Option<(i128, i128)> {
        self.range_within(id, DEPTH, &mut BTreeMap::new())
    }

    /// Classes with many nodes lead to the same operands over and over: each is looked at once per depth.
    fn range_within(&self, id: Id, depth: usize, seen: &mut Ranges) -> Option<(i128, i128)> {
        if let Some(&range) = seen.get(&(id, depth)) {
            return range;
        }
        let range = self.range_of_nodes(id, depth, seen);
        seen.insert((id, depth), range);
        range
    }

    fn range_of_nodes(&self, id: Id, depth: usize, seen: &mut Ranges) -> Option<(i128, i128)> {
        if let Some(value) = self.integer(id) {
            return Some((value, value));
        }
        let elem = self.elem(id);
        let (low, high) = if elem == ElemType::Pred { (0, 1) } else { limits(elem)? };
        if depth == 0 {
            return Some((low, high));
        }
        let (mut least, mut greatest) = (low, high);
        for node in self.nodes(id) {
            let mut operand = |k: usize| self.range_within(node.operands[k], depth - 1, seen);
            let bounds = match node.op() {
                OpKind::Convert => operand(0).filter(|&(a, b)| low <= a && b <= high),
                OpKind::Broadcast { .. }
                | OpKind::Reshape
                | OpKind::Transpose { .. }
                | OpKind::Slice { .. }
                | OpKind::Reverse { .. } => operand(0),
                OpKind::Iota { dim } => {
                    let last = i128::from(node.shape().dims[*dim]) - 1;
                    (last <= high).then_some((0, last))
                }
                OpKind::Binary(Binary::And) => {
                    let mask = |r: Option<(i128, i128)>| r.filter(|r| r.0 >= 0).map(|r| r.1);
                    match (mask(operand(0)), mask(operand(1))) {
                        (Some(a), Some(b)) => Some((0, a.min(b))),
                        (a, b) => a.or(b).map(|top| (0, top)),
                    }
                }
                OpKind::Binary(Binary::Remainder) => match (operand(0), self.integer(node.operands[1])) {
                    (Some((a, b)), Some(c)) if c > 0 => Some((a.max(1 - c).min(0), b.min(c - 1).max(0))),
                    _ => None,
                },
                OpKind::Binary(op @ (Binary::Maximum | Binary::Minimum)) => {
                    operand(0).zip(operand(1)).map(|((a, b), (c, d))| match op {
                        Binary::Maximum => (a.max(c), b.max(d)),
                        _ => (a.min(c), b.min(d)),
                    })
                }
                OpKind::Clamp => operand(0).zip(operand(2)).map(|((a, b), (c, d))| (a.min(c), d.max(b))),
                _ => None,
            };
            if let Some((a, b)) = bounds {
                (least, greatest) = (least.max(a), greatest.min(b));
            }
        }
        (least <= greatest).then_some((least, greatest))
    }

    /// A mask of the bits that some element of an unsigned integer may have, or of a signed one as bits.
    pub(super) fn possible_bits(&self, id: Id) -> Option<i128> {
        self.bits_within(id, DEPTH)
    }

    fn bits_within(&self, id: Id, depth: usize) -> Option<i128> {
        let elem = self.elem(id);
        let all = if elem.is_int() { (1i128 << elem.bits()) - 1 } else { return None };
        if let Some(value) = self.integer(id) {
            return Some(value & all);
        }
        let mut mask = match self.range(id) {
            Some((0.., top)) => (1i128 << (128 - top.leading_zeros())) - 1,
            _ => all,
        };
        if depth == 0 {
            return Some(mask);
        }
        for node in self.nodes(id) {
            let operand = |k: usize| self.bits_within(node.operands[k], depth - 1);
            let amount =
                || self.integer(node.operands[1]).filter(|k| (0..i128::from(elem.bits())).contains(k));
            let bits = match node.op() {
                OpKind::Binary(Binary::And) => operand(0).zip(operand(1)).map(|(a, b)| a & b),
                OpKind::Binary(Binary::Or | Binary::Xor) => operand(0).zip(operand(1)).map(|(a, b)| a | b),
                OpKind::Binary(Binary::ShiftLeft) => operand(0).zip(amount()).map(|(a, k)| (a << k) & all),
                OpKind::Binary(Binary::ShiftRightLogical) => operand(0).zip(amount()).map(|(a, k)| a >> k),
                _ => None,
            };
            mask &= bits.unwrap_or(all);
        }
        Some(mask)
    }

    /// Whether arithmetic that changes nothing leaves the bits of this value. Kernels run without denormals: an operator
    /// of f32 flushes them, so only what arithmetic made is sure to have none. XLA leaves such operators out all the same.
    pub(super) fn flushed(&self, id: Id) -> bool {
        let elem = self.elem(id);
        // An f16 is computed in f32, where its denormals are normal.
        elem.is_int()
            || elem == ElemType::F16
            || self.policy >= FloatPolicy::Xla
            || self.made_normal(id, DEPTH)
    }

    fn made_normal(&self, id: Id, depth: usize) -> bool {
        if let Some(value) = self.number(id) {
            return value == 0.0 || value.abs() >= f64::from(f32::MIN_POSITIVE);
        }
        depth > 0
            && self.nodes(id).iter().any(|node| match node.op() {
                OpKind::Unary(Unary::Negate | Unary::Abs)
                | OpKind::Broadcast { .. }
                | OpKind::Reshape
                | OpKind::Transpose { .. }
                | OpKind::Slice { .. }
                | OpKind::Reverse { .. } => self.made_normal(node.operands[0], depth - 1),
                OpKind::Unary(_) | OpKind::Binary(_) | OpKind::Clamp | OpKind::Dot(_) => {
                    self.elem(node.operands[0]).is_float()
                }
                OpKind::Convert => {
                    let from = self.elem(node.operands[0]);
                    from.is_int() || from == ElemType::Pred
                }
                _ => false,
            })
    }

    /// Whether no element of a float is -0.
    pub(super) fn never_negative_zero(&self, id: Id) -> bool {
        if let Some(scalar) = self.splat(id) {
            return self.number(id) != Some(0.0) || scalar.bytes().iter().all(|&b| b == 0);
        }
        self.nodes(id).iter().any(|node| match node.op() {
            OpKind::Unary(Unary::Abs | Unary::Exp | Unary::Logistic) => true,
            OpKind::Convert => {
                let from = self.elem(node.operands[0]);
                from.is_int() || from == ElemType::Pred
            }
            _ => false,
        })
    }
}
