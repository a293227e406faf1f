//! Required and declared parts of each level.

use serde_json::json;
use zvf_model::{
    array::{ObjectIndex, ObjectIndexLayout},
    geometry_kind::GeometryKind,
    key::Key,
    layout::{ArrayRole, LinkForm, LinkOffsets, OBJECT_INDEX, VERTICES},
    level::{LevelId, LevelMetadata},
    root::RootMetadata,
    scope::Scope,
    zarr::Node,
};

use crate::{
    context::Context,
    node_role::below,
    rules::structure as rules,
    store::{LevelNode, StoreMetadata},
};

/// Returns the parts that every writer lists in `arrays_present`.
fn listed() -> impl Iterator<Item = &'static str> {
    let attributes = Scope::OF_CHUNKS.map(|scope| scope.group().name());
    [VERTICES, OBJECT_INDEX].into_iter().chain(attributes)
}

pub(super) fn check(context: &Context<'_>, store: &StoreMetadata) {
    for level in &store.levels {
        let look = LevelCheck {
            context,
            store,
            level,
        };
        look.vertices();
        look.objects();
        look.link_fragments();
        if let Some(metadata) = &level.metadata {
            look.declared(metadata);
        }
        if let (Some(root), LevelId::FULL) = (&store.root, level.id) {
            look.kinds(root);
        }
    }
}

/// The checks of one level.
struct LevelCheck<'a, 'c> {
    context: &'a Context<'c>,
    store: &'a StoreMetadata,
    level: &'a LevelNode,
}

impl LevelCheck<'_, '_> {
    fn key(&self, name: &str) -> Option<Key> {
        below(&self.level.key, name)
    }

    fn has(&self, name: &str) -> bool {
        self.key(name)
            .is_some_and(|key| self.store.tree.exists(&key))
    }

    fn vertices(&self) {
        let key = &self.level.key;
        if !self.has("vertices") {
            let message = "the part vertices does not exist";
            self.context.report(&rules::NO_VERTICES, key, message);
        }
        if !self.has("vertex_fragments") {
            let message = "the part vertex_fragments does not exist";
            self.context
                .report(&rules::NO_VERTEX_FRAGMENTS, key, message);
        }
    }

    fn kinds(&self, root: &RootMetadata) {
        let key = &self.level.key;
        // Composite geometries have no parts of their kind, and an empty level needs none.
        if self.has("geometry_index") || !is_filled(self.store, self.level) {
            return;
        }
        for kind in root.kinds() {
            let faces = matches!(kind, GeometryKind::Graphs | GeometryKind::Mesh);
            if faces && !self.has("links/0") && !self.has("cross_chunk_links/0") {
                let message = format!("the store holds a {kind}, but links/0 does not exist");
                self.context.report(&rules::NO_LINKS, key, message);
            }
            if kind.is_paths() && !self.has("object_index") {
                let message = format!("the store holds a {kind}, but object_index does not exist");
                self.context.report(&rules::NO_OBJECT_INDEX, key, message);
            }
        }
    }

    /// Links inside chunks need link fragments.
    fn link_fragments(&self) {
        if self.has("link_fragments") {
            return;
        }
        let Some(family) = self.key("links/0") else {
            return;
        };
        let layout = self.store.layout();
        let inside = match layout.links {
            LinkForm::PerDelta => Some(family.clone()),
            LinkForm::PerOffsets => {
                let node = self.store.tree.node(&family);
                let attributes = node.map(Node::attributes);
                let width = attributes.and_then(|all| all.get("link_width"));
                let width = width.and_then(|width| usize::try_from(width.as_u64()?).ok());
                let arity = self.level.arity;
                let offsets = width.map(|width| LinkOffsets::Zero { width, arity });
                let delta = zvf_format::path::Delta::INTRA;
                offsets.and_then(|offsets| {
                    let part = ArrayRole::Links(delta, offsets);
                    self.store.at(self.level, &part)
                })
            }
        };
        // A node without cells holds no links.
        let mut files = inside.iter().flat_map(|key| self.store.tree.below(key));
        let holds = files.any(|(file, _)| !file.ends_with("zarr.json"));
        if holds {
            let message = "chunks hold links, but link_fragments does not exist";
            self.context
                .report(&rules::NO_LINK_FRAGMENTS, &self.level.key, message);
        }
    }

