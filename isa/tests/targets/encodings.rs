//! The x86 encodings of the targets through an assembler: every instruction, for attributes at random, is text that the
//! assembler takes.

use crate::bench::Bench;
use act_hlo::random::SplitMix64;
use act_isa::encoding::{AsmOperand, Encoded, Encoding, Operands};
use act_isa::{Instr, Isa, Oracle, load_target};
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

/// General registers that operands of inline assembly are bound to.
const BOUND: [&str; 12] =
    ["%rsi", "%rdi", "%rcx", "%rdx", "%r8", "%r9", "%r10", "%r11", "%r12", "%r13", "%r14", "%r15"];

/// Assembly text of an encoding with its operands in registers.
fn text(isa: &Isa, instr: &Instr, encoding: &Encoding, alpha: &[act_isa::AttrVal], beta: &[i64]) -> String {
    let operands = Operands { alpha, beta, registers: &isa.register_values() };
    let encoded = encoding.evaluate(instr, operands).unwrap_or_else(|e| panic!("{}: {e}", instr.name));
    let Encoded::Text { text, operands } = encoded else { panic!("{} is no text", instr.name) };
    assert!(operands.len() <= BOUND.len(), "{} binds {} operands", instr.name, operands.len());
    // Operands with two digits first: `$1` also begins `$10`.
    let bound = operands.iter().zip(BOUND).enumerate().rev().map(|(k, (operand, register))| {
        let shown = match operand {
            AsmOperand::Memory(_) => format!("({register})"),
            AsmOperand::Register(_) => register.to_owned(),
        };
        (format!("${k}"), shown)
    });
    // `$$` is a dollar sign.
    let pieces = text.split("$$").map(|piece| {
        bound.clone().fold(piece.to_owned(), |piece, (hole, shown)| piece.replace(&hole, &shown))
    });
    pieces.collect::<Vec<String>>().join("$")
}

/// Runs the assembler; `None` where there is none.
fn assembles(source: &str) -> Option<Result<(), String>> {
    for (program, arguments) in [
        ("llvm-mc-22", &["--triple=x86_64", "--filetype=obj", "-o", "/dev/null"][..]),
        ("llvm-mc", &["--triple=x86_64", "--filetype=obj", "-o", "/dev/null"]),
        ("as", &["--64", "-o", "/dev/null", "-"]),
    ] {
        let started = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn();
        let Ok(mut child) = started else { continue };
        child.stdin.take().unwrap().write_all(source.as_bytes()).unwrap();
        let done = child.wait_with_output().unwrap();
        let message = String::from_utf8_lossy(&done.stderr).into_owned();
        return Some(if done.status.success() { Ok(()) } else { Err(message) });
    }
    None
}

#[test]
fn every_encoding_assembles() {
    for name in ["amx", "x86"] {
        let isa = load_target(name).unwrap();
        let oracle = Oracle::new(&isa);
        let bench = Bench::new(&isa, &oracle);
        let mut rng = SplitMix64::new(3);
        let mut source = String::new();
        for instr in &isa.instrs {
            assert!(!instr.encodings.is_empty(), "{} has no encoding", instr.name);
            for alpha in bench.alphas(&mut rng, instr, 40) {
                // Different registers: AMX demands it, and so do some sequences.
                let first = rng.below(8) as usize;
                let beta: Vec<i64> = (0..instr.beta.len()).map(|k| ((first + k) % 8) as i64).collect();
                for encoding in &instr.encodings {
                    let _ =
                        writeln!(source, "# {}\n{}", instr.name, text(&isa, instr, encoding, &alpha, &beta));
                }
            }
        }
        match assembles(&source) {
            Some(result) => result.unwrap_or_else(|message| panic!("{name}: {message}")),
            None => eprintln!("skipped: there is no assembler for {name}"),
        }
    }
}
