//! Detection beyond the recorded stores: old, new, mixed and development layouts.

use serde_json::json;
use zvf_model::{
    detection::{DetectionNote, Evidence, FamilyForm, GenerationError, NodeForm, OldSign},
    generation::Generation,
    layout::{ChunkForm, LinkForm, ObjectIndexForm, TableForm},
    metadata::Attributes,
    scope::Scope,
    version::{Version, VersionError},
};

fn attributes(json: serde_json::Value) -> Attributes {
    match json {
        serde_json::Value::Object(fields) => fields,
        other => panic!("{other}"),
    }
}

fn store(version: &str) -> Evidence {
    let root = attributes(json!({"zarr_vectors": {"zv_version": version}}));
    Evidence::of_root(&root)
}

fn family(node: NodeForm, attrs: serde_json::Value, children: &[(&str, NodeForm)]) -> FamilyForm {
    let children = children
        .iter()
        .map(|(name, form)| ((*name).to_owned(), Some(*form)));
    FamilyForm {
        node,
        attributes: attributes(attrs),
        children: children.collect(),
    }
}

const CELLS: NodeForm = NodeForm::Bytes {
    sharded: false,
    origin: true,
};
const NATIVE: NodeForm = NodeForm::Bytes {
    sharded: true,
    origin: false,
};

#[track_caller]
fn refused(evidence: &Evidence, message: &str) {
    let error = evidence.detect().unwrap_err().to_string();
    assert!(error.contains(message), "{error}");
}

#[test]
fn old_stores_are_rejected_with_the_evidence() {
    refused(
        &store("0.5.0"),
        "format 0.5 or older are not supported, and this one has zv_version 0.5.0",
    );
    refused(&store("0.1"), "zv_version 0.1.0");
    let mut evidence = store("0.6.0");
    evidence.vertex_group_offsets = true;
    let error = evidence.detect().unwrap_err();
    assert_eq!(error, GenerationError::TooOld(OldSign::VertexGroupOffsets));
    let root = attributes(json!({"zarr_vectors": {"format_version": "0.4.0"}}));
    let error = Evidence::of_root(&root).detect().unwrap_err();
    assert_eq!(error, GenerationError::TooOld(OldSign::FormatVersion));
}

#[test]
fn newer_stores_are_rejected_with_a_hint() {
    for version in ["0.11.0", "1.0.0", "9.9.9"] {
        let mut evidence = store(version);
        evidence.vertices = Some(CELLS);
        refused(
            &evidence,
            &format!(
                "format version {version} is unknown, as only 0.6 to 0.10 are supported; use a newer reader"
            ),
        );
    }
}

#[test]
fn development_layouts_are_refused_by_name() {
    let group = NodeForm::Group;
    let with = |family: FamilyForm| {
        let mut evidence = store("0.8.0");
        evidence.vertices = Some(group);
        evidence.cross_chunk_links = vec![family];
        evidence
    };
    let policy = json!({"link_width": 2, "sid_ndim": 3});
    let nested = family(group, policy.clone(), &[("0.0.0", group)]);
    refused(&with(nested), "0.8.0-P");
    let mut implicit = family(group, policy.clone(), &[]);
    implicit.children = vec![("0.0.0".to_owned(), None)];
    refused(&with(implicit), "0.8.0-P");
    refused(
        &with(family(group, policy.clone(), &[("k2", NATIVE)])),
        "0.8.0-S",
    );
    let sharded = family(group, json!({"layout": "sharded_v1"}), &[]);
    refused(&with(sharded), "0.8.0-S");
    let packed = family(NATIVE, json!({"cell_keys": ["0.0.0.1.0.0"]}), &[]);
    refused(&with(packed), "packed_sharded");
    // The supported layout: L chunks per cell. With L = 1 a cell is one chunk.
    let cells = family(group, policy, &[("0.0.0.1.0.0", NodeForm::Blob)]);
    assert_eq!(with(cells).detect().unwrap().generation, Generation::V0_8_0);
    let single = family(
        group,
        json!({"link_width": 1, "sid_ndim": 3}),
        &[("0.0.0", NodeForm::Blob)],
    );
    assert_eq!(
        with(single).detect().unwrap().generation,
        Generation::V0_8_0
    );
}

#[test]
fn native_shards_are_distinguished_from_0_9() {
    let mut evidence = store("0.8.1");
    evidence.vertices = Some(NATIVE);
    let found = evidence.detect().unwrap();
    assert_eq!(found.generation, Generation::V0_8_1);
    assert_eq!(found.layout.chunks, ChunkForm::Cell);
    assert_eq!(found.layout.links, LinkForm::PerDelta);
    // A cell array that is not sharded, or has an origin, is 0.9, whatever its version.
    evidence.vertices = Some(CELLS);
    let found = evidence.detect().unwrap();
    assert_eq!(found.generation, Generation::V0_9);
    let note = DetectionNote::VersionOverridden {
        version: Version::new(0, 8, 1),
        generation: Generation::V0_9,
    };
    assert_eq!(found.notes, [note]);
    let mut evidence = store("0.9.2");
    evidence.vertices = Some(NATIVE);
    assert_eq!(evidence.detect().unwrap().generation, Generation::V0_9);
    evidence.links = vec![family(NATIVE, json!({}), &[])];
    assert_eq!(evidence.detect().unwrap().generation, Generation::V0_8_1);
}

#[test]
fn shards_with_an_origin_are_0_9() {
    let mut evidence = store("0.8.1");
    evidence.vertices = Some(NodeForm::Bytes {
        sharded: true,
        origin: true,
    });
    assert_eq!(evidence.detect().unwrap().generation, Generation::V0_9);
}

