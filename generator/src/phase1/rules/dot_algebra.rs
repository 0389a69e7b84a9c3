//! The algebra of products: their operands exchanged, chains re-associated, and sums, scales and signs moved through them.

use super::{Context, Rule, RuleClass};
use crate::numerics::FloatPolicy;
use crate::phase1::language::TensorNode;
use crate::phase1::term::Term;
use crate::phase1::vocabulary::{DotForm, Vocabulary};
use act_hlo::{Binary, DotDims, OpKind, Unary};
use egg::Id;

const fn integer(
    name: &'static str,
    statement: &'static str,
    useful: fn(&Vocabulary) -> bool,
    rewrite: fn(&Context<'_>, Id, &TensorNode, &mut Vec<Term>),
) -> Rule {
    Rule { name, class: RuleClass::Integer, policy: FloatPolicy::Exact, statement, useful, rewrite }
}

pub(crate) static RULES: &[Rule] = &[
    Rule {
        name: "dot-comm",
        class: RuleClass::Exact,
        policy: FloatPolicy::Exact,
        statement: "dot[;(i),(j)](a, b) => T(dot[;(j),(i)](b, a)), where instructions take the operands' types in \
                    the other order alone",
        useful: has_dot,
        rewrite: exchanged,
    },
    integer(
        "dot-assoc-l",
        "dot(a, dot(b, c)) => dot(dot(a, b), c), matrices of one type, no splats, constant none or a and b",
        has_dot,
        to_left,
    ),
    integer(
        "dot-assoc-r",
        "dot(dot(a, b), c) => dot(a, dot(b, c)), matrices of one type, no splats, constant none or b and c",
        has_dot,
        to_right,
    ),
    integer(
        "dot-distr-l",
        "dot(x + y, b) => dot(x, b) + dot(y, b), b no splat, toward an instruction that adds a product",
        accumulates,
        sum_of_products_left,
    ),
    integer(
        "dot-distr-r",
        "dot(a, x + y) => dot(a, x) + dot(a, y), a no splat, toward an instruction that adds a product",
        accumulates,
        sum_of_products_right,
    ),
    integer(
        "dot-factor-l",
        "dot(x, b) + dot(y, b) => dot(x + y, b), b no splat, where no instruction adds a product",
        adds_no_product,
        common_right,
    ),
    integer(
        "dot-factor-r",
        "dot(a, x) + dot(a, y) => dot(a, x + y), a no splat, where no instruction adds a product",
        adds_no_product,
        common_left,
    ),
    integer(
        "dot-scale-l",
        "dot(bc[](c) * a, b) => bc[](c) * dot(a, b)",
        has_dot_and_multiply,
        scale_out_left,
    ),
    integer(
        "dot-scale-r",
        "dot(a, bc[](c) * b) => bc[](c) * dot(a, b)",
        has_dot_and_multiply,
        scale_out_right,
    ),
    integer(
        "dot-scale-row",
        "dot(bc[E](v) * a, b) => bc[E'](v) * dot(a, b), E no contracted dimension of a",
        has_dot_and_multiply,
        rows_out,
    ),
    integer(
        "dot-scale-col",
        "dot(a, bc[E](v) * b) => bc[E'](v) * dot(a, b), E free dimensions of b",
        has_dot_and_multiply,
        columns_out,
    ),
    integer(
        "scale-dot-l",
        "bc[](c) * dot(a, b) => dot(bc[](c) * a, b), a no splat",
        has_dot_and_multiply,
        scale_in_left,
    ),
    integer(
        "scale-dot-r",
        "bc[](c) * dot(a, b) => dot(a, bc[](c) * b), b no splat",
        has_dot_and_multiply,
        scale_in_right,
    ),
    integer("dot-neg-l", "dot(neg a, b) => neg dot(a, b)", has_dot_and_negate, negate_out_left),
    integer("dot-neg-r", "dot(a, neg b) => neg dot(a, b)", has_dot_and_negate, negate_out_right),
    integer("neg-dot-l", "neg dot(a, b) => dot(neg a, b)", has_dot_and_negate, negate_in_left),
    integer("neg-dot-r", "neg dot(a, b) => dot(a, neg b)", has_dot_and_negate, negate_in_right),
];

fn has_dot(vocabulary: &Vocabulary) -> bool {
    !vocabulary.dots.is_empty()
}

fn accumulates(vocabulary: &Vocabulary) -> bool {
    vocabulary.accumulates
}

fn adds_no_product(vocabulary: &Vocabulary) -> bool {
    has_dot(vocabulary) && vocabulary.names("add") && !vocabulary.accumulates
}

fn has_dot_and_multiply(vocabulary: &Vocabulary) -> bool {
    has_dot(vocabulary) && vocabulary.names("multiply")
}

fn has_dot_and_negate(vocabulary: &Vocabulary) -> bool {
    has_dot(vocabulary) && vocabulary.names("negate")
}

/// A product of matrices without batch: its dimension numbers and operands.
fn matrices<'a>(cx: &Context<'_>, node: &'a TensorNode) -> Option<(&'a DotDims, Id, Id)> {
    let (OpKind::Dot(dims), &[a, b]) = (node.op(), &node.operands[..]) else { return None };
    let flat = dims.lhs_batch.is_empty()
        && dims.lhs_contracting.len() == 1
        && cx.shape(a).rank() == 2
        && cx.shape(b).rank() == 2;
    flat.then_some((dims, a, b))
}

