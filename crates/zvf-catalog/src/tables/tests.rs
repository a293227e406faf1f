//! Reading attributes in forms that no recorded store has.

use serde_json::{Value as Json, json};
use zvf_format::{numeric::Value, vlen};
use zvf_model::level::LevelId;

use crate::{
    diagnostics::Diagnostics,
    error::CatalogError,
    memory::{OpenCatalog, TestStore, poll_ready},
};
use zvf_model::column::{Column, ColumnValues};

const LEVEL: LevelId = LevelId::new(0);
const AT: &str = "0/object_attributes/a";

fn absent() -> Json {
    json!({"fill_sentinel_meaning": "absent"})
}

fn read(memory: &TestStore, rows: Option<&[u64]>) -> Result<Column, CatalogError> {
    poll_ready(memory.catalog().object_values(LEVEL, "a", rows))
}

/// Returns rows as numbers or text, or none.
fn shown(column: &Column) -> Vec<Option<Json>> {
    let rows = (0..column.values.len())
        .map(|row| match &column.values {
            ColumnValues::Numeric(rows) => match rows.view().unwrap().value(row, 0).unwrap() {
                Value::Int(value) => Json::from(value),
                Value::UInt(value) => Json::from(value),
                Value::Float(value) => Json::from(value),
                Value::Bool(value) => Json::from(value),
                Value::Complex { .. } => panic!("none here"),
            },
            ColumnValues::Dictionary { codes, words } => {
                let code = usize::try_from(*codes.get(row).unwrap()).unwrap();
                Json::from(words.get(code).unwrap().clone())
            }
        })
        .enumerate();
    rows.map(|(row, value)| (!column.is_null(row)).then_some(value))
        .collect()
}

#[test]
fn few_rows_of_an_uncompressed_array_are_read_separately() {
    let mut memory = TestStore::of_objects();
    let more = json!({"data_type": "int16", "fill_value": -32768, "attributes": absent()});
    memory.array(AT, &[70000], &[65536], &more);
    let cell: Vec<u8> = (0..65536_u32)
        .flat_map(|row| [row.to_le_bytes()[0], 0])
        .collect();
    memory.put(&format!("{AT}/c/0"), &cell);
    let rows = [6, 3, 4, 66000, 80000, 3];
    let column = read(&memory, Some(&rows)).unwrap();
    let expected = [Some(6), Some(3), Some(4), None, None, Some(3)];
    assert_eq!(shown(&column), expected.map(|value| value.map(Json::from)));
    let requested = memory.rounds().pop().unwrap();
    let expected = ["0 6..10", "0 12..14", "1 928..930"].map(|part| format!("{AT}/c/{part}"));
    assert_eq!(requested, expected);
    // All rows, without the padding after the last.
    let column = read(&memory, None).unwrap();
    assert_eq!(column.values.len(), 70000);
    let requested = memory.rounds().pop().unwrap();
    assert_eq!(
        requested,
        [format!("{AT}/c/0"), format!("{AT}/c/1 0..8928")]
    );
}

#[test]
fn both_byte_orders_are_read() {
    let mut memory = TestStore::of_objects();
    let more = json!({"data_type": "int32", "fill_value": 5, "attributes": absent(),
        "codecs": [{"name": "bytes", "configuration": {"endian": "big"}}]});
    memory.array(AT, &[3], &[4], &more);
    memory.put(
        &format!("{AT}/c/0"),
        &[0, 0, 1, 0, 0, 0, 0, 5, 255, 255, 255, 254, 0, 0, 0, 5],
    );
    let column = read(&memory, None).unwrap();
    assert_eq!(shown(&column), [Some(json!(256)), None, Some(json!(-2))]);
}

