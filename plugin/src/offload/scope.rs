//! Which computations of a module are dataflow that runs by itself: the entry, and what loops, branches and
//! calls run. What reductions, sorts and the like apply element by element is not.

use super::buffers::Role;
use act_hlo::proto::{HloModule, Instruction, ProtoError};
use std::collections::BTreeMap;

/// The computations in which regions are looked for, in the module's order; and who calls each other one.
#[derive(Debug)]
pub(crate) struct Scope {
    pub(crate) roles: Vec<(i64, Role)>,
    pub(crate) called_by: BTreeMap<i64, String>,
}

impl Scope {
    /// # Errors
    /// Unreadable instructions.
    pub(crate) fn of(module: &HloModule) -> Result<Scope, ProtoError> {
        let mut roles: BTreeMap<i64, Role> = BTreeMap::new();
        let mut called_by: BTreeMap<i64, String> = BTreeMap::new();
        let donated = module.input_output_alias()?.into_iter();
        let pairs = donated.map(|a| ((a.parameter, a.parameter_index), a.output)).collect();
        let mut pending = vec![(module.entry_id(), Role::Entry(pairs))];
        while let Some((id, role)) = pending.pop() {
            let Some(computation) = module.computation(id) else {
                return Err(ProtoError::NoSuchComputation(id));
            };
            match roles.get_mut(&id) {
                // Called twice: what either caller relies on holds.
                Some(known) => {
                    if role == Role::LoopBody {
                        *known = role;
                    }
                    continue;
                }
                None => {
                    roles.insert(id, role);
                }
            }
            for instruction in computation.instructions() {
                let callees = instruction.called_computation_ids()?;
                match instruction.opcode() {
                    // A loop calls its body, then its condition.
                    "while" => pending.extend(
                        callees
                            .iter()
                            .enumerate()
                            .map(|(k, &c)| (c, if k == 0 { Role::LoopBody } else { Role::Other })),
                    ),
                    "conditional" => pending.extend(callees.iter().map(|&c| (c, Role::Other))),
                    "call" if !is_partitioned(instruction) => {
                        pending.extend(callees.iter().map(|&c| (c, Role::Other)));
                    }
                    opcode => called_by.extend(callees.iter().map(|&c| (c, opcode.to_owned()))),
                }
            }
        }
        for id in called_by.keys() {
            roles.remove(id);
        }
        let in_order = module.computations().filter_map(|c| Some((c.id(), roles.remove(&c.id())?)));
        Ok(Scope { roles: in_order.collect(), called_by })
    }
}

/// Whether XLA runs the called computation in parallel pieces of its result: it is then no dataflow of whole
/// arrays any more.
fn is_partitioned(call: &Instruction) -> bool {
    serde_json::from_slice::<serde_json::Value>(call.backend_config())
        .ok()
        .and_then(|config| Some(!config.get("outer_dimension_partitions")?.as_array()?.is_empty()))
        .unwrap_or(false)
}
