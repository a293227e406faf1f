//! An open store.

use core::fmt;

use futures_util::future::try_join;
use zvf_model::{
    generation::{Detection, Evidence},
    key::Key,
    layout::Layout,
    level::{LevelId, LevelMetadata},
    root::RootMetadata,
    zarr::Node,
};
use zvf_store::{CellReader, OpenOptions, Store};

use crate::{error::Error, evidence, nodes};

/// An open store: what it is and what it says.
#[derive(Clone)]
pub struct Dataset {
    address: String,
    cells: CellReader,
    root: RootMetadata,
    detection: Detection,
    levels: Vec<LevelMetadata>,
    opened: std::sync::Arc<zvf_query::Levels<zvf_store::CellArray>>,
}

impl Dataset {
    /// Opens the store at `address`: a path, `file:`, `memory:`, a path to a
    /// `.zip` file, and with their features `http:`, `https:`, `s3:`, `gs:` and
    /// `az:`.
    ///
    /// Reads the root and its children, the nodes that tell generations apart,
    /// and the metadata of all levels: five dependent round trips however large
    /// the store is.
    ///
    /// # Errors
    ///
    /// [`Error`] when there is no store, it is of a generation that is not read,
    /// or what it says cannot be understood.
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
    pub async fn from_store(address: &str, store: Store) -> Result<Self, Error> {
        let address = address.to_owned();
        let root = Key::root();
        let (node, listing) = try_join(
            nodes::read_one(&store, &root),
            nodes::children(&store, &root),
        )
        .await?;
        let Some(node) = node else {
            return Err(Error::NoStore { address });
        };
        let names = listing.folders;
        let mut ids: Vec<LevelId> = names
            .iter()
            .filter_map(|name| LevelId::parse(name))
            .collect();
        ids.sort_unstable();
        let Some(first) = ids.first() else {
            // What is too old has no level named so, and says what it is.
            Evidence::of_root(node.attributes()).detect()?;
            return Err(Error::NoLevel { address });
        };
        let first = nodes::child(&root, &first.to_string())?;
        let (evidence, nodes) = try_join(
            evidence::gather(&store, node.attributes(), &first),
            level_nodes(&store, &ids),
        )
        .await?;
        // First whether it is a store to be read, then what it says.
        let detection = evidence.detect()?;
        let root = RootMetadata::parse(&root, node.attributes())?;
        let mut levels = Vec::with_capacity(ids.len());
        for (id, (key, node)) in ids.into_iter().zip(nodes) {
            // A level without a zarr.json is a group without attributes.
            let attributes = node.map(|node| node.attributes().clone());
            let attributes = attributes.unwrap_or_default();
            levels.push(LevelMetadata::parse(&key, id, &attributes, &root)?);
        }
        Ok(Self {
            address,
            cells: CellReader::new(store),
            root,
            detection,
            levels,
            opened: std::sync::Arc::default(),
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

    /// What the levels say, the finest first.
    pub fn levels(&self) -> &[LevelMetadata] {
        &self.levels
    }

    /// Reads cells of its arrays.
    pub fn cells(&self) -> &CellReader {
        &self.cells
    }

    /// What queries run on.
    pub fn session(&self) -> zvf_query::Session<'_, CellReader> {
        zvf_query::Session {
            fetch: &self.cells,
            layout: &self.detection.layout,
            root: &self.root,
            levels: &self.opened,
        }
    }

    /// The store it is in.
    pub fn store(&self) -> &Store {
        self.cells.store()
    }
}

async fn level_nodes(store: &Store, ids: &[LevelId]) -> Result<Vec<(Key, Option<Node>)>, Error> {
    let keys = ids
        .iter()
        .map(|id| nodes::child(&Key::root(), &id.to_string()));
    let keys = keys.collect::<Result<Vec<_>, _>>()?;
    let nodes = nodes::read(store, &keys).await?;
    Ok(keys.into_iter().zip(nodes).collect())
}

impl fmt::Debug for Dataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dataset")
            .field("address", &self.address)
            .field("generation", &self.detection.generation)
            .finish_non_exhaustive()
    }
}
