//! Errors of conversions.

use arrow_schema::{ArrowError, DataType};

/// An error of a conversion.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConversionError {
    /// A column has a type that the conversion does not support.
    #[error("column {column:?} has the type {found}, expected {expected}")]
    Type {
        /// The column.
        column: String,
        /// Its type.
        found: DataType,
        /// The supported types.
        expected: &'static str,
    },
    /// A column that every result has is missing.
    #[error("the column {0:?} is missing")]
    Missing(&'static str),
    /// A column has null values where there can be none.
    #[error("column {0:?} has null values")]
    Nulls(String),
    /// The words of a text exceed the 2 GiB of a dictionary.
    #[error("the words of column {0:?} exceed 2 GiB")]
    Words(String),
    /// The bytes of a column end inside a row.
    #[error("column {0:?} ends inside a row")]
    Incomplete(String),
    /// The paths do not cover the vertices one after the other.
    #[error("part {0} does not begin where the one before ends")]
    Parts(usize),
    /// The metadata of the schema cannot be parsed.
    #[error("the metadata {0:?} of the schema is not valid")]
    Metadata(&'static str),
    /// Arrow rejects the columns.
    #[error(transparent)]
    Arrow(#[from] ArrowError),
    /// The store cannot be read, or the batches cannot be written.
    #[error(transparent)]
    Store(#[from] zvf::Error),
}
