//! Object index, attributes of objects, and groups of a plan.

use std::collections::BTreeMap;

use rayon::prelude::*;
use serde_json::Value;
use zvf_format::{groups, manifest::ObjectManifestBuilder, numeric::Kind, open_rows};
use zvf_model::{
    array::{Groups, ObjectIndex, ObjectIndexLayout, Table, TableRole},
    column::Column,
    key::Key,
    layout::{ArrayRole, GroupRole},
    metadata::Attributes,
    zarr::Codecs,
};

use super::WritePlan;
use crate::{
    design::ManifestForm,
    error::BuildError,
    metadata::{self, Encoding},
    objects::{ObjectRows, distinct_members},
    output::Output,
    stored_column::{TableColumn, little},
    tables::{
        EncodedRows, MANIFESTS, blob, framed, framed_bytes, manifests_per_chunk_of, rows,
        rows_at_once, strings,
    },
};

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
    /// Describes the rows of the column.
    pub(crate) fn rows(&self) -> EncodedRows<'static> {
        EncodedRows::later(self.kind, self.columns, self.fill.clone())
    }
}

/// Returns the metadata of a table.
fn described(role: TableRole, column: &TableColumn) -> Table {
    Table {
        role: Some(role),
        name: Some(column.name.clone()),
        values: Some(column.values),
        shape: Some(column.shape()),
        num_channels: None,
        has_present_mask: false,
        fill_is_absent: false,
    }
}

/// Writes the tables of generation 0.9.
pub(super) fn v09(plan: &WritePlan, outputs: &mut Vec<Output>) -> Result<(), BuildError> {
    let (encoding, keys) = (Encoding::of_tables(&plan.design), plan.keys());
    let Some(objects) = &plan.objects else {
        return Ok(());
    };
    index(plan, objects, &encoding, outputs)?;
    let count = plan.object_count();
    let logged = plan.logged.iter().flat_map(|logged| &logged.columns);
    if !plan.geometry.object.is_empty() || logged.clone().next().is_some() {
        outputs.push(Output::empty_group(
            keys.group(GroupRole::ObjectAttributes)?,
        ));
    }
    for column in logged {
        let columns = (column.columns > 1).then_some(column.columns as u64);
        let shape = [count as u64].into_iter().chain(columns);
        let table = Table {
            role: Some(TableRole::Object),
            name: Some(column.name.clone()),
            values: Some(little(column.kind).into()),
            shape: Some(shape.collect()),
            num_channels: None,
            has_present_mask: false,
            fill_is_absent: true,
        };
        let codecs = encoding.of_numbers(column.kind.size());
        let (attributes, chunk) = (table.to_array_attributes(), rows_at_once(count));
        let array = column.rows().array(codecs, attributes, count, chunk);
        let key = keys.values(&ArrayRole::ObjectAttribute(&column.name))?;
        outputs.push(Output::node(key, array));
    }
    for attribute in &plan.geometry.object {
        let column = TableColumn::of(attribute, &objects.attribute_rows)?;
        let described = Table {
            fill_is_absent: true,
            ..described(TableRole::Object, &column)
        };
        let key = keys.values(&ArrayRole::ObjectAttribute(&column.name))?;
        table(outputs, &encoding, &key, &column, &described);
    }
    let groups = group_count(plan);
    if groups == 0 {
        return Ok(());
    }
    strings(
        outputs,
        encoding.of_strings(),
        &keys.values(&ArrayRole::Groups)?,
        described_groups(groups),
        &members(plan, groups),
        groups,
    )?;
    if !plan.geometry.group.is_empty() {
        outputs.push(Output::empty_group(keys.group(GroupRole::GroupAttributes)?));
    }
    for attribute in &plan.geometry.group {
        let column = of_groups(attribute, groups)?;
        let described = Table {
            // Only if values are missing: other readers do not expect the declaration for groups.
            fill_is_absent: column.present.contains(&false),
            ..described(TableRole::Group, &column)
        };
        let key = keys.values(&ArrayRole::GroupAttribute(&column.name))?;
        table(outputs, &encoding, &key, &column, &described);
    }
    Ok(())
}

