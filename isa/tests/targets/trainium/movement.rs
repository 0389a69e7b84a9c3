//! DMA, products, transpositions, copies with casts, and where tiles may start.

use super::{F, LENS, LittleEndian, P, Stage, chip, f32s, i32s, int, over_tiles};
use crate::stage::{POISON, operand, refused, result};
use act_hlo::random::SplitMix64;
use act_isa::{FaultKind, Isa, Oracle};
use half::{bf16, f16};

const TYPES: [(&str, usize); 5] = [("f32", 4), ("bf16", 2), ("f16", 2), ("s32", 4), ("s8", 1)];

pub(super) fn dma(isa: &Isa, oracle: &Oracle<'_>) {
    let memory: Vec<u8> = (0..4096).map(|at| (at * 37 % 251) as u8).collect();
    let lens = [3u64, 5];
    for (elem, width) in TYPES {
        let buffer = format!("sbuf_{elem}");
        let w = width as i64;
        // What lies at (p, f) for byte steps between partitions and elements from byte 8 on.
        let gathered = |step_p: usize, step_f: usize| -> Vec<u8> {
            let at = (0..3).flat_map(|p| (0..5).map(move |f| 8 + p * step_p + f * step_f));
            at.flat_map(|start| memory[start..start + width].to_vec()).collect()
        };
        // The DMA addresses bytes: any partition will do.
        let mut stage = Stage::new(isa, oracle, &[&memory], 256);
        let place = [chip(77), chip(11)];
        let to = |place: &[act_isa::BetaVal]| [&[operand(0, 8)], place].concat();
        let name = format!("dma_load_{elem}");
        for stride in [0, 5 * w, 100] {
            stage.run(&name, &[int(3), int(5), int(stride)], &to(&place));
            assert_eq!(stage.get(&buffer, &[77, 11], &lens), gathered(stride as usize, width), "{name}");
        }
        let fault = stage.fault(&name, &[int(3), int(5), int(0)], &to(&[chip(126), chip(0)]));
        assert!(matches!(fault, FaultKind::OutOfSlots { dim: 0, end: 129, .. }), "{fault}");
        assert!(refused(&stage.fault(&name, &[int(129), int(5), int(0)], &to(&[chip(0), chip(0)]))));
        let pattern = format!("dma_load_pattern_{elem}");
        for (step_p, step_f) in [(w, 9 * w), (40, 0), (0, 3 * w)] {
            stage.run(&pattern, &[int(3), int(5), int(step_p), int(step_f)], &to(&place));
            let expected = gathered(step_p as usize, step_f as usize);
            assert_eq!(stage.get(&buffer, &[77, 11], &lens), expected, "{pattern}");
        }
        // Access patterns count elements.
        let odd = [&[operand(0, 9)], place.as_slice()].concat();
        for (name, alpha, beta) in [
            (&name, vec![3, 5, 100], &odd),
            (&name, vec![3, 5, 5 * w + 1], &to(&place)),
            (&pattern, vec![3, 5, 40, 0], &odd),
            (&pattern, vec![3, 5, 41, 0], &to(&place)),
            (&pattern, vec![3, 5, 0, 3 * w + 1], &to(&place)),
        ] {
            let alpha: Vec<act_isa::AttrVal> = alpha.into_iter().map(int).collect();
            if w == 1 {
                stage.run(name, &alpha, beta);
            } else {
                assert!(refused(&stage.fault(name, &alpha, beta)), "{name} {alpha:?}");
            }
        }
        if width == 2 {
            // Row f of memory is column f of the tile.
            let name = format!("dma_load_transpose_{elem}");
            stage.run(&name, &[int(3), int(5), int(60)], &to(&place));
            assert_eq!(stage.get(&buffer, &[77, 11], &lens), gathered(2, 60), "{name}");
        }

        let scattered = |name: &str, alpha: &[i64], step_p: usize, step_f: usize| {
            let mut stage = Stage::new(isa, oracle, &[], 256);
            let values = &memory[..15 * width];
            stage.set(&buffer, &[77, 11], &lens, values);
            let alpha: Vec<act_isa::AttrVal> = alpha.iter().map(|&a| int(a)).collect();
            stage.run(name, &alpha, &[chip(77), chip(11), result(4)]);
            let mut expected = vec![POISON; 256];
            for (at, value) in values.chunks(width).enumerate() {
                let start = 4 + at / 5 * step_p + at % 5 * step_f;
                expected[start..start + width].copy_from_slice(value);
            }
            assert_eq!(stage.result(), expected, "{name}");
        };
        let store = format!("dma_store_{elem}");
        scattered(&store, &[3, 5, 8 * w], 8 * width, width);
        let store_pattern = format!("dma_store_pattern_{elem}");
        scattered(&store_pattern, &[3, 5, w, 4 * w], width, 4 * width);
        let mut stage = Stage::new(isa, oracle, &[], 256);
        stage.set(&buffer, &[0, 0], &lens, &memory[..15 * width]);
        let beta = [chip(0), chip(0), result(0)];
        assert!(refused(&stage.fault(&store, &[int(3), int(5), int(4 * w)], &beta)));
        if w > 1 {
            let odd = [chip(0), chip(0), result(1)];
            assert!(refused(&stage.fault(&store, &[int(3), int(5), int(5 * w)], &odd)));
            assert!(refused(&stage.fault(&store, &[int(3), int(5), int(5 * w + 1)], &beta)));
            assert!(refused(&stage.fault(&store_pattern, &[int(3), int(5), int(w), int(4 * w)], &odd)));
            assert!(refused(&stage.fault(&store_pattern, &[int(3), int(5), int(w), int(4 * w + 1)], &beta)));
        }
        assert!(refused(&stage.fault(&store_pattern, &[int(3), int(5), int(w), int(2 * w)], &beta)));
    }
}

