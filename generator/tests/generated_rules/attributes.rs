//! Every operator's attributes, the element types, the shape relations and repeated operands.

use super::Outcome::{Refused, Uses};
use super::{Outcome, check, description};

/// An instruction `op` that computes with operands of these types and sizes.
fn instr(alpha: &str, operands: &[(&str, &[&str])], result: (&str, &[&str]), body: &str) -> String {
    let slot = |elem: &str, lens: &[&str], of: &str| {
        let starts = lens.iter().enumerate().map(|(d, len)| format!("{of}{d} :+ {len}"));
        format!("{elem}_{}[{}]", lens.len(), starts.collect::<Vec<_>>().join(", "))
    };
    let letters = ["a", "b", "c", "d"];
    let betas = operands
        .iter()
        .zip(letters)
        .flat_map(|((_, lens), of)| (0..lens.len()).map(move |d| format!("{of}{d}")));
    let out = (0..result.1.len()).map(|d| format!("z{d}"));
    let betas = betas.chain(out).collect::<Vec<_>>().join(", ");
    let ins: String = operands
        .iter()
        .zip(letters)
        .map(|((elem, lens), of)| format!("  in  {}\n", slot(elem, lens, of)))
        .collect();
    let parameters: String = operands
        .iter()
        .zip(letters)
        .enumerate()
        .map(|(k, ((elem, lens), of))| format!("    {of} = {elem}[{}] parameter({k})\n", lens.join(", ")))
        .collect();
    format!(
        "instr op alpha({alpha}) beta({betas}) {{\n{ins}  out {}\n  computation {{\n{parameters}    {body}\n  }}\n}}\n",
        slot(result.0, result.1, "z")
    )
}

const MN: &str = "m: 1..64, n: 1..64";

fn of_matrix(elem: &str, result: (&str, &[&str]), body: &str) -> String {
    instr(MN, &[(elem, &["m", "n"])], result, body)
}

