//! Tests of Zarr arrays in folders.

use std::fs;

use zvf_dense::{
    ChunkGrid, DenseArray, Hyperslab, MemoryArray, convert,
    zarr::{ZarrArray, ZarrCompression, ZarrSink},
};

use crate::convert::{counted, read};

#[test]
fn zarr_round_trips_in_every_codec() {
    let folder = tempfile::tempdir().unwrap();
    let codecs = [
        ZarrCompression::Raw,
        ZarrCompression::Zstd(1),
        ZarrCompression::Gzip(4),
        ZarrCompression::Blosc(5),
    ];
    for (at, codec) in codecs.into_iter().enumerate() {
        for dtype in ["u1", "<i2", "<f4", "<f8", "|b1"] {
            let mut array = counted(dtype, &[5, 7]);
            if dtype == "|b1" {
                array =
                    MemoryArray::new("a", dtype.parse().unwrap(), vec![5, 7], vec![1; 35]).unwrap();
            }
            let path = folder.path().join(format!("{at}{}.zarr", &dtype[1..]));
            let grid = ChunkGrid::new(vec![5, 7], vec![2, 3], None).unwrap();
            let attributes = serde_json::Map::from_iter([("a".to_owned(), 1.into())]);
            let names = ["y".to_owned(), "x".to_owned()];
            let sink =
                ZarrSink::create(&path, array.dtype(), grid, codec, &attributes, Some(&names));
            convert(&array, Box::new(sink.unwrap()), &mut |_| ()).unwrap();
            let back = ZarrArray::open(&path, None).unwrap();
            assert_eq!((back.dtype(), back.shape()), (array.dtype(), array.shape()));
            assert_eq!(back.attributes(), &attributes);
            assert_eq!(back.dimension_names(), Some(&names[..]));
            assert!(read(&back) == read(&array));
            let selection = Hyperslab::new(&[1, 0], &[5, 7], Some(&[3, 2])).unwrap();
            assert!(back.slice(&selection).unwrap() == array.slice(&selection).unwrap());
            assert_eq!(back.read_plan(&selection).unwrap().chunks, 6);
            // An existing array is not overwritten.
            let grid = back.grid().clone();
            let again = ZarrSink::create(&path, array.dtype(), grid, codec, &attributes, None);
            assert!(again.is_err());
        }
    }
    let left = fs::read_dir(folder.path()).unwrap();
    assert_eq!(left.count(), 20);
}

#[test]
fn zarr_v2_big_endian_with_missing_chunks_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let metadata = r#"{"zarr_format": 2, "shape": [3, 2], "chunks": [2, 2], "dtype": ">i2",
        "compressor": null, "fill_value": 7, "filters": null, "order": "C"}"#;
    fs::write(folder.path().join(".zarray"), metadata).unwrap();
    let chunk: Vec<u8> = [1_i16, 2, 3, 4]
        .iter()
        .flat_map(|value| value.to_be_bytes())
        .collect();
    fs::write(folder.path().join("0.0"), chunk).unwrap();
    let array = ZarrArray::open(folder.path(), None).unwrap();
    let bytes = read(&array);
    let (values, _) = bytes.as_chunks::<2>();
    let values: Vec<i16> = values
        .iter()
        .map(|value| i16::from_le_bytes(*value))
        .collect();
    assert_eq!(values, [1, 2, 3, 4, 7, 7]);
}
