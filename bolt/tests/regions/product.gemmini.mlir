module attributes {act.target = "gemmini"} {
  func.func private @act_host_copy(i64, i64)
  func.func @kernel(%operand0: !llvm.ptr, %operand1: !llvm.ptr, %result0: !llvm.ptr, %scratch: !llvm.ptr, %consts: !llvm.ptr, %machine: !llvm.ptr) attributes {
    act.operand_bytes = array<i64: 2310, 1190>,
    act.result_bytes = array<i64: 2244>,
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
    llvm.inline_asm has_side_effects "config_ld 17, 1.0\0Amvin $0, sp[$1], 16, 16", "r,r,~{memory}" %operand1_base, %0 : (i64, i64) -> ()
    %1 = arith.constant 3 : i64
    scf.for %i8 = %zero to %1 step %one : i64 {
      %2 = arith.constant 272 : i64
      %3 = arith.muli %i8, %2 : i64
      %4 = arith.addi %operand1_base, %3 : i64
      %5 = arith.constant 272 : i64
      %6 = arith.addi %4, %5 : i64
      %7 = arith.constant 16 : i64
      %8 = arith.muli %i8, %7 : i64
      %9 = arith.constant 48 : i64
      %10 = arith.addi %8, %9 : i64
      llvm.inline_asm has_side_effects "config_ld 17, 1.0\0Amvin $0, sp[$1], 16, 16", "r,r,~{memory}" %6, %10 : (i64, i64) -> ()
    }
    %11 = arith.constant 16 : i64
    %12 = arith.addi %operand1_base, %11 : i64
    %13 = arith.constant 96 : i64
    llvm.inline_asm has_side_effects "config_ld 17, 1.0\0Amvin $0, sp[$1], 16, 1", "r,r,~{memory}" %12, %13 : (i64, i64) -> ()
    %14 = arith.constant 3 : i64
    scf.for %i9 = %zero to %14 step %one : i64 {
      %15 = arith.constant 272 : i64
      %16 = arith.muli %i9, %15 : i64
      %17 = arith.addi %operand1_base, %16 : i64
      %18 = arith.constant 288 : i64
      %19 = arith.addi %17, %18 : i64
      %20 = arith.constant 16 : i64
      %21 = arith.muli %i9, %20 : i64
      %22 = arith.constant 112 : i64
      %23 = arith.addi %21, %22 : i64
      llvm.inline_asm has_side_effects "config_ld 17, 1.0\0Amvin $0, sp[$1], 16, 1", "r,r,~{memory}" %19, %23 : (i64, i64) -> ()
    }
    %24 = arith.constant 1104 : i64
    %25 = arith.addi %operand1_base, %24 : i64
    %26 = arith.constant 160 : i64
    llvm.inline_asm has_side_effects "config_ld 17, 1.0\0Amvin $0, sp[$1], 6, 1", "r,r,~{memory}" %25, %26 : (i64, i64) -> ()
    %27 = arith.constant 2 : i64
    scf.for %i5 = %zero to %27 step %one : i64 {
      %28 = arith.constant 1120 : i64
      %29 = arith.muli %i5, %28 : i64
      %30 = arith.addi %operand0_base, %29 : i64
      %31 = arith.constant 0 : i64
      llvm.inline_asm has_side_effects "config_ld 70, 1.0\0Amvin $0, sp[$1], 16, 16", "r,r,~{memory}" %30, %31 : (i64, i64) -> ()
      %32 = arith.constant 0 : i64
      %33 = arith.constant 32 : i64
      %34 = arith.constant 0 : i64
      llvm.inline_asm has_side_effects "preload sp[$1], 16, 16, acc[$2], 16, 16\0Acompute_preloaded sp[$0], 16, 16, none", "r,r,r,~{memory}" %32, %33, %34 : (i64, i64, i64) -> ()
      %35 = arith.constant 3 : i64
      scf.for %i6 = %zero to %35 step %one : i64 {
        %36 = arith.constant 1120 : i64
        %37 = arith.muli %i5, %36 : i64
        %38 = arith.addi %operand0_base, %37 : i64
        %39 = arith.constant 16 : i64
        %40 = arith.muli %i6, %39 : i64
        %41 = arith.addi %38, %40 : i64
        %42 = arith.constant 16 : i64
        %43 = arith.addi %41, %42 : i64
        %44 = arith.constant 0 : i64
        llvm.inline_asm has_side_effects "config_ld 70, 1.0\0Amvin $0, sp[$1], 16, 16", "r,r,~{memory}" %43, %44 : (i64, i64) -> ()
        %45 = arith.constant 0 : i64
        %46 = arith.constant 16 : i64
        %47 = arith.muli %i6, %46 : i64
        %48 = arith.constant 48 : i64
        %49 = arith.addi %47, %48 : i64
        %50 = arith.constant 0 : i64
        llvm.inline_asm has_side_effects "preload sp[$1], 16, 16, acc.accumulate[$2], 16, 16\0Acompute_preloaded sp[$0], 16, 16, none", "r,r,r,~{memory}" %45, %49, %50 : (i64, i64, i64) -> ()
      }
      %51 = arith.constant 1120 : i64
      %52 = arith.muli %i5, %51 : i64
      %53 = arith.addi %operand0_base, %52 : i64
      %54 = arith.constant 64 : i64
      %55 = arith.addi %53, %54 : i64
      %56 = arith.constant 0 : i64
      llvm.inline_asm has_side_effects "config_ld 70, 1.0\0Amvin $0, sp[$1], 16, 6", "r,r,~{memory}" %55, %56 : (i64, i64) -> ()
      %57 = arith.constant 1088 : i64
      %58 = arith.addi %operand1_base, %57 : i64
      %59 = arith.constant 16 : i64
      llvm.inline_asm has_side_effects "config_ld 17, 1.0\0Amvin $0, sp[$1], 6, 16", "r,r,~{memory}" %58, %59 : (i64, i64) -> ()
      %60 = arith.constant 0 : i64
      %61 = arith.constant 16 : i64
      %62 = arith.constant 0 : i64
      llvm.inline_asm has_side_effects "preload sp[$1], 6, 16, acc.accumulate[$2], 16, 16\0Acompute_preloaded sp[$0], 16, 6, none", "r,r,r,~{memory}" %60, %61, %62 : (i64, i64, i64) -> ()
      %63 = arith.constant 0 : i64
      %64 = arith.constant 1088 : i64
      %65 = arith.muli %i5, %64 : i64
      %66 = arith.addi %result0_base, %65 : i64
      llvm.inline_asm has_side_effects "config_st 68\0Amvout $1, acc.full[$0], 16, 16", "r,r,~{memory}" %63, %66 : (i64, i64) -> ()
      %67 = arith.constant 1120 : i64
      %68 = arith.muli %i5, %67 : i64
      %69 = arith.addi %operand0_base, %68 : i64
      %70 = arith.constant 0 : i64
      llvm.inline_asm has_side_effects "config_ld 70, 1.0\0Amvin $0, sp[$1], 16, 16", "r,r,~{memory}" %69, %70 : (i64, i64) -> ()
      %71 = arith.constant 0 : i64
      %72 = arith.constant 96 : i64
      %73 = arith.constant 0 : i64
      llvm.inline_asm has_side_effects "preload sp[$1], 16, 1, acc[$2], 16, 1\0Acompute_preloaded sp[$0], 16, 16, none", "r,r,r,~{memory}" %71, %72, %73 : (i64, i64, i64) -> ()
      %74 = arith.constant 3 : i64
      scf.for %i7 = %zero to %74 step %one : i64 {
        %75 = arith.constant 1120 : i64
        %76 = arith.muli %i5, %75 : i64
        %77 = arith.addi %operand0_base, %76 : i64
        %78 = arith.constant 16 : i64
        %79 = arith.muli %i7, %78 : i64
        %80 = arith.addi %77, %79 : i64
        %81 = arith.constant 16 : i64
        %82 = arith.addi %80, %81 : i64
        %83 = arith.constant 0 : i64
        llvm.inline_asm has_side_effects "config_ld 70, 1.0\0Amvin $0, sp[$1], 16, 16", "r,r,~{memory}" %82, %83 : (i64, i64) -> ()
        %84 = arith.constant 0 : i64
        %85 = arith.constant 16 : i64
        %86 = arith.muli %i7, %85 : i64
        %87 = arith.constant 112 : i64
        %88 = arith.addi %86, %87 : i64
        %89 = arith.constant 0 : i64
        llvm.inline_asm has_side_effects "preload sp[$1], 16, 1, acc.accumulate[$2], 16, 1\0Acompute_preloaded sp[$0], 16, 16, none", "r,r,r,~{memory}" %84, %88, %89 : (i64, i64, i64) -> ()
      }
      %90 = arith.constant 1120 : i64
      %91 = arith.muli %i5, %90 : i64
      %92 = arith.addi %operand0_base, %91 : i64
      %93 = arith.constant 64 : i64
      %94 = arith.addi %92, %93 : i64
      %95 = arith.constant 0 : i64
      llvm.inline_asm has_side_effects "config_ld 70, 1.0\0Amvin $0, sp[$1], 16, 6", "r,r,~{memory}" %94, %95 : (i64, i64) -> ()
      %96 = arith.constant 0 : i64
      %97 = arith.constant 160 : i64
      %98 = arith.constant 0 : i64
      llvm.inline_asm has_side_effects "preload sp[$1], 6, 1, acc.accumulate[$2], 16, 1\0Acompute_preloaded sp[$0], 16, 6, none", "r,r,r,~{memory}" %96, %97, %98 : (i64, i64, i64) -> ()
      %99 = arith.constant 0 : i64
      %100 = arith.constant 1088 : i64
      %101 = arith.muli %i5, %100 : i64
      %102 = arith.addi %result0_base, %101 : i64
      %103 = arith.constant 64 : i64
      %104 = arith.addi %102, %103 : i64
      llvm.inline_asm has_side_effects "config_st 68\0Amvout $1, acc.full[$0], 16, 1", "r,r,~{memory}" %99, %104 : (i64, i64) -> ()
    } {act.parallel}
    %105 = arith.constant 2240 : i64
    %106 = arith.addi %operand0_base, %105 : i64
    %107 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "config_ld 0, 1.0\0Amvin $0, sp[$1], 1, 16", "r,r,~{memory}" %106, %107 : (i64, i64) -> ()
    %108 = arith.constant 1 : i64
    llvm.inline_asm has_side_effects "config_ld 17, 1.0\0Amvin $0, sp[$1], 16, 16", "r,r,~{memory}" %operand1_base, %108 : (i64, i64) -> ()
    %109 = arith.constant 0 : i64
    %110 = arith.constant 1 : i64
    %111 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "preload sp[$1], 16, 16, acc[$2], 1, 16\0Acompute_preloaded sp[$0], 1, 16, none", "r,r,r,~{memory}" %109, %110, %111 : (i64, i64, i64) -> ()
    %112 = arith.constant 3 : i64
    scf.for %i3 = %zero to %112 step %one : i64 {
      %113 = arith.constant 16 : i64
      %114 = arith.muli %i3, %113 : i64
      %115 = arith.addi %operand0_base, %114 : i64
      %116 = arith.constant 2256 : i64
      %117 = arith.addi %115, %116 : i64
      %118 = arith.constant 0 : i64
      llvm.inline_asm has_side_effects "config_ld 0, 1.0\0Amvin $0, sp[$1], 1, 16", "r,r,~{memory}" %117, %118 : (i64, i64) -> ()
      %119 = arith.constant 272 : i64
      %120 = arith.muli %i3, %119 : i64
      %121 = arith.addi %operand1_base, %120 : i64
      %122 = arith.constant 272 : i64
      %123 = arith.addi %121, %122 : i64
      %124 = arith.constant 1 : i64
      llvm.inline_asm has_side_effects "config_ld 17, 1.0\0Amvin $0, sp[$1], 16, 16", "r,r,~{memory}" %123, %124 : (i64, i64) -> ()
      %125 = arith.constant 0 : i64
      %126 = arith.constant 1 : i64
      %127 = arith.constant 0 : i64
      llvm.inline_asm has_side_effects "preload sp[$1], 16, 16, acc.accumulate[$2], 1, 16\0Acompute_preloaded sp[$0], 1, 16, none", "r,r,r,~{memory}" %125, %126, %127 : (i64, i64, i64) -> ()
    }
    %128 = arith.constant 2304 : i64
    %129 = arith.addi %operand0_base, %128 : i64
    %130 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "config_ld 0, 1.0\0Amvin $0, sp[$1], 1, 6", "r,r,~{memory}" %129, %130 : (i64, i64) -> ()
    %131 = arith.constant 1088 : i64
    %132 = arith.addi %operand1_base, %131 : i64
    %133 = arith.constant 1 : i64
    llvm.inline_asm has_side_effects "config_ld 17, 1.0\0Amvin $0, sp[$1], 6, 16", "r,r,~{memory}" %132, %133 : (i64, i64) -> ()
    %134 = arith.constant 0 : i64
    %135 = arith.constant 1 : i64
    %136 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "preload sp[$1], 6, 16, acc.accumulate[$2], 1, 16\0Acompute_preloaded sp[$0], 1, 6, none", "r,r,r,~{memory}" %134, %135, %136 : (i64, i64, i64) -> ()
    %137 = arith.constant 0 : i64
    %138 = arith.constant 2176 : i64
    %139 = arith.addi %result0_base, %138 : i64
    llvm.inline_asm has_side_effects "config_st 0\0Amvout $1, acc.full[$0], 1, 16", "r,r,~{memory}" %137, %139 : (i64, i64) -> ()
    %140 = arith.constant 2240 : i64
    %141 = arith.addi %operand0_base, %140 : i64
    %142 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "config_ld 0, 1.0\0Amvin $0, sp[$1], 1, 16", "r,r,~{memory}" %141, %142 : (i64, i64) -> ()
    %143 = arith.constant 16 : i64
    %144 = arith.addi %operand1_base, %143 : i64
    %145 = arith.constant 1 : i64
    llvm.inline_asm has_side_effects "config_ld 17, 1.0\0Amvin $0, sp[$1], 16, 1", "r,r,~{memory}" %144, %145 : (i64, i64) -> ()
    %146 = arith.constant 0 : i64
    %147 = arith.constant 1 : i64
    %148 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "preload sp[$1], 16, 1, acc[$2], 1, 1\0Acompute_preloaded sp[$0], 1, 16, none", "r,r,r,~{memory}" %146, %147, %148 : (i64, i64, i64) -> ()
    %149 = arith.constant 3 : i64
    scf.for %i4 = %zero to %149 step %one : i64 {
      %150 = arith.constant 16 : i64
      %151 = arith.muli %i4, %150 : i64
      %152 = arith.addi %operand0_base, %151 : i64
      %153 = arith.constant 2256 : i64
      %154 = arith.addi %152, %153 : i64
      %155 = arith.constant 0 : i64
      llvm.inline_asm has_side_effects "config_ld 0, 1.0\0Amvin $0, sp[$1], 1, 16", "r,r,~{memory}" %154, %155 : (i64, i64) -> ()
      %156 = arith.constant 272 : i64
      %157 = arith.muli %i4, %156 : i64
      %158 = arith.addi %operand1_base, %157 : i64
      %159 = arith.constant 288 : i64
      %160 = arith.addi %158, %159 : i64
      %161 = arith.constant 1 : i64
      llvm.inline_asm has_side_effects "config_ld 17, 1.0\0Amvin $0, sp[$1], 16, 1", "r,r,~{memory}" %160, %161 : (i64, i64) -> ()
      %162 = arith.constant 0 : i64
      %163 = arith.constant 1 : i64
      %164 = arith.constant 0 : i64
      llvm.inline_asm has_side_effects "preload sp[$1], 16, 1, acc.accumulate[$2], 1, 1\0Acompute_preloaded sp[$0], 1, 16, none", "r,r,r,~{memory}" %162, %163, %164 : (i64, i64, i64) -> ()
    }
    %165 = arith.constant 2304 : i64
    %166 = arith.addi %operand0_base, %165 : i64
    %167 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "config_ld 0, 1.0\0Amvin $0, sp[$1], 1, 6", "r,r,~{memory}" %166, %167 : (i64, i64) -> ()
    %168 = arith.constant 1104 : i64
    %169 = arith.addi %operand1_base, %168 : i64
    %170 = arith.constant 1 : i64
    llvm.inline_asm has_side_effects "config_ld 17, 1.0\0Amvin $0, sp[$1], 6, 1", "r,r,~{memory}" %169, %170 : (i64, i64) -> ()
    %171 = arith.constant 0 : i64
    %172 = arith.constant 1 : i64
    %173 = arith.constant 0 : i64
    llvm.inline_asm has_side_effects "preload sp[$1], 6, 1, acc.accumulate[$2], 1, 1\0Acompute_preloaded sp[$0], 1, 6, none", "r,r,r,~{memory}" %171, %172, %173 : (i64, i64, i64) -> ()
    %174 = arith.constant 0 : i64
    %175 = arith.constant 2240 : i64
    %176 = arith.addi %result0_base, %175 : i64
    llvm.inline_asm has_side_effects "config_st 0\0Amvout $1, acc.full[$0], 1, 1", "r,r,~{memory}" %174, %176 : (i64, i64) -> ()
    return
  }
}
