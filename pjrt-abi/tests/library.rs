//! The slot table against a real library: each function tells the size of the argument struct that it wants.

use std::path::PathBuf;

use pjrt_abi::args::{Args, ErrorDestroyArgs, ErrorMessageArgs};
use pjrt_abi::{ApiRef, Error, Slot};

/// Functions that do not begin by checking the size.
const UNCHECKED: &[Slot] = &[
    Slot::ErrorDestroy,
    Slot::ErrorMessage,
    Slot::LoadedExecutableFingerprint,
    Slot::TopologyDescriptionCreate,
    Slot::ClientCreateViewOfDeviceBuffer,
];

fn library() -> ApiRef {
    let given = std::env::var_os("ACT_XLA_PLUGIN").filter(|path| !path.is_empty()).map(PathBuf::from);
    let path = given.unwrap_or_else(|| {
        PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../third_party/xla/pjrt_c_api_cpu_plugin.so"))
    });
    assert!(path.is_file(), "{} is missing: run ci/install, or set ACT_XLA_PLUGIN", path.display());
    pjrt_abi::load(&path).expect("it is a PJRT library")
}

fn message(api: ApiRef, error: *mut Error) -> String {
    let mut message = ErrorMessageArgs::new();
    message.error = error;
    let mut destroy = ErrorDestroyArgs::new();
    destroy.error = error;
    // SAFETY: the error is live until destroyed, at the end.
    unsafe {
        api.call_void(&mut message);
        let bytes = std::slice::from_raw_parts(message.message.cast::<u8>(), message.message_size);
        let text = String::from_utf8_lossy(bytes).into_owned();
        api.call_void(&mut destroy);
        text
    }
}

#[test]
fn every_function_wants_the_size_in_the_table() {
    let api = library();
    let checked = Slot::ALL.iter().filter(|slot| !UNCHECKED.contains(slot));
    for &slot in checked {
        let function = api.function(slot).expect("the carried library has every function");
        let mut args = [0_usize; 24];
        args[0] = 1;
        // SAFETY: the function looks at the size, finds it too small, and looks no further.
        let error = unsafe { function(args.as_mut_ptr().cast()) };
        assert!(!error.is_null(), "{} takes any size", slot.name());
        let text = message(api, error);
        let wanted = format!("expected {}, got 1.", slot.args_size());
        assert!(text.contains(&wanted), "{}: {wanted} {text}", slot.name());
    }
    assert_eq!(ErrorMessageArgs::SLOT.args_size(), 40);
}
