//! The content of a store by path: one listing, and every `zarr.json`.

use std::collections::{BTreeMap, BTreeSet};

use zvf_model::{
    error_chain::error_chain,
    fetch::FetchProblem,
    grid::ChunkCoord,
    key::Key,
    metadata::MetadataNote,
    zarr::{Array, Node},
};

use crate::{
    context::Context,
    rules::{metadata, structure},
};

/// File name of a node's metadata.
const FILE: &str = "zarr.json";
/// Maximum number of nodes per request to the port.
const BATCH: usize = 512;

/// Reports a member that occurs twice in its object.
fn report_repeated(context: &Context<'_>, key: &Key, found: &MetadataNote) {
    let message = format!("{}; {}", found.fault, found.assumed);
    context.report_at(&metadata::DUPLICATE, key, &found.path, message);
}

/// A file or folder directly in a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FolderEntry<'a> {
    File(&'a str),
    Folder(&'a str),
}

/// The listed objects of a store, and its nodes.
#[derive(Debug, Default)]
pub(crate) struct StoreTree {
    /// Sizes of all objects by key.
    files: BTreeMap<String, u64>,
    /// Nodes read so far. `None` marks an unreadable node, which is reported already.
    nodes: BTreeMap<String, Option<Node>>,
    /// Chunks in the shards of arrays that do not list them, by the key of the array.
    pub(crate) in_shards: BTreeMap<String, BTreeSet<ChunkCoord>>,
}

impl StoreTree {
    /// Lists the store. Returns `None` after reporting that it cannot be listed.
    pub(crate) async fn list(context: &Context<'_>) -> Option<Self> {
        let root = Key::root();
        match context.fetch.files(&root).await {
            Ok(files) => Some(Self {
                files: files.into_iter().collect(),
                nodes: BTreeMap::new(),
                in_shards: BTreeMap::new(),
            }),
            Err(error) => {
                let message = error_chain(&*error.source);
                context.report(&structure::UNLISTABLE, &root, message);
                None
            }
        }
    }

    /// Reads the nodes at `keys`, and reports each unreadable node.
    pub(crate) async fn read(&mut self, context: &Context<'_>, keys: &[Key]) {
        let mut open: Vec<&[Key]> = keys.chunks(BATCH).collect();
        while let Some(batch) = open.pop() {
            match (context.fetch.nodes(batch).await, batch) {
                (Ok(nodes), _) => {
                    for (key, node) in batch.iter().zip(nodes) {
                        if let Some(node) = node {
                            for found in node.repeated() {
                                report_repeated(context, key, &found);
                            }
                            self.nodes.insert(key.as_str().to_owned(), Some(node));
                        }
                    }
                }
                (Err(error), [key]) => {
                    let rule = match error.problem {
                        FetchProblem::Damaged | FetchProblem::Unsupported => {
                            &structure::NODE_UNREADABLE
                        }
                        _ => &structure::NODE_UNAVAILABLE,
                    };
                    context.report(rule, key, error_chain(&*error.source));
                    self.nodes.insert(key.as_str().to_owned(), None);
                }
                // Bisection finds the unreadable nodes of a failed batch in few round trips.
                (Err(_), batch) => {
                    let (left, right) = batch.split_at(batch.len() / 2);
                    open.extend([left, right]);
                }
            }
        }
    }

    /// Iterates over the objects below a folder, with their sizes, by key.
    pub(crate) fn below(&self, key: &Key) -> impl Iterator<Item = (&str, u64)> {
        let first = inside(key);
        let last = match first.strip_suffix('/') {
            // `0` follows the slash in ASCII, so the range ends after the folder.
            Some(folder) => format!("{folder}0"),
            None => "\u{10ffff}".to_owned(),
        };
        let range = self.files.range(first..last);
        range.map(|(key, size)| (key.as_str(), *size))
    }

    /// Returns the names of the folders in a folder, ascending.
    pub(crate) fn folders(&self, key: &Key) -> Vec<&str> {
        let folders = self
            .entries(key)
            .into_iter()
            .filter_map(|entry| match entry {
                FolderEntry::Folder(name) => Some(name),
                FolderEntry::File(_) => None,
            });
        folders.collect()
    }

    /// Returns the files and folders directly in a folder, ascending.
    pub(crate) fn entries(&self, key: &Key) -> Vec<FolderEntry<'_>> {
        let prefix = inside(key);
        let mut entries = Vec::new();
        let mut from = prefix.clone();
        loop {
            let next = self.files.range(from.clone()..).next();
            let Some(rest) = next.and_then(|(key, _)| key.strip_prefix(&prefix)) else {
                return entries;
            };
            from = match rest.split_once('/') {
                Some((name, _)) => {
                    entries.push(FolderEntry::Folder(name));
                    // `0` follows the slash in ASCII: continue after the folder.
                    format!("{prefix}{name}0")
                }
                None => {
                    entries.push(FolderEntry::File(rest));
                    format!("{prefix}{rest}\0")
                }
            };
        }
    }

    /// Returns the size of an object, or `None` if there is no such object.
    pub(crate) fn size(&self, key: &Key) -> Option<u64> {
        self.files.get(key.as_str()).copied()
    }

    /// Returns whether any object is at or below a node.
    pub(crate) fn exists(&self, key: &Key) -> bool {
        self.below(key).next().is_some()
    }

    /// Returns whether a node has a `zarr.json`.
    pub(crate) fn has_file(&self, key: &Key) -> bool {
        key.metadata().is_ok_and(|file| self.size(&file).is_some())
    }

    /// Iterates over every key with a `zarr.json`, ascending.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        let files = self.files.keys();
        files.filter_map(|file| match file.strip_suffix(FILE)? {
            "" => Some(""),
            folder => folder.strip_suffix('/'),
        })
    }

    /// Returns a readable node.
    pub(crate) fn node(&self, key: &Key) -> Option<&Node> {
        self.nodes.get(key.as_str())?.as_ref()
    }

    /// Returns a readable node that is an array.
    pub(crate) fn array(&self, key: &Key) -> Option<&Array> {
        self.node(key)?.as_array()
    }

    /// Iterates over every readable node, by key.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = (&str, &Node)> {
        let nodes = self.nodes.iter();
        nodes.filter_map(|(key, node)| Some((key.as_str(), node.as_ref()?)))
    }
}

/// Returns the prefix of keys below a folder.
fn inside(key: &Key) -> String {
    if key.is_root() {
        String::new()
    } else {
        format!("{key}/", key = key.as_str())
    }
}
