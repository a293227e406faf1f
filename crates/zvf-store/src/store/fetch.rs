//! A single request to an object store: its response checked and its errors classified.

use std::{
    borrow::Cow,
    sync::{Arc, atomic::Ordering},
};

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use object_store::{
    Error as Failure, GetOptions, GetRange, GetResult, ObjectMeta, ObjectStoreExt, path::Path,
};
use zvf_model::key::Key;

use super::{Store, file_read::OpenFile, overlay::OverlayEntry, regular_file, snapshot::SeenHead};
use crate::{
    backend::{
        self, Backend, FailureKind, gave_up_early, ignores_ranges, is_below_file, is_connection,
        is_of_another_range, message_contains, status,
    },
    io::{ByteBudget, ByteRange, FetchResult, FetchedRange, ObjectVersion, Read, ReadError},
};

impl Store {
    /// Reads a range of an object, from its staged key if a transaction is being applied.
    pub(super) async fn fetch_unchecked(&self, read: &Read, budget: &ByteBudget) -> FetchResult {
        for candidate in self.candidates(read).into_iter().flatten() {
            let fetched = self.fetch_at_key(&candidate, budget).await?;
            // A staged object disappears once it is applied; then the object is at its own key.
            if let Some(fetched) = fetched {
                self.keep_entry(read, &fetched);
                return Ok(Some(fetched));
            }
        }
        Ok(None)
    }

