//! Parts of a level with one cell per chunk, in every storage form.

use core::ops::Range;
use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    sync::Arc,
};

use serde_json::Value;
use zvf_model::{
    array::{LegacyShardIndex, Padded, Presence, SHARD_PREFIX},
    error_chain::error_chain,
    fetch::{AnyArray, CellRef, CellRequest},
    grid::{ChunkCoord, Grid},
    key::Key,
    layout::{ArrayRole, ChunkForm},
    metadata::Attributes,
    zarr::{Array, DataType, Node},
};

use crate::{
    context::Context, finding::Fix, rule::Rule, rules::consistency as rules, store::LevelScope,
    tree::StoreTree,
};

/// A part whose cells can be requested.
#[derive(Debug)]
pub(crate) struct ChunkedPart {
    /// The node that describes the part.
    pub(crate) key: Key,
    pub(crate) attributes: Attributes,
    pub(crate) form: CellStorage,
}

/// Location of the cells.
#[derive(Debug)]
pub(crate) enum CellStorage {
    /// Elements of one array of byte strings.
    Elements {
        array: AnyArray,
        grid: Grid,
        /// Chunks in `nonempty_chunks`.
        listed: BTreeSet<ChunkCoord>,
        /// Stored cells and their sizes. `None` for shards, whose cells a listing does not show.
        stored: Option<BTreeMap<ChunkCoord, u64>>,
    },
    /// Blocks of one array of numbers.
    Padded { array: AnyArray, padded: Padded },
    /// One array per cell, or shards of 0.8.0.
    Children(BTreeMap<ChunkCoord, ChildCell>),
}

/// A cell outside an array of elements.
#[derive(Debug)]
pub(crate) enum ChildCell {
    /// An array of its own, and its stored size in bytes.
    Own(Key, u64),
    /// A byte range of a shard.
    Span(AnyArray, Range<u64>),
}

impl ChunkedPart {
    /// Opens the part at `key`, whose chunk keys have `arity` coordinates. Returns `None` if the
    /// part does not exist, or after reporting that it cannot be opened.
    pub(crate) fn open(
        context: &Context<'_>,
        tree: &StoreTree,
        key: &Key,
        form: ChunkForm,
        arity: usize,
    ) -> Option<Self> {
        if !tree.exists(key) {
            return None;
        }
        let node = tree.node(key);
        let attributes = node.map(|node| node.attributes().clone());
        let form = match (node, form) {
            (Some(Node::Array(array)), ChunkForm::Padded) => padded(context, key, array, arity)?,
            (Some(Node::Array(array)), _) => elements(context, tree, key, array, arity)?,
            (Some(Node::Group(_)) | None, _) if tree.has_file(key) && node.is_none() => {
                // L1 reports the unreadable file.
                context.report(
                    &rules::PART_NOT_CHECKED,
                    key,
                    "its zarr.json cannot be read",
                );
                return None;
            }
            _ => CellStorage::Children(children(context, tree, key, arity)),
        };
        Some(Self {
            key: key.clone(),
            attributes: attributes.unwrap_or_default(),
            form,
        })
    }

    /// Returns the listed chunks, ascending. Empty for a padded array, which has no list.
    pub(crate) fn chunks(&self) -> Vec<ChunkCoord> {
        match &self.form {
            CellStorage::Elements { listed, .. } => listed.iter().cloned().collect(),
            CellStorage::Padded { .. } => Vec::new(),
            CellStorage::Children(children) => children.keys().cloned().collect(),
        }
    }

    /// Returns whether the part lists a cell for `chunk`, or may have one if it has no list.
    pub(crate) fn has(&self, chunk: &ChunkCoord) -> bool {
        match &self.form {
            CellStorage::Elements { listed, .. } => listed.contains(chunk),
            CellStorage::Padded { padded, .. } => padded.grid.cell_of(chunk.coords()).is_ok(),
            CellStorage::Children(children) => children.contains_key(chunk),
        }
    }

