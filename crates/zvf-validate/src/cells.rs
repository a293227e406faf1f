//! A part of a level that has a cell for each chunk, in every form.

use core::ops::Range;
use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    sync::Arc,
};

use serde_json::Value;
use zvf_model::{
    array::{Padded, SHARD_PREFIX, ShardIndex},
    fetch::{AnyArray, CellOf, Wanted},
    grid::{ChunkCoord, Grid},
    key::Key,
    layout::ChunkForm,
    metadata::Attributes,
    zarr::{Array, DataType, Node},
};

use crate::{context::Context, finding::Fix, rule::Rule, rules::consistency as rules, tree::Tree};

/// A part whose cells can be asked for.
#[derive(Debug)]
pub(crate) struct Cells {
    /// The node that describes it.
    pub(crate) key: Key,
    pub(crate) attributes: Attributes,
    pub(crate) form: Form,
}

/// Where the cells are.
#[derive(Debug)]
pub(crate) enum Form {
    /// Elements of one array of byte strings.
    Elements {
        array: AnyArray,
        grid: Grid,
        /// What the array lists.
        listed: BTreeSet<ChunkCoord>,
        /// What the store holds; `None` in shards, which only reading opens.
        stored: Option<BTreeMap<ChunkCoord, u64>>,
    },
    /// Parts of one array of numbers.
    Padded { array: AnyArray, padded: Padded },
    /// An array each, or a part of a shard of old.
    Children(BTreeMap<ChunkCoord, Child>),
}

/// A cell that is not an element.
#[derive(Debug)]
pub(crate) enum Child {
    /// An array of its own, of so many bytes as stored.
    Own(Key, u64),
    /// A part of a shard.
    Span(AnyArray, Range<u64>),
}

impl Cells {
    /// Opens the part at `key`, with chunk keys of `arity` numbers. `None` when it
    /// is not there, or cannot be opened, which is found then.
    pub(crate) fn open(
        context: &Context<'_>,
        tree: &Tree,
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
                // Its file cannot be read, which L1 found.
                context.find(
                    &rules::PART_NOT_CHECKED,
                    key,
                    "its zarr.json cannot be read",
                );
                return None;
            }
            _ => Form::Children(children(context, tree, key, arity)),
        };
        Some(Self {
            key: key.clone(),
            attributes: attributes.unwrap_or_default(),
            form,
        })
    }

    /// Chunks that this part says it has a cell for, ascending; none for a padded
    /// array, which does not say.
    pub(crate) fn chunks(&self) -> Vec<ChunkCoord> {
        match &self.form {
            Form::Elements { listed, .. } => listed.iter().cloned().collect(),
            Form::Padded { .. } => Vec::new(),
            Form::Children(children) => children.keys().cloned().collect(),
        }
    }

    /// Whether this part says that it has a cell for `chunk`.
    pub(crate) fn has(&self, chunk: &ChunkCoord) -> bool {
        match &self.form {
            Form::Elements { listed, .. } => listed.contains(chunk),
            Form::Padded { padded, .. } => padded.grid.cell_of(chunk.coords()).is_ok(),
            Form::Children(children) => children.contains_key(chunk),
        }
    }

    /// Bytes of a cell as stored, as far as a listing tells.
    pub(crate) fn stored_size(&self, chunk: &ChunkCoord) -> Option<u64> {
        match &self.form {
            Form::Elements { stored, .. } => stored.as_ref()?.get(chunk).copied(),
            Form::Padded { .. } => None,
            Form::Children(children) => match children.get(chunk)? {
                Child::Own(_, size) => Some(*size),
                Child::Span(_, span) => Some(span.end.saturating_sub(span.start)),
            },
        }
    }

    /// How to ask for a cell; `None` when the part says that it has none.
    pub(crate) fn wanted(&self, chunk: &ChunkCoord) -> Option<Wanted<AnyArray>> {
        let (cell, part) = match &self.form {
            Form::Elements {
                array,
                grid,
                listed,
                ..
            } => {
                let cell = grid.cell_of(chunk.coords()).ok()?;
                let listed = listed.contains(chunk);
                (listed.then(|| CellOf::Element(array.clone(), cell))?, None)
            }
            Form::Padded { array, padded } => {
                let mut cell = padded.grid.cell_of(chunk.coords()).ok()?;
                // All rows and, where there are any, columns.
                cell.resize(array.metadata().rank(), 0);
                (CellOf::Element(array.clone(), cell), None)
            }
            Form::Children(children) => match children.get(chunk)? {
                Child::Own(key, _) => (CellOf::Child(key.clone()), None),
                Child::Span(shard, span) => {
                    let cell = CellOf::Element(shard.clone(), vec![0]);
                    (cell, Some(span.clone()))
                }
            },
        };
        Some(Wanted { cell, part })
    }
}

