//! Opens levels of a store, and their arrays, on first use.

use std::sync::Arc;

use zvf_format::path::Delta;
use zvf_model::{
    attribute_name::stored_name,
    fetch::{BoxFuture, FetchProblem, Port},
    key::Key,
    layout::{ArrayRole, CrossChunkForm, Layout},
    level::{LevelId, LevelMetadata},
    root::RootMetadata,
};

use crate::{
    chunked_array::{ChunkedArray, child},
    error::CatalogError,
    level::{Level, LevelCache},
    sync::lock,
};

/// Folder of links between chunks up to 0.8.
const CROSS_CHUNK_LINKS: &str = "cross_chunk_links";

/// A store as its readers see it: its metadata, and a port to read everything else.
#[derive(Clone, Copy, Debug)]
pub struct Catalog<'a> {
    /// Port that reads nodes and cells.
    pub fetch: Port<'a>,
    /// Paths of the store's generation.
    pub layout: &'a Layout,
    /// Metadata of the root.
    pub root: &'a RootMetadata,
    /// Open levels.
    pub levels: &'a LevelCache,
}

impl Catalog<'_> {
    /// Opens a level. Takes one request on first use.
    ///
    /// # Errors
    ///
    /// Returns [`CatalogError`] if the level does not exist, is being built, or has invalid metadata.
    pub fn level(&self, id: LevelId) -> BoxFuture<'_, Result<Arc<Level>, CatalogError>> {
        Box::pin(async move {
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
        })
    }

    /// Returns the error for a level that does not exist.
    pub fn no_level(&self, level: LevelId) -> CatalogError {
        let mut declared: Vec<LevelId> = self
            .root
            .datasets
            .iter()
            .map(|dataset| dataset.level)
            .filter(|other| *other != level)
            .collect();
        declared.sort_unstable();
        CatalogError::NoLevel { level, declared }
    }

    /// Returns the number of coordinates of a level's chunk keys.
    pub fn arity(&self, level: &Level) -> usize {
        level.metadata.arity(self.root)
    }

    /// Returns the node that describes a part of a level, or `None` if the generation has no such
    /// part.
    pub(crate) fn described_at(
        &self,
        level: &Level,
        part: &ArrayRole<'_>,
    ) -> Result<Option<Key>, CatalogError> {
        let error = |source| CatalogError::Name {
            name: part
                .attribute()
                .map_or_else(|| level.id().to_string(), str::to_owned),
            source,
        };
        let key = self.layout.described_at(level.id(), part).map_err(error)?;
        if part
            .attribute()
            .is_none_or(|name| stored_name(name) == name)
            || key.as_ref().is_some_and(|key| lists_attribute(level, key))
        {
            return Ok(key);
        }
        let foreign = self.layout.foreign_attribute_at(level.id(), part).ok();
        let is_listed = |key: &Key| lists_attribute(level, key);
        Ok(foreign.flatten().filter(is_listed).or(key))
    }

    /// Opens a chunked array of a level on first use. Returns `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// Returns [`CatalogError`] if the array is damaged or cannot be read.
    pub fn chunked_array<'f>(
        &'f self,
        level: &'f Level,
        part: &'f ArrayRole<'f>,
    ) -> BoxFuture<'f, Result<Option<Arc<ChunkedArray>>, CatalogError>> {
        Box::pin(async move {
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
        })
    }

    /// Returns the names of the children of a node, listed on first use.
    pub(crate) async fn children(
        &self,
        level: &Level,
        key: &Key,
    ) -> Result<Arc<Vec<String>>, CatalogError> {
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
    /// Returns [`CatalogError`] if the level or its children cannot be read.
    pub fn has_legacy_links(
        &self,
        level: LevelId,
        delta: Delta,
    ) -> BoxFuture<'_, Result<bool, CatalogError>> {
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
                Err(CatalogError::Fetch(error)) if error.problem == FetchProblem::Unlistable => {
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
    ///
    /// # Errors
    ///
    /// Returns [`CatalogError::Name`] if the number of the level cannot be part of a key.
    pub fn node_of(level: &Level) -> Result<Key, CatalogError> {
        child(&Key::root(), &level.id().to_string())
    }
}

/// Returns whether the folder of an attribute has been listed and has its node, or one that contains it.
fn lists_attribute(level: &Level, node: &Key) -> bool {
    let mut segments = node.segments();
    let path = [segments.next(), segments.next(), segments.next()];
    let [Some(of_level), Some(folder), Some(name)] = path else {
        return false;
    };
    let folder = Key::root().join_all(&[of_level, folder]);
    folder.is_ok_and(|folder| level.lists(&folder, name))
}

/// Refuses a level that is being built: its arrays do not list their chunks yet.
fn finished(level: Arc<Level>) -> Result<Arc<Level>, CatalogError> {
    if level.metadata.is_unfinished {
        Err(CatalogError::Unfinished(Catalog::node_of(&level)?))
    } else {
        Ok(level)
    }
}

#[cfg(test)]
mod tests;
