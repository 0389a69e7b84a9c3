module attributes {act.target = "h_qkv"} {
  func.func private @act_host_copy(i64, i64)
  func.func @kernel(%operand0: !llvm.ptr, %operand1: !llvm.ptr, %result0: !llvm.ptr, %scratch: !llvm.ptr, %consts: !llvm.ptr, %machine: !llvm.ptr) attributes {
    act.operand_bytes = array<i64: 5120, 6144>,
    act.result_bytes = array<i64: 3840>,
    act.scratch_bytes = 24576 : i64,
    act.consts = dense<"0x00000000000000000000000000000000"> : tensor<16xi8>
  } {
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %operand0_base = llvm.ptrtoint %operand0 : !llvm.ptr to i64
    %operand1_base = llvm.ptrtoint %operand1 : !llvm.ptr to i64
    %result0_base = llvm.ptrtoint %result0 : !llvm.ptr to i64
    %scratch_base = llvm.ptrtoint %scratch : !llvm.ptr to i64
    %consts_base = llvm.ptrtoint %consts : !llvm.ptr to i64
    func.call @act_host_copy(%consts_base, %scratch_base) {act.elem_bytes = 2 : i64, act.lengths = array<i64: 4096>, act.from_strides = array<i64: 0>, act.to_strides = array<i64: 2>} : (i64, i64) -> ()
    func.call @act_host_copy(%operand0_base, %scratch_base) {act.elem_bytes = 2 : i64, act.lengths = array<i64: 1, 40, 1, 64>, act.from_strides = array<i64: 5120, 128, 128, 2>, act.to_strides = array<i64: 8192, 128, 8192, 2>} : (i64, i64) -> ()
    %0 = arith.constant 8192 : i64
    %1 = arith.addi %scratch_base, %0 : i64
    func.call @act_host_copy(%consts_base, %1) {act.elem_bytes = 2 : i64, act.lengths = array<i64: 4096>, act.from_strides = array<i64: 0>, act.to_strides = array<i64: 2>} : (i64, i64) -> ()
    %2 = arith.constant 8192 : i64
    %3 = arith.addi %scratch_base, %2 : i64
    func.call @act_host_copy(%operand1_base, %3) {act.elem_bytes = 2 : i64, act.lengths = array<i64: 1, 64, 1, 48>, act.from_strides = array<i64: 128, 2, 6144, 128>, act.to_strides = array<i64: 8192, 128, 8192, 2>} : (i64, i64) -> ()
    %4 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "load_rm n=64 addr_in=$0 addr_out=$1", "r,r,~{memory}" %scratch_base, %4 : (i64, i64) -> ()
    %5 = arith.constant 8192 : i64
    %6 = arith.addi %scratch_base, %5 : i64
    %7 = arith.constant 64 : i64
    llvm.inline_asm has_side_effects "load_rm n=64 addr_in=$0 addr_out=$1", "r,r,~{memory}" %6, %7 : (i64, i64) -> ()
    %8 = arith.constant 0 : i64
    %9 = arith.constant 64 : i64
    %10 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "gemm addr_1=$0 addr_2=$1 addr_out=$2", "r,r,r,~{memory}" %8, %9, %10 : (i64, i64, i64) -> ()
    %11 = arith.constant 0 : i64
    %12 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "mov n=64 addr_in=$0 addr_out=$1", "r,r,~{memory}" %11, %12 : (i64, i64) -> ()
    %13 = arith.constant 0 : i64
    %14 = arith.constant 16384 : i64
    %15 = arith.addi %scratch_base, %14 : i64
    llvm.inline_asm has_side_effects "store_rm n=64 addr_in=$0 addr_out=$1", "r,r,~{memory}" %13, %15 : (i64, i64) -> ()
    llvm.inline_asm has_side_effects "fence", "~{memory}" : () -> ()
    %16 = arith.constant 16384 : i64
    %17 = arith.addi %scratch_base, %16 : i64
    func.call @act_host_copy(%17, %result0_base) {act.elem_bytes = 2 : i64, act.lengths = array<i64: 1, 40, 1, 48>, act.from_strides = array<i64: 8192, 128, 8192, 2>, act.to_strides = array<i64: 3840, 96, 96, 2>} : (i64, i64) -> ()
    return
  }
}
