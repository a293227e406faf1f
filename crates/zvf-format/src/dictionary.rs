//! Dictionary codes: an attribute of words, stored as row numbers of a table.
//!
//! | part | size in bytes | content |
//! |---|---|---|
//! | codes | rows · s | one integer of the array's `dtype` for each row, little-endian unless that says otherwise, nothing else |
//!
//! The table is in the array's attributes: `encoding` is `dictionary`, `categories` lists the words
//! in ascending order, code `i` stands for `categories[i]`. A code equal to the attribute
//! `_FillValue` stands for a missing word, even if the table has a row of that number; without the
//! attribute, no word is missing. `ordered` is preserved and has no effect.
//!
//! Any integer dtype is read. Writers choose it once for all cells of the
//! array, by the number of categories and by whether any row lacks a word:
//!
//! | dtype when no row lacks a word | categories | dtype when some row does (`_FillValue` is -1) | categories |
//! |---|---|---|---|
//! | `uint8` | up to 255 | `int8` | up to 127 |
//! | `uint16` | up to 65 535 | `int16` | up to 32 767 |
//! | `uint32` | more | `int32` | up to 2 147 483 647 |
//!
//! The widest table of each row leaves the highest code unused. The number of codes is not stored:
//! a cell truncated between two codes is a valid shorter cell, which only the number of vertex rows
//! reveals.
//!
//! ```
//! use zvf_format::dictionary::{Code, CodeDtype, DictionaryCodes};
//!
//! // "b", nothing, "a", "b", where the table is ["a", "b"].
//! let stored = CodeDtype::with_missing(2)?;
//! let codes = DictionaryCodes::parse(b"\x01\xff\0\x01", stored.dtype(), 2, stored.missing())?;
//! assert_eq!(codes.get(0), Some(Code::Category(1)));
//! assert_eq!(codes.get(1), Some(Code::Missing));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(feature = "alloc")]
use alloc::vec::Vec;
use core::{fmt, num::NonZeroU32};

use crate::numeric::{ByteOrder, Dtype, Element, Elements, Kind, NumericRows, Value};

/// Meaning of the code of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// This row of the table of categories.
    Category(u32),
    /// No word.
    Missing,
}

/// The codes of one cell, borrowed from its bytes.
///
/// Validated by [`parse`](Self::parse): every category is a row of the table.
#[derive(Clone, Copy)]
pub struct DictionaryCodes<'a> {
    codes: NumericRows<'a>,
    missing: Option<i64>,
}

impl<'a> DictionaryCodes<'a> {
    /// Checks `bytes` against the size of the table and borrows the codes in
    /// them. One pass, no allocation.
    ///
    /// `missing` is the attribute `_FillValue`; a value that `dtype` cannot represent never occurs.
    ///
    /// # Errors
    ///
    /// [`DictionaryCodesError`] describes the first fault.
    pub fn parse(
        bytes: &'a [u8],
        dtype: Dtype,
        categories: u32,
        missing: Option<i64>,
    ) -> Result<Self, DictionaryCodesError> {
        use DictionaryCodesError as E;
        let codes = NumericRows::parse(bytes, dtype, NonZeroU32::MIN)
            .map_err(|_| E::Length(bytes.len()))?;
        let table = Table {
            categories,
            missing,
        };
        let stray = match dtype.kind() {
            Kind::Int8 => table.stray(codes.elements::<i8>()),
            Kind::Int16 => table.stray(codes.elements::<i16>()),
            Kind::Int32 => table.stray(codes.elements::<i32>()),
            Kind::Int64 => table.stray(codes.elements::<i64>()),
            Kind::UInt8 => table.stray(codes.elements::<u8>()),
            Kind::UInt16 => table.stray(codes.elements::<u16>()),
            Kind::UInt32 => table.stray(codes.elements::<u32>()),
            Kind::UInt64 => table.stray(codes.elements::<u64>()),
            kind => return Err(E::Kind(kind)),
        };
        match stray {
            Some((row, code)) => Err(E::Code { row, code }),
            None => Ok(Self { codes, missing }),
        }
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.codes.rows()
    }

    /// Returns whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the meaning of row `row`, or `None` past the end, in constant time.
    pub fn get(&self, row: usize) -> Option<Code> {
        let code = match self.codes.value(row, 0)? {
            Value::Int(code) => i128::from(code),
            Value::UInt(code) => i128::from(code),
            _ => return None,
        };
        if self.missing.map(i128::from) == Some(code) {
            return Some(Code::Missing);
        }
        u32::try_from(code).ok().map(Code::Category)
    }

    /// Iterates over the meaning of each row, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Code> + Clone + use<'a> {
        let codes = *self;
        // `parse` has verified that each of them is there.
        (0..codes.len()).map(move |row| codes.get(row).unwrap_or(Code::Missing))
    }

    /// Returns the codes as numbers, for bulk access.
    pub fn as_rows(&self) -> NumericRows<'a> {
        self.codes
    }
}

