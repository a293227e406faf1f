//! A disk that loses what was not synced.
//!
//! The model is weaker than any journaling file system: a change of a folder is lost, or kept
//! although an earlier one is lost, unless the folder was synced after it. The contents of a file
//! are lost in part unless the file was synced. A rename is one change, which syncing either folder
//! keeps.

use std::{collections::BTreeMap, fmt::Write as _, fs, path::Path};

use zvf_testkit::stores::Random;

use super::trace::Call;

/// Files and folders by their paths. A file is the number of its contents. In the path of a folder
/// that was made, each name has a number after `@`, because a folder that was removed and made again
/// is another one: what is lost or kept of the first says nothing about the second.
#[derive(Clone, Debug, Default)]
struct Names(BTreeMap<String, Entry>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    File(usize),
    Folder,
}

/// A change of folders.
#[derive(Clone, Debug)]
enum Change {
    Add(String, Entry),
    Rename {
        from: String,
        to: String,
        entry: Entry,
    },
    Remove(String),
}

/// The contents of a file, as programs see them and as they are on the disk.
#[derive(Clone, Debug, Default)]
struct Contents {
    written: Vec<u8>,
    synced: Vec<u8>,
}

#[derive(Debug, Default)]
pub(super) struct Disk {
    contents: Vec<Contents>,
    /// As programs see it.
    names: Names,
    /// As it is on the disk.
    synced: Names,
    /// The changes that are not on the disk.
    pending: Vec<Change>,
    /// The number of each folder that exists, by its path without numbers.
    folders: BTreeMap<String, usize>,
    made: usize,
}

impl Disk {
    /// Returns a path with the numbers of its folders.
    fn numbered(&self, path: &str) -> String {
        let (mut plain, mut numbered) = (String::new(), String::new());
        for name in path.split('/') {
            for path in [&mut plain, &mut numbered] {
                if !path.is_empty() {
                    path.push('/');
                }
                path.push_str(name);
            }
            if let Some(number) = self.folders.get(&plain) {
                write!(numbered, "@{number}").unwrap();
            }
        }
        numbered
    }

    pub(super) fn replay(&mut self, call: &Call) {
        match call {
            Call::Create(path) => {
                let path = self.numbered(path);
                if let Some(number) = self.file(&path) {
                    self.contents[number].written.clear();
                    return;
                }
                self.contents.push(Contents::default());
                let entry = Entry::File(self.contents.len() - 1);
                self.change(Change::Add(path, entry));
            }
            Call::Write(path, bytes) => {
                let number = self.file(&self.numbered(path)).unwrap();
                self.contents[number].written.extend_from_slice(bytes);
            }
            Call::Rename(from, to) => {
                let (from, to) = (self.numbered(from), self.numbered(to));
                let entry = self.names.0[&from];
                self.change(Change::Rename { from, to, entry });
            }
            Call::Link(from, to) => {
                let entry = self.names.0[&self.numbered(from)];
                self.change(Change::Add(self.numbered(to), entry));
            }
            Call::Remove(path) => {
                let numbered = self.numbered(path);
                self.folders.remove(path);
                self.change(Change::Remove(numbered));
            }
            Call::MakeFolder(path) => {
                self.made += 1;
                self.folders.insert(path.clone(), self.made);
                self.change(Change::Add(self.numbered(path), Entry::Folder));
            }
            Call::Sync(path) => {
                let path = self.numbered(path);
                match self.file(&path) {
                    Some(number) => {
                        let contents = &mut self.contents[number];
                        contents.synced.clone_from(&contents.written);
                    }
                    None => self.sync_folder(&path),
                }
            }
            Call::Mark(_) => {}
        }
    }

    fn file(&self, path: &str) -> Option<usize> {
        match self.names.0.get(path) {
            Some(Entry::File(number)) => Some(*number),
            _ => None,
        }
    }

    fn change(&mut self, change: Change) {
        self.names.apply(&change);
        self.pending.push(change);
    }

    fn sync_folder(&mut self, folder: &str) {
        for change in core::mem::take(&mut self.pending) {
            if change.is_in(folder) {
                self.synced.apply(&change);
            } else {
                self.pending.push(change);
            }
        }
    }

    /// Cuts the power, and writes what is left to a folder.
    pub(super) fn write_what_is_left(&self, random: &mut Random, folder: &Path) {
        // Everything, nothing, or some part of what is not on the disk.
        let percent = [0, 30, 70, 100][random.below(4)];
        let mut names = self.synced.clone();
        for change in &self.pending {
            if random.chance(percent) {
                names.apply(change);
            }
        }
        for (path, entry) in &names.0 {
            // Folders come before what is in them, as names contain nothing below `/`.
            let is_in_folder = path
                .match_indices('/')
                .all(|(end, _)| names.0.contains_key(&path[..end]));
            if !is_in_folder {
                continue;
            }
            let place = folder.join(plain(path));
            match entry {
                Entry::Folder => fs::create_dir(place).unwrap(),
                Entry::File(number) => {
                    fs::write(place, self.contents[*number].left(random)).unwrap();
                }
            }
        }
    }
}

impl Contents {
    fn left(&self, random: &mut Random) -> Vec<u8> {
        let mut left = self.written.clone();
        if self.synced == self.written {
            return left;
        }
        let from = random.below(left.len() + 1);
        match random.below(4) {
            0 => return self.synced.clone(),
            1 => left.truncate(from),
            2 => left[from..].fill(0),
            _ => {}
        }
        left
    }
}

impl Change {
    fn is_in(&self, folder: &str) -> bool {
        let parent = |path: &str| path.rsplit_once('/').map_or("", |(parent, _)| parent) == folder;
        match self {
            Self::Add(path, _) | Self::Remove(path) => parent(path),
            Self::Rename { from, to, .. } => parent(from) || parent(to),
        }
    }
}

impl Names {
    fn apply(&mut self, change: &Change) {
        match change {
            Change::Add(path, entry) => {
                // Another folder of this name, whose removal was lost.
                let same = plain(path);
                let other: Vec<String> = self
                    .0
                    .keys()
                    .filter(|path| plain(path) == same)
                    .cloned()
                    .collect();
                for other in other {
                    self.remove(&other);
                }
                self.0.insert(path.clone(), *entry);
            }
            Change::Rename { from, to, entry } => {
                self.0.remove(from);
                self.0.insert(to.clone(), *entry);
            }
            Change::Remove(path) => self.remove(path),
        }
    }

    /// Removes a file or a folder. Only empty folders are removed: what was in it is gone too.
    fn remove(&mut self, path: &str) {
        self.0.remove(path);
        let below = format!("{path}/");
        self.0.retain(|path, _| !path.starts_with(&below));
    }
}

/// Returns a path without the numbers of its folders.
fn plain(path: &str) -> String {
    let names = path.split('/').map(|name| name.split('@').next().unwrap());
    names.collect::<Vec<_>>().join("/")
}
