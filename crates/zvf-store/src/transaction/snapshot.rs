//! Reading one state of a store while others commit.

use std::sync::Arc;

use bytes::Bytes;
use zvf_model::key::Key;

use super::{TransactionError, head::State, layout::head_key};
use crate::{
    io::ReadError,
    store::{HeadComparison, SeenHead, Snapshot, Store},
};

/// The reason that reads are not of one state of a store.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The store was changed after it was opened, and what was read since may mix both states.
    #[error("the store was changed since it was opened; open or reload it to read the new state")]
    Changed,
    /// The head of the store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

impl Store {
    /// Returns a view of the store at its present transaction, and the bytes of the root's
    /// `zarr.json`; `None` if there is no store.
    ///
    /// The view is that of [`committed_view`](Self::committed_view). It also remembers the head, so
    /// that [`confirm_snapshot`](Self::confirm_snapshot) can tell whether everything that was read
    /// through it belongs to this transaction.
    ///
    /// # Errors
    ///
    /// [`TransactionError`].
    #[doc(hidden)]
    pub async fn snapshot(&self) -> Result<Option<(Self, Bytes)>, TransactionError> {
        let store = self.without_overlay();
        let Some(head) = store.read_head(head_key()?).await? else {
            return Ok(None);
        };
        let document = head.document.clone();
        // Reads of the journal have to be confirmed as well.
        let store = if store.may_change() {
            store.with_snapshot(Snapshot::new(head, store.settled_after()))
        } else {
            store
        };
        Ok(Some((store.committed_view(&document).await?, document)))
    }

    /// Returns whether the store is still at the transaction of this [`snapshot`](Self::snapshot).
    /// Takes one request over the network.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if the head cannot be read.
    #[doc(hidden)]
    pub async fn is_snapshot_current(&self) -> Result<bool, ReadError> {
        let Some(snapshot) = self.snapshot_state() else {
            return Ok(true);
        };
        match self.check(snapshot).await {
            Ok(()) => Ok(true),
            Err(SnapshotError::Changed) => Ok(false),
            Err(SnapshotError::Read(error)) => Err(error),
        }
    }

    /// Confirms that everything read through this [`snapshot`](Self::snapshot) so far is of its
    /// transaction.
    ///
    /// In a folder and in memory this costs a look at the root's `zarr.json`. Over the network it
    /// takes a request if a returned object may be newer than the root, and none otherwise. Nothing
    /// is checked if nothing was read since the last call.
    ///
    /// # Errors
    ///
    /// [`SnapshotError::Changed`] if the reads may be of several transactions.
    #[doc(hidden)]
    pub async fn confirm_snapshot(&self) -> Result<(), SnapshotError> {
        match self.confirm_snapshot_now() {
            Some(confirmed) => confirmed,
            None => match self.snapshot_state() {
                Some(snapshot) => self.check(snapshot).await,
                None => Ok(()),
            },
        }
    }

    /// Confirms reads as [`confirm_snapshot`](Self::confirm_snapshot) does, if that takes no
    /// request; `None` otherwise.
    #[doc(hidden)]
    pub fn confirm_snapshot_now(&self) -> Option<Result<(), SnapshotError>> {
        let Some(snapshot) = self.snapshot_state() else {
            return Some(Ok(()));
        };
        let Some(reads) = snapshot.unconfirmed() else {
            return Some(Ok(()));
        };
        if snapshot.is_replaced() {
            return Some(Err(SnapshotError::Changed));
        }
        let head = snapshot.head();
        let Ok(key) = head_key() else {
            return None;
        };
        let compared = self.compare_head_now(&key, &head)?;
        Some(self.finish_check(snapshot, reads, &head, compared))
    }

    async fn check(&self, snapshot: &Arc<Snapshot>) -> Result<(), SnapshotError> {
        // Before the head is read: later reads need a later check.
        let reads = snapshot.unconfirmed().unwrap_or_default();
        if snapshot.is_replaced() {
            return Err(SnapshotError::Changed);
        }
        let key = head_key().unwrap_or_else(|_| Key::root());
        let head = snapshot.head();
        let compared = self.compare_head(&key, &head).await;
        self.finish_check(snapshot, reads, &head, compared)
    }

    fn finish_check(
        &self,
        snapshot: &Snapshot,
        reads: u64,
        head: &SeenHead,
        compared: Result<HeadComparison, ReadError>,
    ) -> Result<(), SnapshotError> {
        let seen = match compared? {
            HeadComparison::Same(found) => found,
            HeadComparison::Other(Some(found)) if is_same_state(head, &found) => Some(found),
            HeadComparison::Other(_) => {
                snapshot.set_replaced();
                return Err(SnapshotError::Changed);
            }
        };
        snapshot.confirm(reads, seen, self.settled_after());
        Ok(())
    }
}

/// Returns whether two heads are of one transaction: they are equal but for the pending mark, which
/// is removed when the transaction has been applied.
fn is_same_state(seen: &SeenHead, found: &SeenHead) -> bool {
    let without_mark = |document: &Bytes| {
        let state = State {
            pending: false,
            ..State::if_json(document).ok()??
        };
        // Without an identifier, another store may have been created with an equal root.
        state.id.as_ref()?;
        state.write_into(document).ok()
    };
    let (before, after) = (without_mark(&seen.document), without_mark(&found.document));
    before.is_some() && before == after
}
