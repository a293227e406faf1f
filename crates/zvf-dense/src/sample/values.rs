//! Voxels in memory, as numbers to weigh or bytes to copy.

use core::num::NonZeroU32;

use zvf_format::numeric::{ByteOrder, Dtype, Element, Kind, KindVisitor, NumericRows, Value};

/// Voxels of a region.
#[derive(Debug)]
pub(super) enum Voxels {
    /// To be copied, little-endian.
    Exact {
        /// One after the other.
        bytes: Vec<u8>,
        /// Of each.
        size: usize,
    },
    /// Those that `f32` holds.
    Single(Vec<f32>),
    /// All others, and whether values are too.
    Double(Vec<f64>, bool),
}

impl Voxels {
    /// Bytes of memory that a voxel takes beside those that were read.
    pub(super) fn size(dtype: Dtype, kind: Kind) -> usize {
        match () {
            () if is_exact(kind) => 0,
            () if is_single(dtype.kind()) => 4,
            () => 8,
        }
    }

    /// What was read, to become values of `kind`.
    pub(super) fn new(mut bytes: Vec<u8>, dtype: Dtype, kind: Kind) -> Self {
        if is_exact(kind) {
            let size = kind.size();
            if dtype.order() == ByteOrder::Big {
                bytes.chunks_exact_mut(size).for_each(<[u8]>::reverse);
            }
            return Self::Exact { bytes, size };
        }
        match is_single(dtype.kind()) {
            true => Self::Single(numbers(&bytes, dtype, single)),
            false => Self::Double(numbers(&bytes, dtype, Value::to_f64), kind == Kind::Float64),
        }
    }

    /// Numbers, widened.
    pub(super) fn float64(bytes: &[u8], dtype: Dtype) -> Vec<f64> {
        numbers(bytes, dtype, Value::to_f64)
    }

    /// The voxel at a place; NaN where there is none.
    pub(super) fn get(&self, at: usize) -> f64 {
        let value = match self {
            Self::Exact { .. } => None,
            Self::Single(values) => values.get(at).copied().map(f64::from),
            Self::Double(values, _) => values.get(at).copied(),
        };
        value.unwrap_or(f64::NAN)
    }

    /// Writes a voxel as it is.
    pub(super) fn copy(&self, at: usize, into: &mut Vec<u8>) {
        let Self::Exact { bytes, size } = self else {
            return self.put(self.get(at), into);
        };
        let start = at.saturating_mul(*size);
        let voxel = bytes.get(start..start.saturating_add(*size));
        into.extend_from_slice(voxel.unwrap_or_default());
    }

    /// Writes a value.
    pub(super) fn put(&self, value: f64, into: &mut Vec<u8>) {
        match self {
            Self::Double(_, true) => into.extend_from_slice(&value.to_le_bytes()),
            _ => into.extend_from_slice(&single(Value::Float(value)).to_le_bytes()),
        }
    }
}

/// The bytes of a value of a kind; `None` when it is none of that kind.
pub(super) fn fill_of(kind: Kind, value: f64) -> Option<Vec<u8>> {
    match kind {
        Kind::Float64 => return Some(value.to_le_bytes().to_vec()),
        Kind::Float32 => return Some(single(Value::Float(value)).to_le_bytes().to_vec()),
        _ => {}
    }
    // Text is exact, and wide enough for all kinds.
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

fn is_exact(kind: Kind) -> bool {
    !matches!(kind, Kind::Float32 | Kind::Float64)
}

/// Whether `f32` holds all values of a kind.
fn is_single(kind: Kind) -> bool {
    use Kind as K;
    matches!(
        kind,
        K::Bool | K::Int8 | K::Int16 | K::UInt8 | K::UInt16 | K::Float16 | K::Float32
    )
}

fn numbers<N>(bytes: &[u8], dtype: Dtype, number: fn(Value) -> N) -> Vec<N> {
    let rows = NumericRows::parse(bytes, dtype, NonZeroU32::MIN);
    let rows = rows.map(|rows| dtype.kind().visit(Numbers { rows, number }));
    rows.unwrap_or_default()
}

struct Numbers<'a, N> {
    rows: NumericRows<'a>,
    number: fn(Value) -> N,
}

impl<N> KindVisitor for Numbers<'_, N> {
    type Output = Vec<N>;

    fn visit<T: Element>(self) -> Vec<N> {
        let values = self.rows.elements::<T>();
        let values = values.iter().flat_map(zvf_format::numeric::Elements::iter);
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
