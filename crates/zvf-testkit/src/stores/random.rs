//! Random numbers from a seed.

use zvf_model::random::SplitMix64;

/// Random numbers that are the same on every machine.
#[derive(Clone, Debug)]
pub struct Random(SplitMix64);

impl Random {
    /// Creates a generator from a seed.
    pub fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    /// Returns a random number.
    pub fn any(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Returns a number below `end`; 0 if `end` is 0.
    pub fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).unwrap_or(u64::MAX);
        let number = self.any().checked_rem(end).unwrap_or(0);
        usize::try_from(number).unwrap_or(0)
    }

    /// Returns a number from `least` to `most`, both included.
    pub fn between(&mut self, min: i64, max: i64) -> i64 {
        let span = max.abs_diff(min).wrapping_add(1);
        let step = self.any().checked_rem(span).unwrap_or(0);
        min.wrapping_add_unsigned(step)
    }

    /// Returns `true` with a probability of `percent`.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// Returns one of `items`.
    ///
    /// # Panics
    ///
    /// Panics if `items` is empty.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    /// Returns a number from 0 up to, but not including, 1, in steps of 2⁻³².
    pub fn unit(&mut self) -> f64 {
        let bits = u32::try_from(self.any() >> 32).unwrap_or(0);
        f64::from(bits) / 4_294_967_296.0
    }

    /// Shuffles the items.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            let other = self.below(at + 1);
            items.swap(at, other);
        }
    }
}
