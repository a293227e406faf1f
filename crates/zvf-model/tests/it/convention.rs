//! Metadata of 0.10, row by row of the specification: read as the types of all generations, and written as
//! stored.

use serde_json::{Value as Json, json};
use zvf_model::{
    array::{
        CellAttribute, CellAttributeRole, LinkFamily, LinkFamilyForm, ObjectIndex,
        ObjectIndexLayout, Presence, Table, TableRole, Vertices,
    },
    detection::{DetectionNote, Evidence, GenerationError, NodeForm},
    error_kind::ErrorKind,
    generation::Generation,
    key::Key,
    level::{LevelId, LevelMetadata},
    metadata::{MetadataError, MetadataFault},
    node_copy::{CopiedNode, NodeCopy, is_copy_of},
    root::RootMetadata,
    version::Version,
    zarr::Node,
};

use crate::store::key;

const UUID: &str = "66268a61-7833-4995-bbcb-233bb417dae5";
const MULTISCALES: &str = "d35379db-88df-4056-af3a-620245f8e347";
const PROJ: &str = "f17cb550-5864-4468-aeb7-f3180cfb622f";

fn group(attributes: &Json) -> Json {
    json!({"zarr_format": 3, "node_type": "group", "attributes": attributes})
}

fn array(attributes: &Json) -> Json {
    json!({
        "zarr_format": 3, "node_type": "array", "shape": [2, 3], "data_type": "variable_length_bytes",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1, 1]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": "", "codecs": [{"name": "vlen-bytes", "configuration": {}}],
        "storage_transformers": [], "attributes": attributes,
    })
}

/// Attributes of a root with two levels.
fn root() -> Json {
    json!({
        "zarr_conventions": [
            {"uuid": UUID, "name": "zarr_vectors"}, {"uuid": MULTISCALES, "name": "multiscales"},
        ],
        "zarr_vectors": {
            "kind": "root", "zv_version": "0.10.0", "axes": [{"name": "y"}, {"name": "x"}],
            "chunk_shape": [10.0, 10.0], "bounds": [[0.0, 0.0], [64.0, 32.0]],
            "geometry_types": ["point_cloud"], "base_bin_shape": [5.0, 5.0],
        },
        "multiscales": {"layout": [{"asset": "0"}, {"asset": "1"}]},
        "user_metadata": {"lab": {"mouse": 7}},
        "ome": {"version": "0.6", "type": "collection", "name": "a"},
    })
}

/// Attributes of a node with a role.
fn role(block: &Json) -> Json {
    json!({"zarr_conventions": [{"uuid": UUID}], "zarr_vectors": block})
}

fn parse(path: &str, json: &Json) -> Result<Node, MetadataError> {
    Node::parse(&key(path).metadata().unwrap(), json.to_string().as_bytes())
}

/// Parses a node, and checks that it is written as it was.
#[track_caller]
fn read(path: &str, json: &Json) -> Node {
    let node = parse(path, json).unwrap();
    assert_eq!(node.to_json(), *json, "{path}");
    assert_eq!(parse(path, &node.to_json()).as_ref(), Ok(&node));
    let adapted = node.clone().in_generation(&key(path), Generation::V0_10);
    assert_eq!(adapted, node, "{path} lacks nothing");
    node
}

fn parsed_root(attributes: &Json) -> Result<RootMetadata, MetadataError> {
    let node = parse("", &group(attributes))?;
    RootMetadata::parse(&Key::root(), node.attributes())
}

#[test]
fn a_root_declares_conventions_axes_and_levels() {
    let node = read("", &group(&root()));
    let root = RootMetadata::parse(&Key::root(), node.attributes()).unwrap();
    assert_eq!(root.notes, []);
    assert_eq!(root.version, Some(Version::new(0, 10, 0)));
    let names: Vec<&str> = root.axes.iter().map(|axis| axis.name.as_str()).collect();
    assert_eq!(names, ["y", "x"]);
    let levels = root.datasets.iter().map(|dataset| dataset.level);
    assert_eq!(levels.collect::<Vec<_>>(), [LevelId::FULL, LevelId::new(1)]);
    assert_eq!(root.bin_shape().extents(), [5.0, 5.0]);
    assert_eq!(root.other["user_metadata"]["lab"]["mouse"], 7);
    assert_eq!(root.other["ome"]["type"], "collection");
    assert!(root.unknown.is_empty());
}

