//! The structs' layouts against those that a C compiler computed from the published headers.
//!
//! `layout.txt` is the output of `cargo run -p pjrt-abi --example c_layout -- <include directories>`, made
//! from `xla/pjrt/c/pjrt_c_api.h` (PJRT 0.90, as in tensorflow-cpu 2.21.0) and `xla/ffi/api/c_api.h`
//! (XLA FFI 0.3, as in jaxlib 0.10.2) on x86-64.

use std::fmt::Write;

use pjrt_abi::Slot;
use pjrt_abi::args::{Args, ClientLoadArgs, ErrorForEachPayloadArgs};
use pjrt_abi::layout::CStruct;

#[test]
fn layouts_are_those_of_the_c_headers() {
    let mut ours = String::new();
    for layout in pjrt_abi::published_layouts() {
        if let Some(size) = layout.size {
            writeln!(ours, "{} {size}", layout.c_name).expect("writing to a string");
        }
        for &(field, offset, size) in layout.fields {
            let field = layout.c_field(field);
            writeln!(ours, "{}.{field} {offset} {size}", layout.c_name).expect("writing to a string");
        }
    }
    assert_eq!(ours, include_str!("layout.txt"));
}

#[test]
fn slot_sizes_are_those_of_the_structs() {
    for layout in pjrt_abi::published_layouts() {
        let Some(function) = layout.c_name.strip_suffix("_Args") else { continue };
        let Some(slot) = Slot::ALL.iter().find(|slot| slot.name() == function) else { continue };
        let (_, offset, size) = layout.fields[layout.fields.len() - 1];
        assert_eq!(slot.args_size(), offset + size, "{function}");
    }
}

#[test]
fn structs_of_later_headers_have_the_size_that_the_library_wants() {
    assert_eq!(ClientLoadArgs::STRUCT_SIZE, ClientLoadArgs::SLOT.args_size());
    assert_eq!(ErrorForEachPayloadArgs::STRUCT_SIZE, ErrorForEachPayloadArgs::SLOT.args_size());
}
