//! geff, the exchange format of graphs of tracked cells: a folder of Zarr 2 or 3.
//!
//! The attribute `geff` of the group has the version, `directed`, the axes, and the metadata of
//! properties.
//!
//! | array | shape | in the geometry |
//! |---|---|---|
//! | `nodes/ids` | n integers | vertices in this order, `vertex.node_id` |
//! | `edges/ids` | m × 2 ids | links |
//! | `nodes/props/NAME/values` | n × … | coordinates for the axes, otherwise vertex attributes |
//! | `edges/props/NAME/values` | m × … | link attributes |
//! | `…/props/NAME/missing` | n or m booleans | rows without a value; integers become float64, or text if float64 would round one |
//! | `…/props/NAME/data` of properties of variable length | | left out, with a note |
//!
//! Without axes, the coordinates are the properties that
//! [`FileReadOptions::axes`](crate::FileReadOptions::axes) names, by default `x`, `y` and `z`.
//! `scale` and `offset` of axes are declared and not applied, as in the reference. The property that
//! `track_node_props` names as the lineage, otherwise as the tracklet, becomes the object of each
//! vertex if it has no negative numbers. The metadata are in the header.

use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
};

use serde_json::{Map, Value};
use zvf::{
    AxisSpec, Column, ColumnValues, Geometry, GeometryKind, NumericColumn, VertexOwners, numeric,
};

use crate::{
    FileDescription, FileError, FileFault, FileFormat, FileReadOptions, WholeReader,
    description::MAX_HEADER_TEXT,
    folder_array::{AbsentChunks, FolderArray, group_attributes},
    names::AttributeNames,
    node_columns::take_coordinates,
    values::{has_rounded_integers, integers_of, to_f64},
};

/// Opens a folder.
///
/// # Errors
///
/// [`FileError`] if the folder is not a geff of version 1, or an array is damaged.
pub fn open(path: &Path, options: &FileReadOptions) -> Result<WholeReader, FileError> {
    let attributes = group_attributes(path)?.unwrap_or_default();
    let Some(metadata) = attributes.get("geff").and_then(Value::as_object) else {
        let why = "the folder has no attribute geff; name the folder of a geff group";
        return Err(FileFault::Unsupported(why).of(path));
    };
    let version = metadata
        .get("geff_version")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if version.split('.').next() != Some("1") {
        let expected = "versions 1.0 and later of 1 are read";
        return Err(FileFault::field("geff_version", version, expected).of(path));
    }
    let mut description = FileDescription::new(FileFormat::Geff, GeometryKind::Graphs);
    description.directed = metadata.get("directed") == Some(&Value::Bool(true));
    let ids_folder = path.join("nodes/ids");
    let ids = integers(&ids_folder, options.unpacked)?;
    let Some(ids) = ids.filter(|ids| !ids.is_empty()) else {
        return Err(FileFault::Empty.of(path));
    };
    let nodes = ids.len();
    if u32::try_from(nodes).is_err() {
        let why = "a store has fewer than 2^32 vertices";
        return Err(FileFault::Unsupported(why).of(&ids_folder));
    }
    let numbers = integers_of(&ids);
    let mut rows: HashMap<i128, u32> = HashMap::with_capacity(nodes);
    for (row, id) in (0_u32..).zip(&numbers) {
        if rows.insert(*id, row).is_some() {
            return Err(FileFault::Twice(id.to_string()).of(&ids_folder));
        }
    }
    let links = links(path, &rows, options.unpacked)?;
    let edges = links.len() / 2;
    drop(rows);
    let mut reading = PropertyReading {
        limit: options.unpacked,
        description: &mut description,
        left_out: Vec::new(),
    };
    let of_nodes = metadata.get("node_props_metadata");
    let of_edges = metadata.get("edge_props_metadata");
    let mut vertex = vec![("node_id".to_owned(), Column::new("node_id", ids))];
    vertex.extend(reading.read("vertex", &path.join("nodes/props"), of_nodes, nodes)?);
    let link = reading.read("link", &path.join("edges/props"), of_edges, edges)?;
    let left_out = std::mem::take(&mut reading.left_out);
    let axes = axes_of(metadata);
    let names: Vec<String> = match axes.as_slice() {
        [] => options.axes.clone(),
        axes => axes.iter().map(|axis| axis.name.clone()).collect(),
    };
    let objects = tracks(metadata, &vertex);
    let mut columns: Vec<Column> = vertex.into_iter().map(|(_, column)| column).collect();
    let node = |row: usize| numbers.get(row).map_or(String::new(), i128::to_string);
    let coordinates = take_coordinates(&mut columns, &names, node);
    let (positions, named) = coordinates.map_err(|fault| fault.of(path))?;
    description.axes = if axes.is_empty() { named } else { axes };
    let mut geometry = Geometry::builder(positions).links(2, links);
    geometry.owners = objects.map_or(VertexOwners::Unnamed, VertexOwners::Vertices);
    let link = link.into_iter().map(|(_, column)| column).collect();
    for (mut columns, scope, key) in [(columns, "vertex", "names"), (link, "link", "link_names")] {
        let mut names = AttributeNames::default();
        for column in &mut columns {
            let name = names.add(&column.name);
            if let Some(declared) = description.attributes.get_mut(scope)
                && let Some(declaration) = declared.remove(&column.name)
            {
                declared.insert(name.clone(), declaration);
            }
            column.name = name;
        }
        // Coordinates are not attributes of the store.
        if let Some(declared) = description.attributes.get_mut(scope) {
            declared.retain(|name, _| columns.iter().any(|column| column.name == *name));
        }
        names.record(&mut description.header, key);
        match scope {
            "vertex" => geometry.vertex = columns,
            _ => geometry.link = columns,
        }
    }
    let kept = Value::Object(metadata.clone());
    if kept.to_string().len() <= MAX_HEADER_TEXT {
        description.header.insert("geff".to_owned(), kept);
    } else {
        let note = "metadata are longer than 8 MiB and are not kept";
        description.notes.push(note.to_owned());
    }
    if !left_out.is_empty() {
        let list = left_out.join(", ");
        description.notes.push(format!(
            "left out: properties of variable length or of unknown type: {list}"
        ));
    }
    Ok(WholeReader::new(geometry, description))
}

