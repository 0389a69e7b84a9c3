module attributes {act.target = "x86"} {
  func.func private @act_host_copy(i64, i64)
  func.func @kernel(%operand0: !llvm.ptr, %operand1: !llvm.ptr, %result0: !llvm.ptr, %scratch: !llvm.ptr, %consts: !llvm.ptr, %machine: !llvm.ptr) attributes {
    act.operand_bytes = array<i64: 1080, 918>,
    act.result_bytes = array<i64: 4080>,
    act.scratch_bytes = 8192 : i64,
    act.consts = dense<"0x00000000000000000000000000000000"> : tensor<16xi8>
  } {
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %operand0_base = llvm.ptrtoint %operand0 : !llvm.ptr to i64
    %operand1_base = llvm.ptrtoint %operand1 : !llvm.ptr to i64
    %result0_base = llvm.ptrtoint %result0 : !llvm.ptr to i64
    %scratch_base = llvm.ptrtoint %scratch : !llvm.ptr to i64
    %consts_base = llvm.ptrtoint %consts : !llvm.ptr to i64
    func.call @act_host_copy(%operand0_base, %scratch_base) {act.elem_bytes = 1 : i64, act.lengths = array<i64: 3, 1, 20, 1, 1, 18>, act.from_strides = array<i64: 360, 360, 18, 18, 18, 1>, act.to_strides = array<i64: 360, 18, 18, 18, 18, 1>} : (i64, i64) -> ()
    %0 = arith.constant 1088 : i64
    %1 = arith.addi %scratch_base, %0 : i64
    func.call @act_host_copy(%consts_base, %1) {act.elem_bytes = 1 : i64, act.lengths = array<i64: 1296>, act.from_strides = array<i64: 0>, act.to_strides = array<i64: 1>} : (i64, i64) -> ()
    %2 = arith.constant 1088 : i64
    %3 = arith.addi %scratch_base, %2 : i64
    func.call @act_host_copy(%operand1_base, %3) {act.elem_bytes = 1 : i64, act.lengths = array<i64: 3, 1, 1, 18, 2, 8>, act.from_strides = array<i64: 306, 306, 306, 17, 8, 1>, act.to_strides = array<i64: 432, 144, 432, 8, 144, 1>} : (i64, i64) -> ()
    %4 = arith.constant 16 : i64
    %5 = arith.addi %operand1_base, %4 : i64
    %6 = arith.constant 1376 : i64
    %7 = arith.addi %scratch_base, %6 : i64
    func.call @act_host_copy(%5, %7) {act.elem_bytes = 1 : i64, act.lengths = array<i64: 3, 1, 1, 18, 1, 1>, act.from_strides = array<i64: 306, 306, 306, 17, 1, 1>, act.to_strides = array<i64: 432, 144, 432, 8, 144, 1>} : (i64, i64) -> ()
    %8 = arith.constant 3 : i64
    scf.for %i0 = %zero to %8 step %one : i64 {
      %9 = arith.constant 20 : i64
      scf.for %i1 = %zero to %9 step %one : i64 {
        %10 = arith.constant 3 : i64
        scf.for %i2 = %zero to %10 step %one : i64 {
          %11 = arith.constant 360 : i64
          %12 = arith.muli %i0, %11 : i64
          %13 = arith.addi %scratch_base, %12 : i64
          %14 = arith.constant 18 : i64
          %15 = arith.muli %i1, %14 : i64
          %16 = arith.addi %13, %15 : i64
          %17 = arith.constant 432 : i64
          %18 = arith.muli %i0, %17 : i64
          %19 = arith.addi %scratch_base, %18 : i64
          %20 = arith.constant 144 : i64
          %21 = arith.muli %i2, %20 : i64
          %22 = arith.addi %19, %21 : i64
          %23 = arith.constant 1088 : i64
          %24 = arith.addi %22, %23 : i64
          %25 = arith.constant 0 : i64
          llvm.inline_asm has_side_effects "vmovq xmm15, [$1] # row_times_matrix_s8_2\0Avmovq xmm[$2], [$1 + 8]\0Avpunpcklbw xmm15, xmm15, xmm[$2]\0Avpmovsxbw ymm15, xmm15\0Avpbroadcastw xmm[$2], [$0]\0Avpmovsxbw ymm[$2], xmm[$2]\0Avpmaddwd ymm[$2], ymm[$2], ymm15", "r,r,r,~{memory}" %16, %24, %25 : (i64, i64, i64) -> ()
          %26 = arith.constant 360 : i64
          %27 = arith.muli %i0, %26 : i64
          %28 = arith.addi %scratch_base, %27 : i64
          %29 = arith.constant 18 : i64
          %30 = arith.muli %i1, %29 : i64
          %31 = arith.addi %28, %30 : i64
          %32 = arith.constant 2 : i64
          %33 = arith.addi %31, %32 : i64
          %34 = arith.constant 432 : i64
          %35 = arith.muli %i0, %34 : i64
          %36 = arith.addi %scratch_base, %35 : i64
          %37 = arith.constant 144 : i64
          %38 = arith.muli %i2, %37 : i64
          %39 = arith.addi %36, %38 : i64
          %40 = arith.constant 1104 : i64
          %41 = arith.addi %39, %40 : i64
          %42 = arith.constant 1 : i64
          llvm.inline_asm has_side_effects "vmovq xmm15, [$1] # row_times_matrix_s8_2\0Avmovq xmm[$2], [$1 + 8]\0Avpunpcklbw xmm15, xmm15, xmm[$2]\0Avpmovsxbw ymm15, xmm15\0Avpbroadcastw xmm[$2], [$0]\0Avpmovsxbw ymm[$2], xmm[$2]\0Avpmaddwd ymm[$2], ymm[$2], ymm15", "r,r,r,~{memory}" %33, %41, %42 : (i64, i64, i64) -> ()
          %43 = arith.constant 0 : i64
          %44 = arith.constant 1 : i64
          %45 = arith.constant 0 : i64
          llvm.inline_asm has_side_effects "vpaddd ymm[$2], ymm[$0], ymm[$1]", "r,r,r,~{memory}" %43, %44, %45 : (i64, i64, i64) -> ()
          %46 = arith.constant 360 : i64
          %47 = arith.muli %i0, %46 : i64
          %48 = arith.addi %scratch_base, %47 : i64
          %49 = arith.constant 18 : i64
          %50 = arith.muli %i1, %49 : i64
          %51 = arith.addi %48, %50 : i64
          %52 = arith.constant 4 : i64
          %53 = arith.addi %51, %52 : i64
          %54 = arith.constant 432 : i64
          %55 = arith.muli %i0, %54 : i64
          %56 = arith.addi %scratch_base, %55 : i64
          %57 = arith.constant 144 : i64
          %58 = arith.muli %i2, %57 : i64
          %59 = arith.addi %56, %58 : i64
          %60 = arith.constant 1120 : i64
          %61 = arith.addi %59, %60 : i64
          %62 = arith.constant 1 : i64
          llvm.inline_asm has_side_effects "vmovq xmm15, [$1] # row_times_matrix_s8_2\0Avmovq xmm[$2], [$1 + 8]\0Avpunpcklbw xmm15, xmm15, xmm[$2]\0Avpmovsxbw ymm15, xmm15\0Avpbroadcastw xmm[$2], [$0]\0Avpmovsxbw ymm[$2], xmm[$2]\0Avpmaddwd ymm[$2], ymm[$2], ymm15", "r,r,r,~{memory}" %53, %61, %62 : (i64, i64, i64) -> ()
          %63 = arith.constant 0 : i64
          %64 = arith.constant 1 : i64
          %65 = arith.constant 0 : i64
          llvm.inline_asm has_side_effects "vpaddd ymm[$2], ymm[$0], ymm[$1]", "r,r,r,~{memory}" %63, %64, %65 : (i64, i64, i64) -> ()
          %66 = arith.constant 360 : i64
          %67 = arith.muli %i0, %66 : i64
          %68 = arith.addi %scratch_base, %67 : i64
          %69 = arith.constant 18 : i64
          %70 = arith.muli %i1, %69 : i64
          %71 = arith.addi %68, %70 : i64
          %72 = arith.constant 6 : i64
          %73 = arith.addi %71, %72 : i64
          %74 = arith.constant 432 : i64
          %75 = arith.muli %i0, %74 : i64
          %76 = arith.addi %scratch_base, %75 : i64
          %77 = arith.constant 144 : i64
          %78 = arith.muli %i2, %77 : i64
          %79 = arith.addi %76, %78 : i64
          %80 = arith.constant 1136 : i64
          %81 = arith.addi %79, %80 : i64
          %82 = arith.constant 1 : i64
          llvm.inline_asm has_side_effects "vmovq xmm15, [$1] # row_times_matrix_s8_2\0Avmovq xmm[$2], [$1 + 8]\0Avpunpcklbw xmm15, xmm15, xmm[$2]\0Avpmovsxbw ymm15, xmm15\0Avpbroadcastw xmm[$2], [$0]\0Avpmovsxbw ymm[$2], xmm[$2]\0Avpmaddwd ymm[$2], ymm[$2], ymm15", "r,r,r,~{memory}" %73, %81, %82 : (i64, i64, i64) -> ()
          %83 = arith.constant 0 : i64
          %84 = arith.constant 1 : i64
          %85 = arith.constant 0 : i64
          llvm.inline_asm has_side_effects "vpaddd ymm[$2], ymm[$0], ymm[$1]", "r,r,r,~{memory}" %83, %84, %85 : (i64, i64, i64) -> ()
          %86 = arith.constant 360 : i64
          %87 = arith.muli %i0, %86 : i64
          %88 = arith.addi %scratch_base, %87 : i64
          %89 = arith.constant 18 : i64
          %90 = arith.muli %i1, %89 : i64
          %91 = arith.addi %88, %90 : i64
          %92 = arith.constant 8 : i64
          %93 = arith.addi %91, %92 : i64
          %94 = arith.constant 432 : i64
          %95 = arith.muli %i0, %94 : i64
          %96 = arith.addi %scratch_base, %95 : i64
          %97 = arith.constant 144 : i64
          %98 = arith.muli %i2, %97 : i64
          %99 = arith.addi %96, %98 : i64
          %100 = arith.constant 1152 : i64
          %101 = arith.addi %99, %100 : i64
          %102 = arith.constant 1 : i64
          llvm.inline_asm has_side_effects "vmovq xmm15, [$1] # row_times_matrix_s8_2\0Avmovq xmm[$2], [$1 + 8]\0Avpunpcklbw xmm15, xmm15, xmm[$2]\0Avpmovsxbw ymm15, xmm15\0Avpbroadcastw xmm[$2], [$0]\0Avpmovsxbw ymm[$2], xmm[$2]\0Avpmaddwd ymm[$2], ymm[$2], ymm15", "r,r,r,~{memory}" %93, %101, %102 : (i64, i64, i64) -> ()
          %103 = arith.constant 0 : i64
          %104 = arith.constant 1 : i64
          %105 = arith.constant 0 : i64
          llvm.inline_asm has_side_effects "vpaddd ymm[$2], ymm[$0], ymm[$1]", "r,r,r,~{memory}" %103, %104, %105 : (i64, i64, i64) -> ()
          %106 = arith.constant 360 : i64
          %107 = arith.muli %i0, %106 : i64
          %108 = arith.addi %scratch_base, %107 : i64
          %109 = arith.constant 18 : i64
          %110 = arith.muli %i1, %109 : i64
          %111 = arith.addi %108, %110 : i64
          %112 = arith.constant 10 : i64
          %113 = arith.addi %111, %112 : i64
          %114 = arith.constant 432 : i64
          %115 = arith.muli %i0, %114 : i64
          %116 = arith.addi %scratch_base, %115 : i64
          %117 = arith.constant 144 : i64
          %118 = arith.muli %i2, %117 : i64
          %119 = arith.addi %116, %118 : i64
          %120 = arith.constant 1168 : i64
          %121 = arith.addi %119, %120 : i64
          %122 = arith.constant 1 : i64
          llvm.inline_asm has_side_effects "vmovq xmm15, [$1] # row_times_matrix_s8_2\0Avmovq xmm[$2], [$1 + 8]\0Avpunpcklbw xmm15, xmm15, xmm[$2]\0Avpmovsxbw ymm15, xmm15\0Avpbroadcastw xmm[$2], [$0]\0Avpmovsxbw ymm[$2], xmm[$2]\0Avpmaddwd ymm[$2], ymm[$2], ymm15", "r,r,r,~{memory}" %113, %121, %122 : (i64, i64, i64) -> ()
          %123 = arith.constant 0 : i64
          %124 = arith.constant 1 : i64
          %125 = arith.constant 0 : i64
          llvm.inline_asm has_side_effects "vpaddd ymm[$2], ymm[$0], ymm[$1]", "r,r,r,~{memory}" %123, %124, %125 : (i64, i64, i64) -> ()
          %126 = arith.constant 360 : i64
          %127 = arith.muli %i0, %126 : i64
          %128 = arith.addi %scratch_base, %127 : i64
          %129 = arith.constant 18 : i64
          %130 = arith.muli %i1, %129 : i64
          %131 = arith.addi %128, %130 : i64
          %132 = arith.constant 12 : i64
          %133 = arith.addi %131, %132 : i64
          %134 = arith.constant 432 : i64
          %135 = arith.muli %i0, %134 : i64
          %136 = arith.addi %scratch_base, %135 : i64
          %137 = arith.constant 144 : i64
          %138 = arith.muli %i2, %137 : i64
          %139 = arith.addi %136, %138 : i64
          %140 = arith.constant 1184 : i64
          %141 = arith.addi %139, %140 : i64
          %142 = arith.constant 1 : i64
          llvm.inline_asm has_side_effects "vmovq xmm15, [$1] # row_times_matrix_s8_2\0Avmovq xmm[$2], [$1 + 8]\0Avpunpcklbw xmm15, xmm15, xmm[$2]\0Avpmovsxbw ymm15, xmm15\0Avpbroadcastw xmm[$2], [$0]\0Avpmovsxbw ymm[$2], xmm[$2]\0Avpmaddwd ymm[$2], ymm[$2], ymm15", "r,r,r,~{memory}" %133, %141, %142 : (i64, i64, i64) -> ()
          %143 = arith.constant 0 : i64
          %144 = arith.constant 1 : i64
          %145 = arith.constant 0 : i64
          llvm.inline_asm has_side_effects "vpaddd ymm[$2], ymm[$0], ymm[$1]", "r,r,r,~{memory}" %143, %144, %145 : (i64, i64, i64) -> ()
          %146 = arith.constant 360 : i64
          %147 = arith.muli %i0, %146 : i64
          %148 = arith.addi %scratch_base, %147 : i64
          %149 = arith.constant 18 : i64
          %150 = arith.muli %i1, %149 : i64
          %151 = arith.addi %148, %150 : i64
          %152 = arith.constant 14 : i64
          %153 = arith.addi %151, %152 : i64
          %154 = arith.constant 432 : i64
          %155 = arith.muli %i0, %154 : i64
          %156 = arith.addi %scratch_base, %155 : i64
          %157 = arith.constant 144 : i64
          %158 = arith.muli %i2, %157 : i64
          %159 = arith.addi %156, %158 : i64
          %160 = arith.constant 1200 : i64
          %161 = arith.addi %159, %160 : i64
          %162 = arith.constant 1 : i64
          llvm.inline_asm has_side_effects "vmovq xmm15, [$1] # row_times_matrix_s8_2\0Avmovq xmm[$2], [$1 + 8]\0Avpunpcklbw xmm15, xmm15, xmm[$2]\0Avpmovsxbw ymm15, xmm15\0Avpbroadcastw xmm[$2], [$0]\0Avpmovsxbw ymm[$2], xmm[$2]\0Avpmaddwd ymm[$2], ymm[$2], ymm15", "r,r,r,~{memory}" %153, %161, %162 : (i64, i64, i64) -> ()
          %163 = arith.constant 0 : i64
          %164 = arith.constant 1 : i64
          %165 = arith.constant 0 : i64
          llvm.inline_asm has_side_effects "vpaddd ymm[$2], ymm[$0], ymm[$1]", "r,r,r,~{memory}" %163, %164, %165 : (i64, i64, i64) -> ()
          %166 = arith.constant 360 : i64
          %167 = arith.muli %i0, %166 : i64
          %168 = arith.addi %scratch_base, %167 : i64
          %169 = arith.constant 18 : i64
          %170 = arith.muli %i1, %169 : i64
          %171 = arith.addi %168, %170 : i64
          %172 = arith.constant 16 : i64
          %173 = arith.addi %171, %172 : i64
          %174 = arith.constant 432 : i64
          %175 = arith.muli %i0, %174 : i64
          %176 = arith.addi %scratch_base, %175 : i64
          %177 = arith.constant 144 : i64
          %178 = arith.muli %i2, %177 : i64
          %179 = arith.addi %176, %178 : i64
          %180 = arith.constant 1216 : i64
          %181 = arith.addi %179, %180 : i64
          %182 = arith.constant 1 : i64
          llvm.inline_asm has_side_effects "vmovq xmm15, [$1] # row_times_matrix_s8_2\0Avmovq xmm[$2], [$1 + 8]\0Avpunpcklbw xmm15, xmm15, xmm[$2]\0Avpmovsxbw ymm15, xmm15\0Avpbroadcastw xmm[$2], [$0]\0Avpmovsxbw ymm[$2], xmm[$2]\0Avpmaddwd ymm[$2], ymm[$2], ymm15", "r,r,r,~{memory}" %173, %181, %182 : (i64, i64, i64) -> ()
          %183 = arith.constant 0 : i64
          %184 = arith.constant 1 : i64
          %185 = arith.constant 0 : i64
          llvm.inline_asm has_side_effects "vpaddd ymm[$2], ymm[$0], ymm[$1]", "r,r,r,~{memory}" %183, %184, %185 : (i64, i64, i64) -> ()
          %186 = arith.constant 0 : i64
          %187 = arith.constant 1920 : i64
          %188 = arith.muli %i0, %187 : i64
          %189 = arith.addi %scratch_base, %188 : i64
          %190 = arith.constant 96 : i64
          %191 = arith.muli %i1, %190 : i64
          %192 = arith.addi %189, %191 : i64
          %193 = arith.constant 32 : i64
          %194 = arith.muli %i2, %193 : i64
          %195 = arith.addi %192, %194 : i64
          %196 = arith.constant 2432 : i64
          %197 = arith.addi %195, %196 : i64
          llvm.inline_asm has_side_effects "vmovups [$1], ymm[$0]", "r,r,~{memory}" %186, %197 : (i64, i64) -> ()
        } {act.parallel}
      } {act.parallel}
    } {act.parallel}
    %198 = arith.constant 2432 : i64
    %199 = arith.addi %scratch_base, %198 : i64
    func.call @act_host_copy(%199, %result0_base) {act.elem_bytes = 4 : i64, act.lengths = array<i64: 3, 1, 20, 1, 2, 8>, act.from_strides = array<i64: 1920, 32, 96, 32, 32, 4>, act.to_strides = array<i64: 1360, 1360, 68, 68, 32, 4>} : (i64, i64) -> ()
    %200 = arith.constant 2496 : i64
    %201 = arith.addi %scratch_base, %200 : i64
    %202 = arith.constant 64 : i64
    %203 = arith.addi %result0_base, %202 : i64
    func.call @act_host_copy(%201, %203) {act.elem_bytes = 4 : i64, act.lengths = array<i64: 3, 1, 20, 1, 1, 1>, act.from_strides = array<i64: 1920, 32, 96, 32, 32, 4>, act.to_strides = array<i64: 1360, 1360, 68, 68, 4, 4>} : (i64, i64) -> ()
    return
  }
}
