//! Exploration: the kernel as an e-graph, and saturation with the rules within deterministic limits (modules 1 and 2 of
//! the ACT paper). Semi-naive: a class is rewritten again only when a class that its rules have read has changed. egg's
//! own runner is not used: its matches are substitutions of pattern variables, which cannot carry attributes.

use super::context::Reads;
use super::facts::{TensorAnalysis, TensorGraph};
use super::language::{HeadOp, TensorNode};
use super::rules::{Context, Rule};
use super::term::Term;
use super::vocabulary::Vocabulary;
use crate::numerics::FloatPolicy;
use act_hlo::OpKind;
use act_isa::{Place, TiledKernel};
use egg::Id;
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Why exploration ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StopReason {
    /// No rule has anything to add.
    Saturated,
    Iterations,
    Nodes,
    /// Half as many e-nodes again as at the last improvement led to no cheaper graph.
    Settled,
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StopReason::Saturated => "saturated",
            StopReason::Iterations => "iteration limit",
            StopReason::Nodes => "node limit",
            StopReason::Settled => "settled",
        })
    }
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

/// A term that a rule proposes for a class.
struct Proposal {
    /// The rule's number.
    rule: usize,
    class: Id,
    term: Term,
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

/// Which classes must be rewritten again.
#[derive(Default)]
struct Agenda {
    /// Per id the classes whose rules have read it.
    readers: Vec<Vec<Id>>,
    /// Per id the classes whose rules have read its users.
    watchers: Vec<Vec<Id>>,
    /// Ids that were still their own class at the last look.
    own: Vec<bool>,
}

impl Agenda {
    /// The classes on whose rules a change since the last call bears, in order. Forgets their notes, since they are
    /// about to be made anew.
    fn due(&mut self, egraph: &mut TensorGraph) -> Vec<Id> {
        let mut changed: Vec<Id> = egraph.analysis.take_changed();
        for (k, own) in self.own.iter_mut().enumerate().filter(|(_, own)| **own) {
            let id = Id::from(k);
            if egraph.find(id) != id {
                *own = false;
                changed.push(id);
            }
        }
        let mut due = Vec::with_capacity(changed.len());
        for id in changed {
            let class = egraph.find(id);
            due.push(class);
            // A class that was joined has other operands in the nodes that use it.
            due.extend(egraph[class].parents());
            for noted in [id, class] {
                due.extend(self.readers.get_mut(usize::from(noted)).map(std::mem::take).unwrap_or_default());
                due.extend(self.watchers.get_mut(usize::from(noted)).map(std::mem::take).unwrap_or_default());
            }
            for operand in egraph[class].nodes.iter().flat_map(|n| &n.operands) {
                let watchers = self.watchers.get_mut(usize::from(egraph.find(*operand)));
                due.extend(watchers.map(std::mem::take).unwrap_or_default());
            }
        }
        due.iter_mut().for_each(|id| *id = egraph.find(*id));
        due.sort_unstable();
        due.dedup();
        due
    }

    fn note(&mut self, site: Id, reads: &Reads) {
        let last = reads.classes.last().max(reads.users.last()).max(Some(&site));
        if let Some(&last) = last
            && self.own.len() <= usize::from(last)
        {
            let len = usize::from(last) + 1;
            self.readers.resize_with(len, Vec::new);
            self.watchers.resize_with(len, Vec::new);
            self.own.resize(len, true);
        }
        for &id in reads.classes.iter().filter(|id| **id != site) {
            self.readers[usize::from(id)].push(site);
        }
        for &id in &reads.users {
            self.watchers[usize::from(id)].push(site);
        }
    }
}

/// Proposals of one rule that are applied in an iteration, beside one for every node of the kernel. The others wait, and
/// the rule pauses, twice as long every time: a rule that proposes without end delays itself and not what the other
/// rules lead to.
const BUDGET: usize = 256;

/// How much of its budget a rule has used, and until when it pauses.
#[derive(Default)]
struct Pace {
    spent: usize,
    /// How often it had more to propose than its budget.
    strikes: u32,
    /// First iteration in which it goes on.
    resumes: usize,
    /// How often it joined two classes or added a node.
    fired: usize,
}

/// Proposals that may wait, for every e-node that there may be.
const WAITING: usize = 4;

/// A round that adds less than this part of the e-nodes is one of the last: what is nearly done is done before anybody
/// looks at it.
const TAPERING: usize = 16;

/// Binary logarithm of the longest pause, in iterations.
const PAUSES: u32 = 8;

/// How often the limit of iterations is doubled where they have led to no graph.
const PROLONGED: u32 = 2;

/// Saturation that can pause and go on: extraction looks at the e-graph in between.
pub(crate) struct Saturation<'a> {
    pub(crate) explored: Explored,
    rules: Vec<&'static Rule>,
    vocabulary: &'a Vocabulary,
    policy: FloatPolicy,
    iterations: usize,
    nodes: usize,
    agenda: Agenda,
    waiting: VecDeque<Proposal>,
    seen: HashSet<(Id, u64)>,
    /// By the rule's number.
    paces: Vec<Pace>,
    /// Whether proposals were left out since too many were waiting.
    dropped: bool,
    ended: bool,
    /// e-nodes that the last round added.
    grown: usize,
    /// How often the limit of iterations was doubled.
    prolonged: u32,
}

