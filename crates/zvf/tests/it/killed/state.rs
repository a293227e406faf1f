//! The state of a store as readers see it.

use std::collections::BTreeMap;

use serde_json::Value;
use zvf::{Dataset, Error, StateError, Store, StoreInfo};
use zvf_model::key::Key;
use zvf_store::Read;

use crate::written::content::Content;

/// The content of a store.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct State {
    pub(super) content: Content,
    /// Counted from the stored data.
    pub(super) info: StoreInfo,
    /// Every object except those of transactions, byte for byte; the root without its record of
    /// transactions.
    pub(super) files: BTreeMap<String, Vec<u8>>,
}

impl State {
    /// Reads a store without changing it; `None` if there is no store.
    pub(crate) async fn read(address: &str) -> Result<Option<Self>, Error> {
        let dataset = match Dataset::open(address).await {
            Err(error)
                if let Some(StateError::NoStore { .. } | StateError::Unfinished { .. }) =
                    error.cause() =>
            {
                return Ok(None);
            }
            dataset => dataset?,
        };
        let info = dataset.info().await?;
        let content = Content::read(&dataset).await;
        let advertised = info.levels.iter().map(|level| level.vertices);
        assert!(
            advertised.eq([Some(content.vertices.len() as u64)]),
            "{info:?}"
        );
        let store = Store::open(address)?;
        let files = Self::files(&store).await?;
        Ok(Some(Self {
            content,
            info,
            files,
        }))
    }

    /// Returns the objects that readers see; empty if there is no store.
    pub(super) async fn files(store: &Store) -> Result<BTreeMap<String, Vec<u8>>, Error> {
        let root = store
            .read_one(Read::full(Key::parse("zarr.json").unwrap()))
            .await?;
        let Some(root) = root else {
            return Ok(BTreeMap::new());
        };
        let store = store.committed_view(&root).await?;
        let names: Vec<String> = store
            .list_all(&Key::root(), usize::MAX)
            .await?
            .into_iter()
            .map(|file| file.name)
            .collect();
        let reads = names
            .iter()
            .map(|name| Read::full(Key::parse(name).unwrap()));
        let found = store.read(&reads.collect::<Vec<_>>()).await?;
        let mut files: BTreeMap<String, Vec<u8>> = BTreeMap::new();
        for (name, bytes) in names.into_iter().zip(found) {
            files.insert(name, bytes.unwrap().to_vec());
        }
        let root = files.get_mut("zarr.json").unwrap();
        let mut json: Value = serde_json::from_slice(root).unwrap();
        json["attributes"].as_object_mut().unwrap().remove("zvf");
        *root = serde_json::to_vec_pretty(&json).unwrap();
        Ok(files)
    }

    /// Returns whether a committed transaction is unfinished.
    pub(super) async fn is_pending(address: &str) -> bool {
        let Ok(store) = Store::open(address) else {
            return false;
        };
        let root = Read::full(Key::parse("zarr.json").unwrap());
        let Some(root) = store.read_one(root).await.unwrap() else {
            return false;
        };
        let json: Value = serde_json::from_slice(&root).unwrap();
        json["attributes"]["zvf"]["pending"] == true
    }

    /// Summarizes the differences from another state.
    pub(super) fn differs(&self, other: &Self) -> String {
        let mut names: Vec<&String> = self
            .files
            .keys()
            .chain(other.files.keys())
            .filter(|name| self.files.get(*name) != other.files.get(*name))
            .collect();
        names.sort();
        names.dedup();
        let (mine, others) = (&self.content, &other.content);
        format!(
            "objects {names:?}; content {}, {} and {} vertices",
            if mine == others {
                "the same"
            } else {
                "another"
            },
            mine.vertices.len(),
            others.vertices.len(),
        )
    }
}
