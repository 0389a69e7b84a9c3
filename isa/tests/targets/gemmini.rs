//! gemmini and gemmini_plus. The expected values follow Gemmini's definition as libgemmini computes it: a load or store
//! moves rows, the array sums in s32 and wraps, a store from the accumulator converts to f32, multiplies by the scale,
//! rounds to the nearest even integer, saturates to s8 and applies relu last.

use crate::stage::{
    LittleEndian, POISON, Stage, assert_all_ran, chip, float, i32s, int, operand, refused, result,
};
use act_hlo::random::SplitMix64;
use act_isa::{FaultKind, Isa, Oracle, load_target};

fn i8s(bytes: &[u8]) -> Vec<i8> {
    bytes.iter().map(|&b| b as i8).collect()
}

fn random_i8(rng: &mut SplitMix64, n: usize) -> Vec<i8> {
    (0..n).map(|_| rng.next_u64() as i8).collect()
}

/// A store's arithmetic, from the definition.
fn requantized(acc: i32, scale: f32, relu: bool) -> i8 {
    let saturated = ((acc as f32) * scale).round_ties_even().clamp(-128.0, 127.0) as i8;
    if relu { saturated.max(0) } else { saturated }
}

/// Row-major A[i,k] B[k,j] with wrapping sums.
fn product(a: &[i8], b: &[i8], (i, j, k): (usize, usize, usize)) -> Vec<i32> {
    let mut c = vec![0i32; i * j];
    for row in 0..i {
        for column in 0..j {
            for step in 0..k {
                let term = i32::from(a[row * k + step]) * i32::from(b[step * j + column]);
                c[row * j + column] = c[row * j + column].wrapping_add(term);
            }
        }
    }
    c
}

fn loads(isa: &Isa, oracle: &Oracle<'_>) {
    let data: Vec<u8> = (0..=255).collect();
    let words: Vec<u8> = [1, -2, i32::MAX, i32::MIN].little_endian();
    let mut stage = Stage::new(isa, oracle, &[&data, &words], 0);

    stage.run("mvin", &[int(2), int(3), int(108)], &[operand(0, 20), chip(5)]);
    assert_eq!(i8s(&stage.get("sp", &[5, 0], &[2, 3])), [20, 21, 22, -128, -127, -126]);
    // Stride 0 repeats the row; the last row of the memory is in reach, one further is not.
    stage.run("mvin", &[int(3), int(2), int(0)], &[operand(0, 1), chip(16381)]);
    assert_eq!(i8s(&stage.get("sp", &[16381, 0], &[3, 2])), [1, 2, 1, 2, 1, 2]);
    let fault = stage.fault("mvin", &[int(3), int(2), int(0)], &[operand(0, 1), chip(16382)]);
    assert!(matches!(fault, FaultKind::OutOfSlots { dim: 0, end: 16385, .. }), "{fault}");
    assert!(refused(&stage.fault("mvin", &[int(17), int(2), int(0)], &[operand(0, 1), chip(0)])));
    assert!(refused(&stage.fault("mvin", &[int(1), int(17), int(0)], &[operand(0, 1), chip(0)])));
    let fault = stage.fault("mvin", &[int(2), int(16), int(241)], &[operand(0, 0), chip(0)]);
    assert!(matches!(fault, FaultKind::OutOfBytes { end: 257, .. }), "{fault}");

    // Block b of row r, columns 16 b.. of the row, becomes row b * rows + r.
    stage.run("mvin_blocks", &[int(3), int(4), int(70)], &[operand(0, 2), chip(100)]);
    let got = stage.get("sp", &[100, 0], &[12, 16]);
    for (at, &value) in got.iter().enumerate() {
        let (block, row, column) = (at / 16 / 3, at / 16 % 3, at % 16);
        assert_eq!(usize::from(value), 2 + 70 * row + 16 * block + column);
    }
    assert!(refused(&stage.fault("mvin_blocks", &[int(1), int(5), int(0)], &[operand(0, 0), chip(0)])));

    // Zeros cover their box and nothing else.
    stage.run("zero_sp", &[int(2), int(3)], &[chip(101)]);
    let mut expected = got;
    [16, 17, 18, 32, 33, 34].iter().for_each(|&at| expected[at] = 0);
    assert_eq!(stage.get("sp", &[100, 0], &[12, 16]), expected);

    stage.run("mvin_acc", &[int(2), int(2), int(8)], &[operand(1, 0), chip(3)]);
    assert_eq!(i32s(&stage.get("acc", &[3, 0], &[2, 2])), [1, -2, i32::MAX, i32::MIN]);
    // Sums wrap: MAX + MAX = -2, MIN + MIN = 0.
    stage.run("mvin_acc_accumulate", &[int(2), int(2), int(8)], &[operand(1, 0), chip(3)]);
    assert_eq!(i32s(&stage.get("acc", &[3, 0], &[2, 2])), [2, -4, -2, 0]);
    stage.run("mvin_acc_low", &[int(1), int(2), int(0)], &[operand(0, 127), chip(0)]);
    assert_eq!(i32s(&stage.get("acc", &[0, 0], &[1, 2])), [127, -128]);
    stage.run("mvin_acc_low_accumulate", &[int(1), int(2), int(0)], &[operand(0, 127), chip(0)]);
    assert_eq!(i32s(&stage.get("acc", &[0, 0], &[1, 2])), [254, -256]);
    // The same by blocks, sign-extended and added up.
    for (name, times) in [("mvin_acc_low_blocks", 1), ("mvin_acc_low_accumulate_blocks", 2)] {
        stage.run(name, &[int(3), int(4), int(70)], &[operand(0, 2), chip(200)]);
        for (at, value) in i32s(&stage.get("acc", &[200, 0], &[12, 16])).into_iter().enumerate() {
            let (block, row, column) = (at / 16 / 3, at / 16 % 3, at % 16);
            assert_eq!(value, times * i32::from((2 + 70 * row + 16 * block + column) as u8 as i8));
        }
        assert!(refused(&stage.fault(name, &[int(1), int(1), int(0)], &[operand(0, 0), chip(0)])));
    }
    stage.run("zero_acc", &[int(1), int(1)], &[chip(0)]);
    assert_eq!(i32s(&stage.get("acc", &[0, 0], &[1, 2])), [0, -256]);
    // The accumulator has 1024 rows.
    let fault = stage.fault("zero_acc", &[int(2), int(1)], &[chip(1023)]);
    assert!(matches!(fault, FaultKind::OutOfSlots { end: 1025, .. }), "{fault}");
    // What nothing wrote is no operand.
    let fault = stage.fault("mvin_acc_accumulate", &[int(1), int(1), int(0)], &[operand(1, 0), chip(50)]);
    assert!(matches!(fault, FaultKind::Uninitialised { .. }), "{fault}");
}

