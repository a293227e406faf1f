//! Rust types of values.

#[cfg(feature = "alloc")]
use alloc::vec::Vec;
use core::fmt;

use half::f16;
use zerocopy::{FromBytes, Immutable, KnownLayout, TryFromBytes};

use super::{ByteOrder, Kind};

/// One value of any kind, widened without loss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// Value of kind `bool`.
    Bool(bool),
    /// Value of a signed kind.
    Int(i64),
    /// Value of an unsigned kind.
    UInt(u64),
    /// Value of a float kind. A NaN stays NaN; only [`Elements`] preserves its bits.
    Float(f64),
    /// Value of a complex kind.
    Complex {
        /// Real part.
        re: f64,
        /// Imaginary part.
        im: f64,
    },
}

impl Value {
    /// Returns the nearest `f64`; NaN for a complex number.
    #[expect(
        clippy::as_conversions,
        clippy::cast_precision_loss,
        reason = "std rounds an integer to an f64 in no other way"
    )]
    pub fn to_f64(self) -> f64 {
        match self {
            Self::Bool(value) => f64::from(u8::from(value)),
            Self::Int(value) => value as f64,
            Self::UInt(value) => value as f64,
            Self::Float(value) => value,
            Self::Complex { .. } => f64::NAN,
        }
    }
}

/// A Rust type that represents one [`Kind`]: `bool`, `i8` to `i64`, `u8` to `u64`, [`half::f16`],
/// `f32`, `f64`, and `[f32; 2]` and `[f64; 2]` as complex numbers, real part first. No other crate
/// can add one.
pub trait Element: Copy + fmt::Debug + sealed::Sealed {
    /// The kind that this type represents.
    const KIND: Kind;

    /// Returns the value, widened.
    fn value(self) -> Value;
}

/// An operation that is generic in the Rust type of a [`Kind`]; see [`Kind::visit`].
pub trait KindVisitor {
    /// Result of the operation.
    type Output;

    /// Runs the operation with values of type `T`.
    fn visit<T: Element>(self) -> Self::Output;
}

impl Kind {
    /// Calls `visitor` with the Rust type of this kind, which converts a kind known only at run
    /// time to a type.
    ///
    /// ```
    /// use zvf_format::numeric::{Dtype, Element, KindVisitor, NumericRows};
    ///
    /// /// Counts values of any type.
    /// struct Count<'a>(NumericRows<'a>);
    ///
    /// impl KindVisitor for Count<'_> {
    ///     type Output = usize;
    ///
    ///     fn visit<T: Element>(self) -> usize {
    ///         self.0.elements::<T>().map_or(0, |values| values.len())
    ///     }
    /// }
    ///
    /// let dtype = Dtype::parse("uint16")?;
    /// let rows = NumericRows::parse(b"\x01\0\x02\0", dtype, 1.try_into()?)?;
    /// assert_eq!(dtype.kind().visit(Count(rows)), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn visit<V: KindVisitor>(self, visitor: V) -> V::Output {
        match self {
            Self::Bool => visitor.visit::<bool>(),
            Self::Int8 => visitor.visit::<i8>(),
            Self::Int16 => visitor.visit::<i16>(),
            Self::Int32 => visitor.visit::<i32>(),
            Self::Int64 => visitor.visit::<i64>(),
            Self::UInt8 => visitor.visit::<u8>(),
            Self::UInt16 => visitor.visit::<u16>(),
            Self::UInt32 => visitor.visit::<u32>(),
            Self::UInt64 => visitor.visit::<u64>(),
            Self::Float16 => visitor.visit::<f16>(),
            Self::Float32 => visitor.visit::<f32>(),
            Self::Float64 => visitor.visit::<f64>(),
            Self::Complex64 => visitor.visit::<[f32; 2]>(),
            Self::Complex128 => visitor.visit::<[f64; 2]>(),
        }
    }
}

mod sealed {
    #[cfg(feature = "alloc")]
    use alloc::vec::Vec;

    /// Memory layout of a type. Not nameable outside this crate.
    pub trait Sealed: Sized {
        /// The bytes of one value.
        type Raw: Copy + 'static;

