//! The contract of the port of queries.

use std::sync::Arc;

use bytes::Bytes;
use zvf_model::{
    fetch::{
        AnyArray, CachedFetch, CellOptions, CellRequest, Fetch, FetchError, FetchProblem, Fetched,
        contract,
    },
    key::Key,
    zarr::{Array, Node},
};
use zvf_store::{CellReader, Store};

use crate::support::{block_on, key};

#[test]
fn cell_readers_fulfil_the_contract() {
    let store = Store::from_memory(contract::objects()).unwrap();
    let report = block_on(contract::verify(&CellReader::new(store.clone()))).unwrap();
    assert!(report.lists && report.lists_files);
    block_on(contract::verify(
        &CellReader::new(store).with_cache(1 << 20),
    ))
    .unwrap();

    let folder = tempfile::tempdir().unwrap();
    for (key, bytes) in contract::objects() {
        let path = folder.path().join(key);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    let store = Store::open(folder.path().to_str().unwrap()).unwrap();
    block_on(contract::verify(&CellReader::new(store))).unwrap();
}

#[test]
fn caches_in_front_of_a_port_fulfil_the_contract() {
    for bytes in [0, 300, 1 << 20] {
        let store = Store::from_memory(contract::objects()).unwrap();
        let cached = CachedFetch::new(CellReader::new(store)).with_cache(bytes);
        // The second time, cells come from the cache.
        for _ in 0..2 {
            let report = block_on(contract::verify(&cached)).unwrap();
            assert!(report.lists && report.lists_files);
        }
    }
}

/// Answers as another reader, except for one method.
struct FaultyReader {
    reader: CellReader,
    mistake: Mistake,
}

#[derive(Clone, Copy, Debug)]
enum Mistake {
    /// Absent cells are empty.
    Empty,
    /// The size of a part is that of the part.
    PartSize,
    /// One damaged cell fails the batch.
    WholeBatch,
    /// Children are listed in descending order.
    Order,
}

impl Fetch for FaultyReader {
    fn array(&self, node: &Key, array: Arc<Array>) -> Result<AnyArray, FetchError> {
        self.reader.array(node, array)
    }

    async fn nodes(&self, keys: &[Key]) -> Result<Vec<Option<Node>>, FetchError> {
        self.reader.nodes(keys).await
    }

    async fn cells(
        &self,
        wanted: &[CellRequest],
        options: CellOptions,
    ) -> Vec<Result<Option<Fetched>, FetchError>> {
        let mut responses = self.reader.cells(wanted, options).await;
        let fails = responses.iter().any(Result::is_err);
        for response in &mut responses {
            match (self.mistake, &mut *response) {
                (Mistake::Empty, Ok(found @ None)) => {
                    *found = Some(Fetched {
                        bytes: Bytes::new(),
                        size: 0,
                    });
                }
                (Mistake::PartSize, Ok(Some(found))) => {
                    found.size = u64::try_from(found.bytes.len()).unwrap();
                }
                (Mistake::WholeBatch, _) if fails => {
                    *response = Err(FetchError {
                        key: key("strings"),
                        problem: FetchProblem::Damaged,
                        source: "another cell".into(),
                    });
                }
                _ => {}
            }
        }
        responses
    }

    async fn children(&self, key: &Key) -> Result<Vec<String>, FetchError> {
        let mut names = self.reader.children(key).await?;
        if matches!(self.mistake, Mistake::Order) {
            names.reverse();
        }
        Ok(names)
    }

    async fn sizes(&self, keys: &[Key]) -> Result<Vec<Option<u64>>, FetchError> {
        self.reader.sizes(keys).await
    }

    fn budget(&self) -> u64 {
        self.reader.budget()
    }
}

#[test]
fn violations_of_the_contract_are_found() {
    let cases = [
        (Mistake::Empty, "cell numbers 2, absent"),
        (Mistake::PartSize, "cell numbers 0, part"),
        (Mistake::WholeBatch, "cell numbers 1"),
        (Mistake::Order, "children(\"\")"),
    ];
    for (mistake, request) in cases {
        let store = Store::from_memory(contract::objects()).unwrap();
        let reader = CellReader::new(store);
        let found = block_on(contract::verify(&FaultyReader { reader, mistake }));
        assert_eq!(found.unwrap_err().request, request, "{mistake:?}");
    }
}
