//! The reference evaluator against values that jax computed on XLA's CPU backend and values derived by hand.
//! The wide comparison over all operators and types is golden.rs.

use act_hlo::ElemType::{self, *};
use act_hlo::{Binary, DotDims, EvalError, Graph, Literal, Op, Shape, Unary, eval, eval_op};

fn lit<T: Copy, const W: usize>(
    elem: ElemType,
    dims: &[u64],
    values: &[T],
    bytes: fn(T) -> [u8; W],
) -> Literal {
    let data: Vec<u8> = values.iter().flat_map(|&v| bytes(v)).collect();
    Literal::from_bytes(Shape::new(elem, dims), data).unwrap()
}

fn s8(values: &[i8]) -> Literal {
    lit(S8, &[values.len() as u64], values, i8::to_le_bytes)
}

fn u8s(values: &[u8]) -> Literal {
    lit(U8, &[values.len() as u64], values, u8::to_le_bytes)
}

fn s32(dims: &[u64], values: &[i32]) -> Literal {
    lit(S32, dims, values, i32::to_le_bytes)
}

fn f32s(values: &[f32]) -> Literal {
    lit(F32, &[values.len() as u64], values, f32::to_le_bytes)
}

fn run(op: Op, operands: &[&Literal], result: Shape) -> Literal {
    eval_op(&op, operands, &result).unwrap()
}

fn binary(op: Binary, a: &Literal, b: &Literal) -> Literal {
    run(Op::Binary(op), &[a, b], a.shape().clone())
}

#[test]
fn integers_wrap_and_never_trap() {
    let (a, b) = (s8(&[-128, 5, -7, 7, -7, 0]), s8(&[-1, 0, 2, -2, 0, 0]));
    assert_eq!(binary(Binary::Divide, &a, &b), s8(&[-128, -1, -3, -3, -1, -1]));
    assert_eq!(binary(Binary::Remainder, &a, &b), s8(&[0, 5, -1, 1, -7, 0]));
    let (a, b) = (u8s(&[128, 5, 249, 7, 249, 0]), u8s(&[255, 0, 2, 254, 0, 0]));
    assert_eq!(binary(Binary::Divide, &a, &b), u8s(&[0, 255, 124, 0, 255, 255]));
    let (a, n) = (s8(&[-128, 5, -7, 7, -7, 0]), s8(&[8, -1, 3, 7, 100, 0]));
    assert_eq!(binary(Binary::ShiftLeft, &a, &n), s8(&[0, 0, -56, -128, 0, 0]));
    assert_eq!(binary(Binary::ShiftRightArithmetic, &a, &n), s8(&[-1, 0, -1, 0, -1, 0]));
    assert_eq!(binary(Binary::ShiftRightLogical, &a, &n), s8(&[0, 0, 31, 0, 0, 0]));
    let (a, n) = (u8s(&[128, 249]), u8s(&[8, 3]));
    assert_eq!(binary(Binary::ShiftRightArithmetic, &a, &n), u8s(&[255, 255]));
    let power = eval_op(&Op::Binary(Binary::Power), &[&a, &a], a.shape());
    assert_eq!(power, Err(EvalError::Unsupported { op: "power", elem: U8 }));
    let negated = run(Op::Unary(Unary::Negate), &[&s8(&[-128])], Shape::new(S8, [1]));
    assert_eq!(negated, s8(&[-128]));
}

#[test]
fn four_bit_integers_wrap_at_four_bits() {
    let s4 = |v: &[i8]| lit(S4, &[v.len() as u64], v, i8::to_le_bytes);
    assert_eq!(binary(Binary::Add, &s4(&[7, -8]), &s4(&[1, -1])), s4(&[-8, 7]));
    assert_eq!(binary(Binary::Divide, &s4(&[-8, 3]), &s4(&[-1, 0])), s4(&[-8, -1]));
    assert_eq!(binary(Binary::ShiftRightLogical, &s4(&[-8, 3]), &s4(&[1, 5])), s4(&[4, 0]));
    let clz = run(Op::Unary(Unary::Clz), &[&s4(&[0, 1, -1])], Shape::new(S4, [3]));
    assert_eq!(clz, s4(&[4, 3, 0]));
    let packed =
        run(Op::BitcastConvert, &[&lit(S4, &[1, 2], &[-1i8, 3], i8::to_le_bytes)], Shape::new(U8, [1]));
    assert_eq!(packed, u8s(&[0x3f]));
    let unpacked = run(Op::BitcastConvert, &[&packed], Shape::new(S4, [1, 2]));
    assert_eq!(unpacked.bytes(), [0xff, 3]);
}

