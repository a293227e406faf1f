//! Zarr metadata of arrays: data type, shape, chunks, codecs and fill value.

use serde_json::Value;
use zvf_format::numeric::{Dtype, Kind};
use zvf_model::{
    array::{Padded, Presence, Vertices},
    key::Key,
    layout::{ChunkForm, PartNames},
    scope::Scope,
    zarr::{Array, Codecs, DataType},
};

use super::{NodeCheck, faults};
use crate::{chunked_part::grid, node_role::NodeRole, rules::metadata as rules};

/// Codecs that convert values to bytes.
const SERIALISERS: [&str; 3] = ["bytes", "vlen-bytes", "vlen-utf8"];

impl NodeCheck<'_, '_> {
    pub(super) fn array(&self, place: NodeRole<'_>, array: &Array) {
        let number = |kind| DataType::Number(kind);
        match place {
            NodeRole::Shard | NodeRole::Blob => {
                self.data_type(array, &number(Kind::UInt8));
                self.whole(array, 1);
            }
            NodeRole::Groups if self.has_group_rows() => {
                self.data_type(array, &number(Kind::Int64));
                self.rank(array, 2..=2);
            }
            NodeRole::Manifests
            | NodeRole::ParametricNames
            | NodeRole::Groups
            | NodeRole::ParametricGroups => {
                self.strings(array);
            }
            NodeRole::ObjectIds => {
                self.data_type(array, &number(Kind::Int64));
                self.rank(array, 1..=1);
            }
            NodeRole::ParametricObjects => {
                self.data_type(array, &number(Kind::Float64));
                self.rank(array, 2..=2);
            }
            NodeRole::CompositeLinks(_) | NodeRole::ManifestRows => {
                self.data_type(array, &number(Kind::Int64));
                self.rank(array, 2..=2);
            }
            NodeRole::ObjectAttribute(_)
            | NodeRole::GroupAttribute(_)
            | NodeRole::ParametricAttribute(_)
            | NodeRole::ParametricGroupAttribute(_) => self.rank(array, 1..=2),
            _ => match place.chunk_form(*self.store.layout()) {
                Some(ChunkForm::Padded) => self.padded(place, array),
                Some(_) => self.cells(array),
                None => {}
            },
        }
        self.codecs(array);
        self.fill(array);
    }

    /// Returns whether groups are rows of ids, as under the name that a document has for them.
    pub(super) fn has_group_rows(&self) -> bool {
        self.key.name() == Some(PartNames::DOCUMENTED.groups)
    }

    fn find(&self, rule: &'static crate::Rule, field: &str, message: String) {
        self.context.report_at(rule, self.key, field, message);
    }

    fn data_type(&self, array: &Array, expected: &DataType) {
        if array.data_type != *expected {
            let message = format!(
                "{}, but {} is required",
                name(&array.data_type),
                name(expected)
            );
            self.find(&rules::ARRAY_TYPE, "data_type", message);
        }
    }

    fn rank(&self, array: &Array, expected: core::ops::RangeInclusive<usize>) {
        if !expected.contains(&array.rank()) {
            let (min, max) = expected.into_inner();
            let message = if min == max {
                format!("{:?}, but {min} dimensions are required", array.shape)
            } else {
                format!(
                    "{:?}, but {min} or {max} dimensions are required",
                    array.shape
                )
            };
            self.find(&rules::ARRAY_SHAPE, "shape", message);
        }
    }

    /// Checks a one-dimensional array of byte strings.
    fn strings(&self, array: &Array) {
        self.data_type(array, &DataType::VariableBytes);
        self.rank(array, 1..=1);
    }

    /// Checks an array in one chunk.
    fn whole(&self, array: &Array, rank: usize) {
        self.rank(array, rank..=rank);
        let mut extents = array.shape.iter().zip(&array.chunk_shape);
        if extents.any(|(extent, chunk)| extent > chunk) || array.sharding().is_some() {
            let message = format!("{:?}, but the array must be one chunk", array.chunk_shape);
            self.find(&rules::ARRAY_CHUNKS, "chunk_grid", message);
        }
    }

