//! Elementwise instructions, reductions, functions, masks and constants.

use super::{
    F, LENS, LittleEndian, P, Stage, assert_same, chip, f32s, floats, i32s, int, over_tiles, places, words,
};
use crate::stage::{float, refused};
use act_hlo::random::SplitMix64;
use act_isa::{Isa, Oracle};
use half::{bf16, f16};

const COLUMN: [u64; 2] = [P as u64, 1];

/// Maximum and minimum as IEEE 754-2019 defines them: NaN if either is, -0 below 0.
fn maximum(a: f32, b: f32) -> f32 {
    match () {
        () if a.is_nan() || b.is_nan() => f32::NAN,
        () if a == b => f32::from_bits(a.to_bits() & b.to_bits()),
        () => a.max(b),
    }
}

fn minimum(a: f32, b: f32) -> f32 {
    -maximum(-a, -b)
}

type Binary = fn(f32, f32) -> f32;
const BINARY: [(&str, Binary); 6] = [
    ("add", |a, b| a + b),
    ("subtract", |a, b| a - b),
    ("multiply", |a, b| a * b),
    ("divide", |a, b| a / b),
    ("max", maximum),
    ("min", minimum),
];

pub(super) fn floats_of_two(isa: &Isa, oracle: &Oracle<'_>) {
    let mut rng = SplitMix64::new(21);
    let (a, b) = (floats(&mut rng, P * F), floats(&mut rng, P * F));
    for (op, f) in BINARY {
        let expected: Vec<f32> = a.iter().zip(&b).map(|(&a, &b)| f(a, b)).collect();
        let (x, y) = (a.little_endian(), b.little_endian());
        let run = |name: &str, first: &str| {
            let operands = [(first, LENS, &x[..]), ("sbuf_f32", LENS, &y[..])];
            f32s(&over_tiles(isa, oracle, name, &[], &operands, ("sbuf_f32", LENS)))
        };
        let name = format!("tensor_tensor_{op}_f32");
        assert_same(&name, &run(&name, "sbuf_f32"), &expected);
        if op != "divide" {
            let name = format!("tensor_tensor_{op}_psum");
            assert_same(&name, &run(&name, "psum"), &expected);
        }
        // In f32, then rounded to the narrow type.
        let name = format!("tensor_tensor_{op}_bf16");
        let narrow = |v: &[f32]| v.iter().map(|&v| bf16::from_f32(v)).collect::<Vec<bf16>>();
        let (na, nb) = (narrow(&a), narrow(&b));
        let (x, y) = (na.little_endian(), nb.little_endian());
        let operands = [("sbuf_bf16", LENS, &x[..]), ("sbuf_bf16", LENS, &y[..])];
        let got = over_tiles(isa, oracle, &name, &[], &operands, ("sbuf_bf16", LENS));
        let got: Vec<f32> = got.chunks(2).map(|b| bf16::from_le_bytes([b[0], b[1]]).to_f32()).collect();
        let expected: Vec<f32> =
            na.iter().zip(&nb).map(|(a, b)| bf16::from_f32(f(a.to_f32(), b.to_f32())).to_f32()).collect();
        assert_same(&name, &got, &expected);
        let name = format!("tensor_tensor_{op}_f16");
        let narrow = |v: &[f32]| v.iter().map(|&v| f16::from_f32(v)).collect::<Vec<f16>>();
        let (na, nb) = (narrow(&a), narrow(&b));
        let (x, y) = (na.little_endian(), nb.little_endian());
        let operands = [("sbuf_f16", LENS, &x[..]), ("sbuf_f16", LENS, &y[..])];
        let got = over_tiles(isa, oracle, &name, &[], &operands, ("sbuf_f16", LENS));
        let got: Vec<f32> = got.chunks(2).map(|b| f16::from_le_bytes([b[0], b[1]]).to_f32()).collect();
        let expected: Vec<f32> =
            na.iter().zip(&nb).map(|(a, b)| f16::from_f32(f(a.to_f32(), b.to_f32())).to_f32()).collect();
        assert_same(&name, &got, &expected);
    }
}

