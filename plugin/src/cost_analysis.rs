//! `PJRT_Executable_GetCostAnalysis`: XLA's CPU backend answers it through no interface that we have, so the costs are
//! counted here, from the optimized program. Where regions of it run on the device they were counted before.

use std::collections::BTreeMap;

use act_hlo::proto::{HloModule, Message, ProtoError};
use pjrt_abi::args::{ExecutableGetCostAnalysisArgs, ExecutableOptimizedProgramArgs, Program};
use pjrt_abi::layout::CStruct;
use pjrt_abi::{Executable, NamedValue, NamedValueUnion, named_value_type};

use crate::error::Failure;
use crate::hook::{Call, Hook};
use crate::{costs, executable, inner};

/// Costs by name, as the C interface hands them out.
pub(crate) struct CostProperties {
    /// Points into `names`, whose strings do not move.
    values: Vec<NamedValue>,
    names: Vec<String>,
}

// SAFETY: nothing is changed after it was made, and the pointers are into what it owns.
unsafe impl Send for CostProperties {}
// SAFETY: as above.
unsafe impl Sync for CostProperties {}

impl std::fmt::Debug for CostProperties {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.to_map().fmt(f)
    }
}

impl CostProperties {
    pub(crate) fn new(costs: BTreeMap<String, f64>) -> CostProperties {
        let (names, numbers): (Vec<String>, Vec<f64>) = costs.into_iter().unzip();
        let values = names.iter().zip(numbers).map(|(name, number)| NamedValue {
            struct_size: NamedValue::STRUCT_SIZE,
            name: name.as_ptr().cast(),
            name_size: name.len(),
            r#type: named_value_type::FLOAT,
            value: NamedValueUnion { float_value: number as f32 },
            value_size: 1,
            ..NamedValue::zeroed()
        });
        CostProperties { values: values.collect(), names }
    }

    /// The same as a map again.
    pub(crate) fn to_map(&self) -> BTreeMap<String, f64> {
        // SAFETY: `new` stored floats.
        let number = |value: &NamedValue| f64::from(unsafe { value.value.float_value });
        self.names.iter().cloned().zip(self.values.iter().map(number)).collect()
    }
}

/// `PJRT_Executable_GetCostAnalysis`
pub(crate) struct GetCostAnalysis;

impl Hook for GetCostAnalysis {
    type Args = ExecutableGetCostAnalysisArgs;

    fn run(call: &mut Call<Self::Args>) -> Result<(), Failure> {
        let Some(state) = executable::state(call.executable) else { return call.forward() };
        let costs = match state.costs.get() {
            Some(costs) => costs,
            None => {
                let module = optimized_module(call.executable)?;
                let counted = CostProperties::new(costs::of_module(&module).properties());
                state.costs.get_or_init(|| counted)
            }
        };
        (call.properties, call.num_properties) = (costs.values.as_ptr(), costs.values.len());
        Ok(())
    }
}

/// The optimized program of an executable.
fn optimized_module(executable: *mut Executable) -> Result<HloModule, Failure> {
    let mut program = Program::new();
    ask_for_program(executable, &mut program)?;
    let mut bytes = vec![0_u8; program.code_size];
    program.code = bytes.as_mut_ptr().cast();
    ask_for_program(executable, &mut program)?;
    parse_module_with_config(bytes)
        .map_err(|error| Failure::internal(format!("act: the optimized program cannot be read: {error}")))
}

/// `PJRT_Executable_OptimizedProgram`: without room for the program it tells its size.
fn ask_for_program(executable: *mut Executable, program: &mut Program) -> Result<(), Failure> {
    let mut args = ExecutableOptimizedProgramArgs::new();
    args.executable = executable;
    args.program = program;
    // SAFETY: the executable is live, and the program says how much room it has.
    match unsafe { inner::get()?.api.call(&mut args) } {
        Some(outcome) => Failure::check(outcome),
        None => Err(Failure::internal("act: XLA's library tells no optimized program")),
    }
}

/// Reads a HloModuleProtoWithConfig; its first field is the module.
fn parse_module_with_config(bytes: Vec<u8>) -> Result<HloModule, ProtoError> {
    let message = Message::parse(&bytes.into(), "HloModuleProtoWithConfig")?;
    HloModule::parse(message.bytes(1).cloned().unwrap_or_default())
}
