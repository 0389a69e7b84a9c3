//! Prints the layouts of this crate's structs as a C compiler computes them from the published headers.
//!
//! `cargo run -p pjrt-abi --example c_layout -- DIR...`, each DIR an include root that holds `xla/…`. The
//! output is what `tests/layout.txt` holds.
#![allow(clippy::print_stdout, reason = "a command that prints")]

use std::fmt::Write;
use std::process::Command;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut source = String::from(
        "#include <stddef.h>\n#include <stdio.h>\n#include \"xla/ffi/api/c_api.h\"\n\
         #include \"xla/pjrt/c/pjrt_c_api.h\"\n#include \"xla/pjrt/c/pjrt_c_api_ffi_extension.h\"\nint main(void) {\n",
    );
    for layout in pjrt_abi::published_layouts() {
        let name = layout.c_name;
        if layout.size.is_some() {
            writeln!(source, "printf(\"{name} %zu\\n\", sizeof({name}));")?;
        }
        for (field, ..) in layout.fields {
            let field = layout.c_field(field);
            writeln!(
                source,
                "printf(\"{name}.{field} %zu %zu\\n\", offsetof({name}, {field}), sizeof((({name}*)0)->{field}));"
            )?;
        }
    }
    source.push_str("return 0;\n}\n");

    let directory = std::env::temp_dir().join(format!("c_layout-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    let (file, binary) = (directory.join("layout.c"), directory.join("layout"));
    std::fs::write(&file, source)?;
    let includes = std::env::args().skip(1).map(|root| format!("-I{root}"));
    let compiled = Command::new("cc").args(includes).arg(&file).arg("-o").arg(&binary).status()?;
    if !compiled.success() {
        return Err("the C compiler does not take the headers".into());
    }
    print!("{}", String::from_utf8(Command::new(&binary).output()?.stdout)?);
    std::fs::remove_dir_all(&directory)?;
    Ok(())
}
