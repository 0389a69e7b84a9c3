//! Shape inference against results derived by hand from XLA's operation semantics, and its refusals.

use std::slice::from_ref;

use act_hlo::{Binary, Direction, DotDims, ElemType::*, Op, Shape, Unary, infer_shape};

fn shape(elem: act_hlo::ElemType, dims: &[u64]) -> Shape {
    Shape::new(elem, dims)
}

fn accepted(op: Op, operands: &[Shape], declared: Option<Shape>, expected: Shape) {
    let refs: Vec<&Shape> = operands.iter().collect();
    assert_eq!(infer_shape(&op, &refs, declared.as_ref()).unwrap(), expected, "{op:?} {operands:?}");
}

fn refused(op: Op, operands: &[Shape], declared: Option<Shape>, reason: &str) {
    let refs: Vec<&Shape> = operands.iter().collect();
    let error = infer_shape(&op, &refs, declared.as_ref()).expect_err(&format!("{op:?} {operands:?}"));
    assert_eq!(error.op, op.name());
    assert!(error.message.contains(reason), "{error} does not mention `{reason}`");
}

#[test]
fn elementwise() {
    let x = shape(F32, &[2, 3]);
    accepted(Op::Unary(Unary::Exp), from_ref(&x), None, x.clone());
    accepted(Op::Unary(Unary::IsFinite), from_ref(&x), None, shape(Pred, &[2, 3]));
    accepted(Op::Unary(Unary::Abs), &[shape(C64, &[4])], None, shape(F32, &[4]));
    accepted(Op::Binary(Binary::Add), &[x.clone(), x.clone()], Some(x.clone()), x.clone());
    accepted(Op::Compare(Direction::Lt), &[x.clone(), x.clone()], None, shape(Pred, &[2, 3]));
    accepted(Op::Select, &[shape(Pred, &[]), x.clone(), x.clone()], None, x.clone());
    accepted(Op::Select, &[shape(Pred, &[2, 3]), x.clone(), x.clone()], None, x.clone());
    accepted(Op::Clamp, &[shape(F32, &[]), x.clone(), x.clone()], None, x.clone());
    accepted(Op::Convert, from_ref(&x), Some(shape(S8, &[2, 3])), shape(S8, &[2, 3]));

    refused(Op::Unary(Unary::Exp), &[shape(S32, &[2])], None, "not defined on s32");
    refused(Op::Unary(Unary::Not), from_ref(&x), None, "not defined on f32");
    refused(Op::Unary(Unary::Exp), &[], None, "takes 1 operands, got 0");
    refused(Op::Binary(Binary::Add), &[x.clone(), shape(F32, &[3, 2])], None, "differ");
    refused(Op::Binary(Binary::Add), &[x.clone(), shape(F16, &[2, 3])], None, "differ");
    refused(Op::Binary(Binary::Subtract), &[shape(Pred, &[]), shape(Pred, &[])], None, "pred");
    refused(Op::Binary(Binary::Add), &[x.clone(), x.clone()], Some(shape(F32, &[6])), "declared f32[6]");
    refused(Op::Compare(Direction::Lt), &[shape(C64, &[]), shape(C64, &[])], None, "no order");
    refused(Op::Select, &[shape(Pred, &[3]), x.clone(), x.clone()], None, "neither a scalar");
    refused(Op::Select, &[shape(S8, &[]), x.clone(), x.clone()], None, "expected pred");
    refused(Op::Clamp, &[shape(F32, &[2]), x.clone(), x.clone()], None, "lower bound");
    refused(Op::Convert, from_ref(&x), None, "declared");
    refused(Op::Convert, from_ref(&x), Some(shape(S8, &[3, 2])), "declared s8[3,2]");
    refused(Op::Convert, &[shape(C64, &[])], Some(shape(F32, &[])), "real type");
    refused(Op::ReducePrecision { exponent_bits: 0, mantissa_bits: 3 }, &[x], None, "exponent");
}

