//! The lock of a store on disk.
//!
//! Files have no conditional put, so a commit in a folder excludes others by a file lock. The
//! operating system releases the lock of a process that dies.

use std::{
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use tokio::sync::oneshot;

use super::TransactionError;
use crate::{
    store::{RESERVED_FOLDER, Store, WriteGuard},
    threads::run_to_end,
};

/// A held lock, which is released when it and all its [guards](Self::guard) are dropped.
#[derive(Debug)]
pub(super) struct FolderLock(Arc<HeldLock>);

#[derive(Debug)]
struct HeldLock {
    file: File,
    path: PathBuf,
}

impl Store {
    /// Waits for the lock of the folder. Callers check that the store is a folder.
    pub(super) async fn lock(&self) -> Result<FolderLock, TransactionError> {
        let path = self.lock_path();
        let failed = |source| lock_error(&path, source);
        if let Some(lock) = FolderLock::take(&path).map_err(failed)? {
            return Ok(lock);
        }
        // Wait on a separate thread: the holder of the lock may need all threads of the runtime.
        let (done, waits) = oneshot::channel();
        let waited_for = path.clone();
        let wait = move || {
            // Sending fails when the caller has stopped waiting.
            drop(done.send(FolderLock::wait(&waited_for)));
        };
        let thread = std::thread::Builder::new().name("zvf-lock".to_owned());
        thread.spawn(wait).map_err(failed)?;
        let lock = waits.await.unwrap_or_else(|_| {
            Err(io::Error::other(
                "the thread that waits for the lock stopped",
            ))
        });
        lock.map_err(failed)
    }

    /// Runs work that holds the lock, and changes files, to its end, even if the caller stops waiting
    /// for it.
    pub(super) async fn run_locked<
        T: Send + 'static,
        E: From<TransactionError> + Send + 'static,
    >(
        &self,
        work: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Result<T, E> {
        match run_to_end(work).await {
            Ok(ended) => ended,
            Err(source) => Err(lock_error(&self.lock_path(), source).into()),
        }
    }

    /// Takes the lock if it is free.
    pub(super) fn try_lock(&self) -> Result<Option<FolderLock>, TransactionError> {
        let path = self.lock_path();
        FolderLock::take(&path).map_err(|source| lock_error(&path, source))
    }

    fn lock_path(&self) -> PathBuf {
        let folder = self.folder().unwrap_or(Path::new(""));
        folder.join(RESERVED_FOLDER).join("lock")
    }
}

fn lock_error(path: &Path, source: io::Error) -> TransactionError {
    TransactionError::Lock {
        path: path.display().to_string(),
        source,
    }
}

impl FolderLock {
    fn take(path: &Path) -> io::Result<Option<Self>> {
        loop {
            let file = open(path)?;
            match file.try_lock() {
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(error),
                Ok(()) if is_current(&file, path) => {
                    return Ok(Some(Self::new(file, path)));
                }
                Ok(()) => {}
            }
        }
    }

    fn wait(path: &Path) -> io::Result<Self> {
        loop {
            let file = open(path)?;
            file.lock()?;
            if is_current(&file, path) {
                return Ok(Self::new(file, path));
            }
        }
    }

    fn new(file: File, path: &Path) -> Self {
        let path = path.to_owned();
        Self(Arc::new(HeldLock { file, path }))
    }

    /// Returns a guard that holds the lock too.
    pub(super) fn guard(&self) -> WriteGuard {
        Arc::<HeldLock>::clone(&self.0)
    }

    /// Releases the lock and deletes its file where that is safe. Does neither while there are guards.
    pub(super) fn remove(self) {
        let Some(HeldLock { file: _lock, path }) = Arc::into_inner(self.0) else {
            return;
        };
        if cfg!(unix) {
            // A process that waits for the file notices that it was deleted, and opens a new one.
            drop(fs::remove_file(&path));
            // Fails for a folder that is not empty.
            drop(path.parent().map(fs::remove_dir));
        }
    }
}

/// Opens the lock file, creating it if necessary.
fn open(path: &Path) -> io::Result<File> {
    // Another process may remove the folder between the two steps.
    const MAX_ATTEMPTS: usize = 100;
    let mut options = File::options();
    options.create(true).truncate(false).read(true).write(true);
    for _ in 0..MAX_ATTEMPTS {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        match options.open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            done => return done,
        }
    }
    options.open(path)
}

/// Returns whether an open file is still the one at its path.
#[cfg(unix)]
fn is_current(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let id = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    match (file.metadata(), fs::metadata(path)) {
        (Ok(open), Ok(found)) => id(open) == id(found),
        _ => false,
    }
}

/// Returns `true`: the lock file is never deleted on this platform.
#[cfg(not(unix))]
fn is_current(_: &File, _: &Path) -> bool {
    true
}
