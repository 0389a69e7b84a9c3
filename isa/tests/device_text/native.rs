//! x86-64 text as a shared library of this process.

use std::process::Command;

/// FTZ and DAZ set, exceptions masked, rounding to nearest even: what the description of x86 asks of the host.
static FLUSHING: u32 = 0x9fc0;

/// Assembles, links and calls a kernel; `None` where the tools or the processor's instructions are missing.
pub(crate) fn run(text: &str, operands: &[Vec<u8>], results: &[u64], scratch: u64) -> Option<Vec<Vec<u8>>> {
    if !is_x86_feature_detected!("avx2") || !is_x86_feature_detected!("fma") {
        return None;
    }
    let object = crate::assembler::object("x86_64", text)?.unwrap_or_else(|e| panic!("{e}"));
    let folder = std::env::temp_dir().join(format!("act_device_text_{}_{:p}", std::process::id(), &object));
    std::fs::create_dir_all(&folder).unwrap();
    let (input, output) = (folder.join("kernel.o"), folder.join("kernel.so"));
    std::fs::write(&input, object).unwrap();
    let linked = Command::new("cc").args(["-shared", "-nostdlib", "-o"]).arg(&output).arg(&input).status();
    let ran = linked.ok().filter(|status| status.success()).map(|_| {
        let mut memory: Vec<Vec<u8>> = operands.to_vec();
        memory.extend(results.iter().chain(&[scratch]).map(|&bytes| vec![0xa5u8; bytes as usize]));
        let table: Vec<*mut u8> = memory.iter_mut().map(|m| m.as_mut_ptr()).collect();
        // SAFETY: the library has no initializers; its function has this signature and touches the segments in the
        // table only, which the oracle has found to cover every access. MXCSR is put back.
        unsafe {
            let library = libloading::Library::new(&output).unwrap();
            let kernel: libloading::Symbol<'_, unsafe extern "C" fn(*const *mut u8)> =
                library.get(b"act_kernel").unwrap();
            let mut before = 0u32;
            std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut before);
            std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const FLUSHING);
            kernel(table.as_ptr());
            std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const before);
        }
        memory[operands.len()..operands.len() + results.len()].to_vec()
    });
    std::fs::remove_dir_all(&folder).unwrap();
    ran
}
