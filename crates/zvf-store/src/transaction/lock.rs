//! The lock of a store on disk. Files have no conditional put, so whoever
//! commits there keeps all others out; the system lets go of the lock of a
//! process that dies.

use std::{
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
};

use tokio::sync::oneshot;

use super::TransactionError;
use crate::{overlay::HOME, store::Store};

/// A lock that is held. Dropping it lets go.
#[derive(Debug)]
pub(super) struct FolderLock {
    file: File,
    path: PathBuf,
}

impl Store {
    /// Waits for the lock; of a store that is no folder there is none to wait
    /// for, which callers know.
    pub(super) async fn lock(&self) -> Result<FolderLock, TransactionError> {
        let path = self.lock_path();
        let failed = |source| lock_error(&path, source);
        if let Some(lock) = FolderLock::take(&path).map_err(failed)? {
            return Ok(lock);
        }
        // On a thread of its own: those of the runtime may all be needed by
        // whoever holds the lock.
        let (done, waits) = oneshot::channel();
        let waited_for = path.clone();
        let wait = move || {
            // Nobody waits any more when this cannot be sent.
            drop(done.send(FolderLock::wait(&waited_for)));
        };
        let thread = std::thread::Builder::new().name("zvf-lock".to_owned());
        thread.spawn(wait).map_err(failed)?;
        let lock = waits.await;
        let lock = lock.unwrap_or_else(|_| Err(io::Error::other("the waiting thread died")));
        lock.map_err(failed)
    }

    /// The lock, unless somebody holds it.
    pub(super) fn try_lock(&self) -> Result<Option<FolderLock>, TransactionError> {
        let path = self.lock_path();
        FolderLock::take(&path).map_err(|source| lock_error(&path, source))
    }

    fn lock_path(&self) -> PathBuf {
        let folder = self.folder().unwrap_or(Path::new(""));
        folder.join(HOME).join("lock")
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
                Ok(()) if is_at(&file, path) => {
                    let path = path.to_owned();
                    return Ok(Some(Self { file, path }));
                }
                Ok(()) => {}
            }
        }
    }

    fn wait(path: &Path) -> io::Result<Self> {
        loop {
            let file = open(path)?;
            file.lock()?;
            if is_at(&file, path) {
                let path = path.to_owned();
                return Ok(Self { file, path });
            }
        }
    }

    /// Lets go, and leaves no file behind where that is safe.
    pub(super) fn remove(self) {
        if cfg!(unix) {
            // Whoever waits for it sees that it is not at its place any more.
            drop(fs::remove_file(&self.path));
            // Stays when it holds anything.
            drop(self.path.parent().map(fs::remove_dir));
        }
        drop(self.file);
    }
}

/// The lock's file, made when it is not there.
fn open(path: &Path) -> io::Result<File> {
    // The folder may go between two steps, with the last thing in it.
    const TRIES: usize = 100;
    let mut options = File::options();
    options.create(true).truncate(false).read(true).write(true);
    for _ in 0..TRIES {
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

/// Whether a file that was opened is still the one at its path.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let id = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    match (file.metadata(), fs::metadata(path)) {
        (Ok(open), Ok(found)) => id(open) == id(found),
        _ => false,
    }
}

/// It is never removed.
#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> bool {
    true
}
