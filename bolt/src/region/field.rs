//! The two prime fields that digests are computed in. Their moduli are drawn anew for every check, so that no coefficient
//! that a program can come by, such as a power of two, counts as another. Knows no terms.

use act_hlo::random::SplitMix64;

/// Numbers of one residue each, in Montgomery form: x stands for x · 2^-64.
pub(super) type Residues = [u64; 2];

/// A prime between 2^60 and 2^61.
#[derive(Clone, Copy, Debug)]
struct Modulus {
    prime: u64,
    /// -1 / prime modulo 2^64.
    inverse: u64,
    /// 2^128 modulo the prime.
    square: u64,
}

/// Two fields with independent moduli.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field {
    moduli: [Modulus; 2],
}

impl Modulus {
    fn draw(random: &mut SplitMix64) -> Modulus {
        let prime = loop {
            let candidate = (1 << 60) | (random.next_u64() >> 4) | 1;
            if is_prime(candidate) {
                break candidate;
            }
        };
        // Newton: every step doubles the number of right bits.
        let inverse = (0..6)
            .fold(prime, |x, _| x.wrapping_mul(2u64.wrapping_sub(prime.wrapping_mul(x))))
            .wrapping_neg();
        let power = ((1u128 << 64) % u128::from(prime)) as u64;
        Modulus { prime, inverse, square: times_modulo(power, power, prime) }
    }

    /// Below twice the prime to below it.
    fn once(self, x: u64) -> u64 {
        if x >= self.prime { x - self.prime } else { x }
    }

    /// `sum` · 2^-64, for sums below 2^64 primes.
    fn reduce(self, sum: u128) -> u64 {
        let factor = (sum as u64).wrapping_mul(self.inverse);
        self.once(((sum + u128::from(factor) * u128::from(self.prime)) >> 64) as u64)
    }

    fn times(self, a: u64, b: u64) -> u64 {
        self.reduce(u128::from(a) * u128::from(b))
    }

    fn integer(self, value: i128) -> u64 {
        self.times(value.rem_euclid(i128::from(self.prime)) as u64, self.square)
    }

    /// Fermat: x^(p - 2).
    fn invert(self, x: u64) -> u64 {
        let (mut power, mut result, mut exponent) = (x, self.integer(1), self.prime - 2);
        while exponent > 0 {
            if exponent & 1 == 1 {
                result = self.times(result, power);
            }
            power = self.times(power, power);
            exponent >>= 1;
        }
        result
    }
}

impl Field {
    pub(super) fn new(seed: u64) -> Field {
        let mut random = SplitMix64::new(seed ^ 0x6d6f_6475_6c69);
        Field { moduli: std::array::from_fn(|_| Modulus::draw(&mut random)) }
    }

    fn each(&self, f: impl Fn(Modulus, usize) -> u64) -> Residues {
        [f(self.moduli[0], 0), f(self.moduli[1], 1)]
    }

    /// Any 128 bits as residues.
    pub(super) fn of_bits(&self, bits: Residues) -> Residues {
        self.each(|modulus, k| modulus.once(bits[k] >> 3))
    }

    pub(super) fn of_integer(&self, value: i128) -> Residues {
        self.each(|modulus, _| modulus.integer(value))
    }

    #[inline]
    pub(super) fn plus(&self, a: Residues, b: Residues) -> Residues {
        self.each(|modulus, k| modulus.once(a[k] + b[k]))
    }

    #[inline]
    pub(super) fn minus(&self, a: Residues, b: Residues) -> Residues {
        self.each(|modulus, k| modulus.once(a[k] + modulus.prime - b[k]))
    }

    #[inline]
    pub(super) fn times(&self, a: Residues, b: Residues) -> Residues {
        self.each(|modulus, k| modulus.times(a[k], b[k]))
    }

    /// 1 over a number; 0 for 0.
    pub(super) fn inverse(&self, x: Residues) -> Residues {
        self.each(|modulus, k| modulus.invert(x[k]))
    }

    /// A sum of products, reduced seldom.
    #[inline]
    pub(super) fn inner_product(&self, pairs: impl Iterator<Item = (Residues, Residues)>) -> Residues {
        // A product is below 2^122, so that 63 of them fit 128 bits.
        const RUN: u32 = 32;
        let (mut sums, mut total, mut count) = ([0u128; 2], [0; 2], 0);
        for (a, b) in pairs {
            sums[0] += u128::from(a[0]) * u128::from(b[0]);
            sums[1] += u128::from(a[1]) * u128::from(b[1]);
            count += 1;
            if count == RUN {
                total = self.plus(total, self.finish(sums));
                (sums, count) = ([0; 2], 0);
            }
        }
        self.plus(total, self.finish(sums))
    }

    fn finish(&self, sums: [u128; 2]) -> Residues {
        self.each(|modulus, k| {
            let high = (sums[k] >> 64) as u64 % modulus.prime;
            modulus.reduce((u128::from(high) << 64) | u128::from(sums[k] as u64))
        })
    }
}

fn times_modulo(a: u64, b: u64, modulus: u64) -> u64 {
    (u128::from(a) * u128::from(b) % u128::from(modulus)) as u64
}

/// Miller and Rabin's test with the bases that decide all numbers of 64 bits.
fn is_prime(n: u64) -> bool {
    const BASES: [u64; 12] = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37];
    if n < 2 || BASES.iter().any(|&p| n != p && n.is_multiple_of(p)) {
        return false;
    }
    let twos = (n - 1).trailing_zeros();
    BASES.iter().all(|&base| {
        let (mut x, mut power, mut exponent) = (1, base % n, (n - 1) >> twos);
        while exponent > 0 {
            if exponent & 1 == 1 {
                x = times_modulo(x, power, n);
            }
            power = times_modulo(power, power, n);
            exponent >>= 1;
        }
        let mut squares = std::iter::successors(Some(x), |&x| Some(times_modulo(x, x, n)));
        n == base || x <= 1 || squares.by_ref().take(twos as usize).any(|x| x == n - 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn primes_are_told_from_other_numbers() {
        let sieve = |n: u64| n > 1 && (2..).take_while(|d| d * d <= n).all(|d| !n.is_multiple_of(d));
        assert!((0..3000).all(|n| is_prime(n) == sieve(n)));
        assert!(is_prime((1 << 61) - 1) && !is_prime((1 << 61) - 3));
        // The smallest number that deceives the first nine bases.
        assert!(!is_prime(3_825_123_056_546_413_051));
    }

    #[test]
    fn a_field_computes_as_its_integers_do() {
        for seed in 0..20 {
            let field = Field::new(seed);
            let number = |value: i128| field.of_integer(value);
            assert_ne!(field.moduli[0].prime, field.moduli[1].prime);
            assert_eq!(field.plus(number(-3), number(3)), [0; 2]);
            assert_eq!(field.times(number(1 << 40), number(-(1 << 50))), number(-(1 << 90)));
            assert_eq!(field.minus(number(5), number(7)), number(-2));
            assert_eq!(field.times(number(12), field.inverse(number(12))), number(1));
            assert_eq!(field.inverse([0; 2]), [0; 2]);
            // No power of two is 1: a value that is doubled 61 times is not the value.
            assert!((1..126).all(|power| number(1 << power) != number(1)));
            let largest = number(-1);
            let squares = field.inner_product(std::iter::repeat_n((largest, largest), 1000));
            assert_eq!(squares, number(1000));
        }
    }
}