pub(super) fn integers(isa: &Isa, oracle: &Oracle<'_>) {
    let mut rng = SplitMix64::new(22);
    let (mut a, mut b) = (words(&mut rng, P * F), words(&mut rng, P * F));
    // Exact in 32 bits, where f32 would round; sums and products that wrap.
    a[..3].copy_from_slice(&[(1 << 24) + 1, i32::MAX, i32::MIN]);
    b[..3].copy_from_slice(&[2, 1, -1]);
    let counts: Vec<i32> = b.iter().map(|b| b & 31).collect();
    type Op = fn(i32, i32) -> i32;
    let ops: [(&str, Op, bool); 11] = [
        ("add", i32::wrapping_add, false),
        ("subtract", i32::wrapping_sub, false),
        ("multiply", i32::wrapping_mul, false),
        ("max", |a, b| if a > b { a } else { b }, false),
        ("min", |a, b| if a < b { a } else { b }, false),
        ("bitwise_and", |a, b| a & b, false),
        ("bitwise_or", |a, b| a | b, false),
        ("bitwise_xor", |a, b| a ^ b, false),
        ("logical_shift_left", |a, b| a << b, true),
        ("logical_shift_right", |a, b| ((a as u32) >> b) as i32, true),
        ("arithmetic_shift_right", |a, b| a >> b, true),
    ];
    for (op, f, shift) in ops {
        let name = format!("tensor_tensor_{op}_s32");
        let second = if shift { &counts } else { &b };
        let (x, y) = (a.little_endian(), second.little_endian());
        let operands = [("sbuf_s32", LENS, &x[..]), ("sbuf_s32", LENS, &y[..])];
        let got = i32s(&over_tiles(isa, oracle, &name, &[], &operands, ("sbuf_s32", LENS)));
        let expected: Vec<i32> = a.iter().zip(second).map(|(&a, &b)| f(a, b)).collect();
        assert_eq!(got, expected, "{name}");
    }
}

pub(super) fn scalars(isa: &Isa, oracle: &Oracle<'_>) {
    let mut rng = SplitMix64::new(23);
    let (x, z) = (floats(&mut rng, P * F), floats(&mut rng, P * F));
    let (xs, zs) = (x.little_endian(), z.little_endian());
    let columns = floats(&mut rng, P);
    let column_bytes = columns.little_endian();
    for (op, f) in BINARY {
        let reversed: Binary = match op {
            "subtract" => |a, b| b - a,
            "divide" => |a, b| b / a,
            _ => f,
        };
        for (name, f) in [(op.to_owned(), f), (format!("reverse_{op}"), reversed)] {
            if name.starts_with("reverse_") && !matches!(op, "subtract" | "divide") {
                continue;
            }
            let immediate = format!("tensor_scalar_{name}_immediate");
            let operands = [("sbuf_f32", LENS, &xs[..])];
            let got =
                f32s(&over_tiles(isa, oracle, &immediate, &[float(-2.5)], &operands, ("sbuf_f32", LENS)));
            let expected: Vec<f32> = x.iter().map(|&x| f(x, -2.5)).collect();
            assert_same(&immediate, &got, &expected);
            let column = format!("tensor_scalar_{name}_column");
            let operands = [("sbuf_f32", LENS, &xs[..]), ("sbuf_f32", COLUMN, &column_bytes[..])];
            let got = f32s(&over_tiles(isa, oracle, &column, &[], &operands, ("sbuf_f32", LENS)));
            let expected: Vec<f32> = x.iter().enumerate().map(|(at, &x)| f(x, columns[at / F])).collect();
            assert_same(&column, &got, &expected);
        }
    }
    let operands = [("sbuf_f32", LENS, &xs[..])];
    let name = "tensor_scalar_multiply_add";
    let got = f32s(&over_tiles(isa, oracle, name, &[float(1.5), float(-3.0)], &operands, ("sbuf_f32", LENS)));
    assert_same(name, &got, &x.iter().map(|&x| x * 1.5 + -3.0).collect::<Vec<f32>>());
    let of = |op: &str| BINARY.iter().find(|(n, _)| *n == op).unwrap().1;
    for (first, second) in [
        ("multiply", "add"),
        ("multiply", "subtract"),
        ("multiply", "max"),
        ("add", "subtract"),
        ("add", "multiply"),
        ("add", "max"),
    ] {
        let name = format!("scalar_tensor_tensor_{first}_{second}");
        let operands = [("sbuf_f32", LENS, &xs[..]), ("sbuf_f32", LENS, &zs[..])];
        let got = f32s(&over_tiles(isa, oracle, &name, &[float(0.75)], &operands, ("sbuf_f32", LENS)));
        let (f, g) = (of(first), of(second));
        let expected: Vec<f32> = x.iter().zip(&z).map(|(&x, &z)| g(f(x, 0.75), z)).collect();
        assert_same(&name, &got, &expected);
    }
    let operands = [("sbuf_f32", LENS, &xs[..])];
    let got = f32s(&over_tiles(isa, oracle, "reciprocal", &[], &operands, ("sbuf_f32", LENS)));
    assert_same("reciprocal", &got, &x.iter().map(|&x| 1.0 / x).collect::<Vec<f32>>());
}

