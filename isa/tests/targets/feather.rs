//! feather: layouts by explicit index arithmetic. In order mk vector (m, j) of X[M, 16 J] lies in row m J + j, in order km
//! in row j M + m; vector (j, n) of W[16 J, N] in row j N + n (kn) or n J + j (nk), its elements along K.

use crate::stage::{
    LittleEndian, POISON, Stage, assert_all_ran, chip, float, i32s, int, operand, refused, result,
};
use act_hlo::random::SplitMix64;
use act_isa::{FaultKind, Isa, Oracle, load_target};

fn bytes(rng: &mut SplitMix64, n: usize) -> Vec<i8> {
    (0..n).map(|_| rng.next_u64() as i8).collect()
}

fn i8s(bytes: &[u8]) -> Vec<i8> {
    bytes.iter().map(|&b| b as i8).collect()
}

/// Row of vector (outer, inner) when `outer_first`, else of the swapped order.
fn row(outer_first: bool, (a, b): (usize, usize), (na, nb): (usize, usize)) -> usize {
    if outer_first { a * nb + b } else { b * na + a }
}

fn moves(isa: &Isa, oracle: &Oracle<'_>) {
    let memory: Vec<u8> = (0..=255).collect();
    let mut stage = Stage::new(isa, oracle, &[&memory], 200);
    stage.run("load_streaming", &[int(3), int(20)], &[operand(0, 5), chip(1021)]);
    let rows: Vec<u8> = (0..3).flat_map(|r| (0..16).map(move |c| 5 + 20 * r + c)).collect();
    assert_eq!(stage.get("streaming", &[1021], &[3]), rows);
    let fault = stage.fault("load_streaming", &[int(3), int(20)], &[operand(0, 5), chip(1022)]);
    assert!(matches!(fault, FaultKind::OutOfSlots { end: 1025, .. }), "{fault}");
    // Columns of a row-major 16 x 10 matrix.
    stage.run("load_stationary", &[int(4), int(1), int(10)], &[operand(0, 3), chip(0)]);
    let columns: Vec<u8> = (0..4).flat_map(|n| (0..16).map(move |k| 3 + n + 10 * k)).collect();
    assert_eq!(stage.get("stationary", &[0], &[4]), columns);

    assert!(refused(&stage.fault("store_streaming", &[int(2), int(15)], &[chip(1021), result(0)])));
    stage.run("store_streaming", &[int(2), int(18)], &[chip(1021), result(1)]);
    stage.set("output", &[0], &[2], &[-2i32; 32].little_endian());
    stage.run("store_output", &[int(2), int(64)], &[chip(0), result(50)]);
    let mut sums = [0i32; 16];
    sums[..6].copy_from_slice(&[127, 128, -128, -129, i32::MAX, i32::MIN]);
    stage.set("output", &[9], &[1], &sums.little_endian());
    stage.run("store_output_saturated", &[int(1), int(0)], &[chip(9), result(180)]);
    // Halves to the even neighbour, then saturation.
    sums[..8].copy_from_slice(&[1, 3, -1, -3, 253, 255, 256, -300]);
    stage.set("output", &[9], &[1], &sums.little_endian());
    stage.run("quantize", &[int(1), float(0.5)], &[chip(9), chip(7)]);
    assert_eq!(i8s(&stage.get("streaming", &[7], &[1]))[..8], [0, 2, 0, -2, 126, 127, 127, -128]);
    stage.run("relu_streaming", &[int(1)], &[chip(7)]);
    assert_eq!(i8s(&stage.get("streaming", &[7], &[1]))[..8], [0, 2, 0, 0, 126, 127, 127, 0]);
    stage.set("stationary", &[1], &[1], &[-1i8; 16].little_endian());
    stage.run("relu_stationary", &[int(1)], &[chip(1)]);
    assert_eq!(stage.get("stationary", &[1], &[1]), [0; 16]);
    stage.run("clear_output", &[int(2)], &[chip(8)]);
    assert_eq!(i32s(&stage.get("output", &[8], &[2])), [0; 32]);

    let got = stage.result();
    assert_eq!((&got[1..17], &got[19..35]), (&rows[..16], &rows[16..32]));
    assert_eq!(got[17..19], [POISON; 2]);
    assert_eq!(i32s(&got[50..178]), [-2; 32]);
    assert_eq!(i8s(&got[180..186]), [127, 127, -128, -128, 127, -128]);
}

