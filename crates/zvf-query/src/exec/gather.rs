//! Copy of selected paths into the columns of a batch.

use core::ops::{ControlFlow, Range};

use super::{
    clip::{self, Between, Ends},
    context::ExecContext,
    paths::{Emitted, Path, PathSegment, PathWork},
    pipeline::Pipeline,
};
use crate::{
    batch::{loaded::LoadedChunks, vertices::VertexBuilder},
    diagnostics::Diagnostics,
    error::{Damage, Fault, QueryError},
    query::Shape,
    resolve::{
        area::Area,
        query::{Emit, LevelQuery},
    },
    result::{NO_OBJECT, Parts},
    selection::{RowRun, RowSelection},
};

impl LevelQuery<'_> {
    /// Emits one batch of loaded paths, as far as they are selected.
    ///
    /// Each path is filtered, clipped and copied before the next one, so that a limit ends the
    /// work. Paths that are selected as a whole are copied in bulk instead.
    pub(super) async fn emit_paths(
        &self,
        work: &PathWork<'_>,
        paths: &[Path<'_>],
        loaded: &LoadedChunks,
        emitted: &mut Emitted,
        (pipeline, context): (Pipeline<'_>, ExecContext<'_>),
        emit: &mut Emit<'_>,
    ) -> Result<ControlFlow<()>, QueryError> {
        let diagnostics = context.diagnostics;
        let columns = context.scope(pipeline.columns.unwrap_or(pipeline.source.id));
        let pieces = paths.iter().flat_map(|path| path.pieces);
        loaded.check_shared(pieces, self.session.fetch.budget())?;
        let is_path = self.shape == Shape::Paths;
        let whole = match is_path {
            true => self.whole_or_not(work, paths, loaded, emitted.left)?,
            false => None,
        };
        if let Some(paths) = whole {
            let taken = self.whole_paths(work, &paths, loaded, emitted, diagnostics)?;
            let mut answer = self.empty_answer();
            taken.vertices.finish(&mut answer);
            answer.parts = Some(taken.parts);
            columns
                .show_objects(&mut answer, work.objects, &taken.order, diagnostics)
                .await?;
            return Ok(emit(answer));
        }
        let shows_objects = !is_path && self.shows_objects();
        let mut vertices = self.vertices(work.schema, shows_objects);
        let mut parts = Parts {
            offsets: vec![0],
            objects: Vec::new(),
        };
        let mut order = Vec::new();
        let mut keep = RowOrder::default();
        for path in paths {
            let id = work.objects.id(path.place).unwrap_or(NO_OBJECT);
            for run in Self::segments(work, path, loaded, diagnostics)? {
                let selected = match is_path {
                    true => self.selected_runs(work, path, &run, loaded)?,
                    false => self.selected_points(work, path, &run, loaded)?,
                };
                for (range, ends) in selected {
                    if emitted.left == 0 {
                        break;
                    }
                    let mut range = range;
                    if !is_path {
                        let most = usize::try_from(emitted.left).unwrap_or(usize::MAX);
                        range.end = range.end.min(range.start.saturating_add(most));
                    }
                    let before = keep.len;
                    self.push_part(
                        work,
                        &mut vertices,
                        &mut keep,
                        &run,
                        loaded,
                        (range, ends, id),
                        diagnostics,
                    )?;
                    let added = keep.len.saturating_sub(before);
                    if emitted.objects.insert(path.place) {
                        order.push(path.place);
                    }
                    if is_path {
                        emitted.left = emitted.left.saturating_sub(1);
                        parts.objects.push(id);
                        parts
                            .offsets
                            .push(u64::try_from(keep.len).unwrap_or(u64::MAX));
                    } else {
                        let added = u64::try_from(added).unwrap_or(u64::MAX);
                        emitted.left = emitted.left.saturating_sub(added);
                    }
                }
            }
        }
        if let Some(rows) = keep.rows_of(vertices.rows()) {
            vertices.gather(&rows);
        }
        let mut answer = self.empty_answer();
        vertices.finish(&mut answer);
        answer.parts = is_path.then_some(parts);
        columns
            .show_objects(&mut answer, work.objects, &order, diagnostics)
            .await?;
        Ok(emit(answer))
    }

    /// Appends a part of a segment, with the new vertices at its ends.
    #[expect(clippy::too_many_arguments, reason = "one step of one loop")]
    fn push_part(
        &self,
        work: &PathWork<'_>,
        vertices: &mut VertexBuilder,
        keep: &mut RowOrder,
        run: &PathSegment,
        loaded: &LoadedChunks,
        (range, ends, id): (Range<usize>, Ends, i64),
        diagnostics: &Diagnostics,
    ) -> Result<(), QueryError> {
        let first = match ends.start.is_some() || ends.end.is_some() && range.is_empty() {
            true => range.start.saturating_sub(1),
            false => range.start,
        };
        let is_cut_after = ends.end.is_some() || range.is_empty();
        let last = range
            .end
            .saturating_add(usize::from(is_cut_after))
            .min(run.len);
        let row = |at: usize, base: usize| base.saturating_add(at.saturating_sub(first));
        let base = vertices.rows();
        push_part(
            vertices,
            work,
            run.part(first..last),
            loaded,
            id,
            diagnostics,
        )?;
        let kind = work.schema.dtype.kind();
        let bbox = self.area.as_ref().and_then(Area::bbox);
        let mut between = |at: usize, between: Option<Between>| {
            let between = between?;
            let before = at.checked_sub(1)?;
            let position = match bbox {
                Some(bbox) => clip::rounded(bbox, &between.position, kind),
                None => between.position,
            };
            let new = vertices.rows();
            let weights = [
                (row(before, base), 1.0 - between.t),
                (row(at, base), between.t),
            ];
            vertices.blend(&position, &weights);
            Some(new)
        };
        let start = between(range.start, ends.start);
        let end = between(range.end, ends.end);
        keep.one(start);
        keep.range(row(range.start, base)..row(range.end, base));
        keep.one(end);
        Ok(())
    }

    /// Returns the vertices of a path, as one segment for each run of readable pieces.
    fn segments(
        work: &PathWork<'_>,
        path: &Path<'_>,
        loaded: &LoadedChunks,
        diagnostics: &Diagnostics,
    ) -> Result<Vec<PathSegment>, QueryError> {
        let mut segments = vec![PathSegment::default()];
        for piece in path.pieces {
            let Some(chunk) = loaded.get(piece.chunk) else {
                segments.push(PathSegment::default());
                continue;
            };
            if piece.fragment >= chunk.fragments.len() {
                let fault = Fault::NoFragment {
                    fragment: piece.fragment,
                    fragments: chunk.fragments.len(),
                };
                diagnostics.skip(Damage::in_chunk(&work.manifests, &chunk.chunk, fault))?;
                segments.push(PathSegment::default());
                continue;
            }
            if let Some(segment) = segments.last_mut() {
                chunk.push_fragment(piece.fragment, |run| segment.push(piece.chunk, run));
            }
        }
        segments.retain(|segment| segment.len > 0);
        Ok(segments)
    }
}

