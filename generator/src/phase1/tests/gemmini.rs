//! Tiles of int8 matrix products on gemmini.

use super::execute::assert_exact;
use super::{kernel, names, select, selector};
use crate::numerics::FloatPolicy;
use crate::phase1::SelectError;
use crate::pii::PiiOp;
use act_isa::{Affine, AttrVal, BufferId, Phase, Place, Space, View};

pub(super) fn product(m: u64, k: u64, n: u64) -> String {
    format!(
        "HloModule m\nENTRY main {{\n a = s8[{m},{k}] parameter(0)\n b = s8[{k},{n}] parameter(1)\n \
         ROOT c = s32[{m},{n}] dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n}}"
    )
}

/// Bias, relu, scale, round, saturate, as XLA's CPU backend emits it: relu before the scale.
pub(super) fn requantized(m: u64, k: u64, n: u64) -> String {
    format!(
        "HloModule m\nENTRY main {{
 a = s8[{m},{k}] parameter(0)
 b = s8[{k},{n}] parameter(1)
 bias = s32[{n}] parameter(2)
 c = s32[{m},{n}] dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
 biases = s32[{m},{n}] broadcast(bias), dimensions={{1}}
 d = s32[{m},{n}] add(c, biases)
 zero = s32[] constant(0)
 zeros = s32[{m},{n}] broadcast(zero), dimensions={{}}
 r = s32[{m},{n}] maximum(d, zeros)
 f = f32[{m},{n}] convert(r)
 scale = f32[] constant(0.02)
 scales = f32[{m},{n}] broadcast(scale), dimensions={{}}
 x = f32[{m},{n}] multiply(f, scales)
 y = f32[{m},{n}] round-nearest-even(x)
 low = f32[] constant(-128)
 lows = f32[{m},{n}] broadcast(low), dimensions={{}}
 high = f32[] constant(127)
 highs = f32[{m},{n}] broadcast(high), dimensions={{}}
 q = f32[{m},{n}] clamp(lows, y, highs)
 ROOT o = s8[{m},{n}] convert(q)
}}"
    )
}

#[test]
fn a_tile_product_is_two_loads_a_product_and_a_store() {
    let (isa, selector) = selector("gemmini");
    for (m, k, n) in [(16, 16, 16), (1, 16, 16), (5, 7, 11), (16, 1, 3), (1, 1, 1)] {
        let kernel = kernel(&product(m, k, n));
        let found = select(&selector, &kernel, FloatPolicy::Exact, 4).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(names(&isa, &found[0].graph), ["matmul", "mvin", "mvin", "mvout_acc"]);
        found.iter().for_each(|s| assert_exact(&isa, &kernel, &s.graph));
    }
}

#[test]
fn relu_before_the_scale_becomes_relu_after_it() {
    let (isa, selector) = selector("gemmini");
    for (m, k, n) in [(16, 16, 16), (3, 16, 9)] {
        let kernel = kernel(&requantized(m, k, n));
        let found = select(&selector, &kernel, FloatPolicy::Xla, 4).unwrap_or_else(|e| panic!("{e}"));
        let expected = ["matmul_acc", "mvin", "mvin", "mvin_acc", "mvout_acc_scaled_relu"];
        assert_eq!(names(&isa, &found[0].graph), expected);
        let scale = AttrVal::F32(0.02f32.to_bits());
        let scaled = |op: &PiiOp| matches!(op, PiiOp::Instr { alpha, .. } if alpha.contains(&scale));
        assert!(found[0].graph.nodes.iter().any(|node| scaled(&node.op)));
        found.iter().for_each(|s| assert_exact(&isa, &kernel, &s.graph));
    }
}

#[test]
fn a_clamp_at_zero_is_saturation_and_relu() {
    let (isa, selector) = selector("gemmini");
    let kernel = kernel(&requantized(16, 16, 16).replace("constant(-128)", "constant(0)"));
    let found = select(&selector, &kernel, FloatPolicy::Exact, 2).unwrap_or_else(|e| panic!("{e}"));
    assert!(names(&isa, &found[0].graph).contains(&"mvout_acc_scaled_relu".to_owned()));
    found.iter().for_each(|s| assert_exact(&isa, &kernel, &s.graph));
}

