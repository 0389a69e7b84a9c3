//! What is left of a fusion of which a region took a part: one piece per value that is still needed. A piece
//! depends on nothing that its value does not depend on, so pieces never wait for each other in a circle.

use super::flow::{Flow, FlowId, HostKind};
use act_hlo::Op;
use std::collections::{BTreeMap, BTreeSet};

/// A value of a fusion with all that is computed for it alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// In ascending order, the value itself last.
    pub(crate) members: Vec<FlowId>,
    /// What it reads, in ascending order.
    pub(crate) inputs: Vec<FlowId>,
}

/// Cuts fusions into pieces.
#[derive(Debug)]
pub(crate) struct Leftover<'a> {
    flow: &'a Flow,
    taken: BTreeSet<FlowId>,
    /// Values too expensive to compute once per piece: pieces of their own.
    shared: BTreeSet<FlowId>,
}

impl<'a> Leftover<'a> {
    /// `taken`: values that the host no longer computes; `asked`: values that regions read; `dissolved`: host
    /// indices of the fusions that are cut up.
    pub(crate) fn new(
        flow: &'a Flow,
        taken: BTreeSet<FlowId>,
        dissolved: &BTreeSet<usize>,
        asked: &BTreeSet<FlowId>,
    ) -> Leftover<'a> {
        let mut leftover = Leftover { flow, taken, shared: BTreeSet::new() };
        for &host in dissolved {
            leftover.share(host, asked);
        }
        leftover
    }

    /// Finds the expensive values of a fusion that several pieces need, until none is left.
    fn share(&mut self, host: usize, asked: &BTreeSet<FlowId>) {
        let HostKind::Fusion { root, elements } = &self.flow.hosts[host].kind else { return };
        let mut needed: BTreeSet<FlowId> =
            elements.clone().unwrap_or_else(|| vec![*root]).into_iter().collect();
        needed.extend(asked.iter().copied().filter(|&id| self.flow.node(id).host == host));
        needed.retain(|id| self.flow.node(*id).live && !self.taken.contains(id));
        loop {
            let mut pieces: BTreeMap<FlowId, u32> = BTreeMap::new();
            for &value in &needed {
                for member in self.piece(value).members {
                    *pieces.entry(member).or_default() += 1;
                }
            }
            let found: Vec<FlowId> = pieces
                .into_iter()
                .filter(|&(id, n)| n > 1 && !needed.contains(&id) && self.is_expensive(id))
                .map(|(id, _)| id)
                .collect();
            // A needed value may itself lie inside another piece.
            let inner = needed.iter().copied().filter(|&id| self.is_expensive(id));
            let before = self.shared.len();
            self.shared.extend(inner.chain(found.iter().copied()).collect::<Vec<_>>());
            if self.shared.len() == before {
                return;
            }
            needed.extend(found);
        }
    }

    fn is_expensive(&self, id: FlowId) -> bool {
        match self.flow.op(id) {
            Some(op) => matches!(op, Op::Dot(_) | Op::Reduce { .. }),
            None => self.flow.node(id).instruction.opcode() != "constant",
        }
    }

    /// The piece that computes `value`.
    pub(crate) fn piece(&self, value: FlowId) -> Piece {
        let host = self.flow.node(value).host;
        let mut members = BTreeSet::new();
        let mut inputs = BTreeSet::new();
        let mut pending = vec![value];
        while let Some(id) = pending.pop() {
            let border = id != value && (self.taken.contains(&id) || self.shared.contains(&id));
            if border || self.flow.node(id).host != host {
                inputs.insert(id);
            } else if members.insert(id) {
                let operands = &self.flow.node(id).operands;
                if self.flow.node(id).instruction.opcode() == "tuple" {
                    inputs.extend(operands);
                } else {
                    pending.extend(operands);
                }
            }
        }
        Piece { members: members.into_iter().collect(), inputs: inputs.into_iter().collect() }
    }
}