/// Returns the attributes of this number of groups.
fn described_groups(groups: usize) -> Attributes {
    let groups = Groups {
        is_tagged: true,
        num_groups: Some(groups as u64),
        ranges: BTreeMap::new(),
    };
    groups.to_attributes()
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
    let layout = match plan.design.object_index {
        ManifestForm::Dense => ObjectIndexLayout::Dense,
        ManifestForm::Manifests => ObjectIndexLayout::ManifestsWithIds,
    };
    let index = ObjectIndex {
        layout,
        num_objects: count as u64,
        num_present: Some(present as u64),
        sid_ndim: plan.geometry.axes(),
        ids_sorted: true,
    };
    let keys = plan.keys();
    let key = keys.node(&ArrayRole::Manifests)?;
    outputs.push(Output::group(key, index.to_attributes()));
    let codecs = encoding.of_strings();
    let id_codecs = encoding.of_numbers(8);
    let ids_key = keys.values(&ArrayRole::ObjectIds)?;
    if let Some(logged) = &plan.logged {
        let (rows, chunk) = (count as u64, logged.manifests as u64);
        let array = metadata::strings(codecs, rows, chunk, Attributes::new());
        outputs.push(Output::node(keys.values(&ArrayRole::Manifests)?, array));
        let (ids, chunk) = (EncodedRows::ids(&[]), rows_at_once(count));
        let array = ids.array(id_codecs, Attributes::new(), count, chunk);
        outputs.push(Output::node(ids_key, array));
    } else {
        if is_dense {
            dense_index(plan, encoding, outputs)?;
        } else {
            let fragments = plan.layout.manifests.len() as u64;
            let bytes = framed_bytes(count as u64, fragments, plan.geometry.axes());
            let chunk = manifests_per_chunk_of(count, bytes as usize, plan.design.is_sharded());
            manifests(plan, outputs, codecs, chunk)?;
        }
        let ids: Vec<u8> = objects.ids.iter().flat_map(|id| id.to_le_bytes()).collect();
        let ids = EncodedRows::ids(&ids);
        rows(outputs, id_codecs, &ids_key, Attributes::new(), &ids);
    }
    Ok(())
}

/// Writes the tables of generation 0.8, each a single byte array.
pub(super) fn v08(plan: &WritePlan, outputs: &mut Vec<Output>) -> Result<(), BuildError> {
    let (encoding, keys) = (Encoding::of_tables(&plan.design), plan.keys());
    let Some(objects) = &plan.objects else {
        return Ok(());
    };
    let index = ObjectIndex {
        layout: ObjectIndexLayout::Manifests,
        num_objects: objects.ids.len() as u64,
        num_present: None,
        sid_ndim: plan.geometry.axes(),
        ids_sorted: true,
    };
    let key = keys.node(&ArrayRole::Manifests)?;
    outputs.push(Output::group(key, index.to_attributes()));
    manifests(plan, outputs, encoding.of_strings(), MANIFESTS)?;
    if !plan.geometry.object.is_empty() {
        outputs.push(Output::empty_group(
            keys.group(GroupRole::ObjectAttributes)?,
        ));
    }
    for attribute in &plan.geometry.object {
        let column = TableColumn::of(attribute, &objects.attribute_rows)?;
        let part = ArrayRole::ObjectAttribute(&column.name);
        let masked = column.present.contains(&false);
        let described = Table {
            has_present_mask: masked,
            ..numbers_only(plan, "object attribute", TableRole::Object, &column)?
        };
        outputs.push(Output::group(
            keys.node(&part)?,
            described.to_group_attributes(),
        ));
        let row = column.size * column.columns;
        let mut bytes = column.bytes.clone();
        for (at, present) in column.present.iter().enumerate() {
            if !present {
                bytes[at * row..(at + 1) * row].fill(0);
            }
        }
        blob(outputs, &encoding, keys.values(&part)?, bytes);
        if masked {
            let key = keys.values(&ArrayRole::PresentMask(&column.name))?;
            let mask = column.present.iter().map(|present| u8::from(*present));
            blob(outputs, &encoding, key, mask.collect());
        }
    }
    let groups = group_count(plan);
    if groups == 0 {
        return Ok(());
    }
    let members = open_rows::encode(&members(plan, groups));
    let key = keys.node(&ArrayRole::Groups)?;
    outputs.push(Output::group(key, described_groups(groups)));
    let key = keys.values(&ArrayRole::Groups)?;
    blob(outputs, &encoding, key, members.data);
    let key = keys.values(&ArrayRole::GroupOffsets)?;
    blob(outputs, &encoding, key, members.offsets);
    if !plan.geometry.group.is_empty() {
        outputs.push(Output::empty_group(keys.group(GroupRole::GroupAttributes)?));
    }
    for attribute in &plan.geometry.group {
        let column = of_groups(attribute, groups)?;
        let part = ArrayRole::GroupAttribute(&column.name);
        let described = numbers_only(plan, "group attribute", TableRole::Group, &column)?;
        outputs.push(Output::group(
            keys.node(&part)?,
            described.to_group_attributes(),
        ));
        blob(outputs, &encoding, keys.values(&part)?, column.bytes);
    }
    Ok(())
}

