//! Phase 2 (ACT paper, section 6): from a pii graph to assembly. Orders the instructions, solves where every value
//! lies, emits, and checks what it emitted. Knows descriptions only through the types of act-isa.

mod banks;
mod byte_runs;
mod check;
mod conflict;
mod cpsat;
mod csp;
mod emit;
mod equations;
mod evicted;
mod hazards;
mod linear;
mod order;
mod ortools;
mod parts;
mod pieces;
mod precedence;
mod scope;
mod shortage;
mod skeleton;
mod spill;
mod takers;
mod unknowns;
mod validate;

#[cfg(test)]
mod tests;

pub use ortools::{LIBRARY_VARIABLE, SolverMissing};
pub use shortage::Shortage;

use crate::pii::{PiiGraph, PiiId, PiiOp};
use act_isa::{Assembly, Isa, TiledKernel};
use csp::{Csp, Outcome};
use spill::{Relief, SpillPairs};
use std::collections::{BTreeSet, VecDeque};
use std::fmt;

/// Which allocator decides (`ACT_ALLOC`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AllocatorChoice {
    /// The precedence search, and CP-SAT where that gives up.
    #[default]
    Auto,
    /// CP-SAT always.
    CpSat,
}

/// Which allocator found an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AllocatorUsed {
    Precedence,
    CpSat,
}

impl fmt::Display for AllocatorUsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AllocatorUsed::Precedence => "precedence",
            AllocatorUsed::CpSat => "cp-sat",
        })
    }
}

/// The allocator and its limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AllocOptions {
    pub allocator: AllocatorChoice,
    pub limits: AllocLimits,
}

/// Limits of phase 2. None is a wall time: the same input gives the same output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AllocLimits {
    /// Orders of one graph that are handed to an allocator.
    pub orders: u32,
    /// Prefixes looked at in the search for further orders; a fourth of it for graphs with spills.
    pub prefixes: u64,
    /// Elementary steps of the precedence search, per order.
    pub search_steps: u64,
    /// Thousandths of CP-SAT's deterministic time, per order.
    pub cpsat_time_milli: u32,
    /// Orders that the allocators may give up on before the graph is.
    pub undecided: u32,
    /// Orders that they may give up on before the kernel is, over all of its graphs, with spills or without: each takes
    /// as long as an allocator may.
    pub given_up: u32,
    /// Values that may be moved out of a full buffer.
    pub spills: u32,
    /// Graphs with spills that are tried.
    pub spilled_graphs: u32,
    /// Ways to spill that a cost model may choose from.
    pub spill_choices: u32,
}

impl Default for AllocLimits {
    fn default() -> AllocLimits {
        AllocLimits {
            orders: 32,
            prefixes: 4_000,
            search_steps: 1_000_000,
            cpsat_time_milli: 2_000,
            undecided: 2,
            given_up: 12,
            spills: 8,
            spilled_graphs: 24,
            spill_choices: 4,
        }
    }
}

/// A pii graph turned into code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// The graph that was given, with a node for every on-chip parameter, and with spills where it needed them.
    pub graph: PiiGraph,
    pub assembly: Assembly,
    /// The node that every instruction of the assembly was made from.
    pub order: Vec<PiiId>,
    /// Start of the slot of every node of `graph`, per access dimension; `None` in d0.
    pub slots: Vec<Option<Vec<i64>>>,
    /// Slots of the kernel's on-chip parameters and results.
    pub in_slots: Vec<Option<Vec<i64>>>,
    pub out_slots: Vec<Option<Vec<i64>>>,
    pub allocator: AllocatorUsed,
    /// Orders that were handed to an allocator, the last of which it could place.
    pub orders_tried: u32,
}

