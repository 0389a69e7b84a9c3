module attributes {act.target = "x86"} {
  func.func private @act_host_copy(i64, i64)
  func.func @kernel(%operand0: !llvm.ptr, %operand1: !llvm.ptr, %operand2: !llvm.ptr, %result0: !llvm.ptr, %scratch: !llvm.ptr, %consts: !llvm.ptr, %machine: !llvm.ptr) attributes {
    act.operand_bytes = array<i64: 1920, 960, 40>,
    act.result_bytes = array<i64: 800>,
    act.scratch_bytes = 4800 : i64,
    act.consts = dense<"0x00000000000000000000000000000000"> : tensor<16xi8>
  } {
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %operand0_base = llvm.ptrtoint %operand0 : !llvm.ptr to i64
    %operand1_base = llvm.ptrtoint %operand1 : !llvm.ptr to i64
    %operand2_base = llvm.ptrtoint %operand2 : !llvm.ptr to i64
    %result0_base = llvm.ptrtoint %result0 : !llvm.ptr to i64
    %scratch_base = llvm.ptrtoint %scratch : !llvm.ptr to i64
    %consts_base = llvm.ptrtoint %consts : !llvm.ptr to i64
    func.call @act_host_copy(%operand0_base, %scratch_base) {act.elem_bytes = 4 : i64, act.lengths = array<i64: 20, 1, 24, 1>, act.from_strides = array<i64: 96, 96, 4, 4>, act.to_strides = array<i64: 96, 4, 4, 4>} : (i64, i64) -> ()
    %0 = arith.constant 1920 : i64
    %1 = arith.addi %scratch_base, %0 : i64
    func.call @act_host_copy(%consts_base, %1) {act.elem_bytes = 4 : i64, act.lengths = array<i64: 384>, act.from_strides = array<i64: 0>, act.to_strides = array<i64: 4>} : (i64, i64) -> ()
    %2 = arith.constant 1920 : i64
    %3 = arith.addi %scratch_base, %2 : i64
    func.call @act_host_copy(%operand1_base, %3) {act.elem_bytes = 4 : i64, act.lengths = array<i64: 24, 1, 1, 8>, act.from_strides = array<i64: 40, 40, 32, 4>, act.to_strides = array<i64: 64, 32, 32, 4>} : (i64, i64) -> ()
    %4 = arith.constant 32 : i64
    %5 = arith.addi %operand1_base, %4 : i64
    %6 = arith.constant 1952 : i64
    %7 = arith.addi %scratch_base, %6 : i64
    func.call @act_host_copy(%5, %7) {act.elem_bytes = 4 : i64, act.lengths = array<i64: 24, 1, 1, 2>, act.from_strides = array<i64: 40, 40, 8, 4>, act.to_strides = array<i64: 64, 32, 32, 4>} : (i64, i64) -> ()
    %8 = arith.constant 3456 : i64
    %9 = arith.addi %scratch_base, %8 : i64
    func.call @act_host_copy(%consts_base, %9) {act.elem_bytes = 4 : i64, act.lengths = array<i64: 16>, act.from_strides = array<i64: 0>, act.to_strides = array<i64: 4>} : (i64, i64) -> ()
    %10 = arith.constant 3456 : i64
    %11 = arith.addi %scratch_base, %10 : i64
    func.call @act_host_copy(%operand2_base, %11) {act.elem_bytes = 4 : i64, act.lengths = array<i64: 1, 8>, act.from_strides = array<i64: 32, 4>, act.to_strides = array<i64: 32, 4>} : (i64, i64) -> ()
    %12 = arith.constant 32 : i64
    %13 = arith.addi %operand2_base, %12 : i64
    %14 = arith.constant 3488 : i64
    %15 = arith.addi %scratch_base, %14 : i64
    func.call @act_host_copy(%13, %15) {act.elem_bytes = 4 : i64, act.lengths = array<i64: 1, 2>, act.from_strides = array<i64: 8, 4>, act.to_strides = array<i64: 32, 4>} : (i64, i64) -> ()
    %16 = arith.constant 20 : i64
    scf.for %i0 = %zero to %16 step %one : i64 {
      %17 = arith.constant 2 : i64
      scf.for %i1 = %zero to %17 step %one : i64 {
        %18 = arith.constant 96 : i64
        %19 = arith.muli %i0, %18 : i64
        %20 = arith.addi %scratch_base, %19 : i64
        %21 = arith.constant 0 : i64
        llvm.inline_asm has_side_effects "vbroadcastss ymm[$1], [$0]", "r,r,~{memory}" %20, %21 : (i64, i64) -> ()
        %22 = arith.constant 0 : i64
        %23 = arith.constant 32 : i64
        %24 = arith.muli %i1, %23 : i64
        %25 = arith.addi %scratch_base, %24 : i64
        %26 = arith.constant 1920 : i64
        %27 = arith.addi %25, %26 : i64
        %28 = arith.constant 0 : i64
        llvm.inline_asm has_side_effects "vmulps ymm[$2], ymm[$0], [$1]", "r,r,r,~{memory}" %22, %27, %28 : (i64, i64, i64) -> ()
        %29 = arith.constant 0 : i64
        %30 = arith.constant 32 : i64
        %31 = arith.muli %i1, %30 : i64
        %32 = arith.addi %scratch_base, %31 : i64
        %33 = arith.constant 3456 : i64
        %34 = arith.addi %32, %33 : i64
        %35 = arith.constant 0 : i64
        llvm.inline_asm has_side_effects "vaddps ymm[$2], ymm[$0], [$1]", "r,r,r,~{memory}" %29, %34, %35 : (i64, i64, i64) -> ()
        %36 = arith.constant 23 : i64
        scf.for %i2 = %zero to %36 step %one : i64 {
          %37 = arith.constant 96 : i64
          %38 = arith.muli %i0, %37 : i64
          %39 = arith.addi %scratch_base, %38 : i64
          %40 = arith.constant 4 : i64
          %41 = arith.muli %i2, %40 : i64
          %42 = arith.addi %39, %41 : i64
          %43 = arith.constant 4 : i64
          %44 = arith.addi %42, %43 : i64
          %45 = arith.constant 1 : i64
          llvm.inline_asm has_side_effects "vbroadcastss ymm[$1], [$0]", "r,r,~{memory}" %44, %45 : (i64, i64) -> ()
          %46 = arith.constant 1 : i64
          %47 = arith.constant 32 : i64
          %48 = arith.muli %i1, %47 : i64
          %49 = arith.addi %scratch_base, %48 : i64
          %50 = arith.constant 64 : i64
          %51 = arith.muli %i2, %50 : i64
          %52 = arith.addi %49, %51 : i64
          %53 = arith.constant 1984 : i64
          %54 = arith.addi %52, %53 : i64
          %55 = arith.constant 0 : i64
          llvm.inline_asm has_side_effects "vfmadd231ps ymm[$2], ymm[$0], [$1]", "r,r,r,~{memory}" %46, %54, %55 : (i64, i64, i64) -> ()
        }
        %56 = arith.constant 0 : i64
        %57 = arith.constant 0 : i64
        llvm.inline_asm has_side_effects "vxorps ymm15, ymm15, ymm15 # relu\0Avmaxps ymm[$1], ymm15, ymm[$0]\0Avaddps ymm[$1], ymm[$1], ymm15", "r,r,~{memory}" %56, %57 : (i64, i64) -> ()
        %58 = arith.constant 0 : i64
        %59 = arith.constant 64 : i64
        %60 = arith.muli %i0, %59 : i64
        %61 = arith.addi %scratch_base, %60 : i64
        %62 = arith.constant 32 : i64
        %63 = arith.muli %i1, %62 : i64
        %64 = arith.addi %61, %63 : i64
        %65 = arith.constant 3520 : i64
        %66 = arith.addi %64, %65 : i64
        llvm.inline_asm has_side_effects "vmovups [$1], ymm[$0]", "r,r,~{memory}" %58, %66 : (i64, i64) -> ()
      } {act.parallel}
    } {act.parallel}
    %67 = arith.constant 3520 : i64
    %68 = arith.addi %scratch_base, %67 : i64
    func.call @act_host_copy(%68, %result0_base) {act.elem_bytes = 4 : i64, act.lengths = array<i64: 20, 1, 1, 8>, act.from_strides = array<i64: 64, 32, 32, 4>, act.to_strides = array<i64: 40, 40, 32, 4>} : (i64, i64) -> ()
    %69 = arith.constant 3552 : i64
    %70 = arith.addi %scratch_base, %69 : i64
    %71 = arith.constant 32 : i64
    %72 = arith.addi %result0_base, %71 : i64
    func.call @act_host_copy(%70, %72) {act.elem_bytes = 4 : i64, act.lengths = array<i64: 20, 1, 1, 2>, act.from_strides = array<i64: 64, 32, 32, 4>, act.to_strides = array<i64: 40, 40, 8, 4>} : (i64, i64) -> ()
    return
  }
}
