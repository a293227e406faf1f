//! Damaged sources, existing targets, and cancelled migrations.

use std::{
    collections::BTreeMap,
    future::Future,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use zvf::{CreateOptions, Dataset, Error, MigrateOptions, OpenOptions, Profile, Store, migrate};
use zvf_model::error_chain::error_chain;
use zvf_store::CreateError;
use zvf_testkit::stores::{Cells, Made, Recipe, RecipeProfile as Made09, StoreKind, make};

use super::{
    content::{Content, same},
    migrated,
};
use crate::{block_on, stores::open};

fn made(profile: Made09) -> Made {
    make(&Recipe {
        seed: 11,
        kind: StoreKind::Graph,
        profile,
        axes: 3,
        size: 14,
        cells: Cells::Plain,
        attributes: true,
        ..Recipe::default()
    })
}

async fn opened(files: &BTreeMap<String, Vec<u8>>) -> Result<Dataset, Error> {
    let store = OpenOptions::default().from_memory(files.clone()).unwrap();
    Dataset::open(store).await
}

/// Each file in turn is removed, truncated or flipped. The migration fails and names the location,
/// or the new store holds everything readable of the source.
fn damaged(profile: Made09) {
    let whole: BTreeMap<String, Vec<u8>> = made(profile).files.into_iter().collect();
    let expected = block_on(async { Content::of(&opened(&whole).await.unwrap()).await });
    let (mut refused, mut skipped) = (0, 0);
    for key in whole.keys().filter(|key| key.contains("/c/")) {
        for damage in ["missing", "cut"] {
            let mut files = whole.clone();
            match damage {
                "missing" => {
                    files.remove(key);
                }
                _ => {
                    let bytes = files.get_mut(key).unwrap();
                    bytes.truncate(bytes.len() - 1);
                }
            }
            block_on(async {
                let source = opened(&files).await.unwrap();
                let at = format!("{profile:?} {key} {damage}");
                let error = match migrated(&source, Profile::V09).await {
                    Ok((target, _)) => {
                        // Missing chunks of tables have the fill value.
                        let found = Content::of(&target).await;
                        let here = Content::of(&source).await;
                        same(&found, &here, &at);
                        // Tables: the existing rows are read without the missing ones.
                        let is_table = key.contains("_attributes/") && !key.contains("/links");
                        assert!(damage == "missing" || is_table, "{at}");
                        return;
                    }
                    Err(error) => error_chain(&error),
                };
                let array = key.split("/c/").next().unwrap();
                let family = array.rsplit_once('/').unwrap().0;
                assert!(
                    error.contains(array) || error.contains(family),
                    "{at}: {error}"
                );
                refused += 1;
                let mut options = MigrateOptions::default();
                options.skip_damaged = true;
                let none: [(&str, &[u8]); 0] = [];
                let store = Store::from_memory(none).unwrap();
                if let Ok(report) = zvf::migrate_dataset(&source, &store, &options).await {
                    assert!(
                        report.lost.iter().any(|lost| lost.what == "cannot be read"),
                        "{at}: {report:?}"
                    );
                    let target = Dataset::open(store).await.unwrap();
                    let found = Content::of(&target).await;
                    // Link fragments are rebuilt.
                    let is_index = key.contains("link_fragments");
                    assert!(is_index || found.levels != expected.levels, "{at}");
                    skipped += 1;
                }
            });
        }
    }
    assert!(refused > 10 && skipped * 2 > refused, "{refused} {skipped}");
}

#[test]
fn damage_is_named_08() {
    damaged(Made09::V080);
}

#[test]
fn damage_is_named_07() {
    damaged(Made09::V07);
}

#[test]
fn damage_is_named_09() {
    damaged(Made09::V09);
}

#[test]
fn an_existing_target_is_kept_without_overwrite() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (old, new) = (path("old.zv"), path("new.zv"));
    block_on(async {
        for address in [&old, &new] {
            for (key, bytes) in made(Made09::V080).files {
                let file = std::path::Path::new(address).join(key);
                std::fs::create_dir_all(file.parent().unwrap()).unwrap();
                std::fs::write(file, bytes).unwrap();
            }
        }
        let before = Content::of(&Dataset::open(&old).await.unwrap()).await;
        let mut options = MigrateOptions::default();
        for target in [&old, &new] {
            let refused = migrate(&old, target, &options).await;
            let is_there = matches!(&refused, Err(error) if matches!(error.cause(), Some(CreateError::AlreadyExists)));
            assert!(is_there, "{refused:?}");
        }
        options.overwrite = true;
        // It is replaced only with `overwrite`.
        migrate(&old, &new, &options).await.unwrap();
        let source = Dataset::open(&old).await.unwrap();
        assert_eq!(source.layout().profile(), "0.8");
        same(&Content::of(&source).await, &before, "source");
        migrate(&old, &old, &options).await.unwrap();
        for address in [&old, &new] {
            let dataset = Dataset::open(address).await.unwrap();
            assert_eq!(dataset.layout().profile(), "0.9");
            same(&Content::of(&dataset).await, &before, address);
            let folder = std::path::Path::new(address).join("0");
            assert!(
                !folder
                    .join("cross_chunk_links/0")
                    .join("zarr.json")
                    .exists()
            );
        }
    });
}

