//! Columns of a result or of geometry to write: typed values, their width and their nulls.
//!
//! Queries return columns and writers take them, so a result can be written back without a
//! conversion. [`NumericColumn`] holds numbers of one [`Kind`], one or more to a row; positions are
//! such a column. [`Column`] is a named attribute: a numeric column or text with a dictionary, and
//! a mask of the rows without a value.
//!
//! ```
//! use zvf_model::column::{Column, NumericColumn};
//!
//! let positions = NumericColumn::from(vec![[0.0_f32, 0.0, 0.0], [9.0, 1.0, 1.0]]);
//! assert_eq!((positions.width, positions.len()), (3, 2));
//! assert_eq!(positions.to_vec::<f32>().ok_or("not float32")?[3], 9.0);
//!
//! let labels = Column::text("label", [Some("soma"), None, Some("soma")]);
//! assert_eq!(labels.text_at(2), Some("soma"));
//! assert!(labels.is_null(1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::{collections::HashMap, iter, sync::Arc};

use zerocopy::FromBytes;
use zvf_format::numeric::{ByteOrder, Dtype, Element, Elements, Kind, NumericRows, Value, encode};

/// Dictionary code of a row without a value.
pub const NULL_CODE: u32 = u32::MAX;

/// Rows of numbers of one kind, little-endian and row by row.
#[derive(Clone, Debug, PartialEq)]
pub struct NumericColumn {
    /// Type of a number.
    pub kind: Kind,
    /// Numbers in a row, at least 1.
    pub width: u32,
    /// Encoded numbers, row by row.
    pub bytes: Vec<u8>,
}

impl Default for NumericColumn {
    fn default() -> Self {
        Self::new(Kind::Float32, 1)
    }
}

impl NumericColumn {
    /// Creates a column without rows. A width of 0 counts as 1.
    pub fn new(kind: Kind, width: u32) -> Self {
        Self {
            kind,
            width: width.max(1),
            bytes: Vec::new(),
        }
    }

    /// Creates a column from values in row order.
    ///
    /// ```
    /// use zvf_model::column::NumericColumn;
    ///
    /// let colours = NumericColumn::from_values(3, [255_u8, 0, 0, 0, 0, 255]);
    /// assert_eq!(colours.row(1), Some([0, 0, 255].as_slice()));
    /// ```
    pub fn from_values<T: Element>(width: u32, values: impl IntoIterator<Item = T>) -> Self {
        let values: Vec<T> = values.into_iter().collect();
        Self {
            bytes: encode(&values, ByteOrder::Little),
            ..Self::new(T::KIND, width)
        }
    }

    /// Creates a column of 32-bit floats.
    pub fn float32(width: u32, values: impl IntoIterator<Item = f32>) -> Self {
        Self::from_values(width, values)
    }

    /// Creates a column of 64-bit floats.
    pub fn float64(width: u32, values: impl IntoIterator<Item = f64>) -> Self {
        Self::from_values(width, values)
    }

    /// Creates a column of 64-bit integers.
    pub fn int64(width: u32, values: impl IntoIterator<Item = i64>) -> Self {
        Self::from_values(width, values)
    }

    /// Creates a column with this one's kind and width and other rows.
    #[must_use]
    pub fn with_bytes(&self, bytes: Vec<u8>) -> Self {
        Self {
            bytes,
            ..Self::new(self.kind, self.width)
        }
    }

    /// Numbers in a row, as an index type.
    pub fn row_len(&self) -> usize {
        usize::try_from(self.width.max(1)).unwrap_or(usize::MAX)
    }

    /// Bytes in a row.
    pub fn row_size(&self) -> usize {
        self.kind.size().saturating_mul(self.row_len())
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.bytes.len().checked_div(self.row_size()).unwrap_or(0)
    }

    /// Returns whether the column has no rows.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns the bytes of a row; `None` past the end.
    pub fn row(&self, row: usize) -> Option<&[u8]> {
        let size = self.row_size();
        let start = row.checked_mul(size)?;
        self.bytes.get(start..start.checked_add(size)?)
    }