#[test]
fn dimensions_of_movement() {
    let turned = description(
        &[("s32", 3)],
        &instr(
            "m: 1..64, n: 1..64, p: 1..64",
            &[("s32", &["m", "n", "p"])],
            ("s32", &["p", "m", "n"]),
            "ROOT r = s32[p, m, n] transpose(a), dimensions={2,0,1}",
        ),
    );
    let spread = description(
        &[("s32", 1), ("s32", 2)],
        &instr(
            MN,
            &[("s32", &["n"])],
            ("s32", &["m", "n"]),
            "ROOT r = s32[m, n] broadcast(a), dimensions={1}",
        ),
    );
    let reversed = description(
        &[("s32", 2)],
        &of_matrix("s32", ("s32", &["m", "n"]), "ROOT r = s32[m, n] reverse(a), dimensions={1}"),
    );
    let both = description(
        &[("s32", 2)],
        &of_matrix("s32", ("s32", &["m", "n"]), "ROOT r = s32[m, n] reverse(a), dimensions={0,1}"),
    );
    let beside = description(
        &[("s32", 2)],
        &instr(
            "m: 1..32, n: 1..64, p: 1..32",
            &[("s32", &["m", "n"]), ("s32", &["p", "n"])],
            ("s32", &["m + p", "n"]),
            "x = s32[m, n] multiply(a, a)\n y = s32[p, n] multiply(b, b)\n ROOT r = s32[m + p, n] concatenate(x, y), dimensions={0}",
        ),
    );
    check(&[
        (
            &turned,
            "op",
            &[
                ("x = s32[3,4,5] parameter(0) ROOT r = s32[5,3,4] transpose(x), dimensions={2,0,1}", Uses(1)),
                ("x = s32[4,4,4] parameter(0) ROOT r = s32[4,4,4] transpose(x), dimensions={1,2,0}", Refused),
                ("x = s32[4,4,4] parameter(0) ROOT r = s32[4,4,4] transpose(x), dimensions={0,1,2}", Uses(0)),
                ("x = s32[4,4,4] parameter(0) ROOT r = s32[4,4,4] transpose(x), dimensions={0,2,1}", Refused),
                ("x = s32[4,4,4] parameter(0) ROOT r = s32[4,4,4] transpose(x), dimensions={2,1,0}", Refused),
            ],
        ),
        (
            &spread,
            "op",
            &[
                ("x = s32[5] parameter(0) ROOT r = s32[3,5] broadcast(x), dimensions={1}", Uses(1)),
                ("x = s32[4] parameter(0) ROOT r = s32[4,4] broadcast(x), dimensions={1}", Uses(1)),
                ("x = s32[4] parameter(0) ROOT r = s32[4,4] broadcast(x), dimensions={0}", Refused),
            ],
        ),
        (
            &reversed,
            "op",
            &[
                ("x = s32[3,5] parameter(0) ROOT r = s32[3,5] reverse(x), dimensions={1}", Uses(1)),
                ("x = s32[4,4] parameter(0) ROOT r = s32[4,4] reverse(x), dimensions={0}", Refused),
                ("x = s32[4,4] parameter(0) ROOT r = s32[4,4] reverse(x), dimensions={0,1}", Refused),
            ],
        ),
        (
            &both,
            "op",
            &[
                ("x = s32[3,5] parameter(0) ROOT r = s32[3,5] reverse(x), dimensions={1,0}", Uses(1)),
                ("x = s32[3,5] parameter(0) ROOT r = s32[3,5] reverse(x), dimensions={0}", Refused),
                // A dimension of one element is as good as reversed.
                ("x = s32[1,5] parameter(0) ROOT r = s32[1,5] reverse(x), dimensions={1}", Uses(1)),
            ],
        ),
        (
            &beside,
            "op",
            &[
                (
                    "x = s32[3,4] parameter(0) y = s32[2,4] parameter(1) xx = s32[3,4] multiply(x, x) yy = s32[2,4] multiply(y, y)
                     ROOT r = s32[5,4] concatenate(xx, yy), dimensions={0}",
                    Uses(1),
                ),
                (
                    "x = s32[4,4] parameter(0) y = s32[4,4] parameter(1) xx = s32[4,4] multiply(x, x) yy = s32[4,4] multiply(x, y)
                     ROOT r = s32[8,4] concatenate(xx, yy), dimensions={0}",
                    Refused,
                ),
            ],
        ),
    ]);
}

#[test]
fn ranges_of_slices_and_padding() {
    let strided = description(
        &[("s32", 1)],
        &instr(
            "n: 16..64, s: 0..8, t: 1..4",
            &[("s32", &["n"])],
            ("s32", &["ceildiv(n - s, t)"]),
            "x = s32[n] negate(a)\n ROOT r = s32[ceildiv(n - s, t)] slice(x), slice={[s:n:t]}",
        ),
    );
    let padded = description(
        &[("s32", 1)],
        &instr(
            "n: 1..16, l: 0..8, h: 0..8, i: 0..2",
            &[("s32", &["n"])],
            ("s32", &["n + l + h + (n - 1) * i"]),
            "x = s32[n] negate(a)\n v = s32[] constant(7)\n ROOT r = s32[n + l + h + (n - 1) * i] pad(x, v), low={l}, high={h}, interior={i}",
        ),
    );
    let slice = |n: u64, s: u64, e: u64, t: u64, v: u64| {
        format!(
            "x = s32[{n}] parameter(0) y = s32[{n}] negate(x) ROOT r = s32[{v}] slice(y), slice={{[{s}:{e}:{t}]}}"
        )
    };
    let pad = |n: u64, l: u64, h: u64, i: u64, v: i64| {
        let m = n + l + h + (n - 1) * i;
        format!(
            "x = s32[{n}] parameter(0) y = s32[{n}] negate(x) v = s32[] constant({v}) ROOT r = s32[{m}] pad(y, v), padding={l}_{h}_{i}"
        )
    };
    let slices = [
        (slice(18, 0, 18, 2, 9), Uses(1)),
        (slice(18, 1, 18, 2, 9), Uses(1)),
        (slice(19, 2, 19, 3, 6), Uses(1)),
    ];
    let pads = [
        (pad(5, 2, 3, 0, 7), Uses(1)),
        (pad(5, 3, 2, 0, 7), Uses(1)),
        (pad(5, 0, 1, 2, 7), Uses(1)),
        (pad(5, 2, 3, 0, 6), Refused),
    ];
    let slices: Vec<(&str, Outcome)> = slices.iter().map(|(t, o)| (t.as_str(), *o)).collect();
    let pads: Vec<(&str, Outcome)> = pads.iter().map(|(t, o)| (t.as_str(), *o)).collect();
    check(&[(&strided, "op", &slices), (&padded, "op", &pads)]);
}