    /// Returns the reads to try, in order, for the object of `read`.
    pub(super) fn candidates<'r>(&self, read: &'r Read) -> [Option<Cow<'r, Read>>; 2] {
        match self.overlay().and_then(|overlay| overlay.get(&read.key)) {
            None => [Some(Cow::Borrowed(read)), None],
            Some(OverlayEntry::Deleted) => [None, None],
            Some(OverlayEntry::Staged(staged)) => {
                let staged = Read::new(staged.key.clone(), read.range.clone());
                [Some(Cow::Owned(staged)), Some(Cow::Borrowed(read))]
            }
        }
    }

    /// Reads a range of the object at the key of `read`.
    async fn fetch_at_key(&self, read: &Read, budget: &ByteBudget) -> FetchResult {
        if let Some(folder) = self.folder() {
            return self.fetch_file(folder, read, &mut OpenFile::default(), budget);
        }
        let fetched = match self.backend() {
            Backend::Objects(_) => {
                let fetch = || self.fetch_object(read, budget);
                self.retry_policy().run(fetch, is_malformed).await?
            }
            #[cfg(feature = "zip")]
            Backend::Zip(archive) => {
                self.recorder().request(read);
                archive.fetch(read, budget).await?
            }
        };
        if let Some(fetched) = &fetched {
            self.recorder().bytes(fetched.bytes.len());
        }
        Ok(fetched)
    }

    /// Reads a whole object and its version.
    pub(crate) async fn fetch_versioned(
        &self,
        key: &Key,
    ) -> Result<Option<(Bytes, ObjectVersion)>, ReadError> {
        let read = &Read::full(key.clone());
        self.check_regular(key)?;
        let fetch = || async move {
            let budget = ByteBudget::new(self.budget());
            let Some(response) = self
                .get(read, None)
                .await
                .map_err(|f| request_error(read, f))?
            else {
                return Ok(None);
            };
            let tag = ObjectVersion {
                e_tag: response.meta.e_tag.clone(),
                version: response.meta.version.clone(),
            };
            let fetched = collect(read, response, &budget).await?;
            Ok(Some((fetched.bytes, tag)))
        };
        let fetched = self.retry_policy().run(fetch, is_malformed).await?;
        if let Some((bytes, _)) = &fetched {
            self.recorder().bytes(bytes.len());
        }
        Ok(fetched)
    }

    /// Reads a whole object unless it has the given version; `None` if it has.
    ///
    /// Counts as a request over the network only.
    pub(super) async fn fetch_unless(
        &self,
        key: &Key,
        version: Option<&ObjectVersion>,
    ) -> Result<Option<Option<SeenHead>>, ReadError> {
        let Some(objects) = self.objects() else {
            let found = self.read_one(Read::full(key.clone())).await?;
            let head = |bytes| SeenHead::of_object(bytes, ObjectVersion::default(), 0);
            return Ok(Some(found.map(head)));
        };
        let read = &Read::full(key.clone());
        let path = Path::parse(key).map_err(|source| read_error(read, source.into()))?;
        let path: &Path = &self.root().parts().chain(path.parts()).collect();
        let is_counted = version.is_none() || self.settled_after().is_some();
        let fetch = || async move {
            if is_counted {
                self.recorder().request(read);
            }
            let options = GetOptions {
                if_none_match: version.and_then(|version| version.e_tag.clone()),
                ..GetOptions::default()
            };
            let response = objects.get_opts(path, options).await;
            let range = response
                .as_ref()
                .map_or(0..0, |response| response.range.clone());
            if is_counted {
                self.simulate_latency(range.end.saturating_sub(range.start))
                    .await;
            }
            let response = match response {
                Ok(response) => response,
                Err(Failure::NotModified { .. }) => return Ok(None),
                Err(Failure::NotFound { .. }) => return Ok(Some(None)),
                Err(failure) if is_below_file(&failure) => return Ok(Some(None)),
                Err(failure) => return Err(request_error(read, failure)),
            };
            let modified = response.meta.last_modified.timestamp_millis();
            let version = ObjectVersion {
                e_tag: response.meta.e_tag.clone(),
                version: response.meta.version.clone(),
            };
            let budget = ByteBudget::new(self.budget());
            let bytes = collect(read, response, &budget).await?.bytes;
            if is_counted {
                self.recorder().bytes(bytes.len());
            }
            Ok(Some(Some(SeenHead::of_object(bytes, version, modified))))
        };
        self.retry_policy().run(fetch, is_malformed).await
    }

    /// Returns the version of an object without reading it.
    pub(crate) async fn version(&self, key: &Key) -> Result<Option<ObjectVersion>, ReadError> {
        let meta = self.fetch_meta(key).await?;
        Ok(meta.map(|meta| ObjectVersion {
            e_tag: meta.e_tag,
            version: meta.version,
        }))
    }

    /// Returns the size, the version and the time of the last change of the object at a key; `None`
    /// if it is absent, or the store is a zip file.
    pub(super) async fn fetch_meta(&self, key: &Key) -> Result<Option<ObjectMeta>, ReadError> {
        let read = &Read::bounded(key.clone(), 0..0);
        let Some(objects) = self.objects() else {
            return Ok(None);
        };
        self.check_regular(key)?;
        self.recorder().request(read);
        let path = Path::parse(key).map_err(|source| read_error(read, source.into()))?;
        let path: Path = self.root().parts().chain(path.parts()).collect();
        let head = || objects.head(&path);
        let found = self.retry_policy().run(head, gave_up_early).await;
        let modified = found.as_ref().ok();
        self.note_read(modified.map(|meta| meta.last_modified.timestamp_millis()));
        match found {
            Ok(meta) => Ok(Some(meta)),
            Err(Failure::NotFound { .. }) => Ok(None),
            Err(failure) if is_below_file(&failure) => Ok(None),
            Err(failure) => Err(read_error(read, failure)),
        }
    }

    /// Checks that no pipe or device is in the place of a file, before `object_store` opens it.
    fn check_regular(&self, key: &Key) -> Result<(), ReadError> {
        let Some(folder) = self.folder() else {
            return Ok(());
        };
        regular_file::check(&folder.join(key.as_str())).map_err(|error| ReadError::Io {
            key: key.clone(),
            source: Arc::new(error),
        })
    }

    async fn fetch_object(&self, read: &Read, budget: &ByteBudget) -> FetchResult {
        let range = match &read.range {
            ByteRange::Full => None,
            _ if self.capabilities().ranges.lacks(&read.key) => None,
            ByteRange::Suffix(_) if self.capabilities().lacks_suffixes.load(Ordering::Relaxed) => {
                return self.fetch_suffix_by_size(read, budget).await;
            }
            ByteRange::Bounded(range) => Some(GetRange::Bounded(range.clone())),
            ByteRange::From(start) => Some(GetRange::Offset(*start)),
            ByteRange::Suffix(bytes) => Some(GetRange::Suffix(*bytes)),
        };
        let Some(range) = range else {
            return self.fetch_whole(read, budget).await;
        };
        match self.get(read, Some(range)).await {
            Ok(None) => Ok(None),
            Ok(Some(response)) => {
                self.capabilities().ranges.note_range();
                collect(read, response, budget).await.map(Some)
            }
            // The server, or a cache in front of it, was about to send the whole object.
            Err(failure) if ignores_ranges(&failure) => {
                self.capabilities().ranges.note_whole(&read.key);
                self.fetch_whole(read, budget).await
            }
            Err(Failure::NotSupported { .. }) if matches!(read.range, ByteRange::Suffix(_)) => {
                self.capabilities()
                    .lacks_suffixes
                    .store(true, Ordering::Relaxed);
                self.fetch_suffix_by_size(read, budget).await
            }
            Err(failure) => Err(request_error(read, failure)),
        }
    }

    /// Returns whether a range of an object is read by reading the object whole.
    pub(super) fn is_read_whole(&self, key: &Key) -> bool {
        match self.backend() {
            Backend::Objects(_) => self.capabilities().ranges.lacks(key),
            #[cfg(feature = "zip")]
            Backend::Zip(archive) => archive.is_deflated(key),
        }
    }

    async fn fetch_whole(&self, read: &Read, budget: &ByteBudget) -> FetchResult {
        let whole = Read::full(read.key.clone());
        match self.get(&whole, None).await {
            Ok(None) => Ok(None),
            Ok(Some(response)) => collect(&whole, response, budget).await.map(Some),
            Err(failure) => Err(request_error(read, failure)),
        }
    }

    /// Reads the end of an object from a store without suffix requests: the response to a request
    /// for the first byte has the size.
    async fn fetch_suffix_by_size(&self, read: &Read, budget: &ByteBudget) -> FetchResult {
        let ByteRange::Suffix(bytes) = read.range else {
            return Ok(None);
        };
        let first = Read::bounded(read.key.clone(), 0..1);
        let response = self.get(&first, Some(GetRange::Bounded(0..1))).await;
        let Some(response) = response.map_err(|failure| request_error(read, failure))? else {
            return Ok(None);
        };
        let size = response.meta.size;
        let Some(start) = size.checked_sub(bytes) else {
            return Err(ReadError::truncated(read, Some(size)));
        };
        let rest = Read::bounded(read.key.clone(), start..size);
        let response = self.get(&rest, Some(GetRange::Bounded(start..size))).await;
        match response.map_err(|failure| request_error(read, failure))? {
            None => Ok(None),
            Some(response) => {
                budget.reserve(&read.key, bytes)?;
                let fetched = collect(&rest, response, budget).await;
                if fetched.is_err() {
                    budget.release(bytes);
                }
                fetched.map(Some)
            }
        }
    }

    /// Sends one request; `Ok(None)` is an absent object.
    async fn get(
        &self,
        read: &Read,
        range: Option<GetRange>,
    ) -> Result<Option<GetResult>, Failure> {
        let Some(objects) = self.objects() else {
            return Ok(None);
        };
        self.recorder().request(read);
        let path = Path::parse(&read.key)?;
        let path: Path = self.root().parts().chain(path.parts()).collect();
        let options = GetOptions {
            range,
            ..GetOptions::default()
        };
        let response = objects.get_opts(&path, options).await;
        let modified = response.as_ref().ok();
        self.note_read(modified.map(|response| response.meta.last_modified.timestamp_millis()));
        let range = response
            .as_ref()
            .map_or(0..0, |response| response.range.clone());
        self.simulate_latency(range.end.saturating_sub(range.start))
            .await;
        match response {
            Ok(response) => Ok(Some(response)),
            Err(Failure::NotFound { .. }) => Ok(None),
            Err(failure) if is_below_file(&failure) => Ok(None),
            Err(failure) => Err(failure),
        }
    }
}

