//! The generated backend as stitching sees it: tiled kernels in, assembly or a reason out.

use act_generator::compile::{CandidateLimits, EnumerationEnd, Outcome};
use act_generator::phase1::{Limits, SelectError};
use act_generator::phase2::AllocLimits;
use act_generator::{Backend, CompileError, CostModel, FloatPolicy, Options, Report};
use act_isa::{Isa, Program, TiledKernel};
use act_stitch::region::{
    CandidateOutcome, KernelCode, KernelCompiler, KernelRefusal, KernelSearch, TriedCandidate,
};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long code is looked for.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Effort {
    Full,
    /// For code that is a gain only if there is nothing wrong with it: what needs spills is none.
    Little,
}

/// Compiles kernels with one backend under fixed options.
pub struct BackendKernels {
    pub backend: Arc<Backend>,
    pub options: Options,
    pub cost: Arc<dyn CostModel>,
}

impl BackendKernels {
    fn code(&self, kernel: &TiledKernel, effort: Effort) -> Result<KernelCode, CompileError> {
        let mut options = self.options.clone();
        if effort == Effort::Little {
            options.selection = Limits { nodes: options.selection.nodes / 4, ..options.selection };
            options.candidates = CandidateLimits { failures: 2, ..options.candidates };
            options.allocation = AllocLimits {
                orders: 4,
                search_steps: options.allocation.search_steps / 20,
                cpsat_time_milli: options.allocation.cpsat_time_milli / 20,
                undecided: 1,
                given_up: 2,
                spills: 0,
                ..options.allocation
            };
        }
        let compiled = self.backend.compile(kernel, &options, self.cost.as_ref())?;
        Ok(KernelCode {
            pii: compiled.pii.text(self.backend.isa()).to_string(),
            search: search_of(&compiled.report),
            assembly: compiled.assembly,
            in_slots: compiled.in_slots,
            out_slots: compiled.out_slots,
            allocator: compiled.allocator.to_string(),
        })
    }
}

/// What was tried, as stitching hands it on.
fn search_of(report: &Report) -> KernelSearch {
    let outcome = |outcome: &Outcome| match outcome {
        Outcome::Accepted { cost } => CandidateOutcome::Accepted { cost: *cost },
        Outcome::Dearer { cost } => CandidateOutcome::Dearer { cost: *cost },
        Outcome::Pruned => CandidateOutcome::Pruned,
        Outcome::Failed(reason) => CandidateOutcome::Failed { reason: reason.to_string() },
    };
    let candidates = report.candidates.iter().map(|tried| TriedCandidate {
        lower_bound: tried.lower_bound,
        instructions: tried.instructions,
        outcome: outcome(&tried.outcome),
    });
    let end = match report.end {
        EnumerationEnd::Exhausted => "no more candidates",
        EnumerationEnd::Limit => "the most candidates that are looked at",
        EnumerationEnd::Failures => "too many that cannot be allocated",
        EnumerationEnd::Patience => "none was better for too long",
        EnumerationEnd::Proven => "none behind the last can be cheaper",
    };
    let rewriting = report
        .exploration
        .as_ref()
        .map(|e| format!("; rewriting: {} after {} rounds, {} e-nodes", e.stop, e.iterations, e.nodes));
    let end = format!("{end}{}", rewriting.unwrap_or_default());
    KernelSearch { candidates: candidates.collect(), end }
}

fn refusal(error: &CompileError) -> KernelRefusal {
    KernelRefusal {
        reason: error.to_string(),
        hopeless: matches!(
            error,
            CompileError::SolverMissing(_) | CompileError::NoSelection(SelectError::NoInstruction { .. })
        ),
        misplaced: matches!(error, CompileError::NoSelection(SelectError::NoSlot { .. })),
    }
}

impl KernelCompiler for BackendKernels {
    fn isa(&self) -> &Isa {
        self.backend.isa()
    }

    fn selectable_isa(&self) -> &Isa {
        self.backend.selectable_isa()
    }

    fn may_reassociate_floats(&self) -> bool {
        self.options.numerics.float >= FloatPolicy::Xla
    }

    fn compile(&self, kernel: &TiledKernel) -> Result<KernelCode, KernelRefusal> {
        self.code(kernel, Effort::Full).map_err(|error| refusal(&error))
    }

    fn compile_soon(&self, kernel: &TiledKernel) -> Result<KernelCode, KernelRefusal> {
        self.code(kernel, Effort::Little).map_err(|error| refusal(&error))
    }

