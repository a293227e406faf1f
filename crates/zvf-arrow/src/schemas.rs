//! The schemas of a level, known before a query runs.

use std::{collections::HashMap, sync::Arc};

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use serde_json::json;
use zvf::{AttributeInfo, Dataset, LevelChoice, LevelId, Query, QueryResult, Scope};
use zvf_format::numeric::Dtype;

use crate::{
    batches::ResultBatches,
    columns::{numeric_type, position_metadata, text_type},
    error::ConversionError,
};

/// The schemas of the [batches](crate::ResultBatches) of a level, with units and the coordinate
/// reference system.
///
/// A result has the columns that its query selects. Attributes are nullable, because a level may
/// have rows without values.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResultSchemas {
    /// Positions and attributes of vertices and fragments.
    pub vertices: SchemaRef,
    /// Paths; `None` for other geometry.
    pub parts: Option<SchemaRef>,
    /// Links; `None` for points and paths.
    pub links: Option<SchemaRef>,
    /// Objects; `None` for a level without object attributes.
    pub objects: Option<SchemaRef>,
}

impl ResultSchemas {
    /// Returns the schemas of a level. Reads metadata, and lists the attributes.
    ///
    /// # Errors
    ///
    /// [`ConversionError::Store`] if the store cannot be read or listed.
    pub async fn of(dataset: &Dataset, level: LevelId) -> Result<Self, ConversionError> {
        let attributes = dataset.attributes(level).await?;
        let empty = dataset
            .query(&Query::new().level(LevelChoice::Number(level)).limit(0))
            .await?;
        let root = dataset.root();
        let (kind, axes) = (empty.positions.kind, empty.axes.clone());
        let empty = ResultBatches::new(empty)?;
        let crs = root.crs.as_ref();
        let units = root.axes.iter().map(|axis| axis.unit.as_deref());
        let position = position_metadata(kind, &axes, crs)
            .into_iter()
            .chain(unit_of_axes(units))
            .collect();
        let described = |schema: SchemaRef| {
            let fields = schema.fields().iter().map(|field| {
                let metadata = match field.name().as_str() {
                    "position" => HashMap::clone(&position),
                    name => attribute_metadata(&attributes, name),
                };
                field.as_ref().clone().with_metadata(metadata)
            });
            let mut metadata = schema.metadata().clone();
            metadata.extend(crs.map(|crs| ("crs".to_owned(), crs.to_string())));
            Arc::new(Schema::new_with_metadata(
                fields.collect::<Vec<_>>(),
                metadata,
            ))
        };
        Ok(Self {
            vertices: described(empty.vertices.schema()),
            parts: empty.parts.map(|batch| described(batch.schema())),
            links: empty.links.map(|batch| described(batch.schema())),
            objects: objects(&attributes),
        })
    }
}

/// Returns the schema of objects from the descriptions of their attributes.
fn objects(attributes: &[AttributeInfo]) -> Option<SchemaRef> {
    let of_objects = attributes.iter().filter(|info| info.scope == Scope::Object);
    let fields: Vec<Field> = of_objects
        .map(|info| {
            let name = format!("object.{}", info.name);
            let metadata = attribute_metadata(attributes, &name);
            Field::new(name, data_type(info), true).with_metadata(metadata)
        })
        .collect();
    if fields.is_empty() {
        return None;
    }
    let id = Field::new("object_id", DataType::Int64, false);
    let fields: Vec<Field> = [id].into_iter().chain(fields).collect();
    Some(Arc::new(Schema::new(fields)))
}

fn data_type(info: &AttributeInfo) -> DataType {
    let channels = info
        .channels
        .and_then(|channels| i32::try_from(channels).ok());
    match Dtype::parse(&info.data_type) {
        Ok(dtype) => numeric_type(dtype.kind(), channels.unwrap_or(1)),
        Err(_) => text_type(),
    }
}

/// Returns the unit and the names of the channels of an attribute. `column` has the family before
/// the name.
fn attribute_metadata(attributes: &[AttributeInfo], column: &str) -> HashMap<String, String> {
    let info = column.split_once('.').and_then(|(family, name)| {
        let mut found = attributes.iter();
        found.find(|info| info.scope.name() == family && info.name == name)
    });
    let Some(info) = info else {
        return HashMap::new();
    };
    let unit = info.unit.clone().map(|unit| ("unit", unit));
    let names = &info.channel_names;
    let names = (!names.is_empty()).then(|| ("channel_names", json!(names).to_string()));
    let entries = unit.into_iter().chain(names);
    entries
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
}

/// Returns the unit of positions if all axes have the same one.
fn unit_of_axes<'a>(mut units: impl Iterator<Item = Option<&'a str>>) -> Option<(String, String)> {
    let first = units.next()??;
    let all = units.all(|unit| unit == Some(first));
    all.then(|| ("unit".to_owned(), first.to_owned()))
}

impl ResultBatches {
    /// Converts a result, with the metadata of `schemas`: units, and the coordinate reference
    /// system.
    ///
    /// # Errors
    ///
    /// [`ConversionError`].
    pub fn with_schemas(
        result: QueryResult,
        schemas: &ResultSchemas,
    ) -> Result<Self, ConversionError> {
        let described = |batch: RecordBatch, schema: Option<&Schema>| match schema {
            Some(schema) => describe(batch, schema),
            None => Ok(batch),
        };
        let batches = Self::new(result)?;
        let optional = |batch: Option<RecordBatch>, schema: Option<&Schema>| {
            batch.map(|batch| described(batch, schema)).transpose()
        };
        Ok(Self {
            vertices: describe(batches.vertices, &schemas.vertices)?,
            parts: optional(batches.parts, schemas.parts.as_deref())?,
            links: optional(batches.links, schemas.links.as_deref())?,
            objects: optional(batches.objects, schemas.objects.as_deref())?,
            groups: batches.groups,
        })
    }
}

/// Gives a batch the metadata of a schema, by name.
fn describe(batch: RecordBatch, schema: &Schema) -> Result<RecordBatch, ConversionError> {
    let (own, columns, rows) = batch.into_parts();
    let fields: Vec<Field> = own
        .fields()
        .iter()
        .map(|field| {
            let metadata = schema.field_with_name(field.name());
            let metadata = metadata
                .map(|field| field.metadata().clone())
                .unwrap_or_default();
            field.as_ref().clone().with_metadata(metadata)
        })
        .collect();
    let mut metadata = schema.metadata().clone();
    metadata.extend(own.metadata().clone());
    let schema = Arc::new(Schema::new_with_metadata(fields, metadata));
    let rows = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(schema, columns, &rows)?)
}
