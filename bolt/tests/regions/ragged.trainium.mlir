module attributes {act.target = "trainium"} {
  func.func private @act_host_copy(i64, i64)
  func.func @kernel(%operand0: !llvm.ptr, %operand1: !llvm.ptr, %operand2: !llvm.ptr, %result0: !llvm.ptr, %scratch: !llvm.ptr, %consts: !llvm.ptr, %machine: !llvm.ptr) attributes {
    act.operand_bytes = array<i64: 960, 480, 20>,
    act.result_bytes = array<i64: 400>,
    act.scratch_bytes = 0 : i64,
    act.consts = dense<"0x0000000000000000000000000000000000000000"> : tensor<20xi8>
  } {
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %operand0_base = llvm.ptrtoint %operand0 : !llvm.ptr to i64
    %operand1_base = llvm.ptrtoint %operand1 : !llvm.ptr to i64
    %operand2_base = llvm.ptrtoint %operand2 : !llvm.ptr to i64
    %result0_base = llvm.ptrtoint %result0 : !llvm.ptr to i64
    %scratch_base = llvm.ptrtoint %scratch : !llvm.ptr to i64
    %consts_base = llvm.ptrtoint %consts : !llvm.ptr to i64
    %0 = arith.constant 0 : i64
    %1 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "dma_load_transpose_bf16 p=24 f=20 stride=48 addr=$0 y_p=$1 y_f=$2", "r,r,r,~{memory}" %operand0_base, %0, %1 : (i64, i64, i64) -> ()
    %2 = arith.constant 32 : i64
    %3 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "dma_load_bf16 p=24 f=10 stride=20 addr=$0 y_p=$1 y_f=$2", "r,r,r,~{memory}" %operand1_base, %2, %3 : (i64, i64, i64) -> ()
    %4 = arith.constant 0 : i64
    %5 = arith.constant 0 : i64
    %6 = arith.constant 32 : i64
    %7 = arith.constant 0 : i64
    %8 = arith.constant 0 : i64
    %9 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "nc_matmul_bf16 k=24 m=20 n=10 s_p=$0 s_f=$1 v_p=$2 v_f=$3 y_p=$4 y_f=$5", "r,r,r,r,r,r,~{memory}" %4, %5, %6, %7, %8, %9 : (i64, i64, i64, i64, i64, i64) -> ()
    %10 = arith.constant 0 : i64
    %11 = arith.constant 0 : i64
    %12 = arith.constant 0 : i64
    %13 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "tensor_copy_psum_bf16 p=20 f=10 x_p=$0 x_f=$1 y_p=$2 y_f=$3", "r,r,r,r,~{memory}" %10, %11, %12, %13 : (i64, i64, i64, i64) -> ()
    %14 = arith.constant 32 : i64
    %15 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "dma_load_bf16 p=20 f=10 stride=0 addr=$0 y_p=$1 y_f=$2", "r,r,r,~{memory}" %operand2_base, %14, %15 : (i64, i64, i64) -> ()
    %16 = arith.constant 0 : i64
    %17 = arith.constant 0 : i64
    %18 = arith.constant 32 : i64
    %19 = arith.constant 0 : i64
    %20 = arith.constant 0 : i64
    %21 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "tensor_tensor_add_bf16 p=20 f=10 a_p=$0 a_f=$1 b_p=$2 b_f=$3 y_p=$4 y_f=$5", "r,r,r,r,r,r,~{memory}" %16, %17, %18, %19, %20, %21 : (i64, i64, i64, i64, i64, i64) -> ()
    %22 = arith.constant 32 : i64
    %23 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "dma_load_bf16 p=20 f=10 stride=0 addr=$0 y_p=$1 y_f=$2", "r,r,r,~{memory}" %consts_base, %22, %23 : (i64, i64, i64) -> ()
    %24 = arith.constant 0 : i64
    %25 = arith.constant 0 : i64
    %26 = arith.constant 32 : i64
    %27 = arith.constant 0 : i64
    %28 = arith.constant 0 : i64
    %29 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "tensor_tensor_max_bf16 p=20 f=10 a_p=$0 a_f=$1 b_p=$2 b_f=$3 y_p=$4 y_f=$5", "r,r,r,r,r,r,~{memory}" %24, %25, %26, %27, %28, %29 : (i64, i64, i64, i64, i64, i64) -> ()
    %30 = arith.constant 0 : i64
    %31 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "dma_store_bf16 p=20 f=10 stride=20 x_p=$0 x_f=$1 addr=$2", "r,r,r,~{memory}" %30, %31, %result0_base : (i64, i64, i64) -> ()
    return
  }
}