    /// Borrows the rows as a checked view; `None` if the bytes end inside a row.
    pub fn view(&self) -> Option<NumericRows<'_>> {
        let dtype = Dtype::new(self.kind, ByteOrder::Little);
        NumericRows::parse(&self.bytes, dtype, self.width.try_into().ok()?).ok()
    }

    fn elements<T: Element>(&self) -> Option<Elements<'_, T>> {
        self.view()?.elements()
    }

    /// Borrows the numbers as a slice, without copying.
    ///
    /// `None` if the column is of another kind, and wherever a copy is needed: on big-endian
    /// machines, in memory that is not aligned for `T`, and for `f16`. [`to_vec`](Self::to_vec)
    /// always works.
    pub fn as_slice<T: Element>(&self) -> Option<&[T]> {
        self.elements()?.as_slice()
    }

    /// Copies the numbers out in row order; `None` if the column is of another kind.
    pub fn to_vec<T: Element>(&self) -> Option<Vec<T>> {
        Some(self.elements()?.iter().collect())
    }

    /// Copies the rows at these positions, in this order; `None` if a position is past the end.
    pub fn take(&self, rows: impl IntoIterator<Item = usize>) -> Option<Self> {
        let mut are_rows = true;
        let taken = self.take_or_zeros(rows.into_iter(), &mut are_rows);
        are_rows.then_some(taken)
    }

    /// Copies the rows at these positions, which exist, in this order. The number of rows is that of
    /// the positions in any case: one past the end gives a row of zeros.
    ///
    /// # Panics
    ///
    /// If a position is past the end and debug assertions are enabled.
    #[must_use]
    pub fn take_existing(&self, rows: impl IntoIterator<Item = usize>) -> Self {
        let mut are_rows = true;
        let taken = self.take_or_zeros(rows.into_iter(), &mut are_rows);
        debug_assert!(are_rows, "a position is past the end of a column");
        taken
    }

    /// Copies rows. A position past the end gives a row of zeros, and clears `are_rows`.
    fn take_or_zeros(&self, rows: impl Iterator<Item = usize>, are_rows: &mut bool) -> Self {
        // A copy whose size is known at compile time is a move or two.
        self.with_bytes(match self.row_size() {
            1 => self.take_fixed::<1>(rows, are_rows),
            2 => self.take_fixed::<2>(rows, are_rows),
            4 => self.take_fixed::<4>(rows, are_rows),
            8 => self.take_fixed::<8>(rows, are_rows),
            12 => self.take_fixed::<12>(rows, are_rows),
            16 => self.take_fixed::<16>(rows, are_rows),
            24 => self.take_fixed::<24>(rows, are_rows),
            size => {
                let mut bytes = Vec::with_capacity(rows.size_hint().0.saturating_mul(size));
                for row in rows {
                    if let Some(row) = self.row(row) {
                        bytes.extend_from_slice(row);
                    } else {
                        *are_rows = false;
                        bytes.resize(bytes.len().saturating_add(size), 0);
                    }
                }
                bytes
            }
        })
    }

    fn take_fixed<const N: usize>(
        &self,
        rows: impl Iterator<Item = usize>,
        are_rows: &mut bool,
    ) -> Vec<u8> {
        let all = <[[u8; N]]>::ref_from_prefix(&self.bytes);
        let all = all.map_or([].as_slice(), |(all, _)| all);
        let row = |row: usize| {
            all.get(row).copied().unwrap_or_else(|| {
                *are_rows = false;
                [0; N]
            })
        };
        let rows: Vec<[u8; N]> = rows.map(row).collect();
        rows.into_flattened()
    }

    /// Appends the rows of another column.
    ///
    /// An empty column takes on the kind and width of `next`. Numbers of two real kinds become
    /// float64.
    ///
    /// # Errors
    ///
    /// [`AppendError`] if the widths differ, or one column of two kinds is complex; the column is
    /// unchanged then.
    pub fn append(&mut self, next: Self) -> Result<(), AppendError> {
        if self.is_empty() {
            *self = next;
            return Ok(());
        }
        if next.is_empty() {
            return Ok(());
        }
        if self.width != next.width {
            return Err(AppendError::Width {
                expected: self.width,
                found: next.width,
            });
        }
        if self.kind == next.kind {
            self.bytes.extend(next.bytes);
            return Ok(());
        }
        let kinds = AppendError::Kind {
            expected: self.kind,
            found: next.kind,
        };
        let (mut all, next) = self.to_float64().zip(next.to_float64()).ok_or(kinds)?;
        all.bytes.extend(next.bytes);
        *self = all;
        Ok(())
    }

    /// Converts to float64; `None` for complex numbers.
    fn to_float64(&self) -> Option<Self> {
        if matches!(self.kind, Kind::Complex64 | Kind::Complex128) {
            return None;
        }
        let view = self.view()?;
        let columns = || 0..self.width;
        let value = |row, column| view.value(row, column).map(Value::to_f64);
        let values = (0..view.rows())
            .flat_map(|row| columns().map(move |column| (row, column)))
            .map(|(row, column)| value(row, column).unwrap_or(f64::NAN));
        Some(Self::float64(self.width, values))
    }

    /// Appends rows of zeros up to `rows` rows.
    fn extend_to(&mut self, rows: usize) {
        let size = rows.saturating_mul(self.row_size());
        self.bytes.resize(size.max(self.bytes.len()), 0);
    }

    /// Inserts rows of zeros before the first.
    fn prepend(&mut self, rows: usize) {
        let count = rows.saturating_mul(self.row_size());
        self.bytes.splice(0..0, iter::repeat_n(0, count));
    }
}

