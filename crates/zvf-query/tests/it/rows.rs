//! Points tested in bulk, compared with one at a time.

use std::num::NonZeroU32;

use proptest::prelude::*;
use zvf_format::numeric::{ByteOrder, Dtype, Element, Kind, NumericRows, encode};
use zvf_query::geometry::{Bbox, Primitive, SelectRowsError};

fn one_by_one(bbox: Bbox, values: &[f64]) -> Vec<usize> {
    let rows = values.chunks(bbox.axes()).enumerate();
    rows.filter(|(_, row)| bbox.touches(Primitive::Point(row)))
        .map(|(at, _)| at)
        .collect()
}

fn selected<T: Element>(bbox: Bbox, values: &[T], order: ByteOrder) -> Vec<usize> {
    let cell = encode(values, order);
    let axes = NonZeroU32::try_from(u32::try_from(bbox.axes()).unwrap()).unwrap();
    let rows = NumericRows::parse(&cell, Dtype::new(T::KIND, order), axes).unwrap();
    let mut selected = vec![usize::MAX];
    bbox.select_rows(rows, &mut selected).unwrap();
    assert_eq!(selected.remove(0), usize::MAX, "what was there stays");
    selected
}

fn corner() -> impl Strategy<Value = f64> {
    prop_oneof![
        (-4..4_i8).prop_map(f64::from),
        -4.0..4.0_f64,
        // Between two `f32`.
        (-4..4_i8).prop_map(|v| f64::from(v) + 1e-12),
        Just(f64::INFINITY),
        Just(f64::NEG_INFINITY),
        Just(1e300),
    ]
}

fn value() -> impl Strategy<Value = f32> {
    prop_oneof![
        20 => (-4..4_i8).prop_map(f32::from),
        5 => -4.0..4.0_f32,
        1 => any::<f32>(),
    ]
}

proptest! {
    #[test]
    fn bulk_tests_equal_single_tests(
        (lo, hi) in (1..=8_usize).prop_flat_map(|axes| (
            prop::collection::vec(corner(), axes),
            prop::collection::vec(corner(), axes),
        )),
        values in prop::collection::vec(value(), 0..4000),
    ) {
        let bbox = Bbox::new(&lo, &hi).unwrap();
        let rows = values.len() / lo.len();
        let single = &values[..rows * lo.len()];
        let double: Vec<f64> = single.iter().copied().map(f64::from).collect();
        let wanted = one_by_one(bbox, &double);
        let mut found = Vec::new();
        bbox.select_values(single, &mut found).unwrap();
        prop_assert_eq!(&found, &wanted);
        found.clear();
        bbox.select_values(&double, &mut found).unwrap();
        prop_assert_eq!(&found, &wanted);
        for order in [ByteOrder::Little, ByteOrder::Big] {
            prop_assert_eq!(&selected(bbox, single, order), &wanted);
            prop_assert_eq!(&selected(bbox, &double, order), &wanted);
        }
    }

    #[test]
    fn integers_are_promoted(values in prop::collection::vec(any::<i8>(), 0..600)) {
        let values = &values[..values.len() / 2 * 2];
        let bbox = Bbox::parse("-20.5,-100,7,50").unwrap();
        let double: Vec<f64> = values.iter().copied().map(f64::from).collect();
        let wanted = one_by_one(bbox, &double);
        prop_assert_eq!(&selected(bbox, values, ByteOrder::Little), &wanted);
        let wide: Vec<i64> = values.iter().copied().map(i64::from).collect();
        prop_assert_eq!(&selected(bbox, &wide, ByteOrder::Big), &wanted);
    }
}

#[test]
fn invalid_positions_are_rejected() {
    let bbox = Bbox::parse("0,0,1,1").unwrap();
    let mut selected = Vec::new();
    let values = bbox.select_values(&[0.0_f32; 3], &mut selected);
    assert_eq!(values, Err(SelectRowsError::Values { values: 3, axes: 2 }));
    let rows = |dtype: &str, columns: u32| {
        let columns = NonZeroU32::new(columns).unwrap();
        NumericRows::parse(&[0; 48], Dtype::parse(dtype).unwrap(), columns).unwrap()
    };
    let columns = bbox.select_rows(rows("float32", 3), &mut selected);
    assert_eq!(
        columns,
        Err(SelectRowsError::Columns {
            columns: 3,
            axes: 2
        })
    );
    let kind = bbox.select_rows(rows("complex64", 2), &mut selected);
    assert_eq!(kind, Err(SelectRowsError::Kind(Kind::Complex64)));
    let elements = rows("float64", 3).elements::<f64>().unwrap();
    assert_eq!(bbox.select_elements(elements, &mut selected), Ok(()));
    assert_eq!(selected, [0, 1, 2]);
}
