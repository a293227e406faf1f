//! Systematic damage to valid bytes.

/// Calls `check` with every proper prefix of `bytes`.
pub fn prefixes(bytes: &[u8], mut check: impl FnMut(&[u8])) {
    for end in 0..bytes.len() {
        check(&bytes[..end]);
    }
}

/// Calls `check` with `bytes` starting at each of the eight alignments.
pub fn alignments(bytes: &[u8], mut check: impl FnMut(&[u8])) {
    // Eight successive starts cover all alignments, whatever that of the allocation.
    for shift in 0..8 {
        let mut moved = vec![0xa5; shift];
        moved.extend_from_slice(bytes);
        check(&moved[shift..]);
    }
}

/// Calls `check` with `bytes` after each of a set of edits to each byte: every
/// bit flipped, the byte zeroed, filled, made the sign bit alone.
pub fn damage(bytes: &[u8], mut check: impl FnMut(&[u8])) {
    let mut damaged = bytes.to_vec();
    for (at, &good) in bytes.iter().enumerate() {
        let flips = (0..8).map(|bit| good ^ (1 << bit));
        for bad in flips.chain([0x00, 0xff, 0x80, 0x7f]) {
            damaged[at] = bad;
            check(&damaged);
        }
        damaged[at] = good;
    }
}
