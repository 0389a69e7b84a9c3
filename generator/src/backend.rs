//! A generated backend: the rules of one description, and the way of a kernel through both phases. A backend is data
//! made at run time; another description is another value of this type.

use crate::compile::{Compiled, NoAllocation, Options, compile_best};
use crate::cost::CostModel;
use crate::phase1::{GenerateError, SelectError, Selector};
use crate::phase2::{AllocError, SolverMissing};
use act_isa::{Isa, TiledKernel};
use std::fmt::Write;
use std::sync::Arc;
use std::time::Instant;

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
    #[error("{reason} (after {tried} candidates)")]
    NoAllocation { reason: AllocError, tried: usize },
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
        let exploration = selection.exploration().clone();
        let candidates = std::iter::from_fn(|| selection.next().map(|selected| selected.graph));
        match compile_best(&self.isa, kernel, candidates, options, cost) {
            Ok(mut compiled) => {
                compiled.report.explore_time = explored;
                compiled.report.exploration = Some(exploration);
                Ok(compiled)
            }
            Err(NoAllocation::NoCandidate) => Err(CompileError::NoSelection(SelectError::LimitReached {
                isa: self.isa.name.clone(),
                stop: exploration.stop,
            })),
            Err(NoAllocation::Failed { reason, tried }) => Err(CompileError::NoAllocation { reason, tried }),
            Err(NoAllocation::SolverMissing(missing)) => Err(missing.into()),
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
