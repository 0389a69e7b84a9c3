//! Values brought to the sizes that instructions take: reshapes to an instruction's rank, and cuts at its granularity.
//! Goal-directed: only toward sizes at which some instruction has the same operator, and never on a value that fits.

use super::convert::narrowed;
use super::{Context, Rule, RuleClass, summed_in};
use crate::numerics::FloatPolicy;
use crate::phase1::language::{TensorNode, is_elementwise, is_movement};
use crate::phase1::term::Term;
use crate::phase1::vocabulary::{Gathered, Sizes, Vocabulary, key};
use act_hlo::{Binary, ElemType, OpKind};
use egg::Id;

pub(crate) static RULES: &[Rule] = &[
    Rule {
        name: "rs-to-instruction",
        class: RuleClass::Exact,
        policy: FloatPolicy::Exact,
        statement: "f(x, ..) => rs(rs'(f(x, ..))), f elementwise and of no size that instructions take, rs' to the rank \
                    and the fixed inner sizes of an instruction with f",
        useful: has_sizes,
        rewrite: reshape,
    },
    Rule {
        name: "const-to-rank",
        class: RuleClass::Exact,
        policy: FloatPolicy::Exact,
        statement: "c => rs(rs'(c)), c a constant that nothing reads, of a rank lower than those of all buffers, rs' to \
                    the least of these",
        useful: has_sizes,
        rewrite: constant,
    },
    Rule {
        name: "split-to-instruction",
        class: RuleClass::Exact,
        policy: FloatPolicy::Exact,
        statement: "f(x, ..) => cat_d(slices of f(x, ..)), f elementwise or a matrix product, cut at the largest size \
                    of an instruction with f",
        useful: has_sizes,
        rewrite: split,
    },
    Rule {
        name: "dot-split-k",
        class: RuleClass::Integer,
        policy: FloatPolicy::Exact,
        statement: "dot(a, b) => (dot(a1, b1) + dot(a2, b2)) + .., cut at the longest contraction of an instruction \
                    that accumulates",
        useful: accumulates,
        rewrite: split_contraction,
    },
];

/// Most pieces that one value is cut into, and steps of a contraction.
const PIECES: u64 = 64;
const CONTRACTED: u64 = 256;

fn has_sizes(vocabulary: &Vocabulary) -> bool {
    vocabulary.has_sizes()
}

fn accumulates(vocabulary: &Vocabulary) -> bool {
    vocabulary.accumulates
}

/// Whether the class is a matrix product, however else it is spelled: only the sizes of products are of use to it.
fn is_product(cx: &Context<'_>, class: Id) -> bool {
    cx.nodes(class).iter().any(|n| matches!(n.op(), OpKind::Dot(_)))
}

/// Whether the value is a convert that only products read: their slices cut it where they need it.
pub(super) fn only_multiplied(cx: &Context<'_>, class: Id, node: &TensorNode) -> bool {
    *node.op() == OpKind::Convert
        && cx.users(class).all(|user| matches!(user.op(), OpKind::Dot(_)) || is_movement(user.op()))
}

/// Whether a product may be that of an instruction which multiplies these types: one of others is another instruction's.
fn multiplies(cx: &Context<'_>, product: &TensorNode, types: [ElemType; 2]) -> bool {
    if !cx.vocabulary.multiplies_others(types) {
        return true;
    }
    // What is converted from a type that instructions widen in products alone is nowhere by itself.
    let widened = |x: Id| {
        let elem = cx.shape(x).elem;
        let only = |n: &TensorNode| match n.op() {
            OpKind::Convert => cx.vocabulary.only_widens(cx.shape(n.operands[0]).elem, elem),
            op => is_movement(op),
        };
        let converts = cx.nodes(x).iter().any(|n| *n.op() == OpKind::Convert);
        converts && cx.nodes(x).iter().all(only)
    };
    let mut pairs = product.operands.iter().zip(types);
    pairs.all(|(&x, elem)| cx.shape(x).elem == elem && !widened(x) || narrowed(cx, x, elem).is_some())
}

/// The sizes at which instructions have the operator of a node, computed from what the node is computed from.
pub(super) fn sizes<'a>(cx: &Context<'a>, node: &TensorNode) -> Vec<&'a Vec<Sizes>> {
    let is = |n: &TensorNode, gathered: &Gathered| {
        n.op().name() == gathered.name && gathered.types.is_none_or(|types| multiplies(cx, n, types))
    };
    let has = |gathered: Gathered| {
        let mut nodes = node.operands.iter().flat_map(|&x| cx.nodes(x));
        node.op().name() == gathered.name && is(node, &gathered) || nodes.any(|n| is(n, &gathered))
    };
    let sizes = cx.vocabulary.sizes_after(&key(node.op()), node.shape().elem);
    let mut all: Vec<&'a Vec<Sizes>> =
        sizes.filter(|(_, after)| after.is_none_or(has)).map(|(sizes, _)| sizes).collect();
    all.dedup();
    all
}

/// Whether some instruction has the operator at the node's own size.
pub(in crate::phase1) fn fits(cx: &Context<'_>, node: &TensorNode) -> bool {
    let dims = &node.shape().dims;
    sizes(cx, node).into_iter().any(|sizes| {
        sizes.len() == dims.len() && sizes.iter().zip(dims).all(|(s, d)| (s.min..=s.max).contains(d))
    }) || cx.vocabulary.fits_stacked(&key(node.op()), node.shape().elem, dims)
}

