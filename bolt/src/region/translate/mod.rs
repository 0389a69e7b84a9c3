//! A region as a case in Hex: its graph is the tensor program, the description's buffers, registers and instructions are the
//! accelerator, the stitched code with its loops is the mapping. Everything is written as text, for the parser of Hex to
//! judge. What Hex has no form for is refused.

mod index;
mod instruction;
mod program;
mod scalar;
mod tensor;

use super::RegionSpec;
use super::stitched;
use act_isa::Isa;
use std::collections::BTreeSet;

/// Why a region has no form in Hex.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TranslateError {
    #[error("the stitched text is not understood: {0}")]
    Text(#[from] stitched::StitchedTextError),
    /// An operator, a type, an address or a size.
    #[error("{place}: {reason}")]
    Form { place: String, reason: String },
}

impl TranslateError {
    fn at(place: impl Into<String>) -> impl FnOnce(String) -> TranslateError {
        let place = place.into();
        move |reason| TranslateError::Form { place, reason }
    }
}

/// Names that are taken.
#[derive(Clone, Default)]
pub(crate) struct Names(BTreeSet<String>);

impl Names {
    fn take(&mut self, name: &str) {
        self.0.insert(name.to_owned());
    }

    /// A name of its own, like the one that is wished for.
    fn fresh(&mut self, wish: &str) -> String {
        let word = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' };
        let mut base: String = wish.chars().map(word).collect();
        if !base.starts_with(|c: char| c.is_ascii_alphabetic()) || crate::hex::parser::is_reserved(&base) {
            base.insert_str(0, "the_");
        }
        let mut name = base.clone();
        let mut number = 2;
        while !self.0.insert(name.clone()) {
            name = format!("{base}_{number}");
            number += 1;
        }
        name
    }
}

/// Writes a case for a region: `text` is its stitched code. Its loops stay loops, its instructions become commands.
///
/// # Errors
/// The text is not understood, or something in it has no form in Hex.
pub fn hex_of_region(isa: &Isa, spec: &RegionSpec<'_>, text: &str) -> Result<String, TranslateError> {
    let program = stitched::parse(isa, text)?;
    program::case(isa, spec, &program)
}