/// Reads the body of a response, which must have exactly the declared length.
///
/// The declared range may be shorter than the requested one, where the object ends. Reads that
/// share the request and lie before the end still succeed.
async fn collect(
    read: &Read,
    response: GetResult,
    budget: &ByteBudget,
) -> Result<FetchedRange, ReadError> {
    let range = response.range.clone();
    let size = response.meta.size;
    let declared = range.end.saturating_sub(range.start);
    if !matches!(read.range, ByteRange::Bounded(_)) {
        budget.reserve(&read.key, declared)?;
    }
    let bytes = body(read, response, declared).await;
    if bytes.is_err() && !matches!(read.range, ByteRange::Bounded(_)) {
        budget.release(declared);
    }
    let bytes = bytes?;
    Ok(FetchedRange {
        start: range.start,
        size,
        bytes,
    })
}

async fn body(read: &Read, response: GetResult, declared: u64) -> Result<Bytes, ReadError> {
    #[cfg(feature = "local")]
    if matches!(response.payload, object_store::GetResultPayload::File(..)) {
        return response
            .bytes()
            .await
            .map_err(|failure| read_error(read, failure));
    }
    let declared = usize::try_from(declared).unwrap_or(usize::MAX);
    // Given an `ETag`, `object_store` resumes a broken body itself.
    let resumed = response.meta.e_tag.is_some();
    let mut stream = response.into_stream();
    let mut whole = Bytes::new();
    let mut parts = BytesMut::new();
    while let Some(part) = stream.next().await {
        let part = part.map_err(|failure| {
            if is_connection(&failure) && !resumed {
                malformed(read, ResponseFault::Failure(failure))
            } else {
                read_error(read, failure)
            }
        })?;
        let so_far = whole.len().max(parts.len()).saturating_add(part.len());
        if so_far > declared {
            return Err(malformed(read, ResponseFault::Long));
        }
        // Most bodies are one part, which is returned without a copy.
        if whole.is_empty() && parts.is_empty() {
            whole = part;
            continue;
        }
        if parts.is_empty() {
            parts.reserve(declared.min(MAX_PREALLOC_BYTES));
            parts.extend_from_slice(&whole);
        }
        parts.extend_from_slice(&part);
    }
    let bytes = if parts.is_empty() {
        whole
    } else {
        parts.freeze()
    };
    if bytes.len() < declared {
        return Err(malformed(read, ResponseFault::Short));
    }
    Ok(bytes)
}