/// Why a pii graph has no code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AllocError {
    /// The graph is not one for this description and kernel.
    #[error("the pii graph does not fit its description at %{}: {reason}", node.0)]
    Malformed { node: PiiId, reason: String },
    /// Proven: no order has an allocation as long as no value is moved out of the way, and nothing was found with
    /// such moves.
    #[error("{}", no_fit(shortage, *spills))]
    NoFit { shortage: Shortage, orders: u32, spills: SpillSearch },
    /// Neither found nor excluded within the limits.
    #[error("the search for an allocation gave up after {orders} orders{}{spills}", in_first(shortage.as_ref()))]
    GaveUp { shortage: Option<Shortage>, orders: u32, spills: SpillSearch },
    /// Instructions overwrite in place what others still need, in a circle.
    #[error("instructions overwrite each other's operands in every order")]
    NoOrder,
    /// An address is used in a way that its value cannot be derived from.
    #[error("`{instr}` computes with a byte address")]
    UnsupportedAddress { instr: String },
    #[error("a byte address of `{instr}` is not a multiple of {align}")]
    UnalignedAddress { instr: String, align: u64 },
    /// A condition on where a segment of d0 lies, which is known only at run time.
    #[error("a condition of `{instr}` depends on where a buffer of the host lies")]
    UnsupportedCondition { instr: String },
    #[error(transparent)]
    SolverMissing(#[from] SolverMissing),
    #[error("the solver failed: {0}")]
    Solver(String),
    /// The check of the finished code failed: a mistake of this crate, answered by a refusal.
    #[error("the allocation failed its check: {0}")]
    Unverified(String),
}

/// What came of moving values out of full buffers to main memory and back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpillSearch {
    /// Ways that were tried, none of which has an allocation.
    pub ways: u32,
    /// The search ended at a limit: there may be other ways.
    pub limited: bool,
}

impl AllocError {
    fn with_spills(mut self, tried: SpillSearch) -> AllocError {
        if let AllocError::NoFit { spills, .. } | AllocError::GaveUp { spills, .. } = &mut self {
            *spills = tried;
        }
        self
    }
}

impl fmt::Display for SpillSearch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SpillSearch { ways, limited } = self;
        match (ways, limited) {
            (0, false) => Ok(()),
            (0, true) => f.write_str("; spilling values or loading them again was not tried"),
            (_, true) => write!(
                f,
                "; the search for room gave up after {ways} ways to spill values or to load them again"
            ),
            (_, false) => write!(f, "; of {ways} ways to spill values or to load them again none makes room"),
        }
    }
}

fn no_fit(shortage: &Shortage, spills: SpillSearch) -> String {
    let found = if spills == SpillSearch::default() { "exists" } else { "found" };
    format!("no allocation {found}: {shortage}{spills}")
}

fn in_first(shortage: Option<&Shortage>) -> String {
    shortage.map(|shortage| format!("; in the first of them {shortage}")).unwrap_or_default()
}

/// Orders and allocates `graph`; where a buffer is too small, with values of it moved to scratch memory and back.
///
/// # Errors
/// See [`AllocError`].
pub fn allocate(
    isa: &Isa,
    kernel: &TiledKernel,
    graph: &PiiGraph,
    options: &AllocOptions,
) -> Result<Allocation, AllocError> {
    let all = allocations(isa, kernel, graph, options, &mut 0)?;
    all.into_iter().next().ok_or(AllocError::NoOrder)
}

