//! A compiled region as a kernel that the FFI handler runs, and as bytes in a serialized executable.

use crate::compiler::RunnableRegion;
use crate::kernel::{BufferRef, Kernel};
use crate::records::RunRecord;
use act_isa::{Counters, Isa};
use act_stitch::simulate::{Executable, Options as SimulatorOptions};
use act_stitch::stitched::StitchedModule;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A kernel and what is needed to make it again.
pub(super) struct DeviceKernel {
    code: Code,
    stored: Stored,
    device: String,
}

enum Code {
    /// Shared with the compiler's cache.
    Region(Arc<RunnableRegion>),
    /// Loaded from bytes.
    Executable(Box<Executable>),
}

/// What [`DeviceKernel::serialize`] writes, as JSON.
#[derive(Serialize, Deserialize)]
struct Stored {
    /// The description's text; loading under another one is refused.
    isa: String,
    /// The stitched MLIR.
    mlir: String,
    /// What it stands for in the program.
    origin: String,
    /// Of one run, by the model that the code was ranked by.
    modelled_cycles: u64,
}

impl DeviceKernel {
    pub(super) fn new(isa: &Isa, region: Arc<RunnableRegion>, origin: String) -> DeviceKernel {
        let (mlir, modelled_cycles) = (region.module.text().to_owned(), region.summary.modelled_cycles);
        let stored = Stored { isa: isa.print(), mlir, origin, modelled_cycles };
        DeviceKernel { code: Code::Region(region), stored, device: isa.name.clone() }
    }

    /// # Errors
    /// The bytes are damaged, or of another description.
    pub(super) fn load(isa: &Isa, options: SimulatorOptions, bytes: &[u8]) -> Result<DeviceKernel, String> {
        let stored: Stored =
            serde_json::from_slice(bytes).map_err(|error| format!("the kernel is damaged: {error}"))?;
        if stored.isa != isa.print() {
            return Err(format!("the kernel was compiled for another description than this {}", isa.name));
        }
        let module = StitchedModule::parse(&stored.mlir).map_err(|error| error.to_string())?;
        let executable =
            Executable::compile_with(isa, &module, options).map_err(|error| error.to_string())?;
        Ok(DeviceKernel { code: Code::Executable(Box::new(executable)), stored, device: isa.name.clone() })
    }

    fn executable(&self) -> &Executable {
        match &self.code {
            Code::Region(region) => &region.executable,
            Code::Executable(executable) => executable,
        }
    }
}

impl Kernel for DeviceKernel {
    fn run(&self, args: &[BufferRef<'_>], results: &[BufferRef<'_>]) -> Result<RunRecord, String> {
        let executable = self.executable();
        let interface = executable.interface();
        // A window may end before the array that it looks at does.
        let larger: [fn(&u64, &u64) -> bool; 2] = [u64::ge, u64::eq];
        for ((what, buffers, sizes), fits) in
            [("operand", args, &interface.operands), ("result", results, &interface.results)]
                .into_iter()
                .zip(larger)
        {
            let given: Vec<u64> = buffers.iter().map(|buffer| buffer.size as u64).collect();
            if given.len() != sizes.len() || !given.iter().zip(sizes.iter()).all(|(g, s)| fits(g, s)) {
                return Err(format!("the kernel's {what}s have {sizes:?} bytes, the call's {given:?}"));
            }
        }
        let operands: Vec<*const u8> = args.iter().map(|buffer| buffer.data.as_ptr().cast_const()).collect();
        let outputs: Vec<*mut u8> = results.iter().map(|buffer| buffer.data.as_ptr()).collect();
        // SAFETY: XLA's buffers live for the time of the call, have the sizes checked above, and a custom call's
        // results overlap neither each other nor its operands.
        let counters =
            unsafe { executable.run_raw(&operands, &outputs) }.map_err(|error| error.to_string())?;
        Ok(record(&counters, self.stored.modelled_cycles))
    }

    fn serialize(&self) -> Vec<u8> {
        // Strings always serialize; empty bytes would be refused when loaded.
        serde_json::to_vec(&self.stored).unwrap_or_default()
    }

    fn origin(&self) -> &str {
        &self.stored.origin
    }

    fn device(&self) -> &str {
        &self.device
    }
}

fn record(counters: &Counters, modelled_cycles: u64) -> RunRecord {
    RunRecord {
        instructions: counters.instructions.clone(),
        bytes: counters.bytes.clone(),
        host_copy_bytes: counters.host_copy_bytes,
        bytes_moved: counters.bytes.values().flat_map(|to| to.values()).sum::<u64>()
            + counters.host_copy_bytes,
        cycles: Some(counters.cycles),
        modelled_cycles: Some(modelled_cycles),
        unit_cycles: counters.unit_cycles.clone(),
        peak_bytes: counters.peak_bytes.clone(),
    }
}
