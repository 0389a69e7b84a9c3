//! What can go wrong when assembly is executed, with the instruction and the memory at fault.

use crate::expr::EvalExprError;
use crate::semantics::InstantiateError;
use act_hlo::EvalError;

/// Execution stopped: a compiler bug or a wrong description, never a property of the data.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("instruction {number} ({instr}){}: {what}", if buffer.is_empty() { String::new() } else { format!(", {buffer}") })]
pub struct Fault {
    /// Instructions and host copies executed before, over all loop iterations.
    pub number: u64,
    pub instr: String,
    /// The buffer or segment concerned; empty when none is.
    pub buffer: String,
    pub what: FaultKind,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultKind {
    #[error("{got} {what} given, {expected} needed")]
    Count { what: &'static str, expected: usize, got: usize },
    #[error("operand {index} has {got} bytes, the program says {expected}")]
    OperandSize { index: usize, expected: u64, got: u64 },
    #[error("the description has no such instruction")]
    NoSuchInstruction,
    #[error("no such segment")]
    NoSuchSegment,
    #[error("attribute `{attr}` must be {expected}")]
    BetaKind { attr: String, expected: &'static str },
    #[error("attribute `{attr}` = {value} is outside {min}..{max}")]
    BetaRange { attr: String, value: i64, min: i64, max: i64 },
    #[error("an address uses a loop variable that no surrounding loop has, or overflows")]
    Address,
    #[error("requirement {index} does not hold")]
    Requirement { index: usize },
    #[error("{start}..{end} in dimension {dim} lies outside 0..{size}")]
    OutOfSlots { dim: usize, start: i64, end: i64, size: u64 },
    #[error("bytes {start}..{end} lie outside 0..{size}")]
    OutOfBytes { start: i64, end: i64, size: u64 },
    #[error("start {start} is no multiple of {align}")]
    Misaligned { start: i64, align: u64 },
    #[error("byte {offset} is read but was never written")]
    Uninitialised { offset: u64 },
    #[error("byte {offset} is read, but no fence follows its store by instruction {store}")]
    Unfenced { offset: u64, store: u64 },
    #[error("is read-only")]
    ReadOnly,
    #[error("the window written overlaps itself")]
    OverlappingStore,
    #[error("output {output} overlaps an earlier output of the same instruction")]
    OverlappingOutputs { output: usize },
    #[error("the new value of register `{register}`: {error}")]
    Update { register: String, error: EvalExprError },
    #[error("a slice of more than {limit} bytes")]
    TooLarge { limit: u64 },
    #[error("a copy between views of different lengths or types")]
    CopyShape,
    #[error("{0}")]
    Semantics(Box<InstantiateError>),
    #[error("{0}")]
    Eval(Box<EvalError>),
    #[error("the value has another type than the place")]
    Type,
    /// By the caller, not by the program.
    #[error("ended early, as was asked")]
    Stopped,
}

impl From<InstantiateError> for FaultKind {
    fn from(error: InstantiateError) -> FaultKind {
        FaultKind::Semantics(error.into())
    }
}

impl From<EvalError> for FaultKind {
    fn from(error: EvalError) -> FaultKind {
        FaultKind::Eval(error.into())
    }
}
