//! Order: maximum, minimum and clamp, and their way through monotone functions.

use super::{Context, Rule, RuleClass};
use crate::numerics::FloatPolicy;
use crate::phase1::facts::{evaluate, real_value};
use crate::phase1::language::{HeadOp, TensorNode};
use crate::phase1::term::{Kind, Term};
use crate::phase1::vocabulary::Vocabulary;
use act_hlo::{Binary, Literal, OpKind, Shape, Unary};
use egg::Id;

pub(crate) static RULES: &[Rule] = &[
    Rule {
        name: "clamp-min-max",
        class: RuleClass::Exact,
        policy: FloatPolicy::Exact,
        statement: "clamp(a, x, b) => min(max(x, a), b)",
        useful: has_max_and_min,
        rewrite: clamp_to_min_max,
    },
    Rule {
        name: "min-max-clamp",
        class: RuleClass::Exact,
        policy: FloatPolicy::Exact,
        statement: "min(max(x, a), b) => clamp(a, x, b)",
        useful: has_clamp,
        rewrite: min_max_to_clamp,
    },
    Rule {
        name: "max-min-clamp",
        class: RuleClass::Conditional,
        policy: FloatPolicy::Exact,
        statement: "max(min(x, b), a) => clamp(a, x, b), constants a < b, both numbers",
        useful: has_clamp,
        rewrite: max_min_to_clamp,
    },
    Rule {
        name: "max-const-fold",
        class: RuleClass::Exact,
        policy: FloatPolicy::Exact,
        statement: "max(max(x, c1), c2) => max(x, max(c1, c2)), constants; min alike",
        useful: has_max_or_min,
        rewrite: fold_constants,
    },
    Rule {
        name: "monotone-max",
        class: RuleClass::Conditional,
        policy: FloatPolicy::Exact,
        statement: "f(max(x, c)) => max(f(x), f(c)), min alike; f a chain of monotone operators from integers to \
                    integers (converts of finite values, products with positive constants, roundings, clamps), c a \
                    constant; f(c) by the reference evaluator",
        useful: has_max_or_min,
        rewrite: monotone,
    },
    Rule {
        name: "clamp-straddle",
        class: RuleClass::Conditional,
        policy: FloatPolicy::Exact,
        statement: "cvt[int](clamp(a, x, b)) => min(max(cvt(clamp(a', x, b')), cvt a), cvt b) for the bounds \
                    a' <= a <= b <= b' that an instruction clamps to; whole numbers of the type",
        useful: has_clamp,
        rewrite: straddle,
    },
];

fn has_clamp(vocabulary: &Vocabulary) -> bool {
    vocabulary.names("clamp")
}

fn has_max_and_min(vocabulary: &Vocabulary) -> bool {
    vocabulary.names("maximum") && vocabulary.names("minimum")
}

fn has_max_or_min(vocabulary: &Vocabulary) -> bool {
    vocabulary.names("maximum") || vocabulary.names("minimum")
}

pub(super) fn full(cx: &Context<'_>, x: Id, dims: &[u64]) -> Term {
    match cx.splat(x) {
        Some(scalar) => Term::splat(scalar.clone(), dims),
        None => {
            let term = cx.class(x);
            if term.shape.rank() == 0 { term.broadcast(&[], dims) } else { term }
        }
    }
}

/// The one form of clamp's bounds: scalars where they are splats.
pub(super) fn bound(cx: &Context<'_>, x: Id) -> Term {
    match cx.splat(x) {
        Some(scalar) => Term::splat(scalar.clone(), &[]),
        None => cx.class(x),
    }
}

fn clamp_to_min_max(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Clamp, [lo, x, hi]) = (node.op(), &node.operands[..]) else { return };
    let dims = &node.shape().dims;
    let low = Term::binary(Binary::Maximum, cx.class(*x), full(cx, *lo, dims));
    out.push(Term::binary(Binary::Minimum, low, full(cx, *hi, dims)));
}

/// For `outer(inner(x, p), q)` with both operators commutative: all (x, p, q).
fn nested(cx: &Context<'_>, node: &TensorNode, outer: Binary, inner: Binary) -> Vec<(Id, Id, Id)> {
    let mut found = Vec::new();
    if *node.op() != OpKind::Binary(outer) {
        return found;
    }
    for (m, q) in both_orders(&node.operands) {
        for operands in cx.operands_of(m, &OpKind::Binary(inner)) {
            found.extend(both_orders(operands).map(|(x, p)| (x, p, q)));
        }
    }
    found
}

