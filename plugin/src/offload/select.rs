//! Which regions run on the device: around every contraction, and around what else computes where that is wanted, the
//! largest region that the compiler takes.

use super::compiler::{CompiledRegion, RegionCompiler, RegionId};
use super::flow::{Flow, FlowId};
use super::grow::{Ground, Limits};
use super::kernel_graph::KernelGraph;
use super::refusal::{Attempt, Refusal, RefusalReason, source_json};
use super::region::{Contracted, Region};
use super::rewrite::Planned;
use super::scope::Scope;
use super::seeds::{self, CONTRACTIONS, Seeds};
use act_hlo::proto::{Computation, HloModule, Instruction};
use act_hlo::{Graph, Op, Shape, SourceLoc};
use act_isa::View;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A region that runs on the device.
#[derive(Clone, Debug)]
pub struct OffloadedRegion {
    pub region: RegionId,
    /// HLO name of the operator that it was grown from.
    pub op: String,
    /// Name of the computation that it is part of.
    pub computation: String,
    pub compiled: CompiledRegion,
    /// Operators on the device by HLO name.
    pub operators: BTreeMap<String, usize>,
    pub operands: Vec<Shape>,
    pub results: Vec<Shape>,
    /// Where that operator comes from.
    pub source: Option<SourceLoc>,
    /// Regions that were tried, the last one taken.
    pub attempts: Vec<Attempt>,
    /// Neighbours that stayed outside because the target rules them out: operator and reason.
    pub bounded_by: BTreeSet<(String, String)>,
}

impl OffloadedRegion {
    /// The region as a line of the dump.
    pub fn json(&self) -> serde_json::Value {
        let shapes = |s: &[Shape]| s.iter().map(ToString::to_string).collect::<Vec<_>>();
        serde_json::json!({
            "region": self.region.0,
            "where": "device",
            "op": self.op,
            "computation": self.computation,
            "key": self.compiled.key,
            "operators": self.operators,
            "operands": shapes(&self.operands),
            "results": shapes(&self.results),
            "source": source_json(self.source.as_ref()),
            "attempts": self.attempts.iter().map(Attempt::json).collect::<Vec<_>>(),
            "bounded_by": self.bounded_by.iter()
                .map(|(op, reason)| serde_json::json!({ "op": op, "reason": reason }))
                .collect::<Vec<_>>(),
            "summary": self.compiled.summary,
        })
    }

    /// The region taken back.
    pub(crate) fn refused(self, reason: RefusalReason) -> Refusal {
        Refusal { region: self.region, op: self.op, source: self.source, reason, attempts: self.attempts }
    }
}

/// The regions of one computation.
#[derive(Debug)]
pub(crate) struct Selection {
    pub(crate) planned: Vec<Planned>,
}

/// What the compiler was asked: a region and where its operands and results lie.
type Question = (Graph, Vec<View>, Vec<View>);

/// Answers of the compiler; models repeat their layers.
pub(crate) type Answers = HashMap<Question, Result<CompiledRegion, String>>;

/// A region that was taken, or everything that was tried for one.
type Tried = Result<(Region, KernelGraph, CompiledRegion, Vec<Attempt>), Vec<Attempt>>;

/// Selects the regions of a module.
pub(crate) struct Selector<'a> {
    compiler: &'a dyn RegionCompiler,
    limits: Limits,
    seeds: Seeds,
    next: u32,
    pub(crate) answers: Answers,
    /// Seeds that have been looked at.
    seen: BTreeSet<i64>,
    /// What is known already against a contraction, by its instruction's id.
    known: BTreeMap<i64, RefusalReason>,
    /// Why contractions stay on the host, by their instructions' ids.
    pub(crate) reasons: BTreeMap<i64, RefusalReason>,
    pub(crate) regions: Vec<OffloadedRegion>,
    pub(crate) refusals: Vec<Refusal>,
}

