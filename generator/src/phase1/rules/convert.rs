//! Value conversions: chains of converts, and operators moved between a narrow type and the wide type that computes them.

use super::known::{integer, whole};
use super::{Context, Rule, RuleClass, always};
use crate::numerics::FloatPolicy;
use crate::phase1::facts::{evaluate, real_value};
use crate::phase1::language::{TensorNode, is_elementwise};
use crate::phase1::term::Term;
use crate::phase1::vocabulary::{Vocabulary, key};
use act_hlo::{Binary, ElemType, Literal, OpKind, Shape, Unary};
use egg::Id;

pub(crate) static RULES: &[Rule] = &[
    Rule {
        name: "cvt-cvt-wide",
        class: RuleClass::Exact,
        policy: FloatPolicy::Exact,
        statement: "cvt[c](cvt[b](x:a)) => cvt[c](x) when b represents every value of a",
        useful: always,
        rewrite: convert_convert,
    },
    Rule {
        name: "cvt-narrow-int",
        class: RuleClass::Exact,
        policy: FloatPolicy::Exact,
        statement: "cvt[c](cvt[b](x:a)) => cvt[c](x), all integers, c no wider than b",
        useful: always,
        rewrite: convert_narrow_int,
    },
    Rule {
        name: "op-narrow-exact",
        class: RuleClass::Exact,
        policy: FloatPolicy::Exact,
        statement: "cvt[n](f[w](cvt x, ..)) => f[n](x, ..) for f that round nothing (maximum, minimum, clamp, abs, \
                    negate, select), n narrower than w",
        useful: always,
        rewrite: narrow_exact,
    },
    Rule {
        name: "op-narrow-rounding",
        class: RuleClass::Conditional,
        policy: FloatPolicy::Xla,
        statement: "cvt[n](f[w](cvt x, ..)) => f[n](x, ..) for elementwise f over floats: computed in w, rounded once",
        useful: always,
        rewrite: narrow_rounding,
    },
    Rule {
        name: "op-widen",
        class: RuleClass::Conditional,
        policy: FloatPolicy::Xla,
        statement: "f[n](x, ..) => cvt[n](f[f32](cvt x, ..)) when the instructions have f for f32 and not for n",
        useful: has_f32_operators,
        rewrite: widen,
    },
    Rule {
        name: "excess-precision",
        class: RuleClass::FloatAlgebra,
        policy: FloatPolicy::Xla,
        statement: "cvt[w](cvt[n](x:w)) => x, floats, x no constant: the rounding is left out, as XLA does",
        useful: always,
        rewrite: excess_precision,
    },
];

/// Whether every value of `from` is one of `to`, so that converting loses nothing.
pub(crate) fn preserves(from: ElemType, to: ElemType) -> bool {
    // Significant bits and the range of exponents decide between floats.
    let significant = |e: ElemType| match e {
        ElemType::BF16 => 8,
        ElemType::F16 => 11,
        ElemType::F32 => 24,
        ElemType::F64 => 53,
        _ => 0,
    };
    if from == to {
        return true;
    }
    if from == ElemType::Pred {
        return to.is_int() || to.is_float();
    }
    if from.is_int() && to.is_int() {
        let (f, t) = (from.bits(), to.bits());
        return match (from.is_signed_int(), to.is_signed_int()) {
            (true, true) | (false, false) => f <= t,
            (false, true) => f < t,
            (true, false) => false,
        };
    }
    if from.is_int() && to.is_float() {
        let magnitude = if from.is_signed_int() { from.bits() - 1 } else { from.bits() };
        // f16 ends at 65504, the other floats far above any integer they hold exactly.
        return magnitude <= significant(to);
    }
    if from.is_float() && to.is_float() {
        return significant(from) <= significant(to)
            && !(from == ElemType::BF16 && to == ElemType::F16)
            && !(from == ElemType::F16 && to == ElemType::BF16);
    }
    false
}

fn converts<'a>(cx: &Context<'a>, id: Id) -> impl Iterator<Item = Id> + 'a {
    cx.nodes(id).iter().filter(|n| *n.op() == OpKind::Convert).map(|n| n.operands[0])
}

