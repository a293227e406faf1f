//! A small store with every part of the format.
#![expect(
    clippy::needless_pass_by_value,
    reason = "tests pass the values that they write"
)]

use serde_json::{Value, json};
use zvf_format::{
    fragment::FragmentIndexBuilder, manifest::ObjectManifestBuilder, numeric::ByteOrder, vlen,
};
use zvf_testkit::{damage::apply, golden::Files};

/// Two polylines in two chunks of the plane, owned by objects 3 and 7.
pub(super) fn small() -> Files {
    let mut files = Files::new();
    group(
        &mut files,
        "",
        json!({
            "zarr_vectors": {
                "zv_version": "0.9.2", "format_capabilities": [], "chunk_shape": [10.0, 10.0],
                "bounds": [[0.5, 0.5], [19.5, 9.5]], "geometry_types": ["streamline"],
                "links_convention": "implicit_sequential", "object_index_convention": "standard",
                "cross_chunk_strategy": "explicit_links",
            },
            "multiscales": [{
                "version": "0.4", "name": "default",
                "axes": [{"name": "x", "type": "space"}, {"name": "y", "type": "space"}],
                "datasets": [{"path": "0", "coordinateTransformations": [
                    {"type": "scale", "scale": [1.0, 1.0]},
                    {"type": "translation", "translation": [5.0, 5.0]},
                ]}],
                "metadata": {"format": "zarr_vectors"},
            }],
        }),
    );
    let level = json!({"zarr_vectors_level": {
        "level": 0, "object_sparsity": 1.0, "vertex_count": 6, "coarsening_method": "none",
        "parent_level": null, "fragments_tile": true,
        "arrays_present": ["vertices", "vertex_attributes", "fragment_attributes", "object_index"],
    }});
    group(&mut files, "0", level);
    let positions: [f32; 8] = [0.5, 0.5, 9.0, 1.0, 1.0, 5.0, 2.0, 9.5];
    let more: [f32; 4] = [10.0, 1.0, 19.5, 2.0];
    per_chunk(
        &mut files,
        "0/vertices",
        json!({"zv_array": "vertices", "dtype": "float32", "encoding": "raw"}),
        [bytes(&positions), bytes(&more)],
    );
    per_chunk(
        &mut files,
        "0/vertex_fragments",
        json!({"zv_array": "vertex_fragments", "encoding": "fragment_index_v1"}),
        [ranges(&[(0, 2), (2, 4)]), ranges(&[(0, 2)])],
    );
    for family in [
        "vertex_attributes",
        "fragment_attributes",
        "object_attributes",
    ] {
        group(&mut files, &format!("0/{family}"), json!({}));
    }
    let dtype = "float32";
    per_chunk(
        &mut files,
        "0/vertex_attributes/w",
        json!({"zv_array": "attribute", "name": "w", "dtype": dtype, "row_shape": []}),
        [bytes(&[1.0, 2.0, 3.0, f32::NAN]), bytes(&[5.0, 6.0])],
    );
    per_chunk(
        &mut files,
        "0/vertex_attributes/part",
        json!({
            "zv_array": "attribute", "name": "part", "dtype": "uint8", "row_shape": [],
            "encoding": "dictionary", "categories": ["axon", "soma"], "ordered": false,
        }),
        [vec![0, 1, 1, 0], vec![1, 1]],
    );
    per_chunk(
        &mut files,
        "0/fragment_attributes/object_id",
        json!({"zv_array": "fragment_attribute", "name": "object_id", "dtype": "int64", "row_shape": []}),
        [int64s(&[3, 7]), int64s(&[3])],
    );
    objects(&mut files);
    files
}

/// Adds two objects, two groups, and attributes of both.
fn objects(files: &mut Files) {
    group(
        files,
        "0/object_index",
        json!({
            "zv_array": "object_index", "num_objects": 2, "num_present": 2, "sid_ndim": 2,
            "layout": "vlen_manifests_v2", "object_ids_sorted": true,
        }),
    );
    let manifests = [
        manifest(&[([0, 0], 0), ([1, 0], 0)]),
        manifest(&[([0, 0], 1)]),
    ];
    strings(files, "0/object_index/manifests", json!({}), &manifests);
    let ids = int64s(&[3, 7]);
    numbers(
        files,
        "0/object_index/object_ids",
        json!({}),
        ("int64", 2),
        ids,
    );
    let says = json!({
        "zv_array": "object_attribute", "name": "score", "dtype": "float32", "shape": [2],
        "fill_sentinel_meaning": "absent",
    });
    let scores = bytes(&[0.5, 1.5]);
    numbers(
        files,
        "0/object_attributes/score",
        says,
        ("float32", 2),
        scores,
    );
    let says = json!({"zv_array": "groups", "num_groups": 2, "group_ranges": {"1": [7, 8]}});
    strings(files, "0/groups", says, &[int64s(&[7, 3]), Vec::new()]);
    group(files, "0/group_attributes", json!({}));
    let says = json!({
        "zv_array": "groupings_attribute", "name": "share", "dtype": "float32", "shape": [2],
    });
    let shares = bytes(&[0.25, 0.75]);
    numbers(
        files,
        "0/group_attributes/share",
        says,
        ("float32", 2),
        shares,
    );
}

