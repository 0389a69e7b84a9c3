//! BOLT: checks mapped code from outside. So far the floor that proofs stand on: SMT-LIB scripts given to a Z3 that is
//! found at run time. Knows neither how code was compiled nor LLVM.

pub mod solver;

pub use solver::{Solver, SolverError, Verdict};
