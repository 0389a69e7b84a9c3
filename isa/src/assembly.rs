//! Straight-line assembly: concrete instructions θ(α, β) and the constants they read; its text form and that of loop
//! programs, both by the assembly syntax of the description.

mod address;
mod parse;
mod print;
mod template;
#[cfg(test)]
mod tests;

pub use parse::{AssemblyError, AssemblyProblem, parse_assembly, parse_operand_form, parse_program};
pub use print::{print_assembly, print_instr, print_operand_form, print_program};
pub use template::{TemplateError, check_templates};

use crate::model::InstrId;
use crate::program::{Affine, Space};

/// Value of a computational attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AttrVal {
    Int(i64),
    /// Bits of an f32.
    F32(u32),
}

impl AttrVal {
    pub fn as_int(self) -> Option<i64> {
        match self {
            AttrVal::Int(v) => Some(v),
            AttrVal::F32(_) => None,
        }
    }
}

/// Value of an addressing attribute.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BetaVal {
    /// A position in an on-chip buffer, or any other integer.
    Int(Affine),
    /// A byte address: an offset into one of the disjoint segments that d0 consists of.
    Hbm(Space, Affine),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AsmInstr {
    pub op: InstrId,
    pub alpha: Vec<AttrVal>,
    pub beta: Vec<BetaVal>,
}

/// The code of one tiled kernel. Loop variables of the surrounding nest may occur in its addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Assembly {
    pub instrs: Vec<AsmInstr>,
    /// Contents of [`Space::Consts`].
    pub consts: Vec<u8>,
    /// Bytes of [`Space::Scratch`] used (spills).
    pub scratch_bytes: u64,
}
