//! XLA's typed FFI (API 0.3): what a custom-call handler receives and how it answers. It knows nothing of
//! any particular handler.

use std::ffi::{c_char, c_int, c_void};

use crate::base::opaque;
use crate::layout::{Layout, c_struct};

opaque! {
    /// `XLA_FFI_Error`
    FfiError,
    /// `XLA_FFI_ExecutionContext`
    ExecutionContext,
    /// `XLA_FFI_Future`
    Future,
    /// `XLA_FFI_InternalApi`
    InternalApi,
}

/// The FFI version that these structs are of.
pub const API_MAJOR: i32 = 0;
/// See [`API_MAJOR`].
pub const API_MINOR: i32 = 3;

/// `XLA_FFI_Handler`: null for success, otherwise an error that XLA destroys.
pub type Handler = unsafe extern "C" fn(call_frame: *mut CallFrame) -> *mut FfiError;

/// `XLA_FFI_Extension_Type`: the query for a handler's metadata.
pub const EXTENSION_METADATA: c_int = 1;

/// Values of [`CallFrame::stage`]; handlers of ours act in the last one only.
pub mod stage {
    use std::ffi::c_int;

    /// The call proper.
    pub const EXECUTE: c_int = 3;
}

/// `XLA_FFI_AttrType`
pub mod attr_type {
    use std::ffi::c_int;

    /// An [`Scalar`](super::Scalar).
    pub const SCALAR: c_int = 3;
    /// A [`ByteSpan`](super::ByteSpan).
    pub const STRING: c_int = 4;
}

/// `XLA_FFI_ArgType` and `XLA_FFI_RetType`: the only kind there is.
pub const ARG_BUFFER: c_int = 1;

/// `XLA_FFI_Error_Code`: codes that a handler of ours answers with.
pub mod error_code {
    use std::ffi::c_int;

    /// The call does not fit the handler.
    pub const INVALID_ARGUMENT: c_int = 3;
    /// Something named does not exist.
    pub const NOT_FOUND: c_int = 5;
    /// The handler failed.
    pub const INTERNAL: c_int = 13;
}

/// `XLA_FFI_DataType`; the numbers are those of `xla::PrimitiveType`.
pub mod data_type {
    /// One byte, 0 or 1.
    pub const PRED: i32 = 1;
    /// Signed integers.
    pub const S8: i32 = 2;
    /// See [`S8`].
    pub const S16: i32 = 3;
    /// See [`S8`].
    pub const S32: i32 = 4;
    /// See [`S8`].
    pub const S64: i32 = 5;
    /// Unsigned integers.
    pub const U8: i32 = 6;
    /// See [`U8`].
    pub const U16: i32 = 7;
    /// See [`U8`].
    pub const U32: i32 = 8;
    /// See [`U8`].
    pub const U64: i32 = 9;
    /// IEEE half precision.
    pub const F16: i32 = 10;
    /// IEEE single precision.
    pub const F32: i32 = 11;
    /// IEEE double precision.
    pub const F64: i32 = 12;
    /// Two f32.
    pub const C64: i32 = 15;
    /// bfloat16.
    pub const BF16: i32 = 16;
    /// Orders effects; has no data.
    pub const TOKEN: i32 = 17;
    /// Two f64.
    pub const C128: i32 = 18;
    /// 8-bit floats.
    pub const F8E5M2: i32 = 19;
    /// See [`F8E5M2`].
    pub const F8E4M3FN: i32 = 20;
    /// Signed 4-bit integers, two to a byte, the first in the low half.
    pub const S4: i32 = 21;
    /// Unsigned 4-bit integers, packed as [`S4`].
    pub const U4: i32 = 22;
    /// See [`F8E5M2`].
    pub const F8E4M3B11FNUZ: i32 = 23;
    /// See [`F8E5M2`].
    pub const F8E5M2FNUZ: i32 = 24;
    /// See [`F8E5M2`].
    pub const F8E4M3FNUZ: i32 = 25;
    /// Signed 2-bit integers, four to a byte, the first in the lowest bits.
    pub const S2: i32 = 26;
    /// Unsigned 2-bit integers, packed as [`S2`].
    pub const U2: i32 = 27;
    /// See [`F8E5M2`].
    pub const F8E4M3: i32 = 28;
    /// See [`F8E5M2`].
    pub const F8E3M4: i32 = 29;
    /// Signed 1-bit integers, eight to a byte, the first in the lowest bit.
    pub const S1: i32 = 30;
    /// Unsigned 1-bit integers, packed as [`S1`].
    pub const U1: i32 = 31;
    /// 4-bit floats, packed as [`S4`].
    pub const F4E2M1FN: i32 = 32;
    /// See [`F8E5M2`].
    pub const F8E8M0FNU: i32 = 33;

