//! Common parts of all generations: cells, blobs and metadata.

use std::{collections::BTreeMap, ops::Range};

use serde_json::{Value, json};
use zvf_format::{
    dictionary::{Code, CodeDtype},
    fragment::FragmentIndexBuilder,
    manifest::ObjectManifestBuilder,
    numeric::{ByteOrder, Kind as Number, encode},
};

use super::{
    ExpectedAttribute, ExpectedStore, ExpectedValues,
    files::{Files, Numbers, Payloads},
    random::Random,
};
use crate::filing::Record;

/// Returns the metadata of the root.
pub(super) fn root(truth: &ExpectedStore) -> Value {
    let axes: Vec<Value> = truth
        .axes
        .iter()
        .map(|name| json!({"name": name, "type": "space"}))
        .collect();
    let of = |axis: usize| {
        let vertices = truth.vertices.iter();
        vertices.map(move |vertex| vertex.position[axis])
    };
    let axis_numbers = 0..truth.axes.len();
    let low = |axis| of(axis).reduce(f64::min).unwrap_or(0.0);
    let high = |axis| of(axis).reduce(f64::max).unwrap_or(128.0);
    let low: Vec<f64> = axis_numbers.clone().map(low).collect();
    let high: Vec<f64> = axis_numbers.clone().map(high).collect();
    let bin: Vec<f64> = axis_numbers
        .map(|axis| truth.chunk_shape[axis] / f64::from(truth.bins_per_chunk[axis]))
        .collect();
    let half: Vec<f64> = bin.iter().map(|extent| extent / 2.0).collect();
    let ones = vec![1.0; truth.axes.len()];
    let mut block = json!({
        "zv_version": truth.recipe.profile.version(),
        "format_capabilities": [],
        "chunk_shape": truth.chunk_shape,
        "bounds": [low, high],
        "geometry_types": [truth.recipe.kind.geometry_type()],
        "links_convention": truth.recipe.kind.convention(),
        "object_index_convention": "standard",
        "cross_chunk_strategy": "explicit_links",
    });
    if truth.bins_per_chunk.iter().any(|bins| *bins != 1) {
        block["base_bin_shape"] = json!(bin);
    }
    json!({
        "zarr_vectors": block,
        "multiscales": [{
            "version": "0.4", "name": "default", "axes": axes,
            "datasets": [{"path": "0", "coordinateTransformations": [
                {"type": "scale", "scale": ones},
                {"type": "translation", "translation": half},
            ]}],
            "metadata": {"format": "zarr_vectors"},
        }],
    })
}

/// Returns the metadata of a level.
pub(super) fn level(truth: &ExpectedStore) -> Value {
    let mut present = vec!["vertices"];
    present.extend(truth.objects.is_some().then_some("object_index"));
    let mut block = json!({
        "level": 0, "object_sparsity": 1.0, "vertex_count": truth.vertices.len(),
        "coarsening_method": "none", "parent_level": null,
        "arrays_present": present,
    });
    if let Some((name, values)) = &truth.chunked_by {
        let dims: Vec<&String> = [name].into_iter().chain(&truth.axes).collect();
        block["chunk_dims"] = json!(dims);
        block["chunk_attribute_name"] = json!(name);
        block["chunk_attribute_values"] = json!(values);
    }
    json!({"zarr_vectors_level": block})
}

/// Returns vertices, fragments and their attributes: path, attributes and cells.
pub(super) fn per_chunk(truth: &ExpectedStore) -> Vec<(String, Value, Payloads)> {
    let dtype = if truth.recipe.double {
        "float64"
    } else {
        "float32"
    };
    let rows = rows(truth);
    let mut parts = vec![
        (
            "vertices".to_owned(),
            json!({"zv_array": "vertices", "dtype": dtype, "encoding": "raw"}),
            rows.iter()
                .map(|(chunk, rows)| (chunk.clone(), positions(truth, rows)))
                .collect(),
        ),
        (
            "vertex_fragments".to_owned(),
            json!({"zv_array": "vertex_fragments", "encoding": "fragment_index_v1"}),
            fragments(truth),
        ),
    ];
    let current = truth.recipe.profile.is_current();
    for attribute in &truth.vertex_attributes {
        let path = format!("vertex_attributes/{}", attribute.name);
        let attributes = self::attribute(attribute, "attribute", current);
        parts.push((path, attributes, gathered(attribute, &rows)));
    }
    let mut numbers: BTreeMap<Vec<i64>, Vec<usize>> = BTreeMap::new();
    for (number, fragment) in truth.fragments.iter().enumerate() {
        numbers
            .entry(fragment.chunk.clone())
            .or_default()
            .push(number);
    }
    for attribute in &truth.fragment_attributes {
        let path = format!("fragment_attributes/{}", attribute.name);
        let attributes = self::attribute(attribute, "fragment_attribute", current);
        parts.push((path, attributes, gathered(attribute, &numbers)));
    }
    parts
}

