//! Compiler backends generated from a description: phase 1 selects instructions by equality saturation, phase 2 orders
//! them and assigns addresses by constraint solving. Names no accelerator; knows neither MLIR nor PJRT.

pub mod backend;
pub mod compile;
pub mod cost;
pub mod numerics;
pub mod phase1;
pub mod phase2;
pub mod pii;
mod pii_text;

pub use backend::{Backend, CompileError};
pub use compile::{Compiled, NoAllocation, Options, Report};
pub use cost::{CostModel, QueueModel, SumOfCosts, model_of};
pub use numerics::{FloatPolicy, Numerics};
pub use phase1::GenerateError;
pub use phase2::{AllocatorChoice, AllocatorUsed, SolverMissing};
pub use pii::{PiiGraph, PiiId, PiiNode, PiiOp};