/// Reads an array of ids; `None` if it does not exist.
fn integers(folder: &Path, limit: u64) -> Result<Option<NumericColumn>, FileError> {
    let Some(array) = FolderArray::open(folder)? else {
        return Ok(None);
    };
    match array.read(AbsentChunks::Refuse, limit)? {
        ColumnValues::Numeric(numbers) if numbers.kind.name().contains("int") => Ok(Some(numbers)),
        _ => {
            let expected = "ids are integers";
            let kind = array.kind().map_or("text", numeric::Kind::name);
            Err(FileFault::field("the type of ids", kind, expected).of(folder))
        }
    }
}

/// Reads edges as rows of their ends.
fn links(path: &Path, rows: &HashMap<i128, u32>, limit: u64) -> Result<Vec<i64>, FileError> {
    let folder = path.join("edges/ids");
    let Some(ids) = integers(&folder, limit)? else {
        return Ok(Vec::new());
    };
    if ids.width != 2 {
        let expected = "an edge has two ids";
        return Err(FileFault::field("the width of edges", ids.width, expected).of(&folder));
    }
    let row = |id: i128| {
        let row = rows.get(&id).copied().map(i64::from);
        row.ok_or_else(|| FileFault::UnknownNode(id.to_string()).of(&folder))
    };
    integers_of(&ids).into_iter().map(row).collect()
}

/// Returns the declared axes.
fn axes_of(metadata: &Map<String, Value>) -> Vec<AxisSpec> {
    let axes = metadata
        .get("axes")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|axis| {
            let text = |key: &str| axis.get(key).and_then(Value::as_str);
            let mut spec = AxisSpec::new(text("name")?);
            if let Some(kind) = text("type") {
                spec = spec.kind(kind);
            }
            spec.unit = text("unit").map(str::to_owned);
            Some(spec)
        });
    axes.collect()
}

/// Returns the object of each vertex: its lineage, otherwise its tracklet.
fn tracks(metadata: &Map<String, Value>, vertex: &[(String, Column)]) -> Option<Vec<i64>> {
    let declared = metadata.get("track_node_props")?;
    let name = declared
        .get("lineage")
        .or_else(|| declared.get("tracklet"))
        .and_then(Value::as_str)?;
    let (_, column) = vertex.iter().find(|(original, _)| original == name)?;
    let ColumnValues::Numeric(numbers) = &column.values else {
        return None;
    };
    if column.nulls.is_some() || numbers.width != 1 || !numbers.kind.name().contains("int") {
        return None;
    }
    let ids = integers_of(numbers)
        .into_iter()
        .map(|id| i64::try_from(id).ok().filter(|id| *id >= 0));
    ids.collect()
}

/// Reading of properties.
struct PropertyReading<'a> {
    limit: u64,
    description: &'a mut FileDescription,
    left_out: Vec<String>,
}

