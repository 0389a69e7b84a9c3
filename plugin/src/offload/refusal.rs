//! Why something stayed on the host: data, kept and shown.

use super::compiler::RegionId;
use act_hlo::SourceLoc;
use act_hlo::proto::ProtoError;
use act_hlo::proto::convert::Inexpressible;

/// A contraction that stays on the host.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    pub region: RegionId,
    /// HLO name of the operator.
    pub op: String,
    pub source: Option<SourceLoc>,
    pub reason: RefusalReason,
    /// The regions around it that were tried, largest first.
    pub attempts: Vec<Attempt>,
}

/// A region that was offered to the compiler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Operators of the region.
    pub operators: usize,
    /// Why it was refused; `None` when it was taken.
    pub refused: Option<String>,
}

/// Why an operator was not offloaded.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RefusalReason {
    #[error("not expressible: {0}")]
    Inexpressible(#[from] Inexpressible),
    /// XLA updates the operand's buffer in place; a kernel's results are fresh buffers.
    #[error("works in place on its operand")]
    InPlace,
    #[error("ordered by control edges")]
    ControlEdge,
    /// A window cannot show what a region still has inside it.
    #[error("is looked at through the windows of a convolution")]
    BehindWindow,
    #[error("a depthwise convolution is no matrix product: every output has one input channel")]
    Depthwise,
    #[error("its layout is not known")]
    UnknownLayout,
    #[error("the target rules it out: {0}")]
    RuledOut(String),
    #[error("no region around it compiles: {0}")]
    NotCompiled(String),
    /// A value it reads would be overwritten before the region runs.
    #[error("cannot be ordered before the operation that overwrites its operand")]
    Ordering,
    #[error("its computation is called by {0}")]
    CalledBy(String),
    #[error("the module cannot be read: {0}")]
    Proto(#[from] ProtoError),
    #[error("the rewritten module is not well formed: {0}")]
    Malformed(String),
}

/// A source position as JSON.
pub(crate) fn source_json(source: Option<&SourceLoc>) -> serde_json::Value {
    source.map_or(
        serde_json::Value::Null,
        |s| serde_json::json!({ "op_name": s.op_name, "file": s.file, "line": s.line }),
    )
}

impl Attempt {
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::json!({ "operators": self.operators, "refused": self.refused })
    }
}

impl Refusal {
    /// The refusal as a line of the dump.
    pub fn json(&self) -> serde_json::Value {
        serde_json::json!({
            "region": self.region.0,
            "where": "host",
            "op": self.op,
            "source": source_json(self.source.as_ref()),
            "refusal": self.reason.to_string(),
            "attempts": self.attempts.iter().map(Attempt::json).collect::<Vec<_>>(),
        })
    }
}