fn push_part(
    vertices: &mut VertexBuilder,
    work: &PathWork<'_>,
    part: impl Iterator<Item = (u32, RowRun)>,
    loaded: &LoadedChunks,
    id: i64,
    diagnostics: &Diagnostics,
) -> Result<(), QueryError> {
    let mut part = part.peekable();
    while let Some((number, run)) = part.next() {
        let mut runs = RowSelection::default();
        runs.push(run);
        while let Some((_, run)) = part.next_if(|(other, _)| *other == number) {
            runs.push(run);
        }
        if let Some(chunk) = loaded.get(number) {
            vertices.push(work.schema, chunk, &runs, |_| id, diagnostics)?;
        }
    }
    Ok(())
}

/// The rows of a builder that a batch keeps, in its order. A builder also holds vertices outside
/// the region that new vertices are blended from.
#[derive(Default)]
struct RowOrder {
    len: usize,
    /// The rows; `None` as long as they are the first `len` in order.
    rows: Option<Vec<usize>>,
}

impl RowOrder {
    fn one(&mut self, row: Option<usize>) {
        if let Some(row) = row {
            self.range(row..row.saturating_add(1));
        }
    }

    fn range(&mut self, range: Range<usize>) {
        let before = self.len;
        self.len = before.saturating_add(range.len());
        if self.rows.is_none() && range.start == before {
            return;
        }
        self.rows
            .get_or_insert_with(|| (0..before).collect())
            .extend(range);
    }

