//! Catalogs of stores in memory.

use futures_util::FutureExt;
use zvf_model::fetch::Port;

use crate::{catalog::Catalog, level::LevelCache};

pub(crate) type TestStore = zvf_testkit::MemoryStore<LevelCache>;

pub(crate) trait OpenCatalog {
    fn catalog(&self) -> Catalog<'_>;
}

impl OpenCatalog for TestStore {
    fn catalog(&self) -> Catalog<'_> {
        Catalog {
            fetch: Port::new(self),
            layout: &self.layout,
            root: &self.root,
            levels: &self.opened,
        }
    }
}

/// Polls a future that never waits, because the files are in memory.
pub(crate) fn poll_ready<F: Future>(future: F) -> F::Output {
    future.now_or_never().unwrap()
}
