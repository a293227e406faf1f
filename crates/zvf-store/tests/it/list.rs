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
