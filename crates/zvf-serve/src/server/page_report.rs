//! Reports of the page about the selection and the object that it shows.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::{
    StatusCode,
    body::{Body, Incoming},
    http::request::Parts,
};
use tokio::time::timeout;

use super::{
    reply::{Reply, TEXT},
    request::is_same_origin,
};

/// Maximum number of bytes of a report: the ids of a million objects.
const MAX_BYTES: usize = 16 << 20;
/// Time in which a report arrives.
const TIME: Duration = Duration::from_secs(30);

/// The last report of the page that [`Server::page_link`](super::Server::page_link) opens.
#[derive(Clone, Debug, Default)]
pub struct PageReport(Arc<Mutex<Bytes>>);

impl PageReport {
    /// Returns the report as JSON text: for each layer of the page its `name`, the `query` that selects
    /// what it shows, and the `object` that is highlighted. Empty before the first report.
    pub fn json(&self) -> String {
        let report = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&report).into_owned()
    }

    /// Takes a report. Pages of other origins cannot send one: browsers name the origin of a request that
    /// changes something, and ask before they send it to another origin.
    pub(super) async fn take(&self, parts: &Parts, body: Incoming) -> Reply {
        if !is_same_origin(&parts.headers) {
            let message = "only the page of this server can report what it shows";
            return Reply::Failed(StatusCode::FORBIDDEN, message.to_owned());
        }
        let too_large = || {
            let message = format!("a report has at most {MAX_BYTES} bytes");
            Reply::Failed(StatusCode::PAYLOAD_TOO_LARGE, message)
        };
        if u64::try_from(MAX_BYTES).is_ok_and(|most| body.size_hint().lower() > most) {
            return too_large();
        }
        let Ok(received) = timeout(TIME, Limited::new(body, MAX_BYTES).collect()).await else {
            let message = "the report took too long";
            return Reply::Failed(StatusCode::REQUEST_TIMEOUT, message.to_owned());
        };
        let Ok(received) = received else {
            return too_large();
        };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = received.to_bytes();
        Reply::document(TEXT, "")
    }
}
