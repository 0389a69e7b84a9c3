module attributes {act.target = "gemmini"} {
  func.func private @act_host_copy(i64, i64)
  func.func @kernel(%operand0: !llvm.ptr, %operand1: !llvm.ptr, %operand2: !llvm.ptr, %result0: !llvm.ptr, %scratch: !llvm.ptr, %consts: !llvm.ptr, %machine: !llvm.ptr) attributes {
    act.operand_bytes = array<i64: 480, 240, 40>,
    act.result_bytes = array<i64: 200>,
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
    llvm.inline_asm has_side_effects "config_ld 24, 1.0\0Amvin $0, sp[$1], 16, 16", "r,r,~{memory}" %operand0_base, %0 : (i64, i64) -> ()
    %1 = arith.constant 4096 : i64
    llvm.inline_asm has_side_effects "config_ld 10, 1.0\0Amvin $0, sp[$1], 16, 10", "r,r,~{memory}" %operand1_base, %1 : (i64, i64) -> ()
    %2 = arith.constant 16 : i64
    %3 = arith.addi %operand0_base, %2 : i64
    %4 = arith.constant 16 : i64
    llvm.inline_asm has_side_effects "config_ld 24, 1.0\0Amvin $0, sp[$1], 16, 8", "r,r,~{memory}" %3, %4 : (i64, i64) -> ()
    %5 = arith.constant 160 : i64
    %6 = arith.addi %operand1_base, %5 : i64
    %7 = arith.constant 4112 : i64
    llvm.inline_asm has_side_effects "config_ld 10, 1.0\0Amvin $0, sp[$1], 8, 10", "r,r,~{memory}" %6, %7 : (i64, i64) -> ()
    %8 = arith.constant 16 : i64
    %9 = arith.constant 4112 : i64
    %10 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "preload sp[$1], 8, 10, acc[$2], 16, 10\0Acompute_preloaded sp[$0], 16, 8, none", "r,r,r,~{memory}" %8, %9, %10 : (i64, i64, i64) -> ()
    %11 = arith.constant 0 : i64
    %12 = arith.constant 4096 : i64
    %13 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "preload sp[$1], 16, 10, acc.accumulate[$2], 16, 10\0Acompute_preloaded sp[$0], 16, 16, none", "r,r,r,~{memory}" %11, %12, %13 : (i64, i64, i64) -> ()
    %14 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "config_ld 0, 1.0\0Amvin $0, acc.accumulate[$1], 16, 10", "r,r,~{memory}" %operand2_base, %14 : (i64, i64) -> ()
    %15 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "config_st 10, 1.0, relu\0Amvout $1, acc[$0], 16, 10", "r,r,~{memory}" %15, %result0_base : (i64, i64) -> ()
    %16 = arith.constant 384 : i64
    %17 = arith.addi %operand0_base, %16 : i64
    %18 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "config_ld 24, 1.0\0Amvin $0, sp[$1], 4, 16", "r,r,~{memory}" %17, %18 : (i64, i64) -> ()
    %19 = arith.constant 4096 : i64
    llvm.inline_asm has_side_effects "config_ld 10, 1.0\0Amvin $0, sp[$1], 16, 10", "r,r,~{memory}" %operand1_base, %19 : (i64, i64) -> ()
    %20 = arith.constant 400 : i64
    %21 = arith.addi %operand0_base, %20 : i64
    %22 = arith.constant 4 : i64
    llvm.inline_asm has_side_effects "config_ld 24, 1.0\0Amvin $0, sp[$1], 4, 8", "r,r,~{memory}" %21, %22 : (i64, i64) -> ()
    %23 = arith.constant 160 : i64
    %24 = arith.addi %operand1_base, %23 : i64
    %25 = arith.constant 4112 : i64
    llvm.inline_asm has_side_effects "config_ld 10, 1.0\0Amvin $0, sp[$1], 8, 10", "r,r,~{memory}" %24, %25 : (i64, i64) -> ()
    %26 = arith.constant 4 : i64
    %27 = arith.constant 4112 : i64
    %28 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "preload sp[$1], 8, 10, acc[$2], 4, 10\0Acompute_preloaded sp[$0], 4, 8, none", "r,r,r,~{memory}" %26, %27, %28 : (i64, i64, i64) -> ()
    %29 = arith.constant 0 : i64
    %30 = arith.constant 4096 : i64
    %31 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "preload sp[$1], 16, 10, acc.accumulate[$2], 4, 10\0Acompute_preloaded sp[$0], 4, 16, none", "r,r,r,~{memory}" %29, %30, %31 : (i64, i64, i64) -> ()
    %32 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "config_ld 0, 1.0\0Amvin $0, acc.accumulate[$1], 4, 10", "r,r,~{memory}" %operand2_base, %32 : (i64, i64) -> ()
    %33 = arith.constant 0 : i64
    %34 = arith.constant 160 : i64
    %35 = arith.addi %result0_base, %34 : i64
    llvm.inline_asm has_side_effects "config_st 10, 1.0, relu\0Amvout $1, acc[$0], 4, 10", "r,r,~{memory}" %33, %35 : (i64, i64) -> ()
    return
  }
}
