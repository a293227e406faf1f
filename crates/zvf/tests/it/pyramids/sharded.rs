//! Sharded levels, with the sharding of the store or their own.

use std::collections::BTreeSet;

use serde_json::Value;
use zvf::{
    CrossLevel, Editor, ErrorKind, GeometryKind, LevelDesign, Profile, PyramidLevels,
    PyramidOptions, ShardingPolicy, Store, build_pyramid,
    coarsen::{CoarsenMethod, Placement},
    refresh_pyramid,
};
use zvf_build::BuildError;
use zvf_testkit::stores::Random;

use super::{
    equal::{Files, files},
    random::wanted_in,
};
use crate::{
    block_on,
    validated::own::is_sound,
    written::{
        content::Content,
        edits::{self, change},
        random,
    },
};

/// Lists the arrays with a cell per chunk: path, capacity in cells, whether they are sharded, and
/// number of objects.
fn arrays(files: &Files) -> Vec<(String, u64, bool, usize)> {
    let mut arrays = Vec::new();
    for (name, bytes) in files {
        let Some(path) = name.strip_suffix("/zarr.json") else {
            continue;
        };
        let json: Value = serde_json::from_slice(bytes).unwrap();
        if json.pointer("/attributes/nonempty_chunks").is_none() {
            continue;
        }
        let shape = json["shape"].as_array().unwrap().iter();
        let capacity = shape.map(|extent| extent.as_u64().unwrap()).product();
        let is_sharded = json["codecs"][0]["name"] == "sharding_indexed";
        let below = format!("{path}/c/");
        let objects = files.keys().filter(|name| name.starts_with(&below)).count();
        arrays.push((path.to_owned(), capacity, is_sharded, objects));
    }
    arrays
}

fn pair(axes: usize) -> ShardingPolicy {
    ShardingPolicy::Shape(vec![2; axes])
}

/// Cells of all kinds, including cross-chunk and cross-level links, match brute force. An array of
/// one cell needs no shard.
#[test]
fn levels_of_sharded_stores_are_sharded() {
    for kind in GeometryKind::ALL {
        let mut shared = 0;
        for seed in 20..24 {
            block_on(async {
                let mut wanted = wanted_in(seed, kind, Profile::V09, |design, axes| {
                    design.sharding = pair(axes);
                })
                .await;
                wanted.options.cross_level = CrossLevel::Explicit;
                Box::pin(wanted.check()).await;
                let files = files(&wanted.store).await;
                for (path, capacity, is_sharded, objects) in arrays(&files) {
                    let about = format!("{path}, {}", wanted.about);
                    if path.starts_with("0/") && !path.starts_with("0/links/+") {
                        continue;
                    }
                    assert_eq!(is_sharded, capacity > 1, "{about}");
                    assert!(objects as u64 <= capacity.div_ceil(2).max(1), "{about}");
                    shared += usize::from(is_sharded);
                }
            });
        }
        assert!(shared > 0, "{kind:?}");
    }
}

/// Levels of one store may be sharded or not.
#[test]
fn the_sharding_of_levels_can_be_chosen() {
    block_on(async {
        for (policy, is_sharded) in [
            (None, false),
            (Some(ShardingPolicy::None), false),
            (Some(ShardingPolicy::Auto), true),
            (Some(ShardingPolicy::Shape(vec![2; 9])), true),
        ] {
            let mut wanted = wanted_in(31, GeometryKind::Graphs, Profile::V09, |design, _| {
                design.sharding = ShardingPolicy::None;
            })
            .await;
            let PyramidLevels::Explicit(levels) = &mut wanted.options.levels else {
                panic!("levels are given")
            };
            for level in levels {
                level.sharding = match &policy {
                    Some(ShardingPolicy::Shape(_)) => Some(pair(level.chunk_scale.len())),
                    policy => policy.clone(),
                };
            }
            Box::pin(wanted.check()).await;
            let files = files(&wanted.store).await;
            let own: BTreeSet<bool> = arrays(&files)
                .into_iter()
                .filter(|(path, capacity, ..)| path.starts_with("1/") && *capacity > 1)
                .map(|(_, _, is_sharded, _)| is_sharded)
                .collect();
            assert_eq!(own, BTreeSet::from([is_sharded]), "{policy:?}");
        }
    });
}

