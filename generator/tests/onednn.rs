//! The five oneDNN kernels of the ACT paper's appendix H on the target `amx`, transcribed into legal HLO: a tiled layout
//! {T(r, c)} is a parameter or result in the order of its bytes, with the transpose and reshape that make the tensor of
//! it. `broadcast dimensions=[1]` from f32[1,16] and transposes counted from 1 are written as HLO has them.

mod common;

use act_generator::{Compiled, Options};
use act_hlo::random::Values;
use act_isa::{Isa, load_target};
use common::{compile, names, run};

fn amx() -> Isa {
    load_target("amx").unwrap_or_else(|e| panic!("{e}"))
}

/// u8[rows, 64] times the transpose of s8[32, 64]{T(16,4)}, into s32[rows, 32]{T(16,16)}. `rows` is 16 or 32.
fn int8_product(rows: u64) -> String {
    let tiles = rows / 16;
    format!(
        "  a = u8[{rows},64] parameter(0)
  bytes = s8[2,16,16,4] parameter(1)
  tiled = s8[2,16,16,4] transpose(bytes), dimensions={{0,2,1,3}}
  b = s8[32,64] reshape(tiled)
  wide_a = s32[{rows},64] convert(a)
  turned = s8[64,32] transpose(b), dimensions={{1,0}}
  wide_b = s32[64,32] convert(turned)
  product = s32[{rows},32] dot(wide_a, wide_b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  split = s32[{tiles},16,2,16] reshape(product)
  {{root}}out = s32[{tiles},2,16,16] transpose(split), dimensions={{0,2,1,3}}
"
    )
}

fn k1_hlo() -> String {
    format!("ENTRY k1 {{\n{}}}", int8_product(32).replace("{root}", "ROOT "))
}

fn k2_hlo() -> String {
    format!("ENTRY k2 {{\n{}}}", int8_product(16).replace("{root}", "ROOT "))
}

/// The outer product of f32[n] and column 0 of f32[m, 4], transposed, in {1,0:T(m,16)}.
fn outer_product(name: &str, n: u64, m: u64) -> String {
    let tiles = n / 16;
    format!(
        "ENTRY {name} {{
  a = f32[{n}] parameter(0)
  b = f32[{m},4] parameter(1)
  column = f32[{n},1] reshape(a)
  first = f32[{m},1] slice(b), slice={{[0:{m}], [0:1]}}
  row = f32[1,{m}] transpose(first), dimensions={{1,0}}
  product = f32[{n},{m}] dot(column, row), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  turned = f32[{m},{n}] transpose(product), dimensions={{1,0}}
  split = f32[{m},{tiles},16] reshape(turned)
  ROOT out = f32[{tiles},{m},16] transpose(split), dimensions={{1,0,2}}
}}"
    )
}

fn k3_hlo() -> String {
    outer_product("k3", 32, 14)
}

fn k4_hlo() -> String {
    outer_product("k4", 48, 8)
}

fn k5_hlo() -> String {
    let product = int8_product(32).replace("{root}", "");
    format!(
        "ENTRY k5 {{
{product}  x = f32[3,16] parameter(2)
  scale = f32[1,16] parameter(3)
  bias = f32[1,16] parameter(4)
  rescale = f32[1,16] parameter(5)
  scale_row = f32[16] reshape(scale)
  scales = f32[3,16] broadcast(scale_row), dimensions={{1}}
  scaled = f32[3,16] multiply(x, scales)
  bias_row = f32[16] reshape(bias)
  biases = f32[3,16] broadcast(bias_row), dimensions={{1}}
  sum = f32[3,16] add(scaled, biases)
  zero = f32[] constant(0)
  zeros = f32[3,16] broadcast(zero), dimensions={{}}
  most = f32[] constant(255)
  mosts = f32[3,16] broadcast(most), dimensions={{}}
  relu = f32[3,16] maximum(zeros, sum)
  rescale_row = f32[16] reshape(rescale)
  rescales = f32[3,16] broadcast(rescale_row), dimensions={{1}}
  again = f32[3,16] multiply(relu, rescales)
  clamped = f32[3,16] clamp(zeros, again, mosts)
  narrow = u8[3,16] convert(clamped)
  ROOT both = (s32[2,2,16,16], u8[3,16]) tuple(out, narrow)
}}"
    )
}

