//! Constants within semantics, matched by value however either side writes them, and constants that instructions make.

use super::Outcome::{Refused, Uses};
use super::{check, description, memory, parse};

/// An instruction that adds a constant to n elements.
fn adding(elem: &str, alpha: &str, n: &str, constant: &str) -> act_isa::Isa {
    description(
        &[(elem, 1)],
        &format!(
            "instr op alpha({alpha}) beta(x, z) {{
  in  {elem}_1[x :+ {n}]
  out {elem}_1[z :+ {n}]
  computation {{
    a = {elem}[{n}] parameter(0)
    {constant}
    ROOT r = {elem}[{n}] add(a, c)
  }}
}}\n"
        ),
    )
}

#[test]
fn lists_and_counts_are_matched_by_value() {
    let list = adding("s32", "", "4", "c = s32[4] constant({3, 1, 4, 1})");
    let count = adding("s32", "n: 1..64", "n", "c = s32[n] iota(), iota_dimension=0");
    let from = adding(
        "s32",
        "n: 1..64, s: 0..100",
        "n",
        "i = s32[n] iota(), iota_dimension=0\n b = s32[n] constant(s)\n c = s32[n] add(i, b)",
    );
    let equal = adding("s32", "", "4", "c = s32[4] constant({5, 5, 5, 5})");
    let row = description(
        &[("s32", 2)],
        "instr op alpha(m: 1..64) beta(x, y, z, w) {
  in  s32_2[x :+ m, y :+ 3]
  out s32_2[z :+ m, w :+ 3]
  computation {
    a = s32[m, 3] parameter(0)
    l = s32[3] constant({9, 8, 7})
    c = s32[m, 3] broadcast(l), dimensions={1}
    ROOT r = s32[m, 3] add(a, c)
  }
}\n",
    );
    check(&[
        (
            &list,
            "op",
            &[
                (
                    "x = s32[4] parameter(0) c = s32[4] constant({3, 1, 4, 1}) ROOT r = s32[4] add(x, c)",
                    Uses(1),
                ),
                (
                    "x = s32[4] parameter(0) c = s32[4] constant({3, 1, 4, 1}) ROOT r = s32[4] add(c, x)",
                    Uses(1),
                ),
                (
                    "x = s32[4] parameter(0) c = s32[4] constant({3, 1, 4, 2}) ROOT r = s32[4] add(x, c)",
                    Refused,
                ),
                // Written otherwise.
                (
                    "x = s32[4] parameter(0) d = s32[4] constant({1, 4, 1, 3}) c = s32[4] reverse(d), dimensions={0} ROOT r = s32[4] add(x, c)",
                    Uses(1),
                ),
            ],
        ),
        (
            &count,
            "op",
            &[
                (
                    "x = s32[4] parameter(0) c = s32[4] iota(), iota_dimension=0 ROOT r = s32[4] add(x, c)",
                    Uses(1),
                ),
                (
                    "x = s32[4] parameter(0) c = s32[4] constant({0, 1, 2, 3}) ROOT r = s32[4] add(x, c)",
                    Uses(1),
                ),
                (
                    "x = s32[4] parameter(0) c = s32[4] constant({0, 1, 2, 4}) ROOT r = s32[4] add(x, c)",
                    Refused,
                ),
            ],
        ),
        (
            &from,
            "op",
            &[
                (
                    "x = s32[4] parameter(0) c = s32[4] constant({7, 8, 9, 10}) ROOT r = s32[4] add(x, c)",
                    Uses(1),
                ),
                (
                    "x = s32[4] parameter(0) c = s32[4] iota(), iota_dimension=0 ROOT r = s32[4] add(x, c)",
                    Uses(1),
                ),
                (
                    "x = s32[4] parameter(0) c = s32[4] constant({7, 8, 9, 11}) ROOT r = s32[4] add(x, c)",
                    Refused,
                ),
                (
                    "x = s32[4] parameter(0) c = s32[4] constant({101, 102, 103, 104}) ROOT r = s32[4] add(x, c)",
                    Refused,
                ),
            ],
        ),
        (
            &equal,
            "op",
            &[
                (
                    "x = s32[4] parameter(0) v = s32[] constant(5) c = s32[4] broadcast(v), dimensions={} ROOT r = s32[4] add(x, c)",
                    Uses(1),
                ),
                (
                    "x = s32[4] parameter(0) v = s32[] constant(4) c = s32[4] broadcast(v), dimensions={} ROOT r = s32[4] add(x, c)",
                    Refused,
                ),
            ],
        ),
        (
            &row,
            "op",
            &[
                (
                    "x = s32[5,3] parameter(0) v = s32[3] constant({9, 8, 7}) c = s32[5,3] broadcast(v), dimensions={1} ROOT r = s32[5,3] add(x, c)",
                    Uses(1),
                ),
                (
                    "x = s32[2,3] parameter(0) c = s32[2,3] constant({{9, 8, 7}, {9, 8, 7}}) ROOT r = s32[2,3] add(x, c)",
                    Uses(1),
                ),
                (
                    "x = s32[3,3] parameter(0) v = s32[3] constant({9, 8, 7}) c = s32[3,3] broadcast(v), dimensions={0} ROOT r = s32[3,3] add(x, c)",
                    Refused,
                ),
            ],
        ),
    ]);
}

