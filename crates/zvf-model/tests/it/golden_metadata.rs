//! Root and level metadata of every recorded store, compared with the results of the reference
//! readers.

use serde_json::{Value as Json, json};
use zvf_model::{
    generation::Generation,
    grid::{Bounds, ChunkShape},
    level::{LevelId, LevelMetadata},
    root::{Axis, RootMetadata},
    root::{CrossLevel, CrossLevelDepth},
    word::Word,
};

use crate::store::{Store, all, report};

#[test]
fn golden_root_and_levels() {
    let (mut roots, mut levels, mut read) = (0, 0, 0);
    for store in all() {
        let root = store.root();
        let old = store.generation != Generation::V0_9;
        let recorded = &store.expected[if old { "root_attrs" } else { "root" }];
        check_root(&store, &root, &root_as_read(recorded), false);
        let meta = &store.expected["meta"];
        if !meta.is_null() {
            check_root(&store, &root, &meta["root"], true);
            read += 1;
        }
        assert_eq!(root.notes, [], "{}", store.name);
        assert!(root.unknown.is_empty(), "{}", store.name);
        assert_eq!(root.other.contains_key("ome"), !old, "{}", store.name);
        roots += 1;
        for id in store.levels() {
            let level = store.level(id);
            let name = id.to_string();
            if let Some(want) = meta["levels"].get(&name) {
                check_level(&store, &level, want);
            }
            let field = if old { "attrs" } else { "attributes" };
            let attributes = &store.expected["levels"][&name][field];
            if let Some(want) = attributes.get("zarr_vectors_level") {
                check_level_as_written(&store, &level, want);
            }
            assert_eq!(level.notes, [], "{}/{name}", store.name);
            assert!(level.unknown.is_empty(), "{}/{name}", store.name);
            let scale = level.scale(&root).unwrap();
            assert_eq!(scale.len(), root.axes.len());
            levels += 1;
        }
    }
    assert_eq!((roots, levels), (133, 154));
    report(format_args!(
        "metadata of {roots} roots and {levels} levels as written, {read} stores as the reference read them"
    ));
}

/// Returns the block in the form of a reader: all fields, including defaults.
fn root_as_read(attributes: &Json) -> Json {
    let mut read = attributes["zarr_vectors"].clone();
    let fields = read.as_object_mut().unwrap();
    for (field, default) in [
        ("crs", Json::Null),
        ("links_convention", json!("implicit_sequential")),
        ("object_index_convention", json!("standard")),
        ("cross_chunk_strategy", json!("explicit_links")),
        ("reduction_factor", json!(8)),
        ("base_bin_shape", Json::Null),
        ("cross_level_depth", json!(1)),
        ("cross_level_storage", json!("explicit")),
        ("format_capabilities", json!([])),
    ] {
        fields.entry(field).or_insert(default);
    }
    let axes = attributes["multiscales"][0]["axes"].clone();
    fields.insert("spatial_index_dims".to_owned(), axes);
    read
}

