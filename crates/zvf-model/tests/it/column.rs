//! Columns that queries return and writers take.

use proptest::{collection::vec, prelude::*};
use zvf_format::numeric::{Kind, Value};
use zvf_model::column::{AppendError, Column, ColumnValues, NULL_CODE, NumericColumn};

fn text(rows: &[Option<&str>]) -> Column {
    Column::text("label", rows.iter().copied())
}

fn texts(column: &Column) -> Vec<Option<&str>> {
    (0..column.len()).map(|row| column.text_at(row)).collect()
}

#[test]
fn rows_of_arrays_become_a_column_of_that_width() {
    let column = NumericColumn::from(vec![[1_u16, 2, 3], [4, 5, 6]]);
    assert_eq!((column.kind, column.width), (Kind::UInt16, 3));
    assert_eq!(
        (column.len(), column.row_len(), column.row_size()),
        (2, 3, 6)
    );
    assert_eq!(column.row(1), Some([4, 0, 5, 0, 6, 0].as_slice()));
    assert_eq!(column.row(2), None);
    assert_eq!(column.row(usize::MAX), None);
    assert_eq!(column, NumericColumn::from_values(3, 1_u16..=6));
}

#[test]
fn an_iterator_becomes_a_column_of_width_one() {
    let column: NumericColumn = [true, false].into_iter().collect();
    assert_eq!(
        (column.kind, column.width, column.bytes),
        (Kind::Bool, 1, vec![1, 0])
    );
}

#[test]
fn a_width_of_zero_counts_as_one() {
    let column = NumericColumn::new(Kind::Int8, 0);
    assert_eq!((column.width, column.row_size()), (1, 1));
    assert!(column.is_empty());
    assert_eq!(
        NumericColumn::default().view().map(|view| view.rows()),
        Some(0)
    );
}

#[test]
fn values_come_out_as_their_own_kind_only() {
    let column = NumericColumn::int64(2, [1, -2, 3, -4]);
    assert_eq!(column.to_vec::<i64>(), Some(vec![1, -2, 3, -4]));
    assert_eq!(column.to_vec::<u64>(), None);
    assert_eq!(column.as_slice::<f64>(), None);
    let complex = NumericColumn::from_values(1, [[0.5_f32, -1.0]]);
    assert_eq!(complex.kind, Kind::Complex64);
    assert_eq!(complex.to_vec::<[f32; 2]>(), Some(vec![[0.5, -1.0]]));
}

#[test]
fn bytes_that_end_inside_a_row_have_no_view() {
    let column = NumericColumn::float32(2, [1.0]);
    assert_eq!((column.view().is_none(), column.len()), (true, 0));
    assert_eq!(column.to_vec::<f32>(), None);
}

#[test]
fn a_bool_other_than_zero_or_one_is_copied_but_not_borrowed() {
    let column = NumericColumn::new(Kind::Bool, 1).with_bytes(vec![0, 7]);
    assert_eq!(column.as_slice::<bool>(), None);
    assert_eq!(column.to_vec::<bool>(), Some(vec![false, true]));
}

#[test]
fn rows_past_the_end_are_not_taken() {
    let column = NumericColumn::float64(1, [1.5, 2.5]);
    assert_eq!(
        column.take([1, 0]),
        Some(NumericColumn::float64(1, [2.5, 1.5]))
    );
    assert_eq!(column.take([1, 9, 0]), None);
    let wide = NumericColumn::from(vec![[1_u8, 2, 3, 4, 5], [6, 7, 8, 9, 10]]);
    assert_eq!(wide.take([2, 1]), None);
    assert_eq!(wide.take([1]).unwrap().bytes, [6, 7, 8, 9, 10]);
}

#[test]
fn existing_rows_are_taken() {
    let column = NumericColumn::float64(1, [1.5, 2.5]);
    let expected = NumericColumn::float64(1, [2.5, 2.5, 1.5]);
    assert_eq!(column.take_existing([1, 1, 0]), expected);
}

#[test]
#[cfg_attr(debug_assertions, should_panic(expected = "past the end"))]
fn taking_existing_rows_keeps_their_number() {
    let column = NumericColumn::float64(1, [1.5, 2.5]);
    let expected = NumericColumn::float64(1, [2.5, 0.0]);
    assert_eq!(column.take_existing([1, 2]), expected);
}

