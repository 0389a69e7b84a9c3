//! Operators moved between types: integers to a wider, a narrower or the other-signed type, and conversions as other
//! operators. (`convert.rs` has chains of conversions and the roundings of floats.)

use super::convert::{narrowed, preserves};
use super::known::whole;
use super::{Context, Rule, RuleClass, always};
use crate::phase1::language::{HeadOp, TensorNode};
use crate::phase1::term::Term;
use crate::phase1::vocabulary::{Vocabulary, key};
use act_hlo::{Binary, Direction, ElemType, OpKind, Shape, Unary};
use egg::Id;

pub(crate) static RULES: &[Rule] = &[
    Rule::new(
        RuleClass::Exact,
        "add-narrow",
        "f[n](x, ..) => cvt[n](f[w](cvt x, ..)) for integer f that the low bits decide (+, -, *, neg, and, or, xor, \
         not) when instructions have it for a wider integer w and not for n",
        names_convert,
        widen_low_bits,
    ),
    Rule::new(
        RuleClass::Exact,
        "op-narrow-int",
        "cvt[n](f[w](cvt x, ..)) => f[n](x, ..) for the same f, operands constant or converted from n",
        always,
        narrow_low_bits,
    ),
    Rule::new(
        RuleClass::Exact,
        "order-widen",
        "f[n](x, ..) => cvt[n](f[w](cvt x, ..)) for f that makes no new value (max, min, clamp, select) when \
         instructions have it for a type w that holds all values of n, and not for n",
        names_convert,
        widen_order,
    ),
    Rule::new(
        RuleClass::Exact,
        "op-other-sign",
        "f[s](x, ..) => bcv[s](f[u](bcv x, ..)) for integer f that knows no sign (+, -, *, neg, and, or, xor, not, shl) \
         when instructions have it for the other signedness only",
        always,
        other_sign,
    ),
    Rule::new(
        RuleClass::Exact,
        "cvt-via",
        "cvt[c](x:a) => cvt[c](cvt[b](x)) when instructions convert a to b and b to c but not a to c, b holds all values \
         of a, or all are integers and c is no wider than b",
        names_convert,
        convert_via,
    ),
    Rule::new(
        RuleClass::Exact,
        "cvt-s8u8",
        "cvt[u](x:s) => bcv[u](x), integers of one width, when no instruction converts so",
        always,
        convert_by_bits,
    ),
    Rule::new(
        RuleClass::Exact,
        "cvt-pred-ne",
        "cvt[pred](x) => x != 0 when no instruction converts so; integers, f16, f32, f64",
        |v| v.names("compare"),
        truth_by_comparison,
    ),
    Rule::new(
        RuleClass::Exact,
        "ne-cvt-pred",
        "x != 0 => cvt[pred](x) when no instruction compares so; integers, f16, f32, f64",
        names_convert,
        comparison_by_truth,
    ),
    Rule::new(
        RuleClass::Exact,
        "reduce-precision-id",
        "reduce_precision[e, m](x) => x when e and m are at least those of the type",
        always,
        full_precision,
    ),
    Rule::new(
        RuleClass::Exact,
        "reduce-precision-twice",
        "reduce_precision[e, m](reduce_precision[e', m'](x)) => the inner one when e >= e' and m >= m'",
        always,
        precision_twice,
    ),
];

fn names_convert(v: &Vocabulary) -> bool {
    v.names("convert")
}

/// Whether the low bits of the result depend on the low bits of the operands alone.
fn by_low_bits(op: &HeadOp) -> bool {
    matches!(
        op,
        OpKind::Binary(
            Binary::Add | Binary::Subtract | Binary::Multiply | Binary::And | Binary::Or | Binary::Xor
        ) | OpKind::Unary(Unary::Negate | Unary::Not)
    )
}

fn makes_no_value(op: &HeadOp) -> bool {
    matches!(op, OpKind::Binary(Binary::Maximum | Binary::Minimum) | OpKind::Clamp | OpKind::Select)
}

