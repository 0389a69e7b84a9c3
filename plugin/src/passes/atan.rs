//! A repair: XLA CPU's vectorised `atan` can be wrong in every lane (seen in PJRT 0.115 builds: inputs come
//! back nearly unchanged). HLO has no `atan`; it is `atan2(x, 1)`, which the backend recognises by its
//! constant and turns into the faulty code. `atan2` of other operands is right.
//!
//! The rewrite is `atan2(x, 1) → atan2(2·x, 2)`. It is exact: doubling a binary float is exact but for
//! overflow, so the quotient, and with it the angle, is the same. Where 2·x overflows, |x| exceeds half of
//! the largest number, and both atan(x) and atan2(±∞, 2) round to ±π/2. Signs of zero, infinities and NaN
//! pass through both alike.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use act_hlo::proto::instruction::field;
use act_hlo::proto::{Computation, FreshNames, HloModule, Instruction, ProtoError};
use act_hlo::{ElemType, Literal, Shape};
use pjrt_abi::Client;

mod probe;

/// Whether XLA's own `atan` is right; unknown until a program that may use it is compiled.
static RIGHT_IN_XLA: OnceLock<bool> = OnceLock::new();

/// Whether the bytes of a program, in whatever format, may call for `atan`.
pub(crate) fn may_occur(program: &[u8]) -> bool {
    program.windows(b"atan".len()).any(|window| window == b"atan")
}

/// Finds out whether XLA's `atan` is right, once per process, if `program` may call for it.
pub(crate) fn probe_if_needed(program: &[u8], client: *mut Client) {
    if RIGHT_IN_XLA.get().is_none() && may_occur(program) {
        let right = probe::atan_is_right(client);
        tracing::debug!(right, "XLA's atan has been tried");
        let _ = RIGHT_IN_XLA.set(right);
    }
}

/// Whether XLA's `atan` is known to be right.
pub(crate) fn is_right_in_xla() -> bool {
    RIGHT_IN_XLA.get().copied().unwrap_or(false)
}

/// Rewrites every `atan2(x, 1)` and tells how many there were.
///
/// # Errors
/// The module is malformed.
pub(crate) fn rewrite(module: &mut HloModule) -> Result<usize, ProtoError> {
    let mut fresh = module.fresh();
    let mut edits = Vec::new();
    for computation in module.computations() {
        let rewritten = rewrite_computation(computation, &mut fresh)?;
        edits.extend(rewritten.map(|edit| (computation.id(), edit)));
    }
    let mut count = 0;
    for (id, edit) in edits {
        if let Some(computation) = module.computation_mut(id) {
            computation.set_instructions(edit.instructions);
            count += edit.rewritten;
        }
    }
    Ok(count)
}

/// A computation's new instructions.
struct Edit {
    instructions: Vec<Instruction>,
    rewritten: usize,
}

fn rewrite_computation(
    computation: &Computation,
    fresh: &mut FreshNames,
) -> Result<Option<Edit>, ProtoError> {
    if !computation.instructions().any(|instruction| instruction.opcode() == "atan2") {
        return Ok(None);
    }
    let by_id: BTreeMap<i64, &Instruction> = computation.instructions().map(|i| (i.id(), i)).collect();
    let mut edit = Edit { instructions: Vec::new(), rewritten: 0 };
    for instruction in computation.instructions() {
        match arctangent(instruction, &by_id)? {
            Some((argument, element)) => {
                let two = two(element)?;
                push_doubled(&mut edit.instructions, computation.id(), instruction, argument, two, fresh);
                edit.rewritten += 1;
            }
            None => edit.instructions.push(instruction.clone()),
        }
    }
    if edit.rewritten == 0 {
        return Ok(None);
    }
    remove_unused(&mut edit.instructions, computation.root_id())?;
    Ok(Some(edit))
}

/// Drops what made the ones that nobody uses any more: XLA's verifier allows no unused instruction inside a
/// fusion.
fn remove_unused(instructions: &mut Vec<Instruction>, root: i64) -> Result<(), ProtoError> {
    let mut used = BTreeSet::from([root]);
    let mut kept = Vec::new();
    // Users first.
    for instruction in instructions.drain(..).rev() {
        let droppable = instruction.opcode() == "constant" || moves_elements(instruction.opcode());
        if droppable && !used.contains(&instruction.id()) {
            continue;
        }
        used.extend(instruction.operand_ids()?);
        used.extend(instruction.control_predecessor_ids()?);
        kept.push(instruction);
    }
    kept.reverse();
    *instructions = kept;
    Ok(())
}

/// Whether an operator only moves or repeats elements, or changes their type.
fn moves_elements(opcode: &str) -> bool {
    matches!(
        opcode,
        "broadcast" | "reshape" | "transpose" | "slice" | "reverse" | "copy" | "convert" | "bitcast"
    )
}

