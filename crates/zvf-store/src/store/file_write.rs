//! Direct writes of files, for stores in a folder.
//!
//! `object_store` writes every file on a separate thread and reads its metadata back for an `ETag`.
//! For writes without a precondition the tag is not needed, and this takes longer than the write.

use std::{
    collections::{BTreeSet, HashMap},
    error::Error,
    fs, io,
    io::Write,
    panic::resume_unwind,
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use futures_util::future::join_all;
use zvf_model::key::Key;

use super::Store;
use crate::{
    backend,
    io::WriteError,
    threads::{BlockingError, run_blocking},
};

/// Minimum number of files for each thread: starting one takes as long as writing a few files.
const MIN_FILES_PER_THREAD: usize = 32;

/// Maximum number of times that the folders of one file are created.
const MAX_CREATE_DIRS: usize = 8;

/// A lock that threads hold until they have written their files, even if nothing waits for them any
/// more.
pub(crate) type WriteGuard = Arc<dyn Send + Sync>;

/// The way a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteMode {
    /// To a temporary file that is renamed: a reader finds the whole file or none.
    Atomic,
    /// To the file itself: no reader looks it up before another object is put.
    Direct,
}

impl Store {
    /// Writes objects as files, under `guard`. Returns the objects that have to be put another way.
    pub(super) async fn put_files(
        &self,
        objects: Vec<(Key, Bytes)>,
        mode: WriteMode,
        guard: Option<&WriteGuard>,
    ) -> Result<Vec<(Key, Bytes)>, WriteError> {
        let Some(root) = self.folder().filter(|_| !self.is_durable()) else {
            return Ok(objects);
        };
        let (mut files, others): (Vec<_>, Vec<_>) = objects
            .into_iter()
            .partition(|(key, _)| has_plain_path(key));
        let share = files
            .len()
            .div_ceil(self.concurrency())
            .max(MIN_FILES_PER_THREAD);
        let mut writing = Vec::new();
        while !files.is_empty() {
            let rest = files.split_off(share.min(files.len()));
            let share = core::mem::replace(&mut files, rest);
            let (store, root, guard) = (self.clone(), root.to_owned(), guard.cloned());
            writing.push(async move {
                let write = move || {
                    let written = store.write_files(&root, &share, mode);
                    drop(guard);
                    written
                };
                let written = run_blocking(write).await;
                written.unwrap_or_else(resume_panic)
            });
        }
        self.run_concurrently(writing.into_iter()).await?;
        Ok(others)
    }

    /// Renames files concurrently. Returns for each whether it existed, or `None` where objects
    /// have to be renamed another way.
    ///
    /// Each thread gets a run of files: waking a thread takes longer than a rename, and consecutive
    /// files share their folders.
    pub(crate) async fn rename_files(
        &self,
        moves: Vec<(Key, Key)>,
    ) -> Result<Option<Vec<bool>>, WriteError> {
        let Some(root) = self.folder().filter(|_| !self.is_durable()) else {
            return Ok(None);
        };
        if !moves
            .iter()
            .all(|(from, to)| has_plain_path(from) && has_plain_path(to))
        {
            return Ok(None);
        }
        let share = moves
            .len()
            .div_ceil(self.concurrency())
            .max(MIN_FILES_PER_THREAD);
        let shares: Vec<_> = moves
            .chunks(share)
            .map(|share| {
                let (store, root, share) = (self.clone(), root.to_owned(), share.to_vec());
                async move {
                    let move_all = move || store.move_files(&root, &share);
                    let moved = run_blocking(move_all).await;
                    moved.unwrap_or_else(resume_panic)
                }
            })
            .collect();
        // After an error too, all threads have ended: see `run_concurrently`.
        let moved: Vec<Vec<bool>> = join_all(shares)
            .await
            .into_iter()
            .collect::<Result<_, _>>()?;
        Ok(Some(moved.concat()))
    }

