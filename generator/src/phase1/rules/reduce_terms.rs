//! Signs, sums and scales moved through reductions.

use super::reduce::parts;
use super::reduce_algebra::{free_order, has_multiply, has_reduce, is_neutral};
use super::{Context, Rule, RuleClass, neutral};
use crate::phase1::language::TensorNode;
use crate::phase1::term::Term;
use crate::phase1::vocabulary::{Vocabulary, key};
use act_hlo::{Binary, OpKind, Unary};
use egg::Id;

pub(crate) static RULES: &[Rule] = &[
    Rule::new(
        RuleClass::Integer,
        "red-const-in",
        "splat c * red+(x; 0) => red+(splat c * x; 0)",
        has_sum_and_multiply,
        scale_in,
    ),
    Rule::new(
        RuleClass::Integer,
        "red-const-out",
        "red+(splat c * x; 0) => splat c * red+(x; 0)",
        has_sum_and_multiply,
        scale_out,
    ),
    Rule::new(
        RuleClass::Integer,
        "red-neg",
        "neg red+(x; 0) => red+(neg x; 0)",
        has_sum_and_negate,
        negate_in,
    ),
    Rule::new(
        RuleClass::Integer,
        "neg-red",
        "red+(neg x; 0) => neg red+(x; 0)",
        has_sum_and_negate,
        negate_out,
    ),
    Rule::new(
        RuleClass::Integer,
        "red-add",
        "red[D](x; z) + red[D](y; a) => red[D](x + y; a), z neutral",
        has_reduce,
        join,
    ),
    Rule::new(
        RuleClass::Integer,
        "red-add-out",
        "red[D](x + y; a) => red[D](x; z) + red[D](y; a), z neutral",
        has_reduce,
        take_apart,
    ),
    Rule::new(
        RuleClass::Exact,
        "red-max-neg",
        "red_max(x; a) => neg red_min(neg x; neg a), floats; min alike",
        has_negate,
        by_negation,
    ),
    Rule::new(
        RuleClass::Exact,
        "red-max-not",
        "red_max(x; a) => not red_min(not x; not a), integers; min alike",
        has_not,
        by_complement,
    ),
];

fn has_sum_and_multiply(vocabulary: &Vocabulary) -> bool {
    has_multiply(vocabulary) && vocabulary.names("reduce add")
}

fn has_negate(vocabulary: &Vocabulary) -> bool {
    vocabulary.names("negate") && has_reduce(vocabulary)
}

fn has_sum_and_negate(vocabulary: &Vocabulary) -> bool {
    vocabulary.names("negate") && vocabulary.names("reduce add")
}

fn has_not(vocabulary: &Vocabulary) -> bool {
    vocabulary.names("not") && has_reduce(vocabulary)
}

/// Dimensions, operand and initial value of every sum from zero in the class.
fn sums<'a>(cx: &Context<'a>, id: Id) -> Vec<(&'a [usize], Id, Id)> {
    cx.nodes(id).iter().filter_map(|n| sum(cx, n)).collect()
}

fn scale_in(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Binary(Binary::Multiply), &[p, q]) = (node.op(), &node.operands[..]) else { return };
    for (c, r) in [(p, q), (q, p)] {
        let Some(scalar) = cx.splat(c) else { continue };
        for (dims, x, init) in sums(cx, r) {
            let scaled = Term::splat(scalar.clone(), &cx.shape(x).dims);
            let scaled = Term::binary(Binary::Multiply, scaled, cx.class(x));
            out.push(scaled.reduce(Binary::Add, dims, cx.class(init)));
        }
    }
}

/// Dimensions, operand and initial value when the node is a sum from zero.
fn sum<'a>(cx: &Context<'_>, node: &'a TensorNode) -> Option<(&'a [usize], Id, Id)> {
    let (dims, combiner, x, init) = parts(node)?;
    let plain = combiner == Binary::Add && cx.number(init) == Some(0.0);
    (plain && cx.may_distribute(node.shape().elem)).then_some((dims, x, init))
}

