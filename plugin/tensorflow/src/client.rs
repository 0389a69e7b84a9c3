//! The one PJRT client of the process, as TensorFlow uses it.

use std::ffi::CString;
use std::sync::{Mutex, PoisonError};

use crate::tensorflow::{Status, code};
use crate::{DEVICE_TYPE, plugin, release};

/// Why there is no client: a code of TensorFlow's, and what to tell the user.
struct Failure {
    code: i32,
    message: String,
}

/// Makes the client and gives it to TensorFlow, unless that was done; says in `status` what went wrong. What failed is
/// tried again, as a program may set other options meanwhile.
///
/// # Safety
/// `status` must be a live status of TensorFlow's.
pub(crate) unsafe fn install(status: *mut Status) {
    static INSTALLED: Mutex<bool> = Mutex::new(false);
    let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
    if *installed {
        return;
    }
    let Some(tensorflow) = release::supported() else { return };
    match make(tensorflow) {
        Ok(()) => *installed = true,
        Err(failure) => {
            let message = CString::new(failure.message.replace('\0', " ")).unwrap_or_default();
            // SAFETY: the caller's promise; the message is copied.
            unsafe { (tensorflow.c.set_status)(status, failure.code, message.as_ptr()) };
        }
    }
}

fn make(tensorflow: &release::Supported) -> Result<(), Failure> {
    plugin::get().map_err(|reason| Failure { code: code::INTERNAL, message: format!("act: {reason}") })?;
    // SAFETY: the table lives for the rest of the process.
    let installed = unsafe { tensorflow.cxx.install_client(plugin::table(), DEVICE_TYPE) };
    installed.map_err(|error| match plugin::take_failure() {
        Some(message) => Failure { code: code::INVALID_ARGUMENT, message },
        None => Failure {
            code: code::INTERNAL,
            message: format!("act: the client cannot be installed: {error:?}"),
        },
    })
}