fn stores(isa: &Isa, oracle: &Oracle<'_>) {
    let p = POISON;
    let mut stage = Stage::new(isa, oracle, &[], 12);
    stage.set("sp", &[0, 0], &[2, 3], &[1i8, -2, 3, 4, 5, -6].little_endian());
    assert!(refused(&stage.fault("mvout", &[int(2), int(3), int(2)], &[chip(0), result(0)])));
    stage.run("mvout", &[int(2), int(3), int(5)], &[chip(0), result(1)]);
    assert_eq!(stage.result(), [p, 1, 0xfe, 3, p, p, 4, 5, 0xfa, p, p, p]);

    let mut stage = Stage::new(isa, oracle, &[], 12);
    stage.set("acc", &[7, 0], &[2, 1], &[-2i32, 0x0102_0304].little_endian());
    assert!(refused(&stage.fault("mvout_acc", &[int(2), int(1), int(3)], &[chip(7), result(0)])));
    stage.run("mvout_acc", &[int(2), int(1), int(6)], &[chip(7), result(0)]);
    assert_eq!(stage.result(), [0xfe, 0xff, 0xff, 0xff, p, p, 4, 3, 2, 1, p, p]);

    // Row r of a store by blocks has row r of every block of 16 rows.
    let side_by_side = |stacked: &[i8], blocks: usize, stride: usize| -> Vec<u8> {
        let mut stored = vec![p; 15 * stride + 16 * blocks];
        for (at, &value) in stacked.iter().enumerate() {
            stored[at / 16 % 16 * stride + at / 256 * 16 + at % 16] = value as u8;
        }
        stored
    };
    let mut rng = SplitMix64::new(5);
    for (blocks, stride) in [(2, 32), (3, 50), (4, 64)] {
        let rows = 16 * blocks as u64;
        let size = (15 * stride + 16 * blocks) as u64;
        let (count, step) = (int(blocks as i64), int(stride as i64));
        let bytes = random_i8(&mut rng, 256 * blocks);
        let mut stage = Stage::new(isa, oracle, &[], size);
        stage.set("sp", &[9, 0], &[rows, 16], &bytes.little_endian());
        assert!(refused(&stage.fault(
            "mvout_blocks",
            &[count, int(16 * blocks as i64 - 1)],
            &[chip(9), result(0)]
        )));
        stage.run("mvout_blocks", &[count, step], &[chip(9), result(0)]);
        assert_eq!(stage.result(), side_by_side(&bytes, blocks, stride));
        let acc: Vec<i32> = (0..256 * blocks).map(|_| rng.next_u64() as i32 >> 20).collect();
        for (name, relu) in [("mvout_acc_scaled_blocks", false), ("mvout_acc_scaled_relu_blocks", true)] {
            let mut stage = Stage::new(isa, oracle, &[], size);
            stage.set("acc", &[9, 0], &[rows, 16], &acc.little_endian());
            stage.run(name, &[count, step, float(0.07)], &[chip(9), result(0)]);
            let expected: Vec<i8> = acc.iter().map(|&a| requantized(a, 0.07, relu)).collect();
            assert_eq!(stage.result(), side_by_side(&expected, blocks, stride));
        }
    }

    let scaled = |name: &str, scale: f32, acc: &[i32]| -> Vec<i8> {
        let mut stage = Stage::new(isa, oracle, &[], acc.len() as u64);
        stage.set("acc", &[0, 0], &[1, acc.len() as u64], &acc.little_endian());
        stage.run(name, &[int(1), int(acc.len() as i64), int(0), float(scale)], &[chip(0), result(0)]);
        i8s(&stage.result())
    };
    // Halves go to the even neighbour, the rest to the nearest; then saturation.
    let acc = [1, 3, 5, -1, -3, -5, 4, 253, 254, 255, 256, -256, -257, -259, i32::MAX, i32::MIN];
    let expected = [0, 2, 2, 0, -2, -2, 2, 126, 127, 127, 127, -128, -128, -128, 127, -128];
    assert_eq!(scaled("mvout_acc_scaled", 0.5, &acc), expected);
    // 2^24 + 1 is no f32: it becomes 2^24, whose product with 2^-25 is the tie 0.5. In wider arithmetic it would be 1.
    assert_eq!(scaled("mvout_acc_scaled", 2f32.powi(-25), &[(1 << 24) + 1, (1 << 24) + 2]), [0, 1]);
    // Relu looks at the scaled value: with a negative scale negative sums pass.
    assert_eq!(scaled("mvout_acc_scaled_relu", -0.5, &[-10, 10, 3, -3, -1000]), [5, 0, 0, 2, 127]);
    let mut rng = SplitMix64::new(7);
    for _ in 0..200 {
        let acc: Vec<i32> = (0..16).map(|_| rng.next_u64() as i32 >> rng.below(32)).collect();
        let scale = f32::from_bits(0x3000_0000 + rng.below(0x1000_0000) as u32);
        for (name, relu) in [("mvout_acc_scaled", false), ("mvout_acc_scaled_relu", true)] {
            let expected: Vec<i8> = acc.iter().map(|&a| requantized(a, scale, relu)).collect();
            assert_eq!(scaled(name, scale, &acc), expected, "{name} {scale} {acc:?}");
        }
    }
}

