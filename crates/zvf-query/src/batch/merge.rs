//! Pieces of an answer put together.
//!
//! Pieces of one level have the same columns of the same types; one that a piece
//! lacks it has no rows for. Pieces of several levels may differ: rows of a level that
//! has no such attribute have no value, numbers of different types become float64,
//! and words are those of both dictionaries.

use core::ops::ControlFlow;
use std::{collections::HashMap, sync::Arc};

use zvf_format::numeric::Kind;

use crate::{
    batch::columns::bytes_of,
    error::QueryError,
    result::{Column, Links, NO_OBJECT, QueryResult, Rows, Values},
};

impl QueryResult {
    /// Appends the next piece of an answer.
    ///
    /// # Errors
    ///
    /// [`QueryError::Mixed`] when levels have an attribute in widths of their own.
    pub(crate) fn append(&mut self, next: Self) -> Result<(), QueryError> {
        let (before, rows) = (self.positions.len(), next.positions.len());
        if !self.positions.append(next.positions) {
            return Err(QueryError::Mixed("positions".to_owned()));
        }
        if self.object_ids.is_some() || next.object_ids.is_some() {
            let ids = self.object_ids.get_or_insert_default();
            ids.resize(before, NO_OBJECT);
            ids.extend(next.object_ids.into_iter().flatten());
            ids.resize(before.saturating_add(rows), NO_OBJECT);
        }
        match (&mut self.parts, next.parts) {
            (Some(parts), Some(next)) => {
                parts.offsets.extend(next.offsets.into_iter().skip(1));
                parts.objects.extend(next.objects);
            }
            (None, parts) => self.parts = parts,
            _ => {}
        }
        let links = |links: Option<&Links>| links.map_or(0, Links::len);
        let (links_before, more_links) = (links(self.links.as_ref()), links(next.links.as_ref()));
        match (&mut self.links, next.links) {
            (Some(links), Some(next)) if links.ends.is_empty() => *links = next,
            (Some(links), Some(next)) => links.ends.extend(next.ends),
            (None, links) => self.links = links,
            _ => {}
        }
        let (objects, more_objects) = (self.objects.len(), next.objects.len());
        append(&mut self.vertex, next.vertex, before, rows)?;
        append(&mut self.fragment, next.fragment, before, rows)?;
        append(&mut self.link, next.link, links_before, more_links)?;
        append(&mut self.object, next.object, objects, more_objects)?;
        self.objects.extend(next.objects);
        self.groups.extend(next.groups);
        self.origins.extend(next.origins);
        Ok(())
    }
}

/// Appends columns of so many rows to those of the same name.
fn append(
    columns: &mut Vec<Column>,
    next: Vec<Column>,
    before: usize,
    rows: usize,
) -> Result<(), QueryError> {
    for next in next {
        match columns.iter_mut().find(|column| column.name == next.name) {
            Some(column) => {
                column.fill(before);
                column.append(next)?;
            }
            None => {
                let mut column = next;
                column.put_before(before);
                columns.push(column);
            }
        }
    }
    let after = before.saturating_add(rows);
    for column in columns {
        column.fill(after);
    }
    Ok(())
}

impl Column {
    /// Appends rows without a value until there are so many.
    fn fill(&mut self, rows: usize) {
        let before = self.values.len();
        if before >= rows {
            return;
        }
        let missing = self.missing.get_or_insert_with(|| vec![false; before]);
        missing.resize(rows, true);
        match &mut self.values {
            Values::Numbers(numbers) => {
                let size = rows.saturating_mul(numbers.row_size());
                numbers.bytes.resize(size, 0);
            }
            Values::Words { codes, .. } => codes.resize(rows, u32::MAX),
        }
    }

    /// Puts so many rows without a value before the others.
    fn put_before(&mut self, rows: usize) {
        if rows == 0 {
            return;
        }
        let own = self.values.len();
        let missing = self.missing.take().unwrap_or_else(|| vec![false; own]);
        self.missing = Some([vec![true; rows], missing].concat());
        match &mut self.values {
            Values::Numbers(numbers) => {
                let gap = vec![0; rows.saturating_mul(numbers.row_size())];
                numbers.bytes = [gap, core::mem::take(&mut numbers.bytes)].concat();
            }
            Values::Words { codes, .. } => *codes = [vec![u32::MAX; rows], codes.clone()].concat(),
        }
    }