    fn cost(&self, program: &Program) -> u64 {
        self.cost.cost(self.backend.isa(), program)
    }

    fn cost_below(&self, program: &Program, limit: u64) -> u64 {
        let bound = self.cost.nest_bound(self.backend.isa(), program);
        if bound >= limit { bound } else { self.cost(program) }
    }
}

/// Kernels of one region whose selection may end at its limit before the search for the region's code does: what is too
/// much for phase 1 at some tiles is so at the others as a rule, and it is what takes the longest to refuse.
const UNDECIDED: u32 = 6;

/// Orders of one region's kernels that the allocators may give up on before the search for its code does.
const GIVEN_UP: u32 = 48;

/// The search for one region's code: bounded by what it finds, the same in every run, and perhaps in time. Every attempt
/// is bounded by itself, so the search ends soon after its limit.
pub(super) struct BoundedSearch<'a> {
    kernels: &'a BackendKernels,
    /// Kernels that were compiled, since several choices of tiles may have the same ones.
    known: RefCell<HashMap<(TiledKernel, Effort), Result<KernelCode, KernelRefusal>>>,
    /// How many were given up at a limit of selection.
    undecided: Cell<u32>,
    /// Orders that the allocators gave up on.
    given_up: Cell<u32>,
    /// What `ACT_COMPILE_TIMEOUT` says, and when that is over.
    limit: Option<(Duration, Instant)>,
    passing: Cell<bool>,
}

impl BoundedSearch<'_> {
    pub(super) fn new(kernels: &BackendKernels, limit: Option<Duration>) -> BoundedSearch<'_> {
        let limit = limit.and_then(|limit| Some((limit, Instant::now().checked_add(limit)?)));
        let (known, undecided, given_up) = (RefCell::default(), Cell::new(0), Cell::new(0));
        BoundedSearch { kernels, known, undecided, given_up, limit, passing: Cell::new(false) }
    }

    fn code(&self, kernel: &TiledKernel, effort: Effort) -> Result<KernelCode, KernelRefusal> {
        if let Some((limit, end)) = self.limit
            && Instant::now() >= end
        {
            self.passing.set(true);
            let seconds = limit.as_secs_f64();
            let reason = format!("the search took longer than ACT_COMPILE_TIMEOUT allows, {seconds} s");
            return Err(KernelRefusal { reason, hopeless: true, misplaced: false });
        }
        let key = (kernel.clone(), effort);
        if let Some(known) = self.known.borrow().get(&key) {
            return known.clone();
        }
        let outcome = self.kernels.code(kernel, effort).map_err(|error| {
            if matches!(error, CompileError::SolverMissing(_)) {
                self.passing.set(true);
            }
            let mut refusal = refusal(&error);
            if effort == Effort::Little {
                return refusal;
            }
            if matches!(error, CompileError::NoSelection(SelectError::LimitReached { .. })) {
                self.undecided.set(self.undecided.get() + 1);
                refusal.hopeless |= self.undecided.get() >= UNDECIDED;
            }
            if let CompileError::NoAllocation { given_up, .. } = error {
                self.given_up.set(self.given_up.get().saturating_add(given_up));
                refusal.hopeless |= self.given_up.get() >= GIVEN_UP;
            }
            refusal
        });
        self.known.borrow_mut().insert(key, outcome.clone());
        outcome
    }

    /// Whether an attempt failed for a reason that another process need not have: the time was over, or there is no
    /// solver.
    pub(super) fn passing(&self) -> bool {
        self.passing.get()
    }
}

impl KernelCompiler for BoundedSearch<'_> {
    fn isa(&self) -> &Isa {
        self.kernels.isa()
    }

    fn selectable_isa(&self) -> &Isa {
        self.kernels.selectable_isa()
    }

    fn may_reassociate_floats(&self) -> bool {
        self.kernels.may_reassociate_floats()
    }

    fn compile(&self, kernel: &TiledKernel) -> Result<KernelCode, KernelRefusal> {
        self.code(kernel, Effort::Full)
    }

    fn compile_soon(&self, kernel: &TiledKernel) -> Result<KernelCode, KernelRefusal> {
        self.code(kernel, Effort::Little)
    }

    fn cost(&self, program: &Program) -> u64 {
        self.kernels.cost(program)
    }

    fn cost_below(&self, program: &Program, limit: u64) -> u64 {
        self.kernels.cost_below(program, limit)
    }
}
