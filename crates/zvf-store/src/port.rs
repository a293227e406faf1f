//! The port of plans, answered by a [`CellReader`].

use core::error::Error;
use std::sync::Arc;

use futures_util::future::try_join_all;
use serde_json::Value;
use zvf_model::{
    fetch::{CellOf, CellSource, Fetch, FetchError, FetchProblem, Fetched, Port, Wanted},
    key::Key,
    node_copy::Known,
    zarr::{Array, Node},
};

use crate::{
    array::CellArray,
    cell::{CellError, CellReader, HEAVY, Target},
    list::ListError,
    off_thread::off_thread,
    range::Read,
};

/// Bytes of files that are read at once: about what the cache of a processor holds.
const NEAR_AT_ONCE: u64 = 8 << 20;
/// More children of a node than any known store has.
const MOST_CHILDREN: usize = 1 << 24;
/// More objects than any known store has.
const MOST_FILES: usize = 1 << 26;

impl CellSource for CellArray {
    fn node(&self) -> &Key {
        self.node()
    }

    fn metadata(&self) -> &Arc<Array> {
        self.metadata()
    }

    fn is_plain(&self) -> bool {
        self.is_plain()
    }
}

impl Fetch for CellReader {
    type Array = CellArray;

    fn array(&self, node: &Key, array: Arc<Array>) -> Result<CellArray, FetchError> {
        let array = CellArray::new(node.clone(), array);
        array.map_err(|source| error(node, FetchProblem::Damaged, source))
    }

    async fn nodes(&self, keys: &[Key]) -> Result<Vec<Option<Node>>, FetchError> {
        let mut known = Vec::with_capacity(keys.len());
        let mut reads = Vec::new();
        for key in keys {
            let file = key.metadata();
            let file = file.map_err(|source| error(key, FetchProblem::Damaged, source))?;
            known.push(match self.store().copied_node(key) {
                Some(Known::Node(json)) => Some(Some(node(&file, json)?)),
                Some(_) => Some(None),
                None => {
                    reads.push(Read::full(file));
                    None
                }
            });
        }
        let mut read = self.read_nodes(reads).await?.into_iter();
        let nodes = known.into_iter();
        // One was read for each that is not known.
        let nodes = nodes.map(|known| known.unwrap_or_else(|| read.next().flatten()));
        Ok(nodes.collect())
    }

    async fn cells(
        &self,
        wanted: &[Wanted<CellArray>],
    ) -> Vec<Result<Option<Fetched>, FetchError>> {
        self.answers(wanted, true).await
    }

    async fn cells_once(
        &self,
        wanted: &[Wanted<CellArray>],
    ) -> Vec<Result<Option<Fetched>, FetchError>> {
        self.answers(wanted, false).await
    }

    async fn children(&self, key: &Key) -> Result<Vec<String>, FetchError> {
        if let Some(known) = self.store().copied_children(key) {
            return Ok(known);
        }
        let listing = self.store().list(key, MOST_CHILDREN).await;
        Ok(listing.map_err(list_error)?.folders)
    }

    async fn sizes(&self, keys: &[Key]) -> Result<Vec<Option<u64>>, FetchError> {
        let sizes = self.store().sizes(keys, MOST_CHILDREN).await;
        sizes.map_err(list_error)
    }

    async fn files(&self, prefix: &Key) -> Result<Vec<(String, u64)>, FetchError> {
        let files = self.store().list_all(prefix, MOST_FILES).await;
        let files = files.map_err(list_error)?.into_iter();
        let whole = |name: String| match prefix.is_root() {
            true => name,
            false => format!("{prefix}/{name}", prefix = prefix.as_str()),
        };
        Ok(files.map(|file| (whole(file.name), file.size)).collect())
    }

    fn budget(&self) -> u64 {
        self.store().budget()
    }

    fn at_once(&self) -> u64 {
        let most = self.store().budget() / 4;
        match self.store().folder() {
            Some(_) => most.min(NEAR_AT_ONCE),
            None => most,
        }
    }
}

impl CellReader {
    async fn answers(
        &self,
        wanted: &[Wanted<CellArray>],
        keeps: bool,
    ) -> Vec<Result<Option<Fetched>, FetchError>> {
        let targets: Vec<_> = wanted
            .iter()
            .map(|wanted| {
                let target = match &wanted.cell {
                    CellOf::Element(array, index) => Target::Element(array, index),
                    CellOf::Child(key) => Target::Child(key),
                };
                (target, wanted.part.clone())
            })
            .collect();
        let answers = self.fetch_each(&targets, keeps).await;
        let answers = answers.into_iter().zip(wanted).map(|(answer, wanted)| {
            answer.map_err(|source| match &wanted.cell {
                CellOf::Element(array, _) => cell_error(array.node(), source),
                CellOf::Child(key) => cell_error(key, source),
            })
        });
        answers.collect()
    }

    /// This reader as plans take it.
    // Inlined, it would have all it reads with compiled in the crate of who calls it.
    #[inline(never)]
    pub fn port(&self) -> Port<'_> {
        Port::new(self)
    }

    /// The nodes at these places.
    async fn read_nodes(&self, reads: Vec<Read>) -> Result<Vec<Option<Node>>, FetchError> {
        let answers = match reads.is_empty() {
            true => Vec::new(),
            false => self.store().read(&reads).await.map_err(|source| {
                let key = source.key().clone();
                cell_error(&key, source.into())
            })?,
        };
        let nodes = reads.into_iter().zip(answers).map(|(read, bytes)| async {
            let Some(bytes) = bytes else {
                return Ok(None);
            };
            let key = read.key.clone();
            // Metadata that list chunks can be as long as cells.
            let heavy = bytes.len() >= HEAVY;
            let node = off_thread(heavy, move || Node::parse(&read.key, &bytes)).await;
            let node = node.map_err(|source| error(&key, FetchProblem::Unavailable, source))?;
            let node = node.map_err(|source| error(&key, FetchProblem::Damaged, source))?;
            Ok(Some(node))
        });
        try_join_all(nodes).await
    }
}

/// A node that was copied.
fn node(file: &Key, json: Value) -> Result<Node, FetchError> {
    let node = Node::from_json(file, json);
    node.map_err(|source| error(file, FetchProblem::Damaged, source))
}

fn list_error(source: ListError) -> FetchError {
    let (key, problem) = match &source {
        ListError::TooMany { prefix, .. } => (prefix, FetchProblem::OverBudget),
        ListError::Unlistable { prefix, .. } => (prefix, FetchProblem::Unlistable),
        ListError::Unauthenticated { prefix, .. }
        | ListError::Throttled { prefix, .. }
        | ListError::Unavailable { prefix, .. }
        | ListError::Io { prefix, .. } => (prefix, FetchProblem::Unavailable),
    };
    error(&key.clone(), problem, source)
}

fn cell_error(key: &Key, source: CellError) -> FetchError {
    let problem = if source.is_over_budget() {
        FetchProblem::OverBudget
    } else if source.is_damage() {
        FetchProblem::Damaged
    } else {
        FetchProblem::Unavailable
    };
    error(key, problem, source)
}

fn error(
    key: &Key,
    problem: FetchProblem,
    source: impl Error + Send + Sync + 'static,
) -> FetchError {
    FetchError {
        key: key.clone(),
        problem,
        source: Box::new(source),
    }
}
