//! Reading a store while a transaction is being applied to it.

use std::collections::{BTreeMap, BTreeSet};

use zvf_model::key::Key;

use crate::{
    list::{ListedFile, Listing},
    range::Read,
    store::Store,
    transaction::{Id, Journal, State, TransactionError, journal_of},
};

/// Where a transaction put what it is about to change.
#[derive(Debug)]
pub(crate) struct Overlay {
    staged: BTreeMap<Key, Staged>,
    deleted: BTreeSet<Key>,
}

/// An object that waits for its place.
#[derive(Clone, Debug)]
pub(crate) struct Staged {
    pub(crate) key: Key,
    pub(crate) bytes: u64,
}

/// What is read instead of what lies at a key.
pub(crate) enum Instead<'a> {
    Nothing,
    Staged(&'a Staged),
}

impl Store {
    /// The store as the transaction of its root says it is, from the bytes of
    /// the root's `zarr.json` as whoever opens it has just read them.
    ///
    /// Between its commit and its end a transaction is being applied, object by
    /// object, perhaps by nobody at the moment. Then one request more, for its
    /// journal, says what belongs to the new state: objects it puts are read
    /// where they are staged, or at their place once they are there, and those
    /// it deletes are absent. Otherwise this is the store itself, and nothing is
    /// asked for.
    ///
    /// # Errors
    ///
    /// [`TransactionError`], when the journal cannot be read. A root that is no
    /// JSON is left to whoever reads it.
    pub async fn committed_view(&self, root: &[u8]) -> Result<Self, TransactionError> {
        let Some(state) = State::if_json(root)? else {
            return Ok(self.bare());
        };
        let (true, Some(id)) = (state.pending, &state.id) else {
            return Ok(self.bare());
        };
        let bare = self.bare();
        let key = journal_of(id)?;
        // Gone when all was applied since.
        match bare.read_one(Read::full(key)).await? {
            None => Ok(bare),
            Some(journal) => bare.with_journal(id, &journal),
        }
    }

    fn with_journal(&self, id: &Id, journal: &[u8]) -> Result<Self, TransactionError> {
        let journal = Journal::parse(id, journal)?;
        let staged = journal.puts.into_iter().map(|put| {
            let (key, bytes) = (put.staged, put.bytes);
            (put.key, Staged { key, bytes })
        });
        Ok(self.under(Overlay {
            staged: staged.collect(),
            deleted: journal.deletes.into_iter().collect(),
        }))
    }
}

impl Overlay {
    pub(crate) fn get(&self, key: &Key) -> Option<Instead<'_>> {
        if self.deleted.contains(key) {
            return Some(Instead::Nothing);
        }
        self.staged.get(key).map(Instead::Staged)
    }

    /// Whether the object so many segments below `prefix` is deleted.
    pub(crate) fn deletes(&self, prefix: &Key, name: &str) -> bool {
        let key = prefix.join_path(name);
        key.is_ok_and(|key| self.deleted.contains(&key))
    }

    /// Whether something was deleted in the folder `name` below `prefix`, and nothing is
    /// staged there: it may have nothing left in it.
    pub(crate) fn may_empty(&self, prefix: &Key, name: &str) -> bool {
        let Ok(folder) = prefix.join(name) else {
            return false;
        };
        let is_near = |key: &&Key| key.as_str().starts_with(folder.as_str());
        let is_below = |key: &Key| {
            let below = key.as_str().strip_prefix(folder.as_str());
            below.is_some_and(|below| below.starts_with('/'))
        };
        let staged = self.staged.range(&folder..).map(|(key, _)| key);
        let mut deleted = self.deleted.range(&folder..).take_while(is_near);
        deleted.any(is_below) && !staged.take_while(is_near).any(is_below)
    }

    /// Adds what is staged below `prefix`.
    pub(crate) fn list_all(&self, prefix: &Key, files: &mut Vec<ListedFile>) {
        let staged: BTreeMap<&str, u64> = self.below(prefix).collect();
        files.retain(|file| !staged.contains_key(file.name.as_str()));
        files.extend(staged.into_iter().map(|(name, size)| ListedFile {
            name: name.to_owned(),
            size,
        }));
    }

    /// Adds the children of `prefix` that are staged.
    pub(crate) fn list(&self, prefix: &Key, listing: &mut Listing) {
        let (mut folders, mut files) = (BTreeSet::new(), BTreeMap::new());
        for (name, size) in self.below(prefix) {
            match name.split_once('/') {
                Some((folder, _)) => drop(folders.insert(folder)),
                None => drop(files.insert(name, size)),
            }
        }
        listing
            .folders
            .retain(|name| !folders.contains(name.as_str()));
        listing
            .folders
            .extend(folders.into_iter().map(str::to_owned));
        listing
            .files
            .retain(|file| !files.contains_key(file.name.as_str()));
        listing
            .files
            .extend(files.into_iter().map(|(name, size)| ListedFile {
                name: name.to_owned(),
                size,
            }));
    }

    /// Staged objects below `prefix`, by their path from there.
    fn below<'a>(&'a self, prefix: &'a Key) -> impl Iterator<Item = (&'a str, u64)> {
        self.staged.iter().filter_map(move |(key, staged)| {
            let below = key.as_str().strip_prefix(prefix.as_str())?;
            let below = match prefix.is_root() {
                true => below,
                false => below.strip_prefix('/')?,
            };
            Some((below, staged.bytes))
        })
    }
}

/// The folder in a store that belongs to transactions.
pub(crate) const HOME: &str = ".zvf";

/// Whether a path from the root is theirs.
pub(crate) fn is_own(path: &str) -> bool {
    let (first, _) = path.split_once('/').unwrap_or((path, ""));
    first == HOME
}
