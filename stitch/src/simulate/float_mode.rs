//! The processor's floating-point mode during a run: denormals are zeros, as XLA's CPU backend and the reference
//! evaluator have it, whatever the calling thread uses.

/// Restores the caller's mode when dropped.
pub(crate) struct FlushDenormals {
    #[cfg(target_arch = "x86_64")]
    before: u32,
}

impl FlushDenormals {
    pub(crate) fn enter() -> FlushDenormals {
        #[cfg(target_arch = "x86_64")]
        {
            // All exceptions masked, round to nearest even, flush-to-zero (bit 15), denormals-are-zero (bit 6);
            // Intel SDM volume 1, section 10.2.3.
            const MODE: u32 = 0x1f80 | 1 << 15 | 1 << 6;
            let before = read();
            write(MODE);
            FlushDenormals { before }
        }
        #[cfg(not(target_arch = "x86_64"))]
        FlushDenormals {}
    }
}

impl Drop for FlushDenormals {
    fn drop(&mut self) {
        #[cfg(target_arch = "x86_64")]
        write(self.before);
    }
}

#[cfg(target_arch = "x86_64")]
fn read() -> u32 {
    let mut mode = 0u32;
    // SAFETY: stores the control register into a local variable.
    unsafe { std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut mode, options(nostack, preserves_flags)) };
    mode
}

#[cfg(target_arch = "x86_64")]
fn write(mode: u32) {
    // SAFETY: no reserved bit is set: `mode` is MODE or what `read` gave. No Rust floating-point code runs between
    // `enter` and the drop but the functions that generated code calls, which are exact about denormals themselves.
    unsafe {
        std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const mode, options(nostack, preserves_flags, readonly));
    };
}
