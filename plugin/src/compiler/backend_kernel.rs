//! The generated backend as stitching sees it: tiled kernels in, assembly or a reason out.

use act_generator::compile::{EnumerationEnd, Outcome};
use act_generator::phase1::SelectError;
use act_generator::{Backend, CompileError, CostModel, FloatPolicy, Options, Report};
use act_isa::{Isa, Program, TiledKernel};
use act_stitch::region::{
    CandidateOutcome, KernelCode, KernelCompiler, KernelRefusal, KernelSearch, TriedCandidate,
};
use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Compiles kernels with one backend under fixed options.
pub struct BackendKernels {
    pub backend: Arc<Backend>,
    pub options: Options,
    pub cost: Arc<dyn CostModel>,
}

impl BackendKernels {
    fn code(&self, kernel: &TiledKernel) -> Result<KernelCode, CompileError> {
        let compiled = self.backend.compile(kernel, &self.options, self.cost.as_ref())?;
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
    };
    KernelSearch { candidates: candidates.collect(), end: end.to_owned() }
}

fn refusal(error: &CompileError) -> KernelRefusal {
    KernelRefusal {
        reason: error.to_string(),
        hopeless: matches!(
            error,
            CompileError::SolverMissing(_) | CompileError::NoSelection(SelectError::NoInstruction { .. })
        ),
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
        self.code(kernel).map_err(|error| refusal(&error))
    }

    fn cost(&self, program: &Program) -> u64 {
        self.cost.cost(self.backend.isa(), program)
    }
}

/// The search for one region's code, which may be bounded in time. Every attempt is bounded by itself, so the search
/// ends soon after its limit.
pub(super) struct BoundedSearch<'a> {
    kernels: &'a BackendKernels,
    /// What `ACT_COMPILE_TIMEOUT` says, and when that is over.
    limit: Option<(Duration, Instant)>,
    passing: Cell<bool>,
}

impl BoundedSearch<'_> {
    pub(super) fn new(kernels: &BackendKernels, limit: Option<Duration>) -> BoundedSearch<'_> {
        let limit = limit.and_then(|limit| Some((limit, Instant::now().checked_add(limit)?)));
        BoundedSearch { kernels, limit, passing: Cell::new(false) }
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
        if let Some((limit, end)) = self.limit
            && Instant::now() >= end
        {
            self.passing.set(true);
            let seconds = limit.as_secs_f64();
            let reason = format!("the search took longer than ACT_COMPILE_TIMEOUT allows, {seconds} s");
            return Err(KernelRefusal { reason, hopeless: true });
        }
        self.kernels.code(kernel).map_err(|error| {
            if matches!(error, CompileError::SolverMissing(_)) {
                self.passing.set(true);
            }
            refusal(&error)
        })
    }

    fn cost(&self, program: &Program) -> u64 {
        self.kernels.cost(program)
    }
}
