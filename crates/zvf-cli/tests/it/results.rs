//! Query results built by hand, one of each shape.

use std::{fs, path::Path};

use zvf::{
    Column, ColumnValues, Links, NumericColumn, ObjectGroup, ObjectIds, Parts, QueryResult,
    numeric::Kind,
};
use zvf_files::{FileError, OutputFile, StoreDescription, WrittenFiles, write};
use zvf_format::numeric::{ByteOrder, Element, encode};

/// Writes a result to a file of this name in a folder.
pub(crate) fn written(
    result: &QueryResult,
    folder: &Path,
    name: &str,
) -> Result<WrittenFiles, FileError> {
    let target = OutputFile::new(folder.join(name)).unwrap();
    write(result, &StoreDescription::new("graph"), &target)
}

/// Writes a result and returns the bytes of the file.
pub(crate) fn bytes(result: &QueryResult, name: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    written(result, folder.path(), name).unwrap();
    fs::read(folder.path().join(name)).unwrap()
}

/// Writes a result and returns the text of the file.
pub(crate) fn text(result: &QueryResult, name: &str) -> String {
    String::from_utf8(bytes(result, name)).unwrap()
}

pub(crate) fn rows<T: Element>(columns: u32, values: &[T]) -> NumericColumn {
    let mut rows = NumericColumn::new(T::KIND, columns);
    rows.bytes = encode(values, ByteOrder::Little);
    rows
}

pub(crate) fn numbers<T: Element>(name: &str, columns: u32, values: &[T]) -> Column {
    Column {
        name: name.to_owned(),
        values: ColumnValues::Numeric(rows(columns, values)),
        nulls: None,
    }
}

pub(crate) fn words(name: &str, codes: &[u32], words: &[&str]) -> Column {
    let words = words.iter().map(|word| (*word).to_owned());
    Column {
        name: name.to_owned(),
        values: ColumnValues::Dictionary {
            codes: codes.to_vec(),
            words: words.collect(),
        },
        nulls: None,
    }
}

pub(crate) fn lacking(column: Column, missing: &[bool]) -> Column {
    let missing = Some(missing.to_vec());
    Column {
        nulls: missing,
        ..column
    }
}

fn axes(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// Returns three points with a column of every type.
pub(crate) fn points() -> QueryResult {
    let mut result = QueryResult::default();
    result.level = zvf::LevelId::new(2);
    result.axes = axes(&["x", "y", "z"]);
    result.positions = rows(3, &[0.1_f32, 2.0, -3.0, 1e20, 0.0, 5e-7, 7.0, 8.0, 9.0]);
    result.object_ids = Some(ObjectIds::from_numbers(vec![7, -1, -2]));
    // 1.5, null, -0.1 rounded to 11 bits.
    let mut half = NumericColumn::new(Kind::Float16, 1);
    half.bytes = vec![0x00, 0x3e, 0xff, 0xff, 0x66, 0xae];
    let half = Column {
        name: "half".to_owned(),
        values: ColumnValues::Numeric(half),
        nulls: Some(vec![false, true, false]),
    };
    // Every byte except 0 is true.
    let mut flag = NumericColumn::new(Kind::Bool, 1);
    flag.bytes = vec![2, 0, 1];
    let flag = Column {
        name: "flag".to_owned(),
        values: ColumnValues::Numeric(flag),
        nulls: None,
    };
    result.vertex = vec![
        lacking(
            numbers("radius", 1, &[0.1_f32, 3.0, f32::NAN]),
            &[false, true, false],
        ),
        // The code of the missing word has no word.
        lacking(
            words("kind", &[1, 99, 0], &["", "a,\"b\"", "unused and long"]),
            &[false, true, false],
        ),
        lacking(
            numbers("rgb", 3, &[255_u8, 0, 1, 2, 3, 4, 5, 6, 7]),
            &[false, false, true],
        ),
        flag,
        numbers("big", 1, &[9_007_199_254_740_993_i64, -1, 5]),
        half,
        numbers("wave", 1, &[[1.0_f32, -2.5], [0.0, 0.1], [-0.0, f32::NAN]]),
    ];
    result.fragment = vec![words("label", &[0, 0, 1], &["été", "β"])];
    result.objects = vec![7, 12];
    result.object = vec![
        lacking(numbers("length", 1, &[0.1_f64, 1e300]), &[false, true]),
        lacking(numbers("count", 1, &[u64::MAX, 0]), &[false, true]),
    ];
    result.groups = vec![ObjectGroup {
        id: 5,
        members: vec![12, 7],
    }];
    result
}

/// Returns paths of three, one and two vertices in a plane, in `f64`.
pub(crate) fn paths() -> QueryResult {
    let mut result = QueryResult::default();
    result.axes = axes(&["x", "y"]);
    let positions = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 0.1, 5.5];
    result.positions = rows::<f64>(2, &positions);
    result.parts = Some(Parts {
        offsets: vec![0, 3, 4, 6],
        objects: vec![4, 9, 9],
    });
    result.objects = vec![4, 9];
    result
}

/// Returns four vertices and three edges with a weight, child first.
pub(crate) fn graph() -> QueryResult {
    let mut result = QueryResult::default();
    result.axes = axes(&["z", "y", "x"]);
    result.positions = rows(3, &[0_i16, 1, 2, 10, 11, 12, 20, 21, 22, 30, 31, 32]);
    result.object_ids = Some(ObjectIds::from_numbers(vec![1, 1, 1, 1]));
    result.objects = vec![1];
    result.links = Some(Links {
        width: 2,
        ends: vec![1, 0, 2, 1, 3, 0],
    });
    result.link = vec![lacking(
        numbers("weight", 1, &[1_i32, 2, 3]),
        &[false, true, false],
    )];
    result
}

/// Returns a square as faces with this many corners.
pub(crate) fn mesh(width: u32) -> QueryResult {
    let mut result = QueryResult::default();
    result.axes = axes(&["x", "y", "z"]);
    result.positions = rows(
        3,
        &[
            0.0_f32, 0.0, 0.5, 1.0, 0.0, 0.5, 1.0, 1.0, 0.5, 0.0, 1.0, 0.5,
        ],
    );
    let ends = match width {
        3 => vec![0, 1, 2, 0, 2, 3],
        4 => vec![0, 1, 2, 3],
        _ => (0..4).cycle().take(width.try_into().unwrap()).collect(),
    };
    result.links = Some(Links { width, ends });
    result
}

/// Returns an empty result of a store with objects and links.
pub(crate) fn nothing() -> QueryResult {
    let mut result = QueryResult::default();
    result.axes = axes(&["x", "y", "z"]);
    result.positions = NumericColumn::new(Kind::Float32, 3);
    result.object_ids = Some(ObjectIds::default());
    result.links = Some(Links {
        width: 2,
        ends: Vec::new(),
    });
    result.vertex = vec![numbers::<f32>("radius", 1, &[]), words("kind", &[], &[])];
    result
}

/// Returns two points with this number of axes, in `f64`.
pub(crate) fn in_axes(count: u32) -> QueryResult {
    let mut result = QueryResult::default();
    let names = ["x", "y", "z", "t", "c"];
    result.axes = axes(&names[..count.try_into().unwrap()]);
    let values: Vec<f64> = (0..2 * count)
        .map(|value| f64::from(value) + 0.25)
        .collect();
    result.positions = rows(count, &values);
    result
}
