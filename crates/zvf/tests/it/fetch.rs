//! A store behind the port that plans read through.

use std::sync::Arc;

use zvf::Dataset;
use zvf_model::{
    fetch::{CellOf, CellSource, Fetch, FetchError, FetchProblem, Fetched, Wanted},
    key::Key,
    zarr::{Array, Node},
};
use zvf_store::{Cell, CellArray, Read};

/// Answers from a store, one thing at a time.
pub(crate) struct FromStore {
    pub(crate) dataset: Dataset,
    /// Whether it lists.
    pub(crate) lists: bool,
}

#[derive(Clone)]
pub(crate) struct ArrayOf(CellArray);

impl CellSource for ArrayOf {
    fn node(&self) -> &Key {
        self.0.node()
    }

    fn metadata(&self) -> &Arc<Array> {
        self.0.metadata()
    }

    fn is_plain(&self) -> bool {
        self.0.is_plain()
    }
}

fn failed(
    key: &Key,
    problem: FetchProblem,
    source: impl Into<Box<dyn core::error::Error + Send + Sync>>,
) -> FetchError {
    FetchError {
        key: key.clone(),
        problem,
        source: source.into(),
    }
}

impl FromStore {
    async fn node(&self, key: &Key) -> Result<Option<Node>, FetchError> {
        let file = key.metadata().unwrap();
        let read = self
            .dataset
            .store()
            .read_one(Read::full(file.clone()))
            .await;
        let bytes = read.map_err(|error| failed(key, FetchProblem::Unavailable, error))?;
        let node = bytes.map(|bytes| Node::parse(&file, &bytes)).transpose();
        node.map_err(|error| failed(key, FetchProblem::Damaged, error))
    }

    async fn cell(&self, wanted: &Wanted<ArrayOf>) -> Result<Option<Fetched>, FetchError> {
        let (array, index) = match &wanted.cell {
            CellOf::Element(array, index) => (array.clone(), index.clone()),
            CellOf::Child(key) => match self.node(key).await? {
                Some(Node::Array(array)) => (self.array(key, Arc::new(array))?, vec![0]),
                _ => return Ok(None),
            },
        };
        if array.metadata().elements() == 0 {
            return Ok(Some(Fetched {
                bytes: bytes::Bytes::new(),
                size: 0,
            }));
        }
        let cell = Cell {
            array: &array.0,
            index: &index,
            part: None,
        };
        let read = self.dataset.cells().read_one(cell).await;
        let bytes = read.map_err(|error| failed(array.node(), FetchProblem::Damaged, error))?;
        let Some(bytes) = bytes else {
            return Ok(None);
        };
        let size = u64::try_from(bytes.len()).unwrap();
        let bytes = match &wanted.part {
            None => bytes,
            Some(part) => {
                let (start, end): (usize, usize) =
                    (part.start.try_into().unwrap(), part.end.try_into().unwrap());
                if end > bytes.len() {
                    return Err(failed(array.node(), FetchProblem::Damaged, "too short"));
                }
                bytes.slice(start..end)
            }
        };
        Ok(Some(Fetched { bytes, size }))
    }
}

impl Fetch for FromStore {
    type Array = ArrayOf;

    fn array(&self, node: &Key, array: Arc<Array>) -> Result<ArrayOf, FetchError> {
        let cells = CellArray::new(node.clone(), array);
        let cells = cells.map_err(|error| failed(node, FetchProblem::Damaged, error))?;
        Ok(ArrayOf(cells))
    }

    async fn nodes(&self, keys: &[Key]) -> Result<Vec<Option<Node>>, FetchError> {
        let mut nodes = Vec::new();
        for key in keys {
            nodes.push(self.node(key).await?);
        }
        Ok(nodes)
    }

    async fn cells(&self, wanted: &[Wanted<ArrayOf>]) -> Vec<Result<Option<Fetched>, FetchError>> {
        let mut cells = Vec::new();
        for wanted in wanted {
            cells.push(self.cell(wanted).await);
        }
        cells
    }

    async fn children(&self, key: &Key) -> Result<Vec<String>, FetchError> {
        if !self.lists {
            return Err(failed(
                key,
                FetchProblem::Unlistable,
                "a store without listing",
            ));
        }
        let listing = self.dataset.store().list(key, 1 << 20).await;
        let listing = listing.map_err(|error| failed(key, FetchProblem::Unavailable, error))?;
        let mut names = listing.folders;
        names.sort_unstable();
        Ok(names)
    }

    fn budget(&self) -> u64 {
        u64::MAX
    }
}
