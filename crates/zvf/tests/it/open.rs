//! Addresses without a store, and stores that are too old, damaged or elsewhere.

use std::fs;

use zvf::{Dataset, Error, ErrorKind, OpenOptions, StateError, StoreInfo};
use zvf_model::detection::GenerationError;
use zvf_model::error_chain::error_chain;
use zvf_testkit::golden::Golden;

use crate::block_on;

/// Opens a recorded store in memory after `change`.
fn open(change: impl Fn(&str, &[u8]) -> Option<Vec<u8>>) -> Result<Dataset, Error> {
    let golden = Golden::open("zvf-07");
    let files = golden.files();
    let objects = files.filter_map(|(path, bytes)| {
        let key = path.strip_prefix("graph.zv/")?;
        Some((key.to_owned(), change(key, bytes)?))
    });
    let store = OpenOptions::default().from_memory(objects).unwrap();
    block_on(Dataset::open(store))
}

/// Counts a recorded store after `change`.
fn store(change: impl Fn(&str, &[u8]) -> Option<Vec<u8>>) -> Result<StoreInfo, Error> {
    let dataset = open(change)?;
    block_on(dataset.info())
}

fn without(missing: &'static str) -> impl Fn(&str, &[u8]) -> Option<Vec<u8>> {
    move |key, bytes| (!key.starts_with(missing)).then(|| bytes.to_vec())
}

#[test]
fn an_intact_store_is_counted() {
    let info = store(without("nothing")).unwrap();
    let [level] = info.levels.as_slice() else {
        panic!("{info:?}")
    };
    assert_eq!(level.vertices, Some(6));
    assert_eq!(
        (level.chunks, level.objects, level.links),
        (3, Some(1), Some(6))
    );
    assert!(info.notes.is_empty(), "{info:?}");
}

#[test]
fn an_address_without_a_store_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let address = folder.path().to_str().unwrap();
    let error = block_on(Dataset::open(address)).unwrap_err();
    assert!(
        matches!(error.cause(), Some(StateError::NoStore { .. })),
        "{error}"
    );
    assert!(error.to_string().starts_with(address), "{error}");
    let nowhere = format!("{address}/nowhere");
    let error = block_on(Dataset::open(&nowhere)).unwrap_err();
    assert!(error_chain(&error).contains("nowhere"), "{error}");
    let error = block_on(Dataset::open("")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(
        error_chain(&error).contains("\"\" is not the address of a store"),
        "{error}"
    );
}

#[test]
fn a_store_without_levels_is_an_error() {
    let error = store(without("0/")).unwrap_err();
    assert!(error.is_not_found(), "{error}");
}

#[test]
fn an_unsupported_version_is_named_in_the_error() {
    let aged = |key: &str, bytes: &[u8]| {
        let text = core::str::from_utf8(bytes).unwrap_or_default();
        match key {
            "zarr.json" => Some(text.replace("\"0.7.", "\"0.4.").into_bytes()),
            _ => Some(bytes.to_vec()),
        }
    };
    let error = store(aged).unwrap_err();
    assert!(error.cause::<GenerationError>().is_some(), "{error}");
    assert!(error_chain(&error).contains("0.4"), "{error}");
}

#[test]
fn missing_manifests_are_an_error() {
    let error = store(without("0/object_index/manifests/")).unwrap_err();
    assert!(
        error_chain(&error).contains("0/object_index/manifests"),
        "{error}"
    );
}

#[test]
fn damaged_metadata_name_their_key() {
    for key in [
        "zarr.json",
        "0/zarr.json",
        "0/vertices/zarr.json",
        "0/vertices/0.0.0/zarr.json",
    ] {
        let cut = |path: &str, bytes: &[u8]| {
            let end = if path == key {
                bytes.len() / 2
            } else {
                bytes.len()
            };
            bytes.get(..end).map(<[u8]>::to_vec)
        };
        let error = store(cut).unwrap_err();
        assert!(error.kind() == ErrorKind::Damaged, "{key}: {error}");
        assert!(error_chain(&error).contains(key), "{key}: {error}");
    }
}

#[test]
fn a_folder_and_memory_have_equal_counts() {
    let golden = Golden::open("zvf-07");
    let folder = tempfile::tempdir().unwrap();
    for (path, bytes) in golden.files() {
        let Some(key) = path.strip_prefix("graph.zv/") else {
            continue;
        };
        let file = folder.path().join(key);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, bytes).unwrap();
    }
    let address = folder.path().to_str().unwrap();
    let info = block_on(async { Dataset::open(address).await?.info().await });
    assert_eq!(info.unwrap(), store(without("nothing")).unwrap());
}

/// Every truncation of every uncompressed vertex cell is an error, never a result with fewer
/// vertices.
#[test]
fn a_truncated_cell_is_never_a_shorter_result() {
    let golden = Golden::open("zvf-09");
    let prefix = "points_fragment_attributes/store.zarrvectors/";
    let files = || {
        let files = golden.files();
        files.filter_map(|(path, bytes)| Some((path.strip_prefix(prefix)?, bytes)))
    };
    let mut cuts = 0;
    for (cell, bytes) in files().filter(|(key, _)| key.starts_with("0/vertices/c/")) {
        for end in 0..bytes.len() {
            let objects = files().map(|(key, bytes)| {
                let end = if key == cell { end } else { bytes.len() };
                (key, bytes[..end].to_vec())
            });
            let store = OpenOptions::default().from_memory(objects).unwrap();
            let info = async { Dataset::open(store).await?.info().await };
            let error = block_on(info).unwrap_err();
            assert!(
                error_chain(&error).contains(cell),
                "{cell} cut to {end}: {error}"
            );
            cuts += 1;
        }
    }
    assert!(cuts > 0, "no plain cell in the store");
}

#[test]
fn repeated_members_are_noted() {
    for (file, member) in [
        ("zarr.json", "chunk_shape"),
        ("0/zarr.json", "arrays_present"),
        ("0/vertices/zarr.json", "shape"),
    ] {
        let golden = Golden::open("zvf-09");
        let files = golden.files();
        let objects = files.filter_map(|(path, bytes)| {
            let key = path.strip_prefix("points_2d_bins/store.zarrvectors/")?;
            let text = String::from_utf8_lossy(bytes);
            let again = format!("\"{member}\": [9, 9], \"{member}\"");
            let bytes = if key == file {
                text.replacen(&format!("\"{member}\""), &again, 1)
                    .into_bytes()
            } else {
                bytes.to_vec()
            };
            Some((key.to_owned(), bytes))
        });
        let store = OpenOptions::default().from_memory(objects).unwrap();
        let dataset = block_on(Dataset::open(store)).unwrap();
        let notes = block_on(dataset.info()).unwrap().notes;
        let expected = format!("\"{member}\" occurs twice; the last one is used");
        assert!(
            notes.iter().any(|note| note.ends_with(&expected)),
            "{file}: {notes:?}"
        );
    }
}