#[test]
fn rows_of_a_column_past_the_end_are_null() {
    let numbers = Column::new("a", NumericColumn::int64(1, [1, 2]));
    let nulls = Some(vec![false, true]);
    assert_eq!(numbers.take([1, 2]).nulls, nulls);
    let text = Column::text("b", [Some("x"), Some("y")]).take([0, usize::MAX]);
    assert_eq!((text.nulls.clone(), text.text_at(0)), (nulls, Some("x")));
    assert_eq!(text.text_at(1), None);
}

#[test]
fn an_empty_column_takes_on_the_kind_of_the_next() {
    let mut column = NumericColumn::new(Kind::Bool, 2);
    column.append(NumericColumn::int64(3, [1, 2, 3])).unwrap();
    column.append(NumericColumn::new(Kind::UInt8, 1)).unwrap();
    assert_eq!(column, NumericColumn::int64(3, [1, 2, 3]));
}

#[test]
fn two_real_kinds_append_as_float64() {
    let mut column = NumericColumn::from_values(1, [7_u8]);
    column.append(NumericColumn::float32(1, [0.5])).unwrap();
    assert_eq!(column, NumericColumn::float64(1, [7.0, 0.5]));
}

#[test]
fn columns_that_do_not_fit_are_refused_and_left_alone() {
    let before = NumericColumn::float32(1, [1.0]);
    let mut column = before.clone();
    let wider = NumericColumn::float32(2, [1.0, 2.0]);
    let error = column.append(wider).unwrap_err();
    assert_eq!(
        error.to_string(),
        "rows of 2 numbers cannot follow rows of 1"
    );
    let complex = NumericColumn::from_values(1, [[1.0_f64, 0.0]]);
    let error = column.append(complex).unwrap_err();
    assert_eq!(
        error.to_string(),
        "complex128 values cannot follow float32 values"
    );
    assert_eq!(column, before);

    let mut column = text(&[Some("a")]);
    let error = column.append(Column::new("label", before)).unwrap_err();
    assert_eq!(error, AppendError::Text);
}

#[test]
fn text_shares_codes_and_marks_nulls() {
    let column = text(&[Some("b"), None, Some("a"), Some("b")]);
    let ColumnValues::Dictionary { codes, words } = &column.values else {
        panic!("{column:?}")
    };
    assert_eq!(codes, &[0, NULL_CODE, 1, 0]);
    assert_eq!(words.as_ref(), ["b", "a"]);
    assert_eq!(column.nulls, Some(vec![false, true, false, false]));
    assert_eq!(Column::new("label", column.values.clone()), column);
    assert_eq!(texts(&column), [Some("b"), None, Some("a"), Some("b")]);
    assert_eq!(text(&[Some("a")]).nulls, None);
}

#[test]
fn a_code_without_a_word_has_no_text() {
    let column = Column::new(
        "label",
        ColumnValues::Dictionary {
            codes: vec![1, 0],
            words: ["a".to_owned()].into(),
        },
    );
    assert_eq!(texts(&column), [None, Some("a")]);
    assert_eq!(
        Column::new("n", NumericColumn::float32(1, [1.0])).text_at(0),
        None
    );
}

#[test]
fn dictionaries_merge_when_columns_append() {
    let mut column = text(&[Some("x"), Some("y")]);
    column.append(text(&[Some("y"), None, Some("z")])).unwrap();
    let found = [Some("x"), Some("y"), Some("y"), None, Some("z")];
    assert_eq!(texts(&column), found);
    let ColumnValues::Dictionary { words, .. } = &column.values else {
        panic!("{column:?}")
    };
    assert_eq!(words.as_ref(), ["x", "y", "z"]);
}

#[test]
fn nulls_fill_both_ends() {
    let mut column = Column::new("a", NumericColumn::from_values(2, [1_u8, 2]));
    column.prepend_nulls(1);
    column.extend_with_nulls(4);
    column.extend_with_nulls(2);
    assert_eq!(column.nulls, Some(vec![true, false, true, true]));
    assert_eq!(
        column.values,
        NumericColumn::from_values(2, [0_u8, 0, 1, 2, 0, 0, 0, 0]).into()
    );

    let mut column = text(&[Some("a")]);
    column.prepend_nulls(2);
    column.prepend_nulls(0);
    column.extend_with_nulls(4);
    assert_eq!(texts(&column), [None, None, Some("a"), None]);
}

