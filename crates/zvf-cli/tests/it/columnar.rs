//! Arrow and Parquet files, read back by their own readers.

use std::{fs::File, path::Path, sync::Arc};

use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BooleanArray, DictionaryArray, FixedSizeListArray,
    Float32Array, Int16Array, Int32Array, Int64Array, RecordBatch, StringArray, UInt8Array,
    UInt32Array, UInt64Array,
    cast::AsArray,
    types::{Float16Type, Float32Type, Float64Type, UInt8Type, UInt32Type},
};
use arrow_schema::SchemaRef;
use zvf::{ColumnValues, GeometryKind, QueryResult};
use zvf_files::{self, FileFault, GeometryReadOptions, InputFile};

use crate::results::{graph, in_axes, lacking, numbers, paths, points, rows, words, written};

type Half = <Float16Type as ArrowPrimitiveType>::Native;

/// Content of a file: its schema and its batches.
type Read = (SchemaRef, Vec<RecordBatch>);

fn read_arrow(path: &Path) -> Read {
    let file = File::open(path).unwrap();
    let reader = arrow_ipc::reader::FileReader::try_new(file, None).unwrap();
    let schema = reader.schema();
    (schema, reader.collect::<Result<_, _>>().unwrap())
}

#[cfg(feature = "parquet")]
fn read_parquet(path: &Path) -> Read {
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    let file = File::open(path).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    let schema = SchemaRef::clone(reader.schema());
    let reader = reader.with_batch_size(1 << 20).build().unwrap();
    (schema, reader.collect::<Result<_, _>>().unwrap())
}

type Reader = fn(&Path) -> Read;

/// Returns the file extensions and their readers.
fn formats() -> Vec<(&'static str, Reader)> {
    vec![
        ("arrow", read_arrow),
        #[cfg(feature = "parquet")]
        ("parquet", read_parquet),
    ]
}

/// Writes a result in each format, and passes the table named `part` to `look`.
fn each(result: &QueryResult, part: &str, look: impl Fn(&RecordBatch, &SchemaRef)) {
    for (end, read) in formats() {
        let folder = tempfile::tempdir().unwrap();
        written(result, folder.path(), &format!("a.{end}")).unwrap();
        let (schema, batches) = read(&folder.path().join(format!("a{part}.{end}")));
        assert_eq!(batches.len(), 1, "{end}");
        look(&batches[0], &schema);
    }
}

#[track_caller]
fn check(batch: &RecordBatch, name: &str, expected: &impl Array) {
    let found = batch.column_by_name(name).unwrap();
    assert_eq!(found.as_ref(), expected as &dyn Array, "{name}");
}

/// Returns the numbers of a list in one row.
fn listed(batch: &RecordBatch, name: &str, row: usize) -> ArrayRef {
    let list: &FixedSizeListArray = batch.column_by_name(name).unwrap().as_fixed_size_list();
    list.value(row)
}

