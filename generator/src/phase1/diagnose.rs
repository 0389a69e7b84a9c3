//! Why a kernel is not covered: the operator that a user should hear about.

use super::SelectError;
use super::demand::{Demand, DemandGraph, Expander};
use super::explore::{Explored, StopReason};
use super::facts::{Source, SourceView};
use super::language::is_movement;
use super::vocabulary::{Vocabulary, key};
use act_hlo::{Graph, NodeId, Op, OpKind};
use act_isa::Isa;

pub(crate) struct Diagnosis<'a> {
    pub(crate) isa: &'a Isa,
    pub(crate) vocabulary: &'a Vocabulary,
    pub(crate) explored: &'a Explored,
    pub(crate) expander: &'a Expander<'a>,
}

impl Diagnosis<'_> {
    /// The reason why result `root` of the kernel is not covered; `demands` are those that were looked at already.
    pub(crate) fn reason(&self, graph: &Graph, root: usize, demands: DemandGraph) -> SelectError {
        let available = self.available(graph, demands);
        let missing = self.missing(graph, root, &available);
        let named = |id: NodeId| (key(&graph.node(id).op), graph.shape(id).clone());
        let isa = self.isa.name.clone();
        let ready = |id: &&NodeId| graph.node(**id).operands.iter().all(|o| available[o.0 as usize]);
        // An operator that is in no instruction explains more than one that did not fit, but what has all of its
        // operands comes first: a rewrite may do without the operator where only its operand is missing.
        let foreign = |id: &&NodeId| {
            let op = &graph.node(**id).op;
            computes(op) && !self.vocabulary.names(&key(op))
        };
        let computed_ready = missing.iter().any(|id| ready(&id) && computes(&graph.node(*id).op));
        let foreign = missing.iter().find(|id| foreign(id) && (ready(id) || !computed_ready));
        if let Some(&id) = foreign {
            let (op, shape) = named(id);
            return SelectError::NoInstruction { isa, op, shape };
        }
        if self.explored.report.stop != StopReason::Saturated {
            return SelectError::LimitReached { isa, stop: self.explored.report.stop };
        }
        let blamed = missing
            .iter()
            .filter(|&&id| computes(&graph.node(id).op))
            .find(ready)
            .or_else(|| missing.iter().find(|&&id| computes(&graph.node(id).op)))
            .or_else(|| missing.iter().find(ready));
        match blamed {
            Some(&id) => {
                let (op, shape) = named(id);
                SelectError::NoCover { isa, op, shape }
            }
            None => SelectError::NoStore { isa, root },
        }
    }

    /// For every node whether its value is in d0 or can be made in some buffer.
    fn available(&self, graph: &Graph, mut demands: DemandGraph) -> Vec<bool> {
        let wanted: Vec<Vec<usize>> = graph
            .ids()
            .map(|id| {
                let class = self.explored.classes[id.0 as usize];
                let buffers = self.isa.buffer_ids();
                buffers.map(|b| self.expander.expand(&mut demands, Demand::OnChip(class, b))).collect()
            })
            .collect();
        let meetable = demands.meetable();
        graph
            .ids()
            .zip(wanted)
            .map(|(id, indices)| {
                let facts = &self.explored.egraph[self.explored.classes[id.0 as usize]].data;
                let given = |view: &SourceView| !matches!(view.source, Source::Stored(_));
                let in_memory = facts.value.is_some() || facts.views.iter().any(given);
                in_memory || indices.into_iter().any(|index| meetable[index])
            })
            .collect()
    }

    /// Nodes that are not available and that a root needs through nodes that are not available either, operands first.
    fn missing(&self, graph: &Graph, root: usize, available: &[bool]) -> Vec<NodeId> {
        let mut needed = vec![false; available.len()];
        if let Some(id) = graph.roots().get(root) {
            needed[id.0 as usize] = true;
        }
        for id in graph.ids().rev() {
            if needed[id.0 as usize] && !available[id.0 as usize] {
                for operand in &graph.node(id).operands {
                    needed[operand.0 as usize] = true;
                }
            }
        }
        graph.ids().filter(|id| needed[id.0 as usize] && !available[id.0 as usize]).collect()
    }
}

/// Operators that do more than move or convert data.
fn computes(op: &Op) -> bool {
    !is_movement(op) && !matches!(op, OpKind::Convert | OpKind::Parameter(_) | OpKind::Constant(_))
}
