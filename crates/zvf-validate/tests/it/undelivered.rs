//! Failed reads and listings are reported, not skipped.

use std::{
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use zvf_model::{
    fetch::{AnyArray, CellOptions, CellRequest, Fetch, FetchError, FetchProblem, Fetched, Port},
    key::Key,
    zarr::{Array, Node},
};
use zvf_validate::{Depth, ValidateOptions, validate};

/// A store of two nodes that fails to deliver one of them, or fails to list.
struct FailingStore {
    lists: bool,
}

fn error(key: &Key, problem: FetchProblem) -> FetchError {
    FetchError {
        key: key.clone(),
        problem,
        source: "no".into(),
    }
}

impl Fetch for FailingStore {
    fn array(&self, node: &Key, _array: Arc<Array>) -> Result<AnyArray, FetchError> {
        Err(error(node, FetchProblem::Unavailable))
    }

    async fn nodes(&self, keys: &[Key]) -> Result<Vec<Option<Node>>, FetchError> {
        let root = r#"{"zarr_format": 3, "node_type": "group", "attributes": {"zarr_vectors": {
            "zv_version": "0.9.2", "chunk_shape": [1, 1], "bounds": [[0, 0], [1, 1]],
            "geometry_types": []}, "multiscales": [{"axes": ["x", "y"], "datasets": []}]}}"#;
        let read = |key: &Key| {
            if key.is_root() {
                Ok(Node::parse(key, root.as_bytes()).ok())
            } else {
                Err(error(key, FetchProblem::Unavailable))
            }
        };
        keys.iter().map(read).collect()
    }

    async fn cells(
        &self,
        _wanted: &[CellRequest],
        _options: CellOptions,
    ) -> Vec<Result<Option<Fetched>, FetchError>> {
        Vec::new()
    }

    async fn children(&self, key: &Key) -> Result<Vec<String>, FetchError> {
        Err(error(key, FetchProblem::Unlistable))
    }

    async fn sizes(&self, keys: &[Key]) -> Result<Vec<Option<u64>>, FetchError> {
        Ok(vec![None; keys.len()])
    }

    async fn files(&self, prefix: &Key) -> Result<Vec<(String, u64)>, FetchError> {
        if self.lists {
            Ok(vec![
                ("zarr.json".to_owned(), 1),
                ("0/zarr.json".to_owned(), 1),
            ])
        } else {
            Err(error(prefix, FetchProblem::Unlistable))
        }
    }

    fn budget(&self) -> u64 {
        u64::MAX
    }
}

fn codes(store: &FailingStore, depth: Depth) -> Vec<&'static str> {
    let options = ValidateOptions::default().depth(depth);
    let mut work = pin!(validate(Port::new(store), &options));
    // No future here is ever pending.
    let Poll::Ready(report) = work.as_mut().poll(&mut Context::from_waker(Waker::noop())) else {
        unreachable!("the future was pending");
    };
    report
        .findings
        .iter()
        .map(|finding| finding.rule.code)
        .collect()
}

#[test]
fn a_node_that_is_not_delivered_is_found_beside_the_others() {
    let found = codes(&FailingStore { lists: true }, Depth::Structure);
    assert_eq!(found, ["ZV-L1-006", "ZV-L1-013", "ZV-L1-014"]);
}

#[test]
fn a_store_that_cannot_list_is_not_passed() {
    let store = FailingStore { lists: false };
    assert_eq!(codes(&store, Depth::Structure), ["ZV-L1-007"]);
    let all = ["ZV-L1-007", "ZV-L2-000", "ZV-L3-000", "ZV-L4-000"];
    assert_eq!(codes(&store, Depth::Semantics), all);
}
