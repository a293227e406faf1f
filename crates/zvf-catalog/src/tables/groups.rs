//! Groups of objects.

use core::num::NonZeroU32;
use std::{collections::BTreeMap, sync::Arc};

use zvf_format::{
    groups::GroupMembers,
    int64s::{Int64s, Int64sError},
    numeric::{ByteOrder, Dtype, NumericRows, Value},
    open_rows::OpenRows,
};
use zvf_model::{
    array::{GroupRange, Groups},
    fetch::{FetchError, Fetched},
    key::Key,
    layout::TableForm,
    zarr::{DataType, Node},
};

use super::{ByteStringArray, RowArray};
use crate::{
    catalog::Catalog,
    chunked_array::child,
    diagnostics::Diagnostics,
    error::{CatalogError, Damage, Fault},
};

/// The groups of objects, by number from 0.
#[derive(Clone, Debug, Default)]
pub struct GroupList {
    /// Concatenated ids of all listed members.
    listed: Vec<u8>,
    /// Start of each group in `listed`, in bytes, and the end of the last.
    starts: Vec<usize>,
    ranges: BTreeMap<u64, GroupRange>,
    notes: Vec<String>,
    /// `true` if some groups could not be read.
    incomplete: bool,
}

/// A group of objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectGroup {
    /// The number of the group.
    pub id: u64,
    /// Ids of the members, as stored.
    pub members: Vec<i64>,
}

impl GroupList {
    /// Returns the number of groups. An unused number is a group without members.
    pub fn len(&self) -> u64 {
        let listed = self.starts.len().saturating_sub(1);
        let ranges = self
            .ranges
            .keys()
            .next_back()
            .map_or(0, |group| group.saturating_add(1));
        u64::try_from(listed).unwrap_or(u64::MAX).max(ranges)
    }

    /// Returns whether there are no groups.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the members of a group in stored order; `None` past the last group. A group may be
    /// a range of ids and exceed memory when expanded.
    pub fn members(&self, group: u64) -> Option<GroupMembers<'_>> {
        if let Some(range) = self.ranges.get(&group) {
            return GroupMembers::from_range(range.start, range.stop).ok();
        }
        let index = usize::try_from(group).ok();
        let range = index.and_then(|index| {
            let end = self.starts.get(index.checked_add(1)?)?;
            Some(*self.starts.get(index)?..*end)
        });
        let listed = range.and_then(|range| self.listed.get(range));
        match listed {
            Some(listed) => GroupMembers::parse_list(listed).ok(),
            None => (group < self.len()).then(|| GroupMembers::parse_list(&[]).ok())?,
        }
    }

    /// Returns a group with its members; `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// Returns [`CatalogError::OverBudget`] if the members take more than `budget` bytes.
    pub fn group(&self, group: u64, budget: u64) -> Result<Option<ObjectGroup>, CatalogError> {
        let Some(members) = self.members(group) else {
            return Ok(None);
        };
        let bytes = members.len().saturating_mul(8);
        if bytes > budget {
            return Err(over_budget(bytes, budget));
        }
        let (id, members) = (group, members.iter().collect());
        Ok(Some(ObjectGroup { id, members }))
    }

    /// Returns whether some groups could not be read; these are empty here.
    pub fn is_incomplete(&self) -> bool {
        self.incomplete
    }

    /// Returns tolerated defects.
    pub(crate) fn notes(&self) -> &[String] {
        &self.notes
    }
}

/// The open arrays of groups.
enum GroupArrays {
    Items(ByteStringArray),
    /// A row of ids for each group, followed by fill values.
    Rows(RowArray),
    Open(RowArray, RowArray),
}

