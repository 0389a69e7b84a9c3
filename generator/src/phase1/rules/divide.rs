//! Division and remainder: neutral elements, powers of two, and one written by the other.

use super::known::{binary, limits, power_of_two, whole};
use super::multiply::exact_reciprocal;
use super::{Context, Rule, RuleClass, always};
use crate::phase1::language::TensorNode;
use crate::phase1::term::Term;
use act_hlo::{Binary, Unary};
use egg::Id;

pub(crate) static RULES: &[Rule] = &[
    Rule::new(RuleClass::Conditional, "div-one", "x / 1 => x, x without denormals", always, divide_by_one),
    Rule::new(
        RuleClass::Conditional,
        "div-neg-one",
        "x / -1 => neg x, x without denormals",
        |v| v.names("negate"),
        divide_by_minus_one,
    ),
    Rule::new(
        RuleClass::Conditional,
        "div-const",
        "x / 2^k => x * 2^-k when no instruction divides, floats, 2^k and 2^-k normal",
        |v| v.names("multiply"),
        divide_by_multiply,
    ),
    Rule::new(
        RuleClass::Integer,
        "div-pow2-int",
        "x / 2^k => shr_logical(x, k), unsigned",
        |v| v.names("shift-right-logical"),
        divide_by_shift,
    ),
    Rule::new(
        RuleClass::Integer,
        "div-pow2-signed",
        "x / 2^k => (x + (x >> bits-1 and 2^k - 1)) >> k when no instruction divides, signed, >> arithmetic",
        |v| v.names("shift-right-arithmetic") && v.names("and") && v.names("add"),
        divide_signed_by_shift,
    ),
    Rule::new(
        RuleClass::Integer,
        "div-div-const",
        "(x / c1) / c2 => x / (c1 c2), positive integer constants whose product does not overflow",
        |v| v.names("divide"),
        divide_twice,
    ),
    Rule::new(
        RuleClass::Exact,
        "div-neg-neg",
        "neg x / neg y => x / y, floats",
        |v| v.names("divide"),
        divide_two_signs,
    ),
    Rule::new(RuleClass::Exact, "rem-rem", "(a rem b) rem b => a rem b", always, remainder_twice),
    Rule::new(
        RuleClass::Integer,
        "rem-pow2",
        "x rem 2^k => x and (2^k - 1), x an integer that is never negative",
        |v| v.names("and"),
        remainder_by_mask,
    ),
    Rule::new(RuleClass::Integer, "rem-self", "x rem x => 0, integers", always, remainder_of_itself),
    Rule::new(
        RuleClass::Integer,
        "rem-one",
        "x rem 1 => 0, x rem -1 => 0, integers",
        always,
        remainder_of_one,
    ),
    Rule::new(
        RuleClass::Integer,
        "rem-by-div",
        "x rem y => x - (x / y) * y when no instruction has the remainder, integers",
        |v| v.names("divide") && v.names("multiply") && v.names("subtract"),
        remainder_by_divide,
    ),
    Rule::new(
        RuleClass::Integer,
        "rem-range",
        "x rem c => x when 0 <= x < c is known, integers",
        always,
        remainder_of_small,
    ),
    Rule::new(
        RuleClass::Integer,
        "div-range",
        "x / c => 0 when 0 <= x < c is known, integers",
        always,
        quotient_of_small,
    ),
];

fn divide_by_one(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((x, one)) = binary(node, Binary::Divide) else { return };
    if cx.number(one) == Some(1.0) && cx.flushed(x) {
        out.push(cx.class(x));
    }
}

fn divide_by_minus_one(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((x, c)) = binary(node, Binary::Divide) else { return };
    let wanted = cx.vocabulary.has("negate", node.shape().elem) && !cx.is_constant(class);
    if cx.number(c) == Some(-1.0) && cx.flushed(x) && wanted {
        out.push(Term::unary(Unary::Negate, cx.class(x)));
    }
}

fn divide_by_multiply(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((x, c)) = binary(node, Binary::Divide) else { return };
    let elem = node.shape().elem;
    if cx.is_constant(class) || !elem.is_float() || !cx.vocabulary.wants("divide", &["multiply"], elem) {
        return;
    }
    if let Some(reciprocal) = cx.number(c).and_then(|c| exact_reciprocal(elem, c)) {
        let reciprocal = Term::splat(reciprocal, &node.shape().dims);
        out.push(Term::binary(Binary::Multiply, cx.class(x), reciprocal));
    }
}

/// k of an integer divisor 2^k that is no 1.
fn shift_amount(cx: &Context<'_>, divisor: Id) -> Option<u32> {
    cx.integer(divisor).and_then(power_of_two).filter(|&k| k > 0)
}

fn divide_by_shift(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((x, c)) = binary(node, Binary::Divide) else { return };
    let elem = node.shape().elem;
    if cx.is_constant(class) || !elem.is_unsigned_int() || !cx.vocabulary.has("shift-right-logical", elem) {
        return;
    }
    if let Some(k) = shift_amount(cx, c).and_then(|k| whole(elem, k.into())) {
        let amount = Term::splat(k, &node.shape().dims);
        out.push(Term::binary(Binary::ShiftRightLogical, cx.class(x), amount));
    }
}

