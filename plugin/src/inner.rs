//! The inner library: where XLA's CPU backend is looked for, when it is loaded, and what is set up in it
//! once. It knows nothing of clients.

use std::ffi::CStr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};

use pjrt_abi::ffi::Handler;
use pjrt_abi::ffi_extension::{FfiExtension, RegisterHandlerArgs};
use pjrt_abi::{ApiRef, ErrorCode, LoadError, RawFunction, Slot, extension_type};

use crate::error::{self, Failure};
use crate::object_table::lock;
use crate::options::Options;
use crate::{api, ffi_handler, ffi_version, log, python_callback, transform};

/// Where the carried library lies, seen from the directory of ours.
const CARRIED: &str = "xla/pjrt_c_api_cpu_plugin.so";
/// Names another library.
const VARIABLE: &str = "ACT_XLA_PLUGIN";
/// XLA's name of the platform that handlers are registered for.
const HOST_PLATFORM: &str = "HOST";

/// The library that does the work.
pub(crate) struct Inner {
    pub(crate) api: ApiRef,
    /// The file that it was loaded from.
    pub(crate) path: PathBuf,
    /// Tells this library from other builds of it, as far as can be told cheaply: API version and file size.
    pub(crate) identity: String,
    /// Why nothing can be offloaded with it; `None` when things can.
    pub(crate) host_only: Option<String>,
}

static INNER: OnceLock<Inner> = OnceLock::new();

/// Handlers that wait for a library to be registered with. Also held while loading, which happens once.
static PENDING_HANDLERS: Mutex<Vec<(String, Handler)>> = Mutex::new(Vec::new());

impl Inner {
    /// The library's function in `slot`.
    ///
    /// # Errors
    /// `UNIMPLEMENTED` when the library has none.
    pub(crate) fn function(&self, slot: Slot) -> Result<RawFunction, Failure> {
        self.api.function(slot).ok_or_else(|| {
            let message = format!("{}: {} has no such function", slot.name(), self.path.display());
            Failure::new(ErrorCode::Unimplemented, message)
        })
    }
}

/// The library if it is loaded.
pub(crate) fn loaded() -> Option<&'static Inner> {
    INNER.get()
}

/// The library; loads the one that the environment says, or the carried one, if none is loaded yet.
///
/// # Errors
/// `FAILED_PRECONDITION` with the path tried and what to do.
pub(crate) fn get() -> Result<&'static Inner, Failure> {
    match INNER.get() {
        Some(inner) => Ok(inner),
        None => {
            let options = Options::from_environment()
                .map_err(|error| Failure::invalid_argument(format!("act: {error}")))?;
            get_for(&options)
        }
    }
}

/// The library that `options` name, or the carried one.
///
/// # Errors
/// As for [`get`]; also that another library is loaded already, as a process has one only.
pub(crate) fn get_for(options: &Options) -> Result<&'static Inner, Failure> {
    let mut pending = lock(&PENDING_HANDLERS);
    log::set_filter(options.log.as_deref().unwrap_or(log::DEFAULT_FILTER))
        .map_err(|error| Failure::invalid_argument(format!("act: option log (ACT_LOG): {error}")))?;
    if let Some(inner) = INNER.get() {
        return match &options.xla_plugin {
            Some(other) if !same_file(other, &inner.path) => Err(Failure::new(
                ErrorCode::FailedPrecondition,
                format!(
                    "act: this process runs on {} already and cannot also run on {}",
                    inner.path.display(),
                    other.display()
                ),
            )),
            _ => Ok(inner),
        };
    }
    let inner = INNER.get_or_init({
        let inner = load(options.xla_plugin.as_deref())?;
        || inner
    });
    for (target_name, handler) in pending.drain(..) {
        if let Err(error) = register(inner, &target_name, handler) {
            tracing::warn!(target_name, "FFI handler not registered: {error}");
        }
    }
    api::publish_extensions(inner);
    Ok(inner)
}

