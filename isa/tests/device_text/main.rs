//! Programs as text for their devices: golden texts, the assemblers' opinion of them, and what they do where something
//! can run them, against the oracle. x86 text runs on this processor, Gemmini's on an interpreter of RV64 with a Gemmini
//! of its own (both here, from the manuals), trainium's in python-tests.

mod assembler;
mod gemmini;
#[cfg(target_arch = "x86_64")]
mod native;
mod riscv;

use act_hlo::random::SplitMix64;
use act_isa::{Isa, LoopProgram, Oracle, load_target, parse_program, print_device};
use std::path::{Path, PathBuf};

const TARGETS: [&str; 5] = ["amx", "gemmini", "gemmini_plus", "trainium", "x86"];

fn file(target: &str, suffix: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/device_text/programs/{target}.{suffix}"))
}

/// A target and the program in its file.
fn program(target: &str) -> (Isa, LoopProgram) {
    program_of(target, target)
}

fn program_of(target: &str, name: &str) -> (Isa, LoopProgram) {
    let isa = load_target(target).unwrap();
    let text = std::fs::read_to_string(file(name, "txt")).unwrap();
    let program = parse_program(&isa, &text).unwrap_or_else(|e| panic!("{name}: {e}"));
    (isa, program)
}

fn parsed(isa: &Isa, text: &str) -> LoopProgram {
    parse_program(isa, text).unwrap_or_else(|e| panic!("{e}"))
}

/// Bytes at random; f32 operands are small whole numbers, so that no order of sums matters.
fn operands(program: &LoopProgram, floats: bool) -> Vec<Vec<u8>> {
    let mut rng = SplitMix64::new(11);
    let mut one = |bytes: &u64| -> Vec<u8> {
        if floats {
            (0..bytes / 4).flat_map(|_| (rng.below(17) as f32 - 8.0).to_le_bytes()).collect()
        } else {
            (0..*bytes).map(|_| rng.next_u64() as u8).collect()
        }
    };
    program.operands.iter().map(&mut one).collect()
}

/// What the oracle makes of it.
fn oracle(isa: &Isa, program: &LoopProgram, operands: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let operands: Vec<&[u8]> = operands.iter().map(Vec::as_slice).collect();
    let oracle = Oracle::new(isa);
    let mut machine = oracle.machine(&operands, &program.results, program.scratch_bytes, &program.consts);
    machine.execute(&program.body).unwrap_or_else(|fault| panic!("{fault}"));
    machine.finish().1
}

#[test]
fn texts_are_as_before() {
    for target in TARGETS {
        let (isa, program) = program(target);
        let text = print_device(&isa, &program).unwrap_or_else(|e| panic!("{target}: {e}"));
        let golden = file(target, if target == "trainium" { "nki" } else { "s" });
        if std::env::var_os("ACT_BLESS").is_some() {
            std::fs::write(&golden, &text).unwrap();
        }
        let expected = std::fs::read_to_string(&golden).unwrap_or_default();
        assert!(text == expected, "{} is old; look at\n{text}\nand run with ACT_BLESS=1", golden.display());
    }
}

#[test]
fn texts_assemble() {
    for (target, triple) in
        [("amx", "x86_64"), ("x86", "x86_64"), ("gemmini", "riscv64"), ("gemmini_plus", "riscv64")]
    {
        let (isa, program) = program(target);
        let text = print_device(&isa, &program).unwrap();
        match assembler::object(triple, &text) {
            Some(result) => drop(result.unwrap_or_else(|message| panic!("{target}: {message}"))),
            None => eprintln!("skipped: there is no assembler for {triple}"),
        }
    }
}

