//! Checks of reads against the inventory of a sealed store.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path as FilePath,
    sync::{Arc, PoisonError},
};

use bytes::Bytes;
use futures_util::future::{join, try_join_all};
use zvf_model::{key::Key, metadata::Attributes};

use super::{Store, file_read::OpenFile};
use crate::{
    io::{
        ByteBudget, ByteRange, FetchResult, FetchedRange, ListError, ListedFile, Listing, Read,
        ReadError, SealError,
    },
    seal::{
        self, BlockCache, CheckExtent, Entries, Inventory, Leaf, LeafEntries, LeafPlace, RowTable,
        SealEntry, SealIndex, child_nodes, entry_name,
    },
};

impl Store {
    /// Returns this store with its reads checked against the inventory in `root`, the bytes of the
    /// root's `zarr.json`. The store itself if there is none, or if
    /// [`OpenOptions::seal`](crate::OpenOptions::seal) is off.
    ///
    /// # Errors
    ///
    /// [`ReadError::Sealed`] if the root or the inventory in it is damaged.
    #[doc(hidden)]
    pub fn with_seal(&self, root: &[u8]) -> Result<Self, ReadError> {
        if !self.inner.checks_seal || !SealIndex::may_be_in(root) {
            return Ok(self.without_seal());
        }
        let index = SealIndex::parse(root).map_err(|source| ReadError::Sealed {
            key: Key::parse("zarr.json").unwrap_or_else(|_| Key::root()),
            source,
        })?;
        Ok(Self {
            seal: index.map(|index| Arc::new(Inventory::new(index))),
            ..self.clone()
        })
    }

    /// Returns whether a root with these attributes may have an inventory, which
    /// [`with_seal`](Self::with_seal) parses.
    #[doc(hidden)]
    pub fn may_be_sealed(attributes: &Attributes) -> bool {
        attributes.contains_key(seal::MEMBER)
    }

    /// Returns whether a root document may have an inventory.
    #[doc(hidden)]
    pub fn is_sealed_by(root: &[u8]) -> bool {
        SealIndex::may_be_in(root)
    }

    /// Returns this store without checks against the inventory.
    #[must_use]
    #[doc(hidden)]
    pub fn without_seal(&self) -> Self {
        Self {
            seal: None,
            ..self.clone()
        }
    }

    /// Returns this store with the entries of objects kept that it reads whole, so that
    /// [`seal_differences`](Self::seal_differences) does not read them again.
    #[must_use]
    #[doc(hidden)]
    pub fn keeping_entries(&self) -> Self {
        Self {
            kept: Some(Arc::default()),
            ..self.clone()
        }
    }

    /// Returns whether entries are kept.
    pub(crate) fn keeps_entries(&self) -> bool {
        self.kept.is_some()
    }

    /// Keeps the entry of an object that was read whole.
    pub(super) fn keep_entry(&self, read: &Read, fetched: &FetchedRange) {
        let is_whole = u64::try_from(fetched.bytes.len()) == Ok(fetched.size);
        let Some(kept) = self.kept.as_ref().filter(|_| is_whole) else {
            return;
        };
        if let Some(name) = entry_name(&read.key) {
            let entry = SealEntry::of(&fetched.bytes);
            let mut entries = kept.entries.lock().unwrap_or_else(PoisonError::into_inner);
            entries.insert(name, entry);
        }
    }

    /// Keeps the lengths of the fragments of a cell that was read whole; `None` if a row table cannot have
    /// them.
    pub(crate) fn keep_lengths(
        &self,
        object: &Key,
        number: Option<u64>,
        lengths: impl FnOnce() -> Option<Vec<u8>>,
    ) {
        if let Some(kept) = &self.kept {
            let lengths = lengths();
            let mut tables = kept.tables.lock().unwrap_or_else(PoisonError::into_inner);
            let entry = tables.entry(seal::rows_name(object));
            let table = entry.or_insert_with(|| RowTable::new(object.clone()));
            table.push(number, lengths.as_deref().unwrap_or(RowTable::NO_LENGTHS));
        }
    }