#[test]
fn floats_flush_denormals_and_propagate_nan() {
    let tiny = f32s(&[1e-40, -1e-40, f32::MIN_POSITIVE]);
    assert_eq!(binary(Binary::Multiply, &tiny, &f32s(&[1.0; 3])), f32s(&[0.0, -0.0, f32::MIN_POSITIVE]));
    // Rounds to the smallest normal number on the denormal grid, yet is tiny.
    let almost = binary(Binary::Multiply, &f32s(&[f32::MIN_POSITIVE]), &f32s(&[1.0 - f32::EPSILON / 2.0]));
    assert_eq!(almost, f32s(&[0.0]));
    let negated = run(Op::Unary(Unary::Negate), &[&tiny], tiny.shape().clone());
    assert_eq!(negated, f32s(&[-1e-40, 1e-40, -f32::MIN_POSITIVE]));
    let (a, b) = (f32s(&[f32::NAN, 1.0, -0.0, 0.0]), f32s(&[1.0, f32::NAN, 0.0, -0.0]));
    assert_eq!(binary(Binary::Maximum, &a, &b), f32s(&[f32::NAN, f32::NAN, 0.0, 0.0]));
    assert_eq!(binary(Binary::Minimum, &a, &b), f32s(&[f32::NAN, f32::NAN, -0.0, -0.0]));
}

#[test]
fn fma_rounds_once() {
    let (x, tail) = (f32s(&[1.0 + 2f32.powi(-12)]), f32s(&[-(1.0 + 2f32.powi(-11))]));
    // The square is 1 + 2^-11 + 2^-24; rounding it first would lose the last term.
    assert_eq!(run(Op::Fma, &[&x, &x, &tail], x.shape().clone()), f32s(&[2f32.powi(-24)]));
    let (a, b) = (s8(&[100]), s8(&[3]));
    assert_eq!(run(Op::Fma, &[&a, &b, &b], a.shape().clone()), s8(&[47]));
}

/// A result counts as tiny by its value rounded to 24 bits with exponents without end (SDM volume 1, 4.9.1.5): one that
/// only the denormal grid rounds up to the smallest normal number is flushed.
#[test]
fn fma_flushes_what_is_tiny_before_the_denormal_grid() {
    let min = f32::MIN_POSITIVE;
    let x = f32s(&[2f32.powi(-75), 2f32.powi(-76), 2f32.powi(-77), 2f32.powi(-63)]);
    let y = f32s(&[2f32.powi(-75), 2f32.powi(-76), 2f32.powi(-77), 2f32.powi(-63) * (1.0 - 2f32.powi(-24))]);
    let z = f32s(&[-min, -min, -min, 0.0]);
    // 2^-126 less 2^-150, 2^-152 and 2^-154; 2^-126 less 2^-150 by itself.
    let expected = f32s(&[-0.0, -min, -min, 0.0]);
    assert_eq!(run(Op::Fma, &[&x, &y, &z], x.shape().clone()), expected);
}

#[test]
fn conversions_truncate_saturate_and_wrap() {
    let x = f32s(&[f32::NAN, f32::INFINITY, -f32::INFINITY, 300.0, -128.5, 2.9, -2.9, -0.0]);
    let to = |elem| Shape::new(elem, [8]);
    assert_eq!(run(Op::Convert, &[&x], to(S8)), s8(&[0, 127, -128, 127, -128, 2, -2, 0]));
    assert_eq!(run(Op::Convert, &[&x], to(U4)), lit(U4, &[8], &[0, 15, 0, 15, 0, 2, 0, 0], u8::to_le_bytes));
    assert_eq!(run(Op::Convert, &[&x], to(Pred)).bytes(), [1, 1, 1, 1, 1, 1, 1, 0]);
    let i = s32(&[4], &[-129, 128, 300, i32::MIN]);
    assert_eq!(run(Op::Convert, &[&i], Shape::new(S8, [4])), s8(&[127, -128, 44, 0]));
}

