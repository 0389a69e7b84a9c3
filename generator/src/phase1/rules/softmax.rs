//! Float algebra of softmax: the shift by a row value cancels.

use super::{Context, Rule, RuleClass};
use crate::numerics::FloatPolicy;
use crate::phase1::language::TensorNode;
use crate::phase1::term::Term;
use crate::phase1::vocabulary::Vocabulary;
use act_hlo::{Binary, OpKind, Unary};
use egg::Id;

pub(crate) static RULES: &[Rule] = &[Rule {
    name: "softmax-shift",
    class: RuleClass::FloatAlgebra,
    policy: FloatPolicy::Fast,
    statement: "exp(x - bc(m)) / bc(red+ exp(x - bc(m))) => exp x / bc(red+ exp x), m constant along the reduced \
                dimensions",
    useful: has_softmax_operators,
    rewrite: unshift,
}];

fn has_softmax_operators(vocabulary: &Vocabulary) -> bool {
    ["exponential", "divide", "reduce add"].iter().all(|key| vocabulary.names(key))
}

fn unshift(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Binary(Binary::Divide), &[e, s]) = (node.op(), &node.operands[..]) else { return };
    for total in cx.nodes(s) {
        let OpKind::Broadcast { dims: kept } = total.op() else { continue };
        for sum in cx.nodes(total.operands[0]) {
            let (OpKind::Reduce { dims, combiner: Binary::Add }, &[of, init]) = (sum.op(), &sum.operands[..])
            else {
                continue;
            };
            let complement = (0..node.shape().rank()).filter(|d| !dims.contains(d));
            if !cx.same(of, e) || !complement.eq(kept.iter().copied()) || cx.number(init) != Some(0.0) {
                continue;
            }
            for exponent in cx.operands_of(e, &OpKind::Unary(Unary::Exp)) {
                for difference in cx.operands_of(exponent[0], &OpKind::Binary(Binary::Subtract)) {
                    let constant_in_row = cx.nodes(difference[1]).iter().any(|m| {
                        matches!(m.op(), OpKind::Broadcast { dims: d } if d.iter().all(|d| kept.contains(d)))
                    });
                    if constant_in_row {
                        let exp = Term::node(
                            OpKind::Unary(Unary::Exp),
                            node.shape().clone(),
                            vec![cx.class(difference[0])],
                        );
                        let row = exp.clone().reduce(Binary::Add, dims, cx.class(init));
                        let row = row.broadcast(kept, &node.shape().dims);
                        out.push(Term::binary(Binary::Divide, exp, row));
                    }
                }
            }
        }
    }
}
