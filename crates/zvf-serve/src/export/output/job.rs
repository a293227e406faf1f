//! The objects that the processes of a planned export share, beside the files that they write.
//!
//! | object | content |
//! |---|---|
//! | `zvf-export.json` | the marker, which reserves the place for a plan |
//! | `zvf-export/ID/plan.json` | the layers, and the tasks that write them |
//! | `zvf-export/ID/parts/…` | input of tasks |
//! | `zvf-export/ID/documents/….unpublished` | the `info` documents |
//! | `zvf-export/ID/results/…` | what a task has written of a layer |
//! | `zvf-export/ID/report.json` | the summary, written by the commit before it publishes |
//!
//! The place is the bucket, or the hidden folder beside the target. Each object appears whole or not at
//! all. The marker is deleted last, so that a commit that was killed can be repeated.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet, hash_map::RandomState},
    fs,
    hash::{BuildHasher, Hasher},
    io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use bytes::Bytes;
use serde_json::{Value, json};
use zvf::TaskPlanError;
use zvf_model::key::Key;
use zvf_store::{OpenError, Read, Store};

use super::{
    bucket::{MARKER, MAX_OBJECTS, is_plan, sort_documents},
    journal::JOURNAL,
    staged_folder::{hidden_folder, remove_others},
};
use crate::export::{ExportError, ExportTarget};

/// The folder of the objects of jobs.
const FOLDER: &str = "zvf-export";
/// The end of the names of documents until the commit.
const UNPUBLISHED: &str = ".unpublished";

/// A place that a plan has reserved.
pub(crate) struct ExportJob {
    target: ExportTarget,
    /// The address of the place.
    address: String,
    store: Store,
    id: String,
}

impl ExportJob {
    /// Reserves the place of a target, which must be empty, or hold an unfinished plan that this one
    /// replaces.
    pub(crate) async fn reserve(
        target: &ExportTarget,
        source: &Value,
        replaces_unfinished: bool,
    ) -> Result<Self, ExportError> {
        check_absent(target)?;
        let address = place(target)?;
        let failed = |source| ExportError::bucket(&address, source);
        let mut store = Store::create(&address).map_err(failed)?;
        let listed = store
            .list_all(&Key::root(), MAX_OBJECTS)
            .await
            .map_err(|source| ExportError::bucket(&address, source))?;
        if !listed.is_empty() {
            let is_export = listed
                .iter()
                .any(|file| [MARKER, JOURNAL].contains(&file.name.as_str()));
            if !is_export {
                return Err(ExportError::NotEmpty(address));
            }
            match read_marker(&address, &store).await? {
                Some(marker) if is_plan(&marker) => {}
                _ => return Err(ExportError::Unfinished(address)),
            }
            if !replaces_unfinished {
                return Err(ExportError::Planned(address));
            }
            delete_all(target, &address, &store).await?;
            let failed = |source| ExportError::bucket(&address, source);
            store = Store::create(&address).map_err(failed)?;
        }
        let job = Self {
            target: target.clone(),
            address,
            store,
            id: random_id(),
        };
        let marker = json!({ "plan": job.id, "source": source });
        job.put_object(MARKER, marker.to_string().into()).await?;
        Ok(job)
    }

    /// Opens the place of a plan; `None` if it is not reserved for this plan.
    pub(crate) async fn open(target: &ExportTarget, id: &str) -> Result<Option<Self>, ExportError> {
        Self::open_at(target, place(target)?, id).await
    }

    /// Opens what a commit has published and not cleaned; `None` if there is nothing to clean.
    pub(crate) async fn open_published(
        target: &ExportTarget,
        id: &str,
    ) -> Result<Option<Self>, ExportError> {
        let address = match target {
            ExportTarget::Folder(folder) => text(folder)?,
            ExportTarget::Bucket(address) => address.clone(),
        };
        Self::open_at(target, address, id).await
    }

