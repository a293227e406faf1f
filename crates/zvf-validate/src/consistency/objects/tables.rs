//! Groups, and attributes of objects and groups.

use core::num::NonZeroU32;
use std::collections::BTreeMap;

use zvf_format::{
    int64s::Int64s,
    numeric::{Dtype, NumericRows, Value},
    open_rows::OpenRows,
};
use zvf_model::{
    array::{GroupRange, Groups},
    key::Key,
    zarr::{DataType, Node},
};

use super::members::Members;
use crate::{
    batch::CellPayload,
    context::Context,
    rules::consistency as rules,
    table_array::{RowCell, RowType, TableArray},
    tree::StoreTree,
};

/// Checks the cells and the mask of an attribute of objects or groups. L2 compares rows and shapes.
pub(in crate::consistency) async fn attribute(context: &Context<'_>, tree: &StoreTree, key: &Key) {
    let children = match tree.node(key) {
        Some(Node::Array(_)) => None,
        Some(Node::Group(_)) => Some((key.join("data"), key.join("present_mask"))),
        // L1 reports missing nodes.
        None => return,
    };
    let (values, mask) = match children {
        None => (Some(key.clone()), None),
        Some((data, mask)) => (data.ok(), mask.ok()),
    };
    if let Some(values) = values.and_then(|key| TableArray::open(context, tree, &key)) {
        check_values(context, tree, &values).await;
    }
    if let Some(mask) = mask.and_then(|key| TableArray::open(context, tree, &key)) {
        check_mask(context, key, &mask).await;
    }
}

/// Checks that all cells are readable, and that text is valid.
async fn check_values(context: &Context<'_>, tree: &StoreTree, values: &TableArray) {
    let data_type = tree.array(&values.key).map(|array| &array.data_type);
    // Byte strings need not be text.
    let is_text = data_type == Some(&DataType::VariableText);
    let each = |cell: RowCell<'_>| {
        let is_checked = is_text || values.row != RowType::Item;
        let wrong = is_checked.then(|| values.wrong_text(&cell)).flatten();
        let Some((row, count)) = wrong else {
            return;
        };
        let message = match count {
            1 => "is not valid text".to_owned(),
            count => format!("is not valid text; {count} such rows in the cell"),
        };
        let place = format!("row {row}");
        context.report_at(&rules::CELL_UNREADABLE, &values.key, place, message);
    };
    values.each_cell(context, each).await;
}

/// Checks that a mask has 0 or 1 for each row.
async fn check_mask(context: &Context<'_>, key: &Key, mask: &TableArray) {
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
        context.report(&rules::MASK, key, message);
    }
}

/// Checks groups and their members.
pub(in crate::consistency) async fn groups(
    context: &Context<'_>,
    tree: &StoreTree,
    key: &Key,
    members: Option<&Members>,
) {
    let Some(node) = tree.node(key) else {
        return;
    };
    let groups = match Groups::parse(key, node.attributes()) {
        Ok(groups) => groups.value,
        Err(error) => {
            let rule = &rules::PART_NOT_CHECKED;
            return context.report_at(rule, key, &error.path, &error.fault);
        }
    };
    let check = Check {
        context,
        key,
        ranges: &groups.ranges,
        members,
    };
    match node {
        Node::Array(_) => {
            let Some(items) = TableArray::open(context, tree, key) else {
                return;
            };
            let each = |cell: RowCell<'_>| match items.row {
                RowType::Number(kind, order) => check.rows(&items, cell, Dtype::new(kind, order)),
                _ => {
                    let found = items.items(&cell).unwrap_or_default();
                    for (group, item) in (cell.first..).zip(found) {
                        check.list(group, item);
                    }
                }
            };
            items.each_cell(context, each).await;
        }
        Node::Group(_) => check.open(tree, groups.num_groups).await,
    }
    for (group, range) in &groups.ranges {
        check.range(*group, *range);
    }
}

