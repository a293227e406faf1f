//! Attributes of arrays, beyond those of known writers.

use serde_json::{Value as Json, json};
use zvf_format::{links::RowForm, path::Delta};
use zvf_model::{
    array::{
        CellAttribute, CompositeLinks, FragmentArray, GeometryIndex, GroupRange, Groups,
        LegacyShardIndex, LinkArray, LinkFamily, LinkStore, ObjectIndex, Padded, ParametricTypes,
        Presence, Table, VertexEncoding, Vertices,
    },
    grid::ChunkCoord,
    metadata::{Attributes, MetadataError, Noted},
    zarr::{Array, Node},
};

use crate::store::key;

fn attributes(json: &Json) -> Attributes {
    json.as_object().unwrap().clone()
}

#[track_caller]
fn refused<T: std::fmt::Debug>(read: Result<T, MetadataError>, message: &str) {
    let error = read.unwrap_err().to_string();
    assert_eq!(error, format!("k: {message}"));
}

#[track_caller]
fn notes<T>(read: Noted<T>, want: &[&str]) -> T {
    let found: Vec<String> = read.notes.iter().map(ToString::to_string).collect();
    assert_eq!(found, want);
    read.value
}

fn array(shape: &Json, data_type: &str, attributes: &Json) -> Array {
    let ones: Vec<u64> = vec![1; shape.as_array().unwrap().len()];
    let json = json!({"shape": shape, "data_type": data_type, "zarr_format": 3, "node_type": "array",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": ones}},
        "chunk_key_encoding": "default", "fill_value": 0, "codecs": ["vlen-bytes"],
        "attributes": attributes});
    match Node::from_json(&key("k"), json).unwrap() {
        Node::Array(array) => array,
        Node::Group(_) => unreachable!(),
    }
}

fn presence(attributes: &Json) -> Result<Noted<Presence>, MetadataError> {
    let array = array(&json!([3, 2]), "variable_length_bytes", attributes);
    Presence::parse(&key("k"), &array, 2)
}

#[test]
fn presence_is_sorted_as_integers() {
    let json =
        json!({"nonempty_chunks": ["-1.0", "0.1", "1.0", "-1.1"], "chunk_grid_origin": [-1, 0]});
    let presence = notes(presence(&json).unwrap(), &[]);
    let keys: Vec<String> = presence.chunks().map(|chunk| chunk.to_string()).collect();
    assert_eq!(keys, ["-1.0", "-1.1", "0.1", "1.0"]);
    let cells: Vec<Vec<u64>> = presence.cells().map(|present| present.cell).collect();
    assert_eq!(cells, [[0, 0], [0, 1], [1, 1], [2, 0]]);
    assert!(presence.contains(&ChunkCoord::new([0, 1])));
    assert!(!presence.contains(&ChunkCoord::new([0, 0])));
}

#[test]
fn presence_is_searched_along_the_first_axis() {
    let json = json!({
        "nonempty_chunks": ["-1.1", "-1.0", "0.1", "1.0"], "chunk_grid_origin": [-1, 0],
    });
    let presence = notes(presence(&json).unwrap(), &[]);
    let all: Vec<ChunkCoord> = presence.chunks().collect();
    for start in [i64::MIN, -2, -1, 0, 1, 2, i64::MAX] {
        for end in [i64::MIN, -2, -1, 0, 1, 2, i64::MAX] {
            let first = start..=end;
            let mut expected = all.clone();
            expected.retain(|chunk| first.contains(&chunk.coords()[0]) && chunk.coords()[1] == 0);
            let found = presence.chunks_where(&first, |chunk| chunk.coords()[1] == 0);
            assert_eq!(found, expected, "{first:?}");
        }
    }
}

