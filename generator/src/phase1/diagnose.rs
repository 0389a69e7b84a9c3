//! Why a kernel is not covered: the operator that a user should hear about.

use super::SelectError;
use super::demand::{Demand, DemandGraph, Expander};
use super::explore::{Explored, StopReason};
use super::facts::{Source, SourceView};
use super::language::{TensorNode, is_movement};
use super::vocabulary::{Vocabulary, key};
use act_hlo::{Graph, NodeId, Op, OpKind};
use act_isa::Isa;
use egg::Id;
use std::collections::BTreeSet;

pub(crate) struct Diagnosis<'a> {
    pub(crate) isa: &'a Isa,
    pub(crate) vocabulary: &'a Vocabulary,
    pub(crate) explored: &'a Explored,
    pub(crate) expander: &'a Expander<'a>,
}

impl Diagnosis<'_> {
    /// The reason why result `root` of the kernel is not covered; `demands` are those that were looked at already.
    pub(crate) fn reason(&self, graph: &Graph, root: usize, demands: DemandGraph) -> SelectError {
        if let Some(id) = self.foreign(graph, root) {
            let (isa, op, shape) = (self.isa.name.clone(), key(&graph.node(id).op), graph.shape(id).clone());
            return SelectError::NoInstruction { isa, op, shape };
        }
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

    /// An operator that result `root` needs, that is in no instruction, and in whose place the rewrites have found nothing
    /// else: whatever the sizes, the result cannot be had.
    fn foreign(&self, graph: &Graph, root: usize) -> Option<NodeId> {
        let expressible = self.expressible();
        let is = |id: &NodeId| expressible.contains(&self.explored.classes[id.0 as usize]);
        let mut needed = vec![false; graph.nodes().len()];
        needed[graph.roots().get(root)?.0 as usize] = true;
        for id in graph.ids().rev() {
            if needed[id.0 as usize] && !is(&id) {
                graph.node(id).operands.iter().for_each(|o| needed[o.0 as usize] = true);
            }
        }
        graph.ids().find(|id| {
            let node = graph.node(*id);
            needed[id.0 as usize]
                && !is(id)
                && node.operands.iter().all(is)
                && computes(&node.op)
                && !self.vocabulary.names(&key(&node.op))
        })
    }

    /// The classes that can be written with the operators of instructions, sizes and places aside.
    fn expressible(&self) -> BTreeSet<Id> {
        let egraph = &self.explored.egraph;
        let mut ids: Vec<Id> = egraph.classes().map(|class| class.id).collect();
        ids.sort_unstable();
        let mut found: BTreeSet<Id> = BTreeSet::new();
        loop {
            let before = found.len();
            for &id in &ids {
                let given =
                    |node: &TensorNode| matches!(node.op(), OpKind::Parameter(_) | OpKind::Constant(_));
                let has = |node: &TensorNode| {
                    let op = node.op();
                    let moves = is_movement(op)
                        || matches!(op, OpKind::Convert | OpKind::Concatenate { .. } | OpKind::Pad { .. });
                    (moves || self.vocabulary.has(&key(op), node.shape().elem))
                        && node.operands.iter().all(|&o| found.contains(&egraph.find(o)))
                };
                if !found.contains(&id)
                    && (egraph[id].data.value.is_some()
                        || egraph[id].nodes.iter().any(|node| given(node) || has(node)))
                {
                    found.insert(id);
                }
            }
            if found.len() == before {
                return found;
            }
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
