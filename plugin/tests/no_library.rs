//! The shared library in a process where there is no XLA library to run on: clear errors, and nothing that
//! crashes.

use pjrt_abi::args::{
    Args, ClientCreateArgs, ErrorDestroyArgs, ErrorGetCodeArgs, ErrorMessageArgs, PluginAttributesArgs,
    PluginInitializeArgs,
};
use pjrt_abi::layout::CStruct;
use pjrt_abi::{ApiRef, ErrorCode, NamedValue, NamedValueUnion, named_value_type};

fn library() -> ApiRef {
    let test = std::env::current_exe().expect("a running program has a path");
    let own = test.parent().expect("it lies in a directory").join("libact_pjrt.so");
    pjrt_abi::load(&own).expect("our library is a PJRT library")
}

/// Calls a function that must fail because there is no library; its message.
fn refusal<A: Args>(args: &mut A) -> String {
    let api = library();
    // SAFETY: the tests fill their structs in as the C header demands; an error is live until destroyed.
    unsafe {
        let error = api.call(args).expect("the table has every function");
        assert!(!error.is_null());
        let mut code = ErrorGetCodeArgs::new();
        code.error = error;
        assert!(api.call(&mut code).expect("the table has every function").is_null());
        assert_eq!(code.code, ErrorCode::FailedPrecondition as i32);
        let mut message = ErrorMessageArgs::new();
        message.error = error;
        assert!(api.call_void(&mut message));
        let bytes = std::slice::from_raw_parts(message.message.cast::<u8>(), message.message_size);
        let text = String::from_utf8(bytes.to_vec()).expect("messages are UTF-8");
        let mut destroy = ErrorDestroyArgs::new();
        destroy.error = error;
        assert!(api.call_void(&mut destroy));
        text
    }
}

fn create_on(xla_plugin: &str) -> String {
    let option = NamedValue {
        struct_size: NamedValue::STRUCT_SIZE,
        name: c"xla_plugin".as_ptr(),
        name_size: "xla_plugin".len(),
        r#type: named_value_type::STRING,
        value: NamedValueUnion { string_value: xla_plugin.as_ptr().cast() },
        value_size: xla_plugin.len(),
        ..NamedValue::zeroed()
    };
    let mut args = ClientCreateArgs::new();
    (args.create_options, args.num_options) = (&raw const option, 1);
    refusal(&mut args)
}

// One test, as the environment is the process's: nothing else may read it while it is changed.
#[test]
fn every_function_tells_what_is_missing() {
    // SAFETY: no other thread is about.
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

    let attributes = refusal(&mut PluginAttributesArgs::new());
    assert!(attributes.contains("no/such/plugin.so: no such file"), "{attributes}");
    assert_eq!(library().extensions().count(), 0);
    let mut initialize = PluginInitializeArgs::new();
    // SAFETY: the struct is filled in.
    assert!(unsafe { library().call(&mut initialize) }.expect("the table has every function").is_null());
}