fn exchanged(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((dims, a, b)) = matrices(cx, node) else { return };
    let (lhs, rhs) = (cx.shape(a).elem, cx.shape(b).elem);
    let out_elem = node.shape().elem;
    let takes = |l, r| {
        let fits = move |f: &DotForm| f.lhs == l && f.rhs == r && f.out == out_elem;
        cx.vocabulary.dots.iter().any(fits)
    };
    if takes(rhs, lhs) && !takes(lhs, rhs) {
        let swapped = DotDims {
            lhs_contracting: dims.rhs_contracting.clone(),
            rhs_contracting: dims.lhs_contracting.clone(),
            ..DotDims::default()
        };
        out.push(Term::dot(swapped, out_elem, cx.class(b), cx.class(a)).transpose(&[1, 0]));
    }
}

/// A product of two matrices in the plain form [M,K] x [K,N], all of one type.
fn plain(cx: &Context<'_>, node: &TensorNode) -> Option<(Id, Id)> {
    let (dims, a, b) = matrices(cx, node)?;
    let elem = node.shape().elem;
    let one_type = cx.shape(a).elem == elem && cx.shape(b).elem == elem;
    (*dims == DotDims::matmul() && one_type && cx.may_distribute(elem)).then_some((a, b))
}

/// Whether re-association toward the product of `p` and `q` is of use: constants are only brought together. Products with
/// constants that move or scale a matrix would go on through every chain.
fn associable(cx: &Context<'_>, p: Id, q: Id, other: Id) -> bool {
    match (cx.is_constant(p), cx.is_constant(q)) {
        (true, true) => true,
        (false, false) => !cx.is_constant(other),
        _ => false,
    }
}

fn to_left(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((a, bc)) = plain(cx, node) else { return };
    for (b, c) in cx.nodes(bc).iter().filter_map(|n| plain(cx, n)) {
        let splat = [a, b, c].iter().any(|&x| cx.splat(x).is_some());
        if splat || !associable(cx, a, b, c) {
            continue;
        }
        let elem = node.shape().elem;
        let ab = Term::dot(DotDims::matmul(), elem, cx.class(a), cx.class(b));
        out.push(Term::dot(DotDims::matmul(), elem, ab, cx.class(c)));
    }
}

fn to_right(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((ab, c)) = plain(cx, node) else { return };
    for (a, b) in cx.nodes(ab).iter().filter_map(|n| plain(cx, n)) {
        let splat = [a, b, c].iter().any(|&x| cx.splat(x).is_some());
        if splat || !associable(cx, b, c, a) {
            continue;
        }
        let elem = node.shape().elem;
        let bc = Term::dot(DotDims::matmul(), elem, cx.class(b), cx.class(c));
        out.push(Term::dot(DotDims::matmul(), elem, cx.class(a), bc));
    }
}