    /// Returns whether the listing shows the size of every cell.
    pub(crate) fn is_sized(&self) -> bool {
        match &self.form {
            CellStorage::Elements { stored, .. } => stored.is_some(),
            CellStorage::Padded { .. } => false,
            CellStorage::Children(_) => true,
        }
    }

    /// Returns the shard that holds the cell of a chunk, if cells are in shards.
    pub(crate) fn shard_of(&self, chunk: &ChunkCoord) -> Option<Vec<i64>> {
        let CellStorage::Elements { array, grid, .. } = &self.form else {
            return None;
        };
        let array = array.metadata();
        array.sharding()?;
        let cell = grid.cell_of(chunk.coords()).ok()?;
        let axes = cell.iter().zip(&array.chunk_shape);
        let shard = axes.map(|(at, extent)| i64::try_from(at.checked_div(*extent)?).ok());
        shard.collect()
    }

    /// Returns the stored size of a cell in bytes, if the listing shows it.
    pub(crate) fn stored_size(&self, chunk: &ChunkCoord) -> Option<u64> {
        match &self.form {
            CellStorage::Elements { stored, .. } => stored.as_ref()?.get(chunk).copied(),
            CellStorage::Padded { .. } => None,
            CellStorage::Children(children) => match children.get(chunk)? {
                ChildCell::Own(_, size) => Some(*size),
                ChildCell::Span(_, span) => Some(span.end.saturating_sub(span.start)),
            },
        }
    }

    /// Returns the request for a cell, or `None` if the part lists no such cell.
    pub(crate) fn cell_request(&self, chunk: &ChunkCoord) -> Option<CellRequest> {
        let (cell, part) = match &self.form {
            CellStorage::Elements {
                array,
                grid,
                listed,
                ..
            } => {
                let cell = grid.cell_of(chunk.coords()).ok()?;
                let listed = listed.contains(chunk);
                (listed.then(|| CellRef::Element(array.clone(), cell))?, None)
            }
            CellStorage::Padded { array, padded } => {
                let mut cell = padded.grid.cell_of(chunk.coords()).ok()?;
                // The remaining axes count rows and columns, which a cell spans.
                cell.resize(array.metadata().rank(), 0);
                (CellRef::Element(array.clone(), cell), None)
            }
            CellStorage::Children(children) => match children.get(chunk)? {
                ChildCell::Own(key, _) => (CellRef::Child(key.clone()), None),
                ChildCell::Span(shard, span) => {
                    let cell = CellRef::Element(shard.clone(), vec![0]);
                    (cell, Some(span.clone()))
                }
            },
        };
        Some(CellRequest { cell, part })
    }
}

/// Opens a part. Returns `None` if it does not exist, or after reporting that it cannot be opened.
pub(crate) fn open_part(
    context: &Context<'_>,
    scope: LevelScope<'_>,
    part: &ArrayRole<'_>,
) -> Option<ChunkedPart> {
    let key = scope.store.at(scope.level, part)?;
    let form = scope.store.layout().chunk_form(part)?;
    ChunkedPart::open(context, &scope.store.tree, &key, form, scope.level.arity)
}

pub(crate) fn open_array(context: &Context<'_>, key: &Key, array: &Array) -> Option<AnyArray> {
    match context.fetch.array(key, Arc::new(array.clone())) {
        Ok(array) => Some(array),
        Err(error) => {
            let message = error_chain(&*error.source);
            context.report(&rules::PART_NOT_CHECKED, key, message);
            None
        }
    }
}

fn padded(context: &Context<'_>, key: &Key, array: &Array, arity: usize) -> Option<CellStorage> {
    let opened = Padded::parse(key, array, arity).and_then(|padded| {
        let cells = open_array(context, key, array)
            .map(|array| padded.cells(array))
            .transpose()?;
        Ok(cells.map(|array| CellStorage::Padded { array, padded }))
    });
    opened.unwrap_or_else(|error| {
        context.report_at(&rules::PART_NOT_CHECKED, key, &error.path, &error.fault);
        None
    })
}

