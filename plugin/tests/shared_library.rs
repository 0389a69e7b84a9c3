//! The shared library itself: what it exports, and what it says in a process where there is no XLA library to
//! run on.

use std::path::PathBuf;
use std::process::Command;

use pjrt_abi::args::{PluginAttributesArgs, PluginInitializeArgs};
use pjrt_abi::caller::{Client, call, string_option};
use pjrt_abi::{ApiRef, ErrorCode, extension_type};

/// The library that was built with this test.
fn path() -> PathBuf {
    let test = std::env::current_exe().expect("a running program has a path");
    test.parent().expect("it lies in a directory").join("libact_pjrt.so")
}

fn api() -> ApiRef {
    pjrt_abi::load(&path()).expect("our library is a PJRT library")
}

/// What is said of this library.
fn create_on(xla_plugin: &str) -> String {
    // SAFETY: the option is well-formed.
    let error = unsafe { Client::create(api(), &[string_option("xla_plugin", xla_plugin)]) }.unwrap_err();
    assert_eq!(error.code, ErrorCode::FailedPrecondition as i32);
    error.message
}

// One test, as the environment is the process's: nothing else may read it while it is changed.
#[test]
fn every_function_tells_what_is_missing() {
    // SAFETY: the other test reads no variable of this name.
    unsafe { std::env::set_var("ACT_XLA_PLUGIN", "no/such/plugin.so") };
    let absent = create_on("");
    assert!(absent.contains("act-pjrt's wheel carries this library"), "{absent}");
    let absent = create_on("another/plugin.so");
    assert!(
        absent.contains("another/plugin.so: no such file") && absent.contains("ACT_XLA_PLUGIN"),
        "{absent}"
    );
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let broken = create_on(manifest);
    assert!(broken.contains(manifest) && broken.contains("cannot be loaded"), "{broken}");

    // SAFETY: the structs are filled in.
    unsafe {
        let attributes = call(api(), &mut PluginAttributesArgs::new()).unwrap_err();
        assert!(attributes.message.contains("no/such/plugin.so: no such file"), "{attributes}");
        call(api(), &mut PluginInitializeArgs::new()).unwrap();
    }
    // Only what needs no XLA: frameworks look for a profiler before they make a client.
    // SAFETY: nodes of the library's chain.
    let types: Vec<i32> = api().extensions().map(|node| unsafe { (*node).r#type }).collect();
    assert_eq!(types, [extension_type::PROFILER]);
}

#[test]
fn nothing_but_the_interface_is_exported() {
    let output = Command::new("nm").args(["-D", "--defined-only"]).arg(path()).output();
    let listing = String::from_utf8(output.expect("binutils come with the linker").stdout).unwrap();
    let mut names: Vec<&str> = listing.lines().filter_map(|line| line.split_whitespace().last()).collect();
    names.sort_unstable();
    let expected = [
        "GetPjrtApi",
        "act_command",
        "act_cost_model_set",
        // What the C++ of crate cp_sat calls in place of OR-Tools.
        "act_cp_sat_solve",
        "act_executables_json",
        "act_ffi_register",
        "act_kernel_cache_json",
        "act_last_run_json",
        "act_python_callback_set",
        "act_regions_json",
        "act_state_json",
        "act_string_free",
        "act_taidl_check_block",
        "act_taidl_complete",
    ];
    assert_eq!(names, expected);
}

/// What src/glibc.rs is for: systems with glibc 2.28 have all that the library imports, and no libstdc++ is asked for.
#[test]
fn nothing_newer_than_glibc_2_28_is_imported() {
    let output = Command::new("objdump").arg("-T").arg(path()).output();
    let listing = String::from_utf8(output.expect("binutils come with the linker").stdout).unwrap();
    let versions = |library: &str| -> Vec<Vec<u32>> {
        let parts = listing.split(library).skip(1);
        let number =
            |part: &str| part.split(|c: char| c != '.' && !c.is_ascii_digit()).next().map(str::to_owned);
        let numbers = parts.filter_map(number);
        numbers.map(|text| text.split('.').filter_map(|digits| digits.parse().ok()).collect()).collect()
    };
    let newest = versions("GLIBC_").into_iter().max().expect("it uses the C library");
    assert!(newest <= vec![2, 28], "{newest:?}\n{listing}");
    assert!(newest >= vec![2, 14], "memcpy has this version: the listing was read");
    assert!(versions("GLIBCXX_").is_empty(), "{listing}");
}
