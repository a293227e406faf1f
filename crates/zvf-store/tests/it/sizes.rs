//! Object sizes from listings, without reads.

use zvf_model::fetch::Fetch;
use zvf_store::{CellReader, ListError, Store};

use crate::support::{block_on, key};

const KEYS: [&str; 5] = [
    "zarr.json",
    "0/vertices/zarr.json",
    "0/vertices/c/0/0/0",
    "0/vertices/c/0/0/10",
    "0/vertices/c/1/0/0",
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

#[test]
fn each_folder_is_listed_once_and_nothing_is_read() {
    let wanted = [
        ("0/vertices/c/0/0/10", Some(19)),
        ("0/vertices/c/0/0/0", Some(18)),
        ("0/vertices/c/0/0/1", None),
        ("zarr.json", Some(9)),
        ("0/vertices/c/0/0/10", Some(19)),
        // A folder, the root, and an object in an absent folder have no size.
        ("0/vertices/c", None),
        ("", None),
        ("9/nothing", None),
    ];
    let keys = wanted.map(|(text, _)| key(text));
    let expected = wanted.map(|(_, size)| size);
    let (stores, _folder) = stores();
    for store in stores {
        let found = block_on(store.sizes(&keys, 100)).unwrap();
        assert_eq!(found, expected, "{store}");
        let activity = store.activity();
        assert_eq!((activity.requests, activity.lists), (0, 4), "{store}");
        let reader = CellReader::new(store);
        assert_eq!(block_on(Fetch::sizes(&reader, &keys)).unwrap(), expected);
        assert_eq!(block_on(reader.sizes(&[])).unwrap(), []);
    }
}

#[test]
fn a_folder_over_the_limit_is_an_error() {
    let (stores, _folder) = stores();
    for store in stores {
        let keys = [key("0/vertices/c/0/0/0")];
        assert!(block_on(store.sizes(&keys, 2)).is_ok());
        let error = block_on(store.sizes(&keys, 1)).unwrap_err();
        assert!(matches!(error, ListError::TooMany { limit: 1, .. }));
    }
}

#[cfg(feature = "http")]
#[test]
fn sizes_need_a_server_that_can_list() {
    let web = zvf_testkit::web::Web::serve([].into(), 405);
    let reader = CellReader::new(Store::open(&web.address()).unwrap());
    let error = block_on(reader.sizes(&[key("0/a")])).unwrap_err();
    assert_eq!(error.problem, zvf_model::fetch::FetchProblem::Unlistable);
    assert_eq!(error.key, key("0"));
}
