//! Levels are equal byte for byte, however they are built.

use std::{
    collections::BTreeMap,
    pin::pin,
    task::{Context, Poll, Waker},
};

use zvf::{CrossLevel, Store, build_pyramid};
use zvf_build::{GeometryKind, Profile};
use zvf_model::key::Key;
use zvf_store::Read;

use super::random::wanted;
use crate::block_on;

pub(super) type Files = BTreeMap<String, Vec<u8>>;

/// Returns the files of a store, without those of transactions.
pub(super) async fn files(store: &Store) -> Files {
    let names: Vec<String> = store
        .list_all(&Key::root(), usize::MAX)
        .await
        .unwrap()
        .into_iter()
        .map(|file| file.name)
        .filter(|name| !name.starts_with(".zvf/"))
        .collect();
    let reads = names
        .iter()
        .map(|name| Read::full(Key::parse(name).unwrap()));
    let read = store.read(&reads.collect::<Vec<_>>()).await.unwrap();
    let mut files = Files::new();
    for (name, bytes) in names.into_iter().zip(read) {
        files.insert(name, bytes.unwrap().to_vec());
    }
    let root = files.get_mut("zarr.json").unwrap();
    let mut json: serde_json::Value = serde_json::from_slice(root).unwrap();
    json["attributes"].as_object_mut().unwrap().remove("zvf");
    *root = serde_json::to_vec(&json).unwrap();
    files
}

/// Returns a store with its levels, built with this kind of cross-level links.
async fn made(seed: u64, kind: GeometryKind, profile: Profile, links: CrossLevel) -> Files {
    let mut wanted = wanted(seed, kind, profile).await;
    wanted.options.cross_level = links;
    let made = build_pyramid(&wanted.store, &wanted.options).await;
    made.unwrap_or_else(|error| panic!("{error:?}, {}", wanted.about));
    files(&wanted.store).await
}

/// Runs a future of a store in memory without a runtime, so that all work happens on this thread
/// pool.
fn polled<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        std::thread::yield_now();
    }
}

fn each(check: impl Fn(u64, GeometryKind, Profile)) {
    for kind in GeometryKind::ALL {
        for (seed, profile) in [(2, Profile::V09), (3, Profile::V09), (4, Profile::V08)] {
            check(seed, kind, profile);
        }
    }
}

#[test]
fn levels_are_the_same_on_any_number_of_threads() {
    let pools = [1, 2].map(|threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        pool.build().unwrap()
    });
    each(|seed, kind, profile| {
        let make = || polled(made(seed, kind, profile, CrossLevel::Explicit));
        let [one, two] = pools.each_ref().map(|pool| pool.install(make));
        assert!(one.keys().any(|name| name.starts_with("1/")));
        assert!(one == two, "seed {seed}, {kind:?}, {profile:?}");
    });
}

/// Without cross-level links, only these links are missing.
#[test]
fn levels_do_not_depend_on_the_stored_cross_level_links() {
    let is_said = |name: &str| {
        let parts: Vec<&str> = name.split('/').collect();
        let is_link = matches!(parts.get(1), Some(&"links" | &"cross_chunk_links"));
        // The metadata of the root, levels and groups mention links.
        let tells = parts.len() < 3 || is_link && parts.len() == 3;
        !(is_link && parts.get(2) != Some(&"0") || tells && name.ends_with("zarr.json"))
    };
    each(|seed, kind, profile| {
        let all = [CrossLevel::None, CrossLevel::Implicit, CrossLevel::Explicit];
        let [none, up, both] = all.map(|links| block_on(made(seed, kind, profile, links)));
        let about = format!("seed {seed}, {kind:?}, {profile:?}");
        assert!(none.len() < up.len() && up.len() < both.len(), "{about}");
        let own = |files: Files| -> Files {
            files
                .into_iter()
                .filter(|(name, _)| is_said(name))
                .collect()
        };
        let [none, up, both] = [none, up, both].map(own);
        assert!(none.keys().any(|name| name.starts_with("1/")));
        assert!(none == up && up == both, "{about}");
    });
}
