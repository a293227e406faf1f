//! The objects of a store behind a port of JavaScript.

use core::{fmt, ops::Range};

use async_trait::async_trait;
use bytes::Bytes;
use chrono::DateTime;
use futures_util::{FutureExt, StreamExt, stream, stream::BoxStream};
use js_sys::{Array, Promise, Reflect, Uint8Array};
use object_store::{
    CopyOptions, Error, GetOptions, GetRange, GetResult, GetResultPayload, ListResult,
    MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload,
    PutResult, Result, path::Path,
};
use send_wrapper::SendWrapper;
use wasm_bindgen::{JsCast, prelude::*};
use wasm_bindgen_futures::JsFuture;
use web_sys::{AbortController, AbortSignal};

const NAME: &str = "port";
/// Maximum number of objects in a listing.
const MAX_LISTED: u32 = 10_000_000;

#[wasm_bindgen]
extern "C" {
    /// A port, as `viewer/pkg/src/port.ts` makes it.
    #[derive(Clone, Debug)]
    pub type ScriptPort;

    /// The name of the store in messages.
    #[wasm_bindgen(method, getter)]
    fn name(this: &ScriptPort) -> String;

    /// Reads an object from `start` to `end`; both `undefined` for all of it, a negative `start` for the last bytes.
    #[wasm_bindgen(method)]
    fn get(
        this: &ScriptPort,
        key: &str,
        start: Option<f64>,
        end: Option<f64>,
        unless: Option<String>,
        signal: &AbortSignal,
    ) -> Promise;

    /// Lists the objects below a prefix; `undefined` if the port cannot list.
    #[wasm_bindgen(method)]
    fn list(this: &ScriptPort, prefix: &str, signal: &AbortSignal) -> Promise;
}

/// An object store over a port. WebAssembly has one thread, which wrappers check.
#[derive(Debug)]
pub(crate) struct PortObjects {
    name: String,
    port: SendWrapper<ScriptPort>,
}

impl PortObjects {
    pub(crate) fn new(port: ScriptPort) -> Self {
        Self {
            name: port.name(),
            port: SendWrapper::new(port),
        }
    }
}

impl fmt::Display for PortObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// Aborts a request when its future is dropped.
struct Abort(AbortController);

impl Abort {
    fn new() -> Result<Self> {
        AbortController::new()
            .map(Self)
            .map_err(|error| failure("", &error))
    }
}

impl Drop for Abort {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[async_trait]
impl ObjectStore for PortObjects {
    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let key = location.to_string();
        let (start, end) = match &options.range {
            _ if options.head => (Some(0.0), Some(1.0)),
            None => (None, None),
            Some(GetRange::Bounded(range)) => (
                Some(crate::to_number(range.start)),
                Some(crate::to_number(range.end)),
            ),
            Some(GetRange::Offset(start)) => (Some(crate::to_number(*start)), None),
            Some(GetRange::Suffix(bytes)) => (Some(-crate::to_number(*bytes)), None),
        };
        let port = self.port.clone();
        let (unless, path) = (options.if_none_match.clone(), key.clone());
        let request = async move {
            let abort = Abort::new()?;
            let signal = abort.0.signal();
            let answer = JsFuture::from(port.get(&path, start, end, unless, &signal)).await;
            Piece::parse(&path, &answer.map_err(|error| failure(&path, &error))?)
        };
        let piece = SendWrapper::new(request).await?;
        piece.into_result(location, options.head)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let prefix = prefix.map(ToString::to_string).unwrap_or_default();
        let port = self.port.clone();
        let listed = async move {
            match listing(&port, &prefix).await {
                Ok(found) => found.into_iter().map(Ok).collect(),
                Err(error) => vec![Err(error)],
            }
        };
        SendWrapper::new(listed)
            .map(stream::iter)
            .flatten_stream()
            .boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let port = self.port.clone();
        let prefix = prefix.cloned().unwrap_or_default();
        let text = prefix.to_string();
        let all = SendWrapper::new(async move { listing(&port, &text).await }).await?;
        let mut found = ListResult {
            common_prefixes: Vec::new(),
            objects: Vec::new(),
            extensions: Default::default(),
        };
        for object in all {
            let Some(mut parts) = object.location.prefix_match(&prefix) else {
                continue;
            };
            let (Some(child), rest) = (parts.next(), parts.next()) else {
                continue;
            };
            if rest.is_none() {
                found.objects.push(object.clone());
            } else {
                found.common_prefixes.push(prefix.clone().join(child));
            }
        }
        found.common_prefixes.sort_unstable();
        found.common_prefixes.dedup();
        Ok(found)
    }

    async fn put_opts(&self, _: &Path, _: PutPayload, _: PutOptions) -> Result<PutResult> {
        Err(read_only())
    }