    /// Returns the bytes of the row table of this name, with the cells that were read.
    pub(crate) fn kept_table(&self, name: &str) -> Option<Bytes> {
        let tables = &self.kept.as_ref()?.tables;
        let tables = tables.lock().unwrap_or_else(PoisonError::into_inner);
        Some(tables.get(name)?.to_bytes())
    }

    /// Keeps the listing of the whole store.
    pub(super) fn keep_files(&self, files: &[ListedFile]) {
        if let Some(kept) = &self.kept {
            kept.files.get_or_init(|| files.to_vec());
        }
    }

    /// Returns the entry of an object of this size, if it was kept.
    pub(crate) fn kept_entry(&self, key: &Key, size: u64) -> Option<SealEntry> {
        let entries = self
            .kept
            .as_ref()?
            .entries
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let entry = entries.get(&entry_name(key)?)?;
        (entry.size == size).then(|| entry.clone())
    }

    /// Returns the kept entries, for [`add_kept_entries`](Self::add_kept_entries) of another process.
    #[doc(hidden)]
    pub fn kept_entries(&self) -> Vec<Bytes> {
        let Some(kept) = &self.kept else {
            return Vec::new();
        };
        let mut entries = kept
            .entries
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let tables = kept.tables.lock().unwrap_or_else(PoisonError::into_inner);
        entries.extend(tables.iter().map(|(name, table)| {
            let entry = SealEntry::of_rows(table.to_bytes());
            (name.clone(), entry)
        }));
        seal::split(&entries)
            .into_iter()
            .map(seal::encode)
            .collect()
    }

    /// Adds entries that another process kept of objects that it read whole.
    ///
    /// # Errors
    ///
    /// [`SealError::Inventory`] if the bytes are not entries.
    #[doc(hidden)]
    pub fn add_kept_entries(&self, bytes: &[u8]) -> Result<(), SealError> {
        let read = seal::parse(bytes)?;
        self.keep_all(read.to_map());
        Ok(())
    }

    /// Adds entries to the kept ones.
    pub(crate) fn keep_all(&self, mut read: Entries) {
        if let Some(kept) = &self.kept {
            let mut tables = kept.tables.lock().unwrap_or_else(PoisonError::into_inner);
            for (name, entry) in read.split_off(seal::ROWS) {
                if let Some(object) = seal::object_of_rows(&name) {
                    let table = tables.entry(name).or_insert_with(|| RowTable::new(object));
                    table.append(&entry.rows);
                }
            }
            let mut entries = kept.entries.lock().unwrap_or_else(PoisonError::into_inner);
            entries.extend(read);
        }
    }

    /// Returns the listing of the whole store, if it was kept.
    pub(crate) fn kept_files(&self) -> Option<&[ListedFile]> {
        Some(self.kept.as_ref()?.files.get()?)
    }

    /// Returns whether reads are checked against an inventory.
    pub fn is_sealed(&self) -> bool {
        self.seal.is_some()
    }

    /// Reads a range of an object and checks it. The leaf of the inventory is fetched concurrently.
    pub(super) async fn fetch(&self, read: &Read, budget: &ByteBudget) -> FetchResult {
        match self.sealed(&read.key) {
            None => self.fetch_unchecked(read, budget).await,
            // Boxed, so that reads of other stores have small futures.
            Some((seal, name)) => Box::pin(self.fetch_checked(read, budget, seal, name)).await,
        }
    }