/// The shape of this rank and these fixed inner sizes with the elements of `dims` in the same order.
fn fitted(dims: &[u64], sizes: &[Sizes]) -> Option<Vec<u64>> {
    let fixed: Vec<u64> =
        sizes.iter().rev().take_while(|s| s.min == s.max).map(|s| s.max).collect::<Vec<_>>();
    let inner: u64 = fixed.iter().product();
    let elements: u64 = dims.iter().product();
    if inner == 0 || !elements.is_multiple_of(inner) {
        return None;
    }
    if sizes.is_empty() {
        // The operator of scalars.
        return (elements == 1).then(Vec::new);
    }
    let open = sizes.len() - fixed.len();
    let mut shape: Vec<u64> = fixed.into_iter().rev().collect();
    if shape.is_empty() {
        // Nothing is fixed: the last dimensions stay, the ones before them merge, missing ones are 1.
        let keep = dims.len().min(sizes.len().saturating_sub(1));
        let outer: u64 = dims[..dims.len() - keep].iter().product();
        let mut kept = vec![1; sizes.len() - 1 - keep];
        kept.push(outer);
        kept.extend(&dims[dims.len() - keep..]);
        return Some(kept);
    }
    let mut rest = elements / inner;
    // Every dimension before the fixed ones is open, or fixed too when there is none.
    if open == 0 {
        let first = shape.first_mut()?;
        rest = rest.checked_mul(*first)?;
        *first = rest;
        return Some(shape);
    }
    let mut full = vec![1; open - 1];
    full.push(rest);
    full.extend(shape);
    Some(full)
}

fn reshape(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    if !is_elementwise(node.op())
        || cx.is_constant(class)
        || node.shape().elements() == 0
        || is_product(cx, class)
        || only_multiplied(cx, class, node)
    {
        return;
    }
    if fits(cx, node) {
        return;
    }
    for sizes in sizes(cx, node) {
        let Some(dims) = fitted(&node.shape().dims, sizes) else { continue };
        if dims != node.shape().dims {
            out.push(cx.class(class).reshape(&dims).reshape(&node.shape().dims));
        }
    }
}

fn constant(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some(&rank) = cx.vocabulary.ranks.first() else { return };
    let dims = &node.shape().dims;
    if dims.len() >= rank || !cx.is_constant(class) || cx.users(class).next().is_some() {
        return;
    }
    let mut wide = vec![1; rank - dims.len()];
    wide.extend(dims);
    out.push(cx.class(class).reshape(&wide).reshape(dims));
}

fn split(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let cuts = match node.op() {
        OpKind::Dot(_) => true,
        op => {
            is_elementwise(op)
                && !is_product(cx, class)
                && !only_multiplied(cx, class, node)
                && !fits(cx, node)
        }
    };
    if !cuts || cx.is_constant(class) {
        return;
    }
    let dims = &node.shape().dims;
    for sizes in sizes(cx, node) {
        if sizes.len() != dims.len() {
            continue;
        }
        let Some(d) = (0..dims.len()).find(|&d| dims[d] > sizes[d].max) else { continue };
        let step = sizes[d].max;
        if step == 0 || dims[d].div_ceil(step) > PIECES {
            continue;
        }
        let pieces = (0..dims[d].div_ceil(step)).map(|k| {
            let start = k * step;
            cx.class(class).slice(d, start, step.min(dims[d] - start))
        });
        out.push(Term::concatenate(d, pieces.collect()));
    }
}

fn split_contraction(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Dot(dims), [a, b]) = (node.op(), &node.operands[..]) else { return };
    let elem = node.shape().elem;
    let summed = summed_in(elem);
    if cx.is_constant(class) || !cx.may_reassociate(summed) {
        return;
    }
    let ([i], [j]) = (dims.lhs_contracting.as_slice(), dims.rhs_contracting.as_slice()) else { return };
    let k = cx.shape(*a).dims[*i];
    let steps =
        cx.vocabulary.contractions.iter().filter(|(form, types, _)| {
            form.dims == *dims && form.out == summed && multiplies(cx, node, *types)
        });
    for (_, _, longest) in steps {
        let step = longest.max;
        if step == 0 || k <= step || k.div_ceil(step) > CONTRACTED {
            continue;
        }
        let mut sum: Option<Term> = None;
        for piece in 0..k.div_ceil(step) {
            let (start, len) = (piece * step, step.min(k - piece * step));
            let lhs = cx.class(*a).slice(*i, start, len);
            let rhs = cx.class(*b).slice(*j, start, len);
            let product = Term::dot(dims.clone(), summed, lhs, rhs);
            sum = Some(match sum {
                None => product,
                Some(before) => Term::binary(Binary::Add, before, product),
            });
        }
        out.extend(sum.map(|sum| if summed == elem { sum } else { sum.convert(elem) }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_element_fits_the_operator_of_scalars() {
        assert_eq!(fitted(&[4, 4], &[]), None);
        assert_eq!(fitted(&[1, 1], &[]), Some(vec![]));
    }
}
