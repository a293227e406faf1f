//! Object index, attributes of objects, and groups of a plan.

use rayon::prelude::*;
use serde_json::{Map, Value, json};
use zvf_format::{groups, manifest::ObjectManifestBuilder, numeric::Kind, open_rows};

use super::WritePlan;
use crate::{
    design::ManifestForm,
    error::BuildError,
    metadata::{self, Encoding},
    objects::{ObjectRows, distinct_members},
    output::{Output, empty_group, group, group_metadata, json_object, node},
    stored_column::TableColumn,
    tables::{
        EncodedRows, MANIFESTS, blob, framed, framed_bytes, manifests_per_chunk_of, rows,
        rows_at_once, shape, shape_of, strings, strings_node,
    },
};
use zvf_model::column::Column;

/// The arrays of manifests and of ids.
pub(crate) const MANIFESTS_PATH: &str = "0/object_index/manifests";
pub(crate) const IDS_PATH: &str = "0/object_index/object_ids";

/// Objects of a plan whose cells are written from a log of paths.
#[derive(Debug)]
pub(crate) struct LoggedObjects {
    pub(crate) count: usize,
    /// Number of objects with vertices.
    pub(crate) present: usize,
    /// Number of manifests in a chunk.
    pub(crate) manifests: usize,
    pub(crate) columns: Vec<LoggedColumn>,
}

/// Object attribute of a log of paths.
#[derive(Clone, Debug)]
pub(crate) struct LoggedColumn {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) columns: usize,
    pub(crate) fill: (Value, Vec<u8>),
}

impl LoggedColumn {
    pub(crate) fn path(&self) -> String {
        format!("0/object_attributes/{}", self.name)
    }

    /// Describes the rows of the column.
    pub(crate) fn rows(&self) -> EncodedRows<'static> {
        EncodedRows::later(self.kind, self.columns, self.fill.clone())
    }
}

/// Writes the tables of generation 0.9.
pub(super) fn v09(plan: &WritePlan, outputs: &mut Vec<Output>) -> Result<(), BuildError> {
    let encoding = Encoding::of_tables(&plan.design);
    let Some(objects) = &plan.objects else {
        return Ok(());
    };
    index(plan, objects, &encoding, outputs)?;
    let count = plan.object_count();
    let logged = plan.logged.iter().flat_map(|logged| &logged.columns);
    if !plan.geometry.object.is_empty() || logged.clone().next().is_some() {
        outputs.push(empty_group("0/object_attributes"));
    }
    for column in logged {
        let (kind, path) = (column.kind, column.path());
        let attributes = json!({
            "zv_array": "object_attribute",
            "name": column.name,
            "dtype": kind.name(),
            "shape": shape_of(count, column.columns),
            "fill_sentinel_meaning": "absent",
        });
        let codecs = encoding.codecs(metadata::bytes(kind.size()), kind.size());
        let (attributes, chunk) = (json_object(attributes), rows_at_once(count));
        outputs.push(column.rows().node(codecs, &path, attributes, count, chunk));
    }
    for attribute in &plan.geometry.object {
        let column = TableColumn::of(attribute, &objects.attribute_rows)?;
        let attributes = json!({
            "zv_array": "object_attribute",
            "name": column.name,
            "dtype": column.dtype,
            "shape": shape(&column),
            "fill_sentinel_meaning": "absent",
        });
        table(
            outputs,
            &encoding,
            "0/object_attributes",
            &column,
            json_object(attributes),
        );
    }
    let groups = group_count(plan);
    if groups == 0 {
        return Ok(());
    }
    let members = members(plan, groups);
    let attributes = json!({"zv_array": "groups", "num_groups": groups});
    strings(
        outputs,
        encoding.codecs(metadata::vlen(), 1),
        "0/groups",
        json_object(attributes),
        &members,
        groups,
    )?;
    if !plan.geometry.group.is_empty() {
        outputs.push(empty_group("0/group_attributes"));
    }
    for attribute in &plan.geometry.group {
        let column = of_groups(attribute, groups)?;
        let mut attributes = json!({
            "zv_array": "groupings_attribute",
            "name": column.name,
            "dtype": column.dtype,
            "shape": shape(&column),
        });
        // Only if values are missing: other readers do not expect the declaration for groups.
        if column.present.contains(&false) {
            attributes["fill_sentinel_meaning"] = json!("absent");
        }
        table(
            outputs,
            &encoding,
            "0/group_attributes",
            &column,
            json_object(attributes),
        );
    }
    Ok(())
}

