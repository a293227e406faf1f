//! Files created by the writer.

use std::{fs, path::Path, sync::Arc};

use proptest::prelude::*;
use serde_json::{Map, json};
use zvf_dense::{
    DenseArray, FileSource, Hyperslab, convert,
    tet::{
        Compression, DatasetSpec, TetDtype, TetFile, TetOptions, TetSeverity, TetWriter,
        WriteOptions, verify,
    },
};

use super::open;

/// Creates bytes without repetitions.
fn noise(len: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        state.to_be_bytes()[0]
    };
    core::iter::repeat_with(next).take(len).collect()
}

fn spec(name: &str, dtype: TetDtype, shape: &[u64], chunk: &[u64]) -> (DatasetSpec, Vec<u8>) {
    let len = shape.iter().product::<u64>() * dtype.size();
    let bytes = noise(usize::try_from(len).unwrap());
    (DatasetSpec::new(name, dtype, shape, chunk), bytes)
}

fn write(path: &Path, datasets: &[(DatasetSpec, Vec<u8>)], options: &WriteOptions) -> Vec<u8> {
    let specs = datasets.iter().map(|(spec, _)| spec.clone()).collect();
    let mut writer = TetWriter::create(path, specs, options.clone()).unwrap();
    for (id, (_, bytes)) in datasets.iter().enumerate() {
        writer.put_array(id, bytes).unwrap();
    }
    writer.finish().unwrap();
    fs::read(path).unwrap()
}

#[track_caller]
fn holds(file: &TetFile, datasets: &[(DatasetSpec, Vec<u8>)]) {
    assert_eq!(file.datasets().len(), datasets.len());
    for (id, (_, bytes)) in datasets.iter().enumerate() {
        let array = file.dataset_at(id).unwrap();
        let whole = Hyperslab::whole(array.shape());
        assert!(array.slice(&whole).unwrap() == *bytes, "dataset {id}");
    }
}

/// Creates three datasets; the first one ends at an unaligned offset.
fn three() -> Vec<(DatasetSpec, Vec<u8>)> {
    let (first, bytes) = spec("a", TetDtype::U8, &[3], &[2]);
    let attributes = Map::from_iter([("unit".to_owned(), json!("mV"))]);
    let names = Some(vec!["y".to_owned(), "x".to_owned()]);
    let second = spec("b/c", TetDtype::F64, &[5, 7], &[2, 3]);
    let described = second.0.attributes(attributes).dimension_names(names);
    let third = spec("é", TetDtype::I16, &[2, 3, 4], &[5, 3, 2]);
    vec![
        (first, bytes),
        (described.compressed(Compression::Zstd(3)), second.1),
        third,
    ]
}

#[test]
fn equal_input_gives_equal_files_with_aligned_datasets() {
    let folder = tempfile::tempdir().unwrap();
    let options = WriteOptions {
        memory_budget_bps: 40,
        memory_budget_bytes: 4096,
        checksums: true,
        history: vec![json!({"op": "create", "source": "test", "at": "0"})],
    };
    let bytes = write(&folder.path().join("a.tet"), &three(), &options);
    assert!(bytes == write(&folder.path().join("b.tet"), &three(), &options));
    let file = open("a.tet", &bytes).unwrap();
    holds(&file, &three());
    assert_eq!(
        (file.memory_budget_bps(), file.memory_budget_bytes()),
        (40, 4096)
    );
    let info = &file.datasets()[1];
    assert_eq!(info.attributes()["unit"], "mV");
    assert_eq!(info.dimension_names().unwrap(), ["y", "x"]);
    let footer = file.footer().unwrap();
    assert_eq!((footer.version, footer.history.len()), (1, 1));
    let starts = file
        .with_index(|index| {
            let rows = index
                .iter()
                .map(|row| (row.dataset(), row.payload_offset()));
            rows.collect::<Vec<_>>()
        })
        .unwrap();
    for id in 0..3 {
        let first = starts.iter().find(|(dataset, _)| *dataset == id).unwrap();
        assert_eq!(first.1 % 8, 0);
    }
    // Without content, no footer is written.
    let plain = write(
        &folder.path().join("c.tet"),
        &three()[..1],
        &WriteOptions::default(),
    );
    assert!(open("c.tet", &plain).unwrap().footer().is_none());
    let none = write(&folder.path().join("d.tet"), &[], &WriteOptions::default());
    assert_eq!(none.len(), 32);
}

