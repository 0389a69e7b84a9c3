//! The value of one tensor element as a term over the region's inputs, kept as a digest. A sum is the sum of its terms'
//! digests and a product of integers their product in a prime field, twice with independent primes and inputs: two
//! polynomials that differ agree there with a chance below 2^-100. Other operators are mixed. Knows no operator's meaning.

use super::field::Field;

/// Marks a known value: its bits are the low 64.
const CONSTANT: u128 = 1 << 127;
/// Marks one byte of an element of several bytes.
const PART: u128 = 1 << 63;

/// A digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Term(u128);

impl Term {
    /// What was never written.
    pub(super) const POISON: Term = Term(u128::MAX);
    /// The sum of nothing.
    pub(super) const ZERO: Term = Term(0);

    /// A known value by its bits, zero-extended.
    pub(super) fn constant(bits: u64) -> Term {
        Term(CONSTANT | u128::from(bits))
    }

    /// The bits of a known value.
    pub(super) fn as_constant(self) -> Option<u64> {
        (self.0 & CONSTANT != 0 && self != Term::POISON).then_some(self.0 as u64)
    }

    /// Neither known nor a part: its digest may be computed with at once.
    pub(super) fn is_plain(self) -> bool {
        self.0 & (CONSTANT | PART) == 0
    }

    pub(super) fn is_part(self) -> bool {
        self.0 & PART != 0 && self.0 & CONSTANT == 0
    }

    /// A place in a table of `size`: digests are spread evenly already.
    pub(super) fn slot(self, size: usize) -> usize {
        self.0 as usize % size
    }

    fn lanes(self) -> [u64; 2] {
        [self.0 as u64, (self.0 >> 64) as u64]
    }

    fn of_lanes([a, b]: [u64; 2]) -> Term {
        Term(u128::from(a) | (u128::from(b) << 64))
    }
}

/// The field, and the functions that stand for operators: one family per seed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Digests {
    keys: [u64; 4],
    field: Field,
}

impl Digests {
    pub(super) fn new(seed: u64) -> Digests {
        let mut state = act_hlo::random::SplitMix64::new(seed);
        Digests { keys: std::array::from_fn(|_| state.next_u64() | 1), field: Field::new(seed) }
    }

    /// A value that stands for `operator` of `operands`, in this order.
    #[inline]
    pub(super) fn mix(&self, operator: u64, operands: &[Term]) -> Term {
        let [k0, k1, k2, k3] = self.keys;
        let mut state = [operator.wrapping_mul(k2) ^ k0, operator.rotate_left(32).wrapping_mul(k3) ^ k1];
        for operand in operands {
            let [low, high] = operand.lanes();
            state = [
                folded(state[0] ^ low ^ k0, state[1] ^ high ^ k1),
                folded(state[0].rotate_left(23) ^ high ^ k2, state[1].rotate_left(41) ^ low ^ k3),
            ];
        }
        let last = [
            folded(state[0] ^ k3, state[1] ^ k2 ^ operands.len() as u64),
            folded(state[1] ^ k1, state[0].rotate_left(31) ^ k0),
        ];
        Term::of_lanes(self.field.of_bits(last))
    }

    /// An integer in the field.
    pub(super) fn integer(&self, value: i128) -> Term {
        Term::of_lanes(self.field.of_integer(value))
    }

    /// Of terms that are plain, as all that follow.
    #[inline]
    pub(super) fn plus(&self, a: Term, b: Term) -> Term {
        Term::of_lanes(self.field.plus(a.lanes(), b.lanes()))
    }

    pub(super) fn minus(&self, a: Term, b: Term) -> Term {
        Term::of_lanes(self.field.minus(a.lanes(), b.lanes()))
    }

    #[inline]
    pub(super) fn times(&self, a: Term, b: Term) -> Term {
        Term::of_lanes(self.field.times(a.lanes(), b.lanes()))
    }

    /// 1 over the term; 0 for 0.
    pub(super) fn inverse(&self, x: Term) -> Term {
        Term::of_lanes(self.field.inverse(x.lanes()))
    }

    /// A sum of products.
    #[inline]
    pub(super) fn inner_product(&self, a: &[Term], b: &[Term]) -> Term {
        let lanes = |x: &Term| x.lanes();
        Term::of_lanes(self.field.inner_product(a.iter().map(lanes).zip(b.iter().map(lanes))))
    }

    /// The same digest as byte `tag` of an element; undone by [`Digests::whole`] with the same tag.
    pub(super) fn part(&self, x: Term, tag: Term) -> Term {
        Term(self.plus(x, tag).0 | PART)
    }

    /// The element whose part this is, if it is one with this tag.
    pub(super) fn whole(&self, part: Term, tag: Term) -> Term {
        self.minus(Term(part.0 & !PART), tag)
    }
}

/// Digests are random already: a hash of them has to spread known values only.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TermHasher(u64);

impl std::hash::Hasher for TermHasher {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(byte.into());
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(5) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 ^= self.0 >> 32;
    }

    fn write_u128(&mut self, value: u128) {
        self.write_u64(value as u64 ^ (value >> 64) as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// By terms.
pub(super) type TermMap<T> = std::collections::HashMap<Term, T, std::hash::BuildHasherDefault<TermHasher>>;

fn folded(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    ((product >> 64) as u64 ^ product as u64).wrapping_add(a ^ b.rotate_left(32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixing_tells_operators_orders_and_numbers_of_operands_apart() {
        let digests = Digests::new(7);
        let [x, y] = [digests.mix(1, &[]), digests.mix(2, &[])];
        let all = [
            digests.mix(3, &[x, y]),
            digests.mix(3, &[y, x]),
            digests.mix(4, &[x, y]),
            digests.mix(3, &[x]),
            x,
            y,
        ];
        for (k, a) in all.iter().enumerate() {
            assert!(all[..k].iter().all(|b| a != b), "{k}");
            assert!(a.is_plain());
        }
    }

    #[test]
    fn parts_and_constants_are_told_apart() {
        let digests = Digests::new(7);
        let (x, tag) = (digests.mix(1, &[]), digests.mix(2, &[]));
        let part = digests.part(x, tag);
        assert!(part.is_part() && !part.is_plain());
        assert_eq!(digests.whole(part, tag), x);
        assert_eq!(Term::constant(u64::MAX).as_constant(), Some(u64::MAX));
        assert!(Term::POISON.as_constant().is_none() && !Term::POISON.is_plain());
    }
}
