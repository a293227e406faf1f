//! Stores of generations 0.6 to 0.8.1.

use std::{collections::BTreeMap, iter};

use serde_json::{Value, json};
use zvf_format::{
    links::{CrossChunkTableBuilder, LinkRowsBuilder, LinkWidth, Permutation, RowForm},
    numeric::Kind as Number,
    open_rows,
    path::ChunkCoords,
};

use super::{
    ExpectedAttribute, ExpectedStore, ExpectedValues, RecipeProfile, RecordPolicy, current,
    files::{Files, Payloads},
    parts,
};
use crate::filing::FilingRules;

/// Writes a level, and records the order of its links: those inside chunks, then those between
/// chunks.
pub(super) fn write(truth: &mut ExpectedStore, files: &mut Files) {
    let grid = current::grid(truth);
    for (part, attributes, cells) in parts::per_chunk(truth) {
        let path = format!("0/{part}");
        match padded_form(truth, &part) {
            Some((kind, columns)) => {
                files.padded(&path, attributes, &cells, (&grid, kind, columns));
            }
            None => files.children(&path, &attributes, &cells),
        }
    }
    links(truth, files);
    objects(truth, files, "0");
    if truth.objects.is_none() {
        return;
    }
    if truth.recipe.profile == RecipeProfile::V081 {
        parts::tables(truth, files);
    } else {
        tables(truth, files);
    }
}

/// Returns numeric type and columns of a part that is one array.
fn padded_form(truth: &ExpectedStore, part: &str) -> Option<(Number, usize)> {
    if truth.recipe.profile != RecipeProfile::Padded {
        return None;
    }
    if part == "vertices" {
        let kind = if truth.recipe.double {
            Number::Float64
        } else {
            Number::Float32
        };
        return Some((kind, truth.axes.len()));
    }
    let name = part.strip_prefix("vertex_attributes/")?;
    let attribute = truth
        .vertex_attributes
        .iter()
        .find(|attribute| attribute.name == name)?;
    match &attribute.values {
        ExpectedValues::Numbers { kind, columns, .. } => {
            Some((*kind, usize::try_from(*columns).unwrap_or(1)))
        }
        ExpectedValues::Words { words, .. } => {
            Some((parts::code_dtype(attribute, words).dtype().kind(), 1))
        }
    }
}

fn links(truth: &mut ExpectedStore, files: &mut Files) {
    let kind = truth.recipe.kind;
    let width = LinkWidth::new(parts::length(kind.width())).expect("a width");
    let stored = truth
        .links
        .iter()
        .enumerate()
        .filter(|(_, link)| link.stored);
    let (inside, between): (Vec<usize>, Vec<usize>) =
        stored.map(|(number, _)| number).partition(|number| {
            let mut chunks = truth.links[*number]
                .ends
                .iter()
                .map(|end| &truth.vertices[*end].chunk);
            let first = chunks.next();
            chunks.all(|chunk| Some(chunk) == first)
        });
    if kind.is_linked() {
        truth.link_order = links_inside(truth, files, width, &inside);
    }
    if kind.is_linked() || !between.is_empty() {
        let order = match truth.recipe.profile {
            RecipeProfile::V06 | RecipeProfile::V07 => table(truth, files, width, &between),
            _ => cells(truth, files, width, &between),
        };
        truth.link_order.extend(order);
    }
}

fn links_inside(
    truth: &ExpectedStore,
    files: &mut Files,
    width: LinkWidth,
    links: &[usize],
) -> Vec<usize> {
    let mut chunks: BTreeMap<Vec<i64>, Vec<usize>> = BTreeMap::new();
    for link in links {
        let chunk = &truth.vertices[truth.links[*link].ends[0]].chunk;
        chunks.entry(chunk.clone()).or_default().push(*link);
    }
    let cell = |links: &Vec<usize>| {
        let mut builder = LinkRowsBuilder::new(width, RowForm::Plain);
        for link in links {
            let ends = truth.links[*link].ends.iter();
            let rows: Vec<u64> = ends.map(|end| truth.vertices[*end].row).collect();
            builder
                .push(Permutation::identity(width), &rows)
                .expect("a row");
        }
        builder.finish_rows()
    };
    let attributes = json!({
        "zv_array": "links", "dtype": "int64", "link_width": width.get(), "level_delta": 0,
    });
    let cells: Payloads = chunks
        .iter()
        .map(|(chunk, links)| (chunk.clone(), cell(links)))
        .collect();
    if truth.recipe.profile == RecipeProfile::Padded {
        let form = (&current::grid(truth), Number::Int64, width.get());
        files.padded("0/links/0", attributes, &cells, form);
    } else {
        files.children("0/links/0", &attributes, &cells);
    }
    let sidecar = |links: &Vec<usize>| parts::ranges(iter::once(0..parts::length(links.len())));
    let sidecars = chunks
        .iter()
        .map(|(chunk, links)| (chunk.clone(), sidecar(links)));
    let said = truth.recipe.profile >= RecipeProfile::V081 || files.random().chance(50);
    let attributes = json!({"zv_array": "link_fragments", "encoding": "fragment_index_v1"});
    let attributes = if said { attributes } else { json!({}) };
    files.children("0/link_fragments", &attributes, &sidecars.collect());
    for attribute in &truth.link_attributes {
        let mut attributes = parts::attribute(attribute, "link_attribute", false);
        attributes["level_delta"] = json!(0);
        let path = format!("0/link_attributes/{}/0", attribute.name);
        files.children(&path, &attributes, &parts::gathered(attribute, &chunks));
    }
    chunks.into_values().flatten().collect()
}