#[test]
fn points_keep_attributes_of_every_type() {
    let names = "x y z object_id vertex.radius vertex.kind vertex.rgb vertex.flag vertex.big \
                 vertex.half vertex.wave fragment.label";
    each(&points(), "", |batch, schema| {
        let found: Vec<_> = schema
            .fields()
            .iter()
            .map(|field| field.name().as_str())
            .collect();
        assert_eq!(found.join(" "), names);
        let x = batch
            .column_by_name("x")
            .unwrap()
            .as_primitive::<Float32Type>();
        assert_eq!(x.values()[..], [0.1, 1e20, 7.0]);
        assert_eq!(x.null_count(), 0);
        check(batch, "object_id", &Int64Array::from(vec![7, -1, -2]));
        let radius = batch
            .column_by_name("vertex.radius")
            .unwrap()
            .as_primitive::<Float32Type>();
        let values: Vec<_> = radius.iter().map(|value| value.map(f32::to_bits)).collect();
        let expected = [Some(0.1_f32), None, Some(f32::NAN)];
        assert_eq!(values, expected.map(|value| value.map(f32::to_bits)));
        let kind: &DictionaryArray<UInt32Type> =
            batch.column_by_name("vertex.kind").unwrap().as_dictionary();
        let kind: Vec<_> = kind
            .downcast_dict::<StringArray>()
            .unwrap()
            .into_iter()
            .collect();
        assert_eq!(kind, [Some("a,\"b\""), None, Some("")]);
        check(
            batch,
            "vertex.flag",
            &BooleanArray::from(vec![true, false, true]),
        );
        let big = vec![9_007_199_254_740_993, -1, 5];
        check(batch, "vertex.big", &Int64Array::from(big));
        let half: Vec<_> = batch
            .column_by_name("vertex.half")
            .unwrap()
            .as_primitive::<Float16Type>()
            .iter()
            .map(|value| value.map(Half::to_bits))
            .collect();
        assert_eq!(half, [Some(0x3e00), None, Some(0xae66)]);
        let rgb = batch.column_by_name("vertex.rgb").unwrap();
        assert_eq!([0, 1, 2].map(|row| rgb.is_null(row)), [false, false, true]);
        let rgb = listed(batch, "vertex.rgb", 1);
        assert_eq!(
            rgb.as_primitive::<UInt8Type>(),
            &UInt8Array::from(vec![2, 3, 4])
        );
        let wave = listed(batch, "vertex.wave", 1);
        assert_eq!(wave.as_primitive::<Float32Type>().values()[..], [0.0, 0.1]);
    });
}

#[test]
fn the_schema_contains_level_axes_and_geometry() {
    for part in ["", ".objects", ".groups"] {
        each(&points(), part, |_, schema| {
            let said = |key: &str| schema.metadata().get(key).map(String::as_str);
            assert_eq!(said("level"), Some("2"));
            assert_eq!(said("axes"), Some("[\"x\",\"y\",\"z\"]"));
            assert_eq!(said("geometry"), Some("graph"));
        });
    }
}

#[test]
fn objects_and_groups_are_written_to_files_of_their_own() {
    each(&points(), ".objects", |batch, _| {
        check(batch, "object_id", &Int64Array::from(vec![7, 12]));
        let length: Vec<_> = batch
            .column_by_name("object.length")
            .unwrap()
            .as_primitive::<Float64Type>()
            .iter()
            .collect();
        assert_eq!(length, [Some(0.1), None]);
        check(
            batch,
            "object.count",
            &UInt64Array::from(vec![Some(u64::MAX), None]),
        );
    });
    each(&points(), ".groups", |batch, _| {
        check(batch, "group", &Int64Array::from(vec![5, 5]));
        check(batch, "object_id", &Int64Array::from(vec![12, 7]));
    });
}

#[test]
fn paths_and_links_are_lists() {
    each(&paths(), "", |batch, _| {
        check(batch, "part", &Int64Array::from(vec![0, 0, 0, 1, 2, 2]));
        check(
            batch,
            "object_id",
            &Int64Array::from(vec![4, 4, 4, 9, 9, 9]),
        );
    });
    each(&graph(), "", |batch, _| {
        check(batch, "x", &Int16Array::from(vec![2, 12, 22, 32]));
    });
    each(&graph(), ".links", |batch, _| {
        let second = listed(batch, "links", 1);
        assert_eq!(second.as_ref(), &Int64Array::from(vec![2, 1]) as &dyn Array);
        check(
            batch,
            "link.weight",
            &Int32Array::from(vec![Some(1), None, Some(3)]),
        );
    });
}

#[test]
fn an_empty_result_has_a_schema() {
    for (end, read) in formats() {
        let folder = tempfile::tempdir().unwrap();
        let found = written(
            &crate::results::nothing(),
            folder.path(),
            &format!("a.{end}"),
        );
        assert_eq!(found.unwrap().files.len(), 1);
        let (schema, batches) = read(&folder.path().join(format!("a.{end}")));
        assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 0);
        assert_eq!(schema.fields().len(), 6);
    }
}

