//! The generated backend as stitching sees it: tiled kernels in, assembly or a reason out.

use act_generator::phase1::SelectError;
use act_generator::{Backend, CompileError, CostModel, FloatPolicy, Options};
use act_isa::{Isa, Program, TiledKernel};
use act_stitch::region::{KernelCode, KernelCompiler, KernelRefusal};
use std::sync::Arc;

/// Compiles kernels with one backend under fixed options.
pub struct BackendKernels {
    pub backend: Arc<Backend>,
    pub options: Options,
    pub cost: Arc<dyn CostModel>,
}

impl KernelCompiler for BackendKernels {
    fn isa(&self) -> &Isa {
        self.backend.isa()
    }

    fn may_reassociate_floats(&self) -> bool {
        self.options.numerics.float >= FloatPolicy::Xla
    }

    fn compile(&self, kernel: &TiledKernel) -> Result<KernelCode, KernelRefusal> {
        match self.backend.compile(kernel, &self.options, self.cost.as_ref()) {
            Ok(compiled) => Ok(KernelCode {
                pii: compiled.pii.text(self.backend.isa()).to_string(),
                assembly: compiled.assembly,
                in_slots: compiled.in_slots,
                out_slots: compiled.out_slots,
                allocator: compiled.allocator.to_string(),
            }),
            Err(error) => Err(KernelRefusal {
                reason: error.to_string(),
                hopeless: matches!(
                    error,
                    CompileError::SolverMissing(_)
                        | CompileError::NoSelection(SelectError::NoInstruction { .. })
                ),
            }),
        }
    }

    fn cost(&self, program: &Program) -> u64 {
        self.cost.cost(self.backend.isa(), program)
    }
}