#[test]
fn contradictory_presence_lists_are_rejected() {
    let chunks = |chunks: Json| presence(&json!({"nonempty_chunks": chunks}));
    refused(
        chunks(json!(["0.0", "0.0"])),
        "attributes.nonempty_chunks: \"0.0\" occurs twice",
    );
    refused(
        chunks(json!(["0.0", "3.0"])),
        "attributes.nonempty_chunks[1]: chunk coordinate 3 of axis 0 is outside the array's grid",
    );
    refused(
        chunks(json!(["0.0.0"])),
        "attributes.nonempty_chunks[0]: \"0.0.0\": 3 numbers, not 2",
    );
    refused(
        chunks(json!(["0.+1"])),
        "attributes.nonempty_chunks[0]: \"0.+1\": number 1: not a number in canonical form",
    );
    refused(
        chunks(json!([0])),
        "attributes.nonempty_chunks[0]: a number, not text",
    );
    refused(
        chunks(json!({})),
        "attributes.nonempty_chunks: an object, not a list",
    );
    refused(
        presence(&json!({"nonempty_chunks": [], "chunk_grid_origin": [0]})),
        "attributes.chunk_grid_origin: 1 values, not 2",
    );
    refused(
        presence(&json!({"nonempty_chunks": [], "chunk_grid_origin": [i64::MAX, 0]})),
        "shape: chunk coordinates do not fit 64 bits",
    );
    let flat = array(
        &json!([3]),
        "variable_length_bytes",
        &json!({"nonempty_chunks": []}),
    );
    refused(
        Presence::parse(&key("k"), &flat, 2),
        "shape: 1 coordinates in a grid of 2 axes",
    );
    let none = notes(
        presence(&json!({})).unwrap(),
        &["attributes.nonempty_chunks: missing; ignored"],
    );
    assert!(none.is_empty());
}

#[test]
fn padded_arrays_are_read() {
    let shape = json!([5, 6, 4, 65536, 3]);
    let padded = Padded::parse(&key("k"), &array(&shape, "float32", &json!({})), 3).unwrap();
    assert_eq!(padded.grid.shape(), [5, 6, 4]);
    assert_eq!((padded.rows, padded.columns), (65536, 3));
    let scalar = Padded::parse(&key("k"), &array(&json!([5, 9]), "int16", &json!({})), 1).unwrap();
    assert_eq!((scalar.rows, scalar.columns), (9, 1));
    let flat = array(&json!([5]), "int16", &json!({}));
    refused(Padded::parse(&key("k"), &flat, 1), "shape: 1 values, not 3");
    let bytes = array(&json!([5, 9]), "variable_length_bytes", &json!({}));
    refused(
        Padded::parse(&key("k"), &bytes, 1),
        "data_type: VariableBytes disagrees with a padded array, which holds numbers",
    );
}

#[test]
fn vertices_default_to_raw_float32() {
    let read = |json: Json| Vertices::parse(&key("k"), &attributes(&json));
    let plain = notes(read(json!({})).unwrap(), &[]);
    assert_eq!(plain.dtype.to_string(), "float32");
    assert_eq!(plain.encoding, VertexEncoding::Raw);
    let draco = notes(
        read(json!({"zvf_array": "vertices", "encoding": "draco", "dtype": ">f8"})).unwrap(),
        &[],
    );
    assert_eq!(draco.encoding, VertexEncoding::Draco);
    assert_eq!(draco.dtype.to_string(), ">f8");
    notes(
        read(json!({"zv_array": "links"})).unwrap(),
        &[
            "attributes.zv_array: \"links\" disagrees with the node's place; the node's name is used",
        ],
    );
    notes(
        read(json!({"encoding": "zip"})).unwrap(),
        &["attributes.encoding: \"zip\" is not an encoding of vertices; used unchanged"],
    );
    refused(
        read(json!({"dtype": "<U5"})),
        "attributes.dtype: \"<U5\": dtype is raw text, only numbers and bool are read",
    );
    let fragments = |json: Json| FragmentArray::parse(&key("k"), &attributes(&json));
    assert!(fragments(json!({})).is_ok());
    refused(
        fragments(json!({"encoding": "fragment_index_v2"})),
        "attributes.encoding: \"fragment_index_v2\" is not \"fragment_index_v1\"",
    );
}

#[test]
fn dictionaries_need_categories() {
    let read = |json: Json| CellAttribute::parse(&key("k"), &attributes(&json));
    let json = json!({"dtype": "int8", "encoding": "dictionary", "categories": ["a", "b"], "_FillValue": -1});
    let dictionary = notes(read(json).unwrap(), &[]).dictionary.unwrap();
    assert_eq!(
        (dictionary.categories.len(), dictionary.fill),
        (2, Some(-1))
    );
    refused(
        read(json!({"encoding": "dictionary"})),
        "attributes.categories: missing",
    );
    refused(
        read(json!({"encoding": "zip"})),
        "attributes.encoding: \"zip\" is not \"dictionary\"",
    );
    let columns = |json: Json| read(json).unwrap().value.declared_columns();
    assert_eq!(columns(json!({})), Some(1));
    assert_eq!(columns(json!({"row_shape": []})), Some(1));
    assert_eq!(
        columns(json!({"row_shape": [2, 3], "channel_names": ["x"]})),
        Some(6)
    );
    assert_eq!(columns(json!({"channel_names": ["x", "y"]})), Some(2));
    assert_eq!(columns(json!({"row_shape": [u64::MAX, 2]})), None);
}