/// Small integers as f32: exact in every type, and so are their products' sums.
fn small(rng: &mut SplitMix64, n: usize) -> Vec<f32> {
    (0..n).map(|_| rng.below(17) as f32 - 8.0).collect()
}

fn encoded(elem: &str, values: &[f32]) -> Vec<u8> {
    match elem {
        "f32" => values.little_endian(),
        "bf16" => values.iter().map(|&v| bf16::from_f32(v)).collect::<Vec<bf16>>().little_endian(),
        _ => values.iter().map(|&v| f16::from_f32(v)).collect::<Vec<f16>>().little_endian(),
    }
}

pub(super) fn products(isa: &Isa, oracle: &Oracle<'_>) {
    let mut rng = SplitMix64::new(3);
    for elem in ["f32", "bf16", "f16"] {
        let buffer = format!("sbuf_{elem}");
        for (k, m, n) in [(128usize, 3usize, 512usize), (1, 128, 1), (33, 40, 7)] {
            let (s, v) = (small(&mut rng, k * m), small(&mut rng, k * n));
            // stationary.T @ moving
            let expected: Vec<f32> =
                (0..m * n).map(|at| (0..k).map(|i| s[i * m + at / n] * v[i * n + at % n]).sum()).collect();
            let (uk, um, un) = (k as u64, m as u64, n as u64);
            let mut stage = Stage::new(isa, oracle, &[], 0);
            stage.set(&buffer, &[0, 0], &[uk, um], &encoded(elem, &s));
            stage.set(&buffer, &[0, 600], &[uk, un], &encoded(elem, &v));
            let alpha = [int(k as i64), int(m as i64), int(n as i64)];
            let beta = [chip(0), chip(0), chip(0), chip(600), chip(0), chip(1024)];
            stage.run(&format!("nc_matmul_{elem}"), &alpha, &beta);
            assert_eq!(f32s(&stage.get("psum", &[0, 1024], &[um, un])), expected);
            stage.run(&format!("nc_matmul_acc_{elem}"), &alpha, &beta);
            let twice: Vec<f32> = expected.iter().map(|e| 2.0 * e).collect();
            assert_eq!(f32s(&stage.get("psum", &[0, 1024], &[um, un])), twice);
        }
    }
    // Sums are f32: 1 + 2^-12 is lost in bf16 and f16 and kept here.
    let mut stage = Stage::new(isa, oracle, &[], 0);
    stage.set("sbuf_bf16", &[0, 0], &[2, 1], &encoded("bf16", &[1.0, 1.0]));
    stage.set("sbuf_bf16", &[0, 9], &[2, 1], &encoded("bf16", &[1.0, 2f32.powi(-12)]));
    let beta = [chip(0), chip(0), chip(0), chip(9), chip(0), chip(0)];
    stage.run("nc_matmul_bf16", &[int(2), int(1), int(1)], &beta);
    assert_eq!(f32s(&stage.get("psum", &[0, 0], &[1, 1])), [1.0 + 2f32.powi(-12)]);

    // A result lies in one bank of 512 values; limits of the tiles.
    stage.set("sbuf_bf16", &[0, 1024], &[1, 512], &encoded("bf16", &[1.0; 512]));
    let mut product = |m: i64, n: i64, column: i64| {
        let beta = [chip(0), chip(1024), chip(0), chip(1024), chip(0), chip(column)];
        let alpha = [int(1), int(m), int(n)];
        match (0..=4096 - n).contains(&column) && column % 512 + n <= 512 && m <= 128 && n <= 512 {
            true => stage.run("nc_matmul_bf16", &alpha, &beta),
            false => assert!(refused(&stage.fault("nc_matmul_bf16", &alpha, &beta)), "{m} {n} {column}"),
        }
    };
    for (m, n, column) in [(1, 512, 512), (1, 256, 256), (128, 1, 511), (1, 512, 3584)] {
        product(m, n, column);
    }
    for (m, n, column) in [(1, 256, 257), (1, 512, 1), (1, 2, 1023), (129, 1, 0), (1, 513, 0)] {
        product(m, n, column);
    }
}

