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