fn family(json: &Json) -> Result<Noted<Option<LinkFamily>>, MetadataError> {
    LinkFamily::parse(&key("k"), Delta::INTRA, &attributes(json))
}

#[test]
fn unknown_storage_policies_are_rejected() {
    let check = |extra: Json, message: &str| {
        let mut json = json!({"link_width": 2, "sid_ndim": 3});
        json.as_object_mut().unwrap().extend(attributes(&extra));
        refused(family(&json), message);
    };
    check(
        json!({"link_width": 9}),
        "attributes.link_width: link width is 9, not 1 to 8",
    );
    check(
        json!({"link_width": 2.5}),
        "attributes.link_width: 2.5 is not a whole number from 0 to 18446744073709551615",
    );
    check(
        json!({"sid_ndim": 0}),
        "attributes.sid_ndim: 0 is not a whole number from 1 to 32",
    );
    check(
        json!({"store": "triplicate"}),
        "attributes.store: \"triplicate\" is not \"canonical\" or \"duplicate\"",
    );
    check(
        json!({"directed": "yes"}),
        "attributes.directed: text, not a boolean",
    );
    let json = json!({"link_width": 2, "sid_ndim": 3, "level_delta": 1});
    let noted =
        "attributes.level_delta: 1 disagrees with the family's path; the node's name is used";
    assert_eq!(
        notes(family(&json).unwrap(), &[noted]).unwrap().delta,
        Delta::INTRA
    );
    assert_eq!(
        notes(
            family(&json!({"link_width": 2})).unwrap(),
            &["attributes.sid_ndim: missing; ignored"]
        ),
        None
    );
}

#[test]
fn rows_have_a_permutation_where_the_order_is_lost() {
    let form = |delta: i32, directed: bool, store: &str, segment: &str| {
        let json = json!({"link_width": 2, "sid_ndim": 2, "directed": directed, "store": store});
        let family = LinkFamily::parse(&key("k"), Delta::new(delta), &attributes(&json))
            .unwrap()
            .value
            .unwrap();
        let array = LinkArray::parse(&key("k"), segment, &Attributes::new(), &family);
        array.unwrap().value.row_form
    };
    assert_eq!(form(0, false, "canonical", "+1.0"), RowForm::Permuted);
    assert_eq!(form(0, true, "canonical", "+1.0"), RowForm::Plain);
    assert_eq!(form(0, true, "duplicate", "+1.0"), RowForm::Permuted);
    assert_eq!(form(0, false, "canonical", "0.0"), RowForm::Plain);
    assert_eq!(form(1, false, "canonical", "+1.0"), RowForm::Plain);
}

#[test]
fn link_arrays_must_agree_with_path_and_family() {
    let family = family(&json!({"link_width": 2, "sid_ndim": 2}))
        .unwrap()
        .value
        .unwrap();
    assert_eq!(family.store, LinkStore::Canonical);
    let read = |segment: &str, json: Json| {
        LinkArray::parse(&key("k"), segment, &attributes(&json), &family)
    };
    assert!(
        read(
            "+1.0",
            json!({"offsets": [[1, 0]], "has_perm": true, "link_width": 2})
        )
        .is_ok()
    );
    refused(
        read("+1.0", json!({"offsets": [[1, 0], [0, 0]]})),
        "attributes.offsets: [[1,0],[0,0]] disagrees with the array's path",
    );
    refused(
        read("+1.0", json!({"offsets": []})),
        "attributes.offsets: [] disagrees with the array's path",
    );
    refused(
        read("+1.0", json!({"has_perm": false})),
        "attributes.has_perm: false disagrees with the policy of the family",
    );
    refused(
        read("+1.0", json!({"link_width": 3})),
        "attributes.link_width: 3 disagrees with link_width of the family",
    );
    refused(
        read("self", json!({})),
        "attributes.offsets: \"self\": 0 offsets, not 1",
    );
    assert_eq!(
        read("+1.0", json!({"dtype": "int32"}))
            .unwrap()
            .value
            .dtype
            .to_string(),
        "int32"
    );
}

