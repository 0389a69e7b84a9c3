module attributes {act.target = "gemmini"} {
  func.func private @act_host_copy(i64, i64)
  func.func @kernel(%operand0: !llvm.ptr, %result0: !llvm.ptr, %scratch: !llvm.ptr, %consts: !llvm.ptr, %machine: !llvm.ptr) attributes {
    act.operand_bytes = array<i64: 561>,
    act.result_bytes = array<i64: 561>,
    act.scratch_bytes = 0 : i64,
    act.consts = dense<> : tensor<0xi8>
  } {
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %operand0_base = llvm.ptrtoint %operand0 : !llvm.ptr to i64
    %result0_base = llvm.ptrtoint %result0 : !llvm.ptr to i64
    %scratch_base = llvm.ptrtoint %scratch : !llvm.ptr to i64
    %consts_base = llvm.ptrtoint %consts : !llvm.ptr to i64
    %0 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "config_ld 17, 1.0, shrunk\0Amvin $0, acc[$1], 16, 16", "r,r,~{memory}" %operand0_base, %0 : (i64, i64) -> ()
    %1 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "config_st 17, 1.0, relu\0Amvout $1, acc[$0], 16, 16", "r,r,~{memory}" %1, %result0_base : (i64, i64) -> ()
    %2 = arith.constant 272 : i64
    %3 = arith.addi %operand0_base, %2 : i64
    %4 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "config_ld 17, 1.0, shrunk\0Amvin $0, acc[$1], 16, 16", "r,r,~{memory}" %3, %4 : (i64, i64) -> ()
    %5 = arith.constant 0 : i64
    %6 = arith.constant 272 : i64
    %7 = arith.addi %result0_base, %6 : i64
    llvm.inline_asm has_side_effects "config_st 17, 1.0, relu\0Amvout $1, acc[$0], 16, 16", "r,r,~{memory}" %5, %7 : (i64, i64) -> ()
    %8 = arith.constant 544 : i64
    %9 = arith.addi %operand0_base, %8 : i64
    %10 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "config_ld 0, 1.0, shrunk\0Amvin $0, acc[$1], 1, 16", "r,r,~{memory}" %9, %10 : (i64, i64) -> ()
    %11 = arith.constant 0 : i64
    %12 = arith.constant 544 : i64
    %13 = arith.addi %result0_base, %12 : i64
    llvm.inline_asm has_side_effects "config_st 0, 1.0, relu\0Amvout $1, acc[$0], 1, 16", "r,r,~{memory}" %11, %13 : (i64, i64) -> ()
    %14 = arith.constant 16 : i64
    %15 = arith.addi %operand0_base, %14 : i64
    %16 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "config_ld 17, 1.0, shrunk\0Amvin $0, acc[$1], 16, 1", "r,r,~{memory}" %15, %16 : (i64, i64) -> ()
    %17 = arith.constant 0 : i64
    %18 = arith.constant 16 : i64
    %19 = arith.addi %result0_base, %18 : i64
    llvm.inline_asm has_side_effects "config_st 17, 1.0, relu\0Amvout $1, acc[$0], 16, 1", "r,r,~{memory}" %17, %19 : (i64, i64) -> ()
    %20 = arith.constant 288 : i64
    %21 = arith.addi %operand0_base, %20 : i64
    %22 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "config_ld 17, 1.0, shrunk\0Amvin $0, acc[$1], 16, 1", "r,r,~{memory}" %21, %22 : (i64, i64) -> ()
    %23 = arith.constant 0 : i64
    %24 = arith.constant 288 : i64
    %25 = arith.addi %result0_base, %24 : i64
    llvm.inline_asm has_side_effects "config_st 17, 1.0, relu\0Amvout $1, acc[$0], 16, 1", "r,r,~{memory}" %23, %25 : (i64, i64) -> ()
    %26 = arith.constant 560 : i64
    %27 = arith.addi %operand0_base, %26 : i64
    %28 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "config_ld 0, 1.0, shrunk\0Amvin $0, acc[$1], 1, 1", "r,r,~{memory}" %27, %28 : (i64, i64) -> ()
    %29 = arith.constant 0 : i64
    %30 = arith.constant 560 : i64
    %31 = arith.addi %result0_base, %30 : i64
    llvm.inline_asm has_side_effects "config_st 0, 1.0, relu\0Amvout $1, acc[$0], 1, 1", "r,r,~{memory}" %29, %31 : (i64, i64) -> ()
    return
  }
}
