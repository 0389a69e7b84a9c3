//! Makes `libact_pjrt.so`, which lies beside this library, a device of TensorFlow by the name of `ACT`.
//!
//! TensorFlow opens this library as a pluggable device and calls the three functions below. It knows TensorFlow's
//! structs and symbols, and the PJRT function table as an opaque thing to hand on; it knows nothing of what the plugin
//! does. Nothing of TensorFlow is linked: every symbol is looked up in the libraries that the process has loaded, and
//! where one is missing there are no devices, and a warning says why.

mod client;
mod cxx;
mod device;
mod dynamic_symbols;
mod flags;
// The wheel's promise holds for this library too.
#[cfg(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu"))]
#[path = "../../src/glibc.rs"]
mod glibc;
mod host_kernels;
mod host_operators;
mod int32_constants;
mod kernel_registration;
mod list_flow;
mod memory;
mod node_definition;
mod plugin;
mod python_abi;
mod release;
mod shape;
mod tensorflow;

use std::panic::{AssertUnwindSafe, catch_unwind};

use device::DeviceApi;
use pjrt_abi::Api;
use tensorflow::{PluginParams, Status};

/// The name of the devices, as in `tf.device("/device:ACT:0")`.
const DEVICE_TYPE: &std::ffi::CStr = c"ACT";

/// The PJRT function table, which TensorFlow asks for once. Never null: TensorFlow would read it all the same.
#[unsafe(no_mangle)]
pub extern "C" fn GetPjrtApi() -> *const Api {
    plugin::table()
}

/// Tells TensorFlow of the device and its functions.
///
/// # Safety
/// Must be called by TensorFlow: `params` is its struct, of the size that it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TFNPD_InitPlugin(
    params: *mut PluginParams,
    _status: *mut Status,
) -> *const DeviceApi {
    let flags = || {
        if let Some(tensorflow) = release::supported() {
            flags::use_device_api(tensorflow);
            tensorflow.cxx.register_compilation_device(DEVICE_TYPE, device::COMPILATION_DEVICE);
        }
    };
    contained("TFNPD_InitPlugin", (), flags);
    // SAFETY: the caller's promise.
    unsafe { device::describe(params) };
    device::table()
}

/// Registers the kernels that this device needs beside those that TensorFlow makes for it.
#[unsafe(no_mangle)]
pub extern "C" fn TF_InitKernel() {
    contained("TF_InitKernel", (), || {
        if let Some(tensorflow) = release::supported() {
            int32_constants::register_constants(tensorflow);
            host_kernels::register(tensorflow);
            list_flow::register(tensorflow);
        }
    });
}

/// Runs `body`, and answers `otherwise` where it panics: no panic may cross into C.
fn contained<T>(what: &str, otherwise: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| {
        eprintln!("act: {what} failed");
        otherwise
    })
}
