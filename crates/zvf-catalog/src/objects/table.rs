//! Opens the object index of a level.

use std::{collections::BTreeMap, sync::Arc};

use zvf_format::numeric::Kind;
use zvf_model::{
    array::{ObjectIndex, ObjectIndexLayout},
    fetch::AnyArray,
    fetch::BoxFuture,
    key::Key,
    layout::{ArrayRole, ObjectIndexForm},
    zarr::Node,
};

use super::ObjectCache;
use crate::{
    catalog::Catalog,
    chunked_array::child,
    error::{CatalogError, Damage, Fault},
    level::Level,
    sync::lock,
    tables::{ByteStringArray, RowArray},
};

/// Name of the object index in a level's metadata.
const OBJECT_INDEX: &str = "object_index";

/// The metadata of an object index and its open arrays.
#[derive(Debug)]
pub struct ObjectTable {
    pub(crate) node: Key,
    pub(crate) index: ObjectIndex,
    pub(super) manifests: Manifests,
    /// Array of ids; `None` if rows are ids.
    pub(super) ids: Option<RowArray>,
    /// Tolerated defects.
    pub(super) notes: Vec<String>,
}

/// The storage of manifests.
#[derive(Debug)]
pub(super) enum Manifests {
    /// There are no objects.
    None,
    /// One byte string per manifest.
    Items(ByteStringArray),
    /// All manifests concatenated.
    Open { data: RowArray, offsets: RowArray },
    /// A start and a number of blocks per manifest, and a chunk and a fragment per block.
    Dense { spans: RowArray, blocks: RowArray },
}

impl Catalog<'_> {
    /// Opens the object index of a level; `None` if it has none. Takes one round trip on first
    /// use, two if the level does not declare it.
    ///
    /// # Errors
    ///
    /// Returns [`CatalogError`] if the index is damaged or cannot be read.
    pub fn object_index<'f>(
        &'f self,
        level: &'f Level,
    ) -> BoxFuture<'f, Result<Option<Arc<ObjectTable>>, CatalogError>> {
        Box::pin(async move {
            let cache = level.extension::<ObjectCache>();
            let known = lock(&cache.table).clone();
            if let Some(table) = known {
                return Ok(table);
            }
            let table = self.open_object_index(level).await?.map(Arc::new);
            let mut known = lock(&cache.table);
            Ok(known.get_or_insert(table).clone())
        })
    }

    async fn open_object_index(&self, level: &Level) -> Result<Option<ObjectTable>, CatalogError> {
        let Some(key) = self.described_at(level, &ArrayRole::Manifests)? else {
            return Ok(None);
        };
        // The layout of the generation is a guess; the index itself decides.
        let guess = names(match self.layout.object_index {
            ObjectIndexForm::Open => ObjectIndexLayout::Open,
            ObjectIndexForm::Manifests => ObjectIndexLayout::Manifests,
            ObjectIndexForm::ManifestsWithIds => ObjectIndexLayout::ManifestsWithIds,
        });
        // An undeclared index rarely exists, so only its node is requested.
        let guess = if level.declares(OBJECT_INDEX) {
            guess
        } else {
            &[]
        };
        let mut keys = vec![key.clone()];
        for name in guess {
            keys.push(child(&key, name)?);
        }
        let mut nodes = self.fetch.nodes(&keys).await?.into_iter();
        let Some(node) = nodes.next().flatten() else {
            return if level.declares(OBJECT_INDEX) {
                Err(Damage::new(&key, Fault::Missing).into())
            } else {
                Ok(None)
            };
        };
        let index = ObjectIndex::parse(&key, node.attributes())?.value;
        let (found, expected) = (index.sid_ndim, self.arity(level));
        if found != expected {
            let [found, expected] = [found, expected].map(|n| u64::try_from(n).unwrap_or(u64::MAX));
            return Err(Damage::new(&key, Fault::Count { found, expected }).into());
        }
        let names = names(index.layout);
        // Nodes guessed correctly are not read again.
        let mut known: BTreeMap<&str, Option<Node>> = guess.iter().copied().zip(nodes).collect();
        let more: Vec<&str> = names
            .iter()
            .copied()
            .filter(|name| !known.contains_key(name))
            .collect();
        if !more.is_empty() {
            let keys = more
                .iter()
                .map(|name| child(&key, name))
                .collect::<Result<Vec<_>, _>>()?;
            known.extend(more.into_iter().zip(self.fetch.nodes(&keys).await?));
        }
        let mut arrays = names
            .iter()
            .map(|name| self.array_of(&key, name, known.remove(name).flatten()));
        let mut next = || arrays.next().transpose().map(Option::flatten);
        let (first, second, third) = (next()?, next()?, next()?);
        let table = match index.layout {
            ObjectIndexLayout::Dense => dense_table(key, index, [first, second, third]),
            _ => object_table(key, index, first, second),
        };
        table.map(Some)
    }

    fn array_of(
        &self,
        key: &Key,
        name: &str,
        node: Option<Node>,
    ) -> Result<Option<AnyArray>, CatalogError> {
        let Some(node) = node else {
            return Ok(None);
        };
        let key = child(key, name)?;
        match node {
            Node::Array(array) => Ok(Some(self.fetch.array(&key, Arc::new(array))?)),
            Node::Group(_) => Err(Damage::new(&key, Fault::Kind).into()),
        }
    }
}