pub(super) fn reductions(isa: &Isa, oracle: &Oracle<'_>) {
    // Far from every initial value, on both sides, and small: every order of summation is exact.
    for middle in [-100.0, 0.0, 100.0] {
        reductions_about(isa, oracle, middle);
    }
}

fn reductions_about(isa: &Isa, oracle: &Oracle<'_>, middle: f32) {
    let x: Vec<f32> = (0..P * F).map(|at| middle + ((at * 11) % 13) as f32 - 6.0).collect();
    let bytes = x.little_endian();
    type Fold = fn(f32, f32) -> f32;
    let folds: [(&str, f32, Fold, f32); 5] = [
        ("add", 0.0, |a, b| a + b, 1.0),
        ("max", f32::NEG_INFINITY, f32::max, 1.0),
        ("min", f32::INFINITY, f32::min, 1.0),
        ("multiply", 1.0, |a, b| a * b, 1.0),
        ("add_negate", 0.0, |a, b| a + b, -1.0),
    ];
    for (op, init, fold, sign) in folds {
        let name = format!("tensor_reduce_{op}");
        let operands = [("sbuf_f32", LENS, &bytes[..])];
        let got = f32s(&over_tiles(isa, oracle, &name, &[], &operands, ("sbuf_f32", COLUMN)));
        let expected: Vec<f32> =
            x.chunks(F).map(|row| sign * row.iter().fold(init, |a, &b| fold(a, b))).collect();
        assert_same(&name, &got, &expected);
    }
    for (op, init, fold, _) in &folds[..2] {
        let name = format!("tensor_partition_reduce_{op}");
        let operands = [("sbuf_f32", LENS, &bytes[..])];
        let got = f32s(&over_tiles(isa, oracle, &name, &[], &operands, ("sbuf_f32", [1, F as u64])));
        let expected: Vec<f32> = (0..F).map(|f| (0..P).fold(*init, |a, p| fold(a, x[p * F + f]))).collect();
        assert_same(&name, &got, &expected);
    }
}

/// Within a few units of the last place of f32.
fn assert_near(name: &str, got: &[f32], expected: &[f64]) {
    for (at, (g, e)) in got.iter().zip(expected).enumerate() {
        let error = (f64::from(*g) - e).abs();
        assert!(error <= 1e-6 * e.abs() + 1e-12, "{name}, element {at}: {g}, expected {e}");
    }
}

