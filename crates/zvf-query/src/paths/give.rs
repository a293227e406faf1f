//! Paths on their way into an answer.

use core::ops::{ControlFlow, Range};
use std::collections::BTreeSet;

use zvf_model::fetch::Fetch;

use super::{
    Path, PathVertex, Work,
    loaded::Loaded,
    select::{Between, Ends},
};
use crate::{
    answer::{NO_OBJECT, Parts},
    area::Area,
    error::{Damage, Fault, QueryError},
    missing::Ledger,
    plan::{Emit, Plan},
    query::Shape,
    vertices::VertexBuilder,
};

impl<F: Fetch> Plan<'_, F> {
    /// Gives paths that are loaded, as far as they are selected.
    pub(super) async fn emit_paths(
        &self,
        work: &Work<'_, F>,
        paths: &[Path],
        loaded: &Loaded,
        (left, given): (&mut u64, &mut BTreeSet<usize>),
        ledger: &Ledger,
        emit: &mut Emit<'_>,
    ) -> Result<ControlFlow<()>, QueryError> {
        loaded.check_shared(paths, self.session.fetch.budget())?;
        let is_path = self.shape == Shape::Paths;
        let shows_objects = !is_path && self.shows_objects();
        let mut vertices = self.vertices(work.schema, shows_objects);
        let mut parts = Parts {
            offsets: vec![0],
            objects: Vec::new(),
        };
        let mut order = Vec::new();
        // Rows of the builder in the order of the answer: it also takes in what
        // new vertices are made from.
        let mut keep: Vec<usize> = Vec::new();
        for path in paths {
            let id = work.objects.id(path.place).unwrap_or(NO_OBJECT);
            for run in Self::whole_runs(work, path, loaded, ledger)? {
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
                    let before = keep.len();
                    self.push_part(
                        work,
                        &mut vertices,
                        &mut keep,
                        &run,
                        loaded,
                        (range, ends, id),
                        ledger,
                    )?;
                    let added = keep.len().saturating_sub(before);
                    if given.insert(path.place) {
                        order.push(path.place);
                    }
                    if is_path {
                        *left = left.saturating_sub(1);
                        parts.objects.push(id);
                        parts
                            .offsets
                            .push(u64::try_from(keep.len()).unwrap_or(u64::MAX));
                    } else {
                        *left = left.saturating_sub(u64::try_from(added).unwrap_or(u64::MAX));
                    }
                }
            }
        }
        if keep.len() != vertices.rows() || keep.iter().enumerate().any(|(at, row)| at != *row) {
            vertices.gather(&keep);
        }
        let mut answer = self.empty_answer();
        vertices.finish(&mut answer);
        answer.parts = is_path.then_some(parts);
        self.show_objects(&mut answer, work.objects, &order, ledger)
            .await?;
        Ok(emit(answer))
    }

    /// Appends a part of a run, with the vertices where it was cut.
    #[expect(clippy::too_many_arguments, reason = "one step of one loop")]
    fn push_part(
        &self,
        work: &Work<'_, F>,
        vertices: &mut VertexBuilder,
        keep: &mut Vec<usize>,
        run: &[PathVertex],
        loaded: &Loaded,
        (range, ends, id): (Range<usize>, Ends, i64),
        ledger: &Ledger,
    ) -> Result<(), QueryError> {
        let first = match ends.start.is_some() || ends.end.is_some() && range.is_empty() {
            true => range.start.saturating_sub(1),
            false => range.start,
        };
        let is_cut_after = ends.end.is_some() || range.is_empty();
        let last = range
            .end
            .saturating_add(usize::from(is_cut_after))
            .min(run.len());
        let row = |at: usize, base: usize| base.saturating_add(at.saturating_sub(first));
        let base = vertices.rows();
        let part = run.get(first..last).unwrap_or_default();
        push_run(vertices, work, part, loaded, id, ledger)?;
        let kind = work.schema.dtype.kind();
        let bbox = self.area.as_ref().and_then(Area::bbox);
        let mut between = |at: usize, between: Option<Between>| {
            let between = between?;
            let before = at.checked_sub(1)?;
            let position = match bbox {
                Some(bbox) => crate::cut::rounded(bbox, &between.position, kind),
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
        keep.extend(start);
        keep.extend(range.map(|at| row(at, base)));
        keep.extend(end);
        Ok(())
    }

    /// The vertices of a path, cut where a piece could not be read.
    fn whole_runs(
        work: &Work<'_, F>,
        path: &Path,
        loaded: &Loaded,
        ledger: &Ledger,
    ) -> Result<Vec<Vec<PathVertex>>, QueryError> {
        let mut runs = vec![Vec::new()];
        let mut entries = Vec::new();
        for piece in &path.pieces {
            let Some((chunk, _)) = loaded.get(piece.chunk) else {
                runs.push(Vec::new());
                continue;
            };
            if piece.fragment >= chunk.fragments.len() {
                let fault = Fault::NoFragment {
                    fragment: piece.fragment,
                    fragments: chunk.fragments.len(),
                };
                ledger.missing(Damage::in_chunk(&work.manifests, &chunk.chunk, fault))?;
                runs.push(Vec::new());
                continue;
            }
            entries.clear();
            chunk.push_fragment(piece.fragment, &mut entries);
            let vertices = entries.iter().map(|entry| PathVertex {
                chunk: piece.chunk,
                entry: *entry,
            });
            if let Some(run) = runs.last_mut() {
                run.extend(vertices);
            }
        }
        runs.retain(|run| !run.is_empty());
        Ok(runs)
    }
}

fn push_run<F: Fetch>(
    vertices: &mut VertexBuilder,
    work: &Work<'_, F>,
    run: &[PathVertex],
    loaded: &Loaded,
    id: i64,
    ledger: &Ledger,
) -> Result<(), QueryError> {
    for same in run.chunk_by(|a, b| a.chunk == b.chunk) {
        let chunk = same.first().and_then(|vertex| loaded.get(vertex.chunk));
        let Some((chunk, _)) = chunk else {
            continue;
        };
        let entries: Vec<_> = same.iter().map(|vertex| vertex.entry).collect();
        vertices.push(work.schema, chunk, &entries, |_| id, ledger)?;
    }
    Ok(())
}