/// Rows of a fixed width. `N` is at least 1, which the compiler checks.
impl<T: Element, const N: usize> From<Vec<[T; N]>> for NumericColumn {
    fn from(rows: Vec<[T; N]>) -> Self {
        const { assert!(N > 0, "a row has at least one number") }
        Self {
            bytes: encode(rows.as_flattened(), ByteOrder::Little),
            ..Self::new(T::KIND, u32::try_from(N).unwrap_or(u32::MAX))
        }
    }
}

/// One number to a row.
impl<T: Element> FromIterator<T> for NumericColumn {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        Self::from_values(1, values)
    }
}

/// A named attribute, one row for each vertex, link, fragment, object or group.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Name of the attribute.
    pub name: String,
    /// Values. A row that is null holds a placeholder.
    pub values: ColumnValues,
    /// `true` for each row without a value; `None` if every row has one.
    pub nulls: Option<Vec<bool>>,
}

/// Values of a [`Column`].
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnValues {
    /// Numbers, one or more to a row.
    Numeric(NumericColumn),
    /// Text as codes into a dictionary.
    Dictionary {
        /// Index in `words` for each row; a null row may hold [`NULL_CODE`].
        codes: Vec<u32>,
        /// Distinct words.
        words: Arc<[String]>,
    },
}

impl ColumnValues {
    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        match self {
            Self::Numeric(numbers) => numbers.len(),
            Self::Dictionary { codes, .. } => codes.len(),
        }
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Encodes text; `None` becomes [`NULL_CODE`]. The dictionary lists words in order of
    /// appearance.
    pub fn text<S: AsRef<str>>(rows: impl IntoIterator<Item = Option<S>>) -> Self {
        let mut dictionary = Dictionary::default();
        let code = |row: Option<S>| row.map_or(NULL_CODE, |word| dictionary.code(word.as_ref()));
        let codes = rows.into_iter().map(code).collect();
        let words = dictionary.words.into();
        Self::Dictionary { codes, words }
    }

    /// Returns the text of a row; `None` for numbers and codes without a word.
    pub fn text_at(&self, row: usize) -> Option<&str> {
        let Self::Dictionary { codes, words } = self else {
            return None;
        };
        let code = usize::try_from(*codes.get(row)?).ok()?;
        words.get(code).map(String::as_str)
    }

