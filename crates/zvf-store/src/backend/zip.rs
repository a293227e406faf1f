//! Local zip files, read as stores of their entries.

use core::{error::Error, ops::Range};
use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, BufReader, Read as _, Seek, SeekFrom},
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use zip::{CompressionMethod, ZipArchive as ZipReader};
use zvf_model::key::Key;

use super::error::OpenError;
use crate::{
    io::{ByteBudget, ByteRange, FetchResult, FetchedRange, ListedFile, Listing, Read, ReadError},
    threads::run_blocking,
};

/// An open zip file and its directory, which is read once.
///
/// A range of a stored entry is read alone; a deflated entry is inflated whole. If all entries lie
/// in one folder with a `zarr.json`, as zipping a folder makes them, that folder is the store.
pub(crate) struct ZipArchive {
    entries: BTreeMap<String, Entry>,
    zip: Arc<Mutex<ZipReader<BufReader<File>>>>,
}

#[derive(Clone, Copy)]
struct Entry {
    index: usize,
    size: u64,
    stored: bool,
}

impl ZipArchive {
    pub(crate) fn open(path: &Path) -> Result<Self, OpenError> {
        let name = || path.display().to_string();
        let file = File::open(path).map_err(|source| OpenError::Io {
            path: name(),
            source,
        })?;
        let bad = |source: zip::result::ZipError| OpenError::Zip {
            path: name(),
            source: Box::new(source),
        };
        let zip = ZipReader::new(BufReader::new(file)).map_err(bad)?;
        let mut entries = BTreeMap::new();
        for index in 0..zip.len() {
            let entry = zip.by_index_data(index).map_err(bad)?;
            let key = entry.name().map_err(bad)?.into_owned();
            let compression = entry.compression();
            let stored = compression == CompressionMethod::Stored;
            let readable = stored || compression == CompressionMethod::Deflated;
            // Folders and other names that are not keys cannot be requested.
            if Key::parse(&key).is_err() || entry.encrypted() || !readable {
                continue;
            }
            let size = entry.size();
            entries.insert(
                key,
                Entry {
                    index,
                    size,
                    stored,
                },
            );
        }
        Ok(Self {
            entries: strip_single_folder(entries),
            zip: Arc::new(Mutex::new(zip)),
        })
    }

    /// Reads a range of an entry; `Ok(None)` is an absent entry.
    pub(crate) async fn fetch(&self, read: &Read, budget: &ByteBudget) -> FetchResult {
        let Some(entry) = self.entries.get(read.key.as_str()).copied() else {
            return Ok(None);
        };
        let wanted = match &read.range {
            ByteRange::Full => Some(0..entry.size),
            // A merged request may extend past the end; reads before the end still succeed.
            ByteRange::Bounded(range) => Some(range.start..range.end.min(entry.size)),
            ByteRange::From(start) => Some(*start..entry.size),
            ByteRange::Suffix(bytes) => entry
                .size
                .checked_sub(*bytes)
                .map(|start| start..entry.size),
        };
        let wanted = wanted
            .filter(|range| range.start <= range.end)
            .ok_or_else(|| ReadError::truncated(read, Some(entry.size)))?;
        let range = if entry.stored { wanted } else { 0..entry.size };
        // The requested bytes of a bounded range are reserved already.
        if !(entry.stored && matches!(read.range, ByteRange::Bounded(_))) {
            budget.reserve(&read.key, range.end.saturating_sub(range.start))?;
        }
        let io = |source: Arc<dyn Error + Send + Sync>| ReadError::Io {
            key: read.key.clone(),
            source,
        };
        let (zip, start) = (Arc::clone(&self.zip), range.start);
        let bytes = run_blocking(move || {
            let mut zip = zip.lock().unwrap_or_else(PoisonError::into_inner);
            entry.read(&mut zip, range)
        })
        .await
        .map_err(|e| io(Arc::new(e)))?;
        Ok(Some(FetchedRange {
            start,
            size: entry.size,
            bytes: bytes.map_err(|e| io(Arc::new(e)))?,
        }))
    }

    /// Returns whether an entry is read whole in order to read a range of it.
    pub(crate) fn is_deflated(&self, key: &Key) -> bool {
        let entry = self.entries.get(key.as_str());
        entry.is_some_and(|entry| !entry.stored)
    }

    /// Returns the entries below `prefix` with their paths relative to it.
    fn below<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a Entry)> {
        let entries = self
            .entries
            .range(prefix.to_owned()..)
            .map_while(move |(key, entry)| Some((key.strip_prefix(prefix)?, entry)));
        entries.filter_map(move |(below, entry)| match prefix {
            "" => Some((below, entry)),
            _ => Some((below.strip_prefix('/')?, entry)),
        })
    }

    pub(crate) fn list_all(&self, prefix: &str) -> Vec<ListedFile> {
        let files = self.below(prefix).map(|(below, entry)| ListedFile {
            name: below.to_owned(),
            size: entry.size,
        });
        files.collect()
    }

    pub(crate) fn list(&self, prefix: &str) -> Listing {
        let mut listing = Listing::default();
        for (below, entry) in self.below(prefix) {
            match below.split_once('/') {
                None => listing.files.push(ListedFile {
                    name: below.to_owned(),
                    size: entry.size,
                }),
                Some((folder, _)) if listing.folders.last().is_none_or(|last| last != folder) => {
                    listing.folders.push(folder.to_owned());
                }
                Some(_) => {}
            }
        }
        listing
    }
}

impl Entry {
    fn read(self, zip: &mut ZipReader<BufReader<File>>, range: Range<u64>) -> io::Result<Bytes> {
        let length = range.end.saturating_sub(range.start);
        let mut bytes = Vec::new();
        let read = if self.stored {
            let mut entry = zip.by_index_seek(self.index)?;
            entry.seek(SeekFrom::Start(range.start))?;
            entry.take(length).read_to_end(&mut bytes)?
        } else {
            let entry = zip.by_index(self.index)?;
            entry
                .take(length.saturating_add(1))
                .read_to_end(&mut bytes)?
        };
        if u64::try_from(read) == Ok(length) {
            Ok(bytes.into())
        } else {
            Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the entry does not have the length that the zip directory declares",
            ))
        }
    }
}

/// Strips the folder that contains all entries from their keys, if it holds a `zarr.json`.
fn strip_single_folder(entries: BTreeMap<String, Entry>) -> BTreeMap<String, Entry> {
    let first = entries.keys().next().and_then(|key| key.split_once('/'));
    let Some((folder, _)) = first else {
        return entries;
    };
    let folder = format!("{folder}/");
    let only = entries.keys().all(|key| key.starts_with(&folder));
    if !only || !entries.contains_key(&format!("{folder}zarr.json")) {
        return entries;
    }
    let below =
        |(key, entry): (String, Entry)| Some((key.strip_prefix(&folder)?.to_owned(), entry));
    entries.into_iter().filter_map(below).collect()
}
