//! Computational attributes solved from sizes: linear forms, products, quotients, several equations, attributes that
//! nothing determines.

use super::Outcome::{Refused, Uses};
use super::{Outcome, check, memory, parse};

/// An instruction that negates a vector of `len` elements, of the attributes `alpha`, under `require`.
fn negating(alpha: &str, len: &str, require: &str) -> act_isa::Isa {
    let instr = format!(
        "instr op alpha({alpha}) beta(x, z) {{
  in  s32_1[x :+ {len}]
  out s32_1[z :+ {len}]
  {require}
  computation {{ a = s32[{len}] parameter(0)  ROOT r = s32[{len}] negate(a) }}
}}\n"
    );
    parse(&format!("{}{instr}", memory("s32", 1, 1 << 16)))
}

/// One of two-dimensional tensors of these sizes.
fn negating_matrix(alpha: &str, rows: &str, columns: &str, require: &str) -> act_isa::Isa {
    let instr = format!(
        "instr op alpha({alpha}) beta(x, y, z, w) {{
  in  s32_2[x :+ {rows}, y :+ {columns}]
  out s32_2[z :+ {rows}, w :+ {columns}]
  {require}
  computation {{ a = s32[{rows}, {columns}] parameter(0)  ROOT r = s32[{rows}, {columns}] negate(a) }}
}}\n"
    );
    parse(&format!("{}{instr}", memory("s32", 2, 1 << 12)))
}

fn vector(n: u64) -> String {
    format!("x = s32[{n}] parameter(0) ROOT r = s32[{n}] negate(x)")
}

fn matrix(m: u64, n: u64) -> String {
    format!("x = s32[{m},{n}] parameter(0) ROOT r = s32[{m},{n}] negate(x)")
}

fn kernels(list: &[(String, Outcome)]) -> Vec<(&str, Outcome)> {
    list.iter().map(|(text, outcome)| (text.as_str(), *outcome)).collect()
}

#[test]
fn linear_forms() {
    // Neither attribute follows from the size alone; all sizes but 1 are 2a + 3b.
    let two_three = negating("a: 0..50000, b: 0..50000", "2 * a + 3 * b", "require 2 * a + 3 * b <= 65536");
    let lists = [(vector(2), Uses(1)), (vector(7), Uses(1)), (vector(60_001), Uses(1))];
    // A constant beside a multiple.
    let offset = negating("a: 1..5000", "7 * a - 3", "");
    let offsets = [(vector(4), Uses(1)), (vector(34_997), Uses(1))];
    // Two equations, each with both attributes.
    let crossed =
        negating_matrix("a: 1..1000000, b: 1..1000000", "a + b", "a - b", "require a + b <= 4096 and a > b");
    let crosses = [
        (matrix(1000, 20), Uses(1)),
        (matrix(3, 1), Uses(1)),
        (matrix(4, 1), Refused),
        (matrix(1, 4), Refused),
    ];
    let three = negating_matrix(
        "a: 0..1000000, b: 0..1000000, c: 0..1000000",
        "a + 2 * b",
        "b + c",
        "require a == 3 * c + 1 and a + 2 * b <= 4096 and b + c <= 4096",
    );
    // a + 2b = 21 and b + c = 8: a = 3c + 1 gives 3c + 1 + 16 - 2c = 21, so c = 4, b = 4, a = 13.
    let threes = [(matrix(21, 8), Uses(1))];
    check(&[
        (&two_three, "op", &kernels(&lists)),
        (&offset, "op", &kernels(&offsets)),
        (&crossed, "op", &kernels(&crosses)),
        (&three, "op", &kernels(&threes)),
    ]);
}

