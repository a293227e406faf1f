//! A whole result as record batches.

use std::{collections::HashMap, sync::Arc};

use arrow_array::{
    Array, ArrayRef, FixedSizeListArray, PrimitiveArray, RecordBatch, RecordBatchOptions,
    cast::AsArray,
    types::{Int64Type, UInt64Type},
};
use arrow_buffer::{Buffer, ScalarBuffer};
use arrow_schema::{DataType, Field, Schema};
use zvf::{
    Column, Geometry, IntoGeometry, LevelId, Links, NumericColumn, ObjectGroup, ObjectIds, Parts,
    QueryResult, Scope, numeric::Kind,
};

use crate::{
    columns::{
        array_of, column_of, integers, numbers_of, numeric, point_dimensions, position_metadata,
    },
    error::ConversionError,
};

/// A query result, or a batch of one, as one record batch for each family.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ResultBatches {
    /// Positions, ids and attributes of vertices.
    pub vertices: RecordBatch,
    /// Paths as ranges of vertices; `None` for other geometry.
    pub parts: Option<RecordBatch>,
    /// Links between vertices; `None` for points and paths.
    pub links: Option<RecordBatch>,
    /// Objects with their attributes; `None` without objects.
    pub objects: Option<RecordBatch>,
    /// Members of the groups that the query names; `None` without groups.
    pub groups: Option<RecordBatch>,
}

/// Keys of the metadata of the schema of vertices.
const AXES: &str = "axes";
const LEVEL: &str = "level";
const FIRST_ROW: &str = "first_row";

/// Columns of one batch.
#[derive(Default)]
struct Columns {
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
}

impl Columns {
    fn push(&mut self, name: impl Into<String>, array: ArrayRef) {
        let is_nullable = array.is_nullable();
        self.fields
            .push(Field::new(name, array.data_type().clone(), is_nullable));
        self.arrays.push(array);
    }

    fn push_all(&mut self, family: &str, columns: Vec<Column>) -> Result<(), ConversionError> {
        for column in columns {
            let name = format!("{family}.{}", column.name);
            let array = array_of(column)?;
            self.push(name, array);
            // The type of an attribute does not depend on the rows of a batch.
            if let Some(field) = self.fields.pop() {
                self.fields.push(field.with_nullable(true));
            }
        }
        Ok(())
    }

    fn distances(&mut self, distances: &mut Option<Vec<f64>>, rows: usize) {
        if distances
            .as_ref()
            .is_some_and(|distances| distances.len() == rows)
            && let Some(distances) = distances.take()
        {
            self.push(
                "distance",
                Arc::new(PrimitiveArray::<arrow_array::types::Float64Type>::from(
                    distances,
                )),
            );
        }
    }

    fn finish(
        self,
        rows: usize,
        metadata: HashMap<String, String>,
    ) -> Result<RecordBatch, ConversionError> {
        let schema = Arc::new(Schema::new_with_metadata(self.fields, metadata));
        let rows = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(
            schema,
            self.arrays,
            &rows,
        )?)
    }
}

fn int64(values: Vec<i64>) -> ArrayRef {
    Arc::new(PrimitiveArray::<Int64Type>::from(values))
}

fn uint64(values: Vec<u64>) -> ArrayRef {
    Arc::new(PrimitiveArray::<UInt64Type>::from(values))
}

