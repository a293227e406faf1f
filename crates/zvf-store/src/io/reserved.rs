//! The folder of a store that is reserved for transactions.

/// Name of the folder at the root.
pub(crate) const RESERVED_FOLDER: &str = ".zvf";

/// Returns whether a path from the root of the store is reserved.
pub(crate) fn is_reserved(path: &str) -> bool {
    let (first, _) = path.split_once('/').unwrap_or((path, ""));
    first == RESERVED_FOLDER
}