/// Returns the vertices of each chunk by row.
pub(super) fn rows(truth: &ExpectedStore) -> BTreeMap<Vec<i64>, Vec<usize>> {
    let mut chunks: BTreeMap<Vec<i64>, Vec<usize>> = BTreeMap::new();
    for (number, vertex) in truth.vertices.iter().enumerate() {
        chunks.entry(vertex.chunk.clone()).or_default().push(number);
    }
    for rows in chunks.values_mut() {
        rows.sort_by_key(|number| truth.vertices[*number].row);
    }
    chunks
}

fn positions(truth: &ExpectedStore, rows: &[usize]) -> Vec<u8> {
    let values = rows
        .iter()
        .flat_map(|row| truth.vertices[*row].position.iter().copied());
    position_bytes(truth.recipe.double, values)
}

/// Encodes coordinates in the stored type.
#[expect(clippy::cast_possible_truncation, reason = "they were f32 before")]
pub(super) fn position_bytes(double: bool, values: impl Iterator<Item = f64>) -> Vec<u8> {
    if double {
        encode(&values.collect::<Vec<f64>>(), ByteOrder::Little)
    } else {
        encode(
            &values.map(|value| value as f32).collect::<Vec<f32>>(),
            ByteOrder::Little,
        )
    }
}

/// Returns the fragment index of each chunk.
fn fragments(truth: &ExpectedStore) -> Payloads {
    let mut builders: BTreeMap<Vec<i64>, FragmentIndexBuilder> = BTreeMap::new();
    let mut ends: BTreeMap<Vec<i64>, u64> = BTreeMap::new();
    for fragment in &truth.fragments {
        let builder = builders.entry(fragment.chunk.clone()).or_default();
        let end = ends.entry(fragment.chunk.clone()).or_default();
        let rows: Vec<u64> = fragment
            .vertices
            .clone()
            .map(|at| truth.vertices[at].row)
            .collect();
        if truth.recipe.shuffled {
            builder.push_list(&rows).expect("rows of a list");
        } else {
            let start = rows.first().copied().unwrap_or(*end);
            builder
                .push_range(start..start + length(rows.len()))
                .expect("a range");
            *end = start + length(rows.len());
        }
    }
    builders
        .into_iter()
        .map(|(chunk, builder)| (chunk, builder.finish()))
        .collect()
}

/// Encodes a fragment index of ranges.
pub(super) fn ranges(ranges: impl IntoIterator<Item = Range<u64>>) -> Vec<u8> {
    let mut builder = FragmentIndexBuilder::default();
    for range in ranges {
        builder.push_range(range).expect("a range");
    }
    builder.finish()
}

/// Returns the rows of an attribute that each cell holds.
pub(super) fn gathered(
    attribute: &ExpectedAttribute,
    cells: &BTreeMap<Vec<i64>, Vec<usize>>,
) -> Payloads {
    let cell = |rows: &Vec<usize>| -> Vec<u8> {
        match &attribute.values {
            ExpectedValues::Numbers { .. } => rows
                .iter()
                .flat_map(|row| attribute.row(*row).to_vec())
                .collect(),
            ExpectedValues::Words { codes, words } => {
                let codes: Vec<Code> = rows
                    .iter()
                    .map(|row| {
                        if attribute.missing[*row] {
                            Code::Missing
                        } else {
                            Code::Category(codes[*row])
                        }
                    })
                    .collect();
                code_dtype(attribute, words)
                    .encode(&codes)
                    .expect("codes of the dictionary")
            }
        }
    };
    cells
        .iter()
        .map(|(chunk, rows)| (chunk.clone(), cell(rows)))
        .collect()
}

/// Returns the type of dictionary codes.
pub(super) fn code_dtype(attribute: &ExpectedAttribute, words: &[String]) -> CodeDtype {
    let count = u32::try_from(words.len()).unwrap_or(u32::MAX);
    if attribute.missing.contains(&true) {
        CodeDtype::with_missing(count).expect("a small dictionary")
    } else {
        CodeDtype::new(count)
    }
}

/// Returns the metadata of an attribute.
pub(super) fn attribute(attribute: &ExpectedAttribute, tag: &str, current: bool) -> Value {
    let mut attributes = json!({"zv_array": tag, "name": attribute.name});
    match &attribute.values {
        ExpectedValues::Numbers { kind, columns, .. } => {
            attributes["dtype"] = json!(kind.name());
            if current {
                let shape: Vec<u32> = (*columns > 1).then_some(*columns).into_iter().collect();
                attributes["row_shape"] = json!(shape);
            }
        }
        ExpectedValues::Words { words, .. } => {
            let stored = code_dtype(attribute, words);
            attributes["dtype"] = json!(stored.dtype().kind().name());
            attributes["encoding"] = json!("dictionary");
            attributes["categories"] = json!(words);
            attributes["ordered"] = json!(false);
            if current {
                attributes["row_shape"] = json!([]);
            }
            if let Some(fill) = stored.missing() {
                attributes["_FillValue"] = json!(fill);
            }
        }
    }
    attributes
}

