//! Single columns: types, nulls, memory.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, FixedSizeListArray, Float64Array, Int32Array,
    ListArray, StringArray,
    cast::AsArray,
    types::{Float32Type, Int8Type, Int32Type, UInt16Type},
};
use arrow_schema::DataType;
use proptest::prelude::*;
use zvf::{Column, ColumnValues, NumericColumn};
use zvf_arrow::{ConversionError, array_of, column_of};

fn round_trip(column: Column) -> Column {
    let name = column.name.clone();
    column_of(&name, &array_of(column).unwrap()).unwrap()
}

#[test]
fn numbers_keep_their_memory() {
    let values: Vec<f32> = (0..1000_u16).map(f32::from).collect();
    let numbers = NumericColumn::float32(2, values);
    let before = numbers.bytes.as_ptr();
    let array = array_of(Column::new("fa", numbers)).unwrap();
    let list = array.as_fixed_size_list();
    let inner = list.values().as_primitive::<Float32Type>();
    assert_eq!(inner.values().inner().as_ptr(), before, "copied to Arrow");
    assert_eq!(list.value_length(), 2);

    // A second user of the memory forces a copy, the only one does not.
    let copied = column_of("fa", &array).unwrap();
    let ColumnValues::Numeric(copied) = copied.values else {
        unreachable!()
    };
    assert_ne!(copied.bytes.as_ptr(), before);
}

#[test]
fn text_has_one_dictionary() {
    let column = Column::text("kind", [Some("soma"), None, Some("axon"), Some("soma")]);
    let array = array_of(column.clone()).unwrap();
    let expected = DataType::Dictionary(DataType::UInt32.into(), DataType::Utf8.into());
    assert_eq!(array.data_type(), &expected);
    assert_eq!(array.null_count(), 1);
    let back = column_of("kind", &array).unwrap();
    let texts: Vec<_> = (0..4).map(|row| back.values.text_at(row)).collect();
    assert_eq!(texts, [Some("soma"), None, Some("axon"), Some("soma")]);
    assert!(back.is_null(1) && !back.is_null(0));
}

#[test]
fn text_of_every_arrow_type_is_read() {
    let dictionary: DictionaryArray<UInt16Type> =
        [Some("a"), None, Some("b")].into_iter().collect();
    let arrays: [ArrayRef; 4] = [
        Arc::new(StringArray::from(vec![Some("a"), None, Some("b")])),
        Arc::new(arrow_array::LargeStringArray::from(vec![
            Some("a"),
            None,
            Some("b"),
        ])),
        Arc::new(arrow_array::StringViewArray::from(vec![
            Some("a"),
            None,
            Some("b"),
        ])),
        Arc::new(dictionary),
    ];
    for array in arrays {
        let column = column_of("t", &array).unwrap();
        let texts: Vec<_> = (0..3).map(|row| column.values.text_at(row)).collect();
        assert_eq!(texts, [Some("a"), None, Some("b")], "{}", array.data_type());
    }
}

#[test]
fn slices_are_read_from_their_start() {
    let numbers: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3, 4]));
    let column = column_of("n", &numbers.slice(1, 2)).unwrap();
    assert_eq!(
        column.values,
        ColumnValues::Numeric(NumericColumn::from_values(1, [2_i32, 3]))
    );
    let list = FixedSizeListArray::from_iter_primitive::<Int32Type, _, _>(
        [[1, 2], [3, 4], [5, 6]].map(|row| Some(row.map(Some))),
        2,
    );
    let list: ArrayRef = Arc::new(list);
    let column = column_of("n", &list.slice(1, 2)).unwrap();
    let expected = NumericColumn::from_values(2, [3_i32, 4, 5, 6]);
    assert_eq!(column.values, ColumnValues::Numeric(expected));
    let flags: ArrayRef = Arc::new(BooleanArray::from(vec![true, false, true]));
    let column = column_of("b", &flags.slice(1, 2)).unwrap();
    assert_eq!(
        column.values,
        ColumnValues::Numeric(NumericColumn::from_values(1, [false, true]))
    );
}

#[test]
fn other_types_are_named() {
    let rows = [Some(vec![Some(1)]), None];
    let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int8Type, _, _>(rows));
    let error = column_of("sizes", &lists).unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with("column \"sizes\" has the type List("),
        "{text}"
    );
    let holes = [Some([Some(1), None])];
    let holes = FixedSizeListArray::from_iter_primitive::<Int32Type, _, _>(holes, 2);
    let error = column_of("sizes", &(Arc::new(holes) as ArrayRef)).unwrap_err();
    assert!(matches!(error, ConversionError::Nulls(_)), "{error}");
    let mut cut = NumericColumn::float64(1, [1.0]);
    cut.bytes.pop();
    let error = array_of(Column::new("cut", cut)).unwrap_err();
    assert!(matches!(error, ConversionError::Incomplete(_)), "{error}");
}

#[test]
fn complex_numbers_are_pairs() {
    let mut numbers = NumericColumn::float64(1, [1.0, 2.0, 3.0, 4.0]);
    numbers.kind = zvf::numeric::Kind::Complex128;
    let array = array_of(Column::new("c", numbers)).unwrap();
    let pairs = array.as_fixed_size_list();
    let parts = pairs
        .values()
        .as_any()
        .downcast_ref::<Float64Array>()
        .unwrap();
    assert_eq!(
        (pairs.len(), parts.values().as_ref()),
        (2, &[1.0, 2.0, 3.0, 4.0][..])
    );
}

proptest! {
    #[test]
    fn columns_come_back(
        values in proptest::collection::vec(any::<i16>(), 0..50),
        width in 1_u32..4,
        nulls in any::<u64>(),
    ) {
        let rows = values.len() / width as usize;
        let values = values[..rows * width as usize].to_vec();
        let nulls: Vec<bool> = (0..rows).map(|row| nulls >> (row % 64) & 1 == 1).collect();
        let mut column = Column::new("n", NumericColumn::from_values(width, values));
        column.nulls = nulls.contains(&true).then_some(nulls);
        prop_assert_eq!(round_trip(column.clone()), column);
    }

    #[test]
    fn texts_come_back(texts in proptest::collection::vec(any::<Option<String>>(), 0..30)) {
        let column = Column::text("t", texts.clone());
        let back = round_trip(column);
        let found: Vec<_> = (0..texts.len()).map(|row| back.values.text_at(row)).collect();
        prop_assert_eq!(found, texts.iter().map(Option::as_deref).collect::<Vec<_>>());
    }
}
