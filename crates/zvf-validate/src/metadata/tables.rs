//! Attributes of objects and groups: tables with one row each.

use serde_json::{Value, json};
use zvf_format::numeric::Kind;
use zvf_model::{
    array::{ObjectIndex, Table},
    key::Key,
    zarr::{Array, DataType, Node},
};

use super::{NodeCheck, faults};
use crate::{node_role::NodeRole, rules::metadata as rules};

/// Bytes per character of text.
const CHARACTER: u64 = 4;

impl NodeCheck<'_, '_> {
    pub(super) fn table(&self, place: NodeRole<'_>) {
        let rows = match self.node {
            Node::Array(array) => {
                let mut read = Table::parse_array(self.key, self.node.attributes());
                // dtype names only numbers; the type of text is compared below.
                let is_text = !matches!(array.data_type, DataType::Number(_));
                let is_dtype = |path: &str| path.rsplit('.').next() == Some("dtype");
                read.notes
                    .retain(|note| !(is_text && is_dtype(note.path.as_str())));
                let table = faults::noted(self.context, self.key, Ok(read));
                if let Some(table) = table {
                    self.repeats(array, &table);
                    let has_absent = !matches!(array.data_type, DataType::Number(Kind::Bool));
                    let is_of_objects = matches!(place, NodeRole::ObjectAttribute(_));
                    if is_of_objects && has_absent && !table.fill_is_absent {
                        let message = "rows of the fill value are not declared absent";
                        let place = "attributes.fill_sentinel_meaning";
                        self.context
                            .report_at(&rules::FILL_MEANING, self.key, place, message);
                    }
                }
                array.shape.first().copied()
            }
            Node::Group(_) => {
                let read = Table::parse_group(self.key, self.node.attributes());
                let table = faults::noted(self.context, self.key, read);
                if let Some(table) = &table {
                    self.blobs(table);
                }
                table.and_then(|table| table.shape?.first().copied())
            }
        };
        if let (Some(rows), Some((expected, of))) = (rows, self.expected(place))
            && rows != expected
        {
            let message = format!("{rows} rows, but {of} has {expected}");
            self.context.report(&rules::TABLE_ROWS, self.key, message);
        }
    }

    /// Compares `shape` and `dtype` with the array.
    fn repeats(&self, array: &Array, table: &Table) {
        let rule = &rules::TABLE_SHAPE;
        if let Some(shape) = &table.shape
            && *shape != array.shape
        {
            let message = format!("{shape:?}, but the array has {:?}", array.shape);
            let value = Some(json!(array.shape));
            self.context
                .report_attribute(rule, self.key, &["shape"], message, value);
        }
        let expected = match &array.data_type {
            DataType::Number(kind) => kind.name().to_owned(),
            // NumPy's name of fixed-length text.
            DataType::FixedText { bytes } => format!("<U{}", bytes / CHARACTER),
            _ => return,
        };
        let found = self.node.attributes().get("dtype").and_then(Value::as_str);
        let Some(found) = found.filter(|found| *found != expected) else {
            return;
        };
        // A number type has several names.
        if table.dtype().map(|dtype| dtype.kind().name()) != Some(&expected) {
            let message = format!("{found}, but the array holds {expected}");
            let value = Some(json!(expected));
            self.context
                .report_attribute(rule, self.key, &["dtype"], message, value);
        }
    }

    /// Checks values stored as bytes, up to 0.8.0, against shape and dtype.
    fn blobs(&self, table: &Table) {
        let (Some(dtype), Some(shape)) = (table.dtype(), &table.shape) else {
            return;
        };
        let size = u64::try_from(dtype.size()).unwrap_or(u64::MAX);
        let bytes = shape
            .iter()
            .try_fold(size, |n, extent| n.checked_mul(*extent));
        let rows = shape.first().copied();
        let mask = rows.filter(|_| table.has_present_mask);
        for (name, expected) in [("data", bytes), ("present_mask", mask)] {
            let Some(expected) = expected else {
                continue;
            };
            let array = self.array_at(self.beside(name));
            let found = array.and_then(|array| array.shape.first().copied());
            let message = match found {
                Some(found) if found == expected => continue,
                Some(found) => format!("{name} has {found} bytes instead of {expected}"),
                None => format!("{name} does not exist"),
            };
            self.context.report(&rules::TABLE_BYTES, self.key, message);
        }
    }

    /// Returns the required number of rows, and the node that declares it.
    fn expected(&self, place: NodeRole<'_>) -> Option<(u64, Key)> {
        let parametric = || Key::parse("parametric").ok();
        match place {
            NodeRole::ObjectAttribute(_) => {
                let key = self.level?.key.join("object_index").ok()?;
                let attributes = self.store.tree.node(&key)?.attributes();
                let index = ObjectIndex::parse(&key, attributes).ok()?;
                Some((index.value.num_objects, key))
            }
            NodeRole::GroupAttribute(_) => {
                let groups = self.store.layout().names.groups;
                self.counted(self.level?.key.join(groups).ok()?, "num_groups")
            }
            NodeRole::ParametricAttribute(_) => {
                self.counted(parametric()?.join("objects").ok()?, "num_objects")
            }
            NodeRole::ParametricGroupAttribute(_) => {
                self.counted(parametric()?.join("groups").ok()?, "num_groups")
            }
            _ => None,
        }
    }

    fn counted(&self, key: Key, field: &str) -> Option<(u64, Key)> {
        let attributes = self.store.tree.node(&key)?.attributes();
        let count = attributes.get(field).and_then(Value::as_u64)?;
        Some((count, key))
    }
}