/// The table that codes are checked against.
#[derive(Clone, Copy)]
struct Table {
    categories: u32,
    missing: Option<i64>,
}

impl Table {
    /// Returns the first code without a meaning, and its row.
    fn stray<T>(self, codes: Option<Elements<'_, T>>) -> Option<(usize, i128)>
    where
        T: Element + Into<i128>,
    {
        let categories = 0..i128::from(self.categories);
        let missing = self.missing.map(i128::from);
        let mut codes = codes?.iter().map(Into::into).enumerate();
        codes.find(|(_, code)| !categories.contains(code) && missing != Some(*code))
    }
}

impl fmt::Debug for DictionaryCodes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Compares the meaning of rows, independent of their storage.
impl PartialEq for DictionaryCodes<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for DictionaryCodes<'_> {}

/// The reason why bytes are not dictionary codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DictionaryCodesError {
    /// Codes are integers, not this.
    #[error("codes of kind {} are not integers", .0.name())]
    Kind(Kind),
    /// This number of bytes is not a whole number of codes.
    #[error("{0} bytes are not a whole number of codes")]
    Length(usize),
    /// A code is neither in the table nor the missing value.
    #[error("code {code} of row {row} is not in the table of categories")]
    Code {
        /// The first such row.
        row: usize,
        /// Its code.
        code: i128,
    },
}

/// Storage of an array's codes, chosen once for all its cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeDtype {
    kind: Kind,
    categories: u32,
    missing: Option<i64>,
}

impl CodeDtype {
    /// Returns the canonical choice for `categories` words and no missing values.
    pub fn new(categories: u32) -> Self {
        let kind = match categories {
            0..=0xff => Kind::UInt8,
            0x100..=0xffff => Kind::UInt16,
            _ => Kind::UInt32,
        };
        Self {
            kind,
            categories,
            missing: None,
        }
    }

    /// Returns the canonical choice for `categories` words and some missing values.
    ///
    /// # Errors
    ///
    /// [`DictionaryLimit::Categories`] if they are more than an i32 counts.
    pub fn with_missing(categories: u32) -> Result<Self, DictionaryLimit> {
        let kind = match categories {
            0..=0x7f => Kind::Int8,
            0x80..=0x7fff => Kind::Int16,
            0x8000..=0x7fff_ffff => Kind::Int32,
            _ => return Err(DictionaryLimit::Categories(categories)),
        };
        Ok(Self {
            kind,
            categories,
            missing: Some(-1),
        })
    }

    /// Returns the array's `dtype`.
    pub fn dtype(self) -> Dtype {
        Dtype::new(self.kind, ByteOrder::Little)
    }

    /// Returns the number of words in the table.
    pub fn categories(self) -> u32 {
        self.categories
    }

    /// Returns the array's `_FillValue`.
    pub fn missing(self) -> Option<i64> {
        self.missing
    }

    /// Encodes the codes of one cell. The encoding is unique.
    ///
    /// ```
    /// use zvf_format::dictionary::{Code, CodeDtype};
    ///
    /// let codes = [Code::Category(1), Code::Missing];
    /// assert_eq!(CodeDtype::with_missing(2)?.encode(&codes)?, [1, 0xff]);
    /// assert!(CodeDtype::new(2).encode(&codes).is_err());
    /// # Ok::<(), zvf_format::dictionary::DictionaryLimit>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`DictionaryLimit`] names the first row that cannot be stored.
    #[cfg(feature = "alloc")]
    pub fn encode(self, codes: &[Code]) -> Result<Vec<u8>, DictionaryLimit> {
        let width = self.kind.size();
        let mut bytes = Vec::with_capacity(codes.len().saturating_mul(width));
        for (row, code) in codes.iter().enumerate() {
            let number = self.number(row, *code)?.to_le_bytes();
            // Little-endian two's complement: a narrower integer is the first of its bytes.
            bytes.extend(number.into_iter().take(width));
        }
        Ok(bytes)
    }

    #[cfg(feature = "alloc")]
    fn number(self, row: usize, code: Code) -> Result<i64, DictionaryLimit> {
        match code {
            Code::Category(category) if category < self.categories => Ok(category.into()),
            Code::Category(category) => Err(DictionaryLimit::Category { row, category }),
            Code::Missing => self.missing.ok_or(DictionaryLimit::Missing(row)),
        }
    }
}

/// Codes or categories that a dictionary cannot represent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DictionaryLimit {
    /// Too many categories for an additional missing value.
    #[error("with missing rows a table has at most 2147483647 categories, not {0}")]
    Categories(u32),
    /// A category past the end of the table.
    #[error("category {category} of row {row} is not in the table")]
    Category {
        /// The row.
        row: usize,
        /// Its category.
        category: u32,
    },
    /// This row lacks a word, but the dtype was chosen without missing values.
    #[error("row {0} is missing, but the codes have no missing value")]
    Missing(usize),
}