/// Cancels a future after a number of polls.
struct Steps<F> {
    work: F,
    done: Arc<AtomicUsize>,
    max: usize,
}

impl<F: Future + Unpin> Future for Steps<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: std::pin::Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let inner = std::pin::Pin::new(&mut self.work);
        match inner.poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if self.done.load(Ordering::Relaxed) >= self.max => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    }
}

#[test]
fn a_cancelled_migration_leaves_no_store() {
    let made = made(Made09::V080);
    let mut given_up = 0;
    for max in (0..).step_by(4) {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("new.zv").to_str().unwrap().to_owned();
        let done = block_on(async {
            let source = open(&made).await;
            let store = OpenOptions::default().create(&target).unwrap();
            let done = Arc::new(AtomicUsize::new(0));
            let mut options = MigrateOptions::default();
            let seen = Arc::clone(&done);
            options.progress = Some(Arc::new(move |_, _| {
                seen.fetch_add(1, Ordering::Relaxed);
            }));
            let work = pin!(zvf::migrate_dataset(&source, &store, &options));
            let work = Steps { work, done, max };
            work.await.transpose().unwrap().is_some()
        });
        block_on(async {
            let found = Dataset::open(&target).await;
            if done {
                let expected = Content::of(&open(&made).await).await;
                same(&Content::of(&found.unwrap()).await, &expected, "whole");
                return;
            }
            assert!(found.is_err(), "after {max} steps");
            given_up += 1;
            // A later migration can create a store there.
            if max % 8 == 0 {
                let source = open(&made).await;
                let options = MigrateOptions::default();
                let store = OpenOptions::default().create(&target).unwrap();
                zvf::migrate_dataset(&source, &store, &options)
                    .await
                    .unwrap();
                Dataset::open(&target).await.unwrap();
            }
        });
        if done {
            break;
        }
    }
    assert!(given_up > 1, "{given_up}");
}

#[test]
fn a_created_store_survives_migration_and_back() {
    use zvf::{Design, Geometry, GeometryKind, NumericColumn};
    use zvf_build::WritePlan;
    let rows = (0_u8..60).map(f32::from);
    let geometry = Geometry::builder(NumericColumn::float32(3, rows)).paths(vec![0, 7, 20], None);
    let mut design = Design::new(GeometryKind::Lines);
    design.kind = GeometryKind::Polylines;
    design.chunk_shape = Some(vec![10.0; 3]);
    let plan = WritePlan::new(geometry.build().unwrap(), design).unwrap();
    block_on(async {
        let none: [(&str, &[u8]); 0] = [];
        let store = Store::from_memory(none).unwrap();
        zvf::create_from_plan(&store, plan, &CreateOptions::new().seal(false))
            .await
            .unwrap();
        let files = store
            .list_all(&zvf_model::key::Key::root(), 1 << 20)
            .await
            .unwrap();
        let source = Dataset::open(store).await.unwrap();
        let (older, report) = migrated(&source, Profile::V08).await.unwrap();
        assert_eq!((report.repaired, report.lost), (vec![], vec![]));
        let (back, report) = migrated(&older, Profile::V09).await.unwrap();
        assert_eq!((report.repaired, report.lost), (vec![], vec![]));
        for file in files {
            let key = zvf_model::key::Key::parse(&file.name).unwrap();
            let read = || zvf_store::Read::full(key.clone());
            let before = source.store().read_one(read()).await.unwrap().unwrap();
            let after = back.store().read_one(read()).await.unwrap().unwrap();
            if file.name.ends_with("zarr.json") {
                let json = |bytes: &[u8]| {
                    let mut json: serde_json::Value = serde_json::from_slice(bytes).unwrap();
                    // The copies of the nodes differ; the nodes themselves are compared.
                    if let Some(attributes) = json
                        .get_mut("attributes")
                        .and_then(serde_json::Value::as_object_mut)
                    {
                        attributes.remove("zvf_nodes");
                    }
                    // Link arrays may come in another order.
                    if let Some(present) = json
                        .pointer_mut("/attributes/zarr_vectors_level/arrays_present")
                        .and_then(serde_json::Value::as_array_mut)
                    {
                        present.retain(|name| name != "links" && name != "cross_chunk_links");
                    }
                    json
                };
                assert_eq!(json(&after), json(&before), "{key}");
            } else {
                assert_eq!(after, before, "{key}");
            }
        }
    });
}