/// The product node with operand `k` replaced.
fn with_operand(cx: &Context<'_>, product: &TensorNode, k: usize, x: Term) -> Term {
    let operands = product.operands.iter().enumerate();
    let operands = operands.map(|(i, &o)| if i == k { x.clone() } else { cx.class(o) }).collect();
    Term::node(product.op().clone(), product.shape().clone(), operands)
}

/// Operand `k` of a product whose type is the product's, so that arithmetic wraps alike before and after it.
fn operand(cx: &Context<'_>, node: &TensorNode, k: usize) -> Option<Id> {
    let (OpKind::Dot(_), Some(&x)) = (node.op(), node.operands.get(k)) else { return None };
    let elem = node.shape().elem;
    (cx.shape(x).elem == elem && cx.may_distribute(elem)).then_some(x)
}

fn distribute(cx: &Context<'_>, node: &TensorNode, k: usize, out: &mut Vec<Term>) {
    let Some(sum) = operand(cx, node, k) else { return };
    // A product with a splat adds up its other operand: as a reduction it has rules of its own.
    if cx.splat(node.operands[1 - k]).is_some() {
        return;
    }
    for terms in cx.operands_of(sum, &OpKind::Binary(Binary::Add)) {
        let [x, y] = *terms else { continue };
        // A sum of a value with itself or with zero would only count up.
        if cx.is_constant(x) || cx.is_constant(y) || cx.same(x, sum) || cx.same(y, sum) {
            continue;
        }
        let part = |t| with_operand(cx, node, k, cx.class(t));
        out.push(Term::binary(Binary::Add, part(x), part(y)));
    }
}

fn sum_of_products_left(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    distribute(cx, node, 0, out);
}

fn sum_of_products_right(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    distribute(cx, node, 1, out);
}

/// Two products that differ in operand `k` alone.
fn factor(cx: &Context<'_>, node: &TensorNode, k: usize, out: &mut Vec<Term>) {
    let (OpKind::Binary(Binary::Add), &[p, q]) = (node.op(), &node.operands[..]) else { return };
    if !cx.vocabulary.has("add", node.shape().elem) || cx.same(p, q) {
        return;
    }
    for first in cx.nodes(p) {
        let Some(x) = operand(cx, first, k) else { continue };
        for second in cx.nodes(q) {
            let Some(y) = operand(cx, second, k) else { continue };
            let alike = first.op() == second.op()
                && cx.splat(first.operands[1 - k]).is_none()
                && cx.same(first.operands[1 - k], second.operands[1 - k])
                && cx.shape(x) == cx.shape(y);
            if alike {
                let sum = Term::binary(Binary::Add, cx.class(x), cx.class(y));
                out.push(with_operand(cx, first, k, sum));
            }
        }
    }
}

fn common_right(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    factor(cx, node, 0, out);
}

fn common_left(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    factor(cx, node, 1, out);
}

/// All (factor, spread of the factor, rest) of a class that is a product by a spread value.
fn scaled(cx: &Context<'_>, x: Id) -> Vec<(Term, Vec<usize>, Id)> {
    let mut found = Vec::new();
    for factors in cx.operands_of(x, &OpKind::Binary(Binary::Multiply)) {
        let [p, q] = *factors else { continue };
        for (v, rest) in [(p, q), (q, p)] {
            if let Some(scalar) = cx.splat(v) {
                found.push((Term::splat(scalar.clone(), &[]), Vec::new(), rest));
                continue;
            }
            for n in cx.nodes(v) {
                if let OpKind::Broadcast { dims } = n.op() {
                    found.push((cx.class(n.operands[0]), dims.clone(), rest));
                }
            }
        }
    }
    found
}

/// Where the dimensions of operand `k` that are not contracted appear in the result.
fn result_dim(dims: &DotDims, rank: usize, result: usize, k: usize, d: usize) -> Option<usize> {
    let (batch, contracting) = if k == 0 {
        (&dims.lhs_batch, &dims.lhs_contracting)
    } else {
        (&dims.rhs_batch, &dims.rhs_contracting)
    };
    if let Some(at) = batch.iter().position(|&b| b == d) {
        return Some(at);
    }
    let free: Vec<usize> = (0..rank).filter(|e| !batch.contains(e) && !contracting.contains(e)).collect();
    let at = free.iter().position(|&f| f == d)?;
    Some(if k == 0 { batch.len() + at } else { result - free.len() + at })
}