fn products(isa: &Isa, oracle: &Oracle<'_>) {
    let mut rng = SplitMix64::new(11);
    for (i, j, k) in [(16, 16, 16), (1, 16, 7), (5, 3, 16), (16, 1, 1)] {
        let (a, b) = (random_i8(&mut rng, i * k), random_i8(&mut rng, k * j));
        let expected = product(&a, &b, (i, j, k));
        let (ui, uj, uk) = (i as u64, j as u64, k as u64);
        let mut stage = Stage::new(isa, oracle, &[], 0);
        let (ijk, abc) = ([int(i as i64), int(j as i64), int(k as i64)], [chip(3), chip(40), chip(70)]);
        stage.set("sp", &[3, 0], &[ui, uk], &a.little_endian());
        stage.set("sp", &[40, 0], &[uk, uj], &b.little_endian());
        stage.run("matmul", &ijk, &abc);
        assert_eq!(i32s(&stage.get("acc", &[70, 0], &[ui, uj])), expected);
        stage.set("acc", &[70, 0], &[ui, uj], &vec![i32::MAX; i * j].little_endian());
        stage.run("matmul_acc", &ijk, &abc);
        let wrapped: Vec<i32> = expected.iter().map(|p| p.wrapping_add(i32::MAX)).collect();
        assert_eq!(i32s(&stage.get("acc", &[70, 0], &[ui, uj])), wrapped);
        stage.run("matmul_sp", &ijk, &abc);
        let saturated: Vec<i8> = expected.iter().map(|&p| p.clamp(-128, 127) as i8).collect();
        assert_eq!(i8s(&stage.get("sp", &[70, 0], &[ui, uj])), saturated);
    }
}