/// Returns the metadata of a table of 0.8, which has no form for text.
fn numbers_only(
    plan: &WritePlan,
    what: &'static str,
    role: TableRole,
    column: &TableColumn,
) -> Result<Table, BuildError> {
    if column.is_text() {
        return Err(BuildError::UnsupportedKind {
            what,
            name: column.name.clone(),
            kind: "text".to_owned(),
            profile: plan.design.profile.name(),
        });
    }
    Ok(Table {
        num_channels: Some(column.columns as u64),
        ..described(role, column)
    })
}

/// Writes the manifests of all objects, at most `max` in a chunk. Each core encodes and frames a
/// chunk at a time, so that the manifests of other chunks exist in their frames only.
fn manifests(
    plan: &WritePlan,
    outputs: &mut Vec<Output>,
    codecs: Codecs,
    max: usize,
) -> Result<(), BuildError> {
    let objects = plan.objects.as_ref().map_or(0, |objects| objects.ids.len());
    let chunk = objects.clamp(1, max);
    let key = plan.keys().values(&ArrayRole::Manifests)?;
    let array = metadata::strings(codecs, objects as u64, chunk as u64, Attributes::new());
    outputs.push(Output::node(key.clone(), array));
    let cell = |at: usize| {
        let rows = at * chunk..objects.min((at + 1) * chunk);
        let manifests: Vec<Vec<u8>> = rows
            .map(|object| manifest(plan, &key, object))
            .collect::<Result<_, _>>()?;
        let at = at as u64;
        Ok(Output::Cell {
            array: key.clone(),
            index: vec![at],
            payload: framed(&key, at, &manifests, chunk)?,
        })
    };
    let cells: Vec<_> = (0..objects.div_ceil(chunk))
        .into_par_iter()
        .map(cell)
        .collect();
    // Collecting twice returns the first error regardless of the scheduling of threads.
    let cells: Result<Vec<_>, BuildError> = cells.into_iter().collect();
    outputs.extend(cells?);
    Ok(())
}

/// Encodes the manifest of an object with one block for each fragment.
fn manifest(plan: &WritePlan, array: &Key, object: usize) -> Result<Vec<u8>, BuildError> {
    let mut builder = ObjectManifestBuilder::new(plan.geometry.axes());
    for &fragment in plan.layout.manifests.of(object) {
        let chunk = plan.layout.fragments[fragment as usize].chunk;
        let coords = &plan.layout.chunks[chunk as usize];
        let pushed = builder.push_single(coords, plan.layout.number(fragment));
        pushed.map_err(|_| BuildError::CellSize {
            chunk: plan.name(chunk),
            array: array.to_string(),
            bytes: u64::MAX,
        })?;
    }
    Ok(builder.finish())
}

/// Writes the fragments of all objects as rows of numbers: first and number of the rows of each
/// object, and chunk and number of each fragment.
fn dense_index(
    plan: &WritePlan,
    encoding: &Encoding,
    outputs: &mut Vec<Output>,
) -> Result<(), BuildError> {
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
        (ArrayRole::ManifestSpans, 2, spans.into_flattened()),
        (ArrayRole::ManifestBlocks, columns, blocks.into_flattened()),
    ];
    for (part, columns, bytes) in arrays {
        let values = EncodedRows::of_dense_index(columns, &bytes);
        let (codecs, key) = (encoding.of_numbers(8), plan.keys().values(&part)?);
        rows(outputs, codecs, &key, Attributes::new(), &values);
    }
    Ok(())
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
    key: &Key,
    column: &TableColumn,
    described: &Table,
) {
    // Text has 4-byte letters of any number, and the element size of Blosc ends at 255.
    let size = if column.is_text() { 4 } else { column.size };
    let (codecs, attributes) = (encoding.of_numbers(size), described.to_array_attributes());
    rows(outputs, codecs, key, attributes, &EncodedRows::of(column));
}
