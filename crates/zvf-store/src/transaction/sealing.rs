//! Upkeep of the inventory of a sealed store.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, PoisonError},
};

use bytes::Bytes;
use futures_util::future::try_join_all;
use serde_json::{Map, Value};
use zvf_model::{base64, key::Key, layout::VERTEX_FRAGMENTS};

use super::{
    Transaction, TransactionError,
    layout::{head_key, seal_folder},
    node_copy::to_text,
    record::not_json,
};
use crate::{
    io::{ListedFile, Read, ReadError, SealError},
    seal::{
        Entries, Inventory, LeafPlace, ROWS, RowTable, SealEntry, SealIndex, encode, entry_name,
        is_rows, key_of_entry, object_of_rows, parse, rows_name, split,
    },
    store::Store,
};

/// Maximum total size of leaves that are stored in the root.
const INLINE_BYTES: usize = 8 << 10;
/// Maximum number of bytes of objects that are read at a time to seal a store.
const BATCH_BYTES: u64 = 64 << 20;

/// The inventory entries of the objects that a transaction puts and deletes.
#[derive(Debug, Default)]
pub(super) struct SealChanges {
    /// `None` for a deleted object.
    changed: BTreeMap<String, Option<SealEntry>>,
}

/// The treatment of the inventory in a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SealUpdate {
    /// Applies the changes to the inventory of the base, if it has one.
    Keep,
    /// Writes a new inventory.
    Rebuild,
    Remove,
}

/// The leaves of an inventory to be committed.
pub(super) struct NextSeal {
    pub(super) index: SealIndex,
    /// Leaves that are objects and have to be put before the root.
    pub(super) objects: Vec<(Key, Bytes)>,
}

impl SealChanges {
    /// Puts the entry of an object, which then has no row table.
    pub(super) fn put(&mut self, key: &Key, entry: SealEntry) {
        if let Some(name) = entry_name(key) {
            self.changed.insert(name, Some(entry));
            self.remove_rows(key);
        }
    }

    /// Puts the row table of an object, after its entry.
    pub(super) fn put_rows(&mut self, (object, rows): (Key, Bytes)) {
        let entry = SealEntry::of_rows(rows);
        self.changed.insert(rows_name(&object), Some(entry));
    }

    pub(super) fn delete(&mut self, key: &Key) {
        if let Some(name) = entry_name(key) {
            self.changed.insert(name, None);
            self.remove_rows(key);
        }
    }

    /// Removes the row table that an object may have.
    fn remove_rows(&mut self, key: &Key) {
        let mut parts = key.as_str().split('/');
        if parts.any(|part| part == VERTEX_FRAGMENTS) {
            self.changed.insert(rows_name(key), None);
        }
    }

    pub(super) fn discard(&mut self, key: &Key) {
        if let Some(name) = entry_name(key) {
            self.changed.remove(&name);
            self.changed.remove(&rows_name(key));
        }
    }

    /// Takes the row tables out of objects, with the keys of their objects.
    pub(super) fn take_rows(objects: &mut Vec<(Key, Bytes)>) -> Vec<(Key, Bytes)> {
        let rows = objects.extract_if(.., |(key, _)| RowTable::is_at(key));
        rows.filter_map(|(key, rows)| Some((RowTable::object_at(&key)?, rows)))
            .collect()
    }

    /// Adds the entries of objects that are put and their row tables, with checksums computed before
    /// the lock is taken.
    pub(super) fn put_all(
        changes: &Mutex<Self>,
        objects: &[(Key, Bytes)],
        rows: Vec<(Key, Bytes)>,
    ) {
        let entries: Vec<SealEntry> = objects
            .iter()
            .map(|(_, bytes)| SealEntry::of(bytes))
            .collect();
        let mut changes = changes.lock().unwrap_or_else(PoisonError::into_inner);
        for ((key, _), entry) in objects.iter().zip(entries) {
            changes.put(key, entry);
        }
        for rows in rows {
            changes.put_rows(rows);
        }
    }

    /// Encodes the entries of objects that were put.
    pub(super) fn to_text(&self) -> String {
        let entries = self
            .changed
            .iter()
            .filter_map(|(name, entry)| Some((name, entry.as_ref()?)));
        base64::encode(&encode(entries))
    }