/// The same with all that a cost model may choose from: one for each of a few ways to spill, where spills are needed.
/// There is at least one. `given_up` counts the orders that the allocators gave up on, from what it is.
///
/// # Errors
/// See [`AllocError`].
pub fn allocations(
    isa: &Isa,
    kernel: &TiledKernel,
    graph: &PiiGraph,
    options: &AllocOptions,
    given_up: &mut u32,
) -> Result<Vec<Allocation>, AllocError> {
    let graph = validate::with_all_inputs(isa, kernel, graph)?;
    let pairs = SpillPairs::new(isa);
    let (first_error, relieved, culprit) = match attempt(isa, kernel, graph.clone(), options, &pairs, true)? {
        Attempt::Allocated(allocation) => return Ok(vec![*allocation]),
        Attempt::Failed { error, relieved, culprit, undecided } => {
            *given_up = given_up.saturating_add(undecided);
            (error, relieved, culprit)
        }
    };
    // Breadth first: few spills are preferred to many, and ways with equally many compete.
    let mut left = options.limits.spilled_graphs as usize;
    let mut queue: VecDeque<(u32, Relief)> = relieved.into_iter().map(|r| (1, r)).collect();
    let limits = AllocLimits { prefixes: options.limits.prefixes / 4, ..options.limits };
    let options = &AllocOptions { limits, ..*options };
    let mut most_spills = options.limits.spills;
    let mut found = Vec::new();
    let mut tried = SpillSearch { ways: 0, limited: queue.len() >= options.limits.spilled_graphs as usize };
    while let Some((spills, relief)) = queue.pop_front() {
        let enough = found.len() >= options.limits.spill_choices as usize;
        if left == 0 || spills > most_spills || enough || *given_up >= options.limits.given_up {
            tried.limited = true;
            break;
        }
        left -= 1;
        tried.ways += 1;
        match attempt(isa, kernel, relief.graph(isa), options, &pairs, false) {
            Ok(Attempt::Allocated(allocation)) => {
                most_spills = spills;
                found.push(*allocation);
            }
            Ok(Attempt::Failed { relieved, undecided, .. }) => {
                *given_up = given_up.saturating_add(undecided);
                let room = left.saturating_sub(queue.len());
                tried.limited |= undecided > 0 || relieved.len() > room;
                queue.extend(relieved.into_iter().take(room).map(|r| (spills + 1, r)));
            }
            Err(missing @ AllocError::SolverMissing(_)) => return Err(missing),
            Err(_) => {}
        }
    }
    if found.is_empty() && options.limits.spills > 0 {
        let (evicted, ways) = evict(isa, kernel, &graph, options, &pairs, culprit, given_up)?;
        tried.ways += ways.ways;
        tried.limited |= ways.limited;
        found.extend(evicted);
    }
    if found.is_empty() { Err(first_error.with_spills(tried)) } else { Ok(found) }
}

/// Code for an allocated graph in other orders, those in which loads come earlier: for a cost model to choose from. None is
/// moved for them out of a buffer that is too small.
pub fn reordered(
    isa: &Isa,
    kernel: &TiledKernel,
    allocation: &Allocation,
    options: &AllocOptions,
) -> Vec<Allocation> {
    let graph = &allocation.graph;
    let Ok(skeleton) = skeleton::Skeleton::new(isa, kernel, graph) else { return Vec::new() };
    let step_of = |node: &PiiId| skeleton.steps.iter().position(|step| step.node == *node);
    let Some(order) = allocation.order.iter().map(step_of).collect::<Option<Vec<usize>>>() else {
        return Vec::new();
    };
    let mut known = vec![order.clone()];
    for distance in order::DISTANCES {
        let ahead = order::ahead(&skeleton, &order, distance);
        if !known.contains(&ahead) {
            known.push(ahead);
        }
    }
    let place = |order: &Vec<usize>| {
        let (values, allocator) = solve_preferring_banks(isa, &skeleton, order, options).ok()?;
        let Outcome::Sat(values) = values else { return None };
        let found = Found { order, values: &values, allocator, orders_tried: allocation.orders_tried };
        finish(isa, kernel, graph.clone(), &skeleton, &found).ok()
    };
    known.iter().skip(1).filter_map(place).collect()
}

/// Code with all values of the buffers that are too small evicted, then with as many of them kept on chip as goes; those
/// that are read soonest first. `culprit` is the first such buffer.
fn evict(
    isa: &Isa,
    kernel: &TiledKernel,
    graph: &PiiGraph,
    options: &AllocOptions,
    pairs: &SpillPairs<'_>,
    mut culprit: Option<usize>,
    given_up: &mut u32,
) -> Result<(Option<Allocation>, SpillSearch), AllocError> {
    let mut tried = SpillSearch::default();
    let attempt = |values: &BTreeSet<PiiId>| {
        attempt(isa, kernel, evicted::evicted(isa, pairs, graph, values), options, pairs, false)
    };
    let mut buffers = BTreeSet::new();
    let (mut values, mut best) = loop {
        let Some(buffer) = culprit.filter(|&buffer| buffers.insert(buffer)) else { return Ok((None, tried)) };
        let values = evicted::candidates(pairs, graph, &buffers);
        if !values.iter().any(|&id| graph.node(id).buffer.is_some_and(|b| usize::from(b.0) == buffer)) {
            return Ok((None, tried));
        }
        tried.ways += 1;
        match attempt(&values) {
            Ok(Attempt::Allocated(allocation)) => break (values, allocation),
            Ok(Attempt::Failed { culprit: next, undecided, .. }) => {
                *given_up = given_up.saturating_add(undecided);
                tried.limited |= undecided > 0;
                culprit = next;
            }
            Err(missing @ AllocError::SolverMissing(_)) => return Err(missing),
            Err(_) => return Ok((None, tried)),
        }
    };
    let last_reader =
        |id: PiiId| graph.nodes.iter().rposition(|node| node.operands.contains(&id)).unwrap_or(usize::MAX);
    let mut soonest: Vec<PiiId> = values.iter().copied().collect();
    soonest.sort_by_key(|&id| (last_reader(id) - id.0 as usize, id));
    for value in soonest.into_iter().take(options.limits.spilled_graphs as usize) {
        let mut fewer = values.clone();
        fewer.remove(&value);
        match attempt(&fewer) {
            Ok(Attempt::Allocated(allocation)) => (values, best) = (fewer, allocation),
            Ok(Attempt::Failed { undecided, .. }) => *given_up = given_up.saturating_add(undecided),
            Err(_) => {}
        }
        if *given_up >= options.limits.given_up {
            break;
        }
    }
    Ok((Some(*best), tried))
}

