//! Deterministic hashes for sampling, equal in every chunk and level.

use zvf_model::random::{STEP, mix};

/// Hashes a seed and numbers.
pub(super) fn hash(seed: u64, of: impl IntoIterator<Item = u64>) -> u64 {
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
}