fn elements(
    context: &Context<'_>,
    tree: &StoreTree,
    key: &Key,
    array: &Array,
    arity: usize,
) -> Option<CellStorage> {
    let strings = matches!(array.data_type, DataType::VariableBytes);
    if !strings || !array.decoded_shape().iter().all(|extent| *extent == 1) {
        let message = "the array does not hold one byte string per chunk";
        context.report(&rules::PART_NOT_CHECKED, key, message);
        return None;
    }
    let grid = match grid(array, arity) {
        Ok(grid) => grid,
        Err(message) => {
            context.report(&rules::PART_NOT_CHECKED, key, message);
            return None;
        }
    };
    let stored = array.sharding().is_none().then(|| {
        let mut stored = BTreeMap::new();
        for (file, size) in tree.below(key) {
            let Some(cell) = cell_of_file(key, array, file) else {
                continue;
            };
            if let Some(chunk) = grid.chunk_of(&cell) {
                stored.insert(chunk, size);
            }
        }
        stored
    });
    let listed = if Presence::is_deferred(&array.attributes) {
        present(context, tree, key, stored.as_ref())
    } else {
        listed(context, key, array, (&grid, arity), stored.as_ref())
    };
    let array = open_array(context, key, array)?;
    Some(CellStorage::Elements {
        array,
        grid,
        listed,
        stored,
    })
}

/// Returns the grid of an array with one element per chunk.
pub(crate) fn grid(array: &Array, arity: usize) -> Result<Grid, String> {
    if array.rank() != arity {
        let rank = array.rank();
        return Err(format!(
            "the array has {rank} dimensions, but chunk keys have {arity} coordinates"
        ));
    }
    let origin = match array.attributes.get("chunk_grid_origin") {
        None | Some(Value::Null) => None,
        Some(origin) => {
            let numbers = origin
                .as_array()
                .map(|list| list.iter().map(Value::as_i64))
                .and_then(Iterator::collect::<Option<Vec<i64>>>);
            Some(numbers.ok_or("chunk_grid_origin is not a list of integers")?)
        }
    };
    Grid::new(origin.as_deref(), &array.shape).map_err(|error| error.to_string())
}

/// Returns the chunks that the store has of an array without a list.
fn present(
    context: &Context<'_>,
    tree: &StoreTree,
    key: &Key,
    stored: Option<&BTreeMap<ChunkCoord, u64>>,
) -> BTreeSet<ChunkCoord> {
    let Some(stored) = stored else {
        let chunks = tree.in_shards.get(key.as_str());
        if chunks.is_none() {
            let message = "it does not list its chunks, and its shards have too many to look for";
            context.report(&rules::PART_NOT_CHECKED, key, message);
        }
        return chunks.cloned().unwrap_or_default();
    };
    stored.keys().cloned().collect()
}

