//! Division and multiplication by the reciprocal, which XLA's CPU backend exchanges under a broadcast.

use super::{Context, Rule, RuleClass};
use crate::numerics::FloatPolicy;
use crate::phase1::language::TensorNode;
use crate::phase1::term::Term;
use crate::phase1::vocabulary::Vocabulary;
use act_hlo::{Binary, OpKind};
use egg::Id;

pub(crate) static RULES: &[Rule] = &[
    Rule {
        name: "mul-recip",
        class: RuleClass::FloatAlgebra,
        policy: FloatPolicy::Xla,
        statement: "x * bc(1 / y) => x / bc(y), also without the broadcast",
        useful: has_divide,
        rewrite: to_division,
    },
    Rule {
        name: "div-bcast",
        class: RuleClass::FloatAlgebra,
        policy: FloatPolicy::Xla,
        statement: "x / bc(y) => x * bc(1 / y)",
        useful: has_multiply,
        rewrite: to_reciprocal,
    },
];

fn has_divide(vocabulary: &Vocabulary) -> bool {
    vocabulary.names("divide")
}

fn has_multiply(vocabulary: &Vocabulary) -> bool {
    vocabulary.names("divide") && vocabulary.names("multiply")
}

fn to_division(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Binary(Binary::Multiply), &[a, b]) = (node.op(), &node.operands[..]) else { return };
    if !node.shape().elem.is_float() {
        return;
    }
    for (x, r) in [(a, b), (b, a)] {
        for y in reciprocals(cx, r) {
            out.push(Term::binary(Binary::Divide, cx.class(x), cx.class(y)));
        }
        for n in cx.nodes(r) {
            let OpKind::Broadcast { dims } = n.op() else { continue };
            for y in reciprocals(cx, n.operands[0]) {
                let y = cx.class(y).broadcast(dims, &node.shape().dims);
                out.push(Term::binary(Binary::Divide, cx.class(x), y));
            }
        }
    }
}

/// All y with 1 / y in the class.
fn reciprocals<'a>(cx: &Context<'a>, id: Id) -> impl Iterator<Item = Id> + use<'a> {
    let found: Vec<Id> = cx
        .operands_of(id, &OpKind::Binary(Binary::Divide))
        .filter(|o| cx.number(o[0]) == Some(1.0))
        .map(|o| o[1])
        .collect();
    found.into_iter()
}

fn to_reciprocal(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Binary(Binary::Divide), &[x, d]) = (node.op(), &node.operands[..]) else { return };
    let elem = node.shape().elem;
    if !elem.is_float() || cx.is_constant(d) {
        return;
    }
    for n in cx.nodes(d) {
        let OpKind::Broadcast { dims } = n.op() else { continue };
        let y = cx.class(n.operands[0]);
        let Ok(one) = act_isa::constant::int_scalar(elem, 1) else { continue };
        let ones = Term::splat(one, &y.shape.dims);
        let reciprocal = Term::binary(Binary::Divide, ones, y).broadcast(dims, &node.shape().dims);
        out.push(Term::binary(Binary::Multiply, cx.class(x), reciprocal));
    }
}
