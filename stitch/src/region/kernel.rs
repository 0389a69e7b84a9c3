//! The seam to the generated backend: what stitching asks of it for one tiled kernel.

use act_isa::{Assembly, Isa, Program, TiledKernel};

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

    /// Modelled cycles of a nest.
    fn cost(&self, program: &Program) -> u64;
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
}

/// Why no code exists for a kernel, in words for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct KernelRefusal {
    pub reason: String,
    /// Trying other tiles cannot help: an operator that no instruction computes, a missing solver.
    pub hopeless: bool,
}

/// One compiled kernel of a region, for dumps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelRecord {
    pub kernel: TiledKernel,
    pub code: KernelCode,
}
