//! Without a target: everything runs on the host, and every answer of ours is right.

use pjrt_abi::args::{self, Args, ExecuteOptions};
use pjrt_abi::caller::{self, Client, Failed, integer_option, string_option};
use pjrt_abi::layout::CStruct;
use pjrt_abi::{ErrorCode, extension_type};

use crate::library::{ADD_ONE, api, client};

const INPUT: [f32; 4] = [0.0, 1.0, -2.5, 1e9];
const OUTPUT: [f32; 4] = [1.0, 2.0, -1.5, 1e9];

/// Calls a function with a struct that the test has filled in.
fn call<A: Args>(args: &mut A) -> Result<(), Failed> {
    // SAFETY: the tests fill their structs in as the C header demands, or so that it is noticed first.
    unsafe { caller::call(api(), args) }
}

/// A string that the library handed out.
fn string(data: *const std::ffi::c_char, size: usize) -> String {
    // SAFETY: the library's answer about something that is alive.
    String::from_utf8(unsafe { caller::bytes(data, size) }.to_vec()).unwrap()
}

fn platform_version(client: &Client) -> String {
    let mut args = args::ClientPlatformVersionArgs::new();
    args.client = client.as_ptr();
    call(&mut args).unwrap();
    string(args.platform_version, args.platform_version_size)
}

#[test]
fn a_program_compiles_and_runs() {
    let client = client(&[]).unwrap();
    let executable = client.compile("mlir", ADD_ONE.as_bytes()).unwrap();
    assert_eq!(executable.run(&[&INPUT]).unwrap(), OUTPUT);
}

#[test]
fn the_platform_is_cpu_and_devices_are_ours() {
    let client = client(&[integer_option("cpu_device_count", 2)]).unwrap();
    let mut platform = args::ClientPlatformNameArgs::new();
    platform.client = client.as_ptr();
    call(&mut platform).unwrap();
    assert_eq!(string(platform.platform_name, platform.platform_name_size), "cpu");
    let version = platform_version(&client);
    assert!(version.starts_with("act-pjrt ") && version.contains("; host only;"), "{version}");

    let devices = client.devices().unwrap();
    assert_eq!(devices.len(), 2);
    for (id, device) in devices.into_iter().enumerate() {
        let mut description = args::DeviceGetDescriptionArgs::new();
        description.device = device;
        call(&mut description).unwrap();
        let mut name = args::DeviceDescriptionToStringArgs::new();
        name.device_description = description.device_description;
        call(&mut name).unwrap();
        let mut debug = args::DeviceDescriptionDebugStringArgs::new();
        debug.device_description = description.device_description;
        call(&mut debug).unwrap();
        let mut kind = args::DeviceDescriptionKindArgs::new();
        kind.device_description = description.device_description;
        call(&mut kind).unwrap();
        let expected = format!("ActDevice(id={id})");
        assert_eq!(string(name.to_string, name.to_string_size), expected);
        assert_eq!(string(debug.debug_string, debug.debug_string_size), expected);
        assert_eq!(string(kind.device_kind, kind.device_kind_size), "act host");
    }
}

#[test]
fn a_topology_has_the_version_of_its_client() {
    let client = client(&[]).unwrap();
    let mut topology = args::ClientTopologyDescriptionArgs::new();
    topology.client = client.as_ptr();
    call(&mut topology).unwrap();
    let mut version = args::TopologyDescriptionPlatformVersionArgs::new();
    version.topology = topology.topology;
    call(&mut version).unwrap();
    let version = string(version.platform_version, version.platform_version_size);
    assert_eq!(version, platform_version(&client));
}

#[test]
fn there_is_one_device_unless_asked_otherwise() {
    assert_eq!(client(&[]).unwrap().devices().unwrap().len(), 1);
}

#[test]
fn errors_of_ours_and_of_xla_are_told_apart() {
    let ours = client(&[string_option("numerics", "sloppy")]).unwrap_err();
    assert_eq!(ours.code, ErrorCode::InvalidArgument as i32);
    assert!(ours.message.contains("exact, xla, fast"), "{}", ours.message);

    let theirs = client(&[integer_option("no_such_option", 1)]).unwrap_err();
    assert!(theirs.message.contains("no_such_option"), "{}", theirs.message);

    let client = client(&[]).unwrap();
    let theirs = client.compile("mlir", b"not mlir").unwrap_err();
    assert!(!theirs.message.is_empty());
    assert_eq!(client.compile("mlir", ADD_ONE.as_bytes()).unwrap().run(&[&INPUT]).unwrap(), OUTPUT);
}

