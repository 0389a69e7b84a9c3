//! The seam to the generated backend: what stitching asks of it for one tiled kernel.

use act_isa::{Assembly, Isa, Program, TiledKernel};
use std::fmt;

/// Compiles tiled kernels for one accelerator.
pub trait KernelCompiler {
    fn isa(&self) -> &Isa;

    /// The description as instructions are selected from it, with the same buffers; tile sizes are read off it.
    fn selectable_isa(&self) -> &Isa;

    /// Whether sums of floats may be re-associated.
    fn may_reassociate_floats(&self) -> bool;

    /// # Errors
    /// No candidate fits; the kernel goes to the host.
    fn compile(&self, kernel: &TiledKernel) -> Result<KernelCode, KernelRefusal>;

    /// The same for a kernel that is worth little effort, as there is other code already.
    ///
    /// # Errors
    /// None was found soon.
    fn compile_soon(&self, kernel: &TiledKernel) -> Result<KernelCode, KernelRefusal> {
        self.compile(kernel)
    }

    /// Modelled cycles of a nest.
    fn cost(&self, program: &Program) -> u64;

    /// The same if it is below `limit`, else anything from the limit on: models may tell that sooner.
    fn cost_below(&self, program: &Program, _limit: u64) -> u64 {
        self.cost(program)
    }
}

/// A backend that takes little effort for every kernel.
pub(super) struct Soon<'a>(pub(super) &'a dyn KernelCompiler);

impl KernelCompiler for Soon<'_> {
    fn isa(&self) -> &Isa {
        self.0.isa()
    }

    fn selectable_isa(&self) -> &Isa {
        self.0.selectable_isa()
    }

    fn may_reassociate_floats(&self) -> bool {
        self.0.may_reassociate_floats()
    }

    fn compile(&self, kernel: &TiledKernel) -> Result<KernelCode, KernelRefusal> {
        self.0.compile_soon(kernel)
    }

    fn cost(&self, program: &Program) -> u64 {
        self.0.cost(program)
    }

    fn cost_below(&self, program: &Program, limit: u64) -> u64 {
        self.0.cost_below(program, limit)
    }
}

/// A compiled kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelCode {
    pub assembly: Assembly,
    /// Start per access dimension of every on-chip input and output; `None` for those in d0.
    pub in_slots: Vec<Option<Vec<i64>>>,
    pub out_slots: Vec<Option<Vec<i64>>>,
    /// The selected instructions, readable.
    pub pii: String,
    /// Which allocator placed them.
    pub allocator: String,
    pub search: KernelSearch,
}

/// What the backend tried for a kernel, for dumps and reports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelSearch {
    /// In the order in which they were looked at.
    pub candidates: Vec<TriedCandidate>,
    /// Why no more were.
    pub end: String,
}

/// One candidate: a lower bound of its cost, its instructions, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriedCandidate {
    pub lower_bound: u64,
    pub instructions: usize,
    pub outcome: CandidateOutcome,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CandidateOutcome {
    /// The cheapest so far.
    Accepted { cost: u64 },
    /// It runs, and costs no less than what there was.
    Dearer { cost: u64 },
    /// Its lower bound already reached the cost of the best.
    Pruned,
    /// It has no allocation, for this reason.
    Failed { reason: String },
}

impl fmt::Display for KernelSearch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for candidate in &self.candidates {
            let TriedCandidate { lower_bound, instructions, outcome } = candidate;
            write!(f, "{instructions} instructions, cost at least {lower_bound}: ")?;
            match outcome {
                CandidateOutcome::Accepted { cost } => writeln!(f, "accepted, cost {cost}")?,
                CandidateOutcome::Dearer { cost } => writeln!(f, "dearer, cost {cost}")?,
                CandidateOutcome::Pruned => writeln!(f, "pruned")?,
                CandidateOutcome::Failed { reason } => writeln!(f, "failed: {reason}")?,
            }
        }
        writeln!(f, "end: {}", self.end)
    }
}

/// Why no code exists for a kernel, in words for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct KernelRefusal {
    pub reason: String,
    /// Trying other tiles cannot help: an operator that no instruction computes, a missing solver.
    pub hopeless: bool,
    /// An accumulator was to lie in a buffer without a slot of its shape: says something of the tiles and nothing of the
    /// kernel.
    pub misplaced: bool,
}

/// One compiled kernel of a region, for dumps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelRecord {
    pub kernel: TiledKernel,
    pub code: KernelCode,
}
