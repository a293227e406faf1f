//! What a predicate is asked of.

use super::{ColumnRef, Number};

/// Attributes of rows, whatever holds them.
///
/// What a row is, the caller says: when a predicate has columns of several
/// scopes, [`cell`](Self::cell) finds the object or fragment of a vertex.
pub trait ColumnSource {
    /// The column of this scope and name. Called once for each time a
    /// predicate names it; the channel does not matter.
    ///
    /// # Errors
    ///
    /// [`FindError`] when there is not exactly one.
    fn find(&self, column: &ColumnRef) -> Result<ResolvedColumn<'_>, FindError>;

    /// One value. The row of a predicate, and the id and a channel of a column
    /// that was found; what is past the end is missing.
    fn cell(&self, id: usize, channel: u32, row: usize) -> Datum;

    /// A channel of the first so many rows at once, when each is a number that a
    /// 64-bit float holds exactly. `None` otherwise, and where that is not easily
    /// said: then values are asked for one by one.
    fn exact_floats(&self, _id: usize, _channel: u32, _rows: usize) -> Option<Vec<f64>> {
        None
    }
}

/// A column that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct ResolvedColumn<'a> {
    /// What [`ColumnSource::cell`] knows it by.
    pub id: usize,
    /// How many values a row has.
    pub channels: u32,
    /// What the values are.
    pub values: ColumnType<'a>,
}

/// What the values of a column are.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnType<'a> {
    /// [`Datum::Bool`]
    Bool,
    /// [`Datum::Number`]
    Numbers,
    /// [`Datum::Category`], by the words they stand for.
    Categories(Vec<&'a str>),
}

/// One value of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Datum {
    /// None: what `is null` holds for.
    Missing,
    /// Of a bool column.
    Bool(bool),
    /// Of a column of numbers.
    Number(Number),
    /// The number of a word. Of one past the last word, which a column ought
    /// to give as missing, every comparison is unknown.
    Category(u32),
}

/// What the values of a comparison are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueType {
    /// True or false.
    Bool,
    /// Any number.
    Number,
    /// Text.
    Text,
}

impl std::fmt::Display for ValueType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Bool => "a bool",
            Self::Number => "a number",
            Self::Text => "text",
        })
    }
}

/// Why there is no column to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FindError {
    /// None has this scope and name.
    #[error("there is no such column")]
    Absent,
    /// Several scopes have this name.
    #[error("several scopes have it: put one before the name")]
    Ambiguous,
}
