//! Reductions: permuted operands and element types.

use super::convert::{exact_convert, narrowed, preserves};
use super::{Context, Rule, RuleClass, summed_in};
use crate::numerics::FloatPolicy;
use crate::phase1::language::TensorNode;
use crate::phase1::term::Term;
use crate::phase1::vocabulary::{Vocabulary, key};
use act_hlo::{Binary, ElemType, OpKind, Shape};
use egg::Id;

pub(crate) static RULES: &[Rule] = &[
    Rule {
        name: "red-T",
        class: RuleClass::Exact,
        policy: FloatPolicy::Exact,
        statement: "red[D](T[p](x)) => T'(red[p(D)](x)) when the reduced dimensions keep their order or the order \
                    does not matter",
        useful: has_reduce,
        rewrite: of_transpose,
    },
    Rule {
        name: "T-red",
        class: RuleClass::Exact,
        policy: FloatPolicy::Exact,
        statement: "T[p](red[D](x)) => red[D'](T'(x)), reduced dimensions left where they are",
        useful: has_reduce,
        rewrite: transposed,
    },
    Rule {
        name: "red-narrow",
        class: RuleClass::Exact,
        policy: FloatPolicy::Exact,
        statement: "cvt[n](red[w](cvt x)) => red[n](x), narrow floats: accumulated in w, rounded once",
        useful: has_reduce,
        rewrite: narrow,
    },
    Rule {
        name: "red-widen",
        class: RuleClass::Exact,
        policy: FloatPolicy::Exact,
        statement: "red[n](x) => cvt[n](red[f32](cvt x)), n a narrow float that no instruction reduces",
        useful: has_reduce,
        rewrite: widen,
    },
];

fn has_reduce(vocabulary: &Vocabulary) -> bool {
    Binary::ALL.iter().any(|b| vocabulary.names(&format!("reduce {}", b.name())))
}

/// (dims, combiner, operand, initial value) of a reduce node.
pub(super) fn parts(node: &TensorNode) -> Option<(&[usize], Binary, Id, Id)> {
    match (node.op(), &node.operands[..]) {
        (OpKind::Reduce { dims, combiner }, &[x, init]) => Some((dims, *combiner, x, init)),
        _ => None,
    }
}

fn order_free(cx: &Context<'_>, combiner: Binary, elem: ElemType) -> bool {
    matches!(combiner, Binary::Maximum | Binary::Minimum | Binary::And | Binary::Or | Binary::Xor)
        || cx.may_reassociate(summed_in(elem))
}

fn of_transpose(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((dims, combiner, t, init)) = parts(node) else { return };
    for n in cx.nodes(t) {
        let OpKind::Transpose { perm } = n.op() else { continue };
        let from: Vec<usize> = dims.iter().map(|&d| perm[d]).collect();
        if !from.is_sorted() && !order_free(cx, combiner, node.shape().elem) {
            continue;
        }
        let mut reduced = from.clone();
        reduced.sort_unstable();
        // Kept dimensions of x in x's order, and where the result wants them.
        let kept: Vec<usize> = (0..perm.len()).filter(|d| !from.contains(d)).collect();
        let wanted = (0..perm.len()).filter(|d| !dims.contains(d)).map(|d| perm[d]);
        let order: Option<Vec<usize>> = wanted.map(|p| kept.iter().position(|&k| k == p)).collect();
        if let Some(order) = order {
            let x = cx.class(n.operands[0]).reduce(combiner, &reduced, cx.class(init));
            out.push(x.transpose(&order));
        }
    }
}

fn transposed(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Transpose { perm }, [r]) = (node.op(), &node.operands[..]) else { return };
    for n in cx.nodes(*r) {
        let Some((dims, combiner, x, init)) = parts(n) else { continue };
        let rank = cx.shape(x).rank();
        let kept: Vec<usize> = (0..rank).filter(|d| !dims.contains(d)).collect();
        let mut permuted = perm.iter().map(|&p| kept[p]);
        let order: Option<Vec<usize>> =
            (0..rank).map(|d| if dims.contains(&d) { Some(d) } else { permuted.next() }).collect();
        if let Some(order) = order {
            out.push(cx.class(x).transpose(&order).reduce(combiner, dims, cx.class(init)));
        }
    }
}

/// Combiners over narrow floats that are defined by the wide type: sums round once, the others never.
fn by_wide_type(combiner: Binary) -> bool {
    matches!(combiner, Binary::Add | Binary::Maximum | Binary::Minimum)
}

fn narrow(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Convert, [r]) = (node.op(), &node.operands[..]) else { return };
    let (elem, wide) = (node.shape().elem, cx.shape(*r).elem);
    if !matches!(elem, ElemType::BF16 | ElemType::F16) || wide != ElemType::F32 {
        return;
    }
    for n in cx.nodes(*r) {
        let Some((dims, combiner, x, init)) = parts(n) else { continue };
        if !by_wide_type(combiner) {
            continue;
        }
        let init = cx.splat(init).and_then(|scalar| exact_convert(scalar, elem));
        if let (Some(x), Some(init)) = (narrowed(cx, x, elem), init) {
            out.push(x.reduce(combiner, dims, Term::splat(init, &[])));
        }
    }
}

fn widen(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((dims, combiner, x, init)) = parts(node) else { return };
    let (elem, key) = (node.shape().elem, key(node.op()));
    let wanted = matches!(elem, ElemType::BF16 | ElemType::F16)
        && by_wide_type(combiner)
        && !cx.is_constant(class)
        && !cx.vocabulary.has(&key, elem)
        && cx.vocabulary.has(&key, ElemType::F32);
    let init = cx.splat(init).and_then(|scalar| exact_convert(scalar, ElemType::F32));
    if let (true, Some(init)) = (wanted && preserves(elem, ElemType::F32), init) {
        let wide = cx.class(x).convert(ElemType::F32);
        let reduced = wide.reduce(combiner, dims, Term::splat(init, &[]));
        debug_assert_eq!(reduced.shape, Shape::new(ElemType::F32, node.shape().dims.clone()));
        out.push(reduced.convert(elem));
    }
}
