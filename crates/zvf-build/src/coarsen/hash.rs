//! Deterministic hashes for sampling, equal in every chunk and level.

/// Hashes a seed and numbers.
pub(super) fn hash(seed: u64, of: impl IntoIterator<Item = u64>) -> u64 {
    let start = mixed(seed ^ 0x9e37_79b9_7f4a_7c15);
    of.into_iter().fold(start, |drawn, number| {
        mixed(drawn.rotate_left(23) ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    })
}

/// Mixes all bits of a number (Stafford's variant 13).
fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
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