#[test]
fn payloads_of_our_errors_are_none_and_destroying_null_is_allowed() {
    let options = [string_option("numerics", "sloppy")];
    let mut create = args::ClientCreateArgs::new();
    create.create_options = options.as_ptr();
    create.num_options = options.len();
    // SAFETY: the struct is filled in.
    let error = unsafe { api().call(&mut create) }.unwrap();
    let mut payloads = args::ErrorForEachPayloadArgs::new();
    payloads.error = error;
    call(&mut payloads).unwrap();
    // SAFETY: the error is live.
    assert!(unsafe { caller::take_error(api(), error) }.is_err());
    // SAFETY: null is allowed.
    assert!(unsafe { api().call_void(&mut args::ErrorDestroyArgs::new()) });
}

#[test]
fn a_process_runs_on_one_library() {
    let _client = client(&[]).unwrap();
    // SAFETY: the option is well-formed.
    let error = unsafe { Client::create(api(), &[string_option("xla_plugin", "elsewhere.so")]) }.unwrap_err();
    assert_eq!(error.code, ErrorCode::FailedPrecondition as i32);
    assert!(error.message.contains("elsewhere.so"), "{}", error.message);
}

#[test]
fn structs_of_older_callers_are_extended() {
    let client = client(&[]).unwrap();
    let executable = client.compile("mlir", ADD_ONE.as_bytes()).unwrap();
    // As TensorFlow 2.20 has them: the fields from `call_location` on are missing.
    let mut older = ExecuteOptions::new();
    older.struct_size = std::mem::offset_of!(ExecuteOptions, call_location);
    let input = client.upload(&INPUT).unwrap();
    assert_eq!(executable.execute_with(&[&input], older).unwrap().finish().unwrap(), OUTPUT);

    // A hooked function and one that is handed on, from before the last fields were added.
    let mut create = args::ClientCreateArgs::new();
    create.struct_size = std::mem::offset_of!(args::ClientCreateArgs, kv_try_get_callback);
    call(&mut create).unwrap();
    let mut destroy = args::ClientDestroyArgs::new();
    destroy.client = create.client;
    call(&mut destroy).unwrap();
    let mut attributes = args::PluginAttributesArgs::new();
    attributes.struct_size = std::mem::offset_of!(args::PluginAttributesArgs, num_attributes);
    call(&mut attributes).unwrap();
    assert!(!attributes.attributes.is_null() && attributes.num_attributes == 0);
}

#[test]
fn a_struct_without_a_size_is_an_error() {
    let _client = client(&[]).unwrap();
    let mut create = args::ClientCreateArgs::new();
    create.struct_size = 3;
    assert_eq!(call(&mut create).unwrap_err().code, ErrorCode::InvalidArgument as i32);
    let mut devices = args::ClientDevicesArgs::zeroed();
    assert_eq!(call(&mut devices).unwrap_err().code, ErrorCode::InvalidArgument as i32);
}

#[test]
fn only_extensions_that_we_mean_to_offer_are_seen() {
    let _client = client(&[]).unwrap();
    // SAFETY: nodes of the library's chain.
    let mut types: Vec<i32> = api().extensions().map(|node| unsafe { (*node).r#type }).collect();
    types.sort_unstable();
    let offered = [
        // Our own.
        extension_type::PROFILER,
        extension_type::LAYOUTS,
        extension_type::FFI,
        extension_type::MEMORY_DESCRIPTIONS,
        extension_type::SHARDINGS,
        extension_type::XLA_TRANSFORM,
    ];
    assert_eq!(types, offered);
}

#[test]
fn executables_go_to_bytes_and_back() {
    let ours = client(&[]).unwrap();
    let compiled = ours.compile("mlir", ADD_ONE.as_bytes()).unwrap();
    let bytes = compiled.executable().unwrap().serialize().unwrap();
    let executable = ours.deserialize(&bytes).unwrap();
    assert_eq!(executable.run(&[&INPUT]).unwrap(), OUTPUT);
    // What was loaded from bytes can be written out again.
    assert!(executable.executable().unwrap().serialize().unwrap() == bytes);

    let refused = |bytes: &[u8], word: &str| {
        let error = ours.deserialize(bytes).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidArgument as i32);
        assert!(error.message.contains(word), "{}", error.message);
    };
    refused(&[], "not an executable");
    refused(b"anything else", "not an executable");
    let mut damaged = bytes.clone();
    damaged[bytes.len() / 2] ^= 4;
    refused(&damaged, "damaged");
    refused(&bytes[..bytes.len() - 1], "damaged");

    let other = client(&[string_option("numerics", "fast")]).unwrap();
    let error = other.deserialize(&bytes).unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidArgument as i32);
    assert!(error.message.contains("numerics Xla"), "{}", error.message);
}