fn scale_out(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((dims, p, init)) = sum(cx, node) else { return };
    for factors in cx.operands_of(p, &OpKind::Binary(Binary::Multiply)) {
        let [a, b] = *factors else { continue };
        for (c, x) in [(a, b), (b, a)] {
            if let (Some(scalar), false) = (cx.splat(c), cx.same(x, p)) {
                let sum = cx.class(x).reduce(Binary::Add, dims, cx.class(init));
                let scalar = Term::splat(scalar.clone(), &node.shape().dims);
                out.push(Term::binary(Binary::Multiply, scalar, sum));
            }
        }
    }
}

fn unary(op: Unary, x: Term) -> Term {
    Term::node(OpKind::Unary(op), x.shape.clone(), vec![x])
}

fn negate_in(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Unary(Unary::Negate), &[r]) = (node.op(), &node.operands[..]) else { return };
    for (dims, x, init) in sums(cx, r) {
        out.push(unary(Unary::Negate, cx.class(x)).reduce(Binary::Add, dims, cx.class(init)));
    }
}

fn negate_out(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((dims, n, init)) = sum(cx, node) else { return };
    for of in cx.operands_of(n, &OpKind::Unary(Unary::Negate)) {
        out.push(unary(Unary::Negate, cx.class(of[0]).reduce(Binary::Add, dims, cx.class(init))));
    }
}

fn join(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Binary(op), &[p, q]) = (node.op(), &node.operands[..]) else { return };
    let elem = node.shape().elem;
    if !free_order(cx, *op, elem) || cx.same(p, q) || !cx.vocabulary.has(&key(node.op()), elem) {
        return;
    }
    for first in cx.nodes(p) {
        let Some((dims, combiner, x, a)) = parts(first).filter(|f| f.1 == *op) else { continue };
        for second in cx.nodes(q) {
            let Some((others, other, y, b)) = parts(second) else { continue };
            if other != combiner || others != dims || cx.shape(x) != cx.shape(y) {
                continue;
            }
            let init = match (is_neutral(cx, combiner, a), is_neutral(cx, combiner, b)) {
                (true, _) => b,
                (false, true) => a,
                (false, false) => continue,
            };
            let sum = Term::binary(combiner, cx.class(x), cx.class(y));
            out.push(sum.reduce(combiner, dims, cx.class(init)));
        }
    }
}

fn take_apart(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((dims, combiner, s, init)) = parts(node) else { return };
    let elem = node.shape().elem;
    let op = OpKind::Binary(combiner);
    let wanted = cx.vocabulary.has(&key(&op), elem) && cx.vocabulary.has(&key(node.op()), elem);
    let Some(z) = neutral(combiner, elem).filter(|_| wanted && free_order(cx, combiner, elem)) else {
        return;
    };
    for terms in cx.operands_of(s, &op) {
        let [x, y] = *terms else { continue };
        if cx.is_constant(x) || cx.is_constant(y) || cx.same(x, s) || cx.same(y, s) {
            continue;
        }
        let first = cx.class(x).reduce(combiner, dims, Term::splat(z.clone(), &[]));
        let second = cx.class(y).reduce(combiner, dims, cx.class(init));
        out.push(Term::binary(combiner, first, second));
    }
}

/// Maximum as minimum of what an order-reversing operator that is its own inverse makes of the operand, or the reverse.
fn mirrored(cx: &Context<'_>, class: Id, node: &TensorNode, mirror: Unary, out: &mut Vec<Term>) {
    let Some((dims, combiner, x, init)) = parts(node) else { return };
    let elem = node.shape().elem;
    let other = match combiner {
        Binary::Maximum => Binary::Minimum,
        Binary::Minimum => Binary::Maximum,
        _ => return,
    };
    let reduce = |combiner| key::<i64, ()>(&OpKind::Reduce { dims: Vec::new(), combiner });
    let wanted = !cx.vocabulary.has(&reduce(combiner), elem)
        && cx.vocabulary.has(&reduce(other), elem)
        && cx.vocabulary.has(mirror.name(), elem)
        && !cx.is_constant(class);
    if wanted {
        let init = unary(mirror, cx.class(init));
        out.push(unary(mirror, unary(mirror, cx.class(x)).reduce(other, dims, init)));
    }
}

fn by_negation(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    if node.shape().elem.is_float() {
        mirrored(cx, class, node, Unary::Negate, out);
    }
}

fn by_complement(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    if node.shape().elem.is_int() {
        mirrored(cx, class, node, Unary::Not, out);
    }
}