/// Writes the object index, and the ids of its rows.
fn index(
    plan: &WritePlan,
    objects: &ObjectRows,
    encoding: &Encoding,
    outputs: &mut Vec<Output>,
) -> Result<(), BuildError> {
    let is_dense = plan.design.object_index == ManifestForm::Dense;
    let count = plan.object_count();
    let present = match &plan.logged {
        Some(logged) => logged.present,
        None => {
            let rows = 0..objects.ids.len();
            rows.filter(|row| !plan.layout.manifests.of(*row).is_empty())
                .count()
        }
    };
    let index = json!({
        "zv_array": "object_index",
        "num_objects": count,
        "num_present": present,
        "sid_ndim": plan.geometry.axes(),
        "layout": if is_dense { "dense_manifests_v1" } else { "vlen_manifests_v2" },
        "object_ids_sorted": true,
    });
    outputs.push(group("0/object_index", index));
    let codecs = encoding.codecs(metadata::vlen(), 1);
    let id_codecs = encoding.codecs(metadata::bytes(8), 8);
    if let Some(logged) = &plan.logged {
        let chunk = logged.manifests;
        outputs.push(strings_node(
            codecs,
            MANIFESTS_PATH,
            Map::new(),
            count,
            chunk,
        ));
        let (ids, chunk) = (EncodedRows::ids(&[]), rows_at_once(count));
        outputs.push(ids.node(id_codecs, IDS_PATH, Map::new(), count, chunk));
    } else {
        if is_dense {
            dense_index(plan, encoding, outputs);
        } else {
            let fragments = plan.layout.manifests.len() as u64;
            let bytes = framed_bytes(count as u64, fragments, plan.geometry.axes());
            let chunk = manifests_per_chunk_of(count, bytes as usize, plan.design.is_sharded());
            manifests(plan, outputs, codecs, chunk)?;
        }
        let ids: Vec<u8> = objects.ids.iter().flat_map(|id| id.to_le_bytes()).collect();
        let ids = EncodedRows::ids(&ids);
        rows(outputs, id_codecs, IDS_PATH, Map::new(), &ids);
    }
    Ok(())
}

/// Writes the tables of generation 0.8, each a single byte array.
pub(super) fn v08(plan: &WritePlan, outputs: &mut Vec<Output>) -> Result<(), BuildError> {
    let encoding = Encoding::of_tables(&plan.design);
    let Some(objects) = &plan.objects else {
        return Ok(());
    };
    let index = json!({
        "zv_array": "object_index",
        "num_objects": objects.ids.len(),
        "sid_ndim": plan.geometry.axes(),
        "layout": "vlen_manifests_v1",
    });
    outputs.push(group("0/object_index", index));
    let codecs = encoding.codecs(metadata::vlen(), 1);
    manifests(plan, outputs, codecs, MANIFESTS)?;
    if !plan.geometry.object.is_empty() {
        outputs.push(empty_group("0/object_attributes"));
    }
    for attribute in &plan.geometry.object {
        let column = TableColumn::of(attribute, &objects.attribute_rows)?;
        let path = format!("0/object_attributes/{}", column.name);
        let masked = column.present.contains(&false);
        let mut attributes = json_object(numbers_only(plan, "object attribute", &column)?);
        attributes.insert("zv_array".to_owned(), json!("object_attribute"));
        attributes.insert("has_present_mask".to_owned(), json!(masked));
        outputs.push(node(&path, group_metadata(&attributes)));
        let row = column.size * column.columns;
        let mut bytes = column.bytes.clone();
        for (at, present) in column.present.iter().enumerate() {
            if !present {
                bytes[at * row..(at + 1) * row].fill(0);
            }
        }
        blob(outputs, &encoding, format!("{path}/data"), bytes);
        if masked {
            let mask = column.present.iter().map(|present| u8::from(*present));
            blob(
                outputs,
                &encoding,
                format!("{path}/present_mask"),
                mask.collect(),
            );
        }
    }
    let groups = group_count(plan);
    if groups == 0 {
        return Ok(());
    }
    let members = open_rows::encode(&members(plan, groups));
    outputs.push(group(
        "0/groups",
        json!({"zv_array": "groups", "num_groups": groups}),
    ));
    blob(outputs, &encoding, "0/groups/data".to_owned(), members.data);
    blob(
        outputs,
        &encoding,
        "0/groups/offsets".to_owned(),
        members.offsets,
    );
    if !plan.geometry.group.is_empty() {
        outputs.push(empty_group("0/group_attributes"));
    }
    for attribute in &plan.geometry.group {
        let column = of_groups(attribute, groups)?;
        let path = format!("0/group_attributes/{}", column.name);
        let mut attributes = json_object(numbers_only(plan, "group attribute", &column)?);
        attributes.insert("zv_array".to_owned(), json!("groupings_attribute"));
        outputs.push(node(&path, group_metadata(&attributes)));
        blob(outputs, &encoding, format!("{path}/data"), column.bytes);
    }
    Ok(())
}

/// Returns the attributes of a column of 0.8, which has no form for text.
fn numbers_only(
    plan: &WritePlan,
    what: &'static str,
    column: &TableColumn,
) -> Result<Value, BuildError> {
    if column.is_text() {
        return Err(BuildError::UnsupportedKind {
            what,
            name: column.name.clone(),
            kind: "text".to_owned(),
            profile: plan.design.profile.name(),
        });
    }
    Ok(json!({
        "name": column.name,
        "dtype": column.dtype,
        "num_channels": column.columns,
        "shape": shape(column),
    }))
}

