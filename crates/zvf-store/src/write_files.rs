//! Objects as files of a folder, many at a time.
//!
//! `object_store` gives every file to a thread of its own, and asks what it became for a
//! tag. Where nobody wants the tag, that takes longer than the file.

use std::{
    collections::HashMap,
    fs, io,
    io::Write,
    panic::resume_unwind,
    path::{Path, PathBuf},
};

use bytes::Bytes;
use futures_util::future::try_join_all;
use tokio::task::JoinError;
use zvf_model::key::Key;

use crate::{off_thread::off_thread, store::Store, write::WriteError};

/// Files that one thread writes at least: starting it takes as long as a few of them.
const EACH: usize = 32;

/// How often folders are made for one file.
const TRIES: usize = 8;

/// How an object comes to its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Appear {
    /// Whole or not at all, whoever looks.
    Whole,
    /// Bit by bit: something else, put later, says that it is there.
    Unseen,
}

impl Store {
    /// Puts objects as files; gives back those that are no files here.
    pub(crate) async fn put_files(
        &self,
        objects: Vec<(Key, Bytes)>,
        appear: Appear,
    ) -> Result<Vec<(Key, Bytes)>, WriteError> {
        let Some(root) = self.folder().filter(|_| !self.is_durable()) else {
            return Ok(objects);
        };
        let (mut files, others): (Vec<_>, Vec<_>) =
            objects.into_iter().partition(|(key, _)| is_plain(key));
        let share = files.len().div_ceil(self.concurrency()).max(EACH);
        let mut writing = Vec::new();
        while !files.is_empty() {
            let rest = files.split_off(share.min(files.len()));
            let share = core::mem::replace(&mut files, rest);
            let (store, root) = (self.clone(), root.to_owned());
            writing.push(async move {
                let write = move || store.write_files(&root, &share, appear);
                let written = off_thread(true, write).await;
                written.unwrap_or_else(unfinished)
            });
        }
        self.side_by_side(writing.into_iter()).await?;
        Ok(others)
    }

    /// Moves objects in place of others, side by side, where all are files; for each
    /// whether it was there. `None` where they are no files here.
    ///
    /// Many go to one thread: to wake one for each takes longer than the move, and
    /// those that follow each other are in the same few folders.
    pub(crate) async fn rename_files(
        &self,
        moves: Vec<(Key, Key)>,
    ) -> Result<Option<Vec<bool>>, WriteError> {
        let Some(root) = self.folder().filter(|_| !self.is_durable()) else {
            return Ok(None);
        };
        if !moves
            .iter()
            .all(|(from, to)| is_plain(from) && is_plain(to))
        {
            return Ok(None);
        }
        let share = moves.len().div_ceil(self.concurrency()).max(EACH);
        let shares = moves.chunks(share).map(|share| {
            let (store, root, share) = (self.clone(), root.to_owned(), share.to_vec());
            async move {
                let move_all = move || store.move_files(&root, &share);
                let moved = off_thread(true, move_all).await;
                moved.unwrap_or_else(unfinished)
            }
        });
        let shares: Vec<_> = shares.collect();
        let moved = try_join_all(shares).await?;
        Ok(Some(moved.concat()))
    }

    /// The files of a folder of transactions, and how large they are; `None` where they are
    /// no files. `object_store` looks at each of them three times.
    pub(crate) async fn sizes_of_files(
        &self,
        folder: &Key,
    ) -> Result<Option<HashMap<String, u64>>, WriteError> {
        let Some(root) = self.folder() else {
            return Ok(None);
        };
        self.recorder().list();
        let path = root.join(folder.as_str());
        match off_thread(true, move || sizes_in(&path)).await {
            Ok(sizes) => sizes.map(Some).map_err(|source| failed(folder, source)),
            Err(error) => unfinished(error),
        }
    }

