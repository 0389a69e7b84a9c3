//! Verification conditions and what they assume.

use super::inverse::Ranged;
use super::term::{Term, Terms};
use crate::hex::source::Span;
use std::rc::Rc;

/// A relation that holds in some state, for all values of its variables: `guard` implies `left == right`.
#[derive(Clone, Debug)]
pub struct Fact {
    pub name: String,
    pub vars: Vec<Ranged>,
    pub guard: Term,
    pub left: Term,
    pub right: Term,
}

/// One thing to be proved: the assumptions and facts imply the goal.
#[derive(Clone, Debug)]
pub struct Condition {
    pub name: String,
    /// The places it is about, in the hardware code, the tensor program or the relations.
    pub spans: Vec<Span>,
    pub assumptions: Vec<Term>,
    pub facts: Vec<Rc<Fact>>,
    pub goal: Term,
}

/// All conditions of a case.
#[derive(Debug)]
pub struct Generated {
    pub terms: Terms,
    pub conditions: Vec<Condition>,
    /// Loops of the product: cut with invariants, seen as one write, unrolled.
    pub cut: Vec<String>,
    pub bulk: usize,
    pub unrolled: usize,
}

/// The case is beyond what conditions can be made for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported {
    pub span: Span,
    pub reason: String,
}
