//! Attributes of the root and the levels.

use zvf_model::{
    layout::{GroupRole, LEVEL_PARTS, PartNames},
    level::{LevelId, LevelMetadataChange},
    metadata::Attributes,
    root::{MultiscaleDataset, RootChange, SHARED_FRAGMENTS},
};

use super::MigrationTarget;
use crate::design::Profile;

/// Facts needed to write the root.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RootFacts {
    /// Name of the collection, if the source has none.
    pub name: String,
    /// Levels and their bins.
    pub levels: Vec<MultiscaleDataset>,
    /// `true` if several objects share a fragment.
    pub shares_fragments: bool,
}

/// Facts counted in a level.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LevelFacts {
    /// Number of vertices.
    pub vertices: u64,
    /// Names of the arrays present.
    pub present: Vec<&'static str>,
    /// `true` if the fragments of every chunk tile its rows in order.
    pub tiles: bool,
    /// `true` if several objects share a fragment.
    pub shares_fragments: bool,
    /// Number of objects of the parent level, if it has objects.
    pub inherited_objects: Option<u64>,
    /// Bins of the level.
    pub bins: Option<MultiscaleDataset>,
}

/// Capability of the generations before 0.9 that keep links between chunks apart.
const PARTITIONED_LINKS: &str = "partitioned_cross_chunk_links";
/// Capability of 0.6 and later, which 0.10 reserves: no store has it.
const FRAGMENT_INDEX: &str = "fragment_index";

impl MigrationTarget {
    /// Returns the attributes of the root: the old ones without those specific to the old
    /// generation.
    pub fn root(&self, old: &Attributes, facts: &RootFacts) -> Attributes {
        let mut attributes = old.clone();
        let mut root = RootChange::of(&mut attributes);
        root.remove_transactions();
        root.remove_legacy_sharding();
        root.set_version(self.profile.version());
        root.retain_capabilities(|token| token != PARTITIONED_LINKS);
        if self.profile == Profile::V10 {
            root.retain_all_capabilities(|token| token != FRAGMENT_INDEX);
        }
        if facts.shares_fragments {
            root.use_capability(SHARED_FRAGMENTS);
        }
        for level in &facts.levels {
            root.add_bins(level);
        }
        if self.is_current() {
            let levels = facts.levels.iter().map(|dataset| dataset.level);
            root.add_collection(&facts.name, levels.collect());
        }
        attributes
    }

    /// Returns the attributes of a level, and descriptions of corrected values.
    pub fn level(
        &self,
        old: &Attributes,
        level: LevelId,
        facts: &LevelFacts,
    ) -> (Attributes, Vec<&'static str>) {
        let mut attributes = old.clone();
        let mut wrong = Vec::new();
        if let Some(mut change) = LevelMetadataChange::of(&mut attributes, level) {
            if change.set_vertex_count(facts.vertices) {
                wrong.push("a count of vertices that differed from the rows");
            }
            change.set_level(level);
            if let Some(bins) = &facts.bins {
                change.set_bins(self.generation(), bins);
            }
            if let Some(objects) = facts.inherited_objects {
                change.replace_inherited_objects(objects);
            }
            let mut names = change.arrays_present();
            let is_present = |name: &str| facts.present.contains(&name);
            // Unlisted arrays are legal, and each generation names link arrays differently.
            // A profile without text lacks attributes of objects and groups that are all text.
            let of_text = [GroupRole::ObjectAttributes, GroupRole::GroupAttributes];
            let may_be_absent = |name: &str| {
                let has_text = of_text.iter().any(|role| role.name() == name);
                name.contains("link") || (has_text && !self.has_text())
            };
            let is_wrong =
                |name: &str| !is_present(name) && !may_be_absent(name) && is_level_array(name);
            if names.iter().any(|name| is_wrong(name)) {
                wrong.push("a list of arrays that names missing arrays");
            }
            // Listed names keep their order; unlisted ones follow.
            let documented = PartNames::DOCUMENTED;
            let documented = [documented.vertex_attributes, documented.groups];
            let is_part = |name: &str| is_level_array(name) || documented.contains(&name);
            names.retain(|name| !is_part(name) || is_present(name));
            let mut present: Vec<String> = facts
                .present
                .iter()
                .map(|name| (*name).to_owned())
                .collect();
            present.sort_unstable();
            present.dedup();
            present.retain(|name| !names.contains(name));
            names.extend(present);
            change.set_arrays_present(names);
            // Links are written anew, in an order that may differ from that of the fragments.
            change.remove_fragment_link_groups();
            change.set_fragments_tile(facts.tiles && self.is_current());
            if facts.shares_fragments {
                change.set_shared_fragments();
            }
        }
        (attributes, wrong)
    }
}

/// Returns whether a name in a level is an array or group that is migrated. Further geometries have
/// other names.
pub fn is_level_array(name: &str) -> bool {
    LEVEL_PARTS.contains(&name)
}