    /// Bits of one element as it lies in memory; `None` for an unknown type, 0 for a token.
    pub fn bit_width(data_type: i32) -> Option<u32> {
        Some(match data_type {
            TOKEN => 0,
            S1 | U1 => 1,
            S2 | U2 => 2,
            S4 | U4 | F4E2M1FN => 4,
            PRED | S8 | U8 => 8,
            F8E5M2 | F8E4M3FN | F8E4M3B11FNUZ | F8E5M2FNUZ | F8E4M3FNUZ | F8E4M3 | F8E3M4 | F8E8M0FNU => 8,
            S16 | U16 | F16 | BF16 => 16,
            S32 | U32 | F32 => 32,
            S64 | U64 | F64 | C64 => 64,
            C128 => 128,
            _ => return None,
        })
    }
}

c_struct! {
    /// A node of a call frame's extension chain.
    Extension = "XLA_FFI_Extension_Base" {
        /// Size in bytes of the concrete extension's struct.
        struct_size: usize,
        /// For instance [`EXTENSION_METADATA`].
        r#type: c_int,
        /// The next node, or null.
        next: *mut Extension,
    }
}

c_struct! {
    /// Version of the FFI.
    FfiApiVersion = "XLA_FFI_Api_Version" {
        /// Size of this struct in bytes.
        struct_size: usize,
        /// Extensions of this struct.
        extension_start: *mut Extension,
        /// Incremented by incompatible changes.
        major_version: c_int,
        /// Incremented by additions.
        minor_version: c_int,
    }
}

c_struct! {
    /// What a handler tells of itself.
    Metadata = "XLA_FFI_Metadata" {
        /// Size of this struct in bytes.
        struct_size: usize,
        /// Out; the version that the handler was built for.
        api_version: FfiApiVersion,
        /// Out; bits of `XLA_FFI_Handler_TraitsBits`.
        traits: u32,
        /// Out; 0 for a handler without state.
        state_type_id: i64,
    }
}

c_struct! {
    /// The query for metadata; a handler that sees it answers and does nothing else.
    MetadataExtension = "XLA_FFI_Metadata_Extension" {
        /// Type [`EXTENSION_METADATA`].
        extension_base: Extension,
        /// To be filled in.
        metadata: *mut Metadata,
    }
}

c_struct! {
    /// An operand or a result, dense row-major.
    FfiBuffer = "XLA_FFI_Buffer" {
        /// Size of this struct in bytes.
        struct_size: usize,
        /// Extensions of this struct.
        extension_start: *mut Extension,
        /// One of the [`data_type`] constants.
        dtype: c_int,
        /// The elements.
        data: *mut c_void,
        /// Number of dimensions.
        rank: i64,
        /// Their lengths.
        dims: *mut i64,
    }
}

c_struct! {
    /// A byte string, not null-terminated.
    ByteSpan = "XLA_FFI_ByteSpan" {
        /// First byte.
        ptr: *const c_char,
        /// Length in bytes.
        len: usize,
    }
}

c_struct! {
    /// A scalar attribute.
    Scalar = "XLA_FFI_Scalar" {
        /// One of the [`data_type`] constants.
        dtype: c_int,
        /// The value.
        value: *mut c_void,
    }
}

