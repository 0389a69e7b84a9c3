//! Gives the shared library a build id, which goes into every fingerprint and every serialized executable, and links
//! statically what a manylinux system need not have, or not as new: zstd, which LLVM needs, and libstdc++.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rustc-link-arg=-Wl,--build-id=sha1");
    println!("cargo:rerun-if-changed=build.rs");
    let folder = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?).join("static");
    link_statically("libzstd.a", &folder)?;
    link_statically("libstdc++.a", &folder)?;
    // Where src/glibc.rs finds its functions on systems with a glibc before 2.34.
    println!(
        "cargo:rustc-link-arg=-Wl,--push-state,--no-as-needed,-l:libpthread.so.0,-l:libdl.so.2,--pop-state"
    );
    Ok(())
}

/// Puts the archive into a folder of its own. It is searched before the folders that LLVM's crates name, and with no
/// shared library beside it the linker takes the archive.
fn link_statically(archive: &str, folder: &Path) -> Result<(), Box<dyn Error>> {
    let answer = Command::new("cc").arg(format!("-print-file-name={archive}")).output()?;
    let installed = PathBuf::from(String::from_utf8(answer.stdout)?.trim());
    // The compiler echoes the bare name where it finds nothing.
    if !installed.is_absolute() {
        return Err(format!("{archive} is missing: run ci/install").into());
    }
    std::fs::create_dir_all(folder)?;
    std::fs::copy(&installed, folder.join(archive))?;
    println!("cargo:rustc-link-search=native={}", folder.display());
    Ok(())
}
