//! The command `act`: finds the library of its own installation and runs the command line that is in it. The wheel
//! would otherwise carry LLVM and the rest twice.

use std::ffi::{CString, OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

// Not the library's, of which this program must not become a copy.
#[cfg(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu"))]
#[path = "../glibc.rs"]
mod glibc;

const LIBRARY: &str = "libact_pjrt.so";

/// `act_command(argument count, arguments)`: runs a command line and returns the exit code.
type CommandLine = unsafe extern "C" fn(c_int, *const *const c_char) -> c_int;

/// Solvers that other wheels bring: the variable by which the library is told, and where they lie beside `act_pjrt`.
const ENGINES: [(&str, &str); 2] =
    [("ACT_ORTOOLS_LIB", "ortools/.libs/libortools.so.9"), ("ACT_Z3_LIB", "z3/lib/libz3.so")];

fn main() -> ExitCode {
    match run() {
        Ok(code) => ExitCode::from(u8::try_from(code).unwrap_or(1)),
        Err(reason) => {
            eprintln!("act: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<c_int, String> {
    let program = std::env::current_exe().map_err(|error| format!("where it is installed: {error}"))?;
    let library = places(&program).into_iter().find(|path| path.is_file()).ok_or_else(|| {
        format!(
            "{LIBRARY} is not installed with {}: pip install --force-reinstall act-pjrt",
            program.display()
        )
    })?;
    name_engines(&library);
    // SAFETY: loading our own library runs the initialisers of what is linked into it, which only set up themselves.
    let opened = unsafe { Library::open(Some(&library), RTLD_NOW | RTLD_LOCAL) };
    let opened = opened.map_err(|error| format!("{}: {error}", library.display()))?;
    // SAFETY: this is the function's signature in every version of the library that has it.
    let command = unsafe { opened.get::<CommandLine>(b"act_command\0") };
    let command = command.map_err(|error| format!("{} is of another version: {error}", library.display()))?;
    // An argument of a process holds no null byte.
    let arguments: Vec<CString> =
        std::env::args_os().filter_map(|argument| CString::new(argument.as_bytes()).ok()).collect();
    let pointers: Vec<*const c_char> = arguments.iter().map(|argument| argument.as_ptr()).collect();
    let count = c_int::try_from(pointers.len()).map_err(|_| "too many arguments")?;
    // SAFETY: `count` null-terminated strings, which live until it returns.
    Ok(unsafe { command(count, pointers.as_ptr()) })
}

/// Where the library may be: where cargo builds both, where pip puts them for any of its schemes on this platform.
fn places(program: &Path) -> Vec<PathBuf> {
    let Some(folder) = program.parent() else { return Vec::new() };
    // Cargo leaves an older one beside the program where only the program was asked for.
    let mut found = vec![folder.join("deps").join(LIBRARY), folder.join(LIBRARY)];
    let Some(prefix) = folder.parent() else { return found };
    // `pip install --target` makes the folder `bin` beside the packages.
    let mut packages = vec![prefix.to_owned()];
    for name in ["lib", "lib64", "local/lib"] {
        let entries = std::fs::read_dir(prefix.join(name)).into_iter().flatten().flatten();
        let mut pythons: Vec<PathBuf> =
            entries.map(|entry| entry.path()).filter(|path| is_python(path)).collect();
        pythons.sort();
        for python in pythons.iter().rev() {
            packages.extend([python.join("site-packages"), python.join("dist-packages")]);
        }
    }
    found.extend(packages.iter().map(|folder| folder.join("act_pjrt").join(LIBRARY)));
    found
}

fn is_python(folder: &Path) -> bool {
    folder.file_name().is_some_and(|name| name.as_bytes().starts_with(b"python3"))
}

/// Tells the library where the solvers are, unless the user has.
fn name_engines(library: &Path) {
    let Some(packages) = library.parent().filter(|folder| folder.file_name() == Some(OsStr::new("act_pjrt")))
    else {
        return;
    };
    for (variable, file) in ENGINES {
        let path = packages.with_file_name(file);
        if std::env::var_os(variable).is_none() && path.is_file() {
            // SAFETY: the program has one thread.
            unsafe { std::env::set_var(variable, path) };
        }
    }
}
