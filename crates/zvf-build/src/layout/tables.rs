//! The object index, attributes of objects, groups.

use serde_json::{Map, Value, json};
use zvf_format::{groups, open_rows, vlen};

use crate::{
    columns::TableColumn,
    error::BuildError,
    geometry::Attribute,
    layout::between,
    nodes::{self, ArrayNode, Encoding},
    plan::{Output, WritePlan, bare, group, node, says},
};

/// Manifests of a chunk of the index at most, as other writers have them.
pub(crate) const MANIFESTS: usize = 16_384;
/// Bytes of a chunk of them, before compression, about: who looks one object up reads and
/// decodes a chunk, and who asks by place all of them. They compress fifteenfold.
const LOOKUP: usize = 256 << 10;
/// Rows of a chunk of a table.
const ROWS: usize = 65_536;

/// The tables of 0.9.
pub(super) fn current(plan: &WritePlan, outputs: &mut Vec<Output>) -> Result<(), BuildError> {
    let encoding = Encoding::of_tables(&plan.design);
    let Some(objects) = &plan.objects else {
        return Ok(());
    };
    let manifests = between::manifests(plan)?;
    let present = (0..objects.ids.len()).filter(|row| !plan.arranged.manifests.of(*row).is_empty());
    let index = json!({
        "zv_array": "object_index",
        "num_objects": objects.ids.len(),
        "num_present": present.count(),
        "sid_ndim": plan.geometry.axes(),
        "layout": "vlen_manifests_v2",
        "object_ids_sorted": true,
    });
    outputs.push(group("0/object_index", index));
    strings(
        outputs,
        encoding.codecs(nodes::vlen(), 1),
        "0/object_index/manifests",
        Map::new(),
        &manifests,
        at_once(&manifests),
    )?;
    let ids: Vec<u8> = objects.ids.iter().flat_map(|id| id.to_le_bytes()).collect();
    let codecs = encoding.codecs(nodes::bytes(8), 8);
    rows(
        outputs,
        codecs,
        "0/object_index/object_ids",
        Map::new(),
        &Rows::ids(&ids),
    );
    if !plan.geometry.object.is_empty() {
        outputs.push(bare("0/object_attributes"));
    }
    for attribute in &plan.geometry.object {
        let column = TableColumn::of(attribute, &objects.given)?;
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
            says(attributes),
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
        encoding.codecs(nodes::vlen(), 1),
        "0/groups",
        says(attributes),
        &members,
        groups,
    )?;
    if !plan.geometry.group.is_empty() {
        outputs.push(bare("0/group_attributes"));
    }
    for attribute in &plan.geometry.group {
        let column = of_groups(attribute, groups)?;
        let attributes = json!({
            "zv_array": "groupings_attribute",
            "name": column.name,
            "dtype": column.dtype,
            "shape": shape(&column),
        });
        table(
            outputs,
            &encoding,
            "0/group_attributes",
            &column,
            says(attributes),
        );
    }
    Ok(())
}

/// How many of these manifests go in a chunk of the index.
pub(crate) fn at_once(manifests: &[Vec<u8>]) -> usize {
    let bytes: usize = manifests.iter().map(|manifest| manifest.len() + 4).sum();
    let rows = (LOOKUP * manifests.len()).checked_div(bytes).unwrap_or(0);
    // Powers of two: little changes do not move all chunks.
    let rows = (rows + 1).next_power_of_two() / 2;
    rows.clamp(64, MANIFESTS)
}

/// The tables of 0.8: bytes in one piece.
pub(super) fn older(plan: &WritePlan, outputs: &mut Vec<Output>) -> Result<(), BuildError> {
    let encoding = Encoding::of_tables(&plan.design);
    let Some(objects) = &plan.objects else {
        return Ok(());
    };
    let manifests = between::manifests(plan)?;
    let index = json!({
        "zv_array": "object_index",
        "num_objects": objects.ids.len(),
        "sid_ndim": plan.geometry.axes(),
        "layout": "vlen_manifests_v1",
    });
    outputs.push(group("0/object_index", index));
    strings(
        outputs,
        encoding.codecs(nodes::vlen(), 1),
        "0/object_index/manifests",
        Map::new(),
        &manifests,
        MANIFESTS,
    )?;
    if !plan.geometry.object.is_empty() {
        outputs.push(bare("0/object_attributes"));
    }
    for attribute in &plan.geometry.object {
        let column = TableColumn::of(attribute, &objects.given)?;
        let path = format!("0/object_attributes/{}", column.name);
        let masked = column.present.contains(&false);
        let mut attributes = says(numbers_only(plan, "object attribute", &column)?);
        attributes.insert("zv_array".to_owned(), json!("object_attribute"));
        attributes.insert("has_present_mask".to_owned(), json!(masked));
        outputs.push(node(&path, nodes::group(&attributes)));
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
        outputs.push(bare("0/group_attributes"));
    }
    for attribute in &plan.geometry.group {
        let column = of_groups(attribute, groups)?;
        let path = format!("0/group_attributes/{}", column.name);
        let mut attributes = says(numbers_only(plan, "group attribute", &column)?);
        attributes.insert("zv_array".to_owned(), json!("groupings_attribute"));
        outputs.push(node(&path, nodes::group(&attributes)));
        blob(outputs, &encoding, format!("{path}/data"), column.bytes);
    }
    Ok(())
}

/// What a column of 0.8 says; refuses text, which has no form there.
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