#[test]
fn dimensions_combiners_and_initial_values_of_reductions() {
    let columns = description(
        &[("s32", 1), ("s32", 2)],
        &of_matrix(
            "s32",
            ("s32", &["m"]),
            "z = s32[] constant(0)\n ROOT r = s32[m] reduce(a, z), dimensions={1}, to_apply=add",
        ),
    );
    let from_five = description(
        &[("s32", 1), ("s32", 2)],
        &of_matrix(
            "s32",
            ("s32", &["n"]),
            "z = s32[] constant(5)\n ROOT r = s32[n] reduce(a, z), dimensions={0}, to_apply=maximum",
        ),
    );
    check(&[
        (
            &columns,
            "op",
            &[
                (
                    "x = s32[3,5] parameter(0) z = s32[] constant(0) ROOT r = s32[3] reduce(x, z), dimensions={1}, to_apply=plus",
                    Uses(1),
                ),
                (
                    "x = s32[4,4] parameter(0) z = s32[] constant(0) ROOT r = s32[4] reduce(x, z), dimensions={0}, to_apply=plus",
                    Refused,
                ),
                (
                    "x = s32[4,4] parameter(0) z = s32[] constant(1) ROOT r = s32[4] reduce(x, z), dimensions={1}, to_apply=plus",
                    Refused,
                ),
                (
                    "x = s32[4,4] parameter(0) z = s32[] constant(0) ROOT r = s32[4] reduce(x, z), dimensions={1}, to_apply=most",
                    Refused,
                ),
            ],
        ),
        (
            &from_five,
            "op",
            &[
                (
                    "x = s32[3,5] parameter(0) z = s32[] constant(5) ROOT r = s32[5] reduce(x, z), dimensions={0}, to_apply=most",
                    Uses(1),
                ),
                (
                    "x = s32[4,4] parameter(0) z = s32[] constant(4) ROOT r = s32[4] reduce(x, z), dimensions={0}, to_apply=most",
                    Refused,
                ),
            ],
        ),
    ]);
}

