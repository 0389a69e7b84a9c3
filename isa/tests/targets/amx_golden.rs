//! The description `amx` against values derived from the SDM's pseudo-code, one or more for each instruction.

use crate::bench::POISON;
use crate::golden::{Golden, check, check_complete, lanes};
use act_isa::{AttrVal, load_target};

/// f32 lanes of a register.
const LANES: usize = 16;

const NAN: u32 = 0x7fc0_0000;
const INF: u32 = 0x7f80_0000;
const MINUS_ZERO: u32 = 0x8000_0000;
const MIN: u32 = 0x8000_0000;
const MAX: u32 = 0x7fff_ffff;
/// The smallest denormal.
const TINY: u32 = 1;
/// A NaN with a payload that signals.
const SIGNALLING: u32 = 0x7f81_2345;

fn f(value: f32) -> u32 {
    value.to_bits()
}

/// s32 as bits.
fn s(value: i32) -> u32 {
    value as u32
}

fn int(value: i64) -> Vec<AttrVal> {
    vec![AttrVal::Int(value)]
}

fn by_lane<const N: usize>(name: &'static str, table: &[[u32; N]]) -> Golden {
    Golden::by_lane(name, &[], LANES, table)
}

/// The same table for the form with registers and the one with the last operand in memory.
fn both_forms<const N: usize>(
    register: &'static str,
    memory: &'static str,
    table: &[[u32; N]],
) -> [Golden; 2] {
    [by_lane(register, table), by_lane(memory, table)]
}

fn tile(byte: impl Fn(usize, usize) -> u8) -> Vec<u8> {
    (0..16).flat_map(|row| (0..64).map(move |at| (row, at))).map(|(row, at)| byte(row, at)).collect()
}

fn tile_of_words(word: impl Fn(usize, usize) -> u32) -> Vec<u8> {
    (0..16)
        .flat_map(|row| (0..16).map(move |at| (row, at)))
        .flat_map(|(m, n)| word(m, n).to_le_bytes())
        .collect()
}

fn tile_of_bf16(value: impl Fn(usize, usize) -> f32) -> Vec<u8> {
    let at = (0..16).flat_map(|row| (0..32).map(move |at| (row, at)));
    at.flat_map(|(row, at)| ((value(row, at).to_bits() >> 16) as u16).to_le_bytes()).collect()
}

