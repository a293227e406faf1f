//! Selection of rows by region and predicate.

use core::ops::Range;
use std::borrow::Cow;

use super::{
    clip::{self, Ends},
    paths::{Path, PathSegment, PathWork},
};
use crate::{
    batch::{loaded::LoadedChunks, vertices::Owners},
    catalog::{chunk::Chunk, objects::ObjectSet, schema::Schema},
    diagnostics::Diagnostics,
    error::QueryError,
    geometry::{Mode, Primitive},
    query::Clip,
    resolve::query::{LevelQuery, VertexFilter},
    selection::{RowRef, RowSelection},
};

/// Vertices that a predicate is evaluated on at once: its columns stay in the cache.
const ROWS_PER_EVALUATION: usize = 1 << 12;
/// Mean length of runs from which on a predicate is evaluated run by run.
const LONG_RUN: usize = 64;

impl LevelQuery<'_> {
    /// Returns the predicate on vertices with the columns of objects that it looks at.
    pub(crate) async fn vertex_filter(
        &self,
        objects: Option<&ObjectSet>,
        diagnostics: &Diagnostics,
    ) -> Result<VertexFilter<'_>, QueryError> {
        let predicate = self.filter.vertex.as_ref();
        let object_columns = if self.filter.vertex_needs_objects() {
            self.object_columns_of_filter(objects, diagnostics).await?
        } else {
            Vec::new()
        };
        Ok(VertexFilter {
            predicate,
            object_columns,
        })
    }

    /// Returns the vertices of a chunk that region and predicate select.
    pub(crate) fn selected_rows(
        &self,
        schema: &Schema,
        chunk: &Chunk,
        filter: &VertexFilter<'_>,
        owners: &Owners,
    ) -> Result<RowSelection, QueryError> {
        let mut selected = chunk.runs();
        self.retain_selected(schema, chunk, &mut selected, filter, owners)?;
        Ok(selected)
    }

    /// Drops vertices outside the region or rejected by the predicate.
    pub(crate) fn retain_selected(
        &self,
        schema: &Schema,
        chunk: &Chunk,
        vertices: &mut RowSelection,
        filter: &VertexFilter<'_>,
        owners: &Owners,
    ) -> Result<(), QueryError> {
        if let Some(inside) = self.inside(schema, chunk) {
            vertices.keep_places(&inside);
        }
        if filter.predicate.is_some() {
            let mut holds = Vec::with_capacity(vertices.len());
            let is_long = vertices.spans().count().saturating_mul(LONG_RUN) <= vertices.len();
            if is_long && filter.is_of_vertices(schema) {
                for span in vertices.spans() {
                    for first in span.clone().step_by(ROWS_PER_EVALUATION) {
                        let end = first.saturating_add(ROWS_PER_EVALUATION).min(span.end);
                        holds.extend_from_slice(&filter.holds_at(schema, chunk, first..end)?);
                    }
                }
                vertices.keep_those(&holds);
                return Ok(());
            }
            let mut some: Vec<RowRef> = Vec::new();
            let mut entries = vertices.entries().peekable();
            while entries.peek().is_some() {
                some.clear();
                some.extend(entries.by_ref().take(ROWS_PER_EVALUATION));
                holds.extend(filter.holds(schema, chunk, &some, owners)?);
            }
            drop(entries);
            vertices.keep_those(&holds);
        }
        Ok(())
    }

    /// Returns, for each row in memory, whether it is in the region; `None` without a region.
    pub(crate) fn inside(&self, schema: &Schema, chunk: &Chunk) -> Option<Vec<bool>> {
        let area = self.area.as_ref()?;
        let rows = usize::try_from(chunk.held.rows()).unwrap_or(usize::MAX);
        let mut inside = vec![false; rows];
        let axes = u32::try_from(schema.axes).ok()?.try_into().ok()?;
        let positions =
            zvf_format::numeric::NumericRows::parse(&chunk.positions, schema.dtype, axes).ok()?;
        if let Some(bbox) = area.bbox() {
            let mut selected = Vec::new();
            if bbox.select_rows(positions, &mut selected).is_ok() {
                for place in selected {
                    if let Some(inside) = inside.get_mut(place) {
                        *inside = true;
                    }
                }
                return Some(inside);
            }
        }
        let coordinates = chunk.coordinates(schema);
        for (place, inside) in inside.iter_mut().enumerate() {
            *inside = area.touches(Primitive::Point(coordinates.at(place)));
        }
        Some(inside)
    }
}

