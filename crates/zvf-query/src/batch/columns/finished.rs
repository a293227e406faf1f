//! Finished columns as the source of predicates.

use zvf_format::numeric::Kind;

use super::{ColumnView, cell_of};
use crate::predicate::{ColumnType, Datum, Scope};
use zvf_model::column::{Column, ColumnValues};

/// A finished column, row by row or through a list of rows.
pub(crate) struct FinishedView<'a> {
    pub(crate) scope: Scope,
    pub(crate) column: &'a Column,
    /// The row of the column for each row of the predicate; `None` for all in order.
    pub(crate) rows: Option<&'a [Option<usize>]>,
}

impl ColumnView for FinishedView<'_> {
    fn scope(&self) -> Scope {
        self.scope
    }

    fn name(&self) -> &str {
        &self.column.name
    }

    fn channels(&self) -> Option<u32> {
        match &self.column.values {
            ColumnValues::Numeric(rows) => Some(rows.width),
            ColumnValues::Dictionary { .. } => Some(1),
        }
    }

    fn values(&self) -> ColumnType<'_> {
        match &self.column.values {
            ColumnValues::Numeric(rows) => match rows.kind {
                Kind::Bool => ColumnType::Bool,
                Kind::Float32 => ColumnType::Float32,
                _ => ColumnType::Numbers,
            },
            ColumnValues::Dictionary { words, .. } => {
                ColumnType::Categories(words.iter().map(String::as_str).collect())
            }
        }
    }

    fn value(&self, row: usize, channel: u32) -> Datum {
        let row = match self.rows {
            Some(rows) => rows.get(row).copied().flatten(),
            None => Some(row),
        };
        let Some(row) = row.filter(|row| !self.column.is_null(*row)) else {
            return Datum::Missing;
        };
        match &self.column.values {
            ColumnValues::Numeric(rows) => {
                cell_of(rows.view().and_then(|rows| rows.value(row, channel)))
            }
            ColumnValues::Dictionary { codes, .. } => codes
                .get(row)
                .map_or(Datum::Missing, |code| Datum::Category(*code)),
        }
    }
}