#[test]
fn gemmini_text_computes_what_the_oracle_computes() {
    // The second one multiplies with the s32 addend in one command; the third scales and clips.
    let plus = "operands 1200, 960, 96\nresults 720\n\
                loop_ws 30, 24, 40, A (operand0) 40, B (operand1) 24, D (operand2) 0, C (result0) 24, scale 0.01, relu\n";
    let sum = "operands 720, 720\nresults 720\n\
               loop_ws_residual_add 30, 24, A (operand0) 24, B (operand1) 24, C (result0) 24, scale 0.5\n";
    let scaled = "operands 256, 256\nresults 256\nconfig_ld 16, 1.0\nmvin operand0, sp[0], 16, 16\nconfig_ld 16, 1.0\n\
                  mvin operand1, sp[16], 16, 16\npreload sp[16], 16, 16, acc[0], 16, 16\n\
                  compute_preloaded sp[0], 16, 16, none\npreload sp[16], 16, 16, sp[32], 16, 16\n\
                  compute_preloaded sp[0], 16, 16, none\npreload sp[16], 16, 16, acc.accumulate[0], 16, 16\n\
                  compute_preloaded sp[32], 16, 16, none\nconfig_st 16, 0.0078125, relu\n\
                  mvout result0, acc[0], 16, 16\n";
    let blocks = "operands 1024, 64\nresults 1088\nconfig_ld 64, 1.0, block_stride 16\nmvin operand0, sp[3], 16, 4 blocks\n\
                  mvin 0, acc[7], 16, 16\nconfig_ld 16, 1.0, shrunk\nmvin operand1, acc.accumulate[8], 4, 16\n\
                  config_st 16\nmvout result0, sp[3], 16, 16\nconfig_st 16\nmvout result0+768, sp[51], 16, 16\nconfig_st 64\n\
                  mvout result0+256, acc.full[7], 8, 16\n";
    let stacks = "operands 1024, 1024\nresults 1024, 1104, 512\nconfig_ld 64, 1.0, shrunk, block_stride 16\n\
                  mvin operand0, acc[7], 16, 4 blocks\nconfig_ld 64, 1.0, shrunk, block_stride 16\n\
                  mvin operand1, acc.accumulate[7], 16, 4 blocks\nconfig_st 64, 0.5\nmvout result0, acc[7], 4 blocks\n\
                  config_ld 64, 1.0, shrunk, block_stride 5\nmvin operand1+3, acc.accumulate[30], 5, 2 blocks\n\
                  config_st 70, 0.25, relu\nmvout result1, acc[23], 3 blocks\nconfig_ld 64, 1.0, block_stride 16\n\
                  mvin operand0, sp[3], 16, 4 blocks\nconfig_st 32\nmvout result2, sp[19], 2 blocks\n";
    let two = load_target("gemmini").unwrap();
    let loops = load_target("gemmini_plus").unwrap();
    let cases = [
        program("gemmini"),
        program("gemmini_plus"),
        // What the compiler makes of filetests: ragged tiles, scales and biases, an operand that the host packs.
        program_of("gemmini", "gemmini_ragged"),
        program_of("gemmini", "gemmini_layer"),
        program_of("gemmini", "gemmini_packed"),
        (loops.clone(), parsed(&loops, plus)),
        (loops.clone(), parsed(&loops, sum)),
        (two.clone(), parsed(&two, scaled)),
        (two.clone(), parsed(&two, blocks)),
        (two.clone(), parsed(&two, stacks)),
    ];
    for (isa, program) in cases {
        let text = print_device(&isa, &program).unwrap();
        let Some(object) = assembler::object("riscv64", &text) else {
            eprintln!("skipped: there is no assembler for riscv64");
            return;
        };
        let code = assembler::section(&object.unwrap_or_else(|e| panic!("{e}")), ".text");
        let operands = operands(&program, false);
        let results = gemmini::run(&code, &operands, &program.results, program.scratch_bytes);
        assert_eq!(results, oracle(&isa, &program, &operands), "{text}");
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn x86_text_computes_what_the_oracle_computes() {
    let x86 = load_target("x86").unwrap();
    // Constants, scratch memory, copies by the host of elements of two and eight bytes, a register named by a loop.
    let copies = "operands 96, 64\nresults 96, 64\nscratch 64\nconsts 0x0000803f0000004000004040000080400000a0400000c0400000e04000000041\n\
                  host_copy bf16 operand0[6 by 2, 8 by 12] -> bf16 result0[6 by 16, 8 by 2]\n\
                  host_copy f64 operand1[8 by 8] -> f64 scratch+56[8 by -8]\n\
                  for %i0 in 0..2 {\n  vmovups ymm[%i0*3], [scratch+%i0*32]\n}\n\
                  vaddps ymm[1], ymm[0], [consts]\nvmovups [result1], ymm[1]\nvmovups [result1+32], ymm[3]\n";
    let cases = [program("x86"), (x86.clone(), parsed(&x86, copies))];
    for (isa, program) in cases {
        let text = print_device(&isa, &program).unwrap();
        let operands = operands(&program, true);
        match native::run(&text, &operands, &program.results, program.scratch_bytes) {
            Some(results) => assert_eq!(results, oracle(&isa, &program, &operands), "{text}"),
            None => eprintln!("skipped: no linker, or no AVX2"),
        }
    }
}

#[test]
fn what_cannot_be_written_says_what_to_do() {
    let h_qkv = load_target("h_qkv").unwrap();
    let program = parsed(&h_qkv, "operands 128\nload_rm n=1 addr_in=operand0 addr_out=0\n");
    let error = print_device(&h_qkv, &program).unwrap_err().to_string();
    let expected = "instruction `load_rm` of h_qkv has no encoding; give it one in its description, such as `encode \
                    call \"load_rm({addr_in}, {addr_out}, {n})\"`";
    assert_eq!(error, expected);
    let trainium = load_target("trainium").unwrap();
    let divide = "tensor_tensor_divide_f32 p=1 f=1 a_p=0 a_f=0 b_p=0 b_f=0 y_p=0 y_f=0\n";
    let error = print_device(&trainium, &parsed(&trainium, divide)).unwrap_err().to_string();
    assert!(error.contains("`tensor_tensor_divide_f32` of trainium has no `call` encoding"), "{error}");
    let copy = "operands 4\nresults 4\nhost_copy u8 operand0[4 by 1] -> u8 result0[4 by 1]\n";
    let error = print_device(&trainium, &parsed(&trainium, copy)).unwrap_err().to_string();
    assert!(error.contains("the host copies a tensor"), "{error}");
    // A field that the loop's last round overflows is found before the device finds it.
    let gemmini = load_target("gemmini").unwrap();
    let far = "for %i0 in 0..65 {\n  mvin 0, acc[%i0*16], 1, 1\n}\n";
    let error = print_device(&gemmini, &parsed(&gemmini, far)).unwrap_err().to_string();
    assert_eq!(error, "zero_acc: 1024 does not fit 10 bits at 0 of rs2");
    // Ten registers hold counters.
    let deep = (0..11).fold("fence\n".to_owned(), |body, k| format!("for %i{k} in 0..2 {{\n{body}}}\n"));
    let error = print_device(&gemmini, &parsed(&gemmini, &deep)).unwrap_err().to_string();
    assert_eq!(error, "loops nest 11 deep, but `the host's loops` at most 10");
}
