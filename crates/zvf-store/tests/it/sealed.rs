//! Stores with an inventory: every single fault is an error that names the object.

use core::{ops::Range, time::Duration};
use std::sync::Arc;

use bytes::Bytes;
use serde_json::json;
use zvf_model::fetch::{
    CellOptions, CellRef, CellRequest, Fetch, FetchError, FetchProblem, Fetched,
};
use zvf_store::{
    ByteRange, CellReader, OpenOptions, Read, ReadError, SealError, SimulatedNetwork, Store,
    Transaction,
};

use crate::{
    cell::{described, frame, metadata, shard, sharded_metadata},
    support::{Killer, Place, array, block_on, full, key, log, numbered},
};

const ROOT: &[u8] = br#"{"zarr_format": 3, "node_type": "group", "attributes": {"name": "a"}}"#;

/// Objects of a small store: nodes, cells that end with their checksum, and one of several blocks.
fn objects() -> Vec<(&'static str, Vec<u8>)> {
    let cell = |byte: u8| {
        let mut bytes = vec![byte; 60];
        let checksum = crc32c::crc32c(&bytes);
        bytes.extend(checksum.to_le_bytes());
        bytes
    };
    vec![
        ("0/zarr.json", b"{\"level\": 0}".to_vec()),
        ("0/a/zarr.json", b"{\"array\": 1}".to_vec()),
        ("0/a/c/0", cell(1)),
        ("0/a/c/1", cell(2)),
        ("0/b/zarr.json", b"{\"array\": 2}".to_vec()),
        ("0/b/c/0", cell(3)),
        ("0/b/c/1", numbered(70_000)),
        ("0/b/c/empty", Vec::new()),
    ]
}

/// Creates a sealed store of `objects` in memory.
async fn sealed(objects: &[(&str, Vec<u8>)]) -> Store {
    sealed_with(OpenOptions::default(), objects).await
}

async fn sealed_with(options: OpenOptions, objects: &[(&str, Vec<u8>)]) -> Store {
    let options = options.record_requests(true);
    let store = options.create("memory:").unwrap();
    let mut creation = store.begin_create().await.unwrap();
    creation.write_seal();
    let objects = objects
        .iter()
        .map(|(name, bytes)| (key(name), Bytes::from(bytes.clone())));
    creation.put_many(objects.collect()).await.unwrap();
    creation.commit(ROOT).await.unwrap();
    store
}

/// Returns a view of the store that checks what it reads.
async fn checked(store: &Store) -> Store {
    let root = store.read_one(full("zarr.json")).await.unwrap().unwrap();
    let view = store
        .committed_view(&root)
        .await
        .unwrap()
        .with_seal(&root)
        .unwrap();
    assert!(view.is_sealed());
    view
}

/// Returns the fault that a read finds, and checks that `stat` finds all but changed contents.
async fn fault(store: &Store, name: &str) -> Option<SealError> {
    let view = checked(store).await;
    let found = fault_of(view.read_one(full(name)).await, name);
    let stat = fault_of(view.stat(&key(name)).await, name);
    assert_eq!(stat, found.filter(|fault| *fault != SealError::Contents));
    found
}

fn fault_of<T>(outcome: Result<T, ReadError>, name: &str) -> Option<SealError> {
    match outcome {
        Ok(_) => None,
        Err(ReadError::Sealed { key, source }) => {
            assert_eq!(key.as_str(), name);
            Some(source)
        }
        Err(other) => panic!("{other:?}"),
    }
}

async fn check_all(store: &Store, objects: &[(&str, Vec<u8>)]) {
    let view = checked(store).await;
    for (name, bytes) in objects {
        let found = view.read_one(full(name)).await.unwrap();
        assert_eq!(found.as_deref(), Some(&bytes[..]), "{name}");
    }
    assert_eq!(view.read_one(full("0/a/c/9")).await.unwrap(), None);
}

async fn put(store: &Store, name: &str, bytes: impl Into<Bytes>) {
    let objects = vec![(key(name), bytes.into())];
    store.put_many(objects).await.unwrap();
}

#[test]
fn a_sealed_store_without_faults_is_read_as_before() {
    block_on(async {
        let store = sealed(&objects()).await;
        check_all(&store, &objects()).await;
    });
}

