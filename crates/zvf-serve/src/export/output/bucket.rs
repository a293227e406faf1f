//! An export to a bucket.
//!
//! Objects are uploaded while others are made. The `info` documents are uploaded last, so that a layer
//! without one is not complete. Until then, a marker holds what is exported, and the results of complete
//! layers, whose documents have other names. The same export after an interruption does not compute these
//! layers again. Of the others, it uploads only what is missing, because repeated exports are equal.

use std::{
    collections::HashMap,
    io, mem,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use serde_json::{Map, Value, json};
use tokio::runtime::{self, Runtime};
use zvf_model::key::{Key, KeyError};
use zvf_store::{Read, Store, WriteError};

use crate::export::ExportError;

/// The object that is in the bucket while an export is not complete.
pub(super) const MARKER: &str = "zvf-export.json";
/// The prefix and the end of the names of documents of complete layers while an export is not complete.
const UNPUBLISHED: (&str, &str) = ("zvf-export/", ".unpublished");
/// Bytes that are uploaded at once. A larger object is uploaded alone.
const MAX_CONCURRENT_BYTES: usize = 128 << 20;
const MAX_CONCURRENT_OBJECTS: usize = 32;
/// Objects of an export.
pub(super) const MAX_OBJECTS: usize = 16 << 20;

/// A prefix of a bucket that is being written.
pub(super) struct Bucket {
    address: String,
    store: Store,
    /// Runs all requests. Threads that upload may wait for it, whatever runtime the caller has.
    runtime: UploadRuntime,
    /// Sizes of the objects that an interrupted export has uploaded.
    known: HashMap<String, u64>,
    /// Description of the source and the options.
    source: Value,
    /// Results of complete layers, and the paths of their documents.
    layers: Mutex<Map<String, Value>>,
    documents: Mutex<Vec<(Key, Bytes)>>,
    uploads: Arc<Uploads>,
}

/// A runtime that may be dropped in another one, where waiting for its end is a panic.
struct UploadRuntime(Option<Runtime>);

impl UploadRuntime {
    fn new() -> io::Result<Self> {
        let runtime = runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("zvf-upload")
            .enable_all()
            .build();
        Ok(Self(Some(runtime?)))
    }

    /// Runs a task to its end.
    async fn run<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
    ) -> io::Result<T> {
        match &self.0 {
            Some(runtime) => Ok(runtime.spawn(task).await?),
            None => Err(io::ErrorKind::Other.into()),
        }
    }

    /// Starts a task.
    fn start(&self, task: impl Future<Output = ()> + Send + 'static) {
        if let Some(runtime) = &self.0 {
            runtime.spawn(task);
        }
    }
}

impl Drop for UploadRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Uploads under way.
#[derive(Default)]
struct Uploads {
    state: Mutex<UploadState>,
    ended: Condvar,
}

#[derive(Default)]
struct UploadState {
    objects: usize,
    bytes: usize,
    failure: Option<ExportError>,
}

impl Bucket {
    /// Opens a prefix that is empty, or holds an interrupted export of the same source.
    pub(super) async fn open(address: &str, source: &Value) -> Result<Self, ExportError> {
        let runtime =
            UploadRuntime::new().map_err(|source| ExportError::bucket(address, source))?;
        let opened = runtime
            .run(open(address.to_owned(), source.clone()))
            .await
            .map_err(|source| ExportError::bucket(address, source))??;
        let OpenBucket {
            store,
            known,
            layers,
        } = opened;
        Ok(Self {
            address: address.to_owned(),
            store,
            runtime,
            known,
            source: source.clone(),
            layers: Mutex::new(layers),
            documents: Mutex::default(),
            uploads: Arc::default(),
        })
    }

    /// Opens a place that a plan reserved, for the files of its tasks.
    pub(super) fn reserved(address: &str) -> Result<Self, ExportError> {
        let runtime =
            UploadRuntime::new().map_err(|source| ExportError::bucket(address, source))?;
        let store = Store::open(address);
        Ok(Self {
            address: address.to_owned(),
            store: store.map_err(|source| ExportError::bucket(address, source))?,
            runtime,
            known: HashMap::new(),
            source: Value::Null,
            layers: Mutex::default(),
            documents: Mutex::default(),
            uploads: Arc::default(),
        })
    }

    /// Waits for the uploads.
    pub(super) fn wait(&self) -> Result<(), ExportError> {
        self.uploads.wait()
    }

