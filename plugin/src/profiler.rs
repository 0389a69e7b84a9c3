//! The profiler extension: while a framework's profiler records, every run of a kernel is kept with its time, and
//! handed over in the form of XLA's traces. Outside of that it costs one look at a flag. It knows no kernel.

use std::ffi::c_char;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use pjrt_abi::layout::CStruct;
use pjrt_abi::profiler_extension::{
    CollectDataArgs, CreateArgs, ErrorDestroyArgs, ErrorGetCodeArgs, ErrorMessageArgs, Profiler, ProfilerApi,
    ProfilerArgs, ProfilerError, ProfilerExtension,
};
use pjrt_abi::{ErrorCode, ExtensionBase, extension_type};

use crate::hook::guard;
use crate::object_table::lock;
use crate::trace::{self, Event};

/// Events that one recording keeps; those that come later are left out.
const MAX_EVENTS: usize = 1_000_000;

static RECORDING: AtomicBool = AtomicBool::new(false);

/// Events of the recording under way.
static EVENTS: Mutex<Vec<Event>> = Mutex::new(Vec::new());

/// Nanoseconds since 1970, in which XLA's traces count.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// A run under way; `None` while nothing records.
pub(crate) struct Running {
    begin: u64,
}

/// A kernel begins to run.
pub(crate) fn begin() -> Option<Running> {
    RECORDING.load(Ordering::Relaxed).then(|| Running { begin: now() })
}

impl Running {
    /// The kernel has run: `device` is the target's name, `numbers` are shown with the event.
    pub(crate) fn end(self, device: &str, kernel: &str, numbers: &[(&'static str, u64)]) {
        let event = Event {
            device: device.to_owned(),
            // SAFETY: the call takes no arguments and cannot fail.
            thread: i64::from(unsafe { libc::gettid() }),
            name: kernel.to_owned(),
            begin: self.begin,
            duration: now().saturating_sub(self.begin),
            numbers: numbers.to_vec(),
        };
        let mut events = lock(&EVENTS);
        if events.len() < MAX_EVENTS {
            events.push(event);
        }
    }
}

/// A profiler of a framework's: its last recording, serialized.
#[derive(Default)]
struct Recorded {
    events: Vec<Event>,
    serialized: Vec<u8>,
}

/// The extension's node, with `next` behind it. It lives as long as the process.
pub(crate) fn extension(next: *mut ExtensionBase) -> *mut ExtensionBase {
    let api = Box::leak(Box::new(ProfilerApi {
        struct_size: ProfilerApi::STRUCT_SIZE,
        error_destroy: Some(error_destroy),
        error_message: Some(error_message),
        error_get_code: Some(error_get_code),
        create: Some(create),
        destroy: Some(destroy),
        start: Some(start),
        stop: Some(stop),
        collect_data: Some(collect_data),
        ..ProfilerApi::zeroed()
    }));
    let base =
        ExtensionBase { struct_size: ProfilerExtension::STRUCT_SIZE, r#type: extension_type::PROFILER, next };
    let node = ProfilerExtension { base, profiler_api: api, traceme_context_id: 0 };
    (Box::leak(Box::new(node)) as *mut ProfilerExtension).cast()
}

// None of the functions below makes an error: there is nothing that can fail but memory.

unsafe extern "C" fn error_destroy(_args: *mut ErrorDestroyArgs) {}

unsafe extern "C" fn error_message(args: *mut ErrorMessageArgs) {
    const NONE: &str = "no error";
    // SAFETY: the caller hands over this function's argument struct.
    let args = unsafe { &mut *args };
    (args.message, args.message_size) = (NONE.as_ptr().cast::<c_char>(), NONE.len());
}

unsafe extern "C" fn error_get_code(args: *mut ErrorGetCodeArgs) -> *mut ProfilerError {
    // SAFETY: the caller hands over this function's argument struct.
    unsafe { (*args).code = ErrorCode::Unknown as i32 };
    std::ptr::null_mut()
}

/// Runs `body` so that no panic crosses the border; what it leaves undone shows as an empty recording.
fn quietly(what: &str, body: impl FnOnce()) -> *mut ProfilerError {
    let outcome = guard(what, || {
        body();
        Ok(())
    });
    if !outcome.is_null() {
        tracing::error!("{what} has failed");
        let mut args = pjrt_abi::args::ErrorDestroyArgs::new();
        args.error = outcome;
        // SAFETY: an error of ours, destroyed once.
        unsafe { crate::error::destroy((&raw mut args).cast()) };
    }
    std::ptr::null_mut()
}

unsafe extern "C" fn create(args: *mut CreateArgs) -> *mut ProfilerError {
    quietly("PLUGIN_Profiler_Create", || {
        // SAFETY: the caller hands over this function's argument struct.
        unsafe { (*args).profiler = Box::into_raw(Box::<Recorded>::default()).cast() };
    })
}

unsafe extern "C" fn destroy(args: *mut ProfilerArgs) -> *mut ProfilerError {
    quietly("PLUGIN_Profiler_Destroy", || {
        // SAFETY: the caller hands over this function's argument struct.
        let profiler = unsafe { (*args).profiler };
        if !profiler.is_null() {
            // SAFETY: `create` made it from such a box, and it is destroyed once.
            drop(unsafe { Box::from_raw(profiler.cast::<Recorded>()) });
        }
    })
}

unsafe extern "C" fn start(_args: *mut ProfilerArgs) -> *mut ProfilerError {
    quietly("PLUGIN_Profiler_Start", || {
        lock(&EVENTS).clear();
        RECORDING.store(true, Ordering::Relaxed);
    })
}

unsafe extern "C" fn stop(args: *mut ProfilerArgs) -> *mut ProfilerError {
    quietly("PLUGIN_Profiler_Stop", || {
        RECORDING.store(false, Ordering::Relaxed);
        let events = std::mem::take(&mut *lock(&EVENTS));
        // SAFETY: the caller hands over this function's argument struct.
        if let Some(recorded) = unsafe { recorded((*args).profiler) } {
            recorded.events.extend(events);
        }
    })
}

unsafe extern "C" fn collect_data(args: *mut CollectDataArgs) -> *mut ProfilerError {
    quietly("PLUGIN_Profiler_CollectData", || {
        // SAFETY: the caller hands over this function's argument struct.
        let args = unsafe { &mut *args };
        // SAFETY: as above.
        let Some(recorded) = (unsafe { recorded(args.profiler) }) else { return };
        recorded.serialized = trace::serialize(&recorded.events);
        args.buffer_size_in_bytes = recorded.serialized.len();
        if args.buffer.is_null() {
            args.buffer = recorded.serialized.as_mut_ptr();
        } else {
            // SAFETY: a caller that brings a buffer has asked for the size before.
            unsafe {
                let size = recorded.serialized.len();
                std::ptr::copy_nonoverlapping(recorded.serialized.as_ptr(), args.buffer, size);
            }
        }
    })
}

/// The profiler behind a pointer.
///
/// # Safety
/// It must be null, or made by `create`, live, and used by this call only.
unsafe fn recorded<'a>(profiler: *mut Profiler) -> Option<&'a mut Recorded> {
    // SAFETY: the caller's promise.
    unsafe { profiler.cast::<Recorded>().as_mut() }
}
