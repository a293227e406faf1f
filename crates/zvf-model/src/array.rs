//! Attributes of arrays, and of the groups that represent many arrays.
//!
//! Each type reads and writes the attributes of one kind of node. Invalid fields that a reader can tolerate
//! are notes next to the value, see [`Noted`](crate::metadata::Noted); all others are errors.
//!
//! | node | type |
//! |---|---|
//! | any array that has a cell for each chunk | [`Presence`] |
//! | any padded array | [`Padded`] |
//! | `vertices`, `vertices_<kind>` | [`Vertices`] |
//! | `vertex_fragments`, `link_fragments` | [`FragmentArray`] |
//! | `vertex_attributes/<name>`, `fragment_attributes/<name>`, link attributes of every form | [`CellAttribute`] |
//! | `links/<delta>`, `cross_chunk_links/<delta>` | [`LinkFamily`] |
//! | `cross_chunk_links` as a numeric array | [`VertexPairs`] |
//! | `links/<delta>/<offsets>` | [`LinkArray`] |
//! | `object_index` | [`ObjectIndex`] |
//! | `object_attributes/<name>`, `group_attributes/<name>`, the same of parametric objects | [`Table`] |
//! | `groups`, `parametric/groups` | [`Groups`] |
//! | `parametric`, `parametric/objects`, `parametric/names` | [`ParametricTypes`], [`ParametricObjects`], [`ParametricNames`] |
//! | `geometry_index`, `links_<kind>` | [`GeometryIndex`], [`CompositeLinks`] |
//! | `__shard_<n>` in stores up to 0.8.0 | [`LegacyShardIndex`] |

use crate::metadata::{Assumed, Attributes, Fields, Noter};

mod attribute;
mod composite;
mod links;
mod objects;
mod padded;
mod parametric;
mod presence;
mod shards;
mod vertex_pairs;
mod vertices;

pub use attribute::{CellAttribute, CellAttributeRole, Dictionary, LinkAttributeFamily};
pub use composite::{CompositeLinks, GeometryEntry, GeometryIndex, PartKind};
pub use links::{LinkArray, LinkFamily, LinkFamilyForm, LinkStore};
pub use objects::{
    GroupRange, Groups, ObjectIndex, ObjectIndexLayout, Table, TableRole, TableType,
};
pub use padded::Padded;
pub use parametric::{ParametricNames, ParametricObjects, ParametricType, ParametricTypes};
pub use presence::{Presence, PresentChunk};
pub use shards::{LegacyShardIndex, SHARD_PREFIX, ShardSpan};
pub use vertex_pairs::{VertexNumbering, VertexPairs};
pub use vertices::{FragmentArray, VertexEncoding, Vertices};

/// Attributes that describe the container of values: what they are depends on the generation, and on
/// the values that are stored.
const OF_CONTAINER: [&str; 13] = [
    "nonempty_chunks",
    "chunk_grid_origin",
    "shard_index",
    "layout",
    "num_objects",
    "num_present",
    "object_ids_sorted",
    "num_channels",
    "has_present_mask",
    "fill_sentinel_meaning",
    "group_ranges",
    "num_links",
    "num_physical_records",
];

/// Adds to the attributes of a node those of the node that it replaces, except for ones that describe
/// the container.
#[must_use]
pub fn overlaid(old: &Attributes, mut new: Attributes) -> Attributes {
    for (name, value) in old {
        if !OF_CONTAINER.contains(&name.as_str()) && !new.contains_key(name) {
            new.insert(name.clone(), value.clone());
        }
    }
    new
}

/// Returns the tag of the node, `zv_array`, formerly `zvf_array`, if it is expected; adds a note if it
/// is another tag.
fn check_tag<'a>(fields: &Fields<'a>, expected: &[&str], notes: &mut Noter) -> Option<&'a str> {
    let tag = fields.get("zv_array").or_else(|| fields.get("zvf_array"))?;
    match tag.text() {
        Ok(text) if expected.contains(&text) => return Some(text),
        Ok(_) => notes.note(tag.disagrees("the node's place"), Assumed::FromPath),
        Err(error) => notes.note(error, Assumed::FromPath),
    }
    None
}
