//! Commits whose objects could not all be moved to their keys.

use zvf_model::error_chain::error_chain;
use zvf_store::CommitReport;

/// Returns the reason why a commit is not finished, as one line.
pub(crate) fn unfinished(committed: &CommitReport) -> Option<String> {
    committed
        .unfinished
        .as_ref()
        .map(|error| error_chain(error))
}
