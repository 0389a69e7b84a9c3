//! The FFI extension of PJRT: registration of typed-FFI handlers with a library (extension version 3).

use std::ffi::{c_char, c_void};

use crate::base::{Error, ExtensionBase};
use crate::layout::{Layout, c_struct};

c_struct! {
    /// Argument of `register_handler`.
    sized RegisterHandlerArgs = "PJRT_FFI_Register_Handler_Args" {
        /// Size of this struct in bytes.
        struct_size: usize,
        /// The custom call target to serve.
        target_name: *const c_char,
        /// Length of the target name in bytes.
        target_name_size: usize,
        /// An [`ffi::Handler`](crate::ffi::Handler).
        handler: *mut c_void,
        /// XLA's name of the platform, for instance `HOST`.
        platform_name: *const c_char,
        /// Length of the platform name in bytes.
        platform_name_size: usize,
        /// Bits of `XLA_FFI_Handler_TraitsBits`.
        traits: u32,
    }
}

c_struct! {
    /// The extension's struct.
    FfiExtension = "PJRT_FFI_Extension" {
        /// Type `extension_type::FFI`.
        base: ExtensionBase,
        /// Registers a type of user data.
        type_register: Option<unsafe extern "C" fn(args: *mut c_void) -> *mut Error>,
        /// Adds user data to an execute context.
        user_data_add: Option<unsafe extern "C" fn(args: *mut c_void) -> *mut Error>,
        /// Registers a handler. A name that is registered already keeps its first handler, and the call
        /// still succeeds.
        register_handler: Option<unsafe extern "C" fn(args: *mut RegisterHandlerArgs) -> *mut Error>,
    }
}

pub(crate) fn layouts() -> Vec<Layout> {
    vec![Layout::of::<RegisterHandlerArgs>(), Layout::of::<FfiExtension>()]
}
