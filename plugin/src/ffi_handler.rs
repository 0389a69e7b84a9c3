//! The handler behind the custom calls that stand for offloaded regions: finds the kernel and runs it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use pjrt_abi::ffi::{CallFrame, FfiError, Handler, error_code};

use crate::ffi_frame::{Frame, HandlerError, handle};
use crate::hook::panic_message;
use crate::{kernel, profiler, records};

/// The custom call target of offloaded regions.
pub(crate) const TARGET: &str = "act_kernel";
/// The version of the attributes: `abi`, a 64-bit integer, and `key`, the kernel's key.
pub(crate) const ABI: i64 = 1;

/// What is registered with the inner library.
pub(crate) const TARGETS: &[(&str, Handler)] = &[(TARGET, act_kernel)];

/// # Safety
/// XLA calls it with a call frame.
unsafe extern "C" fn act_kernel(frame: *mut CallFrame) -> *mut FfiError {
    // SAFETY: XLA's frame.
    unsafe { handle(frame, run) }
}

fn run(frame: &Frame<'_>) -> Result<(), HandlerError> {
    let abi = frame.integer("abi")?;
    if abi != ABI {
        let message = format!("act: the program calls kernels by abi {abi}; this build has abi {ABI}");
        return Err((error_code::INVALID_ARGUMENT, message));
    }
    let key = frame.string("key")?;
    let registered = kernel::find(key)
        .ok_or_else(|| (error_code::NOT_FOUND, format!("act: no kernel has the key {key}")))?;
    let kernel = registered.kernel();
    let (args, results) = (frame.args()?, frame.results()?);
    let running = profiler::begin();
    // A kernel computes into buffers of its caller's, which fails with it: nothing half-done is seen.
    let outcome = catch_unwind(AssertUnwindSafe(|| kernel.run(&args, &results)));
    let outcome = outcome.unwrap_or_else(|panic| Err(panic_message(&*panic).to_owned()));
    let record = outcome.map_err(|reason| {
        let (origin, device) = (kernel.origin(), kernel.device());
        (error_code::INTERNAL, format!("act: {origin} has failed on {device}: {reason}"))
    })?;
    if let Some(running) = running {
        let instructions = record.instructions.values().sum();
        let cycles = record.cycles.unwrap_or_default();
        let numbers =
            [("cycles", cycles), ("instructions", instructions), ("bytes moved", record.bytes_moved)];
        running.end(kernel.device(), kernel.origin(), &numbers);
    }
    records::kernel_ran(key, &record);
    Ok(())
}
