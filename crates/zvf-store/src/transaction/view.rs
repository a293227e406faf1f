//! Reading the committed state while a transaction is still being applied.

use super::{
    TransactionError, head::State, id::TransactionId, journal::Journal, layout::journal_key,
};
use crate::{
    io::Read,
    store::{Overlay, StagedObject, Store},
};

impl Store {
    /// Returns a view of the store in its committed state, given the bytes of the root's
    /// `zarr.json` as just read.
    ///
    /// Between its commit and its end a transaction is applied object by object, possibly by no
    /// process at the moment. The view then takes one request to read the journal: objects of the
    /// transaction are read where they are staged, or at their key once applied, and deleted
    /// objects are absent. Otherwise the view is the store itself and no request is made.
    ///
    /// # Errors
    ///
    /// [`TransactionError`] when the journal cannot be read. A root that is not JSON is not an error
    /// here.
    #[doc(hidden)]
    pub async fn committed_view(&self, root: &[u8]) -> Result<Self, TransactionError> {
        let store = self.without_view();
        if !State::may_be_in(root) {
            return Ok(store);
        }
        let Some(state) = State::if_json(root)? else {
            return Ok(store);
        };
        let (true, Some(id)) = (state.pending, &state.id) else {
            return Ok(store);
        };
        match store.read_one(Read::full(journal_key(id)?)).await? {
            // Deleted, because the transaction has been applied since the root was read.
            None => Ok(store),
            Some(journal) => store.with_journal(id, &journal),
        }
    }

    fn with_journal(&self, id: &TransactionId, journal: &[u8]) -> Result<Self, TransactionError> {
        let journal = Journal::parse(id, journal)?;
        let staged = journal.puts.into_iter().map(|put| {
            let (key, bytes) = (put.staged, put.bytes);
            (put.key, StagedObject { key, bytes })
        });
        Ok(self.with_overlay(Overlay {
            staged: staged.collect(),
            deleted: journal.deletes.into_iter().collect(),
        }))
    }
}
