//! Attention on h_qkv: the ACT paper's running example, and what its ISA lacks.

use super::execute::{assert_exact, error};
use super::{kernel, names, select, selector};
use crate::numerics::FloatPolicy;
use crate::phase1::SelectError;

/// softmax(q k^T) v in plain bf16.
pub(super) const PLAIN: &str = r#"
HloModule attention
add { a = bf16[] parameter(0)
 b = bf16[] parameter(1)
 ROOT s = bf16[] add(a, b) }
ENTRY main {
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
}"#;

/// The same as XLA's CPU backend emits it: computed in f32 with roundings between, the division as a product.
const AS_XLA_EMITS: &str = r#"
HloModule attention
add { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT s = f32[] add(a, b) }
ENTRY main {
  q = bf16[64,64] parameter(0)
  k = bf16[64,64] parameter(1)
  v = bf16[64,64] parameter(2)
  q32 = f32[64,64] convert(q)
  k32 = f32[64,64] convert(k)
  v32 = f32[64,64] convert(v)
  s = f32[64,64] dot(q32, k32), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  s16 = bf16[64,64] convert(s)
  s32 = f32[64,64] convert(s16)
  e = f32[64,64] exponential(s32)
  zero = f32[] constant(0)
  r = f32[64] reduce(e, zero), dimensions={1}, to_apply=add
  r16 = bf16[64] convert(r)
  r32 = f32[64] convert(r16)
  one = f32[] constant(1)
  ones = f32[64] broadcast(one), dimensions={}
  rc = f32[64] divide(ones, r32)
  e16 = bf16[64,64] convert(e)
  e32 = f32[64,64] convert(e16)
  b = f32[64,64] broadcast(rc), dimensions={0}
  m = f32[64,64] multiply(e32, b)
  m16 = bf16[64,64] convert(m)
  m32 = f32[64,64] convert(m16)
  o = f32[64,64] dot(m32, v32), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT o16 = bf16[64,64] convert(o)
}"#;

/// jax.nn.softmax: with the row maximum subtracted.
const SHIFTED: &str = r#"
HloModule attention
add { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT s = f32[] add(a, b) }
max { a = bf16[] parameter(0)
 b = bf16[] parameter(1)
 ROOT s = bf16[] maximum(a, b) }
ENTRY main {
  q = bf16[64,64] parameter(0)
  k = bf16[64,64] parameter(1)
  v = bf16[64,64] parameter(2)
  q32 = f32[64,64] convert(q)
  k32 = f32[64,64] convert(k)
  v32 = f32[64,64] convert(v)
  s = f32[64,64] dot(q32, k32), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  s16 = bf16[64,64] convert(s)
  low = bf16[] constant(-inf)
  top = bf16[64] reduce(s16, low), dimensions={1}, to_apply=max
  s32 = f32[64,64] convert(s16)
  top32 = f32[64] convert(top)
  tops = f32[64,64] broadcast(top32), dimensions={0}
  d = f32[64,64] subtract(s32, tops)
  d16 = bf16[64,64] convert(d)
  d32 = f32[64,64] convert(d16)
  e = f32[64,64] exponential(d32)
  zero = f32[] constant(0)
  r = f32[64] reduce(e, zero), dimensions={1}, to_apply=add
  r16 = bf16[64] convert(r)
  r32 = f32[64] convert(r16)
  one = f32[] constant(1)
  ones = f32[64] broadcast(one), dimensions={}
  rc = f32[64] divide(ones, r32)
  e16 = bf16[64,64] convert(e)
  e32 = f32[64,64] convert(e16)
  b = f32[64,64] broadcast(rc), dimensions={0}
  m = f32[64,64] multiply(e32, b)
  m16 = bf16[64,64] convert(m)
  m32 = f32[64,64] convert(m16)
  o = f32[64,64] dot(m32, v32), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT o16 = bf16[64,64] convert(o)
}"#;

const NINE: [&str; 9] =
    ["gemm", "gemm", "load_cm", "load_rm", "load_rm", "mov", "mov", "softmax", "store_rm"];

/// The paper's nine instructions (its Fig. 13).
#[test]
fn plain_attention_is_the_papers_nine_instructions() {
    let (isa, selector) = selector("h_qkv");
    let kernel = kernel(PLAIN);
    let found = select(&selector, &kernel, FloatPolicy::Exact, 1).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(names(&isa, &found[0].graph), NINE);
    assert_exact(&isa, &kernel, &found[0].graph);
}