/// Writes the manifests of all objects, at most `max` in a chunk. Each core encodes and frames a
/// chunk at a time, so that the manifests of other chunks exist in their frames only.
fn manifests(
    plan: &WritePlan,
    outputs: &mut Vec<Output>,
    codecs: Vec<Value>,
    max: usize,
) -> Result<(), BuildError> {
    let objects = plan.objects.as_ref().map_or(0, |objects| objects.ids.len());
    let chunk = objects.clamp(1, max);
    outputs.push(strings_node(
        codecs,
        MANIFESTS_PATH,
        Map::new(),
        objects,
        chunk,
    ));
    let cell = |at: usize| {
        let rows = at * chunk..objects.min((at + 1) * chunk);
        let manifests = rows.map(|object| manifest(plan, object));
        let manifests: Vec<Vec<u8>> = manifests.collect::<Result<_, _>>()?;
        let at = at as u64;
        Ok(Output::Cell {
            array: MANIFESTS_PATH.to_owned(),
            index: vec![at],
            payload: framed(MANIFESTS_PATH, at, &manifests, chunk)?,
        })
    };
    let cells = (0..objects.div_ceil(chunk)).into_par_iter().map(cell);
    let cells: Vec<_> = cells.collect();
    // Collecting twice returns the first error regardless of the scheduling of threads.
    let cells: Result<Vec<_>, BuildError> = cells.into_iter().collect();
    outputs.extend(cells?);
    Ok(())
}

/// Encodes the manifest of an object with one block for each fragment.
fn manifest(plan: &WritePlan, object: usize) -> Result<Vec<u8>, BuildError> {
    let mut builder = ObjectManifestBuilder::new(plan.geometry.axes());
    for &fragment in plan.layout.manifests.of(object) {
        let chunk = plan.layout.fragments[fragment as usize].chunk;
        let coords = &plan.layout.chunks[chunk as usize];
        let pushed = builder.push_single(coords, plan.layout.number(fragment));
        pushed.map_err(|_| BuildError::CellSize {
            chunk: plan.name(chunk),
            array: MANIFESTS_PATH.to_owned(),
            bytes: u64::MAX,
        })?;
    }
    Ok(builder.finish())
}

/// Writes the fragments of all objects as rows of numbers: first and number of the rows of each
/// object, and chunk and number of each fragment.
fn dense_index(plan: &WritePlan, encoding: &Encoding, outputs: &mut Vec<Output>) {
    let objects = plan.objects.as_ref().map_or(0, |objects| objects.ids.len());
    let (mut spans, mut blocks) = (Vec::new(), Vec::new());
    let mut start = 0_i64;
    for object in 0..objects {
        let fragments = plan.layout.manifests.of(object);
        let count = fragments.len() as i64;
        spans.extend([start, count].map(i64::to_le_bytes));
        start += count;
        for &fragment in fragments {
            let chunk = plan.layout.fragments[fragment as usize].chunk;
            let coords = plan.layout.chunks[chunk as usize].iter();
            blocks.extend(coords.map(|along| along.to_le_bytes()));
            blocks.push(i64::from(plan.layout.number(fragment)).to_le_bytes());
        }
    }
    let columns = plan.geometry.axes() + 1;
    let arrays = [
        ("manifest_spans", 2, spans.into_flattened()),
        ("manifest_blocks", columns, blocks.into_flattened()),
    ];
    for (name, columns, bytes) in arrays {
        let codecs = encoding.codecs(metadata::bytes(8), 8);
        let values = EncodedRows::of_dense_index(columns, &bytes);
        let path = format!("0/object_index/{name}");
        rows(outputs, codecs, &path, Map::new(), &values);
    }
}

/// Returns the number of groups, with members or attributes.
fn group_count(plan: &WritePlan) -> usize {
    let last = plan.geometry.groups.keys().next_back();
    let members = last.map_or(0, |last| *last as usize + 1);
    let attributes = plan
        .geometry
        .group
        .iter()
        .map(|attribute| attribute.values.len());
    attributes.max().unwrap_or(0).max(members)
}

fn members(plan: &WritePlan, count: usize) -> Vec<Vec<u8>> {
    let mut all = vec![Vec::new(); count];
    for (number, members) in &plan.geometry.groups {
        all[*number as usize] = groups::encode_list(&distinct_members(members));
    }
    all
}

fn of_groups(attribute: &Column, count: usize) -> Result<TableColumn, BuildError> {
    let rows: Vec<Option<usize>> = (0..count).map(Some).collect();
    TableColumn::of(attribute, &rows)
}

fn table(
    outputs: &mut Vec<Output>,
    encoding: &Encoding,
    family: &str,
    column: &TableColumn,
    attributes: Map<String, Value>,
) {
    let path = format!("{family}/{}", column.name);
    // Text has 4-byte letters of any number, and the element size of Blosc ends at 255.
    let size = if column.is_text() { 4 } else { column.size };
    let codecs = encoding.codecs(metadata::bytes(size), size);
    rows(outputs, codecs, &path, attributes, &EncodedRows::of(column));
}
