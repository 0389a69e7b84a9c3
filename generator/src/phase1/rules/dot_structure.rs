//! The structure of products: concatenated, sliced, reversed and padded operands, and batches taken one by one.

use super::ragged::begun;
use super::{Context, Rule, RuleClass};
use crate::phase1::language::TensorNode;
use crate::phase1::term::Term;
use crate::phase1::vocabulary::Vocabulary;
use act_hlo::{Binary, DotDims, OpKind};
use egg::Id;

pub(crate) static RULES: &[Rule] = &[
    Rule::new(
        RuleClass::Integer,
        "dot-cat-k",
        "dot(cat_k(x, y), b) => dot(x, slice_k b) + dot(y, slice_k b), k the contracted dimension, no part a splat; right \
         side alike",
        has_dot_and_add,
        along_contraction,
    ),
    Rule::new(
        RuleClass::Exact,
        "dot-cat-m",
        "dot(cat_m(x, y), b) => cat(dot(x, b), dot(y, b)), m a free dimension of the left operand",
        has_dot,
        along_rows,
    ),
    Rule::new(
        RuleClass::Exact,
        "dot-cat-n",
        "dot(a, cat_n(x, y)) => cat(dot(a, x), dot(a, y)), n a free dimension of the right operand",
        has_dot,
        along_columns,
    ),
    Rule::new(
        RuleClass::Exact,
        "cat-dot-m",
        "cat(dot(x, b), dot(y, b)) => dot(cat_m(x, y), b)",
        has_dot,
        joined_rows,
    ),
    Rule::new(
        RuleClass::Exact,
        "cat-dot-n",
        "cat(dot(a, x), dot(a, y)) => dot(a, cat_n(x, y))",
        has_dot,
        joined_columns,
    ),
    Rule::new(
        RuleClass::Exact,
        "dot-batch-unroll",
        "dot[B;C](a, b) => cat_0(dot[B;C](a_i, b_i), ..), slices of the first batch dimension longer than 1",
        |vocabulary| !vocabulary.dots.is_empty(),
        unrolled,
    ),
    Rule::new(
        RuleClass::Exact,
        "slice-dot-b",
        "slice of batch dimensions (dot(a, b)) => dot(slice a, slice b)",
        has_dot,
        sliced_batch,
    ),
    Rule::new(
        RuleClass::Exact,
        "rev-dot-free-l",
        "rev[D](dot(a, b)) => dot(rev a, b), D free dimensions of a",
        has_dot_and_reverse,
        reversed_left,
    ),
    Rule::new(
        RuleClass::Exact,
        "rev-dot-free-r",
        "rev[D](dot(a, b)) => dot(a, rev b), D free dimensions of b",
        has_dot_and_reverse,
        reversed_right,
    ),
    Rule::new(
        RuleClass::Integer,
        "rev-dot-contract",
        "dot(rev[D](a), rev[E](b)) => dot(a, b), D and E the same contracted dimensions",
        has_dot,
        reversed_contraction,
    ),
    Rule::new(
        RuleClass::Integer,
        "pad-dot-k",
        "dot(a, b) => dot(cat_k(a, 0), cat_k(b, 0)), to the shortest contraction of an instruction",
        has_least_sizes,
        padded_contraction,
    ),
    Rule::new(
        RuleClass::Exact,
        "pad-dot-m",
        "dot(a, b) => slice_m(dot(w, b)), w with the least number of rows of an instruction, beginning with a: the value \
         that a is a slice of, or a and zeros",
        has_least_sizes,
        padded_rows,
    ),
    Rule::new(
        RuleClass::Exact,
        "pad-dot-n",
        "dot(a, b) => slice_n(dot(a, w)), w with the least number of columns of an instruction, beginning with b: the \
         value that b is a slice of, or b and zeros",
        has_least_sizes,
        padded_columns,
    ),
];

/// Most products that one batch is taken apart into.
const BATCH: u64 = 64;

fn has_dot(vocabulary: &Vocabulary) -> bool {
    !vocabulary.dots.is_empty() && vocabulary.slots_keep_their_type()
}

fn has_dot_and_add(vocabulary: &Vocabulary) -> bool {
    has_dot(vocabulary) && vocabulary.names("add")
}

fn has_dot_and_reverse(vocabulary: &Vocabulary) -> bool {
    has_dot(vocabulary) && vocabulary.names("reverse")
}

