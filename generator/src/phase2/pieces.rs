//! Identity instructions seen through: which parts of which producers a value consists of. Knows the pii graph only.

use crate::pii::{PiiGraph, PiiId, PiiOp};

/// A box of a producer's slot that is a box of some value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// An instruction, one of its further outputs, or an on-chip input.
    pub(super) producer: PiiId,
    /// Where the box starts in the producer's value, per access dimension.
    pub(super) at: Vec<u64>,
    /// Where the box starts in the value that the piece belongs to.
    pub(super) to: Vec<u64>,
    pub(super) len: Vec<u64>,
}

/// The pieces of every node, which together tile its value. Nodes in d0 have none. The graph has been validated.
pub(super) fn resolve(graph: &PiiGraph) -> Vec<Vec<Piece>> {
    let mut all: Vec<Vec<Piece>> = Vec::with_capacity(graph.nodes.len());
    for (index, node) in graph.nodes.iter().enumerate() {
        let operand = |id: &PiiId| all[id.0 as usize].iter();
        let pieces = match &node.op {
            PiiOp::HbmView(_) => Vec::new(),
            PiiOp::OnChipInput(_) | PiiOp::Instr { .. } | PiiOp::Output { .. } if node.buffer.is_none() => {
                Vec::new()
            }
            PiiOp::OnChipInput(_) | PiiOp::Instr { .. } | PiiOp::Output { .. } => vec![Piece {
                producer: PiiId(index as u32),
                at: vec![0; node.lens.len()],
                to: vec![0; node.lens.len()],
                len: node.lens.clone(),
            }],
            PiiOp::SliceH { start } => {
                node.operands.iter().flat_map(operand).filter_map(|p| cut(p, start, &node.lens)).collect()
            }
            PiiOp::ConcatH { dim } => {
                let mut along = 0;
                let mut pieces = Vec::new();
                for id in &node.operands {
                    for piece in operand(id) {
                        let mut piece = piece.clone();
                        piece.to[*dim] += along;
                        pieces.push(piece);
                    }
                    along += graph.node(*id).lens[*dim];
                }
                pieces
            }
        };
        all.push(pieces);
    }
    all
}

/// The part of `piece` inside the window `start :+ lens` of the value it belongs to, as a piece of that window.
fn cut(piece: &Piece, start: &[u64], lens: &[u64]) -> Option<Piece> {
    let mut cut = piece.clone();
    for d in 0..start.len() {
        let lo = piece.to[d].max(start[d]);
        let hi = (piece.to[d] + piece.len[d]).min(start[d] + lens[d]);
        if lo >= hi {
            return None;
        }
        cut.at[d] = piece.at[d] + (lo - piece.to[d]);
        cut.to[d] = lo - start[d];
        cut.len[d] = hi - lo;
    }
    Some(cut)
}