/// The loops of gemmini_plus between tensors of main memory.
fn loops(isa: &Isa, oracle: &Oracle<'_>) {
    let mut rng = SplitMix64::new(13);
    for (m, n, k) in [(33, 20, 50), (1, 1, 1), (16, 64, 16)] {
        let (a, b) = (random_i8(&mut rng, m * k), random_i8(&mut rng, k * n));
        let d: Vec<i32> = (0..n).map(|_| rng.next_u64() as i32 >> 12).collect();
        let sums = product(&a, &b, (m, n, k));
        let biased: Vec<i32> = sums.iter().enumerate().map(|(at, s)| s.wrapping_add(d[at % n])).collect();
        let (a, b, d) = (a.little_endian(), b.little_endian(), d.little_endian());
        let (mi, ni, ki) = (m as i64, n as i64, k as i64);
        let run = |name: &str, bias: bool, width: i64, scale: Option<f32>| -> Vec<u8> {
            let mut stage = Stage::new(isa, oracle, &[&a, &b, &d], (m as i64 * (ni + 3) * width) as u64);
            let stride_c = if width == 4 { 4 * (ni + 3) } else { ni + 3 };
            let mut alpha = vec![int(mi), int(ni), int(ki), int(ki), int(ni), int(stride_c)];
            let mut beta = vec![operand(0, 0), operand(1, 0)];
            if bias {
                alpha.push(int(0));
                beta.push(operand(2, 0));
            }
            alpha.extend(scale.map(float));
            beta.push(result(0));
            stage.run(name, &alpha, &beta);
            let (row, kept) = (stride_c as usize, n * width as usize);
            stage.result().chunks(row).flat_map(|r| r[..kept].to_vec()).collect()
        };
        let scale = 0.004;
        for (bias, sums) in [(false, &sums), (true, &biased)] {
            let suffix = if bias { "_bias" } else { "" };
            assert_eq!(i32s(&run(&format!("loop_ws_full{suffix}"), bias, 4, None)), *sums);
            for (kind, relu) in [("scaled", false), ("scaled_relu", true)] {
                let expected: Vec<i8> = sums.iter().map(|&s| requantized(s, scale, relu)).collect();
                assert_eq!(i8s(&run(&format!("loop_ws_{kind}{suffix}"), bias, 1, Some(scale))), expected);
            }
        }
    }
    // (I K + K J) 16 rows in half of the scratchpad, I J 16 rows in half of the accumulator.
    let zeros = vec![0u8; 1 << 20];
    let mut stage = Stage::new(isa, oracle, &[&zeros, &zeros], 1 << 20);
    let mut full = |m: i64, n: i64, k: i64| {
        let alpha = [int(m), int(n), int(k), int(k), int(n), int(4 * n)];
        let beta = [operand(0, 0), operand(1, 0), result(0)];
        let fits =
            (m + 15) / 16 * ((n + 15) / 16) <= 32 && ((m + 15) / 16 + (n + 15) / 16) * ((k + 15) / 16) <= 512;
        if fits {
            stage.run("loop_ws_full", &alpha, &beta);
        } else {
            assert!(refused(&stage.fault("loop_ws_full", &alpha, &beta)));
        }
        fits
    };
    assert!(full(32 * 16, 16, 15 * 16));
    assert!(!full(32 * 16 + 1, 16, 16));
    assert!(full(16, 16, 256 * 16));
    assert!(!full(16, 16, 256 * 16 + 1));
    // 3 * 171 tiles, one more than 512.
    assert!(!full(32, 16, 171 * 16));

    let (a, b) = (random_i8(&mut rng, 60), random_i8(&mut rng, 60));
    let (left, right) = (a.little_endian(), b.little_endian());
    for (name, relu) in [("loop_ws_residual_add", false), ("loop_ws_residual_add_relu", true)] {
        let mut stage = Stage::new(isa, oracle, &[&left, &right], 60);
        let alpha = [int(3), int(20), int(20), int(20), int(20), float(0.5)];
        stage.run(name, &alpha, &[operand(0, 0), operand(1, 0), result(0)]);
        let sum = a.iter().zip(&b).map(|(&a, &b)| i32::from(a) + i32::from(b));
        let expected: Vec<i8> = sum.map(|s| requantized(s, 0.5, relu)).collect();
        assert_eq!(i8s(&stage.result()), expected);
    }
}

#[test]
fn gemmini_every_instruction() {
    let isa = load_target("gemmini").unwrap();
    let oracle = Oracle::new(&isa);
    loads(&isa, &oracle);
    stores(&isa, &oracle);
    products(&isa, &oracle);
    assert_all_ran(&isa);
}

#[test]
fn gemmini_plus_every_instruction() {
    let isa = load_target("gemmini_plus").unwrap();
    let oracle = Oracle::new(&isa);
    loads(&isa, &oracle);
    stores(&isa, &oracle);
    products(&isa, &oracle);
    loops(&isa, &oracle);
    assert_all_ran(&isa);
}

/// The RISC-type instructions of both files are the same.
#[test]
fn gemmini_plus_contains_gemmini() {
    let (small, large) = (load_target("gemmini").unwrap(), load_target("gemmini_plus").unwrap());
    for (expected, got) in small.instrs.iter().zip(&large.instrs) {
        assert!(expected == got, "{} is another instruction than {}", got.name, expected.name);
    }
    assert!(large.instrs.len() > small.instrs.len());
    assert_eq!(small.buffers, large.buffers);
}