#[test]
fn fingerprints_tell_settings_apart() {
    let (ours, other) = (client(&[]).unwrap(), client(&[string_option("numerics", "fast")]).unwrap());
    let of = |client: &Client| {
        let loaded = client.compile("mlir", ADD_ONE.as_bytes()).unwrap();
        loaded.executable().unwrap().fingerprint().unwrap()
    };
    assert_eq!(of(&ours), of(&ours));
    assert!(of(&ours).contains(&platform_version(&ours)), "{}", of(&ours));
    assert_ne!(of(&ours), of(&other));
}

#[test]
fn costs_are_answered() {
    let client = client(&[]).unwrap();
    let loaded = client.compile("mlir", ADD_ONE.as_bytes()).unwrap();
    let executable = loaded.executable().unwrap();
    let mut costs = args::ExecutableGetCostAnalysisArgs::new();
    costs.executable = executable.as_ptr();
    call(&mut costs).unwrap();
    // SAFETY: the answer lives as long as the executable.
    let properties = unsafe { std::slice::from_raw_parts(costs.properties, costs.num_properties) };
    let flops = properties.iter().find(|property| {
        // SAFETY: as above; names have the length that they say.
        let name = unsafe { std::slice::from_raw_parts(property.name.cast::<u8>(), property.name_size) };
        name == b"flops"
    });
    // SAFETY: costs are floats.
    let flops = flops.map(|property| unsafe { property.value.float_value });
    assert_eq!(flops, Some(INPUT.len() as f32), "an addition for each element");
}

#[test]
fn threads_compile_and_run_at_once() {
    let client = client(&[]).unwrap();
    std::thread::scope(|scope| {
        for n in 1..=8_usize {
            let client = &client;
            scope.spawn(move || {
                let program = ADD_ONE.replace("1.0", &format!("{n}.0"));
                for _ in 0..3 {
                    let loaded = client.compile("mlir", program.as_bytes()).unwrap();
                    assert_eq!(loaded.run(&[&[0.0; 4]]).unwrap(), [n as f32; 4]);
                    let bytes = loaded.executable().unwrap().serialize().unwrap();
                    let again = client.deserialize(&bytes).unwrap();
                    assert_eq!(again.run(&[&[1.0; 4]]).unwrap(), [n as f32 + 1.0; 4]);
                }
            });
        }
    });
}

/// The mathematical function in f64, rounded, against all sizes at which XLA vectorises.
#[test]
fn atan_is_right_at_every_size() {
    let client = client(&[]).unwrap();
    for n in [1_usize, 7, 33, 64, 4096] {
        let program = format!(
            "module @atan {{ func.func public @main(%x: tensor<{n}xf32>) -> tensor<{n}xf32> {{
               %one = stablehlo.constant dense<1.0> : tensor<{n}xf32>
               %angle = stablehlo.atan2 %x, %one : tensor<{n}xf32>
               %sum = stablehlo.add %angle, %one : tensor<{n}xf32>
               return %sum : tensor<{n}xf32> }} }}"
        );
        let mut input: Vec<f32> = (0..n).map(|i| (i as f32 - n as f32 / 2.0) * 0.37).collect();
        for (slot, special) in input.iter_mut().zip([-0.0, f32::MAX, f32::INFINITY, f32::NEG_INFINITY]) {
            *slot = special;
        }
        let output = client.compile("mlir", program.as_bytes()).unwrap().run(&[&input]).unwrap();
        for (x, y) in input.iter().zip(output) {
            let expected = f64::from(*x).atan() + 1.0;
            assert!((f64::from(y) - expected).abs() < 5e-7, "n {n}: atan({x}) + 1 = {y}, not {expected}");
        }
    }
}

#[test]
fn atan2_of_other_operands_is_left_alone() {
    let client = client(&[]).unwrap();
    let program =
        "module @atan2 { func.func public @main(%y: tensor<64xf32>, %x: tensor<64xf32>) -> tensor<64xf32> {
        %angle = stablehlo.atan2 %y, %x : tensor<64xf32>
        return %angle : tensor<64xf32> } }";
    // Doubling these would overflow and change the angle.
    let (y, x): (Vec<f32>, Vec<f32>) =
        (0..64).map(|i| (f32::MAX, f32::MAX / (2.0 + i as f32 / 64.0))).unzip();
    let output = client.compile("mlir", program.as_bytes()).unwrap().run(&[&y, &x]).unwrap();
    for ((y, x), angle) in y.iter().zip(&x).zip(output) {
        assert!((f64::from(angle) - f64::from(*y).atan2(f64::from(*x))).abs() < 5e-7);
    }
}
