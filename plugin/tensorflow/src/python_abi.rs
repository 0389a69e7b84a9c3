//! The C functions of this library that the Python package calls through ctypes, for what TensorFlow cannot ask a device:
//! its memory in use, and the text of a compiled program. They answer for the client that TensorFlow has made.

use std::ffi::c_void;

use pjrt_abi::args::{ExecutableOptimizedProgramArgs, Program};
use pjrt_abi::caller::{Client, Failed, call};
use pjrt_abi::{Device, ErrorCode};

use crate::{contained, memory, plugin};

/// Gets bytes that live during the call.
type Taker = unsafe extern "C" fn(data: *const c_void, size: usize);

/// The device of that number; `None` where there is no client, or no such device.
fn device(ordinal: i32) -> Option<*mut Device> {
    let devices = client().ok()?.devices().ok()?;
    devices.get(usize::try_from(ordinal).ok()?).copied()
}

/// TensorFlow's client.
fn client() -> Result<Client, Failed> {
    let failed =
        |message: &str| Failed { code: ErrorCode::Internal as i32, message: format!("act: {message}") };
    let api = plugin::get().map_err(failed)?;
    let client = plugin::client().ok_or_else(|| failed("there is no client yet"))?;
    // SAFETY: TensorFlow keeps the client until the process ends.
    Ok(unsafe { Client::borrow(api, client) })
}

/// Writes the bytes of a device that are in use, and the most that were at once. Returns 0 where there is no such
/// device.
///
/// # Safety
/// There must be room for two numbers.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn act_tensorflow_memory(ordinal: i32, usage: *mut u64) -> i32 {
    contained("act_tensorflow_memory", 0, || {
        let Some(device) = device(ordinal) else { return 0 };
        let found = memory::usage(device);
        // SAFETY: the caller's promise.
        unsafe {
            usage.write(found.current as u64);
            usage.add(1).write(found.peak as u64);
        }
        1
    })
}

/// Forgets the peak of a device. Returns 0 where there is no such device.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn act_tensorflow_reset_peak(ordinal: i32) -> i32 {
    contained("act_tensorflow_reset_peak", 0, || device(ordinal).map(memory::reset_peak).map_or(0, |()| 1))
}

/// Compiles an `HloModuleProto` as TensorFlow's are, and gives the program that would run, an
/// `HloModuleProtoWithConfig`, to `take`. Returns 0, or the code of the error whose text `take` got instead.
///
/// # Safety
/// `code` must point to so many bytes, and `take` be callable.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn act_tensorflow_optimized_program(
    code: *const u8,
    size: usize,
    take: Taker,
) -> i32 {
    contained("act_tensorflow_optimized_program", ErrorCode::Internal as i32, || {
        // SAFETY: the caller's promise.
        let (code, bytes) = match optimized(unsafe { std::slice::from_raw_parts(code, size) }) {
            Ok(program) => (0, program),
            Err(failed) => (failed.code, failed.message.into_bytes()),
        };
        // SAFETY: as above.
        unsafe { take(bytes.as_ptr().cast(), bytes.len()) };
        code
    })
}

fn optimized(module: &[u8]) -> Result<Vec<u8>, Failed> {
    let client = client()?;
    // The executable reads from the loaded program, which has to outlive it.
    let loaded = client.compile("hlo", module)?;
    let executable = loaded.executable()?;
    let mut program = Program::new();
    let ask = |program: &mut Program| {
        let mut args = ExecutableOptimizedProgramArgs::new();
        (args.executable, args.program) = (executable.as_ptr(), program);
        // SAFETY: the executable is live, and where there is an address there is room for the program.
        unsafe { call(client.api(), &mut args) }
    };
    ask(&mut program)?;
    let mut bytes = vec![0_u8; program.code_size];
    program.code = bytes.as_mut_ptr().cast();
    ask(&mut program)?;
    Ok(bytes)
}