#[test]
fn checksums_detect_a_changed_bit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tet");
    let options = WriteOptions {
        checksums: true,
        ..WriteOptions::default()
    };
    let mut bytes = write(&path, &three(), &options);
    let check = |bytes: &[u8]| {
        let source = zvf_dense::MemorySource::new("a.tet", bytes.to_vec());
        let found = verify(Arc::new(source), TetOptions::default(), false).unwrap();
        let errors = found
            .findings
            .iter()
            .filter(|f| f.severity == TetSeverity::Error);
        errors.map(|finding| finding.check).collect::<Vec<_>>()
    };
    assert!(check(&bytes).is_empty());
    let file = open("a.tet", &bytes).unwrap();
    let place = file.with_index(|index| index.get(0).map(|row| row.payload_offset()));
    let place = usize::try_from(place.unwrap().unwrap()).unwrap();
    bytes[place] ^= 1;
    assert_eq!(check(&bytes), ["chunk_checksums"]);
}

#[test]
fn appending_keeps_existing_content() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tet");
    let all = three();
    let options = WriteOptions {
        memory_budget_bytes: 1 << 20,
        checksums: true,
        history: vec![json!(["convert", "old", "1"])],
        ..WriteOptions::default()
    };
    write(&path, &all[..2], &options);
    let more = WriteOptions {
        history: vec![json!({"op": "append"})],
        ..WriteOptions::default()
    };
    let mut writer = TetWriter::append(&path, vec![all[2].0.clone()], more).unwrap();
    writer.put_array(2, &all[2].1).unwrap();
    writer.finish().unwrap();
    let appended = fs::read(&path).unwrap();
    let file = open("a.tet", &appended).unwrap();
    holds(&file, &all);
    assert_eq!(file.footer().unwrap().history.len(), 2);
    assert_eq!(file.memory_budget_bytes(), 1 << 20);
    // Equal to a file written at once with the combined history.
    let options = WriteOptions {
        history: file.footer().unwrap().history.clone(),
        ..options
    };
    assert!(appended == write(&folder.path().join("b.tet"), &all, &options));
    let taken = TetWriter::append(&path, vec![all[0].0.clone()], WriteOptions::default());
    assert!(taken.is_err());
    assert!(fs::read(&path).unwrap() == appended);
}

/// Regression test: a damaged payload got a new checksum.
#[test]
fn damaged_files_are_not_appended_to() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tet");
    let all = three();
    let options = WriteOptions {
        checksums: true,
        ..WriteOptions::default()
    };
    let mut bytes = write(&path, &all[..2], &options);
    let file = open("a.tet", &bytes).unwrap();
    let place = file.with_index(|index| index.iter().next_back().unwrap().payload_span().start);
    bytes[usize::try_from(place.unwrap()).unwrap()] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let taken = TetWriter::append(&path, vec![all[2].0.clone()], WriteOptions::default());
    let error = taken.err().unwrap();
    let source = std::error::Error::source(&error).map(ToString::to_string);
    let text = format!("{error} {source:?}");
    assert!(text.contains("differs from its checksum"), "{text}");
    assert!(fs::read(&path).unwrap() == bytes);
}

#[test]
fn recorded_files_can_be_appended_to() {
    let golden = zvf_testkit::golden::Golden::open("tet");
    let folder = tempfile::tempdir().unwrap();
    for name in [
        "footer_v2_zone_index",
        "mixed_codecs",
        "footer_v1_metadata_spill",
    ] {
        let bytes = golden.file(&format!("good/{name}.tet"));
        let before = open(name, bytes).unwrap();
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        let (new, values) = spec("zvf new", TetDtype::U16, &[4], &[3]);
        let id = before.datasets().len();
        let mut writer = TetWriter::append(&path, vec![new], WriteOptions::default()).unwrap();
        writer.put_array(id, &values).unwrap();
        writer.finish().unwrap();
        let after = open(name, &fs::read(&path).unwrap()).unwrap();
        for id in 0..id {
            let read = |file: &TetFile| {
                let array = file.dataset_at(id).unwrap();
                array.slice(&Hyperslab::whole(array.shape())).unwrap()
            };
            assert!(read(&before) == read(&after));
            let names = [&before, &after].map(|file| file.datasets()[id].attributes().clone());
            assert_eq!(names[0], names[1]);
        }
        assert_eq!(
            after.footer().map(|f| f.version),
            before.footer().map(|_| 1)
        );
    }
}