#[test]
fn transforms_of_a_layout_are_kept_and_never_applied() {
    let mut attributes = root();
    let transform = json!({"scale": [2.0, 2.0], "translation": [9.0, 9.0]});
    attributes["multiscales"]["layout"][1] =
        json!({"asset": "1", "derived_from": "0", "transform": transform, "spatial:shape": [4]});
    attributes["multiscales"]["resampling_method"] = json!("mode");
    let node = read("", &group(&attributes));
    let root = RootMetadata::parse(&Key::root(), node.attributes()).unwrap();
    let level = root.dataset(LevelId::new(1)).unwrap();
    assert_eq!((&level.scale, &level.translation), (&None, &None));
}

#[test]
fn the_reference_system_is_that_of_the_convention_proj() {
    for (name, crs) in [
        ("proj:projjson", json!({"type": "ProjectedCRS"})),
        ("proj:code", json!("EPSG:25832")),
        ("proj:wkt2", json!("PROJCRS[\"a\"]")),
    ] {
        let mut attributes = root();
        attributes[name] = crs.clone();
        let conventions = attributes["zarr_conventions"].as_array_mut().unwrap();
        conventions.push(json!({"uuid": PROJ, "name": "proj"}));
        let node = read("", &group(&attributes));
        let root = RootMetadata::parse(&Key::root(), node.attributes()).unwrap();
        assert_eq!(root.crs, Some(crs), "{name}");
        assert!(!root.other.contains_key(name));
    }
}

#[test]
fn a_level_is_of_kind_level_and_declares_its_bins() {
    let block = json!({
        "kind": "level", "level": 1, "object_sparsity": 0.5, "vertex_count": 7,
        "coarsening_method": "grid", "parent_level": 0, "arrays_present": ["vertices"],
        "preserves_object_ids": true, "inherited_num_objects": 3, "shared_fragments": true,
        "bin_shape": [10.0, 10.0], "bin_ratio": [2.0, 2.0], "link_fragments_aligned": true,
    });
    let node = read("1", &group(&role(&block)));
    let root = parsed_root(&root()).unwrap();
    let level = LevelMetadata::parse(&key("1"), LevelId::new(1), node.attributes(), &root).unwrap();
    assert_eq!(level.notes, []);
    assert_eq!(level.vertex_count, Some(7));
    assert_eq!(level.parent_level, Some(LevelId::FULL));
    assert_eq!(level.effective_bin_shape(&root).extents(), [10.0, 10.0]);
    assert_eq!(level.bin_ratio, Some(vec![2.0, 2.0]));
    assert!(level.shared_fragments && level.preserves_object_ids);
    // Whether this is the claim that a draft of 0.9 calls fragment_link_groups is not known.
    assert!(!level.fragment_link_groups);
    assert_eq!(level.unknown["link_fragments_aligned"], true);
}