/// Bytes in one piece, as an array.
pub(crate) fn blob(outputs: &mut Vec<Output>, encoding: &Encoding, path: String, bytes: Vec<u8>) {
    outputs.push(node(&path, ArrayNode::blob(encoding, bytes.len()).json()));
    if !bytes.is_empty() {
        outputs.push(Output::Cell {
            array: path,
            index: vec![0],
            payload: bytes,
        });
    }
}

/// Numbers of groups that have members or attributes.
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
        all[*number as usize] = groups::encode_list(members);
    }
    all
}

fn of_groups(attribute: &Attribute, count: usize) -> Result<TableColumn, BuildError> {
    let rows: Vec<Option<usize>> = (0..count).map(Some).collect();
    TableColumn::of(attribute, &rows)
}

pub(crate) fn shape(column: &TableColumn) -> Value {
    let rows = column.present.len();
    match column.columns {
        1 => json!([rows]),
        columns => json!([rows, columns]),
    }
}

fn table(
    outputs: &mut Vec<Output>,
    encoding: &Encoding,
    family: &str,
    column: &TableColumn,
    attributes: Map<String, Value>,
) {
    let path = format!("{family}/{}", column.name);
    // Text is letters of 4 bytes, however many: blosc counts to 255.
    let size = if column.is_text() { 4 } else { column.size };
    let codecs = encoding.codecs(nodes::bytes(size), size);
    rows(outputs, codecs, &path, attributes, &Rows::of(column));
}

/// Rows of values.
pub(crate) struct Rows<'a> {
    data_type: Value,
    /// Bytes of a value.
    size: usize,
    /// Values of a row, when there are several.
    tail: Option<usize>,
    fill: (Value, Vec<u8>),
    bytes: &'a [u8],
}

impl<'a> Rows<'a> {
    /// Those of a column.
    pub(crate) fn of(column: &'a TableColumn) -> Self {
        Self {
            data_type: column.data_type.clone(),
            size: column.size,
            tail: (column.columns > 1).then_some(column.columns),
            fill: column.fill.clone(),
            bytes: &column.bytes,
        }
    }

    /// Rows of floats.
    pub(crate) fn floats(columns: usize, bytes: &'a [u8]) -> Self {
        Self {
            data_type: json!("float64"),
            size: 8,
            tail: Some(columns),
            fill: (json!(0.0), vec![0; 8]),
            bytes,
        }
    }

    /// Ids of objects.
    pub(crate) fn ids(bytes: &'a [u8]) -> Self {
        Self {
            data_type: json!("int64"),
            size: 8,
            tail: None,
            fill: (json!(0), vec![0; 8]),
            bytes,
        }
    }
}

impl<'a> Rows<'a> {
    /// Rows of several numbers of vertices.
    pub(crate) fn wide_ids(columns: usize, bytes: &'a [u8]) -> Self {
        Self {
            tail: Some(columns),
            ..Self::ids(bytes)
        }
    }
}

/// An array of rows, in chunks that need not be rewritten when others are.
pub(crate) fn rows(
    outputs: &mut Vec<Output>,
    codecs: Vec<Value>,
    path: &str,
    attributes: Map<String, Value>,
    values: &Rows<'_>,
) {
    let row = values.size * values.tail.unwrap_or(1);
    let count = values.bytes.len() / row;
    let chunk = count.clamp(1, ROWS);
    let tail: Vec<u64> = values.tail.iter().map(|tail| *tail as u64).collect();
    let with = |rows: usize| [&[rows as u64][..], &tail].concat();
    let node = ArrayNode {
        shape: with(count),
        data_type: values.data_type.clone(),
        chunk_shape: with(chunk),
        fill: values.fill.0.clone(),
        codecs,
        attributes,
    };
    outputs.push(crate::plan::node(path, node.json()));
    for (at, part) in values.bytes.chunks(chunk * row).enumerate() {
        let mut payload = part.to_vec();
        // A chunk is stored whole.
        let missing = (chunk * row - part.len()) / values.size;
        payload.extend(values.fill.1.repeat(missing));
        let mut index = vec![at as u64];
        index.extend(tail.iter().map(|_| 0));
        outputs.push(Output::Cell {
            array: path.to_owned(),
            index,
            payload,
        });
    }
}

/// Byte strings, framed by chunk.
pub(crate) fn strings(
    outputs: &mut Vec<Output>,
    codecs: Vec<Value>,
    path: &str,
    attributes: Map<String, Value>,
    items: &[Vec<u8>],
    most: usize,
) -> Result<(), BuildError> {
    let chunk = items.len().clamp(1, most);
    let array = ArrayNode::strings(codecs, items.len() as u64, chunk as u64, attributes);
    outputs.push(node(path, array.json()));
    for (at, part) in items.chunks(chunk).enumerate() {
        let at = at as u64;
        outputs.push(Output::Cell {
            array: path.to_owned(),
            index: vec![at],
            payload: framed(path, at, part, chunk)?,
        });
    }
    Ok(())
}

/// A chunk of so many byte strings, of which these are there.
pub(crate) fn framed<B: AsRef<[u8]>>(
    path: &str,
    at: u64,
    items: &[B],
    chunk: usize,
) -> Result<Vec<u8>, BuildError> {
    let mut items: Vec<&[u8]> = items.iter().map(AsRef::as_ref).collect();
    items.resize(chunk, &[]);
    match items.as_slice() {
        // The frame of one is added with the codecs.
        [one] => Ok(one.to_vec()),
        items => vlen::encode(items).map_err(|_| BuildError::CellSize {
            chunk: at.to_string(),
            array: path.to_owned(),
            bytes: items.iter().map(|item| item.len() as u64).sum(),
        }),
    }
}
