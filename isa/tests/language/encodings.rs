//! Device encodings: Gemmini's words against values derived by hand from its headers (gemmini.h, LocalAddr.scala, the
//! RoCC format: funct7, rs2, rs1, xd xs1 xs2, rd, opcode), inline assembly, calls, loop constructs.

use crate::{faults, parse};

use act_isa::{
    AsmOperand, AttrVal, DeviceTextError, EncodeError, Encoded, Operands, load_target, parse_program,
    print_device,
};

const MINI: &str = r#"
isa mini
hbm d0: 1 MiB
buffer v: f32[32 | 16]
const BASE = 3
prologue encode call "device = open()"
fence encode call "barrier()"
loop affine {
  max_trip 100
  max_depth 2
  cost_begin 5
  cost_iteration 1
  begin "for {iv} in nl.affine_range({trip}):"
  indent "    "
  variable "k{n}"
}
instr load alpha(n: 1..16, skip: -4..4) beta(addr, dst) {
  in d0[addr; n by 64 * skip, 64]
  out v[dst :+ n]
  require skip != 0
  encode riscv insn(opcode 0x0b, funct3 2, funct7 1) {
    rs1 { addr at 0 width 20 }
    rs2 { dst + BASE at 0 width 6, n at 6 width 5, skip at 60 width 4 signed }
  }
  encode x86 "vmovups {addr + 64 * (n - 1)}, %zmm{dst}{{%k1}}{{z}}" "movl $5, {n:r}" clobber "k1", "memory"
  encode call "nl.load(d0[{addr}:{64 * n}], out=v[{dst}], skip={skip})"
  computation { x = u8[n, 64] parameter(0)  y = u8[n, 16, 4] reshape(x)  ROOT z = f32[n, 16] bitcast-convert(y) }
}
instr scale alpha(rows: {1}, factor: f32) beta(a) {
  in v[a :+ rows]
  out v[a :+ rows]
  encode riscv insn(opcode 0x0b, funct3 2, funct7 2) { rs1 { bits(factor) at 32 width 32, bits(-2.5) at 0 width 32 } }
  encode call "scale(v[{a}], {factor})"
  computation { x = f32[rows, 16] parameter(0)  f = f32[rows, 16] constant(factor)  ROOT y = f32[rows, 16] multiply(x, f) }
}
"#;

/// Words and operand values of every encoding of an instruction.
fn words(isa: &act_isa::Isa, name: &str, alpha: &[AttrVal], beta: &[i64]) -> Vec<(u32, u64, u64)> {
    let instr = isa.instr(isa.instr_named(name).unwrap());
    let operands = Operands { alpha, beta, registers: &[] };
    let one = |e: &act_isa::Encoding| match e.evaluate(instr, operands).unwrap() {
        Encoded::Insn { word, rs1, rs2 } => (word, rs1, rs2),
        Encoded::Text { text, .. } => panic!("{text}"),
    };
    instr.encodings.iter().map(one).collect()
}

fn ints(values: &[i64]) -> Vec<AttrVal> {
    values.iter().map(|&v| AttrVal::Int(v)).collect()
}

