//! The seam to the compiler: what region selection asks of it. Selection knows no accelerator.

use act_hlo::{Graph, NodeId, Op, Shape};
use act_isa::View;

/// Number of a region within one module, in the order of selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RegionId(pub u32);

/// A region that runs on the device.
#[derive(Clone, Debug, PartialEq)]
pub struct CompiledRegion {
    /// The kernel's key: what the custom call carries.
    pub key: String,
    /// Target, tile, instruction counts, modelled cycles and the like, as the dump shows them.
    pub summary: serde_json::Value,
}

/// Why the compiler has no code for a region.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct CompileRefusal {
    /// The node that stands in the way, where one can be named.
    pub node: Option<NodeId>,
    pub reason: String,
}

/// Compiles regions for one target.
pub trait RegionCompiler {
    /// Code for `graph`, whose k-th parameter lies at `operands[k]` and whose k-th root goes to `results[k]`:
    /// dense arrays of XLA's with the strides of their layouts, or windows onto such arrays, whose elements may
    /// overlap. Results are fresh buffers, overlapping no operand.
    ///
    /// # Errors
    /// Why there is none.
    fn compile(
        &self,
        graph: &Graph,
        operands: &[View],
        results: &[View],
        region: RegionId,
    ) -> Result<CompiledRegion, CompileRefusal>;

    /// Why no region with this operator in it can ever compile; `None` when it may. A cheap answer saves
    /// attempts: selection then grows regions up to such an operator and no further.
    fn rules_out(&self, op: &Op, operands: &[&Shape], result: &Shape) -> Option<String> {
        let _ = (op, operands, result);
        None
    }
}
