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
    let mut whole = None;
    for expand in [false, true] {
        let mut found = Terms { expand, plain: Vec::new(), products: Vec::new() };
        if !found.collect(cx, node, &mut vec![class]) || found.products.is_empty() {
            continue;
        }
        let all: Vec<Id> = found.plain.iter().chain(&found.products).copied().collect();
        if whole.as_ref() == Some(&all) {
            continue;
        }
        let sum = all.iter().map(|&term| cx.class(term)).reduce(|a, b| Term::binary(Binary::Add, a, b));
        out.extend(sum);
        whole = Some(all);
    }
}

/// The terms of a sum, left to right, those that are products apart.
struct Terms {
    /// Products of sums are taken as the sums of products that they are.
    expand: bool,
    plain: Vec<Id>,
    products: Vec<Id>,
}

impl Terms {
    /// `false` where there are too many or the sum contains itself.
    fn collect(&mut self, cx: &Context<'_>, node: &TensorNode, path: &mut Vec<Id>) -> bool {
        for &operand in &node.operands {
            let nodes = cx.nodes(operand);
            let product = nodes.iter().any(|n| matches!(n.op(), OpKind::Dot(_)));
            let inner = nodes.iter().find(|n| n.op() == node.op());
            match inner {
                Some(inner) if !product || (self.expand && multiplies_sums(cx, operand)) => {
                    if path.iter().any(|&above| cx.same(above, operand)) {
                        return false;
                    }
                    path.push(operand);
                    let whole = self.collect(cx, inner, path);
                    path.pop();
                    if !whole {
                        return false;
                    }
                }
                _ if product => self.products.push(operand),
                _ => self.plain.push(operand),
            }
            if self.plain.len() + self.products.len() > TERMS {
                return false;
            }
        }
        true
    }
}

/// Whether a value is a product with a sum.
fn multiplies_sums(cx: &Context<'_>, value: Id) -> bool {
    let is_sum = |&operand: &Id| cx.nodes(operand).iter().any(|n| *n.op() == OpKind::Binary(Binary::Add));
    cx.nodes(value).iter().any(|n| matches!(n.op(), OpKind::Dot(_)) && n.operands.iter().any(is_sum))
}
