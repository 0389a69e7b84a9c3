//! Around what regions are grown: products alone, or whatever computes. Knows no accelerator.

use super::flow::{Flow, FlowId};
use act_hlo::Op;

/// HLO operators whose stay on the host is worth a reason.
pub(super) const CONTRACTIONS: [&str; 3] = ["dot", "convolution", "ragged-dot"];

/// Which values regions are grown around.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Seeds {
    /// Matrix products and convolutions.
    #[default]
    Products,
    /// These, and then everything else that computes on arrays.
    All,
}

pub(super) fn is_contraction(flow: &Flow, id: FlowId) -> bool {
    CONTRACTIONS.contains(&flow.node(id).instruction.opcode())
}

/// Whether a value is computed, not only moved, on arrays of more than one element: what counts a loop's rounds is the
/// host's.
pub(super) fn computes(flow: &Flow, id: FlowId) -> bool {
    let node = flow.node(id);
    let Ok(converted) = &node.takable else { return false };
    let operator = |op: &Op| {
        matches!(
            op,
            Op::Unary(_)
                | Op::Binary(_)
                | Op::Compare(_)
                | Op::Select
                | Op::Clamp
                | Op::Fma
                | Op::ReducePrecision { .. }
                | Op::Reduce { .. }
        )
    };
    let large = |id: FlowId| flow.array(id).is_some_and(|array| array.shape.elements() > 1);
    converted.steps.iter().any(|(op, _)| operator(op))
        && (large(id) || node.operands.iter().any(|&o| large(o)))
}