fn tiles() -> Vec<Golden> {
    let golden =
        |name, alpha: Vec<AttrVal>, operands: Vec<Vec<u8>>, result| Golden { name, alpha, operands, result };
    let byte = |at: usize| (at * 7 % 251) as u8;
    let strided: Vec<u8> = (0..15 * 70 + 64).map(byte).collect();
    let gapped: Vec<u8> = (0..15 * 70 + 64)
        .map(|at| if at % 70 < 64 { byte(at / 70 * 64 + at % 70) } else { POISON })
        .collect();
    let mut all = vec![
        golden("tilezero", vec![], vec![], vec![0; 1024]),
        // Row i from byte 70 i on; stride 0 repeats the row.
        golden("tileloadd", int(70), vec![strided], tile(|row, at| byte(70 * row + at))),
        golden("tileloadd", int(0), vec![(0..64).map(byte).collect()], tile(|_, at| byte(at))),
        golden("tilestored", int(70), vec![tile(|row, at| byte(64 * row + at))], gapped),
    ];
    // 64 products of bytes 0xff and 0x80, each byte as it is taken: -1 or 255, -128 or 128.
    for (name, product) in
        [("tdpbssd", 128), ("tdpbsud", -128), ("tdpbusd", 255 * -128), ("tdpbuud", 255 * 128)]
    {
        let acc = tile_of_words(|m, _| if m == 3 { MIN } else { 5 });
        let sum = |m| if m == 3 { i32::MIN.wrapping_add(64 * product) } else { 5 + 64 * product };
        let operands = vec![vec![0xff; 1024], vec![0x80; 1024], acc];
        all.push(golden(name, vec![], operands, tile_of_words(|m, _| s(sum(m)))));
        // k = 4 * 3 + 1 of row 2, by byte 4 n + 1 of row 3 for column n.
        let a = tile(|row, at| if (row, at) == (2, 13) { 3 } else { 0 });
        let b = tile(|row, at| if row == 3 && at % 4 == 1 { at as u8 / 4 + 1 } else { 9 });
        let expected = tile_of_words(|m, n| if m == 2 { 3 * (n as u32 + 1) } else { 0 });
        all.push(golden(name, vec![], vec![a, b, vec![0; 1024]], expected));
    }
    // k = 2 * 5 + 1 of row 1, by element 2 n + 1 of row 5 for column n.
    let a = tile_of_bf16(|row, at| if (row, at) == (1, 11) { 1.5 } else { 0.0 });
    let b = tile_of_bf16(|row, at| if row == 5 && at % 2 == 1 { (at / 2) as f32 } else { 2.0 });
    let expected = tile_of_words(|m, n| f(if m == 1 { 1.5 * n as f32 + 0.25 } else { 0.25 }));
    all.push(golden("tdpbf16ps", vec![], vec![a, b, tile_of_words(|_, _| f(0.25))], expected));
    // Row by row: the even and the odd product meet before acc does (2^24 + 1 + 1 would stay 2^24); a denormal acc is 0; -0
    // meets the +0 that the sums begin with; a product below the normal numbers counts in a sum that is normal.
    let two_to_24 = 16_777_216.0;
    let a = tile_of_bf16(|row, at| match (row, at) {
        (0, 0 | 1) => 1.0,
        (3, 0) => 2f32.powi(-64),
        (3, 2) => 2f32.powi(-63),
        _ => 0.0,
    });
    let b = tile_of_bf16(|row, _| [1.0, 2f32.powi(-63)][usize::from(row == 1)]);
    let b_tiny = tile_of_bf16(|_, _| 2f32.powi(-63));
    let acc = tile_of_words(|m, _| match m {
        0 => f(two_to_24),
        1 => TINY,
        2 => MINUS_ZERO,
        _ => 0,
    });
    let expected = tile_of_words(|m, _| match m {
        0 => f(two_to_24 + 2.0),
        3 => f(2f32.powi(-64) + 2f32.powi(-126)),
        _ => 0,
    });
    all.push(golden("tdpbf16ps", vec![], vec![a.clone(), b, acc], expected));
    // 2^-127 is flushed on its own, then 2^-126 stays.
    let expected = tile_of_words(|m, _| match m {
        0 => f(2f32.powi(-62)),
        3 => f(2f32.powi(-126)),
        _ => 0,
    });
    all.push(golden("tdpbf16ps", vec![], vec![a, b_tiny, vec![0; 1024]], expected));
    all
}

fn moves() -> Vec<Golden> {
    let golden =
        |name, alpha: Vec<AttrVal>, operands: Vec<Vec<u8>>, result| Golden { name, alpha, operands, result };
    let words: Vec<u32> = (0..16).map(|k| SIGNALLING + k).collect();
    let register = lanes(&words, LANES);
    let partial: Vec<u8> = register.iter().take(20).copied().chain(vec![0; 44]).collect();
    let splat = |word| lanes(&[word], LANES);
    let f32_value = vec![AttrVal::F32(f(-2.5))];
    let first: Vec<u8> = lanes(&[f(-2.5)], 1).into_iter().chain(vec![0; 60]).collect();
    vec![
        golden("vmovupsz_load", vec![], vec![register.clone()], register.clone()),
        golden("vmovupsz_store", vec![], vec![register.clone()], register.clone()),
        golden("vmovdqu32_load", vec![], vec![register.clone()], register.clone()),
        golden("vmovdqu32_store", vec![], vec![register.clone()], register.clone()),
        golden("vmovupsz_load_lanes", int(5), vec![register[..20].to_vec()], partial),
        golden("vmovupsz_store_lanes", int(5), vec![register.clone()], register[..20].to_vec()),
        golden("vmovaps", vec![], vec![register.clone()], register.clone()),
        golden("vbroadcastssl", vec![], vec![register[..4].to_vec()], splat(words[0])),
        golden("vbroadcastss", vec![], vec![register], splat(words[0])),
        golden("vpxord_zero", vec![], vec![], splat(0)),
        golden("vmovd", f32_value.clone(), vec![], first),
        golden("splat_f32", f32_value, vec![], splat(f(-2.5))),
        golden("splat_s32", int(-7), vec![], splat(s(-7))),
    ]
}

