//! Reproducible pseudorandom numbers.

use std::f64::consts::TAU;

use zvf_model::random::SplitMix64;

/// Random numbers of some distributions.
#[derive(Clone, Debug)]
pub(super) struct Random(SplitMix64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Returns a uniform number from 0 (inclusive) to 1 (exclusive).
    pub(super) fn share(&mut self) -> f64 {
        let [.., a, b, c, d] = self.next().to_be_bytes();
        f64::from(u32::from_be_bytes([a, b, c, d])) / (f64::from(u32::MAX) + 1.0)
    }

    pub(super) fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.share()
    }

    /// Returns a normal number of mean 0 and standard deviation 1.
    pub(super) fn normal(&mut self) -> f64 {
        let size = (-2.0 * (1.0 - self.share()).ln()).sqrt();
        size * (TAU * self.share()).cos()
    }

    /// Returns a uniform direction as a unit vector.
    pub(super) fn direction(&mut self) -> [f64; 3] {
        let z = self.between(-1.0, 1.0);
        let (sine, cosine) = (TAU * self.share()).sin_cos();
        let flat = (1.0 - z * z).sqrt();
        [flat * cosine, flat * sine, z]
    }
}

/// Evaluates gradient noise: a smooth function of the position, between -1 and 1, on a grid of
/// size 1.
pub(super) fn noise(at: [f64; 3], seed: u64) -> f64 {
    let cell = at.map(f64::floor);
    let inside = [at[0] - cell[0], at[1] - cell[1], at[2] - cell[2]];
    let ease = inside.map(|part| part * part * part * (part * (part * 6.0 - 15.0) + 10.0));
    let mut sum = 0.0;
    for corner in 0..8_u8 {
        let side = [corner & 1, corner >> 1 & 1, corner >> 2 & 1].map(f64::from);
        let mut weight = 1.0;
        let mut key = seed;
        let mut slope = 0.0;
        for axis in 0..3_usize {
            weight *= if side[axis] > 0.5 {
                ease[axis]
            } else {
                1.0 - ease[axis]
            };
            key = Random::new(key ^ (cell[axis] + side[axis]).to_bits()).next();
        }
        let direction = Random::new(key).direction();
        for axis in 0..3_usize {
            slope += direction[axis] * (inside[axis] - side[axis]);
        }
        sum += weight * slope;
    }
    (sum * 1.6).clamp(-1.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_even_and_bounded() {
        let mut last = noise([0.0, 0.3, 0.7], 1);
        for step in 1..=2000_u32 {
            let next = noise([f64::from(step) * 0.01, 0.3, 0.7], 1);
            assert!((next - last).abs() < 0.1 && next.abs() <= 1.0);
            last = next;
        }
    }

    #[test]
    fn equal_seeds_give_equal_numbers() {
        let mut numbers = Random::new(7);
        let first: Vec<f64> = (0..3).map(|_| numbers.share()).collect();
        let mut numbers = Random::new(7);
        let again: Vec<f64> = (0..3).map(|_| numbers.share()).collect();
        assert_eq!(first, again);
        assert!(first.iter().all(|share| (0.0..1.0).contains(share)));
    }
}
