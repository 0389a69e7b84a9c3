//! tpu_v1, from section 2 of Jouppi et al. 2017: rows of 256 bytes, products with a 256 x 256 tile summed in 32 bits, a
//! queue of four weight tiles from which the oldest enters the array.

use crate::stage::{LittleEndian, Stage, assert_all_ran, chip, i32s, int, operand, refused, result};
use act_isa::{FaultKind, Oracle, load_target};

const ROW: usize = 256;

/// A tile whose only entry moves column `from` of the input to column 0, times `factor`.
fn selecting(from: usize, factor: i8) -> Vec<u8> {
    let mut tile = vec![0u8; ROW * ROW];
    tile[from * ROW] = factor as u8;
    tile
}

#[test]
fn tpu_v1_every_instruction() {
    let isa = load_target("tpu_v1").unwrap();
    let oracle = Oracle::new(&isa);
    let host: Vec<u8> = (0..4 * ROW).map(|at| (at * 31 % 251) as u8).collect();
    let tiles: Vec<u8> = (0..6).flat_map(|t| selecting(t, 1)).collect();
    let mut stage = Stage::new(&isa, &oracle, &[&host, &tiles], 2 * ROW as u64);

    stage.run("read_host_memory", &[int(3)], &[operand(0, ROW as i64), chip(98301)]);
    assert_eq!(stage.get("unified", &[98301], &[3]), host[ROW..]);
    let fault = stage.fault("read_host_memory", &[int(3)], &[operand(0, 0), chip(98302)]);
    assert!(matches!(fault, FaultKind::OutOfSlots { end: 98305, .. }), "{fault}");

    // One row that counts 1, 2, 3, ..: tile t brings 1 + t to column 0. Four tiles fill the queue.
    let row: Vec<i8> = (0..ROW).map(|c| (c + 1) as u8 as i8).collect();
    stage.set("unified", &[0], &[1], &row.little_endian());
    assert!(refused(&stage.fault("shift_weights", &[], &[])));
    let tile = |t: i64| operand(1, t * (ROW * ROW) as i64);
    (0..4).for_each(|t| stage.run("read_weights", &[], &[tile(t)]));
    assert!(refused(&stage.fault("read_weights", &[], &[tile(4)])));
    // The queue is not empty: the composite load has to wait.
    assert!(refused(&stage.fault("load_weights", &[], &[tile(5)])));
    for t in 0..6 {
        stage.run("shift_weights", &[], &[]);
        stage.run("matrix_multiply", &[int(1)], &[chip(0), chip(t)]);
        let sums = i32s(&stage.get("accumulators", &[t], &[1]));
        assert_eq!(sums[0], 1 + t as i32, "first in, first out");
        assert!(sums[1..].iter().all(|&s| s == 0));
        if t < 2 {
            stage.run("read_weights", &[], &[tile(4 + t)]);
        }
    }
    assert!(refused(&stage.fault("shift_weights", &[], &[])));

    // Every column a different product: w[k][n] = k + 3 n, x = 2 rows.
    let weights: Vec<i8> = (0..ROW * ROW).map(|at| (at / ROW + 3 * (at % ROW)) as u8 as i8).collect();
    let x: Vec<i8> = (0..2 * ROW).map(|at| (at * 5 % 253) as u8 as i8).collect();
    let weight_bytes = weights.little_endian();
    let mut stage = Stage::new(&isa, &oracle, &[&weight_bytes], 2 * ROW as u64);
    stage.run("load_weights", &[], &[operand(0, 0)]);
    stage.set("unified", &[9], &[2], &x.little_endian());
    stage.run("matrix_multiply", &[int(2)], &[chip(9), chip(4094)]);
    let mut expected = vec![0i32; 2 * ROW];
    for (at, sum) in expected.iter_mut().enumerate() {
        *sum =
            (0..ROW).map(|k| i32::from(x[at / ROW * ROW + k]) * i32::from(weights[k * ROW + at % ROW])).sum();
    }
    assert_eq!(i32s(&stage.get("accumulators", &[4094], &[2])), expected);
    let fault = stage.fault("matrix_multiply", &[int(2)], &[chip(9), chip(4095)]);
    assert!(matches!(fault, FaultKind::OutOfSlots { end: 4097, .. }), "{fault}");
    stage.set("accumulators", &[4094], &[2], &vec![i32::MIN; 2 * ROW].little_endian());
    stage.run("matrix_multiply_accumulate", &[int(2)], &[chip(9), chip(4094)]);
    let wrapped: Vec<i32> = expected.iter().map(|e| e.wrapping_add(i32::MIN)).collect();
    assert_eq!(i32s(&stage.get("accumulators", &[4094], &[2])), wrapped);

    // The largest and the smallest sums of 256 products of eight bits with sign: 2^22 and -127 * 2^15.
    let extremes = [vec![0x80u8; ROW * ROW], vec![0x7f; ROW * ROW]].concat();
    let mut stage_of_extremes = Stage::new(&isa, &oracle, &[&extremes], 0);
    stage_of_extremes.set("unified", &[0], &[1], &[-128i8; ROW].little_endian());
    for (at, sum) in [(0, 1 << 22), (1, -127 << 15)] {
        stage_of_extremes.run("load_weights", &[], &[operand(0, at * (ROW * ROW) as i64)]);
        stage_of_extremes.run("matrix_multiply", &[int(1)], &[chip(0), chip(at)]);
        assert_eq!(i32s(&stage_of_extremes.get("accumulators", &[at], &[1])), [sum; ROW]);
    }

    // The low eight bits: 128 becomes -128, 300 becomes 44; relu first.
    let mut sums = vec![0i32; ROW];
    sums[..6].copy_from_slice(&[127, 128, 300, -1, -129, i32::MIN]);
    stage.set("accumulators", &[0], &[1], &sums.little_endian());
    stage.run("activate_identity", &[int(1)], &[chip(0), chip(20)]);
    stage.run("activate_relu", &[int(1)], &[chip(0), chip(21)]);
    let got = stage.get("unified", &[20], &[2]);
    assert_eq!(got[..6], [127, 128, 44, 255, 127, 0]);
    assert_eq!(got[ROW..ROW + 6], [127, 128, 44, 0, 0, 0]);
    stage.run("write_host_memory", &[int(2)], &[chip(20), result(0)]);
    assert_eq!(stage.result(), got);
    assert_all_ran(&isa);
}
