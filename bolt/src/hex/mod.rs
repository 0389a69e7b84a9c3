//! Hex, the language in which a case is written: the tensor program, the accelerator with its calls, the mapping's driver
//! code, and how they are related. Knows no solver.

pub mod check;
pub mod domain;
pub mod expand;
mod foreign;
pub mod lexer;
pub mod parser;
pub mod printer;
pub mod run;
pub mod source;
pub mod syntax;
pub mod trace;

pub use check::check;
pub use domain::Domain;
pub use expand::{Expanded, expand};
pub use parser::{parse, parse_with};
pub use printer::print_case;
pub use run::{Fault, Outcome, run};
pub use source::{HexError, Source, Span};
pub use syntax::Case;
