//! Pseudo-random numbers and hashes that are equal on every machine.

/// `SplitMix64` of Steele, Lea and Flood: equal seeds give equal numbers on every machine.
///
/// ```
/// use zvf_model::random::SplitMix64;
///
/// let mut numbers = SplitMix64::new(7);
/// let first = numbers.next_u64();
/// assert_ne!(first, numbers.next_u64());
/// assert_eq!(first, SplitMix64::new(7).next_u64());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitMix64(u64);

/// The golden ratio as a fraction of 64 bits: the step of the generator.
pub const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl SplitMix64 {
    /// Creates the generator of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }
}

/// Mixes all bits of a number (Stafford's variant 13).
pub fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// Hashes a seed and numbers. Levels and queries order objects by it, so that samples are nested.
pub fn hash(seed: u64, of: impl IntoIterator<Item = u64>) -> u64 {
    let start = mix(seed ^ STEP);
    of.into_iter().fold(start, |drawn, number| {
        mix(drawn.rotate_left(23) ^ number.wrapping_mul(STEP))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_and_order_matter() {
        assert_ne!(hash(0, [1]), hash(1, [1]));
        assert_ne!(hash(0, [1, 2]), hash(0, [2, 1]));
        assert_ne!(hash(0, [0]), hash(0, [0, 0]));
        // A pinned value: levels of a store must not change with a release.
        assert_eq!(hash(7, [1, 2, 3]), 0x7043_576e_9afd_2b71);
    }

    #[test]
    fn numbers_are_those_of_the_reference_implementation() {
        let mut numbers = SplitMix64::new(1_234_567);
        let first = [(); 3].map(|()| numbers.next_u64());
        assert_eq!(
            first,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
    }
}
