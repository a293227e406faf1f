//! Generation 0.9: arrays with one element for each chunk.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use zvf_format::links::RowForm;

use super::{draco, objects, of_fragments};
use crate::{
    error::BuildError,
    link_placement::{self, Cell, CrossChunkPolicy, LinkPlacement},
    metadata::{self, ArrayNode},
    output::{Output, empty_group, group, group_metadata, json_object, node},
    plan::WritePlan,
    stored_column::StoredColumn,
};

/// Cells of one link array by chunk.
pub(super) struct LinkArray<'a> {
    pub(super) segment: String,
    pub(super) offsets: Vec<Vec<i64>>,
    pub(super) cells: BTreeMap<u32, &'a Cell>,
}

/// Groups links between chunks by array.
fn link_arrays<'a>(plan: &WritePlan, links: &'a LinkPlacement) -> Vec<LinkArray<'a>> {
    let mut arrays: BTreeMap<String, LinkArray<'a>> = BTreeMap::new();
    for (chunks, cell) in &links.between {
        let Some(source) = chunks.first() else {
            continue;
        };
        let coords: Vec<&[i64]> = chunks
            .iter()
            .map(|chunk| plan.layout.chunks[*chunk as usize].as_slice())
            .collect();
        let (segment, offsets) = link_placement::offsets(&coords);
        let array = arrays.entry(segment.clone()).or_insert_with(|| LinkArray {
            segment,
            offsets,
            cells: BTreeMap::new(),
        });
        array.cells.insert(*source, cell);
    }
    arrays.into_values().collect()
}

/// Returns the array of links inside chunks, which graphs and meshes have even without links.
fn inside<'a>(plan: &WritePlan, links: &'a LinkPlacement) -> Option<LinkArray<'a>> {
    if !plan.design.kind.is_linked() {
        return None;
    }
    let zeros = vec![0; plan.geometry.axes()];
    let chunks = vec![zeros.as_slice(); links.width.get()];
    let (segment, offsets) = link_placement::offsets(&chunks);
    let cells = links.inside.iter().map(|(chunk, cell)| (*chunk, cell));
    let is_stored = !draco::has_triangles(plan);
    Some(LinkArray {
        segment,
        offsets,
        cells: cells.filter(|_| is_stored).collect(),
    })
}

pub(super) fn cells(plan: &WritePlan, chunks: &[u32]) -> Result<Vec<Output>, BuildError> {
    let mut outputs = Vec::new();
    for &chunk in chunks {
        let mut put = |array: String, payload: Vec<u8>| {
            if !payload.is_empty() {
                let index = plan.index(chunk);
                outputs.push(Output::Cell {
                    array,
                    index,
                    payload,
                });
            }
        };
        let vertices = match plan.design.draco {
            None => plan.positions(chunk),
            Some(bits) => draco::stream(plan, chunk, bits).map_err(|source| BuildError::Draco {
                chunk: plan.name(chunk),
                source,
            })?,
        };
        put("0/vertices".to_owned(), vertices);
        put("0/vertex_fragments".to_owned(), plan.fragment_index(chunk));
        for column in &plan.vertex {
            let path = format!("0/vertex_attributes/{}", column.name);
            put(path, column.gather(plan.input(chunk)));
        }
        for column in &plan.fragment {
            let path = format!("0/fragment_attributes/{}", column.name);
            put(path, of_fragments(plan, column, chunk));
        }
        let Some(links) = &plan.links else {
            continue;
        };
        if let Some(cell) = links.inside.get(&chunk)
            && !draco::has_triangles(plan)
            && let Some(array) = inside(plan, links)
        {
            put(format!("0/links/0/{}", array.segment), cell.plain());
            put(
                "0/link_fragments".to_owned(),
                link_placement::single_group(cell.links.len() as u64),
            );
            for column in &plan.link {
                let path = format!("0/link_attributes/{}/0/{}", column.name, array.segment);
                put(path, gathered(column, cell));
            }
        }
        // Keys are tuples of chunks, sorted by their first chunk.
        let own = links.between.range(vec![chunk]..vec![chunk + 1]);
        for (others, cell) in own {
            let coords: Vec<&[i64]> = others
                .iter()
                .map(|chunk| plan.layout.chunks[*chunk as usize].as_slice())
                .collect();
            let (segment, _) = link_placement::offsets(&coords);
            let rows = cell.rows(links.width, plan.form(true))?;
            put(format!("0/links/0/{segment}"), rows.finish_ragged());
            for column in &plan.link {
                let path = format!("0/link_attributes/{}/0/{segment}", column.name);
                put(path, gathered(column, cell));
            }
        }
    }
    Ok(outputs)
}

pub(super) fn gathered(column: &StoredColumn, cell: &Cell) -> Vec<u8> {
    column.gather(cell.links.iter().map(|link| *link as usize))
}

