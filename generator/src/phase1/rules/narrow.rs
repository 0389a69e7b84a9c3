//! Values narrowed to bytes by way of the types that instructions convert.

use super::{Context, Rule, RuleClass};
use crate::numerics::FloatPolicy;
use crate::phase1::language::TensorNode;
use crate::phase1::term::Term;
use crate::phase1::vocabulary::Vocabulary;
use act_hlo::{ElemType, OpKind, Shape};
use egg::Id;

pub(crate) static RULES: &[Rule] = &[
    Rule {
        name: "cvt-clamped",
        class: RuleClass::Conditional,
        policy: FloatPolicy::Exact,
        statement: "cvt[n](clamp(lo, x, hi)) => cvt[n](cvt[s32](clamp(lo, x, hi))), x floats, n narrower than s32, lo \
                    and hi constants that n represents",
        useful: has_s32,
        rewrite: clamped,
    },
    Rule {
        name: "cvt-sign",
        class: RuleClass::Exact,
        policy: FloatPolicy::Exact,
        statement: "cvt[u](x) => bitcast[u](cvt[s](x)), integers, u and s as narrow as one another and narrower than x's \
                    type; the other way round too",
        useful: has_bitcast,
        rewrite: other_sign,
    },
];

fn has_s32(vocabulary: &Vocabulary) -> bool {
    let floats = [ElemType::F32, ElemType::BF16, ElemType::F16, ElemType::F64];
    floats.into_iter().any(|float| vocabulary.converts(float, ElemType::S32))
}

fn has_bitcast(vocabulary: &Vocabulary) -> bool {
    vocabulary.names("bitcast-convert") && vocabulary.names("convert")
}

/// The integers of a type of at most 16 bits.
fn range(elem: ElemType) -> Option<(f64, f64)> {
    Some(match elem {
        ElemType::S8 => (-128.0, 127.0),
        ElemType::U8 => (0.0, 255.0),
        ElemType::S16 => (-32768.0, 32767.0),
        ElemType::U16 => (0.0, 65535.0),
        _ => return None,
    })
}

fn clamped(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Convert, &[x]) = (node.op(), &node.operands[..]) else { return };
    let Some((least, most)) = range(node.shape().elem) else { return };
    if !cx.shape(x).elem.is_float() || cx.is_constant(class) {
        return;
    }
    for bounds in cx.operands_of(x, &OpKind::Clamp) {
        let &[low, _, high] = bounds else { continue };
        let within = |id: Id| cx.number(id).is_some_and(|v| v >= least && v <= most);
        if within(low) && within(high) {
            out.push(cx.class(x).convert(ElemType::S32).convert(node.shape().elem));
        }
    }
}

fn other_sign(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Convert, &[x]) = (node.op(), &node.operands[..]) else { return };
    let (from, elem) = (cx.shape(x).elem, node.shape().elem);
    let other = match elem {
        ElemType::S8 => ElemType::U8,
        ElemType::U8 => ElemType::S8,
        ElemType::S16 => ElemType::U16,
        ElemType::U16 => ElemType::S16,
        _ => return,
    };
    let wanted = cx.vocabulary.has("convert", other);
    if from.is_int() && from.bits() > elem.bits() && !cx.is_constant(class) && wanted {
        let narrow = cx.class(x).convert(other);
        out.push(Term::node(
            OpKind::BitcastConvert,
            Shape::new(elem, node.shape().dims.clone()),
            vec![narrow],
        ));
    }
}
