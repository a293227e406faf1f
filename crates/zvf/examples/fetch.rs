//! Implements the trait `Fetch`: prints the requests that a query makes. A cache or another protocol
//! is implemented in the same way.
//!
//! ```text
//! cargo run --package zvf --example fetch -- tracts.zv
//! ```
#![expect(clippy::print_stdout, reason = "an example prints what it finds")]

use std::{env, error::Error, sync::Arc};

use zvf::{FetchDataset, Query, Store};
use zvf_model::{
    fetch::{AnyArray, CellOptions, CellRequest, Fetch, FetchError, Fetched},
    key::Key,
    zarr::{Array, Node},
};
use zvf_store::CellReader;

/// Delegates to a store and prints each request.
struct Printing(CellReader);

impl Fetch for Printing {
    fn array(&self, node: &Key, array: Arc<Array>) -> Result<AnyArray, FetchError> {
        self.0.array(node, array)
    }
    async fn nodes(&self, keys: &[Key]) -> Result<Vec<Option<Node>>, FetchError> {
        println!("{} nodes", keys.len());
        self.0.nodes(keys).await
    }
    async fn cells(
        &self,
        wanted: &[CellRequest],
        options: CellOptions,
    ) -> Vec<Result<Option<Fetched>, FetchError>> {
        println!("{} cells", wanted.len());
        self.0.cells(wanted, options).await
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
    let printing = Printing(CellReader::new(Store::open(&address)?));
    let dataset = FetchDataset::open(printing).await?;
    println!("{} vertices", dataset.count(&Query::new()).await?.vertices);
    Ok(())
}