/// The operator with operands of this type converted to another, and the result converted back.
fn within(cx: &Context<'_>, node: &TensorNode, other: ElemType, to: fn(Term, ElemType) -> Term) -> Term {
    let elem = node.shape().elem;
    let operands = node.operands.iter().map(|&x| {
        let term = cx.class(x);
        if term.shape.elem == elem { to(term, other) } else { term }
    });
    let shape = Shape::new(other, node.shape().dims.clone());
    to(Term::node(node.op().clone(), shape, operands.collect()), elem)
}

/// The narrowest type that holds all values of `elem` and for which an instruction has the operator; none when an
/// instruction computes it as it is.
fn wider(cx: &Context<'_>, node: &TensorNode, fits: impl Fn(ElemType) -> bool) -> Option<ElemType> {
    let elem = node.shape().elem;
    let key = key(node.op());
    if cx.vocabulary.computes(&key, elem) {
        return None;
    }
    let both_ways = |w: ElemType| cx.vocabulary.converts(elem, w) && cx.vocabulary.converts(w, elem);
    cx.vocabulary.types(&key).into_iter().find(|&w| w != elem && fits(w) && both_ways(w))
}

fn widen_low_bits(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let elem = node.shape().elem;
    if !by_low_bits(node.op()) || !elem.is_int() || cx.is_constant(class) {
        return;
    }
    if let Some(wide) = wider(cx, node, |w| w.is_int() && w.bits() > elem.bits()) {
        out.push(within(cx, node, wide, Term::convert));
    }
}

fn narrow_low_bits(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Convert, &[inner]) = (node.op(), &node.operands[..]) else { return };
    let (elem, wide) = (node.shape().elem, cx.elem(inner));
    if !(elem.is_int() && wide.is_int() && elem.bits() < wide.bits()) || cx.is_constant(class) {
        return;
    }
    for f in cx.nodes(inner).iter().filter(|f| by_low_bits(f.op())) {
        if !cx.vocabulary.has(&key(f.op()), elem) {
            continue;
        }
        let operands: Option<Vec<Term>> = f
            .operands
            .iter()
            .map(|&x| match cx.splat(x) {
                Some(_) => Some(cx.class(x).convert(elem)),
                None => narrowed(cx, x, elem)
                    .or_else(|| cx.converted(x).find(|&y| cx.elem(y) == elem).map(|y| cx.class(y))),
            })
            .collect();
        if let Some(operands) = operands {
            out.push(Term::node(f.op().clone(), node.shape().clone(), operands));
        }
    }
}

fn widen_order(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let elem = node.shape().elem;
    let real = elem.is_int() || elem.is_float();
    if !makes_no_value(node.op()) || !real || cx.is_constant(class) {
        return;
    }
    // Going to f64 flushes what a narrower type keeps.
    let fits = |w: ElemType| preserves(elem, w) && w != ElemType::F64;
    if let Some(wide) = wider(cx, node, fits) {
        out.push(within(cx, node, wide, Term::convert));
    }
}

/// The integer of the same width and the other signedness.
fn counterpart(elem: ElemType) -> Option<ElemType> {
    Some(match elem {
        ElemType::S8 => ElemType::U8,
        ElemType::U8 => ElemType::S8,
        ElemType::S16 => ElemType::U16,
        ElemType::U16 => ElemType::S16,
        ElemType::S32 => ElemType::U32,
        ElemType::U32 => ElemType::S32,
        ElemType::S64 => ElemType::U64,
        ElemType::U64 => ElemType::S64,
        _ => return None,
    })
}

fn other_sign(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let signless = by_low_bits(node.op()) || matches!(node.op(), OpKind::Binary(Binary::ShiftLeft));
    let Some(other) = counterpart(node.shape().elem).filter(|_| signless && !cx.is_constant(class)) else {
        return;
    };
    let key = key(node.op());
    if cx.vocabulary.wants(&key, &[], node.shape().elem) && cx.vocabulary.has(&key, other) {
        out.push(within(cx, node, other, Term::bitcast));
    }
}