        /// Returns all complete values in `bytes`.
        fn cut(bytes: &[u8]) -> &[Self::Raw];
        /// Returns the values in place, if the machine uses the same layout; see `as_slice`.
        fn cast(raw: &[Self::Raw]) -> Option<&[Self]>;
        fn from_le(raw: Self::Raw) -> Self;
        fn from_be(raw: Self::Raw) -> Self;
        #[cfg(feature = "alloc")]
        fn to_le(self) -> Self::Raw;
        #[cfg(feature = "alloc")]
        fn to_be(self) -> Self::Raw;
        /// Returns the inverse of `cut`, without copying.
        #[cfg(feature = "alloc")]
        fn join(raw: Vec<Self::Raw>) -> Vec<u8>;
    }
}

/// Returns the whole elements in `bytes`.
fn whole<R: FromBytes + Immutable>(bytes: &[u8]) -> &[R]
where
    [R]: KnownLayout<PointerMetadata = usize>,
{
    <[R]>::ref_from_prefix(bytes).map_or(&[], |(whole, _)| whole)
}

macro_rules! number {
    ($type:ident, $kind:ident, $value:expr) => {
        number!($type, $kind, $value, |bytes| <[$type]>::ref_from_bytes(
            bytes
        )
        .ok());
    };
    ($type:ident, $kind:ident, $value:expr, $cast:expr) => {
        impl sealed::Sealed for $type {
            type Raw = [u8; size_of::<Self>()];

            fn cut(bytes: &[u8]) -> &[Self::Raw] {
                whole(bytes)
            }

            fn cast(raw: &[Self::Raw]) -> Option<&[Self]> {
                let cast: fn(&[u8]) -> Option<&[Self]> = $cast;
                cast(raw.as_flattened())
            }

            fn from_le(raw: Self::Raw) -> Self {
                Self::from_le_bytes(raw)
            }

            fn from_be(raw: Self::Raw) -> Self {
                Self::from_be_bytes(raw)
            }

            #[cfg(feature = "alloc")]
            fn to_le(self) -> Self::Raw {
                self.to_le_bytes()
            }

            #[cfg(feature = "alloc")]
            fn to_be(self) -> Self::Raw {
                self.to_be_bytes()
            }

            #[cfg(feature = "alloc")]
            fn join(raw: Vec<Self::Raw>) -> Vec<u8> {
                raw.into_flattened()
            }
        }

        impl Element for $type {
            const KIND: Kind = Kind::$kind;

            fn value(self) -> Value {
                let widen: fn(Self) -> Value = $value;
                widen(self)
            }
        }
    };
}

macro_rules! complex {
    ($part:ident, $kind:ident) => {
        impl sealed::Sealed for [$part; 2] {
            type Raw = [[u8; size_of::<$part>()]; 2];

            fn cut(bytes: &[u8]) -> &[Self::Raw] {
                whole(bytes)
            }

            fn cast(raw: &[Self::Raw]) -> Option<&[Self]> {
                <[Self]>::ref_from_bytes(raw.as_flattened().as_flattened()).ok()
            }

            fn from_le(raw: Self::Raw) -> Self {
                raw.map($part::from_le_bytes)
            }

            fn from_be(raw: Self::Raw) -> Self {
                raw.map($part::from_be_bytes)
            }

            #[cfg(feature = "alloc")]
            fn to_le(self) -> Self::Raw {
                self.map($part::to_le_bytes)
            }

            #[cfg(feature = "alloc")]
            fn to_be(self) -> Self::Raw {
                self.map($part::to_be_bytes)
            }

            #[cfg(feature = "alloc")]
            fn join(raw: Vec<Self::Raw>) -> Vec<u8> {
                raw.into_flattened().into_flattened()
            }
        }

        impl Element for [$part; 2] {
            const KIND: Kind = Kind::$kind;

            fn value(self) -> Value {
                let [re, im] = self.map(f64::from);
                Value::Complex { re, im }
            }
        }
    };
}

number!(i8, Int8, |number| Value::Int(number.into()));
number!(i16, Int16, |number| Value::Int(number.into()));
number!(i32, Int32, |number| Value::Int(number.into()));
number!(i64, Int64, Value::Int);
number!(u8, UInt8, |number| Value::UInt(number.into()));
number!(u16, UInt16, |number| Value::UInt(number.into()));
number!(u32, UInt32, |number| Value::UInt(number.into()));
number!(u64, UInt64, Value::UInt);
// zerocopy supports `f16` only with a feature of `half` that this crate does not need.
number!(f16, Float16, |number| Value::Float(number.to_f64()), |_| {
    None
});
number!(f32, Float32, |number| Value::Float(number.into()));
number!(f64, Float64, Value::Float);
complex!(f32, Complex64);
complex!(f64, Complex128);

impl sealed::Sealed for bool {
    type Raw = u8;

