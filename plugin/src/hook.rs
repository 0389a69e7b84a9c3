//! What happens around every hooked function: short argument structs of older callers are extended, panics
//! are caught, failures become `PJRT_Error`s. It knows nothing of any one function.

use std::ffi::c_void;
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind};

use pjrt_abi::args::Args;
use pjrt_abi::layout::CStruct;
use pjrt_abi::{Error, Slot};

use crate::error::Failure;
use crate::inner;

/// Bytes of `{ size_t struct_size; extension_start }`, with which every argument struct begins.
const ARGS_HEADER: usize = 16;
/// The largest argument struct is 185 bytes; 8-byte words hold it aligned.
const MAX_ARGS_WORDS: usize = 24;
const _: () = {
    let mut i = 0;
    while i < Slot::COUNT {
        assert!(Slot::ALL[i].args_size() <= MAX_ARGS_WORDS * 8);
        i += 1;
    }
};

/// One function of ours in place of the inner library's.
pub(crate) trait Hook {
    /// The function's argument struct, which also tells the slot.
    type Args: Args;

    /// Does the work. The struct is whole, whatever version the caller was built against.
    ///
    /// # Errors
    /// What the framework shall see.
    fn run(call: &mut Call<Self::Args>) -> Result<(), Failure>;
}

/// One call of a hooked function: its arguments, and the way on to the inner library.
pub(crate) struct Call<A> {
    args: *mut A,
}

impl<A: Args> Call<A> {
    /// Calls the inner library's function with these arguments.
    ///
    /// # Errors
    /// The inner library's error, or that it has no such function.
    pub(crate) fn forward(&mut self) -> Result<(), Failure> {
        let function = inner::get()?.function(A::SLOT)?;
        // SAFETY: the framework filled the struct in for this very function; a hook changes fields only to
        // values that the function's contract allows.
        Failure::check(unsafe { function(self.args.cast()) })
    }
}

impl<A> Deref for Call<A> {
    type Target = A;

    fn deref(&self) -> &A {
        // SAFETY: `hooked` only makes a Call of a pointer to a whole struct that nobody else uses during
        // the call.
        unsafe { &*self.args }
    }
}

impl<A> DerefMut for Call<A> {
    fn deref_mut(&mut self) -> &mut A {
        // SAFETY: as in `deref`.
        unsafe { &mut *self.args }
    }
}

/// Turns a [`Hook`] into a C function.
///
/// # Safety
/// `args` must be null or point to the argument struct of the hook's slot, as some version of the C header
/// declares it.
pub(crate) unsafe extern "C" fn hooked<H: Hook>(args: *mut c_void) -> *mut Error {
    let slot = <H::Args as Args>::SLOT;
    guard(slot.name(), || {
        let caller_size = caller_size(args, slot)?;
        if caller_size >= H::Args::STRUCT_SIZE {
            return H::run(&mut Call { args: args.cast() });
        }
        let mut whole = H::Args::zeroed();
        // SAFETY: the caller's struct has `caller_size` bytes, fewer than ours; both are plain data.
        unsafe { extend(args, (&raw mut whole).cast(), caller_size, H::Args::STRUCT_SIZE) };
        let outcome = H::run(&mut Call { args: &raw mut whole });
        // SAFETY: as above, the other way.
        unsafe { copy_back((&raw const whole).cast(), args, caller_size) };
        outcome
    })
}

/// The C function in a slot that is not hooked: hands the call on.
///
/// # Safety
/// As for [`hooked`], for the slot at `INDEX`.
pub(crate) unsafe extern "C" fn forward<const INDEX: usize>(args: *mut c_void) -> *mut Error {
    let slot = const { Slot::ALL[INDEX] };
    guard(slot.name(), || {
        let function = inner::get()?.function(slot)?;
        let caller_size = caller_size(args, slot)?;
        if caller_size >= slot.args_size() {
            // SAFETY: the framework filled the struct in for this very function.
            return Failure::check(unsafe { function(args) });
        }
        let mut whole = [0_u64; MAX_ARGS_WORDS];
        let whole = (&raw mut whole).cast::<c_void>();
        // SAFETY: `whole` has room for every slot's struct (checked at compile time above) and the caller's
        // has `caller_size` bytes, fewer than that.
        unsafe { extend(args, whole, caller_size, slot.args_size()) };
        // SAFETY: the caller's struct, with the fields that it does not know absent (zero).
        let outcome = Failure::check(unsafe { function(whole) });
        // SAFETY: as above, the other way.
        unsafe { copy_back(whole, args, caller_size) };
        outcome
    })
}

/// Runs `body` so that neither a failure nor a panic leaves it other than as a `PJRT_Error`.
pub(crate) fn guard(what: &str, body: impl FnOnce() -> Result<(), Failure>) -> *mut Error {
    // What a panic may leave half-done is behind locks that recover, or belongs to the failed call.
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => std::ptr::null_mut(),
        Ok(Err(failure)) => failure.into_raw(),
        Err(panic) => Failure::internal(format!("{what}: {}", panic_message(&*panic))).into_raw(),
    }
}

/// What a panic said.
pub(crate) fn panic_message(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("panic without a message")
}

/// The size that the caller says its argument struct has.
fn caller_size(args: *const c_void, slot: Slot) -> Result<usize, Failure> {
    if args.is_null() {
        return Err(Failure::invalid_argument(format!("{}: null argument struct", slot.name())));
    }
    // SAFETY: every argument struct begins with its size.
    let size = unsafe { args.cast::<usize>().read() };
    if size < ARGS_HEADER {
        return Err(Failure::invalid_argument(format!(
            "{}: unexpected size of the argument struct: {size} bytes, {} expected",
            slot.name(),
            slot.args_size()
        )));
    }
    Ok(size)
}

/// Copies a short struct over the zero bytes of a whole one and gives it the whole size.
///
/// # Safety
/// `short` must have `short_size` readable bytes and `whole` at least as many writable ones, 8-aligned.
unsafe fn extend(short: *const c_void, whole: *mut c_void, short_size: usize, whole_size: usize) {
    // SAFETY: the caller's promise; the two do not overlap, `whole` being a local of ours.
    unsafe {
        std::ptr::copy_nonoverlapping(short.cast::<u8>(), whole.cast::<u8>(), short_size);
        whole.cast::<usize>().write(whole_size);
    }
}

/// Copies results back into the caller's short struct, whose size field stays.
///
/// # Safety
/// As for [`extend`].
unsafe fn copy_back(whole: *const c_void, short: *mut c_void, short_size: usize) {
    let size_field = size_of::<usize>();
    // SAFETY: the caller's promise, and `short_size` is at least the header's size.
    unsafe {
        let (from, to) = (whole.cast::<u8>().add(size_field), short.cast::<u8>().add(size_field));
        std::ptr::copy_nonoverlapping(from, to, short_size - size_field);
    }
}