struct Check<'a> {
    context: &'a Context<'a>,
    key: &'a Key,
    ranges: &'a BTreeMap<u64, GroupRange>,
    members: Option<&'a Members>,
}

impl Check<'_> {
    /// Checks a group with listed members.
    fn list(&self, group: u64, item: &[u8]) {
        let place = || format!("group {group}");
        let listed = match Int64s::parse(item) {
            Ok(listed) => listed,
            Err(error) => {
                let rule = &rules::GROUP_UNREADABLE;
                return self.context.report_at(rule, self.key, place(), error);
            }
        };
        if !listed.is_empty() && self.ranges.contains_key(&group) {
            let message = format!("{} members and a range", listed.len());
            self.context
                .report_at(&rules::GROUP_LIST_AND_RANGE, self.key, place(), message);
        }
        let Some(members) = self.members else {
            return;
        };
        let mut missing = listed.iter().filter(|id| !members.has(*id));
        if let Some(first) = missing.next() {
            let count = missing.count().saturating_add(1);
            let message = format!("{count} members, first {first}");
            self.context
                .report_at(&rules::GROUP_MEMBER, self.key, place(), message);
        }
    }

    /// Checks groups that are rows of ids, followed by fill values.
    fn rows(&self, array: &TableArray, cell: RowCell<'_>, dtype: Dtype) {
        let columns = u32::try_from(array.columns).ok().and_then(NonZeroU32::new);
        let (Some(columns), CellPayload::Bytes(bytes)) = (columns, cell.cell) else {
            return;
        };
        let Ok(view) = NumericRows::parse(bytes, dtype, columns) else {
            return;
        };
        let rows = usize::try_from(cell.rows)
            .unwrap_or(usize::MAX)
            .min(view.rows());
        for (group, row) in (cell.first..).zip(0..rows) {
            let ids = (0..columns.get()).map_while(|column| match view.value(row, column)? {
                Value::Int(id) => Some(id).filter(|id| *id >= 0),
                Value::UInt(id) => i64::try_from(id).ok(),
                _ => None,
            });
            let item: Vec<u8> = ids.flat_map(i64::to_le_bytes).collect();
            self.list(group, &item);
        }
    }

    /// Checks a group that is a range of ids.
    fn range(&self, group: u64, range: GroupRange) {
        let missing = self
            .members
            .map(|members| members.missing(&(range.start..range.stop)));
        if let Some(count @ 1..) = missing {
            let place = format!("group {group}");
            let message = format!("{count} of {} to {}", range.start, range.stop);
            self.context
                .report_at(&rules::GROUP_MEMBER, self.key, place, message);
        }
    }

    /// Checks groups stored as concatenated lists.
    async fn open(&self, tree: &StoreTree, declared: Option<u64>) {
        let (Ok(data), Ok(offsets)) = (self.key.join("data"), self.key.join("offsets")) else {
            return;
        };
        let made = tree.exists(&data) || tree.exists(&offsets);
        if !made && declared.unwrap_or(0) == 0 {
            return;
        }
        for child in [&data, &offsets] {
            if !tree.exists(child) {
                let message = "there are groups, but the array does not exist";
                self.context
                    .report(&rules::PART_NOT_CHECKED, child, message);
            }
        }
        let data = TableArray::open(self.context, tree, &data);
        let offsets = TableArray::open(self.context, tree, &offsets);
        let (Some(data), Some(offsets)) = (data, offsets) else {
            return;
        };
        let bytes = data.all_bytes(self.context).await;
        let starts = offsets.all_bytes(self.context).await;
        let (Some(bytes), Some(starts)) = (bytes, starts) else {
            return;
        };
        match OpenRows::parse(&bytes, &starts) {
            Ok(rows) => {
                for (group, item) in (0..).zip(rows.iter()) {
                    self.list(group, item);
                }
            }
            Err(error) => {
                let rule = &rules::GROUP_UNREADABLE;
                self.context.report(rule, &offsets.key, error);
            }
        }
    }
}
