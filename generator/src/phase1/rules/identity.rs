//! Operators that do nothing, and neutral elements.

use super::{Context, Rule, RuleClass, always};
use crate::numerics::FloatPolicy;
use crate::phase1::language::TensorNode;
use crate::phase1::term::Term;
use act_hlo::{Binary, OpKind};
use egg::Id;

pub(crate) static RULES: &[Rule] = &[
    Rule {
        name: "movement-identity",
        class: RuleClass::Exact,
        policy: FloatPolicy::Exact,
        statement: "copy x, reshape to the same shape, identity transpose, identity broadcast, whole slice, \
                    concatenation of one, convert and bitcast to the same type => x",
        useful: always,
        rewrite: movement_identity,
    },
    Rule {
        name: "neutral-element",
        class: RuleClass::Conditional,
        policy: FloatPolicy::Exact,
        statement: "x + 0 => x (integers), x - 0 => x, x * 1 => x, x / 1 => x, x and -1 => x, x or 0 => x, \
                    x xor 0 => x",
        useful: always,
        rewrite: neutral_element,
    },
];

fn movement_identity(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let [x] = node.operands[..] else { return };
    if cx.shape(x) != node.shape() {
        return;
    }
    let nothing = match node.op() {
        OpKind::Copy
        | OpKind::Reshape
        | OpKind::Slice { .. }
        | OpKind::Concatenate { .. }
        | OpKind::Convert
        | OpKind::BitcastConvert => true,
        OpKind::Transpose { perm: dims } | OpKind::Broadcast { dims } => {
            dims.iter().copied().eq(0..dims.len())
        }
        _ => false,
    };
    if nothing {
        out.push(cx.class(x));
    }
}

fn neutral_element(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Binary(op), [a, b]) = (node.op(), &node.operands[..]) else { return };
    let elem = node.shape().elem;
    let is = |id: Id, value: f64| cx.splat(id).is_some() && cx.number(id) == Some(value);
    // -0.0 is no neutral element of subtraction from the right: x - (-0.0) = x + 0.0.
    let plain_zero = |id: Id| is(id, 0.0) && cx.splat(id).is_some_and(|l| l.bytes().iter().all(|&b| b == 0));
    let all_ones = |id: Id| cx.splat(id).is_some_and(|l| l.bytes().iter().all(|&b| b == 0xff));
    let wide_int = elem.is_int() && elem.bits() == elem.bytes() as u32 * 8;
    let (left, right) = match op {
        Binary::Add if elem.is_int() => (plain_zero(*a), plain_zero(*b)),
        Binary::Or | Binary::Xor if elem.is_int() => (plain_zero(*a), plain_zero(*b)),
        Binary::And if wide_int => (all_ones(*a), all_ones(*b)),
        Binary::Multiply if !elem.is_complex() => (is(*a, 1.0), is(*b, 1.0)),
        Binary::Subtract if !elem.is_complex() => (false, plain_zero(*b)),
        Binary::Divide if !elem.is_complex() => (false, is(*b, 1.0)),
        _ => return,
    };
    if left {
        out.push(cx.class(*b));
    }
    if right {
        out.push(cx.class(*a));
    }
}
