//! The byte layer: re-typed bits taken through data movement, toward instructions that move values of the other type. To a
//! narrower type a last dimension of its own appears, which stays last; from a narrower one nothing is said here.

use super::{Context, Rule, RuleClass};
use crate::numerics::FloatPolicy;
use crate::phase1::language::TensorNode;
use crate::phase1::term::Term;
use crate::phase1::vocabulary::Vocabulary;
use act_hlo::{OpKind, Shape};
use egg::Id;

const fn exact(
    name: &'static str,
    statement: &'static str,
    useful: fn(&Vocabulary) -> bool,
    rewrite: fn(&Context<'_>, Id, &TensorNode, &mut Vec<Term>),
) -> Rule {
    Rule { name, class: RuleClass::Exact, policy: FloatPolicy::Exact, statement, useful, rewrite }
}

pub(crate) static RULES: &[Rule] = &[
    exact("bcv-rs", "bcv(rs(x)) => rs(bcv(x))", Vocabulary::slots_keep_their_type, reshape),
    exact("bcv-T", "bcv(T[p](x)) => T[p, last](bcv(x))", Vocabulary::slots_keep_their_type, transpose),
    exact("bcv-slice", "bcv(slice(x)) => slice[.., whole](bcv(x))", Vocabulary::slots_keep_their_type, slice),
    exact(
        "bcv-cat",
        "bcv(cat_d(x, y)) => cat_d(bcv(x), bcv(y))",
        Vocabulary::slots_keep_their_type,
        concatenate,
    ),
    exact("bcv-bc", "bcv(bc[D](x)) => bc[D, last](bcv(x))", Vocabulary::slots_keep_their_type, broadcast),
    exact("bcv-rev", "bcv(rev[D](x)) => rev[D](bcv(x))", Vocabulary::slots_keep_their_type, reverse),
];

/// Every movement that the bits of a re-typed value come from, the dimension of bytes that appears if any, and the
/// value's operands re-typed.
fn moved<'a>(cx: &Context<'a>, node: &TensorNode) -> Vec<(&'a TensorNode, Option<u64>, Vec<Term>)> {
    let (OpKind::BitcastConvert, &[m]) = (node.op(), &node.operands[..]) else { return Vec::new() };
    let (from, to) = (cx.shape(m).elem, node.shape().elem);
    let parts = match node.shape().rank().checked_sub(cx.shape(m).rank()) {
        Some(0) => None,
        Some(1) => node.shape().dims.last().copied(),
        _ => return Vec::new(),
    };
    if from == to || cx.is_constant(m) {
        return Vec::new();
    }
    let retyped = |x: Id| {
        let mut dims = cx.shape(x).dims.clone();
        dims.extend(parts);
        Term::node(OpKind::BitcastConvert, Shape::new(to, dims), vec![cx.class(x)])
    };
    cx.nodes(m)
        .iter()
        .filter(|n| !n.operands.is_empty())
        .map(|n| (n, parts, n.operands.iter().map(|&x| retyped(x)).collect()))
        .collect()
}

fn reshape(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    for (n, _, mut operands) in moved(cx, node) {
        if *n.op() == OpKind::Reshape {
            out.extend(operands.pop().map(|x| x.reshape(&node.shape().dims)));
        }
    }
}

fn transpose(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    for (n, parts, mut operands) in moved(cx, node) {
        if let OpKind::Transpose { perm } = n.op() {
            let mut perm = perm.clone();
            perm.extend(parts.map(|_| perm.len()));
            out.extend(operands.pop().map(|x| x.transpose(&perm)));
        }
    }
}

fn slice(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    for (n, parts, operands) in moved(cx, node) {
        if let OpKind::Slice { start, limit, stride } = n.op() {
            let with = |v: &[i64], last: Option<i64>| v.iter().copied().chain(last).collect::<Vec<_>>();
            let op = OpKind::Slice {
                start: with(start, parts.map(|_| 0)),
                limit: with(limit, parts.map(|n| n as i64)),
                stride: with(stride, parts.map(|_| 1)),
            };
            out.push(Term::node(op, node.shape().clone(), operands));
        }
    }
}

fn concatenate(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    for (n, _, operands) in moved(cx, node) {
        if let OpKind::Concatenate { dim } = n.op() {
            out.push(Term::concatenate(*dim, operands));
        }
    }
}

fn broadcast(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    for (n, parts, mut operands) in moved(cx, node) {
        if let OpKind::Broadcast { dims } = n.op() {
            let mut dims = dims.clone();
            dims.extend(parts.map(|_| n.shape().rank()));
            out.extend(operands.pop().map(|x| x.broadcast(&dims, &node.shape().dims)));
        }
    }
}

fn reverse(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    for (n, _, operands) in moved(cx, node) {
        if let OpKind::Reverse { dims } = n.op() {
            out.push(Term::node(OpKind::Reverse { dims: dims.clone() }, node.shape().clone(), operands));
        }
    }
}