/// Instructions on tiles, and the others.
fn counts(isa: &Isa, compiled: &Compiled) -> (usize, usize) {
    let names = names(isa, compiled);
    let tiles = names.iter().filter(|n| n.starts_with("tile") || n.starts_with("tdp")).count();
    (tiles, names.len() - tiles)
}

fn compiled_right(isa: &Isa, hlo: &str) -> Compiled {
    let compiled = compile(isa, hlo, &Options::default()).unwrap_or_else(|e| panic!("{e}\n{hlo}"));
    for seed in 0..3 {
        let difference = run(isa, hlo, &compiled, Values::Full, seed);
        assert!(difference.within_roundings(), "{difference}");
    }
    compiled
}

#[test]
fn k1_is_sixteen_tile_instructions() {
    let isa = amx();
    let compiled = compiled_right(&isa, &k1_hlo());
    assert_eq!(counts(&isa, &compiled), (16, 0));
    let names = names(&isa, &compiled);
    for name in ["tilezero", "tileloadd", "tdpbusd", "tilestored"] {
        assert_eq!(names.iter().filter(|n| **n == name).count(), 4, "{name}");
    }
}

#[test]
fn k2_is_nine_tile_instructions() {
    let isa = amx();
    let compiled = compiled_right(&isa, &k2_hlo());
    assert_eq!(counts(&isa, &compiled), (9, 0));
}

/// The description without some of its instructions.
fn without(names: &[&str]) -> Isa {
    let mut isa = amx();
    let before = isa.instrs.len();
    isa.instrs.retain(|instr| !names.contains(&instr.name.as_str()));
    assert_eq!(isa.instrs.len() + names.len(), before, "a name is not in the description");
    isa
}

/// Instructions that multiply floats and are not the paper's: products of a row and a matrix, of several machine
/// instructions each.
const ROW_PRODUCTS: [&str; 4] =
    ["row_times_matrix_1", "row_times_matrix_1_acc", "row_times_matrix_4", "row_times_matrix_4_acc"];

#[test]
fn k3_and_k4_take_fewer_instructions_than_the_paper() {
    // A broadcast for every row, a product with an operand in memory and a store for every sixteen values: the operand
    // needs no load of its own, and the first product no accumulator.
    let isa = amx();
    for (hlo, rows, tiles) in [(k3_hlo(), 14, 2), (k4_hlo(), 8, 3)] {
        let compiled = compiled_right(&isa, &hlo);
        assert_eq!(counts(&isa, &compiled), (0, rows + 2 * rows * tiles));
    }
}

#[test]
fn k3_and_k4_are_the_papers_where_only_fused_multiply_adds_multiply() {
    let products = [&ROW_PRODUCTS[..], &["vmulps", "vmulpsz_mem"]].concat();
    let isa = without(&products);
    for (hlo, rows, tiles) in [(k3_hlo(), 14, 2), (k4_hlo(), 8, 3)] {
        // As above, with an accumulator cleared for every sixteen values.
        let compiled = compiled_right(&isa, &hlo);
        assert_eq!(counts(&isa, &compiled), (0, rows + 3 * rows * tiles));
    }
    let isa = without(&[&products[..], &["vfmadd231psz_mem"]].concat());
    for (hlo, count) in [(k3_hlo(), 100), (k4_hlo(), 83)] {
        let compiled = compiled_right(&isa, &hlo);
        assert_eq!(counts(&isa, &compiled), (0, count));
        let names = names(&isa, &compiled);
        let count = |name: &str| names.iter().filter(|n| **n == name).count();
        assert_eq!(count("vfmadd231ps"), count("vpxord_zero"));
        assert_eq!(count("vfmadd231ps"), count("vmovupsz_store"));
    }
}

#[test]
fn k5_is_k1_and_a_chain_on_registers() {
    let isa = amx();
    let compiled = compiled_right(&isa, &k5_hlo());
    let (tiles, registers) = counts(&isa, &compiled);
    assert_eq!(tiles, 16);
    assert!(registers <= 37, "{registers}: {:?}", names(&isa, &compiled));
}