    /// Returns the rows to keep of `rows` in all; `None` for all of them in order.
    fn rows_of(self, rows: usize) -> Option<Vec<usize>> {
        let in_order = || (0..self.len).collect();
        match self.rows {
            None if self.len == rows => None,
            None => Some(in_order()),
            rows => rows,
        }
    }
}

/// Vertices of whole paths.
pub(super) struct WholePaths {
    pub(super) vertices: VertexBuilder,
    pub(super) parts: Parts,
    /// Indices of objects that no batch has listed before.
    pub(super) order: Vec<usize>,
}

/// The runs of whole paths, collected before any is copied: copying goes faster when all are
/// known.
struct Taking<'l> {
    runs: Vec<(u32, RowRun)>,
    rows: usize,
    /// Rows at the end of the last path or part of one; an unreadable piece ends a part.
    before: usize,
    parts: Parts,
    order: Vec<usize>,
    emitted: &'l mut Emitted,
}

impl Taking<'_> {
    /// Ends a path. A path without vertices is left out.
    fn end(&mut self, place: usize, id: i64) {
        if self.rows == self.before || self.emitted.left == 0 {
            return;
        }
        self.before = self.rows;
        self.emitted.left = self.emitted.left.saturating_sub(1);
        if self.emitted.objects.insert(place) {
            self.order.push(place);
        }
        self.parts.objects.push(id);
        let end = u64::try_from(self.rows).unwrap_or(u64::MAX);
        self.parts.offsets.push(end);
    }
}

impl LevelQuery<'_> {
    /// Copies whole paths that are loaded, at most as many as the limit leaves.
    pub(super) fn whole_paths(
        &self,
        work: &PathWork<'_>,
        paths: &[Path<'_>],
        loaded: &LoadedChunks,
        emitted: &mut Emitted,
        diagnostics: &Diagnostics,
    ) -> Result<WholePaths, QueryError> {
        let pieces = paths.iter().map(|path| path.pieces.len());
        let mut taking = Taking {
            runs: Vec::with_capacity(pieces.sum()),
            rows: 0,
            before: 0,
            parts: Parts {
                offsets: vec![0],
                objects: Vec::with_capacity(paths.len()),
            },
            order: Vec::with_capacity(paths.len()),
            emitted,
        };
        for path in paths {
            if taking.emitted.left == 0 {
                break;
            }
            let id = work.objects.id(path.place).unwrap_or(NO_OBJECT);
            for piece in path.pieces {
                let Some(chunk) = loaded.get(piece.chunk) else {
                    taking.end(path.place, id);
                    continue;
                };
                if piece.fragment >= chunk.fragments.len() {
                    let fault = Fault::NoFragment {
                        fragment: piece.fragment,
                        fragments: chunk.fragments.len(),
                    };
                    diagnostics.skip(Damage::in_chunk(&work.manifests, &chunk.chunk, fault))?;
                    taking.end(path.place, id);
                    continue;
                }
                chunk.push_fragment(piece.fragment, |run| {
                    taking.rows = taking.rows.saturating_add(run.len);
                    taking.runs.push((piece.chunk, run));
                });
            }
            taking.end(path.place, id);
        }
        let mut runs = taking.runs;
        // Rows after the last path within the limit.
        let mut over = taking.rows.saturating_sub(taking.before);
        while over > 0
            && let Some((_, run)) = runs.pop()
        {
            over = over.saturating_sub(run.len);
        }
        let mut vertices = self.vertices(work.schema, false);
        vertices.take(work.schema, &runs, loaded, diagnostics)?;
        Ok(WholePaths {
            vertices,
            parts: taking.parts,
            order: taking.order,
        })
    }
}