    /// Decodes entries.
    pub(super) fn from_text(text: &str) -> Result<Self, SealError> {
        let bytes = base64::decode(text.as_bytes()).map_err(|_| SealError::Inventory)?;
        let entries = parse(&bytes)?.to_map().into_iter();
        Ok(Self {
            changed: entries.map(|(name, entry)| (name, Some(entry))).collect(),
        })
    }

    /// Adds the changes of `other`.
    pub(super) fn extend(&mut self, other: Self) {
        self.changed.extend(other.changed);
    }

    /// Returns the entry of an object that was put.
    pub(super) fn entry(&self, key: &Key) -> Option<&SealEntry> {
        self.changed.get(&entry_name(key)?)?.as_ref()
    }

    /// Returns the row table of an object that was put with one.
    pub(super) fn rows(&self, key: &Key) -> Option<Bytes> {
        let entry = self.changed.get(&rows_name(key))?.as_ref()?;
        Some(entry.rows.clone())
    }

    /// Returns the inventory of these objects alone.
    pub(super) fn whole(
        &self,
        transaction: u64,
        prefix: &str,
    ) -> Result<NextSeal, TransactionError> {
        let entries = self
            .changed
            .iter()
            .filter_map(|(name, entry)| Some((name.clone(), entry.clone()?)));
        let mut next = NextSeal {
            index: SealIndex {
                transaction,
                leaves: Vec::new(),
            },
            objects: Vec::new(),
        };
        next.push(&entries.collect(), prefix)?;
        next.inline();
        Ok(next)
    }
}

impl NextSeal {
    /// Adds leaves of the entries.
    fn push(&mut self, entries: &Entries, prefix: &str) -> Result<(), TransactionError> {
        for leaf in split(entries) {
            let first = leaf.first().map(|(name, _)| (*name).clone());
            let bytes = encode(leaf);
            let key = seal_folder()?.join(&format!("{prefix}{}", self.objects.len()))?;
            let place = LeafPlace::Object {
                key: key.clone(),
                bytes: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
                crc: crc32fast::hash(&bytes),
            };
            self.index.leaves.push((first.unwrap_or_default(), place));
            self.objects.push((key, bytes));
        }
        Ok(())
    }

    /// Moves new leaves of objects into the root if these leaves together are small, and those of row
    /// tables if all leaves are.
    fn inline(&mut self) {
        let mut objects: BTreeMap<Key, Bytes> = self.objects.drain(..).collect();
        let mut total = 0_usize;
        for has_rows in [false, true] {
            let mut places: Vec<&mut LeafPlace> = self
                .index
                .leaves
                .iter_mut()
                .filter(|(first, _)| is_rows(first) == has_rows)
                .map(|(_, place)| place)
                .collect();
            let sizes = places.iter().map(|place| match place {
                LeafPlace::Inline(bytes) => bytes.len(),
                LeafPlace::Object { bytes, .. } => usize::try_from(*bytes).unwrap_or(usize::MAX),
            });
            total = sizes.fold(total, usize::saturating_add);
            if total > INLINE_BYTES {
                break;
            }
            for place in &mut places {
                if let LeafPlace::Object { key, .. } = place
                    && let Some(bytes) = objects.remove(key)
                {
                    **place = LeafPlace::Inline(bytes);
                }
            }
        }
        self.objects = objects.into_iter().collect();
    }

    /// Returns the root with this inventory.
    pub(super) fn write_into(&self, root: &[u8]) -> Result<Bytes, TransactionError> {
        let key = head_key()?;
        let root: Result<Map<String, Value>, _> = serde_json::from_slice(root);
        let mut root = root.map_err(|_| not_json(&key))?;
        self.index
            .insert_into(&mut root)
            .ok_or_else(|| not_json(&key))?;
        to_text(&mut root).map_err(|_| not_json(&key))
    }
}

/// Returns whether a row table of an inventory has the lengths of the cells that were read, or none.
fn agrees(listed: &Bytes, kept: &Bytes) -> bool {
    let (Ok(listed), Ok(kept)) = (RowTable::parse(listed), RowTable::parse(kept)) else {
        return false;
    };
    let mut kept = kept.iter();
    kept.all(|(number, lengths)| listed.get(number).is_none_or(|listed| listed == lengths))
}