/// Paths.
impl LevelQuery<'_> {
    /// Returns whether neither region nor predicate looks at vertices.
    pub(super) fn takes_all(&self) -> bool {
        self.area.is_none() && !self.filter.looks_at_vertices()
    }

    /// Returns the selected paths, at most `left`, if each is selected as a whole: the region
    /// splits none and no piece is missing. Returns `None` if vertices must be tested one by
    /// one.
    pub(super) fn whole_or_not<'p, 'o>(
        &self,
        work: &PathWork<'_>,
        paths: &'p [Path<'o>],
        loaded: &LoadedChunks,
        left: u64,
    ) -> Result<Option<Cow<'p, [Path<'o>]>>, QueryError> {
        if self.takes_all() {
            return Ok(Some(Cow::Borrowed(paths)));
        }
        if self.filter.looks_at_vertices() || self.area_mode == Mode::Clip {
            return Ok(None);
        }
        let most = usize::try_from(left).unwrap_or(usize::MAX);
        let mut whole = Vec::with_capacity(paths.len().min(most));
        for path in paths {
            if whole.len() >= most {
                break;
            }
            let is_met = path.is_met && self.area_mode == Mode::Touch;
            let mut segment = PathSegment::default();
            for piece in path.pieces {
                let chunk = loaded.get(piece.chunk);
                let chunk = chunk.filter(|chunk| piece.fragment < chunk.fragments.len());
                let Some(chunk) = chunk else {
                    return Ok(None);
                };
                if !is_met {
                    chunk.push_fragment(piece.fragment, |run| segment.push(piece.chunk, run));
                }
            }
            let selects = |segment| self.selected_runs(work, path, segment, loaded);
            if is_met || segment.len > 0 && !selects(&segment)?.is_empty() {
                whole.push(*path);
            }
        }
        Ok(Some(Cow::Owned(whole)))
    }

    /// Evaluates the predicate on the vertices of a segment; `None` without a predicate.
    fn filtered(
        &self,
        work: &PathWork<'_>,
        path: &Path<'_>,
        segment: &PathSegment,
        loaded: &LoadedChunks,
    ) -> Result<Option<Vec<bool>>, QueryError> {
        if !self.filter.looks_at_vertices() {
            return Ok(None);
        }
        let mut holds = Vec::with_capacity(segment.len);
        for same in segment.runs.chunk_by(|(a, _), (b, _)| a == b) {
            let Some(chunk) = same.first().and_then(|(number, _)| loaded.get(*number)) else {
                continue;
            };
            let entries: Vec<RowRef> = same.iter().flat_map(|(_, run)| run.entries()).collect();
            let owners = entries.iter().map(|entry| (entry.fragment, path.place));
            let owners = Owners::new(owners);
            holds.extend(work.filter.holds(work.schema, chunk, &entries, &owners)?);
        }
        Ok(Some(holds))
    }

    /// Returns the selected vertices of a segment of points.
    pub(super) fn selected_points(
        &self,
        work: &PathWork<'_>,
        path: &Path<'_>,
        segment: &PathSegment,
        loaded: &LoadedChunks,
    ) -> Result<Vec<(Range<usize>, Ends)>, QueryError> {
        if self.takes_all() {
            return Ok(whole(core::iter::once(0..segment.len)));
        }
        let holds = self.filtered(work, path, segment, loaded)?;
        let positions = loaded.positions(segment.runs.iter().copied(), work.schema);
        let is_in = |at: usize| {
            let position = positions.at(at);
            let inside = self.area.as_ref();
            inside.is_none_or(|area| area.touches(Primitive::Point(position)))
                && holds
                    .as_ref()
                    .is_none_or(|holds| holds.get(at) == Some(&true))
        };
        Ok(whole(ranges(segment.len, is_in)))
    }

    /// Returns the selected parts of a segment of a path, with the new vertices at their ends.
    pub(super) fn selected_runs(
        &self,
        work: &PathWork<'_>,
        path: &Path<'_>,
        segment: &PathSegment,
        loaded: &LoadedChunks,
    ) -> Result<Vec<(Range<usize>, Ends)>, QueryError> {
        if self.takes_all() {
            return Ok(whole(core::iter::once(0..segment.len)));
        }
        let len = segment.len;
        let holds = self.filtered(work, path, segment, loaded)?;
        let is_true = |at: usize| {
            holds
                .as_ref()
                .is_none_or(|holds| holds.get(at) == Some(&true))
        };
        let by_filter = match self.query.mode {
            Mode::Touch if !(0..len).any(is_true) => Vec::new(),
            Mode::Within if !(0..len).all(is_true) => Vec::new(),
            Mode::Touch | Mode::Within => core::iter::once(0..len).collect(),
            Mode::Clip => ranges(len, is_true),
        };
        let Some(area) = &self.area else {
            return Ok(whole(by_filter));
        };
        let positions = loaded.positions(segment.runs.iter().copied(), work.schema);
        let at = |at: usize| positions.at(at);
        let is_in = |row: usize| area.contains(Primitive::Point(at(row)));
        let mut selected = Vec::new();
        for range in by_filter {
            match (self.area_mode, self.query.clip, area.bbox()) {
                (Mode::Within, ..) => {
                    if range.clone().all(is_in) {
                        selected.push((range, Ends::default()));
                    }
                }
                (Mode::Touch, ..) => {
                    let mut segments = range.clone().skip(1);
                    let touches = match range.len() {
                        1 => area.touches(Primitive::Point(at(range.start))),
                        _ => segments
                            .any(|row| area.touches(Primitive::Segment([at(row - 1), at(row)]))),
                    };
                    if touches {
                        selected.push((range, Ends::default()));
                    }
                }
                (Mode::Clip, Clip::Split, bbox) => {
                    clip::check_splittable(work.schema)?;
                    let bbox = bbox.ok_or(clip::UNSPLITTABLE_REGION)?;
                    selected.extend(clip::path(bbox, range, at));
                }
                (Mode::Clip, Clip::Drop, _) => {
                    let parts = ranges(range.len(), |row| is_in(range.start + row));
                    selected.extend(whole(
                        parts
                            .into_iter()
                            .map(|part| range.start + part.start..range.start + part.end),
                    ));
                }
            }
        }
        Ok(selected)
    }
}

/// Returns the runs of rows for which `is_in` holds.
fn ranges(len: usize, is_in: impl Fn(usize) -> bool) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for at in (0..len).filter(|at| is_in(*at)) {
        match ranges.last_mut() {
            Some(range) if range.end == at => range.end = at.saturating_add(1),
            _ => ranges.push(at..at.saturating_add(1)),
        }
    }
    ranges
}

/// Returns parts that end in no new vertices.
fn whole(ranges: impl IntoIterator<Item = Range<usize>>) -> Vec<(Range<usize>, Ends)> {
    let ranges = ranges.into_iter();
    ranges.map(|range| (range, Ends::default())).collect()
}
