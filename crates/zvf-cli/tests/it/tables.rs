//! CSV files in the forms that occur in practice.

use std::fs;

use zvf::{ColumnValues, GeometryBuilder, GeometryKind, NumericColumn, numeric::Kind};
use zvf_files::{
    ColumnError, CsvError, FileError, FileFault, FilePlace, GeometryInput, GeometryReadOptions,
    InputFile, InputFileError, MissingPolicy,
};
use zvf_model::error_chain::error_chain;

use crate::round_trip::file;

fn read(text: &str, reading: &GeometryReadOptions) -> Result<GeometryInput, FileError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    fs::write(&path, text).unwrap();
    file(&path, reading)
}

#[track_caller]
fn geometry(text: &str, kind: GeometryKind) -> GeometryBuilder {
    read(text, &GeometryReadOptions::new(kind))
        .unwrap()
        .geometry
}

/// Returns the line and the cause of an error.
#[track_caller]
fn wrong_line(text: &str) -> (u64, CsvError) {
    let error = read(text, &GeometryReadOptions::new(GeometryKind::Points)).unwrap_err();
    match (error.place, error.fault) {
        (FilePlace::Line(line), FileFault::Csv(source)) => (line, source),
        (_, fault) => panic!("{fault}"),
    }
}

#[test]
fn other_columns_than_axes_are_attributes() {
    let found = geometry(
        "x,radius,z,kind,y,object_id\n1,0.5,3,a,2,7\n4,1,6,,5,7\n",
        GeometryKind::Points,
    );
    assert_eq!(found.positions.kind, Kind::Int64);
    assert_eq!((found.positions.width, found.vertices()), (3, 2));
    // In the order of the file.
    assert_eq!(found.positions.bytes[8..16], 3_i64.to_le_bytes());
    assert_eq!(found.owners.ids(), Some([7, 7].as_slice()));
    let radius = ColumnValues::Numeric(NumericColumn::float64(1, [0.5, 1.0]));
    assert_eq!(found.vertex[0].values, radius);
    assert_eq!(found.vertex[1].name, "kind");
    let kind = ColumnValues::text(vec![Some("a".to_owned()), None]);
    assert_eq!(found.vertex[1].values, kind);
}

/// A column with a scope is text if its fields are quoted, and those of another column are not.
#[test]
fn quoted_fields_are_text() {
    let columns = |text: &str| geometry(text, GeometryKind::Points).vertex;
    let words = |words: [Option<&str>; 2]| ColumnValues::text(words);
    let found = columns("x,vertex.a,vertex.b\n1,\"007\",\"nan\"\n2,\"8\",\n");
    assert_eq!(found[0].values, words([Some("007"), Some("8")]));
    assert_eq!(found[1].values, words([Some("nan"), None]));
    let number = ColumnValues::Numeric([7_i64].into_iter().collect());
    // Programs that quote every field, and columns whose meaning needs numbers.
    for text in [
        "\"x\",\"vertex.a\"\n\"1\",\"007\"\n",
        "x,object_id,vertex.a\n1,\"5\",7\n",
    ] {
        assert_eq!(columns(text)[0].values, number, "{text}");
    }
    let found = columns("x,vertex.a[0],vertex.a[1]\n1,\"2\",\"3\"\n");
    let pair = NumericColumn::from_values(2, [2_i64, 3]);
    assert_eq!(found[0].values, ColumnValues::Numeric(pair));
}

#[test]
fn consecutive_rows_of_a_part_are_a_path() {
    let kind = GeometryKind::Streamlines;
    let found = geometry("x,object_id\n0,5\n1,5\n2,8\n3,5\n", kind);
    assert_eq!(found.owners.offsets(), Some([0, 2, 3, 4].as_slice()));
    assert_eq!(found.owners.ids(), Some([5, 8, 5].as_slice()));
    let found = geometry("x,part\n0,5\n1,5\n2,8\n", kind);
    assert_eq!(found.owners.offsets(), Some([0, 2, 3].as_slice()));
    assert_eq!(found.owners.ids(), None);
    let found = geometry("x,part,object\n0,0,5\n1,0,6\n2,1,6\n", kind);
    assert_eq!(found.owners.offsets(), Some([0, 1, 2, 3].as_slice()));
    assert_eq!(found.owners.ids(), Some([5, 6, 6].as_slice()));
    let error = read(
        "x,part\n0,5\n",
        &GeometryReadOptions::new(GeometryKind::Points),
    )
    .unwrap_err();
    let FileFault::Column(source) = error.fault else {
        panic!("{}", error.fault);
    };
    assert_eq!(source, ColumnError::OfPaths("part".to_owned()));
}