#[test]
fn each_fault_of_an_object_is_an_error_that_names_it() {
    block_on(async {
        let store = sealed(&objects()).await;
        for (name, bytes) in objects() {
            store.delete_many(vec![key(name)]).await.unwrap();
            assert_eq!(fault(&store, name).await, Some(SealError::Missing));
            for (other, contents) in objects() {
                if other != name {
                    put(&store, name, contents).await;
                    assert!(fault(&store, name).await.is_some(), "{name} {other}");
                }
            }
            let mut longer = bytes.clone();
            longer.push(0);
            put(&store, name, longer).await;
            assert!(matches!(
                fault(&store, name).await,
                Some(SealError::Size { .. })
            ));
            for at in (0..bytes.len()).step_by(1 + bytes.len() / 40) {
                let mut flipped = bytes.clone();
                flipped[at] ^= 1 << (at % 8);
                put(&store, name, flipped).await;
                assert_eq!(fault(&store, name).await, Some(SealError::Contents));
                put(&store, name, bytes[..at].to_vec()).await;
                assert!(fault(&store, name).await.is_some(), "{name} ..{at}");
            }
            put(&store, name, bytes).await;
            assert_eq!(fault(&store, name).await, None);
        }
        put(&store, "0/a/c/9", "new").await;
        assert_eq!(fault(&store, "0/a/c/9").await, Some(SealError::Unlisted));
    });
}

#[test]
fn parts_of_objects_are_checked_with_the_blocks_around_them() {
    block_on(async {
        let store = sealed(&objects()).await;
        let bytes = numbered(70_000);
        let ranges = [
            ByteRange::Bounded(5..9),
            ByteRange::Bounded(16_380..16_390),
            ByteRange::Bounded(69_000..70_000),
            ByteRange::From(69_990),
            ByteRange::Suffix(8),
            ByteRange::Bounded(3..3),
        ];
        let read = |range: &ByteRange| Read::new(key("0/b/c/1"), range.clone());
        let expected: Vec<&[u8]> = vec![
            &bytes[5..9],
            &bytes[16_380..16_390],
            &bytes[69_000..],
            &bytes[69_990..],
            &bytes[69_992..],
            &[],
        ];
        for (range, expected) in ranges.iter().zip(expected) {
            let view = checked(&store).await;
            let found = view.read_one(read(range)).await.unwrap();
            assert_eq!(found.as_deref(), Some(expected), "{range}");
        }
        for past in [
            ByteRange::Bounded(69_000..70_001),
            ByteRange::Suffix(70_001),
        ] {
            let view = checked(&store).await;
            let error = view.read_one(read(&past)).await.unwrap_err();
            assert!(matches!(error, ReadError::Truncated { .. }), "{error:?}");
        }
        // A shard whose cells all have the same sizes as before, with its index at the end.
        let mut stale = bytes.clone();
        stale[16_384] ^= 1;
        put(&store, "0/b/c/1", stale).await;
        let view = checked(&store).await;
        let error = view.read_one(read(&ranges[1])).await.unwrap_err();
        assert!(matches!(error, ReadError::Sealed { .. }), "{error:?}");
    });
}

#[test]
fn a_listing_without_a_listed_node_is_an_error() {
    block_on(async {
        let store = sealed(&objects()).await;
        let view = checked(&store).await;
        assert_eq!(view.list(&key("0"), 9).await.unwrap().folders, ["a", "b"]);
        let cells = [key("0/b/c/0"), key("0/b/c/7")];
        assert_eq!(view.sizes(&cells, 9).await.unwrap(), [Some(64), None]);
        let gone: Vec<_> = ["0/b/zarr.json", "0/b/c/0", "0/b/c/1", "0/b/c/empty"]
            .into_iter()
            .map(key)
            .collect();
        store.delete_many(gone).await.unwrap();
        let error = view.list(&key("0"), 9).await.unwrap_err();
        assert_eq!(error.prefix().as_str(), "0/b");
        let error = view.sizes(&cells, 9).await.unwrap_err();
        assert_eq!(error.prefix().as_str(), "0/b/c/0");
    });
}

#[test]
fn a_root_with_a_changed_byte_is_an_error_or_the_same_root() {
    block_on(async {
        let store = sealed(&objects()).await;
        let root = store.read_one(full("zarr.json")).await.unwrap().unwrap();
        let whole: serde_json::Value = serde_json::from_slice(&root).unwrap();
        let without = |mut value: serde_json::Value| {
            let attributes = value["attributes"].as_object_mut().unwrap();
            attributes.retain(|name, _| name == "name");
            value
        };
        for at in 0..root.len() {
            let mut changed = root.to_vec();
            changed[at] ^= 1;
            // A root that is accepted differs in its inventory or its white space alone.
            if let (Ok(_), Ok(found)) = (
                store.with_seal(&changed),
                serde_json::from_slice::<serde_json::Value>(&changed),
            ) && found["attributes"]["zvf_seal"]["transaction"] == 0
            {
                assert_eq!(without(found), without(whole.clone()), "byte {at}");
            }
        }
    });
}

async fn commit(mut transaction: Transaction) {
    let root = transaction.root().clone();
    transaction.commit(&root).await.unwrap();
}

