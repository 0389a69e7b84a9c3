//! Elementwise operators commute with data movement: one schema over operator attributes in place of some 240 concrete
//! rules (catalogue, "Elementwise commuting schema").

use super::{Context, Rule, RuleClass, always};
use crate::numerics::FloatPolicy;
use crate::phase1::language::{TensorNode, is_elementwise};
use crate::phase1::term::{Kind, Term};
use act_hlo::{OpKind, Shape};
use egg::Id;

pub(crate) static RULES: &[Rule] = &[
    Rule {
        name: "elementwise-push",
        class: RuleClass::Exact,
        policy: FloatPolicy::Exact,
        statement: "m(f(x, ..)) => f(m(x), ..) for m in slice, transpose, reshape, reverse, broadcast; f elementwise",
        useful: always,
        rewrite: push,
    },
    Rule {
        name: "elementwise-pull",
        class: RuleClass::Exact,
        policy: FloatPolicy::Exact,
        statement: "f(m(x), ..) => m(f(x, ..)) for the same m in transpose, reshape, reverse, broadcast in all \
                    operands that are no splats; f elementwise; reverse where no product does it",
        useful: always,
        rewrite: pull,
    },
    Rule {
        name: "elementwise-cat",
        class: RuleClass::Exact,
        policy: FloatPolicy::Exact,
        statement: "f(cat_d(x1, ..), ..) => cat_d(f(x1, ..), ..) when all operands are cut alike or splats",
        useful: always,
        rewrite: concatenate,
    },
];

/// The movement operator applied to an operand of an elementwise operator. Splats are absorbed, scalars beside full
/// tensors stay.
fn moved(cx: &Context<'_>, m: &TensorNode, operand: Id, full: &Shape) -> Term {
    let shape = cx.shape(operand);
    if shape.rank() == 0 && full.rank() != 0 {
        return cx.class(operand);
    }
    let result = Shape::new(shape.elem, m.shape().dims.clone());
    if let Some(scalar) = cx.splat(operand) {
        return Term { shape: result, kind: Kind::Splat(scalar.clone()) };
    }
    Term::node(m.op().clone(), result, vec![cx.class(operand)])
}

fn push(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Slice { .. }
    | OpKind::Transpose { .. }
    | OpKind::Reshape
    | OpKind::Reverse { .. }
    | OpKind::Broadcast { .. }) = node.op()
    else {
        return;
    };
    let [inner] = node.operands[..] else { return };
    if cx.is_constant(inner) {
        return;
    }
    for f in cx.nodes(inner) {
        if is_elementwise(f.op()) {
            let operands = f.operands.iter().map(|&x| moved(cx, node, x, f.shape())).collect();
            out.push(Term::node(f.op().clone(), node.shape().clone(), operands));
        }
    }
}

fn pull(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    if !is_elementwise(node.op()) || cx.is_constant(class) {
        return;
    }
    let full = node.shape().rank();
    let beside = |x: Id| cx.splat(x).is_some() || (cx.shape(x).rank() == 0 && full != 0);
    let Some(&lead) = node.operands.iter().find(|&&x| !beside(x)) else { return };
    for m in cx.nodes(lead) {
        let (OpKind::Transpose { .. } | OpKind::Reshape | OpKind::Reverse { .. } | OpKind::Broadcast { .. }) =
            m.op()
        else {
            continue;
        };
        // A product with a constant reverses the operand as well as the result.
        if matches!(m.op(), OpKind::Reverse { .. }) && cx.vocabulary.reversed_by_products {
            continue;
        }
        let inner = cx.shape(m.operands[0]).dims.clone();
        let mut operands = Vec::with_capacity(node.operands.len());
        for &x in &node.operands {
            if let Some(scalar) = cx.splat(x) {
                let dims: &[u64] = if cx.shape(x).rank() == 0 && full != 0 { &[] } else { &inner };
                operands.push(Term::splat(scalar.clone(), dims));
            } else if beside(x) {
                operands.push(cx.class(x));
            } else {
                let same =
                    cx.nodes(x).iter().find(|n| n.op() == m.op() && cx.shape(n.operands[0]).dims == inner);
                match same {
                    Some(n) => operands.push(cx.class(n.operands[0])),
                    None => break,
                }
            }
        }
        if operands.len() == node.operands.len() {
            let shape = Shape::new(node.shape().elem, inner);
            let f = Term::node(node.op().clone(), shape, operands);
            out.push(Term::node(m.op().clone(), node.shape().clone(), vec![f]));
        }
    }
}

fn concatenate(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    if !is_elementwise(node.op()) || cx.is_constant(class) {
        return;
    }
    let beside = |x: Id| cx.splat(x).is_some() || (cx.shape(x).rank() == 0 && node.shape().rank() != 0);
    let Some(&lead) = node.operands.iter().find(|&&x| !beside(x)) else { return };
    for cut in cx.nodes(lead) {
        let OpKind::Concatenate { dim } = cut.op() else { continue };
        let lens: Vec<u64> = cut.operands.iter().map(|&p| cx.shape(p).dims[*dim]).collect();
        // Per operand of f its parts.
        let mut parts: Vec<Vec<Term>> = Vec::with_capacity(node.operands.len());
        for &x in &node.operands {
            let alike = |n: &&TensorNode| {
                *n.op() == OpKind::Concatenate { dim: *dim }
                    && n.operands.iter().map(|&p| cx.shape(p).dims[*dim]).eq(lens.iter().copied())
            };
            if beside(x) && cx.shape(x).rank() == 0 {
                parts.push(vec![cx.class(x); lens.len()]);
            } else if let Some(scalar) = cx.splat(x) {
                let mut dims = cx.shape(x).dims.clone();
                let pieces = lens.iter().map(|&len| {
                    dims[*dim] = len;
                    Term::splat(scalar.clone(), &dims)
                });
                parts.push(pieces.collect());
            } else if let Some(n) = cx.nodes(x).iter().find(alike) {
                parts.push(n.operands.iter().map(|&p| cx.class(p)).collect());
            } else {
                break;
            }
        }
        if parts.len() == node.operands.len() {
            let pieces = lens.iter().enumerate().map(|(k, &len)| {
                let mut shape = node.shape().clone();
                shape.dims[*dim] = len;
                Term::node(node.op().clone(), shape, parts.iter().map(|p| p[k].clone()).collect())
            });
            out.push(Term::concatenate(*dim, pieces.collect()));
        }
    }
}
