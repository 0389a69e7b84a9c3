//! Instructions with several outputs: one execution where several are wanted, and a slot for those that nobody wants.

mod common;

use act_generator::Options;
use act_hlo::random::Values;
use act_isa::Isa;
use common::{compile, names, run};
use std::collections::BTreeMap;

/// The description, with another number of rows.
fn outputs(rows: u64) -> Isa {
    let text = include_str!("outputs.taidl").replace("v: s32[8 | 4]", &format!("v: s32[{rows} | 4]"));
    let text = text.replace("n: 1..8", &format!("n: 1..{rows}"));
    Isa::parse(&text, "outputs.taidl").unwrap_or_else(|e| panic!("{e}"))
}

/// Compiles, compares with the evaluator, and counts the instructions other than loads and stores.
fn counts<'a>(isa: &'a Isa, hlo: &str) -> BTreeMap<&'a str, usize> {
    let compiled = compile(isa, hlo, &Options::default()).unwrap_or_else(|e| panic!("{e}\n{hlo}"));
    for seed in 0..3 {
        assert_eq!(run(isa, hlo, &compiled, Values::Full, seed).elements, 0, "{hlo}");
    }
    let mut counts = BTreeMap::new();
    for name in names(isa, &compiled).into_iter().filter(|n| !["load", "store", "store_w"].contains(n)) {
        *counts.entry(name).or_insert(0) += 1;
    }
    counts
}

/// A kernel of two rows of four.
fn of_two(body: &str) -> String {
    format!("ENTRY e {{ a = s32[1,4] parameter(0)  b = s32[1,4] parameter(1)\n{body} }}")
}

#[test]
fn both_outputs_come_from_one_execution() {
    let isa = outputs(8);
    let both = of_two(
        "lo = s32[1,4] minimum(a, b)  hi = s32[1,4] maximum(b, a)  ROOT t = (s32[1,4], s32[1,4]) tuple(hi, lo)",
    );
    assert_eq!(counts(&isa, &both), BTreeMap::from([("order", 1)]));
    let range = of_two(
        "lo = s32[1,4] minimum(a, b)  hi = s32[1,4] maximum(a, b)  ROOT d = s32[1,4] subtract(hi, lo)",
    );
    assert_eq!(counts(&isa, &range), BTreeMap::from([("butterfly", 1), ("order", 1)]));
    let wide = "ENTRY e { a = s32[3,4] parameter(0)  b = s32[3,4] parameter(1)
  lo = s32[3,4] minimum(a, b)  hi = s32[3,4] maximum(a, b)  ROOT t = (s32[3,4], s32[3,4]) tuple(lo, hi) }";
    assert_eq!(counts(&isa, wide), BTreeMap::from([("order", 1)]));
}

#[test]
fn an_output_that_nobody_wants_overwrites_nothing() {
    // Of five rows, three hold operands that are still read: the unwanted output has exactly one place left. Of four,
    // an operand makes room for it.
    for (op, rows) in [("minimum", 5), ("maximum", 5), ("minimum", 4), ("maximum", 4)] {
        let isa = outputs(rows);
        let hlo = format!(
            "ENTRY e {{ a = s32[1,4] parameter(0)  b = s32[1,4] parameter(1)  c = s32[1,4] parameter(2)
  m = s32[1,4] {op}(a, b)  n = s32[1,4] {op}(a, c)  o = s32[1,4] {op}(b, c)
  ROOT t = (s32[1,4], s32[1,4], s32[1,4]) tuple(m, n, o) }}"
        );
        assert_eq!(counts(&isa, &hlo), BTreeMap::from([("order", 3)]));
    }
}

#[test]
fn outputs_lie_in_different_buffers() {
    let isa = outputs(8);
    let hlo = of_two(
        "q = s32[1,4] divide(a, b)  r = s32[1,4] remainder(a, b)  ROOT t = (s32[1,4], s32[1,4]) tuple(q, r)",
    );
    assert_eq!(counts(&isa, &hlo), BTreeMap::from([("divide", 1)]));
    let rest = of_two("ROOT r = s32[1,4] remainder(a, b)");
    assert_eq!(counts(&isa, &rest), BTreeMap::from([("divide", 1)]));
}

#[test]
fn operands_that_are_overwritten_in_place_are_kept_for_later_readers() {
    let isa = outputs(8);
    let hlo = of_two(
        "s = s32[1,4] add(a, b)  d = s32[1,4] subtract(a, b)  m = s32[1,4] minimum(a, b)
  ROOT t = (s32[1,4], s32[1,4], s32[1,4]) tuple(s, d, m)",
    );
    assert_eq!(counts(&isa, &hlo), BTreeMap::from([("butterfly", 1), ("order", 1)]));
    // A transform of four rows: every stage takes both outputs of the one before.
    let four = "ENTRY e { a = s32[1,4] parameter(0)  b = s32[1,4] parameter(1)  c = s32[1,4] parameter(2)
  d = s32[1,4] parameter(3)
  ab = s32[1,4] add(a, b)  am = s32[1,4] subtract(a, b)  cd = s32[1,4] add(c, d)  cm = s32[1,4] subtract(c, d)
  w = s32[1,4] add(ab, cd)  x = s32[1,4] subtract(ab, cd)  y = s32[1,4] add(am, cm)  z = s32[1,4] subtract(am, cm)
  ROOT t = (s32[1,4], s32[1,4], s32[1,4], s32[1,4]) tuple(w, x, y, z) }";
    assert_eq!(counts(&isa, four), BTreeMap::from([("butterfly", 4)]));
}

#[test]
fn outputs_with_inputs_of_their_own_share_an_execution() {
    let isa = outputs(8);
    let hlo = of_two("p = s32[1,4] abs(a)  q = s32[1,4] not(b)  ROOT t = (s32[1,4], s32[1,4]) tuple(p, q)");
    assert_eq!(counts(&isa, &hlo), BTreeMap::from([("both", 1)]));
    let one = "ENTRY e { a = s32[1,4] parameter(0)  ROOT p = s32[1,4] not(a) }";
    assert_eq!(counts(&isa, one), BTreeMap::from([("both", 1)]));
}

#[test]
fn one_output_is_stored_while_the_other_stays() {
    let isa = outputs(8);
    let hlo = of_two(
        "m = s32[1,4] minimum(a, b)  two = s32[] constant(2)  twos = s32[1,4] broadcast(two), dimensions={}
  d = s32[1,4] multiply(m, twos)  r = s32[1,4] maximum(d, b)  ROOT t = (s32[1,4], s32[1,4]) tuple(m, r)",
    );
    assert_eq!(counts(&isa, &hlo), BTreeMap::from([("order", 2), ("store_and_double", 1)]));
}
