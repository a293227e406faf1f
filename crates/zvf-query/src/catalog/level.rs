//! Levels of a store, opened on first use and cached.

use core::any::{Any, TypeId};
use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard},
};

use zvf_format::path::Delta;
use zvf_model::{
    fetch::{BoxFuture, FetchProblem, Port},
    key::Key,
    layout::{ArrayRole, CrossChunkForm, Layout},
    level::{LevelId, LevelMetadata},
    root::RootMetadata,
    zarr::Node,
};

use crate::{
    catalog::chunked_array::{ChunkedArray, child},
    error::QueryError,
    sync::lock,
};

/// Folder of links between chunks up to 0.8.
const CROSS_CHUNK_LINKS: &str = "cross_chunk_links";

/// Open levels of a store, cached across queries. An empty cache is cheap to create.
#[derive(Debug, Default)]
pub struct LevelCache {
    levels: Mutex<BTreeMap<LevelId, Arc<Level>>>,
}

impl LevelCache {
    /// Inserts a level whose metadata has been read.
    pub fn insert(&self, metadata: LevelMetadata) {
        let level = Arc::new(Level::new(metadata));
        self.lock().insert(level.metadata.level, level);
    }

    /// Inserts a node that has been read, so that its level does not read it again. The level must
    /// have been inserted before.
    pub fn insert_node(&self, level: LevelId, key: Key, node: Node) {
        if let Some(level) = self.lock().get(&level) {
            lock(&level.nodes).insert(key, node);
        }
    }

    /// Returns the metadata of a level, if it is open.
    pub fn get(&self, id: LevelId) -> Option<LevelMetadata> {
        self.lock().get(&id).map(|level| level.metadata.clone())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<LevelId, Arc<Level>>> {
        lock(&self.levels)
    }
}

/// A cached lookup: `None` before the first lookup, `Some(None)` if nothing was found.
pub(crate) type CachedLookup<T> = Option<Option<Arc<T>>>;

/// An open level and the nodes read of it.
///
/// Modules that build on levels cache their own state with [`extension`](Self::extension), so that
/// this module does not depend on them.
#[derive(Debug)]
pub(crate) struct Level {
    pub(crate) metadata: LevelMetadata,
    /// Open arrays by their node; `None` for a node that does not exist.
    arrays: Mutex<HashMap<Key, Option<Arc<ChunkedArray>>>>,
    /// Names of the children of listed nodes.
    children: Mutex<HashMap<Key, Arc<Vec<String>>>>,
    /// Nodes that are read but not opened yet.
    nodes: Mutex<HashMap<Key, Node>>,
    /// State of other modules, one value per type.
    extensions: Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>,
}

impl Level {
    fn new(metadata: LevelMetadata) -> Self {
        Self {
            metadata,
            arrays: Mutex::default(),
            children: Mutex::default(),
            nodes: Mutex::default(),
            extensions: Mutex::default(),
        }
    }

    pub(crate) fn id(&self) -> LevelId {
        self.metadata.level
    }

    /// Returns the state of type `T` kept with this level, creating it on first use.
    pub(crate) fn extension<T: Any + Default + Send + Sync>(&self) -> Arc<T> {
        let mut extensions = lock(&self.extensions);
        let extension = extensions
            .entry(TypeId::of::<T>())
            .or_insert_with(|| Arc::new(T::default()));
        Arc::clone(extension).downcast().unwrap_or_default()
    }

    /// Returns whether the level's metadata declares an array. An undeclared array may exist, but
    /// a declared array that does not exist is missing.
    pub(crate) fn declares(&self, part: &str) -> bool {
        self.metadata.arrays_present.iter().any(|name| name == part)
    }

    /// Returns whether a folder has been listed and has a child of this name.
    pub(crate) fn lists(&self, folder: &Key, name: &str) -> bool {
        let children = lock(&self.children);
        let names = children.get(folder);
        names.is_some_and(|names| names.iter().any(|other| other == name))
    }
}

/// A store as queries see it: its metadata, and a port to read everything else.
#[derive(Clone, Copy, Debug)]
pub struct Session<'a> {
    /// Port that reads nodes and cells.
    pub fetch: Port<'a>,
    /// Paths of the store's generation.
    pub layout: &'a Layout,
    /// Metadata of the root.
    pub root: &'a RootMetadata,
    /// Open levels.
    pub levels: &'a LevelCache,
}