    /// Returns the documents, which are not uploaded yet.
    pub(super) fn take_documents(&self) -> Vec<(Key, Bytes)> {
        mem::take(&mut *locked(&self.documents))
    }

    fn failed(&self, source: impl core::error::Error + Send + Sync + 'static) -> ExportError {
        ExportError::bucket(&self.address, source)
    }

    /// Returns the number of objects of an interrupted export.
    pub(super) fn kept(&self) -> u64 {
        let (prefix, _) = UNPUBLISHED;
        let names = self.known.keys();
        let values = names.filter(|name| *name != MARKER && !name.starts_with(prefix));
        u64::try_from(values.count()).unwrap_or(u64::MAX)
    }

    /// Returns the result of a layer that an interrupted export has completed.
    pub(super) fn layer(&self, name: &str) -> Option<Value> {
        locked(&self.layers).get(name)?.get("result").cloned()
    }

    /// Waits for the uploads, and notes a complete layer.
    pub(super) async fn add_layer(&self, name: &str, result: Value) -> Result<(), ExportError> {
        self.uploads.wait()?;
        let folder = format!("{name}/");
        let mut objects = Vec::new();
        let mut paths = Vec::new();
        for (key, bytes) in locked(&self.documents).iter() {
            if key.as_str().starts_with(&folder) {
                let staged = unpublished(key.as_str()).map_err(|source| self.failed(source))?;
                objects.push((staged, bytes.clone()));
                paths.push(key.as_str().to_owned());
            }
        }
        let marker = {
            let mut layers = locked(&self.layers);
            let layer = json!({ "result": result, "documents": paths });
            layers.insert(name.to_owned(), layer);
            marker(&self.source, &layers)
        };
        let key = Key::parse(MARKER).map_err(|source| self.failed(source))?;
        let store = self.store.clone();
        let noted = self
            .runtime
            .run(async move {
                store.put_many(objects).await?;
                store.put_many(vec![(key, marker)]).await
            })
            .await
            .map_err(|source| self.failed(source))?;
        noted.map_err(|source| self.failed(source))
    }

    /// Uploads an object, unless an interrupted export has done it. Waits while many uploads are under
    /// way.
    pub(super) fn write(&self, path: &str, bytes: &[u8]) -> Result<(), ExportError> {
        let key = Key::parse(path).map_err(|source| self.failed(source))?;
        if is_document(path) {
            let mut documents = locked(&self.documents);
            documents.push((key, Bytes::copy_from_slice(bytes)));
            return Ok(());
        }
        let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if self.known.get(path) == Some(&size) {
            return Ok(());
        }
        self.uploads.start(bytes.len())?;
        let (uploads, store) = (Arc::clone(&self.uploads), self.store.clone());
        let (bytes, address) = (Bytes::copy_from_slice(bytes), self.address.clone());
        self.runtime.start(async move {
            let len = bytes.len();
            let put = store.put_many(vec![(key, bytes)]).await;
            uploads.end(
                len,
                put.map_err(|error| ExportError::bucket(&address, error)),
            );
        });
        Ok(())
    }

    /// Waits for the uploads, and makes the layers visible.
    pub(super) async fn publish(self) -> Result<(), ExportError> {
        self.uploads.wait()?;
        let mut documents = self.take_documents();
        let marker = Key::parse(MARKER).map_err(|source| self.failed(source))?;
        let mut done = vec![marker];
        let mut staged = Vec::new();
        for layer in locked(&self.layers).values() {
            let paths = layer.get("documents").and_then(Value::as_array);
            for path in paths.into_iter().flatten().filter_map(Value::as_str) {
                let key = Key::parse(path).map_err(|source| self.failed(source))?;
                let name = unpublished(path).map_err(|source| self.failed(source))?;
                if !documents.iter().any(|(known, _)| *known == key) {
                    staged.push((key, name.clone()));
                }
                done.push(name);
            }
        }
        let store = self.store.clone();
        let address = self.address.clone();
        let published = self.runtime.run(async move {
            let failed = |source: WriteError| ExportError::bucket(&address, source);
            for (key, name) in staged {
                let bytes = store
                    .read_one(Read::full(name.clone()))
                    .await
                    .map_err(|source| ExportError::bucket(&address, source))?;
                let missing = || io::Error::new(io::ErrorKind::NotFound, name.to_string());
                documents.push((
                    key,
                    bytes.ok_or_else(|| ExportError::bucket(&address, missing()))?,
                ));
            }
            sort_documents(&mut documents);
            for document in documents {
                store.put_many(vec![document]).await.map_err(failed)?;
            }
            store.delete_many(done).await.map_err(failed)
        });
        published.await.map_err(|source| self.failed(source))?
    }
}

