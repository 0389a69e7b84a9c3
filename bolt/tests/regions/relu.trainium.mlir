module attributes {act.target = "trainium"} {
  func.func private @act_host_copy(i64, i64)
  func.func @kernel(%operand0: !llvm.ptr, %operand1: !llvm.ptr, %operand2: !llvm.ptr, %result0: !llvm.ptr, %scratch: !llvm.ptr, %consts: !llvm.ptr, %machine: !llvm.ptr) attributes {
    act.operand_bytes = array<i64: 1760, 3360, 84>,
    act.result_bytes = array<i64: 924>,
    act.scratch_bytes = 0 : i64,
    act.consts = dense<> : tensor<0xi8>
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
    llvm.inline_asm has_side_effects "dma_load_f32 p=11 f=21 stride=0 addr=$0 y_p=$1 y_f=$2", "r,r,r,~{memory}" %operand2_base, %0, %1 : (i64, i64, i64) -> ()
    %2 = arith.constant 0 : i64
    %3 = arith.constant 0 : i64
    %4 = arith.constant 0 : i64
    %5 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "tensor_copy_f32_psum p=11 f=21 x_p=$0 x_f=$1 y_p=$2 y_f=$3", "r,r,r,r,~{memory}" %2, %3, %4, %5 : (i64, i64, i64, i64) -> ()
    %6 = arith.constant 0 : i64
    %7 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "dma_load_pattern_f32 p=40 f=11 step_p=4 step_f=160 addr=$0 y_p=$1 y_f=$2", "r,r,r,~{memory}" %operand0_base, %6, %7 : (i64, i64, i64) -> ()
    %8 = arith.constant 64 : i64
    %9 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "dma_load_f32 p=40 f=21 stride=84 addr=$0 y_p=$1 y_f=$2", "r,r,r,~{memory}" %operand1_base, %8, %9 : (i64, i64, i64) -> ()
    %10 = arith.constant 0 : i64
    %11 = arith.constant 0 : i64
    %12 = arith.constant 64 : i64
    %13 = arith.constant 0 : i64
    %14 = arith.constant 0 : i64
    %15 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "nc_matmul_acc_f32 k=40 m=11 n=21 s_p=$0 s_f=$1 v_p=$2 v_f=$3 y_p=$4 y_f=$5", "r,r,r,r,r,r,~{memory}" %10, %11, %12, %13, %14, %15 : (i64, i64, i64, i64, i64, i64) -> ()
    %16 = arith.constant 0 : i64
    %17 = arith.constant 0 : i64
    %18 = arith.constant 0 : i64
    %19 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "activation_relu_psum p=11 f=21 x_p=$0 x_f=$1 y_p=$2 y_f=$3", "r,r,r,r,~{memory}" %16, %17, %18, %19 : (i64, i64, i64, i64) -> ()
    %20 = arith.constant 0 : i64
    %21 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "dma_store_f32 p=11 f=21 stride=84 x_p=$0 x_f=$1 addr=$2", "r,r,r,~{memory}" %20, %21, %result0_base : (i64, i64, i64) -> ()
    return
  }
}
