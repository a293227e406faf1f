//! The files of a viewer, as the Python package of Neuroglancer contains them.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use bytes::Bytes;
use futures_util::{StreamExt, stream};

use super::reply::{BINARY, HTML, JSON, Pieces, Reply, TEXT};

/// The largest file of a viewer.
const MAX_BYTES: u64 = 64 << 20;
/// Time between two comments on the stream of events.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// The files of a folder, by name.
#[derive(Debug)]
pub(super) struct ViewerClient(BTreeMap<String, PathBuf>);

impl ViewerClient {
    /// Lists the folder of a viewer.
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        let mut files = BTreeMap::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let meta = entry.metadata()?;
            if let (true, Ok(name)) = (meta.is_file(), entry.file_name().into_string())
                && meta.len() <= MAX_BYTES
            {
                files.insert(name, entry.path());
            }
        }
        if files.contains_key("index.html") {
            Ok(Self(files))
        } else {
            Err(io::Error::new(
                io::ErrorKind::NotFound,
                "the folder has no file index.html",
            ))
        }
    }

    /// Returns the response to a request for a file; the page itself without a name.
    pub(super) fn file(&self, name: Option<&str>) -> Reply {
        let name = name.unwrap_or("index.html");
        let Some(path) = self.0.get(name) else {
            return Reply::not_found();
        };
        match fs::read(path) {
            Ok(bytes) => Reply::document(content_type(name), bytes),
            Err(_) => Reply::not_found(),
        }
    }
}

/// Returns the stream of events that the viewer of the Python package listens to, without events.
pub(super) fn events() -> Reply {
    let beats = stream::unfold(true, |is_first| async move {
        if !is_first {
            tokio::time::sleep(HEARTBEAT).await;
        }
        Some((Ok(Bytes::from_static(b": nothing happened\n\n")), false))
    });
    let pieces: Pieces = beats.boxed();
    Reply::Events(pieces)
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("html") => HTML,
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        // Browsers compile a module while it arrives with this type only.
        Some("wasm") => "application/wasm",
        Some("json" | "map") => JSON,
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("ico") => "image/x-icon",
        Some("txt") => TEXT,
        _ => BINARY,
    }
}