impl<'a> Saturation<'a> {
    /// Of the e-graph that [`initial`] gives, by these rules, within limits of iterations and e-nodes.
    pub(crate) fn new(
        (egraph, classes): (TensorGraph, Vec<Id>),
        rules: &[&'static Rule],
        vocabulary: &'a Vocabulary,
        policy: FloatPolicy,
        iterations: usize,
        nodes: usize,
    ) -> Saturation<'a> {
        let report = Exploration {
            iterations: 0,
            nodes: egraph.total_size(),
            classes: egraph.number_of_classes(),
            stop: StopReason::Settled,
            fired: BTreeMap::new(),
        };
        Saturation {
            explored: Explored { egraph, classes, report },
            rules: rules.to_vec(),
            vocabulary,
            policy,
            iterations,
            nodes,
            agenda: Agenda::default(),
            waiting: VecDeque::new(),
            seen: HashSet::new(),
            paces: rules.iter().map(|_| Pace::default()).collect(),
            dropped: false,
            ended: false,
            grown: usize::MAX,
            prolonged: 0,
        }
    }

    /// Whether there is nothing to go on with: nothing changes any more, or a limit is reached.
    pub(crate) fn ended(&self) -> bool {
        self.ended
    }

    /// Allows more iterations, four times as many in all; `false` where these were not what ended it, or are used up.
    pub(crate) fn prolong(&mut self) -> bool {
        let more = self.explored.report.stop == StopReason::Iterations && self.prolonged < PROLONGED;
        if more {
            self.iterations = self.iterations.saturating_mul(2);
            self.prolonged += 1;
            self.ended = false;
        }
        more
    }

    /// Applies the rules until there are so many e-nodes, nothing changes or a limit is reached.
    pub(crate) fn run(&mut self, pause: usize) {
        let stop = loop {
            if self.ended {
                return;
            }
            let size = self.explored.egraph.total_size();
            if size >= pause && self.grown > size / TAPERING {
                break None;
            }
            if let Some(stop) = self.iterate(pause) {
                break Some(stop);
            }
        };
        self.ended = stop.is_some();
        let Explored { egraph, classes, report } = &mut self.explored;
        classes.iter_mut().for_each(|id| *id = egraph.find(*id));
        report.nodes = egraph.total_size();
        report.classes = egraph.number_of_classes();
        report.stop = stop.unwrap_or(StopReason::Settled);
        let fired = self.rules.iter().zip(&self.paces).filter(|(_, pace)| pace.fired > 0);
        report.fired = fired.map(|(rule, pace)| (rule.name, pace.fired)).collect();
    }

    pub(crate) fn policy(&self) -> FloatPolicy {
        self.policy
    }

    /// Changes the e-graph when the rules are done, for now: they are asked about it if they go on.
    pub(crate) fn complete(&mut self, change: impl FnOnce(&mut TensorGraph) -> bool) -> bool {
        let Explored { egraph, classes, .. } = &mut self.explored;
        let changed = change(egraph);
        classes.iter_mut().for_each(|id| *id = egraph.find(*id));
        changed
    }

    /// Changes the e-graph in a way that the rules are not asked about.
    pub(crate) fn amend(&mut self, change: impl FnOnce(&mut TensorGraph)) {
        let Explored { egraph, classes, .. } = &mut self.explored;
        let before = egraph.analysis.take_changed();
        change(egraph);
        egraph.analysis.put_changed(before);
        classes.iter_mut().for_each(|id| *id = egraph.find(*id));
    }

