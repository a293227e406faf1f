//! The `info` of annotations.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::property::{PropertySpec, PropertyType, ValueLabel};
use crate::{AnnotationKind, Dimensions, InfoError, ShardingSpec, info_node::InfoNode};

const TYPE: &str = "neuroglancer_annotations_v1";

/// The `info` of annotations.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AnnotationInfo {
    /// The axes.
    pub dimensions: Dimensions,
    /// Lower bound of each axis.
    pub lower_bound: Vec<f64>,
    /// Upper bound of each axis.
    pub upper_bound: Vec<f64>,
    /// The geometry.
    pub kind: AnnotationKind,
    /// The properties.
    pub properties: Vec<PropertySpec>,
    /// Relationships to segments.
    pub relationships: Vec<Relationship>,
    /// Folder of the index by id.
    pub by_id: String,
    /// Shards of the index by id.
    pub by_id_sharding: Option<ShardingSpec>,
    /// Levels of the spatial index, the coarsest first. They add up.
    pub spatial: Vec<SpatialLevel>,
}

/// A relationship to segments, with an index of the annotations of each segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Relationship {
    /// Name.
    pub id: String,
    /// Folder of the index.
    pub key: String,
    /// Shards of the index.
    pub sharding: Option<ShardingSpec>,
}

/// A level of the spatial index.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SpatialLevel {
    /// Folder.
    pub key: String,
    /// Number of cells along each axis.
    pub grid_shape: Vec<u64>,
    /// Extent of a cell along each axis.
    pub chunk_size: Vec<f64>,
    /// Largest number of annotations in a cell.
    pub limit: u64,
    /// Shards of the cells, by compressed Morton code.
    pub sharding: Option<ShardingSpec>,
}

impl AnnotationInfo {
    /// Returns the document.
    pub fn to_json(&self) -> String {
        let properties = self.properties.iter().map(property_json);
        let relationships = self.relationships.iter().map(|relationship| {
            let members = json!({"id": relationship.id, "key": relationship.key});
            with_sharding(members, relationship.sharding.as_ref())
        });
        let spatial = self.spatial.iter().map(|level| {
            let members = json!({
                "key": level.key,
                "grid_shape": level.grid_shape,
                "chunk_size": level.chunk_size,
                "limit": level.limit,
            });
            with_sharding(members, level.sharding.as_ref())
        });
        let info = json!({
            "@type": TYPE,
            "lower_bound": self.lower_bound,
            "upper_bound": self.upper_bound,
            "annotation_type": self.kind.name(),
            "properties": properties.collect::<Vec<_>>(),
            "relationships": relationships.collect::<Vec<_>>(),
            "by_id": with_sharding(json!({"key": self.by_id}), self.by_id_sharding.as_ref()),
            "spatial": spatial.collect::<Vec<_>>(),
        });
        // A map of serde_json may sort its keys; the order of axes counts.
        let info = info.to_string();
        let members = info.strip_prefix('{').unwrap_or(&info);
        format!("{{\"dimensions\":{},{members}", self.dimensions.to_json())
    }

    /// Reads the document.
    ///
    /// # Errors
    ///
    /// [`InfoError`] if it is not JSON, a member is missing, or the numbers of axes differ.
    pub fn parse(json: &[u8]) -> Result<Self, InfoError> {
        let value = serde_json::from_slice(json)?;
        let node = InfoNode::document(&value, TYPE)?;
        let dimensions = Dimensions::of_document(json)?;
        let rank = dimensions.0.len();
        let bound = |key: &'static str| {
            let wanted = "a number for each axis";
            let bound = node.need(key, wanted)?.numbers()?;
            let is_right = bound.len() == rank;
            if is_right {
                Ok(bound)
            } else {
                Err(node.fault(key, wanted))
            }
        };
        let name = node.need("annotation_type", "a kind")?.text()?;
        let kind = AnnotationKind::ALL
            .into_iter()
            .find(|kind| kind.name() == name);
        let mut properties: Vec<PropertySpec> = Vec::new();
        let mut ids = HashSet::new();
        if let Some(list) = node.get("properties") {
            for item in list.items()? {
                let property = property(&item)?;
                if !ids.insert(property.id.clone()) {
                    return Err(item.fault("id", "an identifier of one property"));
                }
                properties.push(property);
            }
        }
        let mut relationships = Vec::new();
        for item in node.need("relationships", "a list")?.items()? {
            relationships.push(Relationship {
                id: item.need("id", "a name")?.text()?.to_owned(),
                key: key_of(&item)?,
                sharding: sharding_of(&item)?,
            });
        }
        let mut spatial = Vec::new();
        for item in node.need("spatial", "a list")?.items()? {
            spatial.push(level(&item, rank)?);
        }
        let by_id = node.need("by_id", "an object")?;
        Ok(Self {
            lower_bound: bound("lower_bound")?,
            upper_bound: bound("upper_bound")?,
            kind: kind.ok_or_else(|| node.fault("annotation_type", "a kind"))?,
            properties,
            relationships,
            by_id: key_of(&by_id)?,
            by_id_sharding: sharding_of(&by_id)?,
            spatial,
            dimensions,
        })
    }
}

