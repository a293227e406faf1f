//! Which parts of paths are selected.

use core::ops::Range;
use std::borrow::Cow;

use super::{Path, Stretch, Work, loaded::Loaded};
use crate::{
    batch::vertices::Owners,
    error::QueryError,
    geometry::{Mode, Primitive},
    query::Clip,
    resolve::query::LevelQuery,
};

impl LevelQuery<'_> {
    /// Whether neither region nor filter looks at vertices.
    pub(super) fn takes_all(&self) -> bool {
        self.area.is_none() && !self.filter.looks_at_vertices()
    }

    /// The paths that are selected, where each is as it is: the region cuts none, and all pieces
    /// are there. No more of them than are `left`; `None` where it takes a closer look.
    pub(super) fn whole_or_not<'p, 'o>(
        &self,
        work: &Work<'_>,
        paths: &'p [Path<'o>],
        loaded: &Loaded,
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
            let mut stretch = Stretch::default();
            for piece in path.pieces {
                let chunk = loaded.get(piece.chunk);
                let chunk = chunk.filter(|chunk| piece.fragment < chunk.fragments.len());
                let Some(chunk) = chunk else {
                    return Ok(None);
                };
                if !is_met {
                    chunk.push_fragment(piece.fragment, |run| stretch.push(piece.chunk, run));
                }
            }
            let selects = |stretch| self.selected_runs(work, path, stretch, loaded);
            if is_met || stretch.len > 0 && !selects(&stretch)?.is_empty() {
                whole.push(*path);
            }
        }
        Ok(Some(Cow::Owned(whole)))
    }

    /// For which vertices of a run the filter holds.
    fn filtered(
        &self,
        work: &Work<'_>,
        path: &Path<'_>,
        stretch: &Stretch,
        loaded: &Loaded,
    ) -> Result<Option<Vec<bool>>, QueryError> {
        if !self.filter.looks_at_vertices() {
            return Ok(None);
        }
        let run = stretch.vertices();
        let mut holds = Vec::with_capacity(run.len());
        for same in run.chunk_by(|a, b| a.chunk == b.chunk) {
            let Some(number) = same.first().map(|vertex| vertex.chunk) else {
                continue;
            };
            let Some(chunk) = loaded.get(number) else {
                continue;
            };
            let entries: Vec<_> = same.iter().map(|vertex| vertex.entry).collect();
            let owners = entries.iter().map(|entry| (entry.fragment, path.place));
            let owners = Owners::new(owners);
            holds.extend(work.filter.holds(work.schema, chunk, &entries, &owners)?);
        }
        Ok(Some(holds))
    }

    /// Which vertices of a run are selected, as points.
    pub(super) fn selected_points(
        &self,
        work: &Work<'_>,
        path: &Path<'_>,
        stretch: &Stretch,
        loaded: &Loaded,
    ) -> Result<Vec<(Range<usize>, Ends)>, QueryError> {
        if self.takes_all() {
            return Ok(whole(core::iter::once(0..stretch.len)));
        }
        let holds = self.filtered(work, path, stretch, loaded)?;
        let positions = loaded.positions(stretch.runs.iter().copied(), work.schema);
        let is_in = |at: usize| {
            let position = positions.at(at);
            let inside = self.area.as_ref();
            inside.is_none_or(|area| area.touches(Primitive::Point(position)))
                && holds
                    .as_ref()
                    .is_none_or(|holds| holds.get(at) == Some(&true))
        };
        Ok(whole(ranges(stretch.len, is_in)))
    }

    /// Which parts of a run are selected, as paths.
    pub(super) fn selected_runs(
        &self,
        work: &Work<'_>,
        path: &Path<'_>,
        stretch: &Stretch,
        loaded: &Loaded,
    ) -> Result<Vec<(Range<usize>, Ends)>, QueryError> {
        if self.takes_all() {
            return Ok(whole(core::iter::once(0..stretch.len)));
        }
        let len = stretch.len;
        let holds = self.filtered(work, path, stretch, loaded)?;
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
        let positions = loaded.positions(stretch.runs.iter().copied(), work.schema);
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
                (Mode::Clip, Clip::Split, Some(bbox)) => {
                    Self::check_cuttable(work.schema)?;
                    selected.extend(crate::exec::clip::path(bbox, range, at));
                }
                (Mode::Clip, Clip::Split, None) => {
                    return Err(QueryError::Unsupported(
                        "a sphere does not cut: clip by a box, or drop what crosses the border",
                    ));
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

/// Runs of rows for which `is_in` holds.
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

/// Runs that are not cut.
fn whole(ranges: impl IntoIterator<Item = Range<usize>>) -> Vec<(Range<usize>, Ends)> {
    let ranges = ranges.into_iter();
    ranges.map(|range| (range, Ends::default())).collect()
}

/// New vertices at the ends of a run that was cut.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ends {
    /// Before the first: where, and between which rows of the run.
    pub(crate) start: Option<Between>,
    /// After the last.
    pub(crate) end: Option<Between>,
}

/// A place between two vertices.
#[derive(Clone, Debug)]
pub(crate) struct Between {
    pub(crate) position: Vec<f64>,
    /// The part of the way from the first to the second.
    pub(crate) t: f64,
}
