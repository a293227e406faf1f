//! Root and level metadata, beyond those of known writers.

use serde_json::{Value as Json, json};
use zvf_model::{
    error_kind::ErrorKind,
    geometry_kind::GeometryKind,
    level::{LevelId, LevelMetadata},
    metadata::MetadataNote,
    root::{CrossLevelDepth, RootMetadata, UNDERSTOOD_CAPABILITIES, WindingOrder},
};

use crate::store::key;

fn attributes() -> Json {
    json!({
        "zarr_vectors": {"zv_version": "0.9.2", "chunk_shape": [10, 10.0], "bounds": [[0, 0], [64, 32]],
            "geometry_types": ["mesh"], "invented": 1},
        "multiscales": [{"axes": [{"name": "x", "type": "space", "unit": "nm"}, "y"], "datasets": [
            {"path": "0", "coordinateTransformations": [{"type": "translation", "translation": [-5, 0]}]},
            {"path": "1", "coordinateTransformations": [{"type": "scale", "scale": [1.5, 2]},
                {"type": "translation", "translation": [7.5, 10]}]}]}],
        "user_metadata": {"mine": 1},
    })
}

fn parse(json: &Json) -> Result<RootMetadata, String> {
    let read = RootMetadata::parse(&key("zarr.json"), json.as_object().unwrap());
    read.map_err(|error| error.to_string())
}

fn with(pointer: &str, value: Json) -> Json {
    let mut json = attributes();
    let (parent, field) = pointer.rsplit_once('/').unwrap();
    json.pointer_mut(parent).unwrap()[field] = value;
    json
}

/// Returns the metadata after a change that adds one note.
#[track_caller]
fn noted(pointer: &str, value: Json, message: &str) -> RootMetadata {
    let root = parse(&with(pointer, value)).unwrap();
    let notes: Vec<String> = root.notes.iter().map(MetadataNote::to_string).collect();
    assert_eq!(notes, [format!("attributes.{message}")]);
    root
}

#[track_caller]
fn refused(pointer: &str, value: Json, message: &str) {
    let error = parse(&with(pointer, value)).unwrap_err();
    assert_eq!(error, format!("zarr.json: attributes.{message}"));
}

#[test]
fn unknown_attributes_are_kept() {
    let root = parse(&attributes()).unwrap();
    assert_eq!(root.notes, []);
    assert_eq!(root.unknown["invented"], 1);
    assert_eq!(root.other["user_metadata"]["mine"], 1);
    assert_eq!(root.axes[0].unit.as_deref(), Some("nm"));
    assert_eq!(root.axes[1].kind, None);
    assert_eq!(root.geometry_kinds, [GeometryKind::Mesh]);
    assert_eq!(root.links_convention, None);
    assert_eq!(
        root.links_convention.unwrap_or_default().as_str(),
        "implicit_sequential"
    );
    // At level 0 a translation may be an offset: any number is valid.
    assert_eq!(root.datasets[0].translation, Some(vec![-5.0, 0.0]));
}

#[test]
fn unusable_metadata_is_an_error() {
    refused(
        "/zarr_vectors/chunk_shape",
        json!([10]),
        "zarr_vectors.chunk_shape: 1 values, not 2",
    );
    refused(
        "/zarr_vectors/chunk_shape",
        json!([10, "x"]),
        "zarr_vectors.chunk_shape[1]: text, not a number",
    );
    refused(
        "/zarr_vectors/chunk_shape",
        json!(10),
        "zarr_vectors.chunk_shape: a number, not a list",
    );
    refused(
        "/zarr_vectors/geometry_types",
        json!([1]),
        "zarr_vectors.geometry_types[0]: a number, not text",
    );
    refused(
        "/zarr_vectors/geometry_types",
        Json::Null,
        "zarr_vectors.geometry_types: missing",
    );
    refused("/multiscales", json!([]), "multiscales: 0 values, not 1");
    refused("/multiscales", json!([{}]), "multiscales[0].axes: missing");
    refused(
        "/zarr_vectors",
        json!("0.9"),
        "zarr_vectors: text, not an object",
    );
    let many: Vec<Json> = (0..32).map(|n| json!({"name": n.to_string()})).collect();
    let mut json = attributes();
    json["multiscales"][0]["axes"] = json!(many);
    assert!(
        parse(&json)
            .unwrap_err()
            .contains("32 dimensions, more than 31")
    );
    json["multiscales"][0]["axes"] = json!([]);
    assert!(parse(&json).unwrap_err().contains("axes: 0 values, not 1"));
}