fn with_sharding(mut members: Value, sharding: Option<&ShardingSpec>) -> Value {
    if let (Some(sharding), Some(members)) = (sharding, members.as_object_mut()) {
        members.insert("sharding".to_owned(), sharding.to_json());
    }
    members
}

fn property_json(property: &PropertySpec) -> Value {
    let mut members = Map::new();
    members.insert("id".to_owned(), property.id.as_str().into());
    members.insert("type".to_owned(), property.kind.name().into());
    if let Some(text) = &property.description {
        members.insert("description".to_owned(), text.as_str().into());
    }
    if !property.labels.is_empty() {
        let is_float = property.kind == PropertyType::Float32;
        let values = property.labels.iter().map(|label| {
            if is_float {
                Value::from(label.value)
            } else {
                integer(label.value)
            }
        });
        members.insert("enum_values".to_owned(), values.collect());
        let labels = property.labels.iter().map(|label| label.label.as_str());
        members.insert("enum_labels".to_owned(), labels.collect());
    }
    Value::Object(members)
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "values have at most 32 bits"
)]
fn integer(value: f64) -> Value {
    Value::from(value as i64)
}

fn property(node: &InfoNode<'_>) -> Result<PropertySpec, InfoError> {
    let name = node.need("type", "a type of properties")?.text()?;
    let kind = PropertyType::ALL
        .into_iter()
        .find(|kind| kind.name() == name);
    let values = node
        .get("enum_values")
        .map(|list| list.numbers())
        .transpose()?
        .unwrap_or_default();
    let names = node
        .get("enum_labels")
        .map(|list| list.items())
        .transpose()?
        .unwrap_or_default();
    if values.len() != names.len() {
        return Err(node.fault("enum_labels", "a list with a name for each value"));
    }
    let labels = values.into_iter().zip(names).map(|(value, name)| {
        let label = name.text()?.to_owned();
        Ok(ValueLabel { value, label })
    });
    Ok(PropertySpec {
        id: node.need("id", "an identifier")?.text()?.to_owned(),
        kind: kind.ok_or_else(|| node.fault("type", "a type of properties"))?,
        description: node.optional_text("description")?,
        labels: labels.collect::<Result<_, InfoError>>()?,
    })
}

fn level(node: &InfoNode<'_>, rank: usize) -> Result<SpatialLevel, InfoError> {
    let grid: Vec<u64> = node
        .need("grid_shape", "positive numbers")?
        .items()?
        .iter()
        .map(InfoNode::unsigned)
        .collect::<Result<_, _>>()?;
    if grid.len() != rank || grid.contains(&0) {
        return Err(node.fault("grid_shape", "a positive number for each axis"));
    }
    let chunk_size = node.need("chunk_size", "positive numbers")?.numbers()?;
    let is_extent = |size: &f64| size.is_finite() && *size > 0.0;
    if chunk_size.len() != rank || !chunk_size.iter().all(is_extent) {
        return Err(node.fault("chunk_size", "a positive number for each axis"));
    }
    Ok(SpatialLevel {
        key: key_of(node)?,
        grid_shape: grid,
        chunk_size,
        limit: node.need("limit", "a number")?.unsigned()?,
        sharding: sharding_of(node)?,
    })
}

fn key_of(node: &InfoNode<'_>) -> Result<String, InfoError> {
    Ok(node.need("key", "the name of a folder")?.text()?.to_owned())
}

fn sharding_of(node: &InfoNode<'_>) -> Result<Option<ShardingSpec>, InfoError> {
    let sharding = node.get("sharding");
    sharding
        .map(|node| ShardingSpec::from_node(&node))
        .transpose()
}