    async fn open_at(
        target: &ExportTarget,
        address: String,
        id: &str,
    ) -> Result<Option<Self>, ExportError> {
        let store = match Store::open(&address) {
            Ok(store) => store,
            Err(OpenError::NotFound(_)) => return Ok(None),
            Err(source) => return Err(ExportError::bucket(&address, source)),
        };
        let marker = read_marker(&address, &store).await?;
        let plan = marker.as_ref().and_then(|marker| marker.get("plan"));
        let is_own = plan.and_then(Value::as_str) == Some(id);
        Ok(is_own.then(|| Self {
            target: target.clone(),
            address,
            store,
            id: id.to_owned(),
        }))
    }

    /// Returns the identifier of the plan.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Returns the address of the place.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Fails if the place is no longer reserved for the plan.
    pub(crate) async fn check_reserved(&self) -> Result<(), ExportError> {
        let marker = read_marker(&self.address, &self.store).await?;
        let plan = marker.as_ref().and_then(|marker| marker.get("plan"));
        if plan.and_then(Value::as_str) == Some(&self.id) {
            Ok(())
        } else {
            Err(self.problem(TaskPlanError::Replaced))
        }
    }

    /// Returns the path of the input of a task, below the place.
    pub(crate) fn part_path(&self, name: &str) -> String {
        format!("{FOLDER}/{}/parts/{name}", self.id)
    }

    /// Returns whether the plan, and not an index of a layer, has a file.
    pub(crate) fn is_own(path: &str) -> bool {
        path == MARKER || path.split('/').next() == Some(FOLDER)
    }

    /// Puts an object of the job.
    pub(crate) async fn put(&self, name: &str, bytes: Bytes) -> Result<(), ExportError> {
        self.put_object(&format!("{FOLDER}/{}/{name}", self.id), bytes)
            .await
    }

    /// Reads an object of the job; `None` if it does not exist.
    pub(crate) async fn find(&self, name: &str) -> Result<Option<Bytes>, ExportError> {
        let key = self.key(&format!("{FOLDER}/{}/{name}", self.id))?;
        let read = self.store.read_one(Read::full(key)).await;
        read.map_err(|source| ExportError::bucket(&self.address, source))
    }

    /// Reads an object of the job. If it does not exist, the plan was replaced.
    pub(crate) async fn get(&self, name: &str) -> Result<Bytes, ExportError> {
        let found = self.find(name).await?;
        found.ok_or_else(|| self.problem(TaskPlanError::Replaced))
    }