fn arithmetic() -> Vec<Golden> {
    let mut all = Vec::new();
    all.extend(both_forms(
        "vaddps",
        "vaddpsz_mem",
        // 1 + 2^-24 is a tie that goes to the even 1; 1 + 2^-23 + 2^-24 one that goes up.
        &[
            [f(1.0), f(2f32.powi(-24)), f(1.0)],
            [0x3f80_0001, f(2f32.powi(-24)), 0x3f80_0002],
            [INF, f(-1.0), INF],
            [f(1.0), TINY, f(1.0)],
            [TINY, TINY, 0],
            [MINUS_ZERO, MINUS_ZERO, MINUS_ZERO],
            [INF, INF | MINUS_ZERO, NAN],
        ],
    ));
    all.extend(both_forms(
        "vsubps",
        "vsubpsz_mem",
        &[
            [f(1.0), f(2.5), f(-1.5)],
            [f(1.0), f(1.0), 0],
            [0, 0, 0],
            [MINUS_ZERO, 0, MINUS_ZERO],
            [INF, INF, NAN],
        ],
    ));
    all.extend(both_forms(
        "vmulps",
        "vmulpsz_mem",
        // The square of 1 + 2^-23 is 1 + 2^-22 + 2^-46.
        &[
            [0x3f80_0001, 0x3f80_0001, 0x3f80_0002],
            [f(-2.0), 0, MINUS_ZERO],
            [INF, 0, NAN],
            [0x7f7f_ffff, f(2.0), INF],
            [0x0080_0000, f(-0.5), MINUS_ZERO],
        ],
    ));
    all.push(by_lane(
        "vdivps",
        &[[f(1.0), f(3.0), 0x3eaa_aaab], [f(1.0), 0, INF], [0, 0, NAN], [f(-6.0), f(4.0), f(-1.5)]],
    ));
    all.push(by_lane(
        "vsqrtps",
        &[[f(2.0), 0x3fb5_04f3], [f(9.0), f(3.0)], [MINUS_ZERO, MINUS_ZERO], [f(-1.0), NAN], [INF, INF]],
    ));
    let fused = [
        // (1 + 2^-23)^2 - (1 + 2^-22) = 2^-46, which two roundings lose.
        [0x3f80_0001, 0x3f80_0001, f(-1.0) | 2, f(2f32.powi(-46))],
        [f(2.0), f(3.0), f(4.0), f(10.0)],
        [INF, 0, f(1.0), NAN],
    ];
    all.push(by_lane("vfmadd231ps", &fused));
    all.push(by_lane("vfmadd231psz_mem", &fused));
    let maximum = [
        [f(1.0), f(2.0), f(2.0)],
        [f(3.0), f(2.0), f(3.0)],
        [0, MINUS_ZERO, MINUS_ZERO],
        [MINUS_ZERO, 0, 0],
        [SIGNALLING, f(2.0), f(2.0)],
        [f(2.0), SIGNALLING, SIGNALLING],
        [TINY, f(-1.0), 0],
        [f(-1.0), TINY, 0],
    ];
    all.extend(both_forms("vmaxps", "vmaxpsz_mem", &maximum));
    all.push(by_lane(
        "vminps",
        &[
            [f(1.0), f(2.0), f(1.0)],
            [f(3.0), f(2.0), f(2.0)],
            [0, MINUS_ZERO, MINUS_ZERO],
            [MINUS_ZERO, 0, 0],
            [SIGNALLING, f(2.0), f(2.0)],
            [f(2.0), SIGNALLING, SIGNALLING],
            [TINY, f(1.0), 0],
        ],
    ));
    all.push(by_lane(
        "maximum",
        &[
            [f(1.0), f(2.0), f(2.0)],
            [0, MINUS_ZERO, 0],
            [MINUS_ZERO, 0, 0],
            [NAN, f(2.0), NAN],
            [f(2.0), SIGNALLING, NAN],
        ],
    ));
    all.push(by_lane(
        "minimum",
        &[
            [f(1.0), f(2.0), f(1.0)],
            [0, MINUS_ZERO, MINUS_ZERO],
            [MINUS_ZERO, 0, MINUS_ZERO],
            [NAN, f(2.0), NAN],
            [f(2.0), SIGNALLING, NAN],
        ],
    ));
    all.push(by_lane(
        "relu",
        &[[f(-1.0), 0], [f(1.5), f(1.5)], [MINUS_ZERO, 0], [NAN, NAN], [INF | MINUS_ZERO, 0], [TINY, 0]],
    ));
    all.push(by_lane(
        "negate",
        &[
            [f(1.0), f(-1.0)],
            [0, MINUS_ZERO],
            [SIGNALLING, SIGNALLING | MINUS_ZERO],
            [TINY, TINY | MINUS_ZERO],
        ],
    ));
    all.push(by_lane(
        "absolute",
        &[[f(-1.0), f(1.0)], [MINUS_ZERO, 0], [SIGNALLING | MINUS_ZERO, SIGNALLING]],
    ));
    let values = [0.5, 1.5, 2.5, -0.5, -1.5, -0.25, 0.75, 8_388_609.0];
    for (name, results) in [
        ("vrndscaleps_nearest", [0.0, 2.0, 2.0, -0.0, -2.0, -0.0, 1.0, 8_388_609.0]),
        ("vrndscaleps_floor", [0.0, 1.0, 2.0, -1.0, -2.0, -1.0, 0.0, 8_388_609.0]),
        ("vrndscaleps_ceil", [1.0, 2.0, 3.0, -0.0, -1.0, -0.0, 1.0, 8_388_609.0]),
        ("vrndscaleps_trunc", [0.0, 1.0, 2.0, -0.0, -1.0, -0.0, 0.0, 8_388_609.0]),
    ] {
        let table: Vec<[u32; 2]> = values.iter().zip(results).map(|(x, y)| [f(*x), f(y)]).collect();
        all.push(by_lane(name, &table));
    }
    all
}