#[test]
fn reduced_precision_rounds_overflows_and_underflows() {
    let x = f32s(&[1.1, 1e-8, -70000.0, 65519.99, 65520.0, 1e-40]);
    let half = run(Op::ReducePrecision { exponent_bits: 5, mantissa_bits: 10 }, &[&x], x.shape().clone());
    assert_eq!(half, f32s(&[1.099_609_4, 0.0, f32::NEG_INFINITY, 65504.0, f32::INFINITY, 0.0]));
    let brain = run(Op::ReducePrecision { exponent_bits: 8, mantissa_bits: 7 }, &[&x], x.shape().clone());
    assert_eq!(brain, f32s(&[1.101_562_5, 1.001_171_8e-8, -70144.0, 65536.0, 65536.0, 9.183_55e-41]));
}

#[test]
fn movement() {
    let x = s32(&[2, 3], &[1, 2, 3, 4, 5, 6]);
    let shape = |dims: &[u64]| Shape::new(S32, dims);
    assert_eq!(
        run(Op::Transpose { perm: vec![1, 0] }, &[&x], shape(&[3, 2])),
        s32(&[3, 2], &[1, 4, 2, 5, 3, 6])
    );
    assert_eq!(run(Op::Reverse { dims: vec![1] }, &[&x], shape(&[2, 3])), s32(&[2, 3], &[3, 2, 1, 6, 5, 4]));
    let slice = Op::Slice { start: vec![0, 0], limit: vec![2, 3], stride: vec![1, 2] };
    assert_eq!(run(slice, &[&x], shape(&[2, 2])), s32(&[2, 2], &[1, 3, 4, 6]));
    let nine = s32(&[], &[9]);
    let pad = Op::Pad { low: vec![1, -1], high: vec![0, 1], interior: vec![0, 1] };
    let padded = s32(&[3, 5], &[9, 9, 9, 9, 9, 9, 2, 9, 3, 9, 9, 5, 9, 6, 9]);
    assert_eq!(run(pad, &[&x, &nine], shape(&[3, 5])), padded);
    let (far, negative) = (s32(&[], &[100]), s32(&[], &[-100]));
    let cut = run(Op::DynamicSlice { sizes: vec![1, 2] }, &[&x, &far, &negative], shape(&[1, 2]));
    assert_eq!(cut, s32(&[1, 2], &[4, 5]));
    let update = s32(&[1, 2], &[7, 8]);
    let updated = run(Op::DynamicUpdateSlice, &[&x, &update, &negative, &far], shape(&[2, 3]));
    assert_eq!(updated, s32(&[2, 3], &[1, 7, 8, 4, 5, 6]));
    let joined = run(Op::Concatenate { dim: 1 }, &[&x, &s32(&[2, 1], &[7, 8])], shape(&[2, 4]));
    assert_eq!(joined, s32(&[2, 4], &[1, 2, 3, 7, 4, 5, 6, 8]));
    let spread = run(Op::Broadcast { dims: vec![1] }, &[&s32(&[2], &[1, 2])], shape(&[2, 2]));
    assert_eq!(spread, s32(&[2, 2], &[1, 2, 1, 2]));
    assert_eq!(run(Op::Iota { dim: 1 }, &[], shape(&[2, 3])), s32(&[2, 3], &[0, 1, 2, 0, 1, 2]));
    assert_eq!(run(Op::Eye, &[], shape(&[2, 3])), s32(&[2, 3], &[1, 0, 0, 0, 1, 0]));
}

