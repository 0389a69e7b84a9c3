//! Windows: values that are only a way of looking at another value's memory, such as the overlapping patches that a
//! convolution sums over. A region reads a window through its operand's buffer; nobody ever computes it, so a module
//! that XLA gets has none.

use act_hlo::ElemType;
use act_hlo::proto::{HloShape, Instruction};

/// What a window is called while the module is ours.
const TARGET: &str = "act_window";

/// A window onto the array that instruction `operand`, of type `onto`, computes: length and byte stride of every
/// dimension. It begins where the array does.
pub(crate) fn window(
    id: i64,
    name: &str,
    elem: ElemType,
    dims: &[(u64, i64)],
    operand: i64,
    onto: &HloShape,
) -> Instruction {
    let lens: Vec<u64> = dims.iter().map(|d| d.0).collect();
    let shape = HloShape::row_major(act_hlo::Shape::new(elem, lens));
    let strides = serde_json::json!(dims.iter().map(|d| d.1).collect::<Vec<i64>>()).to_string();
    Instruction::custom_call(id, name, &shape, &[operand], std::slice::from_ref(onto), TARGET, &strides)
}

/// Byte strides of a window; `None` for every other instruction.
pub(crate) fn strides(instruction: &Instruction) -> Option<Vec<i64>> {
    let is_window =
        instruction.opcode() == "custom-call" && instruction.custom_call_target().is_ok_and(|t| t == TARGET);
    is_window.then(|| serde_json::from_slice(instruction.backend_config()).ok()).flatten()
}
