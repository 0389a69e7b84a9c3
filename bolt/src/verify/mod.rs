//! Verify: from a product program with relations to verification conditions, to a solver, to a verdict. Loop bounds come
//! from the tensor program; that the hardware leaves its loops at these bounds is an obligation like any other.

pub mod condition;
mod expression;
mod generate;
pub mod instantiate;
mod inverse;
mod loops;
mod relation;
pub mod smtlib;
mod state;
pub mod term;

pub use condition::{Condition, Fact, Generated, Unsupported};
pub use generate::generate;
