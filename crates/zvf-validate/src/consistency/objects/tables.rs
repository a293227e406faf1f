//! Attributes of objects and groups, and groups.

use std::collections::BTreeMap;

use serde_json::json;
use zvf_format::{
    int64s::Int64s,
    numeric::{Dtype, Kind},
    open_rows::OpenRows,
};
use zvf_model::{
    array::{GroupRange, Groups, Table},
    fetch::Fetch,
    key::Key,
    zarr::{Array, DataType, Node},
};

use super::members::Members;
use crate::{
    context::Context,
    rows::{Row, Rows},
    rules::consistency as rules,
    tree::Tree,
};

/// Checks an attribute that has a row for each of so many objects or groups.
pub(in crate::consistency) async fn attribute<F: Fetch>(
    context: &Context<'_, F>,
    tree: &Tree,
    key: &Key,
    expected: Option<u64>,
) {
    let rows = match tree.node(key) {
        Some(Node::Array(array)) => {
            check_shape(context, key, array);
            let Some(rows) = Rows::open(context, tree, key) else {
                return;
            };
            rows.each_cell(context, |_| {}).await;
            Some(rows.len)
        }
        Some(Node::Group(group)) => match Table::parse_group(key, &group.attributes) {
            Ok(table) => check_children(context, tree, key, &table.value).await,
            Err(error) => {
                let rule = &rules::PART_NOT_CHECKED;
                return context.find_at(rule, key, &error.path, &error.fault);
            }
        },
        // L1 finds what is no node.
        None => return,
    };
    if let (Some(rows), Some(expected)) = (rows, expected)
        && rows != expected
    {
        let message = format!("{rows} rows for {expected}");
        context.find(&rules::TABLE_ROWS, key, message);
    }
}

/// What attributes repeat of an array.
fn check_shape<F: Fetch>(context: &Context<'_, F>, key: &Key, array: &Array) {
    let table = Table::parse_array(key, &array.attributes).value;
    if let (Some(dtype), DataType::Number(kind)) = (table.dtype, &array.data_type)
        && dtype.kind() != *kind
    {
        let message = format!("{dtype} is declared, and the array holds {}", kind.name());
        let value = Some(json!(kind.name()));
        context.find_attribute(&rules::TABLE_SHAPE, key, &["dtype"], message, value);
    }
    if let Some(shape) = table.shape.filter(|shape| *shape != array.shape) {
        let message = format!("{shape:?} is declared, and the array has {:?}", array.shape);
        let value = Some(json!(array.shape));
        context.find_attribute(&rules::TABLE_SHAPE, key, &["shape"], message, value);
    }
}

/// An attribute whose values, and a mask of them, are bytes of their own. Gives its
/// rows.
async fn check_children<F: Fetch>(
    context: &Context<'_, F>,
    tree: &Tree,
    key: &Key,
    table: &Table,
) -> Option<u64> {
    let data = key.join("data").ok()?;
    if !tree.exists(&data) {
        context.find(&rules::TABLE_SIZE, key, "there is no data");
        return None;
    }
    let data = Rows::open(context, tree, &data)?;
    data.each_cell(context, |_| {}).await;
    let shape = table.shape.as_deref().unwrap_or_default();
    let values = shape.iter().try_fold(1_u64, |n, axis| n.checked_mul(*axis));
    let size = table.dtype.map_or(1, Dtype::size);
    let size = u64::try_from(size).ok();
    let expected = values
        .zip(size)
        .and_then(|(values, size)| values.checked_mul(size));
    let found = data.len.checked_mul(data.row_size());
    if expected != found {
        let show =
            |bytes: Option<u64>| bytes.map_or_else(|| "too many".to_owned(), |n| n.to_string());
        let (found, expected) = (show(found), show(expected));
        let message = format!("{found} bytes, and shape {shape:?} takes {expected}");
        context.find(&rules::TABLE_SIZE, key, message);
    }
    let rows = shape.first().copied()?;
    if table.has_present_mask {
        let mask = key.join("present_mask").ok()?;
        if !tree.exists(&mask) {
            context.find(&rules::MASK, key, "there is no present_mask");
        } else if let Some(mask) = Rows::open(context, tree, &mask) {
            check_mask(context, key, &mask, rows).await;
        }
    }
    Some(rows)
}

async fn check_mask<F: Fetch>(
    context: &Context<'_, F>,
    key: &Key,
    mask: &Rows<F::Array>,
    rows: u64,
) {
    let of_bytes = matches!(mask.row, Row::Number(Kind::UInt8 | Kind::Bool, _));
    if mask.len != rows || mask.columns != 1 || !of_bytes {
        let message = format!("{} bytes of mask for {rows} rows", mask.len);
        return context.find(&rules::MASK, key, message);
    }
    let mut odd = None;
    mask.each_cell(context, |cell| {
        let bytes = mask.numbers(&cell).unwrap_or_default();
        let at = bytes.iter().position(|byte| *byte > 1);
        let at = at.and_then(|at| u64::try_from(at).ok());
        odd = odd.or(at.map(|at| cell.first.saturating_add(at)));
    })
    .await;
    if let Some(row) = odd {
        let message = format!("row {row} is neither 0 nor 1");
        context.find(&rules::MASK, key, message);
    }
}

