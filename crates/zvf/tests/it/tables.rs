//! Groups, and attributes of objects and groups, of every recorded store.

use serde_json::Value as Json;
use zvf::Dataset;
use zvf_catalog::{Catalog, LevelCache, Scope};
use zvf_format::numeric::Value;
use zvf_model::level::LevelId;
use zvf_query::{
    Column, ColumnValues,
    predicate::{Predicate, ScopedColumns, Truth},
};
use zvf_testkit::golden::Golden;

use crate::{
    block_on,
    golden::{open, report, stores},
    objects::catalog,
};

/// Parses a recorded number; values that JSON cannot represent are text.
fn number(json: &Json) -> f64 {
    match json.as_str() {
        Some("NaN") => f64::NAN,
        Some(other) => panic!("{other}"),
        None => json.as_f64().unwrap(),
    }
}

fn same(found: Value, expected: &Json) -> bool {
    match found {
        Value::Bool(found) => expected.as_bool().unwrap_or(expected == 1) == found,
        Value::Int(found) => expected.as_i64() == Some(found),
        Value::UInt(found) => expected.as_u64() == Some(found),
        Value::Float(found) => {
            let expected = number(expected);
            found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan()
        }
        Value::Complex { .. } => panic!("no store has them"),
    }
}

/// Returns a row as a list, also if it is a single number.
fn row(json: &Json) -> Vec<Json> {
    json.as_array()
        .cloned()
        .unwrap_or_else(|| vec![json.clone()])
}

/// Returns whether a row has the sentinel for a missing value that writers use since 0.8.1.
fn is_sentinel(dtype: &str, row: &[Json]) -> bool {
    let sentinel = |value: &Json| match dtype {
        "float32" | "float64" => value == "NaN",
        "int8" => *value == i8::MIN,
        "int16" => *value == i16::MIN,
        "int32" => *value == i32::MIN,
        "int64" => *value == i64::MIN,
        "uint8" => *value == u8::MAX,
        "uint16" => *value == u16::MAX,
        "uint32" => *value == u32::MAX,
        "uint64" => *value == u64::MAX,
        other => panic!("{other}"),
    };
    row.iter().all(sentinel)
}

/// Compares rows with the expected ones, of which some are missing.
fn check_column(column: &Column, expected: &[Vec<Json>], missing: &[bool], at: &str) -> usize {
    let ColumnValues::Numeric(rows) = &column.values else {
        panic!("{at}: {column:?}")
    };
    assert_eq!(rows.len(), expected.len(), "{at}");
    let values = rows.view().unwrap();
    for (place, expected) in expected.iter().enumerate() {
        assert_eq!(column.is_null(place), missing[place], "{at} row {place}");
        if missing[place] {
            continue;
        }
        assert_eq!(usize::try_from(rows.width).unwrap(), expected.len(), "{at}");
        for (channel, expected) in (0..).zip(expected) {
            let found = values.value(place, channel).unwrap();
            assert!(
                same(found, expected),
                "{at} row {place}: {found:?}, {expected}"
            );
        }
    }
    expected.len()
}

/// Reads the whole attribute, and a few of its rows in another order.
fn check_attribute(
    catalog: &Catalog<'_>,
    (level, scope, name): (LevelId, Scope, &str),
    (values, mask): (&Json, &Json),
    sentinels: bool,
    at: &str,
) -> usize {
    let read = |rows: Option<&[u64]>| match scope {
        Scope::Group => block_on(catalog.group_values(level, name, rows)),
        _ => block_on(catalog.object_values(level, name, rows)),
    };
    let at = format!("{at}/{name}");
    let dtype = values["dtype"].as_str().unwrap();
    let expected: Vec<Vec<Json>> = values["data"].as_array().unwrap().iter().map(row).collect();
    let missing = |(place, row): (usize, &Vec<Json>)| match mask.as_array() {
        Some(mask) => mask[place] == 0,
        None => sentinels && is_sentinel(dtype, row),
    };
    let missing: Vec<bool> = expected.iter().enumerate().map(missing).collect();
    let column = read(None).unwrap();
    let ColumnValues::Numeric(rows) = &column.values else {
        panic!("{at}: {column:?}")
    };
    assert_eq!(rows.kind.name(), dtype, "{at}");
    let count = check_column(&column, &expected, &missing, &at);
    let end = u64::try_from(expected.len()).unwrap();
    let mut order: Vec<u64> = (0..end).rev().collect();
    order.extend([end, 0, u64::MAX]);
    let column = read(Some(&order)).unwrap();
    let picked = |row: &u64| {
        usize::try_from(*row)
            .ok()
            .filter(|row| *row < expected.len())
    };
    let rows: Vec<Vec<Json>> = order
        .iter()
        .map(|row| picked(row).map_or_else(|| expected[0].clone(), |row| expected[row].clone()))
        .collect();
    let missing: Vec<bool> = order
        .iter()
        .map(|row| picked(row).is_none_or(|row| missing[row]))
        .collect();
    check_column(&column, &rows, &missing, &at);
    count
}

