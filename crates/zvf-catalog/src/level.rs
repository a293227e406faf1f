//! Open levels and the nodes read of them.

use core::any::{Any, TypeId};
use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard},
};

use zvf_model::{
    key::Key,
    level::{LevelId, LevelMetadata},
    zarr::Node,
};

use crate::{chunked_array::ChunkedArray, sync::lock};

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

    pub(crate) fn lock(&self) -> MutexGuard<'_, BTreeMap<LevelId, Arc<Level>>> {
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
pub struct Level {
    /// Metadata of the level.
    pub metadata: LevelMetadata,
    /// Open arrays by their node; `None` for a node that does not exist.
    pub(crate) arrays: Mutex<HashMap<Key, Option<Arc<ChunkedArray>>>>,
    /// Names of the children of listed nodes.
    pub(crate) children: Mutex<HashMap<Key, Arc<Vec<String>>>>,
    /// Nodes that are read but not opened yet.
    pub(crate) nodes: Mutex<HashMap<Key, Node>>,
    /// State of other modules, one value per type.
    extensions: Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>,
}

impl Level {
    pub(crate) fn new(metadata: LevelMetadata) -> Self {
        Self {
            metadata,
            arrays: Mutex::default(),
            children: Mutex::default(),
            nodes: Mutex::default(),
            extensions: Mutex::default(),
        }
    }

    /// Returns the number of the level.
    pub fn id(&self) -> LevelId {
        self.metadata.level
    }

    /// Returns the state of type `T` kept with this level, creating it on first use.
    pub fn extension<T: Any + Default + Send + Sync>(&self) -> Arc<T> {
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
