//! The C function by which the program `act`, a small one, runs the command line of this library.

use std::ffi::{CStr, OsString, c_char, c_int};
use std::os::unix::ffi::OsStringExt;
use std::panic::catch_unwind;

/// Runs a command line and returns the exit code: 0 only if all is right.
///
/// # Safety
/// `arguments` must point to `count` null-terminated strings, the first of which is the program's name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn act_command(count: c_int, arguments: *const *const c_char) -> c_int {
    let count = usize::try_from(count).unwrap_or(0);
    let arguments: Vec<OsString> = (0..count)
        .map(|index| {
            // SAFETY: the caller's promise.
            let argument = unsafe { CStr::from_ptr(*arguments.add(index)) };
            OsString::from_vec(argument.to_bytes().to_vec())
        })
        .collect();
    // The panic has been told by the hook that prints it; 101 is what Rust programs end with then.
    catch_unwind(|| crate::cli::run(arguments)).map_or(101, c_int::from)
}