    /// Reads an object of the job and parses it; `None` if it does not exist.
    pub(crate) async fn find_parsed<T>(
        &self,
        name: &str,
        parse: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<Option<T>, ExportError> {
        let Some(bytes) = self.find(name).await? else {
            return Ok(None);
        };
        let json: Option<Value> = serde_json::from_slice(&bytes).ok();
        let parsed = json.as_ref().and_then(parse);
        parsed.map(Some).ok_or_else(|| self.damaged(name))
    }

    /// Reads an object of the job and parses it. If it does not exist, the plan was replaced.
    pub(crate) async fn get_parsed<T>(
        &self,
        name: &str,
        parse: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<T, ExportError> {
        let found = self.find_parsed(name, parse).await?;
        found.ok_or_else(|| self.problem(TaskPlanError::Replaced))
    }

    /// Puts a document, which the commit publishes.
    pub(crate) async fn put_document(&self, path: &str, bytes: Bytes) -> Result<(), ExportError> {
        self.put(&format!("documents/{path}{UNPUBLISHED}"), bytes)
            .await
    }

    /// Reads a document that is not published yet.
    pub(crate) async fn document(&self, path: &str) -> Result<Bytes, ExportError> {
        self.get(&format!("documents/{path}{UNPUBLISHED}")).await
    }

    /// Reads all documents.
    pub(crate) async fn documents(&self) -> Result<Vec<(Key, Bytes)>, ExportError> {
        let mut documents = Vec::new();
        for name in self.names("documents").await? {
            let path = name.strip_suffix(UNPUBLISHED).unwrap_or(&name);
            documents.push((self.key(path)?, self.document(path).await?));
        }
        Ok(documents)
    }

    /// Returns the names of the results.
    pub(crate) async fn results(&self) -> Result<BTreeSet<String>, ExportError> {
        self.names("results").await
    }

    async fn names(&self, folder: &str) -> Result<BTreeSet<String>, ExportError> {
        let key = self.key(&format!("{FOLDER}/{}/{folder}", self.id))?;
        let listed = self
            .store
            .list_all(&key, MAX_OBJECTS)
            .await
            .map_err(|source| ExportError::bucket(&self.address, source))?;
        Ok(listed.into_iter().map(|file| file.name).collect())
    }

    /// Returns the sizes of all files of the export.
    pub(crate) async fn files(&self) -> Result<BTreeMap<String, u64>, ExportError> {
        let listed = self
            .store
            .list_all(&Key::root(), MAX_OBJECTS)
            .await
            .map_err(|source| ExportError::bucket(&self.address, source))?;
        let files = listed.into_iter().filter(|file| !Self::is_own(&file.name));
        Ok(files.map(|file| (file.name, file.size)).collect())
    }

    /// Publishes the documents, and with them the export, whose other files are `files`.
    pub(crate) async fn publish(
        &self,
        mut documents: Vec<(Key, Bytes)>,
        files: &BTreeMap<String, u64>,
    ) -> Result<(), ExportError> {
        check_absent(&self.target)?;
        sort_documents(&mut documents);
        let names = documents.iter().map(|(key, _)| key.as_str().to_owned());
        let mut known: HashSet<String> = names.collect();
        for document in documents {
            let put = self.store.put_many(vec![document]).await;
            put.map_err(|source| ExportError::bucket(&self.address, source))?;
        }
        let ExportTarget::Folder(target) = &self.target else {
            return Ok(());
        };
        known.extend(files.keys().cloned());
        known.extend([MARKER.to_owned(), FOLDER.to_owned()]);
        let staged = Path::new(&self.address);
        let known: HashSet<PathBuf> = known.into_iter().map(|name| staged.join(name)).collect();
        // Temporary files of killed tasks.
        let moved = remove_others(staged, &known).and_then(|()| fs::rename(staged, target));
        moved.map_err(|source| ExportError::Folder {
            folder: target.clone(),
            source,
        })
    }

    /// Deletes everything at the place of a plan that is not complete.
    pub(crate) async fn discard(&self) -> Result<(), ExportError> {
        delete_all(&self.target, &self.address, &self.store).await
    }

    /// Deletes the objects of the job.
    pub(crate) async fn clean(&self) -> Result<(), ExportError> {
        let failed = |source| ExportError::bucket(&self.address, source);
        if let ExportTarget::Folder(target) = &self.target {
            let removed = match fs::remove_dir_all(target.join(FOLDER)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => fs::remove_file(target.join(MARKER)),
            };
            return removed.map_err(|source| ExportError::Folder {
                folder: target.clone(),
                source,
            });
        }
        let folder = self.key(FOLDER)?;
        let listed = self
            .store
            .list_all(&folder, MAX_OBJECTS)
            .await
            .map_err(|source| ExportError::bucket(&self.address, source))?;
        let names = listed.iter().map(|file| format!("{FOLDER}/{}", file.name));
        let keys: Result<Vec<Key>, _> = names.map(|name| self.key(&name)).collect();
        self.store.delete_many(keys?).await.map_err(failed)?;
        let marker = vec![self.key(MARKER)?];
        self.store.delete_many(marker).await.map_err(failed)
    }

    /// Returns an error of the plan.
    pub(crate) fn problem(&self, source: TaskPlanError) -> ExportError {
        ExportError::Plan {
            address: self.address.clone(),
            source,
        }
    }

    /// Returns the error of an object of the job that is not as it was written.
    pub(crate) fn damaged(&self, name: &str) -> ExportError {
        let name = format!("{FOLDER}/{}/{name}", self.id);
        self.problem(TaskPlanError::Object(name))
    }

    /// Returns the error of a document that cannot be parsed.
    pub(crate) fn damaged_document(&self, path: &str) -> ExportError {
        self.damaged(&format!("documents/{path}{UNPUBLISHED}"))
    }

    fn key(&self, path: &str) -> Result<Key, ExportError> {
        Key::parse(path).map_err(|source| ExportError::bucket(&self.address, source))
    }

    async fn put_object(&self, path: &str, bytes: Bytes) -> Result<(), ExportError> {
        let put = self.store.put_many(vec![(self.key(path)?, bytes)]).await;
        put.map_err(|source| ExportError::bucket(&self.address, source))
    }
}

/// Returns the address of the place in which an export to a target is written.
fn place(target: &ExportTarget) -> Result<String, ExportError> {
    match target {
        ExportTarget::Folder(folder) => {
            let hidden = hidden_folder(folder).map_err(|source| ExportError::Folder {
                folder: folder.clone(),
                source,
            })?;
            text(&hidden)
        }
        ExportTarget::Bucket(address) => Ok(address.clone()),
    }
}

/// Returns a path as the text that a plan holds.
fn text(path: &Path) -> Result<String, ExportError> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| ExportError::Folder {
        folder: PathBuf::from(path),
        source: io::Error::new(io::ErrorKind::InvalidInput, "the path is not UTF-8"),
    })
}