fn convert_via(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Convert, &[x]) = (node.op(), &node.operands[..]) else { return };
    let (from, to) = (cx.elem(x), node.shape().elem);
    if cx.vocabulary.offers_convert(from, to) || cx.is_constant(class) {
        return;
    }
    let between = cx.vocabulary.types("convert").into_iter().find(|&b| {
        let faithful =
            preserves(from, b) || from.is_int() && b.is_int() && to.is_int() && to.bits() <= b.bits();
        b != from
            && b != to
            && b != ElemType::Pred
            && faithful
            && cx.vocabulary.converts(from, b)
            && cx.vocabulary.converts(b, to)
    });
    // f64 flushes denormals on the way, f32 does not.
    if let Some(b) = between.filter(|&b| !from.is_float() || b != ElemType::F64) {
        out.push(cx.class(x).convert(b).convert(to));
    }
}

fn convert_by_bits(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Convert, &[x]) = (node.op(), &node.operands[..]) else { return };
    let (from, to) = (cx.elem(x), node.shape().elem);
    if counterpart(from) == Some(to) && !cx.is_constant(class) && !cx.vocabulary.offers_convert(from, to) {
        out.push(cx.class(x).bitcast(to));
    }
}

/// A comparison of bf16 flushes denormals; its conversion to a truth value does not.
fn tests_alike(elem: ElemType) -> bool {
    elem.is_int() || matches!(elem, ElemType::F16 | ElemType::F32 | ElemType::F64)
}

fn truth_by_comparison(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Convert, &[x]) = (node.op(), &node.operands[..]) else { return };
    let elem = cx.elem(x);
    let wanted = node.shape().elem == ElemType::Pred
        && tests_alike(elem)
        && cx.vocabulary.compares(Direction::Ne, elem)
        && !cx.vocabulary.offers_convert(elem, ElemType::Pred);
    if let Some(zero) = whole(elem, 0).filter(|_| wanted && !cx.is_constant(class)) {
        let zero = Term::splat(zero, &node.shape().dims);
        out.push(Term::compare(Direction::Ne, cx.class(x), zero));
    }
}

fn comparison_by_truth(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Compare(Direction::Ne), &[a, b]) = (node.op(), &node.operands[..]) else { return };
    let elem = cx.elem(a);
    let wanted = tests_alike(elem)
        && cx.vocabulary.converts(elem, ElemType::Pred)
        && !cx.vocabulary.offers_compare(Direction::Ne, elem);
    if !wanted || cx.is_constant(class) {
        return;
    }
    for (x, zero) in [(a, b), (b, a)] {
        if cx.number(zero) == Some(0.0) {
            out.push(cx.class(x).convert(ElemType::Pred));
        }
    }
}

/// Bits of exponent and mantissa of a float.
fn format(elem: ElemType) -> Option<(u32, u32)> {
    Some(match elem {
        ElemType::F16 => (5, 10),
        ElemType::BF16 => (8, 7),
        ElemType::F32 => (8, 23),
        ElemType::F64 => (11, 52),
        _ => return None,
    })
}

fn full_precision(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let OpKind::ReducePrecision { exponent_bits, mantissa_bits } = node.op() else { return };
    if format(node.shape().elem).is_some_and(|(e, m)| *exponent_bits >= e && *mantissa_bits >= m) {
        out.push(cx.class(node.operands[0]));
    }
}

fn precision_twice(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::ReducePrecision { exponent_bits: e, mantissa_bits: m }, &[x]) =
        (node.op(), &node.operands[..])
    else {
        return;
    };
    let coarser = |n: &TensorNode| {
        matches!(n.op(), OpKind::ReducePrecision { exponent_bits, mantissa_bits }
            if exponent_bits <= e && mantissa_bits <= m)
    };
    if cx.nodes(x).iter().any(coarser) {
        out.push(cx.class(x));
    }
}
