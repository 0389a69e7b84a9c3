//! Exploration: the kernel as an e-graph, and saturation with the rules within deterministic limits (modules 1 and 2 of
//! the ACT paper). egg's own runner is not used: its matches are substitutions of pattern variables, which cannot carry
//! attributes.

use super::facts::{TensorAnalysis, TensorGraph};
use super::language::{HeadOp, TensorNode};
use super::rules::{Context, Rule};
use super::term::Term;
use super::vocabulary::Vocabulary;
use crate::numerics::FloatPolicy;
use act_hlo::OpKind;
use act_isa::{Place, TiledKernel};
use egg::Id;
use std::collections::BTreeMap;

/// Why exploration ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StopReason {
    /// No rule has anything to add.
    Saturated,
    Iterations,
    Nodes,
}

/// What exploration did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exploration {
    pub iterations: usize,
    pub nodes: usize,
    pub classes: usize,
    pub stop: StopReason,
    /// How often each rule joined two classes or added a node, by name.
    pub fired: BTreeMap<&'static str, usize>,
}

/// The kernel's e-graph and the class of every node of its graph.
pub(crate) struct Explored {
    pub(crate) egraph: TensorGraph,
    pub(crate) classes: Vec<Id>,
    pub(crate) report: Exploration,
}

/// The initial e-graph.
pub(crate) fn initial(kernel: &TiledKernel, policy: FloatPolicy) -> (TensorGraph, Vec<Id>) {
    let parameters = kernel.ins.iter().map(|place| match place {
        Place::Hbm(view) => Some(view.clone()),
        Place::OnChip { .. } => None,
    });
    let analysis = TensorAnalysis::new(parameters.collect(), policy >= FloatPolicy::Xla);
    let mut egraph = TensorGraph::new(analysis);
    let mut classes: Vec<Id> = Vec::with_capacity(kernel.graph.nodes().len());
    for node in kernel.graph.nodes() {
        let interned: Result<HeadOp, std::convert::Infallible> =
            node.op.try_map(|d| Ok(*d), |literal| Ok(egraph.analysis.intern(literal.clone())));
        let op = match interned {
            Ok(op) => op,
            Err(never) => match never {},
        };
        let operands = node.operands.iter().map(|o| classes[o.0 as usize]).collect();
        classes.push(egraph.add(TensorNode::new(op, node.shape.clone(), operands)));
    }
    egraph.rebuild();
    (egraph, classes)
}

/// Applies the rules until nothing changes or a limit is reached.
pub(crate) fn saturate(
    mut egraph: TensorGraph,
    classes: Vec<Id>,
    rules: &[&'static Rule],
    vocabulary: &Vocabulary,
    policy: FloatPolicy,
    iterations: usize,
    nodes: usize,
) -> Explored {
    let mut fired: BTreeMap<&'static str, usize> = BTreeMap::new();
    let mut done = 0;
    let stop = loop {
        if done == iterations {
            break StopReason::Iterations;
        }
        done += 1;
        let proposals = proposals(&egraph, rules, vocabulary, policy);
        let mut changed = false;
        let mut full = false;
        for (rule, class, term) in proposals {
            let before = (egraph.total_size(), egraph.number_of_classes());
            let right = term.add_to(&mut egraph);
            let joined = egraph.union(class, right);
            if joined || (egraph.total_size(), egraph.number_of_classes()) != before {
                changed = true;
                *fired.entry(rule).or_insert(0) += 1;
            }
            if egraph.total_size() >= nodes || egraph.analysis.clash().is_some() {
                full = true;
                break;
            }
        }
        egraph.rebuild();
        if full || egraph.total_size() >= nodes {
            break StopReason::Nodes;
        }
        if !changed {
            break StopReason::Saturated;
        }
    };
    let classes = classes.into_iter().map(|id| egraph.find(id)).collect();
    let report = Exploration {
        iterations: done,
        nodes: egraph.total_size(),
        classes: egraph.number_of_classes(),
        stop,
        fired,
    };
    Explored { egraph, classes, report }
}

/// Everything the rules propose for the present e-graph, in a fixed order.
pub(crate) fn proposals(
    egraph: &TensorGraph,
    rules: &[&'static Rule],
    vocabulary: &Vocabulary,
    policy: FloatPolicy,
) -> Vec<(&'static str, Id, Term)> {
    let cx = Context { egraph, vocabulary, policy };
    let mut ids: Vec<Id> = egraph.classes().map(|c| c.id).collect();
    ids.sort();
    let mut all = Vec::new();
    let mut terms = Vec::new();
    for id in ids {
        for node in &egraph[id].nodes {
            if matches!(node.op(), OpKind::Parameter(_) | OpKind::Constant(_)) {
                continue;
            }
            for rule in rules {
                (rule.rewrite)(&cx, id, node, &mut terms);
                all.extend(terms.drain(..).map(|term| (rule.name, id, term)));
            }
        }
    }
    all
}
