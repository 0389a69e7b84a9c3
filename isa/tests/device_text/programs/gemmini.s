# A kernel for gemmini.
# void act_kernel(void *const segments[])
#   [0] operand0: 2048 bytes
#   [1] operand1: 2048 bytes
#   [2] result0: 4096 bytes
    .text
    .globl act_kernel
    .type act_kernel, @function
act_kernel:
    addi sp, sp, -32
    sd s1, 0(sp)
    sd s2, 8(sp)
    sd s3, 16(sp)
    sd s4, 24(sp)
    mv s1, a0
    .insn r 0x7b, 3, 7, x0, x0, x0
    li a0, 0x3f80000000010004
    li a1, 0x1000000000000
    .insn r 0x7b, 3, 0, x0, a0, a1
    # for %i6 in 0..2
    li s2, 0
.Lact_0:
    # config_ld 32, 1.0
    # mvin operand1+%i6*16, sp[%i6*16+32], 16, 16
    li a0, 0x3f80000000100101
    li a1, 32
    .insn r 0x7b, 3, 0, x0, a0, a1
    ld a0, 8(s1)
    li t0, 16
    mul t0, s2, t0
    add a0, a0, t0
    li a1, 0x10001000000020
    li t0, 16
    mul t0, s2, t0
    add a1, a1, t0
    .insn r 0x7b, 3, 2, x0, a0, a1
    addi s2, s2, 1
    li t0, 2
    bgeu s2, t0, .Lact_0_end
    j .Lact_0
.Lact_0_end:
    # for %i7 in 0..2
    li s2, 0
.Lact_1:
    # for %i8 in 0..3
    li s3, 0
.Lact_2:
    # config_ld 32, 1.0
    # mvin operand1+%i7*16+%i8*512+512, sp[%i7*48+%i8*16+64], 16, 16
    li a0, 0x3f80000000100101
    li a1, 32
    .insn r 0x7b, 3, 0, x0, a0, a1
    ld a0, 8(s1)
    li t0, 16
    mul t0, s2, t0
    add a0, a0, t0
    li t0, 512
    mul t0, s3, t0
    add a0, a0, t0
    addi a0, a0, 512
    li a1, 0x10001000000040
    li t0, 48
    mul t0, s2, t0
    add a1, a1, t0
    li t0, 16
    mul t0, s3, t0
    add a1, a1, t0
    .insn r 0x7b, 3, 2, x0, a0, a1
    addi s3, s3, 1
    li t0, 3
    bgeu s3, t0, .Lact_2_end
    j .Lact_2
.Lact_2_end:
    addi s2, s2, 1
    li t0, 2
    bgeu s2, t0, .Lact_1_end
    j .Lact_1
.Lact_1_end:
    # for %i3 in 0..2
    li s2, 0
.Lact_3:
    # config_ld 64, 1.0
    # mvin operand0+%i3*1024, sp[160], 16, 16
    li a0, 0x3f80000000100101
    li a1, 64
    .insn r 0x7b, 3, 0, x0, a0, a1
    ld a0, 0(s1)
    li t0, 1024
    mul t0, s2, t0
    add a0, a0, t0
    li a1, 0x100010000000a0
    .insn r 0x7b, 3, 2, x0, a0, a1
    # for %i9 in 0..3
    li s3, 0
.Lact_4:
    # config_ld 64, 1.0
    # mvin operand0+%i3*1024+%i9*16+16, sp[%i9*16+176], 16, 16
    li a0, 0x3f80000000100101
    li a1, 64
    .insn r 0x7b, 3, 0, x0, a0, a1
    ld a0, 0(s1)
    li t0, 1024
    mul t0, s2, t0
    add a0, a0, t0
    li t0, 16
    mul t0, s3, t0
    add a0, a0, t0
    addi a0, a0, 16
    li a1, 0x100010000000b0
    li t0, 16
    mul t0, s3, t0
    add a1, a1, t0
    .insn r 0x7b, 3, 2, x0, a0, a1
    addi s3, s3, 1
    li t0, 3
    bgeu s3, t0, .Lact_4_end
    j .Lact_4
.Lact_4_end:
    # for %i4 in 0..2
    li s3, 0
.Lact_5:
    # preload sp[%i4*16+32], 16, 16, acc[0], 16, 16
    # compute_preloaded sp[160], 16, 16, none
    li a0, 0x10001000000020
    li t0, 16
    mul t0, s3, t0
    add a0, a0, t0
    li a1, 0x10001080000000
    .insn r 0x7b, 3, 6, x0, a0, a1
    li a0, 0x100010000000a0
    li a1, 0x100010ffffffff
    .insn r 0x7b, 3, 4, x0, a0, a1
    # for %i5 in 0..3
    li s4, 0
.Lact_6:
    # preload sp[%i4*48+%i5*16+64], 16, 16, acc.accumulate[0], 16, 16
    # compute_preloaded sp[%i5*16+176], 16, 16, none
    li a0, 0x10001000000040
    li t0, 48
    mul t0, s3, t0
    add a0, a0, t0
    li t0, 16
    mul t0, s4, t0
    add a0, a0, t0
    li a1, 0x100010c0000000
    .insn r 0x7b, 3, 6, x0, a0, a1
    li a0, 0x100010000000b0
    li t0, 16
    mul t0, s4, t0
    add a0, a0, t0
    li a1, 0x100010ffffffff
    .insn r 0x7b, 3, 4, x0, a0, a1
    addi s4, s4, 1
    li t0, 3
    bgeu s4, t0, .Lact_6_end
    j .Lact_6
.Lact_6_end:
    # config_st 128
    # mvout result0+%i3*2048+%i4*64, acc.full[0], 16, 16
    li a0, 2
    li a1, 0x3f80000000000080
    .insn r 0x7b, 3, 0, x0, a0, a1
    ld a0, 16(s1)
    li t0, 2048
    mul t0, s2, t0
    add a0, a0, t0
    li t0, 64
    mul t0, s3, t0
    add a0, a0, t0
    li a1, 0x100010a0000000
    .insn r 0x7b, 3, 3, x0, a0, a1
    addi s3, s3, 1
    li t0, 2
    bgeu s3, t0, .Lact_5_end
    j .Lact_5
.Lact_5_end:
    addi s2, s2, 1
    li t0, 2
    bgeu s2, t0, .Lact_3_end
    j .Lact_3
.Lact_3_end:
    fence
    ld s1, 0(sp)
    ld s2, 8(sp)
    ld s3, 16(sp)
    ld s4, 24(sp)
    addi sp, sp, 32
    ret
    .size act_kernel, .-act_kernel
    .section .note.GNU-stack,"",@progbits