impl Transaction {
    /// Seals the store with the commit: writes an inventory of all objects, which are read for it.
    /// Changes of a sealed store keep its inventory, without this.
    ///
    /// # Errors
    ///
    /// [`TransactionError`] if the objects cannot be listed or read.
    pub async fn seal(&mut self) -> Result<(), TransactionError> {
        let mut entries = self.store.without_overlay().read_entries().await?;
        entries.extend(core::mem::take(&mut self.seal));
        self.seal = entries;
        self.seal_update = SealUpdate::Rebuild;
        Ok(())
    }

    /// Seals the store with the commit: writes an inventory of the objects that this transaction
    /// puts. They must be all objects of the store.
    pub fn seal_puts(&mut self) {
        self.seal_update = SealUpdate::Rebuild;
    }

    /// Returns whether the store was sealed when this transaction began.
    pub fn is_sealed(&self) -> bool {
        SealIndex::parse(&self.base.document).is_ok_and(|index| index.is_some())
    }

    /// Commits without an inventory.
    pub fn remove_seal(&mut self) {
        self.seal_update = SealUpdate::Remove;
    }

    /// Returns the inventory after this transaction; `None` if the base has none or a damaged one.
    pub(super) async fn next_seal(
        &mut self,
        number: u64,
    ) -> Result<Option<NextSeal>, TransactionError> {
        if self.seal_update == SealUpdate::Remove {
            return Ok(None);
        }
        let attempt = self.seal_attempts;
        self.seal_attempts = attempt.saturating_add(1);
        let prefix = format!("{number}-{id}-{attempt}-", id = self.id.as_str());
        if self.seal_update == SealUpdate::Rebuild {
            return Ok(Some(self.seal.whole(number, &prefix)?));
        }
        // A damaged inventory is dropped, as is one with a damaged or missing leaf that has to be
        // changed: readers report it, and a change must not depend on it.
        let Some(base) = SealIndex::parse(&self.base.document).ok().flatten() else {
            return Ok(None);
        };
        let inventory = Inventory::new(base.clone());
        let mut changes: BTreeMap<usize, Vec<(&String, &Option<SealEntry>)>> = BTreeMap::new();
        for (name, entry) in &self.seal.changed {
            let after = base.leaves.partition_point(|(first, _)| first <= name);
            let leaf = changes.entry(after.saturating_sub(1)).or_default();
            leaf.push((name, entry));
        }
        let mut next = NextSeal {
            index: SealIndex {
                transaction: number,
                leaves: Vec::new(),
            },
            objects: Vec::new(),
        };
        let changed = changes.keys().filter_map(|leaf| inventory.leaf(*leaf));
        match try_join_all(changed.map(|leaf| self.store.entries(leaf))).await {
            Ok(_) => {}
            Err(ReadError::Sealed { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        let count = base.leaves.len().max(1);
        for number in 0..count {
            let Some(changes) = changes.get(&number) else {
                next.index.leaves.extend(base.leaves.get(number).cloned());
                continue;
            };
            let mut entries = match inventory.leaf(number) {
                Some(leaf) => self.store.entries(leaf).await?.to_map(),
                None => Entries::new(),
            };
            for (name, entry) in changes {
                match entry {
                    Some(entry) => drop(entries.insert((*name).clone(), entry.clone())),
                    None => drop(entries.remove(*name)),
                }
            }
            next.push(&entries, &prefix)?;
        }
        next.inline();
        Ok(Some(next))
    }

    /// Returns the leaves of the base that the next inventory does not refer to.
    pub(super) fn replaced_leaves(&self, next: Option<&NextSeal>) -> Vec<Key> {
        let Some(base) = SealIndex::parse(&self.base.document).ok().flatten() else {
            return Vec::new();
        };
        let kept: BTreeSet<&Key> = next.iter().flat_map(|next| next.index.objects()).collect();
        let old = base.objects().filter(|key| !kept.contains(key));
        old.cloned().collect()
    }
}

impl Store {
    /// Compares all objects with the inventory in `root`, the bytes of the root's `zarr.json`, and
    /// returns the differences in the order of keys. There are none if the store is not sealed.
    /// Reads every object. Row tables are compared with the cells that this store
    /// [kept](Self::keeping_entries).
    ///
    /// # Errors
    ///
    /// [`TransactionError`] if objects cannot be listed or read.
    #[doc(hidden)]
    pub async fn seal_differences(
        &self,
        root: &[u8],
    ) -> Result<Vec<(Key, SealError)>, TransactionError> {
        let store = self.without_seal();
        let index = match SealIndex::parse(root) {
            Ok(Some(index)) => index,
            Ok(None) => return Ok(Vec::new()),
            Err(source) => return Ok(vec![(head_key()?, source)]),
        };
        let mut differences = Vec::new();
        let mut listed = Entries::new();
        let inventory = Inventory::new(index);
        for leaf in inventory.leaves() {
            match store.entries(leaf).await {
                Ok(entries) => listed.extend(entries.to_map()),
                Err(ReadError::Sealed { key, source }) => differences.push((key, source)),
                Err(error) => return Err(error.into()),
            }
        }
        let rows = listed.split_off(ROWS);
        // The objects of a damaged leaf are unknown.
        let is_complete = differences.is_empty();
        let present = store.read_entries().await?;
        for (name, found) in &present.changed {
            let Some(found) = found else {
                continue;
            };
            let difference = match listed.remove(name) {
                Some(entry) if entry == *found => continue,
                Some(entry) if entry.size != found.size => SealError::Size {
                    listed: entry.size,
                    found: found.size,
                },
                Some(_) => SealError::Contents,
                None if is_complete => SealError::Unlisted,
                None => continue,
            };
            differences.extend(key_of_entry(name).map(|key| (key, difference)));
        }
        let missing = listed.keys().filter_map(|name| key_of_entry(name));
        differences.extend(missing.map(|key| (key, SealError::Missing)));
        let differing: BTreeSet<Key> = differences.iter().map(|(key, _)| key.clone()).collect();
        for (name, table) in &rows {
            let kept = self.kept_table(name);
            let is_wrong = kept.is_some_and(|kept| !agrees(&table.rows, &kept));
            if is_wrong
                && let Some(object) = object_of_rows(name).filter(|key| !differing.contains(key))
            {
                differences.push((object, SealError::Rows));
            }
        }
        differences.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(differences)
    }

    /// Reads objects and keeps their entries, so that [`seal_differences`](Self::seal_differences)
    /// does not read them again.
    ///
    /// # Errors
    ///
    /// [`TransactionError`] if they cannot be read.
    #[doc(hidden)]
    pub async fn keep_entries_of(&self, files: Vec<ListedFile>) -> Result<(), TransactionError> {
        let read = self
            .without_seal()
            .entries_of(files)
            .await?
            .changed
            .into_iter();
        self.keep_all(
            read.filter_map(|(name, entry)| Some((name, entry?)))
                .collect(),
        );
        Ok(())
    }

    /// Reads all objects and returns their entries.
    async fn read_entries(&self) -> Result<SealChanges, TransactionError> {
        let files = match self.kept_files() {
            Some(files) => files.to_vec(),
            None => self.list_all(&Key::root(), usize::MAX).await?,
        };
        self.entries_of(files).await
    }

    /// Returns the entries of objects, which are read unless their entries were kept.
    async fn entries_of(&self, files: Vec<ListedFile>) -> Result<SealChanges, TransactionError> {
        let mut entries = SealChanges::default();
        let mut batch = Vec::new();
        let mut batch_bytes = 0_u64;
        let last = files.len().saturating_sub(1);
        for (number, file) in files.into_iter().enumerate() {
            let key = Key::parse(&file.name)?;
            if let Some(entry) = self.kept_entry(&key, file.size) {
                entries.put(&key, entry);
            } else if entry_name(&key).is_some() {
                batch_bytes = batch_bytes.saturating_add(file.size);
                batch.push(Read::full(key));
            }
            if batch_bytes < BATCH_BYTES && number < last {
                continue;
            }
            for (read, bytes) in batch.iter().zip(self.read(&batch).await?) {
                if let Some(bytes) = bytes {
                    entries.put(&read.key, SealEntry::of(&bytes));
                }
            }
            batch.clear();
            batch_bytes = 0;
        }
        Ok(entries)
    }

    /// Returns the keys of leaves in the reserved folder that the root does not refer to.
    pub(super) fn unused_leaves<'a>(
        root: &[u8],
        found: impl Iterator<Item = &'a str>,
    ) -> Result<Vec<Key>, TransactionError> {
        let index = SealIndex::parse(root).ok().flatten();
        let used: BTreeSet<&Key> = index.iter().flat_map(SealIndex::objects).collect();
        let folder = seal_folder()?;
        let mut unused = Vec::new();
        for name in found {
            let key = folder.join(name)?;
            if !used.contains(&key) {
                unused.push(key);
            }
        }
        Ok(unused)
    }
}
