//! Number types that can be reduced.

use half::f16;

/// A real number in little-endian bytes.
pub(super) trait Number: Copy + PartialOrd + Send + Sync {
    const SIZE: usize;
    const IS_FLOAT: bool;

    /// Iterates over the values in `bytes`; an incomplete value at the end is ignored.
    fn all(bytes: &[u8]) -> impl Iterator<Item = Self>;

    /// Converts to a float; integers beyond 2^53 are rounded.
    fn float(self) -> f64;

    /// Converts an integer exactly.
    fn int(self) -> i128;

    /// Returns a key with the order of the values. Zeros of either sign have one key; NaN is not
    /// supported.
    fn key(self) -> u64;

    /// Converts a key back to the exact value.
    fn of_key(key: u64) -> super::Scalar;
}

const TOP: u64 = 1 << 63;

/// Maps floats to ordered integers; negative floats are reversed.
fn float_key(value: f64) -> u64 {
    // Maps -0 to 0.
    let bits = (value + 0.0).to_bits();
    if bits & TOP == 0 { bits | TOP } else { !bits }
}

fn float_of_key(key: u64) -> super::Scalar {
    let bits = if key & TOP == 0 { !key } else { key & !TOP };
    super::Scalar::Float(f64::from_bits(bits))
}

macro_rules! integers {
    ($($t:ty),*) => {$(
        impl Number for $t {
            const SIZE: usize = size_of::<Self>();
            const IS_FLOAT: bool = false;

            fn all(bytes: &[u8]) -> impl Iterator<Item = Self> {
                let (values, _) = bytes.as_chunks::<{ size_of::<Self>() }>();
                values.iter().map(|value| Self::from_le_bytes(*value))
            }

            #[expect(clippy::as_conversions, clippy::allow_attributes, reason = "rounding is documented")]
            #[allow(clippy::cast_precision_loss, clippy::cast_lossless, reason = "fires for some types of the macro only")]
            fn float(self) -> f64 {
                self as f64
            }

            fn int(self) -> i128 {
                i128::from(self)
            }

            fn key(self) -> u64 {
                let key = i128::from(self).wrapping_sub(i128::from(Self::MIN));
                u64::try_from(key).unwrap_or(u64::MAX)
            }

            fn of_key(key: u64) -> super::Scalar {
                super::Scalar::Int(i128::from(key).wrapping_add(i128::from(Self::MIN)))
            }
        }
    )*};
}

integers!(i8, i16, i32, i64, u8, u16, u32, u64);

macro_rules! floats {
    ($($t:ty),*) => {$(
        impl Number for $t {
            const SIZE: usize = size_of::<Self>();
            const IS_FLOAT: bool = true;

            fn all(bytes: &[u8]) -> impl Iterator<Item = Self> {
                let (values, _) = bytes.as_chunks::<{ size_of::<Self>() }>();
                values.iter().map(|value| Self::from_le_bytes(*value))
            }

            fn float(self) -> f64 {
                f64::from(self)
            }

            fn int(self) -> i128 {
                0
            }

            fn key(self) -> u64 {
                float_key(f64::from(self))
            }

            fn of_key(key: u64) -> super::Scalar {
                float_of_key(key)
            }
        }
    )*};
}

floats!(f16, f32, f64);

impl Number for bool {
    const SIZE: usize = 1;
    const IS_FLOAT: bool = false;

    fn all(bytes: &[u8]) -> impl Iterator<Item = Self> {
        bytes.iter().map(|byte| *byte != 0)
    }

    fn float(self) -> f64 {
        f64::from(u8::from(self))
    }

    fn int(self) -> i128 {
        self.into()
    }

    fn key(self) -> u64 {
        self.into()
    }

    fn of_key(key: u64) -> super::Scalar {
        super::Scalar::Int(key.into())
    }
}
