//! Recorded pyramids, rebuilt with the same options.

use std::collections::BTreeMap;

use zvf::{
    CrossLevel, Dataset, LevelChoice, LevelDesign, PyramidLevels, PyramidOptions, Query, Store,
    build_pyramid,
    coarsen::{CoarsenMethod, Placement},
};
use zvf_model::{geometry_kind::GeometryKind, level::LevelId};
use zvf_testkit::golden::Golden;

use crate::{block_on, golden::open, validated::own::is_sound};

/// The options of a recorded pyramid.
struct Recorded {
    store: &'static str,
    /// Bin size of each level, and the factor between chunk sizes.
    levels: &'static [(f64, u32)],
    cross_level: CrossLevel,
    depth: u32,
}

const RECORDED: [Recorded; 5] = [
    Recorded {
        store: "pyramid_polylines_depth2",
        levels: &[(4.0, 1), (8.0, 1)],
        cross_level: CrossLevel::Explicit,
        depth: 2,
    },
    Recorded {
        store: "pyramid_plain",
        levels: &[(4.0, 1)],
        cross_level: CrossLevel::None,
        depth: 1,
    },
    Recorded {
        store: "pyramid_implicit",
        levels: &[(4.0, 1)],
        cross_level: CrossLevel::Implicit,
        depth: 1,
    },
    Recorded {
        store: "pyramid_chunk_scale",
        levels: &[(4.0, 2), (8.0, 2)],
        cross_level: CrossLevel::Explicit,
        depth: 1,
    },
    Recorded {
        store: "pyramid_mesh",
        levels: &[(4.0, 1)],
        cross_level: CrossLevel::Explicit,
        depth: 1,
    },
];

/// The bytes of positions, row by row.
type Places = Vec<Vec<u8>>;

async fn places(dataset: &Dataset, level: u32, object: Option<i64>) -> Places {
    let mut query = Query::new();
    query.level = LevelChoice::Number(LevelId::new(level));
    if let Some(object) = object {
        query = query.objects([object]);
    }
    let result = dataset.query(&query).await.unwrap();
    let size = result.positions.row_size();
    result
        .positions
        .bytes
        .chunks(size)
        .map(<[u8]>::to_vec)
        .collect()
}

/// Returns the vertices of each object of a level in order, or all vertices.
async fn contents(dataset: &Dataset, level: u32) -> BTreeMap<Option<i64>, Places> {
    let catalog = dataset.catalog();
    let objects = catalog.object_list(LevelId::new(level)).await.unwrap();
    let mut all = BTreeMap::new();
    let mut everything = places(dataset, level, None).await;
    everything.sort_unstable();
    if let Some(objects) = objects {
        for place in 0..objects.len() {
            let id = objects.id(place).unwrap();
            let mut own = places(dataset, level, Some(id)).await;
            // The order of vertices is not defined except on paths.
            if dataset.root().holds(GeometryKind::Mesh) {
                own.sort_unstable();
            }
            all.insert(Some(id), own);
        }
        // A vertex of several objects is returned with each.
        everything.dedup();
    }
    all.insert(None, everything);
    all
}

#[test]
fn recorded_pyramids_are_reproduced() {
    let golden = Golden::open("zvf-09");
    for recorded in RECORDED {
        let path = format!("{}/store.zarrvectors", recorded.store);
        let reference = open(&golden, &path);
        let axes = reference.root().axes.len();
        let prefix = format!("{path}/");
        let files = golden.files().filter_map(|(path, bytes)| {
            Some((path.strip_prefix(&prefix)?.to_owned(), bytes.to_vec()))
        });
        let store = Store::from_memory(files).unwrap();
        let levels = recorded.levels.iter().map(|(cell, scale)| LevelDesign {
            method: CoarsenMethod::Bins {
                cell: vec![*cell; axes],
                placement: Placement::Mean,
                share: true,
            },
            chunk_scale: vec![*scale; axes],
            sparsity: None,
            additive: false,
            sharding: None,
        });
        let mut options = PyramidOptions::default();
        options.levels = PyramidLevels::Explicit(levels.collect());
        options.cross_level = recorded.cross_level;
        options.depth = Some(recorded.depth);
        options.overwrite = true;
        block_on(async {
            let made = build_pyramid(&store, &options)
                .await
                .unwrap_or_else(|error| panic!("{}: {error:?}", recorded.store));
            let dataset = Dataset::open(store.clone()).await.unwrap();
            assert_eq!(made.levels.len(), recorded.levels.len());
            for level in 1..=u32::try_from(recorded.levels.len()).unwrap() {
                let (ours, theirs) = (
                    contents(&dataset, level).await,
                    contents(&reference, level).await,
                );
                assert_eq!(ours, theirs, "{} level {level}", recorded.store);
            }
            is_sound(&store, recorded.store).await;
        });
    }
}
