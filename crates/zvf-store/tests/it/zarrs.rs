//! Stores that zarrs reads, and storage of zarrs that is read as a store.

use std::sync::Arc;

use bytes::Bytes;
use zarrs_storage::{
    AsyncReadableListableStorage, AsyncReadableStorageTraits, store::AsyncMemoryStore, store_test,
};
use zvf_store::{CreateError, OpenOptions, Store};

use crate::support::{block_on, full, key};

const ROOT: &[u8] = br#"{"zarr_format": 3, "node_type": "group", "attributes": {}}"#;

/// Runs the suite of `zarrs_storage` on a store with its objects.
async fn passes(store: &Store) {
    store_test::async_store_read(store).await.unwrap();
    store_test::async_store_list(store).await.unwrap();
    store_test::async_store_list_size(store).await.unwrap();
}

#[test]
fn stores_pass_the_suite_of_zarrs_storage() {
    block_on(async {
        let storage = AsyncMemoryStore::new();
        store_test::async_store_write(&storage).await.unwrap();
        let storage: AsyncReadableListableStorage = Arc::new(storage);
        let taken = OpenOptions::new().from_zarrs_storage(storage);
        passes(&taken).await;

        let none: [(&str, Bytes); 0] = [];
        let copy = Store::from_memory(none).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let address = folder.path().display().to_string();
        let in_folder = Store::create(&address).unwrap();
        let files = taken.list_all(&key(""), 100).await.unwrap();
        for store in [&copy, &in_folder] {
            for file in &files {
                let name = key(&file.name);
                let bytes = taken.read_one(full(&file.name));
                let object = (name, bytes.await.unwrap().unwrap());
                store.put_many(vec![object]).await.unwrap();
            }
            passes(store).await;
        }
    });
}

#[test]
fn storage_of_zarrs_is_read_only() {
    let storage = Arc::new(AsyncMemoryStore::new());
    let store = OpenOptions::new().from_zarrs_storage(storage);
    let refused = block_on(async {
        let creation = store.begin_create().await?;
        creation.commit(ROOT).await
    });
    let error: CreateError = refused.unwrap_err();
    let causes = core::iter::successors(Some(&error as &dyn core::error::Error), |e| e.source());
    let text: Vec<String> = causes.map(ToString::to_string).collect();
    assert!(text.join(": ").contains("only read"), "{text:?}");
}

/// Changes one byte of an object of a sealed store, which zarrs then does not get.
#[test]
fn zarrs_reads_through_the_seal_and_the_counters() {
    block_on(async {
        let store = Store::create("memory:").unwrap();
        let mut creation = store.begin_create().await.unwrap();
        creation.write_seal();
        let objects = ["0/a", "0/b"].map(|name| (key(name), Bytes::from(vec![7; 100])));
        creation.put_many(objects.to_vec()).await.unwrap();
        creation.commit(ROOT).await.unwrap();
        let changed = (key("0/b"), Bytes::from(vec![8; 100]));
        store.put_many(vec![changed]).await.unwrap();
        let root = store.read_one(full("zarr.json")).await.unwrap().unwrap();
        let view = store
            .committed_view(&root)
            .await
            .unwrap()
            .with_seal(&root)
            .unwrap();
        let before = view.activity().requests;
        let get = |name: &'static str| {
            let (view, name) = (view.clone(), name.try_into().unwrap());
            async move { AsyncReadableStorageTraits::get(&view, &name).await }
        };
        assert_eq!(get("0/a").await.unwrap().unwrap().len(), 100);
        assert!(view.activity().requests > before);
        let error = get("0/b").await.unwrap_err();
        assert!(error.to_string().starts_with("0/b"), "{error}");
    });
}