#[test]
fn a_required_capability_must_be_understood() {
    let place = "/zarr_vectors/required_capabilities";
    let all = UNDERSTOOD_CAPABILITIES.to_vec();
    let root = parse(&with(place, json!(all))).unwrap();
    assert_eq!(root.required_capabilities, all);
    assert!(root.notes.is_empty() && !root.unknown.contains_key("required_capabilities"));
    assert!(root.has_capability("fragment_index") && !root.has_capability("other"));
    for absent in [json!([]), Json::Null] {
        let root = parse(&with(place, absent)).unwrap();
        assert_eq!(root.required_capabilities, Vec::<String>::new());
    }
    refused(
        place,
        json!(["from_the_future", "fragment_index", "x\n"]),
        "zarr_vectors.required_capabilities: the store requires from_the_future, x\\n, which this \
         version does not implement; use a newer version",
    );
    refused(
        place,
        json!("fragment_index"),
        "zarr_vectors.required_capabilities: text, not a list",
    );
    refused(
        place,
        json!(["fragment_index", 1]),
        "zarr_vectors.required_capabilities[1]: a number, not text",
    );
    // The requirement is reported before faults that it may explain.
    let mut json = with(place, json!(["from_the_future"]));
    json["multiscales"] = json!("elsewhere");
    let error = RootMetadata::parse(&key("zarr.json"), json.as_object().unwrap()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let error = RootMetadata::parse(
        &key("zarr.json"),
        with(place, json!({})).as_object().unwrap(),
    );
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Damaged);
}

#[test]
fn tolerated_faults_are_noted() {
    let root = noted(
        "/zarr_vectors/zv_version",
        json!("garbage"),
        "zarr_vectors.zv_version: \"garbage\" is not a version X.Y or X.Y.Z; the structure of the store decides",
    );
    assert_eq!(root.version, None);
    noted(
        "/zarr_vectors/zv_version",
        json!(9),
        "zarr_vectors.zv_version: a number, not text; the structure of the store decides",
    );
    noted(
        "/zarr_vectors/cross_level_depth",
        json!(-2),
        "zarr_vectors.cross_level_depth: -2 is not a whole number from -1 to 2147483647; the default is used",
    );
    noted(
        "/zarr_vectors/reduction_factor",
        json!(1),
        "zarr_vectors.reduction_factor: 1 is not a whole number from 2 to 18446744073709551615; the default is used",
    );
    noted(
        "/zarr_vectors/coordinate_offset",
        json!([1]),
        "zarr_vectors.coordinate_offset: 1 values, not 2; the default is used",
    );
    noted(
        "/zarr_vectors/bounds",
        json!([[1, 0], [0, 0]]),
        "zarr_vectors.bounds: [[1,0],[0,0]] disagrees with its own order; used unchanged",
    );
    let root = noted(
        "/multiscales/0/datasets",
        json!([{"path": "0"}, {"path": "0"}]),
        "multiscales[0].datasets[1]: \"0\" occurs twice; ignored",
    );
    assert_eq!(root.datasets.len(), 1);
    noted(
        "/multiscales/0/datasets",
        json!([{"path": "../1"}]),
        "multiscales[0].datasets[0].path: \"../1\" is not a level number; ignored",
    );
    noted(
        "/zarr_vectors/attribute_specs",
        json!([]),
        "zarr_vectors.attribute_specs: a list, not an object; the default is used",
    );
}

#[track_caller]
#[test]
fn the_winding_of_faces_is_read_from_both_places() {
    let root = parse(&attributes()).unwrap();
    assert_eq!(root.winding_order, None);
    assert_eq!(root.winding(), WindingOrder::CounterClockwise);
    for pointer in ["/zarr_vectors/winding_order", "/winding_order"] {
        let root = parse(&with(pointer, json!("cw"))).unwrap();
        assert_eq!(root.winding(), WindingOrder::Clockwise, "{pointer}");
        assert_eq!(root.notes, []);
        let block = &root.to_attributes()["zarr_vectors"];
        assert_eq!(block["winding_order"], "cw", "{pointer}");
    }
    let root = parse(&with("/zarr_vectors/winding_order", json!("xx"))).unwrap();
    assert_eq!(root.notes.len(), 1);
    assert_eq!(root.winding(), WindingOrder::CounterClockwise);
}

fn level(number: u32, block: &Json) -> LevelMetadata {
    let root = parse(&attributes()).unwrap();
    let written = json!({"zarr_vectors_level": block, "user_metadata": {}});
    let attributes = written.as_object().unwrap();
    LevelMetadata::parse(&key("1/zarr.json"), LevelId::new(number), attributes, &root).unwrap()
}

#[test]
fn bins_of_a_level_come_from_its_dataset() {
    let root = parse(&attributes()).unwrap();
    let block = json!({"level": 1, "vertex_count": 0, "arrays_present": [],
        "bin_shape": [1, 1], "chunk_shape": [30, 20]});
    let level = level(1, &block);
    assert_eq!(level.bin_shape.as_ref().unwrap().extents(), [15.0, 20.0]);
    assert_eq!(level.bin_ratio, Some(vec![1.5, 2.0]));
    assert_eq!(level.bins(&root).unwrap().count(), 2);
    let scale = level.scale(&root).unwrap();
    assert_eq!(scale.iter().map(|n| n.get()).collect::<Vec<_>>(), [3, 2]);
    assert!(level.other.contains_key("user_metadata"));
}

