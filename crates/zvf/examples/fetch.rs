//! A port of one's own between queries and bytes: here one that tells of every round trip. A cache, or a
//! transport that this project does not know, goes in the same place.
//!
//! ```text
//! cargo run --package zvf --example fetch -- tracts.zv
//! ```
#![expect(clippy::print_stdout, reason = "an example shows what it finds")]

use std::{env, error::Error, sync::Arc};

use zvf::{Dataset, Query};
use zvf_model::{
    fetch::{Fetch, FetchError, Fetched, Port, Wanted},
    key::Key,
    zarr::{Array, Node},
};
use zvf_query::{LevelCache, Session};
use zvf_store::CellReader;

/// Asks another port, and says what for.
struct Telling(CellReader);

impl Fetch for Telling {
    type Array = <CellReader as Fetch>::Array;

    fn array(&self, node: &Key, array: Arc<Array>) -> Result<Self::Array, FetchError> {
        self.0.array(node, array)
    }
    async fn nodes(&self, keys: &[Key]) -> Result<Vec<Option<Node>>, FetchError> {
        println!("{} nodes", keys.len());
        self.0.nodes(keys).await
    }
    async fn cells(
        &self,
        wanted: &[Wanted<Self::Array>],
    ) -> Vec<Result<Option<Fetched>, FetchError>> {
        println!("{} cells", wanted.len());
        self.0.cells(wanted).await
    }
    async fn children(&self, key: &Key) -> Result<Vec<String>, FetchError> {
        self.0.children(key).await
    }
    async fn sizes(&self, keys: &[Key]) -> Result<Vec<Option<u64>>, FetchError> {
        self.0.sizes(keys).await
    }
    fn budget(&self) -> u64 {
        self.0.budget()
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let address = env::args().nth(1).ok_or("give the address of a store")?;
    let dataset = Dataset::open(&address).await?;
    let telling = Telling(CellReader::new(dataset.store().clone()));
    let session = Session {
        fetch: Port::new(&telling),
        layout: dataset.layout(),
        root: dataset.root(),
        levels: &LevelCache::default(),
    };
    println!("{} vertices", session.count(&Query::new()).await?.vertices);
    Ok(())
}
