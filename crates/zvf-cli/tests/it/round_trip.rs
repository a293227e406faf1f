//! Files written from a result are read as the same geometry.

use std::path::Path;

use zvf::{
    Column, ColumnValues, Geometry, GeometryBuilder, GeometryKind, NumericColumn, QueryResult,
    numeric::Kind,
};
use zvf_files::{
    ColumnError, FileError, FileFault, FilePlace, GeometryInput, GeometryReadOptions, InputFile,
    MissingPolicy, read,
};

use crate::results::{
    graph, in_axes, lacking, mesh, nothing, numbers, paths, points, rows, words, written,
};

/// Returns the file extensions of formats that keep types.
pub(crate) fn typed() -> Vec<&'static str> {
    vec![
        "npz",
        #[cfg(feature = "arrow")]
        "arrow",
        #[cfg(feature = "parquet")]
        "parquet",
    ]
}

pub(crate) fn file(path: &Path, reading: &GeometryReadOptions) -> Result<GeometryInput, FileError> {
    read(&InputFile::new(path).unwrap(), reading)
}

/// Writes a result and reads it back.
fn again(
    result: &QueryResult,
    end: &str,
    reading: &GeometryReadOptions,
) -> Result<GeometryInput, FileError> {
    let folder = tempfile::tempdir().unwrap();
    let name = format!("a.{end}");
    written(result, folder.path(), &name).unwrap();
    file(&folder.path().join(name), reading)
}

fn numbers_of(rows: &NumericColumn) -> NumericColumn {
    let mut bytes = rows.bytes.clone();
    if rows.kind == Kind::Bool {
        for byte in &mut bytes {
            *byte = u8::from(*byte > 0);
        }
    }
    rows.with_bytes(bytes)
}

fn attributes(columns: &[Column]) -> Vec<Column> {
    let columns = columns.iter().map(|column| {
        let name = column.name.clone();
        match &column.values {
            ColumnValues::Numeric(rows) => Column::new(name, numbers_of(rows)),
            ColumnValues::Dictionary { codes, words } => {
                let rows = codes.iter().enumerate();
                let texts = rows.map(|(row, code)| {
                    let word = || words[usize::try_from(*code).unwrap()].clone();
                    (!column.is_null(row)).then(word)
                });
                Column::text(name, texts)
            }
        }
    });
    columns.collect()
}

/// Returns the geometry of a result, without fragments.
fn geometry(result: &QueryResult) -> GeometryBuilder {
    let mut geometry = Geometry::builder(numbers_of(&result.positions));
    if let Some(ids) = &result.object_ids {
        geometry = geometry.object_ids(ids.numbers().to_vec());
    }
    if let Some(parts) = &result.parts {
        geometry = geometry.paths(parts.offsets.clone(), parts.objects.clone());
    }
    if let Some(links) = &result.links {
        geometry.links.width = links.width.try_into().unwrap();
        let ends = links.ends.iter().map(|end| i64::try_from(*end).unwrap());
        geometry.links.ends = ends.collect();
    }
    geometry.vertex = attributes(&result.vertex);
    geometry.link = attributes(&result.link);
    geometry.object = attributes(&result.object);
    let has_objects = result.object_ids.is_some() || result.parts.is_some();
    geometry.objects = has_objects.then(|| result.objects.clone());
    for group in &result.groups {
        let number = group.id.try_into().unwrap();
        geometry.groups.insert(number, group.members.clone());
    }
    geometry
}

#[track_caller]
fn check(result: &QueryResult, kind: GeometryKind) {
    for end in typed() {
        let found = again(result, end, &GeometryReadOptions::new(kind)).unwrap();
        assert_eq!(found.geometry, geometry(result), "{end}");
        assert_eq!(found.notes, [""; 0], "{end}");
        let names = (end != "npz").then(|| result.axes.clone());
        assert_eq!(found.axes, names, "{end}");
    }
}

/// Returns points without missing numbers.
fn whole() -> QueryResult {
    let mut result = points();
    result.fragment.clear();
    for column in result.vertex.iter_mut().chain(&mut result.object) {
        if matches!(column.values, ColumnValues::Numeric(_)) {
            column.nulls = None;
        }
    }
    // In tables, complex numbers become two columns.
    result.vertex.retain(|column| column.name != "wave");
    result
}

