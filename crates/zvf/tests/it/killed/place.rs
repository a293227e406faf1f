//! Locations of the stores to which killed processes write.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
};

use tempfile::TempDir;
use zvf::OpenOptions;
use zvf_model::key::Key;

/// A folder, or a prefix in a bucket.
#[derive(Debug)]
pub(crate) enum Place {
    Folder(TempDir),
    /// An address below which no other test writes.
    Bucket(String),
}

/// Objects by name, including those of transactions.
pub(crate) type Files = Vec<(String, Vec<u8>)>;

static NEXT: AtomicUsize = AtomicUsize::new(0);

impl Place {
    /// Returns a folder in memory if the system has one: files are created fifteen times as fast. A
    /// killed process leaves the same files there as on a disk; only power cuts differ.
    /// `ZVF_TEST_ON_DISK` requests a disk.
    pub(crate) fn folder() -> Self {
        let memory = Path::new("/dev/shm");
        match std::env::var_os("ZVF_TEST_ON_DISK") {
            None if memory.is_dir() => {
                tempfile::tempdir_in(memory).map_or_else(|_| Self::on_disk(), Self::Folder)
            }
            _ => Self::on_disk(),
        }
    }

    /// Returns a folder in the temporary directory of the system.
    pub(crate) fn on_disk() -> Self {
        Self::Folder(tempfile::tempdir().unwrap())
    }

    /// Returns a new place next to this one.
    pub(super) fn another(&self) -> Self {
        match self {
            Self::Folder(folder) => {
                let beside = folder.path().parent().unwrap();
                Self::Folder(tempfile::tempdir_in(beside).unwrap())
            }
            Self::Bucket(address) => {
                let (bucket, _) = address.rsplit_once('/').unwrap();
                let next = NEXT.fetch_add(1, Ordering::Relaxed);
                Self::Bucket(format!("{bucket}/{}-{next}", std::process::id()))
            }
        }
    }

    pub(crate) fn address(&self) -> String {
        match self {
            Self::Folder(folder) => folder.path().join("store").to_str().unwrap().to_owned(),
            Self::Bucket(address) => address.clone(),
        }
    }

    /// Writes objects, replacing existing ones.
    pub(super) async fn fill(&self, files: &Files) {
        match self {
            Self::Folder(_) => {
                let root = PathBuf::from(self.address());
                for (name, bytes) in files {
                    let path = root.join(name);
                    fs::create_dir_all(path.parent().unwrap()).unwrap();
                    fs::write(path, bytes).unwrap();
                }
            }
            Self::Bucket(address) => {
                let store = OpenOptions::default().create(address).unwrap();
                let objects = files
                    .iter()
                    // The lock has no use in a bucket.
                    .filter(|(name, _)| name != ".zvf/lock")
                    .map(|(name, bytes)| (Key::parse(name).unwrap(), bytes.clone().into()));
                store.put_many(objects.collect()).await.unwrap();
            }
        }
    }

    /// Deletes the objects in a bucket, because the server visits all of its objects for every
    /// listing. Folders delete themselves.
    pub(super) async fn empty(&self) {
        let Self::Bucket(address) = self else {
            return;
        };
        let store = OpenOptions::default().open(address).unwrap();
        let files = store.list_all(&Key::root(), usize::MAX).await.unwrap();
        let logs = (1..8).map(|log| format!(".zvf/log/{log}.json"));
        let names = files.into_iter().map(|file| file.name).chain(logs);
        let keys = names.map(|name| Key::parse(&name).unwrap());
        store.delete_many(keys.collect()).await.unwrap();
    }

    /// Returns all files of the folder, including those that readers ignore.
    pub(super) fn files(&self) -> Files {
        let mut files = Vec::new();
        let root = PathBuf::from(self.address());
        if matches!(self, Self::Folder(_)) && root.exists() {
            below(&root, &root, &mut files);
        }
        files.sort();
        files
    }
}

fn below(root: &Path, folder: &Path, files: &mut Files) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            below(root, &path, files);
            continue;
        }
        let name = path.strip_prefix(root).unwrap().to_str().unwrap();
        files.push((name.to_owned(), fs::read(&path).unwrap()));
    }
}
