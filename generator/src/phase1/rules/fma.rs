//! Products and sums rounded once. XLA's CPU backend always lets LLVM contract them (`AllowFPOpFusion = Fast`), so the
//! policy `xla` allows it here.

use super::{Context, Rule, RuleClass};
use crate::numerics::FloatPolicy;
use crate::phase1::language::TensorNode;
use crate::phase1::term::Term;
use crate::phase1::vocabulary::Vocabulary;
use act_hlo::{Binary, ElemType, OpKind, Shape};
use egg::Id;

pub(crate) static RULES: &[Rule] = &[
    Rule {
        name: "add-fma",
        class: RuleClass::FloatAlgebra,
        policy: FloatPolicy::Xla,
        statement: "x * y + z => fma(x, y, z), floats",
        useful: has_fma,
        rewrite: contract,
    },
    Rule {
        name: "mul-fma",
        class: RuleClass::Conditional,
        policy: FloatPolicy::Xla,
        statement: "x * y => fma(x, y, 0), floats, when instructions have no product; the sign of a zero is lost",
        useful: has_fma,
        rewrite: product,
    },
];

fn has_fma(vocabulary: &Vocabulary) -> bool {
    vocabulary.names("fma")
}

fn available(cx: &Context<'_>, elem: ElemType) -> bool {
    elem.is_float() && cx.vocabulary.has("fma", elem)
}

fn fma(shape: &Shape, operands: [Term; 3]) -> Term {
    Term::node(OpKind::Fma, shape.clone(), operands.into())
}

fn contract(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Binary(Binary::Add), &[a, b]) = (node.op(), &node.operands[..]) else { return };
    if !available(cx, node.shape().elem) || cx.is_constant(class) {
        return;
    }
    for (product, z) in [(a, b), (b, a)] {
        for factors in cx.operands_of(product, &OpKind::Binary(Binary::Multiply)) {
            let &[x, y] = factors else { continue };
            out.push(fma(node.shape(), [cx.class(x), cx.class(y), cx.class(z)]));
        }
    }
}

fn product(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Binary(Binary::Multiply), &[x, y]) = (node.op(), &node.operands[..]) else { return };
    let shape = node.shape();
    let wanted = available(cx, shape.elem) && !cx.vocabulary.has("multiply", shape.elem);
    if !wanted || cx.is_constant(class) {
        return;
    }
    if let Ok(zero) = act_isa::constant::int_scalar(shape.elem, 0) {
        out.push(fma(shape, [cx.class(x), cx.class(y), Term::splat(zero, &shape.dims)]));
    }
}