#[test]
fn gemmini_moves_are_encoded_as_its_header_says() {
    let isa = load_target("gemmini").unwrap();
    let config = 0x00B5_307B;
    let (mvin, mvout) = (0x04B5_307B, 0x06B5_307B);
    // rows 4, cols 16, stride 64; scale 1.0 in the upper half, block stride 16, one pixel, load command 1.
    assert_eq!(
        words(&isa, "mvin", &ints(&[4, 16, 64]), &[0x8000_1000, 5]),
        [(config, 0x3F80_0000_0010_0101, 64), (mvin, 0x8000_1000, 0x0004_0010_0000_0005)]
    );
    // Three blocks of 16 columns, four rows apart.
    assert_eq!(
        words(&isa, "mvin_blocks", &ints(&[4, 3, 0]), &[64, 16383 - 11]),
        [(config, 0x3F80_0000_0004_0101, 0), (mvin, 64, 0x0004_0030_0000_3FF4)]
    );
    // Address 0 is zeros; bit 31 is the accumulator, bit 30 accumulates, bit 2 of the configuration reads s8.
    assert_eq!(words(&isa, "zero_sp", &ints(&[2, 3]), &[7]), [(mvin, 0, 0x0002_0003_0000_0007)]);
    assert_eq!(words(&isa, "zero_acc", &ints(&[2, 3]), &[7]), [(mvin, 0, 0x0002_0003_8000_0007)]);
    assert_eq!(
        words(&isa, "mvin_acc", &ints(&[16, 16, 64]), &[128, 1023])[1],
        (mvin, 128, 0x0010_0010_8000_03FF)
    );
    assert_eq!(
        words(&isa, "mvin_acc_accumulate", &ints(&[1, 2, 8]), &[128, 0]),
        [(config, 0x3F80_0000_0010_0101, 8), (mvin, 128, 0x0001_0002_C000_0000)]
    );
    let low = (config, 0x3F80_0000_0010_0105, 8);
    assert_eq!(
        words(&isa, "mvin_acc_low", &ints(&[1, 2, 8]), &[128, 0]),
        [low, (mvin, 128, 0x0001_0002_8000_0000)]
    );
    assert_eq!(
        words(&isa, "mvin_acc_low_accumulate", &ints(&[1, 2, 8]), &[128, 0]),
        [low, (mvin, 128, 0x0001_0002_C000_0000)]
    );
    // Store command 2: stride and f32 scale in rs2, activation from bit 2 of rs1; bit 29 is a full-width read.
    let store = (config, 2, 0x3F80_0000_0000_0064);
    assert_eq!(
        words(&isa, "mvout", &ints(&[3, 7, 100]), &[9, 0x1234]),
        [store, (mvout, 0x1234, 0x0003_0007_0000_0009)]
    );
    assert_eq!(
        words(&isa, "mvout_acc", &ints(&[3, 7, 100]), &[9, 0x1234]),
        [store, (mvout, 0x1234, 0x0003_0007_A000_0009)]
    );
    let half = [ints(&[3, 7, 100]), vec![AttrVal::F32(0.5f32.to_bits())]].concat();
    let out = (mvout, 0x1234, 0x0003_0007_8000_0009);
    assert_eq!(
        words(&isa, "mvout_acc_scaled", &half, &[9, 0x1234]),
        [(config, 2, 0x3F00_0000_0000_0064), out]
    );
    assert_eq!(
        words(&isa, "mvout_acc_scaled_relu", &half, &[9, 0x1234]),
        [(config, 6, 0x3F00_0000_0000_0064), out]
    );
}

#[test]
fn gemmini_products_are_encoded_as_its_header_says() {
    let isa = load_target("gemmini").unwrap();
    let (preload, compute) = (0x0CB5_307B, 0x08B5_307B);
    // i 2, j 3, k 4: B is 4x3 at row 16, C 2x3 at row 8, A 2x4 at row 1, D is no operand.
    let (alpha, beta) = (ints(&[2, 3, 4]), [1, 16, 8]);
    let rest = (compute, 0x0002_0004_0000_0001, 0x0010_0010_FFFF_FFFF);
    for (name, c) in [("matmul", 0x8000_0008), ("matmul_acc", 0xC000_0008), ("matmul_sp", 8)] {
        let words = words(&isa, name, &alpha, &beta);
        assert_eq!(words, [(preload, 0x0004_0003_0000_0010, 0x0002_0003_0000_0000 | c), rest], "{name}");
    }
    let nothing = Operands { alpha: &[], beta: &[], registers: &[] };
    let instr = act_isa::Instr::default();
    let prologue: Vec<Encoded> =
        isa.device.prologue.iter().map(|e| e.evaluate(&instr, nothing).unwrap()).collect();
    // Flush; then weight-stationary (bit 2), a stride of one row for A and C, scale 1.0.
    assert_eq!(prologue[0], Encoded::Insn { word: 0x0EB5_307B, rs1: 0, rs2: 0 });
    assert_eq!(prologue[1], Encoded::Insn { word: 0x00B5_307B, rs1: 0x3F80_0000_0001_0004, rs2: 1 << 48 });
}

