//! The XlaTransform callback: XLA hands over each module after fusion, before scheduling, and takes back
//! another one. It knows nothing of what is done to the module.

use std::ffi::c_char;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pjrt_abi::extension_type;
use pjrt_abi::xla_transform::{
    CALLBACKS_VERSION, Callbacks, RegisterArgs, TransformArgs, XlaTransformExtension, stage,
};

use crate::compile;
use crate::error;
use crate::hook::panic_message;
use crate::inner::Inner;
use crate::passes;

const NAME: &str = "act";

/// Registers the callback with the inner library.
///
/// # Errors
/// Why there will be no callback.
pub(crate) fn register(inner: &Inner) -> Result<(), String> {
    // SAFETY: the struct is that of this extension type.
    let extension = unsafe { inner.api.extension::<XlaTransformExtension>(extension_type::XLA_TRANSFORM) };
    // SAFETY: an extension lives as long as its library.
    let function = extension.and_then(|extension| unsafe { (*extension).register_xla_transform });
    let Some(function) = function else {
        return Err(format!("{} has no XlaTransform extension", inner.path.display()));
    };
    let callbacks =
        Callbacks { version: CALLBACKS_VERSION, dtor: Some(dtor), transform_hlo_module: Some(transform) };
    let mut args = RegisterArgs::new();
    args.name = NAME.as_ptr().cast();
    args.name_size = NAME.len();
    args.stage = stage::PRE_SCHEDULER;
    args.callbacks = Box::into_raw(Box::new(callbacks));
    // SAFETY: the struct is filled in; the callbacks live until `dtor` is called.
    let outcome = unsafe { function(&raw mut args) };
    error::message_of(&inner.api, outcome).map_or(Ok(()), Err)
}

/// The registration ends.
unsafe extern "C" fn dtor(callbacks: *mut Callbacks) {
    // SAFETY: `register` made them from such a box, and this is called once.
    drop(unsafe { Box::from_raw(callbacks) });
}

/// One module of one compilation, on the thread that compiles.
unsafe extern "C" fn transform(_callbacks: *mut Callbacks, args: *mut TransformArgs) {
    // SAFETY: XLA hands over its struct for the time of the call.
    let args = unsafe { &mut *args };
    args.changed = false;
    // SAFETY: XLA says where the module is and how long.
    let module =
        unsafe { std::slice::from_raw_parts(args.hlo_module.data.cast::<u8>(), args.hlo_module.size) };
    match catch_unwind(AssertUnwindSafe(|| compile::with_context(|context| passes::run(module, context)))) {
        Ok(Some(Some(transformed))) => {
            let transformed = Box::new(transformed);
            args.transformed_hlo_module.data = transformed.as_ptr().cast::<c_char>();
            args.transformed_hlo_module.size = transformed.len();
            args.header.data = Box::into_raw(transformed).cast();
            args.header.cleanup_fn = Some(cleanup);
            args.changed = true;
        }
        Ok(_) => {}
        // The untouched module is as right as ever; it runs on the host.
        Err(panic) => tracing::error!("module left to the host: {}", panic_message(&*panic)),
    }
}

/// XLA has read the transformed module.
unsafe extern "C" fn cleanup(data: *mut std::ffi::c_void) {
    // SAFETY: `transform` made it from such a box, and XLA calls this once.
    drop(unsafe { Box::from_raw(data.cast::<Vec<u8>>()) });
}