#[test]
fn old_bins_of_a_level_count_without_a_dataset() {
    let block = json!({"level": 2, "vertex_count": 0, "arrays_present": [],
        "bin_size": [4, 5], "bin_ratio": 2});
    let level = level(2, &block);
    assert_eq!(level.bin_shape.as_ref().unwrap().extents(), [4.0, 5.0]);
    assert_eq!(level.bin_ratio, Some(vec![2.0, 2.0]));
}

#[test]
fn bins_of_the_full_level_are_the_roots() {
    let root = parse(&with("/zarr_vectors/base_bin_shape", json!([5, 2]))).unwrap();
    let level = level(
        0,
        &json!({"level": 0, "vertex_count": 1, "arrays_present": []}),
    );
    assert_eq!(level.bin_shape, None);
    assert_eq!(level.bins(&root).unwrap().count(), 10);
}

#[test]
fn chunks_by_attribute_have_longer_keys() {
    let root = parse(&attributes()).unwrap();
    let block = json!({"level": 0, "vertex_count": 0, "arrays_present": [],
        "chunk_dims": ["label", "x", "y"], "chunk_attribute_name": "label",
        "chunk_attribute_values": [2, 5.5, "a"]});
    let labelled = level(0, &block);
    assert_eq!(labelled.arity(&root), 3);
    let chunking = labelled.attribute_chunking.unwrap();
    let index = |value: Json| chunking.index_of(&value);
    assert_eq!(index(json!(2)), Some(0));
    assert_eq!(index(json!(2.0)), Some(0));
    assert_eq!(index(json!(5.5)), Some(1));
    assert_eq!(index(json!("a")), Some(2));
    assert_eq!(index(json!(3)), None);
    let plain =
        json!({"level": 0, "vertex_count": 0, "arrays_present": [], "chunk_dims": ["x", "y"]});
    assert_eq!(level(0, &plain).arity(&root), 2);
}

#[test]
fn links_between_levels_scale_each_number_of_a_key() {
    let root = parse(&attributes()).unwrap();
    let fine = level(0, &json!({"chunk_attribute_name": "label"}));
    let coarse = level(
        1,
        &json!({"chunk_shape": [30, 20], "chunk_attribute_name": "label"}),
    );
    let scales = fine.link_scales(&coarse, &root).unwrap();
    let numbers = scales
        .iter()
        .map(|axis| (axis.source.get(), axis.target.get()));
    assert_eq!(numbers.collect::<Vec<_>>(), [(1, 1), (1, 3), (1, 2)]);
    let odd = level(1, &json!({"chunk_shape": [25, 20]}));
    assert!(fine.link_scales(&odd, &root).is_err());
}

#[test]
fn a_level_without_attributes_is_read() {
    let root = parse(&attributes()).unwrap();
    let none = serde_json::Map::new();
    let level = LevelMetadata::parse(&key("0"), LevelId::FULL, &none, &root).unwrap();
    assert_eq!(level.notes.len(), 1);
    assert_eq!(level.effective_chunk_shape(&root), &root.chunk_shape);
    let level = self::level(1, &json!({}));
    let notes: Vec<_> = level.notes.iter().map(|note| note.path.as_str()).collect();
    let block = "attributes.zarr_vectors_level";
    assert_eq!(
        notes,
        ["level", "vertex_count", "arrays_present"].map(|field| format!("{block}.{field}"))
    );
}

#[test]
fn levels_are_plain_numbers() {
    for name in ["", "00", "+1", "-1", "1.0", "a", "4294967296", "１"] {
        assert_eq!(LevelId::parse(name), None, "{name:?}");
    }
    assert_eq!(LevelId::parse("4294967295"), Some(LevelId::new(u32::MAX)));
    assert_eq!(LevelId::new(1).offset(-2), None);
    assert_eq!(LevelId::new(1).offset(2), Some(LevelId::new(3)));
}

#[test]
fn a_depth_between_levels_is_a_number_that_the_format_can_express() {
    use CrossLevelDepth::{All, Levels};
    for (number, expected) in [
        (-2, None),
        (-1, Some(All)),
        (0, Some(Levels(0))),
        (2_147_483_647, Some(Levels(2_147_483_647))),
        (2_147_483_648, None),
        (i64::MAX, None),
    ] {
        let depth = CrossLevelDepth::of_number(number);
        assert_eq!(depth, expected);
        assert!(depth.is_none_or(|depth| depth.number() == number));
    }
}
