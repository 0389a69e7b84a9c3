//! Phase 1: instruction selection by equality saturation (ACT paper, section 5). From a tiled kernel to pii graphs, best
//! first. Knows every accelerator through its description only.

mod context;
mod cycles;
mod demand;
mod diagnose;
mod emit;
mod enumerate;
mod explore;
mod facts;
mod language;
mod matcher;
mod matching;
mod outputs;
mod polynomial;
mod prices;
mod print;
mod rims;
mod round_trips;
mod rules;
mod shaped;
mod symbolic;
mod term;
mod transfers;
mod unrolled;
mod view;
mod vocabulary;

#[cfg(test)]
mod tests;

pub use explore::{Exploration, StopReason};
pub use matcher::UnmatchableError;
pub use rules::{CatalogueEntry, Proof, Rule, RuleClass, catalogue};

use crate::numerics::{FloatPolicy, Numerics};
use crate::pii::PiiGraph;
use act_hlo::Shape;
use act_isa::{BufferId, InstrId, Isa, Place, Selectable, TiledKernel};
use demand::{Demand, DemandGraph, Expander};
use egg::Id;
use emit::Emitter;
use enumerate::Enumeration;
use explore::Explored;
use matcher::Matcher;
use std::collections::HashSet;
use vocabulary::Vocabulary;

/// Deterministic bounds of one selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// Rounds of rewriting.
    pub iterations: usize,
    /// e-nodes.
    pub nodes: usize,
    /// Decisions looked at while enumerating; more where the graph is large.
    pub expansions: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { iterations: 32, nodes: 20_000, expansions: 20_000 }
    }
}

/// The description cannot be turned into a backend.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GenerateError {
    #[error("no instruction of {isa} can be selected: {reasons}")]
    NothingSelectable { isa: String, reasons: String },
}

/// Why a kernel has no pii graph.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectError {
    /// An operator that no instruction can take part in computing.
    #[error("no instruction of {isa} computes {op} ({shape})")]
    NoInstruction { isa: String, op: String, shape: Shape },
    /// Every operator occurs in some instruction, but none of them fits here.
    #[error("no instructions of {isa} cover {op} ({shape})")]
    NoCover { isa: String, op: String, shape: Shape },
    /// All values can be computed, but not put where the kernel wants them.
    #[error("no instruction of {isa} puts result {root} where it must lie")]
    NoStore { isa: String, root: usize },
    /// The limits ended the search before a graph was found.
    #[error("instruction selection for {isa} stopped at its limit ({stop:?}) before it found a cover")]
    LimitReached { isa: String, stop: StopReason },
    /// A parameter or result is to lie in a buffer whose slots have other shapes, so that no instruction can put it
    /// there.
    #[error("no slot of {buffer} in {isa} has the shape {shape}")]
    NoSlot { isa: String, buffer: String, shape: Shape },
    #[error("the kernel is malformed: {0}")]
    Malformed(&'static str),
    /// The rewrites contradicted one another; nothing of this e-graph is used.
    #[error("rewriting ran into a contradiction: {0}")]
    Contradiction(String),
}

/// The rule that was derived for an instruction, for people to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeneratedRule {
    /// In the description.
    pub instr: InstrId,
    /// The semantics as the left side, what is solved for, and the preconditions.
    pub text: String,
}

/// A generated instruction selector: the rules of one description.
pub struct Selector {
    /// The description with one instruction per path of its semantics.
    isa: Isa,
    matchers: Vec<Matcher>,
    unmatchable: Vec<(InstrId, UnmatchableError)>,
    vocabulary: Vocabulary,
}

/// One selected graph with its modelled cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selected {
    pub graph: PiiGraph,
    /// Sum of the instructions' cost expressions, in cycles.
    pub cost: u64,
}

/// The pii graphs of a kernel, cheapest first, found on demand.
pub struct Selection {
    explored: Explored,
    enumeration: Enumeration,
    roots: Vec<usize>,
    given: HashSet<PiiGraph>,
}

