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

/// The tile configuration, operands and result.
#[repr(C, align(64))]
pub(crate) struct Tiles {
    config: [u8; 64],
    input: [[u8; 1024]; 3],
    output: [u8; 1024],
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
pub(crate) type TileKernel = unsafe fn(&mut Tiles, Memory);

/// A kernel and what it asks of the processor.
#[derive(Clone, Copy)]
pub(crate) enum Native {
    Avx2(Kernel),
    Avx512(Kernel),
    Amx(TileKernel),
}

/// Palette 1 (SDM volume 1, 18.3): bytes per row of the tiles from byte 16 on, rows from byte 48 on.
fn all_tiles_whole() -> [u8; 64] {
    let mut config = [0; 64];
    config[0] = 1;
    for tile in 0..8 {
        config[16 + 2 * tile] = 64;
        config[48 + tile] = 16;
    }
    config
}

/// Whether the processor has AMX and the system lets this process use the tile data (a thread asks once).
fn has_amx() -> bool {
    if !cfg!(target_os = "linux") || !has_avx512() {
        return false;
    }
    // CPUID leaf 7: AMX-BF16, AMX-TILE, AMX-INT8.
    let features = std::arch::x86_64::__cpuid_count(7, 0).edx;
    const WANTED: u32 = 1 << 22 | 1 << 24 | 1 << 25;
    if features & WANTED != WANTED {
        return false;
    }
    let status: i64;
    // SAFETY: arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) touches no memory of the process.
    unsafe {
        std::arch::asm!(
            "syscall",
            inout("rax") 158i64 => status,
            in("rdi") 0x1023, in("rsi") 18,
            out("rcx") _, out("r11") _,
        );
    }
    status == 0
}

fn has_avx512() -> bool {
    let f = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512dq");
    f && is_x86_feature_detected!("avx512bw")
}

impl Native {
    /// What the processor makes of operands in registers (in order) and in memory, `len` bytes of it; `None` on a
    /// processor without the instructions.
    pub(crate) fn run(self, operands: &[&Vec<u8>], memory: Memory, len: usize) -> Option<Vec<u8>> {
        match self {
            Native::Avx2(kernel) | Native::Avx512(kernel) => {
                let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
                if !avx2 || (matches!(self, Native::Avx512(_)) && !has_avx512()) {
                    return None;
                }
                let mut registers = Registers { input: [[0; 64]; 4], output: [0; 64] };
                for (register, bytes) in registers.input.iter_mut().zip(operands) {
                    register[..bytes.len()].copy_from_slice(bytes);
                }
                // SAFETY: the processor has the instructions, and the caller's buffers cover what the kernel's text
                // accesses: operands and results are as long as the windows of the description, in which the oracle
                // found every access.
                unsafe { kernel(&mut registers, memory) };
                Some(registers.output[..len.min(64)].to_vec())
            }
            Native::Amx(kernel) => {
                if !has_amx() {
                    return None;
                }
                let mut tiles = Tiles { config: all_tiles_whole(), input: [[0; 1024]; 3], output: [0; 1024] };
                for (tile, bytes) in tiles.input.iter_mut().zip(operands) {
                    tile.copy_from_slice(bytes);
                }
                // SAFETY: as above; the system has granted the tile data to this thread.
                unsafe { kernel(&mut tiles, memory) };
                Some(tiles.output[..len.min(1024)].to_vec())
            }
        }
    }
}

/// Kernels of ymm registers: operands in ymm0 to ymm3, the result in ymm8; ymm14, ymm15 and rax are free.
macro_rules! ymm {
    ($($line:literal),+ $(,)?) => {{
        // SAFETY: to be called where AVX2 and FMA exist; accesses the registers given and what its text reads and writes
        // through rsi and rdx. MXCSR is as before when the block ends.
        unsafe fn run(registers: &mut $crate::native::Registers, memory: $crate::native::Memory) {
            $crate::native::ymm!(@block registers, memory, $($line),+;)
        }
        $crate::native::Native::Avx2(run)
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
        let rows: [[$crate::native::Native; 16]; 16] =
            $crate::native::immediates!(Avx2 run; 0 16 32 48 64 80 96 112 128 144 160 176 192 208 224 240);
        rows
    }};
}
pub(crate) use ymm_immediate;

macro_rules! immediates {
    ($class:ident $run:ident; $($at:literal)+) => {
        [$([
            $crate::native::Native::$class($run::<{ $at }>), $crate::native::Native::$class($run::<{ $at + 1 }>), $crate::native::Native::$class($run::<{ $at + 2 }>), $crate::native::Native::$class($run::<{ $at + 3 }>),
            $crate::native::Native::$class($run::<{ $at + 4 }>), $crate::native::Native::$class($run::<{ $at + 5 }>), $crate::native::Native::$class($run::<{ $at + 6 }>), $crate::native::Native::$class($run::<{ $at + 7 }>),
            $crate::native::Native::$class($run::<{ $at + 8 }>), $crate::native::Native::$class($run::<{ $at + 9 }>), $crate::native::Native::$class($run::<{ $at + 10 }>), $crate::native::Native::$class($run::<{ $at + 11 }>),
            $crate::native::Native::$class($run::<{ $at + 12 }>), $crate::native::Native::$class($run::<{ $at + 13 }>), $crate::native::Native::$class($run::<{ $at + 14 }>), $crate::native::Native::$class($run::<{ $at + 15 }>),
        ]),+]
    };
}
pub(crate) use immediates;

/// Kernels of zmm registers, alike; zmm14, zmm15, k1 and rax are free.
macro_rules! zmm {
    ($($line:literal),+ $(,)?) => {{
        // SAFETY: to be called where AVX-512 exists; accesses the registers given and what its text reads and writes
        // through rsi and rdx. MXCSR is as before when the block ends.
        unsafe fn run(registers: &mut $crate::native::Registers, memory: $crate::native::Memory) {
            $crate::native::zmm!(@block registers, memory, $($line),+;)
        }
        $crate::native::Native::Avx512(run)
    }};
    (@block $registers:ident, $memory:ident, $($line:literal),+; $($operands:tt)*) => {
        // SAFETY: as above; every register that the text changes is declared.
        unsafe {
            std::arch::asm!(
                "sub rsp, 144",
                "stmxcsr [rsp]",
                "mov [rsp + 4], r8d",
                "ldmxcsr [rsp + 4]",
                "kmovq r9, k1",
                "vmovups zmm0, [rdi]",
                "vmovups zmm1, [rdi + 64]",
                "vmovups zmm2, [rdi + 128]",
                "vmovups zmm3, [rdi + 192]",
                $($line),+,
                "vmovups [rdi + 256], zmm8",
                "kmovq k1, r9",
                "ldmxcsr [rsp]",
                "add rsp, 144",
                "vzeroupper",
                in("rdi") std::ptr::from_mut($registers),
                in("rsi") $memory.first,
                in("rdx") $memory.second,
                in("rcx") $memory.scalar,
                in("r8") u64::from($crate::native::FLUSHING),
                out("rax") _, out("r9") _,
                out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
                out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
                out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
                out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
                $($operands)*
            );
        }
    };
}
pub(crate) use zmm;

/// One kernel per immediate: `{imm}` in the text.
macro_rules! zmm_immediate {
    ($($line:literal),+ $(,)?) => {{
        // SAFETY: as for the kernels without an immediate.
        unsafe fn run<const IMM: u8>(
            registers: &mut $crate::native::Registers,
            memory: $crate::native::Memory,
        ) {
            $crate::native::zmm!(@block registers, memory, $($line),+; imm = const IMM)
        }
        let rows: [[$crate::native::Native; 16]; 16] =
            $crate::native::immediates!(Avx512 run; 0 16 32 48 64 80 96 112 128 144 160 176 192 208 224 240);
        rows
    }};
}
pub(crate) use zmm_immediate;

/// Kernels of tiles: operands in tmm0 to tmm2, the result in tmm2.
macro_rules! tmm {
    ($($line:literal),+ $(,)?) => {{
        // SAFETY: to be called where AMX exists and is granted; accesses the tiles given and what its text reads and
        // writes through rsi and rdx, rows rcx bytes apart. No tile is in use before or after the block.
        unsafe fn run(tiles: &mut $crate::native::Tiles, memory: $crate::native::Memory) {
            // SAFETY: as above; compilers leave tiles alone.
            unsafe {
                std::arch::asm!(
                    "ldtilecfg [rdi]",
                    "mov eax, 64",
                    "tileloadd tmm0, [rdi + rax + 64]",
                    "tileloadd tmm1, [rdi + rax + 1088]",
                    "tileloadd tmm2, [rdi + rax + 2112]",
                    $($line),+,
                    "tilestored [rdi + rax + 3136], tmm2",
                    "tilerelease",
                    in("rdi") std::ptr::from_mut(tiles),
                    in("rsi") memory.first,
                    in("rdx") memory.second,
                    in("rcx") memory.scalar,
                    out("rax") _,
                );
            }
        }
        $crate::native::Native::Amx(run)
    }};
}
pub(crate) use tmm;
