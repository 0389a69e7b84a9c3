module attributes {act.target = "gemmini"} {
  func.func private @act_host_copy(i64, i64)
  func.func @kernel(%operand0: !llvm.ptr, %operand1: !llvm.ptr, %result0: !llvm.ptr, %scratch: !llvm.ptr, %consts: !llvm.ptr, %machine: !llvm.ptr) attributes {
    act.operand_bytes = array<i64: 2304, 1152>,
    act.result_bytes = array<i64: 512>,
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
    %0 = arith.constant 20 : i64
    llvm.inline_asm has_side_effects "config_ld 8, 1.0\0Amvin $0, sp[$1], 16, 8", "r,r,~{memory}" %operand1_base, %0 : (i64, i64) -> ()
    %1 = arith.constant 8 : i64
    scf.for %i4 = %zero to %1 step %one : i64 {
      %2 = arith.constant 128 : i64
      %3 = arith.muli %i4, %2 : i64
      %4 = arith.addi %operand1_base, %3 : i64
      %5 = arith.constant 128 : i64
      %6 = arith.addi %4, %5 : i64
      %7 = arith.constant 16 : i64
      %8 = arith.muli %i4, %7 : i64
      %9 = arith.constant 36 : i64
      %10 = arith.addi %8, %9 : i64
      llvm.inline_asm has_side_effects "config_ld 8, 1.0\0Amvin $0, sp[$1], 16, 8", "r,r,~{memory}" %6, %10 : (i64, i64) -> ()
    }
    %11 = arith.constant 4 : i64
    scf.for %i2 = %zero to %11 step %one : i64 {
      %12 = arith.constant 576 : i64
      %13 = arith.muli %i2, %12 : i64
      %14 = arith.addi %operand0_base, %13 : i64
      %15 = arith.constant 0 : i64
      llvm.inline_asm has_side_effects "config_ld 144, 1.0\0Amvin $0, sp[$1], 4, 16", "r,r,~{memory}" %14, %15 : (i64, i64) -> ()
      %16 = arith.constant 0 : i64
      %17 = arith.constant 20 : i64
      %18 = arith.constant 0 : i64
      llvm.inline_asm has_side_effects "preload sp[$1], 16, 8, acc[$2], 4, 8\0Acompute_preloaded sp[$0], 4, 16, none", "r,r,r,~{memory}" %16, %17, %18 : (i64, i64, i64) -> ()
      %19 = arith.constant 8 : i64
      scf.for %i3 = %zero to %19 step %one : i64 {
        %20 = arith.constant 576 : i64
        %21 = arith.muli %i2, %20 : i64
        %22 = arith.addi %operand0_base, %21 : i64
        %23 = arith.constant 16 : i64
        %24 = arith.muli %i3, %23 : i64
        %25 = arith.addi %22, %24 : i64
        %26 = arith.constant 16 : i64
        %27 = arith.addi %25, %26 : i64
        %28 = arith.constant 0 : i64
        llvm.inline_asm has_side_effects "config_ld 144, 1.0\0Amvin $0, sp[$1], 4, 16", "r,r,~{memory}" %27, %28 : (i64, i64) -> ()
        %29 = arith.constant 0 : i64
        %30 = arith.constant 16 : i64
        %31 = arith.muli %i3, %30 : i64
        %32 = arith.constant 36 : i64
        %33 = arith.addi %31, %32 : i64
        %34 = arith.constant 0 : i64
        llvm.inline_asm has_side_effects "preload sp[$1], 16, 8, acc.accumulate[$2], 4, 8\0Acompute_preloaded sp[$0], 4, 16, none", "r,r,r,~{memory}" %29, %33, %34 : (i64, i64, i64) -> ()
      }
      %35 = arith.constant 0 : i64
      %36 = arith.constant 128 : i64
      %37 = arith.muli %i2, %36 : i64
      %38 = arith.addi %result0_base, %37 : i64
      llvm.inline_asm has_side_effects "config_st 32\0Amvout $1, acc.full[$0], 4, 8", "r,r,~{memory}" %35, %38 : (i64, i64) -> ()
    } {act.parallel}
    return
  }
}
