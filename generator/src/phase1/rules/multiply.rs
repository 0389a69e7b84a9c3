//! Multiplication: neutral and absorbing elements, constants brought together, signs, and products as other operators.

use super::known::{binary, either, float, nothing_added, power_of_two, unary, whole, wrapped};
use super::{Context, Rule, RuleClass, always};
use crate::numerics::FloatPolicy;
use crate::phase1::language::TensorNode;
use crate::phase1::term::Term;
use act_hlo::{Binary, ElemType, OpKind, Unary};
use egg::Id;

pub(crate) static RULES: &[Rule] = &[
    Rule::new(RuleClass::Conditional, "mul-one", "x * 1 => x, x without denormals", always, multiply_one),
    Rule::new(RuleClass::Integer, "mul-zero", "x * 0 => 0, integers", always, multiply_zero),
    Rule::new(
        RuleClass::Integer,
        "mul-const-assoc",
        "(x * c1) * c2 => x * (c1 * c2), constants",
        |v| v.names("multiply"),
        multiply_constants,
    ),
    Rule::new(
        RuleClass::Integer,
        "mul-two-const",
        "(x * c1) * (y * c2) => (x * y) * (c1 * c2), constants",
        |v| v.names("multiply"),
        multiply_two_constants,
    ),
    Rule::new(
        RuleClass::Conditional,
        "mul-neg-one",
        "x * -1 => neg x, x without denormals",
        |v| v.names("negate"),
        multiply_minus_one,
    ),
    Rule::new(
        RuleClass::Conditional,
        "neg-by-multiply",
        "neg x => x * -1 when no instruction negates, x without denormals",
        |v| v.names("multiply"),
        negate_by_multiply,
    ),
    Rule::new(RuleClass::Exact, "mul-neg-neg", "neg x * neg y => x * y", |v| v.names("multiply"), two_signs),
    Rule::new(
        RuleClass::Exact,
        "mul-neg-const",
        "neg x * c => x * (-c), c a constant",
        |v| v.names("multiply"),
        negated_by_constant,
    ),
    Rule::new(
        RuleClass::Exact,
        "neg-mul-const",
        "neg(x * c) => x * (-c), c a constant",
        |v| v.names("multiply"),
        negate_product,
    ),
    Rule::new(
        RuleClass::Exact,
        "mul-abs",
        "|x| * |x| => x * x",
        |v| v.names("multiply"),
        square_of_magnitude,
    ),
    Rule::new(
        RuleClass::Integer,
        "mul-pred",
        "cvt(p) * x => sel(p, x, 0), integers",
        |v| v.names("select"),
        multiply_truth,
    ),
    Rule::new(
        RuleClass::Integer,
        "mul-pow2-shift",
        "x * 2^k => shl(x, k) when no instruction multiplies, integers",
        |v| v.names("shift-left"),
        multiply_by_shift,
    ),
    Rule::new(
        RuleClass::Exact,
        "mul-two-add",
        "x * 2 => x + x when no instruction multiplies",
        |v| v.names("add"),
        multiply_by_add,
    ),
    Rule::new(
        RuleClass::Conditional,
        "mul-const-div",
        "x * 2^k => x / 2^-k when no instruction multiplies, floats, 2^k and 2^-k normal",
        |v| v.names("divide"),
        multiply_by_divide,
    ),
    Rule::new(
        RuleClass::Integer,
        "mul-distribute",
        "(x + c1) * c2 => x*c2 + c1*c2 when no instruction multiplies alone, constants, integers",
        |v| v.names("multiply") && v.names("add"),
        distribute,
    ),
    Rule::new(
        RuleClass::Exact,
        "mul-by-fma",
        "x * y => fma(x, y, 0) when no instruction multiplies; floats: -0, under exact",
        |v| v.names("fma"),
        multiply_by_fma,
    ),
];

fn multiply_one(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    for (x, one) in either(node, Binary::Multiply) {
        if cx.number(one) == Some(1.0) && cx.elem(one) != ElemType::Pred && cx.flushed(x) {
            out.push(cx.class(x));
        }
    }
}

