module attributes {act.target = "gemmini"} {
  func.func private @act_host_copy(i64, i64)
  func.func @kernel(%operand0: !llvm.ptr, %operand1: !llvm.ptr, %operand2: !llvm.ptr, %result0: !llvm.ptr, %scratch: !llvm.ptr, %consts: !llvm.ptr, %machine: !llvm.ptr) attributes {
    act.operand_bytes = array<i64: 720, 800, 80>,
    act.result_bytes = array<i64: 360>,
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
    llvm.inline_asm has_side_effects "config_ld 40, 1.0\0Amvin $0, sp[$1], 16, 16", "r,r,~{memory}" %operand0_base, %0 : (i64, i64) -> ()
    %1 = arith.constant 16 : i64
    llvm.inline_asm has_side_effects "config_ld 20, 1.0\0Amvin $0, sp[$1], 16, 16", "r,r,~{memory}" %operand1_base, %1 : (i64, i64) -> ()
    %2 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "config_ld 0, 1.0\0Amvin $0, acc[$1], 16, 16", "r,r,~{memory}" %operand2_base, %2 : (i64, i64) -> ()
    %3 = arith.constant 0 : i64
    %4 = arith.constant 16 : i64
    %5 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "preload sp[$1], 16, 16, acc.accumulate[$2], 16, 16\0Acompute_preloaded sp[$0], 16, 16, none", "r,r,r,~{memory}" %3, %4, %5 : (i64, i64, i64) -> ()
    %6 = arith.constant 16 : i64
    %7 = arith.addi %operand0_base, %6 : i64
    %8 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "config_ld 40, 1.0\0Amvin $0, sp[$1], 16, 16", "r,r,~{memory}" %7, %8 : (i64, i64) -> ()
    %9 = arith.constant 320 : i64
    %10 = arith.addi %operand1_base, %9 : i64
    %11 = arith.constant 16 : i64
    llvm.inline_asm has_side_effects "config_ld 20, 1.0\0Amvin $0, sp[$1], 16, 16", "r,r,~{memory}" %10, %11 : (i64, i64) -> ()
    %12 = arith.constant 0 : i64
    %13 = arith.constant 16 : i64
    %14 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "preload sp[$1], 16, 16, acc.accumulate[$2], 16, 16\0Acompute_preloaded sp[$0], 16, 16, none", "r,r,r,~{memory}" %12, %13, %14 : (i64, i64, i64) -> ()
    %15 = arith.constant 32 : i64
    %16 = arith.addi %operand0_base, %15 : i64
    %17 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "config_ld 40, 1.0\0Amvin $0, sp[$1], 16, 8", "r,r,~{memory}" %16, %17 : (i64, i64) -> ()
    %18 = arith.constant 640 : i64
    %19 = arith.addi %operand1_base, %18 : i64
    %20 = arith.constant 16 : i64
    llvm.inline_asm has_side_effects "config_ld 20, 1.0\0Amvin $0, sp[$1], 8, 16", "r,r,~{memory}" %19, %20 : (i64, i64) -> ()
    %21 = arith.constant 0 : i64
    %22 = arith.constant 16 : i64
    %23 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "preload sp[$1], 8, 16, acc.accumulate[$2], 16, 16\0Acompute_preloaded sp[$0], 16, 8, none", "r,r,r,~{memory}" %21, %22, %23 : (i64, i64, i64) -> ()
    %24 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "config_st 20, 0.02, relu\0Amvout $1, acc[$0], 16, 16", "r,r,~{memory}" %24, %result0_base : (i64, i64) -> ()
    %25 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "config_ld 40, 1.0\0Amvin $0, sp[$1], 16, 16", "r,r,~{memory}" %operand0_base, %25 : (i64, i64) -> ()
    %26 = arith.constant 16 : i64
    %27 = arith.addi %operand1_base, %26 : i64
    %28 = arith.constant 16 : i64
    llvm.inline_asm has_side_effects "config_ld 20, 1.0\0Amvin $0, sp[$1], 16, 4", "r,r,~{memory}" %27, %28 : (i64, i64) -> ()
    %29 = arith.constant 64 : i64
    %30 = arith.addi %operand2_base, %29 : i64
    %31 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "config_ld 0, 1.0\0Amvin $0, acc[$1], 16, 4", "r,r,~{memory}" %30, %31 : (i64, i64) -> ()
    %32 = arith.constant 0 : i64
    %33 = arith.constant 16 : i64
    %34 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "preload sp[$1], 16, 4, acc.accumulate[$2], 16, 4\0Acompute_preloaded sp[$0], 16, 16, none", "r,r,r,~{memory}" %32, %33, %34 : (i64, i64, i64) -> ()
    %35 = arith.constant 16 : i64
    %36 = arith.addi %operand0_base, %35 : i64
    %37 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "config_ld 40, 1.0\0Amvin $0, sp[$1], 16, 16", "r,r,~{memory}" %36, %37 : (i64, i64) -> ()
    %38 = arith.constant 336 : i64
    %39 = arith.addi %operand1_base, %38 : i64
    %40 = arith.constant 16 : i64
    llvm.inline_asm has_side_effects "config_ld 20, 1.0\0Amvin $0, sp[$1], 16, 4", "r,r,~{memory}" %39, %40 : (i64, i64) -> ()
    %41 = arith.constant 0 : i64
    %42 = arith.constant 16 : i64
    %43 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "preload sp[$1], 16, 4, acc.accumulate[$2], 16, 4\0Acompute_preloaded sp[$0], 16, 16, none", "r,r,r,~{memory}" %41, %42, %43 : (i64, i64, i64) -> ()
    %44 = arith.constant 32 : i64
    %45 = arith.addi %operand0_base, %44 : i64
    %46 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "config_ld 40, 1.0\0Amvin $0, sp[$1], 16, 8", "r,r,~{memory}" %45, %46 : (i64, i64) -> ()
    %47 = arith.constant 656 : i64
    %48 = arith.addi %operand1_base, %47 : i64
    %49 = arith.constant 16 : i64
    llvm.inline_asm has_side_effects "config_ld 20, 1.0\0Amvin $0, sp[$1], 8, 4", "r,r,~{memory}" %48, %49 : (i64, i64) -> ()
    %50 = arith.constant 0 : i64
    %51 = arith.constant 16 : i64
    %52 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "preload sp[$1], 8, 4, acc.accumulate[$2], 16, 4\0Acompute_preloaded sp[$0], 16, 8, none", "r,r,r,~{memory}" %50, %51, %52 : (i64, i64, i64) -> ()
    %53 = arith.constant 0 : i64
    %54 = arith.constant 16 : i64
    %55 = arith.addi %result0_base, %54 : i64
    llvm.inline_asm has_side_effects "config_st 20, 0.02, relu\0Amvout $1, acc[$0], 16, 4", "r,r,~{memory}" %53, %55 : (i64, i64) -> ()
    %56 = arith.constant 640 : i64
    %57 = arith.addi %operand0_base, %56 : i64
    %58 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "config_ld 40, 1.0\0Amvin $0, sp[$1], 2, 16", "r,r,~{memory}" %57, %58 : (i64, i64) -> ()
    %59 = arith.constant 2 : i64
    llvm.inline_asm has_side_effects "config_ld 20, 1.0\0Amvin $0, sp[$1], 16, 16", "r,r,~{memory}" %operand1_base, %59 : (i64, i64) -> ()
    %60 = arith.constant 0 : i64
    %61 = arith.constant 2 : i64
    %62 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "preload sp[$1], 16, 16, acc[$2], 2, 16\0Acompute_preloaded sp[$0], 2, 16, none", "r,r,r,~{memory}" %60, %61, %62 : (i64, i64, i64) -> ()
    %63 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "config_ld 0, 1.0\0Amvin $0, acc.accumulate[$1], 2, 16", "r,r,~{memory}" %operand2_base, %63 : (i64, i64) -> ()
    %64 = arith.constant 656 : i64
    %65 = arith.addi %operand0_base, %64 : i64
    %66 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "config_ld 40, 1.0\0Amvin $0, sp[$1], 2, 16", "r,r,~{memory}" %65, %66 : (i64, i64) -> ()
    %67 = arith.constant 320 : i64
    %68 = arith.addi %operand1_base, %67 : i64
    %69 = arith.constant 2 : i64
    llvm.inline_asm has_side_effects "config_ld 20, 1.0\0Amvin $0, sp[$1], 16, 16", "r,r,~{memory}" %68, %69 : (i64, i64) -> ()
    %70 = arith.constant 0 : i64
    %71 = arith.constant 2 : i64
    %72 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "preload sp[$1], 16, 16, acc.accumulate[$2], 2, 16\0Acompute_preloaded sp[$0], 2, 16, none", "r,r,r,~{memory}" %70, %71, %72 : (i64, i64, i64) -> ()
    %73 = arith.constant 672 : i64
    %74 = arith.addi %operand0_base, %73 : i64
    %75 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "config_ld 40, 1.0\0Amvin $0, sp[$1], 2, 8", "r,r,~{memory}" %74, %75 : (i64, i64) -> ()
    %76 = arith.constant 640 : i64
    %77 = arith.addi %operand1_base, %76 : i64
    %78 = arith.constant 2 : i64
    llvm.inline_asm has_side_effects "config_ld 20, 1.0\0Amvin $0, sp[$1], 8, 16", "r,r,~{memory}" %77, %78 : (i64, i64) -> ()
    %79 = arith.constant 0 : i64
    %80 = arith.constant 2 : i64
    %81 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "preload sp[$1], 8, 16, acc.accumulate[$2], 2, 16\0Acompute_preloaded sp[$0], 2, 8, none", "r,r,r,~{memory}" %79, %80, %81 : (i64, i64, i64) -> ()
    %82 = arith.constant 0 : i64
    %83 = arith.constant 320 : i64
    %84 = arith.addi %result0_base, %83 : i64
    llvm.inline_asm has_side_effects "config_st 20, 0.02, relu\0Amvout $1, acc[$0], 2, 16", "r,r,~{memory}" %82, %84 : (i64, i64) -> ()
    %85 = arith.constant 640 : i64
    %86 = arith.addi %operand0_base, %85 : i64
    %87 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "config_ld 40, 1.0\0Amvin $0, sp[$1], 2, 16", "r,r,~{memory}" %86, %87 : (i64, i64) -> ()
    %88 = arith.constant 16 : i64
    %89 = arith.addi %operand1_base, %88 : i64
    %90 = arith.constant 2 : i64
    llvm.inline_asm has_side_effects "config_ld 20, 1.0\0Amvin $0, sp[$1], 16, 4", "r,r,~{memory}" %89, %90 : (i64, i64) -> ()
    %91 = arith.constant 0 : i64
    %92 = arith.constant 2 : i64
    %93 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "preload sp[$1], 16, 4, acc[$2], 2, 4\0Acompute_preloaded sp[$0], 2, 16, none", "r,r,r,~{memory}" %91, %92, %93 : (i64, i64, i64) -> ()
    %94 = arith.constant 64 : i64
    %95 = arith.addi %operand2_base, %94 : i64
    %96 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "config_ld 0, 1.0\0Amvin $0, acc.accumulate[$1], 2, 4", "r,r,~{memory}" %95, %96 : (i64, i64) -> ()
    %97 = arith.constant 656 : i64
    %98 = arith.addi %operand0_base, %97 : i64
    %99 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "config_ld 40, 1.0\0Amvin $0, sp[$1], 2, 16", "r,r,~{memory}" %98, %99 : (i64, i64) -> ()
    %100 = arith.constant 336 : i64
    %101 = arith.addi %operand1_base, %100 : i64
    %102 = arith.constant 2 : i64
    llvm.inline_asm has_side_effects "config_ld 20, 1.0\0Amvin $0, sp[$1], 16, 4", "r,r,~{memory}" %101, %102 : (i64, i64) -> ()
    %103 = arith.constant 0 : i64
    %104 = arith.constant 2 : i64
    %105 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "preload sp[$1], 16, 4, acc.accumulate[$2], 2, 4\0Acompute_preloaded sp[$0], 2, 16, none", "r,r,r,~{memory}" %103, %104, %105 : (i64, i64, i64) -> ()
    %106 = arith.constant 672 : i64
    %107 = arith.addi %operand0_base, %106 : i64
    %108 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "config_ld 40, 1.0\0Amvin $0, sp[$1], 2, 8", "r,r,~{memory}" %107, %108 : (i64, i64) -> ()
    %109 = arith.constant 656 : i64
    %110 = arith.addi %operand1_base, %109 : i64
    %111 = arith.constant 2 : i64
    llvm.inline_asm has_side_effects "config_ld 20, 1.0\0Amvin $0, sp[$1], 8, 4", "r,r,~{memory}" %110, %111 : (i64, i64) -> ()
    %112 = arith.constant 0 : i64
    %113 = arith.constant 2 : i64
    %114 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "preload sp[$1], 8, 4, acc.accumulate[$2], 2, 4\0Acompute_preloaded sp[$0], 2, 8, none", "r,r,r,~{memory}" %112, %113, %114 : (i64, i64, i64) -> ()
    %115 = arith.constant 0 : i64
    %116 = arith.constant 336 : i64
    %117 = arith.addi %result0_base, %116 : i64
    llvm.inline_asm has_side_effects "config_st 20, 0.02, relu\0Amvout $1, acc[$0], 2, 4", "r,r,~{memory}" %115, %117 : (i64, i64) -> ()
    return
  }
}