impl Catalog<'_> {
    /// Reads the groups at `key`; `None` if the node does not exist. Takes two round trips. A
    /// damaged group is left empty if `diagnostics` skips the damage.
    pub(crate) async fn groups_at(
        &self,
        key: &Key,
        form: TableForm,
        diagnostics: &Diagnostics,
    ) -> Result<Option<GroupList>, CatalogError> {
        let (data, offsets) = (child(key, "data")?, child(key, "offsets")?);
        let keys = match form {
            TableForm::Array => vec![key.clone()],
            TableForm::Child => vec![key.clone(), data.clone(), offsets.clone()],
        };
        let mut nodes = self.fetch.nodes(&keys).await?.into_iter();
        let Some(node) = nodes.next().flatten() else {
            return Ok(None);
        };
        let groups = Groups::parse(key, node.attributes())?.value;
        let stored = match node {
            Node::Array(array) if matches!(array.data_type, DataType::Number(_)) => {
                GroupArrays::Rows(RowArray::new(self.fetch.array(key, Arc::new(array))?)?)
            }
            Node::Array(array) => GroupArrays::Items(ByteStringArray::new(
                self.fetch.array(key, Arc::new(array))?,
            )?),
            Node::Group(_) => {
                let nodes: Vec<Option<Node>> = match form {
                    TableForm::Child => nodes.collect(),
                    TableForm::Array => self.fetch.nodes(&[data.clone(), offsets.clone()]).await?,
                };
                let mut nodes = nodes.into_iter();
                match (nodes.next().flatten(), nodes.next().flatten()) {
                    // Created but never filled.
                    (None, None) if groups.num_groups.is_none_or(|groups| groups == 0) => {
                        return Ok(Some(GroupList::default()));
                    }
                    (Some(Node::Array(first)), Some(Node::Array(second))) => {
                        let first = self.fetch.array(&data, Arc::new(first))?;
                        let second = self.fetch.array(&offsets, Arc::new(second))?;
                        GroupArrays::Open(RowArray::new(first)?, RowArray::new(second)?)
                    }
                    (None, _) => return Err(Damage::new(&data, Fault::Missing).into()),
                    (_, None) => return Err(Damage::new(&offsets, Fault::Missing).into()),
                    _ => return Err(Damage::new(key, Fault::Kind).into()),
                }
            }
        };
        let mut list = match stored {
            GroupArrays::Items(items) => self.item_groups(&items, diagnostics).await?,
            GroupArrays::Rows(rows) => self.row_groups(&rows, diagnostics).await?,
            GroupArrays::Open(data, offsets) => {
                let bytes = data.size(None).saturating_add(offsets.size(None));
                self.check_groups(bytes)?;
                let (of_data, of_offsets) = (data.request(None), offsets.request(None));
                let mut wanted = of_data.wanted.clone();
                wanted.extend(of_offsets.wanted.iter().cloned());
                let mut results = self.fetch.cells(&wanted).await;
                let after = results.split_off(of_data.wanted.len().min(results.len()));
                let read = data.finish(&of_data, results);
                let starts = offsets.finish(&of_offsets, after);
                let damaged = read.damaged.into_iter().chain(starts.damaged).next();
                let opened = match damaged {
                    Some((_, damage)) => Err(damage),
                    None => open_groups(offsets.node(), read.bytes, &starts.bytes, &groups),
                };
                match opened {
                    Ok(groups) => groups,
                    Err(damage) => {
                        diagnostics.skip(damage)?;
                        GroupList {
                            incomplete: true,
                            ..GroupList::default()
                        }
                    }
                }
            }
        };
        list.ranges = groups.ranges;
        if let Some(declared) = groups.num_groups
            && declared != list.len()
            && !list.incomplete
        {
            let found = list.len();
            let defect = format!("{key}: declares {declared} groups, and has {found}");
            list.notes.push(defect);
        }
        for note in &list.notes {
            diagnostics.note(note.clone());
        }
        Ok(Some(list))
    }

    async fn item_groups(
        &self,
        items: &ByteStringArray,
        diagnostics: &Diagnostics,
    ) -> Result<GroupList, CatalogError> {
        let wanted: Vec<_> = (0..items.cells())
            .map(|cell| items.cell_request(cell))
            .collect();
        let results = self.fetch.cells(&wanted).await;
        let mut list = GroupList::default();
        list.starts.push(0);
        for (cell, result) in (0..).zip(results) {
            let (first, rows) = items.rows_of(cell);
            let loaded = u64::try_from(list.listed.len()).unwrap_or(u64::MAX);
            self.check_groups(loaded.saturating_add(first.saturating_add(rows).saturating_mul(8)))?;
            if let Err(damage) = list.push_cell(items, cell, result, diagnostics)? {
                diagnostics.skip(damage)?;
                list.incomplete = true;
            }
            // Groups that could not be read are empty.
            let end = usize::try_from(first.saturating_add(rows)).unwrap_or(usize::MAX);
            list.starts.resize(end.saturating_add(1), list.listed.len());
        }
        Ok(list)
    }

    /// Reads groups whose members are rows of ids. A negative number is the end of a row, as the fill value
    /// is no id.
    async fn row_groups(
        &self,
        rows: &RowArray,
        diagnostics: &Diagnostics,
    ) -> Result<GroupList, CatalogError> {
        self.check_groups(rows.size(None))?;
        let request = rows.request(None);
        let results = self.fetch.cells(&request.wanted).await;
        let read = rows.finish(&request, results);
        if let Some((_, damage)) = read.damaged.into_iter().next() {
            diagnostics.skip(damage)?;
            return Ok(GroupList {
                incomplete: true,
                ..GroupList::default()
            });
        }
        let kind = rows.kind().filter(|kind| kind.name().contains("int"));
        let columns = u32::try_from(rows.columns).ok().and_then(NonZeroU32::new);
        let (Some(kind), Some(columns)) = (kind, columns) else {
            return Err(Damage::new(rows.node(), Fault::Kind).into());
        };
        let dtype = Dtype::new(kind, ByteOrder::Little);
        let view = NumericRows::parse(&read.bytes, dtype, columns)
            .map_err(|_| Damage::new(rows.node(), Fault::Values))?;
        let mut list = GroupList::default();
        list.starts.push(0);
        for row in 0..view.rows() {
            let members = (0..columns.get()).map_while(|column| match view.value(row, column)? {
                Value::Int(id) => Some(id).filter(|id| *id >= 0),
                Value::UInt(id) => i64::try_from(id).ok(),
                _ => None,
            });
            for id in members {
                list.listed.extend_from_slice(&id.to_le_bytes());
            }
            list.starts.push(list.listed.len());
        }
        Ok(list)
    }

    fn check_groups(&self, bytes: u64) -> Result<(), CatalogError> {
        let budget = self.fetch.budget();
        if bytes <= budget {
            return Ok(());
        }
        Err(over_budget(bytes, budget))
    }
}