/// A contraction in three parts: the accumulator lives on chip between them.
#[test]
fn prologue_body_and_epilogue_keep_the_accumulator_on_chip() {
    let (isa, selector) = selector("gemmini");
    let acc = isa.buffer_ids().find(|&b| isa.buffer(b).name == "acc").expect("gemmini has acc");
    let on_chip = Place::OnChip { buf: acc, slot: None, carried: None };

    let mut prologue = kernel(
        "HloModule p\nENTRY main {\n bias = s32[16] parameter(0)\n \
         ROOT c = s32[16,16] broadcast(bias), dimensions={1}\n}",
    );
    prologue.outs[0] = on_chip.clone();
    prologue.phase = Phase::Prologue;
    let found = select(&selector, &prologue, FloatPolicy::Exact, 1).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(names(&isa, &found[0].graph), ["mvin_acc"]);
    assert_exact(&isa, &prologue, &found[0].graph);

    let mut zeros = kernel(
        "HloModule z\nENTRY main {\n z = s32[] constant(0)\n \
         ROOT c = s32[16,16] broadcast(z), dimensions={}\n}",
    );
    zeros.outs[0] = on_chip.clone();
    let found = select(&selector, &zeros, FloatPolicy::Exact, 2).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(names(&isa, &found[0].graph), ["zero_acc"]);
    found.iter().for_each(|s| assert_exact(&isa, &zeros, &s.graph));

    let mut body = kernel(
        "HloModule b\nENTRY main {\n a = s8[16,16] parameter(0)\n b = s8[16,16] parameter(1)\n \
         c = s32[16,16] parameter(2)\n d = s32[16,16] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n \
         ROOT s = s32[16,16] add(d, c)\n}",
    );
    body.ins[2] = on_chip.clone();
    body.outs[0] = on_chip.clone();
    body.accumulators = vec![Some(2)];
    body.phase = Phase::Body;
    let found = select(&selector, &body, FloatPolicy::Exact, 1).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(names(&isa, &found[0].graph), ["matmul_acc", "mvin", "mvin"]);
    assert_exact(&isa, &body, &found[0].graph);

    let text = requantized(16, 16, 16);
    let tail = text.split("d = s32").nth(1).expect("the sum").split_once('\n').expect("its line").1;
    let mut epilogue = kernel(&format!("HloModule e\nENTRY main {{\n d = s32[16,16] parameter(0)\n{tail}"));
    epilogue.ins[0] = on_chip;
    epilogue.phase = Phase::Epilogue;
    let found = select(&selector, &epilogue, FloatPolicy::Exact, 1).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(names(&isa, &found[0].graph), ["mvout_acc_scaled_relu"]);
    assert_exact(&isa, &epilogue, &found[0].graph);
}

#[test]
fn strides_of_views_become_attributes() {
    let (isa, selector) = selector("gemmini");
    let mut kernel = kernel(&product(16, 16, 16));
    let strided = |space, elem, row: i64, step: i64, start| {
        Place::Hbm(View { space, elem, dims: vec![(16, row), (16, step)], start: Affine::constant(start) })
    };
    kernel.ins[0] = strided(Space::Operand(0), act_hlo::ElemType::S8, 100, 1, 7);
    kernel.outs[0] = strided(Space::Result(0), act_hlo::ElemType::S32, 200, 4, 40);
    let found = select(&selector, &kernel, FloatPolicy::Exact, 2).unwrap_or_else(|e| panic!("{e}"));
    for stride in [100, 200, 16] {
        let has =
            |op: &PiiOp| matches!(op, PiiOp::Instr { alpha, .. } if alpha.contains(&AttrVal::Int(stride)));
        assert!(found[0].graph.nodes.iter().any(|n| has(&n.op)), "{stride}");
    }
    found.iter().for_each(|s| assert_exact(&isa, &kernel, &s.graph));
}

