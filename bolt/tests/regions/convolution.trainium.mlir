module attributes {act.target = "trainium"} {
  func.func private @act_host_copy(i64, i64)
  func.func @kernel(%operand0: !llvm.ptr, %operand1: !llvm.ptr, %result0: !llvm.ptr, %scratch: !llvm.ptr, %consts: !llvm.ptr, %machine: !llvm.ptr) attributes {
    act.operand_bytes = array<i64: 810, 630>,
    act.result_bytes = array<i64: 1372>,
    act.scratch_bytes = 0 : i64,
    act.consts = dense<> : tensor<0xi8>
  } {
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %operand0_base = llvm.ptrtoint %operand0 : !llvm.ptr to i64
    %operand1_base = llvm.ptrtoint %operand1 : !llvm.ptr to i64
    %result0_base = llvm.ptrtoint %result0 : !llvm.ptr to i64
    %scratch_base = llvm.ptrtoint %scratch : !llvm.ptr to i64
    %consts_base = llvm.ptrtoint %consts : !llvm.ptr to i64
    %0 = arith.constant 32 : i64
    %1 = arith.constant 7 : i64
    llvm.inline_asm has_side_effects "dma_load_bf16 p=15 f=7 stride=14 addr=$0 y_p=$1 y_f=$2", "r,r,r,~{memory}" %operand1_base, %0, %1 : (i64, i64, i64) -> ()
    %2 = arith.constant 2 : i64
    scf.for %i4 = %zero to %2 step %one : i64 {
      %3 = arith.constant 210 : i64
      %4 = arith.muli %i4, %3 : i64
      %5 = arith.addi %operand1_base, %4 : i64
      %6 = arith.constant 210 : i64
      %7 = arith.addi %5, %6 : i64
      %8 = arith.constant 32 : i64
      %9 = arith.constant 7 : i64
      %10 = arith.muli %i4, %9 : i64
      %11 = arith.constant 14 : i64
      %12 = arith.addi %10, %11 : i64
      llvm.inline_asm has_side_effects "dma_load_bf16 p=15 f=7 stride=14 addr=$0 y_p=$1 y_f=$2", "r,r,r,~{memory}" %7, %8, %12 : (i64, i64, i64) -> ()
    }
    %13 = arith.constant 7 : i64
    scf.for %i2 = %zero to %13 step %one : i64 {
      %14 = arith.constant 90 : i64
      %15 = arith.muli %i2, %14 : i64
      %16 = arith.addi %operand0_base, %15 : i64
      %17 = arith.constant 0 : i64
      %18 = arith.constant 0 : i64
      llvm.inline_asm has_side_effects "dma_load_transpose_bf16 p=15 f=7 stride=10 addr=$0 y_p=$1 y_f=$2", "r,r,r,~{memory}" %16, %17, %18 : (i64, i64, i64) -> ()
      %19 = arith.constant 0 : i64
      %20 = arith.constant 0 : i64
      %21 = arith.constant 32 : i64
      %22 = arith.constant 7 : i64
      %23 = arith.constant 0 : i64
      %24 = arith.constant 0 : i64
      llvm.inline_asm has_side_effects "nc_matmul_bf16 k=15 m=7 n=7 s_p=$0 s_f=$1 v_p=$2 v_f=$3 y_p=$4 y_f=$5", "r,r,r,r,r,r,~{memory}" %19, %20, %21, %22, %23, %24 : (i64, i64, i64, i64, i64, i64) -> ()
      %25 = arith.constant 2 : i64
      scf.for %i3 = %zero to %25 step %one : i64 {
        %26 = arith.constant 90 : i64
        %27 = arith.muli %i2, %26 : i64
        %28 = arith.addi %operand0_base, %27 : i64
        %29 = arith.constant 90 : i64
        %30 = arith.muli %i3, %29 : i64
        %31 = arith.addi %28, %30 : i64
        %32 = arith.constant 90 : i64
        %33 = arith.addi %31, %32 : i64
        %34 = arith.constant 0 : i64
        %35 = arith.constant 0 : i64
        llvm.inline_asm has_side_effects "dma_load_transpose_bf16 p=15 f=7 stride=10 addr=$0 y_p=$1 y_f=$2", "r,r,r,~{memory}" %33, %34, %35 : (i64, i64, i64) -> ()
        %36 = arith.constant 0 : i64
        %37 = arith.constant 0 : i64
        %38 = arith.constant 32 : i64
        %39 = arith.constant 7 : i64
        %40 = arith.muli %i3, %39 : i64
        %41 = arith.constant 14 : i64
        %42 = arith.addi %40, %41 : i64
        %43 = arith.constant 0 : i64
        %44 = arith.constant 0 : i64
        llvm.inline_asm has_side_effects "nc_matmul_acc_bf16 k=15 m=7 n=7 s_p=$0 s_f=$1 v_p=$2 v_f=$3 y_p=$4 y_f=$5", "r,r,r,r,r,r,~{memory}" %36, %37, %38, %42, %43, %44 : (i64, i64, i64, i64, i64, i64) -> ()
      }
      %45 = arith.constant 0 : i64
      %46 = arith.constant 0 : i64
      %47 = arith.constant 0 : i64
      %48 = arith.constant 0 : i64
      llvm.inline_asm has_side_effects "tensor_copy_psum_f32 p=7 f=7 x_p=$0 x_f=$1 y_p=$2 y_f=$3", "r,r,r,r,~{memory}" %45, %46, %47, %48 : (i64, i64, i64, i64) -> ()
      %49 = arith.constant 0 : i64
      %50 = arith.constant 0 : i64
      %51 = arith.constant 196 : i64
      %52 = arith.muli %i2, %51 : i64
      %53 = arith.addi %result0_base, %52 : i64
      llvm.inline_asm has_side_effects "dma_store_f32 p=7 f=7 stride=28 x_p=$0 x_f=$1 addr=$2", "r,r,r,~{memory}" %49, %50, %53 : (i64, i64, i64) -> ()
    } {act.parallel}
    return
  }
}
