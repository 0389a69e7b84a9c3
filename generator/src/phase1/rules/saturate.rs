//! Saturation: values narrowed by instructions that clamp, and what a narrow maximum or minimum is through them.
//! Goal-directed: only toward bounds that some instruction clamps to.

use super::convert::{exact_convert, preserves};
use super::known::{limits, whole};
use super::{Context, Rule, RuleClass};
use crate::phase1::language::TensorNode;
use crate::phase1::term::Term;
use crate::phase1::vocabulary::Vocabulary;
use act_hlo::{Binary, ElemType, Literal, OpKind, Unary};
use egg::Id;

pub(crate) static RULES: &[Rule] = &[
    Rule::new(
        RuleClass::Conditional,
        "clamp-in-float",
        "cvt[n](clamp(a, x, b)) => cvt[n](clamp(a, round(cvt[f](x)), b)), x integers, a and b constants that f and n \
         hold exactly, where instructions clamp f and none clamps x's type alone",
        clamps_floats,
        in_float,
    ),
    Rule::new(
        RuleClass::Conditional,
        "clamp-by-narrowing",
        "clamp(a, x, b) => cvt(cvt[n](clamp(a, x, b))), integers, a and b constants that n holds, where instructions \
         narrow to n by a clamp and none clamps alone",
        clamps_integers,
        by_narrowing,
    ),
    Rule::new(
        RuleClass::Conditional,
        "max-saturate",
        "max(x, c) => sat(cvt(sat(cvt(x) - d)) + d), d = c - least value, sat = cvt[n](clamp(least, _, greatest)) of a \
         wider integer; min alike with the other signs; c a constant, where no instruction has the operator",
        clamps_integers,
        by_saturation,
    ),
    Rule::new(
        RuleClass::Exact,
        "max-of-saturated",
        "max(x, c) => max(cvt[n](clamp(least, cvt[w](x), greatest)), c), min alike, c a constant, where instructions \
         have the operator after a clamp alone",
        clamps_integers,
        of_saturated,
    ),
];

fn clamps_floats(vocabulary: &Vocabulary) -> bool {
    vocabulary.clamps.iter().any(|(low, _)| low.elem().is_float()) && vocabulary.names("convert")
}

fn clamps_integers(vocabulary: &Vocabulary) -> bool {
    !vocabulary.clamps.is_empty() && vocabulary.names("convert")
}

fn in_float(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Convert, &[c]) = (node.op(), &node.operands[..]) else { return };
    let (elem, wide) = (node.shape().elem, cx.elem(c));
    if !(elem.is_int() && wide.is_int()) || cx.is_constant(class) || cx.vocabulary.computes("clamp", wide) {
        return;
    }
    for bounds in cx.operands_of(c, &OpKind::Clamp) {
        let &[low, x, high] = bounds else { continue };
        let (Some(a), Some(b)) = (cx.splat(low), cx.splat(high)) else { continue };
        if exact_convert(a, elem).is_none() || exact_convert(b, elem).is_none() {
            continue;
        }
        for float in floats(cx) {
            let (Some(a), Some(b)) = (exact_convert(a, float), exact_convert(b, float)) else { continue };
            let mut value = cx.class(x).convert(float);
            if cx.vocabulary.has(Unary::RoundNearestEven.name(), float) {
                value = Term::node(OpKind::Unary(Unary::RoundNearestEven), value.shape.clone(), vec![value]);
            }
            out.push(clamped(Term::splat(a, &[]), value, Term::splat(b, &[])).convert(elem));
        }
    }
}

fn by_narrowing(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Clamp, &[low, _, high]) = (node.op(), &node.operands[..]) else { return };
    let wide = node.shape().elem;
    let (Some(a), Some(b)) = (cx.splat(low), cx.splat(high)) else { return };
    if !wide.is_int() || cx.is_constant(class) || cx.vocabulary.computes("clamp", wide) {
        return;
    }
    for elem in cx.vocabulary.converted_to(wide) {
        let narrower = elem.is_int() && elem.bits() < wide.bits() && preserves(elem, wide);
        let clamped = cx.vocabulary.clamps.iter().any(|(l, h)| {
            cx.vocabulary.converts(l.elem(), elem)
                && exact_convert(l, elem).is_some()
                && exact_convert(h, elem).is_some()
        });
        if narrower && clamped && exact_convert(a, elem).is_some() && exact_convert(b, elem).is_some() {
            out.push(cx.class(class).convert(elem).convert(wide));
        }
    }
}

