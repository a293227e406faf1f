//! Results do not depend on the number of concurrent requests or on the order of the responses.

use core::future::poll_fn;
use core::task::Poll;
use std::{
    fs,
    sync::{Arc, Mutex},
};

use futures_util::future::join_all;
use zvf::{Dataset, OpenOptions};
use zvf_catalog::{Catalog, LevelCache};
use zvf_model::{
    fetch::{AnyArray, CellOptions, CellRequest, Fetch, FetchError, Fetched, Port},
    key::Key,
    zarr::{Array, Node},
};
use zvf_query::Session;
use zvf_store::CellReader;
use zvf_testkit::stores::{Cells, Random};

use super::{
    cases,
    kinds::{self, CELLS, KINDS},
    opened,
};
use crate::block_on;

/// A store that serves every request separately and in any order.
struct Scattered {
    cells: CellReader,
    random: Mutex<Random>,
}

impl Scattered {
    fn of(dataset: &Dataset, seed: u64) -> Self {
        Self {
            cells: CellReader::new(dataset.store().clone()),
            random: Mutex::new(Random::new(seed)),
        }
    }

    /// Yields to other tasks a random number of times.
    async fn wait(&self) {
        let mut turns = self.random.lock().unwrap().below(12);
        poll_fn(|context| {
            if turns == 0 {
                return Poll::Ready(());
            }
            turns -= 1;
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }
}

impl Fetch for Scattered {
    fn array(&self, node: &Key, array: Arc<Array>) -> Result<AnyArray, FetchError> {
        self.cells.array(node, array)
    }

    async fn nodes(&self, keys: &[Key]) -> Result<Vec<Option<Node>>, FetchError> {
        self.wait().await;
        self.cells.nodes(keys).await
    }

    async fn cells(
        &self,
        wanted: &[CellRequest],
        options: CellOptions,
    ) -> Vec<Result<Option<Fetched>, FetchError>> {
        let each = wanted.iter().map(|wanted| async {
            self.wait().await;
            let one = core::slice::from_ref(wanted);
            let results = self.cells.cells(one, options).await;
            results.into_iter().next().unwrap()
        });
        join_all(each).await
    }

    async fn children(&self, key: &Key) -> Result<Vec<String>, FetchError> {
        self.wait().await;
        self.cells.children(key).await
    }

    async fn sizes(&self, keys: &[Key]) -> Result<Vec<Option<u64>>, FetchError> {
        self.wait().await;
        self.cells.sizes(keys).await
    }

    fn budget(&self) -> u64 {
        self.cells.budget()
    }
}

#[test]
fn the_order_of_responses_does_not_change_the_result() {
    for (name, kind, _) in KINDS {
        for (cells_name, cells) in CELLS {
            let made = kinds::fixed(kind, cells);
            let (dataset, _) = opened(&kinds::files(&made), &OpenOptions::default());
            for case in cases::of(&made.truth) {
                let expected = block_on(dataset.query(&case.query)).unwrap();
                for seed in 0..2 {
                    let scattered = Scattered::of(&dataset, seed);
                    let levels = LevelCache::default();
                    let catalog = Catalog {
                        fetch: Port::new(&scattered),
                        layout: dataset.layout(),
                        root: dataset.root(),
                        levels: &levels,
                    };
                    let found = block_on(Session::new(catalog).query(&case.query)).unwrap();
                    assert_eq!(found, expected, "{name}, {cells_name}: {}", case.name);
                }
            }
        }
    }
}

/// Files are read on several threads and arrive in the order in which these finish.
#[test]
fn results_do_not_depend_on_the_number_of_concurrent_reads() {
    for (name, kind, _) in KINDS {
        let made = kinds::fixed(kind, Cells::Zstd);
        let folder = tempfile::tempdir().unwrap();
        for (key, bytes) in &made.files {
            let file = folder.path().join(key);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, bytes).unwrap();
        }
        let address = folder.path().to_str().unwrap();
        let results = [1, 2, 16, 64].map(|requests| {
            let options = OpenOptions::default().concurrency(requests);
            let dataset = block_on(Dataset::open_with(address, &options)).unwrap();
            let cases = cases::of(&made.truth).into_iter();
            let results = cases.map(|case| block_on(dataset.query(&case.query)).unwrap());
            results.collect::<Vec<_>>()
        });
        for others in &results[1..] {
            assert_eq!(others, &results[0], "{name}");
        }
    }
}
