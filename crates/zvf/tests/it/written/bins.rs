//! Fragments of bins without points.
//!
//! zarr-vectors 0.9.2 takes the number of a fragment as the number of its bin if points without objects
//! have bins, as `test_created.py` of the conformance tests shows. Document 000 has no empty fragments.

use zvf::{CreateOptions, Dataset, LevelId, Profile, Store};
use zvf_build::{GeometryKind, WritePlan};
use zvf_format::fragment::FragmentIndex;
use zvf_model::layout::ArrayRole;

use super::random::{self, Case};
use crate::block_on;

/// Returns the number of fragments without rows.
async fn empty_fragments(store: Store) -> usize {
    let dataset = Dataset::open(store).await.unwrap();
    let catalog = dataset.catalog();
    let part = ArrayRole::VertexFragments;
    let stored = catalog
        .stored_array(LevelId::FULL, &part)
        .await
        .unwrap()
        .unwrap();
    let cells = catalog.stored_cells(&stored, stored.chunks()).await;
    let mut empty = 0;
    for cell in cells {
        let cell = cell.unwrap();
        let index = FragmentIndex::parse(&cell).unwrap();
        empty += index
            .iter()
            .filter(zvf_format::fragment::Rows::is_empty)
            .count();
    }
    empty
}

#[test]
fn empty_bins_have_fragments_only_where_the_package_needs_them() {
    let mut found = 0;
    for profile in Profile::ALL {
        for kind in GeometryKind::ALL {
            for seed in 0..12 {
                let Case {
                    geometry, design, ..
                } = random::case(seed, kind, profile);
                let has_objects = geometry.owners.ids().is_some()
                    || geometry.objects.is_some()
                    || !geometry.object.is_empty()
                    || !geometry.groups.is_empty()
                    || !geometry.group.is_empty();
                let has_bins = design.bin_shape.is_some() && design.bin_shape != design.chunk_shape;
                let is_needed = profile.is_current()
                    && kind == GeometryKind::Points
                    && has_bins
                    && !has_objects;
                let about = format!("seed {seed}, {kind:?}, {design:?}");
                let plan = WritePlan::new(geometry.build().unwrap(), design).unwrap();
                let empty = block_on(async {
                    let none: [(&str, &[u8]); 0] = [];
                    let store = Store::from_memory(none).unwrap();
                    let options = CreateOptions::default();
                    zvf::create_from_plan(&store, plan, &options).await.unwrap();
                    empty_fragments(store).await
                });
                assert!(empty == 0 || is_needed, "{about}");
                found += empty;
            }
        }
    }
    assert!(found > 0);
}
