//! Subtraction and negation: neutral elements, cancellation, and one written as the other.

use super::known::{binary, nothing_added, unary, whole};
use super::{Context, Rule, RuleClass, always};
use crate::phase1::language::TensorNode;
use crate::phase1::term::Term;
use act_hlo::{Binary, OpKind, Unary};
use egg::Id;

pub(crate) static RULES: &[Rule] = &[
    Rule::new(RuleClass::Conditional, "sub-zero", "x - 0 => x, x without denormals", always, subtract_zero),
    Rule::new(RuleClass::Integer, "sub-self", "x - x => 0, integers", always, subtract_itself),
    Rule::new(
        RuleClass::Exact,
        "sub-const",
        "x - c => x + (-c), c a constant",
        |v| v.names("add"),
        subtract_constant,
    ),
    Rule::new(
        RuleClass::Exact,
        "sub-add-neg",
        "x - y => x + neg y when no instruction subtracts",
        |v| v.names("add") && v.names("negate"),
        subtract_by_add,
    ),
    Rule::new(
        RuleClass::Conditional,
        "sub-from-zero",
        "0 - x => neg x, integers; floats: -0 - x, x without denormals",
        |v| v.names("negate"),
        subtract_from_zero,
    ),
    Rule::new(
        RuleClass::Conditional,
        "neg-by-subtract",
        "neg x => 0 - x when no instruction negates; floats: -0 - x, x without denormals",
        |v| v.names("subtract"),
        negate_by_subtract,
    ),
    Rule::new(RuleClass::Exact, "sub-neg", "x - neg y => x + y", |v| v.names("add"), subtract_negated),
    Rule::new(RuleClass::Integer, "sub-flip", "neg(x - y) => y - x, integers", |v| v.names("subtract"), flip),
    Rule::new(RuleClass::Integer, "sub-add-cancel", "(x + y) - y => x, integers", always, cancel_sum),
    Rule::new(RuleClass::Integer, "sub-sub-cancel", "x - (x - y) => y, integers", always, cancel_difference),
    Rule::new(
        RuleClass::Integer,
        "sub-common",
        "(x - z) - (y - z) => x - y, and (x + z) - (y + z) => x - y, integers",
        |v| v.names("subtract"),
        common,
    ),
    Rule::new(
        RuleClass::Integer,
        "sub-from-const",
        "c1 - (x + c2) => (c1 - c2) - x, constants, integers",
        |v| v.names("subtract"),
        subtract_from_constant,
    ),
    Rule::new(
        RuleClass::Integer,
        "neg-add-const",
        "neg(x + c) => (-c) - x, c a constant, integers",
        |v| v.names("subtract"),
        negate_sum,
    ),
    Rule::new(
        RuleClass::Exact,
        "sub-by-fma",
        "x - y => fma(y, -1, x) when no instruction subtracts",
        |v| v.names("fma"),
        subtract_by_fma,
    ),
];

fn subtract_zero(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((x, zero)) = binary(node, Binary::Subtract) else { return };
    // -0 is no neutral element from the right: x - (-0) = x + 0.
    let plain = cx.splat(zero).is_some_and(|l| l.bytes().iter().all(|&b| b == 0));
    if plain && cx.number(zero).is_some() && cx.flushed(x) {
        out.push(cx.class(x));
    }
}

fn subtract_itself(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((x, y)) = binary(node, Binary::Subtract) else { return };
    let elem = node.shape().elem;
    if elem.is_int()
        && cx.same(x, y)
        && !cx.is_constant(class)
        && let Some(zero) = whole(elem, 0)
    {
        out.push(Term::splat(zero, &node.shape().dims));
    }
}

fn subtract_constant(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((x, c)) = binary(node, Binary::Subtract) else { return };
    if cx.is_constant(c) && !cx.is_constant(class) && cx.vocabulary.has("add", node.shape().elem) {
        let negated = Term::unary(Unary::Negate, cx.class(c));
        out.push(Term::binary(Binary::Add, cx.class(x), negated));
    }
}

fn subtract_by_add(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((x, y)) = binary(node, Binary::Subtract) else { return };
    let wanted = cx.vocabulary.wants("subtract", &["add", "negate"], node.shape().elem);
    if wanted && !cx.is_constant(class) && !cx.is_constant(y) {
        out.push(Term::binary(Binary::Add, cx.class(x), Term::unary(Unary::Negate, cx.class(y))));
    }
}