fn both_orders(operands: &[Id]) -> impl Iterator<Item = (Id, Id)> + use<> {
    let pair = match *operands {
        [a, b] => vec![(a, b), (b, a)],
        _ => Vec::new(),
    };
    pair.into_iter()
}

fn clamp(cx: &Context<'_>, node: &TensorNode, lo: Id, x: Id, hi: Id) -> Term {
    Term::node(OpKind::Clamp, node.shape().clone(), vec![bound(cx, lo), cx.class(x), bound(cx, hi)])
}

fn min_max_to_clamp(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    for (x, lo, hi) in nested(cx, node, Binary::Minimum, Binary::Maximum) {
        if cx.splat(lo).is_some() && cx.splat(hi).is_some() {
            out.push(clamp(cx, node, lo, x, hi));
        }
    }
}

fn max_min_to_clamp(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    for (x, hi, lo) in nested(cx, node, Binary::Maximum, Binary::Minimum) {
        if let (Some(a), Some(b)) = (cx.number(lo), cx.number(hi))
            && a < b
        {
            out.push(clamp(cx, node, lo, x, hi));
        }
    }
}

fn fold_constants(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let OpKind::Binary(op @ (Binary::Maximum | Binary::Minimum)) = node.op() else { return };
    for (x, inner, outer) in nested(cx, node, *op, *op) {
        let (Some(a), Some(b)) = (cx.splat(inner), cx.splat(outer)) else { continue };
        let scalar = Shape::scalar(node.shape().elem);
        if let Some(c) = evaluate(&OpKind::Binary(*op), &[a.clone(), b.clone()], &scalar) {
            out.push(Term::binary(*op, cx.class(x), Term::splat(c, &node.shape().dims)));
        }
    }
}

/// One step of a chain: the operator with its constant operands as scalars, and where the value goes in.
struct Step<'a> {
    op: &'a HeadOp,
    elem: act_hlo::ElemType,
    operands: Vec<Option<&'a Literal>>,
}

/// Longest chain followed.
const CHAIN: usize = 8;
/// Most terms proposed for one node.
const CHAINS: usize = 16;
/// Most classes looked at for one node.
const LOOKS: usize = 64;

/// The operand through which the node is a monotone non-decreasing function, and the step; NaN cannot arise from
/// finite or infinite inputs.
fn monotone_step<'a>(cx: &Context<'a>, node: &'a TensorNode) -> Option<(Id, Step<'a>)> {
    let may_be = matches!(
        node.op(),
        OpKind::Convert
            | OpKind::Binary(Binary::Multiply | Binary::Add | Binary::Maximum | Binary::Minimum)
            | OpKind::Clamp
            | OpKind::Unary(_)
    );
    if !may_be {
        return None;
    }
    let mut variable = None;
    let mut operands = Vec::with_capacity(node.operands.len());
    for &x in &node.operands {
        match cx.splat(x) {
            Some(scalar) => operands.push(Some(scalar)),
            None if variable.is_none() => {
                variable = Some(x);
                operands.push(None);
            }
            None => return None,
        }
    }
    let x = variable?;
    let constant = operands.iter().flatten().next().and_then(|scalar| real_value(scalar));
    let increasing = match node.op() {
        // Every convert between reals is monotone; out-of-range values saturate or, between integers, wrap.
        OpKind::Convert => {
            let (from, to) = (cx.shape(x).elem, node.shape().elem);
            (from.is_int() || from.is_float())
                && (to.is_float() || to.is_int() && (from.is_float() || super::convert::preserves(from, to)))
        }
        OpKind::Binary(Binary::Multiply) => {
            node.shape().elem.is_float() && constant.is_some_and(|c| c > 0.0 && c.is_finite())
        }
        OpKind::Binary(Binary::Add) => node.shape().elem.is_float() && constant.is_some_and(f64::is_finite),
        OpKind::Binary(Binary::Maximum | Binary::Minimum) => constant.is_some_and(|c| !c.is_nan()),
        OpKind::Clamp => {
            matches!(operands.as_slice(), [Some(_), None, Some(_)])
                && operands.iter().flatten().all(|l| real_value(l).is_some_and(|v| !v.is_nan()))
        }
        OpKind::Unary(u) => {
            matches!(u, Unary::RoundNearestEven | Unary::RoundNearestAfz | Unary::Floor | Unary::Ceil)
        }
        _ => false,
    };
    increasing.then(|| (x, Step { op: node.op(), elem: node.shape().elem, operands }))
}