/// The right operand by rows of its transpose: gemmini reads adjacent bytes only, so memory must lie that way.
#[test]
fn a_transposed_operand_needs_transposed_memory() {
    let (isa, selector) = selector("gemmini");
    let text = product(16, 16, 16).replace("rhs_contracting_dims={0}", "rhs_contracting_dims={1}");
    let mut kernel = kernel(&text);
    match select(&selector, &kernel, FloatPolicy::Exact, 1) {
        Err(SelectError::NoCover { op, .. }) => assert_eq!(op, "dot"),
        other => panic!("{other:?}"),
    }
    if let Place::Hbm(view) = &mut kernel.ins[1] {
        view.dims = vec![(16, 1), (16, 16)];
    }
    let found = select(&selector, &kernel, FloatPolicy::Exact, 2).unwrap_or_else(|e| panic!("{e}"));
    found.iter().for_each(|s| assert_exact(&isa, &kernel, &s.graph));
}

#[test]
pub(super) fn products_beyond_the_array_are_cut_and_accumulated() {
    let (isa, selector) = selector("gemmini");
    for (m, k, n) in [(16, 40, 16), (20, 16, 33), (17, 33, 16)] {
        let kernel = kernel(&product(m, k, n));
        let found = select(&selector, &kernel, FloatPolicy::Exact, 1).unwrap_or_else(|e| panic!("{e}"));
        let products = names(&isa, &found[0].graph).iter().filter(|n| n.starts_with("matmul")).count() as u64;
        assert_eq!(products, m.div_ceil(16) * k.div_ceil(16) * n.div_ceil(16));
        assert_exact(&isa, &kernel, &found[0].graph);
    }
}

/// More than the search can rank: some graph is found all the same, and it is right.
#[test]
fn a_large_kernel_has_a_graph_when_the_search_gives_up() {
    let (isa, selector) = selector("gemmini");
    let kernel = kernel(&requantized(48, 48, 40));
    let found = select(&selector, &kernel, FloatPolicy::Exact, 2).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(names(&isa, &found[0].graph).iter().filter(|n| n.starts_with("matmul")).count(), 27);
    assert_exact(&isa, &kernel, &found[0].graph);
}

#[test]
fn an_operator_that_gemmini_lacks_is_named() {
    let (_, selector) = selector("gemmini");
    let kernel = kernel(
        "HloModule e\nENTRY main {\n x = s8[16,16] parameter(0)\n f = f32[16,16] convert(x)\n \
         e = f32[16,16] exponential(f)\n ROOT y = s8[16,16] convert(e)\n}",
    );
    let error = select(&selector, &kernel, FloatPolicy::Xla, 1).expect_err("no exponential");
    assert_eq!(error.to_string(), "no instruction of gemmini computes exponential (f32[16,16])");
}

/// Whether a slot is of another form or only too small is told apart.
#[test]
fn a_value_that_is_larger_than_a_buffer_is_refused_as_that() {
    let (isa, selector) = selector("gemmini");
    let acc = isa.buffers.iter().position(|b| b.name == "acc").unwrap();
    let refusal = |dims: &str| {
        let mut kernel = kernel(&format!(
            "HloModule m\nENTRY main {{\n a = s32[{dims}] parameter(0)\n ROOT b = s32[{dims}] add(a, a)\n}}"
        ));
        kernel.outs[0] = Place::OnChip { buf: BufferId(acc as u16), slot: None, carried: None };
        select(&selector, &kernel, FloatPolicy::Exact, 1).expect_err("no slot").to_string()
    };
    for dims in ["16,1000", "1025,16"] {
        let large =
            format!("no slot of acc in gemmini is as large as s32[{dims}]: all of it is s32[1024,16]");
        assert_eq!(refusal(dims), large);
    }
    assert_eq!(refusal("16"), "no slot of acc in gemmini has the shape s32[16]");
}
