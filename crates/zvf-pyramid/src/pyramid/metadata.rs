//! Metadata of the root and of a new level.

use zvf_model::{
    grid::ChunkShape,
    layout::{GroupRole, OBJECT_INDEX, VERTICES},
    level::{LevelMetadata, LevelMetadataChange, RECIPE},
    metadata::Attributes,
    root::{
        CrossLevel, CrossLevelDepth, MULTISCALE_LINKS, MultiscaleDataset, PRESERVED_OBJECT_IDS,
        RootChange, RootMetadata, SHARED_FRAGMENTS,
    },
    scope::Scope,
    word::Word,
};

use zvf_catalog::ObjectSet;

use super::{build::Build, stats};

/// Returns the cross-level links that the root declares.
pub(super) fn stored(root: &RootMetadata) -> CrossLevel {
    let declared = root.cross_level_storage.as_ref();
    declared.and_then(Word::known).unwrap_or(CrossLevel::None)
}

/// Returns the number of levels that links span; all if `None`.
pub(super) fn depth(root: &RootMetadata) -> Option<u32> {
    match root.cross_level_depth? {
        CrossLevelDepth::All => None,
        CrossLevelDepth::Levels(levels) => Some(levels),
    }
}

impl Build<'_> {
    /// Returns the attributes of the level.
    pub(super) fn level_attributes(&self) -> Attributes {
        let source = self.source;
        let tally = &self.tally;
        let paths = self.families();
        let has = |family: &str| {
            paths
                .iter()
                .any(|path| path.segments().nth(1) == Some(family))
        };
        let mut present = vec![VERTICES];
        for family in Scope::OF_CHUNKS.map(|scope| scope.group().name()) {
            present.extend(has(family).then_some(family));
        }
        let links = GroupRole::Links.name();
        present.extend(self.shared.links.is_some().then_some(links));
        present.extend(source.objects.is_some().then_some(OBJECT_INDEX));
        let share = match source.objects.as_deref() {
            Some(objects) if !objects.is_empty() => self.share(objects.len() as u64),
            _ => 1.0,
        };
        let shares = self.shared.recipe.shape.is_shared();
        let inherited = source.objects.as_deref().map(ObjectSet::len);
        let mut level = LevelMetadata {
            object_sparsity: Some(share),
            vertex_count: Some(tally.rows),
            coarsening_method: Some(self.design.method.kind().in_metadata().to_owned()),
            parent_level: Some(source.id),
            arrays_present: present.into_iter().map(str::to_owned).collect(),
            chunk_shape: self.metadata.chunk_shape.clone(),
            attribute_chunking: self.metadata.attribute_chunking.clone(),
            preserves_object_ids: inherited.is_some(),
            inherited_num_objects: inherited.map(|objects| objects as u64),
            shared_fragments: shares,
            fragments_tile: !shares && !tally.is_untiled && self.shared.form.has_ids(),
            ..LevelMetadata::new(self.target)
        };
        let own_shape = |shape: &ChunkShape| *shape != source.dataset.root().chunk_shape;
        level.chunk_shape = level.chunk_shape.filter(own_shape);
        let recipe = stats::describe(self);
        level.other.insert(RECIPE.to_owned(), recipe);
        level.set_additive(self.design.additive);
        let mut attributes = level.to_attributes();
        if let Some(mut change) = LevelMetadataChange::of_existing(&mut attributes) {
            let generation = source.dataset.layout().generation;
            change.set_bins(generation, &self.dataset());
        }
        attributes
    }

    /// Returns the share of all objects that the level keeps.
    fn share(&self, objects: u64) -> f64 {
        if self.shared.recipe.kept.is_none() {
            return 1.0;
        }
        let kept = self.tally.present.max(1) as f64;
        (kept / objects as f64).min(1.0)
    }

    /// Returns the attributes of the root, including the level.
    pub(super) fn root_attributes(&self, mut root: Attributes) -> Attributes {
        let mut change = RootChange::of(&mut root);
        if self.source.objects.is_some() {
            change.use_capability(PRESERVED_OBJECT_IDS);
        }
        if self.shared.recipe.shape.is_shared() {
            change.use_capability(SHARED_FRAGMENTS);
        }
        let storage = if self.design.additive {
            CrossLevel::None
        } else {
            self.options.cross_level
        };
        let depth = match storage {
            CrossLevel::None => CrossLevelDepth::Levels(0),
            _ => self.options.depth_of(),
        };
        if storage != CrossLevel::None && depth != CrossLevelDepth::Levels(0) {
            change.use_capability(MULTISCALE_LINKS);
        }
        change.set_cross_level(depth, storage.as_str());
        change.put_dataset(&self.dataset());
        change.put_in_collection(self.target);
        root
    }

    /// Returns the entry of the level in the root.
    fn dataset(&self) -> MultiscaleDataset {
        MultiscaleDataset::of_bins(self.target, &self.bin_of(), &self.base_bin())
    }

    fn bin_of(&self) -> Vec<f64> {
        let root = self.source.dataset.root();
        self.metadata.effective_bin_shape(root).extents().to_vec()
    }

    fn base_bin(&self) -> Vec<f64> {
        let root = self.source.dataset.root();
        let base = root.base_bin_shape.as_ref().unwrap_or(&root.chunk_shape);
        base.extents().to_vec()
    }
}
