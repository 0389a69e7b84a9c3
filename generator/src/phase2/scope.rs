//! A pii graph with what is read off it before anything is solved: the nodes that matter, their numbers as steps, and
//! identity instructions seen through.

use super::pieces::{Piece, resolve};
use super::shortage::Shortage;
use super::{AllocError, SpillSearch};
use crate::pii::{PiiGraph, PiiId, PiiOp};
use act_isa::{Isa, Space, TiledKernel};

pub(super) struct Scope<'a> {
    pub(super) isa: &'a Isa,
    pub(super) kernel: &'a TiledKernel,
    pub(super) graph: &'a PiiGraph,
    /// Nodes that a root depends on.
    needed: Vec<bool>,
    pub(super) pieces: Vec<Vec<Piece>>,
    /// Step number of every instruction node, and of its further outputs.
    pub(super) step_of: Vec<Option<usize>>,
}

impl<'a> Scope<'a> {
    pub(super) fn new(isa: &'a Isa, kernel: &'a TiledKernel, graph: &'a PiiGraph) -> Scope<'a> {
        let mut needed = vec![false; graph.nodes.len()];
        for id in graph.roots.iter().flatten() {
            needed[id.0 as usize] = true;
        }
        for index in (0..graph.nodes.len()).rev() {
            // Parameters occupy their slots, and spilled values are stored, whoever reads them.
            if matches!(graph.nodes[index].op, PiiOp::OnChipInput(_)) || is_spill(&graph.nodes[index].op) {
                needed[index] = true;
            }
            if needed[index] {
                for id in &graph.nodes[index].operands {
                    needed[id.0 as usize] = true;
                }
            }
        }
        let mut steps = 0;
        let mut step_of: Vec<Option<usize>> = Vec::with_capacity(graph.nodes.len());
        for (node, &needed) in graph.nodes.iter().zip(&needed) {
            step_of.push(match (&node.op, node.operands.as_slice()) {
                (PiiOp::Instr { .. }, _) if needed => {
                    steps += 1;
                    Some(steps - 1)
                }
                (PiiOp::Output { .. }, &[of]) if needed => step_of[of.0 as usize],
                _ => None,
            });
        }
        Scope { isa, kernel, graph, needed, pieces: resolve(graph), step_of }
    }

    /// The nodes that a root depends on, operands before users.
    pub(super) fn nodes(&self) -> impl Iterator<Item = PiiId> + use<> {
        let needed = self.needed.clone();
        (0..self.graph.nodes.len() as u32).map(PiiId).filter(move |id| needed[id.0 as usize])
    }

    pub(super) fn is_needed(&self, id: PiiId) -> bool {
        self.needed[id.0 as usize]
    }

    /// The problem has no answer whatever the order; what it lacks is told by the buffer of `node`.
    pub(super) fn no_fit(&self, node: PiiId) -> AllocError {
        let in_buffer = self.graph.node(node).buffer.is_some();
        let values = if in_buffer { std::slice::from_ref(&node) } else { &[] };
        let shortage = Shortage::of_values(self.isa, self.graph, values);
        AllocError::NoFit { shortage, orders: 0, spills: SpillSearch::default() }
    }

    /// The node of every output of an instruction, where somebody needs it.
    pub(super) fn outputs(&self, id: PiiId) -> Vec<Option<PiiId>> {
        let PiiOp::Instr { op, .. } = self.graph.node(id).op else { return Vec::new() };
        let mut nodes = vec![None; self.isa.instr(op).outputs.len()];
        if let Some(first) = nodes.first_mut() {
            *first = Some(id);
        }
        if nodes.len() > 1 {
            for other in self.nodes().filter(|&n| self.graph.node(n).operands == [id]) {
                if let PiiOp::Output { number } = self.graph.node(other).op {
                    nodes[number] = Some(other);
                }
            }
        }
        nodes
    }

    /// Steps whose values an instruction reads, in the order of its operands.
    pub(super) fn producers(&self, id: PiiId) -> Vec<usize> {
        let mut steps = Vec::new();
        for operand in &self.graph.node(id).operands {
            for piece in &self.pieces[operand.0 as usize] {
                if let Some(step) = self.step_of[piece.producer.0 as usize]
                    && !steps.contains(&step)
                {
                    steps.push(step);
                }
            }
        }
        steps
    }

    /// The pieces of all operands.
    pub(super) fn read_pieces(&self, id: PiiId) -> Vec<&Piece> {
        self.graph.node(id).operands.iter().flat_map(|o| &self.pieces[o.0 as usize]).collect()
    }
}

/// Whether the operation stores to scratch memory.
pub(super) fn is_spill(op: &PiiOp) -> bool {
    matches!(op, PiiOp::Instr { store: Some(view), .. } if view.space == Space::Scratch)
}

/// Lengths as signed numbers; those beyond i64 fit nowhere anyway.
pub(super) fn lengths(lens: &[u64]) -> Vec<i64> {
    lens.iter().map(|&l| i64::try_from(l).unwrap_or(i64::MAX)).collect()
}