/// Rows of a matrix 80 bytes apart: element (k, n) is 10 k + n.
fn row_products() -> Vec<Golden> {
    let matrix = |rows: usize| -> Vec<u8> {
        let mut bytes = vec![0xee; 80 * (rows - 1) + 64];
        for k in 0..rows {
            let row: Vec<u32> = (0..LANES).map(|n| f((10 * k + n) as f32)).collect();
            bytes[80 * k..][..64].copy_from_slice(&lanes(&row, LANES));
        }
        bytes
    };
    let words =
        |value: &dyn Fn(usize) -> f32| lanes(&(0..LANES).map(|n| f(value(n))).collect::<Vec<u32>>(), LANES);
    let (one, four) = (lanes(&[f(-2.0)], 1), lanes(&[f(1.0), f(2.0), f(-1.0), f(0.5)], 4));
    // 1 n + 2 (10 + n) - (20 + n) + (30 + n) / 2 = 15 + 2.5 n
    let sum = |n: usize| 15.0 + 2.5 * n as f32;
    let golden = |name, alpha, operands, result| Golden { name, alpha, operands, result };
    let acc = lanes(&[f(100.0)], LANES);
    vec![
        // -2 * 0 is -0, and the sum begins with +0.
        golden("row_times_matrix_1", vec![], vec![one.clone(), matrix(1)], words(&|n| 0.0 - 2.0 * n as f32)),
        golden(
            "row_times_matrix_1_acc",
            vec![],
            vec![one, matrix(1), acc.clone()],
            words(&|n| 100.0 - 2.0 * n as f32),
        ),
        golden("row_times_matrix_4", int(80), vec![four.clone(), matrix(4)], words(&sum)),
        golden("row_times_matrix_4_acc", int(80), vec![four, matrix(4), acc], words(&|n| 100.0 + sum(n))),
    ]
}