#[test]
fn attention_as_xla_emits_it_is_the_same_nine_instructions() {
    let (isa, selector) = selector("h_qkv");
    let kernel = kernel(AS_XLA_EMITS);
    let found = select(&selector, &kernel, FloatPolicy::Xla, 1).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(names(&isa, &found[0].graph), NINE);
    let worst = error(&isa, &kernel, &found[0].graph, 1);
    assert!(worst < 0.02, "{worst}");
    // Without XLA's own liberties the roundings between stand in the way.
    assert!(select(&selector, &kernel, FloatPolicy::Exact, 1).is_err());
}

#[test]
fn the_row_maximum_is_named_as_what_h_qkv_lacks() {
    let (isa, selector) = selector("h_qkv");
    let kernel = kernel(SHIFTED);
    match select(&selector, &kernel, FloatPolicy::Xla, 1) {
        Err(error @ SelectError::NoInstruction { .. }) => {
            assert!(
                error.to_string().starts_with("no instruction of h_qkv computes reduce maximum"),
                "{error}"
            );
        }
        other => panic!("{other:?}"),
    }
    let found = select(&selector, &kernel, FloatPolicy::Fast, 1).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(names(&isa, &found[0].graph), NINE);
    let worst = error(&isa, &kernel, &found[0].graph, 1);
    assert!(worst < 0.02, "{worst}");
}

/// The public act-backend compiles softmax over axis 0 to softmax over axis 1.
#[test]
fn softmax_over_axis_0_is_not_taken_for_softmax_over_axis_1() {
    let (isa, selector) = selector("h_qkv");
    let text = PLAIN
        .replace("dimensions={1}, to_apply", "dimensions={0}, to_apply")
        .replace("broadcast(r), dimensions={0}", "broadcast(r), dimensions={1}");
    let kernel = kernel(&text);
    match select(&selector, &kernel, FloatPolicy::Exact, 4) {
        Ok(found) => found.iter().for_each(|s| assert_exact(&isa, &kernel, &s.graph)),
        Err(error) => assert!(matches!(error, SelectError::NoCover { .. }), "{error}"),
    }
}

/// The public act-backend compiles q k^T and an identity transpose to what q k would be.
#[test]
fn contracting_dimensions_and_permutations_decide() {
    let (isa, selector) = selector("h_qkv");
    let product = |contracting: usize| {
        kernel(&format!(
            "HloModule m\nENTRY main {{\n q = bf16[64,64] parameter(0)\n k = bf16[64,64] parameter(1)\n \
             ROOT s = bf16[64,64] dot(q, k), lhs_contracting_dims={{1}}, rhs_contracting_dims={{{contracting}}}\n}}"
        ))
    };
    for (contracting, load) in [(0, "load_rm"), (1, "load_cm")] {
        let kernel = product(contracting);
        let found = select(&selector, &kernel, FloatPolicy::Exact, 8).unwrap_or_else(|e| panic!("{e}"));
        let mut expected = vec!["gemm", load, "load_rm", "mov", "store_rm"];
        expected.sort_unstable();
        assert_eq!(names(&isa, &found[0].graph), expected);
        found.iter().for_each(|s| assert_exact(&isa, &kernel, &s.graph));
    }
    for (perm, via) in [("0,1", "load_rm"), ("1,0", "load_cm")] {
        let kernel = kernel(&format!(
            "HloModule m\nENTRY main {{\n q = bf16[64,64] parameter(0)\n \
             ROOT s = bf16[64,64] transpose(q), dimensions={{{perm}}}\n}}"
        ));
        let found = select(&selector, &kernel, FloatPolicy::Exact, 8).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(names(&isa, &found[0].graph).len(), 2, "{via}");
        found.iter().for_each(|s| assert_exact(&isa, &kernel, &s.graph));
    }
}

#[test]
fn enumeration_gives_distinct_graphs_cheapest_first() {
    let (isa, selector) = selector("h_qkv");
    let kernel = kernel(PLAIN);
    let found = select(&selector, &kernel, FloatPolicy::Exact, 20).unwrap_or_else(|e| panic!("{e}"));
    for (k, one) in found.iter().enumerate() {
        assert!(found[..k].iter().all(|other| other.graph != one.graph));
    }
    found.iter().for_each(|s| assert_exact(&isa, &kernel, &s.graph));
}

#[test]
fn generated_rules_read_as_text() {
    let (_, selector) = selector("h_qkv");
    let text = selector.rules_text();
    for line in [
        "rule load_rm(n):",
        "  require 1 <= n <= 128",
        "  y: bf16[n,64] = bitcast-convert(a)  | view of input 0",
        "contracting=[1],[0]",
    ] {
        assert!(text.contains(line), "{text}");
    }
}