#[test]
fn products() {
    let square = negating("a: 1..1000000", "a * a", "require a <= 256");
    let squares = [(vector(49), Uses(1)), (vector(62_500), Uses(1))];
    let area = negating("a: 1..1000000, b: 1..1000000", "a * b", "require a == b + 3 and a * b <= 65536");
    let areas = [(vector(40), Uses(1)), (vector(40_600), Uses(1)), (vector(41), Refused)];
    let sum_and_product = negating_matrix(
        "a: 1..1000000, b: 1..1000000",
        "a * b",
        "a + b",
        "require a <= b and a * b <= 4096 and a + b <= 4096",
    );
    let pairs = [(matrix(24, 10), Uses(1)), (matrix(3998, 4000), Refused), (matrix(3000, 3001), Uses(1))];
    let scaled = negating_matrix(
        "a: 1..1000000, b: 1..1000000",
        "4 * a",
        "2 * a * b + a",
        "require 4 * a <= 4096 and 2 * a * b + a <= 4096",
    );
    let scales = [(matrix(12, 21), Uses(1)), (matrix(12, 20), Refused)];
    check(&[
        (&square, "op", &kernels(&squares)),
        (&area, "op", &kernels(&areas)),
        (&sum_and_product, "op", &kernels(&pairs)),
        (&scaled, "op", &kernels(&scales)),
    ]);
}

#[test]
fn quotients_remainders_and_shifts() {
    let half = negating("a: 1..1000000", "a / 2", "require a % 2 == 1 and 3 <= a <= 131072");
    let halves = [(vector(5), Uses(1)), (vector(30_000), Uses(1))];
    let up = negating("a: 1..1000000", "ceildiv(a, 16)", "require a % 16 == 3 and a <= 1000000");
    let ups = [(vector(5), Uses(1)), (vector(30_000), Uses(1))];
    let shifted = negating("a: 1..1000000", "a << 3", "require a <= 8192");
    let shifts = [(vector(24), Uses(1)), (vector(40_000), Uses(1))];
    let down = negating("a: 1..1000000", "a >> 3", "require a % 8 == 7 and 8 <= a <= 500000");
    let downs = [(vector(24), Uses(1)), (vector(40_000), Uses(1))];
    let bounded = negating_matrix("a: 1..1000000", "min(a, 8)", "max(a, 8)", "require a <= 4096");
    let bounds = [(matrix(5, 8), Uses(1)), (matrix(8, 4000), Uses(1)), (matrix(5, 9), Refused)];
    let parts =
        negating_matrix("a: 1..1000000", "a / 16", "a % 16", "require a >= 16 and a <= 65535 and a % 16 > 0");
    let parted = [(matrix(4, 9), Uses(1)), (matrix(4000, 15), Uses(1)), (matrix(4, 16), Refused)];
    check(&[
        (&half, "op", &kernels(&halves)),
        (&up, "op", &kernels(&ups)),
        (&shifted, "op", &kernels(&shifts)),
        (&down, "op", &kernels(&downs)),
        (&bounded, "op", &kernels(&bounds)),
        (&parts, "op", &kernels(&parted)),
    ]);
}

#[test]
fn attributes_that_no_size_determines() {
    // A factor that one way through the semantics does not use.
    let unused = parse(&format!(
        "{}instr op alpha(n: 1..64, scale: {{0, 1}}, factor: f32) beta(x, z) {{
  in  f32_1[x :+ n]
  out f32_1[z :+ n]
  computation {{
    a = f32[n] parameter(0)
    v = f32[n] negate(a)
    if scale == 1 {{ k = f32[n] constant(factor)  v = f32[n] multiply(v, k) }}
    return v
  }}
}}\n",
        memory("f32", 1, 64)
    ));
    check(&[(
        &unused,
        "op",
        &[
            ("x = f32[5] parameter(0) ROOT r = f32[5] negate(x)", Uses(1)),
            (
                "x = f32[5] parameter(0) y = f32[5] negate(x) c = f32[] constant(0.3) cs = f32[5] broadcast(c), dimensions={} ROOT r = f32[5] multiply(cs, y)",
                Uses(1),
            ),
        ],
    )]);
}