/// Maximum number of bytes preallocated for a body in several parts.
const MAX_PREALLOC_BYTES: usize = 1 << 20;

/// The defect of a response that arrived but does not match the request. A retry may help, and
/// `object_store` does not retry these.
#[derive(Debug, thiserror::Error)]
enum ResponseFault {
    #[error("the response is shorter than declared")]
    Short,
    #[error("the response is longer than declared")]
    Long,
    /// The body broke off, or the headers contradict the request.
    #[error(transparent)]
    Failure(Failure),
}

fn malformed(read: &Read, source: ResponseFault) -> ReadError {
    ReadError::Unavailable {
        key: read.key.clone(),
        source: Arc::new(source),
    }
}

fn is_malformed(error: &ReadError) -> bool {
    matches!(error, ReadError::Unavailable { source, .. } if source.is::<ResponseFault>())
}

/// Converts an error from before the body of a response.
fn request_error(read: &Read, failure: Failure) -> ReadError {
    if gave_up_early(&failure) {
        return malformed(read, ResponseFault::Failure(failure));
    }
    read_error(read, failure)
}

pub(super) fn read_error(read: &Read, failure: Failure) -> ReadError {
    let key = read.key.clone();
    if message_contains(&failure, "but object was only") || status(&failure) == Some(416) {
        return ReadError::truncated(read, None);
    }
    if is_of_another_range(&failure) {
        return malformed(read, ResponseFault::Failure(failure));
    }
    let (kind, source) = backend::classify(failure);
    let source = source.into();
    match kind {
        FailureKind::Unauthenticated => ReadError::Unauthenticated { key, source },
        FailureKind::Forbidden => ReadError::Forbidden { key, source },
        FailureKind::Throttled => ReadError::Throttled { key, source },
        FailureKind::Unavailable => ReadError::Unavailable { key, source },
        FailureKind::Other => ReadError::Io { key, source },
    }
}

#[cfg(test)]
mod tests;
