//! Loop programs with panels kept on chip against the same programs without, both executed by the oracle: same results,
//! fewer loads, and nothing moved that must not move.

use act_isa::{Counters, Isa, LoopProgram, Oracle, Program, load_target, parse_program};
use act_stitch::reuse::reuse_panels;

fn loads(counters: &Counters) -> u64 {
    counters.instructions.iter().filter(|(name, _)| name.starts_with("mvin")).map(|(_, n)| *n).sum()
}

fn cost(program: &Program) -> u64 {
    match program {
        Program::Seq(parts) => parts.iter().map(cost).sum(),
        Program::For { trip, body, .. } => trip * cost(body),
        Program::Instr { .. } => 1,
        _ => 0,
    }
}

/// Both programs on the same bytes; their results must agree. Returns how often each loads.
fn compare(isa: &Isa, program: LoopProgram) -> (u64, u64, LoopProgram) {
    let mut state = 0x2545_f491_4f6c_dd1du64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    let operands: Vec<Vec<u8>> =
        program.operands.iter().map(|&bytes| (0..bytes).map(|_| random()).collect()).collect();
    let operands: Vec<&[u8]> = operands.iter().map(Vec::as_slice).collect();
    let oracle = Oracle::new(isa);
    let run = |program: &LoopProgram| {
        let mut results = vec![Vec::new(); program.results.len()];
        let counters = oracle.run(program, &operands, &mut results).expect("the program runs");
        (loads(&counters), results)
    };
    let (before, expected) = run(&program);
    let changed = reuse_panels(isa, program, &|nest, _| cost(nest));
    let (after, found) = run(&changed);
    assert_eq!(found, expected);
    (before, after, changed)
}

/// C[16m, 16n] = A[16m, 16k] B[16k, 16n] by tiles, every tile loaded where it is used.
fn matmul(isa: &Isa, m: u64, n: u64, k: u64) -> LoopProgram {
    let (pitch_a, pitch_b, pitch_c) = (16 * k, 16 * n, 64 * n);
    let text = format!(
        "operands {}, {}
results {}
for %i0 in 0..{m} parallel {{
  for %i1 in 0..{n} parallel {{
    config_ld {pitch_a}, 1.0
    mvin operand0+%i0*{}, sp[0], 16, 16
    config_ld {pitch_b}, 1.0
    mvin operand1+%i1*16, sp[16], 16, 16
    preload sp[16], 16, 16, acc[0], 16, 16
    compute_preloaded sp[0], 16, 16, none
    for %i2 in 0..{} {{
      config_ld {pitch_a}, 1.0
      mvin operand0+%i0*{}+%i2*16+16, sp[0], 16, 16
      config_ld {pitch_b}, 1.0
      mvin operand1+%i1*16+%i2*{}+{}, sp[16], 16, 16
      preload sp[16], 16, 16, acc.accumulate[0], 16, 16
      compute_preloaded sp[0], 16, 16, none
    }}
    config_st {pitch_c}
    mvout result0+%i0*{}+%i1*64, acc.full[0], 16, 16
  }}
}}
",
        16 * m * pitch_a,
        16 * k * pitch_b,
        16 * m * pitch_c,
        16 * pitch_a,
        k - 1,
        16 * pitch_a,
        16 * pitch_b,
        16 * pitch_b,
        16 * pitch_c
    );
    parse_program(isa, &text).expect("the program parses")
}

#[test]
fn a_small_product_loads_every_tile_once() {
    let isa = load_target("gemmini").expect("a target");
    for (m, n, k) in [(2, 2, 2), (3, 5, 2), (7, 2, 3), (1, 4, 2), (4, 1, 6)] {
        let (before, after, _) = compare(&isa, matmul(&isa, m, n, k));
        assert_eq!(before, 2 * m * n * k);
        assert_eq!(after, m * k + k * n, "{m} {n} {k}");
    }
}

#[test]
fn what_does_not_fit_is_loaded_per_block() {
    let mut isa = load_target("gemmini").expect("a target");
    // Room for the two tiles in use and 14 more.
    isa.buffers[0].access[0] = 256;
    let (m, n, k) = (7, 6, 4);
    let (before, after, _) = compare(&isa, matmul(&isa, m, n, k));
    assert!(after < before / 2, "{after} of {before}");
    assert!(after > m * k + k * n);
}

#[test]
fn loops_that_read_a_panel_from_before_them_stay_parallel() {
    let isa = load_target("gemmini").expect("a target");
    let (_, _, program) = compare(&isa, matmul(&isa, 4, 3, 2));
    let Program::Seq(parts) = &program.body else { panic!("a sequence") };
    assert!(parts.len() > 1, "one operand is loaded before the nest");
    let Some(Program::For { parallel, .. }) = parts.last() else { panic!("a loop") };
    assert!(parallel);
    let Program::For { parallel, .. } = &parts[0] else { panic!("a loop") };
    assert!(!parallel, "the loop that fills a panel leaves its values on chip");
}

