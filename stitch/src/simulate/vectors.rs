//! What vector instructions of the processor the generated code asks for by name. Everything else is LLVM's choice.

/// Instruction sets for products of bytes and of bfloat16 and for the size of register blocks, each with all before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum VectorLevel {
    /// Nothing by name: any processor.
    Plain,
    /// Pairs of 16-bit products, 8 sums at once (vpmaddwd).
    Avx2,
    /// The same, 16 sums at once.
    Avx512,
    /// Quads of 8-bit products, 16 sums at once (vpdpbusd).
    Avx512Vnni,
    /// Pairs of bfloat16 products, 16 sums at once (vdpbf16ps).
    Avx512Bf16,
}

impl VectorLevel {
    pub const ALL: [VectorLevel; 5] = [
        VectorLevel::Plain,
        VectorLevel::Avx2,
        VectorLevel::Avx512,
        VectorLevel::Avx512Vnni,
        VectorLevel::Avx512Bf16,
    ];

    /// The most that this processor has.
    pub fn detect() -> VectorLevel {
        #[cfg(target_arch = "x86_64")]
        {
            let avx512 = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512dq");
            if avx512 && is_x86_feature_detected!("avx512vnni") {
                let bf16 = is_x86_feature_detected!("avx512bf16");
                return if bf16 { VectorLevel::Avx512Bf16 } else { VectorLevel::Avx512Vnni };
            }
            if avx512 {
                return VectorLevel::Avx512;
            }
            if is_x86_feature_detected!("avx2") {
                return VectorLevel::Avx2;
            }
        }
        VectorLevel::Plain
    }
}
