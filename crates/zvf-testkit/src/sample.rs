//! Size of random tests: a sample for each change, long runs every night.

use std::env;

/// Multiplies the number of cases of random tests.
///
/// `cargo xtask nightly` sets it.
pub const SCALE: &str = "ZVF_TEST_SCALE";

/// Returns the number of cases of a random test whose sample has `sample` cases.
///
/// # Panics
///
/// Panics if [`SCALE`] is not a positive number.
pub fn cases<N: TryFrom<u64> + Into<u64>>(sample: N) -> N {
    let scale = env::var(SCALE).map_or(1, |text| scale_of(&text));
    N::try_from(sample.into().saturating_mul(scale))
        .unwrap_or_else(|_| panic!("{SCALE}={scale} gives more cases than can be counted"))
}

/// Reads the value of [`SCALE`].
///
/// # Panics
///
/// Panics if it is not a positive number.
pub fn scale_of(text: &str) -> u64 {
    let scale = text.parse().ok().filter(|scale| *scale > 0);
    scale.unwrap_or_else(|| panic!("{SCALE} is {text:?}, which is not a positive number"))
}