fn multiply_zero(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    if cx.is_constant(class) || !node.shape().elem.is_int() {
        return;
    }
    for (_, zero) in either(node, Binary::Multiply) {
        if cx.integer(zero) == Some(0) {
            out.push(cx.class(zero));
        }
    }
}

fn multiply_constants(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    if !cx.may_reassociate(node.shape().elem) {
        return;
    }
    for (product, c2) in either(node, Binary::Multiply) {
        if !cx.is_constant(c2) || cx.is_constant(product) {
            continue;
        }
        for (x, c1) in cx.eithers(product, Binary::Multiply) {
            if cx.is_constant(c1) && !cx.is_constant(x) {
                let constant = Term::binary(Binary::Multiply, cx.class(c1), cx.class(c2));
                out.push(Term::binary(Binary::Multiply, cx.class(x), constant));
            }
        }
    }
}

fn multiply_two_constants(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((a, b)) = binary(node, Binary::Multiply) else { return };
    if !cx.may_reassociate(node.shape().elem) {
        return;
    }
    let multiply = |a, b| Term::binary(Binary::Multiply, a, b);
    let scaled =
        |id: Id| cx.eithers(id, Binary::Multiply).filter(|p| cx.is_constant(p.1) && !cx.is_constant(p.0));
    for (x, c1) in scaled(a) {
        for (y, c2) in scaled(b) {
            let product = multiply(cx.class(x), cx.class(y));
            out.push(multiply(product, multiply(cx.class(c1), cx.class(c2))));
        }
    }
}

fn multiply_minus_one(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let elem = node.shape().elem;
    let minus = if elem.is_int() { wrapped(elem, -1) } else { whole(elem, -1) };
    if minus.is_none() || cx.is_constant(class) || !cx.vocabulary.has("negate", elem) {
        return;
    }
    for (x, c) in either(node, Binary::Multiply) {
        if cx.splat(c) == minus.as_ref() && cx.flushed(x) {
            out.push(Term::unary(Unary::Negate, cx.class(x)));
        }
    }
}

fn negate_by_multiply(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some(x) = unary(node, Unary::Negate) else { return };
    let elem = node.shape().elem;
    if cx.is_constant(class) || !cx.flushed(x) || !cx.vocabulary.wants("negate", &["multiply"], elem) {
        return;
    }
    if let Some(minus) = if elem.is_int() { wrapped(elem, -1) } else { whole(elem, -1) } {
        out.push(Term::binary(Binary::Multiply, cx.class(x), Term::splat(minus, &node.shape().dims)));
    }
}

fn two_signs(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((a, b)) = binary(node, Binary::Multiply) else { return };
    for x in cx.unaries(a, Unary::Negate) {
        for y in cx.unaries(b, Unary::Negate) {
            out.push(Term::binary(Binary::Multiply, cx.class(x), cx.class(y)));
        }
    }
}

fn negated_by_constant(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    if cx.is_constant(class) {
        return;
    }
    for (negated, c) in either(node, Binary::Multiply).filter(|p| cx.is_constant(p.1)) {
        for x in cx.unaries(negated, Unary::Negate) {
            let constant = Term::unary(Unary::Negate, cx.class(c));
            out.push(Term::binary(Binary::Multiply, cx.class(x), constant));
        }
    }
}

fn negate_product(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some(product) = unary(node, Unary::Negate) else { return };
    if cx.is_constant(class) {
        return;
    }
    for (x, c) in cx.eithers(product, Binary::Multiply).filter(|p| cx.is_constant(p.1)) {
        let constant = Term::unary(Unary::Negate, cx.class(c));
        out.push(Term::binary(Binary::Multiply, cx.class(x), constant));
    }
}

fn square_of_magnitude(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((a, b)) = binary(node, Binary::Multiply) else { return };
    if cx.same(a, b) {
        for x in cx.unaries(a, Unary::Abs).filter(|&x| cx.shape(x) == node.shape()) {
            out.push(Term::binary(Binary::Multiply, cx.class(x), cx.class(x)));
        }
    }
}

