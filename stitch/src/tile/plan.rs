//! A tile plan: the loop nest with tiled kernels at its leaves, before any of them is compiled.

use act_isa::{LoopId, TiledKernel, View};

/// A loop nest over kernels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Nest {
    Seq(Vec<Nest>),
    For {
        iv: LoopId,
        trip: u64,
        parallel: bool,
        body: Box<Nest>,
    },
    /// Index into [`TilePlan::kernels`].
    Kernel(usize),
    HostCopy {
        from: View,
        to: View,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedKernel {
    pub kernel: TiledKernel,
    /// Kernels of one group share the slot of their accumulator.
    pub group: Option<usize>,
}

/// What a region is cut into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TilePlan {
    pub nest: Nest,
    pub kernels: Vec<PlannedKernel>,
    /// Number of accumulator groups.
    pub groups: usize,
    /// Bytes that packed operands and results take.
    pub packed_bytes: u64,
    /// The region's constants.
    pub consts: Vec<u8>,
}
