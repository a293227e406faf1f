//! Levels of a store, opened when they are first asked for.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, PoisonError},
};

use futures_util::future::BoxFuture;
use zvf_format::path::Delta;
use zvf_model::{
    fetch::{FetchProblem, Port},
    grid::ChunkCoord,
    key::Key,
    layout::{CrossChunkForm, Layout, Part},
    level::{LevelId, LevelMetadata},
    root::RootMetadata,
    zarr::Node,
};

use crate::{
    catalog::family::{Family, child},
    catalog::links::LinkSet,
    catalog::objects::{Ids, ObjectTable, Objects},
    catalog::tables::{GroupList, TableArray},
    error::QueryError,
};

/// Where links between chunks are up to 0.8.
const CROSS_CHUNK_LINKS: &str = "cross_chunk_links";

/// What was opened of a store, kept for the queries to come. Cheap when empty.
#[derive(Debug, Default)]
pub struct Levels {
    levels: Mutex<BTreeMap<LevelId, Arc<Level>>>,
}

impl Levels {
    /// Puts a level in that was read already.
    pub fn insert(&self, metadata: LevelMetadata) {
        let level = Arc::new(Level::new(metadata));
        self.lock().insert(level.metadata.level, level);
    }

    /// Puts a node in that was read already, for the level it belongs to to
    /// take instead of reading it. The level must have been put in before.
    pub fn insert_node(&self, level: LevelId, key: Key, node: Node) {
        if let Some(level) = self.lock().get(&level) {
            lock(&level.nodes).insert(key, node);
        }
    }

    /// What a level says, if it was opened.
    pub fn get(&self, id: LevelId) -> Option<LevelMetadata> {
        self.lock().get(&id).map(|level| level.metadata.clone())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<LevelId, Arc<Level>>> {
        self.levels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What was looked for, once it was; `None` inside is that there is none.
type Looked<T> = Option<Option<Arc<T>>>;

/// Links, and of which attributes; `None` is that there are none.
type LinksOf = (Vec<String>, Option<Arc<LinkSet>>);

/// A level and what was opened of it.
#[derive(Debug)]
pub(crate) struct Level {
    pub(crate) metadata: LevelMetadata,
    /// By the node that describes each; `None` is one that is not there.
    families: Mutex<HashMap<Key, Option<Arc<Family>>>>,
    children: Mutex<HashMap<Key, Arc<Vec<String>>>>,
    /// As `families`.
    pub(crate) tables: Mutex<HashMap<Key, Option<Arc<TableArray>>>>,
    pub(crate) groups: Mutex<Looked<GroupList>>,
    pub(crate) object_table: Mutex<Looked<ObjectTable>>,
    pub(crate) object_ids: Mutex<Option<Arc<Ids>>>,
    /// Read already, and not opened yet.
    nodes: Mutex<HashMap<Key, Node>>,
    pub(crate) objects: Mutex<Looked<Objects>>,
    /// All links in the level, with the attributes that were asked for last.
    pub(crate) links: Mutex<Option<LinksOf>>,
    /// Vertices of chunks that were counted.
    pub(crate) counted: Mutex<HashMap<ChunkCoord, u64>>,
}

impl Level {
    fn new(metadata: LevelMetadata) -> Self {
        Self {
            metadata,
            families: Mutex::default(),
            children: Mutex::default(),
            tables: Mutex::default(),
            groups: Mutex::default(),
            object_table: Mutex::default(),
            object_ids: Mutex::default(),
            nodes: Mutex::default(),
            objects: Mutex::default(),
            links: Mutex::default(),
            counted: Mutex::default(),
        }
    }

    pub(crate) fn id(&self) -> LevelId {
        self.metadata.level
    }

    /// Whether its writer said that it has this part. Parts may be there without,
    /// but what is said and not there is missing.
    pub(crate) fn declares(&self, part: &str) -> bool {
        self.metadata.arrays_present.iter().any(|name| name == part)
    }

    /// Whether the folder was listed, and has a child of this name.
    pub(crate) fn lists(&self, folder: &Key, name: &str) -> bool {
        let children = lock(&self.children);
        let names = children.get(folder);
        names.is_some_and(|names| names.iter().any(|other| other == name))
    }
}

/// A store to ask, as queries see it: metadata, and a way to read the rest.
#[derive(Clone, Copy, Debug)]
pub struct Session<'a> {
    /// Reads.
    pub fetch: Port<'a>,
    /// Where things are.
    pub layout: &'a Layout,
    /// What the root says.
    pub root: &'a RootMetadata,
    /// What was opened already.
    pub levels: &'a Levels,
}

impl Session<'_> {
    /// A level; one request when it is asked for first.
    pub(crate) async fn level(&self, id: LevelId) -> Result<Arc<Level>, QueryError> {
        let known = self.levels.lock().get(&id).cloned();
        if let Some(level) = known {
            return Ok(level);
        }
        let key = child(&Key::root(), &id.to_string())?;
        let nodes = self.fetch.nodes(core::slice::from_ref(&key)).await?;
        let node = nodes.into_iter().next().flatten();
        let node = node.ok_or_else(|| self.no_level(id))?;
        let metadata = LevelMetadata::parse(&key, id, node.attributes(), self.root)?;
        let level = Arc::new(Level::new(metadata));
        let mut levels = self.levels.lock();
        Ok(Arc::clone(levels.entry(id).or_insert(level)))
    }

    pub(crate) fn no_level(&self, level: LevelId) -> QueryError {
        let declared = self.root.datasets.iter().map(|dataset| dataset.level);
        let mut declared: Vec<LevelId> = declared.filter(|other| *other != level).collect();
        declared.sort_unstable();
        QueryError::NoLevel { level, declared }
    }

    /// How many numbers the chunk keys of a level have.
    pub(crate) fn arity(&self, level: &Level) -> usize {
        level.metadata.arity(self.root)
    }

    /// A part of a level, `None` when there is nothing of it; read when it is
    /// asked for first.
    pub(crate) async fn family(
        &self,
        level: &Level,
        part: &Part<'_>,
    ) -> Result<Option<Arc<Family>>, QueryError> {
        let key = self.layout.described_at(level.id(), part);
        let key = key.map_err(|source| QueryError::Name {
            name: level.id().to_string(),
            source,
        })?;
        let Some(key) = key else {
            return Ok(None);
        };
        let known = lock(&level.families).get(&key).cloned();
        if let Some(family) = known {
            return Ok(family);
        }
        let form = self.layout.chunk_form(part);
        let read = lock(&level.nodes).remove(&key);
        let family = Family::open(self.fetch, &key, read, form, self.arity(level)).await?;
        let family = family.map(Arc::new);
        let mut families = lock(&level.families);
        Ok(families.entry(key).or_insert(family).clone())
    }

    /// Names of the children of a node of a level, listed when they are asked
    /// for first.
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

    /// Takes names as those of the children of a node, where a store that cannot
    /// list was asked for each.
    pub(crate) fn remember_children(level: &Level, key: Key, names: Vec<String>) {
        lock(&level.children).insert(key, Arc::new(names));
    }

    /// Whether a level has links between chunks as generations before its own
    /// kept them, which early stores of 0.9 have: whoever opens a store decides
    /// what it is without looking for them. A listing when a level is first asked
    /// about; where the store cannot list, a request for each delta.
    ///
    /// # Errors
    ///
    /// [`QueryError`] when the level or its children cannot be read.
    pub fn has_old_links(
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

    /// The group of a level.
    pub(crate) fn node_of(level: &Level) -> Result<Key, QueryError> {
        child(&Key::root(), &level.id().to_string())
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
