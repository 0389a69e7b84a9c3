module attributes {act.target = "feather"} {
  func.func private @act_host_copy(i64, i64)
  func.func @kernel(%operand0: !llvm.ptr, %operand1: !llvm.ptr, %result0: !llvm.ptr, %scratch: !llvm.ptr, %consts: !llvm.ptr, %machine: !llvm.ptr) attributes {
    act.operand_bytes = array<i64: 2310, 1190>,
    act.result_bytes = array<i64: 2244>,
    act.scratch_bytes = 215552 : i64,
    act.consts = dense<"0x00000000000000000000000000000000"> : tensor<16xi8>
  } {
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %operand0_base = llvm.ptrtoint %operand0 : !llvm.ptr to i64
    %operand1_base = llvm.ptrtoint %operand1 : !llvm.ptr to i64
    %result0_base = llvm.ptrtoint %result0 : !llvm.ptr to i64
    %scratch_base = llvm.ptrtoint %scratch : !llvm.ptr to i64
    %consts_base = llvm.ptrtoint %consts : !llvm.ptr to i64
    func.call @act_host_copy(%consts_base, %scratch_base) {act.elem_bytes = 1 : i64, act.lengths = array<i64: 81920>, act.from_strides = array<i64: 0>, act.to_strides = array<i64: 1>} : (i64, i64) -> ()
    func.call @act_host_copy(%operand0_base, %scratch_base) {act.elem_bytes = 1 : i64, act.lengths = array<i64: 1, 33, 4, 16>, act.from_strides = array<i64: 2310, 70, 16, 1>, act.to_strides = array<i64: 81920, 16, 16384, 1>} : (i64, i64) -> ()
    %0 = arith.constant 64 : i64
    %1 = arith.addi %operand0_base, %0 : i64
    %2 = arith.constant 65536 : i64
    %3 = arith.addi %scratch_base, %2 : i64
    func.call @act_host_copy(%1, %3) {act.elem_bytes = 1 : i64, act.lengths = array<i64: 1, 33, 1, 6>, act.from_strides = array<i64: 2310, 70, 6, 1>, act.to_strides = array<i64: 81920, 16, 16384, 1>} : (i64, i64) -> ()
    %4 = arith.constant 81920 : i64
    %5 = arith.addi %scratch_base, %4 : i64
    func.call @act_host_copy(%consts_base, %5) {act.elem_bytes = 1 : i64, act.lengths = array<i64: 2560>, act.from_strides = array<i64: 0>, act.to_strides = array<i64: 1>} : (i64, i64) -> ()
    %6 = arith.constant 81920 : i64
    %7 = arith.addi %scratch_base, %6 : i64
    func.call @act_host_copy(%operand1_base, %7) {act.elem_bytes = 1 : i64, act.lengths = array<i64: 4, 16, 1, 16>, act.from_strides = array<i64: 272, 17, 16, 1>, act.to_strides = array<i64: 512, 16, 256, 1>} : (i64, i64) -> ()
    %8 = arith.constant 1088 : i64
    %9 = arith.addi %operand1_base, %8 : i64
    %10 = arith.constant 83968 : i64
    %11 = arith.addi %scratch_base, %10 : i64
    func.call @act_host_copy(%9, %11) {act.elem_bytes = 1 : i64, act.lengths = array<i64: 1, 6, 1, 16>, act.from_strides = array<i64: 102, 17, 16, 1>, act.to_strides = array<i64: 512, 16, 256, 1>} : (i64, i64) -> ()
    %12 = arith.constant 16 : i64
    %13 = arith.addi %operand1_base, %12 : i64
    %14 = arith.constant 82176 : i64
    %15 = arith.addi %scratch_base, %14 : i64
    func.call @act_host_copy(%13, %15) {act.elem_bytes = 1 : i64, act.lengths = array<i64: 4, 16, 1, 1>, act.from_strides = array<i64: 272, 17, 1, 1>, act.to_strides = array<i64: 512, 16, 256, 1>} : (i64, i64) -> ()
    %16 = arith.constant 1104 : i64
    %17 = arith.addi %operand1_base, %16 : i64
    %18 = arith.constant 84224 : i64
    %19 = arith.addi %scratch_base, %18 : i64
    func.call @act_host_copy(%17, %19) {act.elem_bytes = 1 : i64, act.lengths = array<i64: 1, 6, 1, 1>, act.from_strides = array<i64: 102, 17, 1, 1>, act.to_strides = array<i64: 512, 16, 256, 1>} : (i64, i64) -> ()
    %20 = arith.constant 2 : i64
    scf.for %i0 = %zero to %20 step %one : i64 {
      %21 = arith.constant 0 : i64
      llvm.inline_asm has_side_effects "load_streaming n=1024 stride=16 addr=$0 row=$1", "r,r,~{memory}" %scratch_base, %21 : (i64, i64) -> ()
      %22 = arith.constant 256 : i64
      %23 = arith.muli %i0, %22 : i64
      %24 = arith.addi %scratch_base, %23 : i64
      %25 = arith.constant 81920 : i64
      %26 = arith.addi %24, %25 : i64
      %27 = arith.constant 0 : i64
      llvm.inline_asm has_side_effects "load_stationary n=16 stride=1 step=16 addr=$0 row=$1", "r,r,~{memory}" %26, %27 : (i64, i64) -> ()
      %28 = arith.constant 0 : i64
      %29 = arith.constant 0 : i64
      %30 = arith.constant 0 : i64
      llvm.inline_asm has_side_effects "gemm_block m=1024 i=$0 w=$1 o=$2", "r,r,r,~{memory}" %28, %29, %30 : (i64, i64, i64) -> ()
      %31 = arith.constant 4 : i64
      scf.for %i1 = %zero to %31 step %one : i64 {
        %32 = arith.constant 16384 : i64
        %33 = arith.muli %i1, %32 : i64
        %34 = arith.addi %scratch_base, %33 : i64
        %35 = arith.constant 16384 : i64
        %36 = arith.addi %34, %35 : i64
        %37 = arith.constant 0 : i64
        llvm.inline_asm has_side_effects "load_streaming n=1024 stride=16 addr=$0 row=$1", "r,r,~{memory}" %36, %37 : (i64, i64) -> ()
        %38 = arith.constant 256 : i64
        %39 = arith.muli %i0, %38 : i64
        %40 = arith.addi %scratch_base, %39 : i64
        %41 = arith.constant 512 : i64
        %42 = arith.muli %i1, %41 : i64
        %43 = arith.addi %40, %42 : i64
        %44 = arith.constant 82432 : i64
        %45 = arith.addi %43, %44 : i64
        %46 = arith.constant 0 : i64
        llvm.inline_asm has_side_effects "load_stationary n=16 stride=1 step=16 addr=$0 row=$1", "r,r,~{memory}" %45, %46 : (i64, i64) -> ()
        %47 = arith.constant 0 : i64
        %48 = arith.constant 0 : i64
        %49 = arith.constant 0 : i64
        llvm.inline_asm has_side_effects "gemm_block_accumulate m=1024 i=$0 w=$1 o=$2", "r,r,r,~{memory}" %47, %48, %49 : (i64, i64, i64) -> ()
      }
      %50 = arith.constant 0 : i64
      %51 = arith.constant 65536 : i64
      %52 = arith.muli %i0, %51 : i64
      %53 = arith.addi %scratch_base, %52 : i64
      %54 = arith.constant 84480 : i64
      %55 = arith.addi %53, %54 : i64
      llvm.inline_asm has_side_effects "store_output n=1024 stride=64 row=$0 addr=$1", "r,r,~{memory}" %50, %55 : (i64, i64) -> ()
    } {act.parallel}
    llvm.inline_asm has_side_effects "fence", "~{memory}" : () -> ()
    %56 = arith.constant 84480 : i64
    %57 = arith.addi %scratch_base, %56 : i64
    func.call @act_host_copy(%57, %result0_base) {act.elem_bytes = 4 : i64, act.lengths = array<i64: 1, 33, 1, 16>, act.from_strides = array<i64: 131072, 64, 65536, 4>, act.to_strides = array<i64: 2244, 68, 64, 4>} : (i64, i64) -> ()
    %58 = arith.constant 150016 : i64
    %59 = arith.addi %scratch_base, %58 : i64
    %60 = arith.constant 64 : i64
    %61 = arith.addi %result0_base, %60 : i64
    func.call @act_host_copy(%59, %61) {act.elem_bytes = 4 : i64, act.lengths = array<i64: 1, 33, 1, 1>, act.from_strides = array<i64: 131072, 64, 65536, 4>, act.to_strides = array<i64: 2244, 68, 4, 4>} : (i64, i64) -> ()
    return
  }
}