/// Writes the table of 0.6 and 0.7.
fn table(
    truth: &ExpectedStore,
    files: &mut Files,
    width: LinkWidth,
    links: &[usize],
) -> Vec<usize> {
    let arity = parts::arity(truth);
    let mut builder = CrossChunkTableBuilder::new(width, arity);
    for link in links {
        let mut record = parts::record(truth, &truth.links[*link].ends);
        // Writers of these generations stored row 0 for every step of a path.
        if truth.recipe.kind.is_paths() {
            for (_, row) in &mut record {
                *row = 0;
            }
        }
        builder.push(&record).expect("a record");
    }
    let path = "0/cross_chunk_links/0";
    files.group(path, &family(truth, links.len(), None));
    if !links.is_empty() {
        files.blob(&format!("{path}/data"), json!({}), &builder.finish());
    }
    for attribute in &truth.link_attributes {
        let mut attributes = parts::attribute(attribute, "cross_chunk_link_attribute", false);
        attributes["level_delta"] = json!(0);
        attributes["num_links"] = json!(links.len());
        let mut shape = vec![parts::length(links.len())];
        shape.extend(parts::columns(attribute).map(u64::from));
        attributes["shape"] = json!(shape);
        let all = BTreeMap::from([(Vec::new(), links.to_vec())]);
        let path = format!("0/cross_chunk_link_attributes/{}/0", attribute.name);
        files.group(&path, &attributes);
        for cell in parts::gathered(attribute, &all)
            .values()
            .filter(|cell| !cell.is_empty())
        {
            files.blob(&format!("{path}/data"), json!({}), cell);
        }
    }
    links.to_vec()
}

fn family(truth: &ExpectedStore, links: usize, physical: Option<usize>) -> Value {
    let policy = truth.recipe.policy;
    let mut attributes = json!({
        "zv_array": "cross_chunk_links", "level_delta": 0, "link_width": truth.recipe.kind.width(),
        "num_links": links, "sid_ndim": parts::arity(truth),
    });
    if let (RecipeProfile::V081, Some(physical)) = (truth.recipe.profile, physical)
        && policy != RecordPolicy::Canonical
    {
        attributes["num_physical_records"] = json!(physical);
        attributes["directed"] = json!(policy == RecordPolicy::Directed);
        attributes["store"] = json!(if policy == RecordPolicy::Duplicate {
            "duplicate"
        } else {
            "canonical"
        });
    }
    attributes
}

