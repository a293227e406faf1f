//! L2: the metadata of nodes.

use zvf_model::{
    key::Key,
    zarr::{Array, Node},
};

use crate::{
    context::Context,
    node_role::{NodeRole, level_of},
    rules::metadata as rules,
    store::{LevelNode, StoreMetadata},
};

mod arrays;
mod capabilities;
mod cells;
mod extras;
mod faults;
mod level;
mod links;
mod node_copy;
mod objects;
mod ome;
mod root;
mod scales;
mod tables;
mod tags;

pub(crate) use capabilities::check_links;

/// Checks every field of every node. Needs no I/O.
pub(crate) fn check(context: &Context<'_>, store: &StoreMetadata) {
    root::check(context, store);
    level::check(context, store);
    node_copy::check(context, store);
    for (path, node) in store.tree.nodes() {
        let Ok(key) = key_of(path) else {
            continue;
        };
        let look = NodeCheck {
            context,
            store,
            level: level_of(path).and_then(|id| store.level(id)),
            key: &key,
            node,
        };
        look.node(NodeRole::of(*store.layout(), path));
    }
}

fn key_of(path: &str) -> Result<Key, zvf_model::key::KeyError> {
    match path {
        "" => Ok(Key::root()),
        path => Key::parse(path),
    }
}

/// The checks of one node.
struct NodeCheck<'a, 'c> {
    context: &'a Context<'c>,
    store: &'a StoreMetadata,
    level: Option<&'a LevelNode>,
    key: &'a Key,
    node: &'a Node,
}

impl NodeCheck<'_, '_> {
    fn node(&self, place: NodeRole<'_>) {
        self.convention();
        if let Node::Array(array) = self.node {
            self.array(place, array);
        }
        if let Some(tag) = place.tag() {
            self.tag(tag);
        }
        if let Some(name) = place.name() {
            self.name(name);
        }
        match place {
            NodeRole::Vertices | NodeRole::CompositeVertices(_) => self.vertices(),
            NodeRole::VertexFragments | NodeRole::LinkFragments => self.fragments(),
            NodeRole::ChunkAttribute(..) => self.attribute(),
            NodeRole::LinkFamily(delta) => self.link_family(delta),
            NodeRole::Links(delta, Some(segment)) => self.link_array(delta, segment),
            NodeRole::Links(delta, None) => self.links_of_delta(delta),
            NodeRole::CrossChunkLinks(delta) => self.crossing_links(delta),
            NodeRole::LinkAttributeFamily(_, delta) => self.link_attribute_family(delta),
            NodeRole::LinkAttribute(_, delta, segment) => self.link_attribute(delta, segment),
            NodeRole::CrossChunkAttribute(name, delta) => self.crossing_attribute(name, delta),
            NodeRole::ObjectIndex => self.object_index(),
            NodeRole::Groups | NodeRole::ParametricGroups => self.groups(),
            NodeRole::ObjectAttribute(_)
            | NodeRole::GroupAttribute(_)
            | NodeRole::ParametricAttribute(_)
            | NodeRole::ParametricGroupAttribute(_) => self.table(place),
            NodeRole::GeometryIndex => self.geometry_index(),
            NodeRole::CompositeLinks(_) => self.composite_links(),
            NodeRole::Parametric => self.parametric(),
            NodeRole::ParametricObjects => self.parametric_objects(),
            _ => {}
        }
    }

    /// Checks that a node of 0.10 declares its conventions.
    fn convention(&self) {
        if let Some(list) = self.node.missing_conventions(self.key) {
            let message = "it lacks the entry of a convention that the node follows";
            let rule = &rules::CONVENTION;
            let place = ["zarr_conventions"];
            self.context
                .report_attribute(rule, self.key, &place, message, Some(list));
        }
    }

    /// Returns another node of the store.
    fn other(&self, key: Option<Key>) -> Option<&Node> {
        self.store.tree.node(&key?)
    }

    fn array_at(&self, key: Option<Key>) -> Option<&Array> {
        self.other(key)?.as_array()
    }

    /// Returns the number of coordinates in a chunk key of this level, if known.
    fn arity(&self) -> Option<usize> {
        self.level
            .map(|level| level.arity)
            .filter(|arity| *arity > 0)
    }

    /// Reports a `sid_ndim` that differs from the chunk keys.
    fn check_arity(&self, sid_ndim: Option<usize>) {
        let (Some(found), Some(arity)) = (sid_ndim, self.arity()) else {
            return;
        };
        if found != arity {
            let message = format!("{found}, but chunk keys of the level have {arity} coordinates");
            let (rule, value) = (&rules::ARITY, Some(serde_json::json!(arity)));
            self.context
                .report_attribute(rule, self.key, &["sid_ndim"], message, value);
        }
    }
}