    /// Checks an array with one element per chunk of space.
    fn cells(&self, array: &Array) {
        self.data_type(array, &DataType::VariableBytes);
        if !array.decoded_shape().iter().all(|extent| *extent == 1) {
            let message = format!(
                "{:?}, but each element must be decodable alone",
                array.decoded_shape()
            );
            self.find(&rules::ARRAY_CHUNKS, "chunk_grid", message);
        }
        if Presence::is_deferred(&array.attributes) {
            let message = "readers take the chunks from the store";
            let place = "attributes.nonempty_chunks";
            self.context
                .report_at(&rules::PRESENCE_DEFERRED, self.key, place, message);
        }
        let Some(arity) = self.arity() else {
            return;
        };
        match grid(array, arity) {
            Err(message) => self.context.report(&rules::GRID, self.key, message),
            Ok(grid) => self.leading(grid.origin(), &array.shape),
        }
    }

    /// Checks that the leading axis of chunks split by an attribute covers its values.
    fn leading(&self, origin: &[i64], shape: &[u64]) {
        let metadata = self.level.and_then(|level| level.metadata.as_ref());
        let chunking = metadata.and_then(|metadata| metadata.attribute_chunking.as_ref());
        let (Some(chunking), Some(first), Some(extent)) = (chunking, origin.first(), shape.first())
        else {
            return;
        };
        let values = u64::try_from(chunking.values.len()).unwrap_or(u64::MAX);
        if values > 0 && (*first != 0 || *extent != values) {
            let message = format!(
                "{extent} along the attribute from {first} on, but the level has {values} values"
            );
            self.find(&rules::ARRAY_SHAPE, "shape", message);
        }
    }

    /// Checks a padded array of numbers, whose axes are chunk, row and column.
    fn padded(&self, place: NodeRole<'_>, array: &Array) {
        let Some(arity) = self.arity() else {
            return;
        };
        let padded = match Padded::parse(self.key, array, arity) {
            Ok(padded) => padded,
            Err(error) => return faults::error(self.context, self.key, &error),
        };
        self.leading(padded.grid.origin(), &array.shape);
        let ones = array
            .decoded_shape()
            .iter()
            .take(arity)
            .all(|extent| *extent == 1);
        // Rows may be in several chunks, but none in two.
        let row = arity.saturating_add(1);
        let whole = array.decoded_shape().get(row..) == array.shape.get(row..);
        if !ones || !whole {
            let message = format!(
                "{:?}, but each chunk must be decodable alone",
                array.decoded_shape()
            );
            self.find(&rules::ARRAY_CHUNKS, "chunk_grid", message);
        }
        let dtype = array.attributes.get("dtype").and_then(Value::as_str);
        let dtype = dtype.and_then(|dtype| Dtype::parse(dtype).ok());
        if let Some(dtype) = dtype.filter(|dtype| dtype.kind() != padded.kind) {
            let (found, expected) = (dtype.kind().name(), padded.kind.name());
            let message = format!("{found}, but the array holds {expected}");
            let (rule, value) = (&rules::ARRAY_TYPE, Some(serde_json::json!(expected)));
            self.context
                .report_attribute(rule, self.key, &["dtype"], message, value);
        }
        let columns = match place {
            NodeRole::Vertices => self
                .store
                .root
                .as_ref()
                .and_then(|root| u64::try_from(root.axes.len()).ok()),
            NodeRole::Links(..) => array.attributes.get("link_width").and_then(Value::as_u64),
            _ => None,
        };
        if let Some(expected) = columns.filter(|columns| *columns != padded.columns) {
            let message = format!("{} columns instead of {expected}", padded.columns);
            self.find(&rules::ARRAY_SHAPE, "shape", message);
        }
        if matches!(place, NodeRole::ChunkAttribute(Scope::Vertex, _)) {
            self.beside_vertices(&padded, arity);
        }
    }

    /// Checks that an attribute has as many rows per chunk as the vertices.
    fn beside_vertices(&self, padded: &Padded, arity: usize) {
        let key = self.level.and_then(|level| level.key.join("vertices").ok());
        let Some((key, vertices)) = key.and_then(|key| {
            let array = self.array_at(Some(key.clone()))?;
            Some((key, array))
        }) else {
            return;
        };
        let Ok(vertices) = Padded::parse(&key, vertices, arity) else {
            return;
        };
        if vertices.rows != padded.rows || vertices.grid != padded.grid {
            let message = format!(
                "{:?} chunks of {} rows from {:?} on, but vertices have {:?} of {} from {:?} on",
                padded.grid.shape(),
                padded.rows,
                padded.grid.origin(),
                vertices.grid.shape(),
                vertices.rows,
                vertices.grid.origin(),
            );
            self.find(&rules::ARRAY_SHAPE, "shape", message);
        }
    }

