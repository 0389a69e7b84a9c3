//! The algebra of reductions: nested ones joined and taken apart, those of constants and broadcasts known. What moves
//! through them stands in [`super::reduce_terms`].

use super::reduce::parts;
use super::{Context, Rule, RuleClass, neutral, summed_in};
use crate::phase1::language::TensorNode;
use crate::phase1::term::Term;
use crate::phase1::vocabulary::{Vocabulary, key};
use act_hlo::{Binary, ElemType, OpKind};
use egg::Id;

pub(crate) static RULES: &[Rule] = &[
    Rule::new(
        RuleClass::Conditional,
        "red-none",
        "red[](x; z) => x, z neutral, x without denormals",
        super::always,
        of_nothing,
    ),
    Rule::new(
        RuleClass::Conditional,
        "red-1",
        "red[D](x; z) => rs(x), every dimension in D of size 1, z neutral, x without denormals",
        super::always,
        of_size_one,
    ),
    Rule::new(
        RuleClass::Integer,
        "red-red",
        "red[D](red[E](x; z); a) => red[E+D'](x; a), z neutral",
        has_reduce,
        nested,
    ),
    Rule::new(
        RuleClass::Integer,
        "red-split-dims",
        "red[D](x; a) => red[D'](red[d](x; z); a), d one of D, toward instructions that reduce fewer dimensions",
        has_reduce,
        one_dimension,
    ),
    Rule::new(
        RuleClass::Exact,
        "red-to-instruction",
        "red[D](x) => rs(red[D'](rs x)), neighbours that are reduced together or kept together merged, to the rank \
         of an instruction",
        has_reduce,
        merged,
    ),
    Rule::new(
        RuleClass::Conditional,
        "red-splat",
        "red[D](splat c; a) => splat(a + n * c), n the number of reduced elements, c and the sum whole numbers that \
         are exact; max(a, c) alike",
        super::always,
        of_splat,
    ),
    Rule::new(
        RuleClass::Integer,
        "red-bcast-add",
        "red+[D](bc[E](x); 0) => bc(x * splat n), D outside E, n the number of reduced elements",
        has_multiply,
        of_broadcast_sum,
    ),
    Rule::new(
        RuleClass::Conditional,
        "red-bcast-order",
        "red[D](bc[E](x); z) => bc(x), D outside E, for max, min, and, or; z neutral, x without denormals",
        super::always,
        of_broadcast_order,
    ),
    Rule::new(
        RuleClass::Integer,
        "red-init",
        "red(x; a) => red(x; z) + bc a, a not neutral, z neutral, for every combiner",
        has_reduce,
        from_neutral,
    ),
    Rule::new(
        RuleClass::Integer,
        "red-cat",
        "red[d](cat_d(x, y); a) => red[d](x; z) + red[d](y; a), for every combiner",
        has_reduce,
        of_concatenation,
    ),
    Rule::new(
        RuleClass::Exact,
        "red-cat-other",
        "red[D](cat_f(x, y)) => cat_f'(red[D](x), red[D](y)), f not in D",
        has_reduce,
        beside_concatenation,
    ),
    Rule::new(
        RuleClass::Integer,
        "red-halve",
        "red[d](x; a) => red[d](x[0:n/2] + x[n/2:n]; a), n even, where no instruction reduces with this combiner",
        super::always,
        halve,
    ),
    Rule::new(
        RuleClass::Integer,
        "red-peel",
        "red[d](x; a) => red[d](x[0:n-1]; a) + rs(x[n-1:n]), n odd, where no instruction reduces with this combiner",
        super::always,
        peel,
    ),
    Rule::new(
        RuleClass::Exact,
        "slice-reduce",
        "slice(red[D](x)) => red[D](slice x), stride 1",
        has_reduce,
        sliced,
    ),
];

pub(super) fn has_reduce(vocabulary: &Vocabulary) -> bool {
    !vocabulary.reductions.is_empty()
}

pub(super) fn has_multiply(vocabulary: &Vocabulary) -> bool {
    vocabulary.names("multiply")
}

/// Whether parts may be combined in any order and rounded between: never for sums of narrow floats, whose parts are wide.
pub(super) fn free_order(cx: &Context<'_>, combiner: Binary, elem: ElemType) -> bool {
    let idempotent = matches!(combiner, Binary::Maximum | Binary::Minimum | Binary::And | Binary::Or);
    idempotent || matches!(combiner, Binary::Add | Binary::Multiply | Binary::Xor) && cx.may_reassociate(elem)
}

