//! Tests with all recorded files: 45 valid and 72 damaged ones.

use std::{fs, sync::Arc};

use serde_json::Value;
use zvf_dense::{
    ByteSource, DenseArray, FileSource, Hyperslab, MappedFile, MemorySource,
    tet::{MemoryBudget, TetFile, TetOptions, verify},
};
use zvf_testkit::golden::{Golden, unhex};

use super::open;

fn numbers(value: &Value) -> Vec<u64> {
    let list = value.as_array().unwrap().iter();
    list.map(|number| number.as_u64().unwrap()).collect()
}

fn selection(value: &Value, shape: &[u64]) -> Hyperslab {
    let axes = value.as_array().unwrap().iter();
    let part = |key: &str, or: &dyn Fn(usize) -> u64| {
        let parts = axes
            .clone()
            .enumerate()
            .map(|(axis, range)| range[key].as_u64().unwrap_or_else(|| or(axis)));
        parts.collect::<Vec<u64>>()
    };
    let stops = part("stop", &|axis| shape[axis]);
    Hyperslab::new(&part("start", &|_| 0), &stops, Some(&part("step", &|_| 1))).unwrap()
}

/// Returns options that override the budgets in files, which may be smaller than the file.
fn unlimited() -> TetOptions {
    let bytes = Some(1 << 30);
    let budget = MemoryBudget { bytes, bps: None };
    TetOptions { budget }
}

fn check_memory(name: &str, bytes: &[u8], expected: &Value) {
    let source = MemorySource::new(name, bytes.to_vec());
    check(
        &TetFile::open(Arc::new(source), unlimited()).unwrap(),
        expected,
    );
    let file = open(name, bytes).unwrap();
    let budget = u64::from(file.memory_budget_bytes());
    for array in (0..file.datasets().len()).filter_map(|id| file.dataset_at(id)) {
        let whole = Hyperslab::whole(array.shape());
        let needed = array.read_plan(&whole).unwrap().bytes;
        let is_over = budget > 0 && needed > budget;
        assert_eq!(array.slice(&whole).is_err(), is_over, "{name}");
    }
}

/// Checks a file against everything recorded about it.
fn check(file: &TetFile, expected: &Value) {
    let name = expected["file"].as_str().unwrap();
    let superblock = &expected["superblock"];
    assert_eq!(u64::from(file.superblock().flags()), superblock["flags"]);
    let execution = &expected["file_execution"];
    assert_eq!(
        u64::from(file.memory_budget_bps()),
        execution["memory_budget_percent_bps"]
    );
    assert_eq!(
        u64::from(file.memory_budget_bytes()),
        execution["memory_budget_bytes"]
    );
    let datasets = expected["datasets"].as_array().unwrap();
    assert_eq!(file.datasets().len(), datasets.len(), "{name}");
    for (id, expected) in datasets.iter().enumerate() {
        let array = file.dataset_at(id).unwrap();
        assert_eq!(array.name(), expected["name"]);
        assert_eq!(array.info().dtype().name(), expected["dtype"]);
        assert_eq!(array.shape(), numbers(&expected["shape"]));
        assert_eq!(
            array.grid().chunk_shape(),
            numbers(&expected["chunk_shape"])
        );
        let whole = Hyperslab::whole(array.shape());
        let tensor = unhex(expected["tensor_hex"].as_str().unwrap());
        assert!(array.slice(&whole).unwrap() == tensor, "{name}");
        let found = array.contiguous(&whole).unwrap();
        let is_row_major = found.as_ref().is_some_and(|found| found.is_row_major);
        assert_eq!(found.is_some(), expected["contiguous_raw_span"], "{name}");
        assert_eq!(
            is_row_major, expected["contiguous_span_is_row_major"],
            "{name}"
        );
        if let Some(bytes) = array.borrow(&whole).unwrap() {
            assert!(bytes == tensor, "{name}");
        }
        let chunks = expected["chunks"].as_array().unwrap();
        assert_eq!(array.read_plan(&whole).unwrap().chunks, chunks.len() as u64);
        // The reference implementation cannot select datasets without a unique name.
        let selections = expected["selections"].as_array();
        let is_asked = !array.name().is_empty() && name != "duplicate_names.tet";
        assert!(selections.is_some() || !is_asked, "{name}");
        for expected in selections.into_iter().flatten() {
            let selection = selection(&expected["selection"], array.shape());
            assert_eq!(selection.shape(), numbers(&expected["shape"]));
            let bytes = unhex(expected["hex"].as_str().unwrap());
            assert!(array.slice(&selection).unwrap() == bytes, "{name}");
            let plan = array.read_plan(&selection).unwrap();
            let touched = expected["touched_chunks"].as_array().unwrap();
            assert_eq!(plan.chunks, touched.len() as u64);
            assert_eq!(plan.bytes_read, expected["total_stored_bytes"]);
            let mut cells = array.grid().chunks(&selection);
            for expected in touched {
                let parts = cells.next().unwrap();
                let coordinate: Vec<u64> = parts.iter().map(|part| part.cell).collect();
                assert_eq!(coordinate, numbers(expected));
            }
        }
    }
}

