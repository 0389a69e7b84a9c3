//! Data movement composed with data movement: permutations, reshapes, broadcasts and slices of one another.

use super::{Context, Rule, RuleClass, always};
use crate::numerics::FloatPolicy;
use crate::phase1::language::TensorNode;
use crate::phase1::term::Term;
use act_hlo::OpKind;
use egg::Id;
use std::collections::BTreeMap;

const fn exact(
    name: &'static str,
    statement: &'static str,
    rewrite: fn(&Context<'_>, Id, &TensorNode, &mut Vec<Term>),
) -> Rule {
    Rule { name, class: RuleClass::Exact, policy: FloatPolicy::Exact, statement, useful: always, rewrite }
}

pub(crate) static RULES: &[Rule] = &[
    exact("T-T", "T[p](T[s](x)) => T[s.p](x)", transpose_transpose),
    exact("rs-rs", "rs(rs(x)) => rs(x)", reshape_reshape),
    exact("bc-bc", "bc[E](bc[D](x)) => bc[E.D](x)", broadcast_broadcast),
    exact("slice-slice", "slice(slice(x)) => one slice", slice_slice),
    exact(
        "rs-T-degenerate",
        "T[p](x) => rs(x) when p keeps the order of dimensions longer than 1",
        transpose_reshape,
    ),
    exact(
        "rs-T-swap",
        "T[p](rs(x)) => rs(T(x)) when the reshape only adds or drops size-1 dimensions",
        transpose_of_reshape,
    ),
    exact("bc-reshape", "bc[D](x) => rs(x) when nothing is replicated and D increases", broadcast_reshape),
    exact(
        "bc-of-degenerate-rs",
        "bc[D](rs(x)) => bc(x) when the reshape only adds or drops size-1 dimensions",
        broadcast_of_reshape,
    ),
    exact(
        "rs-bcast",
        "rs(bc[D](x)) => bc[D'](x) when the reshape only adds or drops replicated size-1 dimensions",
        reshape_of_broadcast,
    ),
    exact("bc-swap-T", "T[p](bc[D](x)) => bc[sorted](T(x))", transpose_of_broadcast),
    exact("slice-bcast", "slice(bc[D](x)) => bc[D](slice(x))", slice_of_broadcast),
    exact(
        "slice-cat",
        "slice_d(cat_d(x, y)) => slice of the one operand that holds it",
        slice_of_concatenate,
    ),
    exact("cat-slices", "cat_d(adjacent slices of x) => slice(x)", concatenate_of_slices),
];

/// Nodes of the only operand of a movement node.
fn inner<'a>(cx: &Context<'a>, node: &TensorNode) -> &'a [TensorNode] {
    match node.operands[..] {
        [x] => cx.nodes(x),
        _ => &[],
    }
}

fn transpose_transpose(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let OpKind::Transpose { perm } = node.op() else { return };
    for n in inner(cx, node) {
        if let OpKind::Transpose { perm: first } = n.op() {
            let composed: Vec<usize> = perm.iter().map(|&p| first[p]).collect();
            out.push(cx.class(n.operands[0]).transpose(&composed));
        }
    }
}

fn reshape_reshape(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let OpKind::Reshape = node.op() else { return };
    for n in inner(cx, node) {
        if let OpKind::Reshape = n.op() {
            out.push(cx.class(n.operands[0]).reshape(&node.shape().dims));
        }
    }
}

fn broadcast_broadcast(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let OpKind::Broadcast { dims } = node.op() else { return };
    for n in inner(cx, node) {
        if let OpKind::Broadcast { dims: first } = n.op() {
            let composed: Vec<usize> = first.iter().map(|&d| dims[d]).collect();
            out.push(cx.class(n.operands[0]).broadcast(&composed, &node.shape().dims));
        }
    }
}