pub(super) fn transpositions(isa: &Isa, oracle: &Oracle<'_>) {
    let mut rng = SplitMix64::new(4);
    let sources = [("f32", "sbuf_f32"), ("bf16", "sbuf_bf16"), ("f16", "sbuf_f16")];
    for (elem, buffer) in sources {
        let x = small(&mut rng, P * 40);
        let mut stage = Stage::new(isa, oracle, &[], 0);
        stage.set(buffer, &[64, 3], &[P as u64, 40], &encoded(elem, &x));
        let alpha = [int(P as i64), int(40)];
        stage.run(&format!("nc_transpose_{elem}"), &alpha, &[chip(64), chip(3), chip(64), chip(470)]);
        let got = f32s(&stage.get("psum", &[64, 470], &[40, P as u64]));
        got.iter().enumerate().for_each(|(at, &v)| assert_eq!(v, x[at % P * 40 + at / P]));
        // 33 columns from 480 on would cross the bank.
        let fault =
            stage.fault(&format!("nc_transpose_{elem}"), &alpha, &[chip(64), chip(3), chip(64), chip(480)]);
        assert!(refused(&fault));
    }
    for (name, buffer) in [("nc_transpose_vector_f32", "sbuf_f32"), ("nc_transpose_vector_psum_f32", "psum")]
    {
        let x = small(&mut rng, 32 * 5);
        let mut stage = Stage::new(isa, oracle, &[], 0);
        stage.set(buffer, &[96, 3], &[32, 5], &x.little_endian());
        stage.run(name, &[int(32), int(5)], &[chip(96), chip(3), chip(32), chip(64)]);
        let got = f32s(&stage.get("sbuf_f32", &[32, 64], &[5, 32]));
        got.iter().enumerate().for_each(|(at, &v)| assert_eq!(v, x[at % 32 * 5 + at / 32]));
        assert!(refused(&stage.fault(name, &[int(33), int(5)], &[chip(0), chip(3), chip(0), chip(64)])));
    }
}

