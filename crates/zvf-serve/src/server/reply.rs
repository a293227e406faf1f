//! Responses: status, headers and bytes.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    ops::Range,
    pin::Pin,
};

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    Response, StatusCode,
    body::Frame,
    header::{
        ACCEPT_RANGES, ALLOW, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG,
        HeaderName, HeaderValue, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
    },
};

use super::request::{Refusal, Request};

/// The body of a response.
pub(super) type Body = UnsyncBoxBody<Bytes, std::io::Error>;

/// Methods of requests.
pub(super) const METHODS: &str = "GET, HEAD, OPTIONS";

/// Parts of a body that arrive one by one.
pub(super) type Pieces = Pin<Box<dyn Stream<Item = std::io::Result<Bytes>> + Send>>;

/// Bytes of a document whose tag is computed for a part of it.
const MAX_HASHED: usize = 1 << 20;

pub(super) const JSON: &str = "application/json";
pub(super) const BINARY: &str = "application/octet-stream";
pub(super) const HTML: &str = "text/html; charset=utf-8";
pub(super) const TEXT: &str = "text/plain; charset=utf-8";
pub(super) const EVENTS: &str = "text/event-stream";

/// A response before its headers are chosen by the request.
pub(super) enum Reply {
    /// A document that is in memory.
    Document {
        content_type: &'static str,
        bytes: Bytes,
    },
    /// A part of an object, read in pieces.
    Object {
        content_type: &'static str,
        size: u64,
        e_tag: Option<String>,
        /// Reads a range of the object.
        read: Box<dyn FnOnce(Range<u64>) -> Pieces + Send>,
    },
    /// A stream without an end.
    Events(Pieces),
    /// An error with a message.
    Failed(StatusCode, String),
}

impl Reply {
    pub(super) fn not_found() -> Self {
        Self::Failed(
            StatusCode::NOT_FOUND,
            "there is nothing at this path".to_owned(),
        )
    }

    pub(super) fn document(content_type: &'static str, bytes: impl Into<Bytes>) -> Self {
        Self::Document {
            content_type,
            bytes: bytes.into(),
        }
    }

    /// Returns the response to a request.
    pub(super) fn respond(self, request: &Request) -> Response<Body> {
        match self {
            Self::Document {
                content_type,
                bytes,
            } => {
                let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
                // To hash a large document takes longer than to send a part of it.
                let is_compared = request.if_match.is_some();
                let is_part = request.span.is_some() && bytes.len() > MAX_HASHED && !is_compared;
                let e_tag = (!is_part).then(|| tag_of(&bytes));
                let read = move |range: Range<u64>| {
                    let slice = usize::try_from(range.start)
                        .ok()
                        .zip(usize::try_from(range.end).ok())
                        .map(|(start, end)| bytes.slice(start..end));
                    whole(slice.unwrap_or_default())
                };
                object(request, content_type, size, e_tag, read)
            }
            Self::Object {
                content_type,
                size,
                e_tag,
                read,
            } => object(request, content_type, size, e_tag, |range| {
                StreamBody::new(read(range).map(|piece| piece.map(Frame::data))).boxed_unsync()
            }),
            Self::Events(pieces) => {
                let body = StreamBody::new(pieces.map(|piece| piece.map(Frame::data)));
                let mut response = Response::new(body.boxed_unsync());
                set(&mut response, CONTENT_TYPE, EVENTS);
                set(&mut response, CACHE_CONTROL, "no-store");
                response
            }
            Self::Failed(status, message) => failed(status, &message),
        }
    }
}

impl From<Refusal> for Reply {
    fn from(refusal: Refusal) -> Self {
        let (status, message) = match refusal {
            Refusal::Method => (
                StatusCode::METHOD_NOT_ALLOWED,
                "only GET and HEAD are supported",
            ),
            Refusal::Path => (StatusCode::BAD_REQUEST, "the path is not a valid path"),
            Refusal::HostHeader => (
                StatusCode::BAD_REQUEST,
                "the request must have one Host header",
            ),
            Refusal::Host => (
                StatusCode::FORBIDDEN,
                "the Host header is not the name of this server; start it with --host NAME to \
                 allow another",
            ),
            Refusal::Token => (
                StatusCode::UNAUTHORIZED,
                "the path does not begin with the token of this server",
            ),
        };
        Self::Failed(status, message.to_owned())
    }
}

/// Returns a response with an object or a part of it.
fn object(
    request: &Request,
    content_type: &'static str,
    size: u64,
    e_tag: Option<String>,
    read: impl FnOnce(Range<u64>) -> Body,
) -> Response<Body> {
    let range = request.range(size);
    let body = request.body(size, e_tag.as_deref());
    let mut response = match request.span {
        _ if request.wants_other_version(e_tag.as_deref()) => failed(
            StatusCode::PRECONDITION_FAILED,
            "the object has another version than If-Match names",
        ),
        _ if request.has_version(e_tag.as_deref()) => {
            let mut response = Response::new(whole(Bytes::new()));
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response
        }
        Some(_) if range.is_empty() => {
            let mut response = failed(
                StatusCode::RANGE_NOT_SATISFIABLE,
                &format!("the object has {size} bytes"),
            );
            set(&mut response, CONTENT_RANGE, &format!("bytes */{size}"));
            response
        }
        span => {
            let length = range.end.saturating_sub(range.start);
            let body = body.map_or_else(|| whole(Bytes::new()), read);
            let mut response = Response::new(body);
            set(&mut response, CONTENT_TYPE, content_type);
            set(&mut response, CONTENT_LENGTH, &length.to_string());
            if span.is_some() {
                *response.status_mut() = StatusCode::PARTIAL_CONTENT;
                let (first, last) = (range.start, range.end.saturating_sub(1));
                let range = format!("bytes {first}-{last}/{size}");
                set(&mut response, CONTENT_RANGE, &range);
            }
            response
        }
    };
    set(&mut response, ACCEPT_RANGES, "bytes");
    // A browser revalidates each time, and gets an empty response if nothing changed.
    set(&mut response, CACHE_CONTROL, "no-cache");
    if let Some(tag) = e_tag {
        set(&mut response, ETAG, &tag);
    }
    response
}

fn failed(status: StatusCode, message: &str) -> Response<Body> {
    let mut response = Response::new(whole(Bytes::from(format!("{message}\n"))));
    *response.status_mut() = status;
    set(&mut response, CONTENT_TYPE, TEXT);
    set(&mut response, CACHE_CONTROL, "no-store");
    match status {
        StatusCode::METHOD_NOT_ALLOWED => set(&mut response, ALLOW, METHODS),
        StatusCode::UNAUTHORIZED => set(&mut response, WWW_AUTHENTICATE, "Bearer"),
        _ => {}
    }
    response
}

fn whole(bytes: Bytes) -> Body {
    Full::new(bytes)
        .map_err(|never| match never {})
        .boxed_unsync()
}

/// Sets a header, unless the value is not a valid one.
pub(super) fn set(response: &mut Response<Body>, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

/// Sets the headers of every response.
pub(super) fn set_common(response: &mut Response<Body>) {
    set(response, X_CONTENT_TYPE_OPTIONS, "nosniff");
}

/// Returns the tag of a document: a hash of its bytes.
fn tag_of(bytes: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    format!("\"{:016x}-{:x}\"", hasher.finish(), bytes.len())
}
