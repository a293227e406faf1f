//! Describes a store, and lists its attributes and groups.

use serde_json::{Value, json};
use zvf::{Dataset, Error, GeometryKind, LevelId, Scope, numeric};

/// Maximum number of groups listed.
const MAX_GROUPS: u64 = 1 << 20;
/// The attribute that holds the names of groups.
const NAME: &str = "name";

/// Describes a store by its metadata.
pub(crate) async fn store(dataset: &Dataset) -> Result<Value, Error> {
    let root = dataset.root();
    let mut levels = Vec::new();
    for id in dataset.levels() {
        let level = dataset.level(*id).await?;
        levels.push(json!({
            "level": id.number(),
            "vertices": level.vertex_count,
            "objects": level.inherited_num_objects,
            "binShape": level.effective_bin_shape(root).extents(),
            "chunkShape": level.effective_chunk_shape(root).extents(),
            "isAdditive": level.is_additive(),
        }));
    }
    let axes = root
        .axes
        .iter()
        .map(|axis| json!({"name": axis.name, "type": axis.kind, "unit": axis.unit}));
    let kinds = root.geometry_kinds.iter().map(ToString::to_string);
    let winding = root.kinds().any(GeometryKind::has_faces);
    let bounds = root.bounds.as_ref();
    let name = root.other.get("ome").and_then(|ome| ome.get("name"));
    Ok(json!({
        "address": dataset.address(),
        "generation": dataset.detection().generation.to_string(),
        "kinds": kinds.collect::<Vec<_>>(),
        "axes": axes.collect::<Vec<_>>(),
        "bounds": bounds.map(|bounds| json!([bounds.lower(), bounds.upper()])),
        "chunkShape": root.chunk_shape.extents(),
        "winding": winding.then(|| root.winding().as_str()),
        "crs": root.crs,
        "name": name.and_then(Value::as_str),
        "levels": levels,
        "capabilities": root.capabilities,
        "isSealed": dataset.store().is_sealed(),
        "notes": root.notes.iter().map(ToString::to_string).collect::<Vec<_>>(),
    }))
}

/// Describes the attributes of a level.
pub(crate) async fn attributes(dataset: &Dataset, level: LevelId) -> Result<Value, Error> {
    let found = dataset.attributes(level).await?;
    let rows = found.iter().map(|attribute| {
        json!({
            "family": attribute.scope.name(),
            "name": attribute.name,
            "dtype": attribute.data_type,
            "channels": attribute.channels,
            "channelNames": attribute.channel_names,
            "unit": attribute.unit,
            "description": attribute.description,
            "categories": attribute.categories,
        })
    });
    Ok(rows.collect())
}

/// Lists the groups of a level.
pub(crate) async fn groups(dataset: &Dataset, level: LevelId) -> Result<Value, Error> {
    let Some((groups, columns)) = dataset.group_table(level).await? else {
        return Ok(json!([]));
    };
    let names = columns.iter().find(|column| column.name == NAME);
    // The number of groups comes from the store and may be absurd.
    let rows = (0..groups.len().min(MAX_GROUPS)).map(|id| {
        let row = usize::try_from(id).unwrap_or(usize::MAX);
        json!({
            "id": id,
            "name": names.and_then(|names| names.text_at(row)),
            "size": groups.members(id).map_or(0, |own| own.len()),
        })
    });
    Ok(rows.collect())
}

/// Computes the range of an attribute on a level, the coarsest unless given.
pub(crate) async fn range(
    dataset: &Dataset,
    level: Option<LevelId>,
    name: &str,
) -> Result<Value, Error> {
    let coarsest = dataset.levels().last().copied().unwrap_or(LevelId::FULL);
    let level = level.unwrap_or(coarsest);
    let mut found = dataset.attributes(level).await?;
    let (scope, own) = name.split_once('.').unwrap_or((Scope::Vertex.name(), name));
    found.retain(|attribute| attribute.scope.name() == scope && attribute.name == own);
    let ranges = dataset.attribute_ranges(level, &found).await?;
    let range = ranges.into_iter().next().unwrap_or_default();
    let number = |value: numeric::Value| Some(value.to_f64()).filter(|value| value.is_finite());
    let (low, high) = range.limits.unzip();
    Ok(json!({
        "min": low.and_then(number),
        "max": high.and_then(number),
        "nulls": range.nulls,
    }))
}
