//! One request of an object store, its answer checked and its errors sorted.

use std::{
    borrow::Cow,
    sync::{Arc, atomic::Ordering},
};

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use object_store::{Error as Failure, GetOptions, GetRange, GetResult, ObjectStoreExt, path::Path};
use zvf_model::key::Key;

use crate::{
    failure::{
        self, Kind, contradicts, gave_up_early, ignores_ranges, is_below_a_file, is_connection,
        says, status,
    },
    overlay::Instead,
    plan::Fetched,
    range::{ByteRange, Read},
    read::{Budget, ReadError},
    read_files::Last,
    store::{Backend, Store},
    write::Tag,
};

impl Store {
    pub(crate) async fn fetch(
        &self,
        read: &Read,
        budget: &Budget,
    ) -> Result<Option<Fetched>, ReadError> {
        for place in self.places(read).into_iter().flatten() {
            let fetched = self.fetch_here(&place, budget).await?;
            // What was staged is gone when it was applied meanwhile.
            if fetched.is_some() {
                return Ok(fetched);
            }
        }
        Ok(None)
    }

    /// Where to look for what is read, in this order.
    pub(crate) fn places<'r>(&self, read: &'r Read) -> [Option<Cow<'r, Read>>; 2] {
        match self.overlay().and_then(|overlay| overlay.get(&read.key)) {
            None => [Some(Cow::Borrowed(read)), None],
            Some(Instead::Nothing) => [None, None],
            Some(Instead::Staged(staged)) => {
                let staged = Read::new(staged.key.clone(), read.range.clone());
                [Some(Cow::Owned(staged)), Some(Cow::Borrowed(read))]
            }
        }
    }

    /// A part of the object at this very key.
    async fn fetch_here(&self, read: &Read, budget: &Budget) -> Result<Option<Fetched>, ReadError> {
        if let Some(folder) = self.folder() {
            return self.fetch_file(folder, read, &mut Last::default(), budget);
        }
        let fetched = match self.backend() {
            Backend::Objects(_) => {
                let fetch = || self.fetch_object(read, budget);
                self.tries().until_whole(fetch, is_broken).await?
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

    /// All of an object, and its tag.
    pub(crate) async fn fetch_tagged(&self, key: &Key) -> Result<Option<(Bytes, Tag)>, ReadError> {
        let read = &Read::full(key.clone());
        let fetch = || async move {
            let budget = Budget::new(self.budget());
            let Some(answer) = self.get(read, None).await.map_err(|f| refused(read, f))? else {
                return Ok(None);
            };
            let tag = Tag {
                e_tag: answer.meta.e_tag.clone(),
                version: answer.meta.version.clone(),
            };
            let fetched = collect(read, answer, &budget).await?;
            Ok(Some((fetched.bytes, tag)))
        };
        let fetched = self.tries().until_whole(fetch, is_broken).await?;
        if let Some((bytes, _)) = &fetched {
            self.recorder().bytes(bytes.len());
        }
        Ok(fetched)
    }

    /// The tag of an object, without its bytes.
    pub(crate) async fn tag(&self, key: &Key) -> Result<Option<Tag>, ReadError> {
        let read = &Read::bounded(key.clone(), 0..0);
        let Some(objects) = self.objects() else {
            return Ok(None);
        };
        self.recorder().request(read);
        let path = Path::parse(key).map_err(|source| sort(read, source.into()))?;
        let path: Path = self.root().parts().chain(path.parts()).collect();
        let head = || objects.head(&path);
        match self.tries().until_whole(head, gave_up_early).await {
            Ok(meta) => Ok(Some(Tag {
                e_tag: meta.e_tag,
                version: meta.version,
            })),
            Err(Failure::NotFound { .. }) => Ok(None),
            Err(failure) => Err(sort(read, failure)),
        }
    }

    async fn fetch_object(
        &self,
        read: &Read,
        budget: &Budget,
    ) -> Result<Option<Fetched>, ReadError> {
        let range = match &read.range {
            ByteRange::Full => None,
            _ if self.lacks().ranges.load(Ordering::Relaxed) => None,
            ByteRange::Suffix(_) if self.lacks().suffixes.load(Ordering::Relaxed) => {
                return self.fetch_suffix_without(read, budget).await;
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
            Ok(Some(answer)) => collect(read, answer, budget).await.map(Some),
            // A plain file server: it was about to send all of the object.
            Err(failure) if ignores_ranges(&failure) => {
                self.lacks().ranges.store(true, Ordering::Relaxed);
                self.fetch_whole(read, budget).await
            }
            Err(Failure::NotSupported { .. }) if matches!(read.range, ByteRange::Suffix(_)) => {
                self.lacks().suffixes.store(true, Ordering::Relaxed);
                self.fetch_suffix_without(read, budget).await
            }
            Err(failure) => Err(refused(read, failure)),
        }
    }

    async fn fetch_whole(
        &self,
        read: &Read,
        budget: &Budget,
    ) -> Result<Option<Fetched>, ReadError> {
        let whole = Read::full(read.key.clone());
        match self.get(&whole, None).await {
            Ok(None) => Ok(None),
            Ok(Some(answer)) => collect(&whole, answer, budget).await.map(Some),
            Err(failure) => Err(refused(read, failure)),
        }
    }

    /// The end of an object in a store that cannot be asked for it: the answer
    /// to a request for the first byte tells the size.
    async fn fetch_suffix_without(
        &self,
        read: &Read,
        budget: &Budget,
    ) -> Result<Option<Fetched>, ReadError> {
        let ByteRange::Suffix(bytes) = read.range else {
            return Ok(None);
        };
        let first = Read::bounded(read.key.clone(), 0..1);
        let answer = self.get(&first, Some(GetRange::Bounded(0..1))).await;
        let Some(answer) = answer.map_err(|failure| refused(read, failure))? else {
            return Ok(None);
        };
        let size = answer.meta.size;
        let Some(start) = size.checked_sub(bytes) else {
            return Err(truncated(read, Some(size)));
        };
        let rest = Read::bounded(read.key.clone(), start..size);
        let answer = self.get(&rest, Some(GetRange::Bounded(start..size))).await;
        match answer.map_err(|failure| refused(read, failure))? {
            None => Ok(None),
            Some(answer) => {
                budget.reserve(&read.key, bytes)?;
                let fetched = collect(&rest, answer, budget).await;
                if fetched.is_err() {
                    budget.release(bytes);
                }
                fetched.map(Some)
            }
        }
    }

    /// One request. `Ok(None)` is an absent object.
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
        let answer = objects.get_opts(&path, options).await;
        let range = answer.as_ref().map_or(0..0, |answer| answer.range.clone());
        self.wait(range.end.saturating_sub(range.start)).await;
        match answer {
            Ok(answer) => Ok(Some(answer)),
            Err(Failure::NotFound { .. }) => Ok(None),
            Err(failure) if is_below_a_file(&failure) => Ok(None),
            Err(failure) => Err(failure),
        }
    }
}

/// The body of an answer, never more or fewer bytes than it declares. It may
/// declare fewer than asked for, where the object ends: of the reads that share
/// the request, those in front of the end are answered.
async fn collect(read: &Read, answer: GetResult, budget: &Budget) -> Result<Fetched, ReadError> {
    let range = answer.range.clone();
    let size = answer.meta.size;
    let declared = range.end.saturating_sub(range.start);
    if !matches!(read.range, ByteRange::Bounded(_)) {
        budget.reserve(&read.key, declared)?;
    }
    let bytes = body(read, answer, declared).await;
    if bytes.is_err() && !matches!(read.range, ByteRange::Bounded(_)) {
        budget.release(declared);
    }
    let bytes = bytes?;
    Ok(Fetched {
        start: range.start,
        size,
        bytes,
    })
}

async fn body(read: &Read, answer: GetResult, declared: u64) -> Result<Bytes, ReadError> {
    if matches!(answer.payload, object_store::GetResultPayload::File(..)) {
        return answer.bytes().await.map_err(|failure| sort(read, failure));
    }
    let most = usize::try_from(declared).unwrap_or(usize::MAX);
    // With a tag `object_store` fetches the rest itself.
    let resumed = answer.meta.e_tag.is_some();
    let mut stream = answer.into_stream();
    let mut whole = Bytes::new();
    let mut parts = BytesMut::new();
    while let Some(part) = stream.next().await {
        let part = part.map_err(|failure| {
            if is_connection(&failure) && !resumed {
                broken(read, Broken::Failure(failure))
            } else {
                sort(read, failure)
            }
        })?;
        let so_far = whole.len().max(parts.len()).saturating_add(part.len());
        if so_far > most {
            return Err(broken(read, Broken::Long));
        }
        // The usual answer is one part, passed on as it is.
        if whole.is_empty() && parts.is_empty() {
            whole = part;
            continue;
        }
        if parts.is_empty() {
            parts.reserve(most.min(FIRST_RESERVE));
            parts.extend_from_slice(&whole);
        }
        parts.extend_from_slice(&part);
    }
    let bytes = if parts.is_empty() {
        whole
    } else {
        parts.freeze()
    };
    if bytes.len() < most {
        return Err(broken(read, Broken::Short));
    }
    Ok(bytes)
}

/// Reserved for an answer in parts before its bytes are there; then it grows.
const FIRST_RESERVE: usize = 1 << 20;

pub(crate) fn truncated(read: &Read, size: Option<u64>) -> ReadError {
    ReadError::Truncated {
        key: read.key.clone(),
        wanted: read.range.clone(),
        size,
    }
}

/// What is wrong with an answer that came and is not the one asked for. Asking
/// again may help, and `object_store` does not.
#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error("the answer is shorter than it declares")]
    Short,
    #[error("the answer is longer than it declares")]
    Long,
    /// It broke off, or its head contradicts the request.
    #[error(transparent)]
    Failure(Failure),
}

fn broken(read: &Read, source: Broken) -> ReadError {
    ReadError::Unavailable {
        key: read.key.clone(),
        source: Arc::new(source),
    }
}

fn is_broken(error: &ReadError) -> bool {
    matches!(error, ReadError::Unavailable { source, .. } if source.is::<Broken>())
}

/// What the start of an answer says.
fn refused(read: &Read, failure: Failure) -> ReadError {
    if gave_up_early(&failure) {
        return broken(read, Broken::Failure(failure));
    }
    sort(read, failure)
}

fn sort(read: &Read, failure: Failure) -> ReadError {
    let key = read.key.clone();
    if says(&failure, "but object was only") || status(&failure) == Some(416) {
        return truncated(read, None);
    }
    if contradicts(&failure) {
        return broken(read, Broken::Failure(failure));
    }
    let (kind, source) = failure::sort(failure);
    let source = source.into();
    match kind {
        Kind::Unauthenticated => ReadError::Unauthenticated { key, source },
        Kind::Forbidden => ReadError::Forbidden { key, source },
        Kind::Throttled => ReadError::Throttled { key, source },
        Kind::Unavailable => ReadError::Unavailable { key, source },
        Kind::Other => ReadError::Io { key, source },
    }
}

#[cfg(test)]
mod tests;