#[test]
fn dimension_numbers_of_products() {
    let turned = description(
        &[("s32", 2)],
        &instr(
            "m: 1..64, n: 1..64, k: 1..64",
            &[("s32", &["k", "m"]), ("s32", &["n", "k"])],
            ("s32", &["m", "n"]),
            "ROOT r = s32[m, n] dot(a, b), lhs_contracting_dims={0}, rhs_contracting_dims={1}",
        ),
    );
    let batched = description(
        &[("s32", 3)],
        &instr(
            "g: 1..8, m: 1..64, n: 1..64, k: 1..64",
            &[("s32", &["g", "m", "k"]), ("s32", &["k", "n", "g"])],
            ("s32", &["g", "m", "n"]),
            "ROOT r = s32[g, m, n] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={2}, lhs_contracting_dims={2}, rhs_contracting_dims={0}",
        ),
    );
    let both = description(
        &[("s32", 1), ("s32", 3)],
        &instr(
            "m: 1..64, k: 1..64, l: 1..64",
            &[("s32", &["m", "k", "l"]), ("s32", &["k", "m", "l"])],
            ("s32", &["m"]),
            "ROOT r = s32[m] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={1}, lhs_contracting_dims={1,2}, rhs_contracting_dims={0,2}",
        ),
    );
    check(&[
        (
            &turned,
            "op",
            &[
                ("x = s32[4,3] parameter(0) y = s32[5,4] parameter(1) ROOT r = s32[3,5] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={1}", Uses(1)),
                // Operands are turned by products with the unit matrix.
                ("x = s32[4,4] parameter(0) y = s32[4,4] parameter(1) ROOT r = s32[4,4] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={1}", Uses(2)),
                ("x = s32[4,4] parameter(0) y = s32[4,4] parameter(1) ROOT r = s32[4,4] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}", Uses(2)),
                ("x = s32[4,4] parameter(0) y = s32[4,4] parameter(1) ROOT r = s32[4,4] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}", Uses(3)),
            ],
        ),
        (
            &batched,
            "op",
            &[
                (
                    "x = s32[2,3,4] parameter(0) y = s32[4,5,2] parameter(1)
                     ROOT r = s32[2,3,5] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={2}, lhs_contracting_dims={2}, rhs_contracting_dims={0}",
                    Uses(1),
                ),
                (
                    "x = s32[4,4,4] parameter(0) y = s32[4,4,4] parameter(1)
                     ROOT r = s32[4,4,4] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}",
                    Refused,
                ),
            ],
        ),
        (
            &both,
            "op",
            &[
                (
                    "x = s32[3,4,5] parameter(0) y = s32[4,3,5] parameter(1)
                     ROOT r = s32[3] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={1}, lhs_contracting_dims={1,2}, rhs_contracting_dims={0,2}",
                    Uses(1),
                ),
                // The pairs of contracted dimensions in another order.
                (
                    "x = s32[3,4,5] parameter(0) y = s32[4,3,5] parameter(1)
                     ROOT r = s32[3] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={1}, lhs_contracting_dims={2,1}, rhs_contracting_dims={2,0}",
                    Uses(1),
                ),
                (
                    "x = s32[3,4,4] parameter(0) y = s32[4,3,4] parameter(1)
                     ROOT r = s32[3] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={1}, lhs_contracting_dims={1,2}, rhs_contracting_dims={2,0}",
                    Refused,
                ),
            ],
        ),
    ]);
}

#[test]
fn element_types_and_directions() {
    let compared = description(
        &[("s32", 2)],
        &instr(
            MN,
            &[("s32", &["m", "n"]), ("s32", &["m", "n"])],
            ("s32", &["m", "n"]),
            "t = pred[m, n] compare(a, b), direction=LT\n ROOT r = s32[m, n] select(t, a, b)",
        ),
    );
    let rounded = description(
        &[("f32", 2)],
        &of_matrix(
            "f32",
            ("f32", &["m", "n"]),
            "ROOT r = f32[m, n] reduce-precision(a), exponent_bits=8, mantissa_bits=7",
        ),
    );
    let narrowed = description(
        &[("s32", 2), ("s8", 2)],
        &of_matrix("s32", ("s8", &["m", "n"]), "ROOT r = s8[m, n] convert(a)"),
    );
    let shifted = description(
        &[("s32", 2)],
        &instr(
            MN,
            &[("s32", &["m", "n"]), ("s32", &["m", "n"])],
            ("s32", &["m", "n"]),
            "ROOT r = s32[m, n] shift-right-logical(a, b)",
        ),
    );
    let chosen = |direction: &str, yes: &str, no: &str| {
        format!(
            "x = s32[3,5] parameter(0) y = s32[3,5] parameter(1) t = pred[3,5] compare(x, y), direction={direction} ROOT r = s32[3,5] select(t, {yes}, {no})"
        )
    };
    let (less, greater, swapped) = (chosen("LT", "x", "y"), chosen("GT", "x", "y"), chosen("GT", "y", "x"));
    check(&[
        (
            &compared,
            "op",
            &[
                (&less, Uses(1)),
                // The smaller of two, with the operands the other way round.
                (&swapped, Uses(1)),
                (&greater, Refused),
            ],
        ),
        (
            &rounded,
            "op",
            &[
                (
                    "x = f32[3,5] parameter(0) ROOT r = f32[3,5] reduce-precision(x), exponent_bits=8, mantissa_bits=7",
                    Uses(1),
                ),
                (
                    "x = f32[3,5] parameter(0) ROOT r = f32[3,5] reduce-precision(x), exponent_bits=8, mantissa_bits=6",
                    Refused,
                ),
                (
                    "x = f32[3,5] parameter(0) ROOT r = f32[3,5] reduce-precision(x), exponent_bits=5, mantissa_bits=7",
                    Refused,
                ),
            ],
        ),
        (
            &narrowed,
            "op",
            &[
                ("x = s32[3,5] parameter(0) ROOT r = s8[3,5] convert(x)", Uses(1)),
                ("x = f32[3,5] parameter(0) ROOT r = s8[3,5] convert(x)", Refused),
            ],
        ),
        (
            &shifted,
            "op",
            &[
                (
                    "x = s32[3,5] parameter(0) y = s32[3,5] parameter(1) ROOT r = s32[3,5] shift-right-logical(x, y)",
                    Uses(1),
                ),
                (
                    "x = s32[3,5] parameter(0) y = s32[3,5] parameter(1) ROOT r = s32[3,5] shift-right-arithmetic(x, y)",
                    Refused,
                ),
            ],
        ),
    ]);
}

