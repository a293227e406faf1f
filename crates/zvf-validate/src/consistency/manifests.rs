//! Manifests of a level, in row order.

use zvf_format::{
    int64s::Int64s,
    manifest::{ObjectManifest, ObjectManifestBuilder},
    numeric::{ByteOrder, Kind},
    open_rows::OpenRows,
};
use zvf_model::{
    array::{ObjectIndex, ObjectIndexLayout},
    key::Key,
    layout::ArrayRole,
    zarr::{Array, Node},
};

use crate::{
    batch::CellPayload,
    chunked_part::cell_of_file,
    context::Context,
    rules::consistency as rules,
    store::LevelScope,
    table_array::{RowType, TableArray},
    tree::StoreTree,
};

/// The opened object index of a level.
#[derive(Debug)]
pub(super) struct Manifests {
    /// Key of the group.
    pub(super) key: Key,
    pub(super) index: ObjectIndex,
    held: ManifestStorage,
    ids: Option<TableArray>,
}

/// Storage of manifests.
#[derive(Debug)]
enum ManifestStorage {
    /// No objects and no arrays.
    None,
    /// One item per manifest.
    Items(TableArray),
    /// Spans of blocks, and blocks.
    Dense {
        spans: TableArray,
        blocks: TableArray,
    },
    /// Concatenated manifests and their offsets.
    Open {
        data: TableArray,
        offsets: TableArray,
    },
}

/// Ids of objects by row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ids {
    /// The ids are the row numbers, below this count.
    Rows(u64),
    /// Stored ids.
    Table(Vec<i64>),
}

impl Ids {
    /// Returns the id of a row.
    pub(crate) fn get(&self, row: u64) -> Option<i64> {
        match self {
            Self::Rows(rows) => i64::try_from(row).ok().filter(|_| row < *rows),
            Self::Table(ids) => ids.get(usize::try_from(row).ok()?).copied(),
        }
    }
}

/// The content of a row of the object index.
#[derive(Clone, Copy, Debug)]
pub(super) enum ManifestRow<'a> {
    Manifest(ObjectManifest<'a>),
    /// No bytes, not even the count of an empty manifest.
    Absent,
    /// Unreadable, which is reported.
    Lost,
}

/// Calls `each` for every readable manifest of a level, in row order, with the id of its object.
/// Faults are discarded, because [`super::objects`] reports them.
pub(crate) async fn each_manifest(
    context: &Context<'_>,
    scope: LevelScope<'_>,
    mut each: impl FnMut(u64, i64, &ObjectManifest<'_>) + Send,
) {
    let aside = context.silent();
    let Some(manifests) = Manifests::open(&aside, scope) else {
        return;
    };
    let Some(ids) = manifests.ids(&aside).await else {
        return;
    };
    let each = |row, entry: ManifestRow<'_>| {
        if let (ManifestRow::Manifest(manifest), Some(id)) = (entry, ids.get(row)) {
            each(row, id, &manifest);
        }
    };
    manifests.each(&aside, each).await;
}

impl Manifests {
    /// Opens the object index of a level. Returns `None` if it does not exist, or after reporting
    /// that it cannot be opened.
    pub(super) fn open(context: &Context<'_>, scope: LevelScope<'_>) -> Option<Self> {
        let tree = &scope.store.tree;
        let key = scope.store.at(scope.level, &ArrayRole::Manifests)?;
        if !tree.exists(&key) {
            return None;
        }
        let Some(Node::Group(group)) = tree.node(&key) else {
            let message = "not a readable group";
            context.report(&rules::PART_NOT_CHECKED, &key, message);
            return None;
        };
        let index = match ObjectIndex::parse(&key, &group.attributes) {
            Ok(index) => index.value,
            Err(error) => {
                let rule = &rules::PART_NOT_CHECKED;
                context.report_at(rule, &key, &error.path, &error.fault);
                return None;
            }
        };
        if index.sid_ndim != scope.level.arity {
            let (found, arity) = (index.sid_ndim, scope.level.arity);
            let message = format!("chunk keys of {found} coordinates in a level of {arity}");
            let rule = &rules::PART_NOT_CHECKED;
            context.report_at(rule, &key, "attributes.sid_ndim", message);
            return None;
        }
        let open = |name: &str| TableArray::open(context, tree, &key.join(name).ok()?);
        let missing = |name: &str| {
            if let Ok(child) = key.join(name)
                && !tree.exists(&child)
            {
                let message = format!(
                    "{} objects, but the array does not exist",
                    index.num_objects
                );
                context.report(&rules::PART_NOT_CHECKED, &child, message);
            }
            None
        };
        let held = match index.layout {
            ObjectIndexLayout::Open => match (open("data"), open("offsets")) {
                (Some(data), Some(offsets)) => ManifestStorage::Open { data, offsets },
                (None, None) if index.num_objects == 0 => ManifestStorage::None,
                (None, _) => return missing("data"),
                (_, None) => return missing("offsets"),
            },
            ObjectIndexLayout::Dense => match (open("manifest_spans"), open("manifest_blocks")) {
                (Some(spans), Some(blocks)) => {
                    let columns = u64::try_from(index.sid_ndim).unwrap_or(u64::MAX);
                    let arrays = [(&spans, 2), (&blocks, columns.saturating_add(1))];
                    let is_wrong = |(array, columns): &(&TableArray, u64)| {
                        array.columns != *columns
                            || !matches!(array.row, RowType::Number(Kind::Int64, _))
                    };
                    if let Some((array, _)) = arrays.into_iter().find(is_wrong) {
                        let message = "rows are not the 64-bit integers of a dense index";
                        context.report(&rules::PART_NOT_CHECKED, &array.key, message);
                        return None;
                    }
                    ManifestStorage::Dense { spans, blocks }
                }
                (None, None) if index.num_objects == 0 => ManifestStorage::None,
                (None, _) => return missing("manifest_spans"),
                (_, None) => return missing("manifest_blocks"),
            },
            _ => match open("manifests") {
                Some(items) => ManifestStorage::Items(items),
                None if index.num_objects == 0 => ManifestStorage::None,
                None => return missing("manifests"),
            },
        };
        let ids = match index.layout {
            ObjectIndexLayout::ManifestsWithIds | ObjectIndexLayout::Dense => open("object_ids"),
            _ => None,
        };
        let of_ids = ids.as_ref().is_some_and(|ids| !is_int64(tree, &ids.key));
        if let (Some(ids), true) = (&ids, of_ids) {
            let message = "ids are not one int64 per row";
            context.report(&rules::PART_NOT_CHECKED, &ids.key, message);
            return None;
        }
        Some(Self {
            key,
            index,
            held,
            ids,
        })
    }

