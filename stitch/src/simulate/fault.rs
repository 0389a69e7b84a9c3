//! What a simulated instruction can do wrong. Addresses do not depend on data: every fault is known before the run.

use act_isa::Position;

/// A rule that every execution of an instruction keeps.
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
    /// A window lies within one segment of main memory.
    Segment { slice: Position, segment: String },
    /// An output is a segment that may be written.
    ReadOnly { slice: Position, segment: String },
    /// A window starts at a multiple of main memory's alignment.
    HbmAlign { slice: Position, segment: String },
    /// A window that is written has no byte twice.
    OverlappingStore { slice: Position, memory: String },
    /// The outputs of an instruction have no byte in common.
    OverlappingOutputs { output: usize, memory: String },
    /// Strict mode: only bytes that something wrote are read.
    Written { slice: Position, memory: String, offset: u64 },
    /// Strict mode: a load, the host's too, does not touch bytes of main memory that an instruction (the `store`-th)
    /// stored since the last fence, unless the description calls main memory ordered.
    Fenced { slice: Position, segment: String, offset: u64, store: u64 },
}

impl Check {
    /// The buffer or segment concerned; empty when none is.
    pub fn memory(&self) -> &str {
        match self {
            Check::BetaRange { .. } | Check::Requirement { .. } => "",
            Check::BufferBounds { buffer, .. } | Check::BufferAlign { buffer, .. } => buffer,
            Check::Segment { segment, .. }
            | Check::ReadOnly { segment, .. }
            | Check::HbmAlign { segment, .. }
            | Check::Fenced { segment, .. } => segment,
            Check::OverlappingStore { memory, .. }
            | Check::OverlappingOutputs { memory, .. }
            | Check::Written { memory, .. } => memory,
        }
    }
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
            Check::Segment { slice, segment } => write!(f, "{slice} leaves {segment}"),
            Check::ReadOnly { slice, segment } => write!(f, "{slice} writes {segment}, which is read-only"),
            Check::HbmAlign { slice, segment } => write!(f, "{slice} is misaligned in {segment}"),
            Check::OverlappingStore { slice, memory } => {
                write!(f, "the window of {slice} in {memory} overlaps itself")
            }
            Check::OverlappingOutputs { output, memory } => {
                write!(f, "output {output} overlaps an earlier output in {memory}")
            }
            Check::Written { slice, memory, offset } => {
                write!(f, "{slice} reads byte {offset} of {memory}, which nothing wrote")
            }
            Check::Fenced { slice, segment, offset, store } => {
                write!(
                    f,
                    "{slice} reads byte {offset} of {segment}, but no fence follows its store by execution {store}"
                )
            }
        }
    }
}

/// The first instruction that breaks a rule, in the order of execution. Nothing runs then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("instruction {instr} of the stitched text, `{text}`, execution {number}: {check}")]
pub struct Fault {
    /// Position among the instructions of the text.
    pub instr: usize,
    /// Instructions and host copies executed before, over all loop iterations.
    pub number: u64,
    pub text: String,
    pub check: Check,
}