#[test]
fn object_indexes_are_bounded() {
    let read = |json: Json| ObjectIndex::parse(&key("k"), &attributes(&json));
    refused(
        read(json!({"sid_ndim": 3})),
        "attributes.num_objects: missing",
    );
    refused(
        read(json!({"num_objects": 1u64 << 40, "sid_ndim": 3})),
        "attributes.num_objects: 1099511627776 is not a whole number from 0 to 67108864",
    );
    let open = notes(read(json!({"num_objects": 2, "sid_ndim": 3})).unwrap(), &[]);
    assert!(open.ids_sorted);
    let edited =
        json!({"num_objects": 2, "sid_ndim": 3, "layout": "vlen_manifests_v2", "num_present": 3});
    let noted = "attributes.num_present: 3 is not a whole number from 0 to 2; the default is used";
    assert!(!notes(read(edited).unwrap(), &[noted]).ids_sorted);
}

#[test]
fn tables_and_groups() {
    let group = |json: Json| Table::parse_group(&key("k"), &attributes(&json));
    refused(group(json!({"shape": [1]})), "attributes.dtype: missing");
    refused(
        group(json!({"dtype": "object", "shape": [1]})),
        "attributes.dtype: \"object\": dtype is a raw object address, only numbers and bool are read",
    );
    let text = Table::parse_array(
        &key("k"),
        &attributes(&json!({"dtype": "<U5", "shape": [2]})),
    );
    assert_eq!((text.notes.len(), text.value.dtype()), (1, None));

    let groups = |json: Json| Groups::parse(&key("k"), &attributes(&json));
    let read = notes(
        groups(json!({"num_groups": 2, "group_ranges": {"1": [3, 9]}})).unwrap(),
        &[],
    );
    assert_eq!(read.ranges[&1], GroupRange { start: 3, stop: 9 });
    refused(
        groups(json!({"group_ranges": {"1": [3, 2]}})),
        "attributes.group_ranges.1: a range from 3 to 2",
    );
    refused(
        groups(json!({"group_ranges": {"01": [3, 4]}})),
        "attributes.group_ranges.01: \"01\" is not a group number",
    );
    let noted = "attributes.group_ranges.5: [3,4] disagrees with num_groups; used unchanged";
    notes(
        groups(json!({"num_groups": 2, "group_ranges": {"5": [3, 4]}})).unwrap(),
        &[noted],
    );
}

#[test]
fn composite_names_stay_in_the_level() {
    let read = |name: &str| {
        let json = json!({"mesh": {"array": name, "vertex_count": 1}});
        GeometryIndex::parse(&key("k"), &attributes(&json))
    };
    assert!(read("vertices_mesh").is_ok());
    refused(
        read(".."),
        "attributes.mesh.array: a key has the segment \"..\"",
    );
    assert!(read("../../etc").is_err());
    let links = CompositeLinks::parse(
        &key("k"),
        &attributes(&json!({"link_count": 1, "link_width": 0})),
    );
    refused(links, "attributes.link_width: link width is 0, not 1 to 8");
    let types = ParametricTypes::parse(
        &key("k"),
        &attributes(&json!({"parametric_types": {"x": {}}})),
    );
    refused(
        types,
        "attributes.parametric_types.x: \"x\" is not a type number",
    );
}

#[test]
fn shard_indexes_are_checked_against_the_shard() {
    let read = |json: Json| {
        LegacyShardIndex::parse(&key("k"), &attributes(&json!({"shard_index": json})), 2, 10)
    };
    let index = read(json!({"1.0": [4, 6], "-1.0": [0, 4]})).unwrap();
    assert_eq!(index.spans()[0].chunk, ChunkCoord::new([-1, 0]));
    assert_eq!(index.get(&ChunkCoord::new([1, 0])).unwrap().offset, 4);
    assert_eq!(index.get(&ChunkCoord::new([9, 9])), None);
    for span in [[4, 7], [u64::MAX, 2]] {
        let error = read(json!({"0.0": span})).unwrap_err().to_string();
        assert!(
            error.contains("disagrees with the length of the shard"),
            "{error}"
        );
    }
    refused(
        read(json!({"0": [0, 0]})),
        "attributes.shard_index.0: \"0\": 1 numbers, not 2",
    );
}
