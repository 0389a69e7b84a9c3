//! The flag `tf_xla_use_device_api`, without which TensorFlow looks for a compiler of its own for the device. It is put
//! into the environment only while TensorFlow reads its flags there: processes started later must not inherit it.

use std::ffi::{CStr, CString};

use crate::release::Supported;

const VARIABLE: &CStr = c"TF_XLA_FLAGS";
const FLAG: &str = "--tf_xla_use_device_api";

/// Makes TensorFlow read its flags, this one among them.
pub(crate) fn use_device_api(tensorflow: &Supported) {
    // SAFETY: a null-terminated name; the text is copied before the environment changes.
    let given = unsafe {
        let value = libc::getenv(VARIABLE.as_ptr());
        (!value.is_null()).then(|| CStr::from_ptr(value).to_owned())
    };
    let Ok(whole) = with_flag(given.as_deref()) else { return };
    // SAFETY: TensorFlow calls this while it is imported, with Python's lock held, as Python changes the environment.
    unsafe { libc::setenv(VARIABLE.as_ptr(), whole.as_ptr(), 1) };
    tensorflow.cxx.read_flags();
    // SAFETY: as above.
    unsafe {
        match &given {
            Some(given) => libc::setenv(VARIABLE.as_ptr(), given.as_ptr(), 1),
            None => libc::unsetenv(VARIABLE.as_ptr()),
        };
    }
}

/// The variable's value with the flag behind what the user has set; a flag that comes later counts.
fn with_flag(given: Option<&CStr>) -> Result<CString, std::ffi::NulError> {
    let given = given.map(|given| given.to_string_lossy().into_owned()).unwrap_or_default();
    CString::new(format!("{given} {FLAG}=true").trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_user_has_set_stays() {
        assert_eq!(with_flag(None).as_deref(), Ok(c"--tf_xla_use_device_api=true"));
        assert_eq!(
            with_flag(Some(c"--tf_xla_auto_jit=2")).as_deref(),
            Ok(c"--tf_xla_auto_jit=2 --tf_xla_use_device_api=true")
        );
    }
}
