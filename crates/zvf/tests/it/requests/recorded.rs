//! The cost of recorded stores: queries from level to level, and no repeated reads.

use core::fmt::Write;

use zvf::{OpenOptions, Query};
use zvf_catalog::Selection;
use zvf_format::numeric::Kind;
use zvf_model::level::LevelId;
use zvf_query::{LevelChoice, geometry::Mode};
use zvf_store::MergeLimits;

use super::{
    Files, cases,
    cost::{self, Found, QueryCase},
    logs, opened, snapshot,
};
use crate::opening::recorded;

/// Returns the first vertex of level 0 and the shape of chunks.
fn first_vertex(files: &Files) -> Option<(Vec<f64>, Vec<f64>)> {
    let (dataset, _) = opened(files, &OpenOptions::default());
    let query = Query::new().columns(Selection::none()).keep_going(true);
    let result = crate::block_on(dataset.query(&query)).unwrap();
    let rows = &result.positions;
    let row = rows.bytes.get(..rows.row_size())?;
    let values: Vec<f64> = match rows.kind {
        Kind::Float32 => row
            .chunks_exact(4)
            .map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap()).into())
            .collect(),
        Kind::Float64 => row
            .chunks_exact(8)
            .map(|bytes| f64::from_le_bytes(bytes.try_into().unwrap()))
            .collect(),
        other => panic!("{other:?}"),
    };
    Some((values, dataset.root().chunk_shape.extents().to_vec()))
}

/// Disables merging, because gaps may be requested later.
fn apart() -> OpenOptions {
    OpenOptions::default().merge_limits(MergeLimits {
        gap: 0,
        size: 1 << 20,
    })
}

#[test]
fn requests_from_level_to_level() {
    let stores = recorded("zvf-09");
    for name in ["pyramid_points", "pyramid_mesh", "pyramid_polylines_depth2"] {
        let (_, files) = stores
            .iter()
            .find(|(store, _)| store.split('/').any(|part| part == name))
            .unwrap();
        let files: Files = files.iter().cloned().collect();
        let (place, chunk) = first_vertex(&files).unwrap();
        let (mut all, mut before) = (format!("{name}\n"), Vec::new());
        for case in cases::of_levels(&place, &chunk) {
            let cost = case.cost(&files, &OpenOptions::default());
            let _ = write!(
                all,
                "\n{}",
                logs::text(&case, &cost, &files, (true, &mut before))
            );
            let Found::QueryResult(result) = &cost.found else {
                panic!("{:?}", cost.found)
            };
            assert!(!result.positions.is_empty(), "{name}: {}", case.name);
            let twice = case.cost(&files, &apart());
            let mut twice = cost::read_twice(twice.all(), &files);
            // Vertices that paths share are counted by the fragment indexes, before a level is chosen.
            let is_counted = matches!(case.query.level, LevelChoice::Vertices(_));
            twice.retain(|read| !(is_counted && read.contains("/vertex_fragments/")));
            assert_eq!(twice, Vec::<String>::new(), "{name}: {}", case.name);
        }
        snapshot::check(&format!("levels_of_{name}"), &all);
    }
}

/// Tests whole levels and boxes of every recorded store.
#[test]
fn recorded_stores_are_never_read_twice() {
    let (mut stores, mut cases, mut faults) = (0, 0, Vec::new());
    for archive in ["zvf-06", "zvf-07", "zvf-08", "zvf-09"] {
        for (name, files) in recorded(archive) {
            let files: Files = files.into_iter().collect();
            let (dataset, _) = opened(&files, &OpenOptions::default());
            let mut queries: Vec<(&'static str, Query)> = Vec::new();
            for level in dataset.levels() {
                let query = Query::new().level(LevelChoice::Number(*level));
                queries.push(("whole level", query));
            }
            if let Some((place, chunk)) = first_vertex(&files) {
                let bbox = cases::around(&place, &chunk, 0.4);
                let query = Query::new().region(bbox);
                let level = LevelChoice::Number(LevelId::FULL);
                queries.push(("box", query.clone().level(level)));
                queries.push(("box, within", query.clone().mode(Mode::Within)));
                queries.push(("box, clipped", query.mode(Mode::Clip)));
            }
            for (what, query) in queries {
                let case: QueryCase = cases::case(what, query.keep_going(true));
                let cost = case.cost(&files, &apart());
                // Detecting the generation of an old store takes nodes that are read again.
                let opening = if archive == "zvf-09" {
                    0
                } else {
                    cost.open.len()
                };
                let reads = cost.all().into_iter().skip(opening);
                let twice = cost::read_twice(reads, &files);
                faults.extend(
                    twice
                        .into_iter()
                        .map(|twice| format!("{archive} {name} {what}: {twice}")),
                );
                cases += 1;
            }
            stores += 1;
        }
    }
    // Declared with one channel, stored with two. The first partial read detects this, and then the
    // cell is read as a whole.
    faults.retain(|fault| {
        !(fault.contains("polylines_reentrant/") && fault.contains("/vertex_attributes/uv/"))
    });
    assert_eq!(faults, Vec::<String>::new());
    assert!(
        stores > 100 && cases > 400,
        "{stores} stores, {cases} queries"
    );
}