    /// Returns the number of manifests according to the arrays.
    pub(super) fn rows(&self) -> Option<u64> {
        match &self.held {
            ManifestStorage::None => Some(0),
            ManifestStorage::Items(items) => Some(items.len),
            ManifestStorage::Dense { spans, .. } => Some(spans.len),
            ManifestStorage::Open { offsets, .. } => {
                let bytes = offsets.len.checked_mul(offsets.row_size())?;
                bytes.is_multiple_of(8).then(|| bytes.div_euclid(8))
            }
        }
    }

    /// Returns the array of manifests, or of their spans, if the store holds none of its cells.
    pub(super) fn without_cells(&self, tree: &StoreTree) -> Option<&Key> {
        let array = match &self.held {
            ManifestStorage::Items(array) | ManifestStorage::Dense { spans: array, .. } => array,
            ManifestStorage::None | ManifestStorage::Open { .. } => return None,
        };
        is_bare(tree, array).then_some(&array.key)
    }

    /// Returns whether the ids of objects are known: no array holds them, or their cells are stored.
    pub(super) fn has_ids(&self, tree: &StoreTree) -> bool {
        self.ids.as_ref().is_none_or(|ids| !is_bare(tree, ids))
    }

    /// Returns the ids by row, or `None` after reporting that they cannot be read.
    pub(super) async fn ids(&self, context: &Context<'_>) -> Option<Ids> {
        let Some(ids) = &self.ids else {
            return Some(Ids::Rows(self.rows().unwrap_or(self.index.num_objects)));
        };
        let bytes = ids.all_bytes(context).await?;
        let numbers = Int64s::parse(&bytes).ok()?;
        let big = matches!(ids.row, RowType::Number(_, ByteOrder::Big));
        let number = |id: i64| if big { id.swap_bytes() } else { id };
        Some(Ids::Table(numbers.iter().map(number).collect()))
    }

