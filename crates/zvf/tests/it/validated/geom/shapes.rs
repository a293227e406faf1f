//! Geometry that contradicts the metadata of the store.

use serde_json::json;
use zvf::{OpenOptions, ValidateOptions, validate};
use zvf_build::{GeometryKind, Profile, StepLinks, VertexOwners};

use super::made::{Made, created, design, made, mesh, paths, recorded, trees, vertices};
use crate::block_on;

const BLOCK: &str = "zarr_vectors";

fn set_root(made: Made, field: &str, value: &serde_json::Value) -> Made {
    made.set("", &format!("{BLOCK}.{field}"), value)
}

#[test]
fn an_unsupported_convention_is_found() {
    let polylines = made(GeometryKind::Polylines);
    let codes = set_root(polylines, "links_convention", &json!("explicit")).codes();
    assert!(codes.contains("ZV-L4-001"), "{codes:?}");
    let points = made(GeometryKind::Graphs);
    set_root(points, "geometry_types", &json!(["point_cloud"])).breaks(&["L4-002"]);
    let faces = made(GeometryKind::Graphs);
    set_root(faces, "geometry_types", &json!(["mesh"])).breaks(&["L4-003"]);
}

#[test]
fn lines_must_have_two_ends() {
    let lines = set_root(
        made(GeometryKind::Polylines),
        "geometry_types",
        &json!(["line"]),
    );
    lines.breaks(&["L4-010"]);
}

#[test]
fn paths_must_be_linked_across_chunks() {
    let path = "0/links/0/+1.0/c/0/0";
    let linked = |profile| {
        let mut design = design(GeometryKind::Polylines, profile);
        design.step_links = StepLinks::Between;
        created(paths(), design)
    };
    let other = linked(Profile::V09).number(path, 3, 0);
    other.breaks(&["L4-011"]);
    // In 0.9 the manifests define the path, so the links may all be absent.
    // Before 0.9 they are required.
    let none = linked(Profile::V09).remove("0/links").codes();
    assert!(!none.contains("ZV-L4-011"), "{none:?}");
    let none = linked(Profile::V08).remove("0/cross_chunk_links").codes();
    assert!(none.contains("ZV-L4-011"), "{none:?}");
    // Fragment numbers instead of vertex numbers.
    let codes = recorded("zvf-09", "lines_mixed/store.zarrvectors").codes();
    assert!(
        codes.contains("ZV-L4-012") && !codes.contains("ZV-L4-011"),
        "{codes:?}"
    );
    let codes = recorded("zvf-06", "streamlines.zv").codes();
    assert!(
        codes.contains("ZV-L4-012") && !codes.contains("ZV-L4-011"),
        "{codes:?}"
    );
}

/// Links inside chunks may be the steps of paths there, as the draft of the format describes them.
/// Only those between chunks were compared once, and these were taken for steps between chunks.
#[test]
fn links_inside_chunks_are_steps_of_paths() {
    for profile in [Profile::V09, Profile::V08] {
        // A chain of edges has the links of a path.
        let chain = |links: [i64; 8]| {
            let places = [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0], [11.0, 1.0], [12.0, 2.0]];
            let mut geometry = vertices(&places);
            geometry.owners = VertexOwners::Vertices(vec![0; 5]);
            geometry.links.ends = links.to_vec();
            let graph = created(geometry, design(GeometryKind::Graphs, profile));
            let kind = set_root(graph, "geometry_types", &json!(["polyline"]));
            set_root(kind, "links_convention", &json!("implicit_sequential")).codes()
        };
        let steps = chain([0, 1, 1, 2, 2, 3, 3, 4]);
        assert!(!steps.contains("ZV-L4-011"), "{profile:?}: {steps:?}");
        for others in [
            [0, 1, 0, 2, 2, 3, 3, 4],
            [0, 1, 1, 2, 2, 4, 3, 4],
            [0, 1, 0, 1, 2, 3, 3, 4],
        ] {
            let codes = chain(others);
            assert!(
                codes.contains("ZV-L4-011"),
                "{profile:?}, {others:?}: {codes:?}"
            );
        }
    }
}

#[test]
fn skeletons_must_be_trees() {
    // The branch is the only link inside the first chunk: a child and its parent.
    let branch = "0/links/0/0.0/c/0/0";
    let skeleton = || made(GeometryKind::Skeletons);
    skeleton().number(branch, 1, 3).breaks(&["L4-021"]);
    skeleton().number(branch, 1, 4).breaks(&["L4-022"]);
    // Cross-chunk links: two rows after the count and one offset.
    let between = "0/links/0/+1.0/c/0/0";
    let twice = skeleton().cell(between, |payload| {
        let again = payload[16..40].to_vec();
        let child = again[16..24].to_vec();
        payload[40..64].copy_from_slice(&again);
        payload[56..64].copy_from_slice(&child);
        // The same child with another parent.
        payload[48] ^= 1;
    });
    let codes = twice.codes();
    assert!(codes.contains("ZV-L4-020"), "{codes:?}");
    let mut forest = trees();
    forest.links.ends.truncate(10);
    let forest = created(forest, design(GeometryKind::Skeletons, Profile::V09));
    forest.breaks(&["L4-023"]);
}

#[test]
fn edges_must_join_two_vertices_once() {
    let graph = |links: Vec<i64>| {
        let places = [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0], [11.0, 1.0]];
        let mut geometry = vertices(&places);
        geometry.links.ends = links;
        geometry.owners = VertexOwners::Vertices(vec![0, 0, 1, 0]);
        created(geometry, design(GeometryKind::Graphs, Profile::V09))
    };
    graph(vec![0, 1, 1, 3]).breaks(&[]);
    graph(vec![0, 1, 1, 1]).breaks(&["L4-030"]);
    graph(vec![0, 1, 1, 0]).breaks(&["L4-031"]);
    graph(vec![0, 3, 3, 0]).breaks(&["L4-031"]);
    graph(vec![0, 1, 1, 2]).breaks(&["L4-032"]);
}

#[test]
fn faces_must_share_edges_in_opposite_directions() {
    let with = |more: &[i64]| {
        let mut geometry = mesh();
        geometry.links.ends.extend(more);
        created(geometry, design(GeometryKind::Mesh, Profile::V09))
    };
    with(&[3, 2, 5]).breaks(&[]);
    with(&[2, 3, 5]).breaks(&["L4-041"]);
    with(&[0, 2, 5]).breaks(&["L4-042"]);
    with(&[0, 3, 3]).breaks(&["L4-040"]);
}

#[test]
fn checks_that_exceed_the_memory_budget_are_reported_as_skipped() {
    // Cells of 16 kB; all edges and vertices take 36 kB.
    let places: Vec<[f32; 2]> = (0..3000)
        .map(|at| [[0.0, 10.0, 20.0][at / 1000], 0.0])
        .collect();
    let mut geometry = vertices(&places);
    geometry.links.ends = (0..3000).flat_map(|at| [at, at / 1000 * 1000]).collect();
    let graph = created(geometry, design(GeometryKind::Graphs, Profile::V09));
    let options = ValidateOptions::default().batch_bytes(1);
    let open = OpenOptions::default().budget(30_000);
    let store = open.from_memory(graph.0).unwrap();
    let report = block_on(validate(store, &options)).unwrap();
    let found: Vec<(&str, &str)> = report
        .findings
        .iter()
        .map(|finding| (finding.rule.code, finding.message.as_str()))
        .collect();
    let message = "comparing links needs 36012 bytes, but the memory budget is 30000";
    assert_eq!(found, [("ZV-L4-000", message)]);
}
