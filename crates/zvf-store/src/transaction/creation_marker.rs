//! Contents of the marker that reserves the place of a creation.

use bytes::Bytes;

use super::id::TransactionId;

/// First bytes of the marker of a creation that no process holds.
const JOB: &str = "job ";

/// Returns the marker of a creation that a job continues.
pub(super) fn job_marker(id: &TransactionId) -> Bytes {
    Bytes::from(format!("{JOB}{}", id.as_str()))
}

/// Returns whether a marker is of a creation that a job continues.
pub(super) fn is_job(marker: &[u8]) -> bool {
    marker.starts_with(JOB.as_bytes())
}