#[test]
fn cells_between_chunks_override_the_version() {
    let check = |version: &str, children: &[(&str, NodeForm)], want: Generation| {
        let mut evidence = store(version);
        evidence.vertices = Some(NodeForm::Group);
        evidence.cross_chunk_links = vec![family(NodeForm::Group, json!({}), children)];
        assert_eq!(evidence.detect().unwrap().generation, want);
    };
    let cells = [("0.0.0.1.0.0", NodeForm::Blob)];
    check("0.6.0", &cells, Generation::V0_8_0);
    check("0.9.0", &cells, Generation::V0_8_1);
    let table = [("data", NodeForm::Blob)];
    check("0.8.1", &table, Generation::V0_7);
    // Created but never filled: any generation.
    check("0.7.0", &[], Generation::V0_7);
    check("0.8.1", &[], Generation::V0_8_1);
}

#[test]
fn each_node_narrows_the_generations() {
    use Generation::{V0_6, V0_7, V0_8_0, V0_8_1};
    let check = |fill: &dyn Fn(&mut Evidence), first: Generation, last: Generation| {
        let mut evidence = Evidence {
            vertices: Some(NodeForm::Group),
            ..Evidence::default()
        };
        fill(&mut evidence);
        let found = evidence.detect().unwrap();
        assert_eq!(found.possible, first..=last);
        // Without a version, the latest of the equivalent generations.
        assert_eq!(found.generation, last);
        assert_eq!(found.notes, [DetectionNote::VersionMissing]);
    };
    let index = |layout| Some(attributes(json!({"layout": layout})));
    let table = NodeForm::Numbers { rank: 1 };
    check(&|_| {}, V0_6, V0_8_1);
    check(&|e| e.object_index = index(None), V0_6, V0_7);
    check(
        &|e| e.object_index = index(Some("vlen_manifests_v1")),
        V0_7,
        V0_8_1,
    );
    check(&|e| e.scopes = vec![Scope::Fragment], V0_8_0, V0_8_1);
    check(&|e| e.groups = Some(NodeForm::Group), V0_6, V0_8_0);
    check(&|e| e.object_attribute = Some(table), V0_8_1, V0_8_1);
    check(&|e| e.composite_links = Some(table), V0_8_1, V0_8_1);
    check(
        &|e| e.parametric_objects = Some(NodeForm::Group),
        V0_6,
        V0_8_0,
    );
}

#[test]
fn padded_vertices_are_a_profile_of_0_8() {
    for version in ["0.8.0", "0.8.1", "0.6.0"] {
        let mut evidence = store(version);
        evidence.vertices = Some(NodeForm::Numbers { rank: 5 });
        // Those of the documents have open manifests.
        evidence.object_index = Some(attributes(json!({"num_objects": 1, "sid_ndim": 3})));
        let found = evidence.detect().unwrap();
        assert_eq!(found.layout.profile(), "0.8-padded");
        assert_eq!(found.layout.object_index, ObjectIndexForm::Open);
        let is_mixed = found.notes.contains(&DetectionNote::Mixed("object_index"));
        assert_eq!(is_mixed, version != "0.8.0");
        assert_eq!(found.notes.is_empty(), version == "0.8.0");
    }
    let mut evidence = store("0.8.0");
    evidence.vertices = Some(NodeForm::Numbers { rank: 2 });
    refused(&evidence, "which no generation has");
    evidence.vertices = Some(NodeForm::Blob);
    refused(&evidence, "which no generation has");
}

#[test]
fn nodes_of_two_generations_are_refused_or_noted() {
    let mut evidence = store("0.9.0");
    evidence.vertices = Some(CELLS);
    let cells = [("0.0.0.1.0.0", NodeForm::Blob)];
    evidence.cross_chunk_links = vec![family(NodeForm::Group, json!({}), &cells)];
    refused(
        &evidence,
        "vertices has the form of generation 0.9, but cross_chunk_links that of 0.8.1: the store mixes generations",
    );
    let mut evidence = store("0.7.0");
    evidence.vertices = Some(NodeForm::Group);
    evidence.groups = Some(NodeForm::Group);
    evidence.object_attribute = Some(NodeForm::Numbers { rank: 1 });
    let found = evidence.detect().unwrap();
    assert_eq!(found.notes[0], DetectionNote::Mixed("groups"));
    assert_eq!(found.generation, Generation::V0_8_1);
    // Each is read in its own form.
    assert_eq!(found.layout.tables, TableForm::Array);
    assert_eq!(found.layout.groups, TableForm::Child);
}

#[test]
fn a_store_without_evidence_is_rejected() {
    let nothing = Evidence::of_root(&Attributes::new());
    assert_eq!(nothing.detect().unwrap_err(), GenerationError::Undetermined);
    // The version alone suffices.
    let found = store("0.7").detect().unwrap();
    assert_eq!(found.generation, Generation::V0_7);
    assert_eq!(found.notes, []);
}

#[test]
fn versions_are_two_or_three_numbers() {
    assert_eq!(Version::parse("0.9.2"), Ok(Version::new(0, 9, 2)));
    assert_eq!(Version::parse("0.9"), Ok(Version::new(0, 9, 0)));
    for text in [
        "",
        "1",
        "0.9.2.1",
        "0.9.",
        ".9",
        "0.9.x",
        "+0.9",
        "0. 9",
        "0.99999999999",
    ] {
        assert_eq!(Version::parse(text), Err(VersionError), "{text:?}");
    }
    assert_eq!(Version::new(0, 9, 2).to_string(), "0.9.2");
}
