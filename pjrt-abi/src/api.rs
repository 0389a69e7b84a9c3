//! `PJRT_Api` itself: the table of function slots, as we hand it out and as we read another library's.

use std::ffi::c_void;

use crate::args::Args;
use crate::base::{ApiVersion, Error, ExtensionBase};
use crate::layout::CStruct;
use crate::slot::Slot;

/// The PJRT C API version whose slots and structs this crate describes.
pub const API_MAJOR: i32 = 0;
/// See [`API_MAJOR`].
pub const API_MINOR: i32 = 115;

/// Any function of the table. `ErrorDestroy` and `ErrorMessage` return nothing: see
/// [`Slot::returns_void`].
pub type RawFunction = unsafe extern "C" fn(args: *mut c_void) -> *mut Error;

/// `PJRT_Api`, with as many slots as this crate knows.
#[repr(C)]
#[derive(Debug)]
pub struct Api {
    /// Bytes of this struct that are valid.
    pub struct_size: usize,
    /// First node of the extension chain, or null.
    pub extension_start: *mut ExtensionBase,
    /// The version that the implementation offers.
    pub version: ApiVersion,
    /// The functions, in the order of [`Slot::ALL`].
    pub slots: [Option<RawFunction>; Slot::COUNT],
}

/// A view of another library's `PJRT_Api`, which may be shorter or longer than [`Api`].
#[derive(Clone, Copy, Debug)]
pub struct ApiRef {
    base: *const Api,
    struct_size: usize,
}

// SAFETY: a PJRT_Api is immutable once published, and its functions may be called from any thread.
unsafe impl Send for ApiRef {}
// SAFETY: as above.
unsafe impl Sync for ApiRef {}

impl ApiRef {
    /// Bytes before the first slot.
    pub const HEADER_SIZE: usize = std::mem::offset_of!(Api, slots);

    /// Bytes of a table that ends with `slot`.
    pub const fn end_of(slot: Slot) -> usize {
        Self::HEADER_SIZE + (slot.index() + 1) * size_of::<Option<RawFunction>>()
    }

    /// Views the table at `base`.
    ///
    /// # Safety
    /// `base` must point to a `PJRT_Api` that lives and stays unchanged for the rest of the process, and
    /// whose `struct_size`, at least [`Self::HEADER_SIZE`], tells how many of its bytes are valid.
    pub unsafe fn new(base: *const Api) -> ApiRef {
        // SAFETY: the caller vouches for the first fields.
        let struct_size = unsafe { (&raw const (*base).struct_size).read() };
        ApiRef { base, struct_size }
    }

    /// Valid bytes of the table.
    pub fn struct_size(&self) -> usize {
        self.struct_size
    }

    /// Major and minor version.
    pub fn version(&self) -> (i32, i32) {
        // SAFETY: within HEADER_SIZE, which `new` demands to be valid.
        let version = unsafe { (&raw const (*self.base).version).read() };
        (version.major_version, version.minor_version)
    }

    /// The function in `slot`; `None` when the table ends before it or the slot is null.
    pub fn function(&self, slot: Slot) -> Option<RawFunction> {
        if Self::end_of(slot) > self.struct_size {
            return None;
        }
        // SAFETY: the slot ends within the bytes that are valid.
        unsafe { (&raw const (*self.base).slots).cast::<Option<RawFunction>>().add(slot.index()).read() }
    }

    /// Calls the function that takes `A`, or returns `None` when the table has no such function.
    ///
    /// # Safety
    /// `args` must be filled in as the function's contract demands. Must not be used for a slot that
    /// returns nothing ([`Self::call_void`] is there for those).
    pub unsafe fn call<A: Args>(&self, args: &mut A) -> Option<*mut Error> {
        debug_assert!(!A::SLOT.returns_void());
        let function = self.function(A::SLOT)?;
        // SAFETY: `args` is the struct that this slot takes (contract of `Args`), filled in by the caller.
        Some(unsafe { function((&raw mut *args).cast()) })
    }

    /// As [`Self::call`], for a function that returns nothing. Tells whether the table had it.
    ///
    /// # Safety
    /// As for [`Self::call`], but only for slots that return nothing.
    pub unsafe fn call_void<A: Args>(&self, args: &mut A) -> bool {
        debug_assert!(A::SLOT.returns_void());
        let Some(function) = self.function(A::SLOT) else { return false };
        // SAFETY: only the return type differs, and a function returning nothing leaves nothing to misread.
        let function: unsafe extern "C" fn(*mut c_void) = unsafe { std::mem::transmute(function) };
        // SAFETY: `args` is the struct that this slot takes, filled in by the caller.
        unsafe { function((&raw mut *args).cast()) };
        true
    }

    /// The extension of the given type, at least as large as `T`.
    ///
    /// # Safety
    /// `T` must be the struct of that extension type.
    pub unsafe fn extension<T: CStruct>(&self, extension_type: i32) -> Option<*mut T> {
        self.extensions().find_map(|node| {
            // SAFETY: `extensions` yields nodes of the library's chain, which live as long as the library.
            let node_ref = unsafe { &*node };
            (node_ref.r#type == extension_type && node_ref.struct_size >= T::STRUCT_SIZE)
                .then(|| node.cast::<T>())
        })
    }

    /// The nodes of the extension chain, in order.
    pub fn extensions(&self) -> impl Iterator<Item = *mut ExtensionBase> {
        // SAFETY: within HEADER_SIZE, which `new` demands to be valid.
        let mut next = unsafe { (&raw const (*self.base).extension_start).read() };
        std::iter::from_fn(move || {
            let node = next;
            if node.is_null() {
                return None;
            }
            // SAFETY: a non-null link points to a node that lives as long as the library.
            next = unsafe { (*node).next };
            Some(node)
        })
    }
}
