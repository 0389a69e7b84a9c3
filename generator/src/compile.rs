//! From candidates to the code of one kernel (ACT paper, section 7): every pii graph is ordered and allocated unless it
//! cannot beat the best so far, and the cheapest result wins. Knows neither how graphs are found nor what a cost means.

use crate::cost::CostModel;
use crate::numerics::Numerics;
use crate::phase1;
use crate::phase2::{
    self, AllocError, AllocLimits, AllocOptions, Allocation, AllocatorChoice, AllocatorUsed, SolverMissing,
};
use crate::pii::PiiGraph;
use act_isa::{Assembly, Isa, Program, TiledKernel};
use std::time::{Duration, Instant};

/// Everything that the result of a compilation depends on besides kernel, description and cost model. Part of kernel
/// keys; holds no wall time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Options {
    pub numerics: Numerics,
    /// `ACT_ALLOC`.
    pub alloc: AllocatorChoice,
    /// Limits of exploration and enumeration.
    pub selection: phase1::Limits,
    pub candidates: CandidateLimits,
    pub allocation: AllocLimits,
}

/// When the enumeration of candidates ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CandidateLimits {
    /// Candidates looked at.
    pub most: u32,
    /// Candidates that cannot be allocated, while none could: what does not fit is refused in bounded time.
    pub failures: u32,
    /// Once a candidate was accepted as number n: the enumeration goes on to number `2 · n + patience` (the paper's
    /// termination heuristic, counted in candidates instead of seconds).
    pub patience: u32,
}

impl Default for CandidateLimits {
    fn default() -> CandidateLimits {
        CandidateLimits { most: 512, failures: 24, patience: 16 }
    }
}

/// The code of one kernel.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// As it was emitted: with spills, where there are any.
    pub pii: PiiGraph,
    pub assembly: Assembly,
    /// In the units of the cost model.
    pub cost: u64,
    /// Start of the slot, per access dimension, of every parameter and result that lies on chip.
    pub in_slots: Vec<Option<Vec<i64>>>,
    pub out_slots: Vec<Option<Vec<i64>>>,
    pub allocator: AllocatorUsed,
    pub report: Report,
}

/// What was tried. Times are for people; nothing depends on them.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Saturation of the e-graph.
    pub explore_time: Duration,
    /// Enumeration of graphs.
    pub select_time: Duration,
    /// Orders, allocation, emission and its check, over all candidates.
    pub allocate_time: Duration,
    pub exploration: Option<phase1::Exploration>,
    pub candidates: Vec<Tried>,
    pub end: EnumerationEnd,
}

/// One candidate: a lower bound of its cost, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    pub lower_bound: u64,
    pub instructions: usize,
    pub outcome: Outcome,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The cheapest so far.
    Accepted {
        cost: u64,
    },
    /// Allocated, but not cheaper than what there was.
    Dearer {
        cost: u64,
    },
    /// Its lower bound already reached the cost of the best.
    Pruned,
    Failed(AllocError),
}

/// Why no more candidates were looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EnumerationEnd {
    /// There were no more.
    #[default]
    Exhausted,
    /// [`CandidateLimits::most`].
    Limit,
    /// [`CandidateLimits::failures`], or [`AllocLimits::given_up`].
    Failures,
    /// [`CandidateLimits::patience`].
    Patience,
    /// None behind the last one can be cheaper than the best.
    Proven,
}

/// Why a set of candidates has no code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoAllocation {
    #[error("there is no candidate")]
    NoCandidate,
    /// The reason is that of the first, which was the cheapest.
    #[error("none of {tried} candidates can be allocated; the first one: {reason}")]
    Failed {
        reason: AllocError,
        tried: usize,
        /// Orders that the allocators gave up on.
        given_up: u32,
    },
    #[error(transparent)]
    SolverMissing(SolverMissing),
}