    fn cut(bytes: &[u8]) -> &[u8] {
        bytes
    }

    fn cast(raw: &[u8]) -> Option<&[Self]> {
        <[Self]>::try_ref_from_bytes(raw).ok()
    }

    fn from_le(raw: u8) -> Self {
        raw != 0
    }

    fn from_be(raw: u8) -> Self {
        raw != 0
    }

    #[cfg(feature = "alloc")]
    fn to_le(self) -> u8 {
        self.into()
    }

    #[cfg(feature = "alloc")]
    fn to_be(self) -> u8 {
        self.into()
    }

    #[cfg(feature = "alloc")]
    fn join(raw: Vec<u8>) -> Vec<u8> {
        raw
    }
}

impl Element for bool {
    const KIND: Kind = Kind::Bool;

    fn value(self) -> Value {
        Value::Bool(self)
    }
}

/// All values of [`NumericRows`](super::NumericRows) in their own type, borrowed, created by
/// [`elements`](super::NumericRows::elements).
#[derive(Clone, Copy)]
pub struct Elements<'a, T: Element> {
    raw: &'a [T::Raw],
    order: ByteOrder,
}

impl<'a, T: Element> Elements<'a, T> {
    /// `bytes` must hold whole values; the caller has checked.
    pub(super) fn new(bytes: &'a [u8], order: ByteOrder) -> Self {
        let raw = T::cut(bytes);
        Self { raw, order }
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.raw.len()
    }

    /// Returns whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.raw.is_empty()
    }

    /// Returns value `at`, or `None` past the end, in constant time.
    pub fn get(&self, at: usize) -> Option<T> {
        self.raw.get(at).map(|raw| read(*raw, self.order))
    }

    /// Borrows the values without copying.
    ///
    /// `None` if that is impossible: the byte order differs from the machine's, the memory is not
    /// aligned for `T`, a `bool` is stored as a byte other than 0 or 1, or `T` is `f16`.
    pub fn as_slice(&self) -> Option<&'a [T]> {
        let native = if cfg!(target_endian = "little") {
            ByteOrder::Little
        } else {
            ByteOrder::Big
        };
        if self.order != native && size_of::<T>() > 1 {
            return None;
        }
        T::cast(self.raw)
    }

    /// Returns the values in stored order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = T> + Clone + use<'a, T> {
        let order = self.order;
        self.raw.iter().map(move |raw| read(*raw, order))
    }

    /// Writes all values to `out`. In the byte order of the machine this copies the bytes,
    /// otherwise it is a vectorized loop.
    ///
    /// # Errors
    ///
    /// [`CopyLength`] if the length of `out` differs; `out` is then left unchanged.
    pub fn copy_to(&self, out: &mut [T]) -> Result<(), CopyLength> {
        let (needed, found) = (self.len(), out.len());
        if needed != found {
            return Err(CopyLength { needed, found });
        }
        let pairs = out.iter_mut().zip(self.raw);
        // The order is tested once instead of for each value, so that the loops have no branches.
        match self.order {
            ByteOrder::Little => pairs.for_each(|(slot, raw)| *slot = T::from_le(*raw)),
            ByteOrder::Big => pairs.for_each(|(slot, raw)| *slot = T::from_be(*raw)),
        }
        Ok(())
    }
}

fn read<T: Element>(raw: T::Raw, order: ByteOrder) -> T {
    match order {
        ByteOrder::Little => T::from_le(raw),
        ByteOrder::Big => T::from_be(raw),
    }
}

impl<T: Element> fmt::Debug for Elements<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// The destination of a copy has the wrong length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{needed} values do not fit into {found} places")]
pub struct CopyLength {
    /// Number of values.
    pub needed: usize,
    /// Length of the destination.
    pub found: usize,
}

/// Encodes values in this byte order. The encoding is unique.
///
/// ```
/// use zvf_format::numeric::{ByteOrder, encode};
///
/// assert_eq!(encode(&[1_i16, -2], ByteOrder::Big), [0, 1, 0xff, 0xfe]);
/// assert_eq!(encode(&[true, false], ByteOrder::Little), [1, 0]);
/// ```
#[cfg(feature = "alloc")]
pub fn encode<T: Element>(values: &[T], order: ByteOrder) -> Vec<u8> {
    let values = values.iter();
    T::join(match order {
        ByteOrder::Little => values.map(|value| value.to_le()).collect(),
        ByteOrder::Big => values.map(|value| value.to_be()).collect(),
    })
}