/// Returns a link as chunks and rows.
pub(super) fn record(truth: &ExpectedStore, ends: &[usize]) -> Record {
    let ends = ends.iter().map(|end| &truth.vertices[*end]);
    ends.map(|vertex| (vertex.chunk.clone(), vertex.row))
        .collect()
}

/// Returns the manifest of each object, in blocks of any mode.
pub(super) fn manifests(truth: &ExpectedStore, random: &mut Random) -> Vec<Vec<u8>> {
    let arity = arity(truth);
    let objects = truth.objects.iter().flatten();
    let manifest = objects.map(|object| {
        let mut builder = ObjectManifestBuilder::new(arity);
        let mut left = object.fragments.as_slice();
        while let Some(first) = left.first() {
            let chunk = &truth.fragments[*first].chunk;
            let same = left
                .iter()
                .take_while(|at| truth.fragments[**at].chunk == *chunk)
                .count();
            let take = 1 + random.below(same);
            let numbers: Vec<u32> = left[..take]
                .iter()
                .map(|at| truth.fragments[*at].number)
                .collect();
            match numbers.as_slice() {
                [one] if random.chance(80) => builder.push_single(chunk, *one),
                numbers => builder.push_list(chunk, numbers),
            }
            .expect("a block");
            left = &left[take..];
        }
        builder.finish()
    });
    manifest.collect()
}

/// Writes attributes of objects and groups, and groups, as plain arrays.
pub(super) fn tables(truth: &ExpectedStore, files: &mut Files) {
    for attribute in &truth.object_attributes {
        let ExpectedValues::Numbers {
            kind,
            columns,
            bytes,
        } = &attribute.values
        else {
            continue;
        };
        let attributes = json!({
            "zv_array": "object_attribute", "name": attribute.name, "dtype": kind.name(),
            "shape": shape(attribute), "fill_sentinel_meaning": "absent",
        });
        let rows = attribute.missing.len();
        let chunk = if files.random().chance(30) {
            65536
        } else {
            1 + files.random().below(rows + 1)
        };
        let numbers = Numbers {
            kind: *kind,
            columns: *columns,
            chunk,
            fill: (absent_json(*kind), super::columns::absent(*kind)),
            bytes,
        };
        files.numbers(
            &format!("0/object_attributes/{}", attribute.name),
            attributes,
            &numbers,
        );
    }
    if !truth.object_attributes.is_empty() {
        files.group("0/object_attributes", &json!({}));
    }
    let Some(groups) = &truth.groups else {
        return;
    };
    let mut ranges = serde_json::Map::new();
    let mut items = Vec::new();
    for (number, members) in groups.iter().enumerate() {
        let runs = members.windows(2).all(|pair| pair[1] == pair[0] + 1);
        if let (true, Some(first), Some(last)) = (runs, members.first(), members.last())
            && files.random().chance(60)
        {
            ranges.insert(number.to_string(), json!([first, last + 1]));
            items.push(Vec::new());
        } else {
            items.push(zvf_format::groups::encode_list(members));
        }
    }
    let mut attributes = json!({"zv_array": "groups", "num_groups": groups.len()});
    if !ranges.is_empty() {
        attributes["group_ranges"] = Value::Object(ranges);
    }
    files.strings("0/groups", attributes, &items, groups.len());
    files.group("0/group_attributes", &json!({}));
    for attribute in &truth.group_attributes {
        let ExpectedValues::Numbers {
            kind,
            columns,
            bytes,
        } = &attribute.values
        else {
            continue;
        };
        let attributes = json!({
            "zv_array": "groupings_attribute", "name": attribute.name, "dtype": kind.name(),
            "shape": shape(attribute),
        });
        let numbers = Numbers {
            kind: *kind,
            columns: *columns,
            chunk: groups.len(),
            fill: (json!(0.0), vec![0; kind.size()]),
            bytes,
        };
        files.numbers(
            &format!("0/group_attributes/{}", attribute.name),
            attributes,
            &numbers,
        );
    }
}

/// Returns the number of rows, and of columns if there are several.
pub(super) fn shape(attribute: &ExpectedAttribute) -> Value {
    match columns(attribute) {
        Some(columns) => json!([attribute.missing.len(), columns]),
        None => json!([attribute.missing.len()]),
    }
}

fn absent_json(kind: Number) -> Value {
    match kind {
        Number::Float32 => json!("NaN"),
        Number::Int32 => json!(i32::MIN),
        _ => json!(255),
    }
}

/// Returns the numbers of a row, if there are several.
pub(super) fn columns(attribute: &ExpectedAttribute) -> Option<u32> {
    match &attribute.values {
        ExpectedValues::Numbers { columns, .. } if *columns > 1 => Some(*columns),
        _ => None,
    }
}

/// Returns the length of a chunk key.
pub(super) fn arity(truth: &ExpectedStore) -> usize {
    truth.axes.len() + usize::from(truth.chunked_by.is_some())
}

/// Converts a count to the type of the format.
pub(super) fn length(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
