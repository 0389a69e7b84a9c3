//! Operators of one operand: involutions, magnitudes, roundings and powers, and one written by others.

use super::known::{float, limits, unary, whole, wrapped};
use super::{Context, Rule, RuleClass, always};
use crate::numerics::FloatPolicy;
use crate::phase1::language::TensorNode;
use crate::phase1::term::Term;
use act_hlo::{Binary, Direction, ElemType, OpKind, Unary};
use egg::Id;

pub(crate) static RULES: &[Rule] = &[
    Rule::new(RuleClass::Exact, "neg-neg", "neg neg x => x", always, negate_twice),
    Rule::new(RuleClass::Exact, "not-not", "not not x => x", always, complement_twice),
    Rule::new(RuleClass::Exact, "abs-abs", "||x|| => |x|", always, magnitude_twice),
    Rule::new(
        RuleClass::Conditional,
        "abs-nonneg",
        "|x| => x when x is known to be no negative number: unsigned, exp, logistic, in a range without negatives",
        always,
        magnitude_of_nonnegative,
    ),
    Rule::new(RuleClass::Exact, "abs-neg", "|neg x| => |x|", |v| v.names("abs"), magnitude_of_negated),
    Rule::new(
        RuleClass::Conditional,
        "abs-max",
        "|x| => max(x, neg x) when no instruction has the magnitude; signed, or floats without denormals",
        |v| v.names("maximum") && v.names("negate"),
        magnitude_by_maximum,
    ),
    Rule::new(
        RuleClass::Conditional,
        "max-abs",
        "max(x, neg x) => |x|; signed, or floats without denormals",
        |v| v.names("abs"),
        maximum_by_magnitude,
    ),
    Rule::new(
        RuleClass::Integer,
        "abs-sel",
        "|x| => sel(x < 0, neg x, x) when no instruction has the magnitude, signed",
        |v| v.names("select") && v.names("negate"),
        magnitude_by_select,
    ),
    Rule::new(
        RuleClass::Integer,
        "sign-clamp",
        "sign x => clamp(-1, x, 1) when no instruction has the sign, signed",
        |v| v.names("clamp"),
        sign_by_clamp,
    ),
    Rule::new(
        RuleClass::Exact,
        "ceil-floor",
        "ceil x => neg floor neg x when no instruction rounds up",
        |v| v.names("floor") && v.names("negate"),
        ceil_by_floor,
    ),
    Rule::new(
        RuleClass::Exact,
        "floor-ceil",
        "floor x => neg ceil neg x when no instruction rounds down",
        |v| v.names("ceil") && v.names("negate"),
        floor_by_ceil,
    ),
    Rule::new(
        RuleClass::Exact,
        "round-round",
        "f(g(x)) => g(x) for f and g in ceil, floor, round-nearest-even, round-nearest-afz",
        always,
        round_twice,
    ),
    Rule::new(
        RuleClass::Exact,
        "not-xor",
        "not x => x xor -1 (true) when no instruction complements",
        |v| v.names("xor"),
        complement_by_xor,
    ),
    Rule::new(
        RuleClass::Integer,
        "not-sub",
        "not x => -1 - x when no instruction complements, integers",
        |v| v.names("subtract"),
        complement_by_subtract,
    ),
    Rule::new(
        RuleClass::Integer,
        "neg-not",
        "neg x => not x + 1 when no instruction negates, integers",
        |v| v.names("not") && v.names("add"),
        negate_by_complement,
    ),
    Rule::new(
        RuleClass::Exact,
        "neg-sign-bit",
        "neg x => bcv(bcv x xor sign bit) when no instruction negates or does as much by arithmetic, floats",
        |v| v.names("xor"),
        negate_by_bits,
    ),
    Rule::new(
        RuleClass::Exact,
        "abs-sign-bit",
        "|x| => bcv(bcv x and not sign bit) when no instruction has the magnitude, floats",
        |v| v.names("and"),
        magnitude_by_bits,
    ),
    Rule::new(
        RuleClass::Exact,
        "is-finite-abs",
        "is-finite x => |x| < inf when no instruction tests it",
        |v| v.names("abs") && v.names("compare"),
        finite_by_magnitude,
    ),
    Rule::new(RuleClass::Exact, "pow-0", "pow(x, 0) => 1", always, power_zero),
    Rule::new(RuleClass::Conditional, "pow-1", "pow(x, 1) => x, x without denormals", always, power_one),
    Rule {
        name: "pow-2",
        class: RuleClass::Conditional,
        policy: FloatPolicy::Xla,
        statement: "pow(x, 2) => x * x, as XLA does",
        useful: |v| v.names("multiply"),
        rewrite: power_two,
    },
];

fn negate_twice(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some(x) = unary(node, Unary::Negate) else { return };
    out.extend(cx.unaries(x, Unary::Negate).map(|y| cx.class(y)));
}