#[test]
fn a_transaction_keeps_the_inventory() {
    block_on(async {
        let store = sealed(&objects()).await;
        let mut transaction = store.begin().await.unwrap();
        assert!(transaction.is_sealed());
        let new = Bytes::from_static(b"a new cell");
        transaction.put(key("0/a/c/0"), new.clone()).await.unwrap();
        transaction.put(key("0/a/c/5"), new.clone()).await.unwrap();
        transaction.delete(key("0/a/c/1")).await.unwrap();
        commit(transaction).await;
        let mut expected = objects();
        expected.retain(|(name, _)| *name != "0/a/c/1");
        expected[2].1 = new.to_vec();
        expected.push(("0/a/c/5", new.to_vec()));
        check_all(&store, &expected).await;
        // An object of the former transaction.
        put(&store, "0/a/c/0", objects()[2].1.clone()).await;
        assert!(fault(&store, "0/a/c/0").await.is_some());
        put(&store, "0/a/c/1", objects()[3].1.clone()).await;
        assert_eq!(fault(&store, "0/a/c/1").await, Some(SealError::Unlisted));
    });
}

#[test]
fn a_transaction_that_rebased_and_a_part_of_one_keep_the_inventory() {
    block_on(async {
        let store = sealed(&objects()).await;
        let mut mine = store.begin().await.unwrap();
        let mut theirs = store.begin().await.unwrap();
        theirs.put(key("0/a/c/7"), "theirs".into()).await.unwrap();
        commit(theirs).await;
        mine.put(key("0/a/c/8"), "mine".into()).await.unwrap();
        let root = mine.root().clone();
        mine.commit(&root).await.unwrap_err();
        mine.rebase().await.unwrap();
        let mut part = store.join_transaction(mine.id()).await.unwrap();
        part.put(key("0/a/c/9"), "part".into()).await.unwrap();
        mine.merge_staged(&part.staged_journal()).await.unwrap();
        commit(mine).await;
        let view = checked(&store).await;
        for (name, bytes) in [("7", "theirs"), ("8", "mine"), ("9", "part")] {
            let found = view.read_one(full(&format!("0/a/c/{name}"))).await.unwrap();
            assert_eq!(found.as_deref(), Some(bytes.as_bytes()));
        }
        assert_eq!(view.read_one(full("0/a/c/6")).await.unwrap(), None);
    });
}

#[test]
fn a_store_of_others_is_sealed_and_the_seal_removed() {
    block_on(async {
        let others = [
            ("zarr.json", ROOT.to_vec()),
            ("0/zarr.json", b"{}".to_vec()),
        ];
        let store = Store::from_memory(others).unwrap();
        let mut transaction = store.begin().await.unwrap();
        assert!(!transaction.is_sealed());
        transaction.put(key("0/a"), "new".into()).await.unwrap();
        transaction.seal().await.unwrap();
        commit(transaction).await;
        let expected = [("0/zarr.json", b"{}".to_vec()), ("0/a", b"new".to_vec())];
        check_all(&store, &expected).await;
        let mut transaction = store.begin().await.unwrap();
        transaction.remove_seal();
        commit(transaction).await;
        let root = store.read_one(full("zarr.json")).await.unwrap().unwrap();
        assert!(!store.with_seal(&root).unwrap().is_sealed());
    });
}

/// Cells of a store whose inventory needs several leaves.
fn many() -> Vec<(String, Vec<u8>)> {
    let cell = |at: usize| (format!("0/a/c/{at:05}"), at.to_le_bytes().to_vec());
    (0..20_000).map(cell).collect()
}

fn borrowed(objects: &[(String, Vec<u8>)]) -> Vec<(&str, Vec<u8>)> {
    let objects = objects.iter();
    objects
        .map(|(name, bytes)| (name.as_str(), bytes.clone()))
        .collect()
}

#[test]
fn a_large_inventory_is_read_and_written_by_leaf() {
    block_on(async {
        let many = many();
        let store = sealed(&borrowed(&many)).await;
        let leaves = async || {
            let root = store.read_one(full("zarr.json")).await.unwrap().unwrap();
            let root: serde_json::Value = serde_json::from_slice(&root).unwrap();
            let listed = root["attributes"]["zvf_seal"]["leaves"].clone();
            let leaves = listed.as_array().unwrap().iter();
            let names: Vec<String> = leaves
                .map(|leaf| leaf[1].as_str().unwrap().into())
                .collect();
            names
        };
        let before = leaves().await;
        assert!(before.len() > 3);
        let view = checked(&store).await;
        store.take_request_log();
        let reads = [full("0/a/c/00001"), full("0/a/c/00002")];
        view.read(&reads).await.unwrap();
        view.read(&reads).await.unwrap();
        // One leaf, together with the first reads.
        let requests = log(&store);
        let of_leaves = requests
            .iter()
            .filter(|line| line.starts_with(".zvf/seal/"));
        assert_eq!((of_leaves.count(), requests.len()), (1, 5));

        let mut transaction = store.begin().await.unwrap();
        transaction
            .put(key("0/a/c/00001"), "new".into())
            .await
            .unwrap();
        store.take_request_log();
        commit(transaction).await;
        let lines = log(&store);
        let read = lines.iter().filter(|line| line.starts_with(".zvf/seal/"));
        assert_eq!(read.count(), 1);
        let after = leaves().await;
        let kept = after.iter().filter(|leaf| before.contains(leaf)).count();
        assert_eq!(kept, before.len() - 1);
        // The leaf that was replaced is deleted.
        let old = before.iter().find(|leaf| !after.contains(leaf)).unwrap();
        assert_eq!(store.read_one(full(old)).await.unwrap(), None);
        let mut expected = borrowed(&many);
        expected[1].1 = b"new".to_vec();
        check_all(&store, &expected[..10]).await;
        check_all(&store, &expected[19_990..]).await;
    });
}

