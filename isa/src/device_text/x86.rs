//! x86-64 in AT&T syntax as the host of a device. The table of segments and the counters are on the stack, so that an
//! encoding may change any register but rsp; rax is scratch between encodings.

use super::host::{Architecture, Base, CONSTANTS, FUNCTION, Frame, Sum};
use std::fmt::Write;

pub(super) struct X86;

/// Registers that a function leaves as it found them (System V).
const SAVED: [&str; 6] = ["rbx", "rbp", "r12", "r13", "r14", "r15"];

fn saved(frame: &Frame) -> impl DoubleEndedIterator<Item = &'static str> + '_ {
    SAVED.into_iter().filter(|r| frame.clobbers.contains(*r))
}

/// Table and counters.
fn size(frame: &Frame) -> usize {
    (8 * (frame.depth + 1)).next_multiple_of(16)
}

impl Architecture for X86 {
    fn counters(&self, frame: &Frame) -> u64 {
        frame.depth as u64
    }

    fn enter(&self, frame: &Frame, out: &mut String) {
        for register in saved(frame) {
            let _ = writeln!(out, "    pushq %{register}");
        }
        let _ = write!(out, "    subq ${}, %rsp\n    movq %rdi, (%rsp)\n", size(frame));
    }

    fn leave(&self, frame: &Frame, out: &mut String) {
        let _ = writeln!(out, "    addq ${}, %rsp", size(frame));
        for register in saved(frame).rev() {
            let _ = writeln!(out, "    popq %{register}");
        }
        let _ = write!(out, "    ret\n    .size {FUNCTION}, .-{FUNCTION}\n");
    }

    fn counter(&self, _frame: &Frame, depth: usize) -> String {
        format!("{}(%rsp)", 8 * (depth + 1))
    }

    fn loop_begin(&self, counter: &str, label: &str, out: &mut String) {
        let _ = write!(out, "    movq $0, {counter}\n{label}:\n");
    }

    fn loop_end(&self, counter: &str, label: &str, trip: u64, out: &mut String) {
        let _ = writeln!(out, "    incq {counter}");
        match i32::try_from(trip) {
            Ok(trip) => {
                let _ = writeln!(out, "    cmpq ${trip}, {counter}");
            }
            Err(_) => {
                let _ = write!(out, "    movabsq ${trip}, %rax\n    cmpq %rax, {counter}\n");
            }
        }
        let _ = writeln!(out, "    jb {label}");
    }

    fn pool(&self) -> &'static [&'static str] {
        &["%rsi", "%rdi", "%rcx", "%rdx", "%r8", "%r9", "%r10", "%r11"]
    }

    fn compute(&self, register: &str, value: &Sum, out: &mut String) {
        let mut constant = value.constant;
        match value.base {
            Some(Base::Table(at)) => {
                let entry = self.memory(register, 8 * at as i64);
                let _ = write!(out, "    movq (%rsp), {register}\n    movq {entry}, {register}\n");
            }
            Some(Base::Constants) => {
                let _ = writeln!(out, "    leaq {CONSTANTS}(%rip), {register}");
            }
            None => {
                let constant = std::mem::take(&mut constant);
                let load = if i32::try_from(constant).is_ok() { "movq" } else { "movabsq" };
                let _ = writeln!(out, "    {load} ${constant}, {register}");
            }
        }
        for (counter, factor) in &value.terms {
            match i32::try_from(*factor) {
                Ok(1) => {
                    let _ = writeln!(out, "    addq {counter}, {register}");
                    continue;
                }
                Ok(factor) => {
                    let _ = writeln!(out, "    imulq ${factor}, {counter}, %rax");
                }
                Err(_) => {
                    let _ = write!(out, "    movabsq ${factor}, %rax\n    imulq {counter}, %rax\n");
                }
            }
            let _ = writeln!(out, "    addq %rax, {register}");
        }
        match i32::try_from(constant) {
            Ok(0) => {}
            Ok(constant) => {
                let _ = writeln!(out, "    addq ${constant}, {register}");
            }
            Err(_) => {
                let _ = write!(out, "    movabsq ${constant}, %rax\n    addq %rax, {register}\n");
            }
        }
    }

    /// Half of what fits, so that an encoding's own displacement still does.
    fn displaces(&self, offset: i64) -> bool {
        (-(1 << 30)..1 << 30).contains(&offset)
    }

    fn memory(&self, register: &str, displacement: i64) -> String {
        if displacement == 0 { format!("({register})") } else { format!("{displacement}({register})") }
    }

    fn copy(&self, from: &str, to: &str, bytes: u64, out: &mut String) {
        let (kind, through) = match bytes {
            1 => ("b", "%al"),
            2 => ("w", "%ax"),
            4 => ("l", "%eax"),
            _ => ("q", "%rax"),
        };
        let _ = write!(out, "    mov{kind} ({from}), {through}\n    mov{kind} {through}, ({to})\n");
    }
}