pub(super) fn activations(isa: &Isa, oracle: &Oracle<'_>) {
    let mut rng = SplitMix64::new(25);
    let positive: Vec<f32> = (0..P * F).map(|_| (1 + rng.below(900)) as f32 / 128.0).collect();
    let any: Vec<f32> = positive.iter().map(|&x| if rng.below(2) == 0 { x } else { -x }).collect();
    let run = |name: &str, x: &[f32]| {
        let bytes = x.little_endian();
        f32s(&over_tiles(isa, oracle, name, &[], &[("sbuf_f32", LENS, &bytes[..])], ("sbuf_f32", LENS)))
    };
    type Function = fn(f64) -> f64;
    let functions: [(&str, bool, Function); 7] = [
        ("exp", false, f64::exp),
        ("log", true, f64::ln),
        ("sqrt", true, f64::sqrt),
        ("rsqrt", true, |x| 1.0 / x.sqrt()),
        ("tanh", false, f64::tanh),
        ("sigmoid", false, |x| 1.0 / (1.0 + (-x).exp())),
        ("sin", false, f64::sin),
    ];
    for (op, needs_positive, f) in functions {
        let x = if needs_positive { &positive } else { &any };
        let name = format!("activation_{op}");
        let expected: Vec<f64> = x.iter().map(|&x| f(f64::from(x))).collect();
        assert_near(&name, &run(&name, x), &expected);
        if op == "sin" {
            continue;
        }
        // f(x * 0.5 + bias), the product and the sum rounded to f32.
        let bias: Vec<f32> = (0..P).map(|p| p as f32 / 64.0).collect();
        let name = format!("activation_{op}_scale_bias");
        let (xs, bs) = (x.little_endian(), bias.little_endian());
        let operands = [("sbuf_f32", LENS, &xs[..]), ("sbuf_f32", COLUMN, &bs[..])];
        let got = f32s(&over_tiles(isa, oracle, &name, &[float(0.5)], &operands, ("sbuf_f32", LENS)));
        let expected: Vec<f64> =
            x.iter().enumerate().map(|(at, &x)| f(f64::from(x * 0.5 + bias[at / F]))).collect();
        assert_near(&name, &got, &expected);
    }
    // Abramowitz and Stegun, table 7.1.
    let mut x = vec![0f32; P * F];
    x[..4].copy_from_slice(&[0.5, 1.0, -2.0, 0.1]);
    let erf = run("activation_erf", &x);
    assert_near("erf", &erf[..3], &[0.520_499_877_8, 0.842_700_792_9, -0.995_322_265_0]);
    assert!((erf[3] - 0.112_462_916).abs() < 1e-7 && erf[4] == 0.0);

    let x = floats(&mut rng, P * F);
    let of = |f: fn(f32) -> f32| x.iter().map(|&x| f(x)).collect::<Vec<f32>>();
    assert_same("abs", &run("activation_abs", &x), &of(f32::abs));
    let sign = |x: f32| if x == 0.0 || x.is_nan() { x } else { 1f32.copysign(x) };
    assert_same("sign", &run("activation_sign", &x), &of(sign));
    assert_same("square", &run("activation_square", &x), &of(|x| x * x));
    assert_same("relu", &run("activation_relu", &x), &of(|x| maximum(x, 0.0)));
    let bytes = x.little_endian();
    let operands = [("psum", LENS, &bytes[..])];
    let got = f32s(&over_tiles(isa, oracle, "activation_relu_psum", &[], &operands, ("sbuf_f32", LENS)));
    assert_same("relu of PSUM", &got, &of(|x| maximum(x, 0.0)));
    let bias: Vec<f32> = (0..P).map(|p| p as f32 - 9.25).collect();
    let bias_bytes = bias.little_endian();
    let operands = [("sbuf_f32", LENS, &bytes[..]), ("sbuf_f32", COLUMN, &bias_bytes[..])];
    let name = "activation_copy_scale_bias";
    let got = f32s(&over_tiles(isa, oracle, name, &[float(-1.5)], &operands, ("sbuf_f32", LENS)));
    let expected: Vec<f32> = x.iter().enumerate().map(|(at, &x)| x * -1.5 + bias[at / F]).collect();
    assert_same(name, &got, &expected);

    // exp(0) = 1 and, below the least exponent, 0: sums that are exact.
    let x: Vec<f32> = (0..P * F).map(|at| if at % 3 == 0 { 0.0 } else { f32::NEG_INFINITY }).collect();
    let mut stage = Stage::new(isa, oracle, &[], 0);
    stage.set("sbuf_f32", &[0, 0], &LENS, &x.little_endian());
    let beta = [0, 0, 64, 50, 0, 99].map(chip);
    stage.run("activation_reduce_exp", &[int(P as i64), int(F as i64)], &beta);
    let exp: Vec<f32> = x.iter().map(|&x| if x == 0.0 { 1.0 } else { 0.0 }).collect();
    assert_eq!(f32s(&stage.get("sbuf_f32", &[64, 50], &LENS)), exp);
    let sums: Vec<f32> = exp.chunks(F).map(|row| row.iter().sum()).collect();
    assert_eq!(f32s(&stage.get("sbuf_f32", &[0, 99], &COLUMN)), sums);
}

