//! XLA's FFI call frames, read safely: operands, results, attributes, errors. It knows nothing of any
//! handler.

use std::ffi::CString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;

use pjrt_abi::ffi::{
    self, ByteSpan, CallFrame, ErrorCreateArgs, FfiBuffer, FfiError, MetadataExtension, Scalar, attr_type,
    data_type, error_code, stage,
};

use crate::hook::panic_message;
use crate::kernel::BufferRef;

/// Why a handler fails: a code of `ffi::error_code` and the message.
pub(crate) type HandlerError = (i32, String);

/// A call frame at the stage at which handlers of ours act.
pub(crate) struct Frame<'a> {
    frame: &'a CallFrame,
}

/// The whole of a C handler: answers queries for metadata, lets other stages than execution pass, and turns
/// errors and panics of `body` into XLA's errors.
///
/// # Safety
/// `frame` must be the call frame that XLA handed to the handler.
pub(crate) unsafe fn handle(
    frame: *mut CallFrame,
    body: impl FnOnce(&Frame<'_>) -> Result<(), HandlerError>,
) -> *mut FfiError {
    // SAFETY: XLA's frame, valid during the call.
    let frame = unsafe { &*frame };
    // SAFETY: as above.
    if unsafe { answer_metadata(frame) } || frame.stage != stage::EXECUTE {
        return std::ptr::null_mut();
    }
    let outcome = catch_unwind(AssertUnwindSafe(|| body(&Frame { frame })))
        .unwrap_or_else(|panic| Err((error_code::INTERNAL, panic_message(&*panic).to_owned())));
    match outcome {
        Ok(()) => std::ptr::null_mut(),
        Err((code, message)) => create_error(frame, code, message),
    }
}

/// Answers a query for the handler's metadata. Tells whether the call was one.
///
/// # Safety
/// `frame` must be XLA's.
unsafe fn answer_metadata(frame: &CallFrame) -> bool {
    let mut next = frame.extension_start;
    while !next.is_null() {
        // SAFETY: a node of XLA's chain.
        let node = unsafe { &*next };
        if node.r#type == ffi::EXTENSION_METADATA {
            // SAFETY: the node's type says that it is one of these, with a struct for us to fill in.
            let metadata = unsafe { &mut *(*next.cast::<MetadataExtension>()).metadata };
            metadata.api_version.major_version = ffi::API_MAJOR;
            metadata.api_version.minor_version = ffi::API_MINOR;
            metadata.traits = 0;
            return true;
        }
        next = node.next;
    }
    false
}

fn create_error(frame: &CallFrame, code: i32, message: String) -> *mut FfiError {
    let message = CString::new(message.replace('\0', " ")).unwrap_or_default();
    let mut args = ErrorCreateArgs::new();
    args.message = message.as_ptr();
    args.errc = code;
    // SAFETY: XLA's frame carries its function table.
    match unsafe { (*frame.api).XLA_FFI_Error_Create } {
        // SAFETY: the struct is filled in; XLA copies the message.
        Some(create) => unsafe { create(&raw mut args) },
        None => {
            tracing::error!("XLA takes no errors: {message:?}");
            std::ptr::null_mut()
        }
    }
}