pub(super) fn copies(isa: &Isa, oracle: &Oracle<'_>) {
    let copy = |name: &str, from: &str, bytes: &[u8], to: &str| {
        over_tiles(isa, oracle, name, &[], &[(from, LENS, bytes)], (to, LENS))
    };
    let mut rng = SplitMix64::new(5);
    let mut x = super::floats(&mut rng, P * F);
    // Ties: 1 + 2^-8 lies between the bf16 1 and 1 + 2^-7, 1 + 2^-11 between the f16 1 and 1 + 2^-10; both to even, and
    // three halves of a step to the even one above. What is too large becomes an infinity.
    x[..6].copy_from_slice(&[
        1.0 + 2f32.powi(-8),
        1.0 + 3.0 * 2f32.powi(-8),
        1.0 + 2f32.powi(-11),
        1.0 + 3.0 * 2f32.powi(-11),
        65520.0,
        3.4e38,
    ]);
    let bytes = x.little_endian();
    for (name, from, to) in [
        ("tensor_copy_psum_f32", "psum", "sbuf_f32"),
        ("tensor_copy_f32_psum", "sbuf_f32", "psum"),
        ("tensor_copy_f32", "sbuf_f32", "sbuf_f32"),
    ] {
        assert_eq!(copy(name, from, &bytes, to), bytes, "{name}");
    }
    let halves =
        |bytes: &[u8]| -> Vec<u16> { bytes.chunks(2).map(|b| u16::from_le_bytes([b[0], b[1]])).collect() };
    for (name, from) in [("tensor_copy_psum_bf16", "psum"), ("tensor_copy_f32_bf16", "sbuf_f32")] {
        let got = halves(&copy(name, from, &bytes, "sbuf_bf16"));
        assert_eq!((got[0], got[1], got[5]), (0x3f80, 0x3f82, 0x7f80), "{name}");
        for (got, x) in got.iter().zip(&x).filter(|(_, x)| !x.is_nan()) {
            assert_eq!(*got, bf16::from_f32(*x).to_bits(), "{name} {x}");
        }
    }
    for (name, from) in [("tensor_copy_psum_f16", "psum"), ("tensor_copy_f32_f16", "sbuf_f32")] {
        let got = halves(&copy(name, from, &bytes, "sbuf_f16"));
        assert_eq!((got[2], got[3], got[4]), (0x3c00, 0x3c02, 0x7c00), "{name}");
        for (got, x) in got.iter().zip(&x).filter(|(_, x)| !x.is_nan()) {
            assert_eq!(*got, f16::from_f32(*x).to_bits(), "{name} {x}");
        }
    }
    let narrow: Vec<bf16> = x.iter().map(|&v| bf16::from_f32(v)).collect();
    assert_eq!(
        copy("tensor_copy_bf16", "sbuf_bf16", &narrow.little_endian(), "sbuf_bf16"),
        narrow.little_endian()
    );
    let wide: Vec<f32> = narrow.iter().map(|v| v.to_f32()).collect();
    let got = f32s(&copy("tensor_copy_bf16_f32", "sbuf_bf16", &narrow.little_endian(), "sbuf_f32"));
    super::assert_same("tensor_copy_bf16_f32", &got, &wide);
    let narrow: Vec<f16> = x.iter().map(|&v| f16::from_f32(v)).collect();
    let wide: Vec<f32> = narrow.iter().map(|v| v.to_f32()).collect();
    let got = f32s(&copy("tensor_copy_f16_f32", "sbuf_f16", &narrow.little_endian(), "sbuf_f32"));
    super::assert_same("tensor_copy_f16_f32", &got, &wide);

    let mut ints = super::words(&mut rng, P * F);
    // 2^24 + 1 is a tie between f32 neighbours.
    ints[..3].copy_from_slice(&[(1 << 24) + 1, i32::MIN, i32::MAX]);
    let got = f32s(&copy("tensor_copy_s32_f32", "sbuf_s32", &ints.little_endian(), "sbuf_f32"));
    assert_eq!(got[..3], [16_777_216.0, -2_147_483_648.0, 2_147_483_648.0]);
    assert_eq!(got, ints.iter().map(|&v| v as f32).collect::<Vec<f32>>());
    let bytes = ints.little_endian();
    assert_eq!(copy("tensor_copy_s32", "sbuf_s32", &bytes, "sbuf_s32"), bytes);
    let small: Vec<i8> = ints.iter().map(|&v| v as i8).collect();
    let got = f32s(&copy("tensor_copy_s8_f32", "sbuf_s8", &small.little_endian(), "sbuf_f32"));
    assert_eq!(got, small.iter().map(|&v| f32::from(v)).collect::<Vec<f32>>());
    let got = i32s(&copy("tensor_copy_s8_s32", "sbuf_s8", &small.little_endian(), "sbuf_s32"));
    assert_eq!(got, small.iter().map(|&v| i32::from(v)).collect::<Vec<i32>>());
}

/// Up to 32 partitions start at 0, 32, 64 or 96, up to 64 at 0 or 64, more at 0.
pub(super) fn starts(isa: &Isa, oracle: &Oracle<'_>) {
    let mut stage = Stage::new(isa, oracle, &[], 0);
    stage.set("sbuf_f32", &[0, 0], &[128, 1], &vec![0.5f32; 128].little_endian());
    for p in [1i64, 32, 33, 64, 65, 128] {
        for start in [0i64, 1, 16, 31, 32, 64, 95, 96, 127] {
            let allowed = match p {
                1..=32 => [0, 32, 64, 96].contains(&start),
                33..=64 => [0, 64].contains(&start),
                _ => start == 0,
            };
            for (from, to) in [(start, 0), (0, start)] {
                let beta = [chip(from), chip(0), chip(to), chip(9)];
                let alpha = [int(p), int(1)];
                if allowed {
                    stage.run("activation_abs", &alpha, &beta);
                } else {
                    let fault = stage.fault("activation_abs", &alpha, &beta);
                    assert!(
                        refused(&fault) || matches!(fault, FaultKind::OutOfSlots { .. }),
                        "{p} {start}: {fault}"
                    );
                }
            }
        }
    }
    // Columns end with the partition.
    let beta = [chip(0), chip(0), chip(0), chip(24576)];
    let fault = stage.fault("activation_abs", &[int(1), int(1)], &beta);
    assert!(matches!(fault, FaultKind::OutOfSlots { dim: 1, end: 24577, .. }), "{fault}");
}