pub(super) fn is_neutral(cx: &Context<'_>, combiner: Binary, init: Id) -> bool {
    cx.splat(init).is_some_and(|value| neutral(combiner, value.elem()).as_ref() == Some(value))
}

/// Whether combining x with the initial value changes nothing: `0 + -0.0` is `0.0`, so float sums change, and every
/// operator flushes denormals.
fn vanishing(cx: &Context<'_>, combiner: Binary, x: Id, init: Id) -> bool {
    let elem = cx.shape(init).elem;
    is_neutral(cx, combiner, init) && cx.flushed(x) && (combiner != Binary::Add || cx.may_reassociate(elem))
}

fn of_nothing(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((dims, combiner, x, init)) = parts(node) else { return };
    if dims.is_empty() && vanishing(cx, combiner, x, init) {
        out.push(cx.class(x));
    }
}

fn of_size_one(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((dims, combiner, x, init)) = parts(node) else { return };
    let single = !dims.is_empty() && dims.iter().all(|&d| cx.shape(x).dims[d] == 1);
    if single && vanishing(cx, combiner, x, init) {
        out.push(cx.class(x).reshape(&node.shape().dims));
    }
}

fn nested(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((dims, combiner, r, init)) = parts(node) else { return };
    let elem = node.shape().elem;
    if dims.is_empty() || !free_order(cx, combiner, elem) {
        return;
    }
    for n in cx.nodes(r) {
        let Some((first, inner, x, z)) = parts(n) else { continue };
        if inner != combiner || first.is_empty() || !is_neutral(cx, combiner, z) {
            continue;
        }
        let kept: Vec<usize> = (0..cx.shape(x).rank()).filter(|d| !first.contains(d)).collect();
        let mut all: Vec<usize> = first.to_vec();
        all.extend(dims.iter().map(|&d| kept[d]));
        all.sort_unstable();
        out.push(cx.class(x).reduce(combiner, &all, cx.class(init)));
    }
}

/// Whether each dimension is reduced, without those of size 1 and with equal neighbours merged, and the merged lengths.
fn runs(dims: &[u64], reduced: &[usize]) -> Vec<(bool, u64)> {
    let mut runs: Vec<(bool, u64)> = Vec::new();
    for (d, &len) in dims.iter().enumerate().filter(|d| *d.1 != 1) {
        let on = reduced.contains(&d);
        match runs.last_mut() {
            Some((last, total)) if *last == on => *total *= len,
            _ => runs.push((on, len)),
        }
    }
    runs
}

fn one_dimension(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((dims, combiner, x, init)) = parts(node) else { return };
    let elem = node.shape().elem;
    if dims.len() < 2 || cx.is_constant(class) || !free_order(cx, combiner, elem) {
        return;
    }
    let groups = runs(&cx.shape(x).dims, dims).iter().filter(|r| r.0).count();
    let mut forms = cx.vocabulary.reductions.iter().filter(|r| r.combiner == combiner && r.elem == elem);
    let Some(most) = forms.by_ref().map(|r| r.dims.len()).max() else { return };
    let Some(z) = neutral(combiner, elem).filter(|_| groups > most) else { return };
    // The innermost dimension first: it is the one whose elements lie together.
    if let Some((&d, rest)) = dims.split_last() {
        let rest: Vec<usize> = rest.iter().map(|&e| if e > d { e - 1 } else { e }).collect();
        let first = cx.class(x).reduce(combiner, &[d], Term::splat(z, &[]));
        out.push(first.reduce(combiner, &rest, cx.class(init)));
    }
}

fn merged(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((dims, combiner, x, init)) = parts(node) else { return };
    let (elem, from) = (node.shape().elem, &cx.shape(x).dims);
    if node.shape().elements() == 0 || dims.is_empty() || !dims.is_sorted() || cx.is_constant(class) {
        return;
    }
    let runs = runs(from, dims);
    if !runs.iter().any(|r| r.0) {
        return;
    }
    let mut seen: Vec<Vec<u64>> = Vec::new();
    for form in cx.vocabulary.reductions.iter().filter(|r| r.combiner == combiner && r.elem == elem) {
        // Each run goes to the next dimension of the instruction that is reduced or kept as it is; the others are 1.
        let mut left = runs.iter().peekable();
        let fit = |d: usize| match left.peek() {
            Some((on, _)) if *on == form.dims.contains(&d) => left.next().map_or(1, |r| r.1),
            _ => 1,
        };
        let lens: Vec<u64> = (0..form.rank).map(fit).collect();
        if left.peek().is_some() || lens == *from || seen.contains(&lens) {
            continue;
        }
        let reduced = cx.class(x).reshape(&lens).reduce(combiner, &form.dims, cx.class(init));
        out.push(reduced.reshape(&node.shape().dims));
        seen.push(lens);
    }
}