fn has_least_sizes(vocabulary: &Vocabulary) -> bool {
    has_dot(vocabulary) && vocabulary.product_sizes.iter().any(|p| p.m.min > 1 || p.n.min > 1 || p.k.min > 1)
}

/// Batch and contracting dimensions of one operand.
fn side(dims: &DotDims, right: bool) -> (&[usize], &[usize]) {
    if right { (&dims.rhs_batch, &dims.rhs_contracting) } else { (&dims.lhs_batch, &dims.lhs_contracting) }
}

/// The free dimensions of one operand, and where the first of them is in the result.
fn free(cx: &Context<'_>, node: &TensorNode, dims: &DotDims, right: bool) -> (Vec<usize>, usize) {
    let (batch, contracting) = side(dims, right);
    let rank = cx.shape(node.operands[usize::from(right)]).rank();
    let free: Vec<usize> = (0..rank).filter(|d| !batch.contains(d) && !contracting.contains(d)).collect();
    let first = if right { node.shape().rank() - free.len() } else { batch.len() };
    (free, first)
}

fn concatenations<'a>(cx: &Context<'a>, x: Id) -> impl Iterator<Item = (usize, &'a [Id])> + use<'a> {
    cx.nodes(x).iter().filter_map(|n| match n.op() {
        OpKind::Concatenate { dim } => Some((*dim, n.operands.as_slice())),
        _ => None,
    })
}

/// Whether a concatenation puts together what was cut: products of the pieces are found from the cut.
fn is_cut(cx: &Context<'_>, parts: &[Id]) -> bool {
    parts.iter().all(|&p| cx.nodes(p).iter().any(|n| matches!(n.op(), OpKind::Slice { .. })))
}

fn along_contraction(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Dot(dims), &[a, b]) = (node.op(), &node.operands[..]) else { return };
    let elem = node.shape().elem;
    if !cx.vocabulary.has("add", elem) || !cx.may_reassociate(elem) {
        return;
    }
    for (x, other, right) in [(a, b, false), (b, a, true)] {
        let (mine, theirs) = (side(dims, right).1, side(dims, !right).1);
        for (dim, parts) in concatenations(cx, x).filter(|c| !is_cut(cx, c.1)) {
            let Some(at) = mine.iter().position(|&d| d == dim) else { continue };
            // A splat beside something is padding, which a product with fewer terms would take away again.
            if parts.iter().any(|&part| cx.splat(part).is_some()) {
                continue;
            }
            let (mut start, mut sum) = (0, None::<Term>);
            for &part in parts {
                let len = cx.shape(part).dims[dim];
                let beside = cx.class(other).slice(theirs[at], start, len);
                start += len;
                let operands =
                    if right { vec![beside, cx.class(part)] } else { vec![cx.class(part), beside] };
                let product = Term::node(node.op().clone(), node.shape().clone(), operands);
                sum = Some(match sum {
                    None => product,
                    Some(before) => Term::binary(Binary::Add, before, product),
                });
            }
            out.extend(sum);
        }
    }
}

fn along_free(cx: &Context<'_>, node: &TensorNode, right: bool, out: &mut Vec<Term>) {
    let (OpKind::Dot(dims), &[a, b]) = (node.op(), &node.operands[..]) else { return };
    let (free, first) = free(cx, node, dims, right);
    for (dim, parts) in concatenations(cx, if right { b } else { a }).filter(|c| !is_cut(cx, c.1)) {
        let Some(at) = free.iter().position(|&d| d == dim) else { continue };
        let products = parts.iter().map(|&part| {
            let mut shape = node.shape().clone();
            shape.dims[first + at] = cx.shape(part).dims[dim];
            let operands =
                if right { vec![cx.class(a), cx.class(part)] } else { vec![cx.class(part), cx.class(b)] };
            Term::node(node.op().clone(), shape, operands)
        });
        out.push(Term::concatenate(first + at, products.collect()));
    }
}

fn along_rows(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    along_free(cx, node, false, out);
}

fn along_columns(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    along_free(cx, node, true, out);
}

