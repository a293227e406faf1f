//! Finds the store whose folder contains an address.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{file_read::read_range, regular_file};
use crate::backend::local_path;

/// Largest root metadata that is looked at.
const MAX_DOCUMENT: u64 = 1 << 26;

/// Returns the nearest local store whose folder contains a place, and `None` for memory and the
/// network. The place itself may exist or not, and may be a store. Folders above it are not known to be
/// stores if their root metadata cannot be read or exceeds 64 MiB.
///
/// ```
/// assert_eq!(zvf_store::enclosing_store("s3://bucket/a.zv/b.zv"), None);
/// ```
pub fn enclosing_store(address: &str) -> Option<PathBuf> {
    let path = local_path(address)?;
    let mut above = path.ancestors().skip(1);
    above
        .find(|folder| is_store(folder).unwrap_or(false))
        .map(Path::to_path_buf)
}

/// Returns whether a folder has the root metadata of a store, and `None` if it has none.
fn is_store(folder: &Path) -> Option<bool> {
    let opened = regular_file::open(&folder.join("zarr.json")).ok()?;
    let (file, metadata) = opened.filter(|(_, metadata)| metadata.len() <= MAX_DOCUMENT)?;
    let document = read_range(&file, 0, metadata.len()).ok()?;
    let node: Value = serde_json::from_slice(&document).ok()?;
    let block = node.get("attributes")?.get("zarr_vectors")?;
    Some(block.is_object())
}
