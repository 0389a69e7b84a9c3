module attributes {act.target = "trainium"} {
  func.func private @act_host_copy(i64, i64)
  func.func @kernel(%operand0: !llvm.ptr, %operand1: !llvm.ptr, %operand2: !llvm.ptr, %result0: !llvm.ptr, %scratch: !llvm.ptr, %consts: !llvm.ptr, %machine: !llvm.ptr) attributes {
    act.operand_bytes = array<i64: 8192, 8192, 8192>,
    act.result_bytes = array<i64: 8192>,
    act.scratch_bytes = 128 : i64,
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
    llvm.inline_asm has_side_effects "dma_load_transpose_bf16 p=64 f=64 stride=128 addr=$0 y_p=$1 y_f=$2", "r,r,r,~{memory}" %operand0_base, %0, %1 : (i64, i64, i64) -> ()
    %2 = arith.constant 64 : i64
    %3 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "dma_load_transpose_bf16 p=64 f=64 stride=128 addr=$0 y_p=$1 y_f=$2", "r,r,r,~{memory}" %operand1_base, %2, %3 : (i64, i64, i64) -> ()
    %4 = arith.constant 0 : i64
    %5 = arith.constant 0 : i64
    %6 = arith.constant 64 : i64
    %7 = arith.constant 0 : i64
    %8 = arith.constant 0 : i64
    %9 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "nc_matmul_bf16 k=64 m=64 n=64 s_p=$0 s_f=$1 v_p=$2 v_f=$3 y_p=$4 y_f=$5", "r,r,r,r,r,r,~{memory}" %4, %5, %6, %7, %8, %9 : (i64, i64, i64, i64, i64, i64) -> ()
    %10 = arith.constant 0 : i64
    %11 = arith.constant 0 : i64
    %12 = arith.constant 0 : i64
    %13 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "tensor_copy_psum_f32 p=64 f=64 x_p=$0 x_f=$1 y_p=$2 y_f=$3", "r,r,r,r,~{memory}" %10, %11, %12, %13 : (i64, i64, i64, i64) -> ()
    %14 = arith.constant 0 : i64
    %15 = arith.constant 0 : i64
    %16 = arith.constant 0 : i64
    %17 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "activation_exp p=64 f=64 x_p=$0 x_f=$1 y_p=$2 y_f=$3", "r,r,r,r,~{memory}" %14, %15, %16, %17 : (i64, i64, i64, i64) -> ()
    %18 = arith.constant 0 : i64
    %19 = arith.constant 0 : i64
    %20 = arith.constant 0 : i64
    %21 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "tensor_reduce_add p=64 f=64 x_p=$0 x_f=$1 y_p=$2 y_f=$3", "r,r,r,r,~{memory}" %18, %19, %20, %21 : (i64, i64, i64, i64) -> ()
    %22 = arith.constant 0 : i64
    %23 = arith.constant 0 : i64
    %24 = arith.constant 64 : i64
    %25 = arith.constant 64 : i64
    llvm.inline_asm has_side_effects "tensor_copy_f32_bf16 p=64 f=1 x_p=$0 x_f=$1 y_p=$2 y_f=$3", "r,r,r,r,~{memory}" %22, %23, %24, %25 : (i64, i64, i64, i64) -> ()
    %26 = arith.constant 64 : i64
    %27 = arith.constant 64 : i64
    llvm.inline_asm has_side_effects "dma_store_bf16 p=64 f=1 stride=2 x_p=$0 x_f=$1 addr=$2", "r,r,r,~{memory}" %26, %27, %scratch_base : (i64, i64, i64) -> ()
    %28 = arith.constant 64 : i64
    %29 = arith.constant 0 : i64
    %30 = arith.constant 0 : i64
    %31 = arith.constant 0 : i64
    %32 = arith.constant 0 : i64
    %33 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "nc_matmul_bf16 k=64 m=64 n=64 s_p=$0 s_f=$1 v_p=$2 v_f=$3 y_p=$4 y_f=$5", "r,r,r,r,r,r,~{memory}" %28, %29, %30, %31, %32, %33 : (i64, i64, i64, i64, i64, i64) -> ()
    %34 = arith.constant 0 : i64
    %35 = arith.constant 0 : i64
    %36 = arith.constant 0 : i64
    %37 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "tensor_copy_psum_f32 p=64 f=64 x_p=$0 x_f=$1 y_p=$2 y_f=$3", "r,r,r,r,~{memory}" %34, %35, %36, %37 : (i64, i64, i64, i64) -> ()
    %38 = arith.constant 0 : i64
    %39 = arith.constant 0 : i64
    %40 = arith.constant 0 : i64
    %41 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "activation_exp p=64 f=64 x_p=$0 x_f=$1 y_p=$2 y_f=$3", "r,r,r,r,~{memory}" %38, %39, %40, %41 : (i64, i64, i64, i64) -> ()
    %42 = arith.constant 0 : i64
    %43 = arith.constant 0 : i64
    %44 = arith.constant 0 : i64
    %45 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "tensor_copy_f32_bf16 p=64 f=64 x_p=$0 x_f=$1 y_p=$2 y_f=$3", "r,r,r,r,~{memory}" %42, %43, %44, %45 : (i64, i64, i64, i64) -> ()
    llvm.inline_asm has_side_effects "fence", "~{memory}" : () -> ()
    %46 = arith.constant 64 : i64
    %47 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "dma_load_bf16 p=64 f=64 stride=0 addr=$0 y_p=$1 y_f=$2", "r,r,r,~{memory}" %scratch_base, %46, %47 : (i64, i64, i64) -> ()
    %48 = arith.constant 0 : i64
    %49 = arith.constant 0 : i64
    %50 = arith.constant 64 : i64
    %51 = arith.constant 0 : i64
    %52 = arith.constant 0 : i64
    %53 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "tensor_tensor_divide_bf16 p=64 f=64 a_p=$0 a_f=$1 b_p=$2 b_f=$3 y_p=$4 y_f=$5", "r,r,r,r,r,r,~{memory}" %48, %49, %50, %51, %52, %53 : (i64, i64, i64, i64, i64, i64) -> ()
    %54 = arith.constant 64 : i64
    %55 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "dma_load_bf16 p=64 f=64 stride=128 addr=$0 y_p=$1 y_f=$2", "r,r,r,~{memory}" %operand2_base, %54, %55 : (i64, i64, i64) -> ()
    %56 = arith.constant 0 : i64
    %57 = arith.constant 0 : i64
    %58 = arith.constant 64 : i64
    %59 = arith.constant 0 : i64
    %60 = arith.constant 0 : i64
    %61 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "nc_matmul_bf16 k=64 m=64 n=64 s_p=$0 s_f=$1 v_p=$2 v_f=$3 y_p=$4 y_f=$5", "r,r,r,r,r,r,~{memory}" %56, %57, %58, %59, %60, %61 : (i64, i64, i64, i64, i64, i64) -> ()
    %62 = arith.constant 0 : i64
    %63 = arith.constant 0 : i64
    %64 = arith.constant 0 : i64
    %65 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "tensor_copy_psum_bf16 p=64 f=64 x_p=$0 x_f=$1 y_p=$2 y_f=$3", "r,r,r,r,~{memory}" %62, %63, %64, %65 : (i64, i64, i64, i64) -> ()
    %66 = arith.constant 0 : i64
    %67 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "dma_store_bf16 p=64 f=64 stride=128 x_p=$0 x_f=$1 addr=$2", "r,r,r,~{memory}" %66, %67, %result0_base : (i64, i64, i64) -> ()
    return
  }
}
