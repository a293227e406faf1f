//! Commits of transactions: their objects are deleted if they fail, or may not all be at their keys.

use zvf_model::error_chain::error_chain;
use zvf_store::{CommitError, CommitReport, Transaction};

/// Commits a transaction. If that fails, deletes its staged objects, which would fill the disk.
pub async fn commit_or_abort(
    mut transaction: Transaction,
    root: &[u8],
) -> Result<CommitReport, CommitError> {
    let committed = transaction.commit(root).await;
    if committed.is_err() {
        // The next writer deletes leftovers.
        let _ = transaction.abort().await;
    }
    committed
}

/// Returns the reason why a commit is not finished, as one line.
pub fn unfinished(committed: &CommitReport) -> Option<String> {
    committed
        .unfinished
        .as_ref()
        .map(|error| error_chain(error))
}