c_struct! {
    /// The operands; results have the same form.
    FfiArgs = "XLA_FFI_Args" {
        /// Size of this struct in bytes.
        struct_size: usize,
        /// Extensions of this struct.
        extension_start: *mut Extension,
        /// How many there are.
        size: i64,
        /// Kind of each: [`ARG_BUFFER`].
        types: *mut c_int,
        /// Each one, an [`FfiBuffer`].
        args: *mut *mut c_void,
    }
}

c_struct! {
    /// The results.
    FfiRets = "XLA_FFI_Rets" {
        /// Size of this struct in bytes.
        struct_size: usize,
        /// Extensions of this struct.
        extension_start: *mut Extension,
        /// How many there are.
        size: i64,
        /// Kind of each: [`ARG_BUFFER`].
        types: *mut c_int,
        /// Each one, an [`FfiBuffer`].
        rets: *mut *mut c_void,
    }
}

c_struct! {
    /// The attributes, sorted by name.
    FfiAttrs = "XLA_FFI_Attrs" {
        /// Size of this struct in bytes.
        struct_size: usize,
        /// Extensions of this struct.
        extension_start: *mut Extension,
        /// How many there are.
        size: i64,
        /// One of the [`attr_type`] constants each.
        types: *mut c_int,
        /// Name of each.
        names: *mut *mut ByteSpan,
        /// Value of each.
        attrs: *mut *mut c_void,
    }
}

c_struct! {
    /// One call of a handler.
    CallFrame = "XLA_FFI_CallFrame" {
        /// Size of this struct in bytes.
        struct_size: usize,
        /// Extensions of this call.
        extension_start: *mut Extension,
        /// What a handler may call.
        api: *const FfiApi,
        /// State of this execution.
        ctx: *mut ExecutionContext,
        /// One of the [`stage`] constants, or another stage.
        stage: c_int,
        /// Operands.
        args: FfiArgs,
        /// Results.
        rets: FfiRets,
        /// Attributes.
        attrs: FfiAttrs,
        /// Out; for asynchronous handlers.
        future: *mut Future,
    }
}

c_struct! {
    /// Argument of `XLA_FFI_Error_Create`.
    sized ErrorCreateArgs = "XLA_FFI_Error_Create_Args" {
        /// Size of this struct in bytes.
        struct_size: usize,
        /// Extensions of this call.
        extension_start: *mut Extension,
        /// Null-terminated.
        message: *const c_char,
        /// One of the [`error_code`] constants.
        errc: c_int,
    }
}

c_struct! {
    #[allow(non_snake_case, reason = "the C header's name of the field")]
    /// The head of `XLA_FFI_Api`; functions after the ones declared here are not used.
    FfiApi = "XLA_FFI_Api" {
        /// Size of the whole table in bytes.
        struct_size: usize,
        /// Extensions of the table.
        extension_start: *mut Extension,
        /// The version that XLA offers.
        api_version: FfiApiVersion,
        /// Not for handlers.
        internal_api: *const InternalApi,
        /// Makes an error that a handler returns.
        XLA_FFI_Error_Create: Option<unsafe extern "C" fn(args: *mut ErrorCreateArgs) -> *mut FfiError>,
    }
}

pub(crate) fn layouts() -> Vec<Layout> {
    vec![
        Layout::of::<Extension>(),
        Layout::of::<FfiApiVersion>(),
        Layout::of::<Metadata>(),
        Layout::of::<MetadataExtension>(),
        Layout::of::<FfiBuffer>(),
        Layout::of::<ByteSpan>(),
        Layout::of::<Scalar>(),
        Layout::of::<FfiArgs>(),
        Layout::of::<FfiRets>(),
        Layout::of::<FfiAttrs>(),
        Layout::of::<CallFrame>(),
        Layout::of::<ErrorCreateArgs>(),
        Layout::of_prefix::<FfiApi>(),
    ]
}