#[test]
fn a_damaged_absent_or_exchanged_leaf_is_an_error() {
    block_on(async {
        let many = many();
        let store = sealed(&borrowed(&many)).await;
        let (first, second) = (key(".zvf/seal/0-0"), key(".zvf/seal/0-1"));
        let leaf = store
            .read_one(Read::full(first.clone()))
            .await
            .unwrap()
            .unwrap();
        let other = store.read_one(Read::full(second)).await.unwrap().unwrap();
        let mut flipped = leaf.to_vec();
        flipped[100] ^= 1;
        let faults: [Bytes; 3] = [flipped.into(), leaf.slice(..leaf.len() - 1), other];
        for fault in faults {
            store.put_many(vec![(first.clone(), fault)]).await.unwrap();
            let view = checked(&store).await;
            let error = view.read_one(full("0/a/c/00001")).await.unwrap_err();
            let ReadError::Sealed { key, source } = error else {
                panic!("{error:?}");
            };
            assert_eq!((key, source), (first.clone(), SealError::Inventory));
        }
        store.delete_many(vec![first]).await.unwrap();
        let view = checked(&store).await;
        view.read_one(full("0/a/c/00001")).await.unwrap_err();
        view.read_one(full("0/a/c/19999")).await.unwrap();
    });
}

/// Entries before the name would count as unlisted.
#[test]
fn a_changed_first_name_of_a_leaf_is_an_error() {
    block_on(async {
        let (few, many) = (objects(), many());
        for (objects, last) in [(few, "0/b/c/1"), (borrowed(&many), "0/a/c/19999")] {
            let store = sealed(&objects).await;
            let root = store.read_one(full("zarr.json")).await.unwrap().unwrap();
            let mut root: serde_json::Value = serde_json::from_slice(&root).unwrap();
            let leaves = root["attributes"]["zvf_seal"]["leaves"].as_array_mut();
            let first = &mut leaves.unwrap().last_mut().unwrap()[0];
            *first = format!("{}x", first.as_str().unwrap()).into();
            put(&store, "zarr.json", serde_json::to_vec(&root).unwrap()).await;
            let view = checked(&store).await;
            let error = view.read_one(full(last)).await.unwrap_err();
            let is_of_leaf = matches!(
                error,
                ReadError::Sealed {
                    source: SealError::Inventory,
                    ..
                }
            );
            assert!(is_of_leaf, "{error:?}");
        }
    });
}

#[test]
fn a_folder_is_checked_like_memory_and_swept_of_unused_leaves() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(folder.path().to_str().unwrap()).unwrap();
    block_on(async {
        let mut creation = store.begin_create().await.unwrap();
        creation.write_seal();
        let many = many();
        let all = many
            .iter()
            .map(|(name, bytes)| (key(name), Bytes::from(bytes.clone())));
        creation.put_many(all.take(1500).collect()).await.unwrap();
        creation.commit(ROOT).await.unwrap();
        check_all(&store, &borrowed(&many[..50])).await;
        // As a process leaves it that dies before it puts the root.
        std::fs::write(folder.path().join(".zvf/seal/1-dead-0-0"), "leaf").unwrap();
        let swept = store.sweep(Duration::ZERO).await.unwrap();
        assert_eq!(swept, 1);
        check_all(&store, &borrowed(&many[..50])).await;
        let cell = folder.path().join("0/a/c/00003");
        std::fs::write(&cell, 5_usize.to_le_bytes()).unwrap();
        assert_eq!(
            fault(&store, "0/a/c/00003").await,
            Some(SealError::Contents)
        );
        std::fs::remove_file(cell).unwrap();
        assert_eq!(fault(&store, "0/a/c/00003").await, Some(SealError::Missing));
    });
}

/// Objects with names so long that the inventory does not fit into the root.
fn long_names() -> Vec<(String, Vec<u8>)> {
    let name = |at: usize| format!("0/{at:02}{}", "x".repeat(220));
    (0..40).map(|at| (name(at), vec![1; 10])).collect()
}

async fn begin_large(place: &Place, killer: &Killer) -> Store {
    let store = place.open(killer);
    let mut creation = store.begin_create().await.unwrap();
    creation.write_seal();
    let objects = long_names()
        .into_iter()
        .map(|(name, bytes)| (key(&name), Bytes::from(bytes)));
    creation.put_many(objects.collect()).await.unwrap();
    creation.commit(ROOT).await.unwrap();
    store
}