/// Returns whether a file is the document of a layer, without which no program opens it.
pub(super) fn is_document(path: &str) -> bool {
    path == "info" || path.ends_with("/info")
}

/// Returns the name of a document until the export is complete.
fn unpublished(path: &str) -> Result<Key, KeyError> {
    let (prefix, end) = UNPUBLISHED;
    Key::parse(&format!("{prefix}{path}{end}"))
}

/// Sorts documents so that each comes after those that it refers to.
pub(super) fn sort_documents(documents: &mut [(Key, Bytes)]) {
    documents.sort_by_key(|(key, _)| core::cmp::Reverse(key.as_str().matches('/').count()));
}

/// Returns whether a marker is that of a plan, whose tasks write the export.
pub(super) fn is_plan(marker: &Value) -> bool {
    marker.get("plan").is_some()
}

/// Returns the content of the marker.
fn marker(source: &Value, layers: &Map<String, Value>) -> Bytes {
    json!({ "export": source, "layers": layers })
        .to_string()
        .into()
}

impl Uploads {
    /// Waits for room for an object. Returns the error of an earlier upload.
    fn start(&self, bytes: usize) -> Result<(), ExportError> {
        let mut state = locked(&self.state);
        loop {
            if let Some(failure) = state.failure.take() {
                return Err(failure);
            }
            let has_room = state.objects < MAX_CONCURRENT_OBJECTS
                && state.bytes.saturating_add(bytes) <= MAX_CONCURRENT_BYTES;
            if state.objects == 0 || has_room {
                state.objects = state.objects.saturating_add(1);
                state.bytes = state.bytes.saturating_add(bytes);
                return Ok(());
            }
            let woken = self.ended.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn end(&self, bytes: usize, put: Result<(), ExportError>) {
        let mut state = locked(&self.state);
        state.objects = state.objects.saturating_sub(1);
        state.bytes = state.bytes.saturating_sub(bytes);
        if let Err(error) = put {
            state.failure.get_or_insert(error);
        }
        drop(state);
        self.ended.notify_all();
    }

    /// Waits for all uploads.
    fn wait(&self) -> Result<(), ExportError> {
        let mut state = locked(&self.state);
        while state.objects > 0 {
            let woken = self.ended.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
        state.failure.take().map_or(Ok(()), Err)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A prefix that is empty, or holds an interrupted export.
struct OpenBucket {
    store: Store,
    /// Sizes of the objects.
    known: HashMap<String, u64>,
    /// Complete layers.
    layers: Map<String, Value>,
}

/// Opens a prefix and puts the marker, unless it is that of an interrupted export of the same source.
async fn open(address: String, source: Value) -> Result<OpenBucket, ExportError> {
    let failed = |source: Box<dyn core::error::Error + Send + Sync>| ExportError::Bucket {
        address: address.clone(),
        source,
    };
    let store = Store::create(&address).map_err(|error| failed(error.into()))?;
    let key = Key::parse(MARKER).map_err(|error| failed(error.into()))?;
    let found = store
        .read_one(Read::full(key.clone()))
        .await
        .map_err(|error| failed(error.into()))?;
    let listed = store
        .list_all(&Key::root(), MAX_OBJECTS)
        .await
        .map_err(|error| failed(error.into()))?;
    if let Some(found) = found {
        let found: Option<Value> = serde_json::from_slice(&found).ok();
        if found.as_ref().is_some_and(is_plan) {
            return Err(ExportError::Planned(address));
        }
        let found = found
            .filter(|found| found.get("export") == Some(&source))
            .ok_or_else(|| ExportError::Unfinished(address.clone()))?;
        let layers = found.get("layers").and_then(Value::as_object);
        let known = listed.into_iter().map(|file| (file.name, file.size));
        return Ok(OpenBucket {
            store,
            known: known.collect(),
            layers: layers.cloned().unwrap_or_default(),
        });
    }
    if !listed.is_empty() {
        return Err(ExportError::NotEmpty(address.clone()));
    }
    let layers = Map::new();
    let put = store.put_many(vec![(key, marker(&source, &layers))]).await;
    put.map_err(|error| failed(error.into()))?;
    Ok(OpenBucket {
        store,
        known: HashMap::new(),
        layers,
    })
}