#[test]
fn valid_files_match_their_records() {
    let golden = Golden::open("tet");
    let expected = golden.json("expected.json");
    let files = expected["files"].as_array().unwrap();
    assert_eq!(files.len(), 45);
    let folder = tempfile::tempdir().unwrap();
    for expected in files {
        let name = expected["file"].as_str().unwrap();
        let bytes = golden.file(&format!("good/{name}"));
        check_memory(name, bytes, expected);
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        let sources: [Arc<dyn ByteSource>; 2] = [
            Arc::new(MappedFile::open(&path).unwrap()),
            Arc::new(FileSource::open(&path).unwrap()),
        ];
        for source in sources {
            let file = TetFile::open(Arc::clone(&source), unlimited());
            check(&file.unwrap(), expected);
            let verified = verify(source, unlimited(), true).unwrap();
            assert!(verified.is_ok(), "{name}: {:?}", verified.findings);
        }
    }
}

/// Damaged files that are accepted, because the format cannot detect the damage or it has no
/// effect.
const HARMLESS: [(&str, &str); 5] = [
    (
        "name_padding_nonzero.tet",
        "the content of padding is ignored",
    ),
    (
        "row_payload_at_eof.tet",
        "healthy: the control case of payloads past the end",
    ),
    (
        "raw_bitflip.tet",
        "another value of raw data, which has no checksum",
    ),
    (
        "zstd_bitflip.tet",
        "the frame decodes to other bytes of the right length",
    ),
    (
        "footer_flag_cleared.tet",
        "a footer that is not announced is unreferenced bytes",
    ),
];

/// Damaged files that open: only decoding detects the damage.
const DECODED: [&str; 4] = [
    "row_codec_zstd_on_raw.tet",
    "zstd_magic.tet",
    "zstd_short.tet",
    "zstd_trailing_junk.tet",
];

#[test]
fn damaged_files_are_rejected_unless_harmless() {
    let golden = Golden::open("tet");
    let expected = golden.json("expected_bad.json");
    let files = expected["files"].as_array().unwrap();
    assert_eq!(files.len(), 72);
    let (mut accepted, mut decoded) = (Vec::new(), Vec::new());
    for expected in files {
        let name = expected["file"].as_str().unwrap();
        let bytes = golden.file(&format!("bad/{name}"));
        let source = MemorySource::new(name, bytes.to_vec());
        let verified = verify(Arc::new(source), unlimited(), true).unwrap();
        let Ok(file) = open(name, bytes) else {
            assert!(!verified.is_ok(), "{name}");
            continue;
        };
        let arrays = (0..file.datasets().len()).filter_map(|id| file.dataset_at(id));
        let read = arrays.map(|array| array.slice(&Hyperslab::whole(array.shape())));
        let is_read = read.filter(Result::is_err).count() == 0;
        assert_eq!(is_read, verified.is_ok(), "{name}");
        if is_read {
            accepted.push(name);
        } else {
            decoded.push(name);
        }
    }
    let mut harmless = HARMLESS.map(|(name, _)| name);
    harmless.sort_unstable();
    accepted.sort_unstable();
    decoded.sort_unstable();
    assert_eq!(accepted, harmless);
    assert_eq!(decoded, DECODED);
}