#[test]
fn every_number_of_axes_is_written() {
    for axes in 1..=5 {
        each(&in_axes(axes), "", |batch, _| {
            assert_eq!(batch.num_columns(), usize::try_from(axes).unwrap());
            let last = batch
                .columns()
                .last()
                .unwrap()
                .as_primitive::<Float64Type>();
            let first = f64::from(axes) - 0.75;
            assert_eq!(last.values()[..], [first, first + f64::from(axes)]);
        });
    }
}

/// Rows of several batches share one dictionary.
#[test]
fn many_rows_are_written_in_batches() {
    let count = 150_000_u32;
    let mut result = in_axes(1);
    let all: Vec<u32> = (0..count).collect();
    let codes: Vec<u32> = all.iter().map(|row| row % 3).collect();
    let missing: Vec<bool> = all.iter().map(|row| row % 5 == 0).collect();
    result.positions = rows(1, &all);
    result.vertex = vec![
        words("kind", &codes, &["a", "b", "c"]),
        lacking(
            numbers("two", 2, &[all.clone(), all.clone()].concat()),
            &missing,
        ),
    ];
    for (end, read) in formats() {
        let folder = tempfile::tempdir().unwrap();
        written(&result, folder.path(), &format!("a.{end}")).unwrap();
        let (schema, batches) = read(&folder.path().join(format!("a.{end}")));
        if end == "arrow" {
            assert_eq!(batches.len(), 3);
        }
        let mut at = 0;
        for batch in &batches {
            let end = at + u32::try_from(batch.num_rows()).unwrap();
            assert_eq!(batch.schema().fields(), schema.fields());
            check(batch, "x", &UInt32Array::from_iter_values(at..end));
            let kind: &DictionaryArray<UInt32Type> =
                batch.column_by_name("vertex.kind").unwrap().as_dictionary();
            let kind = kind.downcast_dict::<StringArray>().unwrap();
            let letters = (at..end).map(|row| Some(["a", "b", "c"][row as usize % 3]));
            assert!(kind.into_iter().eq(letters));
            let two = batch.column_by_name("vertex.two").unwrap();
            assert!(
                (at..end)
                    .zip(0..)
                    .all(|(row, here)| two.is_null(here) == (row % 5 == 0))
            );
            at = end;
        }
        assert_eq!(at, count);
    }
}

/// Writes a table with three axes and text of 200,000 letters in each row, as a dictionary of one
/// word or as plain text.
fn write_long_words(path: &Path, rows: usize, as_dictionary: bool) {
    let word = "a".repeat(200_000);
    let axis: ArrayRef = Arc::new(Float32Array::from(vec![0.5; rows]));
    let note: ArrayRef = if as_dictionary {
        let words = StringArray::from(vec![word.as_str()]);
        let keys = UInt8Array::from(vec![0; rows]);
        Arc::new(DictionaryArray::new(keys, Arc::new(words)))
    } else {
        Arc::new(StringArray::from(vec![word.as_str(); rows]))
    };
    let columns = ["x", "y", "z"]
        .map(|name| (name, Arc::clone(&axis)))
        .into_iter()
        .chain([("vertex.note", note)]);
    write_batch(path, &RecordBatch::try_from_iter(columns).unwrap());
}

/// Writes a file of one batch, in the format of its extension.
fn write_batch(path: &Path, batch: &RecordBatch) {
    let file = File::create(path).unwrap();
    #[cfg(feature = "parquet")]
    if path.extension().is_some_and(|end| end == "parquet") {
        let mut writer = parquet::arrow::ArrowWriter::try_new(file, batch.schema(), None).unwrap();
        writer.write(batch).unwrap();
        writer.close().unwrap();
        return;
    }
    let mut writer = arrow_ipc::writer::FileWriter::try_new(file, &batch.schema()).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap();
}