fn scale_out(cx: &Context<'_>, node: &TensorNode, k: usize, scalar: bool, out: &mut Vec<Term>) {
    let (OpKind::Dot(dims), Some(x)) = (node.op(), operand(cx, node, k)) else { return };
    if !cx.vocabulary.has("multiply", node.shape().elem) {
        return;
    }
    for (factor, spread, rest) in scaled(cx, x) {
        if spread.is_empty() != scalar || cx.same(rest, x) {
            continue;
        }
        let (rank, result) = (cx.shape(x).rank(), node.shape().rank());
        let to: Option<Vec<usize>> = spread.iter().map(|&d| result_dim(dims, rank, result, k, d)).collect();
        if let Some(to) = to {
            let factor = factor.broadcast(&to, &node.shape().dims);
            let product = with_operand(cx, node, k, cx.class(rest));
            out.push(Term::binary(Binary::Multiply, factor, product));
        }
    }
}

fn scale_out_left(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    scale_out(cx, node, 0, true, out);
}

fn scale_out_right(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    scale_out(cx, node, 1, true, out);
}

fn rows_out(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    scale_out(cx, node, 0, false, out);
}

fn columns_out(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    scale_out(cx, node, 1, false, out);
}

fn scale_in(cx: &Context<'_>, class: Id, node: &TensorNode, k: usize, out: &mut Vec<Term>) {
    if *node.op() != OpKind::Binary(Binary::Multiply) || !cx.vocabulary.has("multiply", node.shape().elem) {
        return;
    }
    let [p, q] = node.operands[..] else { return };
    for (v, product) in [(p, q), (q, p)] {
        let scalar = match cx.splat(v) {
            Some(scalar) => Some(Term::splat(scalar.clone(), &[])),
            None => cx.nodes(v).iter().find_map(|n| match n.op() {
                OpKind::Broadcast { dims } if dims.is_empty() => Some(cx.class(n.operands[0])),
                _ => None,
            }),
        };
        let Some(scalar) = scalar.filter(|_| !cx.same(product, class)) else { continue };
        for n in cx.nodes(product) {
            let Some(x) = operand(cx, n, k).filter(|&x| cx.splat(x).is_none()) else { continue };
            let spread = scalar.clone().broadcast(&[], &cx.shape(x).dims);
            let x = Term::binary(Binary::Multiply, spread, cx.class(x));
            out.push(with_operand(cx, n, k, x));
        }
    }
}

fn scale_in_left(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    scale_in(cx, class, node, 0, out);
}

fn scale_in_right(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    scale_in(cx, class, node, 1, out);
}

fn negated(x: Term) -> Term {
    Term::node(OpKind::Unary(Unary::Negate), x.shape.clone(), vec![x])
}

fn negate_out(cx: &Context<'_>, node: &TensorNode, k: usize, out: &mut Vec<Term>) {
    let Some(x) = operand(cx, node, k) else { return };
    for of in cx.operands_of(x, &OpKind::Unary(Unary::Negate)) {
        out.push(negated(with_operand(cx, node, k, cx.class(of[0]))));
    }
}

fn negate_out_left(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    negate_out(cx, node, 0, out);
}

fn negate_out_right(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    negate_out(cx, node, 1, out);
}

fn negate_in(cx: &Context<'_>, node: &TensorNode, k: usize, out: &mut Vec<Term>) {
    let (OpKind::Unary(Unary::Negate), &[product]) = (node.op(), &node.operands[..]) else { return };
    for n in cx.nodes(product) {
        let Some(x) = operand(cx, n, k) else { continue };
        out.push(with_operand(cx, n, k, negated(cx.class(x))));
    }
}

fn negate_in_left(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    negate_in(cx, node, 0, out);
}

fn negate_in_right(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    negate_in(cx, node, 1, out);
}
