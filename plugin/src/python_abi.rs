//! The C functions of this library that the Python package calls through ctypes.
//!
//! Strings that are returned belong to the caller, who gives them back to [`act_string_free`]; null means
//! that there is nothing to tell. None of these functions loads XLA's library.

use std::ffi::{CStr, CString, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use pjrt_abi::ffi::Handler;
use serde_json::json;

use crate::build_id::build_id;
use crate::compiler::kernel_cache_counts;
use crate::cost_function;
use crate::hook::panic_message;
use crate::python_callback;
use crate::{inner, records};

pub use crate::python_callback::{ActBuffer, PythonCallback};

/// Hands a text over to C, and a panic's message in its place.
fn text(body: impl FnOnce() -> Option<String>) -> *mut c_char {
    let text =
        catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| Some(panic_message(&*panic).to_owned()));
    match text.map(|text| CString::new(text.replace('\0', " "))) {
        Some(Ok(text)) => text.into_raw(),
        _ => std::ptr::null_mut(),
    }
}

/// Frees a string that one of these functions returned; null is allowed.
///
/// # Safety
/// `text` must be null, or returned by one of these functions and not freed yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn act_string_free(text: *mut c_char) {
    if !text.is_null() {
        // SAFETY: made by `CString::into_raw` in `text`.
        drop(unsafe { CString::from_raw(text) });
    }
}

/// Registers a typed-FFI handler (execute stage) for the host under `name` with the XLA library that this
/// process runs on, or as soon as there is one. A name that is taken keeps its handler.
///
/// Returns null, or what went wrong.
///
/// # Safety
/// `name` must be null-terminated, and `handler` an `XLA_FFI_Handler` that stays loaded.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn act_ffi_register(name: *const c_char, handler: *mut c_void) -> *mut c_char {
    text(|| {
        if name.is_null() || handler.is_null() {
            return Some("neither the name nor the handler may be null".to_owned());
        }
        // SAFETY: the caller's promise.
        let name = unsafe { CStr::from_ptr(name) };
        // SAFETY: the caller's promise; the pointer is not null.
        let handler = unsafe { std::mem::transmute::<*mut c_void, Handler>(handler) };
        let Ok(name) = name.to_str() else { return Some("the name is not UTF-8".to_owned()) };
        inner::register_handler(name, handler).err()
    })
}

/// Sets the function that serves Python callbacks of JAX programs; see [`PythonCallback`].
///
/// Returns null, or what went wrong.
#[unsafe(no_mangle)]
pub extern "C" fn act_python_callback_set(callback: Option<PythonCallback>) -> *mut c_char {
    text(|| {
        python_callback::set(callback);
        None
    })
}

/// A cost model: gets a program as JSON text of so many bytes, a place for its cost, and room for a null-terminated
/// error text; returns 0 for success.
pub type CostCallback = unsafe extern "C" fn(
    program: *const c_char,
    length: usize,
    cost: *mut f64,
    error: *mut c_char,
    error_capacity: usize,
) -> i32;

/// Sets the function that ranks code, and what tells it from others; without a function descriptions say what code
/// costs.
///
/// Returns null, or what went wrong.
///
/// # Safety
/// `fingerprint` must be null-terminated, and the function stay callable for the life of the process.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn act_cost_model_set(
    function: Option<CostCallback>,
    fingerprint: *const c_char,
) -> *mut c_char {
    // SAFETY: the caller's promise.
    let fingerprint = unsafe { borrowed(fingerprint) };
    text(|| {
        cost_function::set(function.map(|function| (function, fingerprint.unwrap_or_default())));
        None
    })
}

/// Every region considered for a device so far, in the order of compilation: a JSON list.
#[unsafe(no_mangle)]
pub extern "C" fn act_regions_json() -> *mut c_char {
    text(|| Some(records::regions_json()))
}

/// The device's counters during the most recent execution that reached it: a JSON object, or null.
#[unsafe(no_mangle)]
pub extern "C" fn act_last_run_json() -> *mut c_char {
    text(records::last_execution_json)
}

/// The programs that call the device, each with its counters over all executions: a JSON list.
#[unsafe(no_mangle)]
pub extern "C" fn act_executables_json() -> *mut c_char {
    text(|| Some(records::executables_json()))
}

/// What became of the requests to the cache of kernels on disk: a JSON object of counts.
#[unsafe(no_mangle)]
pub extern "C" fn act_kernel_cache_json() -> *mut c_char {
    text(|| Some(kernel_cache_counts().to_string()))
}

/// The text behind a C string.
///
/// # Safety
/// `text` must be null or null-terminated.
unsafe fn borrowed(text: *const c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: the caller's promise; the pointer is not null.
    let text = unsafe { CStr::from_ptr(text) };
    Some(text.to_string_lossy().into_owned())
}

/// Whether a semantics block of TAIDL is well-formed; `file` is how messages call its source.
///
/// Returns null, or what is wrong with it.
///
/// # Safety
/// `block` and `file` must be null-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn act_taidl_check_block(block: *const c_char, file: *const c_char) -> *mut c_char {
    // SAFETY: the caller's promise.
    let (block, file) = unsafe { (borrowed(block), borrowed(file)) };
    text(|| match (block, file) {
        (Some(block), Some(file)) => act_isa::syntax::check_block(&block, &file).err().map(|e| e.to_string()),
        _ => Some("neither the block nor its name may be null".to_owned()),
    })
}

/// Completes a description whose attributes have no ranges and checks it: a JSON object with `text`, the whole
/// description, and `warnings`, or with `error`.
///
/// # Safety
/// `description` and `file` must be null-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn act_taidl_complete(description: *const c_char, file: *const c_char) -> *mut c_char {
    // SAFETY: the caller's promise.
    let (description, file) = unsafe { (borrowed(description), borrowed(file)) };
    text(|| {
        let (Some(description), Some(file)) = (description, file) else {
            return Some(json!({ "error": "neither the description nor its name may be null" }).to_string());
        };
        let answer = match act_isa::Isa::parse_and_complete(&description, &file) {
            Ok((isa, warnings)) => json!({ "text": isa.print(), "warnings": warnings.to_string() }),
            Err(diagnostics) => json!({ "error": diagnostics.to_string() }),
        };
        Some(answer.to_string())
    })
}

/// The library's state, a JSON object: `version`, `build_id`, and about XLA's library, null while it is not
/// loaded, `xla_plugin` (its path), `xla_plugin_api` (its version) and `host_only` (null, or why nothing can
/// be offloaded with it).
#[unsafe(no_mangle)]
pub extern "C" fn act_state_json() -> *mut c_char {
    text(|| {
        let inner = inner::loaded();
        let api = inner.map(|inner| inner.api.version());
        let state = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "build_id": build_id(),
            "xla_plugin": inner.map(|inner| inner.path.display().to_string()),
            "xla_plugin_api": api.map(|(major, minor)| format!("{major}.{minor}")),
            "host_only": inner.and_then(|inner| inner.host_only.as_deref()),
        });
        Some(state.to_string())
    })
}