/// The vertices of [`small`] as points in two bins per chunk, without objects.
pub(super) fn binned() -> Files {
    let mut files = small();
    for gone in [
        "object_index",
        "object_attributes",
        "groups",
        "group_attributes",
    ] {
        remove(&mut files, &format!("0/{gone}"));
    }
    remove(&mut files, "0/fragment_attributes");
    let root = "zarr.json";
    set(
        &mut files,
        root,
        &["zarr_vectors", "geometry_types"],
        json!(["point_cloud"]),
    );
    set(
        &mut files,
        root,
        &["zarr_vectors", "base_bin_shape"],
        json!([10.0, 5.0]),
    );
    set(
        &mut files,
        "0/zarr.json",
        &["zarr_vectors_level", "arrays_present"],
        json!(["vertices"]),
    );
    cell(&mut files, "0/vertex_fragments/c/1/0", |payload| {
        *payload = ranges(&[(0, 2), (2, 2)]);
    });
    files
}

pub(super) fn group(files: &mut Files, path: &str, attributes: Value) {
    let node = json!({"zarr_format": 3, "node_type": "group", "attributes": attributes});
    put(
        files,
        &file(path, "zarr.json"),
        node.to_string().into_bytes(),
    );
}

fn array(files: &mut Files, path: &str, attributes: Value, about: (Value, Value, &str, &str)) {
    let (shape, chunk, data_type, codec) = about;
    let fill = match data_type {
        "variable_length_bytes" => json!(""),
        "float32" => json!("NaN"),
        _ => json!(0),
    };
    let node = json!({
        "shape": shape, "data_type": data_type, "fill_value": fill,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "codecs": [{"name": codec, "configuration": match codec {
            "bytes" => json!({"endian": "little"}),
            _ => json!({}),
        }}],
        "attributes": attributes, "zarr_format": 3, "node_type": "array",
        "storage_transformers": [],
    });
    put(
        files,
        &file(path, "zarr.json"),
        node.to_string().into_bytes(),
    );
}

/// Adds an array with one element for each of the two chunks.
fn per_chunk(files: &mut Files, path: &str, mut says: Value, cells: [Vec<u8>; 2]) {
    says["nonempty_chunks"] = json!(["0.0", "1.0"]);
    let about = (
        json!([2, 1]),
        json!([1, 1]),
        "variable_length_bytes",
        "vlen-bytes",
    );
    array(files, path, says, about);
    for (at, cell) in cells.iter().enumerate() {
        put(
            files,
            &format!("{path}/c/{at}/0"),
            vlen::encode(&[cell]).unwrap(),
        );
    }
}

fn strings(files: &mut Files, path: &str, says: Value, items: &[Vec<u8>]) {
    let count = items.len();
    let about = (
        json!([count]),
        json!([count]),
        "variable_length_bytes",
        "vlen-bytes",
    );
    array(files, path, says, about);
    put(files, &format!("{path}/c/0"), vlen::encode(items).unwrap());
}

pub(super) fn numbers(
    files: &mut Files,
    path: &str,
    says: Value,
    of: (&str, usize),
    bytes: Vec<u8>,
) {
    let (kind, count) = of;
    array(
        files,
        path,
        says,
        (json!([count]), json!([count]), kind, "bytes"),
    );
    put(files, &format!("{path}/c/0"), bytes);
}

fn file(path: &str, name: &str) -> String {
    match path {
        "" => name.to_owned(),
        path => format!("{path}/{name}"),
    }
}

pub(super) fn put(files: &mut Files, path: &str, bytes: Vec<u8>) {
    files.retain(|(name, _)| name != path);
    files.push((path.to_owned(), bytes));
}

pub(super) fn get(files: &Files, path: &str) -> Vec<u8> {
    let found = files.iter().find(|(name, _)| name == path);
    found.unwrap_or_else(|| panic!("{path}")).1.clone()
}

pub(super) fn remove(files: &mut Files, path: &str) {
    let before = files.len();
    apply(files, &json!({"op": "rm", "file": path}));
    assert_ne!(before, files.len(), "{path}");
}

/// Sets an attribute.
pub(super) fn set(files: &mut Files, file: &str, path: &[&str], value: Value) {
    let path: Vec<&str> = ["attributes"].iter().chain(path).copied().collect();
    apply(
        files,
        &json!({"op": "set", "file": file, "path": path, "value": value}),
    );
}

/// Removes an attribute.
pub(super) fn unset(files: &mut Files, file: &str, path: &[&str]) {
    let path: Vec<&str> = ["attributes"].iter().chain(path).copied().collect();
    apply(files, &json!({"op": "del", "file": file, "path": path}));
}

/// Edits a payload stored as a single framed item.
pub(super) fn cell(files: &mut Files, path: &str, change: impl FnOnce(&mut Vec<u8>)) {
    items(files, path, |items| change(&mut items[0]));
}

/// Edits the byte strings of a file.
pub(super) fn items(files: &mut Files, path: &str, change: impl FnOnce(&mut Vec<Vec<u8>>)) {
    let file = get(files, path);
    let frame = vlen::VlenFrame::parse(&file).unwrap();
    let mut items: Vec<Vec<u8>> = frame.iter().map(<[u8]>::to_vec).collect();
    change(&mut items);
    put(files, path, vlen::encode(&items).unwrap());
}

pub(super) fn bytes(values: &[f32]) -> Vec<u8> {
    zvf_format::numeric::encode(values, ByteOrder::Little)
}

pub(super) fn int64s(values: &[i64]) -> Vec<u8> {
    zvf_format::numeric::encode(values, ByteOrder::Little)
}

pub(super) fn ranges(ranges: &[(u64, u64)]) -> Vec<u8> {
    let mut builder = FragmentIndexBuilder::default();
    for (start, end) in ranges {
        builder.push_range(*start..*end).unwrap();
    }
    builder.finish()
}

pub(super) fn manifest(pieces: &[([i64; 2], u32)]) -> Vec<u8> {
    let mut builder = ObjectManifestBuilder::new(2);
    for (chunk, fragment) in pieces {
        builder.push_single(chunk, *fragment).unwrap();
    }
    builder.finish()
}
