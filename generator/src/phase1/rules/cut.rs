//! Reductions, broadcasts, transposes and reversals cut at the sizes that instructions take, or padded up to them.
//! Goal-directed: only toward sizes at which some instruction has the same operator, and never on a value that fits.

use super::reduce::parts;
use super::{Context, Rule, RuleClass, neutral};
use crate::phase1::language::{TensorNode, is_elementwise, is_movement};
use crate::phase1::term::Term;
use crate::phase1::vocabulary::{Sizes, Vocabulary, key};
use act_hlo::{Binary, OpKind};
use egg::Id;

pub(crate) static RULES: &[Rule] = &[
    Rule::new(
        RuleClass::Exact,
        "split-red",
        "red[D](x) => cat(red[D](x1), red[D](x2), ..), a kept dimension cut at the largest size of an instruction",
        has_reduce,
        kept,
    ),
    Rule::new(
        RuleClass::Integer,
        "red-split",
        "red[D](x; a) => red[D](x1; a) + red[D](x2; z) + .., a reduced dimension cut at the largest size of an \
         instruction, for every combiner",
        has_reduce,
        reduced,
    ),
    Rule::new(
        RuleClass::Integer,
        "pad-reduce",
        "red[D](x; a) => red[D](cat_d(x, splat z); a), z neutral, to the least size of an instruction",
        has_reduce,
        padded,
    ),
    Rule::new(
        RuleClass::Exact,
        "split-bc",
        "bc(x) => cat_d(bc(x1), bc(x2), ..), cut at the largest size of an instruction that broadcasts",
        has_broadcast,
        broadcast,
    ),
    Rule::new(
        RuleClass::Exact,
        "split-T",
        "T(x) => cat_d(T(x1), T(x2), ..), cut at the largest size of an instruction that transposes",
        has_transpose,
        transpose,
    ),
    Rule::new(
        RuleClass::Exact,
        "split-rev",
        "rev(x) => cat_d(rev(x2), rev(x1), ..), cut at the largest size of an instruction that reverses",
        has_reverse,
        reverse,
    ),
];

/// Most pieces that one value is cut into.
const PIECES: u64 = 64;

fn has_reduce(vocabulary: &Vocabulary) -> bool {
    vocabulary.reductions.iter().any(|r| r.sizes.is_some())
}

fn has_broadcast(vocabulary: &Vocabulary) -> bool {
    !vocabulary.spreads.is_empty() && vocabulary.slots_keep_their_type()
}

fn has_transpose(vocabulary: &Vocabulary) -> bool {
    vocabulary.names("transpose") && vocabulary.slots_keep_their_type()
}

fn has_reverse(vocabulary: &Vocabulary) -> bool {
    vocabulary.names("reverse") && vocabulary.slots_keep_their_type()
}

/// Starts and lengths of the pieces of `len`, each at most as long as the instruction takes; the last one may be
/// shorter than it takes, and is padded then.
fn pieces(len: u64, sizes: Sizes) -> Option<Vec<(u64, u64)>> {
    let step = sizes.max;
    if step == 0 || len <= step || len.div_ceil(step) > PIECES {
        return None;
    }
    Some((0..len.div_ceil(step)).map(|k| (k * step, step.min(len - k * step))).collect())
}

/// Sizes of operands that instructions reduce in the manner of the node.
fn reductions<'a>(
    cx: &Context<'a>,
    node: &TensorNode,
    dims: &[usize],
    combiner: Binary,
) -> impl Iterator<Item = &'a Vec<Sizes>> + use<'a> {
    let (elem, dims) = (node.shape().elem, dims.to_vec());
    let forms = cx.vocabulary.reductions.iter();
    forms
        .filter(move |r| r.combiner == combiner && r.elem == elem && r.dims == dims)
        .filter_map(|r| r.sizes.as_ref())
}

fn kept(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((dims, combiner, x, init)) = parts(node) else { return };
    let lens = &cx.shape(x).dims;
    if cx.is_constant(class) {
        return;
    }
    for sizes in reductions(cx, node, dims, combiner).filter(|s| s.len() == lens.len()) {
        let Some(d) = (0..lens.len()).find(|d| !dims.contains(d) && lens[*d] > sizes[*d].max) else {
            continue;
        };
        let Some(pieces) = pieces(lens[d], sizes[d]) else { continue };
        let to = d - dims.iter().filter(|&&e| e < d).count();
        let reduced = pieces
            .iter()
            .map(|&(start, len)| cx.class(x).slice(d, start, len).reduce(combiner, dims, cx.class(init)));
        out.push(Term::concatenate(to, reduced.collect()));
    }
}

