//! Instructions that update an operand in place take its value away. Where several take one value, each but the last
//! gets a value of its own: made once more where that is a mere load or constant, else stored to scratch memory and
//! loaded. What only reads the value is ordered before the last taker (hazards.rs).

use super::spill::{Replacement, SpillPairs, appended, replacement, scratch_bytes};
use crate::pii::{PiiGraph, PiiId, PiiNode, PiiOp};
use act_isa::Isa;

/// The graph with at most one taker of every value.
pub(super) fn separated(isa: &Isa, pairs: &SpillPairs<'_>, graph: &PiiGraph) -> PiiGraph {
    let taken = |node: &PiiNode| -> Vec<usize> {
        let PiiOp::Instr { op, .. } = node.op else { return Vec::new() };
        let Some(instr) = isa.instrs.get(usize::from(op.0)) else { return Vec::new() };
        let updated = (0..instr.outputs.len()).filter_map(|output| instr.updates_in_place(output));
        updated.filter(|&k| k < node.operands.len()).collect()
    };
    let mut takers = vec![0usize; graph.nodes.len()];
    for node in &graph.nodes {
        for k in taken(node) {
            if let Some(count) = takers.get_mut(node.operands[k].0 as usize) {
                *count += 1;
            }
        }
    }
    // A value that the kernel returns on chip is nobody's to take.
    for id in graph.roots.iter().flatten() {
        if let Some(count) = takers.get_mut(id.0 as usize).filter(|count| **count > 0) {
            *count += 1;
        }
    }
    if takers.iter().all(|&count| count < 2) {
        return graph.clone();
    }
    let mut new = PiiGraph { nodes: Vec::new(), roots: Vec::new(), consts: graph.consts.clone() };
    let mut moved: Vec<PiiId> = Vec::with_capacity(graph.nodes.len());
    for node in &graph.nodes {
        let mut operands: Vec<PiiId> = node.operands.iter().map(|o| moved[o.0 as usize]).collect();
        for k in taken(node) {
            let value = node.operands[k].0 as usize;
            takers[value] -= 1;
            if takers[value] > 0
                && let Some(own) = replacement(pairs, graph, node.operands[k])
            {
                let reads: Vec<PiiId> = match &own {
                    Replacement::Remade(of) => of.operands.iter().map(|o| moved[o.0 as usize]).collect(),
                    Replacement::Spilled(_) => vec![operands[k]],
                };
                let like = graph.node(node.operands[k]);
                let scratch = scratch_bytes(graph).max(scratch_bytes(&new));
                operands[k] = appended(isa, &mut new, like, &own, reads, scratch);
            }
        }
        new.nodes.push(PiiNode { operands, ..node.clone() });
        moved.push(PiiId(new.nodes.len() as u32 - 1));
    }
    new.roots = graph.roots.iter().map(|root| root.iter().map(|o| moved[o.0 as usize]).collect()).collect();
    new
}