impl ObjectTable {
    /// Creates a table without arrays.
    fn new(node: Key, index: ObjectIndex) -> Self {
        Self {
            node,
            index,
            manifests: Manifests::None,
            ids: None,
            notes: Vec::new(),
        }
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> u64 {
        self.index.num_objects
    }
}

/// Assembles the arrays of an object index and checks that each has one row per object.
fn object_table(
    key: Key,
    index: ObjectIndex,
    first: Option<AnyArray>,
    second: Option<AnyArray>,
) -> Result<ObjectTable, CatalogError> {
    let objects = index.num_objects;
    let mut table = ObjectTable::new(key, index);
    let names = names(table.index.layout);
    let Some(first) = first else {
        // Writers create no arrays for an index without objects.
        let name = names.first().copied().unwrap_or_default();
        return match objects {
            0 => Ok(table),
            _ => Err(Damage::new(&child(&table.node, name)?, Fault::Missing).into()),
        };
    };
    if table.index.layout == ObjectIndexLayout::Open {
        let Some(second) = second else {
            let key = child(&table.node, "offsets")?;
            return Err(Damage::new(&key, Fault::Missing).into());
        };
        let (data, offsets) = (RowArray::new(first)?, RowArray::new(second)?);
        check_count(
            offsets.node(),
            offsets.size(None),
            objects.saturating_mul(8),
        )?;
        table.manifests = Manifests::Open { data, offsets };
        return Ok(table);
    }
    let manifests = ByteStringArray::new(first)?;
    check_count(manifests.node(), manifests.rows, objects)?;
    table.manifests = Manifests::Items(manifests);
    match second {
        Some(ids) => {
            let ids = RowArray::new(ids)?;
            if ids.kind() != Some(Kind::Int64) || ids.columns != 1 {
                return Err(Damage::new(ids.node(), Fault::Kind).into());
            }
            check_count(ids.node(), ids.rows, objects)?;
            table.ids = Some(ids);
        }
        None if table.index.layout == ObjectIndexLayout::ManifestsWithIds => {
            // The reference reader takes rows for ids in this case.
            let note = format!("{}/object_ids: is missing; rows are ids", table.node);
            table.notes.push(note);
        }
        None => {}
    }
    Ok(table)
}

/// Assembles the arrays of a dense object index. All of them are required.
fn dense_table(
    key: Key,
    index: ObjectIndex,
    arrays: [Option<AnyArray>; 3],
) -> Result<ObjectTable, CatalogError> {
    let objects = index.num_objects;
    let mut table = ObjectTable::new(key, index);
    if objects == 0 && arrays.iter().all(Option::is_none) {
        return Ok(table);
    }
    let columns = u64::try_from(table.index.sid_ndim).unwrap_or(u64::MAX);
    let columns = [2, columns.saturating_add(1), 1];
    let mut opened = Vec::with_capacity(arrays.len());
    let names = names(ObjectIndexLayout::Dense).iter();
    for ((array, name), columns) in arrays.into_iter().zip(names).zip(columns) {
        let Some(array) = array else {
            return Err(Damage::new(&child(&table.node, name)?, Fault::Missing).into());
        };
        let array = RowArray::new(array)?;
        if array.kind() != Some(Kind::Int64) || array.columns != columns {
            return Err(Damage::new(array.node(), Fault::Kind).into());
        }
        opened.push(array);
    }
    let mut opened = opened.into_iter();
    if let (Some(spans), Some(blocks), Some(ids)) = (opened.next(), opened.next(), opened.next()) {
        check_count(spans.node(), spans.rows, objects)?;
        check_count(ids.node(), ids.rows, objects)?;
        table.manifests = Manifests::Dense { spans, blocks };
        table.ids = Some(ids);
    }
    Ok(table)
}

/// Returns the names of the arrays of a layout, that of manifests first.
fn names(layout: ObjectIndexLayout) -> &'static [&'static str] {
    match layout {
        ObjectIndexLayout::Open => &["data", "offsets"],
        ObjectIndexLayout::Manifests => &["manifests"],
        ObjectIndexLayout::ManifestsWithIds => &["manifests", "object_ids"],
        ObjectIndexLayout::Dense => &["manifest_spans", "manifest_blocks", "object_ids"],
    }
}

fn check_count(key: &Key, found: u64, expected: u64) -> Result<(), Damage> {
    if found == expected {
        return Ok(());
    }
    Err(Damage::new(key, Fault::Count { found, expected }))
}
