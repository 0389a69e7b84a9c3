//! From a region to a loop program: tile choices are tried, their kernels compiled, accumulators joined, and the
//! cheapest nest kept. Every decision is data. Knows no accelerator; asks its description.

pub mod choice;
pub mod compile;
mod fence;
pub mod kernel;
pub mod larger;
pub mod pack_order;
pub mod search;

pub use compile::{CompiledPlan, compile_plan};
pub use kernel::{
    CandidateOutcome, KernelCode, KernelCompiler, KernelRecord, KernelRefusal, KernelSearch, TriedCandidate,
};
pub use pack_order::Packing;
pub use search::{Attempt, RegionCode, StitchError, stitch_region};