fn same_file(a: &Path, b: &Path) -> bool {
    a == b || matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

/// Loads the library at `path`, or the carried one, and sets up in it what is there once per process.
fn load(path: Option<&Path>) -> Result<Inner, Failure> {
    let named = path.is_some();
    let path = path.map(Path::to_path_buf).or_else(carried_path).unwrap_or_else(|| PathBuf::from(CARRIED));
    let api = pjrt_abi::load(&path).map_err(|error| not_loaded(&error, named))?;
    let (major, minor) = api.version();
    let size = std::fs::metadata(&path).map_or(0, |metadata| metadata.len());
    let identity = format!("PJRT {major}.{minor}, {size} bytes");
    let mut inner = Inner { api, path, identity, host_only: None };
    inner.host_only = set_up(&inner).err();
    tracing::info!(path = %inner.path.display(), identity = inner.identity, "XLA library loaded");
    if let Some(reason) = &inner.host_only {
        tracing::warn!("everything runs on the host: {reason}");
    }
    Ok(inner)
}

/// Registers our handlers and our part of the compilation pipeline.
///
/// # Errors
/// Why nothing can be offloaded with this library.
fn set_up(inner: &Inner) -> Result<(), String> {
    for &(target_name, handler) in ffi_handler::TARGETS.iter().chain(python_callback::TARGETS) {
        register(inner, target_name, handler)?;
    }
    transform::register(inner)
}

/// The carried library's path, or `None` where not even our own can be told.
fn carried_path() -> Option<PathBuf> {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: any address may be asked about, and `info` has room for the answer.
    let found = unsafe { libc::dladdr(carried_path as *const () as *const _, info.as_mut_ptr()) };
    // SAFETY: zero bytes are valid for this plain struct, whether or not it was filled in.
    let info = unsafe { info.assume_init() };
    if found == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the dynamic linker's name of a loaded object is a null-terminated string.
    let own = unsafe { CStr::from_ptr(info.dli_fname) }.to_string_lossy().into_owned();
    Some(Path::new(&own).parent()?.join(CARRIED))
}

/// What the user is told when there is no library to run on.
fn not_loaded(error: &LoadError, named: bool) -> Failure {
    let remedy = if named {
        format!(
            "{VARIABLE}, or the option xla_plugin, must name a pjrt_c_api_cpu_plugin.so; \
             unset it to use the library that act-pjrt carries"
        )
    } else {
        format!(
            "act-pjrt's wheel carries this library: install it again, \
             or let {VARIABLE} name a pjrt_c_api_cpu_plugin.so"
        )
    };
    Failure::new(ErrorCode::FailedPrecondition, format!("act: no XLA library to run on: {error}. {remedy}."))
}

/// Registers an FFI handler for the host with the inner library, now or as soon as there is one.
///
/// # Errors
/// The library's error, or that it takes no handlers.
pub(crate) fn register_handler(target_name: &str, handler: Handler) -> Result<(), String> {
    let handler = ffi_version::accepted(handler);
    let mut pending = lock(&PENDING_HANDLERS);
    match INNER.get() {
        Some(inner) => register(inner, target_name, handler),
        None => {
            pending.push((target_name.to_owned(), handler));
            Ok(())
        }
    }
}

fn register(inner: &Inner, target_name: &str, handler: Handler) -> Result<(), String> {
    // SAFETY: the struct is that of this extension type.
    let extension = unsafe { inner.api.extension::<FfiExtension>(extension_type::FFI) };
    // SAFETY: an extension lives as long as its library.
    let function = extension.and_then(|extension| unsafe { (*extension).register_handler });
    let Some(function) = function else {
        return Err(format!("{} takes no FFI handlers", inner.path.display()));
    };
    let mut args = RegisterHandlerArgs::new();
    args.target_name = target_name.as_ptr().cast();
    args.target_name_size = target_name.len();
    args.handler = handler as *mut _;
    args.platform_name = HOST_PLATFORM.as_ptr().cast();
    args.platform_name_size = HOST_PLATFORM.len();
    // SAFETY: the struct is filled in; the library copies the names.
    let outcome = unsafe { function(&raw mut args) };
    error::message_of(&inner.api, outcome).map_or(Ok(()), Err)
}
