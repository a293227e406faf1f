//! What a failure of `object_store` means. It keeps the types of its causes
//! private, so some can only be told by what they say; tests hold these
//! sentences.

use core::error::Error;

use object_store::Error as Failure;

/// What a caller can tell apart, in reading and in listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Unauthenticated,
    Forbidden,
    Throttled,
    Unavailable,
    Other,
}

fn kind(failure: &Failure) -> Kind {
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

/// The kind, and the source of the error it becomes.
pub(crate) fn sort(failure: Failure) -> (Kind, Box<dyn Error + Send + Sync>) {
    let kind = kind(&failure);
    if kind == Kind::Unauthenticated && knows_nobody(&failure) {
        return (kind, Box::new(NoCredentials(failure)));
    }
    (kind, Box::new(failure))
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
    let unsorted = matches!(failure, Failure::Generic { .. });
    unsorted && !busy && ASKED.iter().any(|place| says(failure, place))
}

/// Whether a failure to list says that it will never be different: the request
/// is not known or not allowed. Buckets that let everybody read often let
/// nobody list.
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
    !on_disk && !knows_nobody(failure) && (kind || status)
}

pub(crate) fn ignores_ranges(failure: &Failure) -> bool {
    let sentences = ["non-partial response", "Range request not supported"];
    sentences.iter().any(|words| says(failure, words))
}

/// An answer to another range than was asked for, or to none that it names.
pub(crate) fn contradicts(failure: &Failure) -> bool {
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

pub(crate) fn says(failure: &Failure, words: &str) -> bool {
    chain(failure).any(|error| error.to_string().contains(words))
}

/// The HTTP status that a failure reports.
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

/// A key below what is a file on disk: no object can be there.
pub(crate) fn is_below_a_file(failure: &Failure) -> bool {
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
    is_connection(failure)
        && !knows_nobody(failure)
        && !texts.any(|text| all_tries(text) == Some(true))
}

#[cfg(any(feature = "aws", feature = "azure", feature = "gcp", feature = "http"))]
pub(crate) fn is_connection(failure: &Failure) -> bool {
    chain(failure).any(<dyn Error>::is::<object_store::client::HttpError>)
}

#[cfg(not(any(feature = "aws", feature = "azure", feature = "gcp", feature = "http")))]
pub(crate) fn is_connection(_: &Failure) -> bool {
    false
}