#[test]
fn axes_are_found_by_name() {
    let mut reading = GeometryReadOptions::new(GeometryKind::Points);
    let names = ["t", "lon"].map(str::to_owned).to_vec();
    reading.axes = Some(names.clone());
    let found = read("lon,x,t\n1.5,2,3\n", &reading).unwrap();
    assert_eq!(
        found.geometry.positions,
        NumericColumn::float64(2, [3.0, 1.5])
    );
    assert_eq!(found.geometry.vertex[0].name, "x");
    assert_eq!(found.axes, Some(names));
    let error = read("x,y\n1,2\n", &reading).unwrap_err();
    assert!(matches!(error.fault, FileFault::NoColumn { column, .. } if column == "t"));
    let error = read(
        "lon,lat\n1,2\n",
        &GeometryReadOptions::new(GeometryKind::Points),
    )
    .unwrap_err();
    assert!(error_chain(&error).contains("--axes lon,lat"), "{error}");
    let error = read(
        "x,y\n1,2\n3,a\n",
        &GeometryReadOptions::new(GeometryKind::Points),
    )
    .unwrap_err();
    let expected = "a.csv: y: line 3 has \"a\" instead of a number";
    assert!(error.to_string().ends_with(expected), "{error}");
}

#[test]
fn errors_name_the_line() {
    let (line, error) = wrong_line("x,y\n1,2\n3\n");
    assert_eq!(line, 3);
    assert!(matches!(
        error,
        CsvError::Fields {
            expected: 2,
            found: 1
        }
    ));
    let (line, error) = wrong_line("x,a\n1,2\n\n3,\n");
    assert_eq!(line, 4);
    assert!(matches!(error, CsvError::Missing { column } if column == "a"));
    assert!(matches!(wrong_line(""), (1, CsvError::Empty)));
    assert!(matches!(
        wrong_line("x,y\n1,\"2\n"),
        (2, CsvError::Unclosed)
    ));
    let error = read(
        "x,x\n1,2\n",
        &GeometryReadOptions::new(GeometryKind::Points),
    )
    .unwrap_err();
    assert!(matches!(error.fault, FileFault::Column(ColumnError::Twice)));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    fs::write(&path, b"x,a\n1,\xff\n").unwrap();
    let error = file(&path, &GeometryReadOptions::new(GeometryKind::Points)).unwrap_err();
    assert!(matches!(
        (error.place, error.fault),
        (FilePlace::Line(2), FileFault::Csv(CsvError::Encoding))
    ));
}

#[test]
fn missing_numbers_become_nan_on_request() {
    let mut reading = GeometryReadOptions::new(GeometryKind::Points);
    reading.missing = MissingPolicy::Nan;
    let found = read("x,a,b\n1,2,\n1,,0.5\n", &reading).unwrap().geometry;
    let values = |at: usize| found.vertex[at].values.clone();
    let expected = |values| ColumnValues::Numeric(NumericColumn::float64(1, values));
    assert_eq!(values(0), expected([2.0, f64::NAN]));
    assert_eq!(values(1), expected([f64::NAN, 0.5]));
    // Ids are never NaN, with or without the option.
    let error = read("x,object_id\n1,2\n1,\n", &reading).unwrap_err();
    let expected = "object_id: contains float64 instead of integers; convert it to int64";
    assert!(error.to_string().ends_with(expected), "{error}");
}