fn convert_convert(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Convert, [b]) = (node.op(), &node.operands[..]) else { return };
    for x in converts(cx, *b) {
        if preserves(cx.shape(x).elem, cx.shape(*b).elem) {
            out.push(cx.class(x).convert(node.shape().elem));
        }
    }
}

fn convert_narrow_int(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Convert, [b]) = (node.op(), &node.operands[..]) else { return };
    let (to, through) = (node.shape().elem, cx.shape(*b).elem);
    for x in converts(cx, *b) {
        if to.is_int() && through.is_int() && cx.shape(x).elem.is_int() && to.bits() <= through.bits() {
            out.push(cx.class(x).convert(to));
        }
    }
}

/// The class in a narrower type, when it is exactly a widened value of it.
pub(crate) fn narrowed(cx: &Context<'_>, id: Id, elem: ElemType) -> Option<Term> {
    let wide = cx.shape(id).elem;
    if let Some(scalar) = cx.splat(id) {
        let narrow = exact_convert(scalar, elem)?;
        return Some(Term::splat(narrow, &cx.shape(id).dims));
    }
    converts(cx, id).find(|&x| cx.shape(x).elem == elem && preserves(elem, wide)).map(|x| cx.class(x))
}

/// Whole numbers below this one are told apart in f64.
const WHOLE_IN_F64: f64 = (1u64 << 53) as f64;

/// A scalar in another type, when it is the same number there and converting back gives the same bits. Wrapping integers
/// come back from types that do not have them.
pub(crate) fn exact_convert(scalar: &Literal, elem: ElemType) -> Option<Literal> {
    // Whole numbers without evaluation: rules ask this for every constant again and again.
    if scalar.elem().is_int() && (elem.is_int() || elem.is_float()) {
        return whole(elem, integer(scalar)?);
    }
    if scalar.elem().is_float() && elem.is_int() {
        let value = real_value(scalar).filter(|v| v.fract() == 0.0 && v.abs() < WHOLE_IN_F64)?;
        let negative_zero = value == 0.0 && value.is_sign_negative();
        return whole(elem, value as i128).filter(|_| !negative_zero);
    }
    converted_and_back(scalar, elem)
}

/// The same by the reference evaluator.
fn converted_and_back(scalar: &Literal, elem: ElemType) -> Option<Literal> {
    let there = evaluate(&OpKind::Convert, std::slice::from_ref(scalar), &Shape::scalar(elem))?;
    let back = evaluate(&OpKind::Convert, std::slice::from_ref(&there), scalar.shape())?;
    let same = match (integer(scalar), integer(&there)) {
        (Some(a), Some(b)) => a == b,
        _ => real_value(scalar).map(f64::to_bits) == real_value(&there).map(f64::to_bits),
    };
    (same && back == *scalar).then_some(there)
}

/// Whether the operator over a wide type, given narrow values, yields a narrow value without rounding.
fn rounds_nothing(op: &crate::phase1::language::HeadOp) -> bool {
    matches!(
        op,
        OpKind::Binary(Binary::Maximum | Binary::Minimum)
            | OpKind::Clamp
            | OpKind::Select
            | OpKind::Unary(Unary::Abs | Unary::Negate)
    )
}

fn narrow(cx: &Context<'_>, node: &TensorNode, out: &mut Vec<Term>, exact: bool) {
    let (OpKind::Convert, [inner]) = (node.op(), &node.operands[..]) else { return };
    let (elem, wide) = (node.shape().elem, cx.shape(*inner).elem);
    if elem == wide || !preserves(elem, wide) || !elem.is_float() || !wide.is_float() {
        return;
    }
    for f in cx.nodes(*inner) {
        let fits = is_elementwise(f.op())
            && !matches!(f.op(), OpKind::Convert | OpKind::ReducePrecision { .. })
            && rounds_nothing(f.op()) == exact;
        if !fits {
            continue;
        }
        let operands: Option<Vec<Term>> = f
            .operands
            .iter()
            .map(|&x| if cx.shape(x).elem == wide { narrowed(cx, x, elem) } else { Some(cx.class(x)) })
            .collect();
        if let Some(operands) = operands {
            out.push(Term::node(f.op().clone(), node.shape().clone(), operands));
        }
    }
}

