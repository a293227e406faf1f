//! The hash that distributes keys over shards.

const C1: u32 = 0x239b_961b;
const C2: u32 = 0xab0e_9789;
const C3: u32 = 0x38b3_4ae5;

/// Returns the low 64 bits of `MurmurHash3` x86 128 of the eight little-endian bytes of a key, with
/// seed 0.
///
/// ```
/// use zvf_precomputed::murmurhash3_x86_128_low;
///
/// assert_eq!(murmurhash3_x86_128_low(1), 0xe8bd_67d6_16d4_ce9a);
/// ```
#[expect(
    clippy::cast_possible_truncation,
    reason = "the hash mixes the halves of the key"
)]
pub fn murmurhash3_x86_128_low(key: u64) -> u64 {
    // A key is shorter than a block of 16 bytes, so that only the tail of the algorithm runs.
    let mut h1 = (key as u32)
        .wrapping_mul(C1)
        .rotate_left(15)
        .wrapping_mul(C2);
    let mut h2 = ((key >> 32) as u32)
        .wrapping_mul(C2)
        .rotate_left(16)
        .wrapping_mul(C3);
    h1 ^= 8;
    h2 ^= 8;
    let (mut h3, mut h4) = (8_u32, 8_u32);
    h1 = h1.wrapping_add(h2).wrapping_add(h3).wrapping_add(h4);
    h2 = h2.wrapping_add(h1);
    h3 = h3.wrapping_add(h1);
    h4 = h4.wrapping_add(h1);
    h1 = mix(h1);
    h2 = mix(h2);
    h3 = mix(h3);
    h4 = mix(h4);
    h1 = h1.wrapping_add(h2).wrapping_add(h3).wrapping_add(h4);
    h2 = h2.wrapping_add(h1);
    u64::from(h1) | u64::from(h2) << 32
}

fn mix(mut h: u32) -> u32 {
    h ^= h >> 16;
    h = h.wrapping_mul(0x85eb_ca6b);
    h ^= h >> 13;
    h = h.wrapping_mul(0xc2b2_ae35);
    h ^ h >> 16
}
