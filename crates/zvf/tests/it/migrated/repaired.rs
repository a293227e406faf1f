//! Known defects of older writers are repaired by migration.

use zvf::{Dataset, Profile};
use zvf_catalog::Selection;
use zvf_format::path::Delta;
use zvf_model::{grid::ChunkCoord, layout::ArrayRole, level::LevelId};
use zvf_query::{Query, Shape};
use zvf_testkit::golden::Golden;

use super::migrated;
use crate::{block_on, golden::open};

/// Returns the bytes of a vertex.
async fn vertex(dataset: &Dataset, chunk: &ChunkCoord, row: u64, size: usize) -> Vec<u8> {
    let catalog = dataset.catalog();
    let part = catalog
        .stored_array(LevelId::FULL, &ArrayRole::Vertices)
        .await
        .unwrap()
        .unwrap();
    let cells = catalog
        .stored_cells(&part, core::slice::from_ref(chunk))
        .await;
    let cell = cells.into_iter().next().unwrap().unwrap();
    let at = usize::try_from(row).unwrap() * size;
    cell[at..at + size].to_vec()
}

/// Asserts that the ends of all cross-chunk links are consecutive vertices of a path, and counts
/// the links.
async fn bridges(dataset: &Dataset, store: &str) -> usize {
    let paths = dataset
        .query(&Query::new().shape(Shape::Paths))
        .await
        .unwrap();
    let size = paths.positions.row_size();
    let rows: Vec<&[u8]> = paths.positions.bytes.chunks(size).collect();
    let follows = |one: &[u8], next: &[u8]| rows.windows(2).any(|pair| pair == [one, next]);
    let catalog = dataset.catalog();
    let links = catalog
        .stored_links(LevelId::FULL, Delta::INTRA, &Selection::All, false)
        .await
        .unwrap()
        .unwrap();
    let mut seen = 0;
    for family in &links.families {
        for link in 0..family.len() {
            let ends: Vec<(&ChunkCoord, u64)> = family.ends_of(link).collect();
            let one = vertex(dataset, ends[0].0, ends[0].1, size).await;
            let next = vertex(dataset, ends[1].0, ends[1].1, size).await;
            assert!(follows(&one, &next), "{store} {ends:?}");
            seen += 1;
        }
    }
    seen
}

#[test]
fn links_between_pieces_of_paths_name_their_ends() {
    for (archive, store, links) in [
        ("zvf-06", "lines.zv", 2),
        ("zvf-06", "streamlines.zv", 2),
        ("zvf-07", "lines.zv", 2),
        ("zvf-07", "streamlines.zv", 2),
        ("zvf-07", "pyramid_implicit_streamlines.zv", 2),
        ("zvf-09", "lines_2d/store.zarrvectors", 7),
        ("zvf-09", "lines_mixed/store.zarrvectors", 2),
    ] {
        let source = open(&Golden::open(archive), store);
        for profile in [Profile::V09, Profile::V08] {
            let found = block_on(async {
                let (target, _) = migrated(&source, profile).await.unwrap();
                bridges(&target, store).await
            });
            assert_eq!(found, links, "{archive} {store}");
        }
    }
}

#[test]
fn correct_links_are_not_reported_as_repaired() {
    let golden = Golden::open("zvf-09");
    for store in ["polylines_3d", "polylines_reentrant", "lines_crossing_only"] {
        let source = open(&golden, &format!("{store}/store.zarrvectors"));
        block_on(async {
            let (target, report) = migrated(&source, Profile::V08).await.unwrap();
            assert!(bridges(&target, store).await > 0, "{store}");
            let mut repaired = report.repaired.iter();
            assert!(
                !repaired.any(|found| found.what.contains("links")),
                "{report:?}"
            );
        });
    }
}
