//! Whether values can get to where instructions read them: buffers that nothing writes, buffers that nothing reads, and
//! instructions whose operands can never be produced.

use super::diagnostic::{Diagnostic, Problem};
use super::lower::LoweredIsa;
use crate::model::{BufferId, Instr, Slice};
use std::collections::BTreeSet;

pub(super) fn check_flow(lowered: &LoweredIsa, out: &mut Vec<Diagnostic>) {
    let isa = &lowered.isa;
    let read: BTreeSet<BufferId> = isa.instrs.iter().flat_map(|i| on_chip(&i.inputs)).collect();
    let written: BTreeSet<BufferId> = isa.instrs.iter().flat_map(|i| on_chip(&i.outputs)).collect();
    let given = |id: BufferId| isa.buffer(id).init.is_some();
    for (id, &span) in isa.buffer_ids().zip(&lowered.buffers) {
        let name = || isa.buffer(id).name.clone();
        match (written.contains(&id) || given(id), read.contains(&id)) {
            (false, true) => out.push(Diagnostic::error(span, Problem::NeverWritten(name()))),
            (true, false) if written.contains(&id) => {
                out.push(Diagnostic::warning(span, Problem::NeverRead(name())));
            }
            (_, false) => out.push(Diagnostic::warning(span, Problem::UnusedBuffer(name()))),
            (true, true) => {}
        }
    }
    // Main memory and initial values first, then what instructions make of them.
    let mut filled: BTreeSet<BufferId> = isa.buffer_ids().filter(|&id| given(id)).collect();
    let possible = |i: &Instr, filled: &BTreeSet<BufferId>| on_chip(&i.inputs).all(|id| filled.contains(&id));
    loop {
        let before = filled.len();
        for instr in &isa.instrs {
            if possible(instr, &filled) {
                filled.extend(on_chip(&instr.outputs));
            }
        }
        if filled.len() == before {
            break;
        }
    }
    for (instr, spans) in isa.instrs.iter().zip(&lowered.instrs) {
        for (slice, &span) in instr.inputs.iter().zip(&spans.inputs) {
            if let Slice::OnChip(slice) = slice
                && written.contains(&slice.buffer)
                && !filled.contains(&slice.buffer)
            {
                let problem = Problem::NeverProduced(isa.buffer(slice.buffer).name.clone());
                out.push(Diagnostic::warning(span, problem));
                break;
            }
        }
    }
}

fn on_chip(slices: &[Slice]) -> impl Iterator<Item = BufferId> + '_ {
    slices.iter().filter_map(|slice| match slice {
        Slice::OnChip(slice) => Some(slice.buffer),
        Slice::Hbm(_) => None,
    })
}
