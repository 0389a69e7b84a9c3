# A kernel for amx.
# void act_kernel(void *const segments[])
#   [0] operand0: 2048 bytes
#   [1] operand1: 2048 bytes
#   [2] result0: 2048 bytes
#   [3] scratch: 1024 bytes
    .text
    .globl act_kernel
    .type act_kernel, @function
act_kernel:
    subq $32, %rsp
    movq %rdi, (%rsp)
    leaq -192(%rsp), %rsp
    vpxord %zmm31, %zmm31, %zmm31
    vmovups %zmm31, (%rsp)
    movb $1, (%rsp)
    movabsq $0x0040004000400040, %rax
    movq %rax, 16(%rsp)
    movq %rax, 24(%rsp)
    movabsq $0x1010101010101010, %rax
    movq %rax, 48(%rsp)
    ldtilecfg (%rsp)
    leaq 192(%rsp), %rsp
    # host_copy of 512 elements
    # for %i0 in 0..16
    movq $0, 8(%rsp)
.Lact_0:
    # for %i1 in 0..16
    movq $0, 16(%rsp)
.Lact_1:
    # for %i2 in 0..2
    movq $0, 24(%rsp)
.Lact_2:
    movq (%rsp), %rsi
    movq 8(%rsi), %rsi
    imulq $64, 8(%rsp), %rax
    addq %rax, %rsi
    imulq $2, 16(%rsp), %rax
    addq %rax, %rsi
    imulq $32, 24(%rsp), %rax
    addq %rax, %rsi
    movq (%rsp), %rdi
    movq 24(%rdi), %rdi
    imulq $64, 8(%rsp), %rax
    addq %rax, %rdi
    imulq $4, 16(%rsp), %rax
    addq %rax, %rdi
    imulq $2, 24(%rsp), %rax
    addq %rax, %rdi
    movw (%rsi), %ax
    movw %ax, (%rdi)
    incq 24(%rsp)
    cmpq $2, 24(%rsp)
    jb .Lact_2
    incq 16(%rsp)
    cmpq $16, 16(%rsp)
    jb .Lact_1
    incq 8(%rsp)
    cmpq $16, 8(%rsp)
    jb .Lact_0
    # tileloadd tmm[1], [scratch + 64]
    movq (%rsp), %rsi
    movq 24(%rsi), %rsi
    movq $64, %rdi
    tileloadd (%rsi, %rdi), %tmm1
    # for %i0 in 0..2
    movq $0, 8(%rsp)
.Lact_3:
    # tilezero tmm[0]
    tilezero %tmm0
    # tilezero tmm[2]
    tilezero %tmm2
    # tileloadd tmm[3], [operand0+%i0*1024 + 64]
    movq (%rsp), %rsi
    movq (%rsi), %rsi
    imulq $1024, 8(%rsp), %rax
    addq %rax, %rsi
    movq $64, %rdi
    tileloadd (%rsi, %rdi), %tmm3
    # tdpbf16ps tmm[0], tmm[3], tmm[1]
    tdpbf16ps %tmm1, %tmm3, %tmm0
    # tilestored [result0+%i0*1024 + 64], tmm[0]
    movq (%rsp), %rsi
    movq 16(%rsi), %rsi
    imulq $1024, 8(%rsp), %rax
    addq %rax, %rsi
    movq $64, %rdi
    tilestored %tmm0, (%rsi, %rdi)
    incq 8(%rsp)
    cmpq $2, 8(%rsp)
    jb .Lact_3
    tilerelease
    vzeroupper
    addq $32, %rsp
    ret
    .size act_kernel, .-act_kernel
    .section .note.GNU-stack,"",@progbits