#[test]
fn points_keep_attributes_of_every_type() {
    check(&whole(), GeometryKind::Points);
    let mut result = in_axes(1);
    result.vertex = vec![numbers("wave", 1, &[[1.0_f32, -2.5], [0.0, 0.1]])];
    let found = again(
        &result,
        "npz",
        &GeometryReadOptions::new(GeometryKind::Points),
    );
    assert_eq!(found.unwrap().geometry, geometry(&result));
}

#[test]
fn paths_graphs_and_meshes_are_read_back() {
    check(&paths(), GeometryKind::Streamlines);
    let mut result = graph();
    result.link = vec![numbers("weight", 1, &[1_i32, 2, 3])];
    check(&result, GeometryKind::Graphs);
    check(&result, GeometryKind::Skeletons);
    check(&mesh(3), GeometryKind::Mesh);
    check(&mesh(4), GeometryKind::Mesh);
    for axes in 1..=5 {
        check(&in_axes(axes), GeometryKind::Points);
    }
}

#[test]
fn an_empty_result_is_read_back() {
    let found = again(
        &nothing(),
        "npz",
        &GeometryReadOptions::new(GeometryKind::Graphs),
    )
    .unwrap();
    assert_eq!(found.geometry, geometry(&nothing()));
    for end in typed().into_iter().chain(["csv"]) {
        let found = again(
            &nothing(),
            end,
            &GeometryReadOptions::new(GeometryKind::Graphs),
        )
        .unwrap();
        assert_eq!(found.geometry.vertices(), 0);
        assert_eq!(found.geometry.vertex.len(), 2);
    }
}

/// Empty words differ from missing ones, whether or not any are missing.
#[test]
fn empty_words_differ_from_missing_ones() {
    let mut result = in_axes(1);
    for column in [
        words("kind", &[0, 1], &["", "a"]),
        lacking(words("kind", &[0, 1], &["", "a"]), &[false, true]),
        lacking(words("kind", &[0, 1], &["", "a"]), &[true, false]),
    ] {
        result.vertex = vec![column];
        check(&result, GeometryKind::Points);
    }
}

#[test]
fn missing_numbers_are_rejected_or_become_nan() {
    for end in typed() {
        let mut reading = GeometryReadOptions::new(GeometryKind::Graphs);
        let error = again(&graph(), end, &reading).unwrap_err();
        assert_eq!(error.place, FilePlace::Column("link.weight".to_owned()));
        assert!(
            matches!(error.fault, FileFault::Column(ColumnError::Missing(1))),
            "{error}"
        );
        reading.missing = MissingPolicy::Nan;
        let found = again(&graph(), end, &reading).unwrap().geometry;
        let ColumnValues::Numeric(weight) = &found.link[0].values else {
            panic!();
        };
        assert_eq!(*weight, NumericColumn::float64(1, [1.0, f64::NAN, 3.0]));
        // The greatest 64-bit integer is not representable as a float.
        let mut result = in_axes(1);
        result.vertex = vec![lacking(numbers("n", 1, &[u64::MAX, 0]), &[false, true])];
        let reading = &reading;
        let error = again(&result, end, reading).unwrap_err();
        let source = ColumnError::Inexact(0);
        assert!(matches!(error.fault, FileFault::Column(found) if found == source));
    }
}

#[test]
fn fragment_attributes_are_read_back_by_object() {
    let mut result = paths();
    result.fragment = vec![
        words("label", &[0, 0, 0, 1, 1, 1], &["a", "b"]),
        numbers("depth", 1, &[1_u8, 1, 1, 2, 2, 3]),
    ];
    for end in typed() {
        let found = again(
            &result,
            end,
            &GeometryReadOptions::new(GeometryKind::Polylines),
        )
        .unwrap();
        let label = ColumnValues::text(vec![Some("a".to_owned()), Some("b".to_owned())]);
        let [fragment] = &found.geometry.fragment[..] else {
            panic!("{:?}", found.geometry.fragment);
        };
        assert_eq!(*fragment, Column::new("label", label));
        assert_eq!(found.geometry.objects, Some(vec![4, 9]));
        let [vertex] = &found.geometry.vertex[..] else {
            panic!("{:?}", found.geometry.vertex);
        };
        assert_eq!((vertex.name.as_str(), vertex.values.len()), ("depth", 6));
        let [note] = &found.notes[..] else {
            panic!("{:?}", found.notes);
        };
        assert!(
            note.starts_with("fragment.depth is stored as vertex.depth"),
            "{note}"
        );
    }
    // One of the vertices belongs to no object.
    let found = again(&points(), "npz", &{
        let mut reading = GeometryReadOptions::new(GeometryKind::Points);
        reading.missing = MissingPolicy::Nan;
        reading
    });
    assert!(found.unwrap_err().to_string().contains("object.count"));
}

