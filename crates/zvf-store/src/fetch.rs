//! One request of an object store, its answer checked and its errors sorted.

use core::error::Error;
use std::sync::atomic::Ordering;

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use object_store::{Error as Failure, GetOptions, GetRange, GetResult, path::Path};

use crate::{
    plan::Fetched,
    range::{ByteRange, Read},
    read::{Budget, ReadError},
    store::{Backend, Store},
};

impl Store {
    pub(crate) async fn fetch(
        &self,
        read: &Read,
        budget: &Budget,
    ) -> Result<Option<Fetched>, ReadError> {
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
        #[cfg_attr(
            not(feature = "zip"),
            expect(irrefutable_let_patterns, reason = "one variant")
        )]
        let Backend::Objects(objects) = self.backend() else {
            return Ok(None);
        };
        self.recorder().request(read);
        let path = Path::parse(&read.key)?;
        let path: Path = self.root().parts().chain(path.parts()).collect();
        let options = GetOptions {
            range,
            ..GetOptions::default()
        };
        match objects.get_opts(&path, options).await {
            Ok(answer) => Ok(Some(answer)),
            Err(Failure::NotFound { .. }) => Ok(None),
            Err(failure) if is_below_a_file(&failure) => Ok(None),
            Err(failure) => Err(failure),
        }
    }
}

/// The body of an answer, never more or fewer bytes than it declares.
async fn collect(read: &Read, answer: GetResult, budget: &Budget) -> Result<Fetched, ReadError> {
    let range = answer.range.clone();
    let size = answer.meta.size;
    let wanted_end = match &read.range {
        ByteRange::Bounded(wanted) => Some(wanted.end),
        _ => None,
    };
    if wanted_end.is_some_and(|end| range.end < end) {
        return Err(truncated(read, Some(size)));
    }
    let declared = range.end.saturating_sub(range.start);
    if wanted_end.is_none() {
        budget.reserve(&read.key, declared)?;
    }
    let bytes = body(read, answer, declared).await;
    if bytes.is_err() && wanted_end.is_none() {
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

fn truncated(read: &Read, size: Option<u64>) -> ReadError {
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
        source: Box::new(source),
    }
}

fn is_broken(error: &ReadError) -> bool {
    matches!(error, ReadError::Unavailable { source, .. } if source.is::<Broken>())
}

/// What the start of an answer says.
fn refused(read: &Read, failure: Failure) -> ReadError {
    if gave_up_early(&failure) && !knows_nobody(&failure) {
        return broken(read, Broken::Failure(failure));
    }
    sort(read, failure)
}

/// The kind of a failure. `object_store` keeps the types of its causes private,
/// so some can only be told by what they say; tests hold these sentences.
fn sort(read: &Read, failure: Failure) -> ReadError {
    let key = read.key.clone();
    if says(&failure, "but object was only") || status(&failure) == Some(416) {
        return truncated(read, None);
    }
    if contradicts(&failure) {
        return broken(read, Broken::Failure(failure));
    }
    let (kind, source) = (kind(&failure), cause(failure));
    match kind {
        Kind::Unauthenticated => ReadError::Unauthenticated { key, source },
        Kind::Forbidden => ReadError::Forbidden { key, source },
        Kind::Throttled => ReadError::Throttled { key, source },
        Kind::Unavailable => ReadError::Unavailable { key, source },
        Kind::Other => ReadError::Io { key, source },
    }
}

/// What a caller can tell apart, in reading and in listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Unauthenticated,
    Forbidden,
    Throttled,
    Unavailable,
    Other,
}

pub(crate) fn kind(failure: &Failure) -> Kind {
    let denied = io_kind(failure) == Some(std::io::ErrorKind::PermissionDenied);
    match (failure, status(failure)) {
        (Failure::Unauthenticated { .. }, _) => Kind::Unauthenticated,
        (Failure::PermissionDenied { .. }, _) => Kind::Forbidden,
        _ if denied => Kind::Forbidden,
        _ if knows_nobody(failure) => Kind::Unauthenticated,
        (_, Some(429 | 503)) => Kind::Throttled,
        (_, Some(408 | 500..=599)) => Kind::Unavailable,
        _ if is_connection(failure) => Kind::Unavailable,
        _ => Kind::Other,
    }
}

