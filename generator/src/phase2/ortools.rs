//! The OR-Tools library, found and loaded when the first problem needs it. Crate `cp_sat` is built against
//! `generator/ortools-shim`, whose header hands serialized messages to [`act_cp_sat_solve`]; this file forwards them
//! to `SolveCpModelWithParameters` of `libortools.so.9`. Knows no constraint problem.

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::ffi::{OsString, c_int, c_void};
use std::path::PathBuf;
use std::sync::OnceLock;

/// Environment variable with the path of libortools; the Python package sets it.
pub const LIBRARY_VARIABLE: &str = "ACT_ORTOOLS_LIB";

const LIBRARY_NAME: &str = "libortools.so.9";

/// CP-SAT is needed and cannot be loaded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("CP-SAT is not available ({reason}); install it with: pip install \"ortools>=9.15,<9.16\"")]
pub struct SolverMissing {
    pub reason: String,
}

/// `SolveCpModelWithParameters(model, size, parameters, size, &response, &size)` of OR-Tools' C interface.
type Solve = unsafe extern "C" fn(*const c_void, c_int, *const c_void, c_int, *mut *mut c_void, *mut c_int);

static SOLVE: OnceLock<Result<Solve, SolverMissing>> = OnceLock::new();

/// Loads the library if it is not loaded yet.
///
/// # Errors
/// The library is not found, or is not OR-Tools 9.15.
pub(super) fn load() -> Result<(), SolverMissing> {
    SOLVE.get_or_init(open).as_ref().map(|_| ()).map_err(Clone::clone)
}

fn open() -> Result<Solve, SolverMissing> {
    let mut reason =
        format!("{LIBRARY_VARIABLE} is not set and {LIBRARY_NAME} is not in a site-packages folder");
    for path in candidates() {
        // SAFETY: loading runs the initialisers of OR-Tools and of the libraries next to it, which set up their own
        // registries and touch nothing of ours.
        let library = match unsafe { Library::open(Some(&path), RTLD_NOW | RTLD_LOCAL) } {
            Ok(library) => library,
            Err(error) => {
                reason = described(&error);
                continue;
            }
        };
        // SAFETY: the symbol has the C signature `Solve` in the versions that this project pins.
        match unsafe { library.get::<Solve>(b"SolveCpModelWithParameters\0") } {
            Ok(symbol) => {
                let solve = *symbol;
                // The library must outlive the pointer, which lives as long as the process.
                std::mem::forget(library);
                return Ok(solve);
            }
            Err(error) => reason = described(&error),
        }
    }
    Err(SolverMissing { reason })
}

/// The loader's own words, which name the file.
fn described(error: &libloading::Error) -> String {
    let source = std::error::Error::source(error);
    source.map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"))
}

/// Where the library may be: the environment variable alone if it is set, else the site-packages of the virtual
/// environment and of the entries of PYTHONPATH, else whatever the dynamic loader finds.
fn candidates() -> Vec<OsString> {
    if let Some(path) = std::env::var_os(LIBRARY_VARIABLE) {
        return vec![path];
    }
    let mut roots: Vec<PathBuf> = Vec::new();
    if let Some(paths) = std::env::var_os("PYTHONPATH") {
        roots.extend(std::env::split_paths(&paths));
    }
    let prefixes = std::env::var_os("VIRTUAL_ENV").map(PathBuf::from).into_iter();
    for prefix in prefixes.chain([PathBuf::from("/usr/local"), PathBuf::from("/usr")]) {
        let Ok(entries) = std::fs::read_dir(prefix.join("lib")) else { continue };
        let mut pythons: Vec<PathBuf> = entries
            .filter_map(|e| Some(e.ok()?.path()))
            .filter(|p| p.file_name().is_some_and(|n| n.to_string_lossy().starts_with("python3")))
            .collect();
        pythons.sort();
        for python in pythons {
            roots.push(python.join("site-packages"));
            roots.push(python.join("dist-packages"));
        }
    }
    let mut found: Vec<OsString> = roots
        .into_iter()
        .map(|root| root.join("ortools/.libs").join(LIBRARY_NAME))
        .filter(|path| path.exists())
        .map(PathBuf::into_os_string)
        .collect();
    found.push(LIBRARY_NAME.into());
    found
}

/// What the shim header calls. Leaves the response null when OR-Tools is not loaded or the sizes do not fit its
/// interface.
///
/// # Safety
/// The inputs are readable for their sizes; `response` and `response_size` are writable.
#[unsafe(no_mangle)]
unsafe extern "C" fn act_cp_sat_solve(
    model: *const u8,
    model_size: usize,
    parameters: *const u8,
    parameters_size: usize,
    response: *mut *mut u8,
    response_size: *mut usize,
) {
    let Some(Ok(solve)) = SOLVE.get() else { return };
    let (Ok(model_size), Ok(parameters_size)) =
        (c_int::try_from(model_size), c_int::try_from(parameters_size))
    else {
        return;
    };
    let mut bytes: *mut c_void = std::ptr::null_mut();
    let mut size: c_int = 0;
    // SAFETY: the pointers and sizes are the caller's; the results go to locals. OR-Tools reports errors in the
    // response and does not unwind.
    unsafe {
        solve(model.cast(), model_size, parameters.cast(), parameters_size, &raw mut bytes, &raw mut size);
    }
    // SAFETY: writable by this function's contract. The response is memory from malloc, which the caller frees.
    unsafe {
        *response = bytes.cast();
        *response_size = usize::try_from(size).unwrap_or(0);
    }
}