/// Compiles the best of `candidates`, which come in a fixed order, cheap ones first.
///
/// # Errors
/// No candidate has an allocation, or CP-SAT is needed and missing.
pub fn compile_best(
    isa: &Isa,
    kernel: &TiledKernel,
    mut candidates: impl Iterator<Item = PiiGraph>,
    options: &Options,
    cost: &dyn CostModel,
) -> Result<Compiled, NoAllocation> {
    let alloc_options = AllocOptions { allocator: options.alloc, limits: options.allocation };
    let limits = options.candidates;
    let mut report = Report::default();
    let mut best: Option<(Compiled, u32)> = None;
    let (mut seen, mut given_up) = (0u32, 0u32);
    report.end = loop {
        if seen >= limits.most {
            break EnumerationEnd::Limit;
        }
        let failed = best.is_none() && report.candidates.len() >= limits.failures as usize;
        if failed || given_up >= alloc_options.limits.given_up {
            break EnumerationEnd::Failures;
        }
        if best.as_ref().is_some_and(|(_, at)| seen >= at.saturating_mul(2).saturating_add(limits.patience)) {
            break EnumerationEnd::Patience;
        }
        let started = Instant::now();
        let next = candidates.next();
        report.select_time += started.elapsed();
        let Some(pii) = next else { break EnumerationEnd::Exhausted };
        seen += 1;
        let lower_bound = cost.lower_bound(isa, &pii);
        let instructions = pii.instructions();
        let mut note = |outcome| report.candidates.push(Tried { lower_bound, instructions, outcome });
        if best.as_ref().is_some_and(|(best, _)| lower_bound >= best.cost) {
            note(Outcome::Pruned);
            if cost.adds_stated_costs() {
                break EnumerationEnd::Proven;
            }
            continue;
        }
        let started = Instant::now();
        let allocations = phase2::allocations(isa, kernel, &pii, &alloc_options, &mut given_up);
        let elapsed = started.elapsed();
        match allocations {
            Err(AllocError::SolverMissing(missing)) if options.alloc == AllocatorChoice::CpSat => {
                return Err(NoAllocation::SolverMissing(missing));
            }
            Err(reason) => note(Outcome::Failed(reason)),
            Ok(allocations) => {
                let mut judge = |allocation: Allocation| {
                    let value = cost.cost(isa, &straight_line(&allocation.assembly));
                    if best.as_ref().is_some_and(|(best, _)| value >= best.cost) {
                        note(Outcome::Dearer { cost: value });
                        return None;
                    }
                    note(Outcome::Accepted { cost: value });
                    let compiled = Compiled {
                        pii: allocation.graph,
                        assembly: allocation.assembly,
                        cost: value,
                        in_slots: allocation.in_slots,
                        out_slots: allocation.out_slots,
                        allocator: allocation.allocator,
                        report: Report::default(),
                    };
                    best = Some((compiled, seen));
                    Some(value)
                };
                for allocation in allocations {
                    // A sum of costs does not depend on the order.
                    let again = (!cost.adds_stated_costs()).then(|| allocation.clone());
                    let accepted = judge(allocation).filter(|&value| value > lower_bound);
                    if let (Some(allocation), true) = (again, accepted.is_some()) {
                        let others = phase2::reordered(isa, kernel, &allocation, &alloc_options);
                        others.into_iter().for_each(|other| {
                            judge(other);
                        });
                    }
                }
                let least = best.as_ref().is_some_and(|(best, _)| best.cost <= lower_bound);
                if least && cost.adds_stated_costs() {
                    report.allocate_time += elapsed;
                    break EnumerationEnd::Proven;
                }
            }
        }
        report.allocate_time += elapsed;
    };
    match best {
        Some((compiled, _)) => Ok(Compiled { report, ..compiled }),
        None => {
            let tried = report.candidates.len();
            let reasons: Vec<AllocError> = report
                .candidates
                .into_iter()
                .filter_map(|t| match t.outcome {
                    Outcome::Failed(reason) => Some(reason),
                    _ => None,
                })
                .collect();
            let missing = reasons.iter().find_map(|reason| match reason {
                AllocError::SolverMissing(missing) => Some(missing.clone()),
                _ => None,
            });
            Err(match (missing, reasons.into_iter().next()) {
                (Some(missing), _) => NoAllocation::SolverMissing(missing),
                (None, Some(reason)) => NoAllocation::Failed { reason, tried, given_up },
                (None, None) => NoAllocation::NoCandidate,
            })
        }
    }
}

/// The code as a program without loops.
pub fn straight_line(assembly: &Assembly) -> Program {
    let instrs = assembly.instrs.iter().map(|instr| Program::Instr {
        op: instr.op,
        alpha: instr.alpha.clone(),
        beta: instr.beta.clone(),
    });
    Program::Seq(instrs.collect())
}