    async fn fetch_checked(
        &self,
        read: &Read,
        budget: &ByteBudget,
        seal: &Inventory,
        name: String,
    ) -> FetchResult {
        let leaf = seal.leaf_of(&name);
        let known = leaf
            .and_then(Leaf::entries)
            .transpose()?
            .and_then(|entries| entries.get(&name));
        let blocks = seal.blocks.get().filter(|_| self.is_cached_by_block(read));
        if let (Some(blocks), Some(entry)) = (blocks, &known) {
            let range = entry.resolve(&read.range);
            if let Some(cached) = blocks.get(&read.key, &range, entry.size) {
                return Ok(Some(cached));
            }
        }
        let request = widen(read, known.as_ref(), budget)?;
        let fetched = self.fetch_unchecked(&request, budget);
        let (fetched, entry) = join(fetched, self.entry(leaf, &name)).await;
        let (mut fetched, entry) = (fetched?, entry?);
        let extent = check(read, entry.as_ref(), fetched.as_ref())?;
        if let (CheckExtent::InPart, Some(entry)) = (extent, entry) {
            let request = widen(read, Some(&entry), budget)?;
            fetched = self.fetch_unchecked(&request, budget).await?;
            check(read, Some(&entry), fetched.as_ref())?;
        }
        if let (Some(blocks), Some(fetched)) = (blocks, &fetched) {
            blocks.insert(&read.key, fetched);
        }
        Ok(fetched)
    }

    /// Returns whether the blocks of a read are cached: parts of an object, also where the store
    /// delivers objects only whole.
    fn is_cached_by_block(&self, read: &Read) -> bool {
        match read.range {
            ByteRange::Bounded(_) => true,
            ByteRange::Full => self.is_read_whole(&read.key),
            ByteRange::From(_) | ByteRange::Suffix(_) => false,
        }
    }

    /// Caches up to `bytes` bytes of checked blocks of objects that are read in parts.
    pub(crate) fn cache_blocks(&self, bytes: u64) {
        if let Some(seal) = &self.seal {
            seal.blocks.get_or_init(|| BlockCache::new(bytes));
        }
    }

    /// Returns whether an object below `node` may have `bytes` bytes or more.
    pub(crate) fn may_have_larger(&self, node: &Key, bytes: u64) -> bool {
        let prefix = format!("o{node}/", node = node.as_str());
        let seal = self.seal.as_ref();
        seal.is_some_and(|seal| seal.may_have_larger(&prefix, bytes))
    }

    /// Returns the number of bytes that are fetched for the row tables of the array at `node`; `None` if
    /// there are none.
    pub(crate) fn row_table_bytes(&self, node: &Key) -> Option<u64> {
        let prefix = format!("{name}/", name = seal::rows_name(node));
        let mut leaves = self.seal.as_ref()?.leaves_with(&prefix);
        leaves
            .by_ref()
            .filter(|leaf| leaf.has_rows())
            .fold(None, |sum, leaf| {
                Some(sum.unwrap_or(0_u64).saturating_add(leaf.size()))
            })
    }

    /// Returns the lengths of the fragments of cells, each given by its object and its number in it;
    /// `None` for cells that the inventory has none of. Takes one round trip for leaves that were not
    /// fetched.
    pub(crate) async fn fragment_lengths(
        &self,
        cells: &[(Key, Option<u64>)],
    ) -> Result<Vec<Option<Bytes>>, ReadError> {
        let mut tables: BTreeMap<&Key, BTreeMap<u64, Bytes>> = BTreeMap::new();
        let objects: BTreeSet<&Key> = cells.iter().map(|(object, _)| object).collect();
        let found = try_join_all(objects.into_iter().map(|object| async move {
            let name = seal::rows_name(object);
            let leaf = self.seal.as_deref().and_then(|seal| seal.leaf_of(&name));
            let Some(leaf) = leaf.filter(|leaf| leaf.has_rows()) else {
                return Ok((object, BTreeMap::new()));
            };
            let entry = self.entries(leaf).await?.get(&name);
            let parsed = entry.map(|entry| RowTable::parse(&entry.rows)).transpose();
            let table = parsed.map_err(|source| ReadError::Sealed {
                key: object.clone(),
                source,
            })?;
            Ok::<_, ReadError>((object, table.unwrap_or_default()))
        }));
        tables.extend(found.await?);
        let lengths = |(object, number): &(Key, Option<u64>)| {
            let table = tables.get(object)?;
            table.get(&number.unwrap_or_default()).cloned()
        };
        Ok(cells.iter().map(lengths).collect())
    }

