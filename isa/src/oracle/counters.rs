//! What an execution did: instructions by kind, bytes moved, modelled cycles. The compiled simulator counts by the same
//! profiles, so that both can be compared.

use crate::AttrVal;
use crate::expr::{Env, EvalExprError};
use crate::model::{Instr, Isa, Slice};
use crate::semantics::{InstantiateError, Position};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Totals of one execution.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Executed instructions by name.
    pub instructions: BTreeMap<String, u64>,
    /// Bytes moved, by source and then destination memory.
    pub bytes: BTreeMap<String, BTreeMap<String, u64>>,
    /// Bytes that the host copied (packing).
    pub host_copy_bytes: u64,
    /// Sum of the costs of all instructions.
    pub cycles: u64,
    /// The same by unit; instructions without a unit are not in it.
    pub unit_cycles: BTreeMap<String, u64>,
    /// Bytes of the smallest box at each buffer's origin that holds all slices accessed; buffers that nothing accesses
    /// are not in it.
    pub peak_bytes: BTreeMap<String, u64>,
    /// Bytes of result segments that nothing wrote.
    pub unwritten_result_bytes: u64,
}

/// What one execution of an instruction with given computational attributes adds to the counters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    pub instr: String,
    /// (source, destination, bytes): every input that is not updated in place moves to the memory of output 0. Counted
    /// are the bytes on the side of main memory where that takes part, else the bytes read.
    pub moves: Vec<(String, String, u64)>,
    pub cycles: u64,
    pub unit: Option<String>,
}

impl Instr {
    /// The profile for `alpha` and the initial values of the registers.
    ///
    /// # Errors
    /// Attributes that the instruction does not take; a cost without a value counts as an overflow.
    pub fn profile(&self, isa: &Isa, alpha: &[AttrVal]) -> Result<Profile, InstantiateError> {
        self.profile_with(isa, alpha, &isa.register_values())
    }

    /// As [`Instr::profile`], for given values of the registers.
    ///
    /// # Errors
    /// As [`Instr::profile`].
    pub fn profile_with(
        &self,
        isa: &Isa,
        alpha: &[AttrVal],
        registers: &[i64],
    ) -> Result<Profile, InstantiateError> {
        let ints = self.alpha_env(alpha)?;
        let env = Env { alpha: &ints, beta: &[], registers };
        let name = |slice: &Slice| match slice {
            Slice::Hbm(_) => isa.hbm.name.clone(),
            Slice::OnChip(s) => {
                isa.buffers.get(usize::from(s.buffer.0)).map_or_else(String::new, |b| b.name.clone())
            }
        };
        let mut moves = Vec::new();
        if let Some(output) = self.outputs.first() {
            for (k, input) in self.inputs.iter().enumerate() {
                let in_place = (0..self.outputs.len()).any(|o| self.updates_in_place(o) == Some(k));
                if in_place {
                    continue;
                }
                let counted = match (input, output) {
                    (Slice::OnChip(_), Slice::Hbm(_)) => output.shape(isa, env, Position::Output(0))?,
                    _ => input.shape(isa, env, Position::Input(k))?,
                };
                moves.push((name(input), name(output), counted.bytes()));
            }
        }
        let cycles = self.cost.eval(env).and_then(|c| u64::try_from(c).map_err(|_| EvalExprError::Overflow));
        let cycles = cycles.map_err(|error| InstantiateError::Cost { error })?;
        let unit = self.unit.and_then(|u| isa.units.get(usize::from(u))).cloned();
        Ok(Profile { instr: self.name.clone(), moves, cycles, unit })
    }
}

impl Counters {
    /// Adds one execution. Sums saturate.
    pub fn count(&mut self, profile: &Profile) {
        self.count_times(profile, 1);
    }

    /// Adds `times` executions.
    pub fn count_times(&mut self, profile: &Profile, times: u64) {
        let add = |slot: &mut u64, n: u64| *slot = slot.saturating_add(n.saturating_mul(times));
        add(self.instructions.entry(profile.instr.clone()).or_default(), 1);
        for (from, to, bytes) in &profile.moves {
            add(self.bytes.entry(from.clone()).or_default().entry(to.clone()).or_default(), *bytes);
        }
        add(&mut self.cycles, profile.cycles);
        if let Some(unit) = &profile.unit {
            add(self.unit_cycles.entry(unit.clone()).or_default(), profile.cycles);
        }
    }

    /// Bytes moved from one memory to another.
    pub fn bytes_between(&self, from: &str, to: &str) -> u64 {
        self.bytes.get(from).and_then(|to_bytes| to_bytes.get(to)).copied().unwrap_or(0)
    }
}
