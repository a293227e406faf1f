//! Columns as predicates see them.

use zvf_format::numeric::{Kind, Value};

use crate::{
    predicate::{self, Cell, Columns, FindError, Found, Number, Scope},
    result::{Column, Values},
};

impl Column {
    /// Values of a row, and what a predicate compares them with; `None` for
    /// complex numbers, which do not compare.
    pub fn comparable(&self) -> Option<(u32, predicate::Values<'_>)> {
        match &self.values {
            Values::Numbers(rows) => match rows.kind {
                Kind::Complex64 | Kind::Complex128 => None,
                Kind::Bool => Some((rows.columns, predicate::Values::Bool)),
                _ => Some((rows.columns, predicate::Values::Numbers)),
            },
            Values::Words { words, .. } => {
                let words = words.iter().map(String::as_str).collect();
                Some((1, predicate::Values::Words(words)))
            }
        }
    }

    /// One value as a predicate sees it. What is past the end is missing.
    pub fn cell(&self, channel: u32, row: usize) -> Cell {
        if self.is_missing(row) {
            return Cell::Missing;
        }
        match &self.values {
            Values::Numbers(rows) => {
                let value = rows.view().and_then(|rows| rows.value(row, channel));
                match value {
                    Some(Value::Bool(value)) => Cell::Bool(value),
                    Some(Value::Int(value)) => Cell::Number(Number::Int(value)),
                    Some(Value::UInt(value)) => Cell::Number(Number::UInt(value)),
                    Some(Value::Float(value)) => Cell::Number(Number::Float(value)),
                    Some(Value::Complex { .. }) | None => Cell::Missing,
                }
            }
            Values::Words { codes, words } => {
                let code = codes.get(row).copied();
                let code =
                    code.filter(|code| usize::try_from(*code).is_ok_and(|c| c < words.len()));
                code.filter(|_| channel == 0)
                    .map_or(Cell::Missing, Cell::Category)
            }
        }
    }
}

/// Columns of several scopes with the same rows.
#[derive(Clone, Debug, Default)]
pub struct ScopedColumns<'a> {
    columns: Vec<(Scope, &'a Column)>,
}

impl<'a> ScopedColumns<'a> {
    /// Adds a column. One that does not compare is not found.
    pub fn add(&mut self, scope: Scope, column: &'a Column) {
        self.columns.push((scope, column));
    }
}

impl Columns for ScopedColumns<'_> {
    fn find(&self, column: &predicate::Column) -> Result<Found<'_>, FindError> {
        let columns = self.columns.iter().enumerate();
        let mut found = columns.filter_map(|(id, (scope, candidate))| {
            let scope = column.scope.is_none_or(|wanted| wanted == *scope);
            let (channels, values) = candidate.comparable()?;
            (scope && candidate.name == column.name).then_some(Found {
                id,
                channels,
                values,
            })
        });
        let first = found.next().ok_or(FindError::Absent)?;
        match found.next() {
            None => Ok(first),
            Some(_) => Err(FindError::Ambiguous),
        }
    }

    fn cell(&self, id: usize, channel: u32, row: usize) -> Cell {
        let column = self.columns.get(id);
        column.map_or(Cell::Missing, |(_, column)| column.cell(channel, row))
    }
}
