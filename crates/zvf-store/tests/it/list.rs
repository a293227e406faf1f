//! Listing of one level and of whole subtrees.

use zvf_store::{ListError, Store};

use crate::support::{block_on, key};

const KEYS: [&str; 7] = [
    "zarr.json",
    "0/zarr.json",
    "0/vertices/zarr.json",
    "0/vertices/c/0/0/0",
    "0/links/+1/zarr.json",
    "0/links/-1/zarr.json",
    "10/zarr.json",
];

fn stores() -> (Vec<Store>, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    for key in KEYS {
        let path = folder.path().join(key);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, key).unwrap();
    }
    let memory = Store::from_memory(KEYS.map(|key| (key, key))).unwrap();
    let files = Store::open(folder.path().to_str().unwrap()).unwrap();
    (vec![memory, files], folder)
}

#[track_caller]
fn check(prefix: &str, folders: &[&str], files: &[(&str, u64)]) {
    let (stores, _folder) = stores();
    for store in stores {
        let listing = block_on(store.list(&key(prefix), 100)).unwrap();
        assert_eq!(listing.folders, folders, "{store}");
        let got = listing.files.iter().map(|file| (&*file.name, file.size));
        assert_eq!(got.collect::<Vec<_>>(), files, "{store}");
        assert_eq!(store.activity().lists, 1);
    }
}

#[test]
fn one_level_is_listed_in_sorted_order() {
    check("", &["0", "10"], &[("zarr.json", 9)]);
    check("0", &["links", "vertices"], &[("zarr.json", 11)]);
    check("0/links", &["+1", "-1"], &[]);
    check("0/vertices/c/0/0", &[], &[("0", 18)]);
    check("nothing", &[], &[]);
    // Prefixes match whole segments.
    check("1", &[], &[]);
}

#[test]
fn a_listing_over_the_limit_is_an_error() {
    let (stores, _folder) = stores();
    for store in stores {
        assert!(block_on(store.list(&key(""), 3)).is_ok());
        let error = block_on(store.list(&key(""), 2)).unwrap_err();
        assert!(matches!(error, ListError::TooMany { limit: 2, .. }));
    }
}

#[test]
fn a_subtree_is_listed_with_relative_paths() {
    let (stores, _folder) = stores();
    for store in stores {
        let below = |prefix: &str| {
            let files = block_on(store.list_all(&key(prefix), KEYS.len())).unwrap();
            let files = files.into_iter().map(|file| (file.name, file.size));
            files.collect::<Vec<_>>()
        };
        let mut all = KEYS.map(|key| (key.to_owned(), u64::try_from(key.len()).unwrap()));
        all.sort();
        assert_eq!(below(""), all, "{store}");
        let links = [
            ("+1/zarr.json".to_owned(), 20),
            ("-1/zarr.json".to_owned(), 20),
        ];
        assert_eq!(below("0/links"), links, "{store}");
        // Prefixes match whole segments, and an absent prefix has no children.
        assert_eq!(below("1"), [], "{store}");
        assert_eq!(below("nothing"), [], "{store}");
        let error = block_on(store.list_all(&key("0"), 3)).unwrap_err();
        assert!(matches!(error, ListError::TooMany { limit: 3, .. }));
    }
}

#[cfg(unix)]
#[test]
fn a_folder_is_listed_as_object_store_lists_it() {
    use std::{fs, os::unix::fs::symlink, path::Path};

    use futures_util::TryStreamExt;
    use object_store::{ObjectStore, local::LocalFileSystem};

    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("zarr.json"), "outside").unwrap();
    let file = |name: &'static str| {
        let write = move |folder: &Path| fs::write(folder.join(name), name).unwrap();
        Box::new(write) as Box<dyn Fn(&Path)>
    };
    let link = |to: &'static str| {
        let to = outside.path().join(to);
        let link = move |folder: &Path| symlink(&to, folder.join("link")).unwrap();
        Box::new(link) as Box<dyn Fn(&Path)>
    };
    let cases = [
        (file("+1.0_2-3"), 1),
        (file("a b"), 1),
        (file("é"), 1),
        (file("x%20y"), 1),
        (file("back\\slash"), 1),
        // The name of a temporary file.
        (file("c#1"), 0),
        (file("c#x"), 1),
        (link("zarr.json"), 1),
        (link(""), 1),
        (link("missing"), 0),
    ];
    for (number, (change, more)) in cases.into_iter().enumerate() {
        let (stores, folder) = stores();
        change(&folder.path().join("0/vertices"));
        let objects = LocalFileSystem::new_with_prefix(folder.path()).unwrap();
        let expected = block_on(objects.list(None).try_collect::<Vec<_>>()).unwrap();
        let expected = expected.into_iter();
        let expected = expected.map(|object| (object.location.to_string(), object.size));
        let mut expected: Vec<_> = expected.collect();
        expected.sort();
        assert_eq!(expected.len(), KEYS.len() + more, "case {number}");
        let found = block_on(stores[1].list_all(&key(""), 100)).unwrap();
        let found: Vec<_> = found
            .into_iter()
            .map(|file| (file.name, file.size))
            .collect();
        assert_eq!(found, expected, "case {number}");
    }
}