/// Changes the first two objects.
async fn change_large(store: &Store, byte: u8) {
    let mut transaction = store.begin().await.unwrap();
    for (name, _) in &long_names()[..2] {
        let bytes = Bytes::from(vec![byte; 11]);
        transaction.put(key(name), bytes).await.unwrap();
    }
    commit(transaction).await;
}

/// Returns the first bytes of all objects, read with checks.
async fn first_bytes(store: &Store) -> Vec<u8> {
    let view = checked(store).await;
    let mut found = Vec::new();
    for (name, _) in long_names() {
        found.push(view.read_one(full(&name)).await.unwrap().unwrap()[0]);
    }
    found
}

#[test]
fn a_crash_leaves_the_inventory_of_the_state_that_readers_see() {
    let state = |byte: u8| {
        let mut bytes = vec![1; 40];
        bytes[..2].fill(byte);
        bytes
    };
    Place::each(|place, killer| {
        let (mut old, mut new) = (0, 0);
        for at in 1.. {
            let place = place.another(killer);
            let store = block_on(begin_large(&place, killer));
            let survived = killer.survives(at, change_large(&store, 2)).is_some();
            drop(store);
            let store = place.open(killer);
            block_on(async {
                match first_bytes(&store).await {
                    found if found == state(1) => old += 1,
                    found if found == state(2) => new += 1,
                    found => panic!("{found:?}"),
                }
                change_large(&store, 3).await;
                assert_eq!(first_bytes(&store).await, state(3));
                store.sweep(Duration::ZERO).await.unwrap();
                assert_eq!(first_bytes(&store).await, state(3));
            });
            if let Some(path) = place.path() {
                let leaves = std::fs::read_dir(path.join(".zvf/seal")).unwrap();
                assert_eq!(leaves.count(), 1, "one leaf is left");
            }
            if survived {
                break;
            }
        }
        assert!(old > 5 && new > 8, "{old} {new}");
    });
}

#[test]
fn a_change_drops_an_inventory_with_a_damaged_leaf() {
    block_on(async {
        for damaged in [true, false] {
            let store = sealed(&borrowed(&many())).await;
            let leaf = key(".zvf/seal/0-0");
            if damaged {
                store.put_many(vec![(leaf, "damaged".into())]).await
            } else {
                store.delete_many(vec![leaf]).await
            }
            .unwrap();
            // The transaction keeps a leaf whose objects do not change.
            let mut transaction = store.begin().await.unwrap();
            let last = vec![(key("0/a/c/19999"), "new".into())];
            transaction.put_many(last).await.unwrap();
            commit(transaction).await;
            assert!(checked(&store).await.is_sealed());

            let mut transaction = store.begin().await.unwrap();
            let first = vec![(key("0/a/c/00001"), "new".into())];
            transaction.put_many(first).await.unwrap();
            commit(transaction).await;
            let root = store.read_one(full("zarr.json")).await.unwrap().unwrap();
            assert!(!store.with_seal(&root).unwrap().is_sealed());
            let found = store.read_one(full("0/a/c/00001")).await.unwrap();
            assert_eq!(found.unwrap(), "new");
        }
    });
}

/// Cells of a sealed store over a network, as a reader with a cache reads them.
struct Cells {
    store: Store,
    metadata: serde_json::Value,
    reader: CellReader,
}

impl Cells {
    async fn new(metadata: serde_json::Value, objects: &[(&str, Vec<u8>)]) -> Self {
        let network = SimulatedNetwork {
            latency: Duration::ZERO,
            bandwidth: 0,
        };
        let options = OpenOptions::default().simulate_network(network);
        let store = sealed_with(options, objects).await;
        let reader = CellReader::new(checked(&store).await).with_cache(8 << 20);
        Self {
            store,
            metadata,
            reader,
        }
    }

    /// Reads parts of a cell. Returns them and the requests.
    async fn read(
        &self,
        index: [u64; 2],
        parts: &[Range<u64>],
    ) -> (Vec<Result<Option<Fetched>, FetchError>>, Vec<String>) {
        let array = Arc::new(array(self.metadata.clone()));
        let opened = self.reader.array(&key("0/vertices"), array).unwrap();
        assert!(opened.is_plain() || opened.is_in_blocks());
        let wanted = parts.iter().map(|part| CellRequest {
            cell: CellRef::Element(opened.clone(), index.to_vec()),
            part: Some(part.clone()),
        });
        self.store.take_request_log();
        let wanted: Vec<_> = wanted.collect();
        let found = self.reader.cells(&wanted, CellOptions::default()).await;
        (found, log(&self.store))
    }

    /// Reads a part of a cell. Returns it and the requests.
    async fn part(
        &self,
        index: [u64; 2],
        part: Range<u64>,
    ) -> (Result<Option<Fetched>, FetchError>, Vec<String>) {
        let (mut found, requests) = self.read(index, core::slice::from_ref(&part)).await;
        (found.remove(0), requests)
    }
}