fn complement_twice(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some(x) = unary(node, Unary::Not) else { return };
    out.extend(cx.unaries(x, Unary::Not).map(|y| cx.class(y)));
}

fn magnitude_twice(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some(x) = unary(node, Unary::Abs) else { return };
    if !cx.elem(x).is_complex() && cx.unaries(x, Unary::Abs).next().is_some() {
        out.push(cx.class(x));
    }
}

fn magnitude_of_nonnegative(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some(x) = unary(node, Unary::Abs) else { return };
    let known = match cx.range(x) {
        Some((low, _)) => low >= 0,
        None => cx.nodes(x).iter().any(|n| matches!(n.op(), OpKind::Unary(Unary::Exp | Unary::Logistic))),
    };
    if known && !cx.is_constant(class) {
        out.push(cx.class(x));
    }
}

fn magnitude_of_negated(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some(x) = unary(node, Unary::Abs) else { return };
    // The type's own: a magnitude of unsigned integers is the value itself.
    if node.shape().elem.is_unsigned_int() {
        return;
    }
    out.extend(cx.unaries(x, Unary::Negate).map(|y| Term::unary(Unary::Abs, cx.class(y))));
}

/// Signed integers, and floats whose bits a comparison does not change.
fn ordered(cx: &Context<'_>, x: Id) -> bool {
    cx.elem(x).is_signed_int() || cx.elem(x).is_float() && cx.flushed(x)
}

fn magnitude_by_maximum(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some(x) = unary(node, Unary::Abs) else { return };
    let wanted = cx.vocabulary.wants("abs", &["maximum", "negate"], node.shape().elem);
    if wanted && ordered(cx, x) && !cx.is_constant(class) {
        out.push(Term::binary(Binary::Maximum, cx.class(x), Term::unary(Unary::Negate, cx.class(x))));
    }
}

fn maximum_by_magnitude(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    if cx.is_constant(class) || !cx.vocabulary.has("abs", node.shape().elem) {
        return;
    }
    for (x, negated) in super::known::either(node, Binary::Maximum) {
        if ordered(cx, x) && cx.unaries(negated, Unary::Negate).any(|y| cx.same(x, y)) {
            out.push(Term::unary(Unary::Abs, cx.class(x)));
        }
    }
}

fn magnitude_by_select(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some(x) = unary(node, Unary::Abs) else { return };
    let elem = node.shape().elem;
    let wanted = cx.vocabulary.wants("abs", &["select", "negate"], elem);
    if !wanted || !elem.is_signed_int() || cx.is_constant(class) {
        return;
    }
    if let Some(zero) = whole(elem, 0) {
        let zero = Term::splat(zero, &node.shape().dims);
        let negative = Term::compare(Direction::Lt, cx.class(x), zero);
        out.push(Term::select(negative, Term::unary(Unary::Negate, cx.class(x)), cx.class(x)));
    }
}

fn sign_by_clamp(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some(x) = unary(node, Unary::Sign) else { return };
    let elem = node.shape().elem;
    if cx.is_constant(class) || !elem.is_signed_int() || !cx.vocabulary.wants("sign", &["clamp"], elem) {
        return;
    }
    if let (Some(low), Some(high)) = (whole(elem, -1), whole(elem, 1)) {
        let bound = |scalar| Term::splat(scalar, &[]);
        let operands = vec![bound(low), cx.class(x), bound(high)];
        out.push(Term::node(OpKind::Clamp, node.shape().clone(), operands));
    }
}

fn mirrored(cx: &Context<'_>, node: &TensorNode, own: Unary, other: Unary, out: &mut Vec<Term>) {
    let Some(x) = unary(node, own) else { return };
    if cx.vocabulary.wants(own.name(), &[other.name(), "negate"], node.shape().elem) {
        let inner = Term::unary(other, Term::unary(Unary::Negate, cx.class(x)));
        out.push(Term::unary(Unary::Negate, inner));
    }
}

fn ceil_by_floor(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    if !cx.is_constant(class) {
        mirrored(cx, node, Unary::Ceil, Unary::Floor, out);
    }
}

fn floor_by_ceil(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    if !cx.is_constant(class) {
        mirrored(cx, node, Unary::Floor, Unary::Ceil, out);
    }
}

fn rounds(op: &crate::phase1::language::HeadOp) -> bool {
    matches!(op, OpKind::Unary(Unary::Ceil | Unary::Floor | Unary::RoundNearestEven | Unary::RoundNearestAfz))
}

fn round_twice(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    if rounds(node.op()) && cx.nodes(node.operands[0]).iter().any(|n| rounds(n.op())) {
        out.push(cx.class(node.operands[0]));
    }
}