/// What came of one graph.
enum Attempt {
    Allocated(Box<Allocation>),
    /// Why not, ways to need less of the buffer that was too small, and which that is.
    Failed {
        error: AllocError,
        relieved: Vec<Relief>,
        culprit: Option<usize>,
        /// Orders that the allocators gave up on.
        undecided: u32,
    },
}

fn attempt(
    isa: &Isa,
    kernel: &TiledKernel,
    graph: PiiGraph,
    options: &AllocOptions,
    pairs: &SpillPairs<'_>,
    is_first: bool,
) -> Result<Attempt, AllocError> {
    validate::check(isa, kernel, &graph)?;
    let graph = takers::separated(isa, pairs, &graph);
    let skeleton = skeleton::Skeleton::new(isa, kernel, &graph)?;
    let preferred = order::sethi_ullman(&skeleton).ok_or(AllocError::NoOrder)?;
    let mut orders = order::Orders::new(&skeleton, preferred.clone(), options.limits.prefixes);
    let (mut tried, mut undecided, mut missing) = (0, 0, None);
    // The first order that was proven to have no allocation, and the buffer that is to blame.
    let mut refuted: Option<(Vec<usize>, Option<usize>)> = None;
    while tried < options.limits.orders && undecided < options.limits.undecided {
        let Some(order) = orders.next() else { break };
        tried += 1;
        match solve_preferring_banks(isa, &skeleton, &order, options) {
            Ok((Outcome::Sat(values), allocator)) => {
                let found = Found { order: &order, values: &values, allocator, orders_tried: tried };
                return Ok(Attempt::Allocated(Box::new(finish(isa, kernel, graph, &skeleton, &found)?)));
            }
            Ok((Outcome::Unsat { buffer }, _)) => match &mut refuted {
                Some((_, culprit)) => *culprit = culprit.or(buffer),
                None => refuted = Some((order, buffer)),
            },
            Ok((Outcome::GaveUp, _)) => undecided += 1,
            // The search may still decide another order.
            Err(AllocError::SolverMissing(reason)) if options.allocator == AllocatorChoice::Auto => {
                undecided += 1;
                missing = Some(reason);
            }
            Err(error) => return Err(error),
        }
        orders.last_failed();
    }
    if let Some(missing) = missing {
        return Err(missing.into());
    }
    let proven = undecided == 0 && orders.exhausted();
    let (order, culprit) = refuted.unzip();
    let culprit = culprit.flatten();
    // Nobody reads the reason of a graph with spills; it is looked for where no buffer is known.
    let order = order.filter(|_| is_first || culprit.is_none());
    let shortage = order.map(|order| Shortage::of(isa, &graph, &skeleton, &skeleton.csp(&order), culprit));
    let culprit = culprit.or_else(|| {
        let name = shortage.as_ref().and_then(|s| s.buffers.first());
        name.and_then(|(name, _)| isa.buffers.iter().position(|b| b.name == *name))
    });
    let most = options.limits.spilled_graphs as usize;
    let relieved = culprit.map(|b| spill::relieve(pairs, graph, &skeleton, &preferred, b, most));
    let relieved = relieved.unwrap_or_default();
    let error = if proven {
        AllocError::NoFit {
            shortage: shortage.unwrap_or_default(),
            orders: tried,
            spills: SpillSearch::default(),
        }
    } else {
        AllocError::GaveUp { shortage, orders: tried, spills: SpillSearch::default() }
    };
    Ok(Attempt::Failed { error, relieved, culprit, undecided })
}

