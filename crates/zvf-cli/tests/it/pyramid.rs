//! `zvf pyramid`, as a user runs it.

use serde_json::Value;
use zvf::{CreateOptions, Design, Geometry, GeometryKind, NumericColumn};

use crate::{stores::Bench, unpack};

fn vertices(report: &Value) -> Vec<u64> {
    let levels = report["levels"].as_array().unwrap().iter();
    levels
        .map(|level| level["vertices"].as_u64().unwrap())
        .collect()
}

#[test]
fn levels_are_built_reported_and_refreshed() {
    let bench = Bench::new();
    unpack(
        "zvf-09",
        "pyramid_polylines_depth2/store.zarrvectors",
        &bench.path("tracts.zv"),
    );
    let said = bench.refused(&["pyramid", "@tracts.zv", "--levels", "1"]);
    assert!(said.contains("--overwrite"), "{said}");
    let made = bench.json(&[
        "pyramid",
        "@tracts.zv",
        "--overwrite",
        "--factors",
        "2,2",
        "--cross-level",
        "explicit",
        "--depth",
        "-1",
        "--chunk-scale",
        "1",
    ]);
    let info = bench.json(&["info", "@tracts.zv"]);
    assert_eq!(vertices(&made), vertices(&info)[1..]);
    assert_eq!(made["levels"][0]["method"], "bins");
    let report = bench.json(&["validate", "@tracts.zv"]);
    assert_eq!(report["findings"], Value::Array(Vec::new()));
    let said = bench.says(&["pyramid", "@tracts.zv", "--refresh"]);
    assert!(said.contains("no level is out of date"), "{said}");
    bench.says(&["delete", "@tracts.zv", "--object", "1"]);
    let refreshed = bench.json(&["pyramid", "@tracts.zv", "--refresh"]);
    let info = bench.json(&["info", "@tracts.zv"]);
    assert_eq!(vertices(&refreshed), vertices(&info)[1..]);
    assert!(vertices(&refreshed)[0] < vertices(&made)[0]);
    let report = bench.json(&["validate", "@tracts.zv"]);
    assert_eq!(report["ok"], true, "{report}");
}

#[test]
fn contradictory_options_are_rejected() {
    let bench = Bench::new();
    unpack(
        "zvf-09",
        "pyramid_plain/store.zarrvectors",
        &bench.path("cloud.zv"),
    );
    for (option, value, expected) in [
        ("--factors", "0.5", "--factors must be above 1"),
        ("--sparsity", "0.5", "--sparsity must be 1 or more"),
        ("--tolerance", "0", "--tolerance must be a distance above 0"),
        ("--attribute", "fa", "ATTRIBUTE=RULE"),
        ("--depth", "-2", "-1 for all"),
    ] {
        let said = bench.refused(&["pyramid", "@cloud.zv", "--overwrite", option, value]);
        assert!(said.contains(expected), "{said}");
    }
    let said = bench.refused(&[
        "pyramid",
        "@cloud.zv",
        "--sparsity",
        "2",
        "--sparsity-by",
        "luck",
    ]);
    assert!(said.contains("attribute:NAME"), "{said}");
    let said = bench.refused(&[
        "pyramid",
        "@cloud.zv",
        "--overwrite",
        "--levels",
        "1",
        "--attribute",
        "fa=max",
    ]);
    assert!(said.contains("no attribute fa"), "{said}");
    let said = bench.refused(&[
        "pyramid",
        "@cloud.zv",
        "--additive",
        "--method",
        "bins",
        "--overwrite",
    ]);
    assert!(said.contains("additive levels take neither"), "{said}");
}

/// The bounds of a store end at its outermost vertices; the optimal place of a merged vertex may be
/// beyond them.
#[tokio::test]
async fn coarser_meshes_stay_within_the_bounds() {
    let bench = Bench::new();
    let (around, across) = (48_u16, 24_u16);
    let (mut positions, mut links) = (Vec::new(), Vec::new());
    let angle = |step: u16, of: u16| f32::from(step) / f32::from(of) * std::f32::consts::TAU;
    for i in 0..around {
        for j in 0..across {
            let (u, v) = (angle(i, around), angle(j, across));
            let radius = 40.0 + (15.0 + 2.0 * (u * 5.0).sin()) * v.cos();
            positions.extend([radius * u.cos(), radius * u.sin(), 15.0 * v.sin()]);
            let row = |i: u16, j: u16| i64::from(i % around * across + j % across);
            let (here, across) = (row(i, j), row(i + 1, j + 1));
            links.extend([here, row(i + 1, j), across, here, across, row(i, j + 1)]);
        }
    }
    let mut geometry = Geometry::new(NumericColumn::float32(3, positions));
    geometry.link_width = 3;
    geometry.links = links;
    let store = bench.path("ring.zv");
    let design = Design::new(GeometryKind::Mesh).chunk_shape([30.0; 3]);
    zvf::create(
        store.to_str().unwrap(),
        geometry,
        design,
        &CreateOptions::default(),
    )
    .await
    .unwrap();
    let made = bench.json(&["pyramid", "@ring.zv", "--levels", "2", "--factors", "4,4"]);
    assert_eq!(made["levels"][0]["method"], "collapse");
    let report = bench.json(&["validate", "@ring.zv"]);
    assert_eq!(report["findings"], Value::Array(Vec::new()));
}

/// Levels of a mesh kept vertices without a face.
#[test]
fn levels_of_a_mesh_have_vertices_of_faces_only() {
    let bench = Bench::new();
    let mut lines = Vec::new();
    let side = 12;
    for row in 0..side * side {
        let (x, y) = (row % side, row / side);
        lines.push(format!("v {x} {y} {}", (x * y) % 3));
    }
    for loose in 0..50 {
        lines.push(format!("v {} 11 2", f64::from(loose) / 5.0));
    }
    for cell in 0..(side - 1) * (side - 1) {
        let at = cell / (side - 1) * side + cell % (side - 1) + 1;
        let (right, up) = (at + 1, at + side);
        lines.push(format!("f {at} {right} {up}\nf {right} {} {up}", up + 1));
    }
    bench.file("a.obj", &lines.join("\n"));
    let create = ["create", "@a.zv", "--from", "@a.obj"];
    bench.says(&[&create[..], &["--chunk-shape", "5,5,5"]].concat());
    let made = bench.json(&["pyramid", "@a.zv", "--levels", "2"]);
    for level in ["1", "2"] {
        bench.says(&[
            "query", "@a.zv", "--level", level, "-o", "@b.obj", "--quiet",
        ]);
        let text = std::fs::read_to_string(bench.path("b.obj")).unwrap();
        let used: std::collections::BTreeSet<&str> = text
            .lines()
            .filter(|line| line.starts_with("f "))
            .flat_map(|line| line.split(' ').skip(1))
            .collect();
        let vertices = text.lines().filter(|line| line.starts_with("v ")).count();
        assert_eq!(used.len(), vertices, "level {level}: {made}");
    }
    let report = bench.json(&["validate", "@a.zv"]);
    assert_eq!(report["findings"], Value::Array(Vec::new()));
}
