//! The profile `0.8-padded`, which has no recorded store: a store of 0.8.0 whose vertices are moved
//! into one numeric array.

use serde_json::json;
use zvf::{Dataset, Error, ErrorKind, OpenOptions, StoreInfo};
use zvf_testkit::golden::Golden;

use crate::block_on;

/// Counts the store, with capacity for `room` rows per chunk.
fn info(capacity: usize) -> Result<StoreInfo, Error> {
    let golden = Golden::open("zvf-08");
    let mut files: Vec<(String, Vec<u8>)> = golden
        .files()
        .filter_map(|(path, bytes)| {
            let key = path.strip_prefix("0.8.0/streamlines.zv/")?;
            Some((key.to_owned(), bytes.to_vec()))
        })
        .collect();
    files.retain(|(key, _)| !key.starts_with("0/vertices/"));
    let vertices = json!({
        "zarr_format": 3,
        "node_type": "array",
        "shape": [2, 1, 1, capacity, 3],
        "data_type": "float32",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1, 1, 1, capacity, 3]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 0.0,
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        "attributes": {"zv_array": "vertices", "dtype": "float32", "encoding": "raw"},
    });
    files.push((
        "0/vertices/zarr.json".to_owned(),
        vertices.to_string().into_bytes(),
    ));
    for chunk in 0..2 {
        files.push((
            format!("0/vertices/c/{chunk}/0/0/0/0"),
            vec![0; capacity * 12],
        ));
    }
    let store = OpenOptions::default().from_memory(files).unwrap();
    block_on(async { Dataset::open(store).await?.info().await })
}

/// The chunks have 6 and 2 rows.
#[test]
fn padded_rows_outside_fragments_are_ignored() {
    let info = info(64).unwrap();
    assert_eq!(info.profile, "0.8-padded");
    let level = &info.levels[0];
    assert_eq!((level.vertices, level.chunks), (Some(8), 2));
    assert_eq!((level.objects, level.links), (Some(3), Some(2)));
}

#[test]
fn fragments_past_the_end_of_the_array_are_an_error() {
    let error = info(5).unwrap_err();
    assert!(error.kind() == ErrorKind::Damaged, "{error:?}");
    let message = error.to_string();
    assert!(
        message.contains("6 rows of a chunk that has 5"),
        "{message}"
    );
    assert!(
        error.to_string().starts_with("0/vertex_fragments/0.0.0"),
        "{error}"
    );
}
