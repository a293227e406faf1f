//! Names of the objects and metadata members that transactions use.

use zvf_model::key::{Key, KeyError};

use super::id::TransactionId;
use crate::store::RESERVED_FOLDER;

/// Key of the root's metadata, which is the head of the store.
pub(super) const ROOT: &str = "zarr.json";
/// Member of the root that holds its attributes.
pub(super) const ATTRIBUTES: &str = "attributes";
/// Member of the attributes with the state of the last transaction.
pub(super) const STATE_MEMBER: &str = "zvf";
/// Number of logs that are kept, and so of commits that a transaction may lag behind.
pub(super) const MAX_LOGS: u64 = 256;

/// Returns the key of the head.
pub(super) fn head_key() -> Result<Key, KeyError> {
    Key::parse(ROOT)
}

/// Returns the folder of all transactions.
pub(super) fn reserved_folder() -> Result<Key, KeyError> {
    Key::parse(RESERVED_FOLDER)
}

/// Returns the folder of the staged objects and the journal of a transaction.
pub(super) fn transaction_folder(id: &TransactionId) -> Result<Key, KeyError> {
    reserved_folder()?.join(id.as_str())
}

/// Returns the folder of the inventory.
pub(super) fn seal_folder() -> Result<Key, KeyError> {
    reserved_folder()?.join("seal")
}

pub(super) fn journal_key(id: &TransactionId) -> Result<Key, KeyError> {
    transaction_folder(id)?.join("journal.json")
}

/// Returns the key of the log of transaction `number`.
pub(super) fn log_key(number: u64) -> Result<Key, KeyError> {
    reserved_folder()?
        .join("log")?
        .join(&format!("{number}.json"))
}

/// Returns the key of the marker of a creation in progress.
pub(super) fn creation_marker_key() -> Result<Key, KeyError> {
    reserved_folder()?.join("creating")
}
