//! The PJRT plugin beside this library, and the function table that TensorFlow gets: the plugin's, except that making a
//! client adds the options for which TensorFlow has no words, and that memory in use is counted. Knows nothing of
//! TensorFlow.

use std::ffi::{CStr, c_void};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use pjrt_abi::args::{Args, ClientCreateArgs, ErrorMessageArgs};
use pjrt_abi::layout::CStruct;
use pjrt_abi::{Api, ApiRef, ApiVersion, Client, Error, NamedValue, NamedValueUnion, Slot, named_value_type};

use crate::{contained, memory};

/// The plugin's file name.
const PLUGIN: &str = "libact_pjrt.so";
/// The plugin's option that says how many devices there are.
const DEVICE_COUNT: &str = "cpu_device_count";
/// The plugin's option that keeps whole programs on disk, and its variable. TensorFlow keeps none itself, and compiles
/// each operator that is not in a compiled function by itself.
const CACHE_PROGRAMS: (&str, &str) = ("cache_programs", "ACT_CACHE_PROGRAMS");
/// XLA's flag that says so for every framework.
const DEVICE_COUNT_FLAG: &str = "--xla_force_host_platform_device_count=";

/// A function table that never moves.
struct Table(*mut Api);

// SAFETY: after creation only the extension pointer changes, through an atomic.
unsafe impl Send for Table {}
// SAFETY: as above.
unsafe impl Sync for Table {}

/// The client, once it is made.
static CLIENT: AtomicPtr<Client> = AtomicPtr::new(std::ptr::null_mut());

/// What the last attempt to make a client said.
static FAILURE: Mutex<Option<String>> = Mutex::new(None);

/// The plugin, loaded when first asked for.
///
/// # Errors
/// What to tell the user.
pub(crate) fn get() -> Result<ApiRef, &'static str> {
    static PLUGIN_API: OnceLock<Result<ApiRef, String>> = OnceLock::new();
    let loaded = PLUGIN_API.get_or_init(|| {
        let path = own_folder().map(|folder| folder.join(PLUGIN)).unwrap_or_else(|| PathBuf::from(PLUGIN));
        pjrt_abi::load(&path).map_err(|error| format!("{error}. Install act-pjrt again."))
    });
    loaded.as_ref().copied().map_err(String::as_str)
}

/// The table; always the same. Without a plugin it has no functions; then there are no devices either.
pub(crate) fn table() -> *const Api {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| Table(Box::into_raw(Box::new(new_table(get().ok()))))).0
}

/// The plugin's functions, or none.
fn new_table(api: Option<ApiRef>) -> Api {
    let mut slots = [None; Slot::COUNT];
    let mut version = ApiVersion { struct_size: ApiVersion::STRUCT_SIZE, ..ApiVersion::zeroed() };
    let mut extension_start = std::ptr::null_mut();
    if let Some(api) = api {
        for &slot in Slot::ALL {
            slots[slot.index()] = api.function(slot);
        }
        slots[Slot::ClientCreate.index()] = Some(create_client);
        for (slot, function) in memory::HOOKS {
            slots[slot.index()] = Some(function);
        }
        (version.major_version, version.minor_version) = api.version();
        extension_start = api.extensions().next().unwrap_or_default();
    }
    Api { struct_size: size_of::<Api>(), extension_start, version, slots }
}

/// The client that TensorFlow has made, which lives for the rest of the process.
pub(crate) fn client() -> Option<*mut Client> {
    let client = CLIENT.load(Ordering::Acquire);
    (!client.is_null()).then_some(client)
}

/// How many devices there are: as many as XLA's flag says, or one. Decided when first asked for.
pub(crate) fn device_count() -> i32 {
    static COUNT: OnceLock<i32> = OnceLock::new();
    *COUNT.get_or_init(|| {
        let flags = std::env::var_os("XLA_FLAGS").unwrap_or_default();
        count_in_flags(&flags.to_string_lossy()).unwrap_or(1)
    })
}

/// The number of devices that XLA's flags ask for; the last one counts.
fn count_in_flags(flags: &str) -> Option<i32> {
    let mut counts = flags.split_whitespace().filter_map(|flag| flag.strip_prefix(DEVICE_COUNT_FLAG));
    counts.next_back()?.parse().ok().filter(|&count| count > 0)
}

