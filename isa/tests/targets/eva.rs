//! eva: boxes of a scratchpad with three addresses, by explicit index arithmetic; s16 arithmetic that wraps. And the
//! evolved instruction set: a description with one more fused instruction needs no other change.

use crate::stage::{LittleEndian, POISON, Stage, assert_all_ran, chip, int, operand, refused, result};
use act_hlo::random::SplitMix64;
use act_isa::{FaultKind, Isa, Oracle, load_target, targets};

fn i16s(bytes: &[u8]) -> Vec<i16> {
    bytes.chunks_exact(2).map(|b| i16::from_le_bytes([b[0], b[1]])).collect()
}

fn random(rng: &mut SplitMix64, n: usize) -> Vec<i16> {
    (0..n).map(|_| rng.next_u64() as i16).collect()
}

/// Rows of A times the sixteen rows of B, wrapping.
fn product(a: &[i16], b: &[i16]) -> Vec<i16> {
    let term = |at: usize, k: usize| a[at / 16 * 16 + k].wrapping_mul(b[16 * k + at % 16]);
    (0..a.len()).map(|at| (0..16).fold(0i16, |sum, k| sum.wrapping_add(term(at, k)))).collect()
}

fn boxes(isa: &Isa, oracle: &Oracle<'_>) {
    let memory: Vec<u8> = (0..4096).map(|at| (at * 29 % 253) as u8).collect();
    let (b, r, c) = (2usize, 3, 4);
    let lens = [b as u64, r as u64, c as u64];
    let steps = [1100usize, 300, 40];
    let alpha = [b, r, c, steps[0], steps[1], steps[2]].map(|v| int(v as i64));
    let mut stage = Stage::new(isa, oracle, &[&memory], 2048);
    let place = [6, 13, 12].map(chip);
    stage.run("load_box", &alpha, &[&[operand(0, 10)], &place[..]].concat());
    let mut expected = Vec::new();
    for (i, j, k) in (0..b).flat_map(|i| (0..r).flat_map(move |j| (0..c).map(move |k| (i, j, k)))) {
        let start = 10 + i * steps[0] + j * steps[1] + k * steps[2];
        expected.extend_from_slice(&memory[start..start + 32]);
    }
    assert_eq!(stage.get("spm", &[6, 13, 12], &lens), expected);
    // A box leaves the scratchpad in each of its three directions.
    for (dim, place) in [[7i64, 13, 12], [6, 14, 12], [6, 13, 13]].iter().enumerate() {
        let beta = [&[operand(0, 10)], &place.map(chip)[..]].concat();
        let fault = stage.fault("load_box", &alpha, &beta);
        assert!(matches!(fault, FaultKind::OutOfSlots { dim: d, .. } if d == dim), "{fault}");
    }

    // One vector of the box to a register and from there elsewhere.
    stage.run("load_vectors", &[int(3)], &[chip(7), chip(14), chip(13), chip(61)]);
    let from = ((r + 1) * c + 1) * 32;
    assert_eq!(stage.get("vreg", &[61], &[3]), expected[from..from + 96]);
    stage.run("store_vectors", &[int(2)], &[chip(62), chip(0), chip(1), chip(2)]);
    assert_eq!(stage.get("spm", &[0, 1, 2], &[1, 1, 2]), expected[from + 32..from + 96]);
    let fault = stage.fault("load_vectors", &[int(4)], &[chip(7), chip(14), chip(13), chip(0)]);
    assert!(matches!(fault, FaultKind::OutOfSlots { dim: 2, .. }), "{fault}");

    for (from, to, order) in [
        ("box_transpose_banks_rows", [0i64, 0, 4], [1usize, 0, 2]),
        ("box_transpose_rows_columns", [4, 4, 4], [0, 2, 1]),
        ("box_transpose_banks_columns", [1, 9, 9], [2, 1, 0]),
    ] {
        stage.run(from, &alpha[..3], &[6, 13, 12, to[0], to[1], to[2]].map(chip));
        let moved = order.map(|d| lens[d]);
        let got = stage.get("spm", &to, &moved);
        let n = [b, r, c];
        for at in 0..b * r * c {
            let index = [at / (r * c), at / c % r, at % c];
            let t = (index[order[0]] * n[order[1]] + index[order[1]]) * n[order[2]] + index[order[2]];
            assert_eq!(got[32 * t..32 * t + 32], expected[32 * at..32 * at + 32], "{from}");
        }
    }

    assert!(refused(
        &stage
            .fault("store_box", &[2, 3, 4, 400, 100, 32].map(int), &{ [&place[..], &[result(0)]].concat() })
    ));
    stage.run("store_box", &[2, 3, 4, 600, 150, 34].map(int), &[&place[..], &[result(6)]].concat());
    let mut written = vec![POISON; 2048];
    for at in 0..b * r * c {
        let start = 6 + 600 * (at / (r * c)) + 150 * (at / c % r) + 34 * (at % c);
        written[start..start + 32].copy_from_slice(&expected[32 * at..32 * at + 32]);
    }
    assert_eq!(stage.result(), written);
}

