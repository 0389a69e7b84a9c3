//! The act PJRT plugin: a shared library that stands between a framework and XLA's CPU backend, hands on
//! most calls, and takes part in compilation. The framework sees [`GetPjrtApi`]; Python sees the functions
//! of [`python_abi`].
//!
//! One file per PJRT object whose functions are hooked. No panic crosses the C border ([`hook`]).

mod anonymous;
mod api;
mod build_id;
mod cache_folder;
pub mod cli;
pub mod client;
pub mod command_abi;
pub mod compile;
pub mod compiler;
mod cost_analysis;
mod cost_function;
mod costs;
mod custom_calls;
mod device;
mod device_target;
mod envelope;
mod error;
mod executable;
mod extensions;
mod ffi_frame;
mod ffi_handler;
mod ffi_version;
mod framework_options;
#[cfg(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu"))]
mod glibc;
mod hook;
mod inner;
mod interruption;
pub mod kernel;
mod loaded_executable;
mod log;
mod map_order;
mod object_table;
pub mod offload;
pub mod options;
mod passes;
mod profiler;
mod program_cache;
pub mod python_abi;
mod python_callback;
pub mod records;
pub mod target;
mod topology;
mod trace;
mod transform;

use pjrt_abi::Api;

/// The entry point of a PJRT library: its function table.
///
/// Does nothing else; XLA's library is loaded by the first call that needs it, so that options given to
/// `PJRT_Client_Create` may still say which one.
#[unsafe(no_mangle)]
pub extern "C" fn GetPjrtApi() -> *const Api {
    api::table()
}
