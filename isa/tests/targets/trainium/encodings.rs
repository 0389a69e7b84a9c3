//! Calls of nki.isa that instructions are written as, against lines put together by hand from the reference of nki.isa:
//! names of functions, operators and arguments, places of tiles, access patterns in elements.

use act_isa::{Isa, load_target, parse_program, print_device};

/// The lines of an instruction's encoding, inside a loop of two rounds whose variable its addresses may use.
fn lines(isa: &Isa, instr: &str) -> Vec<String> {
    let text = format!("operands 1048576\nresults 1048576\nfor %i3 in 0..2 {{\n{instr}\n}}\n");
    let program = parse_program(isa, &text).unwrap_or_else(|e| panic!("{instr}: {e}"));
    let text = print_device(isa, &program).unwrap_or_else(|e| panic!("{instr}: {e}"));
    let mut lines = text.lines().skip_while(|line| !line.starts_with("for"));
    assert_eq!(lines.next(), Some("for i3 in nl.sequential_range(2):"));
    lines.map(|line| line.trim().to_owned()).collect()
}

const CASES: [(&str, &[&str]); 26] = [
    (
        "dma_load_f32 p=64 f=8 stride=4096 addr=operand0+%i3*256+16 y_p=0 y_f=%i3*8+4",
        &[
            "nisa.dma_copy(dst=sbuf_f32[nl.ds(0, 64), nl.ds((i3*8 + 4), 8)],",
            "src=operand0.ap(pattern=[[1024, 64], [1, 8]], offset=(i3*64 + 4), dtype=nl.float32))",
        ],
    ),
    (
        "dma_load_pattern_bf16 p=3 f=4 step_p=2 step_f=6 addr=operand0 y_p=0 y_f=1",
        &[
            "nisa.dma_copy(dst=sbuf_bf16[nl.ds(0, 3), nl.ds(1, 4)],",
            "src=operand0.ap(pattern=[[1, 3], [3, 4]], offset=0, dtype=nl.bfloat16))",
        ],
    ),
    (
        "dma_load_s8 p=3 f=4 stride=5 addr=operand0+7 y_p=0 y_f=1",
        &[
            "nisa.dma_copy(dst=sbuf_s8[nl.ds(0, 3), nl.ds(1, 4)],",
            "src=operand0.ap(pattern=[[5, 3], [1, 4]], offset=7, dtype=nl.int8))",
        ],
    ),
    (
        "dma_load_transpose_f16 p=16 f=8 stride=64 addr=operand0+2 y_p=0 y_f=0",
        &[
            "nisa.dma_transpose(dst=sbuf_f16[nl.ds(0, 16), nl.ds(0, 8)],",
            "src=operand0.ap(pattern=[[32, 8], [1, 16]], offset=1, dtype=nl.float16))",
        ],
    ),
    (
        "dma_store_s32 p=2 f=3 stride=16 x_p=5 x_f=6 addr=result0+%i3*512",
        &[
            "nisa.dma_copy(dst=result0.ap(pattern=[[4, 2], [1, 3]], offset=i3*128, dtype=nl.int32),",
            "src=sbuf_s32[nl.ds(5, 2), nl.ds(6, 3)])",
        ],
    ),
    (
        "nc_matmul_acc_bf16 k=128 m=64 n=512 s_p=0 s_f=1 v_p=0 v_f=2 y_p=0 y_f=512",
        &[
            "nisa.nc_matmul(dst=psum[nl.ds(0, 64), nl.ds(512, 512)], accumulate=True,",
            "stationary=sbuf_bf16[nl.ds(0, 128), nl.ds(1, 64)],",
            "moving=sbuf_bf16[nl.ds(0, 128), nl.ds(2, 512)])",
        ],
    ),
    (
        "nc_transpose_f32 p=8 f=4 x_p=0 x_f=1 y_p=0 y_f=2",
        &[
            "nisa.nc_transpose(dst=psum[nl.ds(0, 4), nl.ds(2, 8)],",
            "data=sbuf_f32[nl.ds(0, 8), nl.ds(1, 4)], engine=nisa.engine.tensor)",
        ],
    ),
    (
        "nc_transpose_bf16 p=8 f=4 x_p=0 x_f=1 y_p=0 y_f=2",
        &[
            "nisa.nc_matmul(dst=psum[nl.ds(0, 4), nl.ds(2, 8)], stationary=sbuf_bf16[nl.ds(0, 8), nl.ds(1, 4)],",
            "moving=nl.shared_identity_matrix(n=8, dtype=nl.bfloat16))",
        ],
    ),
    (
        "nc_transpose_vector_f32 p=8 f=4 x_p=0 x_f=1 y_p=0 y_f=2",
        &[
            "nisa.nc_transpose(dst=sbuf_f32[nl.ds(0, 4), nl.ds(2, 8)],",
            "data=sbuf_f32[nl.ds(0, 8), nl.ds(1, 4)], engine=nisa.engine.vector)",
        ],
    ),
    (
        "tensor_copy_psum_bf16 p=8 f=4 x_p=0 x_f=1 y_p=32 y_f=2",
        &[
            "nisa.tensor_copy(dst=sbuf_bf16[nl.ds(32, 8), nl.ds(2, 4)],",
            "src=psum[nl.ds(0, 8), nl.ds(1, 4)], engine=nisa.engine.vector)",
        ],
    ),
    (
        "tensor_tensor_subtract_psum p=8 f=4 a_p=0 a_f=1 b_p=32 b_f=2 y_p=64 y_f=3",
        &[
            "nisa.tensor_tensor(dst=sbuf_f32[nl.ds(64, 8), nl.ds(3, 4)], op=nl.subtract, engine=nisa.engine.vector,",
            "data1=psum[nl.ds(0, 8), nl.ds(1, 4)], data2=sbuf_f32[nl.ds(32, 8), nl.ds(2, 4)])",
        ],
    ),
    (
        "tensor_tensor_max_s32 p=8 f=4 a_p=0 a_f=1 b_p=32 b_f=2 y_p=64 y_f=3",
        &[
            "nisa.tensor_tensor(dst=sbuf_s32[nl.ds(64, 8), nl.ds(3, 4)], op=nl.maximum, engine=nisa.engine.gpsimd,",
            "data1=sbuf_s32[nl.ds(0, 8), nl.ds(1, 4)], data2=sbuf_s32[nl.ds(32, 8), nl.ds(2, 4)])",
        ],
    ),
    (
        "tensor_tensor_logical_shift_right_s32 p=8 f=4 a_p=0 a_f=1 b_p=32 b_f=2 y_p=64 y_f=3",
        &[
            "nisa.tensor_tensor(dst=sbuf_s32[nl.ds(64, 8), nl.ds(3, 4)], op=nl.right_shift, engine=nisa.engine.vector,",
            "data1=sbuf_s32[nl.ds(0, 8), nl.ds(1, 4)], data2=sbuf_s32[nl.ds(32, 8), nl.ds(2, 4)])",
        ],
    ),
    (
        "tensor_tensor_less_equal_f32 p=8 f=4 a_p=0 a_f=1 b_p=32 b_f=2 y_p=64 y_f=3",
        &[
            "nisa.tensor_tensor(dst=sbuf_pred[nl.ds(64, 8), nl.ds(3, 4)], op=nl.less_equal, engine=nisa.engine.vector,",
            "data1=sbuf_f32[nl.ds(0, 8), nl.ds(1, 4)], data2=sbuf_f32[nl.ds(32, 8), nl.ds(2, 4)])",
        ],
    ),
    (
        "tensor_scalar_reverse_subtract_immediate p=8 f=4 s=-2.5 x_p=0 x_f=1 y_p=64 y_f=3",
        &[
            "nisa.tensor_scalar(dst=sbuf_f32[nl.ds(64, 8), nl.ds(3, 4)], data=sbuf_f32[nl.ds(0, 8), nl.ds(1, 4)],",
            "op0=nl.subtract, operand0=-2.5, reverse0=True, engine=nisa.engine.vector)",
        ],
    ),
    (
        "tensor_scalar_min_column p=8 f=4 x_p=0 x_f=1 c_p=32 c_f=9 y_p=64 y_f=3",
        &[
            "nisa.tensor_scalar(dst=sbuf_f32[nl.ds(64, 8), nl.ds(3, 4)], data=sbuf_f32[nl.ds(0, 8), nl.ds(1, 4)],",
            "op0=nl.minimum, operand0=sbuf_f32[nl.ds(32, 8), nl.ds(9, 1)], engine=nisa.engine.vector)",
        ],
    ),
    (
        "tensor_scalar_multiply_add p=8 f=4 s=2.0 t=1e-9 x_p=0 x_f=1 y_p=64 y_f=3",
        &[
            "nisa.tensor_scalar(dst=sbuf_f32[nl.ds(64, 8), nl.ds(3, 4)], data=sbuf_f32[nl.ds(0, 8), nl.ds(1, 4)],",
            "op0=nl.multiply, operand0=2.0, op1=nl.add, operand1=1e-9, engine=nisa.engine.vector)",
        ],
    ),
    (
        "scalar_tensor_tensor_add_subtract p=8 f=4 s=2.0 x_p=0 x_f=1 z_p=32 z_f=2 y_p=64 y_f=3",
        &[
            "nisa.scalar_tensor_tensor(dst=sbuf_f32[nl.ds(64, 8), nl.ds(3, 4)], data=sbuf_f32[nl.ds(0, 8), nl.ds(1, 4)],",
            "op0=nl.add, operand0=2.0, op1=nl.subtract, operand1=sbuf_f32[nl.ds(32, 8), nl.ds(2, 4)])",
        ],
    ),
    (
        "tensor_reduce_add_negate p=8 f=4 x_p=0 x_f=1 y_p=64 y_f=3",
        &[
            "nisa.tensor_reduce(dst=sbuf_f32[nl.ds(64, 8), nl.ds(3, 1)], op=nl.add,",
            "data=sbuf_f32[nl.ds(0, 8), nl.ds(1, 4)], axis=1, negate=True)",
        ],
    ),
    (
        "tensor_partition_reduce_max p=8 f=4 x_p=0 x_f=1 y_p=64 y_f=3",
        &[
            "nisa.tensor_partition_reduce(dst=sbuf_f32[nl.ds(64, 1), nl.ds(3, 4)], op=nl.maximum,",
            "data=sbuf_f32[nl.ds(0, 8), nl.ds(1, 4)])",
        ],
    ),
    (
        "reciprocal p=8 f=4 x_p=0 x_f=1 y_p=64 y_f=3",
        &[
            "nisa.reciprocal(dst=sbuf_f32[nl.ds(64, 8), nl.ds(3, 4)], data=sbuf_f32[nl.ds(0, 8), nl.ds(1, 4)])",
        ],
    ),
    (
        "activation_sigmoid_scale_bias p=8 f=4 scale=0.5 x_p=0 x_f=1 b_p=32 b_f=2 y_p=64 y_f=3",
        &[
            "nisa.activation(dst=sbuf_f32[nl.ds(64, 8), nl.ds(3, 4)], op=nl.sigmoid, data=sbuf_f32[nl.ds(0, 8), nl.ds(1, 4)],",
            "bias=sbuf_f32[nl.ds(32, 8), nl.ds(2, 1)], scale=0.5)",
        ],
    ),
    (
        "activation_reduce_exp p=8 f=4 x_p=0 x_f=1 y_p=64 y_f=3 r_p=32 r_f=9",
        &[
            "nisa.activation_reduce(dst=sbuf_f32[nl.ds(64, 8), nl.ds(3, 4)], op=nl.exp, data=sbuf_f32[nl.ds(0, 8), nl.ds(1, 4)],",
            "reduce_op=nl.add, reduce_res=sbuf_f32[nl.ds(32, 8), nl.ds(9, 1)])",
        ],
    ),
    (
        "tensor_copy_predicated_f32 p=8 f=4 m_p=0 m_f=1 x_p=32 x_f=2 y_p=64 y_f=3",
        &[
            "nisa.tensor_copy_predicated(dst=sbuf_f32[nl.ds(64, 8), nl.ds(3, 4)], src=sbuf_f32[nl.ds(32, 8), nl.ds(2, 4)],",
            "predicate=sbuf_pred[nl.ds(0, 8), nl.ds(1, 4)])",
        ],
    ),
    (
        "iota_partition_s32 p=8 f=4 y_p=64 y_f=3",
        &[
            "nisa.iota(dst=sbuf_s32[nl.ds(64, 8), nl.ds(3, 4)], pattern=[[0, 4]], offset=0, channel_multiplier=1)",
        ],
    ),
    (
        "affine_select p=8 f=4 step_p=-1 step_f=2 offset=-3 fill=-1e30 x_p=0 x_f=1 y_p=64 y_f=3",
        &[
            "nisa.affine_select(dst=sbuf_f32[nl.ds(64, 8), nl.ds(3, 4)], pattern=[[2, 4]], offset=-3, channel_multiplier=-1,",
            "on_true_tile=sbuf_f32[nl.ds(0, 8), nl.ds(1, 4)], on_false_value=-1e30, cmp_op=nl.greater_equal)",
        ],
    ),
];

#[test]
fn trainium_calls_are_written_as_its_reference_says() {
    let isa = load_target("trainium").unwrap();
    for (instr, expected) in CASES {
        assert_eq!(lines(&isa, instr), expected, "{instr}");
    }
}

/// NKI's table of operators has no division and no arithmetic shift to the right; everything else has a call.
#[test]
fn trainium_has_no_encoding_where_nki_has_no_operator() {
    let isa = load_target("trainium").unwrap();
    for instr in &isa.instrs {
        let missing = instr.name.contains("_divide_") || instr.name.contains("arithmetic_shift_right");
        assert_eq!(instr.encodings.is_empty(), missing, "{}", instr.name);
    }
}