impl<'a> Selector<'a> {
    pub(crate) fn new(
        compiler: &'a dyn RegionCompiler,
        limits: Limits,
        seeds: Seeds,
        known: BTreeMap<i64, RefusalReason>,
        answers: Answers,
    ) -> Selector<'a> {
        Selector {
            compiler,
            limits,
            seeds,
            next: 0,
            answers,
            seen: BTreeSet::new(),
            known,
            reasons: BTreeMap::new(),
            regions: Vec::new(),
            refusals: Vec::new(),
        }
    }

    fn fresh_region(&mut self) -> RegionId {
        let id = RegionId(self.next);
        self.next += 1;
        id
    }

    pub(crate) fn select(&mut self, module: &HloModule, computation: &Computation, flow: &Flow) -> Selection {
        let ruled_out = self.ruled_out(flow);
        let unusable: BTreeSet<FlowId> = ruled_out.keys().copied().collect();
        let mut contracted = Contracted::new(flow);
        let mut planned = Vec::new();
        let live = |id: &FlowId| flow.node(*id).live;
        let contractions = flow.ids().filter(live).filter(|&id| seeds::is_contraction(flow, id));
        let others = flow.ids().filter(live).filter(|&id| seeds::computes(flow, id));
        let others = others.filter(|_| self.seeds == Seeds::All);
        for seed in contractions.chain(others).collect::<Vec<_>>() {
            let node = flow.node(seed);
            self.seen.insert(node.instruction.id());
            if contracted.is_taken(seed) {
                continue;
            }
            let id = self.fresh_region();
            let stands_alone = match (&node.takable, ruled_out.get(&seed)) {
                _ if self.known.contains_key(&node.instruction.id()) => {
                    self.known.get(&node.instruction.id()).cloned()
                }
                (Err(reason), _) => Some(reason.clone()),
                (Ok(_), Some(reason)) => Some(RefusalReason::RuledOut(reason.clone())),
                (Ok(_), None) => None,
            };
            if let Some(reason) = stands_alone {
                self.refuse(module, &node.instruction, id, reason, Vec::new());
                continue;
            }
            let ground = Ground { flow, contracted: &contracted, ruled_out: &unusable, limits: self.limits };
            let tried = if seeds::is_contraction(flow, seed) {
                self.try_all(module, flow, id, ground.candidates(seed))
            } else {
                self.around(module, &ground, id, seed)
            };
            match tried {
                Ok((region, graph, compiled, attempts)) => {
                    contracted.take(&region.core(flow));
                    self.note(
                        computation,
                        flow,
                        id,
                        seed,
                        &region,
                        &graph,
                        compiled.clone(),
                        attempts,
                        &ruled_out,
                        module,
                    );
                    planned.push(Planned {
                        id,
                        seed,
                        region,
                        inputs: graph.inputs.iter().map(|&id| flow.memory_of(id)).collect(),
                        outputs: graph.outputs,
                        key: compiled.key,
                    });
                }
                Err(attempts) => {
                    let reason = attempts.last().and_then(|a| a.refused.clone());
                    let reason = reason.unwrap_or_else(|| "it is not convex".to_owned());
                    let reason = RefusalReason::NotCompiled(reason);
                    self.refuse(module, &node.instruction, id, reason, attempts);
                }
            }
        }
        Selection { planned }
    }

    /// Values that the target can never have in a region, and why.
    fn ruled_out(&self, flow: &Flow) -> BTreeMap<FlowId, String> {
        let mut found = BTreeMap::new();
        for id in flow.ids() {
            let node = flow.node(id);
            let Ok(converted) = &node.takable else { continue };
            let arrays: Vec<&Shape> =
                node.operands.iter().filter_map(|&o| Some(&flow.array(o)?.shape)).collect();
            let mut operands = arrays;
            for (op, shape) in &converted.steps {
                if let Some(reason) = self.compiler.rules_out(op, &operands, shape) {
                    found.insert(id, reason);
                    break;
                }
                operands = vec![shape];
            }
        }
        found
    }

    /// Offers regions around a seed that is no contraction: the largest, and smaller ones of what compiles by itself.
    fn around(&mut self, module: &HloModule, ground: &Ground<'_>, id: RegionId, seed: FlowId) -> Tried {
        let flow = ground.flow;
        let largest = ground.without_contraction(seed);
        let mut attempts = match self.try_all(module, flow, id, vec![largest.clone()]) {
            Err(attempts) => attempts,
            taken => return taken,
        };
        let mut kept = BTreeSet::from([seed]);
        for &member in &largest.members {
            let alone = KernelGraph::of(module, flow, &Region::of([member]));
            if member != seed && alone.is_ok_and(|graph| self.compile(&graph, id).is_ok()) {
                kept.insert(member);
            }
        }
        let mut halves = ground.halves(seed, &kept);
        halves.retain(|region| *region != largest);
        match self.try_all(module, flow, id, halves) {
            Ok((region, graph, compiled, later)) => {
                attempts.extend(later);
                Ok((region, graph, compiled, attempts))
            }
            Err(later) => {
                attempts.extend(later);
                Err(attempts)
            }
        }
    }

    /// Offers the candidates one after another; on success with what was tried until then.
    fn try_all(&mut self, module: &HloModule, flow: &Flow, id: RegionId, candidates: Vec<Region>) -> Tried {
        let mut attempts = Vec::new();
        for region in candidates {
            let operators = region.members.len();
            let mut graph = match KernelGraph::of(module, flow, &region) {
                Ok(graph) => graph,
                Err(e) => {
                    attempts.push(Attempt { operators, refused: Some(e.to_string()) });
                    continue;
                }
            };
            graph.graph.name = format!("region{}", id.0);
            match self.compile(&graph, id) {
                Ok(compiled) => {
                    attempts.push(Attempt { operators, refused: None });
                    return Ok((region, graph, compiled, attempts));
                }
                Err(reason) => attempts.push(Attempt { operators, refused: Some(reason) }),
            }
        }
        Err(attempts)
    }

    fn compile(&mut self, graph: &KernelGraph, id: RegionId) -> Result<CompiledRegion, String> {
        let key = graph.canonical();
        if let Some(answer) = self.answers.get(&key) {
            return answer.clone();
        }
        let answer =
            self.compiler.compile(&graph.graph, &graph.operands, &graph.results, id).map_err(|refusal| {
                match refusal.node {
                    Some(node) if (node.0 as usize) < graph.graph.nodes().len() => {
                        format!("{}: {}", graph.graph.node(node).op.name(), refusal.reason)
                    }
                    _ => refusal.reason,
                }
            });
        self.answers.insert(key, answer.clone());
        answer
    }

    #[expect(clippy::too_many_arguments, reason = "everything that is told of a region, told once")]
    fn note(
        &mut self,
        computation: &Computation,
        flow: &Flow,
        region: RegionId,
        seed: FlowId,
        members: &Region,
        graph: &KernelGraph,
        compiled: CompiledRegion,
        attempts: Vec<Attempt>,
        ruled_out: &BTreeMap<FlowId, String>,
        module: &HloModule,
    ) {
        let mut operators = BTreeMap::new();
        for node in graph.graph.nodes() {
            if !matches!(node.op, Op::Parameter(_) | Op::Constant(_)) {
                *operators.entry(node.op.name().to_owned()).or_default() += 1;
            }
        }
        let neighbours = members
            .members
            .iter()
            .flat_map(|&id| flow.node(id).operands.iter().chain(&flow.node(id).users).copied());
        let bounded_by = neighbours
            .filter_map(|n| Some((flow.node(n).instruction.opcode().to_owned(), ruled_out.get(&n)?.clone())))
            .collect();
        let shapes = |ids: &[FlowId]| {
            ids.iter().filter_map(|&id| Some(flow.array(id)?.shape.clone())).collect::<Vec<_>>()
        };
        self.regions.push(OffloadedRegion {
            region,
            op: flow.node(seed).instruction.opcode().to_owned(),
            computation: computation.name().to_owned(),
            compiled,
            operators,
            operands: shapes(&graph.inputs),
            results: shapes(&graph.outputs),
            source: flow.source(module, seed),
            attempts,
            bounded_by,
        });
    }

    fn refuse(
        &mut self,
        module: &HloModule,
        instruction: &Instruction,
        region: RegionId,
        reason: RefusalReason,
        attempts: Vec<Attempt>,
    ) {
        self.reasons.insert(instruction.id(), reason.clone());
        self.refusals.push(Refusal {
            region,
            op: instruction.opcode().to_owned(),
            source: module.source(instruction).ok().flatten(),
            reason,
            attempts,
        });
    }

    /// Takes a region back.
    pub(crate) fn withdraw(&mut self, region: RegionId, reason: RefusalReason) {
        if let Some(at) = self.regions.iter().position(|r| r.region == region) {
            self.refusals.push(self.regions.remove(at).refused(reason));
        }
    }

    /// Notes the contractions of computations and fusions in which no region is looked for.
    pub(crate) fn refuse_hidden(&mut self, module: &HloModule, scope: &Scope) {
        for computation in module.computations() {
            for instruction in computation.instructions() {
                if CONTRACTIONS.contains(&instruction.opcode()) && self.seen.insert(instruction.id()) {
                    let caller = scope.called_by.get(&computation.id()).map_or("nothing", String::as_str);
                    let known = self.known.get(&instruction.id()).cloned();
                    let reason = known.unwrap_or_else(|| RefusalReason::CalledBy(caller.to_owned()));
                    let id = self.fresh_region();
                    self.refuse(module, instruction, id, reason, Vec::new());
                }
            }
        }
    }
}
