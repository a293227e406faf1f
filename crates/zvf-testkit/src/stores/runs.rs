//! Paths with common vertices, in the form of coarse levels: a fragment for each stretch of a path
//! in a chunk, which lists rows that other stretches may list too.

use std::collections::BTreeMap;

use super::{ExpectedFragment, ExpectedStore, Object, Recipe};

/// Returns the level with such fragments: its fragments and objects must be written, with the
/// vertices of the original. Equal stretches are one fragment of several paths.
pub(super) fn split_into_runs(level: &ExpectedStore) -> ExpectedStore {
    let mut numbers: BTreeMap<(Vec<i64>, Vec<usize>), usize> = BTreeMap::new();
    let runs_of = |object: &Object| -> Vec<(Vec<i64>, Vec<usize>)> {
        let chain: Vec<usize> = level.vertices_of(object).collect();
        let chunk = |at: &usize| &level.vertices[*at].chunk;
        let runs = chain.chunk_by(|a, b| chunk(a) == chunk(b));
        runs.map(|run| (chunk(&run[0]).clone(), run.to_vec()))
            .collect()
    };
    let objects = level.objects.as_deref().unwrap_or_default();
    for run in objects.iter().flat_map(runs_of) {
        numbers.insert(run, 0);
    }
    let (mut vertices, mut fragments): (Vec<_>, Vec<ExpectedFragment>) = (Vec::new(), Vec::new());
    for ((chunk, run), number) in &mut numbers {
        *number = fragments.len();
        let last = fragments.last().filter(|last| last.chunk == *chunk);
        let start = vertices.len();
        vertices.extend(run.iter().map(|at| level.vertices[*at].clone()));
        fragments.push(ExpectedFragment {
            chunk: chunk.clone(),
            number: last.map_or(0, |last| last.number + 1),
            vertices: start..vertices.len(),
        });
    }
    let objects = objects.iter().map(|object| Object {
        id: object.id,
        fragments: runs_of(object).iter().map(|run| numbers[run]).collect(),
    });
    ExpectedStore {
        objects: Some(objects.collect()),
        recipe: Recipe {
            shuffled: true,
            ..level.recipe.clone()
        },
        vertices,
        fragments,
        ..level.clone()
    }
}
