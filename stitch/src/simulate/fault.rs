//! What a simulated instruction can do wrong at run time.

use act_isa::Position;

/// A check that every execution of an instruction passes or fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    /// An addressing attribute is within its declared range.
    BetaRange { attr: String },
    /// A requirement over addressing attributes holds.
    Requirement { index: usize },
    /// A slice lies within its buffer.
    BufferBounds { slice: Position, buffer: String, dim: usize },
    /// A slice starts at a multiple of the buffer's alignment.
    BufferAlign { slice: Position, buffer: String, dim: usize },
    /// A window lies within one segment of main memory, a writable one for an output.
    Segment { slice: Position },
    /// A window starts at a multiple of main memory's alignment.
    HbmAlign { slice: Position },
}

impl std::fmt::Display for Check {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Check::BetaRange { attr } => write!(f, "attribute `{attr}` is out of its range"),
            Check::Requirement { index } => write!(f, "requirement {index} does not hold"),
            Check::BufferBounds { slice, buffer, dim } => {
                write!(f, "{slice} leaves {buffer} in dimension {dim}")
            }
            Check::BufferAlign { slice, buffer, dim } => {
                write!(f, "{slice} is misaligned in dimension {dim} of {buffer}")
            }
            Check::Segment { slice } => write!(f, "{slice} is not inside one segment that allows the access"),
            Check::HbmAlign { slice } => write!(f, "{slice} is misaligned in main memory"),
        }
    }
}

/// As generated code records it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawFault {
    pub(crate) site: usize,
    pub(crate) check: usize,
}

/// The first instruction that failed a check. Results are undefined after a fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("instruction {instr} of the stitched text, `{text}`: {check}")]
pub struct Fault {
    /// Position among the instructions of the text.
    pub instr: usize,
    pub text: String,
    pub check: Check,
}
