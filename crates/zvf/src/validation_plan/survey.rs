//! The survey of a store that is validated by tasks.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use serde_json::{Value, json};
use zvf_dataset::{Failure, nodes};
use zvf_model::{
    base64,
    fetch::{AnyArray, CellOptions, CellRequest, Fetch, FetchError, FetchProblem, Fetched, Port},
    json::member,
    key::Key,
    zarr::{Array, Node},
};
use zvf_store::{CellReader, ListedFile, Read, Store};
use zvf_validate::{Depth, ValidateOptions, validate};

/// The survey of a store by the plan, which saves tasks from listing it and reading its nodes.
#[derive(Debug, Default)]
pub(super) struct StoreSurvey {
    /// The root's `zarr.json`.
    root: Option<String>,
    /// All objects and their sizes. `None` if the store cannot be listed.
    files: Option<BTreeMap<String, u64>>,
    /// The `zarr.json` of nodes by their keys; `None` for a node without one.
    nodes: BTreeMap<String, Option<String>>,
    /// Entries of the inventory of the objects that were read.
    pub(super) kept: Vec<Bytes>,
}

impl StoreSurvey {
    /// Lists a store, whose root has these bytes, and reads its nodes.
    pub(super) async fn of(store: &Store, root: Option<&Bytes>) -> Self {
        let survey = Self {
            root: root.map(text_of),
            ..Self::default()
        };
        let cells = SurveyedCells::new(store, survey);
        let options = ValidateOptions::default().depth(Depth::Structure);
        // The findings are reported by the commit, which reads the same nodes.
        drop(validate(Port::new(&cells), &options).await);
        let survey = cells.survey.into_inner();
        Self {
            kept: store.kept_entries(),
            ..survey.unwrap_or_else(PoisonError::into_inner)
        }
    }

    /// Returns whether the root had these bytes.
    pub(super) fn has_root(&self, root: Option<&Bytes>) -> bool {
        self.root == root.map(text_of)
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "root": self.root,
            "files": self.files,
            "nodes": self.nodes,
            "inventory": encoded(&self.kept),
        })
    }

    pub(super) fn from_json(json: &Value) -> Option<Self> {
        Some(Self {
            root: member(json, "root")?,
            files: member(json, "files")?,
            nodes: member(json, "nodes")?,
            kept: decoded(json)?,
        })
    }

    /// Returns the files of sharded arrays, in the order of their names.
    pub(super) fn shards(&self) -> Vec<ListedFile> {
        let is_sharded = |key: &str, node: &Option<String>| {
            let file = Key::parse(key).ok()?;
            let node = Node::parse(&file, node.as_ref()?.as_bytes()).ok()?;
            node.as_array()?.sharding().map(|_| ())
        };
        let mut shards = Vec::new();
        for (key, _) in self
            .nodes
            .iter()
            .filter(|(key, node)| is_sharded(key, node).is_some())
        {
            let folder = format!("{key}/");
            let later = self
                .files
                .iter()
                .flat_map(|files| files.range(folder.clone()..));
            let own = later
                .take_while(|(name, _)| name.starts_with(&folder))
                .filter(|(name, _)| !name.ends_with("/zarr.json"));
            shards.extend(own.map(|(name, size)| ListedFile {
                name: name.clone(),
                size: *size,
            }));
        }
        shards.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        shards
    }
}

/// Encodes entries of an inventory.
pub(super) fn encoded(entries: &[Bytes]) -> Vec<String> {
    entries.iter().map(|bytes| base64::encode(bytes)).collect()
}

/// Decodes the entries in the member `inventory`.
pub(super) fn decoded(json: &Value) -> Option<Vec<Bytes>> {
    let list: Vec<&str> = member(json, "inventory")?;
    let decode = |text: &str| Some(base64::decode(text.as_bytes()).ok()?.into());
    list.into_iter().map(decode).collect()
}

/// Returns bytes as text. Bytes that are not text are not JSON either, so that what they are does not
/// matter.
fn text_of(bytes: &Bytes) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A port that answers from a survey, and adds to it what it does not have.
pub(super) struct SurveyedCells {
    cells: CellReader,
    survey: Mutex<StoreSurvey>,
}