    /// One round of the rules. What they propose when there are `pause` e-nodes waits for the next one.
    fn iterate(&mut self, pause: usize) -> Option<StopReason> {
        let budget = BUDGET + self.explored.classes.len();
        let Explored { egraph, report, .. } = &mut self.explored;
        let due = self.agenda.due(egraph);
        if due.is_empty() && self.waiting.is_empty() {
            return Some(if self.dropped { StopReason::Nodes } else { StopReason::Saturated });
        }
        if report.iterations == self.iterations {
            return Some(StopReason::Iterations);
        }
        report.iterations += 1;
        let done = report.iterations;
        {
            let cx = Context::new(egraph, self.vocabulary, self.policy);
            for &site in &due {
                if self.waiting.len() >= WAITING.saturating_mul(self.nodes) {
                    self.dropped = true;
                    break;
                }
                propose(&cx, site, &self.rules, |proposal| {
                    // What was proposed before is there.
                    if self.seen.insert((site, proposal.fingerprint())) {
                        self.waiting.push_back(proposal);
                    }
                });
                self.agenda.note(site, &cx.take_reads());
            }
        }
        let paces = &mut self.paces;
        // When all that is left waits, nothing is gained by waiting.
        if self.waiting.iter().all(|p| paces[p.rule].resumes > done) {
            paces.iter_mut().for_each(|pace| pace.resumes = 0);
        }
        paces.iter_mut().for_each(|pace| pace.spent = 0);
        let size = egraph.total_size();
        let most = if self.waiting.len() > size / TAPERING { self.nodes.min(pause) } else { self.nodes };
        let mut full = false;
        for proposal in in_turns(std::mem::take(&mut self.waiting), self.rules.len()) {
            let pace = &mut paces[proposal.rule];
            if full || pace.resumes > done {
                self.waiting.push_back(proposal);
                continue;
            }
            if pace.spent == budget {
                pace.resumes = done + 1 + (1 << pace.strikes.min(PAUSES));
                pace.strikes += 1;
                self.waiting.push_back(proposal);
                continue;
            }
            pace.spent += 1;
            let Proposal { class, term, .. } = proposal;
            let before = egraph.total_size();
            let right = term.add_to(egraph);
            if egraph.union(class, right) || egraph.total_size() != before {
                pace.fired += 1;
            }
            full = egraph.total_size() >= most || egraph.analysis.clash().is_some();
        }
        egraph.rebuild();
        // What a round would have added that was cut short is not known.
        self.grown = if full { usize::MAX } else { egraph.total_size().saturating_sub(size) };
        let ended = egraph.analysis.clash().is_some() || egraph.total_size() >= self.nodes;
        ended.then_some(StopReason::Nodes)
    }
}

/// Proposals in such an order that the rules take turns: those of which there are few are not left waiting behind those of
/// which there are many when a round ends early.
fn in_turns(proposals: VecDeque<Proposal>, rules: usize) -> Vec<Proposal> {
    let mut of_rule: Vec<usize> = vec![0; rules];
    let mut turns: Vec<(usize, Proposal)> = Vec::with_capacity(proposals.len());
    for proposal in proposals {
        let turn = &mut of_rule[proposal.rule];
        turns.push((*turn, proposal));
        *turn += 1;
    }
    turns.sort_by_key(|(turn, _)| *turn);
    turns.into_iter().map(|(_, proposal)| proposal).collect()
}

impl Proposal {
    /// Of the term: the same in every run.
    fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.term.hash(&mut hasher);
        hasher.finish()
    }
}

/// What the rules propose for one class, node by node.
fn propose(cx: &Context<'_>, class: Id, rules: &[&'static Rule], mut out: impl FnMut(Proposal)) {
    let mut terms = Vec::new();
    for node in cx.nodes(class) {
        if matches!(node.op(), OpKind::Parameter(_) | OpKind::Constant(_)) {
            continue;
        }
        for (number, rule) in rules.iter().enumerate() {
            (rule.rewrite)(cx, class, node, &mut terms);
            terms.drain(..).for_each(|term| out(Proposal { rule: number, class, term }));
        }
    }
}

/// Everything the rules propose for the present e-graph, in a fixed order.
#[cfg(test)]
pub(crate) fn proposals(
    egraph: &TensorGraph,
    rules: &[&'static Rule],
    vocabulary: &Vocabulary,
    policy: FloatPolicy,
) -> Vec<(&'static str, Id, Term)> {
    let cx = Context::new(egraph, vocabulary, policy);
    let mut ids: Vec<Id> = egraph.classes().map(|c| c.id).collect();
    ids.sort();
    let mut all = Vec::new();
    for id in ids {
        propose(&cx, id, rules, |proposal| all.push(proposal));
    }
    all.into_iter().map(|p| (rules[p.rule].name, p.class, p.term)).collect()
}
