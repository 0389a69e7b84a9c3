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
    statement: "x + (d + y) + .. => ((x + y) + d) + .., the whole sum put in order once: first what is no product, then \
                the products d",
    useful: accumulates,
    rewrite: associate,
}];

/// Longest sum that is put in order.
const TERMS: usize = 256;

fn accumulates(vocabulary: &Vocabulary) -> bool {
    vocabulary.accumulates
}

fn associate(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let add = OpKind::Binary(Binary::Add);
    if *node.op() != add || cx.is_constant(class) || !cx.may_reassociate(node.shape().elem) {
        return;
    }
    // A part of a longer sum is put in order with it.
    if cx.users(class).any(|user| *user.op() == add) {
        return;
    }
    let (mut plain, mut products) = (Vec::new(), Vec::new());
    let mut path = vec![class];
    if !terms(cx, node, &mut path, &mut plain, &mut products) || products.is_empty() {
        return;
    }
    let all = plain.iter().chain(&products).map(|&term| cx.class(term));
    out.extend(all.reduce(|sum, term| Term::binary(Binary::Add, sum, term)));
}

/// The terms of a sum, left to right, those that are products apart; `false` where there are too many or the sum contains
/// itself.
fn terms(
    cx: &Context<'_>,
    node: &TensorNode,
    path: &mut Vec<Id>,
    plain: &mut Vec<Id>,
    products: &mut Vec<Id>,
) -> bool {
    for &operand in &node.operands {
        let nodes = cx.nodes(operand);
        if nodes.iter().any(|n| matches!(n.op(), OpKind::Dot(_))) {
            products.push(operand);
        } else if let Some(inner) = nodes.iter().find(|n| n.op() == node.op()) {
            if path.iter().any(|&above| cx.same(above, operand)) {
                return false;
            }
            path.push(operand);
            let whole = terms(cx, inner, path, plain, products);
            path.pop();
            if !whole {
                return false;
            }
        } else {
            plain.push(operand);
        }
        if plain.len() + products.len() > TERMS {
            return false;
        }
    }
    true
}