impl GroupList {
    /// Adds the groups of a cell, or returns its damage.
    fn push_cell(
        &mut self,
        items: &ByteStringArray,
        cell: u64,
        result: Result<Option<Fetched>, FetchError>,
        diagnostics: &Diagnostics,
    ) -> Result<Result<(), Damage>, CatalogError> {
        let payload = match result {
            // Groups that are all empty or ranges need no cell.
            Ok(None) => return Ok(Ok(())),
            Ok(Some(fetched)) => fetched.bytes,
            Err(error) => return Ok(Err(items.damage(cell, Fault::Fetch(error)))),
        };
        let each = match items.items(cell, &payload) {
            Ok(each) => each,
            Err(damage) => return Ok(Err(damage)),
        };
        for (row, item) in (items.rows_of(cell).0..).zip(each) {
            match Int64s::parse(item) {
                Ok(_) => self.listed.extend_from_slice(item),
                Err(error) => {
                    diagnostics.skip(items.damage(cell, in_row(row, error)))?;
                    self.incomplete = true;
                }
            }
            self.starts.push(self.listed.len());
        }
        Ok(Ok(()))
    }
}

/// Decodes groups whose members are concatenated.
fn open_groups(
    key: &Key,
    listed: Vec<u8>,
    offsets: &[u8],
    groups: &Groups,
) -> Result<GroupList, Damage> {
    let rows = OpenRows::parse(&listed, offsets).map_err(|error| Damage::new(key, error))?;
    let found = u64::try_from(rows.len()).unwrap_or(u64::MAX);
    // The declared count is the only check for lost offsets.
    if let Some(expected) = groups.num_groups.filter(|expected| *expected != found) {
        return Err(Damage::new(key, Fault::Count { found, expected }));
    }
    let mut starts = vec![0];
    let mut end = 0_usize;
    for (row, members) in (0_u64..).zip(rows.iter()) {
        Int64s::parse(members).map_err(|error| Damage::new(key, in_row(row, error)))?;
        end = end.saturating_add(members.len());
        starts.push(end);
    }
    Ok(GroupList {
        listed,
        starts,
        ..GroupList::default()
    })
}

fn in_row(row: u64, error: Int64sError) -> Fault {
    let source = Box::new(Fault::from(error));
    Fault::Row { row, source }
}

fn over_budget(bytes: u64, budget: u64) -> CatalogError {
    let what = "the members of groups";
    CatalogError::OverBudget {
        what,
        bytes,
        budget,
    }
}