impl Selector {
    /// Derives the selection rules of a description.
    ///
    /// # Errors
    /// When no rule can be derived for any instruction.
    pub fn generate(whole: &Isa) -> Result<Selector, GenerateError> {
        let Selectable { mut isa, mut origin, excluded } = whole.selectable();
        for instr in &mut isa.instrs {
            if let Some(shaped) = shaped::shaped_last(instr) {
                *instr = shaped;
            }
        }
        // Instructions that are products where sums may be taken in another order, from here on.
        let loose = isa.instrs.len();
        for k in 0..loose {
            if let Some(product) = unrolled::as_product(&isa.instrs[k]) {
                isa.instrs.push(product);
                origin.push(origin[k]);
            }
        }
        let mut matchers = Vec::new();
        let mut unmatchable: Vec<(InstrId, UnmatchableError)> =
            excluded.into_iter().map(|(id, reason)| (id, reason.into())).collect();
        for (id, &origin) in isa.instr_ids().zip(&origin) {
            match Matcher::generate(&isa, id, origin) {
                Ok(matcher) => {
                    matchers.push(Matcher { loose: usize::from(id.0) >= loose, ..matcher });
                }
                Err(error) => unmatchable.push((origin, error)),
            }
        }
        unmatchable.sort_by_key(|(id, _)| *id);
        if matchers.is_empty() {
            let reasons = unmatchable.iter().map(|(id, e)| format!("{}: {e}", whole.instr(*id).name));
            let reasons = reasons.collect::<Vec<_>>().join("; ");
            return Err(GenerateError::NothingSelectable { isa: isa.name.clone(), reasons });
        }
        // What nothing selects is no reason to rewrite toward it.
        let instrs = matchers.iter().map(|matcher| isa.instr(matcher.instr).clone()).collect();
        let vocabulary = Vocabulary::of(&Isa { instrs, ..isa.clone() });
        Ok(Selector { isa, matchers, unmatchable, vocabulary })
    }

    /// The description as instructions are selected from it: one instruction per path of its semantics, with
    /// reshapes of what it sums behind what it computes from the sums, and products that semantics write out as sums once
    /// more, as dots.
    pub fn isa(&self) -> &Isa {
        &self.isa
    }

    /// Instructions for which no rule could be derived, and why.
    pub fn unmatchable(&self) -> &[(InstrId, UnmatchableError)] {
        &self.unmatchable
    }

    /// All generated rules as text, preconditions included (the form of the ACT paper's Fig. 11).
    pub fn rules_text(&self) -> String {
        self.generated().into_iter().map(|rule| rule.text).collect::<Vec<_>>().join("\n")
    }

    /// The generated rules, one for every selectable instruction and for every path of one with control flow.
    pub fn generated(&self) -> Vec<GeneratedRule> {
        let rule = |m: &Matcher| GeneratedRule { instr: m.origin, text: print::rule(&self.isa, m) };
        self.matchers.iter().map(rule).collect()
    }

