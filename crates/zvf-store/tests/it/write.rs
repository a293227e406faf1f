//! Puts and deletes of single objects, in memory and on disk.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use zvf_store::{OpenError, OpenOptions, Store};

use crate::support::{block_on, full, key};

/// Runs a check in memory and on disk, with and without durable writes.
fn on_each(check: impl Fn(OpenOptions, &str)) {
    check(OpenOptions::default(), "memory:");
    let folder = tempfile::tempdir().unwrap();
    for (name, durable) in [("plain", false), ("durable", true)] {
        let path = folder.path().join("a/b").join(name);
        check(
            OpenOptions::default().durable(durable),
            path.to_str().unwrap(),
        );
    }
}

fn read(store: &Store, at: &str) -> Option<Bytes> {
    block_on(store.read_one(full(at))).unwrap()
}

#[test]
fn objects_are_overwritten_and_deleted() {
    on_each(|options, address| {
        let store = options.create(address).unwrap();
        let put = |text: &'static str| {
            let objects = ["zarr.json", "0/a/c/0", "0/b"].map(|at| (key(at), Bytes::from(text)));
            block_on(store.put_many(objects.to_vec())).unwrap();
        };
        put("first");
        put("second");
        assert_eq!(read(&store, "0/a/c/0").unwrap(), "second");
        let gone = vec![key("0/a/c/0"), key("0/never"), key("0/b/below-a-file")];
        block_on(store.delete_many(gone)).unwrap();
        assert_eq!(read(&store, "0/a/c/0"), None);
        assert_eq!(read(&store, "0/b").unwrap(), "second");
        let listing = block_on(store.list(&key("0"), 9)).unwrap();
        assert!(
            listing.folders.is_empty(),
            "a folder without objects: {listing:?}"
        );
        let activity = store.activity();
        let counted = (activity.writes, activity.bytes_written, activity.deletes);
        assert_eq!(counted, (6, 3 * 5 + 3 * 6, 3));
    });
}

#[test]
fn put_if_absent_does_not_overwrite() {
    on_each(|options, address| {
        let store = options.create(address).unwrap();
        let put =
            |text: &'static str| block_on(store.put_if_absent(key("x/y"), text.into())).unwrap();
        assert!(put("first"));
        assert!(!put("second"));
        assert_eq!(read(&store, "x/y").unwrap(), "first");
    });
}

#[test]
fn read_only_addresses_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let zip = folder.path().join("s.zip");
    for address in [
        "http://localhost/x",
        "https://localhost/x",
        zip.to_str().unwrap(),
    ] {
        let error = Store::create(address).unwrap_err();
        assert!(matches!(error, OpenError::ReadOnly(a) if a == address));
    }
    assert!(!zip.exists());
    let error = Store::create(file.to_str().unwrap()).unwrap_err();
    assert!(matches!(error, OpenError::NotAFolder(_)), "{error:?}");
    let below = Store::create(file.join("below").to_str().unwrap()).unwrap_err();
    assert!(
        matches!(below, OpenError::Io { .. } | OpenError::NotAFolder(_)),
        "{below:?}"
    );
}

#[cfg(feature = "zip")]
#[test]
fn writes_to_a_zip_file_fail() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.zip");
    let mut zip = zip::ZipWriter::new(std::fs::File::create(&path).unwrap());
    zip.start_file("zarr.json", zip::write::SimpleFileOptions::default())
        .unwrap();
    zip.finish().unwrap();
    let store = Store::open(path.to_str().unwrap()).unwrap();
    let put = block_on(store.put_if_absent(key("a"), "x".into())).unwrap_err();
    let deleted = block_on(store.delete_many(vec![key("a")])).unwrap_err();
    for error in [put, deleted] {
        assert!(
            matches!(error, zvf_store::WriteError::ReadOnly { .. }),
            "{error:?}"
        );
        assert_eq!(error.key(), &key("a"));
    }
}

#[test]
fn a_write_error_names_the_key() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(folder.path().to_str().unwrap()).unwrap();
    block_on(store.put_many(vec![(key("a"), "file".into())])).unwrap();
    let below = block_on(store.put_many(vec![(key("a/b"), "x".into())])).unwrap_err();
    assert_eq!(below.key(), &key("a/b"));
}

#[test]
fn the_write_hook_runs_before_and_after_each_change() {
    on_each(|options, address| {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let hook = Arc::clone(&seen);
        let options = options
            .concurrency(1)
            .write_hook(Arc::new(move |operation, key| {
                hook.lock().unwrap().push(format!("{operation} {key}"));
            }));
        let store = options.create(address).unwrap();
        block_on(async {
            store.put_many(vec![(key("a"), "x".into())]).await.unwrap();
            store.put_if_absent(key("b"), "x".into()).await.unwrap();
            store.delete_many(vec![key("a")]).await.unwrap();
        });
        let want = ["put a", "put-new b", "delete a"].map(|line| [line, line]);
        assert_eq!(*seen.lock().unwrap(), want.concat());
    });
}