/// The commands that gemmini.h (tiled_matmul_outer, sp_tiled_matmul_ws, tiled_resadd, sp_tiled_resadd) gives for a loop,
/// as numbers worked out from its macros.
#[test]
fn gemmini_loops_are_encoded_as_its_header_says() {
    let isa = load_target("gemmini_plus").unwrap();
    let [config, start, bounds] = [0x00B5_307B, 0x10B5_307B, 0x12B5_307B];
    let [ab, dc, strides_ab, strides_dc] = [0x14B5_307B, 0x16B5_307B, 0x18B5_307B, 0x1AB5_307B];
    // 33 x 70 by 70 x 17: 3, 2 and 5 tiles, padded by 15, 15 and 10.
    let padding = 10 << 32 | 15 << 16 | 15;
    let tiles = 5 << 32 | 2 << 16 | 3;
    // State 0 for A, 1 for B, 2 for D, from bit 3; one pixel, blocks of 16 rows, scale 1.0.
    let load = |state: u64| 0x3F80_0000_0010_0101 | state << 3;
    let half = AttrVal::F32(0.5f32.to_bits());
    let sizes = [33, 17, 70, 80, 32, 128];
    let [a, b, c, d] = [0x1000, 0x8000_0000, 0x7000, 0x9000];
    let scaled = [ints(&sizes), vec![half]].concat();
    let product = |act: u64, flags: u64| {
        vec![
            (config, 2 | act << 2, 0x3F00_0000_0000_0080),
            (config, load(0), 80),
            (config, load(1), 32),
            (bounds, padding, tiles),
            (ab, a as u64, b as u64),
            (dc, 0, c as u64),
            (strides_ab, 80, 32),
            (strides_dc, 0, 128),
            (start, flags, 0),
        ]
    };
    assert_eq!(words(&isa, "loop_ws_scaled", &scaled, &[a, b, c]), product(0, 0));
    assert_eq!(words(&isa, "loop_ws_scaled_relu", &scaled, &[a, b, c]), product(1, 1 << 8));
    // Full-width C: its stride is 32 elements of four bytes, nothing is scaled.
    let mut full = product(0, 1 << 1);
    full[0].2 = 0x3F80_0000_0000_0080;
    full[7].2 = 32;
    assert_eq!(words(&isa, "loop_ws_full", &ints(&sizes), &[a, b, c]), full);
    // With D, 96 bytes or 24 elements a row: its own load state, accumulation on top of it.
    let with_bias = |mut commands: Vec<(u32, u64, u64)>| {
        commands.insert(3, (config, load(2), 96));
        commands[6].1 = d as u64;
        commands[8].1 = 24;
        commands[9].1 |= 1;
        commands
    };
    let bias_sizes = [sizes.as_slice(), &[96]].concat();
    let bias = [ints(&bias_sizes), vec![half]].concat();
    let beta = [a, b, d, c];
    assert_eq!(words(&isa, "loop_ws_scaled_bias", &bias, &beta), with_bias(product(0, 0)));
    assert_eq!(words(&isa, "loop_ws_scaled_relu_bias", &bias, &beta), with_bias(product(1, 1 << 8)));
    assert_eq!(words(&isa, "loop_ws_full_bias", &ints(&bias_sizes), &beta), with_bias(full));
    // The addition: s8 into the accumulator (bit 2), no tiles along k, bit 2 of the start's second word.
    let addends = [ints(&[33, 17, 80, 32, 128]), vec![half]].concat();
    let sum = |act: u64| {
        vec![
            (config, 2 | act << 2, 0x3F00_0000_0000_0080),
            (config, load(0) | 1 << 2, 80),
            (config, load(1) | 1 << 2, 32),
            (bounds, 15 << 16 | 15, 2 << 16 | 3),
            (ab, a as u64, b as u64),
            (dc, 0, c as u64),
            (strides_ab, 80, 32),
            (strides_dc, 0, 128),
            (start, act << 8, 1 << 2),
        ]
    };
    assert_eq!(words(&isa, "loop_ws_residual_add", &addends, &[a, b, c]), sum(0));
    assert_eq!(words(&isa, "loop_ws_residual_add_relu", &addends, &[a, b, c]), sum(1));
}

/// The instructions of gemmini are gemmini_plus's too, encodings and all.
#[test]
fn every_gemmini_instruction_has_an_encoding() {
    let isa = load_target("gemmini").unwrap();
    let plus = load_target("gemmini_plus").unwrap();
    assert!(plus.instrs.iter().all(|i| !i.encodings.is_empty()));
    for instr in &isa.instrs {
        let other = plus.instr(plus.instr_named(&instr.name).unwrap());
        assert!(!instr.encodings.is_empty() && instr.encodings == other.encodings, "{}", instr.name);
        assert_eq!(instr.asm, other.asm);
    }
}

