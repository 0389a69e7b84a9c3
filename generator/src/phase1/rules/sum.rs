//! Sums re-associated toward instructions that add a product to an accumulator.

use super::{Context, Rule, RuleClass};
use crate::numerics::FloatPolicy;
use crate::phase1::language::TensorNode;
use crate::phase1::term::Term;
use crate::phase1::vocabulary::Vocabulary;
use act_hlo::{Binary, OpKind};
use egg::Id;

pub(crate) static RULES: &[Rule] = &[Rule {
    name: "add-assoc-product",
    class: RuleClass::Integer,
    policy: FloatPolicy::Exact,
    statement: "(d + x) + y => (x + y) + d, d a product, y none: what is no product moves inward",
    useful: accumulates,
    rewrite: associate,
}];

fn accumulates(vocabulary: &Vocabulary) -> bool {
    vocabulary.accumulates
}

fn associate(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Binary(Binary::Add), &[a, b]) = (node.op(), &node.operands[..]) else { return };
    if !cx.may_reassociate(node.shape().elem) {
        return;
    }
    let product = |id: Id| cx.nodes(id).iter().any(|n| matches!(n.op(), OpKind::Dot(_)));
    let sum = |id: Id| cx.operands_of(id, &OpKind::Binary(Binary::Add)).next().is_some();
    for (inner, y) in [(a, b), (b, a)] {
        // Products among themselves stay in their order: nothing is gained by another. One that is a sum of shorter
        // ones begins what the second operand goes on with.
        if product(y) && !(y == a && sum(y)) {
            continue;
        }
        for operands in cx.operands_of(inner, &OpKind::Binary(Binary::Add)) {
            let [p, q] = *operands else { continue };
            for (d, x) in [(p, q), (q, p)] {
                if product(d) {
                    let rest = Term::binary(Binary::Add, cx.class(x), cx.class(y));
                    out.push(Term::binary(Binary::Add, rest, cx.class(d)));
                }
            }
        }
    }
}
