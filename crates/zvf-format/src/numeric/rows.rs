//! Rows of numeric values.

use core::{fmt, num::NonZeroU32, ops::Range};

use half::f16;

use super::{Dtype, Element, Elements, Kind, Value};

/// Rows of numbers, borrowed from their bytes.
///
/// [`parse`](Self::parse) validates all data, so that no accessor fails or panics. Two are equal if
/// they have the same bytes and type, so NaN equals itself.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct NumericRows<'a> {
    bytes: &'a [u8],
    dtype: Dtype,
    columns: NonZeroU32,
    rows: usize,
}

impl<'a> NumericRows<'a> {
    /// Checks that `bytes` hold whole rows and borrows them. Takes constant time.
    ///
    /// # Errors
    ///
    /// [`NumericRowsError`] names the truncated part.
    pub fn parse(
        bytes: &'a [u8],
        dtype: Dtype,
        columns: NonZeroU32,
    ) -> Result<Self, NumericRowsError> {
        use NumericRowsError as E;
        let values = divide(bytes.len(), dtype.size()).ok_or(E::Value {
            len: bytes.len(),
            dtype,
        })?;
        let rows = divide(values, width(columns)).ok_or(E::Row { values, columns })?;
        Ok(Self {
            bytes,
            dtype,
            columns,
            rows,
        })
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the number of values in a row.
    pub fn columns(&self) -> NonZeroU32 {
        self.columns
    }

    /// Returns the type of the values.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// Returns the bytes of all rows.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns one value, widened; `None` past the last row or column. Takes constant time but
    /// evaluates the dtype for each value: [`elements`](Self::elements) is faster.
    pub fn value(&self, row: usize, column: u32) -> Option<Value> {
        if column >= self.columns.get() {
            return None;
        }
        let first = row.checked_mul(width(self.columns))?;
        self.value_at(first.checked_add(usize::try_from(column).ok()?)?)
    }

    /// Returns all values in their own type, row by row; `None` if `T` is of another kind. Either
    /// byte order is supported.
    pub fn elements<T: Element>(&self) -> Option<Elements<'a, T>> {
        (self.dtype.kind() == T::KIND).then(|| Elements::new(self.bytes, self.dtype.order()))
    }

    /// Returns a range of rows, such as those of one fragment; `None` if it exceeds the rows. Takes
    /// constant time.
    pub fn slice(&self, rows: Range<usize>) -> Option<Self> {
        let byte = |row: usize| {
            let values = row.checked_mul(width(self.columns))?;
            values.checked_mul(self.dtype.size())
        };
        Some(Self {
            bytes: self.bytes.get(byte(rows.start)?..byte(rows.end)?)?,
            rows: rows.len(),
            ..*self
        })
    }

    fn value_at(&self, at: usize) -> Option<Value> {
        match self.dtype.kind() {
            Kind::Bool => self.widened::<bool>(at),
            Kind::Int8 => self.widened::<i8>(at),
            Kind::Int16 => self.widened::<i16>(at),
            Kind::Int32 => self.widened::<i32>(at),
            Kind::Int64 => self.widened::<i64>(at),
            Kind::UInt8 => self.widened::<u8>(at),
            Kind::UInt16 => self.widened::<u16>(at),
            Kind::UInt32 => self.widened::<u32>(at),
            Kind::UInt64 => self.widened::<u64>(at),
            Kind::Float16 => self.widened::<f16>(at),
            Kind::Float32 => self.widened::<f32>(at),
            Kind::Float64 => self.widened::<f64>(at),
            Kind::Complex64 => self.widened::<[f32; 2]>(at),
            Kind::Complex128 => self.widened::<[f64; 2]>(at),
        }
    }

    fn widened<T: Element>(&self, at: usize) -> Option<Value> {
        self.elements::<T>()?.get(at).map(T::value)
    }
}

impl fmt::Debug for NumericRows<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values = (0..).map_while(|at| self.value_at(at));
        write!(f, "{} × {} ", self.columns, self.dtype)?;
        f.debug_list().entries(values).finish()
    }
}

/// Returns the width of rows that do not declare it: the number of values in each of `rows` rows
/// that together fill `len` bytes exactly.
///
/// Attribute cells are such rows; their count is the
/// [extent](crate::fragment::FragmentIndex::extent) of the chunk's fragment index, or the number of
/// its fragments. `None` if the division has a remainder, a row would have no value, or there are
/// no rows.
///
/// ```
/// use zvf_format::numeric::{Dtype, columns_of};
///
/// let rgb = columns_of(9, Dtype::parse("uint8")?, 3);
/// assert_eq!(rgb.map(u32::from), Some(3));
/// # Ok::<(), zvf_format::numeric::DtypeError>(())
/// ```
pub fn columns_of(len: usize, dtype: Dtype, rows: u64) -> Option<NonZeroU32> {
    let values = divide(len, dtype.size())?;
    let columns = divide(values, usize::try_from(rows).ok()?)?;
    NonZeroU32::new(u32::try_from(columns).ok()?)
}

/// Returns `whole / part` if there is no remainder.
fn divide(whole: usize, part: usize) -> Option<usize> {
    match whole.checked_rem(part)? {
        0 => whole.checked_div(part),
        _ => None,
    }
}

/// Converts a number of columns; numbers beyond the address space saturate, because such rows
/// cannot be filled.
fn width(columns: NonZeroU32) -> usize {
    usize::try_from(columns.get()).unwrap_or(usize::MAX)
}

/// The reason why bytes are not rows of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NumericRowsError {
    /// The bytes end inside a value.
    #[error("{len} bytes are not a whole number of {dtype}")]
    Value {
        /// Number of bytes.
        len: usize,
        /// Expected type.
        dtype: Dtype,
    },
    /// The values end inside a row.
    #[error("{values} values do not fill rows of {columns}")]
    Row {
        /// Number of values.
        values: usize,
        /// Values in a row.
        columns: NonZeroU32,
    },
}
