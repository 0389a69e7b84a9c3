//! The model of a description: buffers, instructions, slices, costs (ACT paper, section 3.2 and appendix A).
//! Plain data; how the text form is parsed and checked stands elsewhere.

use crate::control::Structured;
use crate::device::Device;
use crate::encoding::Encoding;
use crate::expr::{Cond, Expr};
use crate::timing::Timing;
use act_hlo::{ElemType, Literal, OpKind};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BufferId(pub u16);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InstrId(pub u16);

/// A whole accelerator description.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Isa {
    pub name: String,
    pub hbm: Hbm,
    pub buffers: Vec<Buffer>,
    /// Control registers and their values before the first instruction.
    pub registers: Vec<(String, i64)>,
    /// Queues or engines that instructions occupy.
    pub units: Vec<String>,
    pub timing: Timing,
    pub device: Device,
    pub instrs: Vec<Instr>,
}

/// Byte-addressed main memory, shared with the host (d0 in the paper).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hbm {
    pub name: String,
    pub size: u64,
    /// Required alignment of every address, in bytes.
    pub align: u64,
    /// Loads see every earlier store, as on x86. Without it a store may still be under way until the next fence.
    pub ordered: bool,
}

/// An on-chip tensor buffer of type `elem[access | unit]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    pub name: String,
    /// S0: addressable dimensions.
    pub access: Vec<u64>,
    /// S1: dimensions that are always accessed whole.
    pub unit: Vec<u64>,
    pub elem: ElemType,
    /// Required alignment of a slice's start in every access dimension.
    pub align: Vec<u64>,
    /// The compiler must not move values of this buffer to main memory and back.
    pub nospill: bool,
    /// A scalar of type `elem` that every element holds before the first instruction; without it reading an element
    /// that nothing wrote is a fault.
    pub init: Option<Literal>,
}

impl Default for Buffer {
    /// A buffer of one byte without a name.
    fn default() -> Buffer {
        Buffer {
            name: String::new(),
            access: Vec::new(),
            unit: Vec::new(),
            elem: ElemType::U8,
            align: Vec::new(),
            nospill: false,
            init: None,
        }
    }
}

/// What kind of value an attribute takes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AttrKind {
    /// Integer within an inclusive range.
    Int { min: i64, max: i64 },
    /// A finite f32, solved from a splat constant.
    F32,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AttrDecl {
    pub name: String,
    pub kind: AttrKind,
}

/// An abstract instruction θ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Instr {
    pub name: String,
    pub alpha: Vec<AttrDecl>,
    /// Addressing attributes; always integers. A beta that is the start of an HBM window is a byte address.
    pub beta: Vec<AttrDecl>,
    /// h(1..): slices read; the k-th is `parameter(k)` of the computation.
    pub inputs: Vec<Slice>,
    /// h(0): slices written; the k-th root of the computation.
    pub outputs: Vec<Slice>,
    /// e: must all hold.
    pub requires: Vec<Cond>,
    /// Control registers (by position in [`Isa::registers`], each at most once) and their values after the instruction,
    /// over the attributes and the values before it.
    pub updates: Vec<(u16, Expr)>,
    /// Cost in cycles, over alpha and registers.
    pub cost: Expr,
    /// Index into [`Isa::units`].
    pub unit: Option<u16>,
    /// How the instruction prints; `{name}` stands for an attribute. Empty: the default form
    /// `name alpha=.. beta=..`.
    pub asm: String,
    /// The semantics where they have no control flow, empty otherwise.
    pub computation: Computation,
    /// The semantics where they have control flow.
    pub structured: Option<Structured>,
    /// What is emitted to the device, in order.
    pub encodings: Vec<Encoding>,
}

/// Where an operand or result of an instruction lies.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Slice {
    Hbm(HbmWindow),
    OnChip(BufferSlice),
}

/// Bytes of HBM: a window with a byte stride per dimension, of type u8[len of every dimension]. The paper's
/// `d0[addr :+ n]` is one dimension of stride 1. Only bytes of the window are touched.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HbmWindow {
    /// Byte address of the first element.
    pub start: Expr,
    /// (length, byte stride) of every dimension, outermost first. A stride of 0 re-reads the same bytes.
    pub dims: Vec<(Expr, Expr)>,
}

/// A box of an on-chip buffer: `start :+ len` per access dimension, all of the unit dimensions. Its value has type
/// `elem[len ++ unit]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BufferSlice {
    pub buffer: BufferId,
    pub start: Vec<Expr>,
    pub len: Vec<Expr>,
}

/// A constant inside semantics.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SymConst {
    Literal(Literal),
    /// Scalar of the statement's type with the value of an integer expression.
    Int(Expr),
    /// Scalar of the statement's type with the value of a computational attribute of kind f32.
    F32Attr(u16),
}

/// An operator whose sizes are expressions over alpha.
pub type SymOp = OpKind<Expr, SymConst>;

/// g: the abstract tensor computation of an instruction, in topological order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Computation {
    pub stmts: Vec<Stmt>,
    /// Statement of every output.
    pub roots: Vec<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Stmt {
    pub name: String,
    pub op: SymOp,
    pub operands: Vec<usize>,
    pub elem: ElemType,
    pub dims: Vec<Expr>,
}

impl Isa {
    pub fn instr(&self, id: InstrId) -> &Instr {
        &self.instrs[usize::from(id.0)]
    }

    pub fn buffer(&self, id: BufferId) -> &Buffer {
        &self.buffers[usize::from(id.0)]
    }

    pub fn instr_ids(&self) -> impl ExactSizeIterator<Item = InstrId> + use<> {
        (0..self.instrs.len() as u16).map(InstrId)
    }

    pub fn buffer_ids(&self) -> impl ExactSizeIterator<Item = BufferId> + use<> {
        (0..self.buffers.len() as u16).map(BufferId)
    }

    pub fn instr_named(&self, name: &str) -> Option<InstrId> {
        self.instr_ids().find(|&id| self.instr(id).name == name)
    }
}

impl Instr {
    /// Whether addressing attribute `beta` is a byte address of main memory rather than a position on chip.
    pub fn is_address(&self, beta: usize) -> bool {
        let mut found = false;
        for slice in self.inputs.iter().chain(&self.outputs) {
            if let Slice::Hbm(window) = slice {
                window.start.for_each_leaf(&mut |leaf| {
                    found |= matches!(leaf, Expr::Beta(k) if usize::from(*k) == beta);
                });
            }
        }
        found
    }

    /// For output `output`, the input slice it is the same slice as (read-modify-write), if any.
    pub fn updates_in_place(&self, output: usize) -> Option<usize> {
        let Slice::OnChip(out) = self.outputs.get(output)? else { return None };
        self.inputs.iter().position(|input| matches!(input, Slice::OnChip(slice) if slice == out))
    }
}
