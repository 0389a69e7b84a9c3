//! Values that are loaded or stored in pieces: instructions that compute often take more at once than those that move
//! between main memory and their buffers. Such a value is a concatenation of its slices, side by side in its slot. It is
//! made one when the rules are done, since nothing is gained by rewriting the pieces. Only values that an instruction
//! takes or gives whole, and that nothing moves whole: it is too long, or lies in memory at more than one pitch.

use super::context::Context;
use super::facts::TensorGraph;
use super::language::{HeadOp, is_movement};
use super::rules::fits;
use super::term::Term;
use super::vocabulary::{Transfer, Vocabulary};
use crate::numerics::FloatPolicy;
use act_hlo::OpKind;
use egg::Id;
use std::collections::BTreeSet;

/// Most pieces that one value is cut into.
const PIECES: u64 = 64;
/// Longest way of views between a slot and what is computed.
const STEPS: usize = 3;

/// Adds the pieces in which the loads and stores of a description move what is too long for them. `results` are the
/// classes that are stored.
pub(crate) fn cut(egraph: &mut TensorGraph, results: &[Id], vocabulary: &Vocabulary, policy: FloatPolicy) {
    let cx = Context::new(egraph, vocabulary, policy);
    let stored = stored(&cx, results.iter().map(|&id| egraph.find(id)).collect());
    let mut ids: Vec<Id> = egraph.classes().map(|class| class.id).collect();
    ids.sort_unstable();
    let mut found: Vec<(Id, Term)> = Vec::new();
    for id in ids {
        // What lies in memory and goes there again is moved by way of a slot.
        let loads = || cx.in_memory(id) && (stored.contains(&id) || is_taken(&cx, id, STEPS));
        let stores = || stored.contains(&id) && !cx.in_memory(id) && is_given(&cx, id, STEPS);
        let whole = &cx.shape(id).dims;
        let pieces = in_pieces(&cx, id, &vocabulary.loads, whole, loads);
        let pieces = pieces.into_iter().chain(in_pieces(&cx, id, &vocabulary.stores, whole, stores));
        found.extend(pieces.map(|term| (id, term)));
    }
    add(egraph, &found);
}

/// Adds the pieces in which loads move what lies in memory at more than one pitch; whether there are any.
pub(crate) fn cut_at_pitches(egraph: &mut TensorGraph, vocabulary: &Vocabulary, policy: FloatPolicy) -> bool {
    let cx = Context::new(egraph, vocabulary, policy);
    let mut ids: Vec<Id> = egraph.classes().map(|class| class.id).collect();
    ids.sort_unstable();
    let mut found: Vec<(Id, Term)> = Vec::new();
    for id in ids {
        let Some(runs) = cx.runs(id) else { continue };
        let pieces = in_pieces(&cx, id, &vocabulary.loads, &runs, || is_taken(&cx, id, STEPS));
        found.extend(pieces.into_iter().map(|term| (id, term)));
    }
    add(egraph, &found);
    !found.is_empty()
}

fn add(egraph: &mut TensorGraph, found: &[(Id, Term)]) {
    for (id, term) in found {
        let pieces = term.add_to(egraph);
        egraph.union(*id, pieces);
    }
    egraph.rebuild();
}

/// Whether the operator sees the same bytes as another type.
fn is_view(op: &HeadOp) -> bool {
    matches!(op, OpKind::Reshape | OpKind::Transpose { .. } | OpKind::BitcastConvert | OpKind::Copy)
}

/// The results, what they are views of, and the parts that they are put together from.
fn stored(cx: &Context<'_>, results: Vec<Id>) -> BTreeSet<Id> {
    let mut seen: BTreeSet<Id> = results.iter().copied().collect();
    let mut todo = results;
    while let Some(id) = todo.pop() {
        for node in cx.nodes(id) {
            if is_view(node.op()) || matches!(node.op(), OpKind::Concatenate { .. }) {
                todo.extend(node.operands.iter().map(|&o| cx.find(o)).filter(|&o| seen.insert(o)));
            }
        }
    }
    seen
}

/// Whether an instruction takes the class whole as an operand of what it computes.
fn is_taken(cx: &Context<'_>, class: Id, steps: usize) -> bool {
    cx.users_in_classes(class).any(|(of, user)| {
        if is_view(user.op()) {
            steps > 0 && is_taken(cx, of, steps - 1)
        } else {
            !matches!(user.op(), OpKind::Slice { .. } | OpKind::Concatenate { .. }) && fits(cx, user)
        }
    })
}

/// Whether the class is in a slot as a whole: an instruction computes it, or the kernel is given it there.
fn is_given(cx: &Context<'_>, class: Id, steps: usize) -> bool {
    cx.nodes(class).iter().any(|node| {
        if is_view(node.op()) {
            steps > 0 && is_given(cx, node.operands[0], steps - 1)
        } else {
            // What is given on chip lies in a slot already.
            let given = matches!(node.op(), OpKind::Parameter(_));
            given || !is_movement(node.op()) && !node.operands.is_empty() && fits(cx, node)
        }
    })
}

/// The value in pieces, for every transfer of such values, where none takes it whole and it is `wanted`; `runs`: so many
/// elements of every dimension lie at one pitch.
fn in_pieces(
    cx: &Context<'_>,
    class: Id,
    transfers: &[Transfer],
    runs: &[u64],
    wanted: impl Fn() -> bool,
) -> Vec<Term> {
    let shape = cx.shape(class);
    let of_type =
        || transfers.iter().filter(|t| t.bits == shape.elem.bits() && t.sizes.len() == shape.rank());
    let at_one_pitch = *runs == shape.dims;
    if of_type().next().is_none() || of_type().any(|t| at_one_pitch && t.takes(&shape.dims)) || !wanted() {
        return Vec::new();
    }
    let inner = |t: &&Transfer| {
        let pairs = t.sizes[t.access..].iter().zip(&shape.dims[t.access..]).zip(&runs[t.access..]);
        pairs.into_iter().all(|((s, d), run)| (s.min..=s.max).contains(d) && run == d)
    };
    of_type().filter(inner).filter_map(|t| cut_from(cx.class(class), t, runs, 0)).collect()
}

/// The value in the pieces that a transfer takes, from access dimension `d` on.
fn cut_from(value: Term, transfer: &Transfer, runs: &[u64], d: usize) -> Option<Term> {
    if d == transfer.access {
        return Some(value);
    }
    let (len, sizes) = (value.shape.dims[d], transfer.sizes[d]);
    let most = sizes.max.max(1);
    let step = if runs[d] == len { most } else { runs[d].min(most) };
    let count = len.div_ceil(step);
    let last = len.checked_sub(count.checked_sub(1)? * step)?;
    if count > PIECES || last < sizes.min || runs[d] != len && !runs[d].is_multiple_of(step) {
        return None;
    }
    let pieces = (0..count).map(|k| {
        let start = k * step;
        cut_from(value.clone().slice(d, start, step.min(len - start)), transfer, runs, d + 1)
    });
    Some(Term::concatenate(d, pieces.collect::<Option<_>>()?))
}
