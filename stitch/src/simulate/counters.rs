//! What a run did, counted per instruction executed.

use super::lower::Kind;
use act_isa::{AttrVal, Env, Instr, Isa, Position, Slice};
use std::collections::BTreeMap;

/// Totals of one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Executions by instruction name.
    pub instructions: BTreeMap<String, u64>,
    /// Bytes moved by instructions that only load or store, by (from, to) memory name.
    pub bytes: BTreeMap<(String, String), u64>,
    /// Bytes that the host copied for packing.
    pub host_copy_bytes: u64,
    /// Sum of the instructions' costs.
    pub cycles: u64,
}

/// What one execution of a native function adds.
#[derive(Clone, Debug)]
pub(crate) struct Executed {
    name: Option<String>,
    bytes: Vec<((String, String), u64)>,
    host_copy_bytes: u64,
    cycles: u64,
}

impl Executed {
    pub(crate) fn of(isa: &Isa, kind: &Kind) -> Executed {
        match kind {
            Kind::HostCopy { elem_bytes, lengths, .. } => Executed {
                name: None,
                bytes: Vec::new(),
                host_copy_bytes: lengths.iter().product::<i64>().saturating_mul(*elem_bytes).max(0) as u64,
                cycles: 0,
            },
            Kind::Instr { op, alpha } => {
                let instr = isa.instr(*op);
                let (bytes, cycles) = instr_totals(isa, instr, alpha);
                Executed { name: Some(instr.name.clone()), bytes, host_copy_bytes: 0, cycles }
            }
        }
    }
}

fn instr_totals(isa: &Isa, instr: &Instr, alpha: &[AttrVal]) -> (Vec<((String, String), u64)>, u64) {
    let ints = instr.alpha_env(alpha).unwrap_or_default();
    let registers = isa.register_values();
    let env = Env { alpha: &ints, beta: &[], registers: &registers };
    let memory = |slice: &Slice| match slice {
        Slice::Hbm(_) => isa.hbm.name.clone(),
        Slice::OnChip(slice) => isa.buffer(slice.buffer).name.clone(),
    };
    let size = |slice: &Slice, place| slice.shape(isa, env, place).map_or(0, |shape| shape.bytes());
    let mut bytes = Vec::new();
    for input in &instr.inputs {
        for (k, output) in instr.outputs.iter().enumerate() {
            if matches!(input, Slice::Hbm(_)) || matches!(output, Slice::Hbm(_)) {
                let moved = if let Slice::Hbm(_) = input { size(input, Position::Input(0)) } else { size(output, Position::Output(k)) };
                bytes.push(((memory(input), memory(output)), moved));
            }
        }
    }
    let cycles = instr.cost.eval(env).ok().and_then(|c| u64::try_from(c).ok()).unwrap_or(0);
    (bytes, cycles)
}

impl Counters {
    pub(crate) fn total(natives: &[Executed], counts: &[u64]) -> Counters {
        let mut total = Counters::default();
        for (executed, &count) in natives.iter().zip(counts).filter(|(_, count)| **count > 0) {
            if let Some(name) = &executed.name {
                *total.instructions.entry(name.clone()).or_default() += count;
            }
            for (pair, bytes) in &executed.bytes {
                *total.bytes.entry(pair.clone()).or_default() += bytes * count;
            }
            total.host_copy_bytes += executed.host_copy_bytes * count;
            total.cycles += executed.cycles * count;
        }
        total
    }
}
