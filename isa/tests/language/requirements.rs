//! Every operator of requirements, against values worked out by hand.

use crate::parse;
use act_isa::{AttrVal, Expr, InstantiateError};

/// Whether `condition` over `n` and `m` holds.
fn holds(condition: &str, n: i64, m: i64) -> bool {
    let isa = parse(&format!(
        "isa t hbm d0: 64 buffer v: s8[4, 4 | ] register limit = 7
         instr put alpha(n: -100..100, m: -100..100) beta(row) {{
           out v[row :+ 1, 0 :+ 1]
           require {condition}
           computation {{ k = s8[1, 1] constant(n)  l = s8[1, 1] constant(m)  ROOT y = s8[1, 1] add(k, l) }}
         }}"
    ));
    match isa.instrs[0].instantiate(&isa, &[AttrVal::Int(n), AttrVal::Int(m)]) {
        Ok(_) => true,
        Err(InstantiateError::Requirement { index: 0 }) => false,
        Err(error) => panic!("{condition}: {error}"),
    }
}

#[test]
fn operators_mean_what_they_say() {
    let cases = [
        ("n / 3 == m", [(7, 2), (-7, -3), (-6, -2)], [(7, 3), (-7, -2), (-6, -3)]),
        ("n % 3 == m", [(7, 1), (-7, 2), (-6, 0)], [(7, 2), (-7, -1), (-6, 3)]),
        ("ceildiv(n, 3) == m", [(7, 3), (6, 2), (-7, -2)], [(7, 2), (6, 3), (-7, -3)]),
        ("n << 2 == m", [(3, 12), (-3, -12), (0, 0)], [(3, 6), (-3, 12), (1, 0)]),
        ("n >> 2 == m", [(13, 3), (-1, -1), (-8, -2)], [(13, 4), (-1, 0), (-8, 2)]),
        ("min(n, m, 5) == 5", [(5, 6), (9, 5), (7, 8)], [(4, 9), (9, 4), (0, 0)]),
        ("max(n, m) > limit", [(8, 0), (0, 8), (8, 8)], [(7, 7), (0, 7), (-9, 0)]),
        ("n in {1, 4, -2}", [(1, 0), (4, 0), (-2, 0)], [(2, 0), (0, 0), (-1, 0)]),
        ("n not in {1, 4}", [(2, 0), (0, 0), (-1, 0)], [(1, 0), (4, 0), (4, 9)]),
        ("0 <= n < m", [(0, 1), (3, 4), (0, 99)], [(-1, 4), (4, 4), (5, 4)]),
        ("n < 0 or m < 0 and n > 5", [(-1, 3), (6, -1), (-9, -9)], [(1, -1), (6, 0), (0, 0)]),
        ("not n < 0 and m != 3", [(0, 2), (5, 4), (9, -3)], [(-1, 2), (0, 3), (-1, 3)]),
        ("not (n < 0 and m != 3)", [(0, 2), (-1, 3), (0, 3)], [(-1, 2), (-9, 0), (-1, 4)]),
        ("n - 2 - 1 == m * 2 + 1", [(6, 1), (4, 0), (2, -1)], [(6, 2), (2, 0), (8, 1)]),
    ];
    for (condition, yes, no) in cases {
        for (n, m) in yes {
            assert!(holds(condition, n, m), "{condition} for {n}, {m}");
        }
        for (n, m) in no {
            assert!(!holds(condition, n, m), "{condition} for {n}, {m}");
        }
    }
}

#[test]
fn a_set_of_values_is_a_range_and_a_requirement() {
    let text = |kind: &str| {
        format!(
            "isa t hbm d0: 64 buffer v: s8[4, 4 | ]
             instr put alpha(n: {kind}) beta(row: {{0, 2}}) {{
               out v[row :+ 1, 0 :+ n]
               computation {{ k = s8[] constant(1)  ROOT y = s8[1, n] broadcast(k), dimensions={{}} }}
             }}"
        )
    };
    let isa = parse(&text("{4, 1}"));
    let instr = &isa.instrs[0];
    for (n, legal) in [(1, true), (2, false), (4, true), (5, false)] {
        assert_eq!(instr.instantiate(&isa, &[AttrVal::Int(n)]).is_ok(), legal, "{n}");
    }
    assert_eq!(instr.requires.len(), 2);
    assert!(instr.requires[1].mentions_beta());
    // As a set it prints, and the range with the same requirement is the same instruction.
    assert!(isa.print().contains("alpha(n: {4, 1}) beta(row: {0, 2})"));
    let spelt = text("1..4").replace("row: {0, 2}", "row: 0..2");
    let spelt = spelt.replace("computation", "require n in {4, 1} require row in {0, 2} computation");
    assert_eq!(parse(&spelt), isa);
    let mut mentioned = Vec::new();
    instr.requires[0].for_each_leaf(&mut |leaf| mentioned.push(leaf.clone()));
    assert_eq!(mentioned, [Expr::Alpha(0), Expr::Int(4), Expr::Int(1)]);
}
