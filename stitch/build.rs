//! Compiles the C++ that registers the few MLIR dialects in use (feature `mlir`).

fn main() {
    #[cfg(feature = "mlir")]
    compile_dialects();
}

#[cfg(feature = "mlir")]
fn compile_dialects() {
    const SOURCE: &str = "src/mlir/dialects.cpp";
    println!("cargo:rerun-if-changed={SOURCE}");
    println!("cargo:rerun-if-env-changed=MLIR_SYS_220_PREFIX");
    let mut build = cc::Build::new();
    if let Some(prefix) = std::env::var_os("MLIR_SYS_220_PREFIX") {
        build.include(std::path::Path::new(&prefix).join("include"));
    }
    // LLVM itself is built without RTTI and with NDEBUG; its headers change layout with either.
    build.cpp(true).std("c++17").flag("-fno-rtti").warnings(false).debug(false).define("NDEBUG", None);
    build.file(SOURCE).compile("act_mlir_dialects");
}