/// Bytes that Blosc compresses to about two thirds.
fn noisy(len: usize) -> Vec<u8> {
    let mix = |number: u32, by: u32, factor: u32| (number ^ (number >> by)).wrapping_mul(factor);
    let numbers = (1..u32::MAX).map(|at| mix(mix(at, 16, 0x85eb_ca6b), 13, 0xc2b2_ae35) >> 12);
    numbers.flat_map(u32::to_le_bytes).take(len).collect()
}

/// The codecs of cells in Blosc blocks of 16 KiB, with or without a checksum.
fn in_blocks(serializer: &str, has_checksum: bool) -> serde_json::Value {
    let blosc = json!({"name": "blosc", "configuration": {
        "cname": "lz4", "clevel": 5, "shuffle": "bitshuffle", "typesize": 4, "blocksize": 16_384,
    }});
    let checksum = json!({"name": "crc32c"});
    if has_checksum {
        json!([{"name": serializer}, blosc, checksum])
    } else {
        json!([{"name": serializer}, blosc])
    }
}

/// The bytes of a chunk that store the blocks around `part` of its decoded bytes.
fn stored_blocks(chunk: &[u8], part: &Range<u64>) -> Range<u64> {
    let number = |at: usize| u64::from(u32::from_le_bytes(chunk[at..at + 4].try_into().unwrap()));
    let (size, blocks) = (number(12), number(4).div_ceil(16_384));
    let start = |block: u64| match block {
        block if block < blocks => number(16 + 4 * usize::try_from(block).unwrap()),
        _ => size,
    };
    start(part.start / 16_384)..start(part.end.div_ceil(16_384))
}

/// The request of the blocks of the inventory around a range of an object of `size` bytes.
fn request(name: &str, range: &Range<u64>, size: usize) -> String {
    let size = u64::try_from(size).unwrap();
    let end = size.min(range.end.div_ceil(16_384) * 16_384);
    format!("{name} bytes {}..{end}", range.start / 16_384 * 16_384)
}

#[test]
fn parts_of_blosc_cells_are_read_by_block_and_kept() {
    const CELL: &str = "0/vertices/c/1/2";
    for has_checksum in [false, true] {
        block_on(async {
            let codecs = in_blocks("vlen-bytes", has_checksum);
            let metadata = metadata("variable_length_bytes", &json!([1, 1]), &codecs);
            let payload = noisy(600_000);
            let array = described("0/vertices", metadata.clone()).unwrap();
            let object = array.encode(&payload).unwrap().to_vec();
            let cells = Cells::new(metadata.clone(), &[(CELL, object.clone())]).await;
            // Its first bytes tell whether the cell exists, and where its blocks are.
            let (found, requests) = cells.part([1, 2], 7..7).await;
            let found = found.unwrap().unwrap();
            assert_eq!((&*found.bytes, found.size), (&b""[..], 600_000));
            assert_eq!(requests, [request(CELL, &(0..1), object.len())]);

            let parts = [100_000..100_100, 400_000..440_003];
            let (found, requests) = cells.read([1, 2], &parts).await;
            for (found, part) in found.iter().zip(&parts) {
                let part = usize::try_from(part.start).unwrap()..usize::try_from(part.end).unwrap();
                let found = found.as_ref().unwrap().as_ref().unwrap();
                assert_eq!((&*found.bytes, found.size), (&payload[part], 600_000));
            }
            let framed = |part: &Range<u64>| part.start + 8..part.end + 8;
            let expected = parts.each_ref().map(|part| {
                let stored = stored_blocks(&object, &framed(part));
                assert!(stored.end - stored.start < 64_000, "{stored:?}");
                request(CELL, &stored, object.len())
            });
            assert_eq!(requests, expected);
            // The same blocks again.
            let (found, requests) = cells.read([1, 2], &[99_000..99_001, 7..7]).await;
            assert_eq!(
                found[0].as_ref().unwrap().as_ref().unwrap().bytes,
                payload[99_000..99_001]
            );
            assert!(requests.is_empty(), "{requests:?}");
            // An absent cell, and a part that is longer than the payload.
            let (found, _) = cells.part([1, 3], 0..9).await;
            assert_eq!(*found.as_ref().unwrap(), None);
            let (found, _) = cells.part([1, 2], 599_990..600_001).await;
            assert_eq!(found.as_ref().unwrap_err().problem, FetchProblem::Damaged);

            // A changed byte is found by each part whose blocks it is beside, and by no other.
            for at in [0, 17, 100_000, 200_000, object.len() - 1] {
                let mut changed = object.clone();
                changed[at] ^= 1;
                let cells = Cells::new(metadata.clone(), &[(CELL, object.clone())]).await;
                put(&cells.store, CELL, changed).await;
                for part in [0..4, 100_000..100_100, 400_000..440_003, 599_999..600_000] {
                    let stored = stored_blocks(&object, &framed(&part));
                    let near = stored.start / 16_384..stored.end.div_ceil(16_384);
                    let block = u64::try_from(at / 16_384).unwrap();
                    let (found, _) = cells.part([1, 2], part.clone()).await;
                    let is_damaged = block == 0 || near.contains(&block);
                    assert_eq!(found.is_err(), is_damaged, "byte {at}, part {part:?}");
                }
            }
        });
    }
}