/// Parts may be combined afterwards: for sums of floats as the policy allows.
fn in_parts(cx: &Context<'_>, combiner: Binary, node: &TensorNode) -> bool {
    match combiner {
        Binary::Maximum | Binary::Minimum | Binary::And | Binary::Or => true,
        Binary::Add | Binary::Multiply | Binary::Xor => cx.may_reassociate(node.shape().elem),
        _ => false,
    }
}

fn reduced(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((dims, combiner, x, init)) = parts(node) else { return };
    let (elem, lens) = (node.shape().elem, &cx.shape(x).dims);
    let wanted =
        !cx.is_constant(class) && in_parts(cx, combiner, node) && cx.vocabulary.has(combiner.name(), elem);
    let Some(z) = neutral(combiner, elem).filter(|_| wanted) else { return };
    for sizes in reductions(cx, node, dims, combiner).filter(|s| s.len() == lens.len()) {
        let Some(d) = dims.iter().copied().find(|&d| lens[d] > sizes[d].max) else { continue };
        let Some(pieces) = pieces(lens[d], sizes[d]) else { continue };
        let mut sum: Option<Term> = None;
        for (start, len) in pieces {
            let init = if sum.is_none() { cx.class(init) } else { Term::splat(z.clone(), &[]) };
            let part = cx.class(x).slice(d, start, len).reduce(combiner, dims, init);
            sum = Some(match sum {
                None => part,
                Some(before) => Term::binary(combiner, before, part),
            });
        }
        out.extend(sum);
    }
}

fn padded(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((dims, combiner, x, init)) = parts(node) else { return };
    let (elem, lens) = (node.shape().elem, &cx.shape(x).dims);
    let wanted = !cx.is_constant(class) && in_parts(cx, combiner, node);
    let Some(z) = neutral(combiner, elem).filter(|_| wanted) else { return };
    for sizes in reductions(cx, node, dims, combiner).filter(|s| s.len() == lens.len()) {
        let Some(d) = dims.iter().copied().find(|&d| lens[d] < sizes[d].min) else { continue };
        let mut rest = lens.clone();
        rest[d] = sizes[d].min - lens[d];
        let whole = Term::concatenate(d, vec![cx.class(x), Term::splat(z.clone(), &rest)]);
        out.push(whole.reduce(combiner, dims, cx.class(init)));
    }
}

/// A dimension of the result that is longer than an instruction with the node's operator takes, and its pieces. What
/// elementwise operators, movement and products read is cut where these are cut.
fn too_long(cx: &Context<'_>, class: Id, node: &TensorNode) -> Vec<(usize, Vec<(u64, u64)>)> {
    let lens = &node.shape().dims;
    let cut_by_user = |user: &TensorNode| {
        is_elementwise(user.op()) || is_movement(user.op()) || matches!(user.op(), OpKind::Dot(_))
    };
    if cx.is_constant(class) || cx.users(class).any(cut_by_user) {
        return Vec::new();
    }
    let all = cx.vocabulary.sizes(&key(node.op()), node.shape().elem).filter(|s| s.len() == lens.len());
    all.filter_map(|sizes| {
        let d = (0..lens.len()).find(|&d| lens[d] > sizes[d].max)?;
        pieces(lens[d], sizes[d]).map(|p| (d, p))
    })
    .collect()
}

fn broadcast(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Broadcast { dims }, &[x]) = (node.op(), &node.operands[..]) else { return };
    if dims.is_empty() {
        return;
    }
    for (d, pieces) in too_long(cx, class, node) {
        let parts = pieces.iter().map(|&(start, len)| {
            let of = match dims.iter().position(|&e| e == d) {
                Some(at) => cx.class(x).slice(at, start, len),
                None => cx.class(x),
            };
            let mut lens = node.shape().dims.clone();
            lens[d] = len;
            of.broadcast(dims, &lens)
        });
        out.push(Term::concatenate(d, parts.collect()));
    }
}

fn transpose(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Transpose { perm }, &[x]) = (node.op(), &node.operands[..]) else { return };
    for (d, pieces) in too_long(cx, class, node) {
        let parts = pieces.iter().map(|&(start, len)| cx.class(x).slice(perm[d], start, len).transpose(perm));
        out.push(Term::concatenate(d, parts.collect()));
    }
}

fn reverse(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Reverse { dims }, &[x]) = (node.op(), &node.operands[..]) else { return };
    for (d, pieces) in too_long(cx, class, node) {
        let total = node.shape().dims[d];
        let parts = pieces.iter().map(|&(start, len)| {
            let from = if dims.contains(&d) { total - start - len } else { start };
            let of = cx.class(x).slice(d, from, len);
            Term::node(node.op().clone(), of.shape.clone(), vec![of])
        });
        out.push(Term::concatenate(d, parts.collect()));
    }
}