/// The source of an error.
pub(crate) fn cause(failure: Failure) -> Box<dyn Error + Send + Sync> {
    if knows_nobody(&failure) {
        return Box::new(NoCredentials(failure));
    }
    Box::new(failure)
}

/// What a user sees who is on no machine of a cloud and gave no credentials.
#[derive(Debug, thiserror::Error)]
#[error(
    "no credentials in the environment, and none from this machine; a public bucket is opened anonymously"
)]
struct NoCredentials(#[source] Failure);

/// The machine was asked who it is, where the machines of clouds are asked, and
/// does not know. That such a service is too busy is another matter.
fn knows_nobody(failure: &Failure) -> bool {
    const ASKED: [&str; 4] = [
        "/latest/api/token",
        "/latest/meta-data/iam/",
        "/computeMetadata/",
        "/metadata/identity/",
    ];
    let busy = matches!(status(failure), Some(408 | 429 | 500..=599));
    !busy && ASKED.iter().any(|place| says(failure, place))
}

fn ignores_ranges(failure: &Failure) -> bool {
    let sentences = ["non-partial response", "Range request not supported"];
    sentences.iter().any(|words| says(failure, words))
}

/// An answer to another range than was asked for, or to none that it names.
fn contradicts(failure: &Failure) -> bool {
    let sentences = [", got ", "Content-Range header", "value for CONTENT_RANGE"];
    let says_so = || sentences.iter().any(|words| says(failure, words));
    matches!(failure, Failure::Generic { .. }) && says_so()
}

fn chain<'a>(failure: &'a Failure) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    fn cause<'a>(error: &&'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
        (*error).source()
    }
    let first: &'a (dyn Error + 'static) = failure;
    core::iter::successors(Some(first), cause)
}

pub(crate) fn says(failure: &Failure, words: &str) -> bool {
    chain(failure).any(|error| error.to_string().contains(words))
}

/// The HTTP status that a failure reports.
fn status(failure: &Failure) -> Option<u16> {
    const BEFORE: &str = "status code: ";
    chain(failure).find_map(|error| {
        let text = error.to_string();
        let (_, after) = text.split_once(BEFORE)?;
        after.get(..3)?.parse().ok()
    })
}

fn io_kind(failure: &Failure) -> Option<std::io::ErrorKind> {
    let io = chain(failure).find_map(|error| error.downcast_ref::<std::io::Error>());
    io.map(std::io::Error::kind)
}

/// A key below what is a file on disk: no object can be there.
fn is_below_a_file(failure: &Failure) -> bool {
    io_kind(failure) == Some(std::io::ErrorKind::NotADirectory)
}

/// A broken connection after which `object_store` did not ask as often as it
/// may, as when the text of an error breaks off.
pub(crate) fn gave_up_early(failure: &Failure) -> bool {
    let all_tries = |text: String| {
        let (_, after) = text.split_once("after ")?;
        let (tries, after) = after.split_once(" retries, max_retries: ")?;
        let (most, _) = after.split_once(',')?;
        Some(tries == most)
    };
    let mut texts = chain(failure).map(ToString::to_string);
    is_connection(failure) && !texts.any(|text| all_tries(text) == Some(true))
}

#[cfg(any(feature = "aws", feature = "azure", feature = "gcp", feature = "http"))]
fn is_connection(failure: &Failure) -> bool {
    chain(failure).any(<dyn Error>::is::<object_store::client::HttpError>)
}

#[cfg(not(any(feature = "aws", feature = "azure", feature = "gcp", feature = "http")))]
fn is_connection(_: &Failure) -> bool {
    false
}

#[cfg(test)]
mod tests;