    fn objects(&self) {
        let Some(key) = self.key("object_index") else {
            return;
        };
        let Some(node) = self.store.tree.node(&key) else {
            return;
        };
        // L2 reports malformed metadata.
        let Ok(index) = ObjectIndex::parse(&key, node.attributes()) else {
            return;
        };
        if index.value.num_objects == 0 {
            return;
        }
        let rows = index.value.num_objects;
        let needs: &[&str] = match index.value.layout {
            ObjectIndexLayout::Open => &["data", "offsets"],
            ObjectIndexLayout::Manifests => &["manifests"],
            ObjectIndexLayout::ManifestsWithIds => &["manifests", "object_ids"],
            ObjectIndexLayout::Dense => &["manifest_spans", "manifest_blocks", "object_ids"],
        };
        for name in needs {
            if self.has(&format!("object_index/{name}")) {
                continue;
            }
            let message = format!("{rows} objects, but {name} does not exist");
            let rule = match *name {
                "object_ids" => &rules::NO_OBJECT_IDS,
                _ => &rules::NO_MANIFESTS,
            };
            self.context.report(rule, &key, message);
        }
    }

    fn declared(&self, metadata: &LevelMetadata) {
        let declared = &metadata.arrays_present;
        let given = self
            .store
            .tree
            .node(&self.level.key)
            .and_then(|node| node.attributes().get("zarr_vectors_level"));
        if given
            .and_then(|block| block.get("arrays_present"))
            .is_none()
        {
            // L2 reports the missing list.
            return;
        }
        let (kept, removed): (Vec<&str>, Vec<&str>) = declared
            .iter()
            .map(String::as_str)
            .partition(|name| self.has(name));
        let present = listed().filter(|name| self.has(name));
        let unlisted: Vec<&str> = present.filter(|name| !kept.contains(name)).collect();
        let right: Vec<&str> = kept.into_iter().chain(unlisted.iter().copied()).collect();
        let path = ["zarr_vectors_level", "arrays_present"];
        if removed.contains(&OBJECT_INDEX) {
            let message = "arrays_present lists object_index, which does not exist";
            let (rule, key) = (&rules::NO_OBJECT_INDEX, &self.level.key);
            self.context.report(rule, key, message);
        }
        if !removed.is_empty() {
            let message = format!("it lists {removed:?}, which do not exist");
            let (rule, key) = (&rules::DECLARED_MISSING, &self.level.key);
            self.context
                .report_attribute(rule, key, &path, message, Some(json!(right)));
        }
        if !unlisted.is_empty() {
            let message = format!("it does not list {unlisted:?}");
            let (rule, key) = (&rules::PRESENT_UNDECLARED, &self.level.key);
            self.context
                .report_attribute(rule, key, &path, message, Some(json!(right)));
        }
    }
}

/// Returns whether the listing shows vertices of a level.
pub(crate) fn is_filled(store: &StoreMetadata, level: &LevelNode) -> bool {
    let vertices = below(&level.key, "vertices");
    let mut files = vertices.iter().flat_map(|key| store.tree.below(key));
    // Only cells hold vertices.
    files.any(|(file, _)| !file.ends_with("zarr.json"))
}

/// Returns the parts of a level that `arrays_present` should name.
pub(crate) fn parts(store: &StoreMetadata, level: &LevelNode) -> Vec<&'static str> {
    let is_there = |name: &&str| {
        let key = below(&level.key, name);
        key.is_some_and(|key| store.tree.exists(&key))
    };
    listed().chain(["links"]).filter(is_there).collect()
}