/// Checks all attributes of the scope by listing, so that none is forgotten.
fn check_scope(
    catalog: &Catalog<'_>,
    (level, scope): (LevelId, Scope),
    expected: Option<&Json>,
    at: &str,
) -> usize {
    let names = block_on(catalog.attribute_list(level, scope)).unwrap();
    let attributes = expected
        .and_then(Json::as_object)
        .cloned()
        .unwrap_or_default();
    assert_eq!(names.len(), attributes.len(), "{at}: {names:?}");
    let array = catalog.layout.tables == zvf_model::layout::TableForm::Array;
    let of_09 = catalog.layout.generation == zvf_model::generation::Generation::V0_9;
    let each = attributes.iter().map(|(name, json)| {
        let (values, mask) = if of_09 {
            (json, &Json::Null)
        } else {
            (&json["values"], &json["present_mask"])
        };
        let sentinels = array && scope == Scope::Object;
        check_attribute(catalog, (level, scope, name), (values, mask), sentinels, at)
    });
    each.sum()
}

fn check_groups(
    catalog: &Catalog<'_>,
    level: LevelId,
    expected: Option<Vec<Json>>,
    at: &str,
) -> usize {
    let groups = block_on(catalog.group_list(level)).unwrap();
    let Some(expected) = expected else {
        assert!(groups.is_none(), "{at}");
        return 0;
    };
    let groups = groups.unwrap();
    assert_eq!(groups.len(), u64::try_from(expected.len()).unwrap(), "{at}");
    for (group, expected) in (0..).zip(&expected) {
        let members: Vec<i64> = groups.members(group).unwrap().iter().collect();
        assert_eq!(&Json::from(members), expected, "{at} group {group}");
    }
    assert!(groups.members(groups.len()).is_none());
    expected.len()
}

fn check_archive(archive: &str) {
    let golden = Golden::open(archive);
    let (mut seen, mut values, mut groups) = (0, 0, 0);
    for (store, expected) in stores(&golden) {
        let Some(expected) = expected["levels"].as_object() else {
            continue;
        };
        let dataset: Dataset = open(&golden, &store);
        for (name, expected) in expected {
            let levels = LevelCache::default();
            let catalog = catalog(&dataset, &levels);
            let level = LevelId::parse(name).unwrap();
            let at = format!("{store}/{name}");
            let of = |scope| (level, scope);
            let objects = expected.get("object_attributes");
            values += check_scope(&catalog, of(Scope::Object), objects, &at);
            let of_groups = expected.get("group_attributes");
            values += check_scope(&catalog, of(Scope::Group), of_groups, &at);
            let members = expected
                .get("groups")
                .map(|groups| match groups.get("members") {
                    Some(members) => members.as_array().unwrap().clone(),
                    None => {
                        let groups = groups.as_object().unwrap();
                        let group = |at: usize| groups[&at.to_string()].clone();
                        (0..groups.len()).map(group).collect()
                    }
                });
            groups += check_groups(&catalog, level, members, &at);
            seen += 1;
        }
    }
    let what = format!("values of objects and groups and {groups} groups");
    report(archive, seen, values, "levels", &what);
}

#[test]
fn golden_tables_06() {
    check_archive("zvf-06");
}

#[test]
fn golden_tables_07() {
    check_archive("zvf-07");
}

#[test]
fn golden_tables_08() {
    check_archive("zvf-08");
}

#[test]
fn golden_tables_09() {
    check_archive("zvf-09");
}

#[test]
fn predicates_treat_missing_values_as_null() {
    let golden = Golden::open("zvf-09");
    let dataset = open(&golden, "object_attr_absent/store.zarrvectors");
    let levels = LevelCache::default();
    let catalog = catalog(&dataset, &levels);
    let level = LevelId::new(0);
    let read = |name| block_on(catalog.object_values(level, name, None)).unwrap();
    let columns = ["f", "i", "u", "v"].map(read);
    let mut table = ScopedColumns::default();
    for column in &columns {
        table.add(Scope::Object, column);
    }
    let check = |text: &str, expected: [Truth; 3]| {
        let predicate = Predicate::parse(text).unwrap().bind(&table).unwrap();
        let truths = [0, 1, 2].map(|row| predicate.evaluate(&table, row));
        assert_eq!(truths, expected, "{text}");
    };
    check("i = 1", [Truth::True, Truth::Unknown, Truth::False]);
    check("f is null", [Truth::False, Truth::True, Truth::False]);
    check(
        "object.v[1] >= 1 and u != 1",
        [Truth::False, Truth::Unknown, Truth::True],
    );
}
