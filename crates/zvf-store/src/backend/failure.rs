//! Classification of `object_store` errors.
//!
//! `object_store` keeps the types of some causes private, so they can only be recognised by their
//! messages. Tests pin these messages.

use core::error::Error;

use object_store::Error as Failure;

/// The kinds of failure that callers distinguish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureKind {
    Unauthenticated,
    Forbidden,
    Throttled,
    Unavailable,
    Other,
}

fn kind(failure: &Failure) -> FailureKind {
    let denied = io_kind(failure) == Some(std::io::ErrorKind::PermissionDenied);
    match (failure, status(failure)) {
        (Failure::Unauthenticated { .. }, _) => FailureKind::Unauthenticated,
        (Failure::PermissionDenied { .. }, _) => FailureKind::Forbidden,
        _ if denied => FailureKind::Forbidden,
        _ if lacks_credentials(failure) => FailureKind::Unauthenticated,
        (_, Some(429 | 503)) => FailureKind::Throttled,
        (_, Some(408 | 500..=599)) => FailureKind::Unavailable,
        _ if is_connection(failure) => FailureKind::Unavailable,
        _ => FailureKind::Other,
    }
}

/// Returns the kind of a failure, and the source for the error that reports it.
pub(crate) fn classify(failure: Failure) -> (FailureKind, Box<dyn Error + Send + Sync>) {
    let kind = kind(&failure);
    if kind == FailureKind::Unauthenticated && lacks_credentials(&failure) {
        return (kind, Box::new(NoCredentials(failure)));
    }
    (kind, Box::new(failure))
}

/// Returns the source of the error of a failed write. Failures of the local disk are reported in
/// words that name the store and the remedy, and without the text of `object_store`.
pub(crate) fn write_failure(store: &str, failure: Failure) -> (FailureKind, WriteSource) {
    let io = chain(&failure).find_map(|error| error.downcast_ref::<std::io::Error>());
    let local = io.map(|io| local_failure(store, io));
    let (kind, source) = classify(failure);
    (kind, local.unwrap_or(source))
}

/// Returns the source of the error of a write to the local disk that failed.
pub(crate) fn local_failure(store: &str, io: &std::io::Error) -> WriteSource {
    use std::io::ErrorKind;
    let store = store.to_owned();
    Box::new(match (io.kind(), io.raw_os_error()) {
        (ErrorKind::StorageFull, _) => LocalFailure::Full(store),
        (ErrorKind::QuotaExceeded, _) => LocalFailure::Quota(store),
        (ErrorKind::ReadOnlyFilesystem, _) => LocalFailure::ReadOnly(store),
        (ErrorKind::PermissionDenied, _) => LocalFailure::Denied(store),
        (_, Some(code)) => LocalFailure::Io(std::io::Error::from_raw_os_error(code)),
        (_, None) => LocalFailure::Io(std::io::Error::other(io.to_string())),
    })
}

type WriteSource = Box<dyn Error + Send + Sync>;

/// A failure of the local disk, with the store and the remedy.
#[derive(Debug, thiserror::Error)]
enum LocalFailure {
    #[error("the disk of {0} is full; free space on it, then run the command again")]
    Full(String),
    #[error("the disk quota for {0} is used up; free space, then run the command again")]
    Quota(String),
    #[error("the file system of {0} is read-only; mount it writable, or write to another folder")]
    ReadOnly(String),
    #[error("writing to {0} is not permitted; change its permissions, or write to another folder")]
    Denied(String),
    #[error(transparent)]
    Io(std::io::Error),
}

