//! A generated backend: the rules of one description, and the way of a kernel through both phases. A backend is data
//! made at run time; another description is another value of this type.

use crate::compile::{CandidateLimits, Compiled, NoAllocation, Options, compile_best};
use crate::cost::CostModel;
use crate::phase1::{Aversion, GenerateError, SelectError, Selector};
use crate::phase2::{AllocError, Shortage, SolverMissing};
use act_isa::{BufferId, Isa, TiledKernel};
use std::fmt::Write;
use std::sync::Arc;
use std::time::Instant;

/// Candidates that may fail before others are put first.
const FAILURES: u32 = 8;

/// A compiler backend for one description. Shared between threads; compiling does not change it.
pub struct Backend {
    isa: Arc<Isa>,
    selector: Selector,
}

/// Why a kernel has no code. The caller runs it elsewhere; only a missing solver is worth a retry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// Phase 1 found no instructions for it.
    #[error(transparent)]
    NoSelection(#[from] SelectError),
    /// Phase 2 could place none of the candidates; the reason is that of the cheapest.
    #[error("{reason} (after {tried} candidates, {})", if *all { "all that were found" } else { "where the search ends" })]
    NoAllocation {
        reason: AllocError,
        tried: usize,
        /// There are no more candidates.
        all: bool,
        /// Orders that the allocators gave up on, each at the end of what it may take.
        given_up: u32,
    },
    /// CP-SAT is needed and not installed.
    #[error(transparent)]
    SolverMissing(#[from] SolverMissing),
}

impl Backend {
    /// Derives the backend of a description.
    ///
    /// # Errors
    /// No rule can be derived for any instruction.
    pub fn generate(isa: Arc<Isa>) -> Result<Backend, GenerateError> {
        let selector = Selector::generate(&isa)?;
        Ok(Backend { isa, selector })
    }

    pub fn isa(&self) -> &Arc<Isa> {
        &self.isa
    }

    /// As [`Selector::isa`].
    pub fn selectable_isa(&self) -> &Isa {
        self.selector.isa()
    }

    /// As [`Selector::may_contract`].
    pub fn may_contract(&self, elem: act_hlo::ElemType) -> bool {
        self.selector.may_contract(elem)
    }

    /// Compiles one kernel to the cheapest code that was found. Deterministic: the same kernel, description, options
    /// and cost model give the same code.
    ///
    /// # Errors
    /// See [`CompileError`].
    pub fn compile(
        &self,
        kernel: &TiledKernel,
        options: &Options,
        cost: &dyn CostModel,
    ) -> Result<Compiled, CompileError> {
        let started = Instant::now();
        let mut selection = self.selector.select(kernel, options.numerics, &options.selection)?;
        let explored = started.elapsed();
        // Where the cheapest graphs cannot be allocated, others are tried: those that do without what was in the way,
        // then those of a larger e-graph.
        let mut left = options.candidates.failures;
        let mut allocation = options.allocation;
        let mut first: Option<AllocError> = None;
        let mut avoided = Vec::new();
        loop {
            let candidates = std::iter::from_fn(|| selection.next_of_stage().map(|selected| selected.graph));
            let most = CandidateLimits { failures: left.min(FAILURES), ..options.candidates };
            let options_here = Options { candidates: most, allocation, ..options.clone() };
            let error = match compile_best(&self.isa, kernel, candidates, &options_here, cost) {
                Ok(mut compiled) => {
                    compiled.report.explore_time = explored;
                    compiled.report.exploration = Some(selection.exploration().clone());
                    return Ok(compiled);
                }
                Err(NoAllocation::SolverMissing(missing)) => return Err(missing.into()),
                Err(NoAllocation::NoCandidate) => None,
                Err(NoAllocation::Failed { reason, tried, given_up }) => {
                    allocation.given_up = allocation.given_up.saturating_sub(given_up);
                    left = left.saturating_sub(u32::try_from(tried).unwrap_or(u32::MAX));
                    first.get_or_insert(reason.clone());
                    Some(reason)
                }
            };
            let aversion = error.as_ref().and_then(|error| self.aversion(error));
            let new = aversion.filter(|aversion| !avoided.contains(aversion));
            avoided.extend(new);
            let within_limits = left > 0 && allocation.given_up > 0;
            if within_limits && (new.is_some_and(|aversion| selection.avoid(aversion)) || selection.advance())
            {
                continue;
            }
            let tried = (options.candidates.failures - left) as usize;
            return Err(match first {
                Some(reason) => CompileError::NoAllocation {
                    reason,
                    tried,
                    all: within_limits,
                    given_up: options.allocation.given_up - allocation.given_up,
                },
                None => CompileError::NoSelection(SelectError::LimitReached {
                    isa: self.isa.name.clone(),
                    stop: selection.exploration().stop,
                }),
            });
        }
    }

    /// What a graph should do without so as not to fail like this.
    fn aversion(&self, error: &AllocError) -> Option<Aversion> {
        let buffer = |shortage: &Shortage| {
            let (name, _) = shortage.buffers.first()?;
            let at = self.isa.buffers.iter().position(|b| b.name == *name)?;
            Some(Aversion::Buffer(BufferId(u16::try_from(at).ok()?)))
        };
        match error {
            AllocError::NoFit { shortage, .. } => buffer(shortage),
            AllocError::GaveUp { shortage, .. } => shortage.as_ref().and_then(buffer),
            AllocError::NoOrder => Some(Aversion::InPlace),
            _ => None,
        }
    }

    /// The backend as text: the generated rules with their preconditions, the instructions that no rule could be
    /// derived for and why, and the rewrites in use under `options`.
    pub fn describe(&self, options: &Options) -> String {
        let mut text = format!("backend {}\n\n", self.isa.name);
        text.push_str(self.selector.rules_text().trim_end());
        text.push('\n');
        for (id, reason) in self.selector.unmatchable() {
            let _ = write!(text, "\nno rule for {}: {reason}", self.isa.instr(*id).name);
        }
        let _ = write!(text, "\nrewrites under {}:\n", options.numerics.float);
        for rule in self.selector.rewrites(options.numerics) {
            let _ = writeln!(text, "  {}", rule.name);
        }
        text
    }
}
