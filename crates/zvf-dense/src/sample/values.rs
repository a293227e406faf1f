//! Voxels in memory: numbers to weigh, or bytes to copy.

use core::num::NonZeroU32;

use zerocopy::IntoBytes;
use zvf_format::numeric::{
    ByteOrder, Dtype, Element, Kind, KindVisitor, NumericRows, NumericRowsError, Value,
};

use zvf_pages::prefer_large;

use crate::DenseError;

/// The representation of voxels in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Bytes that are copied unchanged.
    Bytes,
    /// Numbers that `f32` represents exactly.
    Single,
    /// All other numbers.
    Double,
}

/// The voxels of a tile.
#[derive(Debug)]
pub(super) enum Voxels {
    /// Little-endian bytes.
    Bytes(Vec<u8>),
    Single(Vec<f32>),
    Double(Vec<f64>),
}

impl Voxels {
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Single(values) => values.as_bytes(),
            Self::Double(values) => values.as_bytes(),
        }
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Single(values) => values.as_mut_bytes(),
            Self::Double(values) => values.as_mut_bytes(),
        }
    }
}

impl Form {
    /// Chooses the representation of voxels that are copied or weighed into values of `kind`.
    pub(super) fn of(dtype: Dtype, kind: Kind, is_copied: bool) -> Self {
        match dtype.kind() {
            own if is_copied && own == kind => Self::Bytes,
            own if is_single(own) => Self::Single,
            _ => Self::Double,
        }
    }

    /// Returns the memory of an element in bytes while it is read, including its stored form.
    pub(super) fn size(self, dtype: Dtype) -> usize {
        match self {
            _ if self.is_stored(dtype) => dtype.size(),
            Self::Bytes => dtype.size(),
            Self::Single => dtype.size().saturating_add(size_of::<f32>()),
            Self::Double => dtype.size().saturating_add(size_of::<f64>()),
        }
    }

    /// Returns whether the stored form is the form in memory, so that reads need no conversion.
    fn is_stored(self, dtype: Dtype) -> bool {
        let native = if cfg!(target_endian = "big") {
            ByteOrder::Big
        } else {
            ByteOrder::Little
        };
        match self {
            Self::Bytes => true,
            Self::Single => dtype.kind() == Kind::Float32 && dtype.order() == native,
            Self::Double => dtype.kind() == Kind::Float64 && dtype.order() == native,
        }
    }

    /// Returns `count` units of zeros.
    pub(super) fn zeros(self, count: usize) -> Voxels {
        match self {
            Self::Bytes => Voxels::Bytes(zeros(count)),
            Self::Single => Voxels::Single(zeros(count)),
            Self::Double => Voxels::Double(zeros(count)),
        }
    }

    /// Returns the length of a unit in bytes.
    pub(super) fn unit(self) -> usize {
        match self {
            Self::Bytes => 1,
            Self::Single => size_of::<f32>(),
            Self::Double => size_of::<f64>(),
        }
    }

    /// Reads voxels with a total length of `len` bytes; `fill` provides the bytes.
    ///
    /// # Errors
    ///
    /// Any error of `fill`, and [`DenseError::Numbers`] if the bytes are not whole elements.
    pub(super) fn read(
        self,
        dtype: Dtype,
        len: usize,
        name: &str,
        fill: impl FnOnce(&mut [u8]) -> Result<(), DenseError>,
    ) -> Result<Voxels, DenseError> {
        let broken = |source| DenseError::Numbers {
            name: name.to_owned(),
            source,
        };
        let count = len.checked_div(dtype.size()).unwrap_or(0);
        match self {
            Self::Bytes => {
                let mut bytes: Vec<u8> = zeros(len);
                fill(&mut bytes)?;
                if dtype.order() == ByteOrder::Big {
                    let voxels = bytes.chunks_exact_mut(dtype.size().max(1));
                    voxels.for_each(<[u8]>::reverse);
                }
                Ok(Voxels::Bytes(bytes))
            }
            Self::Single if self.is_stored(dtype) => {
                let mut values: Vec<f32> = zeros(count);
                fill(values.as_mut_bytes())?;
                Ok(Voxels::Single(values))
            }
            Self::Double if self.is_stored(dtype) => {
                let mut values: Vec<f64> = zeros(count);
                fill(values.as_mut_bytes())?;
                Ok(Voxels::Double(values))
            }
            Self::Single | Self::Double => {
                let mut bytes: Vec<u8> = zeros(len);
                fill(&mut bytes)?;
                match self {
                    Self::Single => numbers(&bytes, dtype, single).map(Voxels::Single),
                    _ => numbers(&bytes, dtype, Value::to_f64).map(Voxels::Double),
                }
                .map_err(broken)
            }
        }
    }
}