#[test]
fn bitcast_convert_trades_the_last_dimension() {
    accepted(Op::BitcastConvert, &[shape(F32, &[5])], Some(shape(S32, &[5])), shape(S32, &[5]));
    accepted(Op::BitcastConvert, &[shape(S32, &[5])], Some(shape(S8, &[5, 4])), shape(S8, &[5, 4]));
    accepted(Op::BitcastConvert, &[shape(S4, &[5, 2])], Some(shape(U8, &[5])), shape(U8, &[5]));
    refused(Op::BitcastConvert, &[shape(S8, &[5, 3])], Some(shape(S32, &[5])), "last size is 4");
    refused(Op::BitcastConvert, &[shape(S8, &[])], Some(shape(S32, &[])), "last size is 4");
    refused(Op::BitcastConvert, &[shape(Pred, &[5])], Some(shape(S8, &[5])), "pred");
}

#[test]
fn movement() {
    let x = shape(S32, &[4, 6]);
    accepted(Op::Iota { dim: 1 }, &[], Some(x.clone()), x.clone());
    accepted(Op::Eye, &[], Some(x.clone()), x.clone());
    accepted(Op::Transpose { perm: vec![1, 0] }, from_ref(&x), None, shape(S32, &[6, 4]));
    accepted(Op::Reshape, from_ref(&x), Some(shape(S32, &[3, 8])), shape(S32, &[3, 8]));
    accepted(
        Op::Broadcast { dims: vec![2, 0] },
        from_ref(&x),
        Some(shape(S32, &[6, 9, 4])),
        shape(S32, &[6, 9, 4]),
    );
    accepted(
        Op::Slice { start: vec![1, 0], limit: vec![4, 6], stride: vec![2, 4] },
        from_ref(&x),
        None,
        shape(S32, &[2, 2]),
    );
    accepted(
        Op::Pad { low: vec![1, -2], high: vec![0, 0], interior: vec![2, 0] },
        &[x.clone(), shape(S32, &[])],
        None,
        shape(S32, &[11, 4]),
    );
    // No gap stands between no elements.
    accepted(
        Op::Pad { low: vec![1], high: vec![1], interior: vec![7] },
        &[shape(S32, &[0]), shape(S32, &[])],
        None,
        shape(S32, &[2]),
    );
    let at = [x.clone(), shape(S64, &[]), shape(U8, &[])];
    accepted(Op::DynamicSlice { sizes: vec![4, 2] }, &at, None, shape(S32, &[4, 2]));
    let update = [x.clone(), shape(S32, &[1, 6]), shape(S32, &[]), shape(S32, &[])];
    accepted(Op::DynamicUpdateSlice, &update, None, x.clone());
    accepted(Op::Concatenate { dim: 0 }, &[x.clone(), shape(S32, &[1, 6])], None, shape(S32, &[5, 6]));

    refused(Op::Iota { dim: 2 }, &[], Some(x.clone()), "outside");
    refused(Op::Iota { dim: 0 }, &[], None, "declared");
    refused(Op::Eye, &[], Some(shape(F32, &[3])), "rank 1");
    refused(Op::Transpose { perm: vec![0, 0] }, from_ref(&x), None, "twice");
    refused(Op::Transpose { perm: vec![0] }, from_ref(&x), None, "rank 2");
    refused(Op::Transpose { perm: vec![0, 2] }, from_ref(&x), None, "outside");
    refused(Op::Reshape, from_ref(&x), Some(shape(S32, &[5, 5])), "25");
    refused(Op::Reshape, from_ref(&x), Some(shape(F32, &[4, 6])), "f32");
    refused(Op::Broadcast { dims: vec![0, 1] }, from_ref(&x), Some(shape(S32, &[4, 7])), "size 7");
    refused(Op::Broadcast { dims: vec![0, 9] }, from_ref(&x), Some(shape(S32, &[4, 6])), "outside");
    let slice =
        |start, limit, stride| Op::Slice { start: vec![start], limit: vec![limit], stride: vec![stride] };
    for (start, limit, stride) in [(-1, 2, 1), (3, 2, 1), (0, 5, 1), (0, i64::MAX, 1), (0, 4, 0), (0, 4, -1)]
    {
        refused(slice(start, limit, stride), &[shape(S8, &[4])], None, "dimension 0");
    }
    let pad = Op::Pad { low: vec![-3], high: vec![-3], interior: vec![0] };
    refused(pad, &[shape(S8, &[4]), shape(S8, &[])], None, "size -2");
    let pad = Op::Pad { low: vec![0], high: vec![0], interior: vec![-1] };
    refused(pad, &[shape(S8, &[4]), shape(S8, &[])], None, "negative");
    refused(Op::DynamicSlice { sizes: vec![5, 1] }, &at, None, "dimension 0");
    refused(Op::DynamicSlice { sizes: vec![-1, 1] }, &at, None, "dimension 0");
    refused(Op::DynamicSlice { sizes: vec![1, 1] }, &at[..2], None, "start indices");
    refused(Op::DynamicUpdateSlice, &at[..1], None, "operands");
    refused(Op::Reverse { dims: vec![7] }, from_ref(&x), None, "outside");
    refused(Op::Concatenate { dim: 0 }, &[x.clone(), shape(S32, &[1, 5])], None, "operand 1");
    refused(Op::Concatenate { dim: 0 }, &[], None, "at least one");
}