#[test]
fn arrays_and_families_have_kinds() {
    let path = "0/vertices";
    let block = json!({
        "kind": "vertices", "dtype": "float64", "encoding": "raw", "nonempty_chunks": ["0.0", "1.2"],
        "chunk_grid_origin": [0, 0],
    });
    let node = read(path, &array(&role(&block)));
    let vertices = Vertices::parse(&key(path), node.attributes()).unwrap();
    assert_eq!(vertices.notes, []);
    assert_eq!(vertices.value.dtype.to_string(), "float64");
    let presence = Presence::parse(&key(path), node.as_array().unwrap(), 2).unwrap();
    assert_eq!((presence.notes.len(), presence.value.len()), (0, 2));
    assert_eq!(
        NodeForm::of(&node),
        NodeForm::Bytes {
            sharded: false,
            origin: true
        }
    );

    for (kind, role_of) in [
        ("vertex_attribute", CellAttributeRole::Vertex),
        ("fragment_attribute", CellAttributeRole::Fragment),
        ("link_attribute", CellAttributeRole::Link),
    ] {
        let block = json!({"kind": kind, "name": "a", "dtype": "uint8", "nonempty_chunks": []});
        let path = "0/vertex_attributes/a";
        let node = read(path, &array(&role(&block)));
        let attribute = CellAttribute::parse(&key(path), node.attributes()).unwrap();
        assert_eq!(
            (attribute.notes, attribute.value.role),
            (vec![], role_of),
            "{kind}"
        );
    }
    for (kind, role_of) in [
        ("object_attribute", TableRole::Object),
        ("group_attribute", TableRole::Group),
    ] {
        let block = json!({"kind": kind, "name": "a", "dtype": "uint8", "shape": [3]});
        let node = read("0/group_attributes/a", &array(&role(&block)));
        let table = Table::parse_array(&key("0/group_attributes/a"), node.attributes());
        assert_eq!(
            (table.notes, table.value.role),
            (vec![], Some(role_of)),
            "{kind}"
        );
    }
    let block = json!({
        "kind": "links_family", "level_delta": 0, "link_width": 2, "directed": true,
        "store": "canonical", "sid_ndim": 2, "num_links": 4,
    });
    let node = read("0/links/0", &group(&role(&block)));
    let delta = zvf_format::path::Delta::INTRA;
    let family = LinkFamily::parse(&key("0/links/0"), delta, node.attributes()).unwrap();
    assert_eq!(family.notes, []);
    let family = family.value.unwrap();
    assert!(family.directed && family.num_links == Some(4));
    let written = Node::group(family.to_attributes(LinkFamilyForm::Merged))
        .in_generation(&key("0/links/0"), Generation::V0_10);
    assert_eq!(written, node);
    for kind in ["link_fragments", "vertex_fragments", "links", "groups"] {
        read(
            "0/a",
            &array(&role(
                &json!({"kind": kind, "encoding": "fragment_index_v1"}),
            )),
        );
    }
    let types = json!({"0": {"name": "plane", "coefficients": ["A"]}});
    for block in [
        json!({"kind": "link_attribute_family", "name": "w", "level_delta": 0, "num_links": 1}),
        json!({"kind": "parametric", "parametric_types": types}),
        json!({"kind": "parametric_objects", "num_objects": 1, "max_row_length": 2}),
        json!({"kind": "parametric_names", "num_objects": 1}),
    ] {
        read("parametric", &group(&role(&block)));
    }
}

#[test]
fn groups_without_a_role_and_other_programs_have_no_object() {
    read("0/vertex_attributes", &group(&json!({})));
    read(
        "mine",
        &group(&json!({"zarr_vectors": {"mine": 1}, "zv": 2})),
    );
    let mut attributes = role(&json!({"kind": "groups", "num_groups": 1, "future": [1]}));
    attributes["my_program"] = json!({"dtype": 1});
    let conventions = attributes["zarr_conventions"].as_array_mut().unwrap();
    conventions.push(json!({"spec_url": "https://example.com", "name": "mine"}));
    // What the format does not define stays where it is, in the object and beside it.
    let node = read("0/groups", &array(&attributes));
    assert_eq!(node.attributes()["num_groups"], 1);
    assert_eq!(node.attributes()["zarr_vectors"], json!({"future": [1]}));
}

#[test]
fn null_is_an_absent_member() {
    let block = json!({"kind": "level", "level": 0, "parent_level": null, "chunk_shape": null});
    let node = parse("0", &group(&role(&block))).unwrap();
    let expected = role(&json!({"kind": "level", "level": 0}));
    assert_eq!(node.to_json(), group(&expected));
}

