//! h_qkv: bf16 rows of 64 between main memory and two buffers, a 64 x 64 x 64 product, a softmax without maximum. Expected
//! values by plain loops over f32 with one rounding to bf16 where the paper's semantics have a bf16 value.

use crate::stage::{LittleEndian, POISON, Stage, assert_all_ran, chip, int, operand, refused, result};
use act_isa::{FaultKind, Oracle, load_target};
use half::bf16;

fn bf16s(bytes: &[u8]) -> Vec<bf16> {
    bytes.chunks_exact(2).map(|b| bf16::from_le_bytes([b[0], b[1]])).collect()
}

/// Small integers and quarters, exact in bf16.
fn tile(rows: usize, seed: usize) -> Vec<bf16> {
    (0..rows * 64).map(|at| bf16::from_f32(((at * 7 + at / 64 * 3 + seed) % 17) as f32 / 4.0 - 2.0)).collect()
}

#[test]
fn h_qkv_every_instruction() {
    let isa = load_target("h_qkv").unwrap();
    let oracle = Oracle::new(&isa);
    let (x, square) = (tile(3, 1), tile(64, 5));
    let (x_bytes, square_bytes) = (x.little_endian(), square.little_endian());
    let mut stage = Stage::new(&isa, &oracle, &[&x_bytes, &square_bytes], 64 * 128);

    stage.run("load_rm", &[int(3)], &[operand(0, 0), chip(125)]);
    assert_eq!(bf16s(&stage.get("d1", &[125], &[3])), x);
    let fault = stage.fault("load_rm", &[int(3)], &[operand(0, 0), chip(126)]);
    assert!(matches!(fault, FaultKind::OutOfSlots { end: 129, .. }), "{fault}");
    assert!(refused(&stage.fault("load_rm", &[int(129)], &[operand(1, 0), chip(0)])));

    stage.run("load_cm", &[int(64)], &[operand(1, 0), chip(0)]);
    let transposed = bf16s(&stage.get("d1", &[0], &[64]));
    for (at, value) in transposed.iter().enumerate() {
        assert_eq!(*value, square[at % 64 * 64 + at / 64]);
    }
    assert!(refused(&stage.fault("load_cm", &[int(63)], &[operand(1, 0), chip(0)])));

    // store_cm of two rows: column by column. store_rm behind it, row by row.
    stage.run("store_cm", &[int(2)], &[chip(125), result(0)]);
    stage.run("store_rm", &[int(1)], &[chip(127), result(256)]);
    let mut bytes = stage.result();
    let got = bf16s(&bytes.drain(..384).collect::<Vec<u8>>());
    for column in 0..64 {
        assert_eq!((got[2 * column], got[2 * column + 1]), (x[column], x[64 + column]));
        assert_eq!(got[128 + column], x[128 + column]);
    }
    assert!(bytes.iter().all(|&b| b == POISON));

    let mut stage = Stage::new(&isa, &oracle, &[], 0);
    let (a, b) = (tile(64, 2), tile(64, 9));
    stage.set("d1", &[0], &[64], &a.little_endian());
    stage.set("d1", &[64], &[64], &b.little_endian());
    stage.run("gemm", &[], &[chip(0), chip(64), chip(0)]);
    let product = bf16s(&stage.get("d2", &[0], &[64]));
    for (at, value) in product.iter().enumerate() {
        // Multiples of 1/16 far below 2^24: the sum is exact in f32, then rounded once.
        let sum: f32 = (0..64).map(|k| a[at / 64 * 64 + k].to_f32() * b[k * 64 + at % 64].to_f32()).sum();
        assert_eq!(*value, bf16::from_f32(sum));
    }
    stage.run("mov", &[int(5)], &[chip(7), chip(100)]);
    assert_eq!(bf16s(&stage.get("d1", &[100], &[5])), product[7 * 64..12 * 64]);
    assert!(refused(&stage.fault("mov", &[int(65)], &[chip(0), chip(0)])));

    // exp(0) = 1 sixty-four times: 1/64 each, exactly. A row with one ln 2 more: its exp is 2 in bf16, the sum 65.
    let mut rows = vec![bf16::ZERO; 128];
    rows[70] = bf16::from_f32(std::f32::consts::LN_2);
    stage.set("d2", &[10], &[2], &rows.little_endian());
    stage.run("softmax", &[int(2)], &[chip(10)]);
    let softmax = bf16s(&stage.get("d2", &[10], &[2]));
    assert!(softmax[..64].iter().all(|v| v.to_f32() == 1.0 / 64.0));
    for (column, value) in softmax[64..].iter().enumerate() {
        let expected = if column == 6 { 2.0 / 65.0 } else { 1.0 / 65.0 };
        assert_eq!(*value, bf16::from_f32(expected), "{column}");
    }
    assert_all_ran(&isa);
}
