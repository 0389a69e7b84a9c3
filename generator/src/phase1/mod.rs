//! Phase 1: instruction selection by equality saturation (ACT paper, section 5). From a tiled kernel to pii graphs, best
//! first. Knows every accelerator through its description only.

mod closed;
mod context;
mod cuts;
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
mod operators;
mod outputs;
mod polynomial;
mod print;
mod rims;
mod round_trips;
mod rules;
mod shaped;
mod symbolic;
mod term;
mod transfers;
mod tree;
mod unrolled;
mod view;
mod vocabulary;

#[cfg(test)]
mod tests;

pub use explore::{Exploration, StopReason};
pub use matcher::UnmatchableError;
pub use rules::{CatalogueEntry, Proof, Rule, RuleClass, catalogue};

use crate::numerics::Numerics;
use crate::pii::PiiGraph;
use act_hlo::{ElemType, Shape};
use act_isa::{BufferId, InstrId, Isa, Place, Selectable, TiledKernel};
use demand::{Choice, Demand, DemandGraph, Expander};
use egg::Id;
use emit::Emitter;
use enumerate::Enumeration;
use explore::{Explored, Saturation};
use matcher::Matcher;
use std::collections::{BTreeSet, HashSet};
use vocabulary::Vocabulary;

/// Deterministic bounds of one selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// Rounds of rewriting; four times as many where they have led to no graph.
    pub iterations: usize,
    /// e-nodes.
    pub nodes: usize,
    /// Decisions looked at while enumerating; more where the graph is large.
    pub expansions: usize,
    /// Exploration ends when graphs are there and half as many e-nodes again as at the last improvement led to no cheaper
    /// one; not before there are so many e-nodes.
    pub settled: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { iterations: 48, nodes: 20_000, expansions: 8_000, settled: 1_500 }
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
    #[error("instruction selection for {isa} stopped at its limit ({stop}) before it found a cover")]
    LimitReached { isa: String, stop: StopReason },
    /// A parameter or result is to lie in a buffer whose slots have other shapes, so that no instruction can put it
    /// there.
    #[error("{}", no_slot(isa, buffer, shape, largest))]
    NoSlot {
        isa: String,
        buffer: String,
        shape: Shape,
        /// The whole buffer as one slot.
        largest: Shape,
    },
    #[error("the kernel is malformed: {0}")]
    Malformed(&'static str),
    /// The rewrites contradicted one another; nothing of this e-graph is used.
    #[error("rewriting ran into a contradiction: {0}")]
    Contradiction(String),
}

fn no_slot(isa: &str, buffer: &str, shape: &Shape, largest: &Shape) -> String {
    let too_large = shape.rank() == largest.rank()
        && shape.elem.bits() == largest.elem.bits()
        && shape.dims.iter().zip(&largest.dims).any(|(len, most)| len > most);
    if too_large {
        format!("no slot of {buffer} in {isa} is as large as {shape}: all of it is {largest}")
    } else {
        format!("no slot of {buffer} in {isa} has the shape {shape}")
    }
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
    /// Instructions that overwrite an operand.
    in_place: BTreeSet<InstrId>,
}

/// One selected graph with its modelled cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selected {
    pub graph: PiiGraph,
    /// Sum of the instructions' cost expressions, in cycles.
    pub cost: u64,
}

/// The pii graphs of a kernel, cheapest first, found on demand. Exploration and extraction take turns (ACT paper, section
/// 5.4): of the k-th stage of exploration only graphs of at most Γ(k) nodes are given; what is not found by then is sought
/// in a larger e-graph, as long as there is one. So every graph has its turn. As an iterator it goes through all stages;
/// within a stage the cheapest graph comes first.
pub struct Selection<'a> {
    selector: &'a Selector,
    kernel: &'a TiledKernel,
    saturation: Saturation<'a>,
    enumeration: Enumeration,
    expansions: usize,
    roots: Vec<usize>,
    stage: u32,
    given: HashSet<PiiGraph>,
}

/// What graphs shall do without, as far as they can: what made others of them fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Aversion {
    /// Values in this buffer.
    Buffer(BufferId),
    /// Instructions that overwrite an operand.
    InPlace,
}

/// A graph that is cheaper by less than this part is no improvement for which exploration goes on.
const WORTH: u64 = 64;
/// What is averted costs so many parts of the cheapest graph more.
const AVERSION: u64 = 16;
/// Nodes of a graph of the first stage, beside those for every node of the kernel.
const LEAST_GRAPH: usize = 256;

