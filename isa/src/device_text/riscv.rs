//! RV64IM as the host of a device. The table of segments is in s1, counters are in s2 to s11; t0 and t1 are scratch.

use super::host::{Architecture, Base, CONSTANTS, FUNCTION, Frame, Sum};
use std::fmt::Write;

pub(super) struct Riscv;

const COUNTERS: [&str; 10] = ["s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11"];
/// Registers that a function leaves as it found them, of those that encodings may name.
const SAVED: [&str; 12] = ["s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11"];

fn counters(frame: &Frame) -> impl Iterator<Item = &'static str> + '_ {
    COUNTERS.into_iter().filter(|r| !frame.clobbers.contains(*r))
}

/// Registers to save: the table's, the counters' and what encodings change.
fn saved(frame: &Frame) -> Vec<&'static str> {
    let used: Vec<&str> = counters(frame).take(frame.depth).collect();
    SAVED.into_iter().filter(|r| *r == "s1" || used.contains(r) || frame.clobbers.contains(*r)).collect()
}

fn size(frame: &Frame) -> usize {
    (8 * saved(frame).len()).next_multiple_of(16)
}

impl Architecture for Riscv {
    fn counters(&self, frame: &Frame) -> u64 {
        counters(frame).count() as u64
    }

    fn enter(&self, frame: &Frame, out: &mut String) {
        let _ = writeln!(out, "    addi sp, sp, -{}", size(frame));
        for (k, register) in saved(frame).into_iter().enumerate() {
            let _ = writeln!(out, "    sd {register}, {}(sp)", 8 * k);
        }
        out.push_str("    mv s1, a0\n");
    }

    fn leave(&self, frame: &Frame, out: &mut String) {
        for (k, register) in saved(frame).into_iter().enumerate() {
            let _ = writeln!(out, "    ld {register}, {}(sp)", 8 * k);
        }
        let _ =
            write!(out, "    addi sp, sp, {}\n    ret\n    .size {FUNCTION}, .-{FUNCTION}\n", size(frame));
    }

    fn counter(&self, frame: &Frame, depth: usize) -> String {
        counters(frame).nth(depth).unwrap_or("zero").to_owned()
    }

    fn loop_begin(&self, counter: &str, label: &str, out: &mut String) {
        let _ = write!(out, "    li {counter}, 0\n{label}:\n");
    }

    /// A conditional branch reaches 4 KiB, a jump 1 MiB.
    fn loop_end(&self, counter: &str, label: &str, trip: u64, out: &mut String) {
        let _ = write!(
            out,
            "    addi {counter}, {counter}, 1\n    li t0, {trip}\n    bgeu {counter}, t0, {label}_end\n    j {label}\n\
             {label}_end:\n"
        );
    }

    fn pool(&self) -> &'static [&'static str] {
        &["a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7", "t2", "t3", "t4", "t5", "t6"]
    }

    fn compute(&self, register: &str, value: &Sum, out: &mut String) {
        let mut constant = value.constant;
        match value.base {
            Some(Base::Table(at)) if at < 256 => {
                let _ = writeln!(out, "    ld {register}, {}(s1)", 8 * at);
            }
            Some(Base::Table(at)) => {
                let _ = write!(out, "    li t0, {}\n    add t0, s1, t0\n    ld {register}, 0(t0)\n", 8 * at);
            }
            Some(Base::Constants) => {
                let _ = writeln!(out, "    la {register}, {CONSTANTS}");
            }
            None => {
                let _ = writeln!(out, "    li {register}, {}", number(std::mem::take(&mut constant)));
            }
        }
        for (counter, factor) in &value.terms {
            match factor {
                1 => {
                    let _ = writeln!(out, "    add {register}, {register}, {counter}");
                }
                _ => {
                    let factor = number(*factor);
                    let _ = write!(
                        out,
                        "    li t0, {factor}\n    mul t0, {counter}, t0\n    add {register}, {register}, t0\n"
                    );
                }
            }
        }
        match constant {
            0 => {}
            -2048..=2047 => {
                let _ = writeln!(out, "    addi {register}, {register}, {constant}");
            }
            _ => {
                let _ = write!(out, "    li t0, {}\n    add {register}, {register}, t0\n", number(constant));
            }
        }
    }

    fn displaces(&self, offset: i64) -> bool {
        (-2048..2048).contains(&offset)
    }

    fn memory(&self, register: &str, displacement: i64) -> String {
        format!("{displacement}({register})")
    }

    fn copy(&self, from: &str, to: &str, bytes: u64, out: &mut String) {
        let kind = match bytes {
            1 => "b",
            2 => "h",
            4 => "w",
            _ => "d",
        };
        let _ = write!(out, "    l{kind} t1, 0({from})\n    s{kind} t1, 0({to})\n");
    }
}

/// Words of many bits are easier to read in hexadecimal.
fn number(value: i64) -> String {
    if (-0x10_0000..0x10_0000).contains(&value) { value.to_string() } else { format!("{value:#x}") }
}
