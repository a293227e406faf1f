//! Paths that are taken as they are, without a look at their vertices.

use std::collections::BTreeSet;

use super::{Path, Work, loaded::Loaded};
use crate::{
    batch::vertices::{Run, VertexBuilder},
    diagnostics::Diagnostics,
    error::{Damage, Fault, QueryError},
    resolve::query::LevelQuery,
    result::{NO_OBJECT, Parts},
};

/// Vertices of whole paths, and what is said of them.
pub(super) struct WholePaths {
    pub(super) vertices: VertexBuilder,
    pub(super) parts: Parts,
    /// Places of objects that were not given before.
    pub(super) order: Vec<usize>,
}

/// Paths on their way: first which runs they have, as copying goes faster when all
/// are known.
struct Taking<'l> {
    runs: Vec<(u32, Run)>,
    rows: usize,
    /// Rows when the last path ended, or was cut where a piece could not be read.
    before: usize,
    parts: Parts,
    order: Vec<usize>,
    left: &'l mut u64,
    given: &'l mut BTreeSet<usize>,
}

impl Taking<'_> {
    /// Ends a path; one without vertices is none.
    fn end(&mut self, place: usize, id: i64) {
        if self.rows == self.before || *self.left == 0 {
            return;
        }
        self.before = self.rows;
        *self.left = self.left.saturating_sub(1);
        if self.given.insert(place) {
            self.order.push(place);
        }
        self.parts.objects.push(id);
        let end = u64::try_from(self.rows).unwrap_or(u64::MAX);
        self.parts.offsets.push(end);
    }
}

impl LevelQuery<'_> {
    /// Takes paths that are loaded, no more than are left.
    pub(super) fn whole_paths(
        &self,
        work: &Work<'_>,
        paths: &[Path<'_>],
        loaded: &Loaded,
        (left, given): (&mut u64, &mut BTreeSet<usize>),
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
            left,
            given,
        };
        for path in paths {
            if *taking.left == 0 {
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
        // What came after the last path that was still left.
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