/// Γ(k) of the ACT paper: the largest graph of a stage, for a kernel of `n` nodes. Grows strictly and without bound.
fn gamma(stage: u32, n: usize) -> usize {
    n.saturating_mul(8)
        .saturating_add(LEAST_GRAPH)
        .saturating_mul(1usize.checked_shl(stage).unwrap_or(usize::MAX))
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
        let mut written_out = BTreeSet::new();
        for k in 0..loose {
            if let Some(product) = unrolled::as_product(&isa.instrs[k]) {
                isa.instrs.push(product);
                origin.push(origin[k]);
                written_out.insert(k);
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
        // What nothing selects is no reason to rewrite toward it, nor are the steps of a product that is written out.
        let aims = matchers.iter().filter(|matcher| !written_out.contains(&usize::from(matcher.instr.0)));
        let instrs = aims.map(|matcher| isa.instr(matcher.instr).clone()).collect();
        let vocabulary = Vocabulary::of(&Isa { instrs, ..isa.clone() });
        let in_place =
            whole.instr_ids().filter(|&id| whole.instr(id).updates_in_place(0).is_some()).collect();
        Ok(Selector { isa, matchers, unmatchable, vocabulary, in_place })
    }

    /// The description as instructions are selected from it: one instruction per path of its semantics, with
    /// reshapes of what it sums behind what it computes from the sums, and products that semantics write out as sums once
    /// more, as dots.
    pub fn isa(&self) -> &Isa {
        &self.isa
    }

    /// Whether instructions may compute contractions whose result is of this type, whatever stands around them; a cheap
    /// answer to a question that exploration takes long for.
    pub fn may_contract(&self, elem: ElemType) -> bool {
        self.vocabulary.may_contract(elem)
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
    pub fn select<'a>(
        &'a self,
        kernel: &'a TiledKernel,
        numerics: Numerics,
        limits: &Limits,
    ) -> Result<Selection<'a>, SelectError> {
        self.select_with(kernel, numerics, limits, &self.rewrites(numerics))
    }

    /// Selects instructions for a kernel with these rewrites alone.
    fn select_with<'a>(
        &'a self,
        kernel: &'a TiledKernel,
        numerics: Numerics,
        limits: &Limits,
        rules: &[&'static Rule],
    ) -> Result<Selection<'a>, SelectError> {
        self.check(kernel)?;
        let Limits { iterations, nodes, expansions, settled } = *limits;
        let policy = numerics.float;
        let start = explore::initial(kernel, policy);
        let mut saturation = Saturation::new(start, rules, &self.vocabulary, policy, iterations, nodes);
        let gamma = gamma(0, kernel.graph.nodes().len());
        let (enumeration, roots) = self.settle(kernel, &mut saturation, settled, expansions, gamma)?;
        Ok(Selection {
            selector: self,
            kernel,
            saturation,
            enumeration,
            expansions,
            roots,
            stage: 0,
            given: HashSet::new(),
        })
    }

    /// Explores until there is nothing to go on with, or until graphs are there and half as many e-nodes again led to no
    /// cheaper one.
    fn settle(
        &self,
        kernel: &TiledKernel,
        saturation: &mut Saturation<'_>,
        first: usize,
        expansions: usize,
        gamma: usize,
    ) -> Result<(Enumeration, Vec<usize>), SelectError> {
        let (mut pause, mut best) = (first, None::<u64>);
        loop {
            saturation.run(pause);
            if let Some(clash) = saturation.explored.egraph.analysis.clash() {
                return Err(SelectError::Contradiction(clash.to_owned()));
            }
            let (policy, results) = (saturation.policy(), results(kernel, &saturation.explored));
            saturation.amend(|egraph| transfers::cut(egraph, &results, &self.vocabulary, policy));
            if saturation.ended() {
                saturation.complete(|egraph| transfers::cut_at_pitches(egraph, &self.vocabulary, policy));
            }
            let (mut demands, mut roots) = self.demands(kernel, &saturation.explored);
            if uncovered(&demands, &roots).is_some() {
                round_trips::offer(&mut saturation.explored.egraph);
                (demands, roots) = self.demands(kernel, &saturation.explored);
                let uncovered = uncovered(&demands, &roots);
                if !saturation.ended() || uncovered.is_some() && saturation.prolong() {
                    round_trips::withdraw(&mut saturation.explored.egraph);
                } else if let Some(root) = uncovered {
                    return Err(self.diagnosed(kernel, &saturation.explored, root, demands));
                }
            }
            let enumeration = Enumeration::new(demands, &roots, expansions, gamma);
            let found = enumeration.as_ref().map(Enumeration::first_cost);
            match enumeration {
                Some(enumeration)
                    if saturation.ended() || best.is_some_and(|best| found >= Some(best - best / WORTH)) =>
                {
                    let at_pitches =
                        |egraph: &mut _| transfers::cut_at_pitches(egraph, &self.vocabulary, policy);
                    if saturation.ended() || !saturation.complete(at_pitches) {
                        return Ok((enumeration, roots));
                    }
                    let (demands, wanted) = self.demands(kernel, &saturation.explored);
                    let again = Enumeration::new(demands, &wanted, expansions, gamma);
                    return Ok(again.map_or((enumeration, roots), |again| (again, wanted)));
                }
                None if saturation.ended() => {
                    let stop = saturation.explored.report.stop;
                    return Err(SelectError::LimitReached { isa: self.isa.name.clone(), stop });
                }
                _ => best = found,
            }
            let size = saturation.explored.egraph.total_size();
            pause = size.saturating_add(if best.is_some() { size / 2 } else { size });
        }
    }

    fn diagnosed(
        &self,
        kernel: &TiledKernel,
        explored: &Explored,
        root: usize,
        demands: DemandGraph,
    ) -> SelectError {
        let params = params(kernel, explored);
        let stored = stored(kernel, explored);
        let diagnosis = diagnose::Diagnosis {
            isa: &self.isa,
            vocabulary: &self.vocabulary,
            explored,
            expander: &self.expander(kernel, explored, &params, &stored),
        };
        diagnosis.reason(&kernel.graph, root, demands)
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
                        let dims = [buffer.access.as_slice(), &buffer.unit].concat();
                        let largest = Shape::new(buffer.elem, dims);
                        let (isa, buffer) = (self.isa.name.clone(), buffer.name.clone());
                        return Err(SelectError::NoSlot { isa, buffer, shape: shape.clone(), largest });
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

/// Class of every result.
fn results(kernel: &TiledKernel, explored: &Explored) -> Vec<Id> {
    kernel.graph.roots().iter().map(|root| explored.classes[root.0 as usize]).collect()
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

impl Selection<'_> {
    /// What exploration did.
    pub fn exploration(&self) -> &Exploration {
        &self.saturation.explored.report
    }

    /// Whether enumeration stopped at its limit, so that dearer graphs may exist unseen.
    pub fn stopped_at_limit(&self) -> bool {
        self.enumeration.exhausted_limit()
    }

    /// The next graph of this stage.
    pub fn next_of_stage(&mut self) -> Option<Selected> {
        loop {
            let (choices, _) = self.enumeration.next_choice()?;
            let graph = self.enumeration.graph();
            let cost = choices.iter().fold(0u64, |sum, (&demand, &option)| {
                sum.saturating_add(match &graph.options(demand)[option].choice {
                    Choice::Instr(m) => m.cost,
                    _ => 0,
                })
            });
            let emitter = Emitter::new(graph, &choices, &self.saturation.explored.egraph.analysis);
            // Different choices may spell one graph.
            let Some(graph) = emitter.emit(&self.roots) else { continue };
            if self.given.insert(graph.clone()) {
                return Some(Selected { graph, cost });
            }
        }
    }

    /// Goes on to the next stage; `false` where no larger e-graph and no larger graphs are to be had.
    pub fn advance(&mut self) -> bool {
        if self.saturation.ended() && !self.enumeration.left_larger() {
            return false;
        }
        self.stage += 1;
        let gamma = gamma(self.stage, self.kernel.graph.nodes().len());
        let pause = self.saturation.explored.egraph.total_size().saturating_mul(2);
        let (selector, kernel) = (self.selector, self.kernel);
        match selector.settle(kernel, &mut self.saturation, pause, self.expansions, gamma) {
            Ok((enumeration, roots)) => {
                (self.enumeration, self.roots) = (enumeration, roots);
                true
            }
            Err(_) => false,
        }
    }

    /// Orders the graphs of this stage anew, those first that do without something; `false` where none uses it.
    pub fn avoid(&mut self, aversion: Aversion) -> bool {
        let mut graph = std::mem::take(self.enumeration.graph_mut());
        let more = self.enumeration.first_cost() / AVERSION + 1;
        let in_place = &self.selector.in_place;
        let mut some = false;
        for (demand, options) in &mut graph.demands {
            for option in options {
                let averse = match aversion {
                    Aversion::Buffer(buffer) => demand.buffer() == Some(buffer),
                    Aversion::InPlace => {
                        matches!(&option.choice, Choice::Instr(m) if in_place.contains(&m.instr))
                    }
                };
                if averse {
                    option.cost = option.cost.saturating_add(more);
                    some = true;
                }
            }
        }
        let gamma = gamma(self.stage, self.kernel.graph.nodes().len());
        match Enumeration::new(graph, &self.roots, self.expansions, gamma) {
            Some(enumeration) => {
                self.enumeration = enumeration;
                some
            }
            None => false,
        }
    }
}

impl Iterator for Selection<'_> {
    type Item = Selected;

    fn next(&mut self) -> Option<Selected> {
        loop {
            match self.next_of_stage() {
                None if self.advance() => {}
                found => return found,
            }
        }
    }
}
