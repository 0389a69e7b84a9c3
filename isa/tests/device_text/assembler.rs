//! An assembler and the object files that it makes. Knows no target.

use std::io::Write;
use std::process::{Command, Stdio};

/// The object file for a text, or what the assembler says; `None` where there is no assembler for the triple.
pub(crate) fn object(triple: &str, text: &str) -> Option<Result<Vec<u8>, String>> {
    let triple = format!("--triple={triple}");
    let mattr = if triple.contains("riscv") { "--mattr=+m" } else { "--mattr=" };
    for program in ["llvm-mc-22", "llvm-mc"] {
        let started = Command::new(program)
            .args([&triple, mattr, "--filetype=obj", "-o", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let Ok(mut child) = started else { continue };
        let mut stdin = child.stdin.take().unwrap();
        let text = text.to_owned();
        let writer = std::thread::spawn(move || stdin.write_all(text.as_bytes()));
        let done = child.wait_with_output().unwrap();
        writer.join().unwrap().unwrap();
        let message = String::from_utf8_lossy(&done.stderr).into_owned();
        return Some(if done.status.success() { Ok(done.stdout) } else { Err(message) });
    }
    None
}

/// The bytes of a section of an ELF64 file (little-endian).
pub(crate) fn section(object: &[u8], name: &str) -> Vec<u8> {
    let number = |at: usize, bytes: usize| {
        let field = &object[at..at + bytes];
        field.iter().rev().fold(0usize, |value, &byte| value << 8 | usize::from(byte))
    };
    let (headers, size, names) = (number(0x28, 8), number(0x3a, 2), number(0x3e, 2));
    let header = |k: usize| headers + k * size;
    let contents = |k: usize| {
        let at = number(header(k) + 0x18, 8);
        &object[at..at + number(header(k) + 0x20, 8)]
    };
    let strings = contents(names);
    let found = (0..number(0x3c, 2)).find(|&k| {
        let at = number(header(k), 4);
        strings[at..].split(|byte| *byte == 0).next() == Some(name.as_bytes())
    });
    contents(found.unwrap_or_else(|| panic!("no section {name}"))).to_vec()
}