impl ResultBatches {
    /// Converts a result. Fields have no units and no reference system; see
    /// [`with_schemas`](Self::with_schemas).
    ///
    /// [`QueryResult::levels`], [`skipped`](QueryResult::skipped) and
    /// [`notes`](QueryResult::notes) have no place in the batches.
    ///
    /// # Errors
    ///
    /// [`ConversionError`].
    pub fn new(mut result: QueryResult) -> Result<Self, ConversionError> {
        let of_each_vertex = Scope::OF_CHUNKS.map(|scope| (scope, result.take_columns(scope)));
        let mut distances = result.distances;
        let rows = result.positions.len();
        let mut vertices = Columns::default();
        vertices.push_positions(result.positions, &result.axes)?;
        let metadata = [
            (AXES, serde_json::Value::from(result.axes).to_string()),
            (LEVEL, result.level.to_string()),
            (FIRST_ROW, result.first_row.to_string()),
        ]
        .map(|(key, value)| (key.to_owned(), value));
        if let Some(ids) = result.row_ids {
            vertices.push("row_id", uint64(ids));
        }
        if let Some(ids) = result.object_ids {
            vertices.push("object_id", int64(ids.into_numbers()));
        }
        let is_of_vertices = result.parts.is_none() && result.links.is_none();
        if is_of_vertices {
            vertices.distances(&mut distances, rows);
        }
        for (scope, columns) in of_each_vertex {
            vertices.push_all(scope.name(), columns)?;
        }
        let parts = result.parts.map(|parts| parts_batch(parts, &mut distances));
        let link = result.link;
        let links = result.links.map(|links| {
            let mut columns = Columns::default();
            let rows = links.len();
            let ends = NumericColumn::new(Kind::UInt64, links.width);
            columns.push("link", ends_array(links.ends, ends.width)?);
            columns.distances(&mut distances, rows);
            columns.push_all("link", link)?;
            columns.finish(rows, HashMap::new())
        });
        let objects = (!result.objects.is_empty()).then(|| {
            let mut columns = Columns::default();
            let rows = result.objects.len();
            columns.push("object_id", int64(result.objects));
            columns.push_all("object", result.object)?;
            columns.finish(rows, HashMap::new())
        });
        let groups = (!result.groups.is_empty()).then(|| {
            let ids = result
                .groups
                .iter()
                .flat_map(|group| group.members.iter().map(|_| group.id));
            let members = result
                .groups
                .iter()
                .flat_map(|group| group.members.iter().copied());
            let mut columns = Columns::default();
            columns.push("group", uint64(ids.collect()));
            columns.push("object_id", int64(members.collect()));
            let rows = columns.arrays.first().map_or(0, Array::len);
            columns.finish(rows, HashMap::new())
        });
        Ok(Self {
            vertices: vertices.finish(rows, metadata.into())?,
            parts: parts.transpose()?,
            links: links.transpose()?,
            objects: objects.transpose()?,
            groups: groups.transpose()?,
        })
    }

    /// Converts the batches back to a result. Columns of other names are attributes if they begin
    /// with `vertex.`, `fragment.`, `link.` or `object.`, and ignored otherwise.
    ///
    /// Complex numbers come back as pairs of floats.
    ///
    /// # Errors
    ///
    /// [`ConversionError`].
    pub fn into_result(self) -> Result<QueryResult, ConversionError> {
        let mut result = QueryResult::default();
        let metadata = self.vertices.schema().metadata().clone();
        if let Some(level) = metadata.get(LEVEL) {
            let level = LevelId::parse(level);
            result.level = level.ok_or(ConversionError::Metadata(LEVEL))?;
        }
        if let Some(first) = metadata.get(FIRST_ROW) {
            let first = first.parse();
            result.first_row = first.map_err(|_| ConversionError::Metadata(FIRST_ROW))?;
        }
        let mut vertices = BatchColumns::new(self.vertices);
        let position = vertices
            .take("position")
            .ok_or(ConversionError::Missing("position"))?;
        if position.null_count() > 0 {
            return Err(ConversionError::Nulls("position".to_owned()));
        }
        result.positions = numbers_of("position", &position)?;
        result.axes = match metadata.get(AXES) {
            Some(axes) => {
                let axes = serde_json::from_str(axes);
                axes.map_err(|_| ConversionError::Metadata(AXES))?
            }
            None => default_axes(result.positions.width),
        };
        result.row_ids = vertices.integers::<UInt64Type>("row_id")?.map(vec_of);
        result.object_ids = vertices
            .integers::<Int64Type>("object_id")?
            .map(|ids| ObjectIds::from_numbers(vec_of(ids)));
        let mut distances = vertices.distances()?;
        result.vertex = vertices.attributes("vertex.")?;
        result.fragment = vertices.attributes("fragment.")?;
        if let Some(batch) = self.parts {
            let mut parts = BatchColumns::new(batch);
            distances = distances.or(parts.distances()?);
            result.parts = Some(parts_of(&mut parts)?);
        }
        if let Some(batch) = self.links {
            let mut links = BatchColumns::new(batch);
            distances = distances.or(links.distances()?);
            let ends = links.take("link").ok_or(ConversionError::Missing("link"))?;
            let width = match ends.data_type() {
                DataType::FixedSizeList(_, width) => u32::try_from(*width).unwrap_or(0),
                _ => 1,
            };
            let flat = match width {
                1 if !matches!(ends.data_type(), DataType::FixedSizeList(..)) => ends,
                _ => flat_list(&ends)?,
            };
            let ends = integers::<UInt64Type>("link", &flat, "uint64")?;
            result.links = Some(Links {
                width,
                ends: vec_of(ends),
            });
            result.link = links.attributes("link.")?;
        }
        if let Some(batch) = self.objects {
            let mut objects = BatchColumns::new(batch);
            let ids = objects.integers::<Int64Type>("object_id")?;
            result.objects = vec_of(ids.ok_or(ConversionError::Missing("object_id"))?);
            result.object = objects.attributes("object.")?;
        }
        if let Some(batch) = self.groups {
            result.groups = groups_of(batch)?;
        }
        result.distances = distances;
        Ok(result)
    }