fn selections() -> Vec<Golden> {
    let (yes, no) = (SIGNALLING, TINY);
    let pick = |holds: u32| if holds == 1 { yes } else { no };
    let mut all = Vec::new();
    // Less, equal (zeros of both signs), greater, unordered.
    let pairs = [[f(1.0), f(2.0)], [0, MINUS_ZERO], [f(2.0), f(1.0)], [NAN, f(1.0)]];
    for (name, holds) in [
        ("select_eqps", [0, 1, 0, 0]),
        ("select_neqps", [1, 0, 1, 1]),
        ("select_ltps", [1, 0, 0, 0]),
        ("select_leps", [1, 1, 0, 0]),
        ("select_gtps", [0, 0, 1, 0]),
        ("select_geps", [0, 1, 1, 0]),
    ] {
        let row = |(pair, holds): (&[u32; 2], u32)| [pair[0], pair[1], yes, no, pick(holds)];
        all.push(by_lane(name, &pairs.iter().zip(holds).map(row).collect::<Vec<[u32; 5]>>()));
    }
    let pairs = [[s(-1), 1], [MIN, MIN], [MAX, MIN], [5, 4]];
    for (name, holds) in [
        ("select_eqd", [0, 1, 0, 0]),
        ("select_ned", [1, 0, 1, 1]),
        ("select_ltd", [1, 0, 0, 0]),
        ("select_led", [1, 1, 0, 0]),
        ("select_gtd", [0, 0, 1, 1]),
        ("select_ged", [0, 1, 1, 1]),
    ] {
        let row = |(pair, holds): (&[u32; 2], u32)| [pair[0], pair[1], yes, no, pick(holds)];
        all.push(by_lane(name, &pairs.iter().zip(holds).map(row).collect::<Vec<[u32; 5]>>()));
    }
    all
}