#[test]
fn unfinished_writers_leave_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tet");
    let (spec, bytes) = spec("a", TetDtype::U8, &[4], &[2]);
    let mut writer = TetWriter::create(&path, vec![spec], WriteOptions::default()).unwrap();
    assert!(writer.put_chunk(0, &bytes[..1]).is_err());
    assert!(writer.put_chunk(1, &bytes[..2]).is_err());
    writer.put_chunk(0, &bytes[..2]).unwrap();
    assert!(writer.finish().is_err());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// Start, stop and step.
type Steps = (u64, u64, u64);

/// Shape, chunk shape and a box.
fn shapes() -> impl Strategy<Value = (Vec<u64>, Vec<u64>, Vec<Steps>)> {
    let axis = (1_u64..9).prop_flat_map(|extent| {
        let range =
            (0..extent).prop_flat_map(move |start| (Just(start), start + 1..=extent, 1_u64..4));
        (Just(extent), 1_u64..11, range)
    });
    prop::collection::vec(axis, 1..5).prop_map(|axes| {
        let shape = axes.iter().map(|axis| axis.0).collect();
        let chunk = axes.iter().map(|axis| axis.1).collect();
        (shape, chunk, axes.into_iter().map(|axis| axis.2).collect())
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: zvf_testkit::sample::cases(96), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn written_files_round_trip((shape, chunk, ranges) in shapes(), tag in 1_u32..11, level in 0_i32..3) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.tet");
        let dtype = TetDtype::from_tag(tag).unwrap();
        let (spec, bytes) = spec("a", dtype, &shape, &chunk);
        let spec = match level {
            0 => spec,
            level => spec.compressed(Compression::Zstd(level)),
        };
        let written = write(&path, &[(spec, bytes.clone())], &WriteOptions::default());
        let file = open("a", &written).unwrap();
        let array = file.dataset("a").unwrap();
        // Read the same box from a file with one tile, through another kind of source.
        let plain = folder.path().join("plain.tet");
        let one = DatasetSpec::new("a", dtype, &shape, &shape);
        let mut writer = TetWriter::create(&plain, vec![one], WriteOptions::default()).unwrap();
        convert(&array, Box::new(writer.sink(0).unwrap()), &mut |_| ()).unwrap();
        writer.finish().unwrap();
        let source = Arc::new(FileSource::open(&plain).unwrap());
        let file = TetFile::open(source, TetOptions::default()).unwrap();
        let plain = file.dataset("a").unwrap();
        prop_assert!(plain.slice(&Hyperslab::whole(&shape)).unwrap() == bytes);
        let part = |of: fn(&Steps) -> u64| ranges.iter().map(of).collect::<Vec<_>>();
        let steps = part(|range| range.2);
        let selection = Hyperslab::new(&part(|r| r.0), &part(|r| r.1), Some(&steps)).unwrap();
        let found = array.slice(&selection).unwrap();
        prop_assert!(found == plain.slice(&selection).unwrap());
        // Select elements one by one, directly from the definition.
        let size = usize::try_from(dtype.size()).unwrap();
        let mut cells = zvf_dense::GridCells::new(selection.axes(), &vec![1; shape.len()]);
        let mut expected = Vec::new();
        while let Some(parts) = cells.next() {
            let at = parts.iter().zip(&shape).fold(0, |at, (part, extent)| at * extent + part.cell);
            let at = usize::try_from(at).unwrap() * size;
            expected.extend_from_slice(&bytes[at..at + size]);
        }
        prop_assert!(found == expected);
    }
}