    /// Calls `each` for every row in order, and reports unreadable ones. Returns whether all were
    /// read.
    pub(super) async fn each(
        &self,
        context: &Context<'_>,
        mut each: impl FnMut(u64, ManifestRow<'_>) + Send,
    ) -> bool {
        let mut all = true;
        let mut entry = |key: &Key, row: u64, item: &[u8]| {
            if item.is_empty() {
                return each(row, ManifestRow::Absent);
            }
            match ObjectManifest::parse(item, self.index.sid_ndim) {
                Ok(manifest) => each(row, ManifestRow::Manifest(manifest)),
                Err(error) => {
                    let place = format!("row {row}");
                    context.report_at(&rules::MANIFEST_UNREADABLE, key, place, error);
                    each(row, ManifestRow::Lost);
                }
            }
        };
        match &self.held {
            ManifestStorage::None => {}
            ManifestStorage::Items(items) => {
                let visit = |cell: crate::table_array::RowCell<'_>| {
                    let rows = cell.first..cell.first.saturating_add(cell.rows);
                    match (items.items(&cell), cell.cell) {
                        (Some(found), _) => {
                            for (row, item) in rows.zip(found) {
                                entry(&items.key, row, item);
                            }
                        }
                        (None, CellPayload::Absent) => {
                            for row in rows {
                                entry(&items.key, row, &[]);
                            }
                        }
                        // The read reported it.
                        (None, _) => all = false,
                    }
                };
                items.each_cell(context, visit).await;
            }
            ManifestStorage::Dense { spans, blocks } => {
                let (Some(spanned), Some(rows)) = (
                    dense_numbers(spans, context).await,
                    dense_numbers(blocks, context).await,
                ) else {
                    return false;
                };
                let block = self.index.sid_ndim.saturating_add(1);
                // Spans may overlap, so that a few bytes may name many blocks.
                let mut left = context.fetch.budget() / 8;
                for (row, span) in (0_u64..).zip(spanned.chunks_exact(2)) {
                    let count = span.get(1).copied().unwrap_or_default();
                    // A count beyond the blocks is a fault of the row.
                    let taken = u64::try_from(count).unwrap_or(0).min(blocks.len);
                    let Some(rest) = left.checked_sub(taken) else {
                        let message = "the spans name more blocks than the memory budget allows";
                        context.report(&rules::CELL_NOT_CHECKED, &spans.key, message);
                        return false;
                    };
                    left = rest;
                    match dense_manifest(span, &rows, block) {
                        Ok(manifest) => entry(&spans.key, row, &manifest),
                        Err(message) => {
                            let place = format!("row {row}");
                            let rule = &rules::MANIFEST_UNREADABLE;
                            context.report_at(rule, &spans.key, place, message);
                            all = false;
                        }
                    }
                }
            }
            ManifestStorage::Open { data, offsets } => {
                let (Some(bytes), Some(starts)) = (
                    data.all_bytes(context).await,
                    offsets.all_bytes(context).await,
                ) else {
                    return false;
                };
                match OpenRows::parse(&bytes, &starts) {
                    Ok(rows) => {
                        for (row, item) in (0..).zip(rows.iter()) {
                            entry(&data.key, row, item);
                        }
                    }
                    Err(error) => {
                        context.report(&rules::CELL_UNREADABLE, &offsets.key, error);
                        all = false;
                    }
                }
            }
        }
        all
    }
}

/// Returns whether an array has rows, and the store holds none of its cells.
fn is_bare(tree: &StoreTree, array: &TableArray) -> bool {
    let key = &array.key;
    // Other files are not cells, whatever their names.
    let is_cell = |file: &str| {
        let node = tree.array(key);
        node.is_some_and(|node| cell_of_file(key, node, file).is_some())
    };
    array.len > 0 && !tree.below(key).any(|(file, _)| is_cell(file))
}

/// Reads an array of 64-bit integers.
async fn dense_numbers(array: &TableArray, context: &Context<'_>) -> Option<Vec<i64>> {
    let bytes = array.all_bytes(context).await?;
    let is_big = matches!(array.row, RowType::Number(_, ByteOrder::Big));
    let (words, _) = bytes.as_chunks::<8>();
    let number = |word: &[u8; 8]| {
        if is_big {
            i64::from_be_bytes(*word)
        } else {
            i64::from_le_bytes(*word)
        }
    };
    Some(words.iter().map(number).collect())
}

/// Encodes the manifest of an object of a dense index, whose blocks are rows of `block` numbers.
fn dense_manifest(span: &[i64], rows: &[i64], block: usize) -> Result<Vec<u8>, &'static str> {
    let beyond = "the span reaches beyond the blocks";
    let &[start, count] = span else {
        return Err(beyond);
    };
    let mut manifest = ObjectManifestBuilder::new(block.saturating_sub(1));
    let count = usize::try_from(count).map_err(|_| "the span has a negative number of blocks")?;
    if count > 0 {
        let start = usize::try_from(start).map_err(|_| "the span starts before the first block")?;
        let place = |row: usize| row.checked_mul(block);
        let end = start.checked_add(count).and_then(place).ok_or(beyond)?;
        let rows = place(start).and_then(|start| rows.get(start..end));
        for row in rows.ok_or(beyond)?.chunks_exact(block.max(1)) {
            let (fragment, chunk) = row.split_last().ok_or(beyond)?;
            let fragment = u32::try_from(*fragment)
                .map_err(|_| "a block names no fragment: its number is out of range")?;
            let pushed = manifest.push_single(chunk, fragment);
            pushed.map_err(|_| "the object has more blocks than a manifest may have")?;
        }
    }
    Ok(manifest.finish())
}

/// Returns whether an array holds one int64 per row.
fn is_int64(tree: &StoreTree, key: &Key) -> bool {
    let int64 = zvf_model::zarr::DataType::Number(Kind::Int64);
    let is = |array: &Array| array.rank() == 1 && array.data_type == int64;
    tree.array(key).is_some_and(is)
}
