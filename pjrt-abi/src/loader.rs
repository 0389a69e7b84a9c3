//! Loading a shared library that implements the PJRT C API. It knows nothing of where such libraries are
//! kept.

use std::path::{Path, PathBuf};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use thiserror::Error as ThisError;

use crate::ApiVersion;
use crate::api::{API_MAJOR, Api, ApiRef};
use crate::layout::CStruct;
use crate::slot::Slot;

/// The entry point of a PJRT library.
const ENTRY_POINT: &[u8] = b"GetPjrtApi\0";

/// The last slot that an interposer cannot do without; older libraries end before it.
const LAST_NEEDED: Slot = Slot::ExecutableFingerprint;

/// Why a library cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
pub enum LoadError {
    /// There is no such file.
    #[error("{}: no such file", path.display())]
    Missing {
        /// The path tried.
        path: PathBuf,
    },
    /// The dynamic linker does not take the file.
    #[error("{}: cannot be loaded: {reason}", path.display())]
    Unloadable {
        /// The path tried.
        path: PathBuf,
        /// The linker's words.
        reason: String,
    },
    /// The library has no `GetPjrtApi`.
    #[error("{}: not a PJRT library (it exports no GetPjrtApi)", path.display())]
    NoEntryPoint {
        /// The path tried.
        path: PathBuf,
    },
    /// `GetPjrtApi` returned null, or something that cannot be a function table.
    #[error("{}: not a PJRT library ({reason})", path.display())]
    NoTable {
        /// The path tried.
        path: PathBuf,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The major version is another.
    #[error("{}: PJRT API {major}.{minor}, but major version {API_MAJOR} is needed", path.display())]
    OtherMajorVersion {
        /// The path tried.
        path: PathBuf,
        /// Its major version.
        major: i32,
        /// Its minor version.
        minor: i32,
    },
    /// Functions are missing.
    #[error("{}: PJRT API {major}.{minor} is too old (it has no {})", path.display(), missing.name())]
    TooOld {
        /// The path tried.
        path: PathBuf,
        /// Its major version.
        major: i32,
        /// Its minor version.
        minor: i32,
        /// The first function that is missing.
        missing: Slot,
    },
}

/// Loads the PJRT library at `path` for the rest of the process, its symbols kept to itself.
///
/// # Errors
/// Everything that [`LoadError`] tells.
pub fn load(path: &Path) -> Result<ApiRef, LoadError> {
    let path_buf = || path.to_path_buf();
    if !path.is_file() {
        return Err(LoadError::Missing { path: path_buf() });
    }
    // SAFETY: the library's initialisers run; the user has named this library, or we carry it.
    let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }
        .map_err(|error| LoadError::Unloadable { path: path_buf(), reason: describe(&error) })?;
    // SAFETY: a library that exports this name exports it with this type.
    let entry = unsafe { library.get::<unsafe extern "C" fn() -> *const Api>(ENTRY_POINT) }
        .map_err(|_| LoadError::NoEntryPoint { path: path_buf() })?;
    // SAFETY: the entry point takes nothing and may be called at any time.
    let table = unsafe { entry() };
    // SAFETY: whatever the entry point of a PJRT library returns is its table, which lives as long as the
    // library does.
    let api = unsafe { check_table(table, path) };
    // Threads of the library may be running by now: it can never be unloaded.
    std::mem::forget(library);
    api
}

/// Checks that `table` is one that we can work with.
///
/// # Safety
/// `table` must be null or point to readable memory of at least [`ApiRef::HEADER_SIZE`] bytes, which if it
/// looks like a `PJRT_Api` must be one that lives for the rest of the process.
unsafe fn check_table(table: *const Api, path: &Path) -> Result<ApiRef, LoadError> {
    let path = path.to_path_buf();
    if table.is_null() {
        return Err(LoadError::NoTable { path, reason: "GetPjrtApi returned null" });
    }
    // SAFETY: the caller vouches for the header's bytes.
    let (struct_size, version) =
        unsafe { ((&raw const (*table).struct_size).read(), (&raw const (*table).version).read()) };
    if struct_size < ApiRef::HEADER_SIZE || version.struct_size < ApiVersion::STRUCT_SIZE {
        return Err(LoadError::NoTable { path, reason: "its function table has no valid size" });
    }
    let (major, minor) = (version.major_version, version.minor_version);
    if major != API_MAJOR {
        return Err(LoadError::OtherMajorVersion { path, major, minor });
    }
    // SAFETY: the table has a plausible header and, as the caller says, lives on.
    let api = unsafe { ApiRef::new(table) };
    let needed = Slot::ALL.iter().take(LAST_NEEDED.index() + 1);
    // Some of the early slots may be null in a library that does not offer them; only the end of the table
    // tells its age.
    match needed.clone().find(|slot| ApiRef::end_of(**slot) > struct_size) {
        Some(&missing) => Err(LoadError::TooOld { path, major, minor, missing }),
        None => Ok(api),
    }
}

