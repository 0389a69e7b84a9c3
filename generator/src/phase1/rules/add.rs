//! Addition: neutral elements, constants brought together, and sums as other operators.

use super::known::{binary, either, nothing_added, whole};
use super::{Context, Rule, RuleClass, always};
use crate::phase1::language::TensorNode;
use crate::phase1::term::Term;
use act_hlo::{Binary, OpKind, Unary};
use egg::Id;

pub(crate) static RULES: &[Rule] = &[
    Rule::new(
        RuleClass::Conditional,
        "add-zero",
        "x + 0 => x; floats: x + -0 => x, and x + 0 => x when x is never -0; x without denormals",
        always,
        add_zero,
    ),
    Rule::new(
        RuleClass::Integer,
        "add-assoc-const",
        "(x + c1) + c2 => x + (c1 + c2), constants",
        |v| v.names("add"),
        add_constants,
    ),
    Rule::new(
        RuleClass::Integer,
        "add-two-const",
        "(x + c1) + (y + c2) => (x + y) + (c1 + c2), constants",
        |v| v.names("add"),
        add_two_constants,
    ),
    Rule::new(RuleClass::Exact, "add-neg", "x + neg y => x - y", |v| v.names("subtract"), add_negated),
    Rule::new(
        RuleClass::Exact,
        "add-by-subtract",
        "x + y => x - neg y when no instruction adds",
        |v| v.names("subtract") && v.names("negate"),
        add_by_subtract,
    ),
    Rule::new(
        RuleClass::Exact,
        "add-const-sub",
        "x + c => x - (-c), c a constant, when no instruction adds",
        |v| v.names("subtract"),
        add_constant_by_subtract,
    ),
    Rule::new(
        RuleClass::Integer,
        "add-factor",
        "x*z + y*z => (x + y)*z, integers",
        |v| v.names("add") && v.names("multiply"),
        factor,
    ),
    Rule::new(
        RuleClass::Exact,
        "add-dup",
        "x + x => x * 2 when no instruction adds",
        |v| v.names("multiply"),
        double,
    ),
    Rule::new(RuleClass::Integer, "add-sub-cancel", "(x - y) + y => x, integers", always, cancel),
    Rule::new(
        RuleClass::Exact,
        "add-by-fma",
        "x + y => fma(x, 1, y) when no instruction adds",
        |v| v.names("fma"),
        add_by_fma,
    ),
    Rule::new(
        RuleClass::Integer,
        "mul-add-fma",
        "x*y + z => fma(x, y, z), integers",
        |v| v.names("fma"),
        fuse,
    ),
];

fn add_zero(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    for (x, zero) in either(node, Binary::Add) {
        let Some(scalar) = cx.splat(zero) else { continue };
        let elem = scalar.elem();
        if cx.number(zero) != Some(0.0) || !(elem.is_int() || elem.is_float()) {
            continue;
        }
        let neutral = nothing_added(elem).as_ref() == Some(scalar) || cx.never_negative_zero(x);
        if neutral && cx.flushed(x) {
            out.push(cx.class(x));
        }
    }
}

fn add_constants(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    if !cx.may_reassociate(node.shape().elem) {
        return;
    }
    for (sum, c2) in either(node, Binary::Add) {
        if !cx.is_constant(c2) || cx.is_constant(sum) {
            continue;
        }
        for (x, c1) in cx.eithers(sum, Binary::Add) {
            if cx.is_constant(c1) && !cx.is_constant(x) {
                let constant = Term::binary(Binary::Add, cx.class(c1), cx.class(c2));
                out.push(Term::binary(Binary::Add, cx.class(x), constant));
            }
        }
    }
}

fn add_two_constants(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((a, b)) = binary(node, Binary::Add) else { return };
    if cx.is_constant(class) || !cx.may_reassociate(node.shape().elem) {
        return;
    }
    let add = |a, b| Term::binary(Binary::Add, a, b);
    for (x, c1) in cx.eithers(a, Binary::Add).filter(|p| cx.is_constant(p.1) && !cx.is_constant(p.0)) {
        for (y, c2) in cx.eithers(b, Binary::Add).filter(|p| cx.is_constant(p.1) && !cx.is_constant(p.0)) {
            out.push(add(add(cx.class(x), cx.class(y)), add(cx.class(c1), cx.class(c2))));
        }
    }
}

fn add_negated(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    for (x, negated) in either(node, Binary::Add) {
        for y in cx.unaries(negated, Unary::Negate) {
            out.push(Term::binary(Binary::Subtract, cx.class(x), cx.class(y)));
        }
    }
}

fn add_by_subtract(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((x, y)) = binary(node, Binary::Add) else { return };
    let wanted = cx.vocabulary.wants("add", &["subtract", "negate"], node.shape().elem);
    if wanted && !cx.is_constant(class) && !cx.is_constant(y) && !cx.is_constant(x) {
        let negated = Term::unary(Unary::Negate, cx.class(y));
        out.push(Term::binary(Binary::Subtract, cx.class(x), negated));
    }
}

fn add_constant_by_subtract(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    if !cx.vocabulary.wants("add", &["subtract"], node.shape().elem) || cx.is_constant(class) {
        return;
    }
    for (x, c) in either(node, Binary::Add) {
        if cx.is_constant(c) {
            let negated = Term::unary(Unary::Negate, cx.class(c));
            out.push(Term::binary(Binary::Subtract, cx.class(x), negated));
        }
    }
}

fn factor(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((a, b)) = binary(node, Binary::Add) else { return };
    if !node.shape().elem.is_int() || cx.is_constant(class) {
        return;
    }
    for (x, z) in cx.eithers(a, Binary::Multiply) {
        for (y, _) in cx.eithers(b, Binary::Multiply).filter(|p| cx.same(p.1, z)) {
            let sum = Term::binary(Binary::Add, cx.class(x), cx.class(y));
            out.push(Term::binary(Binary::Multiply, sum, cx.class(z)));
        }
    }
}

fn double(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((x, y)) = binary(node, Binary::Add) else { return };
    let elem = node.shape().elem;
    if !cx.same(x, y) || cx.is_constant(class) || !cx.vocabulary.wants("add", &["multiply"], elem) {
        return;
    }
    if let Some(two) = whole(elem, 2) {
        out.push(Term::binary(Binary::Multiply, cx.class(x), Term::splat(two, &node.shape().dims)));
    }
}

fn cancel(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    if !node.shape().elem.is_int() {
        return;
    }
    for (difference, y) in either(node, Binary::Add) {
        for (x, _) in cx.binaries(difference, Binary::Subtract).filter(|p| cx.same(p.1, y)) {
            out.push(cx.class(x));
        }
    }
}

fn add_by_fma(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((x, y)) = binary(node, Binary::Add) else { return };
    let elem = node.shape().elem;
    if cx.is_constant(class) || !cx.vocabulary.wants("add", &["fma"], elem) {
        return;
    }
    if let Some(one) = whole(elem, 1) {
        let one = Term::splat(one, &node.shape().dims);
        out.push(Term::node(OpKind::Fma, node.shape().clone(), vec![cx.class(x), one, cx.class(y)]));
    }
}

fn fuse(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let elem = node.shape().elem;
    if !elem.is_int() || cx.is_constant(class) || !cx.vocabulary.has("fma", elem) {
        return;
    }
    for (product, z) in either(node, Binary::Add) {
        for (x, y) in cx.binaries(product, Binary::Multiply) {
            let operands = vec![cx.class(x), cx.class(y), cx.class(z)];
            out.push(Term::node(OpKind::Fma, node.shape().clone(), operands));
        }
    }
}