/// The argument and element type of an `atan2(argument, 1)`.
fn arctangent<'a>(
    instruction: &Instruction,
    by_id: &BTreeMap<i64, &'a Instruction>,
) -> Result<Option<(&'a Instruction, ElemType)>, ProtoError> {
    if instruction.opcode() != "atan2" {
        return Ok(None);
    }
    let &[y, x] = &instruction.operand_ids()?[..] else { return Ok(None) };
    let Some(&argument) = by_id.get(&y) else { return Ok(None) };
    let shape = argument.shape()?;
    let Some(array) = shape.array() else { return Ok(None) };
    let element = array.shape.elem;
    if !matches!(element, ElemType::F16 | ElemType::BF16 | ElemType::F32 | ElemType::F64) {
        return Ok(None);
    }
    Ok(is_one(x, by_id)?.then_some((argument, element)))
}

/// Whether every element of an instruction's result is known to be 1.
fn is_one(mut id: i64, by_id: &BTreeMap<i64, &Instruction>) -> Result<bool, ProtoError> {
    // Operands come before their users, so this ends.
    loop {
        let Some(instruction) = by_id.get(&id) else { return Ok(false) };
        match instruction.opcode() {
            "constant" => {
                // A literal that we cannot read is of a type that no arctangent has.
                let value = instruction.literal().ok().and_then(|literal| literal.splat_value());
                return Ok(value.is_some_and(|value| value.bytes() == one(value.elem())));
            }
            opcode if moves_elements(opcode) => {
                let &[operand] = &instruction.operand_ids()?[..] else { return Ok(false) };
                let retyped =
                    instruction.opcode() == "bitcast" && !same_element(instruction, operand, by_id)?;
                if retyped {
                    return Ok(false);
                }
                id = operand;
            }
            _ => return Ok(false),
        }
    }
}

fn same_element(
    instruction: &Instruction,
    operand: i64,
    by_id: &BTreeMap<i64, &Instruction>,
) -> Result<bool, ProtoError> {
    let Some(operand) = by_id.get(&operand) else { return Ok(false) };
    let (shape, operand) = (instruction.shape()?, operand.shape()?);
    Ok(match (shape.array(), operand.array()) {
        (Some(shape), Some(operand)) => shape.shape.elem == operand.shape.elem,
        _ => false,
    })
}

/// The bytes of the number 1, little-endian; empty for types without one.
fn one(element: ElemType) -> &'static [u8] {
    match element {
        ElemType::F16 => &[0, 0x3c],
        ElemType::BF16 => &[0x80, 0x3f],
        ElemType::F32 => &[0, 0, 0x80, 0x3f],
        ElemType::F64 => &[0, 0, 0, 0, 0, 0, 0xf0, 0x3f],
        _ if element.is_int() => &[1, 0, 0, 0, 0, 0, 0, 0][..element.bytes() as usize],
        _ => &[],
    }
}

/// The number 2: in each of the binary float formats, a top byte of 0x40 before zeros.
fn two(element: ElemType) -> Result<Literal, ProtoError> {
    let mut bytes = vec![0; element.bytes() as usize];
    if let Some(top) = bytes.last_mut() {
        *top = 0x40;
    }
    Literal::from_bytes(Shape::scalar(element), bytes)
        .map_err(|_| ProtoError::Missing { message: "HloInstructionProto", field: "literal" })
}

/// Appends `atan2(2·argument, 2)` in place of `atan2`.
fn push_doubled(
    instructions: &mut Vec<Instruction>,
    computation: i64,
    atan2: &Instruction,
    argument: &Instruction,
    two: Literal,
    fresh: &mut FreshNames,
) {
    let scalar_id = fresh.instruction_id(computation);
    let Some(scalar) = Instruction::constant(scalar_id, &fresh.name("act_two"), &two) else {
        instructions.push(atan2.clone());
        return;
    };
    // The argument's own shape, layout included, whatever that is.
    let like_argument = |id, name: &str, opcode: &str, operands: &[i64]| {
        let mut instruction = scalar.clone();
        let message = instruction.message_mut();
        message.clear(field::LITERAL);
        message.clear(field::SHAPE);
        if let Some(shape) = argument.message().bytes(field::SHAPE) {
            message.set_bytes(field::SHAPE, shape.clone());
        }
        instruction.set_id(id);
        instruction.set_name(name);
        instruction.set_opcode(opcode);
        instruction.set_operand_ids(operands);
        instruction.copy_provenance(atan2);
        instruction
    };
    let (broadcast_id, product_id) = (fresh.instruction_id(computation), fresh.instruction_id(computation));
    let broadcast = like_argument(broadcast_id, &fresh.name("act_twos"), "broadcast", &[scalar_id]);
    let operands = [argument.id(), broadcast_id];
    let product = like_argument(product_id, &fresh.name("act_doubled"), "multiply", &operands);
    let mut atan2 = atan2.clone();
    atan2.set_operand_ids(&[product_id, broadcast_id]);
    instructions.extend([scalar, broadcast, product, atan2]);
}
