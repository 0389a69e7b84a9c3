//! Values seen as the slots that instructions keep them in. Many instructions compute with their slots through reshapes,
//! transposes and bitcasts: a tile of 16 rows of 64 bytes is s32[16, 16] to one and s8[64, 16] by quads of rows to
//! another. Goal-directed: only toward the slots of instructions that compute with the operator at hand.

use super::{Context, Rule, RuleClass};
use crate::numerics::FloatPolicy;
use crate::phase1::language::TensorNode;
use crate::phase1::rims::{ConcreteRim, Rim, Side, Step};
use crate::phase1::term::{Kind, Term};
use crate::phase1::vocabulary::{Vocabulary, key};
use act_hlo::{OpKind, Shape};
use egg::Id;

pub(crate) static RULES: &[Rule] = &[
    Rule {
        name: "operand-to-slot",
        class: RuleClass::Exact,
        policy: FloatPolicy::Exact,
        statement: "f(.., x, ..) => f(.., m(m'(x)), ..), m the reshapes, transposes and bitcasts through which an \
                    instruction with f sees its slot, m' their inverse",
        useful: has_rims,
        rewrite: operands,
    },
    Rule {
        name: "result-to-slot",
        class: RuleClass::Exact,
        policy: FloatPolicy::Exact,
        statement: "f(x, ..) => m(m'(f(x, ..))), m' the movement by which an instruction puts the result of f into \
                    its slot, m its inverse",
        useful: has_rims,
        rewrite: results,
    },
    Rule {
        name: "bitcast-bitcast",
        class: RuleClass::Exact,
        policy: FloatPolicy::Exact,
        statement: "bitcast(bitcast(x)) => x when the type is x's again",
        useful: has_bitcasts,
        rewrite: there_and_back,
    },
];

fn has_rims(vocabulary: &Vocabulary) -> bool {
    !vocabulary.rims.is_empty()
}

fn has_bitcasts(vocabulary: &Vocabulary) -> bool {
    vocabulary.names("bitcast-convert")
}

fn there_and_back(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::BitcastConvert, [b]) = (node.op(), &node.operands[..]) else { return };
    for operands in cx.operands_of(*b, &OpKind::BitcastConvert) {
        if cx.shape(operands[0]) == node.shape() {
            out.push(cx.class(operands[0]));
        }
    }
}

/// The rims of instructions with the operator of a node, on one side.
fn rims<'a>(cx: &Context<'a>, node: &TensorNode, on: impl Fn(Side) -> bool) -> impl Iterator<Item = &'a Rim> {
    let (op, elem) = (key(node.op()), node.shape().elem);
    cx.vocabulary.rims.iter().filter(move |r| r.elem == elem && r.op == op && on(r.side))
}

/// The value as the slot that holds it, read again as the value.
fn through_slot(value: Term, rim: &ConcreteRim) -> Term {
    let mut term = value;
    for (step, to) in rim.steps.iter().zip(&rim.shapes).rev() {
        let op = match step {
            Step::Reshape => OpKind::Reshape,
            Step::Bitcast => OpKind::BitcastConvert,
            Step::Transpose(perm) => {
                let mut inverse = vec![0; perm.len()];
                perm.iter().enumerate().for_each(|(d, &p)| inverse[p] = d);
                OpKind::Transpose { perm: inverse }
            }
        };
        term = Term::node(op, to.clone(), vec![term]);
    }
    term = Term { shape: term.shape.clone(), kind: Kind::SlotForm(Box::new(term)) };
    for (step, to) in rim.steps.iter().zip(&rim.shapes[1..]) {
        let op = match step {
            Step::Reshape => OpKind::Reshape,
            Step::Bitcast => OpKind::BitcastConvert,
            Step::Transpose(perm) => OpKind::Transpose { perm: perm.clone() },
        };
        term = Term::node(op, to.clone(), vec![term]);
    }
    term
}

/// Whether the class is a slot's value already, seen through the steps of the rim.
fn is_seen(cx: &Context<'_>, x: Id, rim: &ConcreteRim) -> bool {
    fn from(cx: &Context<'_>, x: Id, steps: &[Step], shapes: &[Shape]) -> bool {
        let (Some((last, steps)), [shapes @ .., _]) = (steps.split_last(), shapes) else { return true };
        cx.nodes(x).iter().any(|n| {
            let same = match (n.op(), last) {
                (OpKind::Reshape, Step::Reshape) | (OpKind::BitcastConvert, Step::Bitcast) => true,
                (OpKind::Transpose { perm }, Step::Transpose(wanted)) => perm == wanted,
                _ => false,
            };
            same && shapes.last().is_some_and(|s| cx.shape(n.operands[0]) == s)
                && from(cx, n.operands[0], steps, shapes)
        })
    }
    from(cx, x, &rim.steps, &rim.shapes)
}

fn operands(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    if cx.is_constant(class) {
        return;
    }
    for rim in rims(cx, node, |side| matches!(side, Side::Operand(_))) {
        let Side::Operand(k) = rim.side else { continue };
        // The matcher tries both orders of commuting operands, so a rim of either one is one of both.
        let places = if crate::phase1::language::is_commutative(node.op()) { vec![0, 1] } else { vec![k] };
        for k in places {
            let Some(&x) = node.operands.get(k).filter(|&&x| !cx.is_slot_form(x)) else { continue };
            let Some(rim) = rim.at(cx.shape(x)).filter(|rim| !is_seen(cx, x, rim)) else { continue };
            let term = |(i, &y): (usize, &Id)| {
                if i == k { cx.respelled(y, through_slot(cx.class(y), &rim)) } else { cx.class(y) }
            };
            let operands = node.operands.iter().enumerate().map(term).collect();
            out.push(Term::node(node.op().clone(), node.shape().clone(), operands));
        }
    }
}

fn results(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    if cx.is_constant(class) || cx.is_slot_form(class) {
        return;
    }
    for rim in rims(cx, node, |side| side == Side::Result) {
        if let Some(rim) = rim.at(node.shape()).filter(|rim| !is_seen(cx, class, rim)) {
            out.push(through_slot(cx.class(class), &rim));
        }
    }
}