fn conversions() -> Vec<Golden> {
    let golden = |name, operands: Vec<Vec<u8>>, result| Golden { name, alpha: vec![], operands, result };
    let below_two_to_31 = f(2_147_483_520.0);
    let mut all = vec![
        // 2^24 + 1 and 2^24 + 3 are ties between multiples of 2.
        by_lane(
            "vcvtdq2ps",
            &[
                [16_777_217, f(16_777_216.0)],
                [16_777_219, f(16_777_220.0)],
                [s(-3), f(-3.0)],
                [MAX, f(2_147_483_648.0)],
                [MIN, f(-2_147_483_648.0)],
            ],
        ),
        by_lane(
            "vcvtps2dq",
            &[
                [f(0.5), 0],
                [f(1.5), 2],
                [f(2.5), 2],
                [f(-2.5), s(-2)],
                [f(-0.75), s(-1)],
                [below_two_to_31, 2_147_483_520],
                [f(2_147_483_648.0), MIN],
                [f(-2_147_483_648.0), MIN],
                [f(-3e9), MIN],
                [NAN, MIN],
                [INF, MIN],
            ],
        ),
        by_lane(
            "vcvttps2dq",
            &[
                [f(0.75), 0],
                [f(-1.75), s(-1)],
                [below_two_to_31, 2_147_483_520],
                [f(2_147_483_648.0), MIN],
                [f(-3e9), MIN],
                [NAN, MIN],
            ],
        ),
        by_lane(
            "convert_f32_s32",
            &[
                [f(0.75), 0],
                [f(-1.75), s(-1)],
                [f(2_147_483_648.0), MAX],
                [f(-3e9), MIN],
                [NAN, 0],
                [INF, MAX],
            ],
        ),
    ];
    let bytes: Vec<u8> = (0..16).map(|k| k * 17).collect();
    let widened = |widen: fn(u8) -> u32| lanes(&bytes.iter().map(|b| widen(*b)).collect::<Vec<u32>>(), LANES);
    all.push(golden("vpmovsxbd_load", vec![bytes.clone()], widened(|b| b as i8 as u32)));
    all.push(golden("vpmovzxbd_load", vec![bytes.clone()], widened(u32::from)));
    let words = lanes(&[0, 127, 128, 255, 256, s(-1), s(-128), s(-129)], LANES);
    for (name, stored) in [
        ("vpmovdb_store", [0, 127, 128, 255, 0, 255, 128, 127]),
        ("vpmovsdb_store", [0, 127, 127, 127, 127, 0xff, 0x80, 0x80]),
        ("vpmovusdb_store", [0, 127, 128, 255, 255, 255, 255, 255]),
    ] {
        all.push(golden(name, vec![words.clone()], [stored, stored].concat()));
    }
    all
}

fn integers() -> Vec<Golden> {
    let mut all = Vec::new();
    all.extend(both_forms("vpaddd", "vpaddd_mem", &[[MAX, 1, MIN], [s(-3), 5, 2]]));
    all.push(by_lane("vpsubd", &[[MIN, 1, MAX], [3, 5, s(-2)]]));
    all.push(by_lane("vpmulld", &[[65_537, 65_537, 131_073], [MIN, s(-1), MIN], [s(-3), 5, s(-15)]]));
    all.push(by_lane("vpminsd", &[[s(-1), 1, s(-1)], [MAX, MIN, MIN]]));
    all.push(by_lane("vpmaxsd", &[[s(-1), 1, 1], [MAX, MIN, MAX]]));
    all.push(by_lane("vpabsd", &[[s(-7), 7], [7, 7], [MIN, MIN]]));
    let (x, y) = (0xff00_f0f0, 0x0ff0_ff00);
    all.push(by_lane("vpandd", &[[x, y, 0x0f00_f000]]));
    all.push(by_lane("vpord", &[[x, y, 0xfff0_fff0]]));
    all.push(by_lane("vpxord", &[[x, y, 0xf0f0_0ff0]]));
    all.push(by_lane("vpsllvd", &[[3, 4, 48], [1, 31, MIN], [1, 32, 0], [1, s(-1), 0]]));
    all.push(by_lane("vpsrlvd", &[[MIN, 4, 0x0800_0000], [MIN, 31, 1], [MIN, 32, 0]]));
    all.push(by_lane("vpsravd", &[[MIN, 4, 0xf800_0000], [MIN, 32, s(-1)], [MAX, 40, 0]]));
    for (name, table) in [
        ("vpslld", [[3, 0x30], [MIN | 1, 0x10]]),
        ("vpsrld", [[0x35, 3], [MIN, 0x0800_0000]]),
        ("vpsrad", [[0x35, 3], [MIN, 0xf800_0000]]),
    ] {
        all.push(Golden::by_lane(name, &int(4), LANES, &table));
    }
    all
}

fn all() -> Vec<Golden> {
    [tiles(), moves(), arithmetic(), row_products(), selections(), conversions(), integers()]
        .into_iter()
        .flatten()
        .collect()
}

#[test]
fn values_are_those_of_the_manual() {
    check(&load_target("amx").unwrap(), &all());
}

#[test]
fn every_instruction_has_a_value() {
    check_complete(&load_target("amx").unwrap(), &all());
}