#[test]
fn repeated_operands_and_their_roles() {
    let square = description(
        &[("s32", 2)],
        &of_matrix("s32", ("s32", &["m", "n"]), "ROOT r = s32[m, n] multiply(a, a)"),
    );
    let polynomial = description(
        &[("s32", 2)],
        &instr(
            MN,
            &[("s32", &["m", "n"]), ("s32", &["m", "n"])],
            ("s32", &["m", "n"]),
            "x = s32[m, n] multiply(a, b)\n y = s32[m, n] xor(x, a)\n ROOT r = s32[m, n] subtract(y, b)",
        ),
    );
    let gram = description(
        &[("s32", 2)],
        &of_matrix(
            "s32",
            ("s32", &["m", "m"]),
            "ROOT r = s32[m, m] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
        ),
    );
    let fused = description(
        &[("f32", 2)],
        &instr(
            MN,
            &[("f32", &["m", "n"]), ("f32", &["m", "n"])],
            ("f32", &["m", "n"]),
            "ROOT r = f32[m, n] fma(a, b, a)",
        ),
    );
    check(&[
        (
            &square,
            "op",
            &[
                ("x = s32[3,5] parameter(0) ROOT r = s32[3,5] multiply(x, x)", Uses(1)),
                ("x = s32[3,5] parameter(0) y = s32[3,5] parameter(1) ROOT r = s32[3,5] multiply(x, y)", Refused),
            ],
        ),
        (
            &polynomial,
            "op",
            &[
                (
                    "x = s32[3,5] parameter(0) y = s32[3,5] parameter(1) p = s32[3,5] multiply(y, x) q = s32[3,5] xor(y, p) ROOT r = s32[3,5] subtract(q, x)",
                    Uses(1),
                ),
                (
                    "x = s32[3,5] parameter(0) y = s32[3,5] parameter(1) p = s32[3,5] multiply(y, x) q = s32[3,5] xor(y, p) ROOT r = s32[3,5] subtract(q, y)",
                    Refused,
                ),
                (
                    "x = s32[3,5] parameter(0) y = s32[3,5] parameter(1) z = s32[3,5] parameter(2) p = s32[3,5] multiply(y, x) q = s32[3,5] xor(y, p)
                     ROOT r = s32[3,5] subtract(q, z)",
                    Refused,
                ),
            ],
        ),
        (
            &gram,
            "op",
            &[
                ("x = s32[3,5] parameter(0) ROOT r = s32[3,3] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={1}", Uses(1)),
                ("x = s32[3,5] parameter(0) y = s32[3,5] parameter(1) ROOT r = s32[3,3] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={1}", Refused),
            ],
        ),
        (
            &fused,
            "op",
            &[
                ("x = f32[3,5] parameter(0) y = f32[3,5] parameter(1) p = f32[3,5] multiply(x, y) ROOT r = f32[3,5] add(p, x)", Uses(1)),
                (
                    "x = f32[3,5] parameter(0) y = f32[3,5] parameter(1) z = f32[3,5] parameter(2) p = f32[3,5] multiply(x, y) ROOT r = f32[3,5] add(p, z)",
                    Refused,
                ),
            ],
        ),
    ]);
}