/// Values for one order, with operands that are read together in different banks where that goes.
fn solve_preferring_banks(
    isa: &Isa,
    skeleton: &skeleton::Skeleton,
    order: &[usize],
    options: &AllocOptions,
) -> Result<(Outcome, AllocatorUsed), AllocError> {
    let csp = skeleton.csp(order);
    let mut apart = banks::apart(isa, skeleton, &csp).into_iter();
    let apart = apart.find_map(|narrow| solve_apart(&narrow, options));
    apart.map_or_else(|| solve(&csp, options), Ok)
}

fn solve(csp: &Csp, options: &AllocOptions) -> Result<(Outcome, AllocatorUsed), AllocError> {
    if options.allocator == AllocatorChoice::Auto {
        let outcome = precedence::solve(csp, options.limits.search_steps);
        if outcome != Outcome::GaveUp {
            return Ok((outcome, AllocatorUsed::Precedence));
        }
    }
    match cpsat::solve(csp, options.limits.cpsat_time_milli) {
        Ok(outcome) => Ok((outcome, AllocatorUsed::CpSat)),
        Err(cpsat::CpSatError::Missing(missing)) => Err(missing.into()),
        Err(error @ cpsat::CpSatError::ModelInvalid) => Err(AllocError::Solver(error.to_string())),
    }
}

/// What a solution with operands in different banks may take, as a part of what the plain problem may: there is the
/// plain one if none is found soon.
const PART_FOR_BANKS: u32 = 16;

/// A solution with operands in different banks, by the allocator that tries first.
fn solve_apart(csp: &Csp, options: &AllocOptions) -> Option<(Outcome, AllocatorUsed)> {
    let steps = options.limits.search_steps / u64::from(PART_FOR_BANKS);
    let (outcome, allocator) = match options.allocator {
        AllocatorChoice::Auto => (precedence::solve(csp, steps), AllocatorUsed::Precedence),
        // What is missing or wrong is told by the plain problem.
        AllocatorChoice::CpSat => {
            let time = options.limits.cpsat_time_milli / PART_FOR_BANKS;
            (cpsat::solve(csp, time).ok()?, AllocatorUsed::CpSat)
        }
    };
    matches!(outcome, Outcome::Sat(_)).then_some((outcome, allocator))
}

/// An order and the values that solve its problem.
struct Found<'a> {
    order: &'a [usize],
    values: &'a [i64],
    allocator: AllocatorUsed,
    orders_tried: u32,
}

fn finish(
    isa: &Isa,
    kernel: &TiledKernel,
    graph: PiiGraph,
    skeleton: &skeleton::Skeleton,
    found: &Found<'_>,
) -> Result<Allocation, AllocError> {
    let slots = emit::slots(skeleton, found.values);
    let instrs = emit::instructions(skeleton, found.order, found.values);
    let order: Vec<PiiId> = found.order.iter().map(|&step| skeleton.steps[step].node).collect();
    let slot_of = |id: PiiId| slots.get(id.0 as usize).cloned().flatten();
    let in_slots: Vec<Option<Vec<i64>>> = (0..kernel.ins.len())
        .map(|k| {
            let at = graph.nodes.iter().position(|n| n.op == PiiOp::OnChipInput(k));
            at.and_then(|at| slot_of(PiiId(at as u32)))
        })
        .collect();
    let out_slots: Vec<Option<Vec<i64>>> =
        graph.roots.iter().map(|root| root.first().and_then(|&id| slot_of(id))).collect();
    check::check(isa, kernel, &graph, &order, &instrs, &in_slots, &out_slots)
        .map_err(AllocError::Unverified)?;
    let assembly =
        Assembly { instrs, consts: graph.consts.clone(), scratch_bytes: spill::scratch_bytes(&graph) };
    Ok(Allocation {
        graph,
        assembly,
        order,
        slots,
        in_slots,
        out_slots,
        allocator: found.allocator,
        orders_tried: found.orders_tried,
    })
}
