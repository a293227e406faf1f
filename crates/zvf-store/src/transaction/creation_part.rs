//! Parts of a creation: other processes put objects for it.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use zvf_model::key::Key;

use super::{Creation, TransactionError, check_key, sealing::SealChanges};
use crate::{io::SealError, store::Store};

/// Objects of a store that another process [creates](Creation).
///
/// The creation has to [merge](Creation::merge) the record of the objects, so that they are in the
/// inventory.
#[derive(Debug)]
pub struct CreationPart {
    store: Store,
    /// The entries of the inventory. Only the creation knows whether it writes one.
    seal: Mutex<SealChanges>,
}

impl Store {
    /// Joins the creation of a store by another process.
    #[must_use]
    pub fn join_creation(&self) -> CreationPart {
        CreationPart {
            store: self.clone(),
            seal: Mutex::default(),
        }
    }
}

impl CreationPart {
    /// Puts objects and their [row tables](crate::RowTable) concurrently.
    ///
    /// # Errors
    ///
    /// [`TransactionError`]; [`TransactionError::Reserved`] for the root's `zarr.json` and for keys
    /// below `.zvf`.
    pub async fn put_many(&self, mut objects: Vec<(Key, Bytes)>) -> Result<(), TransactionError> {
        let rows = SealChanges::take_rows(&mut objects);
        for (key, _) in &objects {
            check_key(key)?;
        }
        SealChanges::put_all(&self.seal, &objects, rows);
        Ok(self.store.put_many(objects).await?)
    }

    /// Returns a record of the objects put so far, for [`Creation::merge`].
    pub fn record(&self) -> String {
        let seal = self.seal.lock();
        seal.unwrap_or_else(PoisonError::into_inner).to_text()
    }
}

impl Creation {
    /// Adds the objects of a [part](CreationPart::record) to the inventory. Does nothing if none is
    /// written.
    ///
    /// # Errors
    ///
    /// [`SealError::Inventory`] for a record that is damaged.
    pub fn merge(&self, record: &str) -> Result<(), SealError> {
        let Some(seal) = &self.seal else {
            return Ok(());
        };
        let part = SealChanges::from_text(record)?;
        seal.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(part);
        Ok(())
    }
}