/// Writes the cells of 0.8, one for each tuple of chunks.
fn cells(
    truth: &ExpectedStore,
    files: &mut Files,
    width: LinkWidth,
    links: &[usize],
) -> Vec<usize> {
    let policy = truth.recipe.policy;
    let (directed, duplicate) = (
        policy == RecordPolicy::Directed,
        policy == RecordPolicy::Duplicate,
    );
    let filing = FilingRules::of_level(width, parts::arity(truth), directed, duplicate);
    let mut cells: BTreeMap<String, (LinkRowsBuilder, Vec<(usize, bool)>)> = BTreeMap::new();
    for link in links {
        let record = parts::record(truth, &truth.links[*link].ends);
        let copies = filing.file(&record).expect("small offsets");
        for (copy, filed) in copies.into_iter().enumerate() {
            let slots = filed.order.slots().iter();
            let chunks = slots.flat_map(|slot| record[usize::from(*slot)].0.iter().copied());
            let key = ChunkCoords(&chunks.collect::<Vec<i64>>()).to_string();
            let cell = cells.entry(key);
            let (builder, links) = cell
                .or_insert_with(|| (LinkRowsBuilder::new(width, RowForm::Permuted), Vec::new()));
            builder.push(filed.order, &filed.vertices).expect("a row");
            links.push((*link, copy == 0));
        }
    }
    let physical = cells.values().map(|(_, links)| links.len()).sum();
    let path = "0/cross_chunk_links/0";
    files.group(path, &family(truth, links.len(), Some(physical)));
    for (key, (builder, _)) in &cells {
        files.blob(&format!("{path}/{key}"), json!({}), &builder.finish_cell());
    }
    for attribute in &truth.link_attributes {
        let mut attributes = parts::attribute(attribute, "cross_chunk_link_attribute", false);
        attributes["level_delta"] = json!(0);
        attributes["num_links"] = json!(links.len());
        attributes["row_shape"] = json!(Vec::from_iter(parts::columns(attribute)));
        let path = format!("0/cross_chunk_link_attributes/{}/0", attribute.name);
        files.group(&path, &attributes);
        for (key, (_, links)) in &cells {
            let links = links.iter().map(|(link, _)| *link).collect();
            let rows = parts::gathered(attribute, &BTreeMap::from([(Vec::new(), links)]));
            for cell in rows.values() {
                files.blob(&format!("{path}/{key}"), json!({}), cell);
            }
        }
    }
    let rows = cells.into_values().flat_map(|(_, links)| links);
    rows.filter_map(|(link, leads)| leads.then_some(link))
        .collect()
}

/// Writes the object index of a level.
pub(super) fn objects(truth: &ExpectedStore, files: &mut Files, level: &str) {
    let Some(objects) = &truth.objects else {
        return;
    };
    let open = truth.recipe.profile == RecipeProfile::V06;
    let mut attributes = json!({
        "zv_array": "object_index", "num_objects": objects.len(), "sid_ndim": parts::arity(truth),
    });
    if !open {
        attributes["layout"] = json!("vlen_manifests_v1");
    }
    files.group(&format!("{level}/object_index"), &attributes);
    let manifests = parts::manifests(truth, files.random());
    if open {
        let rows = open_rows::encode(&manifests);
        files.blob(&format!("{level}/object_index/data"), json!({}), &rows.data);
        files.blob(
            &format!("{level}/object_index/offsets"),
            json!({}),
            &rows.offsets,
        );
    } else {
        files.strings(
            &format!("{level}/object_index/manifests"),
            json!({}),
            &manifests,
            manifests.len(),
        );
    }
}

/// Writes attributes of objects and groups, and groups, as groups with arrays of bytes.
fn tables(truth: &ExpectedStore, files: &mut Files) {
    for attribute in &truth.object_attributes {
        let masked = attribute.missing.contains(&true);
        let path = format!("0/object_attributes/{}", attribute.name);
        table_of(files, &path, "object_attribute", attribute, Some(masked));
        if masked {
            let present = attribute.missing.iter().map(|missing| u8::from(!missing));
            files.blob(
                &format!("{path}/present_mask"),
                json!({}),
                &present.collect::<Vec<u8>>(),
            );
        }
    }
    let Some(groups) = &truth.groups else {
        return;
    };
    let items: Vec<Vec<u8>> = groups
        .iter()
        .map(|members| zvf_format::groups::encode_list(members))
        .collect();
    let rows = open_rows::encode(&items);
    files.group(
        "0/groups",
        &json!({"zv_array": "groups", "num_groups": groups.len()}),
    );
    files.blob("0/groups/data", json!({}), &rows.data);
    files.blob("0/groups/offsets", json!({}), &rows.offsets);
    for attribute in &truth.group_attributes {
        let path = format!("0/group_attributes/{}", attribute.name);
        table_of(files, &path, "groupings_attribute", attribute, None);
    }
}

fn table_of(
    files: &mut Files,
    path: &str,
    tag: &str,
    attribute: &ExpectedAttribute,
    masked: Option<bool>,
) {
    let ExpectedValues::Numbers { kind, columns, .. } = &attribute.values else {
        return;
    };
    let mut attributes = json!({
        "zv_array": tag, "name": attribute.name, "dtype": kind.name(),
        "num_channels": columns, "shape": parts::shape(attribute),
    });
    if let Some(masked) = masked {
        attributes["has_present_mask"] = json!(masked);
    }
    files.group(path, &attributes);
    let rows = attribute.missing.iter().enumerate();
    let bytes = rows.flat_map(|(row, missing)| {
        let bytes = attribute.row(row);
        if *missing {
            vec![0; bytes.len()]
        } else {
            bytes.to_vec()
        }
    });
    files.blob(
        &format!("{path}/data"),
        json!({}),
        &bytes.collect::<Vec<u8>>(),
    );
}