fn of_splat(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((dims, combiner, x, init)) = parts(node) else { return };
    let elem = node.shape().elem;
    let (Some(_), Some(a), false) = (cx.splat(x), cx.splat(init), cx.is_constant(class)) else { return };
    let count: u64 = dims.iter().map(|&d| cx.shape(x).dims[d]).product();
    if count == 0 {
        return;
    }
    let value = match combiner {
        Binary::Maximum | Binary::Minimum => cx.splat(x).cloned().and_then(|c| {
            let scalar = act_hlo::Shape::scalar(elem);
            crate::phase1::facts::evaluate(&OpKind::Binary(combiner), &[a.clone(), c], &scalar)
        }),
        Binary::Add => {
            let whole = |id| cx.number(id).filter(|v| v.fract() == 0.0);
            // Every partial sum is a whole number below 2^24, which each of these types holds exactly.
            let total = whole(x)
                .zip(whole(init))
                .map(|(c, a)| (a.abs() + c.abs() * count as f64, a + c * count as f64));
            total
                .filter(|(most, _)| *most < f64::from(1 << 24) && summed_in(elem) == elem)
                .and_then(|(_, sum)| act_isa::constant::int_scalar(elem, sum as i64).ok())
        }
        _ => None,
    };
    out.extend(value.map(|v| Term::splat(v, &node.shape().dims)));
}

/// The operand of a broadcast all of whose dimensions survive the reduction, where they go, and the number of equal
/// elements that are reduced to one.
fn broadcast_along<'a>(
    cx: &Context<'a>,
    x: Id,
    reduced: &[usize],
) -> impl Iterator<Item = (Id, Vec<usize>, u64)> + use<'a> {
    let kept: Vec<usize> = (0..cx.shape(x).rank()).filter(|d| !reduced.contains(d)).collect();
    let count: u64 = reduced.iter().map(|&d| cx.shape(x).dims[d]).product();
    cx.nodes(x).iter().filter_map(move |n| {
        let OpKind::Broadcast { dims } = n.op() else { return None };
        let to: Option<Vec<usize>> = dims.iter().map(|d| kept.iter().position(|k| k == d)).collect();
        Some((n.operands[0], to?, count))
    })
}

fn of_broadcast_sum(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((dims, Binary::Add, x, init)) = parts(node) else { return };
    let elem = node.shape().elem;
    let wanted = cx.number(init) == Some(0.0)
        && !dims.is_empty()
        && !cx.is_constant(class)
        && cx.vocabulary.has("multiply", elem)
        && cx.may_reassociate(elem);
    if !wanted {
        return;
    }
    for (of, to, count) in broadcast_along(cx, x, dims) {
        let Some(count) = i64::try_from(count).ok().and_then(|n| act_isa::constant::int_scalar(elem, n).ok())
        else {
            continue;
        };
        let times = Term::splat(count, &cx.shape(of).dims);
        let sum = Term::binary(Binary::Multiply, cx.class(of), times);
        out.push(sum.broadcast(&to, &node.shape().dims));
    }
}

fn of_broadcast_order(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((dims, combiner, x, init)) = parts(node) else { return };
    let idempotent = matches!(combiner, Binary::Maximum | Binary::Minimum | Binary::And | Binary::Or);
    if !idempotent || dims.is_empty() || cx.is_constant(class) || !is_neutral(cx, combiner, init) {
        return;
    }
    for (of, to, count) in broadcast_along(cx, x, dims) {
        if count > 0 && cx.flushed(of) {
            out.push(cx.class(of).broadcast(&to, &node.shape().dims));
        }
    }
}

fn from_neutral(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((dims, combiner, x, init)) = parts(node) else { return };
    let elem = node.shape().elem;
    let wanted = !is_neutral(cx, combiner, init)
        && !cx.is_constant(x)
        && free_order(cx, combiner, elem)
        && cx.vocabulary.has(combiner.name(), elem)
        && cx.vocabulary.has(&key(node.op()), elem);
    if let Some(z) = neutral(combiner, elem).filter(|_| wanted) {
        let reduced = cx.class(x).reduce(combiner, dims, Term::splat(z, &[]));
        let first = match cx.splat(init) {
            Some(scalar) => Term::splat(scalar.clone(), &node.shape().dims),
            None => cx.class(init).broadcast(&[], &node.shape().dims),
        };
        out.push(Term::binary(combiner, reduced, first));
    }
}

