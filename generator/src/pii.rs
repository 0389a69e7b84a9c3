//! The pii graph: partially instantiated instructions θ(α, ?) between phase 1, which chooses them, and phase 2, which
//! orders them and solves β (ACT paper, section 4.1).

use act_isa::{AttrVal, BufferId, InstrId, View};

/// Index of a node in [`PiiGraph::nodes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PiiId(pub u32);

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PiiOp {
    /// Bytes of d0 as one instruction reads them: its dimensions are those of the instruction's window, element u8.
    /// Constants lie in [`act_isa::Space::Consts`].
    HbmView(View),
    /// Parameter k of the kernel, which lies on chip.
    OnChipInput(usize),
    /// A partially instantiated instruction. Operands are the inputs in the description's order. The node's value is
    /// output 0. `store` is the window of the output that lies in d0, if there is one.
    Instr { op: InstrId, alpha: Vec<AttrVal>, store: Option<View> },
    /// Another output of the instruction that is its operand; outputs without such a node are wanted by nobody.
    Output { number: usize },
    /// Identity instruction: a box of the operand's slot, in access dimensions of its buffer.
    SliceH { start: Vec<u64> },
    /// Identity instruction: the operands' slots are adjacent along access dimension `dim`, in order.
    ConcatH { dim: usize },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PiiNode {
    pub op: PiiOp,
    pub operands: Vec<PiiId>,
    /// Buffer of the value; `None` in d0.
    pub buffer: Option<BufferId>,
    /// Lengths of the slot in the access dimensions of its buffer; empty in d0.
    pub lens: Vec<u64>,
}

/// A directed acyclic graph, operands before users.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PiiGraph {
    pub nodes: Vec<PiiNode>,
    /// For every root of the kernel: the node that holds it on chip, or the stores that write it to d0, whose windows
    /// together cover it.
    pub roots: Vec<Vec<PiiId>>,
    /// Contents of [`act_isa::Space::Consts`].
    pub consts: Vec<u8>,
}

impl PiiGraph {
    pub fn node(&self, id: PiiId) -> &PiiNode {
        &self.nodes[id.0 as usize]
    }

    /// Number of real instructions: leaves and identity instructions cost nothing and emit nothing.
    pub fn instructions(&self) -> usize {
        self.nodes.iter().filter(|n| matches!(n.op, PiiOp::Instr { .. })).count()
    }
}