    /// Returns whether reads of an object are checked against an inventory.
    pub(crate) fn checks(&self, key: &Key) -> bool {
        self.sealed(key).is_some()
    }

    /// Returns the size of an object in the inventory, if the leaf with its entry was fetched, as it is
    /// after a read of the object.
    pub(crate) fn sealed_size(&self, key: &Key) -> Option<u64> {
        let (seal, name) = self.sealed(key)?;
        let entries = seal.leaf_of(&name)?.entries()?.ok()?;
        entries.size(&name)
    }

    /// Reads a range of a file and checks it.
    pub(super) fn fetch_at(
        &self,
        folder: &FilePath,
        read: &Read,
        open_file: &mut OpenFile,
        budget: &ByteBudget,
    ) -> FetchResult {
        let Some((seal, name)) = self.sealed(&read.key) else {
            return self.fetch_at_unchecked(folder, read, open_file, budget);
        };
        let entry = match seal.leaf_of(&name) {
            Some(leaf) => self.entries_blocking(folder, leaf)?.get(&name),
            None => None,
        };
        let request = widen(read, entry.as_ref(), budget)?;
        let fetched = self.fetch_at_unchecked(folder, &request, open_file, budget)?;
        check(read, entry.as_ref(), fetched.as_ref())?;
        Ok(fetched)
    }

    /// Checks the sizes of listed objects.
    pub(super) async fn check_sizes(
        &self,
        keys: &[Key],
        found: &[Option<u64>],
    ) -> Result<(), ListError> {
        let pairs = keys.iter().zip(found);
        let checked = try_join_all(pairs.map(|(key, found)| self.check_size(key, *found))).await;
        checked.map(drop).map_err(|source| ListError::Sealed {
            prefix: source.key().clone(),
            source,
        })
    }

    /// Checks the size of an object, or its absence.
    pub(super) async fn check_size(&self, key: &Key, found: Option<u64>) -> Result<(), ReadError> {
        let Some((seal, name)) = self.sealed(key) else {
            return Ok(());
        };
        let entry = self.entry(seal.leaf_of(&name), &name).await?;
        let source = match (entry.map(|entry| entry.size), found) {
            (listed, found) if listed == found => return Ok(()),
            (None, _) => SealError::Unlisted,
            (Some(_), None) => SealError::Missing,
            (Some(listed), Some(found)) => SealError::Size { listed, found },
        };
        let key = key.clone();
        Err(ReadError::Sealed { key, source })
    }

    /// Checks that a listing has every folder with nodes.
    pub(super) async fn check_listing(
        &self,
        prefix: &Key,
        listing: &Listing,
    ) -> Result<(), ListError> {
        let Some(seal) = &self.seal else {
            return Ok(());
        };
        let name = if prefix.is_root() {
            "n".to_owned()
        } else {
            format!("n{prefix}/", prefix = prefix.as_str())
        };
        for leaf in seal.leaves_with(&name) {
            let entries = self
                .entries(leaf)
                .await
                .map_err(|source| ListError::Sealed {
                    prefix: prefix.clone(),
                    source,
                })?;
            for child in child_nodes(&entries, &name) {
                if listing.folders.iter().any(|folder| folder == child) {
                    continue;
                }
                let key = prefix.join(child).unwrap_or_else(|_| prefix.clone());
                let source = SealError::Missing;
                return Err(ListError::Sealed {
                    prefix: key.clone(),
                    source: ReadError::Sealed { key, source },
                });
            }
        }
        Ok(())
    }