    fn move_files(&self, root: &Path, moves: &[(Key, Key)]) -> Result<Vec<bool>, WriteError> {
        let mut moved = Vec::with_capacity(moves.len());
        let mut last: Option<PathBuf> = None;
        for (from, to) in moves {
            self.hook().call("rename", to);
            self.recorder().write(0);
            let (source, target) = (root.join(from.as_str()), root.join(to.as_str()));
            let folder = target.parent().map(Path::to_owned);
            let is_made = folder.is_some() && folder == last;
            let found = move_to(&source, &target, is_made);
            self.hook().call("rename", to);
            let found = found.map_err(|error| failed(to, error))?;
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
        appear: Appear,
    ) -> Result<(), WriteError> {
        for (key, bytes) in objects {
            self.hook().call("put", key);
            self.recorder().write(bytes.len());
            let path = root.join(key.as_str());
            let written = match appear {
                Appear::Whole => write_beside(&path, bytes),
                Appear::Unseen => write_to(&path, bytes, |path| fs::File::create(path)),
            };
            written.map_err(|source| failed(key, source))?;
            self.hook().call("put", key);
        }
        Ok(())
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

/// What comes of work whose thread panicked, or never ran.
fn unfinished<T>(error: JoinError) -> Result<T, WriteError> {
    match error.try_into_panic() {
        Ok(panic) => resume_unwind(panic),
        Err(error) => {
            let (key, source) = (Key::root(), Box::new(error));
            Err(WriteError::Io { key, source })
        }
    }
}

/// Moves a file, and makes the folders above its new place, unless they were just now;
/// whether it was there.
fn move_to(source: &Path, target: &Path, is_made: bool) -> io::Result<bool> {
    let is_absent = |moved: &io::Result<()>| {
        let kind = moved.as_ref().map_err(io::Error::kind);
        kind == Err(io::ErrorKind::NotFound)
    };
    let mut tries = TRIES;
    if !is_made && let Some(folder) = target.parent() {
        fs::create_dir_all(folder)?;
    }
    loop {
        let moved = fs::rename(source, target);
        if !is_absent(&moved) {
            return moved.map(|()| true);
        }
        if tries == 0 || !source.try_exists()? {
            return Ok(false);
        }
        // Others removed the folder, as it was empty just now.
        if let Some(folder) = target.parent() {
            fs::create_dir_all(folder)?;
        }
        tries = tries.saturating_sub(1);
    }
}

/// Whether `object_store` calls the file of an object as the object is called; it has rules
/// of its own for other letters.
fn is_plain(key: &Key) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-+,;=/".contains(&byte);
    key.as_str().bytes().all(is_plain)
}

/// Writes a file beside its place, under a name that no object has, and moves it there.
fn write_beside(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut number = 1u64;
    let temporary = loop {
        let mut name = path.as_os_str().to_owned();
        name.push(format!("#{number}"));
        let temporary = PathBuf::from(name);
        match write_to(&temporary, bytes, |path| fs::File::create_new(path)) {
            Ok(()) => break temporary,
            // Of somebody else, who is at it or died.
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

/// Writes a file that `create` makes, and the folders above it where there are none.
fn write_to(
    path: &Path,
    bytes: &[u8],
    create: impl Fn(&Path) -> io::Result<fs::File>,
) -> io::Result<()> {
    let mut tries = TRIES;
    let mut file = loop {
        match (create(path), path.parent()) {
            // Others remove folders that they leave empty: perhaps this one, just now.
            (Err(source), Some(folder))
                if source.kind() == io::ErrorKind::NotFound && tries > 0 =>
            {
                fs::create_dir_all(folder)?;
                tries = tries.saturating_sub(1);
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

fn failed(key: &Key, source: io::Error) -> WriteError {
    let (key, denied) = (
        key.clone(),
        source.kind() == io::ErrorKind::PermissionDenied,
    );
    let source = Box::new(source);
    match denied {
        true => WriteError::Forbidden { key, source },
        false => WriteError::Io { key, source },
    }
}