#[test]
fn an_object_index_needs_a_known_layout() {
    let index = |block: Json| {
        let node = parse("0/object_index", &group(&role(&block))).unwrap();
        let read = ObjectIndex::parse(&key("0/object_index"), node.attributes());
        read.map(|read| read.value.layout)
    };
    let block = |layout: Json| json!({"kind": "object_index", "num_objects": 1, "sid_ndim": 3, "layout": layout});
    for (name, layout) in [
        ("vlen_manifests_v1", ObjectIndexLayout::Manifests),
        ("vlen_manifests_v2", ObjectIndexLayout::ManifestsWithIds),
        ("dense_manifests_v1", ObjectIndexLayout::Dense),
    ] {
        assert_eq!(index(block(json!(name))), Ok(layout));
    }
    let missing = index(block(Json::Null)).unwrap_err();
    assert_eq!(
        missing.to_string(),
        "0/object_index: attributes.zarr_vectors.layout: missing"
    );
    assert!(index(block(json!("vlen_manifests_v3"))).is_err());
    let with_type = |name: &str| {
        let mut block = block(json!("dense_manifests_v1"));
        block["manifest_block_dtype"] = json!(name);
        index(block)
    };
    assert_eq!(with_type("int64"), Ok(ObjectIndexLayout::Dense));
    let narrow = with_type("uint16").unwrap_err();
    assert_eq!(narrow.kind(), ErrorKind::Unsupported);
    assert_eq!(
        narrow.to_string(),
        "0/object_index: attributes.zarr_vectors.manifest_block_dtype: blocks of manifests of type \
         uint16 are not supported; rewrite the object index with blocks of int64, or use a newer \
         version"
    );
}

#[test]
fn octrees_and_unknown_conventions_that_are_required_are_refused() {
    let block = json!({
        "kind": "level", "level": 0,
        "octree_chunks": {"max_depth": 3, "origin_cell": [0, 0], "target": 100},
    });
    let node = parse("0", &group(&role(&block))).unwrap();
    let root_metadata = parsed_root(&root()).unwrap();
    let refused = LevelMetadata::parse(&key("0"), LevelId::FULL, node.attributes(), &root_metadata)
        .unwrap_err();
    assert_eq!(refused.fault, MetadataFault::OctreeChunks);
    assert_eq!(refused.kind(), ErrorKind::Unsupported);
    assert_eq!(
        refused.path.as_str(),
        "attributes.zarr_vectors.octree_chunks"
    );

    let mut attributes = root();
    let capability = json!(["octree_chunks"]);
    attributes["zarr_vectors"]["required_capabilities"] = capability;
    let refused = parsed_root(&attributes).unwrap_err();
    assert!(matches!(refused.fault, MetadataFault::Capabilities(_)));

    let mut attributes = root();
    let conventions = attributes["zarr_conventions"].as_array_mut().unwrap();
    conventions.push(json!({"name": "quantum", "uuid": "1", "must_understand": true}));
    let refused = parsed_root(&attributes).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unsupported);
    assert_eq!(
        refused.to_string(),
        "zarr.json: attributes.zarr_conventions[2]: the node requires the convention quantum, which \
         this version does not implement; use a newer version"
    );
    // Conventions are ignorable unless they say otherwise.
    attributes["zarr_conventions"][2]["must_understand"] = json!(false);
    parsed_root(&attributes).unwrap();
}

#[test]
fn kinds_are_checked_before_anything_else() {
    let fault = |path: &str, attributes: Json| parse(path, &group(&attributes)).unwrap_err();
    let unknown = fault("0/vertices", role(&json!({"kind": "voxels"})));
    assert!(
        matches!(unknown.fault, MetadataFault::Word { .. }),
        "{unknown}"
    );
    let none = fault("0/vertices", role(&json!({"dtype": "uint8"})));
    assert_eq!(
        none.to_string(),
        "0/vertices/zarr.json: attributes.zarr_vectors.kind: missing"
    );
    let nothing = fault("0/vertices", json!({"zarr_conventions": [{"uuid": UUID}]}));
    assert_eq!(nothing.fault, MetadataFault::Missing);
    let misplaced = fault("", role(&json!({"kind": "level"})));
    assert!(
        matches!(misplaced.fault, MetadataFault::Disagrees { .. }),
        "{misplaced}"
    );
    let mut old = root();
    old["multiscales"] = json!([{"axes": [], "datasets": []}]);
    assert!(matches!(fault("", old).fault, MetadataFault::Kind { .. }));
}

