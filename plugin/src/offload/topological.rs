//! Instructions in an order in which operands and control predecessors come first.

use act_hlo::proto::{Instruction, ProtoError};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Sorts, keeping the given order where it is free; on a cycle, the ids of those that wait for each other.
///
/// # Errors
/// Unreadable operands, or operands that are not there.
pub(crate) fn sort(instructions: Vec<Instruction>) -> Result<Result<Vec<Instruction>, Vec<i64>>, ProtoError> {
    let index: BTreeMap<i64, usize> = instructions.iter().enumerate().map(|(k, i)| (i.id(), k)).collect();
    let mut users: Vec<Vec<usize>> = vec![Vec::new(); instructions.len()];
    let mut waiting = vec![0usize; instructions.len()];
    for (k, instruction) in instructions.iter().enumerate() {
        let mut before = instruction.operand_ids()?;
        before.extend(instruction.control_predecessor_ids()?);
        before.sort_unstable();
        before.dedup();
        for id in before {
            let &at = index.get(&id).ok_or(ProtoError::NoSuchInstruction(id))?;
            users[at].push(k);
            waiting[k] += 1;
        }
    }
    let mut ready: BinaryHeap<Reverse<usize>> =
        (0..instructions.len()).filter(|&k| waiting[k] == 0).map(Reverse).collect();
    let mut order = Vec::with_capacity(instructions.len());
    while let Some(Reverse(k)) = ready.pop() {
        order.push(k);
        for &user in &users[k] {
            waiting[user] -= 1;
            if waiting[user] == 0 {
                ready.push(Reverse(user));
            }
        }
    }
    if order.len() < instructions.len() {
        let stuck = instructions.iter().enumerate().filter(|(k, _)| waiting[*k] > 0);
        return Ok(Err(stuck.map(|(_, i)| i.id()).collect()));
    }
    let mut slots: Vec<Option<Instruction>> = instructions.into_iter().map(Some).collect();
    Ok(Ok(order.into_iter().filter_map(|k| slots[k].take()).collect()))
}
