//! Metadata of a store and its levels, parsed from the nodes.

use zvf_model::{
    detection::Detection,
    key::Key,
    layout::{ArrayRole, Layout},
    level::{LevelId, LevelMetadata, Refinement},
    root::RootMetadata,
};

use crate::{context::Context, tree::StoreTree};

/// Metadata of a store, as far as its nodes are readable.
#[derive(Debug)]
pub(crate) struct StoreMetadata {
    pub(crate) tree: StoreTree,
    pub(crate) detection: Detection,
    /// `None` if the root is unusable, which L2 reports.
    pub(crate) root: Option<RootMetadata>,
    /// In ascending order.
    pub(crate) levels: Vec<LevelNode>,
}

/// A level and its metadata.
#[derive(Debug)]
pub(crate) struct LevelNode {
    pub(crate) id: LevelId,
    pub(crate) key: Key,
    /// `None` if the metadata are unusable, which L2 reports.
    pub(crate) metadata: Option<LevelMetadata>,
    /// Coordinates in a chunk key, or 0 if unknown.
    pub(crate) arity: usize,
}

/// A level whose metadata are usable, with its store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LevelScope<'a> {
    pub(crate) store: &'a StoreMetadata,
    pub(crate) root: &'a RootMetadata,
    pub(crate) level: &'a LevelNode,
    pub(crate) metadata: &'a LevelMetadata,
}

impl StoreMetadata {
    pub(crate) fn layout(&self) -> &Layout {
        &self.detection.layout
    }

    /// Returns the node that describes a part, or `None` if the generation has no such part.
    pub(crate) fn at(&self, level: &LevelNode, part: &ArrayRole<'_>) -> Option<Key> {
        // Names come from keys, so they are valid path segments.
        self.layout().described_at(level.id, part).ok().flatten()
    }

    /// Returns the level of a number.
    pub(crate) fn level(&self, id: LevelId) -> Option<&LevelNode> {
        self.levels.iter().find(|level| level.id == id)
    }

    /// Returns a level with its store, or `None` if its metadata are unusable.
    pub(crate) fn scope<'a>(
        &'a self,
        root: &'a RootMetadata,
        level: &'a LevelNode,
    ) -> Option<LevelScope<'a>> {
        let metadata = level.metadata.as_ref()?;
        Some(LevelScope {
            store: self,
            root,
            level,
            metadata,
        })
    }

    /// Iterates over a level and the levels that complete it, finest first.
    pub(crate) fn chain(&self, id: LevelId) -> impl Iterator<Item = &LevelNode> {
        core::iter::successors(self.level(id), |level| {
            let metadata = level.metadata.as_ref()?;
            match metadata.refinement {
                Refinement::Add => self.level(level.id.offset(1)?),
                Refinement::Replace if metadata.is_additive() => self.level(level.id.offset(1)?),
                Refinement::Replace => None,
            }
        })
    }

    /// Returns the names of the nodes in a folder of a level, such as `vertex_attributes`.
    pub(crate) fn names(&self, level: &LevelNode, folder: &str) -> Vec<&str> {
        let Ok(key) = level.key.join(folder) else {
            return Vec::new();
        };
        // Folders below an array are chunks, not nodes.
        match self.tree.array(&key) {
            Some(_) => Vec::new(),
            None => self.tree.folders(&key),
        }
    }
}

impl LevelNode {
    /// Parses a level from its node, which may be absent. Reports unusable metadata.
    pub(crate) fn new(
        context: &Context<'_>,
        tree: &StoreTree,
        id: LevelId,
        key: Key,
        root: Option<&RootMetadata>,
    ) -> Self {
        let attributes = tree
            .node(&key)
            .map(|node| node.attributes().clone())
            .unwrap_or_default();
        let metadata =
            root.and_then(
                |root| match LevelMetadata::parse(&key, id, &attributes, root) {
                    Ok(metadata) => Some(metadata),
                    Err(error) => {
                        let rule = &crate::rules::metadata::LEVEL_UNUSABLE;
                        context.report_at(rule, &key, &error.path, &error.fault);
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