impl Frame<'_> {
    /// The operands.
    ///
    /// # Errors
    /// One has an element type that we do not know, or a negative size.
    pub(crate) fn args(&self) -> Result<Vec<BufferRef<'_>>, HandlerError> {
        let args = &self.frame.args;
        // SAFETY: XLA says where its operands are and how many.
        unsafe { buffers(args.args, args.size) }
    }

    /// The results.
    ///
    /// # Errors
    /// As for [`Frame::args`].
    pub(crate) fn results(&self) -> Result<Vec<BufferRef<'_>>, HandlerError> {
        let rets = &self.frame.rets;
        // SAFETY: XLA says where its results are and how many.
        unsafe { buffers(rets.rets, rets.size) }
    }

    /// An attribute's kind and value.
    fn attribute(&self, name: &str) -> Option<(i32, *mut std::ffi::c_void)> {
        let attrs = &self.frame.attrs;
        let size = usize::try_from(attrs.size).ok()?;
        (0..size).find_map(|i| {
            // SAFETY: XLA's three lists have `size` elements each.
            unsafe {
                let span = &**attrs.names.add(i);
                (bytes(span) == name.as_bytes()).then(|| (*attrs.types.add(i), *attrs.attrs.add(i)))
            }
        })
    }

    /// A string attribute.
    ///
    /// # Errors
    /// There is none of this name.
    pub(crate) fn string(&self, name: &str) -> Result<&str, HandlerError> {
        match self.attribute(name) {
            Some((attr_type::STRING, value)) => {
                // SAFETY: XLA says that the value is a byte span; it lives as long as the frame.
                let bytes = unsafe { bytes(&*value.cast::<ByteSpan>()) };
                std::str::from_utf8(bytes).map_err(|_| missing(name, "a string"))
            }
            _ => Err(missing(name, "a string")),
        }
    }

    /// A 64-bit integer attribute, signed or not; the bits of an unsigned one.
    ///
    /// # Errors
    /// There is none of this name.
    pub(crate) fn integer(&self, name: &str) -> Result<i64, HandlerError> {
        let Some((attr_type::SCALAR, value)) = self.attribute(name) else {
            return Err(missing(name, "a 64-bit integer"));
        };
        // SAFETY: XLA says that the value is a scalar.
        let scalar = unsafe { &*value.cast::<Scalar>() };
        match scalar.dtype {
            // SAFETY: XLA says that the scalar has 64 bits.
            data_type::S64 | data_type::U64 => Ok(unsafe { scalar.value.cast::<i64>().read_unaligned() }),
            _ => Err(missing(name, "a 64-bit integer")),
        }
    }
}

fn missing(name: &str, kind: &str) -> HandlerError {
    (error_code::INVALID_ARGUMENT, format!("act: the custom call has no attribute {name} that is {kind}"))
}

/// The bytes of a span.
///
/// # Safety
/// The span must be XLA's.
unsafe fn bytes(span: &ByteSpan) -> &[u8] {
    if span.ptr.is_null() {
        return &[];
    }
    // SAFETY: XLA says where the bytes are and how many.
    unsafe { std::slice::from_raw_parts(span.ptr.cast::<u8>(), span.len) }
}

/// XLA's buffers as ours.
///
/// # Safety
/// `list` must hold `count` pointers to buffers of XLA's.
unsafe fn buffers<'a>(
    list: *mut *mut std::ffi::c_void,
    count: i64,
) -> Result<Vec<BufferRef<'a>>, HandlerError> {
    let count = usize::try_from(count).unwrap_or(0);
    (0..count)
        .map(|i| {
            // SAFETY: the caller's promise.
            let buffer = unsafe { &*(*list.add(i)).cast::<FfiBuffer>() };
            let rank = usize::try_from(buffer.rank).unwrap_or(0);
            let dims: &[i64] = if rank == 0 {
                &[]
            } else {
                // SAFETY: XLA says that the buffer has this many dimensions.
                unsafe { std::slice::from_raw_parts(buffer.dims, rank) }
            };
            let size = byte_size(buffer.dtype, dims).ok_or_else(|| {
                let what = format!("act: a buffer of element type {} and shape {dims:?}", buffer.dtype);
                (error_code::INVALID_ARGUMENT, what)
            })?;
            let data = NonNull::new(buffer.data.cast::<u8>()).unwrap_or(NonNull::dangling());
            Ok(BufferRef { element_type: buffer.dtype, dims, data, size })
        })
        .collect()
}

/// Bytes of a dense buffer, elements narrower than a byte packed; `None` if there is no such buffer.
fn byte_size(element_type: i32, dims: &[i64]) -> Option<usize> {
    let bits = usize::try_from(data_type::bit_width(element_type)?).ok()?;
    let mut elements = 1_usize;
    for &dim in dims {
        elements = elements.checked_mul(usize::try_from(dim).ok()?)?;
    }
    Some(elements.checked_mul(bits)?.div_ceil(8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_elements_are_packed() {
        assert_eq!(byte_size(data_type::F32, &[3, 5]), Some(60));
        assert_eq!(byte_size(data_type::S4, &[3, 5]), Some(8));
        assert_eq!(byte_size(data_type::U2, &[5]), Some(2));
        assert_eq!(byte_size(data_type::TOKEN, &[]), Some(0));
        assert_eq!(byte_size(data_type::F64, &[]), Some(8));
        assert_eq!(byte_size(data_type::F64, &[0, 7]), Some(0));
        assert_eq!(byte_size(data_type::F64, &[-1]), None);
        assert_eq!(byte_size(data_type::F64, &[i64::MAX, 16]), None);
        assert_eq!(byte_size(1000, &[]), None);
    }
}