fn check_root(store: &Store, root: &RootMetadata, want: &Json, as_read: bool) {
    let name = &store.name;
    let axis = |axis: &Axis| {
        let mut json = json!({"name": axis.name, "type": axis.kind});
        if let Some(unit) = &axis.unit {
            json["unit"] = json!(unit);
        }
        json
    };
    let bounds = |bbox: &Bounds| json!([bbox.lower(), bbox.upper()]);
    let version = root.version.unwrap().to_string();
    let got = [
        ("zv_version", json!(version)),
        ("spatial_index_dims", root.axes.iter().map(axis).collect()),
        ("chunk_shape", json!(root.chunk_shape.extents())),
        ("bounds", bounds(root.bounds.as_ref().unwrap())),
        (
            "geometry_types",
            root.geometry_kinds
                .iter()
                .map(|kind| json!(kind.as_str()))
                .collect(),
        ),
        ("crs", json!(root.crs)),
        (
            "links_convention",
            json!(root.links_convention.clone().unwrap_or_default().as_str()),
        ),
        (
            "object_index_convention",
            json!(
                root.object_index_convention
                    .clone()
                    .unwrap_or_default()
                    .as_str()
            ),
        ),
        (
            "cross_chunk_strategy",
            json!(
                root.cross_chunk_strategy
                    .clone()
                    .unwrap_or_default()
                    .as_str()
            ),
        ),
        (
            "reduction_factor",
            json!(root.reduction_factor.unwrap_or(8)),
        ),
        (
            "base_bin_shape",
            json!(root.base_bin_shape.as_ref().map(ChunkShape::extents)),
        ),
        (
            "cross_level_depth",
            json!(root.cross_level_depth.map_or(1, CrossLevelDepth::number)),
        ),
        (
            "cross_level_storage",
            json!(
                root.cross_level_storage
                    .clone()
                    .unwrap_or(Word::Known(CrossLevel::Explicit))
                    .as_str()
            ),
        ),
        ("format_capabilities", json!(root.capabilities)),
    ];
    let mut compared = 0;
    for (field, got) in &got {
        same(&want[field], got, &format!("{name} {field}"));
        compared += 1;
    }
    // Nothing recorded is left uncompared.
    let rest = [
        ("attribute_specs", json!(root.attribute_specs)),
        ("coordinate_offset", json!(root.coordinate_offset)),
    ];
    for (field, got) in rest {
        if let Some(want) = want.get(field) {
            same(want, &got, &format!("{name} {field}"));
            compared += 1;
        }
    }
    assert_eq!(
        want.as_object().unwrap().len(),
        compared,
        "{name} {want} {as_read}"
    );
}

/// Compares numbers by value: 1 equals 1.0.
#[track_caller]
fn same(want: &Json, got: &Json, what: &str) {
    assert_eq!(floats(want), floats(got), "{what}");
}

fn floats(json: &Json) -> Json {
    match json {
        Json::Number(number) => json!(number.as_f64()),
        Json::Array(items) => items.iter().map(floats).collect(),
        _ => json.clone(),
    }
}

fn check_level(store: &Store, level: &LevelMetadata, want: &Json) {
    let chunking = level.attribute_chunking.as_ref();
    let shape = level
        .bin_shape
        .as_ref()
        .map(|shape| shape.extents().to_vec());
    let got = json!({
        "level": level.level.number(),
        "vertex_count": level.vertex_count,
        "arrays_present": level.arrays_present,
        "bin_shape": shape,
        "bin_ratio": level.bin_ratio,
        "chunk_shape": level.chunk_shape.as_ref().map(ChunkShape::extents),
        "object_sparsity": level.object_sparsity,
        "coarsening_method": level.coarsening_method,
        "parent_level": level.parent_level.map(LevelId::number),
        "chunk_dims": chunking.map(|chunking| &chunking.dims),
        "chunk_attribute_name": chunking.map(|chunking| &chunking.name),
        "chunk_attribute_values": chunking.map(|chunking| &chunking.values),
        "preserves_object_ids": level.preserves_object_ids,
        "inherited_num_objects": level.inherited_num_objects,
        "shared_fragments": level.shared_fragments,
        "fragments_tile": level.fragments_tile,
    });
    for (field, want) in want.as_object().unwrap() {
        let got = got
            .get(field)
            .unwrap_or_else(|| panic!("{field} is not read"));
        same(
            want,
            got,
            &format!("{}/{} {field}", store.name, level.level),
        );
    }
}

/// Compares fields with those in the file; absent fields must be absent.
fn check_level_as_written(store: &Store, level: &LevelMetadata, want: &Json) {
    check_level(store, level, want);
    let flags = [
        ("preserves_object_ids", level.preserves_object_ids),
        ("shared_fragments", level.shared_fragments),
        ("fragments_tile", level.fragments_tile),
    ];
    for (field, got) in flags {
        assert_eq!(want.get(field).is_some(), got, "{} {field}", store.name);
    }
    let present = [
        ("chunk_shape", level.chunk_shape.is_some()),
        ("chunk_dims", level.attribute_chunking.is_some()),
        (
            "inherited_num_objects",
            level.inherited_num_objects.is_some(),
        ),
    ];
    for (field, got) in present {
        assert_eq!(want.get(field).is_some(), got, "{} {field}", store.name);
    }
}
