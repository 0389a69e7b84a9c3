# A kernel for gemmini_plus.
# void act_kernel(void *const segments[])
#   [0] operand0: 2048 bytes
#   [1] operand1: 2048 bytes
#   [2] result0: 4096 bytes
    .text
    .globl act_kernel
    .type act_kernel, @function
act_kernel:
    addi sp, sp, -16
    sd s1, 0(sp)
    mv s1, a0
    .insn r 0x7b, 3, 7, x0, x0, x0
    li a0, 0x3f80000000010004
    li a1, 0x1000000000000
    .insn r 0x7b, 3, 0, x0, a0, a1
    # loop_ws 32, 32, 64, A (operand0) 64, B (operand1) 32, C (result0) 128, full
    li a0, 2
    li a1, 0x3f80000000000080
    .insn r 0x7b, 3, 0, x0, a0, a1
    li a0, 0x3f80000000100101
    li a1, 64
    .insn r 0x7b, 3, 0, x0, a0, a1
    li a0, 0x3f80000000100109
    li a1, 32
    .insn r 0x7b, 3, 0, x0, a0, a1
    li a1, 0x400020002
    .insn r 0x7b, 3, 9, x0, x0, a1
    ld a0, 0(s1)
    ld a1, 8(s1)
    .insn r 0x7b, 3, 10, x0, a0, a1
    ld a1, 16(s1)
    .insn r 0x7b, 3, 11, x0, x0, a1
    li a0, 64
    li a1, 32
    .insn r 0x7b, 3, 12, x0, a0, a1
    li a1, 32
    .insn r 0x7b, 3, 13, x0, x0, a1
    li a0, 2
    .insn r 0x7b, 3, 8, x0, a0, x0
    fence
    ld s1, 0(sp)
    addi sp, sp, 16
    ret
    .size act_kernel, .-act_kernel
    .section .note.GNU-stack,"",@progbits
