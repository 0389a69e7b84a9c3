//! The parts of values that occupy their slots: the whole of a value while it is written, and whatever is read of it
//! for as long as it is.

use super::csp::Term;
use super::pieces::Piece;
use super::scope::{Scope, lengths};
use super::skeleton::{Owner, Part, Step};
use crate::pii::{PiiId, PiiOp};
use act_isa::Place;

/// The parts of every value: the whole of it while it is written, and whatever is read of it later.
pub(super) fn parts(scope: &Scope<'_>, steps: &[Step], slots: &[Option<Vec<Term>>]) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    let mut first = vec![None; scope.graph.nodes.len()];
    for id in scope.nodes() {
        let node = scope.graph.node(id);
        let owner = match (&node.op, scope.step_of[id.0 as usize]) {
            (PiiOp::OnChipInput(_), _) => Owner::Input(id),
            (PiiOp::Output { number }, Some(step)) => Owner::Output { step, number: *number },
            (_, Some(step)) => Owner::Output { step, number: 0 },
            _ => continue,
        };
        let (Some(buffer), Some(slot)) = (node.buffer, &slots[id.0 as usize]) else { continue };
        first[id.0 as usize] = Some(parts.len());
        parts.push(Part {
            owner,
            buffer: usize::from(buffer.0),
            start: slot.clone(),
            len: lengths(&node.lens),
            readers: Vec::new(),
            written: true,
            to_end: outlives(scope, id),
        });
    }
    let mut note = |piece: &Piece, reader: Option<usize>| {
        let Some(whole) = first[piece.producer.0 as usize] else { return };
        let whole_part = parts[whole].clone();
        let start: Vec<Term> = whole_part
            .start
            .iter()
            .zip(&piece.at)
            .map(|(t, &at)| Term {
                offset: t.offset.saturating_add(i64::try_from(at).unwrap_or(i64::MAX)),
                ..*t
            })
            .collect();
        let len = lengths(&piece.len);
        let same = parts.iter().position(|p| p.owner == whole_part.owner && p.start == start && p.len == len);
        let at = same.unwrap_or_else(|| {
            parts.push(Part { start, len, readers: Vec::new(), written: false, to_end: false, ..whole_part });
            parts.len() - 1
        });
        match reader {
            Some(step) => parts[at].readers.push(step),
            None => parts[at].to_end = true,
        }
    };
    for (number, step) in steps.iter().enumerate() {
        for piece in scope.read_pieces(step.node) {
            note(piece, Some(number));
        }
    }
    for (root, place) in scope.graph.roots.iter().zip(&scope.kernel.outs) {
        if matches!(place, Place::OnChip { .. }) {
            for piece in root.iter().flat_map(|id| &scope.pieces[id.0 as usize]) {
                note(piece, None);
            }
        }
    }
    parts
}

/// Whether a parameter must keep its value beyond the kernel: a loop carries it, and no result takes its place.
fn outlives(scope: &Scope<'_>, id: PiiId) -> bool {
    let PiiOp::OnChipInput(k) = scope.graph.node(id).op else { return false };
    let carried = matches!(scope.kernel.ins.get(k), Some(Place::OnChip { carried: Some(_), .. }));
    carried && !scope.kernel.accumulators.contains(&Some(k))
}