    /// Checks that one codec converts values to bytes, and that it matches the data type.
    fn codecs(&self, array: &Array) {
        let expected = match &array.data_type {
            DataType::VariableBytes => "vlen-bytes",
            DataType::VariableText => "vlen-utf8",
            DataType::Number(_) | DataType::FixedText { .. } => "bytes",
            _ => return,
        };
        let chain = array
            .sharding()
            .map_or(&array.codecs, |shards| &shards.codecs);
        let found = serialisers(chain);
        if found != [expected] {
            let message =
                format!("{found:?} convert values to bytes, but {expected:?} is required");
            self.find(&rules::ARRAY_CODECS, "codecs", message);
        }
    }

    fn fill(&self, array: &Array) {
        let fill = &array.fill_value;
        let message = match &array.data_type {
            DataType::VariableBytes if fill.as_str() != Some("") => {
                format!("{fill}, but absent cells are empty: \"\"")
            }
            // A table in which an empty text is a value has another text in absent rows.
            DataType::VariableText if !fill.is_string() => format!("{fill} is not text"),
            DataType::FixedText { bytes } if array.fill_element().is_none() => {
                format!("{fill} is not text of at most {} characters", bytes / 4)
            }
            DataType::Number(kind) if !is_value(*kind, fill) => {
                format!("{fill} is not a {}", kind.name())
            }
            _ => return,
        };
        self.find(&rules::ARRAY_FILL, "fill_value", message);
    }

    pub(super) fn vertices(&self) {
        let read = Vertices::parse(self.key, self.node.attributes());
        let Some(vertices) = faults::noted(self.context, self.key, read) else {
            return;
        };
        let axes = self.store.root.as_ref().map(|root| root.axes.len());
        let axes = axes.and_then(|axes| u64::try_from(axes).ok());
        if let (Some(found), Some(axes)) = (vertices.ndim, axes)
            && found != axes
        {
            let message = format!("{found}, but the store has {axes} axes");
            let (rule, value) = (&rules::LIST_LENGTH, Some(serde_json::json!(axes)));
            self.context
                .report_attribute(rule, self.key, &["ndim"], message, value);
        }
    }

    /// Returns the key of a child of this node.
    pub(super) fn beside(&self, name: &str) -> Option<Key> {
        self.key.join(name).ok()
    }
}

fn serialisers(chain: &Codecs) -> Vec<&str> {
    let names = chain.iter().map(|codec| codec.name.as_str());
    names.filter(|name| SERIALISERS.contains(name)).collect()
}

/// Returns whether a JSON value is a number of `kind` in Zarr's encoding.
fn is_value(kind: Kind, value: &Value) -> bool {
    let special =
        |text: &str| matches!(text, "NaN" | "Infinity" | "-Infinity") || text.starts_with("0x");
    let is_float = |value: &Value| match value {
        Value::Number(_) => true,
        Value::String(text) => special(text),
        _ => false,
    };
    match kind {
        Kind::Bool => value.is_boolean(),
        Kind::Float16 | Kind::Float32 | Kind::Float64 => is_float(value),
        Kind::Complex64 | Kind::Complex128 => {
            let parts = value.as_array();
            parts.is_some_and(|parts| parts.len() == 2 && parts.iter().all(is_float))
        }
        Kind::UInt8 | Kind::UInt16 | Kind::UInt32 | Kind::UInt64 => value.is_u64(),
        _ => value.is_i64(),
    }
}

/// Returns the name of a data type.
fn name(data_type: &DataType) -> &str {
    match data_type {
        DataType::Number(kind) => kind.name(),
        DataType::VariableBytes => "variable_length_bytes",
        DataType::VariableText => "string",
        DataType::FixedText { .. } => "fixed_length_utf32",
        DataType::Other { name, .. } => name,
        _ => "another type",
    }
}