impl SurveyedCells {
    pub(super) fn new(store: &Store, survey: StoreSurvey) -> Self {
        Self {
            cells: CellReader::new(store.clone()),
            survey: Mutex::new(survey),
        }
    }

    pub(super) fn survey(&self) -> MutexGuard<'_, StoreSurvey> {
        self.survey.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the nodes that the survey does not have.
    async fn add_nodes(&self, keys: &[Key]) -> Result<(), Failure> {
        let unknown: Vec<Key> = {
            let survey = self.survey();
            let unknown = keys
                .iter()
                .filter(|key| !survey.nodes.contains_key(key.as_str()));
            unknown.cloned().collect()
        };
        if unknown.is_empty() {
            return Ok(());
        }
        let reads: Vec<Read> = unknown
            .iter()
            .map(|key| Ok(Read::full(nodes::metadata(key)?)))
            .collect::<Result<_, Failure>>()?;
        let read = self.cells.store().read(&reads).await?;
        let mut survey = self.survey();
        for (key, bytes) in unknown.iter().zip(read) {
            let text = bytes.map(|bytes| String::from_utf8(bytes.into()));
            // A file that is not text is read again by each process, which reports it.
            if let Ok(text) = text.transpose() {
                survey.nodes.insert(key.as_str().to_owned(), text);
            }
        }
        Ok(())
    }

    /// Parses nodes of the survey; `None` if it does not have them all.
    fn known_nodes(&self, keys: &[Key]) -> Option<Result<Vec<Option<Node>>, FetchError>> {
        let survey = self.survey();
        let texts: Vec<&Option<String>> = keys
            .iter()
            .map(|key| survey.nodes.get(key.as_str()))
            .collect::<Option<_>>()?;
        let parsed = keys.iter().zip(texts).map(|(key, text)| {
            let Some(text) = text else {
                return Ok(None);
            };
            let file = key.metadata().unwrap_or_else(|_| key.clone());
            let node = Node::parse(&file, text.as_bytes()).map_err(|source| FetchError {
                key: file,
                problem: FetchProblem::Damaged,
                source: Box::new(source),
            });
            node.map(Some)
        });
        Some(parsed.collect())
    }
}

impl Fetch for SurveyedCells {
    fn array(&self, node: &Key, array: Arc<Array>) -> Result<AnyArray, FetchError> {
        self.cells.array(node, array)
    }

    async fn nodes(&self, keys: &[Key]) -> Result<Vec<Option<Node>>, FetchError> {
        let known = match self.add_nodes(keys).await {
            Ok(()) => self.known_nodes(keys),
            Err(_) => None,
        };
        match known {
            Some(nodes) => nodes,
            // The reader returns the error.
            None => self.cells.nodes(keys).await,
        }
    }

    async fn cells(
        &self,
        wanted: &[CellRequest],
        options: CellOptions,
    ) -> Vec<Result<Option<Fetched>, FetchError>> {
        self.cells.cells(wanted, options).await
    }

    async fn children(&self, key: &Key) -> Result<Vec<String>, FetchError> {
        self.cells.children(key).await
    }

    async fn sizes(&self, keys: &[Key]) -> Result<Vec<Option<u64>>, FetchError> {
        self.cells.sizes(keys).await
    }

    async fn files(&self, prefix: &Key) -> Result<Vec<(String, u64)>, FetchError> {
        if !prefix.is_root() {
            return self.cells.files(prefix).await;
        }
        let known = self.survey().files.clone();
        if let Some(files) = known {
            return Ok(files.into_iter().collect());
        }
        let files = self.cells.files(prefix).await?;
        self.survey().files = Some(files.iter().cloned().collect());
        Ok(files)
    }

    fn confirm_now(&self) -> Option<Result<(), FetchError>> {
        self.cells.confirm_now()
    }

    async fn confirm(&self) -> Result<(), FetchError> {
        self.cells.confirm().await
    }

    fn budget(&self) -> u64 {
        self.cells.budget()
    }

    fn at_once(&self) -> u64 {
        self.cells.at_once()
    }
}
