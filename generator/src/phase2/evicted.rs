//! Values of a buffer that live on chip from their making to the next instruction only: stored once, and loaded by every
//! instruction that reads them, or made again there. What fits in no other way fits so, if every instruction fits by
//! itself. Knows nothing of how a graph is ordered or placed.

use super::spill::{Replacement, SpillPairs, appended, replacement, scratch_bytes};
use crate::pii::{PiiGraph, PiiId, PiiNode, PiiOp};
use act_isa::Isa;
use std::collections::BTreeSet;

/// The values in these buffers that can be evicted: made by an instruction, read by another, and to be had again.
pub(super) fn candidates(
    pairs: &SpillPairs<'_>,
    graph: &PiiGraph,
    buffers: &BTreeSet<usize>,
) -> BTreeSet<PiiId> {
    let ids = (0..graph.nodes.len() as u32).map(PiiId);
    let made = |id: &PiiId| {
        let node = graph.node(*id);
        matches!(node.op, PiiOp::Instr { .. } | PiiOp::Output { .. })
            && node.buffer.is_some_and(|b| buffers.contains(&usize::from(b.0)))
    };
    let read = |id: &PiiId| {
        graph.nodes.iter().any(|n| !matches!(n.op, PiiOp::Output { .. }) && n.operands.contains(id))
    };
    ids.filter(made).filter(read).filter(|&id| replacement(pairs, graph, id).is_some()).collect()
}

/// How an evicted value is had by its next reader.
enum Kept {
    /// In this node, which nobody reads yet.
    Fresh { load: PiiId },
    /// By this node made once more, of these operands.
    Again { node: PiiNode, reads: Vec<PiiId> },
}

/// The graph with these values evicted.
pub(super) fn evicted(
    isa: &Isa,
    pairs: &SpillPairs<'_>,
    graph: &PiiGraph,
    values: &BTreeSet<PiiId>,
) -> PiiGraph {
    let mut new = PiiGraph { nodes: Vec::new(), roots: Vec::new(), consts: graph.consts.clone() };
    let mut moved: Vec<PiiId> = Vec::with_capacity(graph.nodes.len());
    let mut kept: Vec<Option<Kept>> = Vec::with_capacity(graph.nodes.len());
    for (id, node) in (0..).map(PiiId).zip(&graph.nodes) {
        // A further output is of the instruction itself.
        let own = matches!(node.op, PiiOp::Output { .. });
        let mut operands = Vec::with_capacity(node.operands.len());
        for &operand in &node.operands {
            let at = operand.0 as usize;
            operands.push(match kept[at].as_mut().filter(|_| !own) {
                None => moved[at],
                Some(Kept::Fresh { load }) => {
                    let load = *load;
                    let node = new.node(load).clone();
                    kept[at] = Some(Kept::Again { reads: node.operands.clone(), node });
                    load
                }
                Some(Kept::Again { node, reads }) => {
                    new.nodes.push(PiiNode { operands: reads.clone(), ..node.clone() });
                    PiiId(new.nodes.len() as u32 - 1)
                }
            });
        }
        new.nodes.push(PiiNode { operands, ..node.clone() });
        let made = PiiId(new.nodes.len() as u32 - 1);
        moved.push(made);
        let again = values.contains(&id).then(|| replacement(pairs, graph, id)).flatten();
        kept.push(again.map(|again| match again {
            // The first reader takes the value as it is made.
            Replacement::Remade(node) => {
                let reads = node.operands.iter().map(|o| moved[o.0 as usize]).collect();
                Kept::Again { node, reads }
            }
            spilled => {
                let scratch = scratch_bytes(graph).max(scratch_bytes(&new));
                Kept::Fresh { load: appended(isa, &mut new, node, &spilled, vec![made], scratch) }
            }
        }));
    }
    new.roots = graph.roots.iter().map(|root| root.iter().map(|o| moved[o.0 as usize]).collect()).collect();
    without_unread(&new)
}

/// The graph without values that are made for nobody: of what is made again by each of its readers, the first.
fn without_unread(graph: &PiiGraph) -> PiiGraph {
    let mut wanted = vec![false; graph.nodes.len()];
    for id in graph.roots.iter().flatten() {
        wanted[id.0 as usize] = true;
    }
    for (at, node) in graph.nodes.iter().enumerate().rev() {
        // Stores and parameters are there for themselves.
        wanted[at] |= matches!(node.op, PiiOp::Instr { store: Some(_), .. } | PiiOp::OnChipInput(_));
        if wanted[at] {
            node.operands.iter().for_each(|o| wanted[o.0 as usize] = true);
        }
    }
    let mut new = PiiGraph { nodes: Vec::new(), roots: Vec::new(), consts: graph.consts.clone() };
    let mut moved: Vec<PiiId> = Vec::with_capacity(graph.nodes.len());
    for (node, wanted) in graph.nodes.iter().zip(wanted) {
        moved.push(PiiId(new.nodes.len() as u32));
        if wanted {
            let operands = node.operands.iter().map(|o| moved[o.0 as usize]).collect();
            new.nodes.push(PiiNode { operands, ..node.clone() });
        }
    }
    new.roots = graph.roots.iter().map(|root| root.iter().map(|o| moved[o.0 as usize]).collect()).collect();
    new
}
