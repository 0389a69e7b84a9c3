//! Errors: those that we make ourselves, those of the inner library, and the `PJRT_Error_*` functions that
//! must tell the two apart. It knows nothing of what fails.

use std::collections::BTreeSet;
use std::ffi::{c_char, c_void};
use std::ptr::NonNull;
use std::sync::Mutex;

use pjrt_abi::args::{Args, ErrorDestroyArgs, ErrorForEachPayloadArgs, ErrorGetCodeArgs, ErrorMessageArgs};
use pjrt_abi::{ApiRef, Error, ErrorCode, caller};

use crate::hook::{Call, Hook, guard};
use crate::inner;
use crate::object_table::lock;

/// What a hook answers when it cannot do what it was asked to.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Ours.
    Own {
        /// What kind of failure it is: an [`ErrorCode`], or another one of the inner library's.
        code: i32,
        /// What the user sees.
        message: String,
    },
    /// An error object of the inner library, handed on as it is.
    Inner(NonNull<Error>),
}

impl Failure {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Failure {
        Failure::Own { code: code as i32, message: message.into() }
    }

    pub(crate) fn invalid_argument(message: impl Into<String>) -> Failure {
        Failure::new(ErrorCode::InvalidArgument, message)
    }

    pub(crate) fn internal(message: impl Into<String>) -> Failure {
        Failure::new(ErrorCode::Internal, message)
    }

    /// The outcome of a function of the inner library.
    pub(crate) fn check(error: *mut Error) -> Result<(), Failure> {
        NonNull::new(error).map_or(Ok(()), |error| Err(Failure::Inner(error)))
    }

    /// The error object that goes to the framework, which destroys it with `PJRT_Error_Destroy`.
    pub(crate) fn into_raw(self) -> *mut Error {
        match self {
            Failure::Own { code, message } => {
                let error = Box::into_raw(Box::new(OwnError { code, message }));
                lock(&OWN_ERRORS).insert(error as usize);
                error.cast()
            }
            Failure::Inner(error) => error.as_ptr(),
        }
    }

    /// The same failure with a remark below its message, where there is one to make about that.
    pub(crate) fn with_remark(self, remark: impl FnOnce(&str) -> Option<String>) -> Failure {
        let (code, message) = match self {
            Failure::Own { code, message } => (code, message),
            Failure::Inner(error) => {
                let Some(inner) = inner::loaded() else { return Failure::Inner(error) };
                // SAFETY: the inner library's error, which nobody else has seen.
                match unsafe { caller::take_error(inner.api, error.as_ptr()) } {
                    Err(failed) => (failed.code, failed.message),
                    Ok(()) => (ErrorCode::Unknown as i32, String::new()),
                }
            }
        };
        let message = match remark(&message) {
            Some(remark) => format!("{message}\n{remark}"),
            None => message,
        };
        Failure::Own { code, message }
    }

    /// The message; the failure is gone.
    pub(crate) fn into_message(self) -> String {
        match self {
            Failure::Own { message, .. } => message,
            Failure::Inner(error) => {
                let message = inner::loaded().and_then(|inner| message_of(&inner.api, error.as_ptr()));
                message.unwrap_or_default()
            }
        }
    }
}

/// An error object of ours.
struct OwnError {
    code: i32,
    message: String,
}

/// Addresses of our live error objects; any other address is the inner library's.
static OWN_ERRORS: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());

/// The error at this address, if it is one of ours.
fn own(error: *const Error) -> Option<*mut OwnError> {
    lock(&OWN_ERRORS).contains(&(error as usize)).then(|| error.cast_mut().cast())
}

/// The message of an error of the library behind `api`, which is destroyed; `None` for null, success.
pub(crate) fn message_of(api: &ApiRef, error: *mut Error) -> Option<String> {
    let error = NonNull::new(error)?;
    let mut message = ErrorMessageArgs::new();
    message.error = error.as_ptr();
    // SAFETY: the error is a live one of that library; the struct is filled in.
    let asked = unsafe { api.call_void(&mut message) };
    let text = if asked && !message.message.is_null() {
        // SAFETY: the library says that the message has that many bytes; it lives until the destroy below.
        let bytes = unsafe { std::slice::from_raw_parts(message.message.cast::<u8>(), message.message_size) };
        String::from_utf8_lossy(bytes).into_owned()
    } else {
        "an error without a message".to_owned()
    };
    let mut destroy = ErrorDestroyArgs::new();
    destroy.error = error.as_ptr();
    // SAFETY: the error is ours to destroy, once.
    unsafe { api.call_void(&mut destroy) };
    Some(text)
}

/// `PJRT_Error_Destroy`. Returns nothing to its caller.
///
/// # Safety
/// As the C header says: the error is null, or live and never used again.
pub(crate) unsafe extern "C" fn destroy(args: *mut c_void) -> *mut Error {
    // Nobody looks at a destructor's outcome.
    guard("PJRT_Error_Destroy", || {
        let args: *mut ErrorDestroyArgs = args.cast();
        // SAFETY: the caller hands over this function's argument struct.
        let error = unsafe { (*args).error };
        if error.is_null() {
            return Ok(());
        }
        if lock(&OWN_ERRORS).remove(&(error as usize)) {
            // SAFETY: `into_raw` made it from a box, and removal from the set happens once.
            drop(unsafe { Box::from_raw(error.cast::<OwnError>()) });
        } else {
            forward_void(args)?;
        }
        Ok(())
    });
    std::ptr::null_mut()
}

/// `PJRT_Error_Message`. Returns nothing to its caller.
///
/// # Safety
/// As the C header says: the error is live.
pub(crate) unsafe extern "C" fn message(args: *mut c_void) -> *mut Error {
    let args: *mut ErrorMessageArgs = args.cast();
    guard("PJRT_Error_Message", || {
        // SAFETY: the caller hands over this function's argument struct.
        let args_ref = unsafe { &mut *args };
        match own(args_ref.error) {
            Some(error) => {
                // SAFETY: in the set, hence live; the message is not changed while the error lives.
                let message = unsafe { &(*error).message };
                args_ref.message = message.as_ptr().cast::<c_char>();
                args_ref.message_size = message.len();
                Ok(())
            }
            None => forward_void(args),
        }
    });
    std::ptr::null_mut()
}

/// Hands a call of a function that returns nothing to the inner library.
fn forward_void<A: Args>(args: *mut A) -> Result<(), Failure> {
    debug_assert!(A::STRUCT_SIZE >= size_of::<usize>());
    // SAFETY: the framework filled the struct in for this very function, whose one field of interest is an
    // error of the inner library.
    unsafe { inner::get()?.api.call_void(&mut *args) };
    Ok(())
}

/// `PJRT_Error_GetCode`
pub(crate) struct GetCode;

impl Hook for GetCode {
    type Args = ErrorGetCodeArgs;

    fn run(call: &mut Call<Self::Args>) -> Result<(), Failure> {
        match own(call.error) {
            Some(error) => {
                // SAFETY: in the set, hence live.
                call.code = unsafe { (*error).code };
                Ok(())
            }
            None => call.forward(),
        }
    }
}

/// `PJRT_Error_ForEachPayload`
pub(crate) struct ForEachPayload;

impl Hook for ForEachPayload {
    type Args = ErrorForEachPayloadArgs;

    fn run(call: &mut Call<Self::Args>) -> Result<(), Failure> {
        if own(call.error).is_some() {
            return Ok(());
        }
        call.forward()
    }
}