/// What went wrong when a client was last made; told once.
pub(crate) fn take_failure() -> Option<String> {
    FAILURE.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// `PJRT_Client_Create`
unsafe extern "C" fn create_client(args: *mut c_void) -> *mut Error {
    // SAFETY: TensorFlow's argument struct.
    contained("PJRT_Client_Create", std::ptr::null_mut(), || unsafe { create_with_options(args.cast()) })
}

/// # Safety
/// `args` must be the argument struct of `PJRT_Client_Create`.
unsafe fn create_with_options(args: *mut ClientCreateArgs) -> *mut Error {
    let Some((api, create)) = get().ok().and_then(|api| Some((api, api.function(ClientCreateArgs::SLOT)?)))
    else {
        return std::ptr::null_mut();
    };
    // SAFETY: these fields are in every version of the struct; they are put back before the caller sees it again.
    let error = unsafe {
        let given = ((*args).create_options, (*args).num_options);
        let mut options = if given.0.is_null() {
            Vec::new()
        } else {
            std::slice::from_raw_parts(given.0, given.1).to_vec()
        };
        options.push(integer_option(DEVICE_COUNT, i64::from(device_count())));
        if std::env::var_os(CACHE_PROGRAMS.1).is_none() {
            options.push(integer_option(CACHE_PROGRAMS.0, 1));
        }
        ((*args).create_options, (*args).num_options) = (options.as_ptr(), options.len());
        let error = create(args.cast());
        ((*args).create_options, (*args).num_options) = given;
        error
    };
    if error.is_null() {
        // SAFETY: the plugin has filled in the client that it made.
        CLIENT.store(unsafe { (*args).client }, Ordering::Release);
        publish_extensions(api);
    } else {
        // SAFETY: the plugin has just made it.
        let message = unsafe { message_of(api, error) };
        *FAILURE.lock().unwrap_or_else(PoisonError::into_inner) = Some(message);
    }
    error
}

fn integer_option(name: &'static str, value: i64) -> NamedValue {
    NamedValue {
        struct_size: NamedValue::STRUCT_SIZE,
        name: name.as_ptr().cast(),
        name_size: name.len(),
        r#type: named_value_type::INT64,
        value: NamedValueUnion { int64_value: value },
        value_size: 1,
        ..NamedValue::zeroed()
    }
}

/// The plugin shows the extensions of XLA's library once that is loaded.
fn publish_extensions(api: ApiRef) {
    let table = table().cast_mut();
    // SAFETY: the field is a pointer, aligned, and lives for the rest of the process.
    let field = unsafe { AtomicPtr::from_ptr(&raw mut (*table).extension_start) };
    field.store(api.extensions().next().unwrap_or_default(), Ordering::Release);
}

/// # Safety
/// `error` must be a live error of that library.
unsafe fn message_of(api: ApiRef, error: *const Error) -> String {
    let mut args = ErrorMessageArgs::new();
    args.error = error;
    // SAFETY: the caller's promise; the message lives as long as the error.
    unsafe {
        api.call_void(&mut args);
        if args.message.is_null() {
            return String::new();
        }
        let bytes = std::slice::from_raw_parts(args.message.cast::<u8>(), args.message_size);
        String::from_utf8_lossy(bytes).into_owned()
    }
}

/// The folder of this library.
fn own_folder() -> Option<PathBuf> {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: any address may be asked about, and `info` has room for the answer.
    let found = unsafe { libc::dladdr(own_folder as *const () as *const _, info.as_mut_ptr()) };
    // SAFETY: zero bytes are valid for this plain struct, whether or not it was filled in.
    let info = unsafe { info.assume_init() };
    if found == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the dynamic linker's name of a loaded object is a null-terminated string.
    let own = unsafe { CStr::from_ptr(info.dli_fname) }.to_string_lossy().into_owned();
    Path::new(&own).parent().map(Path::to_path_buf)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_counted_as_xla_counts_them() {
        let flag = DEVICE_COUNT_FLAG;
        assert_eq!(count_in_flags(""), None);
        assert_eq!(count_in_flags(&format!("--xla_dump_to=x {flag}4")), Some(4));
        assert_eq!(count_in_flags(&format!("{flag}4 {flag}2")), Some(2));
        assert_eq!(count_in_flags(&format!("{flag}0")), None);
        assert_eq!(count_in_flags(&format!("{flag}many")), None);
    }

    #[test]
    fn without_a_plugin_the_table_is_empty_but_there() {
        let table = new_table(None);
        assert!(table.slots.iter().all(Option::is_none));
        assert_eq!(table.struct_size, size_of::<Api>());
    }
}
