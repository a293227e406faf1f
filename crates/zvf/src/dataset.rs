//! An open store.

use core::fmt;
use futures_util::future::BoxFuture;
use std::sync::Arc;

use zvf_model::{
    generation::{Detection, Evidence},
    key::Key,
    layout::Layout,
    level::{LevelId, LevelMetadata},
    metadata::Attributes,
    root::RootMetadata,
};
use zvf_query::{Levels, Session};
use zvf_store::{CellArray, CellReader, OpenOptions, Store};

use crate::{
    error::Error,
    nodes,
    opening::{self, Opened},
};

/// An open store: what it is and what it says.
///
/// What queries read besides vertices, attributes and links is kept for the next
/// ones: metadata, which fragments objects have, and which rows fragments. Open a
/// store anew to see what was changed in it since.
///
/// Cloning is cheap; clones share what was read.
#[derive(Clone)]
pub struct Dataset {
    address: String,
    cells: CellReader,
    claim: Evidence,
    root: Arc<RootMetadata>,
    detection: Detection,
    ids: Vec<LevelId>,
    is_surveyed: bool,
    levels: Arc<Levels<CellArray>>,
}

impl Dataset {
    /// Opens the store at `address`: a path, `file:`, `memory:`, a path to a
    /// `.zip` file, and with their features `http:`, `https:`, `s3:`, `gs:` and
    /// `az:`.
    ///
    /// A store of 0.9 takes three requests in two round trips however large it
    /// is, and no listing: the root, then the first level and its vertices, which
    /// queries need anyway. Older stores, and those that contradict what they say
    /// they are, take listings and one small read for each node that tells
    /// generations apart: five round trips.
    ///
    /// # Errors
    ///
    /// [`Error`] when there is no store, it is of a generation that is not read,
    /// or what it says cannot be understood; [`Error::Unlistable`] for stores of
    /// before 0.9 where nothing can be listed.
    pub async fn open(address: &str) -> Result<Self, Error> {
        Self::open_with(address, &OpenOptions::default()).await
    }

    /// The same with options for the store.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open).
    pub async fn open_with(address: &str, options: &OpenOptions) -> Result<Self, Error> {
        Self::from_store(address, options.open(address)?).await
    }

    /// The dataset in a store that is open already; `address` is for messages.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open).
    pub fn from_store(address: &str, store: Store) -> BoxFuture<'_, Result<Self, Error>> {
        Box::pin(async move {
            let (store, opened) = opening::open(&store, address).await?;
            let Opened {
                claim,
                root,
                detection,
                ids,
                is_surveyed,
                levels,
            } = opened;
            Ok(Self {
                address: address.to_owned(),
                cells: CellReader::new(store),
                claim,
                root: Arc::new(root),
                detection,
                ids,
                is_surveyed,
                levels: Arc::new(levels),
            })
        })
    }

    /// The address it was opened at.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// What the root says.
    pub fn root(&self) -> &RootMetadata {
        &self.root
    }

    /// Which generation it is, and what was decided against.
    pub fn detection(&self) -> &Detection {
        &self.detection
    }

    /// Where things are.
    pub fn layout(&self) -> &Layout {
        &self.detection.layout
    }

    /// Its levels, the finest first: those that the root names, or where it took
    /// listing to open the store, those that are there.
    pub fn levels(&self) -> &[LevelId] {
        &self.ids
    }

    /// What a level says; one request when it is asked for first.
    ///
    /// # Errors
    ///
    /// [`Error::AbsentLevel`] when it is not there, whoever names it; [`Error`]
    /// when it cannot be read.
    pub fn level(&self, id: LevelId) -> BoxFuture<'_, Result<LevelMetadata, Error>> {
        Box::pin(async move {
            if let Some(known) = self.levels.get(id) {
                return Ok(known);
            }
            let read = self.read_levels(&[id]).await?;
            read.into_iter().next().ok_or_else(|| self.absent(id))
        })
    }

    /// What queries run on. What they open stays open for the next ones.
    pub fn session(&self) -> Session<'_, CellReader> {
        Session {
            fetch: &self.cells,
            layout: self.layout(),
            root: &self.root,
            levels: &self.levels,
        }
    }

    /// Reads cells of its arrays.
    pub fn cells(&self) -> &CellReader {
        &self.cells
    }

    /// The store it is in.
    pub fn store(&self) -> &Store {
        self.cells.store()
    }

    /// The same with nothing taken on trust: levels listed, and the generation
    /// settled by all nodes that tell.
    pub(crate) async fn surveyed(&self) -> Result<Self, Error> {
        let mut surveyed = self.clone();
        if !self.is_surveyed {
            let guess = self.ids.first().copied().unwrap_or(LevelId::FULL);
            let survey = opening::survey(self.store(), &self.address, &self.claim, guess);
            let survey = survey.await?;
            surveyed.detection = survey.detection;
            surveyed.ids = survey.ids;
            surveyed.is_surveyed = true;
        }
        Ok(surveyed)
    }

    /// What all levels say; one round trip.
    pub(crate) async fn all_levels(&self) -> Result<Vec<LevelMetadata>, Error> {
        let ids = self.ids.iter().copied();
        let unread: Vec<LevelId> = ids.filter(|id| self.levels.get(*id).is_none()).collect();
        self.read_levels(&unread).await?;
        let ids = self.ids.iter();
        let levels = ids.map(|id| self.levels.get(*id).ok_or_else(|| self.absent(*id)));
        levels.collect()
    }

    async fn read_levels(&self, ids: &[LevelId]) -> Result<Vec<LevelMetadata>, Error> {
        let keys = ids
            .iter()
            .map(|id| nodes::child(&Key::root(), &id.to_string()));
        let keys = keys.collect::<Result<Vec<_>, _>>()?;
        let found = nodes::read(self.store(), &keys).await?;
        let mut levels = Vec::with_capacity(ids.len());
        for ((id, key), node) in ids.iter().zip(&keys).zip(found) {
            let attributes = match &node {
                Some(node) => node.attributes().clone(),
                // One that was seen is a group without attributes.
                None if self.is_surveyed && self.ids.contains(id) => Attributes::default(),
                None => return Err(self.absent(*id)),
            };
            let level = LevelMetadata::parse(key, *id, &attributes, &self.root)?;
            self.levels.insert(level.clone());
            levels.push(level);
        }
        Ok(levels)
    }

    fn absent(&self, level: LevelId) -> Error {
        let address = self.address.clone();
        Error::AbsentLevel { address, level }
    }
}

impl fmt::Debug for Dataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dataset")
            .field("address", &self.address)
            .field("generation", &self.detection.generation)
            .finish_non_exhaustive()
    }
}