/// Allocates zeros in large pages where possible. Points in random order touch memory all over, and
/// large pages reduce address translation misses.
fn zeros<N: Copy + Default>(count: usize) -> Vec<N> {
    let mut zeros = vec![N::default(); count];
    prefer_large(&mut zeros);
    zeros
}

/// A number that can be weighed.
pub(super) trait Number: Copy + Send + Sync {
    /// Widens the number to the type of sums.
    fn wide(self) -> f64;
}

impl Number for f32 {
    fn wide(self) -> f64 {
        self.into()
    }
}

impl Number for f64 {
    fn wide(self) -> f64 {
        self
    }
}

/// Decodes numbers and widens them to `f64`.
///
/// # Errors
///
/// If the bytes are not whole numbers of `dtype`.
pub(super) fn float64(bytes: &[u8], dtype: Dtype) -> Result<Vec<f64>, NumericRowsError> {
    numbers(bytes, dtype, Value::to_f64)
}

/// Writes a value as `float64` or `float32`, depending on the length of `into`.
pub(super) fn put(value: f64, into: &mut [u8]) {
    if let Ok(double) = <&mut [u8; 8]>::try_from(&mut *into) {
        *double = value.to_le_bytes();
    } else if let Ok(own) = <&mut [u8; 4]>::try_from(into) {
        *own = single(Value::Float(value)).to_le_bytes();
    }
}

/// Encodes a value as an element of `kind`; `None` if the kind cannot represent it.
pub(super) fn fill_of(kind: Kind, value: f64) -> Option<Vec<u8>> {
    match kind {
        Kind::Float64 => return Some(value.to_le_bytes().to_vec()),
        Kind::Float32 => return Some(single(Value::Float(value)).to_le_bytes().to_vec()),
        _ => {}
    }
    // Decimal text is exact and has the range of every integer kind.
    let whole: i128 = format!("{value:.0}").parse().ok()?;
    if value.fract().abs() > 0.0 {
        return None;
    }
    let bytes = match kind {
        Kind::Bool => vec![u8::try_from(whole).ok().filter(|value| *value < 2)?],
        Kind::Int8 => i8::try_from(whole).ok()?.to_le_bytes().to_vec(),
        Kind::Int16 => i16::try_from(whole).ok()?.to_le_bytes().to_vec(),
        Kind::Int32 => i32::try_from(whole).ok()?.to_le_bytes().to_vec(),
        Kind::Int64 => i64::try_from(whole).ok()?.to_le_bytes().to_vec(),
        Kind::UInt8 => u8::try_from(whole).ok()?.to_le_bytes().to_vec(),
        Kind::UInt16 => u16::try_from(whole).ok()?.to_le_bytes().to_vec(),
        Kind::UInt32 => u32::try_from(whole).ok()?.to_le_bytes().to_vec(),
        Kind::UInt64 => u64::try_from(whole).ok()?.to_le_bytes().to_vec(),
        _ => return None,
    };
    Some(bytes)
}

/// Returns whether `f32` represents all values of a kind.
fn is_single(kind: Kind) -> bool {
    use Kind as K;
    matches!(
        kind,
        K::Bool | K::Int8 | K::Int16 | K::UInt8 | K::UInt16 | K::Float16 | K::Float32
    )
}

fn numbers<N>(
    bytes: &[u8],
    dtype: Dtype,
    number: impl Fn(Value) -> N,
) -> Result<Vec<N>, NumericRowsError> {
    let rows = NumericRows::parse(bytes, dtype, NonZeroU32::MIN)?;
    Ok(dtype.kind().visit(Numbers { rows, number }))
}

struct Numbers<'a, F> {
    rows: NumericRows<'a>,
    number: F,
}

impl<N, F: Fn(Value) -> N> KindVisitor for Numbers<'_, F> {
    type Output = Vec<N>;

    fn visit<T: Element>(self) -> Vec<N> {
        // `visit` dispatches on the type of the rows, so `elements` is present.
        let elements = self.rows.elements::<T>();
        let values = elements
            .iter()
            .flat_map(zvf_format::numeric::Elements::iter);
        values.map(|value| (self.number)(value.value())).collect()
    }
}

#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    reason = "rounds to the nearest"
)]
fn single(value: Value) -> f32 {
    value.to_f64() as f32
}
