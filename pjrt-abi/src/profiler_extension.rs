//! The profiler extension of PJRT: what a framework's profiler asks of a plugin. The layout is that of XLA's
//! `profiler_c_api.h` up to `collect_data`; later versions append, and say so by the size.

use std::ffi::{c_char, c_void};

use crate::base::{ExtensionBase, opaque};
use crate::layout::c_struct;

opaque! {
    /// `PLUGIN_Profiler`
    Profiler,
    /// `PLUGIN_Profiler_Error`
    ProfilerError,
}

c_struct! {
    /// Argument of `error_destroy`.
    ErrorDestroyArgs = "PLUGIN_Profiler_Error_Destroy_Args" {
        /// Size of this struct in bytes.
        struct_size: usize,
        /// Unused by every known version.
        r#priv: *mut c_void,
        /// The error to destroy.
        error: *mut ProfilerError,
    }
}

c_struct! {
    /// Argument of `error_message`.
    ErrorMessageArgs = "PLUGIN_Profiler_Error_Message_Args" {
        /// Size of this struct in bytes.
        struct_size: usize,
        /// Unused by every known version.
        r#priv: *mut c_void,
        /// The error asked about.
        error: *const ProfilerError,
        /// Out; lives as long as the error.
        message: *const c_char,
        /// Out.
        message_size: usize,
    }
}

c_struct! {
    /// Argument of `error_get_code`.
    ErrorGetCodeArgs = "PLUGIN_Profiler_Error_GetCode_Args" {
        /// Size of this struct in bytes.
        struct_size: usize,
        /// Unused by every known version.
        r#priv: *mut c_void,
        /// The error asked about.
        error: *const ProfilerError,
        /// Out.
        code: i32,
    }
}

c_struct! {
    /// Argument of `create`.
    CreateArgs = "PLUGIN_Profiler_Create_Args" {
        /// Size of this struct in bytes.
        struct_size: usize,
        /// A serialized ProfileOptions.
        options: *const c_char,
        /// Its length in bytes.
        options_size: usize,
        /// Out.
        profiler: *mut Profiler,
    }
}

c_struct! {
    /// Argument of `destroy`, `start` and `stop`.
    ProfilerArgs = "PLUGIN_Profiler_Start_Args" {
        /// Size of this struct in bytes.
        struct_size: usize,
        /// The profiler meant.
        profiler: *mut Profiler,
    }
}

c_struct! {
    /// Argument of `collect_data`.
    CollectDataArgs = "PLUGIN_Profiler_CollectData_Args" {
        /// Size of this struct in bytes.
        struct_size: usize,
        /// The profiler asked.
        profiler: *mut Profiler,
        /// A buffer of the caller's to fill, or null. Null comes back as memory of the profiler's.
        buffer: *mut u8,
        /// Out: bytes of the serialized XSpace.
        buffer_size_in_bytes: usize,
    }
}

/// A function of the profiler that returns an error, or null.
pub type ProfilerFunction<A> = Option<unsafe extern "C" fn(args: *mut A) -> *mut ProfilerError>;

c_struct! {
    /// The profiler's function table.
    ProfilerApi = "PLUGIN_Profiler_Api" {
        /// Size of this struct in bytes.
        struct_size: usize,
        /// Unused by every known version.
        r#priv: *mut c_void,
        /// Destroys an error.
        error_destroy: Option<unsafe extern "C" fn(args: *mut ErrorDestroyArgs)>,
        /// The message of an error.
        error_message: Option<unsafe extern "C" fn(args: *mut ErrorMessageArgs)>,
        /// The code of an error.
        error_get_code: ProfilerFunction<ErrorGetCodeArgs>,
        /// Makes a profiler.
        create: ProfilerFunction<CreateArgs>,
        /// Destroys a profiler.
        destroy: ProfilerFunction<ProfilerArgs>,
        /// Starts recording.
        start: ProfilerFunction<ProfilerArgs>,
        /// Stops recording.
        stop: ProfilerFunction<ProfilerArgs>,
        /// Hands out what was recorded, a serialized XSpace.
        collect_data: ProfilerFunction<CollectDataArgs>,
    }
}

c_struct! {
    /// The extension's struct.
    ProfilerExtension = "PJRT_Profiler_Extension" {
        /// Type `extension_type::PROFILER`.
        base: ExtensionBase,
        /// The function table.
        profiler_api: *mut ProfilerApi,
        /// Of a call, not of the table: connects events of both sides.
        traceme_context_id: i64,
    }
}
