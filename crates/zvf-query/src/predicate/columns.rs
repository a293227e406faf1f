//! The columns a predicate is evaluated on.

use super::{ColumnRef, Number, Scope};

/// A set of attribute columns with a common row index.
///
/// The implementation defines the rows. For a predicate over several scopes,
/// [`cell`](Self::cell) maps a vertex to its object or fragment.
pub trait ColumnSource {
    /// Finds the column of this scope and name, regardless of the channel. Called once per
    /// reference in a predicate.
    ///
    /// # Errors
    ///
    /// Returns [`FindError`] if there is not exactly one.
    fn find(&self, column: &ColumnRef) -> Result<ResolvedColumn<'_>, FindError>;

    /// Returns the value of a row in one channel of a resolved column. Values past the end are
    /// [`Datum::Missing`].
    fn cell(&self, id: usize, channel: u32, row: usize) -> Datum;

    /// Returns rows `0..rows` of one channel, if every value is a number that is exact as f64.
    /// Returns `None` if not, or if that is expensive to determine; the caller then reads the
    /// values one by one with [`cell`](Self::cell).
    fn exact_floats(&self, _id: usize, _channel: u32, _rows: usize) -> Option<Vec<f64>> {
        None
    }
}

/// A column found by [`ColumnSource::find`].
#[derive(Clone, Debug, PartialEq)]
pub struct ResolvedColumn<'a> {
    /// Identifier passed to [`ColumnSource::cell`].
    pub id: usize,
    /// Number of values per row.
    pub channels: u32,
    /// Type of the values.
    pub column_type: ColumnType<'a>,
}

/// The type of a column's values.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnType<'a> {
    /// [`Datum::Bool`]
    Bool,
    /// [`Datum::Number`]
    Numbers,
    /// [`Datum::Number`] of 32-bit floats. A number with decimals is compared as the nearest of these.
    Float32,
    /// [`Datum::Category`], with the text of each category.
    Categories(Vec<&'a str>),
}

/// One value of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Datum {
    /// No value; `is null` holds. A [`Number`] that is NaN is treated alike.
    Missing,
    /// A value of a bool column.
    Bool(bool),
    /// A value of a numeric column.
    Number(Number),
    /// The index of a category. Comparisons with an index past the last category are unknown;
    /// columns should report such values as missing.
    Category(u32),
}

impl Datum {
    /// Returns [`Datum::Missing`] for NaN, and every other value unchanged.
    pub(super) fn nan_as_missing(self) -> Self {
        match self {
            Self::Number(number) if number.is_nan() => Self::Missing,
            value => value,
        }
    }
}

/// The type of an operand of a comparison.
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

/// Error of [`ColumnSource::find`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FindError {
    /// No column has this scope and name.
    #[error("there is no such column")]
    Absent,
    /// Several columns have this name.
    #[error("several columns have this name; write {}", choice(columns, axis.as_deref()))]
    Ambiguous {
        /// The attributes of this name, with their scopes.
        columns: Vec<String>,
        /// Another spelling of the axis of this name, if it is one of the columns.
        axis: Option<String>,
    },
}

impl FindError {
    /// Creates the error for a name of attributes in these scopes and perhaps of an axis, which has
    /// another spelling.
    pub fn ambiguous(
        column: &ColumnRef,
        scopes: impl IntoIterator<Item = Scope>,
        axis: Option<String>,
    ) -> Self {
        let columns = scopes.into_iter().map(|scope| {
            let scope = Some(scope);
            let column = column.clone();
            ColumnRef { scope, ..column }.to_string()
        });
        Self::Ambiguous {
            columns: columns.collect(),
            axis,
        }
    }
}

/// Lists the spellings that mean one column each.
fn choice(columns: &[String], axis: Option<&str>) -> String {
    let columns = columns.join(" or ");
    match axis {
        Some(axis) => format!("{columns}, or {axis} for the axis"),
        None => columns,
    }
}