#[test]
fn a_node_without_its_convention_is_read_and_completed() {
    let attributes = json!({"zarr_vectors": {"kind": "vertices", "dtype": "float32"}});
    let node = parse("0/vertices", &array(&attributes)).unwrap();
    assert_eq!(node.attributes()["zv_array"], "vertices");
    let list = json!([{"uuid": UUID}]);
    assert_eq!(
        node.missing_conventions(&key("0/vertices")),
        Some(list.clone())
    );
    assert_eq!(node.to_json()["attributes"]["zarr_conventions"], list);
    let complete = read("0/vertices", &array(&role(&json!({"kind": "vertices"}))));
    assert_eq!(complete.missing_conventions(&key("0/vertices")), None);
    let mut attributes = root();
    attributes["proj:code"] = json!("EPSG:1");
    let node = parse("", &group(&attributes)).unwrap();
    let list = node.missing_conventions(&Key::root()).unwrap();
    assert_eq!(list[2]["uuid"], PROJ);
}

#[test]
fn places_of_faults_are_those_of_the_stored_node() {
    let mut attributes = root();
    attributes["zarr_vectors"]["axes"][1] = json!({});
    let fault = parsed_root(&attributes).unwrap_err();
    assert_eq!(fault.path.as_str(), "attributes.zarr_vectors.axes[1].name");
    let mut attributes = root();
    attributes["multiscales"]["layout"][1] = json!({"asset": "x"});
    let root = parsed_root(&attributes).unwrap();
    assert_eq!(
        root.notes[0].path.as_str(),
        "attributes.multiscales.layout[1].path"
    );
    let block = json!({"kind": "vertices", "dtype": "quux"});
    let node = parse("0/vertices", &array(&role(&block))).unwrap();
    let fault = Vertices::parse(&key("0/vertices"), node.attributes()).unwrap_err();
    assert_eq!(fault.path.as_str(), "attributes.zarr_vectors.dtype");
}

#[test]
fn the_root_decides_between_0_9_and_0_10() {
    let bytes = NodeForm::Bytes {
        sharded: false,
        origin: true,
    };
    let detect = |attributes: &Json| {
        let node = parse("", &group(attributes)).unwrap();
        let vertices = Some(bytes);
        Evidence {
            vertices,
            ..Evidence::of_root(node.attributes())
        }
        .detect()
    };
    let found = detect(&root()).unwrap();
    assert_eq!(found.generation, Generation::V0_10);
    assert_eq!(found.possible, Generation::V0_10..=Generation::V0_10);
    assert_eq!((found.notes, found.layout.profile()), (vec![], "0.10"));
    let mut attributes = root();
    attributes["zarr_vectors"]["zv_version"] = json!("0.9.2");
    let found = detect(&attributes).unwrap();
    assert_eq!(found.generation, Generation::V0_10);
    assert!(matches!(
        found.notes[..],
        [DetectionNote::VersionOverridden { .. }]
    ));
    let old = json!({"zarr_vectors": {"zv_version": "0.9.2"}});
    assert_eq!(detect(&old).unwrap().generation, Generation::V0_9);
    let none = json!({"zarr_vectors": {}});
    assert_eq!(detect(&none).unwrap().generation, Generation::V0_9);
    let next = json!({"zarr_vectors": {"zv_version": "0.11.0"}});
    assert!(matches!(
        detect(&next),
        Err(GenerationError::UnknownVersion(_))
    ));
    let node = parse("", &group(&root())).unwrap();
    let vertices = Some(NodeForm::Group);
    let mixed = Evidence {
        vertices,
        ..Evidence::of_root(node.attributes())
    }
    .detect();
    assert!(
        matches!(mixed, Err(GenerationError::Contradiction { .. })),
        "{mixed:?}"
    );
}