fn slice_slice(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let OpKind::Slice { start, stride, .. } = node.op() else { return };
    for n in inner(cx, node) {
        let OpKind::Slice { start: start0, stride: stride0, .. } = n.op() else { continue };
        let rank = start.len();
        let begin: Vec<i64> = (0..rank).map(|d| start0[d] + start[d] * stride0[d]).collect();
        // The stride of one element means nothing, and would grow in a class that is a slice of itself.
        let lens = &node.shape().dims;
        let step: Vec<i64> =
            (0..rank).map(|d| if lens[d] == 1 { 1 } else { stride[d] * stride0[d] }).collect();
        let limit = (0..rank).map(|d| begin[d] + (lens[d] as i64 - 1).max(0) * step[d] + 1);
        if node.shape().elements() == 0 {
            continue;
        }
        let op = OpKind::Slice { limit: limit.collect(), start: begin, stride: step };
        out.push(Term::node(op, node.shape().clone(), vec![cx.class(n.operands[0])]));
    }
}

fn transpose_reshape(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Transpose { perm }, [x]) = (node.op(), &node.operands[..]) else { return };
    let long: Vec<usize> = perm.iter().copied().filter(|&p| cx.shape(*x).dims[p] != 1).collect();
    if long.is_sorted() {
        out.push(cx.class(*x).reshape(&node.shape().dims));
    }
}

/// For a reshape that only adds or drops dimensions of length 1: position in `to` of every longer dimension of `from`.
fn long_dims(from: &[u64], to: &[u64]) -> Option<Vec<(usize, usize)>> {
    let long = |dims: &[u64]| dims.iter().enumerate().filter(|d| *d.1 != 1).map(|d| d.0).collect::<Vec<_>>();
    let (a, b) = (long(from), long(to));
    let same = a.len() == b.len() && a.iter().zip(&b).all(|(&i, &j)| from[i] == to[j]);
    same.then(|| a.into_iter().zip(b).collect())
}

fn transpose_of_reshape(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Transpose { perm }, [r]) = (node.op(), &node.operands[..]) else { return };
    for n in cx.nodes(*r) {
        let OpKind::Reshape = n.op() else { continue };
        let x = cx.shape(n.operands[0]);
        let Some(pairs) = long_dims(&x.dims, &cx.shape(*r).dims) else { continue };
        // x's dimensions in the order of the transposed result; its own size-1 dimensions first.
        let mut order: Vec<usize> = (0..x.rank()).filter(|&d| x.dims[d] == 1).collect();
        order.extend(perm.iter().filter_map(|p| pairs.iter().find(|pair| pair.1 == *p).map(|pair| pair.0)));
        out.push(cx.class(n.operands[0]).transpose(&order).reshape(&node.shape().dims));
    }
}

fn broadcast_reshape(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Broadcast { dims }, [x]) = (node.op(), &node.operands[..]) else { return };
    if dims.is_sorted() && cx.shape(*x).elements() == node.shape().elements() && node.shape().elements() > 0 {
        out.push(cx.class(*x).reshape(&node.shape().dims));
    }
}

fn broadcast_of_reshape(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Broadcast { dims }, [r]) = (node.op(), &node.operands[..]) else { return };
    for n in cx.nodes(*r) {
        let OpKind::Reshape = n.op() else { continue };
        let x = cx.shape(n.operands[0]);
        // x may have no size-1 dimension of its own: it would have no place in the result.
        let Some(pairs) = long_dims(&x.dims, &cx.shape(*r).dims).filter(|p| p.len() == x.rank()) else {
            continue;
        };
        let to: Vec<usize> = pairs.iter().map(|pair| dims[pair.1]).collect();
        out.push(cx.class(n.operands[0]).broadcast(&to, &node.shape().dims));
    }
}

fn reshape_of_broadcast(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Reshape, [b]) = (node.op(), &node.operands[..]) else { return };
    for n in cx.nodes(*b) {
        let OpKind::Broadcast { dims } = n.op() else { continue };
        let Some(pairs) = long_dims(&cx.shape(*b).dims, &node.shape().dims) else { continue };
        let to: Option<Vec<usize>> =
            dims.iter().map(|d| pairs.iter().find(|pair| pair.0 == *d).map(|pair| pair.1)).collect();
        if let Some(to) = to {
            out.push(cx.class(n.operands[0]).broadcast(&to, &node.shape().dims));
        }
    }
}