/// A text was copied for each row: 4 GB for a file of 461 kB.
#[test]
fn a_long_word_is_held_once() {
    for (end, _) in formats() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(format!("a.{end}"));
        let read = |memory: u64| {
            let mut options = GeometryReadOptions::new(GeometryKind::Points);
            options.memory = Some(memory);
            zvf_files::read(&InputFile::new(&path).unwrap(), &options)
        };
        for (rows, as_dictionary) in [(20_000, true), (20, false)] {
            write_long_words(&path, rows, as_dictionary);
            let found = read(1 << 20).unwrap();
            let note = &found.geometry.vertex[0];
            assert_eq!(note.len(), rows);
            let ColumnValues::Dictionary { codes, words } = &note.values else {
                panic!("{end}");
            };
            assert!(codes.iter().all(|code| *code == 0));
            assert_eq!((words.len(), words[0].len()), (1, 200_000));
            let error = read(200_000).unwrap_err();
            assert!(matches!(error.fault, FileFault::Memory { .. }), "{error}");
        }
    }
}

/// Constant columns take a hundredth of their size in a file.
#[test]
fn a_table_beyond_the_memory_limit_is_refused_before_it_is_decoded() {
    for (end, _) in formats() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(format!("a.{end}"));
        let axis: ArrayRef = Arc::new(Float32Array::from(vec![0.5; 100_000]));
        let columns = ["x", "y", "z"].map(|name| (name, Arc::clone(&axis)));
        write_batch(&path, &RecordBatch::try_from_iter(columns).unwrap());
        if end == "parquet" {
            // The pages cannot be decoded any more; the footer is intact.
            let mut bytes = std::fs::read(&path).unwrap();
            bytes[4..40].fill(0xff);
            std::fs::write(&path, bytes).unwrap();
        }
        let mut options = GeometryReadOptions::new(GeometryKind::Points);
        options.memory = Some(1_199_999);
        let error = zvf_files::read(&InputFile::new(&path).unwrap(), &options).unwrap_err();
        let said = error.to_string();
        let expected = format!(
            "a.{end}: the table takes at least 1200000 bytes of memory, but --memory allows \
             1199999; raise --memory"
        );
        assert!(said.contains(&expected), "{said}");
    }
}

/// Changes, cuts and overwrites bytes of a file in each format. Each reading ends with geometry or
/// an error that names the file; `arrow-ipc` panics for some of these files.
#[test]
fn damaged_files_are_read_or_refused_by_name() {
    for (end, _) in formats() {
        let folder = tempfile::tempdir().unwrap();
        let mut result = graph();
        // Without a missing integer, which is refused.
        result.link = vec![numbers("weight", 1, &[1_i32, 2, 3])];
        written(&result, folder.path(), &format!("a.{end}")).unwrap();
        let path = folder.path().join(format!("a.{end}"));
        let intact = std::fs::read(&path).unwrap();
        let options = GeometryReadOptions::new(GeometryKind::Graphs);
        let (mut read, mut refused) = (0, 0);
        let mut check = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            let file = InputFile::new(&path).unwrap();
            match zvf_files::read(&file, &options) {
                Ok(_) => read += 1,
                Err(error) => {
                    let text = error.to_string();
                    assert!(text.contains(&format!(".{end}")), "{text}");
                    refused += 1;
                }
            }
        };
        check(&intact);
        for at in 0..intact.len() {
            let mut bytes = intact.clone();
            bytes[at] ^= 1 << (at % 8);
            check(&bytes);
            if at % 4 == 0 {
                for number in [u32::MAX, 1 << 31, 0x7fff_ffff] {
                    let mut bytes = intact.clone();
                    let number = number.to_le_bytes();
                    bytes
                        .iter_mut()
                        .skip(at)
                        .zip(number)
                        .for_each(|(b, n)| *b = n);
                    check(&bytes);
                }
                check(&intact[..at]);
            }
        }
        assert!(read > 10 && refused > 100, "{end}: {read} {refused}");
    }
}