fn monotone(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    if !node.shape().elem.is_int() || cx.is_constant(class) {
        return;
    }
    let Some((x, step)) = monotone_step(cx, node) else { return };
    let mut chain = Chain { path: vec![class], steps: vec![step], looks: 0 };
    follow(cx, x, &mut chain, node.shape(), out);
}

/// The way down a chain: a class that is spelled in many ways has more chains than anything gains from.
struct Chain<'a> {
    /// Classes from the node's own to the present one.
    path: Vec<Id>,
    /// From the present class to the node's own, outermost first.
    steps: Vec<Step<'a>>,
    /// Classes looked at.
    looks: usize,
}

/// The chain leads from `x` to the class.
fn follow<'a>(cx: &Context<'a>, x: Id, chain: &mut Chain<'a>, result: &Shape, out: &mut Vec<Term>) {
    chain.looks += 1;
    if out.len() >= CHAINS || chain.looks > LOOKS || chain.path.iter().any(|&above| cx.same(above, x)) {
        return;
    }
    for inner in cx.nodes(x) {
        if let OpKind::Binary(op @ (Binary::Maximum | Binary::Minimum)) = inner.op()
            && inner.shape().elem.is_int()
        {
            for (y, c) in both_orders(&inner.operands) {
                if let Some(scalar) = cx.splat(c) {
                    out.extend(exchanged(cx, *op, y, scalar, &chain.steps, result));
                }
            }
        }
    }
    if chain.steps.len() >= CHAIN {
        return;
    }
    for inner in cx.nodes(x) {
        if let Some((y, step)) = monotone_step(cx, inner) {
            chain.steps.push(step);
            chain.path.push(x);
            follow(cx, y, chain, result, out);
            chain.path.pop();
            chain.steps.pop();
        }
    }
}

/// `op(f(y), f(c))` for the chain f.
fn exchanged(
    cx: &Context<'_>,
    op: Binary,
    y: Id,
    c: &Literal,
    steps: &[Step<'_>],
    result: &Shape,
) -> Option<Term> {
    let mut constant = c.clone();
    let mut value = cx.class(y);
    for step in steps.iter().rev() {
        let scalars: Vec<Literal> =
            step.operands.iter().map(|o| o.cloned().unwrap_or_else(|| constant.clone())).collect();
        constant = evaluate(&cx.concrete(step.op), &scalars, &Shape::scalar(step.elem))?;
        let shape = Shape::new(step.elem, result.dims.clone());
        let operands = step.operands.iter().map(|o| match o {
            Some(scalar) if *step.op == OpKind::Clamp => Term::splat((*scalar).clone(), &[]),
            Some(scalar) => Term::splat((*scalar).clone(), &result.dims),
            None => value.clone(),
        });
        value = Term::node(step.op.clone(), shape, operands.collect());
    }
    if !cx.vocabulary.bounds_by(op, &constant) {
        return None;
    }
    let bound = Term { shape: result.clone(), kind: Kind::Splat(constant) };
    Some(Term::binary(op, value, bound))
}

fn straddle(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Convert, [c]) = (node.op(), &node.operands[..]) else { return };
    let elem = node.shape().elem;
    if !elem.is_int() {
        return;
    }
    let whole = |scalar: &Literal| super::convert::exact_convert(scalar, elem);
    for n in cx.nodes(*c) {
        let (OpKind::Clamp, [lo, x, hi]) = (n.op(), &n.operands[..]) else { continue };
        let (Some(a), Some(b)) = (cx.splat(*lo), cx.splat(*hi)) else { continue };
        for (low, high) in &cx.vocabulary.clamps {
            if low.elem() != n.shape().elem || (low == a && high == b) {
                continue;
            }
            let (Some(ra), Some(rb), Some(rl), Some(rh)) =
                (real_value(a), real_value(b), real_value(low), real_value(high))
            else {
                continue;
            };
            let (Some(wa), Some(wb)) = (whole(a), whole(b)) else { continue };
            if !(rl <= ra && ra <= rb && rb <= rh) || whole(low).is_none() || whole(high).is_none() {
                continue;
            }
            let bounds = vec![Term::splat(low.clone(), &[]), cx.class(*x), Term::splat(high.clone(), &[])];
            let mut value = Term::node(OpKind::Clamp, n.shape().clone(), bounds).convert(elem);
            let dims = &node.shape().dims;
            if rl < ra {
                value = Term::binary(Binary::Maximum, value, Term::splat(wa, dims));
            }
            if rb < rh {
                value = Term::binary(Binary::Minimum, value, Term::splat(wb, dims));
            }
            out.push(value);
        }
    }
}
