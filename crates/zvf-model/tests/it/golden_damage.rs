//! The recorded damage to metadata: each case is an error, a note, or a changed value.

use serde_json::Value as Json;
use zvf_format::path::Delta;
use zvf_model::{
    array::{LinkArray, LinkFamily, ObjectIndex, Presence},
    level::{LevelId, LevelMetadata},
    metadata::{MetadataError, MetadataNote},
    zarr::Node,
};
use zvf_testkit::{
    damage,
    golden::{Files, Golden},
};

use crate::store::{Store, key, report, stores};

/// Expected effect of a case.
enum Shown {
    /// An error whose message contains this text.
    Error(&'static str),
    /// A note whose message contains this text.
    Note(&'static str),
    /// A changed value.
    Value,
    /// A missing node.
    Absent(&'static str),
}
use Shown::{Absent, Error, Note, Value};

const CASES: &[(&str, Shown)] = &[
    (
        "no_zarr_vectors_block",
        Error("zarr.json: attributes.zarr_vectors: missing"),
    ),
    ("no_ome_block", Value),
    (
        "no_zv_version",
        Note("attributes.zarr_vectors.zv_version: missing"),
    ),
    ("old_zv_version", Error("zv_version 0.5.0")),
    (
        "future_zv_version",
        Error("format version 9.9.9 is unknown"),
    ),
    (
        "no_chunk_shape",
        Error("attributes.zarr_vectors.chunk_shape: missing"),
    ),
    (
        "no_bounds",
        Error("attributes.zarr_vectors.bounds: missing"),
    ),
    ("no_multiscales", Error("attributes.multiscales: missing")),
    ("chunk_shape_rank", Error("chunk_shape: 3 values, not 2")),
    (
        "chunk_shape_zero",
        Error("chunk_shape[0]: 0 is not greater than 0"),
    ),
    ("bounds_rank", Note("bounds[0]: 1 values, not 2; ignored")),
    (
        "links_convention",
        Note("\"telepathy\" is not a convention of links; used unchanged"),
    ),
    (
        "objidx_convention",
        Note("\"other\" is not a convention of the object index"),
    ),
    (
        "cross_chunk_strategy",
        Note("\"other\" is not a strategy for links between chunks"),
    ),
    // Informational names, which readers ignore as the format requires.
    ("unknown_capability", Value),
    ("geometry_types_empty", Value),
    (
        "geometry_type_unknown",
        Note("geometry_types[0]: \"blob\" is not a kind of geometry"),
    ),
    (
        "bin_not_dividing",
        Note("bin extent 5 of axis 0 does not divide the chunk's 32"),
    ),
    (
        "bin_rank",
        Note("base_bin_shape: 1 values, not 2; the default is used"),
    ),
    (
        "level_meta_missing",
        Note("attributes.zarr_vectors_level: missing"),
    ),
    (
        "level_no_vertex_count",
        Note("zarr_vectors_level.vertex_count: missing"),
    ),
    ("no_vertices", Absent("0/vertices")),
    ("no_vertex_fragments", Absent("0/vertex_fragments")),
    ("no_level", Absent("0")),
    (
        "nonempty_chunks_missing",
        Note("attributes.nonempty_chunks: missing"),
    ),
    ("graph_convention", Value),
    ("graph_physical_records", Value),
    (
        "links_segment_malformed",
        Error("\"1.0\": number 0: not a number in canonical form"),
    ),
    (
        "links_segment_negative",
        Error("attributes.offsets: [[1,0]] disagrees with the array's path"),
    ),
    (
        "links_family_meta_missing",
        Note("attributes.link_width: missing"),
    ),
    ("links_missing_chunk", Value),
    (
        "objidx_layout_unknown",
        Error("attributes.layout: \"flat\" is not a layout of manifests"),
    ),
    ("objidx_ids_missing", Absent("0/object_index/object_ids")),
    ("mesh_link_width", Error("2 offsets, not 1")),
    (
        "levels_not_contiguous",
        Note("zarr_vectors_level.level: 1 disagrees with the name of the level"),
    ),
    (
        "level_chunk_shape_not_multiple",
        Note("chunk extent 12 of axis 0 is not a whole multiple of the root's 8"),
    ),
    ("level_larger_than_parent", Value),
];

#[test]
fn golden_damage_to_metadata_is_detected() {
    let golden = Golden::open("zvf-09");
    let cases = golden.json("invalid_cases.json");
    let stores = stores("zvf-09");
    let (mut seen, mut cells) = (0, 0);
    for case in cases.as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let base = format!("zvf-09/{}", case["base"].as_str().unwrap());
        let base = stores.iter().find(|store| store.name == base).unwrap();
        let edits = case["edits"].as_array().unwrap();
        let Some((_, shown)) = CASES.iter().find(|(listed, _)| *listed == name) else {
            // Damage to the bytes of cells is detected by their decoders.
            let in_cell = |edit: &Json| edit["file"].as_str().unwrap().contains("/c/");
            assert!(edits.iter().all(in_cell), "{name} is not in the table");
            cells += 1;
            continue;
        };
        let mut damaged = base.clone();
        damaged.name = name.to_owned();
        for edit in edits {
            apply(&mut damaged, edit);
        }
        check(name, base, &damaged, shown);
        seen += 1;
    }
    assert_eq!(seen, CASES.len());
    report(format_args!(
        "damage: {seen} damaged stores seen in their metadata, {cells} have damage in cells only"
    ));
}

fn check(name: &str, base: &Store, damaged: &Store, shown: &Shown) {
    let (mut sound, mut broken) = (Vec::new(), Vec::new());
    let before = read(base, &mut sound).unwrap();
    assert_eq!(sound, [""; 0], "{name}");
    let after = read(damaged, &mut broken);
    match shown {
        Error(message) => {
            let error = after
                .err()
                .unwrap_or_else(|| panic!("{name} is not an error"));
            assert!(error.contains(message), "{name}: {error}");
        }
        Note(message) => {
            after.unwrap();
            let found = broken.iter().any(|note| note.contains(message));
            assert!(found, "{name}: {broken:?}");
        }
        Value => {
            assert_ne!(before, after.unwrap(), "{name}");
            assert_eq!(broken, [""; 0], "{name}");
        }
        Absent(path) => {
            assert!(before.contains(&format!("node {path}\n")), "{name}");
            assert!(
                !after.unwrap().contains(&format!("node {path}\n")),
                "{name}"
            );
        }
    }
}

/// Returns all metadata of a store as text.
fn read(store: &Store, notes: &mut Vec<String>) -> Result<String, String> {
    fn text(error: impl std::fmt::Display) -> String {
        error.to_string()
    }
    let mut keep = |found: &[MetadataNote]| notes.extend(found.iter().map(ToString::to_string));
    let mut all = Vec::new();
    let root = store.try_root().map_err(text)?;
    keep(&root.notes);
    all.push(format!("{root:?}"));
    let detection = store.evidence(LevelId::FULL).detect().map_err(text)?;
    all.push(format!("{detection:?}"));
    for id in store.levels() {
        let path = id.to_string();
        let read = LevelMetadata::parse(&key(&path), id, &store.attributes(&path), &root);
        let level = read.map_err(text)?;
        keep(&level.notes);
        all.push(format!("{level:?}"));
        let arity = level.arity(&root);
        for file in store.files.keys() {
            let Some(node) = file.strip_suffix("/zarr.json") else {
                continue;
            };
            let parts: Vec<&str> = node.split('/').collect();
            if parts[0] != path {
                continue;
            }
            all.push(format!("node {node}\n"));
            let parsed = store.node(node).unwrap();
            let (value, found) = read_node(store, &parts[1..], &parsed, arity).map_err(text)?;
            keep(&found);
            all.push(value);
        }
    }
    Ok(all.concat())
}

fn read_node(
    store: &Store,
    parts: &[&str],
    node: &Node,
    arity: usize,
) -> Result<(String, Vec<MetadataNote>), MetadataError> {
    let at = key("0");
    let attributes = node.attributes();
    Ok(match (parts, node) {
        (["links", delta], _) => {
            let delta = Delta::parse(delta).unwrap();
            let family = LinkFamily::parse(&at, delta, attributes)?;
            (format!("{:?}", family.value), family.notes)
        }
        (["links", d, segment], Node::Array(_)) => {
            let delta = Delta::parse(d).unwrap();
            let family = store.attributes(&format!("0/links/{d}"));
            let Some(family) = LinkFamily::parse(&at, delta, &family)?.value else {
                return Ok(Default::default());
            };
            let array = LinkArray::parse(&at, segment, attributes, &family)?;
            (format!("{:?}", array.value), array.notes)
        }
        (["object_index"], _) => {
            let index = ObjectIndex::parse(&at, attributes)?;
            (format!("{:?}", index.value), index.notes)
        }
        (["vertices" | "vertex_fragments"], Node::Array(array)) => {
            let presence = Presence::parse(&at, array, arity)?;
            (format!("{:?}", presence.value), presence.notes)
        }
        _ => Default::default(),
    })
}

/// Applies a recorded edit to the files.
fn apply(store: &mut Store, edit: &Json) {
    let mut files: Files = core::mem::take(&mut store.files).into_iter().collect();
    damage::apply(&mut files, edit);
    store.files = files.into_iter().collect();
}
