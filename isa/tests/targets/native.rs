//! Where the processor's own instructions are called: each kernel is one block of inline assembly that takes operands
//! from memory into fixed registers, runs the instructions under test and puts the result back. Knows no description.

/// FTZ and DAZ set, exceptions masked, rounding to nearest even: the environment of the descriptions.
pub(crate) const FLUSHING: u32 = 0x9fc0;

/// Operands in the low bytes of `input[0]`.. and the result in those of `output`.
#[repr(C, align(64))]
pub(crate) struct Registers {
    pub(crate) input: [[u8; 64]; 4],
    pub(crate) output: [u8; 64],
}

/// What a kernel gets besides registers.
#[derive(Clone, Copy)]
pub(crate) struct Memory {
    /// In rsi.
    pub(crate) first: *const u8,
    /// In rdx: the second operand in memory, or where the result goes.
    pub(crate) second: *mut u8,
    /// In rcx: a pitch, a mask, a constant.
    pub(crate) scalar: u64,
}

pub(crate) type Kernel = unsafe fn(&mut Registers, Memory);

/// Whether the processor has what x86-64-v3 asks for.
pub(crate) fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
}

/// Runs a kernel; `None` without AVX2 and FMA.
pub(crate) fn run_avx2(kernel: Kernel, registers: &mut Registers, memory: Memory) -> Option<()> {
    if !has_avx2() {
        return None;
    }
    // SAFETY: the processor has the instructions, and the caller's buffers cover what the kernel's text accesses: the
    // operands and results are made as long as the description's windows, which the oracle bounds-checked before.
    unsafe { kernel(registers, memory) };
    Some(())
}

/// Kernels of ymm registers: operands in ymm0 to ymm3, the result in ymm8; ymm14, ymm15 and rax are free.
macro_rules! ymm {
    ($($line:literal),+ $(,)?) => {{
        // SAFETY: to be called where AVX2 and FMA exist; accesses the registers given and what its text reads and writes
        // through rsi and rdx. MXCSR is as before when the block ends.
        unsafe fn run(registers: &mut $crate::native::Registers, memory: $crate::native::Memory) {
            $crate::native::ymm!(@block registers, memory, $($line),+;)
        }
        run as $crate::native::Kernel
    }};
    (@block $registers:ident, $memory:ident, $($line:literal),+; $($operands:tt)*) => {
        // SAFETY: as above; every register that the text changes is declared.
        unsafe {
            std::arch::asm!(
                "sub rsp, 144",
                "stmxcsr [rsp]",
                "mov [rsp + 4], r8d",
                "ldmxcsr [rsp + 4]",
                "vmovups ymm0, [rdi]",
                "vmovups ymm1, [rdi + 64]",
                "vmovups ymm2, [rdi + 128]",
                "vmovups ymm3, [rdi + 192]",
                $($line),+,
                "vmovups [rdi + 256], ymm8",
                "ldmxcsr [rsp]",
                "add rsp, 144",
                "vzeroupper",
                in("rdi") std::ptr::from_mut($registers),
                in("rsi") $memory.first,
                in("rdx") $memory.second,
                in("rcx") $memory.scalar,
                in("r8") u64::from($crate::native::FLUSHING),
                out("rax") _,
                out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
                out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
                out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
                out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
                $($operands)*
            );
        }
    };
}
pub(crate) use ymm;

/// One kernel per immediate: `{imm}` in the text.
macro_rules! ymm_immediate {
    ($($line:literal),+ $(,)?) => {{
        // SAFETY: as for the kernels without an immediate.
        unsafe fn run<const IMM: u8>(
            registers: &mut $crate::native::Registers,
            memory: $crate::native::Memory,
        ) {
            $crate::native::ymm!(@block registers, memory, $($line),+; imm = const IMM)
        }
        let rows: [[$crate::native::Kernel; 16]; 16] =
            $crate::native::immediates!(run; 0 16 32 48 64 80 96 112 128 144 160 176 192 208 224 240);
        rows
    }};
}
pub(crate) use ymm_immediate;

macro_rules! immediates {
    ($run:ident; $($at:literal)+) => {
        [$([
            $run::<{ $at }>, $run::<{ $at + 1 }>, $run::<{ $at + 2 }>, $run::<{ $at + 3 }>,
            $run::<{ $at + 4 }>, $run::<{ $at + 5 }>, $run::<{ $at + 6 }>, $run::<{ $at + 7 }>,
            $run::<{ $at + 8 }>, $run::<{ $at + 9 }>, $run::<{ $at + 10 }>, $run::<{ $at + 11 }>,
            $run::<{ $at + 12 }>, $run::<{ $at + 13 }>, $run::<{ $at + 14 }>, $run::<{ $at + 15 }>,
        ]),+]
    };
}
pub(crate) use immediates;