#[test]
fn contraction() {
    let reduce = |combiner| Op::Reduce { dims: vec![1], combiner };
    let x = shape(F32, &[2, 3, 4]);
    accepted(reduce(Binary::Add), &[x.clone(), shape(F32, &[])], None, shape(F32, &[2, 4]));
    accepted(reduce(Binary::And), &[shape(Pred, &[2, 3]), shape(Pred, &[])], None, shape(Pred, &[2]));
    refused(reduce(Binary::And), &[x.clone(), shape(F32, &[])], None, "and is not defined on f32");
    refused(reduce(Binary::Divide), &[x.clone(), shape(F32, &[])], None, "associative");
    refused(reduce(Binary::Add), &[x.clone(), shape(F32, &[1])], None, "scalar");
    refused(reduce(Binary::Add), &[x.clone(), shape(F16, &[])], None, "f16");

    let attention = DotDims {
        lhs_batch: vec![0],
        rhs_batch: vec![2],
        lhs_contracting: vec![2],
        rhs_contracting: vec![0],
    };
    let (lhs, rhs) = (shape(BF16, &[7, 3, 5]), shape(BF16, &[5, 9, 7]));
    let expected = [7, 3, 9];
    accepted(Op::Dot(attention.clone()), &[lhs.clone(), rhs.clone()], None, shape(BF16, &expected));
    let wide = shape(F32, &expected);
    accepted(Op::Dot(attention.clone()), &[lhs.clone(), rhs.clone()], Some(wide.clone()), wide);
    let cut = shape(BF16, &[5, 9, 8]);
    refused(Op::Dot(attention.clone()), &[lhs.clone(), cut], None, "batch dimensions differ");
    let cut = shape(BF16, &[4, 9, 7]);
    refused(Op::Dot(attention), &[lhs, cut], None, "contracting dimensions differ");
    let matmul =
        |a, b, c| (Op::Dot(DotDims::matmul()), [shape(a, &[2, 3]), shape(b, &[3, 4])], shape(c, &[2, 4]));
    for (a, b, c) in [(S8, S8, S32), (U8, S8, S32), (S8, S8, S8), (BF16, F32, F32), (F32, F32, BF16)] {
        let (op, operands, result) = matmul(a, b, c);
        accepted(op, &operands, Some(result.clone()), result);
    }
    for (a, b, c) in [(S32, S32, S8), (S8, S8, F32), (S8, F32, F32), (Pred, Pred, S32)] {
        let (op, operands, result) = matmul(a, b, c);
        refused(op, &operands, Some(result), "cannot give");
    }
    let (op, operands, _) = matmul(U8, S8, S32);
    refused(op, &operands, None, "declared");
}

#[test]
fn hostile_sizes_are_refused_without_overflow() {
    let huge = shape(F32, &[1 << 61, 1 << 61]);
    refused(Op::Copy, from_ref(&huge), None, "too large");
    refused(Op::Parameter(0), &[], Some(shape(S8, &[0, u64::MAX])), "too large");
    let row = shape(S8, &[1, 1 << 62]);
    refused(Op::Concatenate { dim: 1 }, &[row.clone(), row], None, "too large");
    let pad = Op::Pad { low: vec![i64::MAX], high: vec![i64::MAX], interior: vec![i64::MAX] };
    refused(pad, &[shape(S8, &[1 << 62]), shape(S8, &[])], None, "size");
    let column = shape(S8, &[1 << 32, 1]);
    let outer = DotDims { lhs_contracting: vec![1], rhs_contracting: vec![1], ..DotDims::default() };
    refused(Op::Dot(outer), &[column.clone(), column], None, "too large");
}
