//! Where stores are that are written to until somebody dies.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
};

use tempfile::TempDir;
use zvf::OpenOptions;
use zvf_model::key::Key;

/// A folder, or a place in a bucket.
#[derive(Debug)]
pub(crate) enum Place {
    Folder(TempDir),
    /// An address below which nobody else writes.
    Bucket(String),
}

/// Objects by name, also those of transactions.
pub(crate) type Files = Vec<(String, Vec<u8>)>;

static NEXT: AtomicUsize = AtomicUsize::new(0);

impl Place {
    /// A folder where files are quick: in memory, if the system has that. What a killed
    /// process leaves is the same there as on a disk, only a power cut is not; files are
    /// made fifteen times as fast. `ZVF_TEST_ON_DISK` asks for a disk all the same.
    pub(crate) fn folder() -> Self {
        let memory = Path::new("/dev/shm");
        match std::env::var_os("ZVF_TEST_ON_DISK") {
            None if memory.is_dir() => {
                tempfile::tempdir_in(memory).map_or_else(|_| Self::on_disk(), Self::Folder)
            }
            _ => Self::on_disk(),
        }
    }

    /// A folder where the system has those that do not last.
    pub(crate) fn on_disk() -> Self {
        Self::Folder(tempfile::tempdir().unwrap())
    }

    /// A new one beside it.
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

    /// Puts objects, whatever is there.
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
                let objects = files.iter();
                let objects = objects
                    // Of no use there.
                    .filter(|(name, _)| name != ".zvf/lock")
                    .map(|(name, bytes)| (Key::parse(name).unwrap(), bytes.clone().into()));
                store.put_many(objects.collect()).await.unwrap();
            }
        }
    }

    /// Deletes what is in a bucket: the server looks at all of its objects when it lists
    /// some. Folders go by themselves.
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

    /// What is in the folder: also what no reader looks at.
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