    /// All IR-to-IR rewrites that there are.
    pub fn all_rewrites() -> Vec<&'static Rule> {
        rules::all()
    }

    /// The IR-to-IR rewrites that are on under a policy and of use to this description.
    pub fn rewrites(&self, numerics: Numerics) -> Vec<&'static Rule> {
        let on = |rule: &&'static Rule| rule.policy <= numerics.float && (rule.useful)(&self.vocabulary);
        rules::all().into_iter().filter(on).collect()
    }

    /// Selects instructions for a kernel.
    ///
    /// # Errors
    /// Why there is no graph: the operator that is not covered, the limit reached, or what is wrong with the kernel.
    pub fn select(
        &self,
        kernel: &TiledKernel,
        numerics: Numerics,
        limits: &Limits,
    ) -> Result<Selection, SelectError> {
        self.select_with(kernel, numerics, limits, &self.rewrites(numerics))
    }

    /// Selects instructions for a kernel with these rewrites alone.
    fn select_with(
        &self,
        kernel: &TiledKernel,
        numerics: Numerics,
        limits: &Limits,
        rules: &[&'static Rule],
    ) -> Result<Selection, SelectError> {
        self.check(kernel)?;
        let explored = self.explore(kernel, numerics.float, rules, limits);
        if let Some(clash) = explored.egraph.analysis.clash() {
            return Err(SelectError::Contradiction(clash.to_owned()));
        }
        let mut explored = explored;
        let (mut demands, mut roots) = self.demands(kernel, &explored);
        if uncovered(&demands, &roots).is_some() {
            round_trips::offer(&mut explored.egraph);
            (demands, roots) = self.demands(kernel, &explored);
        }
        if let Some(root) = uncovered(&demands, &roots) {
            let params = params(kernel, &explored);
            let stored = stored(kernel, &explored);
            let diagnosis = diagnose::Diagnosis {
                isa: &self.isa,
                vocabulary: &self.vocabulary,
                explored: &explored,
                expander: &self.expander(kernel, &explored, &params, &stored),
            };
            return Err(diagnosis.reason(&kernel.graph, root, demands));
        }
        match Enumeration::new(demands, &roots, limits.expansions) {
            Some(enumeration) => Ok(Selection { explored, enumeration, roots, given: HashSet::new() }),
            None => Err(SelectError::LimitReached { isa: self.isa.name.clone(), stop: explored.report.stop }),
        }
    }

    /// Everything that the results of a kernel may need, and the demands for the results themselves.
    fn demands(&self, kernel: &TiledKernel, explored: &Explored) -> (DemandGraph, Vec<usize>) {
        let params = params(kernel, explored);
        let stored = stored(kernel, explored);
        let expander = self.expander(kernel, explored, &params, &stored);
        let mut demands = DemandGraph::default();
        let wanted = kernel.outs.iter().zip(kernel.graph.roots()).map(|(place, root)| {
            let class = explored.classes[root.0 as usize];
            match place {
                Place::Hbm(view) => Demand::Store(class, view::Layout::of(view)),
                Place::OnChip { buf, .. } => Demand::OnChip(class, *buf),
            }
        });
        let roots = wanted.map(|demand| expander.expand(&mut demands, demand)).collect();
        (demands, roots)
    }

    fn expander<'a>(
        &'a self,
        kernel: &'a TiledKernel,
        explored: &'a Explored,
        params: &'a [Id],
        stored: &'a [(Id, view::Layout)],
    ) -> Expander<'a> {
        let (isa, egraph) = (&self.isa, &explored.egraph);
        Expander { isa, egraph, matchers: &self.matchers, ins: &kernel.ins, params, stored }
    }

    fn explore(
        &self,
        kernel: &TiledKernel,
        policy: FloatPolicy,
        rules: &[&'static Rule],
        limits: &Limits,
    ) -> Explored {
        let (egraph, classes) = explore::initial(kernel, policy);
        let vocabulary = &self.vocabulary;
        let mut explored =
            explore::saturate(egraph, classes, rules, vocabulary, policy, limits.iterations, limits.nodes);
        let results = kernel.graph.roots().iter().map(|root| explored.classes[root.0 as usize]);
        transfers::cut(&mut explored.egraph, &results.collect::<Vec<_>>(), vocabulary, policy);
        explored.classes.iter_mut().for_each(|id| *id = explored.egraph.find(*id));
        explored
    }

    fn check(&self, kernel: &TiledKernel) -> Result<(), SelectError> {
        let graph = &kernel.graph;
        if graph.roots().is_empty() {
            return Err(SelectError::Malformed("it has no result"));
        }
        if kernel.ins.len() != graph.params().len() || kernel.outs.len() != graph.roots().len() {
            return Err(SelectError::Malformed("places and parameters or results differ in number"));
        }
        let nodes = graph.params().iter().zip(&kernel.ins).chain(graph.roots().iter().zip(&kernel.outs));
        for (node, place) in nodes {
            let shape = graph.shape(*node);
            if shape.elements() == 0 {
                return Err(SelectError::Malformed("a parameter or result has no elements"));
            }
            match place {
                Place::Hbm(view)
                    if view.elem != shape.elem
                        || !view.dims.iter().map(|d| d.0).eq(shape.dims.iter().copied()) =>
                {
                    return Err(SelectError::Malformed("a view does not have its tensor's shape"));
                }
                Place::OnChip { buf: BufferId(b), .. } => {
                    let Some(buffer) = self.isa.buffers.get(usize::from(*b)) else {
                        return Err(SelectError::Malformed("a place names a buffer that does not exist"));
                    };
                    if !matching::has_slot(buffer, shape) {
                        let (isa, buffer) = (self.isa.name.clone(), buffer.name.clone());
                        return Err(SelectError::NoSlot { isa, buffer, shape: shape.clone() });
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Class of every parameter.
fn params(kernel: &TiledKernel, explored: &Explored) -> Vec<Id> {
    kernel.graph.params().iter().map(|p| explored.classes[p.0 as usize]).collect()
}

/// Class and place of every result that lies in d0.
fn stored(kernel: &TiledKernel, explored: &Explored) -> Vec<(Id, view::Layout)> {
    let results = kernel.outs.iter().zip(kernel.graph.roots());
    let in_memory = results.filter_map(|(place, root)| match place {
        Place::Hbm(view) => Some((explored.classes[root.0 as usize], view::Layout::of(view))),
        Place::OnChip { .. } => None,
    });
    in_memory.collect()
}

/// The first result that cannot be had.
fn uncovered(demands: &DemandGraph, roots: &[usize]) -> Option<usize> {
    let meetable = demands.meetable();
    roots.iter().position(|&r| !meetable[r])
}

impl Selection {
    /// What exploration did.
    pub fn exploration(&self) -> &Exploration {
        &self.explored.report
    }

    /// Whether enumeration stopped at its limit, so that dearer graphs may exist unseen.
    pub fn stopped_at_limit(&self) -> bool {
        self.enumeration.exhausted_limit()
    }
}

impl Iterator for Selection {
    type Item = Selected;

    fn next(&mut self) -> Option<Selected> {
        loop {
            let (choices, cost) = self.enumeration.next_choice()?;
            let emitter = Emitter::new(self.enumeration.graph(), &choices, &self.explored.egraph.analysis);
            // Different choices may spell one graph.
            let Some(graph) = emitter.emit(&self.roots) else { continue };
            if self.given.insert(graph.clone()) {
                return Some(Selected { graph, cost });
            }
        }
    }
}
