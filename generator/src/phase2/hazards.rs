//! Which instruction must precede which beyond operands: readers before what overwrites them, loads of spilled values
//! after their stores.

use super::byte_runs::share_bytes;
use super::pieces::Piece;
use super::scope::Scope;
use super::skeleton::Step;
use crate::pii::{PiiId, PiiOp};
use act_isa::{Space, View};

/// Orders reads before the writes that destroy what they read (operands updated in place, bytes of d0 that are both
/// loaded and stored), and loads of spilled values after their stores.
pub(super) fn add(scope: &Scope<'_>, steps: &mut [Step]) {
    let reads: Vec<Vec<&Piece>> = steps.iter().map(|s| scope.read_pieces(s.node)).collect();
    let mut hazards: Vec<Vec<usize>> = vec![Vec::new(); steps.len()];
    for (writer, step) in steps.iter().enumerate() {
        let node = scope.graph.node(step.node);
        let instr = scope.isa.instr(step.op);
        let updated = (0..instr.outputs.len()).filter_map(|output| instr.updates_in_place(output));
        let updated = updated.filter_map(|k| node.operands.get(k));
        let mut updated: Vec<Piece> = updated.flat_map(|o| scope.pieces[o.0 as usize].clone()).collect();
        updated.extend(taken_over(scope, writer));
        for (reader, read) in reads.iter().enumerate() {
            let destroys = read.iter().any(|r| updated.iter().any(|u| share_cells(r, u)));
            let stores = stored_window(scope, step.node);
            let shares = stores.is_some_and(|stored| {
                loaded_windows(scope, steps[reader].node).any(|loaded| may_share_bytes(stored, loaded))
            });
            // Scratch bytes are read after they were written; of all others, it is the old contents that is read.
            let scratch = stores.is_some_and(|s| s.space == Space::Scratch);
            if reader != writer && (destroys || (shares && !scratch)) {
                hazards[writer].push(reader);
            }
            if reader != writer && shares && scratch {
                hazards[reader].push(writer);
            }
        }
    }
    for (step, hazards) in steps.iter_mut().zip(hazards) {
        step.hazards = hazards;
    }
}

/// Cells of parameters that the values of a step replace, because the kernel demands that a result takes over the
/// slot of a parameter.
fn taken_over(scope: &Scope<'_>, step: usize) -> Vec<Piece> {
    let mut cells = Vec::new();
    for (root, parameter) in scope.graph.roots.iter().zip(&scope.kernel.accumulators) {
        let input =
            parameter.and_then(|k| scope.nodes().find(|&n| scope.graph.node(n).op == PiiOp::OnChipInput(k)));
        let (Some(input), &[root]) = (input, root.as_slice()) else { continue };
        let of_step = |p: &&Piece| scope.step_of[p.producer.0 as usize] == Some(step);
        for piece in scope.pieces[root.0 as usize].iter().filter(of_step) {
            cells.push(Piece { producer: input, at: piece.to.clone(), ..piece.clone() });
        }
    }
    cells
}

fn stored_window<'a>(scope: &Scope<'a>, id: PiiId) -> Option<&'a View> {
    match &scope.graph.node(id).op {
        PiiOp::Instr { store, .. } => store.as_ref(),
        _ => None,
    }
}

fn loaded_windows<'a>(scope: &Scope<'a>, id: PiiId) -> impl Iterator<Item = &'a View> {
    scope.graph.node(id).operands.iter().filter_map(|&o| match &scope.graph.node(o).op {
        PiiOp::HbmView(view) => Some(view),
        _ => None,
    })
}

fn share_cells(a: &Piece, b: &Piece) -> bool {
    a.producer == b.producer
        && (0..a.at.len()).all(|d| a.at[d] < b.at[d] + b.len[d] && b.at[d] < a.at[d] + a.len[d])
}

/// Whether two windows of d0 may have a byte in common.
fn may_share_bytes(a: &View, b: &View) -> bool {
    a.space == b.space && (a.start.ivs != b.start.ivs || share_bytes(a, b))
}