fn open_array(context: &Context<'_>, key: &Key, array: &Array) -> Option<AnyArray> {
    match context.fetch.array(key, Arc::new(array.clone())) {
        Ok(array) => Some(array),
        Err(error) => {
            let message = crate::message(&*error.source);
            context.find(&rules::PART_NOT_CHECKED, key, message);
            None
        }
    }
}

fn padded(context: &Context<'_>, key: &Key, array: &Array, arity: usize) -> Option<Form> {
    match Padded::parse(key, array, arity) {
        Ok(padded) => {
            let array = open_array(context, key, array)?;
            Some(Form::Padded { array, padded })
        }
        Err(error) => {
            context.find_at(&rules::PART_NOT_CHECKED, key, &error.path, &error.fault);
            None
        }
    }
}

fn elements(
    context: &Context<'_>,
    tree: &Tree,
    key: &Key,
    array: &Array,
    arity: usize,
) -> Option<Form> {
    let strings = matches!(array.data_type, DataType::VariableBytes);
    if !strings || !array.decoded_shape().iter().all(|extent| *extent == 1) {
        let message = "not an array of one byte string a chunk";
        context.find(&rules::PART_NOT_CHECKED, key, message);
        return None;
    }
    let grid = match grid(array, arity) {
        Ok(grid) => grid,
        Err(message) => {
            context.find(&rules::PART_NOT_CHECKED, key, message);
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
    let listed = listed(context, key, array, (&grid, arity), stored.as_ref());
    let array = open_array(context, key, array)?;
    Some(Form::Elements {
        array,
        grid,
        listed,
        stored,
    })
}

/// The grid of an array that has an element for each chunk.
pub(crate) fn grid(array: &Array, arity: usize) -> Result<Grid, String> {
    if array.rank() != arity {
        let rank = array.rank();
        return Err(format!(
            "{rank} dimensions, and chunk keys of {arity} numbers"
        ));
    }
    let origin = match array.attributes.get("chunk_grid_origin") {
        None | Some(Value::Null) => None,
        Some(origin) => {
            let numbers = origin.as_array().map(|list| list.iter().map(Value::as_i64));
            let numbers = numbers.and_then(Iterator::collect::<Option<Vec<i64>>>);
            Some(numbers.ok_or("chunk_grid_origin is no list of whole numbers")?)
        }
    };
    Grid::new(origin.as_deref(), &array.shape).map_err(|error| error.to_string())
}

/// The chunks that an array lists; items that name none are found.
fn listed(
    context: &Context<'_>,
    key: &Key,
    array: &Array,
    (grid, arity): (&Grid, usize),
    stored: Option<&BTreeMap<ChunkCoord, u64>>,
) -> BTreeSet<ChunkCoord> {
    let mut listed = BTreeSet::new();
    let mut faults: Vec<(String, String)> = Vec::new();
    let name = "attributes.nonempty_chunks";
    let items = match array.attributes.get("nonempty_chunks") {
        Some(Value::Array(items)) => items.as_slice(),
        Some(_) => {
            faults.push((name.to_owned(), "it is no list".to_owned()));
            &[]
        }
        None => {
            faults.push((name.to_owned(), "it is missing".to_owned()));
            &[]
        }
    };
    for (at, item) in items.iter().enumerate() {
        let chunk = match item.as_str() {
            Some(text) => ChunkCoord::parse(text, arity)
                .map_err(|error| format!("{text:?}: {error}"))
                .and_then(|chunk| match grid.cell_of(chunk.coords()) {
                    Ok(_) => Ok(chunk),
                    Err(error) => Err(error.to_string()),
                }),
            None => Err(format!("{item} is no text")),
        };
        let fault = match chunk {
            Ok(chunk) if listed.contains(&chunk) => format!("{chunk} stands there twice"),
            Ok(chunk) => {
                listed.insert(chunk);
                continue;
            }
            Err(fault) => fault,
        };
        faults.push((format!("{name}[{at}]"), fault));
    }
    // What shards hold besides, only reading tells.
    let fix = (!faults.is_empty()).then(|| {
        let stored = stored.into_iter().flat_map(BTreeMap::keys);
        let chunks: BTreeSet<&ChunkCoord> = listed.iter().chain(stored).collect();
        Fix::Attribute {
            node: key.clone(),
            path: vec!["nonempty_chunks".to_owned()],
            value: Some(list_of(chunks.into_iter())),
        }
    });
    for (place, fault) in faults {
        context.add(&rules::PRESENCE, key, Some(place), fault, fix.clone());
    }
    listed
}

/// Chunks as arrays list them: as text, in the order of text.
pub(crate) fn list_of<'a>(chunks: impl Iterator<Item = &'a ChunkCoord>) -> Value {
    let mut names: Vec<String> = chunks.map(ToString::to_string).collect();
    names.sort_unstable();
    names.into()
}

/// The index of the chunk that a file below an array holds; `None` when it is no
/// file of a chunk.
pub(crate) fn cell_of_file(key: &Key, array: &Array, file: &str) -> Option<Vec<u64>> {
    let rest = file.strip_prefix(key.as_str())?.strip_prefix('/')?;
    let numbers = rest.split(['/', '.']).filter(|name| *name != "c");
    let index: Option<Vec<u64>> = numbers.map(|number| number.parse().ok()).collect();
    let index = index?;
    // The array names its chunks in one way only.
    let named = array.chunk_key(key, &index).ok()?;
    (named.as_str() == file).then_some(index)
}

fn children(
    context: &Context<'_>,
    tree: &Tree,
    key: &Key,
    arity: usize,
) -> BTreeMap<ChunkCoord, Child> {
    let mut children = BTreeMap::new();
    let mut shards = Vec::new();
    for name in tree.folders(key) {
        let Ok(child) = key.join(name) else {
            continue;
        };
        if name.starts_with(SHARD_PREFIX) {
            shards.push(child);
        } else if let Ok(chunk) = ChunkCoord::parse(name, arity) {
            let size = tree.below(&child).map(|(_, size)| size);
            let size = size.fold(0, u64::saturating_add);
            children.insert(chunk, Child::Own(child, size));
        }
        // Other names are found where structure is checked.
    }
    for shard in shards {
        let Some(array) = tree.array(&shard) else {
            context.find(&rules::PART_NOT_CHECKED, &shard, "a shard that is no array");
            continue;
        };
        let index = ShardIndex::parse(&shard, &array.attributes, arity, array.elements());
        let index = match index {
            Ok(index) => index,
            Err(error) => {
                let rule: &'static Rule = &rules::PART_NOT_CHECKED;
                context.find_at(rule, &shard, &error.path, &error.fault);
                continue;
            }
        };
        let Some(array) = open_array(context, &shard, array) else {
            continue;
        };
        for span in index.spans() {
            let range = span.offset..span.offset.saturating_add(span.len);
            // A chunk of its own is newer than what was packed before.
            match children.entry(span.chunk.clone()) {
                Entry::Vacant(at) => {
                    at.insert(Child::Span(array.clone(), range));
                }
                Entry::Occupied(at) => {
                    if let Child::Span(other, _) = at.get() {
                        let message = format!("it is in {} too", other.node());
                        context.find_in(&rules::CELL_TWICE, &shard, &span.chunk, message);
                    }
                }
            }
        }
    }
    children
}
