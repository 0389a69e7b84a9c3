//! The shared library as a framework meets it, on XLA's library, without a target: everything runs on the
//! host, and every answer of ours is right.

mod framework;

use framework::{ADD_ONE, Library, integer, string, text};
use pjrt_abi::args;
use pjrt_abi::layout::CStruct;
use pjrt_abi::{ErrorCode, extension_type};

const INPUT: [f32; 4] = [0.0, 1.0, -2.5, 1e9];
const OUTPUT: [f32; 4] = [1.0, 2.0, -1.5, 1e9];

#[test]
fn a_program_compiles_and_runs() {
    let client = Library::load().client(&[]).unwrap();
    let executable = client.compile(ADD_ONE).unwrap();
    assert_eq!(executable.run(&[&INPUT]).unwrap(), OUTPUT);
}

#[test]
fn the_platform_is_cpu_and_devices_are_ours() {
    let client = Library::load().client(&[integer("cpu_device_count", 2)]).unwrap();
    let mut platform = args::ClientPlatformNameArgs::new();
    platform.client = client.client;
    client.library.call(&mut platform).unwrap();
    // SAFETY: the library's answer.
    assert_eq!(unsafe { string(platform.platform_name, platform.platform_name_size) }, "cpu");
    let version = client.platform_version();
    assert!(version.starts_with("act-pjrt ") && version.contains("; host only;"), "{version}");

    let devices = client.devices();
    assert_eq!(devices.len(), 2);
    for (id, device) in devices.into_iter().enumerate() {
        let description = client.description(device);
        let mut name = args::DeviceDescriptionToStringArgs::new();
        name.device_description = description;
        client.library.call(&mut name).unwrap();
        let mut debug = args::DeviceDescriptionDebugStringArgs::new();
        debug.device_description = description;
        client.library.call(&mut debug).unwrap();
        let mut kind = args::DeviceDescriptionKindArgs::new();
        kind.device_description = description;
        client.library.call(&mut kind).unwrap();
        let expected = format!("ActDevice(id={id})");
        // SAFETY: the library's answers.
        unsafe {
            assert_eq!(string(name.to_string, name.to_string_size), expected);
            assert_eq!(string(debug.debug_string, debug.debug_string_size), expected);
            assert_eq!(string(kind.device_kind, kind.device_kind_size), "act host");
        }
    }
}

#[test]
fn there_is_one_device_unless_asked_otherwise() {
    assert_eq!(Library::load().client(&[]).unwrap().devices().len(), 1);
}

#[test]
fn errors_of_ours_and_of_xla_are_told_apart() {
    let library = Library::load();
    let ours = library.client(&[text("numerics", "sloppy")]).err().unwrap();
    assert_eq!(ours.code, ErrorCode::InvalidArgument as i32);
    assert!(ours.message.contains("exact, xla, fast"), "{}", ours.message);

    let theirs = library.client(&[integer("no_such_option", 1)]).err().unwrap();
    assert!(theirs.message.contains("no_such_option"), "{}", theirs.message);

    let client = library.client(&[]).unwrap();
    let theirs = client.compile("not mlir").err().unwrap();
    assert!(!theirs.message.is_empty());
    assert_eq!(client.compile(ADD_ONE).unwrap().run(&[&INPUT]).unwrap(), OUTPUT);
}

#[test]
fn payloads_of_our_errors_are_none_and_destroying_null_is_allowed() {
    let library = Library::load();
    let options = [text("numerics", "sloppy")];
    let mut create = args::ClientCreateArgs::new();
    create.create_options = options.as_ptr();
    create.num_options = options.len();
    // SAFETY: the struct is filled in.
    let error = unsafe { library.0.call(&mut create) }.unwrap();
    let mut payloads = args::ErrorForEachPayloadArgs::new();
    payloads.error = error;
    library.call(&mut payloads).unwrap();
    assert!(library.take_error(error).is_err());
    // SAFETY: null is allowed.
    assert!(unsafe { library.0.call_void(&mut args::ErrorDestroyArgs::new()) });
}

#[test]
fn a_process_runs_on_one_library() {
    let library = Library::load();
    let _client = library.client(&[]).unwrap();
    let error = library.client_with(&[text("xla_plugin", "elsewhere.so")]).err().unwrap();
    assert_eq!(error.code, ErrorCode::FailedPrecondition as i32);
    assert!(error.message.contains("elsewhere.so"), "{}", error.message);
}

#[test]
fn structs_of_older_callers_are_extended() {
    let client = Library::load().client(&[]).unwrap();
    let executable = client.compile(ADD_ONE).unwrap();
    // As TensorFlow 2.20 has them: the fields from `call_location` on are missing.
    let older = std::mem::offset_of!(args::ExecuteOptions, call_location);
    assert_eq!(executable.run_with(&[&INPUT], older).unwrap(), OUTPUT);

    // A hooked function and one that is handed on, from before the last fields were added.
    let mut create = args::ClientCreateArgs::new();
    create.struct_size = std::mem::offset_of!(args::ClientCreateArgs, kv_try_get_callback);
    client.library.call(&mut create).unwrap();
    let mut destroy = args::ClientDestroyArgs::new();
    destroy.client = create.client;
    client.library.call(&mut destroy).unwrap();
    let mut attributes = args::PluginAttributesArgs::new();
    attributes.struct_size = std::mem::offset_of!(args::PluginAttributesArgs, num_attributes);
    client.library.call(&mut attributes).unwrap();
    assert!(!attributes.attributes.is_null() && attributes.num_attributes == 0);
}