#[test]
fn inline_assembly_and_calls_take_the_attributes() {
    let isa = parse(MINI);
    let load = &isa.instrs[0];
    let alpha = ints(&[2, -3]);
    let operands = Operands { alpha: &alpha, beta: &[4096, 7], registers: &[] };
    let all: Vec<Encoded> = load.encodings.iter().map(|e| e.evaluate(load, operands).unwrap()).collect();
    // dst + 3 = 10, n = 2 from bit 6, -3 in four bits from bit 60; funct7 1 and opcode 0x0b.
    assert_eq!(all[0], Encoded::Insn { word: 0x02B5_200B, rs1: 4096, rs2: 0xD000_0000_0000_008A });
    assert_eq!(
        all[1],
        Encoded::Text {
            text: "vmovups $0, %zmm7{%k1}{z}\nmovl $$5, $1".to_owned(),
            operands: vec![AsmOperand::Memory(4160), AsmOperand::Register(2)],
        }
    );
    let call = "nl.load(d0[4096:128], out=v[7], skip=-3)".to_owned();
    assert_eq!(all[2], Encoded::Text { text: call, operands: vec![] });
    let scale = &isa.instrs[1];
    let alpha = [AttrVal::Int(1), AttrVal::F32(0.1f32.to_bits())];
    let operands = Operands { alpha: &alpha, beta: &[3], registers: &[] };
    let word = scale.encodings[0].evaluate(scale, operands).unwrap();
    assert_eq!(word, Encoded::Insn { word: 0x04B5_200B, rs1: 0x3DCC_CCCD_C020_0000, rs2: 0 });
    let call = scale.encodings[1].evaluate(scale, operands).unwrap();
    assert_eq!(call, Encoded::Text { text: "scale(v[3], 0.1)".to_owned(), operands: vec![] });
    // A value that no legal attributes give is refused, not cut.
    let alpha = ints(&[33, 1]);
    let error = load.encodings[0].evaluate(load, Operands { alpha: &alpha, beta: &[0, 0], registers: &[] });
    let overflow = EncodeError::Overflow { operand: "rs2", at: 6, width: 5, signed: false, value: 33 };
    assert_eq!(error, Err(overflow));
    let alpha = ints(&[1, 1]);
    let error = load.encodings[0].evaluate(load, Operands { alpha: &alpha, beta: &[-1, 0], registers: &[] });
    assert!(matches!(error, Err(EncodeError::Overflow { operand: "rs1", value: -1, .. })));
}

#[test]
fn a_loop_program_prints_through_the_device_s_loops() {
    let only_calls = |line: &str| {
        let other = ["  encode riscv", "    rs1", "    rs2", "  encode x86"];
        !other.iter().any(|o| line.starts_with(o)) && line != "  }"
    };
    let text: String = MINI.lines().filter(|l| only_calls(l)).map(|l| format!("{l}\n")).collect();
    let isa = parse(&text);
    let program = "operands 8192\nfor %i0 in 0..100 {\n  for %i1 in 0..2 {\n    \
                   load n=1 skip=2 addr=operand0+%i0*64+%i1*128+32 dst=%i1\n  }\n  fence\n}\nscale rows=1 factor=0.5 a=4\n";
    let program = parse_program(&isa, program).unwrap_or_else(|e| panic!("{e}"));
    let expected = "device = open()
for k0 in nl.affine_range(100):
    for k1 in nl.affine_range(2):
        nl.load(d0[(operand0 + k0*64 + k1*128 + 32):64], out=v[k1], skip=2)
    barrier()
scale(v[4], 0.5)
";
    assert_eq!(print_device(&isa, &program).unwrap(), expected);
    let long = parse(&text.replace("max_trip 100", "max_trip 99"));
    let error = DeviceTextError::Trip { construct: "affine".to_owned(), trip: 100, max: 99 };
    assert_eq!(print_device(&long, &program), Err(error));
    let flat = parse(&text.replace("max_depth 2", "max_depth 1"));
    assert!(matches!(print_device(&flat, &program), Err(DeviceTextError::Depth { depth: 2, max: 1, .. })));
    assert_eq!(isa.device.loops.as_ref().map(|l| (l.cost_begin, l.cost_iteration)), Some((5, 1)));

    // Without a construct the processor that feeds the device runs the loops.
    let gemmini = load_target("gemmini").unwrap();
    let program = "operands 256\nfor %i0 in 0..4 {\n  config_ld 16, 1.0\n  \
                   mvin operand0+%i0*64, sp[%i0*16], 4, 16\n  fence\n}\n";
    let program = parse_program(&gemmini, program).unwrap_or_else(|e| panic!("{e}"));
    let expected = "\
# A kernel for gemmini.
# void act_kernel(void *const segments[])
#   [0] operand0: 256 bytes
    .text
    .globl act_kernel
    .type act_kernel, @function
act_kernel:
    addi sp, sp, -16
    sd s1, 0(sp)
    sd s2, 8(sp)
    mv s1, a0
    .insn r 0x7b, 3, 7, x0, x0, x0
    li a0, 0x3f80000000010004
    li a1, 0x1000000000000
    .insn r 0x7b, 3, 0, x0, a0, a1
    # for %i0 in 0..4
    li s2, 0
.Lact_0:
    # config_ld 16, 1.0
    # mvin operand0+%i0*64, sp[%i0*16], 4, 16
    li a0, 0x3f80000000100101
    li a1, 16
    .insn r 0x7b, 3, 0, x0, a0, a1
    ld a0, 0(s1)
    li t0, 64
    mul t0, s2, t0
    add a0, a0, t0
    li a1, 0x4001000000000
    li t0, 16
    mul t0, s2, t0
    add a1, a1, t0
    .insn r 0x7b, 3, 2, x0, a0, a1
    fence
    addi s2, s2, 1
    li t0, 4
    bgeu s2, t0, .Lact_0_end
    j .Lact_0
.Lact_0_end:
    fence
    ld s1, 0(sp)
    ld s2, 8(sp)
    addi sp, sp, 16
    ret
    .size act_kernel, .-act_kernel
    .section .note.GNU-stack,\"\",@progbits
";
    assert_eq!(print_device(&gemmini, &program).unwrap(), expected);
}

