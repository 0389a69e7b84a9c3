//! Reductions: dimensions of size 1, permuted operands, element types.

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
        name: "red-degenerate",
        class: RuleClass::Exact,
        policy: FloatPolicy::Exact,
        statement: "red[D](x) => red[D'](rs x) without the size-1 dimensions of x; some longer dimension is reduced",
        useful: has_reduce,
        rewrite: degenerate,
    },
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
        name: "red-rs",
        class: RuleClass::Exact,
        policy: FloatPolicy::Exact,
        statement: "red[D](rs(x)) => rs(red[D'](x)) when the reshape only adds or drops size-1 dimensions and D is \
                    one longer dimension",
        useful: has_reduce,
        rewrite: of_reshape,
    },
    Rule {
        name: "red-kept",
        class: RuleClass::Exact,
        policy: FloatPolicy::Exact,
        statement: "red[D](x) => rs(rs'(red[D](x))), rs' to the rank of x with size 1 in place of D: instructions that \
                    keep the reduced dimension",
        useful: keeps_reduced,
        rewrite: kept,
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

fn keeps_reduced(vocabulary: &Vocabulary) -> bool {
    has_reduce(vocabulary) && vocabulary.names("reshape")
}

/// (dims, combiner, operand, initial value) of a reduce node.
fn parts(node: &TensorNode) -> Option<(&[usize], Binary, Id, Id)> {
    match (node.op(), &node.operands[..]) {
        (OpKind::Reduce { dims, combiner }, &[x, init]) => Some((dims, *combiner, x, init)),
        _ => None,
    }
}

fn degenerate(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((dims, combiner, x, init)) = parts(node) else { return };
    let shape = cx.shape(x);
    let long: Vec<usize> = (0..shape.rank()).filter(|&d| shape.dims[d] != 1).collect();
    let reduced: Vec<usize> =
        long.iter().enumerate().filter(|(_, d)| dims.contains(d)).map(|(at, _)| at).collect();
    if long.len() == shape.rank() || reduced.is_empty() {
        return;
    }
    let lens: Vec<u64> = long.iter().map(|&d| shape.dims[d]).collect();
    let small = cx.class(x).reshape(&lens).reduce(combiner, &reduced, cx.class(init));
    out.push(small.reshape(&node.shape().dims));
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

fn of_reshape(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((dims, combiner, r, init)) = parts(node) else { return };
    let &[d] = dims else { return };
    let to = &cx.shape(r).dims;
    if to[d] == 1 {
        return;
    }
    for n in cx.nodes(r) {
        let OpKind::Reshape = n.op() else { continue };
        let from = &cx.shape(n.operands[0]).dims;
        let long = |dims: &[u64]| (0..dims.len()).filter(|&i| dims[i] != 1).collect::<Vec<_>>();
        let (a, b) = (long(from), long(to));
        if a.len() != b.len() || a.iter().zip(&b).any(|(&i, &j)| from[i] != to[j]) {
            continue;
        }
        let Some(at) = b.iter().position(|&j| j == d) else { continue };
        let reduced = cx.class(n.operands[0]).reduce(combiner, &[a[at]], cx.class(init));
        out.push(reduced.reshape(&node.shape().dims));
    }
}

fn kept(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((dims, _, x, _)) = parts(node) else { return };
    let with_ones = |(d, &len): (usize, &u64)| if dims.contains(&d) { 1 } else { len };
    let lens: Vec<u64> = cx.shape(x).dims.iter().enumerate().map(with_ones).collect();
    out.push(cx.class(class).reshape(&lens).reshape(&node.shape().dims));
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