fn products(isa: &Isa, oracle: &Oracle<'_>) {
    let mut rng = SplitMix64::new(41);
    let (m, n, k) = (5usize, 2usize, 3usize);
    let (columns, depth) = (16 * n, 16 * k);
    let (x, w) = (bytes(&mut rng, m * depth), bytes(&mut rng, depth * columns));
    let mut sums = vec![0i32; m * columns];
    for (at, sum) in sums.iter_mut().enumerate() {
        *sum = (0..depth)
            .map(|i| i32::from(x[at / columns * depth + i]) * i32::from(w[i * columns + at % columns]))
            .sum();
    }
    for (x_order, x_first) in [("mk", true), ("km", false)] {
        for (w_order, w_first) in [("kn", true), ("nk", false)] {
            for (o_order, o_first) in [("mn", true), ("nm", false)] {
                let mut streaming = vec![0i8; m * depth];
                for (at, &v) in x.iter().enumerate() {
                    let (r, c) = (at / depth, at % depth);
                    streaming[16 * row(x_first, (r, c / 16), (m, k)) + c % 16] = v;
                }
                let mut stationary = vec![0i8; depth * columns];
                for (at, &v) in w.iter().enumerate() {
                    let (r, c) = (at / columns, at % columns);
                    stationary[16 * row(w_first, (r / 16, c), (k, columns)) + r % 16] = v;
                }
                let mut expected = vec![0i32; m * columns];
                for (at, &v) in sums.iter().enumerate() {
                    let (r, c) = (at / columns, at % columns);
                    expected[16 * row(o_first, (r, c / 16), (m, n)) + c % 16] = v;
                }
                let mut stage = Stage::new(isa, oracle, &[], 0);
                stage.set("streaming", &[3], &[(m * k) as u64], &streaming.little_endian());
                stage.set("stationary", &[8], &[(columns * k) as u64], &stationary.little_endian());
                let name = format!("gemm_{x_order}_{w_order}_{o_order}");
                let alpha = [int(m as i64), int(n as i64), int(k as i64)];
                let beta = [chip(3), chip(8), chip(100)];
                let lens = [(m * n) as u64];
                stage.run(&name, &alpha, &beta);
                assert_eq!(i32s(&stage.get("output", &[100], &lens)), expected, "{name}");
                stage.set("output", &[100], &lens, &vec![i32::MAX; m * columns].little_endian());
                stage.run(&format!("{name}_accumulate"), &alpha, &beta);
                let wrapped: Vec<i32> = expected.iter().map(|e| e.wrapping_add(i32::MAX)).collect();
                assert_eq!(i32s(&stage.get("output", &[100], &lens)), wrapped, "{name}_accumulate");
                // 1024 rows of W at most: n k = 64 blocks of 16.
                assert!(refused(&stage.fault(&name, &[int(1), int(5), int(13)], &beta)));
            }
        }
    }
    // One block: O[m, n] = sum over the lanes of I[m] and W's vector n.
    let (x, w) = (bytes(&mut rng, 48), bytes(&mut rng, 256));
    let dot = |at: usize| -> i32 {
        (0..16).map(|l| i32::from(x[at / 16 * 16 + l]) * i32::from(w[at % 16 * 16 + l])).sum()
    };
    let expected: Vec<i32> = (0..48).map(dot).collect();
    let mut stage = Stage::new(isa, oracle, &[], 0);
    stage.set("streaming", &[0], &[3], &x.little_endian());
    stage.set("stationary", &[0], &[16], &w.little_endian());
    stage.run("gemm_block", &[int(3)], &[chip(0), chip(0), chip(0)]);
    assert_eq!(i32s(&stage.get("output", &[0], &[3])), expected);
    stage.run("gemm_block_accumulate", &[int(3)], &[chip(0), chip(0), chip(0)]);
    let twice: Vec<i32> = expected.iter().map(|e| 2 * e).collect();
    assert_eq!(i32s(&stage.get("output", &[0], &[3])), twice);
}

fn layouts(isa: &Isa, oracle: &Oracle<'_>) {
    let lens = [2usize, 3, 4];
    let x: Vec<i32> = (0..24 * 16).collect();
    for order in [[0usize, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let name: String = order.iter().map(|&d| ["a", "b", "c"][d]).collect();
        let mut stage = Stage::new(isa, oracle, &[], 0);
        stage.set("output", &[0], &[24], &x.little_endian());
        let alpha = lens.map(|l| int(l as i64));
        stage.run(&format!("reorder_output_{name}"), &alpha, &[chip(0), chip(50)]);
        let got = i32s(&stage.get("output", &[50], &[24]));
        for at in 0..24 {
            let index = [at / 12, at / 4 % 3, at % 4];
            let to = (index[order[0]] * lens[order[1]] + index[order[1]]) * lens[order[2]] + index[order[2]];
            assert_eq!(got[16 * to..16 * to + 16], x[16 * at..16 * at + 16], "{name}");
        }
        assert!(refused(&stage.fault(
            &format!("reorder_output_{name}"),
            &[int(11), int(10), int(10)],
            &[chip(0), chip(0)]
        )));
    }
    let (h, w, c) = (3usize, 4, 8);
    let channels_last = bytes(&mut SplitMix64::new(43), h * w * c);
    let mut channels_first = vec![0i8; h * w * c];
    for (at, &v) in channels_last.iter().enumerate() {
        let (y, x, k) = (at / c / w, at / c % w, at % c);
        channels_first[(k * h + y) * w + x] = v;
    }
    let mut stage = Stage::new(isa, oracle, &[], 0);
    stage.set("streaming", &[2], &[6], &channels_last.little_endian());
    let alpha = [h, w, c].map(|l| int(l as i64));
    stage.run("switch_layout_hwc_chw", &alpha, &[chip(2)]);
    assert_eq!(i8s(&stage.get("streaming", &[2], &[6])), channels_first);
    stage.run("switch_layout_chw_hwc", &alpha, &[chip(2)]);
    assert_eq!(i8s(&stage.get("streaming", &[2], &[6])), channels_last);
    // Whole rows only.
    assert!(refused(&stage.fault("switch_layout_hwc_chw", &[int(3), int(3), int(3)], &[chip(2)])));
}

#[test]
fn feather_every_instruction() {
    let isa = load_target("feather").unwrap();
    let oracle = Oracle::new(&isa);
    moves(&isa, &oracle);
    products(&isa, &oracle);
    layouts(&isa, &oracle);
    assert_all_ran(&isa);
}
