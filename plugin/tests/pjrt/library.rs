//! What the tests run on.

use std::path::PathBuf;

use pjrt_abi::ApiRef;
use pjrt_abi::NamedValue;
use pjrt_abi::caller::{Client, Failed, string_option};

/// Adds 1 to each of four numbers.
pub(crate) const ADD_ONE: &str =
    "module @add_one { func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %one = stablehlo.constant dense<1.0> : tensor<4xf32>
    %sum = stablehlo.add %x, %one : tensor<4xf32>
    return %sum : tensor<4xf32> } }";

/// Our function table.
pub(crate) fn api() -> ApiRef {
    // SAFETY: ours lives for the rest of the process.
    unsafe { ApiRef::new(act_pjrt::GetPjrtApi()) }
}

/// XLA's library, of which ci/install puts a copy in place.
fn xla_library() -> PathBuf {
    let given = std::env::var_os("ACT_XLA_PLUGIN").filter(|path| !path.is_empty()).map(PathBuf::from);
    let path = given.unwrap_or_else(|| {
        PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../third_party/xla/pjrt_c_api_cpu_plugin.so"))
    });
    assert!(path.is_file(), "{} is missing: run ci/install, or set ACT_XLA_PLUGIN", path.display());
    path
}

/// A client of ours on XLA's library, with these further options.
pub(crate) fn client(options: &[NamedValue]) -> Result<Client, Failed> {
    let path = xla_library().into_os_string().into_string().expect("a path in UTF-8");
    let options: Vec<NamedValue> =
        options.iter().copied().chain([string_option("xla_plugin", &path)]).collect();
    // SAFETY: the options are well-formed.
    unsafe { Client::create(api(), &options) }
}
