//! Whole backends, from HLO text to code that the oracle executes: the paper's running example, spills, both
//! allocators, determinism, refusals.

mod common;

use act_generator::phase2::AllocError;
use act_generator::{AllocatorChoice, AllocatorUsed, CompileError, Options};
use act_hlo::random::Values;
use act_isa::{Isa, load_target};
use common::{compile, names, run};

fn target(name: &str) -> Isa {
    load_target(name).unwrap_or_else(|e| panic!("{e}"))
}

fn options(alloc: AllocatorChoice) -> Options {
    Options { alloc, ..Options::default() }
}

const ATTENTION: &str = "
add { a = bf16[] parameter(0)  b = bf16[] parameter(1)  ROOT s = bf16[] add(a, b) }
ENTRY attention {
  q = bf16[64,64] parameter(0)
  k = bf16[64,64] parameter(1)
  v = bf16[64,64] parameter(2)
  s = bf16[64,64] dot(q, k), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  e = bf16[64,64] exponential(s)
  zero = bf16[] constant(0)
  r = bf16[64] reduce(e, zero), dimensions={1}, to_apply=add
  b = bf16[64,64] broadcast(r), dimensions={0}
  p = bf16[64,64] divide(e, b)
  ROOT o = bf16[64,64] dot(p, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}";

/// `tail` computes from the parameters a, b, c, d of type bf16[64,64].
fn of_four(tail: &str) -> String {
    let parameters = ["a", "b", "c", "d"].iter().enumerate();
    let parameters = parameters.map(|(k, p)| format!("  {p} = bf16[64,64] parameter({k})\n"));
    format!("ENTRY kernel {{\n{}{tail}}}", parameters.collect::<String>())
}

const ROWS: &str = "lhs_contracting_dims={1}, rhs_contracting_dims={0}";

#[test]
fn attention_is_nine_instructions_under_both_allocators() {
    let isa = target("h_qkv");
    for (alloc, used) in
        [(AllocatorChoice::Auto, AllocatorUsed::Precedence), (AllocatorChoice::CpSat, AllocatorUsed::CpSat)]
    {
        let compiled = compile(&isa, ATTENTION, &options(alloc)).unwrap();
        assert_eq!(
            names(&isa, &compiled),
            ["load_rm", "load_cm", "gemm", "softmax", "mov", "load_rm", "gemm", "mov", "store_rm"]
        );
        assert_eq!(compiled.allocator, used);
        let difference = run(&isa, ATTENTION, &compiled, Values::Unit, 1);
        assert!(difference.within_roundings(), "{difference}");
    }
}

#[test]
fn a_buffer_of_two_tiles_takes_a_product_of_products_with_a_spill() {
    let isa = target("h_qkv");
    let hlo = of_four(&format!(
        "  ab = bf16[64,64] dot(a, b), {ROWS}\n  cd = bf16[64,64] dot(c, d), {ROWS}\n  ROOT r = bf16[64,64] dot(ab, cd), {ROWS}\n"
    ));
    for alloc in [AllocatorChoice::Auto, AllocatorChoice::CpSat] {
        let compiled = compile(&isa, &hlo, &options(alloc)).unwrap();
        // Four loads, three products moved to d1, one store of the result, one spill.
        assert_eq!(compiled.assembly.instrs.len(), 4 + 3 + 3 + 1 + 2);
        assert_eq!(compiled.assembly.scratch_bytes, 64 * 64 * 2);
        let difference = run(&isa, &hlo, &compiled, Values::Unit, 2);
        assert!(difference.within_roundings(), "{difference}");
    }
}

#[test]
fn a_chain_needs_no_spill() {
    let isa = target("h_qkv");
    let hlo = of_four(&format!(
        "  ab = bf16[64,64] dot(a, b), {ROWS}\n  abc = bf16[64,64] dot(ab, c), {ROWS}\n  ROOT r = bf16[64,64] dot(abc, d), {ROWS}\n"
    ));
    let compiled = compile(&isa, &hlo, &Options::default()).unwrap();
    assert_eq!((compiled.assembly.instrs.len(), compiled.assembly.scratch_bytes), (11, 0));
    let difference = run(&isa, &hlo, &compiled, Values::Unit, 3);
    assert!(difference.within_roundings(), "{difference}");
}

fn matmul(m: u64, k: u64, n: u64) -> String {
    format!(
        "ENTRY matmul {{
  a = s8[{m},{k}] parameter(0)
  b = s8[{k},{n}] parameter(1)
  ROOT c = s32[{m},{n}] dot(a, b), {ROWS}
}}"
    )
}

#[test]
fn integer_products_are_exact_under_both_allocators() {
    let isa = target("gemmini");
    for (m, k, n) in [(16, 16, 16), (1, 15, 7), (16, 32, 16), (32, 16, 48)] {
        let hlo = matmul(m, k, n);
        for alloc in [AllocatorChoice::Auto, AllocatorChoice::CpSat] {
            let compiled =
                compile(&isa, &hlo, &options(alloc)).unwrap_or_else(|e| panic!("{m} {k} {n}: {e}"));
            let difference = run(&isa, &hlo, &compiled, Values::Full, m * k * n);
            assert_eq!(difference.elements, 0, "{m} {k} {n}: {difference}");
        }
    }
}

#[test]
fn the_same_input_gives_the_same_code() {
    let isa = target("gemmini");
    let hlo = matmul(32, 32, 32);
    let first = compile(&isa, &hlo, &Options::default()).unwrap();
    for _ in 0..3 {
        let again = compile(&isa, &hlo, &Options::default()).unwrap();
        assert_eq!(first.assembly, again.assembly);
        assert_eq!(first.pii, again.pii);
        assert_eq!(first.report.candidates, again.report.candidates);
    }
    // The cost is that of the first accepted, and no candidate beats it.
    assert!(
        first.report.candidates.iter().all(|c| c.lower_bound >= first.cost
            || matches!(c.outcome, act_generator::compile::Outcome::Failed(_)))
    );
}

#[test]
fn what_the_instructions_cannot_do_is_refused_with_its_reason() {
    let isa = target("h_qkv");
    let sine = "ENTRY e { x = bf16[64,64] parameter(0)  ROOT y = bf16[64,64] sine(x) }";
    let error = compile(&isa, sine, &Options::default()).unwrap_err();
    assert!(matches!(error, CompileError::NoSelection(_)), "{error}");

    // A buffer of one tile cannot hold the operands of a product, and nothing can be spilled out of the way.
    let mut small = isa.clone();
    small.buffers[0].access = vec![64];
    let error = compile(&small, ATTENTION, &Options::default()).unwrap_err();
    let CompileError::NoAllocation { reason: AllocError::NoFit { shortage, .. }, tried, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!((shortage.buffers.as_slice(), *tried > 0), ([("d1".to_owned(), vec![64])].as_slice(), true));
    // Two operands of 64 rows each: neither alone is too large.
    assert_eq!(shortage.values.iter().map(|(_, lens)| lens.as_slice()).collect::<Vec<_>>(), [[64], [64]]);
    assert!(error.to_string().contains("`d1` [64] has no room for "), "{error}");
}
