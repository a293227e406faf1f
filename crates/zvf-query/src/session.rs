//! Queries on a store.

use zvf_catalog::Catalog;

/// Runs queries on a store. Cheap to create: levels that are open are in the catalog.
#[derive(Clone, Copy, Debug)]
pub struct Session<'a> {
    pub(crate) catalog: Catalog<'a>,
}

impl<'a> Session<'a> {
    /// Creates a session on an open store.
    pub fn new(catalog: Catalog<'a>) -> Self {
        Self { catalog }
    }
}
