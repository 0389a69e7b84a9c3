//! Compiler backends generated from a description: phase 1 selects instructions by equality saturation, phase 2 orders
//! them and assigns addresses by constraint solving. Names no accelerator; knows neither MLIR nor PJRT.

pub mod numerics;
pub mod pii;

pub use numerics::{FloatPolicy, Numerics};
pub use pii::{PiiGraph, PiiId, PiiNode, PiiOp};
