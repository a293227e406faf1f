//! Pieces of levels that differ.

use zvf_format::numeric::{ByteOrder, Kind, encode};
use zvf_model::{
    column::{ColumnValues, NumericColumn},
    object_ids::Owner,
};

use super::*;

fn numbers(kind: Kind, width: u32, bytes: Vec<u8>) -> ColumnValues {
    ColumnValues::Numeric(NumericColumn { kind, width, bytes })
}

fn piece(rows: usize, vertex: Vec<(&str, ColumnValues)>) -> QueryResult {
    let positions = NumericColumn {
        kind: Kind::Float32,
        width: 1,
        bytes: encode(&vec![1.5_f32; rows], ByteOrder::Little),
    };
    let vertex = vertex.into_iter().map(|(name, values)| Column {
        name: name.to_owned(),
        values,
        nulls: None,
    });
    QueryResult {
        positions,
        vertex: vertex.collect(),
        ..QueryResult::default()
    }
}

fn words(codes: &[u32], words: &[&str]) -> ColumnValues {
    ColumnValues::Dictionary {
        codes: codes.to_vec(),
        words: words.iter().map(ToString::to_string).collect(),
    }
}

#[test]
fn rows_of_a_level_without_an_attribute_have_no_value() {
    let mut whole = piece(2, vec![("a", numbers(Kind::UInt8, 1, vec![1, 2]))]);
    whole
        .append(piece(1, vec![("b", numbers(Kind::UInt8, 2, vec![3, 4]))]))
        .unwrap();
    let last = vec![
        ("b", numbers(Kind::UInt8, 2, vec![5, 6])),
        ("a", numbers(Kind::UInt8, 1, vec![7])),
    ];
    whole.append(piece(1, last)).unwrap();
    let [a, b] = whole.vertex.as_slice() else {
        panic!("{whole:?}")
    };
    assert_eq!(a.values, numbers(Kind::UInt8, 1, vec![1, 2, 0, 7]));
    assert_eq!(a.nulls, Some(vec![false, false, true, false]));
    let bytes = vec![0, 0, 0, 0, 3, 4, 5, 6];
    assert_eq!(b.values, numbers(Kind::UInt8, 2, bytes));
    assert_eq!(b.nulls, Some(vec![true, true, false, false]));
}

#[test]
fn numbers_of_two_types_are_float64() {
    let mut whole = piece(1, vec![("a", numbers(Kind::UInt8, 1, vec![7]))]);
    let half = encode(&[0.5_f32], ByteOrder::Little);
    whole
        .append(piece(1, vec![("a", numbers(Kind::Float32, 1, half))]))
        .unwrap();
    let both = encode(&[7.0_f64, 0.5], ByteOrder::Little);
    assert_eq!(whole.vertex[0].values, numbers(Kind::Float64, 1, both));
    let mut mixed = piece(1, vec![("a", numbers(Kind::UInt8, 1, vec![7]))]);
    let wider = piece(1, vec![("a", numbers(Kind::UInt8, 2, vec![7, 8]))]);
    assert!(matches!(mixed.append(wider), Err(QueryError::Mixed(name)) if name == "a"));
    let mut mixed = piece(1, vec![("a", numbers(Kind::UInt8, 1, vec![7]))]);
    let text = piece(1, vec![("a", words(&[0], &["x"]))]);
    assert!(matches!(mixed.append(text), Err(QueryError::Mixed(_))));
}

#[test]
fn words_are_those_of_both() {
    let mut whole = piece(2, vec![("a", words(&[1, 0], &["x", "y"]))]);
    whole
        .append(piece(3, vec![("a", words(&[1, 0, u32::MAX], &["y", "z"]))]))
        .unwrap();
    let expected = words(&[1, 0, 2, 1, u32::MAX], &["x", "y", "z"]);
    assert_eq!(whole.vertex[0].values, expected);
}

#[test]
fn vertices_of_a_level_without_objects_have_none() {
    let mut whole = piece(1, Vec::new());
    let mut next = piece(1, Vec::new());
    next.object_ids = Some([Owner::Object(4)].into_iter().collect());
    whole.append(next).unwrap();
    whole.append(piece(1, Vec::new())).unwrap();
    assert_eq!(whole.object_ids.unwrap().numbers(), [-1, 4, -1]);
}