    /// Returns the text of every row as [`text_at`](Self::text_at) does.
    pub fn texts(&self) -> impl Iterator<Item = Option<&str>> {
        (0..self.len()).map(|row| self.text_at(row))
    }
}

impl From<NumericColumn> for ColumnValues {
    fn from(numbers: NumericColumn) -> Self {
        Self::Numeric(numbers)
    }
}

impl Column {
    /// Creates a column. Rows of text with [`NULL_CODE`] are null; every other row has a value.
    pub fn new(name: impl Into<String>, values: impl Into<ColumnValues>) -> Self {
        let values = values.into();
        let nulls = match &values {
            ColumnValues::Dictionary { codes, .. } if codes.contains(&NULL_CODE) => {
                Some(codes.iter().map(|code| *code == NULL_CODE).collect())
            }
            _ => None,
        };
        Self {
            name: name.into(),
            values,
            nulls,
        }
    }

    /// Creates a column of text; `None` is null. The dictionary lists words in order of appearance.
    pub fn text<S: AsRef<str>>(
        name: impl Into<String>,
        rows: impl IntoIterator<Item = Option<S>>,
    ) -> Self {
        Self::new(name, ColumnValues::text(rows))
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Returns whether a row has no value. A row past the end is not null.
    pub fn is_null(&self, row: usize) -> bool {
        let nulls = self.nulls.as_ref().and_then(|nulls| nulls.get(row));
        nulls.copied().unwrap_or(false)
    }

    /// Returns the text of a row; `None` for nulls, numbers and codes without a word.
    pub fn text_at(&self, row: usize) -> Option<&str> {
        let text = self.values.text_at(row);
        text.filter(|_| !self.is_null(row))
    }

    /// Returns the text of every row as [`text_at`](Self::text_at) does.
    pub fn texts(&self) -> impl Iterator<Item = Option<&str>> {
        (0..self.len()).map(|row| self.text_at(row))
    }

    /// Returns whether two rows have the same bytes or text, or are both null.
    pub fn rows_are_equal(&self, one: usize, other: usize) -> bool {
        match &self.values {
            _ if self.is_null(one) || self.is_null(other) => {
                self.is_null(one) == self.is_null(other)
            }
            ColumnValues::Numeric(numbers) => numbers.row(one) == numbers.row(other),
            ColumnValues::Dictionary { .. } => self.text_at(one) == self.text_at(other),
        }
    }

    /// Copies the rows at these positions, in this order. A position past the end gives a null.
    #[must_use]
    pub fn take(&self, rows: impl IntoIterator<Item = usize, IntoIter: Clone>) -> Self {
        let rows = rows.into_iter();
        let mut are_rows = true;
        let values = match &self.values {
            ColumnValues::Numeric(numbers) => {
                numbers.take_or_zeros(rows.clone(), &mut are_rows).into()
            }
            ColumnValues::Dictionary { codes, words } => ColumnValues::Dictionary {
                codes: rows
                    .clone()
                    .map(|row| {
                        codes.get(row).copied().unwrap_or_else(|| {
                            are_rows = false;
                            NULL_CODE
                        })
                    })
                    .collect(),
                words: Arc::clone(words),
            },
        };
        let len = self.len();
        let may_be_null = self.nulls.is_some() || !are_rows;
        let nulls = may_be_null.then(|| {
            rows.map(|row| row >= len || self.is_null(row))
                .collect::<Vec<bool>>()
        });
        Self {
            name: self.name.clone(),
            values,
            nulls: nulls.filter(|nulls| nulls.contains(&true)),
        }
    }

    /// Appends nulls up to `rows` rows. Does nothing to a column that has as many.
    pub fn extend_with_nulls(&mut self, rows: usize) {
        let before = self.len();
        if before >= rows {
            return;
        }
        let nulls = self.nulls.get_or_insert_with(|| vec![false; before]);
        nulls.resize(rows, true);
        match &mut self.values {
            ColumnValues::Numeric(numbers) => numbers.extend_to(rows),
            ColumnValues::Dictionary { codes, .. } => codes.resize(rows, NULL_CODE),
        }
    }

    /// Inserts nulls before the first row.
    pub fn prepend_nulls(&mut self, rows: usize) {
        if rows == 0 {
            return;
        }
        let own = self.len();
        let nulls = self.nulls.get_or_insert_with(|| vec![false; own]);
        nulls.splice(0..0, iter::repeat_n(true, rows));
        match &mut self.values {
            ColumnValues::Numeric(numbers) => numbers.prepend(rows),
            ColumnValues::Dictionary { codes, .. } => {
                codes.splice(0..0, iter::repeat_n(NULL_CODE, rows));
            }
        }
    }

    /// Appends the rows of another column; the name stays.
    ///
    /// Numbers append as [`NumericColumn::append`] does. Words of two dictionaries become one
    /// dictionary: the words of this column, then the new ones.
    ///
    /// # Errors
    ///
    /// [`AppendError`] if the values do not fit together. The column is damaged then.
    pub fn append(&mut self, next: Self) -> Result<(), AppendError> {
        let (before, after) = (self.len(), next.len());
        if self.nulls.is_some() || next.nulls.is_some() {
            let nulls = self.nulls.get_or_insert_with(|| vec![false; before]);
            nulls.extend(next.nulls.unwrap_or_else(|| vec![false; after]));
        }
        match (&mut self.values, next.values) {
            (ColumnValues::Numeric(numbers), ColumnValues::Numeric(next)) => numbers.append(next),
            (
                ColumnValues::Dictionary { codes, words },
                ColumnValues::Dictionary {
                    codes: more,
                    words: others,
                },
            ) => {
                append_codes(codes, words, &more, &others);
                Ok(())
            }
            (_, next) if next.is_empty() => Ok(()),
            (values, next) if values.is_empty() => {
                *values = next;
                Ok(())
            }
            _ => Err(AppendError::Text),
        }
    }
}

/// Appends codes of another dictionary and merges its words.
fn append_codes(
    codes: &mut Vec<u32>,
    words: &mut Arc<[String]>,
    more: &[u32],
    others: &Arc<[String]>,
) {
    if Arc::ptr_eq(words, others) || words == others {
        codes.extend(more);
        return;
    }
    let mut dictionary = Dictionary::of(words);
    let merged: Vec<u32> = others.iter().map(|word| dictionary.code(word)).collect();
    let code = |code: &u32| {
        let index = usize::try_from(*code).ok();
        let code = index.and_then(|index| merged.get(index));
        code.copied().unwrap_or(NULL_CODE)
    };
    codes.extend(more.iter().map(code));
    *words = dictionary.words.into();
}

/// Words and their codes while a dictionary grows.
#[derive(Default)]
struct Dictionary {
    words: Vec<String>,
    codes: HashMap<String, u32>,
}

impl Dictionary {
    /// Creates the map of a stored dictionary. If it repeats a word, new rows get the last code.
    fn of(words: &[String]) -> Self {
        Self {
            words: words.to_vec(),
            codes: words.iter().cloned().zip(0..).collect(),
        }
    }

    /// Returns the code of a word, which is added if it is new.
    fn code(&mut self, word: &str) -> u32 {
        if let Some(code) = self.codes.get(word) {
            return *code;
        }
        let code = u32::try_from(self.words.len()).unwrap_or(NULL_CODE);
        self.words.push(word.to_owned());
        self.codes.insert(word.to_owned(), code);
        code
    }
}

/// Reason that two columns cannot become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AppendError {
    /// Rows differ in width.
    #[error("rows of {found} numbers cannot follow rows of {expected}")]
    Width {
        /// Numbers in a row of the first column.
        expected: u32,
        /// Numbers in a row of the second.
        found: u32,
    },
    /// Kinds differ and one is complex.
    #[error("{} values cannot follow {} values", found.name(), expected.name())]
    Kind {
        /// Kind of the first column.
        expected: Kind,
        /// Kind of the second.
        found: Kind,
    },
    /// One column holds text and the other numbers.
    #[error("text and numbers cannot share a column")]
    Text,
}
