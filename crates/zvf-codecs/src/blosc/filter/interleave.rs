//! Interleaving of byte vectors: the first result holds both low halves, the second both high
//! halves.
//!
//! Compilers do not emit these instructions by themselves, at least not on x86.

/// Number of bytes in a vector.
pub(super) const LANES: usize = 16;

/// A vector of bytes.
pub(super) type Lanes = [u8; LANES];

#[cfg(target_arch = "x86_64")]
mod vectors {
    use safe_arch::{
        m128i, unpack_high_i8_m128i, unpack_high_i16_m128i, unpack_high_i32_m128i,
        unpack_low_i8_m128i, unpack_low_i16_m128i, unpack_low_i32_m128i,
    };

    use super::Lanes;

    /// Interleaves single bytes.
    #[inline]
    pub(in super::super) fn bytes(a: Lanes, b: Lanes) -> [Lanes; 2] {
        let (a, b) = (m128i::from(a), m128i::from(b));
        [
            unpack_low_i8_m128i(a, b).into(),
            unpack_high_i8_m128i(a, b).into(),
        ]
    }

    /// Interleaves groups of two bytes.
    #[inline]
    pub(in super::super) fn pairs(a: Lanes, b: Lanes) -> [Lanes; 2] {
        let (a, b) = (m128i::from(a), m128i::from(b));
        [
            unpack_low_i16_m128i(a, b).into(),
            unpack_high_i16_m128i(a, b).into(),
        ]
    }

    /// Interleaves groups of four bytes.
    #[inline]
    pub(in super::super) fn fours(a: Lanes, b: Lanes) -> [Lanes; 2] {
        let (a, b) = (m128i::from(a), m128i::from(b));
        [
            unpack_low_i32_m128i(a, b).into(),
            unpack_high_i32_m128i(a, b).into(),
        ]
    }
}

#[cfg_attr(target_arch = "x86_64", cfg(test))]
mod portable {
    use zerocopy::transmute;

    use super::Lanes;

    /// Interleaves single bytes.
    pub(in super::super) fn bytes(a: Lanes, b: Lanes) -> [Lanes; 2] {
        transmute!(interleaved(a, b))
    }

    /// Interleaves groups of two bytes.
    pub(in super::super) fn pairs(a: Lanes, b: Lanes) -> [Lanes; 2] {
        let (a, b): ([[u8; 2]; 8], [[u8; 2]; 8]) = (transmute!(a), transmute!(b));
        transmute!(interleaved(a, b))
    }

    /// Interleaves groups of four bytes.
    pub(in super::super) fn fours(a: Lanes, b: Lanes) -> [Lanes; 2] {
        let (a, b): ([[u8; 4]; 4], [[u8; 4]; 4]) = (transmute!(a), transmute!(b));
        transmute!(interleaved(a, b))
    }

    fn interleaved<T: Copy, const N: usize>(a: [T; N], b: [T; N]) -> [[T; 2]; N] {
        let mut b = b.into_iter();
        a.map(|a| [a, b.next().unwrap_or(a)])
    }
}

#[cfg(not(target_arch = "x86_64"))]
pub(super) use portable::{bytes, fours, pairs};
#[cfg(target_arch = "x86_64")]
pub(super) use vectors::{bytes, fours, pairs};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vector_and_portable_code_agree() {
        let a = core::array::from_fn(|i| i.to_le_bytes()[0]);
        let b = a.map(|byte| byte + 100);
        assert_eq!(bytes(a, b), portable::bytes(a, b));
        assert_eq!(pairs(a, b), portable::pairs(a, b));
        assert_eq!(fours(a, b), portable::fours(a, b));
        assert_eq!(portable::bytes(a, b)[0][..4], [0, 100, 1, 101]);
        assert_eq!(portable::fours(a, b)[1][..6], [8, 9, 10, 11, 108, 109]);
    }
}
