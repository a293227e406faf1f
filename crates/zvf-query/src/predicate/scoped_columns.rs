//! Columns of results as the columns of predicates.

use zvf_catalog::Scope;
use zvf_format::numeric::{Kind, Value};
use zvf_model::column::{Column, ColumnValues};

use super::{ColumnRef, ColumnSource, ColumnType, Datum, FindError, Number, ResolvedColumn};

/// Returns the width and the type that predicates compare; `None` for complex
/// numbers, which do not compare.
fn comparable(column: &Column) -> Option<(u32, ColumnType<'_>)> {
    match &column.values {
        ColumnValues::Numeric(rows) => match rows.kind {
            Kind::Complex64 | Kind::Complex128 => None,
            Kind::Bool => Some((rows.width, ColumnType::Bool)),
            Kind::Float32 => Some((rows.width, ColumnType::Float32)),
            _ => Some((rows.width, ColumnType::Numbers)),
        },
        ColumnValues::Dictionary { words, .. } => {
            let words = words.iter().map(String::as_str).collect();
            Some((1, ColumnType::Categories(words)))
        }
    }
}

/// Returns one value; a row or channel past the end is missing.
fn cell(column: &Column, channel: u32, row: usize) -> Datum {
    if column.is_null(row) {
        return Datum::Missing;
    }
    match &column.values {
        ColumnValues::Numeric(rows) => {
            let value = rows.view().and_then(|rows| rows.value(row, channel));
            match value {
                Some(Value::Bool(value)) => Datum::Bool(value),
                Some(Value::Int(value)) => Datum::Number(Number::Int(value)),
                Some(Value::UInt(value)) => Datum::Number(Number::UInt(value)),
                Some(Value::Float(value)) => Datum::Number(Number::Float(value)),
                Some(Value::Complex { .. }) | None => Datum::Missing,
            }
        }
        ColumnValues::Dictionary { codes, words } => {
            let code = codes.get(row).copied();
            let code = code.filter(|code| usize::try_from(*code).is_ok_and(|c| c < words.len()));
            code.filter(|_| channel == 0)
                .map_or(Datum::Missing, Datum::Category)
        }
    }
}

/// Columns of several scopes with a common row index.
#[derive(Clone, Debug, Default)]
pub struct ScopedColumns<'a> {
    columns: Vec<(Scope, &'a Column)>,
}

impl<'a> ScopedColumns<'a> {
    /// Adds a column. A column that cannot be compared is never found.
    pub fn add(&mut self, scope: Scope, column: &'a Column) {
        self.columns.push((scope, column));
    }
}

impl ColumnSource for ScopedColumns<'_> {
    fn find(&self, column: &ColumnRef) -> Result<ResolvedColumn<'_>, FindError> {
        let columns = self.columns.iter().enumerate();
        let mut found = columns.filter_map(|(id, (scope, candidate))| {
            let is_of_scope = column.scope.is_none_or(|wanted| wanted == *scope);
            let (channels, values) = comparable(candidate)?;
            let resolved = ResolvedColumn {
                id,
                channels,
                column_type: values,
            };
            (is_of_scope && candidate.name == column.name).then_some((*scope, resolved))
        });
        let (scope, first) = found.next().ok_or(FindError::Absent)?;
        let others: Vec<Scope> = found.map(|(scope, _)| scope).collect();
        if others.is_empty() {
            Ok(first)
        } else {
            let scopes = [scope].into_iter().chain(others);
            Err(FindError::ambiguous(column, scopes, None))
        }
    }

    fn cell(&self, id: usize, channel: u32, row: usize) -> Datum {
        let column = self.columns.get(id);
        column.map_or(Datum::Missing, |(_, column)| cell(column, channel, row))
    }
}
