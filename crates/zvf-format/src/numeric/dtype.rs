//! Numeric types and byte order.

use core::fmt;

/// The type of a value, without byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "numpy's names say it")]
pub enum Kind {
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    Float16,
    Float32,
    Float64,
    Complex64,
    Complex128,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 14] = [
        Self::Bool,
        Self::Int8,
        Self::Int16,
        Self::Int32,
        Self::Int64,
        Self::UInt8,
        Self::UInt16,
        Self::UInt32,
        Self::UInt64,
        Self::Float16,
        Self::Float32,
        Self::Float64,
        Self::Complex64,
        Self::Complex128,
    ];

    /// numpy's name, which is Zarr's `data_type` as well.
    pub fn name(self) -> &'static str {
        self.spec().0
    }

    /// Returns the size of one value in bytes, at least 1.
    pub fn size(self) -> usize {
        self.spec().2
    }

    /// Returns a NaN, little-endian; complex numbers have two parts. `None` for integers and bool.
    ///
    /// ```
    /// use zvf_format::numeric::Kind;
    ///
    /// assert_eq!(Kind::Float32.nan(), Some(f32::NAN.to_le_bytes().as_slice()));
    /// assert_eq!(Kind::Int32.nan(), None);
    /// ```
    pub fn nan(self) -> Option<&'static [u8]> {
        const SINGLE: [u8; 4] = f32::NAN.to_le_bytes();
        const DOUBLE: [u8; 8] = f64::NAN.to_le_bytes();
        const SINGLES: [[u8; 4]; 2] = [SINGLE; 2];
        const DOUBLES: [[u8; 8]; 2] = [DOUBLE; 2];
        match self {
            Self::Float16 => Some(&[0x00, 0x7e]),
            Self::Float32 => Some(&SINGLE),
            Self::Float64 => Some(&DOUBLE),
            Self::Complex64 => Some(SINGLES.as_flattened()),
            Self::Complex128 => Some(DOUBLES.as_flattened()),
            _ => None,
        }
    }

    /// Returns the array protocol's code.
    fn code(self) -> &'static str {
        self.spec().1
    }

    /// Name, code and size.
    fn spec(self) -> (&'static str, &'static str, usize) {
        match self {
            Self::Bool => ("bool", "b1", 1),
            Self::Int8 => ("int8", "i1", 1),
            Self::Int16 => ("int16", "i2", 2),
            Self::Int32 => ("int32", "i4", 4),
            Self::Int64 => ("int64", "i8", 8),
            Self::UInt8 => ("uint8", "u1", 1),
            Self::UInt16 => ("uint16", "u2", 2),
            Self::UInt32 => ("uint32", "u4", 4),
            Self::UInt64 => ("uint64", "u8", 8),
            Self::Float16 => ("float16", "f2", 2),
            Self::Float32 => ("float32", "f4", 4),
            Self::Float64 => ("float64", "f8", 8),
            Self::Complex64 => ("complex64", "c8", 8),
            Self::Complex128 => ("complex128", "c16", 16),
        }
    }
}

/// Byte order of numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ByteOrder {
    /// Lowest byte first, as in nearly every store.
    #[default]
    Little,
    /// Highest byte first.
    Big,
}

/// The type of an array's values: kind and byte order.
///
/// Displays as numpy's name when little-endian, `float32`, and as the array
/// protocol writes it when big-endian, `>f4`; [`parse`](Self::parse) reads
/// both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Dtype {
    kind: Kind,
    order: ByteOrder,
}

impl Dtype {
    /// Returns a kind in this byte order. Single bytes have no order and count as little-endian.
    pub fn new(kind: Kind, order: ByteOrder) -> Self {
        let order = match kind.size() {
            1 => ByteOrder::Little,
            _ => order,
        };
        Self { kind, order }
    }

    /// Reads a `dtype` attribute or a Zarr `data_type`.
    ///
    /// ```
    /// use zvf_format::numeric::{Dtype, DtypeError};
    ///
    /// assert_eq!(Dtype::parse("=f8"), Dtype::parse("float64"));
    /// assert_eq!(Dtype::parse(">i2")?.to_string(), ">i2");
    /// assert_eq!(Dtype::parse("<U5"), Err(DtypeError::Text));
    /// # Ok::<(), DtypeError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`DtypeError`] describes why it is not a numeric type.
    pub fn parse(text: &str) -> Result<Self, DtypeError> {
        if let Some(kind) = Kind::ALL.into_iter().find(|kind| kind.name() == text) {
            return Ok(Self::new(kind, ByteOrder::Little));
        }
        let mut rest = text.chars();
        let order = match rest.next() {
            Some('<' | '=') => Some(ByteOrder::Little),
            Some('>') => Some(ByteOrder::Big),
            Some('|') => None,
            _ => return Err(DtypeError::of_foreign(text)),
        };
        let code = rest.as_str();
        let kind = Kind::ALL
            .into_iter()
            .find(|kind| kind.code() == code)
            .ok_or_else(|| DtypeError::of_foreign(code))?;
        match order {
            Some(order) => Ok(Self::new(kind, order)),
            None if kind.size() == 1 => Ok(Self::new(kind, ByteOrder::Little)),
            None => Err(DtypeError::Order),
        }
    }

    /// Returns the kind of a value.
    pub fn kind(self) -> Kind {
        self.kind
    }

    /// Returns the byte order; little-endian for single bytes.
    pub fn order(self) -> ByteOrder {
        self.order
    }

    /// Returns the size of one value in bytes, at least 1.
    pub fn size(self) -> usize {
        self.kind.size()
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.order {
            ByteOrder::Little => f.write_str(self.kind.name()),
            ByteOrder::Big => write!(f, ">{}", self.kind.code()),
        }
    }
}

/// Reason that a dtype is not a numeric type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DtypeError {
    /// In-memory text of NumPy: `<U5`, `|S3`, `str`, `string`.
    #[error("dtype is raw text, only numbers and bool are read")]
    Text,
    /// Python objects: the bytes are addresses in the process of the writer.
    #[error("dtype is a raw object address, only numbers and bool are read")]
    Object,
    /// `|` before a value of several bytes.
    #[error("dtype leaves the byte order of its values open")]
    Order,
    /// Anything else: dates, records, extended floats, misspellings.
    #[error("dtype is not a number or bool")]
    Unknown,
}

impl DtypeError {
    /// Classifies a type that is not numeric; `text` is without byte order.
    fn of_foreign(text: &str) -> Self {
        let digits = text.trim_end_matches(|c: char| c.is_ascii_digit());
        match digits {
            "U" | "S" | "a" | "str" | "bytes" | "string" | "fixed_length_utf" => Self::Text,
            "O" | "object" => Self::Object,
            _ => Self::Unknown,
        }
    }
}