fn complement_by_xor(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some(x) = unary(node, Unary::Not) else { return };
    let elem = node.shape().elem;
    if cx.is_constant(class) || !cx.vocabulary.wants("not", &["xor"], elem) {
        return;
    }
    if let Some(ones) = if elem == ElemType::Pred { whole(elem, 1) } else { wrapped(elem, -1) } {
        out.push(Term::binary(Binary::Xor, cx.class(x), Term::splat(ones, &node.shape().dims)));
    }
}

fn complement_by_subtract(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some(x) = unary(node, Unary::Not) else { return };
    let elem = node.shape().elem;
    if cx.is_constant(class) || !cx.vocabulary.wants("not", &["subtract"], elem) {
        return;
    }
    if let Some(ones) = wrapped(elem, -1) {
        let ones = Term::splat(ones, &node.shape().dims);
        out.push(Term::binary(Binary::Subtract, ones, cx.class(x)));
    }
}

fn negate_by_complement(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some(x) = unary(node, Unary::Negate) else { return };
    let elem = node.shape().elem;
    if cx.is_constant(class) || !elem.is_int() || !cx.vocabulary.wants("negate", &["not", "add"], elem) {
        return;
    }
    if let Some(one) = whole(elem, 1) {
        let one = Term::splat(one, &node.shape().dims);
        out.push(Term::binary(Binary::Add, Term::unary(Unary::Not, cx.class(x)), one));
    }
}

/// The integer types that have the width of a float.
pub(super) fn bits_of(elem: ElemType) -> [ElemType; 2] {
    match elem {
        ElemType::F64 => [ElemType::U64, ElemType::S64],
        ElemType::F32 => [ElemType::U32, ElemType::S32],
        _ => [ElemType::U16, ElemType::S16],
    }
}

fn on_sign_bit(cx: &Context<'_>, node: &TensorNode, own: Unary, op: Binary, out: &mut Vec<Term>) {
    let Some(x) = unary(node, own) else { return };
    let elem = node.shape().elem;
    if !elem.is_float() || cx.vocabulary.computes(own.name(), elem) {
        return;
    }
    for bits in bits_of(elem).into_iter().filter(|&bits| cx.vocabulary.has(op.name(), bits)) {
        let sign = 1i128 << (elem.bits() - 1);
        let mask = wrapped(bits, if op == Binary::Xor { sign } else { sign - 1 });
        let Some(mask) = mask.filter(|_| limits(bits).is_some()) else { continue };
        let mask = Term::splat(mask, &node.shape().dims);
        out.push(Term::binary(op, cx.class(x).bitcast(bits), mask).bitcast(elem));
    }
}

fn negate_by_bits(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    // Arithmetic negates as well where denormals are flushed, and keeps the value's type.
    let elem = node.shape().elem;
    let arithmetic = cx.flushed(class)
        && ["subtract", "multiply"].iter().any(|op| cx.vocabulary.wants("negate", &[op], elem));
    if !cx.is_constant(class) && !arithmetic {
        on_sign_bit(cx, node, Unary::Negate, Binary::Xor, out);
    }
}

fn magnitude_by_bits(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    if !cx.is_constant(class) {
        on_sign_bit(cx, node, Unary::Abs, Binary::And, out);
    }
}

fn finite_by_magnitude(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some(x) = unary(node, Unary::IsFinite) else { return };
    let elem = cx.elem(x);
    let wanted = cx.vocabulary.has("abs", elem)
        && cx.vocabulary.compares(Direction::Lt, elem)
        && !cx.vocabulary.computes("is-finite", ElemType::Pred);
    if wanted
        && !cx.is_constant(class)
        && let Some(infinity) = float(elem, f64::INFINITY)
    {
        let infinity = Term::splat(infinity, &node.shape().dims);
        out.push(Term::compare(Direction::Lt, Term::unary(Unary::Abs, cx.class(x)), infinity));
    }
}

fn exponent(cx: &Context<'_>, class: Id, node: &TensorNode) -> Option<(Id, f64)> {
    let (x, y) = super::known::binary(node, Binary::Power)?;
    let real = node.shape().elem.is_float() && !cx.is_constant(class);
    cx.number(y).filter(|_| real).map(|y| (x, y))
}

fn power_zero(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    if let Some((_, 0.0)) = exponent(cx, class, node)
        && let Some(one) = whole(node.shape().elem, 1)
    {
        out.push(Term::splat(one, &node.shape().dims));
    }
}

fn power_one(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    if let Some((x, 1.0)) = exponent(cx, class, node)
        && cx.flushed(x)
    {
        out.push(cx.class(x));
    }
}

fn power_two(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    if let Some((x, 2.0)) = exponent(cx, class, node) {
        out.push(Term::binary(Binary::Multiply, cx.class(x), cx.class(x)));
    }
}
