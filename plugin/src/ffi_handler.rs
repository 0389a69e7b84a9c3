//! The handler behind the custom calls that stand for offloaded regions: finds the kernel and runs it.

use pjrt_abi::ffi::{CallFrame, FfiError, Handler, error_code};

use crate::ffi_frame::{Frame, HandlerError, handle};
use crate::{kernel, records};

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
    let kernel = kernel::find(key)
        .ok_or_else(|| (error_code::NOT_FOUND, format!("act: no kernel has the key {key}")))?;
    let record = kernel
        .kernel()
        .run(&frame.args()?, &frame.results()?)
        .map_err(|message| (error_code::INTERNAL, message))?;
    records::kernel_ran(key, &record);
    Ok(())
}
