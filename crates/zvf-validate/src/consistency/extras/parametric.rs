//! Parametric objects: geometry given by a type and coefficients.

use std::collections::BTreeMap;

use zvf_format::numeric::{ByteOrder, Kind};
use zvf_model::{
    array::{ParametricObjects, ParametricType, ParametricTypes},
    key::Key,
    zarr::Node,
};

use super::super::{
    Ids,
    objects::{Members, attribute, groups},
};
use crate::{
    batch::CellPayload,
    context::Context,
    rules::consistency as rules,
    store::StoreMetadata,
    table_array::{RowType, TableArray},
    tree::StoreTree,
};

pub(super) async fn check(context: &Context<'_>, store: &StoreMetadata) {
    let tree = &store.tree;
    let Ok(key) = Key::parse("parametric") else {
        return;
    };
    let Some(node) = tree.node(&key) else {
        return;
    };
    let types = match ParametricTypes::parse(&key, node.attributes()) {
        Ok(types) => types.value.types,
        Err(error) => {
            let rule = &rules::PART_NOT_CHECKED;
            return context.report_at(rule, &key, &error.path, &error.fault);
        }
    };
    let child = |name: &str| key.join(name).ok();
    let Some(objects) = child("objects") else {
        return;
    };
    // Types may exist before the first object.
    let rows = if tree.exists(&objects) {
        check_objects(context, tree, &objects, &types).await
    } else {
        Some(0)
    };
    if let Some(names) = child("names") {
        check_names(context, tree, &names, rows).await;
    }
    let members = rows.map(|rows| Members::new(&Ids::Rows(rows)));
    if let Some(key) = child("groups") {
        groups(context, tree, &key, members.as_ref()).await;
    }
    for folder in ["object_attributes", "group_attributes"] {
        let Some(folder) = child(folder) else {
            continue;
        };
        for name in tree.folders(&folder) {
            if let Ok(key) = folder.join(name) {
                attribute(context, tree, &key).await;
            }
        }
    }
}

/// Checks the objects, and returns their number.
async fn check_objects(
    context: &Context<'_>,
    tree: &StoreTree,
    key: &Key,
    types: &BTreeMap<u64, ParametricType>,
) -> Option<u64> {
    let node = tree.node(key)?;
    let declared = match ParametricObjects::parse(key, node.attributes()) {
        Ok(objects) => objects.value,
        Err(error) => {
            context.report_at(&rules::PART_NOT_CHECKED, key, &error.path, &error.fault);
            return None;
        }
    };
    if let Node::Group(_) = node {
        return check_child(context, tree, key, &declared, types).await;
    }
    let rows = TableArray::open(context, tree, key)?;
    let RowType::Number(Kind::Float64, order) = rows.row else {
        let message = "the numbers are not float64";
        context.report(&rules::PART_NOT_CHECKED, key, message);
        return None;
    };
    rows.each_cell(context, |cell| {
        let bytes = rows.numbers(&cell).unwrap_or_default();
        check_rows(
            context,
            key,
            cell.first,
            (bytes, rows.columns, order),
            types,
        );
    })
    .await;
    Some(rows.len)
}

/// Checks objects stored as bytes of a separate array.
async fn check_child(
    context: &Context<'_>,
    tree: &StoreTree,
    key: &Key,
    declared: &ParametricObjects,
    types: &BTreeMap<u64, ParametricType>,
) -> Option<u64> {
    let data = TableArray::open(context, tree, &key.join("data").ok()?)?;
    let size = data.len.checked_mul(data.row_size());
    let columns = declared.max_row_length;
    let expected = columns.checked_mul(8)?.checked_mul(declared.num_objects);
    if size != expected {
        let message = format!(
            "{} bytes for {} rows of {columns} float64",
            data.len, declared.num_objects
        );
        context.report(&rules::PART_NOT_CHECKED, key, message);
        return None;
    }
    let bytes = data.all_bytes(context).await?;
    check_rows(context, key, 0, (&bytes, columns, ByteOrder::Little), types);
    Some(declared.num_objects)
}

/// Checks that each row is a type number, its coefficients, and NaN.
fn check_rows(
    context: &Context<'_>,
    key: &Key,
    first: u64,
    (bytes, columns, order): (&[u8], u64, ByteOrder),
    types: &BTreeMap<u64, ParametricType>,
) {
    let (numbers, _) = bytes.as_chunks::<8>();
    let width = usize::try_from(columns).unwrap_or(usize::MAX).max(1);
    for (row, numbers) in (first..).zip(numbers.chunks(width)) {
        let mut numbers = numbers.iter().map(|number| match order {
            ByteOrder::Little => f64::from_le_bytes(*number),
            ByteOrder::Big => f64::from_be_bytes(*number),
        });
        let Some(number) = numbers.next() else {
            continue;
        };
        let place = || format!("row {row}");
        // A whole float formats like the integer.
        let id = number.to_string().parse::<u64>().ok();
        let Some(declared) = id.and_then(|id| types.get(&id)) else {
            let message = format!("type {number}");
            context.report_at(&rules::PARAMETRIC_TYPE, key, place(), message);
            continue;
        };
        let expected = declared.coefficients.len();
        let capacity = width.saturating_sub(1);
        let behind = numbers.skip(expected).any(|number| !number.is_nan());
        let message = if expected > capacity {
            format!(
                "room for {capacity} coefficients, and {} has {expected}",
                declared.name
            )
        } else if behind {
            format!(
                "numbers after the {expected} coefficients of {}",
                declared.name
            )
        } else {
            continue;
        };
        context.report_at(&rules::COEFFICIENTS, key, place(), message);
    }
}

/// Checks that there is one name per object, if there are names.
async fn check_names(context: &Context<'_>, tree: &StoreTree, key: &Key, expected: Option<u64>) {
    let found = match tree.node(key) {
        None => return,
        Some(Node::Array(_)) => {
            let Some(names) = TableArray::open(context, tree, key) else {
                return;
            };
            names
                .each_cell(context, |cell| {
                    let items = names.items(&cell).unwrap_or_default();
                    let odd = items
                        .iter()
                        .position(|name| core::str::from_utf8(name).is_err());
                    if let (Some(at), CellPayload::Bytes(_)) = (odd, cell.cell) {
                        let at = u64::try_from(at).unwrap_or(u64::MAX);
                        let row = cell.first.saturating_add(at);
                        let message = format!("name {row} is not text");
                        context.report(&rules::PARAMETRIC_NAMES, key, message);
                    }
                })
                .await;
            // L2 compares the number of rows.
            return;
        }
        Some(Node::Group(_)) => {
            let data = key.join("data").ok();
            let Some(names) = data.and_then(|data| TableArray::open(context, tree, &data)) else {
                return;
            };
            let Some(bytes) = names.all_bytes(context).await else {
                return;
            };
            let Ok(text) = core::str::from_utf8(&bytes) else {
                return context.report(&rules::PARAMETRIC_NAMES, key, "not text");
            };
            let names = match (text.is_empty(), expected) {
                (true, Some(0)) => 0,
                _ => text.split('\n').count(),
            };
            u64::try_from(names).unwrap_or(u64::MAX)
        }
    };
    if let Some(expected) = expected.filter(|expected| *expected != found) {
        let message = format!("{found} names for {expected} objects");
        context.report(&rules::PARAMETRIC_NAMES, key, message);
    }
}