fn arithmetic(isa: &Isa, oracle: &Oracle<'_>) {
    let mut rng = SplitMix64::new(51);
    let (mut a, b, old) = (random(&mut rng, 48), random(&mut rng, 48), random(&mut rng, 48));
    a[0] = i16::MIN;
    let mut stage = Stage::new(isa, oracle, &[], 0);
    let beta = [chip(0), chip(20), chip(40)];
    type Op = fn(i16, i16) -> i16;
    let ops: [(&str, Op); 5] = [
        ("add", i16::wrapping_add),
        ("subtract", i16::wrapping_sub),
        ("multiply", i16::wrapping_mul),
        ("maximum", |a, b| if a > b { a } else { b }),
        ("minimum", |a, b| if a < b { a } else { b }),
    ];
    stage.set("vreg", &[0], &[3], &a.little_endian());
    stage.set("vreg", &[20], &[3], &b.little_endian());
    for (op, f) in ops {
        stage.run(&format!("vector_{op}"), &[int(3)], &beta);
        let expected: Vec<i16> = a.iter().zip(&b).map(|(&a, &b)| f(a, b)).collect();
        assert_eq!(i16s(&stage.get("vreg", &[40], &[3])), expected, "{op}");
    }
    stage.set("vreg", &[40], &[3], &old.little_endian());
    stage.run("vector_multiply_accumulate", &[int(3)], &beta);
    let expected: Vec<i16> = (0..48).map(|at| old[at].wrapping_add(a[at].wrapping_mul(b[at]))).collect();
    assert_eq!(i16s(&stage.get("vreg", &[40], &[3])), expected);
    stage.run("splat", &[int(2), int(-32768)], &[chip(62)]);
    assert_eq!(i16s(&stage.get("vreg", &[62], &[2])), [i16::MIN; 32]);
    let fault = stage.fault("splat", &[int(2), int(0)], &[chip(63)]);
    assert!(matches!(fault, FaultKind::OutOfSlots { end: 65, .. }), "{fault}");

    let matrix = random(&mut rng, 256);
    let expected = product(&a, &matrix);
    stage.set("vreg", &[20], &[16], &matrix.little_endian());
    stage.run("vector_gemm", &[int(3)], &beta);
    assert_eq!(i16s(&stage.get("vreg", &[40], &[3])), expected);
    // Vectors down column 5 of bank 1, rows 2 to 4, times row 7 of bank 2.
    stage.set("spm", &[1, 2, 5], &[1, 3, 1], &a.little_endian());
    stage.set("spm", &[2, 7, 0], &[1, 1, 16], &matrix.little_endian());
    let beta = [1, 2, 5, 2, 7, 3, 4, 6].map(chip);
    stage.run("box_gemm", &[int(3)], &beta);
    assert_eq!(i16s(&stage.get("spm", &[3, 4, 6], &[1, 3, 1])), expected);
    stage.run("box_gemm_accumulate", &[int(3)], &beta);
    let twice: Vec<i16> = expected.iter().map(|e| e.wrapping_mul(2)).collect();
    assert_eq!(i16s(&stage.get("spm", &[3, 4, 6], &[1, 3, 1])), twice);

    let x = random(&mut rng, 2 * 4 * 3 * 16);
    stage.set("spm", &[5, 12, 1], &[2, 4, 3], &x.little_endian());
    stage.run("box_stencil", &[int(2), int(2), int(3)], &[5, 12, 1, 0, 0, 0].map(chip));
    let got = i16s(&stage.get("spm", &[0, 0, 0], &[2, 2, 3]));
    for (at, &sum) in got.iter().enumerate() {
        let (bank, row, rest) = (at / 96, at / 48 % 2, at % 48);
        let tap = |down: usize| x[(bank * 4 + row + down) * 48 + rest];
        assert_eq!(sum, tap(0).wrapping_add(tap(1)).wrapping_add(tap(2)));
    }
    let fault = stage.fault("box_stencil", &[int(1), int(3), int(1)], &[5, 12, 1, 0, 0, 0].map(chip));
    assert!(matches!(fault, FaultKind::OutOfSlots { dim: 1, end: 17, .. }), "{fault}");
}

#[test]
fn eva_every_instruction() {
    let isa = load_target("eva").unwrap();
    let oracle = Oracle::new(&isa);
    boxes(&isa, &oracle);
    arithmetic(&isa, &oracle);
    assert_all_ran(&isa);
}

/// What evolution adds: relu(a b + c) as one instruction.
const EVOLVED: &str = "
instr vector_multiply_add_relu alpha(n: 1..16) beta(a, b, c, y) {
  in  vreg[a :+ n]
  in  vreg[b :+ n]
  in  vreg[c :+ n]
  out vreg[y :+ n]
  cost n
  unit array
  computation {
    a = s16[n, LANES] parameter(0)
    b = s16[n, LANES] parameter(1)
    c = s16[n, LANES] parameter(2)
    product = s16[n, LANES] multiply(a, b)
    sum = s16[n, LANES] add(product, c)
    zero = s16[n, LANES] constant(0)
    ROOT y = s16[n, LANES] maximum(sum, zero)
  }
}
";

#[test]
fn eva_evolves() {
    let (_, text) = targets().iter().find(|(name, _)| *name == "eva").unwrap();
    let isa = Isa::parse(&format!("{text}{EVOLVED}"), "evolved").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(isa.instrs.len(), load_target("eva").unwrap().instrs.len() + 1);
    let oracle = Oracle::new(&isa);
    let mut stage = Stage::new(&isa, &oracle, &[], 0);
    for (slot, values) in [(0, [3i16, -3, 300, 5]), (1, [4, 4, 300, 5]), (2, [-5, 5, 0, -26])] {
        let lanes: Vec<i16> = (0..16).map(|l| values[l % 4]).collect();
        stage.set("vreg", &[slot], &[1], &lanes.little_endian());
    }
    stage.run("vector_multiply_add_relu", &[int(1)], &[0, 1, 2, 3].map(chip));
    // 12 - 5; -12 + 5; 90000 - 65536; 25 - 26.
    assert_eq!(i16s(&stage.get("vreg", &[3], &[1]))[..4], [7, 0, 24464, 0]);
}
