//! An open store.

use core::fmt;

use zvf_model::{
    generation::{Detection, Evidence},
    key::Key,
    layout::Layout,
    level::{LevelId, LevelMetadata},
    root::RootMetadata,
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
        let Some(node) = nodes::read_one(&store, &Key::root()).await? else {
            return Err(Error::NoStore { address });
        };
        let names = nodes::children(&store, &Key::root()).await?.folders;
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
        let first = nodes::child(&Key::root(), &first.to_string())?;
        let detection = evidence::gather(&store, node.attributes(), &first)
            .await?
            .detect()?;
        let root = RootMetadata::parse(&Key::root(), node.attributes())?;
        let levels = levels(&store, &root, &ids).await?;
        Ok(Self {
            address,
            cells: CellReader::new(store),
            root,
            detection,
            levels,
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

    /// The store it is in.
    pub fn store(&self) -> &Store {
        self.cells.store()
    }
}

async fn levels(
    store: &Store,
    root: &RootMetadata,
    ids: &[LevelId],
) -> Result<Vec<LevelMetadata>, Error> {
    let mut keys = Vec::with_capacity(ids.len());
    for id in ids {
        keys.push(nodes::child(&Key::root(), &id.to_string())?);
    }
    let nodes = nodes::read(store, &keys).await?;
    let mut levels = Vec::with_capacity(ids.len());
    for ((id, key), node) in ids.iter().zip(&keys).zip(nodes) {
        // A level without a zarr.json is a group without attributes.
        let attributes = node.map(|node| node.attributes().clone());
        let attributes = attributes.unwrap_or_default();
        levels.push(LevelMetadata::parse(key, *id, &attributes, root)?);
    }
    Ok(levels)
}

impl fmt::Debug for Dataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dataset")
            .field("address", &self.address)
            .field("generation", &self.detection.generation)
            .finish_non_exhaustive()
    }
}