    /// Converts the batches to geometry, which [`create`](zvf::create) and
    /// [`Editor::append`](zvf::Editor::append) take. Distances are dropped.
    ///
    /// # Errors
    ///
    /// [`ConversionError`]; [`ConversionError::Store`] for rows that geometry cannot express.
    pub fn into_geometry(self) -> Result<Geometry, ConversionError> {
        Ok(self.into_result()?.into_geometry()?)
    }
}

impl Columns {
    fn push_positions(
        &mut self,
        positions: NumericColumn,
        axes: &[String],
    ) -> Result<(), ConversionError> {
        let (kind, width) = (positions.kind, positions.width);
        let array = numeric("position", positions, None)?;
        // A list also with one axis.
        let (width, values) = match array.as_fixed_size_list_opt().filter(|_| width > 1) {
            Some(list) => (list.value_length(), Arc::clone(list.values())),
            None => (1, array),
        };
        // Readers of GeoArrow learn the dimensions from the name.
        let item = point_dimensions(kind, axes).unwrap_or(Field::LIST_FIELD_DEFAULT_NAME);
        let item = Arc::new(Field::new(item, values.data_type().clone(), false));
        let list = FixedSizeListArray::try_new(item, width, values, None)?;
        self.push("position", Arc::new(list));
        if let Some(field) = self.fields.pop() {
            self.fields
                .push(field.with_metadata(position_metadata(kind, axes, None)));
        }
        Ok(())
    }
}

fn ends_array(ends: Vec<u64>, width: u32) -> Result<ArrayRef, ConversionError> {
    let width = i32::try_from(width).map_err(|_| ConversionError::Incomplete("link".to_owned()))?;
    let item = Arc::new(Field::new_list_field(DataType::UInt64, false));
    Ok(Arc::new(FixedSizeListArray::try_new(
        item,
        width,
        uint64(ends),
        None,
    )?))
}

/// Returns the starts and ends of parts, which share the memory of the offsets.
fn parts_batch(
    parts: Parts,
    distances: &mut Option<Vec<f64>>,
) -> Result<RecordBatch, ConversionError> {
    let rows = parts.objects.len();
    if parts.offsets.len() != rows.saturating_add(1) {
        return Err(ConversionError::Incomplete("start".to_owned()));
    }
    let offsets = Buffer::from_vec(parts.offsets);
    let at = |first| {
        let values = ScalarBuffer::<u64>::new(offsets.clone(), first, rows);
        Arc::new(PrimitiveArray::<UInt64Type>::new(values, None))
    };
    let mut columns = Columns::default();
    columns.push("object_id", int64(parts.objects));
    columns.push("start", at(0));
    columns.push("end", at(1));
    columns.distances(distances, rows);
    columns.finish(rows, HashMap::new())
}

