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
    source.map_or(serde_json::Value::Null, |s| {
        let (file, line) = if is_the_users(&s.file) { (&s.file[..], s.line) } else { ("", 0) };
        serde_json::json!({ "op_name": s.op_name, "file": file, "line": line })
    })
}

/// Whether a file may be one of the user's. TensorFlow tells the innermost frame only, which is in itself, or a file that
/// does not exist.
fn is_the_users(file: &str) -> bool {
    file != "dummy_file_name" && !file.contains("/tensorflow/python/")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_frames_within_tensorflow_the_operator_is_told_alone() {
        let told = |file: &str| {
            let source = SourceLoc { op_name: "MatMul".to_owned(), file: file.to_owned(), line: 7 };
            source_json(Some(&source))
        };
        let nowhere = serde_json::json!({ "op_name": "MatMul", "file": "", "line": 0 });
        assert_eq!(told("/lib/site-packages/tensorflow/python/framework/ops.py"), nowhere);
        assert_eq!(told("dummy_file_name"), nowhere);
        let known =
            serde_json::json!({ "op_name": "MatMul", "file": "/home/me/tensorflow/model.py", "line": 7 });
        assert_eq!(told("/home/me/tensorflow/model.py"), known);
    }
}
