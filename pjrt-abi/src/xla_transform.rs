//! The XlaTransform extension: callbacks into XLA's compilation pipeline, which see each module as a
//! serialized HloModuleProto and may hand back another. No published header of the versions at hand
//! declares it; layout and behaviour are those of PJRT C API 0.115.

use std::ffi::{c_char, c_void};

use crate::base::{Error, ExtensionBase};
use crate::layout::c_struct;

/// Version of the callback interface.
pub const CALLBACKS_VERSION: i64 = 1;

/// Values of [`RegisterArgs::stage`].
pub mod stage {
    /// After simplification, layout assignment and fusion, before scheduling.
    pub const PRE_SCHEDULER: i32 = 0;
    /// After scheduling.
    pub const POST_SCHEDULER: i32 = 1;
}

c_struct! {
    /// A byte string that belongs to someone else.
    ByteView = "PJRT_XlaTransform_ByteView" {
        /// First byte.
        data: *const c_char,
        /// Length in bytes.
        size: usize,
    }
}

c_struct! {
    /// Outcome of a callback, apart from the module.
    ArgsHeader = "PJRT_XlaTransform_ArgsHeader" {
        /// Version of the interface that the caller uses.
        api_version: i64,
        /// Whatever the callee wants handed to `cleanup_fn`; backs the strings that it returned.
        data: *mut c_void,
        /// Called by XLA with `data` once it has read the outcome.
        cleanup_fn: Option<unsafe extern "C" fn(data: *mut c_void)>,
        /// Set to make the compilation fail.
        has_error: bool,
        /// Error code of that failure.
        code: i32,
        /// Message of that failure.
        error_msg: ByteView,
    }
}

c_struct! {
    /// Argument of the transform callback.
    TransformArgs = "PJRT_XlaTransform_Args" {
        /// Size of this struct in bytes.
        struct_size: usize,
        /// Outcome, apart from the module.
        header: ArgsHeader,
        /// The module, a serialized HloModuleProto; valid during the call.
        hlo_module: ByteView,
        /// The callee's module, if `changed`.
        transformed_hlo_module: ByteView,
        /// Whether XLA shall go on with `transformed_hlo_module`.
        changed: bool,
    }
}

c_struct! {
    /// What is registered: must live until `dtor` is called.
    Callbacks = "PJRT_XlaTransform_Callbacks" {
        /// [`CALLBACKS_VERSION`].
        version: i64,
        /// Called when the registration ends.
        dtor: Option<unsafe extern "C" fn(callbacks: *mut Callbacks)>,
        /// Called for every compilation of that library in the process, on the thread that compiles.
        transform_hlo_module: Option<unsafe extern "C" fn(callbacks: *mut Callbacks, args: *mut TransformArgs)>,
    }
}

c_struct! {
    /// Argument of `register_xla_transform`.
    sized RegisterArgs = "PJRT_Register_Xla_Transform_Args" {
        /// Size of this struct in bytes.
        struct_size: usize,
        /// The transform's name.
        name: *const c_char,
        /// Length of the name in bytes.
        name_size: usize,
        /// One of the `stage` constants.
        stage: i32,
        /// What to call.
        callbacks: *mut Callbacks,
    }
}

c_struct! {
    /// The extension's struct.
    XlaTransformExtension = "PJRT_Xla_Transform_Extension" {
        /// Type `extension_type::XLA_TRANSFORM`.
        base: ExtensionBase,
        /// Registers a transform.
        register_xla_transform: Option<unsafe extern "C" fn(args: *mut RegisterArgs) -> *mut Error>,
        /// Removes the transforms.
        clear_xla_transform: Option<unsafe extern "C" fn(args: *mut c_void) -> *mut Error>,
    }
}
