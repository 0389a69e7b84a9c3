//! What XLA's verifier would check, before XLA sees it: a module that it refuses aborts the process.

use act_hlo::proto::{Computation, HloModule, HloShape, ProtoError};
use std::collections::{BTreeMap, BTreeSet};

/// Checks ids, names, order, callees and the types at the borders of fusions.
///
/// # Errors
/// What is wrong.
pub(crate) fn check(module: &HloModule) -> Result<(), String> {
    let mut computations: BTreeMap<i64, &Computation> = BTreeMap::new();
    let mut names: BTreeSet<&str> = BTreeSet::new();
    let mut computation_names: BTreeSet<&str> = BTreeSet::new();
    let mut ids: BTreeSet<i64> = BTreeSet::new();
    let mut fused_by: BTreeSet<i64> = BTreeSet::new();
    for computation in module.computations() {
        if !computation_names.insert(computation.name()) {
            return Err(format!("two computations are named {}", computation.name()));
        }
        let mut defined: BTreeMap<i64, HloShape> = BTreeMap::new();
        for instruction in computation.instructions() {
            let name = instruction.name();
            let read = |e: ProtoError| format!("{name}: {e}");
            if !names.insert(name) || !ids.insert(instruction.id()) {
                return Err(format!("two instructions are {name} or have id {}", instruction.id()));
            }
            let operands = instruction.operand_ids().map_err(read)?;
            let before = instruction.control_predecessor_ids().map_err(read)?;
            if let Some(id) = operands.iter().chain(&before).find(|id| !defined.contains_key(id)) {
                return Err(format!("{name} stands before its operand {id}"));
            }
            for callee in instruction.called_computation_ids().map_err(read)? {
                let called =
                    computations.get(&callee).ok_or(format!("{name} calls {callee}, which is not there"))?;
                if instruction.opcode() == "fusion" {
                    if !fused_by.insert(callee) {
                        return Err(format!("two fusions call {}", called.name()));
                    }
                    let shapes: Vec<&HloShape> = operands.iter().map(|o| &defined[o]).collect();
                    check_fusion(called, &shapes, &instruction.shape().map_err(read)?)?;
                }
            }
            defined.insert(instruction.id(), instruction.shape().map_err(read)?);
        }
        if !defined.contains_key(&computation.root_id()) {
            return Err(format!("{} has no root", computation.name()));
        }
        computations.insert(computation.id(), computation);
    }
    match computations.contains_key(&module.entry_id()) {
        true => Ok(()),
        false => Err("the entry computation is not there".to_owned()),
    }
}

fn check_fusion(called: &Computation, operands: &[&HloShape], result: &HloShape) -> Result<(), String> {
    let name = called.name();
    let read = |e: ProtoError| format!("{name}: {e}");
    for (number, &operand) in operands.iter().enumerate() {
        if called.parameter_shape(number as i64).map_err(read)?.as_ref() != Some(operand) {
            return Err(format!("parameter {number} of {name} has another type than its operand"));
        }
    }
    let parameters = called.instructions().filter(|i| i.opcode() == "parameter").count();
    if parameters != operands.len() {
        return Err(format!("{name} has {parameters} parameters and is given {}", operands.len()));
    }
    if called.root().map_err(read)?.shape().map_err(read)? != *result {
        return Err(format!("the result of {name} has another type than its fusion"));
    }
    Ok(())
}