    /// Returns the inventory and the name of an object in it, if reads of the object are checked.
    fn sealed(&self, key: &Key) -> Option<(&Inventory, String)> {
        let seal = self.seal.as_deref()?;
        Some((seal, entry_name(key)?))
    }

    async fn entry(&self, leaf: Option<&Leaf>, name: &str) -> Result<Option<SealEntry>, ReadError> {
        match leaf {
            Some(leaf) => Ok(self.entries(leaf).await?.get(name)),
            None => Ok(None),
        }
    }

    /// Returns the entries of a leaf, fetched by the first caller.
    pub(crate) async fn entries(&self, leaf: &Leaf) -> Result<Arc<LeafEntries>, ReadError> {
        if let Some(entries) = leaf.entries() {
            return entries;
        }
        if let Some(folder) = self.folder() {
            return self.entries_blocking(folder, leaf);
        }
        let _fetching = leaf.fetching.lock().await;
        let LeafPlace::Object { key, bytes, .. } = &leaf.place else {
            return leaf.fetched(None);
        };
        if let Some(entries) = leaf.entries() {
            return entries;
        }
        let budget = ByteBudget::new(self.budget());
        budget.reserve(key, *bytes)?;
        let read = Read::full(key.clone());
        let fetched = self.fetch_unchecked(&read, &budget).await?;
        leaf.fetched(fetched.as_ref().map(|fetched| &fetched.bytes))
    }

    fn entries_blocking(
        &self,
        folder: &FilePath,
        leaf: &Leaf,
    ) -> Result<Arc<LeafEntries>, ReadError> {
        if let Some(entries) = leaf.entries() {
            return entries;
        }
        let _fetching = leaf.wait();
        let LeafPlace::Object { key, .. } = &leaf.place else {
            return leaf.fetched(None);
        };
        if let Some(entries) = leaf.entries() {
            return entries;
        }
        let budget = ByteBudget::new(self.budget());
        let read = Read::full(key.clone());
        let file = &mut OpenFile::default();
        let fetched = self.fetch_at_unchecked(folder, &read, file, &budget)?;
        leaf.fetched(fetched.as_ref().map(|fetched| &fetched.bytes))
    }
}

/// Returns `read` widened to whole blocks of the inventory, with the additional bytes reserved.
fn widen(read: &Read, entry: Option<&SealEntry>, budget: &ByteBudget) -> Result<Read, ReadError> {
    let range = match (&read.range, entry) {
        (ByteRange::Full, _) => return Ok(read.clone()),
        // A range past the end is an error of its own.
        (ByteRange::Bounded(range), Some(entry)) if range.end > entry.size => {
            return Ok(read.clone());
        }
        (ByteRange::Suffix(bytes), Some(entry)) if *bytes > entry.size => return Ok(read.clone()),
        (range, Some(entry)) => ByteRange::Bounded(entry.blocks_around(range)),
        (range, None) => seal::aligned(range),
    };
    let length = |range: &ByteRange| match range {
        ByteRange::Bounded(range) => range.end.saturating_sub(range.start),
        ByteRange::Full | ByteRange::From(_) | ByteRange::Suffix(_) => 0,
    };
    // The requested bytes of a bounded range are reserved already.
    budget.reserve(
        &read.key,
        length(&range).saturating_sub(length(&read.range)),
    )?;
    Ok(Read::new(read.key.clone(), range))
}

fn check(
    read: &Read,
    entry: Option<&SealEntry>,
    fetched: Option<&FetchedRange>,
) -> Result<CheckExtent, ReadError> {
    let checked = match (entry, fetched) {
        (None, None) => Ok(CheckExtent::Whole),
        (None, Some(_)) => Err(SealError::Unlisted),
        (Some(_), None) => Err(SealError::Missing),
        (Some(entry), Some(fetched)) => entry.check(fetched, &read.range),
    };
    checked.map_err(|source| ReadError::Sealed {
        key: read.key.clone(),
        source,
    })
}