    fn append(&mut self, next: Self) -> Result<(), QueryError> {
        let (before, after) = (self.values.len(), next.values.len());
        if self.missing.is_some() || next.missing.is_some() {
            let missing = self.missing.get_or_insert_with(|| vec![false; before]);
            missing.extend(next.missing.unwrap_or_else(|| vec![false; after]));
        }
        let fits = match (&mut self.values, next.values) {
            (Values::Numbers(rows), Values::Numbers(next)) => rows.append(next),
            (
                Values::Words { codes, words },
                Values::Words {
                    codes: more,
                    words: others,
                },
            ) => {
                append_words(codes, words, &more, &others);
                true
            }
            (_, next) if next.is_empty() => true,
            (values, next) if values.is_empty() => {
                *values = next;
                true
            }
            _ => false,
        };
        match fits {
            true => Ok(()),
            false => Err(QueryError::Mixed(self.name.clone())),
        }
    }
}

/// Appends codes of other words, which become words of the first.
fn append_words(
    codes: &mut Vec<u32>,
    words: &mut Arc<[String]>,
    more: &[u32],
    others: &Arc<[String]>,
) {
    if Arc::ptr_eq(words, others) || words == others {
        codes.extend(more);
        return;
    }
    let mut all = words.to_vec();
    let numbers = (0_u32..).zip(all.iter().cloned());
    let mut numbers: HashMap<String, u32> = numbers.map(|(at, word)| (word, at)).collect();
    let mut moved = Vec::with_capacity(others.len());
    for word in others.iter() {
        let new = u32::try_from(all.len()).unwrap_or(u32::MAX);
        moved.push(*numbers.entry(word.clone()).or_insert_with(|| {
            all.push(word.clone());
            new
        }));
    }
    let moved = |code: &u32| {
        let at = usize::try_from(*code).ok();
        at.and_then(|at| moved.get(at)).copied().unwrap_or(u32::MAX)
    };
    codes.extend(more.iter().map(moved));
    *words = all.into();
}

impl Rows {
    /// Appends rows; no rows take on the kind of the next, and numbers of other kinds
    /// become float64. `false` when rows are not as wide.
    fn append(&mut self, next: Self) -> bool {
        if self.is_empty() {
            *self = next;
            return true;
        }
        if next.is_empty() {
            return true;
        }
        if self.columns != next.columns {
            return false;
        }
        if self.kind == next.kind {
            self.bytes.extend(next.bytes);
            return true;
        }
        let both = self.as_float64().zip(next.as_float64());
        let Some((rows, next)) = both else {
            return false;
        };
        *self = rows;
        self.bytes.extend(next.bytes);
        true
    }

    /// The rows as float64; `None` when they are no real numbers.
    fn as_float64(&self) -> Option<Self> {
        if matches!(self.kind, Kind::Complex64 | Kind::Complex128) {
            return None;
        }
        let view = self.view()?;
        let mut rows = Self::new(Kind::Float64, self.columns);
        for row in 0..view.rows() {
            for column in 0..self.columns {
                let value = view.value(row, column)?.to_f64();
                rows.bytes.extend(bytes_of(value, Kind::Float64));
            }
        }
        Some(rows)
    }
}

/// Batches of a result, appended to each other.
#[derive(Default)]
pub(crate) struct CollectedResult {
    answer: Option<QueryResult>,
    error: Option<QueryError>,
}

impl CollectedResult {
    pub(crate) fn push(&mut self, batch: QueryResult, budget: u64) -> ControlFlow<()> {
        let appended = match &mut self.answer {
            None => {
                self.answer = Some(batch);
                Ok(())
            }
            Some(whole) => whole.append(batch),
        };
        let bytes = self.answer.as_ref().map_or(0, QueryResult::size);
        self.error = match appended {
            Err(error) => Some(error),
            Ok(()) if bytes > budget => Some(over_budget(bytes, budget)),
            Ok(()) => return ControlFlow::Continue(()),
        };
        ControlFlow::Break(())
    }

    pub(crate) fn finish(self) -> Result<Option<QueryResult>, QueryError> {
        self.error.map_or(Ok(self.answer), Err)
    }
}

pub(crate) fn over_budget(bytes: u64, budget: u64) -> QueryError {
    let what = "what is selected would";
    QueryError::OverBudget {
        what,
        bytes,
        budget,
    }
}

#[cfg(test)]
mod tests;
