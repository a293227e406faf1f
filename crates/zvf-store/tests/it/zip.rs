//! Reading of stores in zip files.

use std::io::Write;

use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};
use zvf_store::{ByteRange, MergeLimits, OpenError, OpenOptions, Read, ReadError, Store};

use crate::support::{block_on, bounded, full, key, numbered, part};

struct Zipped(tempfile::TempDir);

impl Zipped {
    fn new(entries: &[(&str, CompressionMethod, Vec<u8>)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = std::fs::File::create(folder.path().join("store.zip")).unwrap();
        let mut writer = ZipWriter::new(file);
        for (name, method, bytes) in entries {
            let options = SimpleFileOptions::default().compression_method(*method);
            writer.start_file(*name, options).unwrap();
            writer.write_all(bytes).unwrap();
        }
        writer.finish().unwrap();
        Self(folder)
    }

    fn path(&self) -> String {
        self.0.path().join("store.zip").to_str().unwrap().to_owned()
    }
}

const METHODS: [CompressionMethod; 2] = [CompressionMethod::Stored, CompressionMethod::Deflated];

#[test]
fn entries_are_read_and_listed_as_objects() {
    for method in METHODS {
        let zipped = Zipped::new(&[
            ("zarr.json", method, b"{}".to_vec()),
            ("0/c", method, numbered(1000)),
        ]);
        let store = Store::open(&zipped.path()).unwrap();
        let reads = [
            full("0/c"),
            bounded("0/c", 10..20),
            part("0/c", ByteRange::Suffix(5)),
            part("0/c", ByteRange::From(990)),
            full("0/d"),
        ];
        for read in reads {
            let want = match read.range {
                _ if read.key == key("0/d") => None,
                ByteRange::Full => Some(0..1000),
                ByteRange::Bounded(_) => Some(10..20),
                ByteRange::Suffix(_) => Some(995..1000),
                ByteRange::From(_) => Some(990..1000),
            };
            let got = block_on(store.read_one(read)).unwrap();
            let want = want.map(|range| numbered(1000)[range].to_vec());
            assert_eq!(got.map(|b| b.to_vec()), want, "{method}");
        }
        for range in [ByteRange::Bounded(990..1001), ByteRange::Suffix(1001)] {
            let error = block_on(store.read_one(part("0/c", range))).unwrap_err();
            assert!(matches!(
                error,
                ReadError::Truncated {
                    size: Some(1000),
                    ..
                }
            ));
        }
        let listing = block_on(store.list(&key(""), 9)).unwrap();
        assert_eq!(listing.folders, ["0"]);
        assert_eq!(listing.files[0].name, "zarr.json");
        let listing = block_on(store.list(&key("0"), 9)).unwrap();
        assert_eq!((listing.folders.len(), listing.files[0].size), (0, 1000));
        let files = block_on(store.list_all(&key(""), 9)).unwrap();
        assert_eq!((files[0].name.as_str(), files[0].size), ("0/c", 1000));
        let files = block_on(store.list_all(&key("0"), 9)).unwrap();
        assert_eq!((files.len(), files[0].name.as_str()), (1, "c"));
    }
}

#[test]
fn only_the_range_of_a_stored_entry_is_read() {
    for (method, want) in METHODS.into_iter().zip([10, 1000]) {
        let zipped = Zipped::new(&[("a", method, numbered(1000))]);
        let store = Store::open(&zipped.path()).unwrap();
        block_on(store.read_one(bounded("a", 500..510))).unwrap();
        assert_eq!(store.activity().bytes_read, want);
    }
}

#[test]
fn ranges_of_an_entry_count_once_towards_the_budget() {
    let limits = MergeLimits {
        gap: 0,
        size: 1 << 20,
    };
    let reads: Vec<Read> = (0..6)
        .map(|at| bounded("a", at * 100..at * 100 + 10))
        .collect();
    for (method, bytes) in METHODS.into_iter().zip([60, 1000]) {
        let zipped = Zipped::new(&[("a", method, numbered(1000))]);
        let options = OpenOptions::default().merge_limits(limits).budget(bytes);
        let store = options.open(&zipped.path()).unwrap();
        let found = block_on(store.read(&reads)).unwrap();
        for (at, found) in found.into_iter().enumerate() {
            let range = at * 100..at * 100 + 10;
            assert_eq!(found.unwrap(), numbered(1000)[range]);
        }
        assert_eq!(store.activity().bytes_read, bytes);
    }
}

#[test]
fn a_single_top_level_folder_is_the_store() {
    let stored = CompressionMethod::Stored;
    let zipped = Zipped::new(&[
        ("my.zv/zarr.json", stored, b"{}".to_vec()),
        ("my.zv/0/a", stored, numbered(9)),
    ]);
    let store = Store::open(&zipped.path()).unwrap();
    assert!(
        block_on(store.read_one(full("zarr.json")))
            .unwrap()
            .is_some()
    );
    assert!(block_on(store.read_one(full("0/a"))).unwrap().is_some());
}

#[test]
fn entries_with_invalid_keys_are_ignored() {
    let stored = CompressionMethod::Stored;
    let zipped = Zipped::new(&[
        ("../evil", stored, numbered(9)),
        ("ok", stored, numbered(9)),
    ]);
    let store = Store::open(&zipped.path()).unwrap();
    assert_eq!(block_on(store.list(&key(""), 9)).unwrap().files.len(), 1);
}

#[test]
fn a_damaged_zip_file_is_rejected() {
    let zipped = Zipped::new(&[("a", CompressionMethod::Stored, numbered(9))]);
    std::fs::write(zipped.path(), b"no zip").unwrap();
    let error = Store::open(&zipped.path()).unwrap_err();
    assert!(matches!(error, OpenError::Zip { .. }), "{error:?}");
}
