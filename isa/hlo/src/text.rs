//! HLO text, as XLA prints it: [`parse_module`] and [`parse_graph`] read it, [`print_graph`] writes it.
//!
//! Two operators that HLO lacks are spelled `eye()` and `fma(a, b, c)`. The paper's spelling of element types
//! (`i8`) and a bare `ENTRY name { ... }` are accepted. A value named `_` and digits has no name: that is how
//! unnamed nodes are printed.

mod attributes;
mod constant;
mod error;
mod lexer;
mod lower;
mod operator;
mod parser;
mod print;

pub use error::ParseError;
pub use print::print_graph;

use crate::{Graph, Layout, Shape, SourceLoc};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A module as it stands in text: its computations, not yet looked into.
#[derive(Clone, Debug)]
pub struct TextModule {
    name: String,
    source: Arc<str>,
    tokens: Vec<lexer::Token>,
    computations: Vec<Computation>,
    entry: usize,
    /// Source positions by `stack_frame_id`.
    frames: BTreeMap<i64, SourceLoc>,
}

#[derive(Clone, Debug)]
struct Computation {
    name: String,
    instructions: Vec<Instruction>,
    /// Index of the instruction marked ROOT, else the last one.
    root: usize,
}

#[derive(Clone, Debug)]
struct Instruction {
    name: String,
    /// Token that errors about this instruction point at: its opcode.
    at: usize,
    opcode: String,
    shape: TextShape,
    operands: Operands,
    /// In the order of the text: name, its token, and the tokens of the value.
    attributes: Vec<(String, usize, std::ops::Range<usize>)>,
}

#[derive(Clone, Debug)]
enum TextShape {
    Array(Shape, Option<Layout>),
    Tuple(Vec<TextShape>),
}

#[derive(Clone, Debug)]
enum Operands {
    /// Names and their tokens.
    Values(Vec<(String, usize)>),
    /// The parenthesised tokens of a constant or the number of a parameter.
    Payload(std::ops::Range<usize>),
}

impl TextModule {
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Names of all computations, in the order of the text.
    pub fn computation_names(&self) -> impl Iterator<Item = &str> {
        self.computations.iter().map(|c| c.name.as_str())
    }

    /// The entry computation as a graph: fusions and calls inlined, a tuple at ROOT taken as several roots.
    ///
    /// # Errors
    /// An operator or attribute that the project does not know, or shapes that do not fit.
    pub fn graph(&self) -> Result<Graph, ParseError> {
        lower::graph(self, &self.computations[self.entry])
    }

    /// As [`TextModule::graph`] for any computation, such as the body of a fusion; `None` when there is none
    /// of this name.
    ///
    /// # Errors
    /// As [`TextModule::graph`].
    pub fn graph_of(&self, computation: &str) -> Option<Result<Graph, ParseError>> {
        self.computation(computation).map(|c| lower::graph(self, c))
    }

    fn computation(&self, name: &str) -> Option<&Computation> {
        self.computations.iter().find(|c| c.name == name)
    }

    fn error(&self, token: usize, message: impl Into<String>) -> ParseError {
        ParseError::at_token(&self.source, &self.tokens, token, message)
    }
}

/// Reads a module, or a bare `ENTRY` block.
///
/// # Errors
/// Text that is no HLO; the operators themselves are looked at by [`TextModule::graph`].
pub fn parse_module(text: &str) -> Result<TextModule, ParseError> {
    parser::module(text)
}

/// Reads a module and takes its entry computation as a graph.
///
/// # Errors
/// As [`parse_module`] and [`TextModule::graph`].
pub fn parse_graph(text: &str) -> Result<Graph, ParseError> {
    parse_module(text)?.graph()
}