fn transpose_of_broadcast(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let OpKind::Transpose { perm } = node.op() else { return };
    for n in inner(cx, node) {
        let OpKind::Broadcast { dims } = n.op() else { continue };
        // Operand dimension i appears at the position of dims[i] in perm.
        let to: Option<Vec<usize>> = dims.iter().map(|d| perm.iter().position(|p| p == d)).collect();
        let Some(to) = to else { continue };
        let mut order: Vec<usize> = (0..to.len()).collect();
        order.sort_by_key(|&i| to[i]);
        let sorted: Vec<usize> = order.iter().map(|&i| to[i]).collect();
        out.push(cx.class(n.operands[0]).transpose(&order).broadcast(&sorted, &node.shape().dims));
    }
}

fn slice_of_broadcast(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let OpKind::Slice { start, limit, stride } = node.op() else { return };
    for n in inner(cx, node) {
        let OpKind::Broadcast { dims } = n.op() else { continue };
        let pick = |v: &[i64]| dims.iter().map(|&d| v[d]).collect::<Vec<_>>();
        let x = cx.class(n.operands[0]);
        let lens: Vec<u64> = dims.iter().map(|&d| node.shape().dims[d]).collect();
        let sliced = if x.shape.dims == lens {
            x
        } else {
            let op = OpKind::Slice { start: pick(start), limit: pick(limit), stride: pick(stride) };
            let shape = act_hlo::Shape::new(x.shape.elem, lens);
            Term::node(op, shape, vec![x])
        };
        out.push(sliced.broadcast(dims, &node.shape().dims));
    }
}

fn slice_of_concatenate(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let OpKind::Slice { start, limit, stride } = node.op() else { return };
    for n in inner(cx, node) {
        let OpKind::Concatenate { dim } = n.op() else { continue };
        let mut before = 0i64;
        for &part in &n.operands {
            let len = cx.shape(part).dims[*dim] as i64;
            if start[*dim] >= before && limit[*dim] <= before + len {
                let (mut s, mut l) = (start.clone(), limit.clone());
                s[*dim] -= before;
                l[*dim] -= before;
                let op = OpKind::Slice { start: s, limit: l, stride: stride.clone() };
                out.push(Term::node(op, node.shape().clone(), vec![cx.class(part)]));
            }
            before += len;
        }
    }
}

/// A slice with stride 1 of a class: where it starts and ends.
type UnitSlice<'a> = (Id, &'a [i64], &'a [i64]);

/// The slices with stride 1 that a class is equal to.
fn unit_slices<'a>(cx: &Context<'a>, id: Id) -> impl Iterator<Item = UnitSlice<'a>> {
    cx.nodes(id).iter().filter_map(|n| match n.op() {
        OpKind::Slice { start, limit, stride } if stride.iter().all(|&s| s == 1) => {
            Some((n.operands[0], start.as_slice(), limit.as_slice()))
        }
        _ => None,
    })
}

fn concatenate_of_slices(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let OpKind::Concatenate { dim } = node.op() else { return };
    let Some((&first, rest)) = node.operands.split_first() else { return };
    // By what they are slices of, and where along the dimension: padding is slices of thousands of places.
    let mut parts: BTreeMap<Id, BTreeMap<(Id, i64), Vec<UnitSlice<'_>>>> = BTreeMap::new();
    for &part in rest {
        parts.entry(part).or_insert_with(|| {
            let mut places: BTreeMap<(Id, i64), Vec<UnitSlice<'_>>> = BTreeMap::new();
            for slice in unit_slices(cx, part) {
                places.entry((cx.noted(slice.0), slice.1[*dim])).or_default().push(slice);
            }
            places
        });
    }
    for (x, start, limit) in unit_slices(cx, first) {
        let of = cx.noted(x);
        let mut end = limit[*dim];
        let continues = rest.iter().all(|part| {
            let there = parts.get(part).and_then(|places| places.get(&(of, end)));
            let next = there
                .into_iter()
                .flatten()
                .find(|(_, s, l)| (0..s.len()).all(|d| d == *dim || (s[d] == start[d] && l[d] == limit[d])));
            next.is_some_and(|(_, _, l)| {
                end = l[*dim];
                true
            })
        });
        if continues {
            if *node.shape() == *cx.shape(x) {
                out.push(cx.class(x));
            } else {
                let mut limit = limit.to_vec();
                limit[*dim] = end;
                let op = OpKind::Slice { start: start.to_vec(), limit, stride: vec![1; start.len()] };
                out.push(Term::node(op, node.shape().clone(), vec![cx.class(x)]));
            }
        }
    }
}
