//! The columns that a predicate reads.

use zvf_model::column::Column;

use super::{ColumnView, FinishedView};
use crate::predicate::{ColumnRef, ColumnSource, Datum, FindError, ResolvedColumn, Scope};

/// Columns of any kind, as the source of a predicate.
pub(crate) struct ColumnViews<'a>(pub(crate) Vec<Box<dyn ColumnView + 'a>>);

impl<'a> ColumnViews<'a> {
    /// Wraps finished columns of one scope, row by row.
    pub(crate) fn of(scope: Scope, columns: &'a [Column]) -> Self {
        let mut views: Vec<Box<dyn ColumnView + 'a>> = Vec::new();
        for column in columns {
            let rows = None;
            views.push(Box::new(FinishedView {
                scope,
                column,
                rows,
            }));
        }
        Self(views)
    }
}

impl ColumnSource for ColumnViews<'_> {
    fn find(&self, column: &ColumnRef) -> Result<ResolvedColumn<'_>, FindError> {
        let found: Vec<_> = self
            .0
            .iter()
            .enumerate()
            .filter(|(_, view)| {
                column.scope.is_none_or(|scope| scope == view.scope()) && view.name() == column.name
            })
            .collect();
        let (id, view) = match found.as_slice() {
            [] => return Err(FindError::Absent),
            [one] => *one,
            several => {
                let scopes = several.iter().map(|(_, view)| view.scope());
                return Err(FindError::ambiguous(column, scopes, None));
            }
        };
        // A column without values has every channel.
        let named = || {
            column
                .channel
                .map_or(1, |channel| channel.saturating_add(1))
        };
        Ok(ResolvedColumn {
            id,
            channels: view.channels().unwrap_or_else(named),
            column_type: view.values(),
        })
    }

    fn cell(&self, id: usize, channel: u32, row: usize) -> Datum {
        let view = self.0.get(id);
        view.map_or(Datum::Missing, |view| view.value(row, channel))
    }

    fn exact_floats(&self, id: usize, channel: u32, rows: usize) -> Option<Vec<f64>> {
        self.0.get(id)?.exact_floats(channel, rows)
    }
}
