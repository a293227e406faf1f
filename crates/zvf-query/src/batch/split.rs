//! Division of a batch into smaller ones.

use core::ops::Range;
use std::collections::HashMap;

use zvf_model::{column::Column, object_ids::ObjectIds};

use crate::result::{Links, Parts, QueryResult};

/// A batch that is cut into smaller ones, which are copied out of it one by one.
///
/// Vertices come first, then links. A path is not cut: one that is longer than a batch is a batch
/// of its own.
pub(crate) struct SplitResult {
    /// The whole batch; `None` when all of it was returned.
    whole: Option<QueryResult>,
    max_rows: usize,
    next_vertex: usize,
    next_part: usize,
    next_link: usize,
    /// Rows of objects of paths that no batch has listed yet, by id.
    unlisted: Option<HashMap<i64, usize>>,
}

impl SplitResult {
    pub(crate) fn new(whole: QueryResult, max_rows: usize) -> Self {
        Self {
            whole: Some(whole),
            max_rows: max_rows.max(1),
            next_vertex: 0,
            next_part: 0,
            next_link: 0,
            unlisted: None,
        }
    }

    /// Returns the next rows of vertices, and the next parts.
    fn next_vertices(&self, whole: &QueryResult) -> (Range<usize>, Range<usize>) {
        let vertices = whole.positions.len();
        let Some(parts) = &whole.parts else {
            let end = self.next_vertex.saturating_add(self.max_rows);
            return (self.next_vertex..end.min(vertices), 0..0);
        };
        let end_of = |part: usize| {
            let end = parts.offsets.get(part.saturating_add(1));
            let end = end.map_or(u64::MAX, |end| end.saturating_sub(whole.first_row));
            usize::try_from(end).unwrap_or(usize::MAX).min(vertices)
        };
        let max = self.next_vertex.saturating_add(self.max_rows);
        let mut part = self.next_part;
        while part < parts.objects.len()
            && (part == self.next_part || end_of(part) <= max)
            // Parts without vertices are limited as well.
            && part.saturating_sub(self.next_part) < self.max_rows
        {
            part = part.saturating_add(1);
        }
        let end = if part < parts.objects.len() {
            end_of(part.saturating_sub(1)).max(self.next_vertex)
        } else {
            vertices
        };
        (self.next_vertex..end, self.next_part..part)
    }

    /// Returns the rows of objects that a batch with these parts lists.
    fn objects(&mut self, whole: &QueryResult, parts: &Range<usize>, is_last: bool) -> Vec<usize> {
        let Some(all) = &whole.parts else {
            return if is_last {
                (0..whole.objects.len()).collect()
            } else {
                Vec::new()
            };
        };
        let unlisted = self.unlisted.get_or_insert_with(|| {
            let objects = whole.objects.iter().enumerate();
            objects.map(|(row, id)| (*id, row)).collect()
        });
        let ids = all.objects.get(parts.clone()).unwrap_or_default();
        let mut rows: Vec<usize> = ids.iter().filter_map(|id| unlisted.remove(id)).collect();
        if is_last {
            let mut rest: Vec<usize> = unlisted.drain().map(|(_, row)| row).collect();
            rest.sort_unstable();
            rows.extend(rest);
        }
        rows
    }
}

impl Iterator for SplitResult {
    type Item = QueryResult;

    fn next(&mut self) -> Option<QueryResult> {
        let mut whole = self.whole.take()?;
        let (vertices, links) = (whole.positions.len(), count_links(&whole));
        let is_first = self.next_vertex == 0 && self.next_part == 0 && self.next_link == 0;
        if is_first && vertices <= self.max_rows && links <= self.max_rows {
            return Some(whole);
        }
        let all_parts = whole.parts.as_ref().map_or(0, |parts| parts.objects.len());
        let has_vertices =
            self.next_vertex < vertices || self.next_part < all_parts || (is_first && links == 0);
        let mut next = QueryResult {
            level: whole.level,
            axes: whole.axes.clone(),
            first_row: whole.first_row,
            ..QueryResult::default()
        };
        if is_first {
            next.groups = core::mem::take(&mut whole.groups);
            next.levels = core::mem::take(&mut whole.levels);
            next.skipped = core::mem::take(&mut whole.skipped);
            next.notes = core::mem::take(&mut whole.notes);
        }
        let (rows, parts, ends) = if has_vertices {
            let (rows, parts) = self.next_vertices(&whole);
            (rows, parts, 0..0)
        } else {
            let end = self.next_link.saturating_add(self.max_rows).min(links);
            (
                vertices..vertices,
                all_parts..all_parts,
                self.next_link..end,
            )
        };
        let is_last_vertex = has_vertices && rows.end >= vertices && parts.end >= all_parts;
        let objects = self.objects(&whole, &parts, is_last_vertex);
        let before = u64::try_from(rows.start).unwrap_or(u64::MAX);
        next.first_row = whole.first_row.saturating_add(before);
        next.positions = whole.positions.take_existing(rows.clone());
        next.vertex = take(&whole.vertex, rows.clone());
        next.fragment = take(&whole.fragment, rows.clone());
        next.link = take(&whole.link, ends.clone());
        next.object = take_rows(&whole.object, &objects);
        let objects = objects.iter();
        next.objects = objects
            .filter_map(|row| whole.objects.get(*row).copied())
            .collect();
        next.object_ids = whole
            .object_ids
            .as_ref()
            .map(|ids| ObjectIds::from_numbers(copy(ids.numbers(), &rows)));
        next.row_ids = whole.row_ids.as_ref().map(|ids| copy(ids, &rows));
        next.parts = whole.parts.as_ref().map(|all| Parts {
            offsets: copy(&all.offsets, &(parts.start..parts.end.saturating_add(1))),
            objects: copy(&all.objects, &parts),
        });
        next.links = whole.links.as_ref().map(|all| {
            let width = usize::try_from(all.width).unwrap_or(usize::MAX);
            let of = |link: usize| link.saturating_mul(width);
            Links {
                width: all.width,
                ends: copy(&all.ends, &(of(ends.start)..of(ends.end))),
            }
        });
        next.distances = whole.distances.as_ref().map(|all| {
            if whole.parts.is_some() {
                copy(all, &parts)
            } else if whole.links.is_some() {
                copy(all, &ends)
            } else {
                copy(all, &rows)
            }
        });
        if has_vertices {
            (self.next_vertex, self.next_part) = (rows.end, parts.end);
        } else {
            self.next_link = ends.end;
        }
        let is_done =
            self.next_vertex >= vertices && self.next_part >= all_parts && self.next_link >= links;
        if !is_done {
            self.whole = Some(whole);
        }
        Some(next)
    }
}

fn count_links(result: &QueryResult) -> usize {
    result.links.as_ref().map_or(0, Links::len)
}

fn copy<T: Clone>(values: &[T], rows: &Range<usize>) -> Vec<T> {
    values.get(rows.clone()).unwrap_or_default().to_vec()
}

fn take(columns: &[Column], rows: Range<usize>) -> Vec<Column> {
    let columns = columns.iter();
    columns.map(|column| column.take(rows.clone())).collect()
}

fn take_rows(columns: &[Column], rows: &[usize]) -> Vec<Column> {
    let columns = columns.iter();
    columns
        .map(|column| column.take(rows.iter().copied()))
        .collect()
}
