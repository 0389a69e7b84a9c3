//! The text form of a description, `.taidl`: lexer, parser, lowering to the model, checks, printer.
//!
//! ```text
//! isa h_qkv
//!
//! hbm d0: 1 MiB
//! buffer d1: bf16[128 | 64]                          // access dimensions | unit dimensions
//!
//! instr load_rm alpha(n: 1..128) beta(addr_in, addr_out) {
//!   in  d0[addr_in :+ n * 128]                       // start :+ length
//!   out d1[addr_out :+ n]
//!   cost n
//!   computation {
//!     x1 = u8[n * 128] parameter(0)
//!     a = u8[n, 64, 2] reshape(x1)
//!     ROOT y = bf16[n, 64] bitcast-convert(a)
//!   }
//! }
//! ```
//!
//! The grammar and the meaning of every construct stand in `TAIDL.md` beside this crate's sources.

mod ast;
mod check;
mod check_encoding;
mod check_flow;
pub mod diagnostic;
mod format;
#[cfg(test)]
mod fuzz;
mod lexer;
mod lower;
mod lower_control;
mod lower_encoding;
mod lower_stmt;
mod mend;
mod page;
mod parse_computation;
mod parse_encoding;
mod parse_term;
mod parser;
mod print_control;
mod print_encoding;
mod printer;
mod reach;
mod recovery;
#[cfg(test)]
mod reference;
mod released;
mod sample;
mod scope;
#[cfg(test)]
mod tests;
mod timing;

pub use diagnostic::{Diagnostic, Diagnostics, Problem, Severity, Span};
pub use format::format;
pub use page::{InstrPage, Page};

use crate::model::Isa;

/// Whether a lone semantics block, `ENTRY name { .. }`, is well-formed; names in it are not resolved.
///
/// # Errors
/// Every fault of spelling and grammar.
pub fn check_block(text: &str, file: &str) -> Result<(), Diagnostics> {
    let list = parser::parse_block(text);
    if list.is_empty() { Ok(()) } else { Err(Diagnostics { file: file.to_owned(), text: text.into(), list }) }
}

/// The model of a text without the checks of types, ranges and buffers.
///
/// # Errors
/// Faults of spelling and grammar, unknown names.
pub(crate) fn parse_unchecked(text: &str, file: &str) -> Result<Isa, Diagnostics> {
    let parsed = parser::parse(text);
    let mut list = parsed.faults;
    let mut lowered = lower::lower(&parsed.items);
    if !parsed.declarations_lost {
        list.append(&mut lowered.diagnostics);
    }
    list.sort_by_key(|d| d.span.start);
    let complete = list.is_empty();
    if complete {
        Ok(lowered.isa)
    } else {
        Err(Diagnostics { file: file.to_owned(), text: text.into(), list })
    }
}

impl Isa {
    /// Reads a description. Warnings are dropped; [`Isa::parse_with_warnings`] keeps them.
    ///
    /// # Errors
    /// Everything wrong with the text, errors and warnings.
    pub fn parse(text: &str, file: &str) -> Result<Isa, Diagnostics> {
        Isa::parse_with_warnings(text, file).map(|(isa, _)| isa)
    }

    /// Reads a description and gives the warnings beside it.
    ///
    /// # Errors
    /// As [`Isa::parse`].
    pub fn parse_with_warnings(text: &str, file: &str) -> Result<(Isa, Diagnostics), Diagnostics> {
        let parsed = parser::parse(text);
        let mut list = parsed.faults;
        let mut isa = None;
        // Without its declarations the rest of a text is full of unknown names.
        if !parsed.declarations_lost {
            let complete = list.is_empty();
            let mut lowered = lower::lower(&parsed.items);
            list.append(&mut lowered.diagnostics);
            list.append(&mut check::check_instructions(&lowered));
            if complete && !list.iter().any(|d| d.severity == Severity::Error) {
                list.append(&mut check::check_whole(&lowered));
            }
            isa = Some(lowered.isa);
        }
        list.sort_by_key(|d| d.span.start);
        // Two things missing in one place are one fault.
        let expected = |d: &Diagnostic| matches!(d.problem, Problem::Expected { .. });
        list.dedup_by(|b, a| a.span == b.span && expected(a) && expected(b));
        let diagnostics = Diagnostics { file: file.to_owned(), text: text.into(), list };
        match isa {
            Some(isa) if !diagnostics.has_errors() => Ok((isa, diagnostics)),
            _ => Err(diagnostics),
        }
    }
}