fn joined(cx: &Context<'_>, node: &TensorNode, right: bool, out: &mut Vec<Term>) {
    let OpKind::Concatenate { dim } = node.op() else { return };
    let Some((&head, rest)) = node.operands.split_first() else { return };
    for n in cx.nodes(head) {
        let (OpKind::Dot(dims), &[a, b]) = (n.op(), &n.operands[..]) else { continue };
        let (free, first) = free(cx, n, dims, right);
        let Some(&along) = dim.checked_sub(first).and_then(|at| free.get(at)) else { continue };
        let (x, common) = if right { (b, a) } else { (a, b) };
        let mut parts = vec![x];
        for &part in rest {
            let next = cx.nodes(part).iter().find_map(|p| {
                let &[l, r] = &p.operands[..] else { return None };
                let (y, other) = if right { (r, l) } else { (l, r) };
                (p.op() == n.op() && cx.same(other, common)).then_some(y)
            });
            match next {
                Some(y) => parts.push(y),
                None => break,
            }
        }
        if parts.len() == node.operands.len() && !is_cut(cx, &parts) {
            let joined = Term::concatenate(along, parts.into_iter().map(|p| cx.class(p)).collect());
            let operands =
                if right { vec![cx.class(common), joined] } else { vec![joined, cx.class(common)] };
            out.push(Term::node(n.op().clone(), node.shape().clone(), operands));
        }
    }
}

fn joined_rows(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    joined(cx, node, false, out);
}

fn joined_columns(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    joined(cx, node, true, out);
}

fn unrolled(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Dot(dims), &[a, b]) = (node.op(), &node.operands[..]) else { return };
    let batch = dims.lhs_batch.len();
    let Some(at) = (0..batch).find(|&k| node.shape().dims[k] > 1) else { return };
    let count = node.shape().dims[at];
    let has_form = cx.vocabulary.dots.iter().any(|f| f.dims == *dims);
    if has_form || count > BATCH || cx.is_constant(class) {
        return;
    }
    let products = (0..count).map(|i| {
        let mut shape = node.shape().clone();
        shape.dims[at] = 1;
        let operands =
            vec![cx.class(a).slice(dims.lhs_batch[at], i, 1), cx.class(b).slice(dims.rhs_batch[at], i, 1)];
        Term::node(node.op().clone(), shape, operands)
    });
    out.push(Term::concatenate(at, products.collect()));
}

fn sliced_batch(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Slice { start, stride, .. }, &[d]) = (node.op(), &node.operands[..]) else { return };
    if stride.iter().any(|&s| s != 1) {
        return;
    }
    for n in cx.nodes(d) {
        let (OpKind::Dot(dims), &[a, b]) = (n.op(), &n.operands[..]) else { continue };
        let batch = dims.lhs_batch.len();
        let (from, to) = (&n.shape().dims, &node.shape().dims);
        if batch == 0 || from[batch..] != to[batch..] {
            continue;
        }
        let (mut lhs, mut rhs) = (cx.class(a), cx.class(b));
        for k in 0..batch {
            lhs = lhs.slice(dims.lhs_batch[k], start[k] as u64, to[k]);
            rhs = rhs.slice(dims.rhs_batch[k], start[k] as u64, to[k]);
        }
        out.push(Term::node(n.op().clone(), node.shape().clone(), vec![lhs, rhs]));
    }
}

fn reversed(cx: &Context<'_>, node: &TensorNode, right: bool, out: &mut Vec<Term>) {
    let (OpKind::Reverse { dims: over }, &[d]) = (node.op(), &node.operands[..]) else { return };
    for n in cx.nodes(d) {
        let (OpKind::Dot(dims), &[a, b]) = (n.op(), &n.operands[..]) else { continue };
        let (free, first) = free(cx, n, dims, right);
        let of: Option<Vec<usize>> =
            over.iter().map(|o| o.checked_sub(first).and_then(|at| free.get(at).copied())).collect();
        let Some(of) = of else { continue };
        let x = cx.class(if right { b } else { a });
        let x = Term::node(OpKind::Reverse { dims: of }, x.shape.clone(), vec![x]);
        let operands = if right { vec![cx.class(a), x] } else { vec![x, cx.class(b)] };
        out.push(Term::node(n.op().clone(), node.shape().clone(), operands));
    }
}

fn reversed_left(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    reversed(cx, node, false, out);
}

fn reversed_right(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    reversed(cx, node, true, out);
}