#[test]
fn a_mask_without_nulls_is_dropped_by_take() {
    let column = text(&[Some("a"), None]);
    assert_eq!(column.take([0, 0]).nulls, None);
    assert_eq!(column.take([1]).nulls, Some(vec![true]));
    assert!(!column.is_null(9));
}

fn kinds() -> impl Strategy<Value = Kind> {
    proptest::sample::select(Kind::ALL.to_vec())
}

/// Generates columns of any kind, with floats of arbitrary bits.
fn columns(
    rows: impl Into<proptest::collection::SizeRange> + Clone,
) -> impl Strategy<Value = NumericColumn> {
    (kinds(), 1_u32..8).prop_flat_map(move |(kind, width)| {
        let empty = NumericColumn::new(kind, width);
        let row = vec(any::<u8>(), empty.row_size());
        vec(row, rows.clone()).prop_map(move |rows| empty.with_bytes(rows.concat()))
    })
}

proptest! {
    #[test]
    fn take_copies_each_row_named(column in columns(1..20), picks in vec(any::<prop::sample::Index>(), 0..40)) {
        let picks: Vec<usize> = picks.iter().map(|pick| pick.index(column.len())).collect();
        let taken = column.take(picks.iter().copied()).unwrap();
        prop_assert_eq!(taken.len(), picks.len());
        for (row, pick) in picks.iter().enumerate() {
            prop_assert_eq!(taken.row(row), column.row(*pick));
        }
    }

    #[test]
    fn append_of_one_kind_is_concatenation(column in columns(1..10), picks in vec(any::<prop::sample::Index>(), 1..10)) {
        let next = column.take(picks.iter().map(|pick| pick.index(column.len()))).unwrap();
        let mut whole = column.clone();
        whole.append(next.clone()).unwrap();
        prop_assert_eq!(whole.bytes, [column.bytes, next.bytes].concat());
    }

    #[test]
    fn append_of_two_kinds_keeps_the_nearest_doubles(one in columns(1..6), other in columns(1..6)) {
        let is_complex = |column: &NumericColumn| matches!(column.kind, Kind::Complex64 | Kind::Complex128);
        let mut whole = one.clone();
        let appended = whole.append(other.clone());
        let fits = one.width == other.width
            && (one.kind == other.kind || !(is_complex(&one) || is_complex(&other)));
        prop_assert_eq!(appended.is_ok(), fits);
        if !fits || one.kind == other.kind {
            return Ok(());
        }
        let doubles = |column: &NumericColumn| {
            let view = column.view().unwrap();
            let cells = (0..view.rows()).flat_map(|row| (0..column.width).map(move |at| (row, at)));
            let values = cells.map(|(row, at)| view.value(row, at).map_or(f64::NAN, Value::to_f64));
            values.map(f64::to_bits).collect::<Vec<_>>()
        };
        prop_assert_eq!(doubles(&whole), [doubles(&one), doubles(&other)].concat());
    }

    #[test]
    fn a_slice_is_a_copy_without_copying(values in vec(any::<i32>(), 0..30)) {
        let column = NumericColumn::from_values(1, values.iter().copied());
        prop_assert_eq!(column.to_vec::<i32>(), Some(values.clone()));
        if let Some(slice) = column.as_slice::<i32>() {
            prop_assert_eq!(slice, values.as_slice());
        }
    }

    #[test]
    fn take_and_append_keep_text(rows in vec(proptest::option::of("[a-c]{0,2}"), 1..12), more in vec(proptest::option::of("[b-d]{0,2}"), 0..12)) {
        let column = |rows: &[Option<String>]| Column::text("label", rows.iter().map(Option::as_deref));
        let mut whole = column(&rows);
        whole.append(column(&more)).unwrap();
        let all: Vec<Option<&str>> = rows.iter().chain(&more).map(Option::as_deref).collect();
        prop_assert_eq!(texts(&whole), all.clone());
        let backwards = whole.take((0..all.len()).rev());
        prop_assert_eq!(texts(&backwards), all.into_iter().rev().collect::<Vec<_>>());
    }
}
