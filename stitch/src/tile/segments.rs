//! Segments of d0 that a region has before its kernels are compiled. A kernel numbers its own scratch memory and
//! constants from 0, so the region's constants and packed tensors go by numbers of their own until all kernels are
//! placed.

use act_isa::Space;

/// The segments of a region with this many operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segments {
    pub operands: u16,
}

impl Segments {
    /// The region's constants, until they are placed in [`Space::Consts`].
    pub fn consts(self) -> Space {
        Space::Operand(self.operands)
    }

    /// Packed tensors, until they are placed in [`Space::Scratch`].
    pub fn packed(self) -> Space {
        Space::Operand(self.operands + 1)
    }
}