fn reversed_contraction(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Dot(dims), &[a, b]) = (node.op(), &node.operands[..]) else { return };
    if !cx.may_reassociate(node.shape().elem) {
        return;
    }
    // Positions among the contracted dimensions, which pair those of both operands.
    let reversals = |x: Id, contracting: &[usize]| -> Vec<(Vec<usize>, Id)> {
        let of = cx.nodes(x).iter().filter_map(|n| {
            let OpKind::Reverse { dims } = n.op() else { return None };
            let at: Option<Vec<usize>> =
                dims.iter().map(|d| contracting.iter().position(|c| c == d)).collect();
            let mut at = at?;
            at.sort_unstable();
            Some((at, n.operands[0]))
        });
        of.collect()
    };
    for (over, x) in reversals(a, &dims.lhs_contracting) {
        for (also, y) in reversals(b, &dims.rhs_contracting) {
            if over == also {
                let operands = vec![cx.class(x), cx.class(y)];
                out.push(Term::node(node.op().clone(), node.shape().clone(), operands));
            }
        }
    }
}

/// The operand with zeros after it in one dimension.
fn padded(cx: &Context<'_>, x: Id, dim: usize, to: u64) -> Option<Term> {
    let shape = cx.shape(x);
    let zero = act_isa::constant::int_scalar(shape.elem, 0).ok()?;
    let mut rest = shape.dims.clone();
    rest[dim] = to.checked_sub(shape.dims[dim]).filter(|&n| n > 0)?;
    Some(Term::concatenate(dim, vec![cx.class(x), Term::splat(zero, &rest)]))
}

/// Values that begin with `x`; nobody reads the rest of their products.
fn longer(cx: &Context<'_>, x: Id, dim: usize, to: u64) -> Vec<Term> {
    let mut wide = cx.shape(x).dims.clone();
    wide[dim] = to;
    begun(cx, x, &wide)
}

/// A product in the form of an instruction, all of whose sizes the instruction would take but for the one to be padded.
fn short<'a>(
    cx: &Context<'a>,
    class: Id,
    node: &'a TensorNode,
    which: usize,
) -> Option<(&'a DotDims, Id, Id, u64)> {
    let (OpKind::Dot(dims), &[a, b]) = (node.op(), &node.operands[..]) else { return None };
    if node.shape().rank() != 2 || cx.is_constant(class) || dims.lhs_contracting.len() != 1 {
        return None;
    }
    let k = cx.shape(a).dims[dims.lhs_contracting[0]];
    let sizes = [node.shape().dims[0], node.shape().dims[1], k];
    let fits = cx.vocabulary.product_sizes.iter().filter_map(|p| {
        let form = p.form.dims == *dims
            && p.form.lhs == cx.shape(a).elem
            && p.form.rhs == cx.shape(b).elem
            && p.form.out == node.shape().elem;
        let limits = [p.m, p.n, p.k];
        let least = limits[which].min;
        let small = sizes.iter().zip(&limits).all(|(size, limit)| *size <= limit.max);
        (form && small && sizes[which] < least).then_some(least)
    });
    fits.min().map(|least| (dims, a, b, least))
}

fn padded_contraction(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((dims, a, b, least)) = short(cx, class, node, 2) else { return };
    if !cx.may_reassociate(node.shape().elem) {
        return;
    }
    let (lhs, rhs) =
        (padded(cx, a, dims.lhs_contracting[0], least), padded(cx, b, dims.rhs_contracting[0], least));
    if let (Some(lhs), Some(rhs)) = (lhs, rhs) {
        out.push(Term::node(node.op().clone(), node.shape().clone(), vec![lhs, rhs]));
    }
}

fn padded_rows(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((dims, a, b, least)) = short(cx, class, node, 0) else { return };
    for lhs in longer(cx, a, 1 - dims.lhs_contracting[0], least) {
        let product = Term::dot(dims.clone(), node.shape().elem, lhs, cx.class(b));
        out.push(product.slice(0, 0, node.shape().dims[0]));
    }
}

fn padded_columns(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((dims, a, b, least)) = short(cx, class, node, 1) else { return };
    for rhs in longer(cx, b, 1 - dims.rhs_contracting[0], least) {
        let product = Term::dot(dims.clone(), node.shape().elem, cx.class(a), rhs);
        out.push(product.slice(1, 0, node.shape().dims[1]));
    }
}
