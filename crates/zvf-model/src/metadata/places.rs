//! Names of attributes in 0.9 and 0.10, and the places of attributes in stored nodes.

use serde_json::Value;

use super::Attributes;

pub(super) const CONVENTIONS: &str = "zarr_conventions";
pub(super) const BLOCK: &str = "zarr_vectors";
pub(super) const LEVEL_BLOCK: &str = "zarr_vectors_level";
pub(super) const MULTISCALES: &str = "multiscales";
pub(super) const TAG: &str = "zv_array";
pub(super) const OLD_TAG: &str = "zvf_array";
pub(super) const KIND: &str = "kind";
pub(super) const UUID: &str = "uuid";
pub(super) const TYPES: &str = "parametric_types";
/// Members of a dataset that its entry in the layout has besides the asset.
pub(super) const ENTRY: &str = "layout";
pub(super) const ZARR_VECTORS_UUID: &str = "66268a61-7833-4995-bbcb-233bb417dae5";

/// Members of the attributes of arrays and families that the format defines.
pub(super) const MEMBERS: [&str; 35] = [
    "_FillValue",
    "categories",
    "channel_names",
    "chunk_grid_origin",
    "directed",
    "dtype",
    "encoding",
    "fill_sentinel_meaning",
    "group_ranges",
    "has_perm",
    "has_present_mask",
    "layout",
    "level_delta",
    "link_width",
    "manifest_block_dtype",
    "max_row_length",
    "name",
    "ndim",
    "nonempty_chunks",
    "num_channels",
    "num_groups",
    "num_links",
    "num_objects",
    "num_physical_records",
    "num_present",
    "object_ids_sorted",
    "offsets",
    "ordered",
    TYPES,
    "row_shape",
    "shape",
    "sid_ndim",
    "store",
    "vertex_count",
    // The list of chunks in copies of nodes.
    "zvf_chunk_runs",
];

/// Returns whether the attributes of a node are of a store of 0.10, in either form.
pub(crate) fn is_marked(attributes: &Attributes) -> bool {
    entries(attributes).any(|entry| is_of(entry, ZARR_VECTORS_UUID))
}

pub(super) fn entries(attributes: &Attributes) -> impl Iterator<Item = &Value> {
    let list = attributes.get(CONVENTIONS).and_then(Value::as_array);
    list.into_iter().flatten()
}

pub(super) fn is_of(entry: &Value, uuid: &str) -> bool {
    entry.get(UUID).and_then(Value::as_str) == Some(uuid)
}

/// Returns the place in the stored attributes of a place in `attributes`, such as
/// `attributes.zarr_vectors_level.level`.
pub(crate) fn place(attributes: &Attributes, place: &str) -> String {
    let renamed = || {
        let rest = place.strip_prefix("attributes.")?;
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        let (first, after) = rest.split_at_checked(end)?;
        let scales = |member: &str| after.strip_prefix("[0]")?.strip_prefix(member);
        let renamed = match first {
            LEVEL_BLOCK => format!("{BLOCK}{after}"),
            MULTISCALES => match (scales(".axes"), scales(".datasets"), scales("")) {
                (Some(after), ..) => format!("{BLOCK}.axes{after}"),
                (_, Some(after), _) => format!("{MULTISCALES}.{ENTRY}{after}"),
                (.., Some(after)) => format!("{MULTISCALES}{after}"),
                _ => return None,
            },
            TAG | OLD_TAG => format!("{BLOCK}.{KIND}"),
            name if MEMBERS.contains(&name) => format!("{BLOCK}.{rest}"),
            _ => return None,
        };
        Some(format!("attributes.{renamed}"))
    };
    let renamed = is_marked(attributes).then(renamed).flatten();
    renamed.unwrap_or_else(|| place.to_owned())
}