/// Integers stay integers, and floats become `f64`.
#[test]
fn csv_keeps_numbers() {
    let found = again(
        &whole(),
        "csv",
        &GeometryReadOptions::new(GeometryKind::Points),
    )
    .unwrap();
    let geometry = found.geometry;
    let positions = [0.1, 2.0, -3.0, 1e20, 0.0, 5e-7, 7.0, 8.0, 9.0];
    assert_eq!(geometry.positions, NumericColumn::float64(3, positions));
    assert_eq!(geometry.owners.ids(), Some([7, -1, -2].as_slice()));
    let expected = self::geometry(&whole());
    for (found, expected) in geometry.vertex.iter().zip(&expected.vertex) {
        assert_eq!(found.name, expected.name);
        match (&found.values, &expected.values) {
            (ColumnValues::Dictionary { .. }, ColumnValues::Dictionary { .. }) => {
                assert_eq!(found.values, expected.values);
            }
            (ColumnValues::Numeric(found), ColumnValues::Numeric(expected)) => {
                assert_eq!((found.len(), found.width), (3, expected.width));
            }
            _ => panic!("{}", found.name),
        }
    }
    let kinds = geometry
        .vertex
        .iter()
        .map(|attribute| match &attribute.values {
            ColumnValues::Numeric(numbers) => Some(numbers.kind),
            ColumnValues::Dictionary { .. } => None,
        });
    let (float, int) = (Some(Kind::Float64), Some(Kind::Int64));
    let expected = [float, None, int, Some(Kind::Bool), int, float];
    assert!(kinds.eq(expected));
    assert_eq!(geometry.objects, Some(vec![7, 12]));
    let ColumnValues::Numeric(count) = &geometry.object[1].values else {
        panic!();
    };
    assert_eq!(
        (count.kind, &count.bytes[..8]),
        (Kind::UInt64, &[255; 8][..])
    );
    assert_eq!(geometry.groups[&5], [12, 7]);
    assert_eq!(found.files.len(), 3);
}

#[test]
fn csv_keeps_paths_and_links() {
    let found = again(
        &paths(),
        "csv",
        &GeometryReadOptions::new(GeometryKind::Lines),
    )
    .unwrap();
    // In both, all numbers are floats.
    assert_eq!(found.geometry, geometry(&paths()));
    let mut result = mesh(4);
    result.positions = rows(3, &(0..12).map(f64::from).collect::<Vec<_>>());
    result.link = vec![words("kind", &[0], &["a"])];
    let found = again(
        &result,
        "csv",
        &GeometryReadOptions::new(GeometryKind::Mesh),
    )
    .unwrap();
    assert_eq!(found.geometry, geometry(&result));
    let names = ["z", "y", "x"].map(str::to_owned);
    let mut reading = GeometryReadOptions::new(GeometryKind::Graphs);
    reading.missing = MissingPolicy::Nan;
    let found = again(&graph(), "csv", &reading).unwrap();
    assert_eq!(found.axes, Some(names.to_vec()));
}

/// More rows than one Arrow batch holds, with one dictionary.
#[test]
fn many_rows_are_read_back() {
    let count = 150_000_u32;
    let mut result = in_axes(1);
    let all: Vec<u32> = (0..count).collect();
    let codes: Vec<u32> = all.iter().map(|row| row % 3).collect();
    let missing: Vec<bool> = all.iter().map(|row| row % 5 == 0).collect();
    result.positions = rows(1, &all);
    result.vertex = vec![
        lacking(words("kind", &codes, &["a", "b", "c"]), &missing),
        numbers("two", 2, &[all.clone(), all.clone()].concat()),
    ];
    check(&result, GeometryKind::Points);
}