#[test]
fn text_is_read_as_words() {
    let mut memory = TestStore::of_objects();
    let fixed = json!({"name": "fixed_length_utf32", "configuration": {"length_bytes": 8}});
    let more = json!({"data_type": fixed, "fill_value": "", "attributes": absent()});
    memory.array(AT, &[4], &[4], &more);
    let letters = ['a', 'b', '\0', '\0', 'é', '\0', 'a', 'b'];
    let cell: Vec<u8> = letters
        .iter()
        .flat_map(|c| u32::from(*c).to_le_bytes())
        .collect();
    memory.put(&format!("{AT}/c/0"), &cell);
    let expected = [Some(json!("ab")), None, Some(json!("é")), Some(json!("ab"))];
    assert_eq!(shown(&read(&memory, None).unwrap()), expected);
    memory.put(&format!("{AT}/c/0"), &[0xff; 32]);
    assert!(matches!(read(&memory, None), Err(CatalogError::Damaged(_))));

    let more = json!({"data_type": "string", "fill_value": "", "attributes": absent(),
        "codecs": ["vlen-utf8"]});
    memory.array(AT, &[5], &[2], &more);
    let frame = vlen::encode(&["soma", ""]).unwrap();
    memory.put(&format!("{AT}/c/0"), &frame);
    memory.put(&format!("{AT}/c/2"), &vlen::encode(&["axon", ""]).unwrap());
    let soma = Some(json!("soma"));
    let axon = Some(json!("axon"));
    let expected = [soma.clone(), None, None, None, axon.clone()];
    assert_eq!(shown(&read(&memory, None).unwrap()), expected);
    let column = read(&memory, Some(&[4, 0, 5, 4])).unwrap();
    assert_eq!(shown(&column), [axon.clone(), soma, None, axon]);
}

#[test]
fn damaged_cells_have_no_values_with_keep_going() {
    let mut memory = TestStore::of_objects();
    memory.array(
        AT,
        &[4],
        &[2],
        &json!({"data_type": "uint8", "fill_value": 7}),
    );
    memory.put(&format!("{AT}/c/0"), b"broken");
    memory.put(&format!("{AT}/c/1"), &[1, 7]);
    assert!(
        matches!(read(&memory, None), Err(CatalogError::Damaged(damage))
        if damage.key.as_str() == format!("{AT}/c/0"))
    );
    let catalog = memory.catalog();
    let level = poll_ready(catalog.level(LEVEL)).unwrap();
    let diagnostics = Diagnostics::new(true);
    let column = poll_ready(catalog.object_column(&level, "a", None, &diagnostics)).unwrap();
    // A fill value without meaning is a value.
    assert_eq!(shown(&column), [None, None, Some(json!(1)), Some(json!(7))]);
    assert_eq!(diagnostics.finish().0.len(), 1);
}

#[test]
fn an_attribute_cannot_take_more_than_the_budget() {
    let mut memory = TestStore::of_objects();
    memory.array(AT, &[1 << 40], &[1 << 40], &json!({}));
    assert!(matches!(
        read(&memory, None),
        Err(CatalogError::OverBudget { .. })
    ));
    memory.array(AT, &[1 << 40], &[1], &json!({}));
    assert!(matches!(read(&memory, None), Err(CatalogError::Damaged(_))));
    memory.array(AT, &[4], &[4], &json!({"fill_value": "none"}));
    assert!(matches!(read(&memory, None), Err(CatalogError::Damaged(_))));
    let absent = read(&TestStore::of_objects(), None);
    assert!(matches!(absent, Err(CatalogError::NoAttribute { .. })));
}

#[test]
fn groups_may_be_ranges_beyond_memory() {
    let mut memory = TestStore::of_objects();
    let more = json!({"data_type": "variable_length_bytes", "fill_value": "",
        "codecs": ["vlen-bytes"], "attributes": {"zv_array": "groups", "num_groups": 2,
        "group_ranges": {"1": [0, i64::MAX]}}});
    memory.array("0/groups", &[2], &[2], &more);
    let three = 3_i64.to_le_bytes();
    memory.put("0/groups/c/0", &vlen::encode(&[&three[..], &[]]).unwrap());
    let groups = poll_ready(memory.catalog().group_list(LEVEL))
        .unwrap()
        .unwrap();
    assert_eq!(groups.len(), 2);
    assert!(groups.members(0).unwrap().iter().eq([3]));
    assert!(groups.members(1).unwrap().contains(1 << 60));
    assert!(matches!(
        groups.group(1, 1 << 20),
        Err(CatalogError::OverBudget { .. })
    ));
    assert_eq!(groups.group(0, 1 << 20).unwrap().unwrap().members, [3]);
    assert!(groups.group(2, 1 << 20).unwrap().is_none());
}