fn parts_of(batch: &mut BatchColumns) -> Result<Parts, ConversionError> {
    let objects = batch
        .integers::<Int64Type>("object_id")?
        .ok_or(ConversionError::Missing("object_id"))?;
    let starts = batch
        .integers::<UInt64Type>("start")?
        .ok_or(ConversionError::Missing("start"))?;
    let ends = batch
        .integers::<UInt64Type>("end")?
        .ok_or(ConversionError::Missing("end"))?;
    let mut offsets = Vec::with_capacity(ends.len().saturating_add(1));
    offsets.push(starts.first().copied().unwrap_or(0));
    for (part, (start, end)) in starts.iter().zip(ends.iter()).enumerate() {
        if offsets.last() != Some(start) || end < start {
            return Err(ConversionError::Parts(part));
        }
        offsets.push(*end);
    }
    Ok(Parts {
        offsets,
        objects: vec_of(objects),
    })
}

fn groups_of(batch: RecordBatch) -> Result<Vec<ObjectGroup>, ConversionError> {
    let mut columns = BatchColumns::new(batch);
    let ids = columns
        .integers::<UInt64Type>("group")?
        .ok_or(ConversionError::Missing("group"))?;
    let members = columns
        .integers::<Int64Type>("object_id")?
        .ok_or(ConversionError::Missing("object_id"))?;
    let mut groups: Vec<ObjectGroup> = Vec::new();
    for (id, member) in ids.iter().zip(members.iter()) {
        match groups.last_mut() {
            Some(group) if group.id == *id => group.members.push(*member),
            _ => groups.push(ObjectGroup {
                id: *id,
                members: vec![*member],
            }),
        }
    }
    Ok(groups)
}

/// Gives the memory of the values away if nothing else uses it.
fn vec_of<T: arrow_buffer::ArrowNativeType>(values: ScalarBuffer<T>) -> Vec<T> {
    let taken = values.into_inner().into_vec::<T>();
    taken.unwrap_or_else(|shared| shared.typed_data::<T>().to_vec())
}

fn flat_list(array: &ArrayRef) -> Result<ArrayRef, ConversionError> {
    let found = || ConversionError::Type {
        column: "link".to_owned(),
        found: array.data_type().clone(),
        expected: "lists of uint64",
    };
    let list = array.as_any().downcast_ref::<FixedSizeListArray>();
    Ok(Arc::clone(list.ok_or_else(found)?.values()))
}

fn default_axes(width: u32) -> Vec<String> {
    let names = ["x", "y", "z"].into_iter().map(str::to_owned);
    let more = (3..).map(|axis: u32| format!("axis_{axis}"));
    names
        .chain(more)
        .take(usize::try_from(width).unwrap_or(0))
        .collect()
}

/// The columns of a batch, to be taken by name.
struct BatchColumns {
    schema: Arc<Schema>,
    columns: Vec<Option<ArrayRef>>,
}

impl BatchColumns {
    fn new(batch: RecordBatch) -> Self {
        let (schema, columns, _) = batch.into_parts();
        Self {
            schema,
            columns: columns.into_iter().map(Some).collect(),
        }
    }

    fn take(&mut self, name: &str) -> Option<ArrayRef> {
        let at = self.schema.index_of(name).ok()?;
        self.columns.get_mut(at)?.take()
    }

    fn integers<T: arrow_array::types::ArrowPrimitiveType>(
        &mut self,
        name: &str,
    ) -> Result<Option<ScalarBuffer<T::Native>>, ConversionError> {
        let Some(array) = self.take(name) else {
            return Ok(None);
        };
        integers::<T>(name, &array, "64-bit integers").map(Some)
    }

    fn distances(&mut self) -> Result<Option<Vec<f64>>, ConversionError> {
        let Some(array) = self.take("distance") else {
            return Ok(None);
        };
        let distances = integers::<arrow_array::types::Float64Type>("distance", &array, "float64")?;
        Ok(Some(vec_of(distances)))
    }

    fn attributes(&mut self, prefix: &str) -> Result<Vec<Column>, ConversionError> {
        let schema = Arc::clone(&self.schema);
        let mut attributes = Vec::new();
        for (field, column) in schema.fields().iter().zip(&mut self.columns) {
            if let Some(name) = field.name().strip_prefix(prefix)
                && let Some(array) = column.take()
            {
                attributes.push(column_of(name, &array)?);
            }
        }
        Ok(attributes)
    }
}