/// The types of floats that instructions clamp.
fn floats(cx: &Context<'_>) -> Vec<ElemType> {
    let mut all: Vec<ElemType> = cx.vocabulary.clamps.iter().map(|(low, _)| low.elem()).collect();
    all.retain(|e| e.is_float());
    all.dedup();
    all
}

fn clamped(low: Term, value: Term, high: Term) -> Term {
    Term::node(OpKind::Clamp, value.shape.clone(), vec![low, value, high])
}

/// A maximum or minimum of a narrow integer with a constant that no instruction has by itself: the value and the
/// constant, the limits of the type, and a wider type in which instructions add and from which they narrow.
fn wanted(cx: &Context<'_>, class: Id, node: &TensorNode) -> Option<(Id, Literal, Saturation)> {
    let OpKind::Binary(op @ (Binary::Maximum | Binary::Minimum)) = node.op() else { return None };
    let elem = node.shape().elem;
    if !elem.is_int() || cx.is_constant(class) || cx.vocabulary.computes(op.name(), elem) {
        return None;
    }
    let &[a, b] = &node.operands[..] else { return None };
    let (x, c) = match (cx.splat(a), cx.splat(b)) {
        (None, Some(c)) => (a, c),
        (Some(c), None) => (b, c),
        _ => return None,
    };
    if saturated(cx, class, elem) {
        return None;
    }
    let (least, greatest) = limits(elem)?;
    let to_limits = cx.vocabulary.clamps.iter().any(|(low, high)| {
        let is = |bound: &Literal, limit: i128| exact_convert(bound, elem) == whole(elem, limit);
        is(low, least) && is(high, greatest)
    });
    let mut types = cx.vocabulary.types("add").into_iter();
    let wide = types.find(|&w| {
        // Room for a sum of two values.
        w.is_int() && w.bits() > elem.bits() + 1 && preserves(elem, w) && cx.vocabulary.converts(elem, w)
    });
    let wide = wide.filter(|_| to_limits)?;
    Some((x, c.clone(), Saturation { elem, wide, least, greatest }))
}

/// Whether the class is spelled as a narrowing clamp at the bounds of an instruction already.
fn saturated(cx: &Context<'_>, class: Id, elem: ElemType) -> bool {
    cx.converted(class).flat_map(|c| cx.operands_of(c, &OpKind::Clamp)).any(|bounds| {
        let (low, high) = (cx.splat(bounds[0]), cx.splat(bounds[2]));
        let is = |bound: Option<&Literal>, limit: &Literal| {
            bound.and_then(|b| exact_convert(b, elem)).is_some_and(|b| Some(b) == exact_convert(limit, elem))
        };
        cx.vocabulary.clamps.iter().any(|(l, h)| is(low, l) && is(high, h))
    })
}

struct Saturation {
    elem: ElemType,
    wide: ElemType,
    least: i128,
    greatest: i128,
}

impl Saturation {
    /// A value of the wider type, narrowed.
    fn of(&self, value: Term) -> Option<Term> {
        let limit = |v| whole(self.wide, v).map(|scalar| Term::splat(scalar, &[]));
        Some(clamped(limit(self.least)?, value, limit(self.greatest)?).convert(self.elem))
    }

    /// `x + d`, narrowed.
    fn of_sum(&self, x: Term, d: i128) -> Option<Term> {
        let dims = x.shape.dims.clone();
        let wide = x.convert(self.wide);
        self.of(Term::binary(Binary::Add, wide, Term::splat(whole(self.wide, d)?, &dims)))
    }
}

fn by_saturation(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((x, c, saturation)) = wanted(cx, class, node) else { return };
    let Some(c) = super::known::integer(&c) else { return };
    // The end of the range beyond which the sum saturates is where the constant was.
    let d = match node.op() {
        OpKind::Binary(Binary::Maximum) => saturation.least - c,
        _ => saturation.greatest - c,
    };
    let there = saturation.of_sum(cx.class(x), d);
    out.extend(there.and_then(|value| saturation.of_sum(value, -d)));
}

fn of_saturated(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let OpKind::Binary(op) = node.op() else { return };
    let Some((x, c, saturation)) = wanted(cx, class, node) else { return };
    if cx.vocabulary.has(op.name(), saturation.elem) {
        let value = saturation.of(cx.class(x).convert(saturation.wide));
        let constant = Term::splat(c, &node.shape().dims);
        out.extend(value.map(|value| Term::binary(*op, value, constant)));
    }
}
