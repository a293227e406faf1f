//! Stores of generation 0.9.

use serde_json::{Value, json};

use super::{
    ExpectedStore,
    files::{Files, GridOf, Numbers},
    links, parts,
};

/// Writes a level, and records the order of its links.
pub(super) fn write(truth: &mut ExpectedStore, files: &mut Files) {
    let grid = grid(truth);
    for (part, attributes, cells) in parts::per_chunk(truth) {
        files.per_chunk(&format!("0/{part}"), attributes, &cells, &grid);
    }
    for family in ["vertex_attributes", "fragment_attributes"] {
        files.group(&format!("0/{family}"), &json!({}));
    }
    links::write(truth, files, &grid);
    objects(truth, files, "0");
    if truth.objects.is_some() {
        parts::tables(truth, files);
    }
}

/// Returns the grid of chunks.
pub(super) fn grid(truth: &ExpectedStore) -> GridOf {
    let chunks = truth.chunks();
    let arity = parts::arity(truth);
    let of = |axis: usize| chunks.iter().map(move |chunk| chunk[axis]);
    let leading = truth.chunked_by.as_ref();
    GridOf {
        min: (0..arity).map(|axis| of(axis).min().unwrap_or(0)).collect(),
        max: (0..arity).map(|axis| of(axis).max().unwrap_or(0)).collect(),
        leading: leading.map(|(_, values)| i64::try_from(values.len()).unwrap_or(1)),
    }
}

/// Writes the object index of a level.
pub(super) fn objects(truth: &ExpectedStore, files: &mut Files, level: &str) {
    let Some(objects) = &truth.objects else {
        return;
    };
    let arity = parts::arity(truth);
    let ids: Vec<i64> = objects.iter().map(|object| object.id).collect();
    let are_rows = ids.iter().zip(0..).all(|(id, row)| *id == row);
    let with_ids = !are_rows || files.random().chance(50);
    let mut attributes = json!({
        "zv_array": "object_index", "num_objects": objects.len(), "sid_ndim": arity,
        "layout": if with_ids { "vlen_manifests_v2" } else { "vlen_manifests_v1" },
    });
    if with_ids {
        attributes["num_present"] =
            json!(objects.iter().filter(|o| !o.fragments.is_empty()).count());
        attributes["object_ids_sorted"] = json!(ids.is_sorted());
    }
    files.group(&format!("{level}/object_index"), &attributes);
    let manifests = parts::manifests(truth, files.random());
    let chunk = if files.random().chance(50) {
        objects.len()
    } else {
        1 + files.random().below(5)
    };
    files.strings(
        &format!("{level}/object_index/manifests"),
        json!({}),
        &manifests,
        chunk,
    );
    if with_ids {
        let bytes: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
        let numbers = Numbers {
            kind: zvf_format::numeric::Kind::Int64,
            columns: 1,
            chunk: ids.len(),
            fill: (json!(0), vec![0; 8]),
            bytes: &bytes,
        };
        files.numbers(
            &format!("{level}/object_index/object_ids"),
            json!({}),
            &numbers,
        );
    }
}

/// Returns the metadata of a level.
pub(super) fn level(truth: &ExpectedStore) -> Value {
    let tiles = !truth.recipe.shuffled && truth.recipe.seed.is_multiple_of(2);
    let mut level = parts::level(truth);
    if tiles {
        level["zarr_vectors_level"]["fragments_tile"] = json!(true);
    }
    level
}