/// Fails if the folder of a target exists.
fn check_absent(target: &ExportTarget) -> Result<(), ExportError> {
    match target {
        ExportTarget::Folder(folder) if fs::symlink_metadata(folder).is_ok() => {
            Err(ExportError::Exists(folder.clone()))
        }
        _ => Ok(()),
    }
}

/// Reads the marker of a place; `None` if there is none, or if it is not JSON.
async fn read_marker(address: &str, store: &Store) -> Result<Option<Value>, ExportError> {
    let key = Key::parse(MARKER).map_err(|source| ExportError::bucket(address, source))?;
    let found = store
        .read_one(Read::full(key))
        .await
        .map_err(|source| ExportError::bucket(address, source))?;
    Ok(found.and_then(|found| serde_json::from_slice(&found).ok()))
}

/// Deletes everything at a place, the marker last.
async fn delete_all(
    target: &ExportTarget,
    address: &str,
    store: &Store,
) -> Result<(), ExportError> {
    if let ExportTarget::Folder(folder) = target {
        let removed = fs::remove_dir_all(address);
        return removed.map_err(|source| ExportError::Folder {
            folder: folder.clone(),
            source,
        });
    }
    let listed = store
        .list_all(&Key::root(), MAX_OBJECTS)
        .await
        .map_err(|source| ExportError::bucket(address, source))?;
    let keys: Result<Vec<Key>, _> = listed.iter().map(|file| Key::parse(&file.name)).collect();
    let keys = keys.map_err(|source| ExportError::bucket(address, source))?;
    let (marker, others) = keys.into_iter().partition(|key| key.as_str() == MARKER);
    for keys in [others, marker] {
        let deleted = store.delete_many(keys).await;
        deleted.map_err(|source| ExportError::bucket(address, source))?;
    }
    Ok(())
}

/// Creates an identifier of 128 random bits. The standard library seeds its hashers from the operating
/// system, each one differently.
fn random_id() -> String {
    let word = || {
        let mut hasher = RandomState::new().build_hasher();
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        hasher.write_u128(now.map_or(0, |now| now.as_nanos()));
        hasher.write_u32(std::process::id());
        hasher.finish()
    };
    format!("{:016x}{:016x}", word(), word())
}