    /// Returns the sizes of the files in a folder of a transaction, by name, or `None` where
    /// objects are not files. `object_store` would read the metadata of each file three times.
    pub(crate) async fn sizes_of_files(
        &self,
        folder: &Key,
    ) -> Result<Option<HashMap<String, u64>>, WriteError> {
        let Some(root) = self.folder() else {
            return Ok(None);
        };
        self.recorder().list();
        let path = root.join(folder.as_str());
        match run_blocking(move || sizes_in(&path)).await {
            Ok(sizes) => sizes
                .map(Some)
                .map_err(|source| self.file_error(folder, &source)),
            Err(error) => resume_panic(error),
        }
    }

    /// Syncs the folders of deleted files if writes are durable: `object_store` syncs the folders of
    /// what it puts and renames, but not of what it deletes. A delete that a power failure undoes
    /// would return an object that no state of the store has.
    pub(super) async fn sync_folders_of(&self, keys: &[Key]) -> Result<(), WriteError> {
        let (Some(root), Some(first)) = (self.folder(), keys.first()) else {
            return Ok(());
        };
        if !self.is_durable() {
            return Ok(());
        }
        let parents = keys.iter().filter_map(Key::parent);
        let folders: BTreeSet<PathBuf> = parents.map(|key| root.join(key.as_str())).collect();
        let sync = move || folders.iter().try_for_each(|folder| sync_folder(folder));
        match run_blocking(sync).await {
            Ok(synced) => synced.map_err(|source| self.file_error(first, &source)),
            Err(error) => resume_panic(error),
        }
    }

    fn move_files(&self, root: &Path, moves: &[(Key, Key)]) -> Result<Vec<bool>, WriteError> {
        let mut moved = Vec::with_capacity(moves.len());
        let mut last: Option<PathBuf> = None;
        for (from, to) in moves {
            self.write_hook().call("rename", to);
            self.recorder().write(0);
            let (source, target) = (root.join(from.as_str()), root.join(to.as_str()));
            let folder = target.parent().map(Path::to_owned);
            let has_folder = folder.is_some() && folder == last;
            let found = rename_file(&source, &target, has_folder);
            self.write_hook().call("rename", to);
            let found = found.map_err(|error| self.file_error(to, &error))?;
            if found {
                last = folder;
            }
            moved.push(found);
        }
        Ok(moved)
    }

    fn write_files(
        &self,
        root: &Path,
        objects: &[(Key, Bytes)],
        mode: WriteMode,
    ) -> Result<(), WriteError> {
        for (key, bytes) in objects {
            self.write_hook().call("put", key);
            self.recorder().write(bytes.len());
            let path = root.join(key.as_str());
            let written = match mode {
                WriteMode::Atomic => write_atomically(&path, bytes),
                WriteMode::Direct => write_file(&path, bytes, |path| fs::File::create(path)),
            };
            written.map_err(|source| self.file_error(key, &source))?;
            self.write_hook().call("put", key);
        }
        Ok(())
    }

    fn file_error(&self, key: &Key, error: &io::Error) -> WriteError {
        let key = key.clone();
        let source = backend::local_failure(&self.inner.name, error);
        if error.kind() == io::ErrorKind::PermissionDenied {
            WriteError::Forbidden { key, source }
        } else {
            WriteError::Io { key, source }
        }
    }
}

/// Syncs a folder, or the nearest one above it that exists.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    // Folders cannot be opened as files elsewhere.
    if cfg!(not(unix)) {
        return Ok(());
    }
    let mut folder = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    loop {
        match (fs::File::open(folder), folder.parent()) {
            (Err(error), Some(parent)) if error.kind() == io::ErrorKind::NotFound => {
                folder = parent;
            }
            (opened, _) => return opened?.sync_all(),
        }
    }
}

fn sizes_in(folder: &Path) -> io::Result<HashMap<String, u64>> {
    let mut sizes = HashMap::new();
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(sizes),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        if let Ok(name) = entry.file_name().into_string() {
            sizes.insert(name, entry.metadata()?.len());
        }
    }
    Ok(sizes)
}

/// Resumes the panic of a task, or returns the error of a task that never ran.
fn resume_panic<T>(error: BlockingError) -> Result<T, WriteError> {
    let source: Box<dyn Error + Send + Sync> = match error {
        BlockingError::Join(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            Err(error) => Box::new(error),
        },
        BlockingError::NoResult => Box::new(error),
    };
    let key = Key::root();
    Err(WriteError::Io { key, source })
}

