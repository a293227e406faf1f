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
            let files = block_on(store.list_all(&key(prefix), KEYS.len()))
                .unwrap()
                .into_iter()
                .map(|file| (file.name, file.size));
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
    ];
    for (number, (change, more)) in cases.into_iter().enumerate() {
        let (stores, folder) = stores();
        change(&folder.path().join("0/vertices"));
        let objects = LocalFileSystem::new_with_prefix(folder.path()).unwrap();
        let mut expected: Vec<_> = block_on(objects.list(None).try_collect::<Vec<_>>())
            .unwrap()
            .into_iter()
            .map(|object| (object.location.to_string(), object.size))
            .collect();
        expected.sort();
        assert_eq!(expected.len(), KEYS.len() + more, "case {number}");
        let found: Vec<_> = block_on(stores[1].list_all(&key(""), 100))
            .unwrap()
            .into_iter()
            .map(|file| (file.name, file.size))
            .collect();
        assert_eq!(found, expected, "case {number}");
    }
}

/// `object_store` leaves out such links, and git-annex makes them for files that it has not fetched.
#[cfg(unix)]
#[test]
fn a_link_to_nothing_is_no_absent_object() {
    use std::{error::Error, fs, os::unix::fs::symlink};

    use zvf_store::{Read, ReadError};

    #[track_caller]
    fn check_text(error: &dyn Error) {
        let text = error.source().unwrap().to_string();
        assert!(text.contains("leads to nothing; restore"), "{text}");
    }
    let chunk = "0/vertices/c/0/0/0";
    for linked in [chunk, "0/vertices/c", "0"] {
        let (stores, folder) = stores();
        let (store, path) = (&stores[1], folder.path().join(linked));
        if path.is_dir() {
            fs::remove_dir_all(&path).unwrap();
        } else {
            fs::remove_file(&path).unwrap();
        }
        assert_eq!(
            block_on(store.read_one(Read::full(key(chunk)))).unwrap(),
            None
        );
        symlink("/nothing/here", &path).unwrap();
        let read = block_on(store.read_one(Read::full(key(chunk)))).unwrap_err();
        assert!(matches!(read, ReadError::Io { .. }), "{read:?}");
        check_text(&read);
        check_text(&block_on(store.stat(&key(chunk))).unwrap_err());
        check_text(&block_on(store.list_all(&key(""), 100)).unwrap_err());
        let parent = key(linked).parent().unwrap();
        let error = block_on(store.list(&parent, 100)).unwrap_err();
        check_text(&error);
        assert!(
            error.to_string().starts_with(&format!("{linked}: ")),
            "{error}"
        );
    }
}

#[cfg(unix)]
#[test]
fn a_link_to_a_folder_around_it_is_refused() {
    use std::{fs, os::unix::fs::symlink};

    for (at, to) in [
        ("0/up", ".."),
        ("0/here", "."),
        ("0/vertices/c/0", "../../.."),
    ] {
        let (stores, folder) = stores();
        let path = folder.path().join(at);
        if path.is_dir() {
            fs::remove_dir_all(&path).unwrap();
        }
        symlink(to, path).unwrap();
        let error = block_on(stores[1].list_all(&key(""), 1000)).unwrap_err();
        assert!(matches!(error, ListError::Io { .. }), "{error:?}");
    }
}

/// A folder that may be read but not searched has names, whose files cannot be looked at.
#[cfg(unix)]
#[test]
fn entries_that_may_not_be_looked_at_are_not_left_out() {
    use std::{fs, os::unix::fs::PermissionsExt};

    let (stores, folder) = stores();
    let closed = folder.path().join("0/vertices/c/0/0");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o400)).unwrap();
    let is_superuser = fs::metadata(closed.join("0")).is_ok();
    for prefix in ["", "0/vertices/c/0/0"] {
        let all = block_on(stores[1].list_all(&key(prefix), 100));
        assert_eq!(all.is_ok(), is_superuser, "{all:?}");
    }
    let children = block_on(stores[1].list(&key("0/vertices/c/0/0"), 100));
    assert_eq!(children.is_ok(), is_superuser, "{children:?}");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
}