#[test]
fn parts_of_blosc_cells_in_shards_are_read_by_block() {
    const SHARD: &str = "0/vertices/c/0/1";
    block_on(async {
        let mut metadata = sharded_metadata("end", None);
        metadata["codecs"][0]["configuration"]["codecs"] = in_blocks("vlen-bytes", true);
        let payload = noisy(300_000);
        let array = described("0/vertices", metadata.clone()).unwrap();
        let small = noisy(1000);
        let given = [
            (0, noisy(100_000)),
            (1, small.clone()),
            (2, payload.clone()),
        ];
        let given = given.map(|(number, bytes)| (number, Bytes::from(bytes)));
        let object = array.encode_shard(&given).unwrap().to_vec();
        let cells = Cells::new(metadata, &[(SHARD, object.clone())]).await;
        let (found, _) = cells.part([0, 2], 0..0).await;
        assert_eq!(found.unwrap().unwrap().size, 100_000);
        let parts = [150_000..150_008, 299_999..300_000];
        let (found, requests) = cells.read([1, 2], &parts).await;
        let found = found
            .iter()
            .map(|found| found.as_ref().unwrap().as_ref().unwrap());
        let found: Vec<_> = found.map(|found| (&*found.bytes, found.size)).collect();
        let expected = [
            (&payload[150_000..150_008], 300_000),
            (&payload[299_999..], 300_000),
        ];
        assert_eq!(found, expected);
        assert_eq!(requests.len(), 3, "{requests:?}");
        let (found, requests) = cells.part([1, 2], 150_001..150_002).await;
        assert!(found.is_ok() && requests.is_empty(), "{requests:?}");
        let (found, _) = cells.part([1, 3], 0..8).await;
        assert_eq!(*found.as_ref().unwrap(), None);
        // A small cell arrives with its first bytes.
        let reader = CellReader::new(checked(&cells.store).await);
        let cells = Cells { reader, ..cells };
        for (part, count) in [(3..3, 2), (500..504, 0), (0..1000, 0)] {
            let (found, requests) = cells.part([0, 3], part.clone()).await;
            let part = usize::try_from(part.start).unwrap()..usize::try_from(part.end).unwrap();
            assert_eq!(found.unwrap().unwrap().bytes, small[part]);
            assert_eq!(requests.len(), count, "{requests:?}");
        }
    });
}

#[test]
fn hostile_blosc_cells_are_errors_that_name_them() {
    const CELL: &str = "0/vertices/c/1/2";
    block_on(async {
        let metadata = metadata("uint8", &json!([1, 600_000]), &in_blocks("bytes", false));
        let array = described("0/vertices", metadata.clone()).unwrap();
        let object = array.encode(&noisy(600_000)).unwrap().to_vec();
        let number = |at: usize, number: i32| {
            let mut changed = object.clone();
            changed[at..at + 4].copy_from_slice(&number.to_le_bytes());
            changed
        };
        let hostile = [
            Vec::new(),
            object[..10].to_vec(),
            object[..16].to_vec(),
            object[..100].to_vec(),
            // Decoded size, block size, stored size.
            number(4, i32::MAX),
            number(4, 599_999),
            number(4, -1),
            number(8, 0),
            number(8, 1),
            number(8, i32::MAX),
            number(12, 17),
            number(12, i32::MAX),
            // The start of the first block, and the length of its stream.
            number(16, 5),
            number(16, i32::MAX),
            number(16 + 4 * 37, 1),
            number(16 + 4 * 37, i32::MAX),
        ];
        for (case, bytes) in hostile.into_iter().enumerate() {
            let objects = [("0/vertices/c/0/0", object.clone()), (CELL, bytes)];
            let cells = Cells::new(metadata.clone(), &objects).await;
            let (found, _) = cells.part([1, 2], 3..5).await;
            let error = found.expect_err("a hostile cell");
            assert_eq!(error.problem, FetchProblem::Damaged, "case {case}");
            let source = error.source.to_string();
            assert!(source.contains(CELL), "case {case}: {source}");
            let (found, _) = cells.part([0, 0], 3..5).await;
            assert_eq!(found.unwrap().unwrap().bytes, noisy(5)[3..]);
        }
        // A block of a chunk of others may exceed the memory.
        let options = OpenOptions::default().budget(100_000);
        let store = sealed_with(options, &[(CELL, object.clone())]).await;
        let reader = CellReader::new(checked(&store).await);
        let cells = Cells {
            store,
            metadata,
            reader,
        };
        let (found, _) = cells.read([1, 2], &[10..20, 0..599_000]).await;
        for found in found {
            assert_eq!(found.unwrap_err().problem, FetchProblem::OverBudget);
        }
        let (found, _) = cells.part([1, 2], 10..20).await;
        assert_eq!(found.unwrap().unwrap().bytes, noisy(20)[10..]);
    });
}

