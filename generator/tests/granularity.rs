//! Loads and stores that move less than what is computed takes, and instructions whose sums are reshaped or kept by an
//! attribute, on descriptions made for this test.

mod common;

use act_generator::{CompileError, Options};
use act_hlo::random::Values;
use act_isa::Isa;
use common::{compile, names, run};
use std::collections::BTreeMap;

fn isa(text: &str) -> Isa {
    Isa::parse(text, "granularity.taidl").unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn outer_products() -> Isa {
    isa(include_str!("outer_products.taidl"))
}

fn grouped() -> Isa {
    isa(include_str!("grouped.taidl"))
}

/// Compiles, compares with the evaluator, and counts the instructions.
fn counts<'a>(isa: &'a Isa, hlo: &str, values: Values) -> BTreeMap<&'a str, usize> {
    let compiled = compile(isa, hlo, &Options::default()).unwrap_or_else(|e| panic!("{e}\n{hlo}"));
    for seed in 0..3 {
        let difference = run(isa, hlo, &compiled, values, seed);
        assert!(difference.within_roundings(), "{difference}\n{hlo}");
    }
    let mut counts = BTreeMap::new();
    names(isa, &compiled).into_iter().for_each(|name| *counts.entry(name).or_insert(0) += 1);
    counts
}

/// Vectors of 64, in buffers of 32 rows; loads take `load` rows, stores `store`, additions `add`.
fn rows(load: &str, store: &str, add: &str) -> Isa {
    isa(&format!(
        "isa rows
hbm d0: 1 MiB
buffer s: f32[32 | 64]
instr load alpha(n: {load}) beta(addr, r) {{ in d0[addr :+ 256*n]  out s[r :+ n]
  computation {{ x = u8[256*n] parameter(0)  y = u8[n,64,4] reshape(x)  ROOT z = f32[n,64] bitcast-convert(y) }} }}
instr store alpha(n: {store}) beta(r, addr) {{ in s[r :+ n]  out d0[addr :+ 256*n]
  computation {{ x = f32[n,64] parameter(0)  y = u8[n,64,4] bitcast-convert(x)  ROOT z = u8[256*n] reshape(y) }} }}
instr add alpha(n: {add}) beta(a, b, d) {{ in s[a :+ n]  in s[b :+ n]  out s[d :+ n]
  computation {{ x = f32[n,64] parameter(0)  y = f32[n,64] parameter(1)  ROOT z = f32[n,64] add(x, y) }} }}"
    ))
}

fn sum(n: u64) -> String {
    format!(
        "ENTRY e {{ a = f32[{n},64] parameter(0)  b = f32[{n},64] parameter(1)  ROOT c = f32[{n},64] add(a, b) }}"
    )
}

#[test]
fn loads_and_stores_smaller_than_an_operation_lie_side_by_side() {
    // By rows, by twos, and with a shorter last piece.
    for (load, store, add, n, loads, stores) in [
        ("1..1", "8..8", "8..8", 8, 16, 1),
        ("8..8", "1..1", "8..8", 8, 2, 8),
        ("1..1", "1..1", "8..8", 8, 16, 8),
        ("2..2", "1..3", "8..8", 8, 8, 3),
        ("1..3", "1..3", "1..8", 5, 4, 2),
    ] {
        let isa = rows(load, store, add);
        let expected = BTreeMap::from([("add", 1), ("load", loads), ("store", stores)]);
        assert_eq!(counts(&isa, &sum(n), Values::Unit), expected, "{load} {store} {add}");
    }
}

#[test]
fn pieces_that_nothing_moves_are_refused() {
    // Seven rows are not made of twos.
    let refused = compile(&rows("2..2", "1..8", "1..8"), &sum(7), &Options::default());
    assert!(matches!(refused, Err(CompileError::NoSelection(_))), "{refused:?}");
}

/// The product of a `k` x 16 and a `k` x 16 matrix over their first dimensions.
fn product(k: u64) -> String {
    format!(
        "ENTRY e {{ a = f32[{k},16] parameter(0)  b = f32[{k},16] parameter(1)
  ROOT c = f32[16,16] dot(a, b), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}} }}"
    )
}

#[test]
fn outer_products_are_added_up_in_a_tile_and_stored_by_rows() {
    let isa = outer_products();
    for k in [1, 4, 16] {
        let k_times = k as usize;
        let expected = BTreeMap::from([("zero", 1), ("ld1w", 2 * k_times), ("fmopa", k_times), ("stza", 16)]);
        assert_eq!(counts(&isa, &product(k), Values::Unit), expected, "{k}");
    }
}

#[test]
fn products_that_an_attribute_adds_to_a_sum_start_from_zero() {
    let isa = grouped();
    for n in [32, 7] {
        // The right operand lies as its load takes it: groups of four of k, then columns.
        let hlo = format!(
            "ENTRY e {{ a = s8[{n},32] parameter(0)  g = s8[8,32,4] parameter(1)
  t = s8[32,8,4] transpose(g), dimensions={{1,0,2}}
  b = s8[32,32] reshape(t)
  ROOT c = s32[{n},32] dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}} }}"
        );
        let expected = BTreeMap::from([("ldact", 1), ("ldw", 1), ("ldacc", 1), ("mac", 1), ("stacc", 1)]);
        assert_eq!(counts(&isa, &hlo, Values::Full), expected, "{n}");
    }
}
