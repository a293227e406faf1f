//! The inventory of an open store.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use futures_util::lock::Mutex as AsyncMutex;
use zvf_model::key::Key;

use super::{BlockCache, LeafEntries, LeafPlace, SealIndex, is_rows, parse};
use crate::io::{ReadError, SealError};

/// The leaves of the inventory, each parsed when its first entry is looked up.
#[derive(Debug)]
pub(crate) struct Inventory {
    leaves: Vec<Leaf>,
    /// Checked blocks of objects that are read in parts, if they are cached.
    pub(crate) blocks: OnceLock<BlockCache>,
}

#[derive(Debug)]
pub(crate) struct Leaf {
    first: String,
    pub(crate) place: LeafPlace,
    entries: OnceLock<Arc<LeafEntries>>,
    /// Held while the leaf is fetched, so that concurrent readers fetch it once.
    pub(crate) fetching: AsyncMutex<()>,
    pub(crate) fetching_blocking: Mutex<()>,
}

impl Inventory {
    pub(crate) fn new(index: SealIndex) -> Self {
        let leaves = index.leaves.into_iter().map(|(first, place)| Leaf {
            first,
            place,
            entries: OnceLock::new(),
            fetching: AsyncMutex::new(()),
            fetching_blocking: Mutex::new(()),
        });
        Self {
            leaves: leaves.collect(),
            blocks: OnceLock::new(),
        }
    }

    /// Returns the leaf that has the entry of `name`, if there is one.
    pub(crate) fn leaf_of(&self, name: &str) -> Option<&Leaf> {
        let after = self.leaves.partition_point(|leaf| *leaf.first <= *name);
        self.leaves.get(after.checked_sub(1)?)
    }

    /// Returns the leaf of a number.
    pub(crate) fn leaf(&self, number: usize) -> Option<&Leaf> {
        self.leaves.get(number)
    }

    /// Returns whether an object with this prefix of its name has `bytes` bytes or more, or may have:
    /// leaves outside the root are not read.
    pub(crate) fn may_have_larger(&self, prefix: &str, bytes: u64) -> bool {
        self.leaves_with(prefix).any(|leaf| {
            let LeafPlace::Inline(_) = &leaf.place else {
                return true;
            };
            let Some(Ok(entries)) = leaf.entries() else {
                return true;
            };
            let names = entries.names_from(prefix);
            names
                .take_while(|name| name.starts_with(prefix))
                .any(|name| entries.size(name) >= Some(bytes))
        })
    }

    /// Returns all leaves.
    pub(crate) fn leaves(&self) -> &[Leaf] {
        &self.leaves
    }

    /// Returns the leaves that may have names with `prefix`.
    pub(crate) fn leaves_with<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = &'a Leaf> {
        let first = self.leaves.partition_point(|leaf| *leaf.first <= *prefix);
        let leaves = self
            .leaves
            .get(first.saturating_sub(1)..)
            .unwrap_or_default()
            .iter();
        leaves.take_while(move |leaf| *leaf.first <= *prefix || leaf.first.starts_with(prefix))
    }
}

impl Leaf {
    /// Returns whether this is a leaf of row tables.
    pub(crate) fn has_rows(&self) -> bool {
        is_rows(&self.first)
    }

    /// Returns the number of bytes that are fetched for this leaf, 0 if it is in the root.
    pub(crate) fn size(&self) -> u64 {
        match &self.place {
            LeafPlace::Inline(_) => 0,
            LeafPlace::Object { bytes, .. } => *bytes,
        }
    }

    /// Returns the entries if they have been fetched, or are stored in the root.
    pub(crate) fn entries(&self) -> Option<Result<Arc<LeafEntries>, ReadError>> {
        if let Some(entries) = self.entries.get() {
            return Some(Ok(Arc::clone(entries)));
        }
        match &self.place {
            LeafPlace::Inline(bytes) => Some(self.set(&bytes.clone())),
            LeafPlace::Object { .. } => None,
        }
    }

    /// Sets the entries from the fetched bytes.
    pub(crate) fn fetched(&self, bytes: Option<&Bytes>) -> Result<Arc<LeafEntries>, ReadError> {
        let (
            LeafPlace::Object {
                bytes: size, crc, ..
            },
            Some(found),
        ) = (&self.place, bytes)
        else {
            return Err(self.damaged());
        };
        if u64::try_from(found.len()) != Ok(*size) || crc32fast::hash(found) != *crc {
            return Err(self.damaged());
        }
        self.set(found)
    }

    fn set(&self, bytes: &Bytes) -> Result<Arc<LeafEntries>, ReadError> {
        let entries = parse(bytes).map_err(|_| self.damaged())?;
        // Entries before the first of the leaf that the root names would not be found.
        if entries.names_from("").next() != Some(&*self.first) {
            return Err(self.damaged());
        }
        let entries = self.entries.get_or_init(|| Arc::new(entries));
        Ok(Arc::clone(entries))
    }

    fn damaged(&self) -> ReadError {
        let key = match &self.place {
            LeafPlace::Object { key, .. } => key.clone(),
            LeafPlace::Inline(_) => Key::parse("zarr.json").unwrap_or_else(|_| Key::root()),
        };
        let source = SealError::Inventory;
        ReadError::Sealed { key, source }
    }

    pub(crate) fn wait(&self) -> std::sync::MutexGuard<'_, ()> {
        let fetching = self.fetching_blocking.lock();
        fetching.unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the names of the children of `prefix` that are nodes or contain nodes.
pub(crate) fn child_nodes<'a>(
    entries: &'a LeafEntries,
    prefix: &'a str,
) -> impl Iterator<Item = &'a str> {
    let names = entries.names_from(prefix);
    let below = names.map_while(move |name| name.strip_prefix(prefix));
    below.filter_map(|below| Some(below.split_once('/')?.0))
}
