# A kernel for x86.
# void act_kernel(void *const segments[])
#   [0] operand0: 2560 bytes
#   [1] operand1: 3072 bytes
#   [2] result0: 1920 bytes
    .text
    .globl act_kernel
    .type act_kernel, @function
act_kernel:
    subq $32, %rsp
    movq %rdi, (%rsp)
    # for %i0 in 0..20
    movq $0, 8(%rsp)
.Lact_0:
    # for %i1 in 0..3
    movq $0, 16(%rsp)
.Lact_1:
    # vxorps ymm[0], ymm[0] # row_times_matrix_4
    # vbroadcastss ymm15, [operand0+%i0*128]
    # vmulps ymm15, ymm15, [operand1+%i1*32]
    # vaddps ymm[0], ymm[0], ymm15
    # vbroadcastss ymm15, [operand0+%i0*128 + 4]
    # vmulps ymm15, ymm15, [operand1+%i1*32 + 96]
    # vaddps ymm[0], ymm[0], ymm15
    # vbroadcastss ymm15, [operand0+%i0*128 + 8]
    # vmulps ymm15, ymm15, [operand1+%i1*32 + 2 x 96]
    # vaddps ymm[0], ymm[0], ymm15
    # vbroadcastss ymm15, [operand0+%i0*128 + 12]
    # vmulps ymm15, ymm15, [operand1+%i1*32 + 3 x 96]
    # vaddps ymm[0], ymm[0], ymm15
    movq (%rsp), %rsi
    movq (%rsi), %rsi
    imulq $128, 8(%rsp), %rax
    addq %rax, %rsi
    movq (%rsp), %rdi
    movq 8(%rdi), %rdi
    imulq $32, 16(%rsp), %rax
    addq %rax, %rdi
    vxorps %ymm0, %ymm0, %ymm0
    vbroadcastss (%rsi), %ymm15
    vmulps (%rdi), %ymm15, %ymm15
    vaddps %ymm15, %ymm0, %ymm0
    vbroadcastss 4(%rsi), %ymm15
    vmulps 96(%rdi), %ymm15, %ymm15
    vaddps %ymm15, %ymm0, %ymm0
    vbroadcastss 8(%rsi), %ymm15
    vmulps 192(%rdi), %ymm15, %ymm15
    vaddps %ymm15, %ymm0, %ymm0
    vbroadcastss 12(%rsi), %ymm15
    vmulps 288(%rdi), %ymm15, %ymm15
    vaddps %ymm15, %ymm0, %ymm0
    # for %i2 in 0..7
    movq $0, 24(%rsp)
.Lact_2:
    # vxorps ymm[1], ymm[1] # row_times_matrix_4
    # vbroadcastss ymm15, [operand0+%i0*128+%i2*16+16]
    # vmulps ymm15, ymm15, [operand1+%i1*32+%i2*384+384]
    # vaddps ymm[1], ymm[1], ymm15
    # vbroadcastss ymm15, [operand0+%i0*128+%i2*16+16 + 4]
    # vmulps ymm15, ymm15, [operand1+%i1*32+%i2*384+384 + 96]
    # vaddps ymm[1], ymm[1], ymm15
    # vbroadcastss ymm15, [operand0+%i0*128+%i2*16+16 + 8]
    # vmulps ymm15, ymm15, [operand1+%i1*32+%i2*384+384 + 2 x 96]
    # vaddps ymm[1], ymm[1], ymm15
    # vbroadcastss ymm15, [operand0+%i0*128+%i2*16+16 + 12]
    # vmulps ymm15, ymm15, [operand1+%i1*32+%i2*384+384 + 3 x 96]
    # vaddps ymm[1], ymm[1], ymm15
    movq (%rsp), %rsi
    movq (%rsi), %rsi
    imulq $128, 8(%rsp), %rax
    addq %rax, %rsi
    imulq $16, 24(%rsp), %rax
    addq %rax, %rsi
    movq (%rsp), %rdi
    movq 8(%rdi), %rdi
    imulq $32, 16(%rsp), %rax
    addq %rax, %rdi
    imulq $384, 24(%rsp), %rax
    addq %rax, %rdi
    vxorps %ymm1, %ymm1, %ymm1
    vbroadcastss 16(%rsi), %ymm15
    vmulps 384(%rdi), %ymm15, %ymm15
    vaddps %ymm15, %ymm1, %ymm1
    vbroadcastss 20(%rsi), %ymm15
    vmulps 480(%rdi), %ymm15, %ymm15
    vaddps %ymm15, %ymm1, %ymm1
    vbroadcastss 24(%rsi), %ymm15
    vmulps 576(%rdi), %ymm15, %ymm15
    vaddps %ymm15, %ymm1, %ymm1
    vbroadcastss 28(%rsi), %ymm15
    vmulps 672(%rdi), %ymm15, %ymm15
    vaddps %ymm15, %ymm1, %ymm1
    # vaddps ymm[0], ymm[1], ymm[0]
    vaddps %ymm0, %ymm1, %ymm0
    incq 24(%rsp)
    cmpq $7, 24(%rsp)
    jb .Lact_2
    # vmovups [result0+%i0*96+%i1*32], ymm[0]
    movq (%rsp), %rsi
    movq 16(%rsi), %rsi
    imulq $96, 8(%rsp), %rax
    addq %rax, %rsi
    imulq $32, 16(%rsp), %rax
    addq %rax, %rsi
    vmovups %ymm0, (%rsi)
    incq 16(%rsp)
    cmpq $3, 16(%rsp)
    jb .Lact_1
    incq 8(%rsp)
    cmpq $20, 8(%rsp)
    jb .Lact_0
    vzeroupper
    addq $32, %rsp
    ret
    .size act_kernel, .-act_kernel
    .section .note.GNU-stack,"",@progbits
