module attributes {act.target = "amx"} {
  func.func private @act_host_copy(i64, i64)
  func.func @kernel(%operand0: !llvm.ptr, %result0: !llvm.ptr, %scratch: !llvm.ptr, %consts: !llvm.ptr, %machine: !llvm.ptr) attributes {
    act.operand_bytes = array<i64: 4096>,
    act.result_bytes = array<i64: 4096>,
    act.scratch_bytes = 0 : i64,
    act.consts = dense<"0x00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"> : tensor<64xi8>
  } {
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %operand0_base = llvm.ptrtoint %operand0 : !llvm.ptr to i64
    %result0_base = llvm.ptrtoint %result0 : !llvm.ptr to i64
    %scratch_base = llvm.ptrtoint %scratch : !llvm.ptr to i64
    %consts_base = llvm.ptrtoint %consts : !llvm.ptr to i64
    %0 = arith.constant 2 : i64
    llvm.inline_asm has_side_effects "vmovups zmm[$1], [$0]", "r,r,~{memory}" %consts_base, %0 : (i64, i64) -> ()
    %1 = arith.constant 64 : i64
    scf.for %i2 = %zero to %1 step %one : i64 {
      %2 = arith.constant 4 : i64
      scf.for %i3 = %zero to %2 step %one : i64 {
        %3 = arith.constant 64 : i64
        %4 = arith.muli %i2, %3 : i64
        %5 = arith.addi %operand0_base, %4 : i64
        %6 = arith.constant 16 : i64
        %7 = arith.muli %i3, %6 : i64
        %8 = arith.addi %5, %7 : i64
        %9 = arith.constant 0 : i64
        llvm.inline_asm has_side_effects "vpmovsxbd zmm[$1], [$0]", "r,r,~{memory}" %8, %9 : (i64, i64) -> ()
        %10 = arith.constant 0 : i64
        %11 = arith.constant 2 : i64
        %12 = arith.constant 0 : i64
        llvm.inline_asm has_side_effects "vpmaxsd zmm[$2], zmm[$0], zmm[$1]", "r,r,r,~{memory}" %10, %11, %12 : (i64, i64, i64) -> ()
        %13 = arith.constant 0 : i64
        %14 = arith.constant 64 : i64
        %15 = arith.muli %i2, %14 : i64
        %16 = arith.addi %result0_base, %15 : i64
        %17 = arith.constant 16 : i64
        %18 = arith.muli %i3, %17 : i64
        %19 = arith.addi %16, %18 : i64
        llvm.inline_asm has_side_effects "vpmovdb [$1], zmm[$0]", "r,r,~{memory}" %13, %19 : (i64, i64) -> ()
      } {act.parallel}
    } {act.parallel}
    return
  }
}