fn multiply_truth(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let elem = node.shape().elem;
    if !elem.is_int() || cx.is_constant(class) || !cx.vocabulary.has("select", elem) {
        return;
    }
    for (truth, x) in either(node, Binary::Multiply) {
        for p in cx.converted(truth).filter(|&p| cx.elem(p) == ElemType::Pred) {
            if let Some(zero) = whole(elem, 0) {
                let zero = Term::splat(zero, &node.shape().dims);
                out.push(Term::select(cx.class(p), cx.class(x), zero));
            }
        }
    }
}

fn multiply_by_shift(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let elem = node.shape().elem;
    if !elem.is_int() || cx.is_constant(class) || !cx.vocabulary.wants("multiply", &["shift-left"], elem) {
        return;
    }
    for (x, c) in either(node, Binary::Multiply) {
        if let Some(k) = cx.integer(c).and_then(power_of_two).filter(|&k| k > 0)
            && let Some(k) = whole(elem, k.into())
        {
            out.push(Term::binary(Binary::ShiftLeft, cx.class(x), Term::splat(k, &node.shape().dims)));
        }
    }
}

fn multiply_by_add(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    if cx.is_constant(class) || !cx.vocabulary.wants("multiply", &["add"], node.shape().elem) {
        return;
    }
    for (x, c) in either(node, Binary::Multiply) {
        if cx.number(c) == Some(2.0) {
            out.push(Term::binary(Binary::Add, cx.class(x), cx.class(x)));
        }
    }
}

/// The reciprocal of a power of two, when both are normal numbers of the type.
pub(super) fn exact_reciprocal(elem: ElemType, c: f64) -> Option<act_hlo::Literal> {
    // f16 ends at 2^15 and begins at 2^-14; the others lie within the range of f32.
    let (low, high) = if elem == ElemType::F16 { (-14, 14) } else { (-126, 126) };
    let mantissa = c.to_bits() & ((1 << 52) - 1);
    let exponent = c.abs().log2() as i32;
    (elem.is_float() && c.is_normal() && mantissa == 0 && low <= exponent && exponent <= high)
        .then(|| float(elem, 1.0 / c))?
}

fn multiply_by_divide(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let elem = node.shape().elem;
    if cx.is_constant(class) || !elem.is_float() || !cx.vocabulary.wants("multiply", &["divide"], elem) {
        return;
    }
    for (x, c) in either(node, Binary::Multiply) {
        if let Some(reciprocal) = cx.number(c).and_then(|c| exact_reciprocal(elem, c)) {
            let reciprocal = Term::splat(reciprocal, &node.shape().dims);
            out.push(Term::binary(Binary::Divide, cx.class(x), reciprocal));
        }
    }
}

fn distribute(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let elem = node.shape().elem;
    if !elem.is_int() || cx.is_constant(class) || !cx.vocabulary.wants("multiply", &["multiply", "add"], elem)
    {
        return;
    }
    for (sum, c2) in either(node, Binary::Multiply).filter(|p| cx.is_constant(p.1)) {
        for (x, c1) in cx.eithers(sum, Binary::Add).filter(|p| cx.is_constant(p.1)) {
            let scaled = |id| Term::binary(Binary::Multiply, cx.class(id), cx.class(c2));
            out.push(Term::binary(Binary::Add, scaled(x), scaled(c1)));
        }
    }
}

fn multiply_by_fma(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((x, y)) = binary(node, Binary::Multiply) else { return };
    let elem = node.shape().elem;
    // From `xla` on the sign of a zero may go, and 0 is made more cheaply than -0: that is the rule mul-fma.
    let signed_zeros = !elem.is_float() || cx.policy < FloatPolicy::Xla;
    if cx.is_constant(class) || !signed_zeros || !cx.vocabulary.wants("multiply", &["fma"], elem) {
        return;
    }
    if let Some(zero) = nothing_added(elem) {
        let zero = Term::splat(zero, &node.shape().dims);
        out.push(Term::node(OpKind::Fma, node.shape().clone(), vec![cx.class(x), cx.class(y), zero]));
    }
}