fn divide_signed_by_shift(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((x, c)) = binary(node, Binary::Divide) else { return };
    let elem = node.shape().elem;
    let wanted = cx.vocabulary.wants("divide", &["shift-right-arithmetic", "and", "add"], elem);
    if cx.is_constant(class) || !elem.is_signed_int() || !wanted {
        return;
    }
    let Some(k) = shift_amount(cx, c) else { return };
    let last = elem.bits() - 1;
    if let (Some(amount), Some(last), Some(bias)) =
        (whole(elem, k.into()), whole(elem, last.into()), whole(elem, (1 << k) - 1))
    {
        let dims = &node.shape().dims;
        let shift = |x, by| Term::binary(Binary::ShiftRightArithmetic, x, Term::splat(by, dims));
        // Rounds toward zero: what is negative is raised by the divisor less one.
        let bias = Term::binary(Binary::And, shift(cx.class(x), last), Term::splat(bias, dims));
        out.push(shift(Term::binary(Binary::Add, cx.class(x), bias), amount));
    }
}

fn divide_twice(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((quotient, c2)) = binary(node, Binary::Divide) else { return };
    let elem = node.shape().elem;
    let (Some(c2), Some((_, top)), false) = (cx.integer(c2), limits(elem), cx.is_constant(class)) else {
        return;
    };
    for (x, c1) in cx.binaries(quotient, Binary::Divide) {
        let product = cx.integer(c1).and_then(|c1| (c1 > 0 && c2 > 0).then(|| c1.checked_mul(c2))).flatten();
        if let Some(c) = product.filter(|&c| c <= top).and_then(|c| whole(elem, c)) {
            out.push(Term::binary(Binary::Divide, cx.class(x), Term::splat(c, &node.shape().dims)));
        }
    }
}

fn divide_two_signs(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((a, b)) = binary(node, Binary::Divide) else { return };
    if !node.shape().elem.is_float() {
        return;
    }
    for x in cx.unaries(a, Unary::Negate) {
        for y in cx.unaries(b, Unary::Negate) {
            out.push(Term::binary(Binary::Divide, cx.class(x), cx.class(y)));
        }
    }
}

fn remainder_twice(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((a, b)) = binary(node, Binary::Remainder) else { return };
    if cx.binaries(a, Binary::Remainder).any(|(_, inner)| cx.same(inner, b)) {
        out.push(cx.class(a));
    }
}

fn remainder_by_mask(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((x, c)) = binary(node, Binary::Remainder) else { return };
    let elem = node.shape().elem;
    if cx.is_constant(class) || !elem.is_int() || !cx.vocabulary.has("and", elem) {
        return;
    }
    let Some(k) = shift_amount(cx, c) else { return };
    if cx.range(x).is_some_and(|(low, _)| low >= 0)
        && let Some(mask) = whole(elem, (1 << k) - 1)
    {
        out.push(Term::binary(Binary::And, cx.class(x), Term::splat(mask, &node.shape().dims)));
    }
}

fn zero(node: &TensorNode, out: &mut Vec<Term>) {
    if let Some(zero) = whole(node.shape().elem, 0) {
        out.push(Term::splat(zero, &node.shape().dims));
    }
}

fn remainder_of_itself(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((x, y)) = binary(node, Binary::Remainder) else { return };
    if node.shape().elem.is_int() && cx.same(x, y) && !cx.is_constant(class) {
        zero(node, out);
    }
}

fn remainder_of_one(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((_, c)) = binary(node, Binary::Remainder) else { return };
    if node.shape().elem.is_int() && matches!(cx.integer(c), Some(1 | -1)) && !cx.is_constant(class) {
        zero(node, out);
    }
}

fn remainder_by_divide(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((x, y)) = binary(node, Binary::Remainder) else { return };
    let elem = node.shape().elem;
    let wanted = cx.vocabulary.wants("remainder", &["divide", "multiply", "subtract"], elem);
    if elem.is_int() && wanted && !cx.is_constant(class) {
        let quotient = Term::binary(Binary::Divide, cx.class(x), cx.class(y));
        let whole = Term::binary(Binary::Multiply, quotient, cx.class(y));
        out.push(Term::binary(Binary::Subtract, cx.class(x), whole));
    }
}

/// Whether 0 <= x < c is known.
fn small(cx: &Context<'_>, x: Id, c: Id) -> bool {
    let (Some((low, high)), Some(c)) = (cx.range(x), cx.integer(c)) else { return false };
    low >= 0 && high < c
}

fn remainder_of_small(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((x, c)) = binary(node, Binary::Remainder) else { return };
    if node.shape().elem.is_int() && !cx.is_constant(class) && small(cx, x, c) {
        out.push(cx.class(x));
    }
}

fn quotient_of_small(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((x, c)) = binary(node, Binary::Divide) else { return };
    if node.shape().elem.is_int() && !cx.is_constant(class) && small(cx, x, c) {
        zero(node, out);
    }
}
