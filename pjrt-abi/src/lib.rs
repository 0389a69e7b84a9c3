//! The PJRT C interface, its extensions and XLA's typed FFI as plain data, and the loading of a library
//! that implements them. Declared are the parts that an interposing plugin uses. This crate knows nothing
//! of accelerators, nor of what an interposer does with the calls that it sees.
//!
//! All pointers in the structs follow the C header's ownership rules: strings are not null-terminated
//! unless said so, and belong to whoever made them.

mod api;
pub mod args;
mod base;
pub mod caller;
pub mod ffi;
pub mod ffi_extension;
pub mod layout;
mod loader;
pub mod profiler_extension;
mod slot;
pub mod xla_transform;

pub use api::{API_MAJOR, API_MINOR, Api, ApiRef, RawFunction};
pub use base::{
    ApiVersion, Buffer, Client, Device, DeviceDescription, Error, ErrorCode, Event, Executable,
    ExecuteContext, ExtensionBase, LoadedExecutable, Memory, NamedValue, NamedValueUnion,
    SerializedExecutable, TopologyDescription, extension_type, named_value_type,
};
pub use loader::{LoadError, load};
pub use slot::Slot;

/// The layout of every struct here that a published C header also declares, for comparison with a C
/// compiler's.
pub fn published_layouts() -> Vec<layout::Layout> {
    let mut layouts = args::layouts();
    layouts.extend(ffi_extension::layouts());
    layouts.extend(ffi::layouts());
    layouts
}
