//! Bits to try instructions on: whatever a lane is read as (f32, s32, s16, s8), its edges turn up often.

use act_hlo::random::SplitMix64;

/// f32: zeros, denormals, the smallest and largest normal numbers, infinities, quiet and signalling NaNs with payloads,
/// ties of rounding to integers, the ends of s32 and their neighbours.
const FLOATS: [u32; 40] = [
    0x0000_0000,
    0x8000_0000,
    0x0000_0001,
    0x8000_0001,
    0x007f_ffff,
    0x807f_ffff,
    0x0080_0000,
    0x8080_0000,
    0x0080_0001,
    0x7f7f_ffff,
    0xff7f_ffff,
    0x7f80_0000,
    0xff80_0000,
    0x7fc0_0000,
    0xffc0_0000,
    0x7fc1_2345,
    0x7f80_0001,
    0xffa5_a5a5,
    0x3f80_0000,
    0xbf80_0000,
    0x3f00_0000,
    0xbf00_0000,
    0x3fc0_0000,
    0xbfc0_0000,
    0x4020_0000,
    0xc020_0000,
    0x3eff_ffff,
    0x3f7f_ffff,
    0x4aff_ffff,
    0x4b00_0001,
    0x4eff_ffff,
    0x4f00_0000,
    0xcf00_0000,
    0xcf00_0001,
    0x4f80_0000,
    0x4effffff,
    0x1f7f_ffff,
    0x2000_0000,
    0x3f80_0001,
    0x5f80_0000,
];

/// s32 and pairs of s16: ends, neighbours of zero, shift counts about the width.
const WORDS: [u32; 14] = [
    0xffff_ffff,
    0x7fff_ffff,
    0x8000_0000,
    0x8000_8000,
    0x7fff_7fff,
    0x0000_8000,
    0x0000_7fff,
    0xffff_8000,
    31,
    32,
    33,
    0x0001_0000,
    0x0000_ffff,
    0x8001_7fff,
];

const BYTES: [u8; 8] = [0x00, 0x01, 0x7f, 0x80, 0x81, 0xff, 0xfe, 0x40];

/// The bits of one 32-bit lane.
fn word(rng: &mut SplitMix64) -> u32 {
    let any = rng.next_u64() as u32;
    match rng.below(8) {
        0 | 1 => FLOATS[rng.below(FLOATS.len() as u64) as usize],
        2 => WORDS[rng.below(WORDS.len() as u64) as usize],
        3 => u32::from_le_bytes(std::array::from_fn(|_| BYTES[rng.below(BYTES.len() as u64) as usize])),
        // Small multiples of a quarter: sums and roundings that are ties or exact.
        4 => ((rng.below(257) as f32 - 128.0) / 4.0).to_bits(),
        // Magnitudes near one another, so that sums cancel and products stay in range.
        5 => (any & 0x80ff_ffff) | 0x3f00_0000,
        // Near the denormals.
        6 => (any & 0x81ff_ffff) | ((rng.below(2) as u32) << 29),
        _ => any,
    }
}

/// Memory or register contents of `len` bytes.
pub(crate) fn bytes(rng: &mut SplitMix64, len: usize) -> Vec<u8> {
    let mut out: Vec<u8> = Vec::with_capacity(len + 4);
    while out.len() < len {
        out.extend(word(rng).to_le_bytes());
    }
    out.truncate(len);
    out
}

/// Makes lanes of `a` and `b` alike now and then: equal, of opposite sign, or the next number.
pub(crate) fn relate(rng: &mut SplitMix64, a: &[u8], b: &mut [u8]) {
    for (from, to) in a.chunks_exact(4).zip(b.chunks_exact_mut(4)) {
        let word = u32::from_le_bytes([from[0], from[1], from[2], from[3]]);
        let related = match rng.below(8) {
            0 => word,
            1 => word ^ 0x8000_0000,
            2 => word.wrapping_add(1),
            _ => continue,
        };
        to.copy_from_slice(&related.to_le_bytes());
    }
}

/// Pairs of bf16 of like magnitude, so that sums of many products stay finite, cancel, underflow or overflow, each on some
/// trials; read as f32 they have those magnitudes too.
pub(crate) fn bf16_pairs(rng: &mut SplitMix64, len: usize, trial: u64) -> Vec<u8> {
    // Ranges of the biased exponent: about 1, about the root of the smallest normal number and of the largest, and the
    // smallest normal numbers themselves.
    let (low, span) = [(124, 4), (96, 60), (62, 4), (188, 5), (0, 3)][(trial % 5) as usize];
    let half = |rng: &mut SplitMix64| {
        let bits = rng.next_u64() as u16;
        let exponent = (low + rng.below(span)) as u16;
        if rng.below(16) == 0 { bits & 0x8000 } else { (bits & 0x807f) | exponent << 7 }
    };
    (0..len / 2).flat_map(|_| half(rng).to_le_bytes()).collect()
}