#[test]
fn links_come_from_the_adjacent_or_a_named_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("a.csv"), "x,y\n0,0\n1,1\n2,2\n").unwrap();
    fs::write(path("edges.csv"), "links[0],links[1],weight\n0,1,2.5\n").unwrap();
    let mut reading = GeometryReadOptions::new(GeometryKind::Graphs);
    reading.links = Some(InputFile::new(path("edges.csv")).unwrap());
    let found = file(&path("a.csv"), &reading).unwrap();
    assert_eq!(found.geometry.links.ends, [0, 1]);
    assert_eq!(found.geometry.link[0].name, "weight");
    assert_eq!(found.files, [path("a.csv"), path("edges.csv")]);
    fs::rename(path("edges.csv"), path("a.links.csv")).unwrap();
    let found = file(
        &path("a.csv"),
        &GeometryReadOptions::new(GeometryKind::Graphs),
    )
    .unwrap();
    assert_eq!(found.geometry.links.ends, [0, 1]);
    let error = file(
        &path("a.csv"),
        &GeometryReadOptions::new(GeometryKind::Points),
    )
    .unwrap_err();
    assert!(matches!(error.fault, FileFault::Links("points")));
}

#[test]
fn groups_may_have_names() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("a.csv"), "x,object_id\n0,1\n1,2\n").unwrap();
    fs::write(
        path("a.groups.csv"),
        "group,object_id\nleft,1\nright,2\nleft,2\n",
    )
    .unwrap();
    let found = file(
        &path("a.csv"),
        &GeometryReadOptions::new(GeometryKind::Points),
    )
    .unwrap();
    assert_eq!(found.geometry.groups[&0], [1, 2]);
    assert_eq!(found.geometry.groups[&1], [2]);
    assert_eq!(found.group_names[&1], "right");
}

#[test]
fn attributes_may_have_their_own_tables() {
    let error = read(
        "x,object.a\n1,2\n",
        &GeometryReadOptions::new(GeometryKind::Points),
    )
    .unwrap_err();
    let FileFault::Column(source) = error.fault else {
        panic!("{}", error.fault);
    };
    assert_eq!(source, ColumnError::Elsewhere("NAME.objects"));
}

#[test]
fn errors_contain_a_hint() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    assert_eq!(InputFile::new(path("a")), Err(InputFileError::NoExtension));
    let xlsx = Err(InputFileError::Extension("xlsx".to_owned()));
    assert_eq!(InputFile::new(path("a.xlsx")), xlsx);
    assert_eq!(InputFile::new(path("a.csv")), Err(InputFileError::NoFile));
}

/// Types and codecs that other programs write.
#[cfg(feature = "parquet")]
#[test]
fn parquet_of_other_programs_is_read() {
    use std::sync::Arc;

    use arrow_array::{
        ArrayRef, Date32Array, Float32Array, Float64Array, LargeStringArray, RecordBatch,
        StringArray, StringViewArray,
    };
    use parquet::{arrow::ArrowWriter, basic::Compression, file::properties::WriterProperties};

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parquet");
    let write = |columns: Vec<(&str, ArrayRef)>| {
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY);
        let file = fs::File::create(&path).unwrap();
        let mut writer =
            ArrowWriter::try_new(file, batch.schema(), Some(properties.build())).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
    };
    let x: ArrayRef = Arc::new(Float32Array::from(vec![1.0, 2.0]));
    let y: ArrayRef = Arc::new(Float64Array::from(vec![0.1, 0.2]));
    let texts = vec![Some("a"), None];
    write(vec![
        ("x", Arc::clone(&x)),
        ("y", y),
        ("one", Arc::new(StringArray::from(texts.clone()))),
        ("two", Arc::new(LargeStringArray::from(texts.clone()))),
        ("three", Arc::new(StringViewArray::from(texts))),
    ]);
    let found = file(&path, &GeometryReadOptions::new(GeometryKind::Points))
        .unwrap()
        .geometry;
    assert_eq!(
        found.positions,
        NumericColumn::float64(2, [1.0, 0.1, 2.0, 0.2])
    );
    for attribute in &found.vertex {
        let expected = ColumnValues::text(vec![Some("a".to_owned()), None]);
        assert_eq!(attribute.values, expected, "{}", attribute.name);
    }
    write(vec![
        ("x", x),
        ("day", Arc::new(Date32Array::from(vec![1, 2]))),
    ]);
    let error = file(&path, &GeometryReadOptions::new(GeometryKind::Points)).unwrap_err();
    let FileFault::Column(ColumnError::Kind(kind)) = error.fault else {
        panic!("{}", error.fault);
    };
    assert_eq!(kind, "Date32");
}
