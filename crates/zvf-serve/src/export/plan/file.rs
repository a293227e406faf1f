//! The file of a plan, on disk or in any store.

use bytes::Bytes;
use serde_json::Value;
use zvf_model::key::Key;
use zvf_store::{OpenError, OpenOptions, Read, absolute_address};

use crate::export::{ExportError, ExportPlanError};

/// The address of a plan.
pub(super) struct PlanAddress {
    address: String,
    folder: String,
    name: Key,
}

impl PlanAddress {
    /// Parses a path or an address.
    pub(super) fn parse(address: &str) -> Result<Self, ExportError> {
        let full = absolute_address(address);
        let parts = full.rsplit_once(['/', std::path::MAIN_SEPARATOR]);
        let parts = parts.and_then(|(folder, name)| {
            let name = Key::parse(name).ok().filter(|name| !name.is_root())?;
            let folder = if folder.is_empty() { "/" } else { folder };
            Some((folder.to_owned(), name))
        });
        let invalid = || ExportError::Plan {
            address: address.to_owned(),
            source: ExportPlanError::Invalid,
        };
        let (folder, name) = parts.ok_or_else(invalid)?;
        Ok(Self {
            address: address.to_owned(),
            folder,
            name,
        })
    }

    /// Reads the file.
    pub(super) async fn read(&self, open: &OpenOptions) -> Result<Value, ExportError> {
        let problem = |source| ExportError::Plan {
            address: self.address.clone(),
            source,
        };
        let store = match open.open(&self.folder) {
            Ok(store) => store,
            Err(OpenError::NotFound(_)) => return Err(problem(ExportPlanError::Absent)),
            Err(source) => return Err(ExportError::bucket(&self.address, source)),
        };
        let found = store.read_one(Read::full(self.name.clone())).await;
        let found = found.map_err(|source| ExportError::bucket(&self.address, source))?;
        let bytes = found.ok_or_else(|| problem(ExportPlanError::Absent))?;
        serde_json::from_slice(&bytes).map_err(|_| problem(ExportPlanError::Invalid))
    }

    /// Writes the file.
    pub(super) async fn write(&self, bytes: Bytes, open: &OpenOptions) -> Result<(), ExportError> {
        let store = open.create(&self.folder);
        let store = store.map_err(|source| ExportError::bucket(&self.address, source))?;
        let put = store.put_many(vec![(self.name.clone(), bytes)]).await;
        put.map_err(|source| ExportError::bucket(&self.address, source))
    }
}