/// A loop around `body`, over one operand of 4096 bytes and a result of the same size.
fn looped(isa: &Isa, body: &str) -> LoopProgram {
    let text = format!("operands 4096\nresults 4096\nfor %i0 in 0..4 parallel {{\n{body}}}\n");
    parse_program(isa, &text).expect("the program parses")
}

#[test]
fn what_the_run_changes_stays_where_it_is() {
    let isa = load_target("gemmini").expect("a target");
    let in_place = "config_ld 64, 1.0
mvin operand0, acc[0], 16, 16
config_ld 64, 1.0
mvin operand0+%i0*1024, acc.accumulate[0], 16, 16
config_st 64
mvout result0+%i0*1024, acc.full[0], 16, 16
";
    let (before, after, _) = compare(&isa, looped(&isa, in_place));
    assert_eq!((before, after), (8, 8));
}

#[test]
fn what_is_overwritten_in_part_stays_where_it_is() {
    let isa = load_target("gemmini").expect("a target");
    let body = |rows: u64| {
        format!(
            "config_ld 16, 1.0
mvin operand0, sp[0], 16, 16
config_st 16
mvout result0+%i0*1024, sp[0], 16, 16
mvin 0, sp[0], {rows}, 16
config_st 16
mvout result0+%i0*1024+512, sp[0], 16, 16
"
        )
    };
    assert_eq!(compare(&isa, looped(&isa, &body(4))).1, 4);
    // Overwritten whole, the loaded value has ended.
    assert_eq!(compare(&isa, looped(&isa, &body(16))).1, 1);
}

#[test]
fn what_a_later_iteration_reads_stays_where_it_is() {
    let isa = load_target("gemmini").expect("a target");
    // The first store reads what the previous iteration left; rows are written whole before the loop.
    let text = "operands 4096
results 4096
config_ld 16, 1.0
mvin operand0+1024, sp[0], 16, 16
for %i0 in 0..4 {
config_st 16
mvout result0+%i0*512, sp[0], 16, 16
config_ld 16, 1.0
mvin operand0, sp[0], 16, 16
config_st 16
mvout result0+%i0*512+256, sp[0], 16, 16
}
";
    let program = parse_program(&isa, text).expect("the program parses");
    let (before, after, _) = compare(&isa, program);
    assert_eq!((before, after), (5, 5));
}

#[test]
fn what_the_loop_stores_is_loaded_anew() {
    let isa = load_target("gemmini").expect("a target");
    let text = "operands 4096
results 4096
config_ld 16, 1.0
mvin operand0+512, sp[0], 16, 16
config_st 16
mvout result0, sp[0], 16, 16
for %i0 in 0..4 {
config_ld 16, 1.0
mvin result0, sp[16], 16, 16
config_st 16
mvout result0+%i0*256+256, sp[16], 16, 16
config_ld 16, 1.0
mvin operand0+%i0*256, sp[32], 16, 16
config_st 16
mvout result0, sp[32], 16, 16
}
";
    let program = parse_program(&isa, text).expect("the program parses");
    let (before, after, _) = compare(&isa, program);
    assert_eq!((before, after), (9, 9));
}

#[test]
fn part_of_a_loaded_value_may_be_used() {
    let isa = load_target("gemmini").expect("a target");
    let body = "config_ld 16, 1.0
mvin operand0, sp[0], 16, 16
config_st 16
mvout result0+%i0*1024, sp[4], 8, 16
config_st 16
mvout result0+%i0*1024+512, sp[0], 16, 16
";
    let (before, after, _) = compare(&isa, looped(&isa, body));
    assert_eq!((before, after), (4, 1));
    // Reading more than was loaded is no use of it, even where another load completes it.
    let body = "config_ld 16, 1.0
mvin operand0+%i0*16, sp[0], 16, 16
config_ld 16, 1.0
mvin operand0+256, sp[4], 8, 16
config_st 16
mvout result0+%i0*1024, sp[0], 16, 16
";
    let (before, after, _) = compare(&isa, looped(&isa, body));
    assert_eq!((before, after), (8, 8));
    let body = "config_ld 16, 1.0
mvin operand0+256, sp[8], 16, 16
config_ld 16, 1.0
mvin operand0, sp[0], 16, 16
config_st 16
mvout result0+%i0*1024, sp[4], 16, 16
";
    let (before, after, _) = compare(&isa, looped(&isa, body));
    assert_eq!((before, after), (8, 8));
}

#[test]
fn requirements_hold_for_every_slot() {
    let text = load_target("gemmini").expect("a target").print();
    let body = "config_ld 16, 1.0
mvin operand0, sp[0], 8, 16
config_st 16
mvout result0+%i0*1024, sp[0], 8, 16
";
    let with = |require: &str| {
        let text = text.replacen("cost rows + 8", &format!("require {require}\n  cost rows + 8"), 1);
        Isa::parse(&text, "required.taidl").expect("the description is good")
    };
    for (require, expected) in [("row % 8 == 0", 1), ("row < 8", 4), ("row % 3 == 0", 4)] {
        let isa = with(require);
        let (_, after, _) = compare(&isa, looped(&isa, body));
        assert_eq!(after, expected, "{require}");
    }
}
