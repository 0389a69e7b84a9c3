//! TAIDL: what a tensor accelerator is (buffers, instructions, their semantics and costs), its assembly, the loop
//! programs made of it, and the oracle that executes both by their semantics. Knows no e-graph, no solver, no MLIR
//! and no PJRT.

pub mod assembly;
mod complete;
pub mod constant;
pub mod control;
pub mod device;
mod device_text;
mod domain;
pub mod encoding;
pub mod expr;
mod feasible;
pub mod model;
mod narrowing;
pub mod oracle;
pub mod program;
mod registers;
pub mod semantics;
pub mod syntax;
mod table;
pub mod targets;
pub mod timing;

pub use assembly::{
    AsmInstr, Assembly, AssemblyError, AttrVal, BetaVal, parse_assembly, parse_operand_form, parse_program,
    print_assembly, print_instr, print_operand_form, print_program,
};
pub use control::{ControlError, Selectable, Step, Structured, Variant};
pub use device::{Device, LoopConstruct};
pub use device_text::{DeviceTextError, has_encodings, print_device};
pub use encoding::{AsmOperand, EncodeError, Encoded, Encoding, Operands};
pub use expr::{Cond, Env, EvalExprError, Expr};
pub use feasible::{Feasibility, Feasible};
pub use model::{
    AttrDecl, AttrKind, Buffer, BufferId, BufferSlice, Computation, Hbm, HbmWindow, Instr, InstrId, Isa,
    Slice, Stmt, SymConst, SymOp,
};
pub use oracle::{Counters, Fault, FaultKind, Machine, Oracle, Profile};
pub use program::{Affine, Extent, LoopId, LoopProgram, Phase, Place, Program, Space, TiledKernel, View};
pub use registers::NotSelectable;
pub use semantics::{InstantiateError, Position};
pub use syntax::Diagnostics;
pub use table::{TableError, targets_table};
pub use targets::{TargetError, load_target, targets};
pub use timing::{Banks, Queue, Timing};