#[test]
fn contractions() {
    let x = s32(&[2, 3], &[1, 2, 3, 4, 5, 6]);
    let sum = Op::Reduce { dims: vec![0], combiner: Binary::Add };
    assert_eq!(run(sum, &[&x, &s32(&[], &[10])], Shape::new(S32, [3])), s32(&[3], &[15, 17, 19]));
    let dims = DotDims { lhs_contracting: vec![1], rhs_contracting: vec![1], ..DotDims::default() };
    assert_eq!(run(Op::Dot(dims), &[&x, &x], Shape::new(S32, [2, 2])), s32(&[2, 2], &[14, 32, 32, 77]));
    // u8 by s8 with different signs: 255 * -1 + 2 * 3.
    let a = lit(U8, &[1, 2], &[255, 2], u8::to_le_bytes);
    let b = lit(S8, &[2, 1], &[-1, 3], i8::to_le_bytes);
    assert_eq!(run(Op::Dot(DotDims::matmul()), &[&a, &b], Shape::new(S32, [1, 1])), s32(&[1, 1], &[-249]));
    // One rounding at the end: 1 + 256 * 2^-9 is 1.5 in f32, but stays 1 when bf16 rounds each sum.
    let bf16 = |v: f32| half::bf16::from_f32(v).to_le_bytes();
    let mut row = vec![2f32.powi(-9); 257];
    row[0] = 1.0;
    let row = lit(BF16, &[1, 257], &row, bf16);
    let ones = lit(BF16, &[257, 1], &[1.0; 257], bf16);
    let product = run(Op::Dot(DotDims::matmul()), &[&row, &ones], Shape::new(BF16, [1, 1]));
    assert_eq!(product, lit(BF16, &[1, 1], &[1.5], bf16));
}

#[test]
fn denormal_products_and_sums_are_flushed_in_a_dot() {
    let dot = |a: &[f32], b: &[f32]| {
        let (k, inner) = (
            a.len() as u64,
            DotDims { lhs_contracting: vec![0], rhs_contracting: vec![0], ..DotDims::default() },
        );
        assert_eq!(k, b.len() as u64);
        run(Op::Dot(inner), &[&f32s(a), &f32s(b)], Shape::scalar(F32))
    };
    let scalar = |v: f32| lit(F32, &[], &[v], f32::to_le_bytes);
    let least = f32::MIN_POSITIVE;
    assert_eq!(dot(&[1e-20, 1.0], &[1e-20, 0.0]), scalar(0.0), "the product is denormal");
    assert_eq!(dot(&[1.5 * least, least], &[1.0, -1.0]), scalar(0.0), "the sum is denormal");
    assert_eq!(dot(&[1e-40, 1.0], &[1.0, 2.0]), scalar(2.0), "an operand is denormal");
    assert_eq!(
        dot(&[least, least], &[1.0 - f32::EPSILON / 2.0, 2.0]),
        scalar(2.0 * least),
        "tiny when rounded"
    );
}

#[test]
fn graphs_are_evaluated_and_inputs_checked() {
    let mut graph = Graph::new("difference");
    let a = graph.parameter(Shape::new(S32, [2]));
    let b = graph.parameter(Shape::new(S32, [2]));
    let sum = graph.add(Op::Binary(Binary::Add), &[a, b]).unwrap();
    let twice = graph.add(Op::Binary(Binary::Add), &[sum, sum]).unwrap();
    for root in [twice, a, twice] {
        graph.add_root(root).unwrap();
    }
    let (x, y) = (s32(&[2], &[1, 2]), s32(&[2], &[10, 20]));
    let expected = s32(&[2], &[22, 44]);
    assert_eq!(eval(&graph, &[x.clone(), y]).unwrap(), [expected.clone(), x.clone(), expected]);
    assert_eq!(eval(&graph, from(&x)).unwrap_err(), EvalError::InputCount { expected: 2, got: 1 });
    let wrong = eval(&graph, &[x.clone(), s32(&[1], &[0])]).unwrap_err();
    assert!(matches!(wrong, EvalError::InputShape { index: 1, .. }), "{wrong}");
    let complex = Literal::zeros(Shape::new(C64, [2]));
    let refused = eval_op(&Op::Binary(Binary::Add), &[&complex, &complex], complex.shape());
    assert_eq!(refused.unwrap_err(), EvalError::Unsupported { op: "add", elem: C64 });
    let huge = eval_op(&Op::Iota { dim: 0 }, &[], &Shape::new(S8, [1 << 40]));
    assert!(matches!(huge, Err(EvalError::TooLarge { .. })));
}

fn from(x: &Literal) -> &[Literal] {
    std::slice::from_ref(x)
}