#[test]
fn a_struct_without_a_size_is_an_error() {
    let library = Library::load();
    let mut create = args::ClientCreateArgs::new();
    create.struct_size = 3;
    assert_eq!(library.call(&mut create).unwrap_err().code, ErrorCode::InvalidArgument as i32);
    let mut devices = args::ClientDevicesArgs::zeroed();
    let _client = library.client(&[]).unwrap();
    assert_eq!(library.call(&mut devices).unwrap_err().code, ErrorCode::InvalidArgument as i32);
}

#[test]
fn only_extensions_that_we_mean_to_offer_are_seen() {
    let library = Library::load();
    let _client = library.client(&[]).unwrap();
    // SAFETY: nodes of the library's chain.
    let mut types: Vec<i32> = library.0.extensions().map(|node| unsafe { (*node).r#type }).collect();
    types.sort_unstable();
    let offered = [
        extension_type::LAYOUTS,
        extension_type::FFI,
        extension_type::MEMORY_DESCRIPTIONS,
        extension_type::SHARDINGS,
    ];
    assert_eq!(types, offered);
}

#[test]
fn executables_go_to_bytes_and_back() {
    let library = Library::load();
    let client = library.client(&[]).unwrap();
    let bytes = client.compile(ADD_ONE).unwrap().serialize();
    let executable = client.deserialize(&bytes).unwrap();
    assert_eq!(executable.run(&[&INPUT]).unwrap(), OUTPUT);
    // What was loaded from bytes can be written out again.
    assert!(executable.serialize() == bytes);

    let refused = |bytes: &[u8], word: &str| {
        let error = client.deserialize(bytes).err().unwrap();
        assert_eq!(error.code, ErrorCode::InvalidArgument as i32);
        assert!(error.message.contains(word), "{}", error.message);
    };
    refused(&[], "not an executable");
    refused(b"anything else", "not an executable");
    let mut damaged = bytes.clone();
    damaged[bytes.len() / 2] ^= 4;
    refused(&damaged, "damaged");
    refused(&bytes[..bytes.len() - 1], "damaged");

    let other = library.client(&[text("numerics", "fast")]).unwrap();
    let error = other.deserialize(&bytes).err().unwrap();
    assert_eq!(error.code, ErrorCode::InvalidArgument as i32);
    assert!(error.message.contains("numerics Xla"), "{}", error.message);
}

#[test]
fn fingerprints_tell_settings_apart() {
    let library = Library::load();
    let (client, other) =
        (library.client(&[]).unwrap(), library.client(&[text("numerics", "fast")]).unwrap());
    let executable = client.compile(ADD_ONE).unwrap();
    let fingerprint = executable.fingerprint().unwrap();
    assert_eq!(fingerprint, executable.fingerprint().unwrap());
    assert!(fingerprint.contains(&client.platform_version()), "{fingerprint}");
    assert_ne!(fingerprint, other.compile(ADD_ONE).unwrap().fingerprint().unwrap());
}

#[test]
fn costs_are_answered() {
    let client = Library::load().client(&[]).unwrap();
    let executable = client.compile(ADD_ONE).unwrap();
    let inner = executable.executable();
    let mut costs = args::ExecutableGetCostAnalysisArgs::new();
    costs.executable = inner;
    client.library.call(&mut costs).unwrap();
    executable.destroy_executable(inner);
}

#[test]
fn threads_compile_and_run_at_once() {
    let client = Library::load().client(&[]).unwrap();
    std::thread::scope(|scope| {
        for n in 1..=8_usize {
            let client = &client;
            scope.spawn(move || {
                let program = ADD_ONE.replace("1.0", &format!("{n}.0"));
                for _ in 0..3 {
                    let executable = client.compile(&program).unwrap();
                    assert_eq!(executable.run(&[&[0.0; 4]]).unwrap(), [n as f32; 4]);
                    let bytes = executable.serialize();
                    assert_eq!(
                        client.deserialize(&bytes).unwrap().run(&[&[1.0; 4]]).unwrap(),
                        [n as f32 + 1.0; 4]
                    );
                }
            });
        }
    });
}

#[test]
fn nothing_but_the_interface_is_exported() {
    let mut nm = std::process::Command::new("nm");
    nm.args(["-D", "--defined-only"]).arg(framework::own_library());
    let output = nm.output().expect("binutils come with the linker");
    let listing = String::from_utf8(output.stdout).unwrap();
    let mut names: Vec<&str> = listing.lines().filter_map(|line| line.split_whitespace().last()).collect();
    names.sort_unstable();
    let expected = [
        "GetPjrtApi",
        "act_ffi_register",
        "act_last_run_json",
        "act_python_callback_set",
        "act_regions_json",
        "act_state_json",
        "act_string_free",
    ];
    assert_eq!(names, expected);
}