#[test]
fn a_copy_of_nodes_has_them_as_they_are_stored() {
    let block = json!({"kind": "vertices", "dtype": "float32", "nonempty_chunks": ["0.0", "0.1"]});
    let stored = array(&role(&block));
    let node = read("0/vertices", &stored);
    let mut copy = NodeCopy::new();
    copy.put(key("0/vertices"), stored);
    let CopiedNode::Node(copied) = copy.get(&key("0/vertices")) else {
        panic!("{copy:?}");
    };
    let block = &copied["attributes"]["zarr_vectors"];
    assert_eq!(block["zvf_chunk_runs"], json!([0, 2]));
    assert!(is_copy_of(&key("0/vertices"), copied.clone(), &node));
    let Ok(Node::Array(copied)) = Node::from_json(&key("0/vertices"), copied) else {
        panic!("not an array");
    };
    let presence = Presence::parse(&key("0/vertices"), &copied, 2).unwrap();
    assert_eq!((presence.notes.len(), presence.value.len()), (0, 2));
}

#[test]
fn attributes_of_0_9_become_those_of_0_10_and_back() {
    let old = json!({
        "zarr_vectors": {
            "zv_version": "0.9.2", "chunk_shape": [1.0], "bounds": [[0.0], [1.0]],
            "geometry_types": [], "crs": {"type": "GeographicCRS"}, "user_metadata": {"a": 1},
        },
        "multiscales": [{
            "version": "0.4", "name": "default", "axes": [{"name": "x"}],
            "datasets": [{"path": "0", "coordinateTransformations": [{"type": "scale", "scale": [1.0]}]}],
            "metadata": {"format": "zarr_vectors"},
        }],
        "zvf": {"transaction": 1},
    });
    let node = parse("", &group(&old)).unwrap();
    assert_eq!(node.to_json(), group(&old));
    let new = node.in_generation(&Key::root(), Generation::V0_10);
    let stored = new.to_json()["attributes"].clone();
    assert_eq!(stored["multiscales"], json!({"layout": [{"asset": "0"}]}));
    assert_eq!(stored["zarr_vectors"]["kind"], "root");
    assert_eq!(stored["zarr_vectors"]["axes"], json!([{"name": "x"}]));
    assert_eq!(stored["proj:projjson"], json!({"type": "GeographicCRS"}));
    assert_eq!(stored["user_metadata"], json!({"a": 1}));
    assert_eq!(stored["zvf"], json!({"transaction": 1}));
    let uuids: Vec<&str> = stored["zarr_conventions"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|entry| entry["uuid"].as_str())
        .collect();
    assert_eq!(uuids, [UUID, MULTISCALES, PROJ]);
    assert!(stored["zarr_vectors"].get("crs").is_none());
    let read = parse("", &new.to_json()).unwrap();
    let back = read.in_generation(&Key::root(), Generation::V0_9).to_json();
    let mut expected = old;
    // Bins are in levels; a migration adds them again.
    expected["multiscales"][0]["datasets"] = json!([{"path": "0"}]);
    let own = expected["zarr_vectors"]
        .as_object_mut()
        .unwrap()
        .remove("user_metadata");
    expected["user_metadata"] = own.unwrap();
    assert_eq!(back, group(&expected));

    // Tables of parametric objects have no tag in 0.9.
    let path = "parametric/object_attributes/a";
    let table = Node::group(
        json!({"dtype": "uint8", "shape": [1]})
            .as_object()
            .unwrap()
            .clone(),
    );
    let new = table.clone().in_generation(&key(path), Generation::V0_10);
    assert_eq!(
        new.to_json()["attributes"]["zarr_vectors"]["kind"],
        "object_attribute"
    );
    let read = parse(path, &new.to_json()).unwrap();
    assert_eq!(read.in_generation(&key(path), Generation::V0_9), table);
}