/// Renames a file, creating the folders of its target unless `has_folder`. Returns whether the
/// file existed.
fn rename_file(source: &Path, target: &Path, has_folder: bool) -> io::Result<bool> {
    let is_absent = |moved: &io::Result<()>| {
        let kind = moved.as_ref().map_err(io::Error::kind);
        kind == Err(io::ErrorKind::NotFound)
    };
    let mut attempts_left = MAX_CREATE_DIRS;
    if !has_folder && let Some(folder) = target.parent() {
        fs::create_dir_all(folder)?;
    }
    loop {
        let moved = fs::rename(source, target);
        if !is_absent(&moved) {
            return moved.map(|()| true);
        }
        if attempts_left == 0 || !source.try_exists()? {
            return Ok(false);
        }
        // Another process removed the folder while it was empty.
        if let Some(folder) = target.parent() {
            fs::create_dir_all(folder)?;
        }
        attempts_left = attempts_left.saturating_sub(1);
    }
}

/// Returns whether the file of an object has the name of the object. `object_store` escapes other
/// characters.
fn has_plain_path(key: &Key) -> bool {
    let is_unescaped = |byte: u8| byte.is_ascii_alphanumeric() || b"._-+,;=/".contains(&byte);
    key.as_str().bytes().all(is_unescaped)
}

/// Writes a temporary file under a name that no object has, and renames it.
fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut number = 1u64;
    let temporary = loop {
        let mut name = path.as_os_str().to_owned();
        name.push(format!("#{number}"));
        let temporary = PathBuf::from(name);
        match write_file(&temporary, bytes, |path| fs::File::create_new(path)) {
            Ok(()) => break temporary,
            // The temporary file of another process, which may have died.
            Err(source) if source.kind() == io::ErrorKind::AlreadyExists => {
                number = number.saturating_add(1);
            }
            Err(source) => return Err(source),
        }
    };
    let moved = fs::rename(&temporary, path);
    if moved.is_err() {
        drop(fs::remove_file(&temporary));
    }
    moved
}

/// Writes a file that `create` creates, creating its folders if they are missing.
fn write_file(
    path: &Path,
    bytes: &[u8],
    create: impl Fn(&Path) -> io::Result<fs::File>,
) -> io::Result<()> {
    let mut attempts_left = MAX_CREATE_DIRS;
    let mut file = loop {
        match (create(path), path.parent()) {
            // Another process may have removed the folder while it was empty.
            (Err(source), Some(folder))
                if source.kind() == io::ErrorKind::NotFound && attempts_left > 0 =>
            {
                fs::create_dir_all(folder)?;
                attempts_left = attempts_left.saturating_sub(1);
            }
            (created, _) => break created?,
        }
    };
    let written = file.write_all(bytes);
    if written.is_err() {
        drop(fs::remove_file(path));
    }
    written
}

#[cfg(test)]
mod tests {
    use core::time::Duration;
    use std::thread;

    use super::*;
    use crate::store::OpenOptions;

    #[tokio::test]
    async fn after_a_failed_rename_no_thread_runs_any_more() {
        let folder = tempfile::tempdir().unwrap();
        let slow = |_: &str, key: &Key| {
            if key.as_str() > "to/032" {
                thread::sleep(Duration::from_millis(1));
            }
        };
        let options = OpenOptions::default()
            .concurrency(2)
            .write_hook(Arc::new(slow));
        let store = options.create(folder.path().to_str().unwrap()).unwrap();
        let name = |folder: &str, at: usize| Key::parse(&format!("{folder}/{at:03}")).unwrap();
        let moves: Vec<(Key, Key)> = (0..2 * MIN_FILES_PER_THREAD)
            .map(|at| (name("from", at), name("to", at)))
            .collect();
        let files = moves.iter().map(|(from, _)| (from.clone(), "x".into()));
        store.put_many(files.collect()).await.unwrap();
        // The first thread fails at once.
        fs::create_dir_all(folder.path().join("to/000/in the way")).unwrap();
        store.rename_files(moves).await.unwrap_err();
        let moved = fs::read_dir(folder.path().join("to")).unwrap().count();
        assert_eq!(moved, 1 + MIN_FILES_PER_THREAD);
    }
}