/// The error of a request without credentials from a machine outside the cloud.
#[derive(Debug, thiserror::Error)]
#[error("no credentials in the environment or from this machine; open a public bucket anonymously")]
struct NoCredentials(#[source] Failure);

/// Returns whether credentials were requested from the metadata service of a cloud, which does not exist or
/// has none. A metadata service that is busy does not count.
fn lacks_credentials(failure: &Failure) -> bool {
    const METADATA_PATHS: [&str; 4] = [
        "/latest/api/token",
        "/latest/meta-data/iam/",
        "/computeMetadata/",
        "/metadata/identity/",
    ];
    let busy = matches!(status(failure), Some(408 | 429 | 500..=599));
    let unsorted = matches!(failure, Failure::Generic { .. });
    unsorted
        && !busy
        && METADATA_PATHS
            .iter()
            .any(|path| message_contains(failure, path))
}

/// Returns whether the store will never list: the request is unknown or not allowed. Many public
/// buckets allow reading but not listing.
pub(crate) fn refuses_listing(failure: &Failure) -> bool {
    let kind = matches!(
        failure,
        Failure::NotSupported { .. }
            | Failure::NotImplemented { .. }
            | Failure::PermissionDenied { .. }
            | Failure::Unauthenticated { .. }
    );
    let on_disk = io_kind(failure).is_some();
    let status = match status(failure) {
        Some(408 | 425 | 429) => false,
        Some(400..=499 | 501) => true,
        _ => false,
    };
    !on_disk && !lacks_credentials(failure) && (kind || status)
}

/// Returns whether a response says that there is no such bucket or container.
pub(crate) fn names_no_bucket(failure: &Failure) -> bool {
    let words = [
        "NoSuchBucket",
        "ContainerNotFound",
        "The specified bucket does not exist",
    ];
    words.iter().any(|words| message_contains(failure, words))
}

/// Returns whether the server ignored the range of a request and was about to send the whole object.
pub(crate) fn ignores_ranges(failure: &Failure) -> bool {
    let sentences = ["non-partial response", "Range request not supported"];
    sentences
        .iter()
        .any(|words| message_contains(failure, words))
}

/// Returns whether a response is for another range than the requested one, or names none.
pub(crate) fn is_of_another_range(failure: &Failure) -> bool {
    let starts = [
        "Requested ",
        "Content-Range header not present",
        "Failed to parse value for CONTENT_RANGE",
    ];
    let mut texts = chain(failure).map(ToString::to_string);
    texts.any(|text| starts.iter().any(|start| text.starts_with(start)))
}

fn chain<'a>(failure: &'a Failure) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    fn cause<'a>(error: &&'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
        (*error).source()
    }
    let first: &'a (dyn Error + 'static) = failure;
    core::iter::successors(Some(first), cause)
}

/// Returns whether the message of a failure, or of one of its causes, contains `words`.
pub(crate) fn message_contains(failure: &Failure, words: &str) -> bool {
    chain(failure).any(|error| error.to_string().contains(words))
}

/// Returns the HTTP status that a failure reports.
pub(crate) fn status(failure: &Failure) -> Option<u16> {
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

/// Returns whether a key lies below a file on disk, where no object can exist.
pub(crate) fn is_below_file(failure: &Failure) -> bool {
    io_kind(failure) == Some(std::io::ErrorKind::NotADirectory)
}

/// Returns whether the connection broke and `object_store` gave up before its last retry, which
/// happens when the body of an error response breaks off.
pub(crate) fn gave_up_early(failure: &Failure) -> bool {
    let used_all_retries = |text: String| {
        let (_, after) = text.split_once("after ")?;
        let (retries, after) = after.split_once(" retries, max_retries: ")?;
        let (max, _) = after.split_once(',')?;
        Some(retries == max)
    };
    let mut texts = chain(failure).map(ToString::to_string);
    is_connection(failure)
        && !lacks_credentials(failure)
        && !texts.any(|text| used_all_retries(text) == Some(true))
}

/// Returns whether the connection to the server failed.
#[cfg(any(feature = "aws", feature = "azure", feature = "gcp", feature = "http"))]
pub(crate) fn is_connection(failure: &Failure) -> bool {
    chain(failure).any(<dyn Error>::is::<object_store::client::HttpError>)
}

#[cfg(not(any(feature = "aws", feature = "azure", feature = "gcp", feature = "http")))]
pub(crate) fn is_connection(_: &Failure) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use std::io::{Error as IoError, ErrorKind};

    use super::*;

    fn chain_of(kind: ErrorKind) -> (FailureKind, String) {
        let failure = Failure::Generic {
            store: "LocalFileSystem",
            source: Box::new(IoError::from(kind)),
        };
        let (kind, source) = write_failure("a.zv", failure);
        (kind, source.to_string())
    }

    #[test]
    fn a_missing_bucket_is_recognised() {
        let response = |text: &str| Failure::Generic {
            store: "S3",
            source: text.to_owned().into(),
        };
        let missing =
            "Server returned non-2xx status code: 404 Not Found: <Error><Code>NoSuchBucket</Code>";
        assert!(names_no_bucket(&response(missing)));
        assert!(!names_no_bucket(&response(
            "status code: 404: <Code>NoSuchKey</Code>"
        )));
    }

    #[test]
    fn failures_of_the_disk_name_the_store_and_the_remedy() {
        let check = |kind, expected: (FailureKind, &str)| {
            let (kind, text) = chain_of(kind);
            assert_eq!((kind, text.as_str()), expected);
        };
        check(
            ErrorKind::StorageFull,
            (
                FailureKind::Other,
                "the disk of a.zv is full; free space on it, then run the command again",
            ),
        );
        check(
            ErrorKind::ReadOnlyFilesystem,
            (
                FailureKind::Other,
                "the file system of a.zv is read-only; mount it writable, or write to another folder",
            ),
        );
        check(
            ErrorKind::PermissionDenied,
            (
                FailureKind::Forbidden,
                "writing to a.zv is not permitted; change its permissions, or write to another folder",
            ),
        );
        let (_, text) = chain_of(ErrorKind::BrokenPipe);
        assert!(!text.contains("LocalFileSystem"), "{text}");
    }
}