/// Returns the chunks that an array lists, and reports invalid entries.
fn listed(
    context: &Context<'_>,
    key: &Key,
    array: &Array,
    (grid, arity): (&Grid, usize),
    stored: Option<&BTreeMap<ChunkCoord, u64>>,
) -> BTreeSet<ChunkCoord> {
    let mut listed = BTreeSet::new();
    let mut faults: Vec<(String, String)> = Vec::new();
    let mut has_outside = false;
    let name = "attributes.nonempty_chunks";
    let items = match array.attributes.get("nonempty_chunks") {
        Some(Value::Array(items)) => items.as_slice(),
        Some(_) => {
            faults.push((name.to_owned(), "not a list".to_owned()));
            &[]
        }
        None => {
            faults.push((name.to_owned(), "missing".to_owned()));
            &[]
        }
    };
    for (at, item) in items.iter().enumerate() {
        let chunk = match item.as_str() {
            Some(text) => ChunkCoord::parse(text, arity)
                .map_err(|error| format!("{text:?}: {error}"))
                .and_then(|chunk| match grid.cell_of(chunk.coords()) {
                    Ok(_) => Ok(chunk),
                    Err(error) => {
                        has_outside = true;
                        Err(error.to_string())
                    }
                }),
            None => Err(format!("{item} is not text")),
        };
        let fault = match chunk {
            Ok(chunk) if listed.contains(&chunk) => format!("{chunk} is a duplicate"),
            Ok(chunk) => {
                listed.insert(chunk);
                continue;
            }
            Err(fault) => fault,
        };
        faults.push((format!("{name}[{at}]"), fault));
    }
    // The grid may be wrong instead of the list: a shard may hold the chunks outside, which the listing
    // does not show, and a wrong origin gives other chunks to files.
    let is_moved = has_outside
        && stored.is_none_or(|stored| stored.keys().any(|chunk| !listed.contains(chunk)));
    // The listing does not show the cells of shards, so the fix keeps their listed chunks.
    let fix = (!faults.is_empty() && !is_moved).then(|| {
        let stored = stored.into_iter().flat_map(BTreeMap::keys);
        let chunks: BTreeSet<&ChunkCoord> = listed.iter().chain(stored).collect();
        Fix::Attribute {
            node: key.clone(),
            path: vec!["nonempty_chunks".to_owned()],
            value: Some(list_of(chunks.into_iter())),
        }
    });
    // The fix is the whole list, so one finding has it.
    let fixes = fix.into_iter().map(Some).chain(core::iter::repeat(None));
    for ((place, fault), fix) in faults.into_iter().zip(fixes) {
        context.add(&rules::CHUNK_LIST, key, Some(place), fault, fix);
    }
    listed
}

/// Returns the value of `nonempty_chunks`: chunk keys as text, in text order.
pub(crate) fn list_of<'a>(chunks: impl Iterator<Item = &'a ChunkCoord>) -> Value {
    let mut names: Vec<String> = chunks.map(ToString::to_string).collect();
    names.sort_unstable();
    names.into()
}

/// Returns the index of the chunk in a file below an array, or `None` for other files.
pub(crate) fn cell_of_file(key: &Key, array: &Array, file: &str) -> Option<Vec<u64>> {
    array.chunk_at(key, file)
}

fn children(
    context: &Context<'_>,
    tree: &StoreTree,
    key: &Key,
    arity: usize,
) -> BTreeMap<ChunkCoord, ChildCell> {
    let mut children = BTreeMap::new();
    let mut shards = Vec::new();
    for name in tree.folders(key) {
        let Ok(child) = key.join(name) else {
            continue;
        };
        if name.starts_with(SHARD_PREFIX) {
            shards.push(child);
        } else if let Ok(chunk) = ChunkCoord::parse(name, arity) {
            let size = tree
                .below(&child)
                .map(|(_, size)| size)
                .fold(0, u64::saturating_add);
            children.insert(chunk, ChildCell::Own(child, size));
        }
        // L1 reports other names.
    }
    for shard in shards {
        let Some(array) = tree.array(&shard) else {
            context.report(
                &rules::PART_NOT_CHECKED,
                &shard,
                "the shard is not an array",
            );
            continue;
        };
        let index = LegacyShardIndex::parse(&shard, &array.attributes, arity, array.elements());
        let index = match index {
            Ok(index) => index,
            Err(error) => {
                let rule: &'static Rule = &rules::PART_NOT_CHECKED;
                context.report_at(rule, &shard, &error.path, &error.fault);
                continue;
            }
        };
        let Some(array) = open_array(context, &shard, array) else {
            continue;
        };
        for span in index.spans() {
            let range = span.offset..span.offset.saturating_add(span.len);
            // A separate array is newer than the shard and takes precedence.
            match children.entry(span.chunk.clone()) {
                Entry::Vacant(at) => {
                    at.insert(ChildCell::Span(array.clone(), range));
                }
                Entry::Occupied(at) => {
                    if let ChildCell::Span(other, _) = at.get() {
                        let message = format!("the chunk is also in {}", other.node());
                        context.report_in_chunk(
                            &rules::CELL_DUPLICATE,
                            &shard,
                            &span.chunk,
                            message,
                        );
                    }
                }
            }
        }
    }
    children
}