fn of_concatenation(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((dims, combiner, x, init)) = parts(node) else { return };
    let elem = node.shape().elem;
    if !free_order(cx, combiner, elem) || !cx.vocabulary.has(combiner.name(), elem) {
        return;
    }
    let Some(z) = neutral(combiner, elem) else { return };
    for n in cx.nodes(x) {
        let OpKind::Concatenate { dim } = n.op() else { continue };
        if !dims.contains(dim) {
            continue;
        }
        let mut sum: Option<Term> = None;
        for &part in &n.operands {
            let init = if sum.is_none() { cx.class(init) } else { Term::splat(z.clone(), &[]) };
            let reduced = cx.class(part).reduce(combiner, dims, init);
            sum = Some(match sum {
                None => reduced,
                Some(before) => Term::binary(combiner, before, reduced),
            });
        }
        out.extend(sum);
    }
}

fn beside_concatenation(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((dims, combiner, x, init)) = parts(node) else { return };
    for n in cx.nodes(x) {
        let OpKind::Concatenate { dim } = n.op() else { continue };
        if dims.contains(dim) {
            continue;
        }
        let to = dim - dims.iter().filter(|d| *d < dim).count();
        let reduced = n.operands.iter().map(|&p| cx.class(p).reduce(combiner, dims, cx.class(init)));
        out.push(Term::concatenate(to, reduced.collect()));
    }
}

/// The one long dimension that is reduced, where only the combiner itself is an instruction's. What is added up by a
/// product with ones is not taken apart.
fn unrollable<'a>(cx: &Context<'_>, node: &'a TensorNode) -> Option<(&'a [usize], usize, Binary, Id, Id)> {
    let (dims, combiner, x, init) = parts(node)?;
    let elem = node.shape().elem;
    // A row or column of ones is an operand of some product as it is.
    let takes_ones = cx.vocabulary.operand_types(elem).contains(&elem)
        || cx.vocabulary.product_sizes.iter().any(|p| p.form.out == elem && (p.m.min <= 1 || p.n.min <= 1));
    let by_product = takes_ones && super::contraction::sum_by_product(cx, node).is_some();
    let wanted = !cx.vocabulary.has(&key(node.op()), elem)
        && cx.vocabulary.has(combiner.name(), elem)
        && free_order(cx, combiner, elem)
        && !by_product
        && !cx.is_constant(x);
    let long = dims.iter().copied().find(|&d| cx.shape(x).dims[d] > 1);
    long.filter(|_| wanted).map(|d| (dims, d, combiner, x, init))
}

/// Longest dimension whose elements are combined one by one or by halves.
const UNROLLED: u64 = 64;

fn halve(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((dims, d, combiner, x, init)) = unrollable(cx, node) else { return };
    let n = cx.shape(x).dims[d];
    if n.is_multiple_of(2) && n <= UNROLLED {
        let half = |k: u64| cx.class(x).slice(d, k * (n / 2), n / 2);
        out.push(Term::binary(combiner, half(0), half(1)).reduce(combiner, dims, cx.class(init)));
    }
}

fn peel(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((&[_], d, combiner, x, init)) = unrollable(cx, node) else { return };
    let n = cx.shape(x).dims[d];
    if !n.is_multiple_of(2) && n <= UNROLLED {
        let rest = cx.class(x).slice(d, 0, n - 1).reduce(combiner, &[d], cx.class(init));
        let last = cx.class(x).slice(d, n - 1, 1).reshape(&node.shape().dims);
        out.push(Term::binary(combiner, rest, last));
    }
}

fn sliced(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Slice { start, stride, .. }, &[r]) = (node.op(), &node.operands[..]) else { return };
    if stride.iter().any(|&s| s != 1) {
        return;
    }
    for n in cx.nodes(r) {
        let Some((dims, combiner, x, init)) = parts(n) else { continue };
        let kept = (0..cx.shape(x).rank()).filter(|d| !dims.contains(d));
        let mut small = cx.class(x);
        for (at, d) in kept.enumerate() {
            small = small.slice(d, start[at] as u64, node.shape().dims[at]);
        }
        out.push(small.reduce(combiner, dims, cx.class(init)));
    }
}
