//! Paths on their way into an answer.

use core::ops::{ControlFlow, Range};
use std::collections::BTreeSet;

use super::{
    Path, Stretch, Work,
    loaded::Loaded,
    select::{Between, Ends},
};
use crate::{
    batch::vertices::{Run, Runs, VertexBuilder},
    diagnostics::Diagnostics,
    error::{Damage, Fault, QueryError},
    query::Shape,
    resolve::area::Area,
    resolve::query::{Emit, LevelQuery},
    result::{NO_OBJECT, Parts},
};

impl LevelQuery<'_> {
    /// Gives paths that are loaded, as far as they are selected.
    pub(super) async fn emit_paths(
        &self,
        work: &Work<'_>,
        paths: &[Path<'_>],
        loaded: &Loaded,
        (left, given): (&mut u64, &mut BTreeSet<usize>),
        diagnostics: &Diagnostics,
        emit: &mut Emit<'_>,
    ) -> Result<ControlFlow<()>, QueryError> {
        loaded.check_shared(paths, self.session.fetch.budget())?;
        let is_path = self.shape == Shape::Paths;
        let whole = match is_path {
            true => self.whole_or_not(work, paths, loaded, *left)?,
            false => None,
        };
        if let Some(paths) = whole {
            let taken = self.whole_paths(work, &paths, loaded, (left, given), diagnostics)?;
            let mut answer = self.empty_answer();
            taken.vertices.finish(&mut answer);
            answer.parts = Some(taken.parts);
            self.show_objects(&mut answer, work.objects, &taken.order, diagnostics)
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
        let mut keep = Keep::default();
        for path in paths {
            let id = work.objects.id(path.place).unwrap_or(NO_OBJECT);
            for run in Self::stretches(work, path, loaded, diagnostics)? {
                let selected = match is_path {
                    true => self.selected_runs(work, path, &run, loaded)?,
                    false => self.selected_points(work, path, &run, loaded)?,
                };
                for (range, ends) in selected {
                    if *left == 0 {
                        break;
                    }
                    let mut range = range;
                    if !is_path {
                        let most = usize::try_from(*left).unwrap_or(usize::MAX);
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
                    if given.insert(path.place) {
                        order.push(path.place);
                    }
                    if is_path {
                        *left = left.saturating_sub(1);
                        parts.objects.push(id);
                        parts
                            .offsets
                            .push(u64::try_from(keep.len).unwrap_or(u64::MAX));
                    } else {
                        *left = left.saturating_sub(u64::try_from(added).unwrap_or(u64::MAX));
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
        self.show_objects(&mut answer, work.objects, &order, diagnostics)
            .await?;
        Ok(emit(answer))
    }

    /// Appends a part of a run, with the vertices where it was cut.
    #[expect(clippy::too_many_arguments, reason = "one step of one loop")]
    fn push_part(
        &self,
        work: &Work<'_>,
        vertices: &mut VertexBuilder,
        keep: &mut Keep,
        run: &Stretch,
        loaded: &Loaded,
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
                Some(bbox) => crate::exec::clip::rounded(bbox, &between.position, kind),
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

    /// The vertices of a path, cut where a piece could not be read.
    fn stretches(
        work: &Work<'_>,
        path: &Path<'_>,
        loaded: &Loaded,
        diagnostics: &Diagnostics,
    ) -> Result<Vec<Stretch>, QueryError> {
        let mut stretches = vec![Stretch::default()];
        for piece in path.pieces {
            let Some(chunk) = loaded.get(piece.chunk) else {
                stretches.push(Stretch::default());
                continue;
            };
            if piece.fragment >= chunk.fragments.len() {
                let fault = Fault::NoFragment {
                    fragment: piece.fragment,
                    fragments: chunk.fragments.len(),
                };
                diagnostics.skip(Damage::in_chunk(&work.manifests, &chunk.chunk, fault))?;
                stretches.push(Stretch::default());
                continue;
            }
            if let Some(stretch) = stretches.last_mut() {
                chunk.push_fragment(piece.fragment, |run| stretch.push(piece.chunk, run));
            }
        }
        stretches.retain(|stretch| stretch.len > 0);
        Ok(stretches)
    }
}

fn push_part(
    vertices: &mut VertexBuilder,
    work: &Work<'_>,
    part: impl Iterator<Item = (u32, Run)>,
    loaded: &Loaded,
    id: i64,
    diagnostics: &Diagnostics,
) -> Result<(), QueryError> {
    let mut part = part.peekable();
    while let Some((number, run)) = part.next() {
        let mut runs = Runs::default();
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

/// Rows of the builder in the order of the answer: it also takes in what new vertices
/// are made from.
#[derive(Default)]
struct Keep {
    len: usize,
    /// The rows, once they are not all that there are in their order.
    rows: Option<Vec<usize>>,
}

impl Keep {
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

    /// What is to be kept of so many rows, unless that is all of them as they are.
    fn rows_of(self, rows: usize) -> Option<Vec<usize>> {
        let in_order = || (0..self.len).collect();
        match self.rows {
            None if self.len == rows => None,
            None => Some(in_order()),
            rows => rows,
        }
    }
}
