//! What every part of the PJRT C API shares: opaque objects, the extension chain's node, the version,
//! error codes and named values.

use std::ffi::c_char;

use crate::layout::c_struct;

/// Declares opaque C types, only ever handled by pointer.
macro_rules! opaque {
    ($($(#[$meta:meta])* $name:ident),* $(,)?) => {
        $(
            $(#[$meta])*
            #[repr(C)]
            #[derive(Debug)]
            pub struct $name {
                _private: [u8; 0],
            }
        )*
    };
}
pub(crate) use opaque;

opaque! {
    /// `PJRT_Error`
    Error,
    /// `PJRT_Client`
    Client,
    /// `PJRT_Device`
    Device,
    /// `PJRT_DeviceDescription`
    DeviceDescription,
    /// `PJRT_Memory`
    Memory,
    /// `PJRT_TopologyDescription`
    TopologyDescription,
    /// `PJRT_Executable`
    Executable,
    /// `PJRT_LoadedExecutable`
    LoadedExecutable,
    /// `PJRT_SerializedExecutable`
    SerializedExecutable,
    /// `PJRT_Buffer`
    Buffer,
    /// `PJRT_Event`
    Event,
    /// `PJRT_ExecuteContext`
    ExecuteContext,
}

c_struct! {
    /// A node of the extension chain; a concrete extension's struct begins with one.
    ExtensionBase = "PJRT_Extension_Base" {
        /// Size in bytes of the concrete extension's struct.
        struct_size: usize,
        /// One of the `extension_type` constants.
        r#type: i32,
        /// The next node, or null.
        next: *mut ExtensionBase,
    }
}

/// Values of [`ExtensionBase::type`](ExtensionBase).
pub mod extension_type {
    /// The plugin's profiler.
    pub const PROFILER: i32 = 1;
    /// Memory layouts of buffers and of compiled programs' operands and results.
    pub const LAYOUTS: i32 = 4;
    /// Registration of typed-FFI handlers.
    pub const FFI: i32 = 5;
    /// Descriptions of the memory kinds of a device.
    pub const MEMORY_DESCRIPTIONS: i32 = 6;
    /// Shardings of an executable's parameters and results.
    pub const SHARDINGS: i32 = 19;
    /// Callbacks into the compilation pipeline.
    pub const XLA_TRANSFORM: i32 = 24;
}

c_struct! {
    /// Version of the C API.
    ApiVersion = "PJRT_Api_Version" {
        /// Size of this struct in bytes.
        struct_size: usize,
        /// Unused by every known version.
        extension_start: *mut ExtensionBase,
        /// Incremented by incompatible changes.
        major_version: i32,
        /// Incremented by additions.
        minor_version: i32,
    }
}

/// `PJRT_Error_Code`; the numbers are those of `absl::StatusCode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum ErrorCode {
    /// The operation was cancelled.
    Cancelled = 1,
    /// No better code is known.
    Unknown = 2,
    /// The caller's input is wrong.
    InvalidArgument = 3,
    /// A time limit passed.
    DeadlineExceeded = 4,
    /// Something named does not exist.
    NotFound = 5,
    /// Something to be made is there already.
    AlreadyExists = 6,
    /// Not allowed.
    PermissionDenied = 7,
    /// Out of memory or of some other resource.
    ResourceExhausted = 8,
    /// The system is not in the state that the operation needs.
    FailedPrecondition = 9,
    /// The operation was broken off.
    Aborted = 10,
    /// Past the end.
    OutOfRange = 11,
    /// Not offered by this implementation.
    Unimplemented = 12,
    /// A broken invariant.
    Internal = 13,
    /// Temporarily not to be had.
    Unavailable = 14,
    /// Data are damaged.
    DataLoss = 15,
    /// The caller is not known.
    Unauthenticated = 16,
}

/// The value of a [`NamedValue`]; which member holds is said by [`NamedValue::type`](NamedValue).
#[repr(C)]
#[derive(Clone, Copy)]
pub union NamedValueUnion {
    /// For `named_value_type::STRING`; not null-terminated.
    pub string_value: *const c_char,
    /// For `named_value_type::INT64`.
    pub int64_value: i64,
    /// For `named_value_type::INT64_LIST`.
    pub int64_array_value: *const i64,
    /// For `named_value_type::FLOAT`.
    pub float_value: f32,
    /// For `named_value_type::BOOL`.
    pub bool_value: bool,
}

impl std::fmt::Debug for NamedValueUnion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("NamedValueUnion")
    }
}

/// Values of [`NamedValue::type`](NamedValue).
pub mod named_value_type {
    /// A byte string.
    pub const STRING: i32 = 0;
    /// One signed integer.
    pub const INT64: i32 = 1;
    /// A list of signed integers.
    pub const INT64_LIST: i32 = 2;
    /// One `float`.
    pub const FLOAT: i32 = 3;
    /// One truth value.
    pub const BOOL: i32 = 4;
}

c_struct! {
    /// A key and a value, used for create options, attributes and cost properties.
    NamedValue = "PJRT_NamedValue" {
        /// Size of this struct in bytes.
        struct_size: usize,
        /// Extensions of this struct.
        extension_start: *mut ExtensionBase,
        /// The key; not null-terminated.
        name: *const c_char,
        /// Length of the key in bytes.
        name_size: usize,
        /// One of the `named_value_type` constants.
        r#type: i32,
        /// The value. The C header leaves this union unnamed.
        value: NamedValueUnion,
        /// Number of elements of a string or list, 1 for a scalar.
        value_size: usize,
    }
}