pub(super) fn masks(isa: &Isa, oracle: &Oracle<'_>) {
    let mut rng = SplitMix64::new(26);
    let (a, b) = (floats(&mut rng, P * F), floats(&mut rng, P * F));
    let (x, y) = (a.little_endian(), b.little_endian());
    type Compare = fn(&f32, &f32) -> bool;
    let compares: [(&str, Compare); 6] = [
        ("equal", |a, b| a == b),
        ("not_equal", |a, b| a != b),
        ("less", |a, b| a < b),
        ("less_equal", |a, b| a <= b),
        ("greater", |a, b| a > b),
        ("greater_equal", |a, b| a >= b),
    ];
    for (op, f) in compares {
        let name = format!("tensor_tensor_{op}_f32");
        let operands = [("sbuf_f32", LENS, &x[..]), ("sbuf_f32", LENS, &y[..])];
        let got = over_tiles(isa, oracle, &name, &[], &operands, ("sbuf_pred", LENS));
        let expected: Vec<u8> = a.iter().zip(&b).map(|(a, b)| u8::from(f(a, b))).collect();
        assert_eq!(got, expected, "{name}");
    }
    let mask: Vec<u8> = (0..P * F).map(|at| (at % 3 == 1) as u8).collect();
    let mut stage = Stage::new(isa, oracle, &[], 0);
    stage.set("sbuf_pred", &[0, 0], &LENS, &mask);
    stage.set("sbuf_f32", &[64, 0], &LENS, &x);
    stage.set("sbuf_f32", &[0, 40], &LENS, &y);
    let beta = [0, 0, 64, 0, 0, 40].map(chip);
    stage.run("tensor_copy_predicated_f32", &[int(P as i64), int(F as i64)], &beta);
    let expected: Vec<f32> = (0..P * F).map(|at| if at % 3 == 1 { a[at] } else { b[at] }).collect();
    assert_same("tensor_copy_predicated_f32", &f32s(&stage.get("sbuf_f32", &[0, 40], &LENS)), &expected);

    // Lower triangle: p - f >= 0, then a strict upper one by negated steps.
    let operands = [("sbuf_f32", LENS, &x[..])];
    for (steps, keeps) in [
        ([1, -1, 0], (|p, f| p >= f) as fn(usize, usize) -> bool),
        ([-1, 1, -1], |p, f| f > p),
        ([0, 2, -5], |_, f| f >= 3),
    ] {
        let attributes = [steps.map(int).as_slice(), &[float(-7.0)]].concat();
        let got = f32s(&over_tiles(isa, oracle, "affine_select", &attributes, &operands, ("sbuf_f32", LENS)));
        let expected: Vec<f32> =
            (0..P * F).map(|at| if keeps(at / F, at % F) { a[at] } else { -7.0 }).collect();
        assert_same("affine_select", &got, &expected);
    }
}

pub(super) fn constants(isa: &Isa, oracle: &Oracle<'_>) {
    let filled = |name: &str, attributes: &[act_isa::AttrVal], buffer: &str| {
        over_tiles(isa, oracle, name, attributes, &[], (buffer, LENS))
    };
    assert_eq!(f32s(&filled("memset_f32", &[float(-0.125)], "sbuf_f32")), [-0.125; P * F]);
    assert_eq!(f32s(&filled("memset_psum", &[float(0.0)], "psum")), [0.0; P * F]);
    assert_eq!(i32s(&filled("memset_s32", &[int(-5)], "sbuf_s32")), [-5; P * F]);
    let free: Vec<i32> = (0..P * F).map(|at| (at % F) as i32).collect();
    let partition: Vec<i32> = (0..P * F).map(|at| (at / F) as i32).collect();
    for (axis, expected) in [("free", free), ("partition", partition)] {
        assert_eq!(i32s(&filled(&format!("iota_{axis}_s32"), &[], "sbuf_s32")), expected);
        let expected: Vec<f32> = expected.iter().map(|&v| v as f32).collect();
        assert_eq!(f32s(&filled(&format!("iota_{axis}_f32"), &[], "sbuf_f32")), expected);
    }
    let mut stage = Stage::new(isa, oracle, &[], 0);
    let fault = stage.fault("memset_s32", &[int(1), int(1), int(1 << 31)], &places(1));
    assert!(refused(&fault), "{fault}");
}
