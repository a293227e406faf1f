//! The cost of a box with one point in a store of a thousand chunks.

use core::fmt::Write;

use zvf::{OpenOptions, Query};
use zvf_catalog::Selection;
use zvf_testkit::stores::{Cells, ExpectedStore, Recipe, StoreKind, wide};

use super::{
    cases,
    cost::{self, Found, QueryCase},
    kinds::{self, CELLS},
    logs, snapshot,
};

/// Chunks along each axis.
const SIDE: u32 = 10;

fn recipe(kind: StoreKind, cells: Cells, size: usize) -> Recipe {
    Recipe {
        seed: 3,
        kind,
        cells,
        size,
        ..Recipe::default()
    }
}

/// Returns queries of a box around one vertex.
fn cases(truth: &ExpectedStore) -> Vec<QueryCase> {
    let vertex = &truth.vertices[truth.vertices.len() / 2];
    let bbox = cases::around(&vertex.position, &truth.chunk_shape, 1e-6);
    let named = Selection::Named(vec![(None, "radius".to_owned())]);
    let query = Query::new().region(bbox).columns(named);
    let mut cases = vec![cases::case("box around a vertex", query.clone())];
    if truth.objects.is_some() {
        let query = query.owners(false);
        cases.push(cases::case("box around a vertex, without objects", query));
        let query = Query::new()
            .objects([vertex.object.unwrap()])
            .columns(Selection::none());
        cases.push(cases::case("the object of a vertex", query));
    }
    cases
}

/// Checks that each query reads less than `most` bytes of cells, if given.
fn check(name: &str, kind: StoreKind, size: usize, max: Option<u64>) {
    let mut all = String::new();
    for (cells_name, cells) in CELLS {
        let made = wide(&recipe(kind, cells, size), SIDE);
        let files = kinds::files(&made);
        let (chunks, vertices) = (made.truth.chunks().len(), made.truth.vertices.len());
        let _ = writeln!(
            all,
            "{name}, {cells_name}: {chunks} chunks, {vertices} vertices"
        );
        for case in cases(&made.truth) {
            let cost = case.cost(&files, &OpenOptions::default());
            if case.name.starts_with("box around a vertex") && kind.is_points() {
                let Found::QueryResult(result) = &cost.found else {
                    panic!("{:?}", cost.found)
                };
                assert_eq!(result.positions.len(), 1);
                assert_eq!(result.vertex[0].values.len(), 1);
            }
            all.push_str(&logs::text(&case, &cost, &files, (false, &mut Vec::new())));
            let bytes = cost::sum(cost.data(), &files);
            let is_little = max.is_none_or(|max| bytes < max);
            assert!(is_little, "{name}, {cells_name}, {}: {bytes}", case.name);
        }
        all.push('\n');
    }
    snapshot::check(&format!("wide_{name}"), &all);
}

/// 50 points per chunk, 6 per bin.
#[test]
fn one_point_of_a_thousand_chunks_reads_less_than_16_kb() {
    check("points", StoreKind::BinnedPoints, 50_000, Some(16 << 10));
}

#[test]
fn one_vertex_of_a_thousand_chunks_of_paths() {
    check("paths", StoreKind::Polylines, 30_000, None);
}

#[test]
fn one_vertex_of_a_thousand_chunks_of_faces() {
    check("faces", StoreKind::Triangles, 30_000, None);
}