/// Checks groups and their members, and gives how many groups there are; `None` when
/// there are none, or they cannot be opened.
pub(in crate::consistency) async fn groups<F: Fetch>(
    context: &Context<'_, F>,
    tree: &Tree,
    key: &Key,
    members: Option<&Members>,
) -> Option<u64> {
    let node = tree.node(key)?;
    let groups = match Groups::parse(key, node.attributes()) {
        Ok(groups) => groups.value,
        Err(error) => {
            context.find_at(&rules::PART_NOT_CHECKED, key, &error.path, &error.fault);
            return None;
        }
    };
    let check = Check {
        context,
        key,
        ranges: &groups.ranges,
        members,
    };
    let listed = match node {
        Node::Array(_) => {
            let items = Rows::open(context, tree, key)?;
            items
                .each_cell(context, |cell| {
                    let found = items.items(&cell).unwrap_or_default();
                    for (group, item) in (cell.first..).zip(found) {
                        check.list(group, item);
                    }
                })
                .await;
            items.len
        }
        Node::Group(_) => check.open(tree, groups.num_groups).await?,
    };
    for (group, range) in &groups.ranges {
        check.range(*group, *range);
    }
    let last = groups.ranges.keys().next_back();
    let found = last.map_or(0, |last| last.saturating_add(1)).max(listed);
    if let Some(declared) = groups.num_groups.filter(|declared| *declared != found) {
        let message = format!("{declared} are declared, and there are {found}");
        let value = Some(json!(found));
        context.find_attribute(&rules::NUM_GROUPS, key, &["num_groups"], message, value);
    }
    Some(found)
}

struct Check<'a, F: Fetch> {
    context: &'a Context<'a, F>,
    key: &'a Key,
    ranges: &'a BTreeMap<u64, GroupRange>,
    members: Option<&'a Members>,
}

impl<F: Fetch> Check<'_, F> {
    /// A group whose members are listed.
    fn list(&self, group: u64, item: &[u8]) {
        let place = || format!("group {group}");
        let listed = match Int64s::parse(item) {
            Ok(listed) => listed,
            Err(error) => {
                let rule = &rules::GROUP_UNREADABLE;
                return self.context.find_at(rule, self.key, place(), error);
            }
        };
        if !listed.is_empty() && self.ranges.contains_key(&group) {
            let message = format!("{} members, and a range", listed.len());
            self.context
                .find_at(&rules::GROUP_TWICE, self.key, place(), message);
        }
        let Some(members) = self.members else {
            return;
        };
        let mut missing = listed.iter().filter(|id| !members.has(*id));
        if let Some(first) = missing.next() {
            let count = missing.count().saturating_add(1);
            let message = format!("{count} members, the first is {first}");
            self.context
                .find_at(&rules::GROUP_MEMBER, self.key, place(), message);
        }
    }

    /// A group that is a range of ids.
    fn range(&self, group: u64, range: GroupRange) {
        let missing = self
            .members
            .map(|members| members.missing(&(range.start..range.stop)));
        if let Some(count @ 1..) = missing {
            let place = format!("group {group}");
            let message = format!("{count} of {} to {}", range.start, range.stop);
            self.context
                .find_at(&rules::GROUP_MEMBER, self.key, place, message);
        }
    }

    /// Groups whose members lie back to back: how many there are.
    async fn open(&self, tree: &Tree, declared: Option<u64>) -> Option<u64> {
        let (data, offsets) = (self.key.join("data").ok()?, self.key.join("offsets").ok()?);
        let made = tree.exists(&data) || tree.exists(&offsets);
        if !made && declared.unwrap_or(0) == 0 {
            return Some(0);
        }
        for child in [&data, &offsets] {
            if !tree.exists(child) {
                let message = "there are groups, and no such array";
                self.context.find(&rules::PART_NOT_CHECKED, child, message);
            }
        }
        let data = Rows::open(self.context, tree, &data)?;
        let offsets = Rows::open(self.context, tree, &offsets)?;
        let bytes = data.all_bytes(self.context).await?;
        let starts = offsets.all_bytes(self.context).await?;
        match OpenRows::parse(&bytes, &starts) {
            Ok(rows) => {
                for (group, item) in (0..).zip(rows.iter()) {
                    self.list(group, item);
                }
                u64::try_from(rows.len()).ok()
            }
            Err(error) => {
                self.context
                    .find(&rules::GROUP_UNREADABLE, &offsets.key, error);
                None
            }
        }
    }
}
