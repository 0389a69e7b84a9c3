//! Which computations of a module are dataflow that runs by itself: the entry, and what loops, branches and
//! calls run. What reductions, sorts and the like apply element by element is not.

use super::buffers::Role;
use act_hlo::proto::{HloModule, Instruction, ProtoError};
use std::collections::{BTreeMap, BTreeSet};

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
                    "call" => match compiled_as_one(instruction) {
                        None => pending.extend(callees.iter().map(|&c| (c, Role::Other))),
                        Some(how) => {
                            for callee in reachable(module, callees)? {
                                called_by.insert(callee, how.to_owned());
                            }
                        }
                    },
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

/// Computations that these call, themselves included.
fn reachable(module: &HloModule, from: Vec<i64>) -> Result<BTreeSet<i64>, ProtoError> {
    let mut found = BTreeSet::new();
    let mut pending = from;
    while let Some(id) = pending.pop() {
        if found.insert(id) {
            let computation = module.computation(id).ok_or(ProtoError::NoSuchComputation(id))?;
            for instruction in computation.instructions() {
                pending.extend(instruction.called_computation_ids()?);
            }
        }
    }
    Ok(found)
}

/// How XLA makes one function of a called computation, where it does: such a function cannot call a kernel.
fn compiled_as_one(call: &Instruction) -> Option<&'static str> {
    if call.frontend_attribute("xla_cpu_small_call").is_some_and(|value| value == "true") {
        return Some("a call that XLA compiles into one function, as its values are small");
    }
    let config = serde_json::from_slice::<serde_json::Value>(call.backend_config()).ok()?;
    let partitions = config.get("outer_dimension_partitions")?.as_array()?;
    (!partitions.is_empty()).then_some("a call that XLA runs in parallel parts of its result")
}
