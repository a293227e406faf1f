//! Objects of stores are served as readers of the store see them.

use std::{
    fs,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
};

use zvf::{
    CreateOptions, Dataset, Design, Editor, Geometry, GeometryKind, NumericColumn, OpenOptions,
};
use zvf_model::key::Key;
use zvf_serve::ServeOptions;
use zvf_store::Read;

use crate::{
    client::TestServer,
    stores::{TestStores, block_on},
};

/// Creates a store of two objects that lie in different chunks.
fn create(stores: &TestStores, is_sealed: bool) -> String {
    let address = stores.address("a.zv");
    let positions = (0..600_u16).map(|at| f32::from(at / 300 * 50 + at % 20));
    let geometry = Geometry::builder(NumericColumn::float32(3, positions))
        .object_ids((0..200).map(|at| at / 100).collect());
    let design = Design::new(GeometryKind::Points).chunk_shape([25.0; 3]);
    let options = CreateOptions::default().seal(is_sealed);
    block_on(zvf::create(
        address.as_str(),
        &geometry.build().unwrap(),
        design,
        &options,
    ))
    .unwrap();
    address
}

/// Returns the names and contents of the objects that a reader sees.
fn objects(address: &str) -> Vec<(String, Vec<u8>)> {
    block_on(async {
        let dataset = Dataset::open(address).await.unwrap();
        let store = dataset.store();
        let mut objects = Vec::new();
        for file in store.list_all(&Key::root(), 1000).await.unwrap() {
            let read = Read::full(Key::parse(&file.name).unwrap());
            let bytes = store.read_one(read).await.unwrap().unwrap();
            objects.push((file.name, bytes.to_vec()));
        }
        objects
    })
}

/// Checks that the server has the objects that a reader sees, and none of `earlier` beside them.
fn check(server: &TestServer, address: &str, earlier: &[(String, Vec<u8>)]) {
    let present = objects(address);
    // The cells of an edited store come first: the root tells readers of the change.
    for (name, bytes) in present.iter().rev() {
        let path = format!("/a/store/{name}");
        let head = server.send("HEAD", &path, &[]);
        let size = bytes.len().to_string();
        assert_eq!(head.header("content-length"), Some(&*size), "{name}");
        assert_eq!(server.get(&path), *bytes, "{name}");
    }
    for (name, _) in earlier {
        if !present.iter().any(|(other, _)| other == name) {
            let path = format!("/a/store/{name}");
            assert_eq!(server.send("GET", &path, &[]).status, 404, "{name}");
        }
    }
}

#[test]
fn a_reader_of_objects_sees_each_change() {
    for is_sealed in [true, false] {
        let stores = TestStores::new();
        let address = create(&stores, is_sealed);
        let server = TestServer::start(&[("a", &address)], ServeOptions::new());
        let mut earlier = objects(&address);
        check(&server, &address, &earlier);
        for object in [1, 0] {
            let editor = block_on(Editor::open(address.as_str())).unwrap();
            block_on(editor.remove(&[object])).unwrap();
            check(&server, &address, &earlier);
            earlier = objects(&address);
        }
    }
}

/// A process died after its commit, so that cells of the new state are not yet at their keys.
#[test]
fn a_store_with_a_pending_transaction_is_served_as_committed() {
    for is_sealed in [true, false] {
        let stores = TestStores::new();
        let address = create(&stores, is_sealed);
        let earlier = objects(&address);
        let before = TestServer::start(&[("a", &address)], ServeOptions::new());
        let is_committed = AtomicBool::new(false);
        let options = OpenOptions::default().write_hook(Arc::new(move |_, key| {
            if key.as_str() == "zarr.json" {
                is_committed.store(true, SeqCst);
            } else if is_committed.load(SeqCst) {
                resume_unwind(Box::new("killed"));
            }
        }));
        let edit = || {
            block_on(async {
                let editor = Editor::open_with(address.as_str(), &options).await.unwrap();
                editor.remove(&[1]).await.map(drop)
            })
        };
        let edited = catch_unwind(AssertUnwindSafe(edit));
        assert!(!matches!(edited, Ok(Ok(()))));
        let root = fs::read(stores.folder.path().join("a.zv/zarr.json")).unwrap();
        let root: serde_json::Value = serde_json::from_slice(&root).unwrap();
        assert_eq!(root["attributes"]["zvf"]["pending"], true);
        assert_ne!(objects(&address), earlier);
        let after = TestServer::start(&[("a", &address)], ServeOptions::new());
        for server in [&before, &after] {
            check(server, &address, &earlier);
        }
        // The next writer applies the transaction.
        block_on(Editor::open(address.as_str())).unwrap();
        for server in [&before, &after] {
            check(server, &address, &earlier);
        }
    }
}

#[test]
fn objects_that_cannot_be_read_are_errors_with_a_reason() {
    let stores = TestStores::new();
    let address = create(&stores, true);
    let server = TestServer::start(&[("a", &address)], ServeOptions::new());
    let objects = objects(&address);
    let is_cell = |name: &str| name.starts_with("0/vertices/c/");
    let (cell, bytes) = objects.iter().find(|(name, _)| is_cell(name)).unwrap();
    let (path, file) = (
        format!("/a/store/{cell}"),
        stores.folder.path().join("a.zv").join(cell),
    );
    let damaged: Vec<u8> = bytes.iter().map(|byte| byte ^ 1).collect();
    for damaged in [Some(damaged), Some(vec![0]), None] {
        match damaged {
            Some(damaged) => fs::write(&file, damaged).unwrap(),
            None => fs::remove_file(&file).unwrap(),
        }
        let response = server.send("GET", &path, &[]);
        assert_eq!(response.status, 500, "{}", response.text());
        assert!(response.text().contains(cell), "{}", response.text());
        assert!(response.text().contains("sealed"), "{}", response.text());
    }
    fs::write(&file, bytes).unwrap();
    assert_eq!(server.get(&path), *bytes);
}

/// A pipe has no end, and a request for it may not hold up others.
#[test]
#[cfg(unix)]
fn pipes_are_errors() {
    for is_sealed in [true, false] {
        let stores = TestStores::new();
        let address = create(&stores, is_sealed);
        let server = TestServer::start(&[("a", &address)], ServeOptions::new());
        let pipe = stores.folder.path().join("a.zv/pipe");
        let made = std::process::Command::new("mkfifo").arg(pipe).status();
        assert!(made.unwrap().success());
        for method in ["GET", "HEAD"] {
            let response = server.send(method, "/a/store/pipe", &[]);
            assert_eq!(response.status, 500);
            let is_named = response.text().contains("not a regular file");
            assert!(is_named || method == "HEAD", "{}", response.text());
        }
    }
}

#[test]
fn large_objects_are_sent_in_pieces() {
    let stores = TestStores::new();
    let address = create(&stores, false);
    let server = TestServer::start(&[("a", &address)], ServeOptions::new());
    let bytes: Vec<u8> = (0..=250).cycle().take(9 << 20).collect();
    fs::write(stores.folder.path().join("a.zv/large"), &bytes).unwrap();
    let path = "/a/store/large";
    assert!(server.get(path) == bytes);
    for (range, part) in [
        ("bytes=5-9", &bytes[5..10]),
        ("bytes=1-", &bytes[1..]),
        ("bytes=-8388608", &bytes[1 << 20..]),
        ("bytes=3-8388610", &bytes[3..=8 << 20 | 2]),
    ] {
        let response = server.send("GET", path, &[("Range", range)]);
        assert_eq!(response.status, 206, "{range}");
        assert!(response.body == part, "{range}");
    }
}