impl PropertyReading<'_> {
    /// Reads the properties that the metadata declare, with their original names.
    fn read(
        &mut self,
        scope: &str,
        folder: &Path,
        declared: Option<&Value>,
        rows: usize,
    ) -> Result<Vec<(String, Column)>, FileError> {
        let declared: BTreeMap<&String, &Value> = declared
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .collect();
        let mut columns = Vec::new();
        for (name, metadata) in declared {
            let is_plain =
                !name.is_empty() && !name.contains(['/', '\\']) && name != "." && name != "..";
            if !is_plain {
                let expected = "the name of a property is the name of a folder";
                return Err(FileFault::field("a property", name, expected).of(folder));
            }
            if metadata.get("varlength") == Some(&Value::Bool(true)) {
                self.left_out.push(format!("{scope}.{name}"));
                continue;
            }
            let folder = folder.join(name);
            let Some(array) = FolderArray::open(&folder.join("values"))? else {
                let why = "the metadata declare this property, and it has no array values";
                return Err(FileFault::Unsupported(why).of(&folder));
            };
            check_rows(&array, rows)?;
            let values = array.read(AbsentChunks::Fill, self.limit)?;
            let is_missing = missing(&folder.join("missing"), rows, self.limit)?;
            let text = |key: &str| metadata.get(key).and_then(Value::as_str);
            let attributes = &mut self.description.attributes;
            let declaration = attributes
                .entry(scope.to_owned())
                .or_default()
                .entry(name.clone())
                .or_default();
            for key in ["unit", "description"] {
                if let Some(text) = text(key) {
                    declaration.insert(key.to_owned(), text.into());
                }
            }
            let column = column(name, values, is_missing).map_err(|fault| fault.of(&folder))?;
            columns.push((name.clone(), column));
        }
        Ok(columns)
    }
}

/// Checks that an array has as many rows as there are nodes or edges.
fn check_rows(array: &FolderArray, rows: usize) -> Result<(), FileError> {
    let expected = u64::try_from(rows).unwrap_or(u64::MAX);
    let found = array.rows();
    if found == expected {
        return Ok(());
    }
    let what = "rows of a property";
    let fault = FileFault::Count {
        what,
        found,
        expected,
    };
    Err(fault.of(array.folder()))
}

/// Reads which rows have no value; `None` if all have one.
fn missing(folder: &Path, rows: usize, limit: u64) -> Result<Option<Vec<bool>>, FileError> {
    let Some(array) = FolderArray::open(folder)? else {
        return Ok(None);
    };
    check_rows(&array, rows)?;
    let ColumnValues::Numeric(numbers) = array.read(AbsentChunks::Fill, limit)? else {
        let why = "the array missing has booleans";
        return Err(FileFault::Unsupported(why).of(folder));
    };
    let rows: Vec<bool> = numbers
        .bytes
        .chunks_exact(numbers.row_size().max(1))
        .map(|row| row.iter().any(|byte| *byte != 0))
        .collect();
    Ok(Some(rows).filter(|rows| rows.contains(&true)))
}

/// Returns a column. Integers with missing rows become float64, in which they can be absent, or text
/// if float64 would round one.
///
/// # Errors
///
/// [`FileFault::Unsupported`] for such integers in a row of several numbers.
fn column(
    name: &str,
    values: ColumnValues,
    is_missing: Option<Vec<bool>>,
) -> Result<Column, FileFault> {
    let Some(is_missing) = is_missing else {
        return Ok(Column::new(name, values));
    };
    let values = match values {
        ColumnValues::Numeric(numbers) if has_rounded_integers(&numbers, &is_missing) => {
            if numbers.width != 1 {
                let why = "rows without a value become NaN, beside which integers beyond 2^53 are \
                           rounded; give all rows a value";
                return Err(FileFault::Unsupported(why));
            }
            let rows = integers_of(&numbers).into_iter().zip(&is_missing);
            ColumnValues::text(rows.map(|(number, none)| (!none).then(|| number.to_string())))
        }
        ColumnValues::Numeric(numbers) => {
            let is_float = numbers.kind.name().starts_with("float");
            let floats = to_f64(&numbers).filter(|_| !is_float);
            let numbers = match floats {
                Some(floats) => NumericColumn::float64(numbers.width, floats),
                None => numbers,
            };
            ColumnValues::Numeric(numbers)
        }
        text @ ColumnValues::Dictionary { .. } => text,
    };
    Ok(Column {
        nulls: Some(is_missing),
        ..Column::new(name, values)
    })
}