impl Session<'_> {
    /// Opens a level. Takes one request on first use.
    pub(crate) async fn level(&self, id: LevelId) -> Result<Arc<Level>, QueryError> {
        let known = self.levels.lock().get(&id).cloned();
        if let Some(level) = known {
            return finished(level);
        }
        let key = child(&Key::root(), &id.to_string())?;
        let nodes = self.fetch.nodes(core::slice::from_ref(&key)).await?;
        let node = nodes
            .into_iter()
            .next()
            .flatten()
            .ok_or_else(|| self.no_level(id))?;
        let metadata = LevelMetadata::parse(&key, id, node.attributes(), self.root)?;
        let level = Arc::new(Level::new(metadata));
        let level = Arc::clone(self.levels.lock().entry(id).or_insert(level));
        finished(level)
    }

    pub(crate) fn no_level(&self, level: LevelId) -> QueryError {
        let mut declared: Vec<LevelId> = self
            .root
            .datasets
            .iter()
            .map(|dataset| dataset.level)
            .filter(|other| *other != level)
            .collect();
        declared.sort_unstable();
        QueryError::NoLevel { level, declared }
    }

    /// Returns the number of coordinates of a level's chunk keys.
    pub(crate) fn arity(&self, level: &Level) -> usize {
        level.metadata.arity(self.root)
    }

    /// Returns the node that describes a part of a level, or `None` if the generation has no such
    /// part.
    pub(crate) fn described_at(
        &self,
        level: &Level,
        part: &ArrayRole<'_>,
    ) -> Result<Option<Key>, QueryError> {
        let key = self.layout.described_at(level.id(), part);
        key.map_err(|source| QueryError::Name {
            name: level.id().to_string(),
            source,
        })
    }

    /// Opens a chunked array of a level on first use. Returns `None` if it does not exist.
    pub(crate) async fn chunked_array(
        &self,
        level: &Level,
        part: &ArrayRole<'_>,
    ) -> Result<Option<Arc<ChunkedArray>>, QueryError> {
        let Some(key) = self.described_at(level, part)? else {
            return Ok(None);
        };
        let cached = lock(&level.arrays).get(&key).cloned();
        if let Some(array) = cached {
            return Ok(array);
        }
        let form = self.layout.chunk_form(part);
        let read = lock(&level.nodes).remove(&key);
        let array = ChunkedArray::open(self.fetch, &key, read, form, self.arity(level))
            .await?
            .map(Arc::new);
        let mut arrays = lock(&level.arrays);
        Ok(arrays.entry(key).or_insert(array).clone())
    }

    /// Returns the names of the children of a node, listed on first use.
    pub(crate) async fn children(
        &self,
        level: &Level,
        key: &Key,
    ) -> Result<Arc<Vec<String>>, QueryError> {
        let known = lock(&level.children).get(key).cloned();
        if let Some(names) = known {
            return Ok(names);
        }
        let names = Arc::new(self.fetch.children(key).await?);
        lock(&level.children).insert(key.clone(), Arc::clone(&names));
        Ok(names)
    }

    /// Caches names as the children of a node. Used for stores that cannot list, where each name
    /// was requested.
    pub(crate) fn remember_children(level: &Level, key: Key, names: Vec<String>) {
        lock(&level.children).insert(key, Arc::new(names));
    }

    /// Returns whether a level of a 0.9 store has links between chunks in the layout of older
    /// generations, as early 0.9 stores do. Opening a store does not look for them.
    ///
    /// Takes a listing on first use, or a request per delta if the store cannot list.
    ///
    /// # Errors
    ///
    /// Returns [`QueryError`] if the level or its children cannot be read.
    pub fn has_legacy_links(
        &self,
        level: LevelId,
        delta: Delta,
    ) -> BoxFuture<'_, Result<bool, QueryError>> {
        Box::pin(async move {
            if self.layout.cross_chunk != CrossChunkForm::Links {
                return Ok(false);
            }
            let level = self.level(level).await?;
            let node = Self::node_of(&level)?;
            let folder = child(&node, CROSS_CHUNK_LINKS)?;
            let family = child(&folder, &delta.to_string())?;
            let known = lock(&level.children).get(&family).cloned();
            if let Some(names) = known {
                return Ok(!names.is_empty());
            }
            match self.children(&level, &node).await {
                Ok(names) if names.iter().any(|name| name == CROSS_CHUNK_LINKS) => {
                    Ok(!self.children(&level, &family).await?.is_empty())
                }
                Ok(_) => Ok(false),
                Err(QueryError::Fetch(error)) if error.problem == FetchProblem::Unlistable => {
                    let nodes = self.fetch.nodes(core::slice::from_ref(&family)).await?;
                    let found = nodes.into_iter().any(|node| node.is_some());
                    if !found {
                        lock(&level.children).insert(family, Arc::default());
                    }
                    Ok(found)
                }
                Err(error) => Err(error),
            }
        })
    }

    /// Returns the key of a level's group.
    pub(crate) fn node_of(level: &Level) -> Result<Key, QueryError> {
        child(&Key::root(), &level.id().to_string())
    }
}

/// Refuses a level that is being built: its arrays do not list their chunks yet.
fn finished(level: Arc<Level>) -> Result<Arc<Level>, QueryError> {
    if level.metadata.is_unfinished {
        Err(QueryError::Unfinished(Session::node_of(&level)?))
    } else {
        Ok(level)
    }
}

#[cfg(test)]
mod tests;
