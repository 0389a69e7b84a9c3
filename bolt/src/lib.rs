//! BOLT: checks mapped code from outside. A case in Hex holds a tensor program, an accelerator and the code that was mapped
//! to it; proofs stand on SMT-LIB scripts given to a Z3 that is found at run time. Knows neither how code was compiled nor
//! LLVM.

pub mod align;
pub mod case;
pub mod discharge;
pub mod hex;
mod moments;
pub mod product;
pub mod region;
pub mod relate;
pub mod solver;
pub mod verify;

pub use case::{CaseError, Counterexample, Judgement, Options, Report, load, load_text, verify_case};
pub use solver::{Solver, SolverError, Verdict};
