module attributes {act.target = "tpu_v1"} {
  func.func private @act_host_copy(i64, i64)
  func.func @kernel(%operand0: !llvm.ptr, %operand1: !llvm.ptr, %result0: !llvm.ptr, %scratch: !llvm.ptr, %consts: !llvm.ptr, %machine: !llvm.ptr) attributes {
    act.operand_bytes = array<i64: 4096, 4096>,
    act.result_bytes = array<i64: 4096>,
    act.scratch_bytes = 2162688 : i64,
    act.consts = dense<"0x00000000000000000000000000000000"> : tensor<16xi8>
  } {
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %operand0_base = llvm.ptrtoint %operand0 : !llvm.ptr to i64
    %operand1_base = llvm.ptrtoint %operand1 : !llvm.ptr to i64
    %result0_base = llvm.ptrtoint %result0 : !llvm.ptr to i64
    %scratch_base = llvm.ptrtoint %scratch : !llvm.ptr to i64
    %consts_base = llvm.ptrtoint %consts : !llvm.ptr to i64
    func.call @act_host_copy(%consts_base, %scratch_base) {act.elem_bytes = 1 : i64, act.lengths = array<i64: 1048576>, act.from_strides = array<i64: 0>, act.to_strides = array<i64: 1>} : (i64, i64) -> ()
    func.call @act_host_copy(%operand0_base, %scratch_base) {act.elem_bytes = 1 : i64, act.lengths = array<i64: 1, 64, 1, 64>, act.from_strides = array<i64: 4096, 64, 64, 1>, act.to_strides = array<i64: 1048576, 256, 1048576, 1>} : (i64, i64) -> ()
    %0 = arith.constant 1048576 : i64
    %1 = arith.addi %scratch_base, %0 : i64
    func.call @act_host_copy(%consts_base, %1) {act.elem_bytes = 1 : i64, act.lengths = array<i64: 65536>, act.from_strides = array<i64: 0>, act.to_strides = array<i64: 1>} : (i64, i64) -> ()
    %2 = arith.constant 1048576 : i64
    %3 = arith.addi %scratch_base, %2 : i64
    func.call @act_host_copy(%operand1_base, %3) {act.elem_bytes = 1 : i64, act.lengths = array<i64: 1, 64, 1, 64>, act.from_strides = array<i64: 4096, 64, 64, 1>, act.to_strides = array<i64: 65536, 256, 65536, 1>} : (i64, i64) -> ()
    %4 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "read_host_memory n=4096 addr=$0 row=$1", "r,r,~{memory}" %scratch_base, %4 : (i64, i64) -> ()
    %5 = arith.constant 1048576 : i64
    %6 = arith.addi %scratch_base, %5 : i64
    llvm.inline_asm has_side_effects "load_weights addr=$0", "r,~{memory}" %6 : (i64) -> ()
    %7 = arith.constant 0 : i64
    %8 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "matrix_multiply n=4096 row=$0 acc=$1", "r,r,~{memory}" %7, %8 : (i64, i64) -> ()
    %9 = arith.constant 0 : i64
    %10 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "activate_identity n=4096 acc=$0 row=$1", "r,r,~{memory}" %9, %10 : (i64, i64) -> ()
    %11 = arith.constant 0 : i64
    %12 = arith.constant 1114112 : i64
    %13 = arith.addi %scratch_base, %12 : i64
    llvm.inline_asm has_side_effects "write_host_memory n=4096 row=$0 addr=$1", "r,r,~{memory}" %11, %13 : (i64, i64) -> ()
    llvm.inline_asm has_side_effects "fence", "~{memory}" : () -> ()
    %14 = arith.constant 1114112 : i64
    %15 = arith.addi %scratch_base, %14 : i64
    func.call @act_host_copy(%15, %result0_base) {act.elem_bytes = 1 : i64, act.lengths = array<i64: 1, 64, 1, 64>, act.from_strides = array<i64: 1048576, 256, 1048576, 1>, act.to_strides = array<i64: 4096, 64, 64, 1>} : (i64, i64) -> ()
    return
  }
}