#[test]
fn faulty_encodings_are_shown() {
    faults(
        MINI,
        &[
            (
                "n at 6 width 5",
                "n at 6 width 4",
                "for n = 16: the field is 16, and bits 6..10 of rs2 hold 0..15",
            ),
            ("dst + BASE at 0 width 6", "dst + BASE at 0 width 5", "for dst = 31: the field is 34"),
            ("addr at 0 width 20", "addr at 0 width 19", "for addr = 1048575"),
            ("addr at 0 width 20", "addr at 0 width 19", "legal values need `width 20`"),
            ("skip at 60 width 4 signed", "skip at 60 width 4", "legal values need `width 4 signed`"),
            // 16 at both ends of n's range, 72 in its middle.
            ("n at 6 width 5", "n * (17 - n) at 6 width 6", "for n = 6: the field is 66"),
            ("n at 6 width 5", "n * (17 - n) at 6 width 6", "legal values need `width 7`"),
            ("out=v[{dst}]", "out=v[{dst:q}]", "`:q` means nothing here"),
            ("out=v[{dst}]", "out=v[{dst:r}]", "`:r` is for inline assembly"),
            ("{n:r}", "{n:offset}", "`:offset` is for a call"),
            ("out=v[{dst}]", "out={dst:segment}", "`:segment` stands behind an address"),
            ("prologue encode", "epilogue code", "expected `encode`"),
            ("skip at 60 width 4 signed", "skip at 60 width 4", "for skip = -4: the field is -4"),
            ("skip at 60 width 4 signed", "skip at 60 width 3 signed", "bits 60..63 of rs2 hold -4..3"),
            ("skip at 60 width 4", "skip at 60 width 5", "5 bits at 60 are no part of a word of 64 bits"),
            ("n at 6 width 5", "n at 5 width 6", "the field overlaps the one in bits 0..6"),
            ("funct3 2, funct7 1", "funct3 8, funct7 1", "8 is outside 0..7"),
            ("bits(factor) at 32", "bits(rows) at 32", "`rows` is no f32 attribute"),
            ("bits(factor) at 32 width 32", "bits(factor) at 32 width 31", "need 32 bits"),
            ("%zmm{dst}", "%zmm{dsst}", "unknown attribute `dsst`; the nearest known one is `dst`"),
            ("{{z}}", "{{z}", "a brace stands alone"),
            ("encode x86", "encode x68", "expected `riscv`, `x86` or `call`"),
            ("rs2 { dst", "rs1 { dst", "has a second `rs1`"),
            ("({trip}):", "({n}):", "`{n}` means nothing here; known are {iv}, {trip}"),
            ("max_trip 100", "max_tripp 100", "unknown part of a loop construct `max_tripp`"),
            ("max_trip 100", "max_trip 100 max_trip 2", "part `max_trip` is declared twice"),
            ("fence encode call", "fence call", "expected `encode`"),
        ],
    );
}
