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
//! ```text
//! file        = { item [";"] }
//! item        = "isa" name | "hbm" name ":" size ["align" term]
//!             | "buffer" name ":" elem "[" terms ["|" terms] "]" ["align" "(" terms ")"]
//!             | "register" name "=" term | "const" name "=" term | ("unit" | "units") name {"," name}
//!             | "instr" name ["alpha" attrs] ["beta" attrs] "{" { part [";"] } "}"
//! attrs       = "(" [ name [":" ("f32" | term ".." [term])] {"," ..} ] ")"       both ends inclusive
//! part        = "in" slice | "out" slice | "require" term | "cost" term | "unit" name | "asm" string {string}
//!             | "computation" ["ENTRY" name] block | "ENTRY" name block
//! slice       = name "[" term ":+" term {"," ..} "]"                             a box, or bytes of main memory
//!             | name "[" term ";" term ["by" term] {"," ..} "]"                  a strided window of main memory
//! block       = "{" { ["ROOT"] name "=" elem "[" terms "]" op "(" args ")" {"," option} [";"] }
//!                   ["return" name {"," name}] "}"
//! option      = name "=" ( term | "{" terms "}" | "{" "[" term ":" term [":" term] "]" {"," ..} "}" )
//! term        = or, and, not, < <= > >= == != (chains hold pairwise), in {..}, << >>, + -, * / %, - sign,
//!               min(..), max(..), ceildiv(a, b), names, numbers, (term), `term`
//! ```
//! Names may carry HLO's `%` and released TAIDL's `@c.`, `@a.`, `@s.`; comments start with `//` or `#` (in backticks
//! `//` is division, which floors like `/`). In a requirement an address of main memory stands for its offset within
//! its segment (an operand, a result, the scratch). A constant with dimensions is a splat of a scalar or a list in braces.

mod ast;
mod check;
mod check_encoding;
pub mod diagnostic;
#[cfg(test)]
mod fuzz;
mod lexer;
mod lower;
mod lower_control;
mod lower_encoding;
mod lower_stmt;
mod parse_computation;
mod parse_encoding;
mod parse_term;
mod parser;
mod print_control;
mod print_encoding;
mod printer;
mod recovery;
mod released;
mod sample;
mod scope;
#[cfg(test)]
mod tests;

pub use diagnostic::{Diagnostic, Diagnostics, Problem, Severity, Span};

use crate::model::Isa;

/// Whether a lone semantics block, `ENTRY name { .. }`, is well-formed; names in it are not resolved.
///
/// # Errors
/// Every fault of spelling and grammar.
pub fn check_block(text: &str, file: &str) -> Result<(), Diagnostics> {
    let list = parser::parse_block(text);
    if list.is_empty() { Ok(()) } else { Err(Diagnostics { file: file.to_owned(), text: text.into(), list }) }
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
        let diagnostics = Diagnostics { file: file.to_owned(), text: text.into(), list };
        match isa {
            Some(isa) if !diagnostics.has_errors() => Ok((isa, diagnostics)),
            _ => Err(diagnostics),
        }
    }
}