pub(super) fn rest(plan: &WritePlan) -> Result<Vec<Output>, BuildError> {
    let mut outputs = vec![node("0", group_metadata(&level(plan)))];
    let chunks: Vec<u32> = (0..plan.layout.chunks.len() as u32).collect();
    let names: Vec<String> = chunks.iter().map(|chunk| plan.name(*chunk)).collect();
    let array = |path: String, keys: &[String], attributes: Map<String, Value>| {
        let mut keys = keys.to_vec();
        keys.sort_unstable();
        let shard = plan.shard.as_deref();
        let array = ArrayNode::per_chunk(&plan.encoding, &plan.grid, shard, &keys, attributes);
        node(path, array.json())
    };
    let dtype = plan.geometry.positions.kind.name();
    let encoding = match plan.design.draco {
        Some(_) => "draco",
        None => "raw",
    };
    let vertices = json!({"zv_array": "vertices", "dtype": dtype, "encoding": encoding});
    outputs.push(array(
        "0/vertices".to_owned(),
        &names,
        json_object(vertices),
    ));
    let index =
        |name: &str| json_object(json!({"zv_array": name, "encoding": "fragment_index_v1"}));
    let path = "0/vertex_fragments".to_owned();
    outputs.push(array(path, &names, index("vertex_fragments")));
    for (family, columns) in [
        ("vertex_attributes", &plan.vertex),
        ("fragment_attributes", &plan.fragment),
    ] {
        if !columns.is_empty() {
            outputs.push(empty_group(format!("0/{family}")));
        }
        for column in columns {
            let path = format!("0/{family}/{}", column.name);
            outputs.push(array(path, &names, column.attributes.clone()));
        }
    }
    if let Some(links) = &plan.links {
        outputs.push(empty_group("0/links"));
        let family = link_family(plan, links);
        outputs.push(group("0/links/0", family));
        if !plan.link.is_empty() {
            outputs.push(empty_group("0/link_attributes"));
        }
        for column in &plan.link {
            let family = json!({
                "zv_array": "link_attribute_family",
                "name": column.name,
                "level_delta": 0,
                "num_links": links.logical,
            });
            outputs.push(empty_group(format!("0/link_attributes/{}", column.name)));
            outputs.push(group(
                format!("0/link_attributes/{}/0", column.name),
                family,
            ));
        }
        let inside = inside(plan, links);
        if let Some(inside) = &inside {
            let keys: Vec<String> = inside.cells.keys().map(|at| plan.name(*at)).collect();
            let path = "0/link_fragments".to_owned();
            outputs.push(array(path, &keys, index("link_fragments")));
        }
        let flat = inside.into_iter().map(|array| (array, false));
        let crossing = link_arrays(plan, links).into_iter();
        for (links_of, crosses) in flat.chain(crossing.map(|array| (array, true))) {
            let keys = links_of.cells.keys().map(|chunk| plan.name(*chunk));
            let keys: Vec<String> = keys.collect();
            let node = json!({
                "zv_array": "links",
                "dtype": "int64",
                "offsets": links_of.offsets,
                "has_perm": plan.form(crosses) == RowForm::Permuted,
                "link_width": links.width.get(),
                "level_delta": 0,
            });
            let path = format!("0/links/0/{}", links_of.segment);
            outputs.push(array(path, &keys, json_object(node)));
            for column in &plan.link {
                let mut attributes = column.attributes.clone();
                attributes.insert("offsets".to_owned(), json!(links_of.offsets));
                attributes.insert("level_delta".to_owned(), json!(0));
                let path = format!("0/link_attributes/{}/0/{}", column.name, links_of.segment);
                outputs.push(array(path, &keys, attributes));
            }
        }
    }
    objects::v09(plan, &mut outputs)?;
    for (format, header) in &plan.design.headers {
        outputs.push(node(format!("headers/{format}"), group_metadata(header)));
    }
    if !plan.design.headers.is_empty() {
        outputs.push(empty_group("headers"));
    }
    Ok(outputs)
}

/// Returns the attributes of the family of links inside the level.
fn link_family(plan: &WritePlan, links: &LinkPlacement) -> Value {
    // Triangles in streams of vertices are not links of the family.
    let in_streams: usize = match draco::has_triangles(plan) {
        true => links.inside.values().map(Cell::len).sum(),
        false => 0,
    };
    let policy = CrossChunkPolicy::of(&plan.design);
    json!({
        "zv_array": "links_family",
        "level_delta": 0,
        "link_width": links.width.get(),
        "directed": policy.directed,
        "store": if policy.duplicate { "duplicate" } else { "canonical" },
        "sid_ndim": plan.geometry.axes(),
        "num_links": links.logical - in_streams,
        "num_physical_records": links.physical() - in_streams,
    })
}

/// Returns the attributes of the level.
pub(super) fn level(plan: &WritePlan) -> Map<String, Value> {
    let mut present = vec!["vertices"];
    let mut also = |there: bool, name| present.extend(there.then_some(name));
    also(!plan.vertex.is_empty(), "vertex_attributes");
    also(!plan.fragment.is_empty(), "fragment_attributes");
    also(plan.design.kind.is_linked(), "links");
    also(plan.objects.is_some(), "object_index");
    let current = plan.design.profile == crate::Profile::V09;
    metadata::level(plan.vertices, &present, current)
}