/// The dynamic linker's own words, where there are any.
fn describe(error: &libloading::Error) -> String {
    use std::error::Error;
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RawFunction;

    fn table() -> Api {
        let mut table: Api = Api {
            struct_size: size_of::<Api>(),
            extension_start: std::ptr::null_mut(),
            version: ApiVersion::zeroed(),
            slots: [None; Slot::COUNT],
        };
        table.version.struct_size = ApiVersion::STRUCT_SIZE;
        table.version.minor_version = 7;
        table
    }

    /// The verdict over a table that is leaked, as `check_table` demands.
    fn check(table: Api) -> Result<ApiRef, LoadError> {
        // SAFETY: a whole table, never freed.
        unsafe { check_table(Box::leak(Box::new(table)), Path::new("x.so")) }
    }

    #[test]
    fn a_whole_table_is_taken() {
        assert_eq!(check(table()).map(|api| api.version()), Ok((0, 7)));
    }

    #[test]
    fn a_table_that_ends_early_is_too_old() {
        let mut short = table();
        short.struct_size = ApiRef::HEADER_SIZE + Slot::Compile.index() * size_of::<Option<RawFunction>>();
        let error = check(short).expect_err("the table ends before PJRT_Compile");
        assert_eq!(error.to_string(), "x.so: PJRT API 0.7 is too old (it has no PJRT_Compile)");
    }

    #[test]
    fn another_major_version_is_refused() {
        let mut other = table();
        other.version.major_version = 1;
        assert!(matches!(check(other), Err(LoadError::OtherMajorVersion { major: 1, minor: 7, .. })));
    }

    #[test]
    fn what_is_no_table_is_refused() {
        let mut tiny = table();
        tiny.struct_size = 3;
        assert!(matches!(check(tiny), Err(LoadError::NoTable { .. })));
        let mut versionless = table();
        versionless.version.struct_size = 0;
        assert!(matches!(check(versionless), Err(LoadError::NoTable { .. })));
        // SAFETY: null is allowed.
        let null = unsafe { check_table(std::ptr::null(), Path::new("x.so")) };
        assert!(matches!(null, Err(LoadError::NoTable { .. })));
    }

    #[test]
    fn a_missing_file_is_told_from_a_broken_one() {
        let absent = Path::new("no/such/library.so");
        assert_eq!(load(absent).err(), Some(LoadError::Missing { path: absent.to_path_buf() }));
        let text = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
        assert!(matches!(load(text), Err(LoadError::Unloadable { .. })));
    }

    #[test]
    fn a_library_without_the_entry_point_is_told() {
        // The C library is loaded in every process; where it lies is known from the process itself.
        let maps = std::fs::read_to_string("/proc/self/maps").expect("Linux has it");
        let libc =
            maps.lines().filter_map(|line| line.split_whitespace().last()).find(|p| p.contains("libc.so"));
        let libc = Path::new(libc.expect("the test binary is linked against the C library"));
        assert!(matches!(load(libc), Err(LoadError::NoEntryPoint { .. })));
    }

    #[test]
    fn functions_past_the_end_are_absent() {
        unsafe extern "C" fn function(_: *mut std::ffi::c_void) -> *mut crate::Error {
            std::ptr::null_mut()
        }
        let mut full = table();
        full.slots = [Some(function as RawFunction); Slot::COUNT];
        full.struct_size = ApiRef::end_of(Slot::ExecutableFingerprint);
        let api = check(full).expect("every needed slot is there");
        assert!(api.function(Slot::ExecutableFingerprint).is_some());
        assert!(api.function(Slot::ClientTopologyDescription).is_none());
    }
}
