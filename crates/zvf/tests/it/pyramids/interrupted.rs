//! A refresh that is interrupted between levels is continued by the next one.

use std::{
    collections::BTreeSet,
    future::poll_fn,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
};

use serde_json::{Value, json};
use zvf::{
    AutoLevels, Dataset, Editor, ErrorKind, IntoGeometry, ObjectIds, OpenOptions, OutOfBounds,
    Owner, PyramidLevels, PyramidOptions, Query, build_pyramid, refresh_pyramid,
};
use zvf_build::GeometryKind;

use super::{
    equal::{Files, files},
    stopped::{bins, store},
};
use crate::{block_on, validated::own::is_sound};

/// Marks all levels stale without the chunks that changed, so that a refresh rebuilds them whole.
fn stale(mut files: Files, levels: &[u32]) -> Files {
    let root = files.get_mut("zarr.json").unwrap();
    let mut json: Value = serde_json::from_slice(root).unwrap();
    json["attributes"]["zvf_stale_levels"] = json!(levels);
    *root = serde_json::to_vec(&json).unwrap();
    files
}

fn has_pending(files: &Files) -> bool {
    let root: Value = serde_json::from_slice(&files["zarr.json"]).unwrap();
    root["attributes"].get("zvf_pending_levels").is_some()
}

fn check(kind: GeometryKind, options: &PyramidOptions) {
    let open = OpenOptions::default();
    let built = block_on(async {
        let store = store(kind, &open).await;
        let built = build_pyramid(&store, options).await.unwrap();
        assert_eq!(built.levels.len(), 2, "{kind:?}");
        files(&store).await
    });
    let behind = stale(built, &[1, 2]);
    let whole = open.from_memory(behind.clone()).unwrap();
    let interrupted = open.from_memory(behind).unwrap();
    block_on(async {
        let refreshed = refresh_pyramid(&whole, &PyramidOptions::default()).await;
        assert_eq!(refreshed.unwrap().levels.len(), 2, "{kind:?}");
    });
    let whole = block_on(files(&whole));
    assert!(!has_pending(&whole), "{kind:?}");

    let is_at_second = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&is_at_second);
    let watched = PyramidOptions::new().progress(Arc::new(move |level, _, _| {
        seen.fetch_or(level.number() == 2, Ordering::Relaxed);
    }));
    block_on(async {
        let mut refresh = pin!(refresh_pyramid(&interrupted, &watched));
        poll_fn(|context| {
            if is_at_second.load(Ordering::Relaxed) {
                return Poll::Ready(());
            }
            let made = refresh.as_mut().poll(context);
            assert!(made.is_pending(), "{kind:?}: not interrupted: {made:?}");
            Poll::Pending
        })
        .await;
    });
    block_on(async {
        let left = files(&interrupted).await;
        assert!(left.contains_key("1/zarr.json"), "{kind:?}");
        assert!(!left.contains_key("2/zarr.json"), "{kind:?}");
        assert!(has_pending(&left), "{kind:?}");
        is_sound(&interrupted, kind.name()).await;
        let refreshed = refresh_pyramid(&interrupted, &PyramidOptions::default()).await;
        assert_eq!(refreshed.unwrap().levels.len(), 1, "{kind:?}");
        assert!(files(&interrupted).await == whole, "{kind:?}");
        let refreshed = refresh_pyramid(&interrupted, &PyramidOptions::default()).await;
        assert!(refreshed.unwrap().levels.is_empty(), "{kind:?}");
    });
}

#[test]
fn an_interrupted_refresh_is_continued() {
    for kind in GeometryKind::ALL {
        let levels = PyramidLevels::Explicit(vec![bins(4.0), bins(8.0)]);
        check(kind, &PyramidOptions::new().levels(levels));
    }
}

#[test]
fn an_interrupted_refresh_of_additive_levels_is_continued() {
    for refinement in [false, true] {
        let mut levels = AutoLevels::default();
        levels.additive = true;
        levels.levels = Some(2);
        let options = PyramidOptions::new().levels(levels).refinement(refinement);
        check(GeometryKind::Points, &options);
    }
}

/// A coarser level of another writer cannot be rebuilt, so that it is not replaced.
#[test]
fn a_level_without_a_recipe_is_kept() {
    let open = OpenOptions::default();
    block_on(async {
        let store = store(GeometryKind::Streamlines, &open).await;
        let levels = PyramidLevels::Explicit(vec![bins(4.0), bins(8.0)]);
        let options = PyramidOptions::new().levels(levels);
        build_pyramid(&store, &options).await.unwrap();
        let mut foreign = stale(files(&store).await, &[1, 2]);
        let level = foreign.get_mut("2/zarr.json").unwrap();
        let mut json: Value = serde_json::from_slice(level).unwrap();
        json["attributes"]
            .as_object_mut()
            .unwrap()
            .remove("zvf_pyramid");
        *level = serde_json::to_vec(&json).unwrap();
        let store = open.from_memory(foreign).unwrap();
        let before = files(&store).await;
        let refreshed = refresh_pyramid(&store, &PyramidOptions::default()).await;
        assert!(
            matches!(&refreshed, Err(error) if error.kind() == ErrorKind::InvalidInput),
            "{refreshed:?}"
        );
        assert!(files(&store).await == before);
    });
}

/// Levels return when a store whose vertices were all deleted has vertices again.
#[test]
fn levels_above_an_empty_level_return() {
    let open = OpenOptions::default();
    block_on(async {
        let store = store(GeometryKind::Streamlines, &open).await;
        let levels = PyramidLevels::Explicit(vec![bins(4.0), bins(8.0)]);
        let options = PyramidOptions::new().levels(levels);
        build_pyramid(&store, &options).await.unwrap();
        let dataset = Dataset::open(&store).await.unwrap();
        let all = dataset.query(&Query::new()).await.unwrap();
        let owners = all.object_ids.iter().flat_map(ObjectIds::iter);
        let ids: BTreeSet<i64> = owners.filter_map(Owner::object).collect();
        let ids: Vec<i64> = ids.into_iter().collect();
        let editor = Editor::open(&store).await.unwrap();
        editor.remove(&ids).await.unwrap();
        let empty = stale(files(&store).await, &[1, 2]);
        let store = open.from_memory(empty).unwrap();
        let refresh = PyramidOptions::default();
        refresh_pyramid(&store, &refresh).await.unwrap();
        refresh_pyramid(&store, &refresh).await.unwrap();
        let editor = Editor::open(&store).await.unwrap();
        let mut geometry = all.into_geometry().unwrap().into_builder();
        // The ids are in use by objects without vertices.
        for id in geometry.owners.ids_mut().into_iter().flatten() {
            *id += 1000;
        }
        for id in geometry.objects.iter_mut().flatten() {
            *id += 1000;
        }
        geometry.groups.clear();
        geometry.group.clear();
        let geometry = geometry.build().unwrap();
        editor.append(&geometry, OutOfBounds::Expand).await.unwrap();
        refresh_pyramid(&store, &refresh).await.unwrap();
        let dataset = Dataset::open(&store).await.unwrap();
        assert_eq!(dataset.levels().len(), 3);
        assert_eq!(dataset.root().stale_levels().count(), 0);
        assert!(!has_pending(&files(&store).await));
        is_sound(&store, "refilled").await;
    });
}