/// Lists the arrays of coarser levels, and whether they are sharded.
async fn shards(store: &Store) -> BTreeSet<(String, bool)> {
    let own = arrays(&files(store).await)
        .into_iter()
        .filter(|(path, ..)| !path.starts_with("0/"));
    own.map(|(path, _, is_sharded, _)| (path, is_sharded))
        .collect()
}

/// Continuing a build and refreshing after an edit keep the requested sharding.
#[test]
fn sharding_is_kept_when_levels_are_rebuilt() {
    for policy in [None, Some(ShardingPolicy::None), Some(ShardingPolicy::Auto)] {
        let mut case = random::case(33, GeometryKind::Graphs, Profile::V09);
        let axes = case.geometry.axes();
        case.design.chunk_shape = Some(vec![8.0; axes]);
        case.design.bin_shape = None;
        case.design.sharding = pair(axes);
        let mut random = Random::new(33);
        let mut expected = Content::of(&case.geometry, &case.design);
        block_on(async {
            let store = edits::store(&mut case).await;
            let level = |cell: f64| LevelDesign {
                method: CoarsenMethod::Bins {
                    cell: vec![cell; axes],
                    placement: Placement::Mean,
                    share: false,
                },
                chunk_scale: vec![1; axes],
                sparsity: None,
                additive: false,
                sharding: policy.clone(),
            };
            let mut options = PyramidOptions::default();
            options.levels = PyramidLevels::Explicit(vec![level(2.0)]);
            let made = build_pyramid(&store, &options).await;
            assert_eq!(made.unwrap().levels.len(), 1);
            let first = shards(&store).await;
            // With one more level, the existing level is kept.
            options.levels = PyramidLevels::Explicit(vec![level(2.0), level(4.0)]);
            let made = build_pyramid(&store, &options).await.unwrap();
            assert_eq!((made.existing, made.levels.len()), (1, 1), "{policy:?}");
            let before = shards(&store).await;
            assert!(first.is_subset(&before), "{policy:?}");
            let is_sharded = policy != Some(ShardingPolicy::None);
            let vertices = |level: u32| (format!("{level}/vertices"), is_sharded);
            assert!(before.contains(&vertices(1)) && before.contains(&vertices(2)));
            let editor = Editor::open(store.clone()).await.unwrap();
            while change(&editor, &mut case, &mut random, &mut expected).await != "append" {}
            let refreshed = refresh_pyramid(&store, &PyramidOptions::default()).await;
            assert_eq!(refreshed.unwrap().levels.len(), 2, "{policy:?}");
            let after = shards(&store).await;
            assert!(after.contains(&vertices(1)) && after.contains(&vertices(2)));
            is_sound(&store, "refreshed").await;
            // Another shard shape makes another level.
            let mut other = level(2.0);
            other.sharding = Some(ShardingPolicy::Shape(vec![3; axes]));
            options.levels = PyramidLevels::Explicit(vec![other]);
            let made = build_pyramid(&store, &options).await;
            assert!(matches!(&made, Err(error) if error.kind() == ErrorKind::InvalidInput));
        });
    }
}

/// Stores of 0.8 have no shards, and neither can their levels.
#[test]
fn unsupported_sharding_is_rejected() {
    block_on(async {
        for (profile, sharding) in [
            (Profile::V08, ShardingPolicy::Auto),
            (Profile::V09, ShardingPolicy::Shape(vec![0; 3])),
            (Profile::V09, ShardingPolicy::Shape(vec![2; 9])),
        ] {
            let mut wanted = wanted_in(35, GeometryKind::Points, profile, |_, _| {}).await;
            let before = files(&wanted.store).await;
            let PyramidLevels::Explicit(levels) = &mut wanted.options.levels else {
                panic!("levels are given")
            };
            levels[0].sharding = Some(sharding.clone());
            let made = build_pyramid(&wanted.store, &wanted.options).await;
            let is_refused = matches!(&made, Err(error) if error.cause::<BuildError>().is_some());
            assert!(is_refused, "{sharding:?}: {made:?}");
            assert!(files(&wanted.store).await == before);
        }
    });
}