fn narrow_exact(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    narrow(cx, node, out, true);
}

fn narrow_rounding(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    narrow(cx, node, out, false);
}

fn has_f32_operators(vocabulary: &Vocabulary) -> bool {
    vocabulary.has("convert", ElemType::F32)
}

fn widen(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let elem = node.shape().elem;
    let key = key(node.op());
    let wanted = is_elementwise(node.op())
        && !matches!(node.op(), OpKind::Convert | OpKind::ReducePrecision { .. } | OpKind::Compare(_))
        && matches!(elem, ElemType::BF16 | ElemType::F16)
        && !cx.is_constant(class)
        && cx.vocabulary.has(&key, ElemType::F32)
        && !cx.vocabulary.has(&key, elem);
    if wanted {
        let operands = node.operands.iter().map(|&x| {
            let term = cx.class(x);
            if term.shape.elem == elem { term.convert(ElemType::F32) } else { term }
        });
        let shape = Shape::new(ElemType::F32, node.shape().dims.clone());
        out.push(Term::node(node.op().clone(), shape, operands.collect()).convert(elem));
    }
}

fn excess_precision(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Convert, [b]) = (node.op(), &node.operands[..]) else { return };
    let (wide, through) = (node.shape().elem, cx.shape(*b).elem);
    if !wide.is_float() || !through.is_float() || !preserves(through, wide) || cx.is_constant(class) {
        return;
    }
    for x in converts(cx, *b) {
        if cx.shape(x).elem == wide && !cx.is_constant(x) {
            out.push(cx.class(x));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use act_isa::constant::int_scalar;

    #[test]
    fn a_number_that_wraps_is_not_the_same_in_the_other_type() {
        let of = |elem, value| int_scalar(elem, value).unwrap();
        let minus = of(ElemType::S16, -128);
        assert_eq!(exact_convert(&minus, ElemType::U16), None);
        assert_eq!(exact_convert(&minus, ElemType::S8), Some(of(ElemType::S8, -128)));
        assert_eq!(exact_convert(&of(ElemType::U8, 200), ElemType::S8), None);
        assert_eq!(exact_convert(&of(ElemType::S32, 127), ElemType::U8), Some(of(ElemType::U8, 127)));
        assert_eq!(exact_convert(&of(ElemType::S32, -3), ElemType::F32), Some(of(ElemType::F32, -3)));
    }

    #[test]
    fn exact_conversions_are_those_of_the_evaluator() {
        let reals = |e: &ElemType| e.is_int() || e.is_float();
        let types: Vec<ElemType> = ElemType::ALL.into_iter().filter(reals).collect();
        let wholes = [0, 1, -1, 7, 8, -8, 127, 128, -128, -129, 255, 256, 257, 65_504, 65_535, 65_536]
            .into_iter()
            .chain([24, 31, 32, 52].into_iter().flat_map(|k| {
                let power = 1i128 << k;
                [power - 1, power, power + 1, -power - 1, -power]
            }));
        let scalars = wholes.flat_map(|v| types.iter().filter_map(move |&e| whole(e, v)));
        let halves = [-0.0, 0.5, -1.5, 1e30, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
        let halves = halves
            .into_iter()
            .flat_map(|v| types.iter().filter_map(move |&e| super::super::known::float(e, v)));
        for scalar in scalars.chain(halves) {
            for &elem in &types {
                assert_eq!(
                    exact_convert(&scalar, elem),
                    converted_and_back(&scalar, elem),
                    "{scalar:?} {elem:?}"
                );
            }
        }
        // Beyond what the evaluator's comparison can tell apart.
        let large = |v| whole(ElemType::S64, v).unwrap();
        assert_eq!(exact_convert(&large(1 << 53), ElemType::BF16), whole(ElemType::BF16, 1 << 53));
        assert_eq!(exact_convert(&large((1 << 53) + 1), ElemType::F64), None);
    }
}