#[test]
fn attributes_that_are_constants() {
    let count = adding("s32", "n: 1..64, k: 2..1000", "n", "c = s32[n] constant(3 * k + 1)");
    let real = adding("f32", "n: 1..64, f: f32", "n", "c = f32[n] constant(f)");
    let splat = |elem: &str, value: &str| {
        format!(
            "x = {elem}[5] parameter(0) v = {elem}[] constant({value}) c = {elem}[5] broadcast(v), dimensions={{}} ROOT r = {elem}[5] add(x, c)"
        )
    };
    check(&[
        (
            &count,
            "op",
            &[
                (&splat("s32", "7"), Uses(1)),
                (&splat("s32", "3001"), Uses(1)),
                (&splat("s32", "8"), Refused),
                (&splat("s32", "4"), Refused),
                (&splat("s32", "3004"), Refused),
            ],
        ),
        (&real, "op", &[(&splat("f32", "0.1"), Uses(1)), (&splat("f32", "inf"), Refused)]),
    ]);
}

/// A product of s8 by which the rest is tested, and makers of constants at a cost.
fn makers(cost: u64) -> act_isa::Isa {
    let memories = [memory("s32", 2, 64), memory("s8", 2, 64)].concat();
    parse(&format!(
        "{memories}
instr ones alpha(m: 1..64, n: 1..64) beta(z, w) {{
  out s32_2[z :+ m, w :+ n]
  cost {cost}
  computation {{ ROOT r = s32[m, n] constant(1) }}
}}
instr unit alpha(n: 1..64) beta(z, w) {{
  out s32_2[z :+ n, w :+ n]
  cost {cost}
  computation {{ ROOT r = s32[n, n] eye() }}
}}
instr count alpha(m: 1..64, n: 1..64) beta(z, w) {{
  out s32_2[z :+ m, w :+ n]
  cost {cost}
  computation {{ ROOT r = s32[m, n] iota(), iota_dimension=1 }}
}}
instr table beta(z, w) {{
  out s32_2[z :+ 2, w :+ 3]
  cost {cost}
  computation {{ ROOT r = s32[2, 3] constant({{ {{3, 1, 4}}, {{1, 5, 9}} }}) }}
}}
instr op alpha(m: 1..64, n: 1..64) beta(x, y, u, v, z, w) {{
  in  s32_2[x :+ m, y :+ n]
  in  s32_2[u :+ m, v :+ n]
  out s32_2[z :+ m, w :+ n]
  computation {{ a = s32[m, n] parameter(0)  b = s32[m, n] parameter(1)  ROOT r = s32[m, n] xor(a, b) }}
}}\n"
    ))
}

#[test]
fn constants_are_made_where_that_is_cheaper() {
    let ones = "x = s32[3,5] parameter(0) v = s32[] constant(1) c = s32[3,5] broadcast(v), dimensions={} ROOT r = s32[3,5] xor(x, c)";
    let unit = "x = s32[4,4] parameter(0) i = s32[4,4] iota(), iota_dimension=0 j = s32[4,4] iota(), iota_dimension=1
        t = pred[4,4] compare(i, j), direction=EQ c = s32[4,4] convert(t) ROOT r = s32[4,4] xor(x, c)";
    let count =
        "x = s32[2,3] parameter(0) c = s32[2,3] constant({{0, 1, 2}, {0, 1, 2}}) ROOT r = s32[2,3] xor(x, c)";
    let table =
        "x = s32[2,3] parameter(0) c = s32[2,3] constant({{3, 1, 4}, {1, 5, 9}}) ROOT r = s32[2,3] xor(x, c)";
    let other =
        "x = s32[2,3] parameter(0) c = s32[2,3] constant({{3, 1, 4}, {1, 5, 8}}) ROOT r = s32[2,3] xor(x, c)";
    let (cheap, dear) = (makers(4), makers(40));
    check(&[
        (&cheap, "ones", &[(ones, Uses(1))]),
        (&cheap, "unit", &[(unit, Uses(1))]),
        (&cheap, "count", &[(count, Uses(1))]),
        (&cheap, "table", &[(table, Uses(1)), (other, Uses(0))]),
        (&dear, "ones", &[(ones, Uses(0))]),
        (&dear, "unit", &[(unit, Uses(0))]),
        (&dear, "count", &[(count, Uses(0))]),
        (&dear, "table", &[(table, Uses(0))]),
        (
            &dear,
            "load_s32_2",
            &[(ones, Uses(2)), (unit, Uses(2)), (count, Uses(2)), (table, Uses(2)), (other, Uses(2))],
        ),
    ]);
}
