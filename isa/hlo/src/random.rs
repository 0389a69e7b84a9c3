//! Seeded random tensors for tests and the command line: the same seed gives the same bytes everywhere.

use crate::{ElemType, Literal, Shape};

/// The SplitMix64 generator (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014).
#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    pub fn new(seed: u64) -> SplitMix64 {
        SplitMix64(seed)
    }

    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, which is at least 1; near enough to uniform for tests.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Uniform in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// What the elements of a random tensor are drawn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// Integers from -8 to 7 (0 to 15 when unsigned): exact in every type, and so are their short sums.
    Small,
    /// Floats in [-1, 1), integers as [`Values::Small`].
    Unit,
    /// Integers of all sizes; floats of any sign, exponent and mantissa, but finite and not denormal.
    Full,
    /// Half of the elements from the edges of the type (NaN, infinities, zeros of both signs, denormals, the
    /// largest and smallest numbers), the others as [`Values::Small`].
    Special,
}

/// A tensor of `shape` with elements drawn from `values`. Complex numbers have both parts drawn alike.
pub fn random_literal(rng: &mut SplitMix64, shape: &Shape, values: Values) -> Literal {
    let (part, parts) = match shape.elem {
        ElemType::C64 => (ElemType::F32, 2),
        ElemType::C128 => (ElemType::F64, 2),
        real => (real, 1),
    };
    let width = part.bytes() as usize;
    let mut bytes = Vec::with_capacity(shape.bytes() as usize);
    for _ in 0..shape.elements() * parts {
        bytes.extend_from_slice(&element_bits(rng, part, values).to_le_bytes()[..width]);
    }
    Literal::from_bytes(shape.clone(), bytes).expect("one value per element was drawn")
}

/// The bits of one element in the low bytes.
fn element_bits(rng: &mut SplitMix64, elem: ElemType, values: Values) -> u64 {
    if elem == ElemType::Pred {
        return rng.below(2);
    }
    match values {
        Values::Special if rng.below(2) == 0 => {
            let edges = if elem.is_float() { float_edges(elem) } else { int_edges(elem) };
            edges[rng.below(edges.len() as u64) as usize]
        }
        Values::Full if elem.is_float() => {
            let (exponent_bits, mantissa_bits) = float_format(elem);
            let exponent = 1 + rng.below((1 << exponent_bits) - 2);
            let mantissa = rng.below(1 << mantissa_bits);
            (rng.below(2) << (exponent_bits + mantissa_bits)) | (exponent << mantissa_bits) | mantissa
        }
        Values::Full => extended(rng.next_u64(), elem),
        Values::Unit if elem.is_float() => float_bits(rng.unit() * 2.0 - 1.0, elem),
        Values::Small | Values::Unit | Values::Special => {
            let small = rng.below(16);
            if elem.is_float() {
                float_bits(small as f64 - 8.0, elem)
            } else if elem.is_signed_int() {
                small.wrapping_sub(8)
            } else {
                small
            }
        }
    }
}

/// The low bits of an integer type, extended as the type is.
fn extended(bits: u64, elem: ElemType) -> u64 {
    let spare = 64 - elem.bits();
    if elem.is_signed_int() { ((bits << spare) as i64 >> spare) as u64 } else { bits << spare >> spare }
}

fn int_edges(elem: ElemType) -> Vec<u64> {
    let top = 1u64 << (elem.bits() - 1);
    [0, 1, top - 1, top, u64::MAX, u64::MAX - 1].map(|bits| extended(bits, elem)).to_vec()
}

fn float_format(elem: ElemType) -> (u32, u32) {
    match elem {
        ElemType::F16 => (5, 10),
        ElemType::BF16 => (8, 7),
        ElemType::F32 => (8, 23),
        _ => (11, 52),
    }
}

fn float_bits(value: f64, elem: ElemType) -> u64 {
    match elem {
        ElemType::F16 => half::f16::from_f64(value).to_bits().into(),
        ElemType::BF16 => half::bf16::from_f64(value).to_bits().into(),
        ElemType::F32 => (value as f32).to_bits().into(),
        _ => value.to_bits(),
    }
}

/// Both signs of: zero, the smallest and largest denormal, the smallest and largest normal, infinity, NaN.
fn float_edges(elem: ElemType) -> Vec<u64> {
    let (exponent_bits, mantissa_bits) = float_format(elem);
    let mantissa = (1u64 << mantissa_bits) - 1;
    let infinity = ((1u64 << exponent_bits) - 1) << mantissa_bits;
    let quiet = infinity | (1 << (mantissa_bits - 1));
    let positive = [0, 1, mantissa, mantissa + 1, infinity - 1, infinity, quiet];
    let sign = 1u64 << (exponent_bits + mantissa_bits);
    positive.iter().flat_map(|&bits| [bits, bits | sign]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_the_published_sequence() {
        // From the reference implementation with seed 1234567.
        let mut rng = SplitMix64::new(1_234_567);
        let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!(expected.map(|_| rng.next_u64()), expected);
    }

    #[test]
    fn elements_lie_where_they_should() {
        let mut rng = SplitMix64::new(1);
        let mut draw = |elem, values| random_literal(&mut rng, &Shape::new(elem, [500]), values);
        assert!(draw(ElemType::S4, Values::Full).bytes().iter().all(|&b| (-8..8).contains(&(b as i8))));
        assert!(draw(ElemType::Pred, Values::Special).bytes().iter().all(|&b| b < 2));
        let floats = |literal: &Literal| -> Vec<f32> {
            literal.bytes().chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
        };
        assert!(floats(&draw(ElemType::F32, Values::Full)).iter().all(|x| x.is_normal()));
        assert!(floats(&draw(ElemType::F32, Values::Unit)).iter().all(|x| (-1.0..1.0).contains(x)));
        let special = floats(&draw(ElemType::F32, Values::Special));
        assert!(special.iter().any(|x| x.is_nan()) && special.iter().any(|x| x.is_subnormal()));
        assert!(special.iter().any(|x| x.is_infinite()) && special.iter().any(|x| x.to_bits() == 1 << 31));
    }
}