    async fn put_multipart_opts(
        &self,
        _: &Path,
        _: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        Err(read_only())
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        locations.map(|_| Err(read_only())).boxed()
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> Result<()> {
        Err(read_only())
    }
}

fn read_only() -> Error {
    Error::NotSupported {
        source: "stores in browsers are read only".into(),
    }
}

/// The answer of a port to a request.
struct Piece {
    bytes: Bytes,
    range: Range<u64>,
    size: u64,
    etag: Option<String>,
    modified: f64,
}

impl Piece {
    /// Reads an answer, which may be anything: ports may be of the caller.
    fn parse(key: &str, answer: &JsValue) -> Result<Self> {
        let source = |text: &str| text.to_owned().into();
        if answer.is_undefined() {
            return Err(Error::NotFound {
                path: key.to_owned(),
                source: source("there is no such object"),
            });
        }
        if answer.is_null() {
            return Err(Error::NotModified {
                path: key.to_owned(),
                source: source("the object has not changed"),
            });
        }
        let wrong = || {
            generic(format!(
                "{key}: the port answered with something else than a piece"
            ))
        };
        let member = |name: &str| Reflect::get(answer, &name.into()).map_err(|_| wrong());
        let whole = |value: &JsValue| value.as_f64().and_then(whole_number).ok_or_else(wrong);
        let bytes = member("bytes")?
            .dyn_into::<Uint8Array>()
            .map_err(|_| wrong())?;
        let (start, size) = (whole(&member("start")?)?, whole(&member("size")?)?);
        let end = start
            .checked_add(bytes.length().into())
            .filter(|end| *end <= size);
        Ok(Self {
            range: start..end.ok_or_else(wrong)?,
            size,
            etag: member("etag")?.as_string(),
            modified: member("modified")?.as_f64().unwrap_or(0.0),
            bytes: bytes.to_vec().into(),
        })
    }

    fn into_result(self, location: &Path, head: bool) -> Result<GetResult> {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "saturates; the time is only compared"
        )]
        let modified = DateTime::from_timestamp_millis(self.modified as i64).unwrap_or_default();
        let meta = ObjectMeta {
            location: location.clone(),
            last_modified: modified,
            size: self.size,
            e_tag: self.etag,
            version: None,
        };
        let (range, bytes) = if head {
            (0..0, Bytes::new())
        } else {
            (self.range, self.bytes)
        };
        Ok(GetResult {
            payload: GetResultPayload::Stream(stream::once(async { Ok(bytes) }).boxed()),
            meta,
            range,
            attributes: Default::default(),
            extensions: Default::default(),
        })
    }
}

async fn listing(port: &ScriptPort, prefix: &str) -> Result<Vec<ObjectMeta>> {
    let abort = Abort::new()?;
    let answer = JsFuture::from(port.list(prefix, &abort.0.signal()))
        .await
        .map_err(|error| failure(prefix, &error))?;
    if answer.is_undefined() {
        return Err(Error::NotSupported {
            source: "the objects of this store cannot be listed".into(),
        });
    }
    let wrong = || {
        generic(format!(
            "{prefix}: the port answered with something else than a list"
        ))
    };
    let rows = answer.dyn_into::<Array>().map_err(|_| wrong())?;
    if rows.length() > MAX_LISTED {
        return Err(generic(format!("{prefix}: more than {MAX_LISTED} objects")));
    }
    let rows = rows.iter().map(|row| {
        let row = row.dyn_into::<Array>().map_err(|_| wrong())?;
        let key = row.get(0).as_string().ok_or_else(wrong)?;
        let size = row
            .get(1)
            .as_f64()
            .and_then(whole_number)
            .ok_or_else(wrong)?;
        Ok(Path::parse(&key).ok().map(|location| ObjectMeta {
            location,
            last_modified: DateTime::default(),
            size,
            e_tag: None,
            version: None,
        }))
    });
    // Names that are not keys cannot be requested.
    rows.filter_map(Result::transpose).collect()
}

/// Returns a whole number that JavaScript represents exactly.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked"
)]
fn whole_number(value: f64) -> Option<u64> {
    (value >= 0.0 && value <= 9_007_199_254_740_991.0 && value.fract() == 0.0)
        .then_some(value as u64)
}

fn generic(text: String) -> Error {
    Error::Generic {
        store: NAME,
        source: text.into(),
    }
}

/// Converts what a port threw.
fn failure(key: &str, thrown: &JsValue) -> Error {
    let member = |name: &str| Reflect::get(thrown, &name.into()).ok()?.as_string();
    let text = member("message")
        .or_else(|| thrown.as_string())
        .unwrap_or_else(|| format!("{key}: the port failed"));
    match member("kind").as_deref() {
        Some("forbidden") => Error::PermissionDenied {
            path: key.to_owned(),
            source: text.into(),
        },
        Some("unsupported") => Error::NotSupported {
            source: text.into(),
        },
        _ => generic(text),
    }
}