fn subtract_from_zero(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((zero, x)) = binary(node, Binary::Subtract) else { return };
    let elem = node.shape().elem;
    if cx.splat(zero).is_some()
        && cx.splat(zero) == nothing_added(elem).as_ref()
        && cx.flushed(x)
        && !cx.is_constant(class)
        && cx.vocabulary.has("negate", elem)
    {
        out.push(Term::unary(Unary::Negate, cx.class(x)));
    }
}

fn negate_by_subtract(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some(x) = unary(node, Unary::Negate) else { return };
    let elem = node.shape().elem;
    if cx.is_constant(class) || !cx.flushed(x) || !cx.vocabulary.wants("negate", &["subtract"], elem) {
        return;
    }
    if let Some(zero) = nothing_added(elem) {
        let zero = Term::splat(zero, &node.shape().dims);
        out.push(Term::binary(Binary::Subtract, zero, cx.class(x)));
    }
}

fn subtract_negated(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((x, negated)) = binary(node, Binary::Subtract) else { return };
    for y in cx.unaries(negated, Unary::Negate) {
        out.push(Term::binary(Binary::Add, cx.class(x), cx.class(y)));
    }
}

fn flip(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some(difference) = unary(node, Unary::Negate) else { return };
    if !node.shape().elem.is_int() || cx.is_constant(class) {
        return;
    }
    for (x, y) in cx.binaries(difference, Binary::Subtract) {
        out.push(Term::binary(Binary::Subtract, cx.class(y), cx.class(x)));
    }
}

fn cancel_sum(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((sum, y)) = binary(node, Binary::Subtract) else { return };
    if node.shape().elem.is_int() {
        let rest = cx.eithers(sum, Binary::Add).filter(|p| cx.same(p.1, y));
        out.extend(rest.map(|(x, _)| cx.class(x)));
    }
}

fn cancel_difference(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((x, difference)) = binary(node, Binary::Subtract) else { return };
    if node.shape().elem.is_int() {
        let rest = cx.binaries(difference, Binary::Subtract).filter(|p| cx.same(p.0, x));
        out.extend(rest.map(|(_, y)| cx.class(y)));
    }
}

fn common(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((a, b)) = binary(node, Binary::Subtract) else { return };
    if !node.shape().elem.is_int() || cx.is_constant(class) {
        return;
    }
    for (x, z) in cx.binaries(a, Binary::Subtract) {
        for (y, _) in cx.binaries(b, Binary::Subtract).filter(|p| cx.same(p.1, z)) {
            out.push(Term::binary(Binary::Subtract, cx.class(x), cx.class(y)));
        }
    }
    for (x, z) in cx.eithers(a, Binary::Add) {
        for (y, _) in cx.eithers(b, Binary::Add).filter(|p| cx.same(p.1, z)) {
            out.push(Term::binary(Binary::Subtract, cx.class(x), cx.class(y)));
        }
    }
}

fn subtract_from_constant(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((c1, sum)) = binary(node, Binary::Subtract) else { return };
    if !node.shape().elem.is_int() || !cx.is_constant(c1) || cx.is_constant(class) {
        return;
    }
    for (x, c2) in cx.eithers(sum, Binary::Add).filter(|p| cx.is_constant(p.1)) {
        let constant = Term::binary(Binary::Subtract, cx.class(c1), cx.class(c2));
        out.push(Term::binary(Binary::Subtract, constant, cx.class(x)));
    }
}

fn negate_sum(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some(sum) = unary(node, Unary::Negate) else { return };
    if !node.shape().elem.is_int() || cx.is_constant(class) {
        return;
    }
    for (x, c) in cx.eithers(sum, Binary::Add).filter(|p| cx.is_constant(p.1)) {
        let constant = Term::unary(Unary::Negate, cx.class(c));
        out.push(Term::binary(Binary::Subtract, constant, cx.class(x)));
    }
}

fn subtract_by_fma(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((x, y)) = binary(node, Binary::Subtract) else { return };
    let elem = node.shape().elem;
    if cx.is_constant(class) || elem.is_unsigned_int() || !cx.vocabulary.wants("subtract", &["fma"], elem) {
        return;
    }
    if let Some(minus) = whole(elem, -1) {
        let minus = Term::splat(minus, &node.shape().dims);
        out.push(Term::node(OpKind::Fma, node.shape().clone(), vec![cx.class(y), minus, cx.class(x)]));
    }
}
