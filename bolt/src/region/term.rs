//! The value of one tensor element as a term over the region's inputs, kept as a digest. A sum is the sum of its terms'
//! digests and a product of integers their product in GF(2^61 - 1), twice with independent inputs: two polynomials that
//! differ agree there with a chance below 2^-100. Other operators are mixed. Knows no operator's meaning.

/// 2^61 - 1, a prime.
const MODULUS: u64 = (1 << 61) - 1;
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

    /// The same digest as byte `tag` of an element; undone by [`Term::whole`] with the same tag.
    pub(super) fn part(self, tag: Term) -> Term {
        Term(self.plus(tag).0 | PART)
    }

    /// The element whose part this is, if it is one with this tag.
    pub(super) fn whole(self, tag: Term) -> Term {
        Term(self.0 & !PART).minus(tag)
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

    /// An integer in the field.
    pub(super) fn of_integer(value: i128) -> Term {
        let lane = value.rem_euclid(i128::from(MODULUS)) as u64;
        Term::of_lanes([lane, lane])
    }

    #[must_use]
    pub(super) fn plus(self, other: Term) -> Term {
        let ([a, b], [c, d]) = (self.lanes(), other.lanes());
        Term::of_lanes([reduce(a + c), reduce(b + d)])
    }

    #[must_use]
    pub(super) fn minus(self, other: Term) -> Term {
        let ([a, b], [c, d]) = (self.lanes(), other.lanes());
        Term::of_lanes([reduce(a + MODULUS - c), reduce(b + MODULUS - d)])
    }

    #[must_use]
    pub(super) fn times(self, other: Term) -> Term {
        let ([a, b], [c, d]) = (self.lanes(), other.lanes());
        let lane = |x: u64, y: u64| reduce_wide(u128::from(x) * u128::from(y));
        Term::of_lanes([lane(a, c), lane(b, d)])
    }

    /// 1 over the term; 0 for 0.
    #[must_use]
    pub(super) fn inverse(self) -> Term {
        // Fermat: x^(p - 2).
        let (mut power, mut result, mut exponent) = (self, Term::of_integer(1), MODULUS - 2);
        while exponent > 0 {
            if exponent & 1 == 1 {
                result = result.times(power);
            }
            power = power.times(power);
            exponent >>= 1;
        }
        result
    }
}

/// Sums of products of plain terms, reduced seldom.
pub(super) fn inner_product(pairs: impl Iterator<Item = (Term, Term)>) -> Term {
    // A product is below 2^122: 32 of them and a rest fit 128 bits.
    const RUN: u32 = 32;
    let (mut sums, mut count) = ([0u128; 2], 0);
    for (a, b) in pairs {
        let ([a, b], [c, d]) = (a.lanes(), b.lanes());
        sums[0] += u128::from(a) * u128::from(c);
        sums[1] += u128::from(b) * u128::from(d);
        count += 1;
        if count == RUN {
            sums = sums.map(|sum| u128::from(reduce_wide(sum)));
            count = 0;
        }
    }
    Term::of_lanes(sums.map(reduce_wide))
}

/// Below 2^62 to below the modulus.
fn reduce(x: u64) -> u64 {
    if x >= MODULUS { x - MODULUS } else { x }
}

fn reduce_wide(x: u128) -> u64 {
    let once = (x & u128::from(MODULUS)) + (x >> 61);
    let twice = (once as u64 & MODULUS) + (once >> 61) as u64;
    reduce(reduce(twice))
}

/// The functions that stand for operators: one family per seed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mixer {
    keys: [u64; 4],
}

impl Mixer {
    pub(super) fn new(seed: u64) -> Mixer {
        let mut state = act_hlo::random::SplitMix64::new(seed);
        Mixer { keys: std::array::from_fn(|_| state.next_u64() | 1) }
    }

    /// A value that stands for `operator` of `operands`, in this order.
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
        Term::of_lanes(last.map(|lane| reduce(lane & MODULUS)))
    }
}

fn folded(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    ((product >> 64) as u64 ^ product as u64).wrapping_add(a ^ b.rotate_left(32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_field_is_a_field() {
        let mixer = Mixer::new(7);
        let [x, y, z] = [1, 2, 3].map(|k| mixer.mix(k, &[]));
        assert_eq!(x.plus(y).times(z), z.times(x).plus(y.times(z)));
        assert_eq!(x.minus(y).plus(y), x);
        assert_eq!(x.times(x.inverse()), Term::of_integer(1));
        assert_eq!(Term::of_integer(-3).plus(Term::of_integer(3)), Term::ZERO);
        let many: Vec<Term> = (0..100).map(|k| mixer.mix(9, &[Term::of_integer(k)])).collect();
        let one_by_one = many.iter().fold(Term::ZERO, |sum, &v| sum.plus(v.times(v)));
        assert_eq!(inner_product(many.iter().map(|&v| (v, v))), one_by_one);
        let largest = Term::of_lanes([MODULUS - 1; 2]);
        let square = inner_product(std::iter::repeat_n((largest, largest), 100));
        assert_eq!(square, Term::of_integer(100));
    }

    #[test]
    fn mixing_tells_operators_orders_and_numbers_of_operands_apart() {
        let mixer = Mixer::new(7);
        let [x, y] = [mixer.mix(1, &[]), mixer.mix(2, &[])];
        let all =
            [mixer.mix(3, &[x, y]), mixer.mix(3, &[y, x]), mixer.mix(4, &[x, y]), mixer.mix(3, &[x]), x, y];
        for (k, a) in all.iter().enumerate() {
            assert!(all[..k].iter().all(|b| a != b), "{k}");
            assert!(a.is_plain());
        }
    }

    #[test]
    fn parts_and_constants_are_told_apart() {
        let mixer = Mixer::new(7);
        let (x, tag) = (mixer.mix(1, &[]), mixer.mix(2, &[]));
        assert!(x.part(tag).is_part() && !x.part(tag).is_plain());
        assert_eq!(x.part(tag).whole(tag), x);
        assert_eq!(Term::constant(u64::MAX).as_constant(), Some(u64::MAX));
        assert!(Term::POISON.as_constant().is_none() && !Term::POISON.is_plain());
    }
}
