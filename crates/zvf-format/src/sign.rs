//! Integers whose bits are read with and without a sign.

/// The conversions `cast_unsigned` and `cast_signed` of std, which Rust 1.86 does not have.
pub(crate) trait Sign {
    /// The integer of equal size with a sign.
    type Signed;
    /// The integer of equal size without a sign.
    type Unsigned;

    /// Returns the same bits as an integer with a sign.
    #[cfg(feature = "alloc")]
    fn signed(self) -> Self::Signed;

    /// Returns the same bits as an integer without a sign.
    fn unsigned(self) -> Self::Unsigned;
}

macro_rules! sign {
    ($signed:ident, $unsigned:ident) => {
        sign!($signed, $unsigned, $signed);
        sign!($signed, $unsigned, $unsigned);
    };
    ($signed:ident, $unsigned:ident, $of:ident) => {
        impl Sign for $of {
            type Signed = $signed;
            type Unsigned = $unsigned;

            #[cfg(feature = "alloc")]
            #[inline]
            fn signed(self) -> $signed {
                $signed::from_ne_bytes(self.to_ne_bytes())
            }

            #[inline]
            fn unsigned(self) -> $unsigned {
                $unsigned::from_ne_bytes(self.to_ne_bytes())
            }
        }
    };
}

sign!(i32, u32);
sign!(i64, u64);
