//! The handler behind JAX's Python callbacks. The inner library has a registry of its own, in which jaxlib's
//! handler is not; this one calls a function that the Python side has given us.

use std::ffi::{CStr, c_char, c_void};
use std::sync::RwLock;

use pjrt_abi::ffi::{CallFrame, FfiError, Handler, error_code};

use crate::ffi_frame::{Frame, HandlerError, handle};
use crate::kernel::BufferRef;

/// The custom call targets that JAX lowers callbacks to.
pub(crate) const TARGETS: &[(&str, Handler)] = &[
    ("xla_ffi_python_cpu_callback", python_callback),
    ("xla_ffi_partitioned_python_cpu_callback", python_callback),
    ("xla_buffer_python_cpu_callback", python_callback),
];

/// Room for an error text, its final null included.
const ERROR_CAPACITY: usize = 1 << 16;

/// One operand or result of a callback, as Python sees it: dense row-major, elements narrower than a byte
/// packed as XLA packs them. Valid during the call only.
#[repr(C)]
#[derive(Debug)]
pub struct ActBuffer {
    /// `XLA_FFI_DataType`; a token (17) has no data.
    pub element_type: i32,
    /// Number of dimensions.
    pub rank: i32,
    /// Their lengths.
    pub dims: *const i64,
    /// The elements.
    pub data: *mut c_void,
}

/// The function that serves callbacks: gets the number in attribute `index`, operands, results to write,
/// and room for a null-terminated error text; returns 0 for success.
pub type PythonCallback = unsafe extern "C" fn(
    index: u64,
    n_args: usize,
    args: *const ActBuffer,
    n_results: usize,
    results: *const ActBuffer,
    error: *mut c_char,
    error_capacity: usize,
) -> i32;

static PYTHON_CALLBACK: RwLock<Option<PythonCallback>> = RwLock::new(None);

/// Sets the function that serves callbacks.
pub(crate) fn set(callback: Option<PythonCallback>) {
    *PYTHON_CALLBACK.write().unwrap_or_else(std::sync::PoisonError::into_inner) = callback;
}

/// # Safety
/// XLA calls it with a call frame.
unsafe extern "C" fn python_callback(frame: *mut CallFrame) -> *mut FfiError {
    // SAFETY: XLA's frame.
    unsafe { handle(frame, run) }
}

fn run(frame: &Frame<'_>) -> Result<(), HandlerError> {
    // Copied out: a callback may take as long as it likes, and compile and run programs itself.
    let callback = *PYTHON_CALLBACK.read().unwrap_or_else(std::sync::PoisonError::into_inner);
    let Some(callback) = callback else {
        let message = "act: the program calls back into Python, but nothing serves such calls: \
                       is the Python package act_pjrt installed?";
        return Err((error_code::NOT_FOUND, message.to_owned()));
    };
    let index = frame.integer("index")?.cast_unsigned();
    let (args, results) = (frame.args()?, frame.results()?);
    let (args, results) = (as_act_buffers(&args)?, as_act_buffers(&results)?);
    let mut error = vec![0_u8; ERROR_CAPACITY];
    // SAFETY: the function takes exactly these lists and this room.
    let status = unsafe {
        callback(
            index,
            args.len(),
            args.as_ptr(),
            results.len(),
            results.as_ptr(),
            error.as_mut_ptr().cast(),
            error.len(),
        )
    };
    if status == 0 {
        return Ok(());
    }
    let text = CStr::from_bytes_until_nul(&error).map(CStr::to_string_lossy);
    Err((error_code::INTERNAL, text.unwrap_or_default().into_owned()))
}

fn as_act_buffers(buffers: &[BufferRef<'_>]) -> Result<Vec<ActBuffer>, HandlerError> {
    let as_act_buffer = |buffer: &BufferRef<'_>| {
        let rank = i32::try_from(buffer.dims.len())
            .map_err(|_| (error_code::INVALID_ARGUMENT, "act: too many dimensions".to_owned()))?;
        Ok(ActBuffer {
            element_type: buffer.element_type,
            rank,
            dims: buffer.dims.as_ptr(),
            data: buffer.data.as_ptr().cast(),
        })
    };
    buffers.iter().map(as_act_buffer).collect()
}
