//! A store whose nodes are read.

use zvf_model::{
    generation::Detection,
    key::Key,
    layout::{Layout, Part},
    level::{LevelId, LevelMetadata},
    root::RootMetadata,
};

use crate::{context::Context, tree::Tree};

/// A store, as far as its nodes tell.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) tree: Tree,
    pub(crate) detection: Detection,
    /// `None` when the root cannot be used, which L2 finds.
    pub(crate) root: Option<RootMetadata>,
    /// Ascending.
    pub(crate) levels: Vec<Level>,
}

/// A level.
#[derive(Debug)]
pub(crate) struct Level {
    pub(crate) id: LevelId,
    pub(crate) key: Key,
    /// `None` when it cannot be used, which L2 finds.
    pub(crate) metadata: Option<LevelMetadata>,
    /// How many numbers chunk keys have; 0 when nothing says.
    pub(crate) arity: usize,
}

impl Store {
    pub(crate) fn layout(&self) -> &Layout {
        &self.detection.layout
    }

    /// The node that describes a part; `None` when the generation has none.
    pub(crate) fn at(&self, level: &Level, part: &Part<'_>) -> Option<Key> {
        // Names come from keys, so that they can be part of one.
        self.layout().described_at(level.id, part).ok().flatten()
    }

    /// The level of this number.
    pub(crate) fn level(&self, id: LevelId) -> Option<&Level> {
        self.levels.iter().find(|level| level.id == id)
    }

    /// Names of the nodes in a folder of a level, `vertex_attributes` for one.
    pub(crate) fn names(&self, level: &Level, folder: &str) -> Vec<&str> {
        let Ok(key) = level.key.join(folder) else {
            return Vec::new();
        };
        // What is below an array is no node.
        match self.tree.array(&key) {
            Some(_) => Vec::new(),
            None => self.tree.folders(&key),
        }
    }
}

impl Level {
    /// Opens a level from its node, which may be absent.
    pub(crate) fn new(
        context: &Context<'_>,
        tree: &Tree,
        id: LevelId,
        key: Key,
        root: Option<&RootMetadata>,
    ) -> Self {
        let attributes = tree.node(&key).map(|node| node.attributes().clone());
        let attributes = attributes.unwrap_or_default();
        let metadata =
            root.and_then(
                |root| match LevelMetadata::parse(&key, id, &attributes, root) {
                    Ok(metadata) => Some(metadata),
                    Err(error) => {
                        let rule = &crate::rules::metadata::LEVEL_UNUSABLE;
                        context.find_at(rule, &key, &error.path, &error.fault);
                        None
                    }
                },
            );
        let arity = metadata.as_ref().zip(root);
        let arity = arity.map_or(0, |(metadata, root)| metadata.arity(root));
        Self {
            id,
            key,
            metadata,
            arity,
        }
    }
}