/// An object that ends with its checksum.
fn with_checksum(mut bytes: Vec<u8>) -> Vec<u8> {
    let checksum = crc32c::crc32c(&bytes);
    bytes.extend(checksum.to_le_bytes());
    bytes
}

#[test]
fn parts_of_cells_with_a_checksum_are_read_by_block_and_kept() {
    const CELL: &str = "0/vertices/c/1/2";
    block_on(async {
        let codecs = json!([{"name": "vlen-bytes"}, {"name": "crc32c"}]);
        let metadata = metadata("variable_length_bytes", &json!([1, 1]), &codecs);
        let payload = numbered(300_000);
        let object = with_checksum(frame(&payload));
        let cells = Cells::new(metadata.clone(), &[(CELL, object.clone())]).await;
        let parts = [100_000..100_100, 200_000..200_003, 7..7];
        let (found, requests) = cells.read([1, 2], &parts).await;
        for (found, part) in found.iter().zip(&parts) {
            let part = usize::try_from(part.start).unwrap()..usize::try_from(part.end).unwrap();
            let found = found.as_ref().unwrap().as_ref().unwrap();
            assert_eq!((&*found.bytes, found.size), (&payload[part], 300_000));
        }
        let block = |number: u64| number * 16_384;
        let request = |from: u64, to: u64| format!("{CELL} bytes {from}..{to}");
        // The first byte tells whether the cell of the empty part exists.
        let expected = [
            request(0, block(1)),
            request(block(6), block(7)),
            request(block(12), block(13)),
        ];
        assert_eq!(requests, expected);
        // The same blocks again, and one of them with the next one.
        let (found, requests) = cells.read([1, 2], &[98_400..114_000, 5..9]).await;
        assert_eq!(
            found[0].as_ref().unwrap().as_ref().unwrap().bytes,
            payload[98_400..114_000]
        );
        assert!(requests.is_empty(), "{requests:?}");
        let (found, requests) = cells.part([1, 2], 110_000..120_000).await;
        assert_eq!(
            found.as_ref().unwrap().as_ref().unwrap().bytes,
            payload[110_000..120_000]
        );
        assert_eq!(requests, [request(block(6), block(8))]);
        // An absent cell, and a part that is longer than the payload by the checksum.
        let (found, _) = cells.part([1, 3], 0..9).await;
        assert_eq!(*found.as_ref().unwrap(), None);
        let (found, _) = cells.part([1, 2], 299_990..300_004).await;
        assert_eq!(found.as_ref().unwrap_err().problem, FetchProblem::Damaged);

        // A changed byte of a block is found by each part of the block, and by no other.
        for at in [0, 100_050, 300_011] {
            let mut changed = object.clone();
            changed[at] ^= 1;
            let cells = Cells::new(metadata.clone(), &[(CELL, object.clone())]).await;
            put(&cells.store, CELL, changed).await;
            for part in [0..4, 100_000..100_100, 200_000..200_003, 299_999..300_000] {
                let reaches = |at: usize| u64::try_from(at).unwrap() / block(1);
                let damaged = reaches(at) == (part.start + 8) / block(1);
                let (found, _) = cells.part([1, 2], part.clone()).await;
                assert_eq!(found.is_err(), damaged, "byte {at}, part {part:?}");
            }
        }
    });
}

#[test]
fn parts_of_cells_with_a_checksum_in_shards_are_read_by_block() {
    block_on(async {
        let metadata = sharded_metadata("end", Some("crc32c"));
        let payload = numbered(100_000);
        let stored = [
            with_checksum(frame(&numbered(70_000))),
            with_checksum(frame(&payload)),
        ];
        let object = shard([Some(&stored[0]), None, Some(&stored[1]), None], "end");
        let cells = Cells::new(metadata, &[("0/vertices/c/0/1", object)]).await;
        let (found, _) = cells.read([1, 2], &[50_000..50_008, 99_999..100_000]).await;
        let found = found
            .iter()
            .map(|found| found.as_ref().unwrap().as_ref().unwrap());
        let found: Vec<_> = found.map(|found| (&*found.bytes, found.size)).collect();
        let expected = [
            (&payload[50_000..50_008], 100_000),
            (&payload[99_999..], 100_000),
        ];
        assert_eq!(found, expected);
        let (found, requests) = cells.part([1, 2], 50_001..50_002).await;
        assert!(found.is_ok() && requests.is_empty(), "{requests:?}");
        let (found, _) = cells.part([0, 3], 0..8).await;
        assert_eq!(*found.as_ref().unwrap(), None);
    });
}
