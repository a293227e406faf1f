//! `zvf pyramid`, as a user runs it.

use std::{fmt::Write as _, fs, iter};

use serde_json::{Value, json};
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
    assert_eq!(made["levels"][0]["method"], "simplify");
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
    let geometry = Geometry::builder(NumericColumn::float32(3, positions)).links(3, links);
    let store = bench.path("ring.zv");
    let design = Design::new(GeometryKind::Mesh).chunk_shape([30.0; 3]);
    zvf::create(
        store.to_str().unwrap(),
        geometry.build().unwrap(),
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
        let text = fs::read_to_string(bench.path("b.obj")).unwrap();
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

/// Regression test: paths that merged to the same vertices shared a fragment, and thus the values of
/// one of them.
#[test]
fn fragments_of_levels_keep_their_values() {
    let bench = Bench::new();
    bench.file(
        "a.csv",
        "x,y,z,part,object_id,fragment.k\n1,1,1,0,1,1\n7,1,1,0,1,1\n1.5,1,1,1,2,2\n7.5,1,1,1,2,2\n",
    );
    let create = [
        "create",
        "@a.zv",
        "--kind",
        "streamlines",
        "--from",
        "@a.csv",
    ];
    bench.says(&[&create[..], &["--chunk-shape", "10,10,10"]].concat());
    let levels = ["pyramid", "@a.zv", "--levels", "1", "--chunk-scale", "1"];
    bench.says(&[&levels[..], &["--method", "bins", "--cell", "5,5,5"]].concat());
    for object in ["1", "2"] {
        let found = bench.result("@a.zv", &["--level", "1", "--object", object]);
        let rows: Vec<&str> = found.lines().skip(1).take(2).collect();
        let end = format!(",{object},{object}");
        assert!(rows.iter().all(|row| row.ends_with(&end)), "{found}");
    }
}

/// Regression test: an object had a shared point once for each of its finer points.
#[test]
fn shared_points_occur_once_in_each_object() {
    let bench = Bench::new();
    bench.file(
        "a.csv",
        "x,y,z,object_id\n1,1,1,1\n6,1,1,1\n1.5,1,1,1\n6.5,1,1,1\n1.2,1,1,2\n",
    );
    let create = ["create", "@a.zv", "--kind", "points", "--from", "@a.csv"];
    let space = ["--chunk-shape", "10,10,10", "--bounds", "0,0,0,40,40,40"];
    bench.says(&[&create[..], &space].concat());
    let levels = ["pyramid", "@a.zv", "--levels", "1", "--chunk-scale", "1"];
    let method = ["--method", "bins", "--share", "--cell", "5,5,5"];
    bench.says(&[&levels[..], &method].concat());
    let found = bench.json(&["query", "@a.zv", "--level", "1", "--object", "1", "--count"]);
    assert_eq!(found["vertices"], 2, "{found}");
    bench.says(&["validate", "@a.zv"]);
}

/// Regression test: chunks of two channels were merged, and their vertices too.
#[test]
fn channels_are_not_merged() {
    let bench = Bench::new();
    let nodes = (0..64).map(|at| format!("{},{},{}", at % 8 * 12, at / 8 * 12, at % 2));
    let nodes: Vec<String> = iter::once("x,y,c".to_owned()).chain(nodes).collect();
    bench.file("a.csv", &nodes.join("\n"));
    let create = ["create", "@a.zv", "--kind", "points", "--from", "@a.csv"];
    let axes = ["--axes", "x,y,c::channel", "--chunk-shape", "50,50,1"];
    bench.says(&[&create[..], &axes].concat());
    bench.says(&["pyramid", "@a.zv", "--levels", "1", "--method", "bins"]);
    let found = bench.result("@a.zv", &["--level", "1"]);
    let channels: Vec<&str> = found
        .lines()
        .skip(1)
        .filter_map(|row| row.split(',').nth(2))
        .collect();
    assert!(!channels.is_empty() && channels.len() < 64, "{found}");
    assert!(
        channels.iter().all(|channel| ["0", "1"].contains(channel)),
        "{found}"
    );
}

/// Regression test: objects that share fragments were coarsened as paths, which lost branches, and
/// collapsing left meshes as they were.
#[test]
fn links_of_shared_fragments_are_followed() {
    let bench = Bench::new();
    bench.file(
        "a.csv",
        "x,y,z,object_id\n0,0,0,0\n1,0,0,0\n2,0,0,0\n1,9,0,0\n",
    );
    bench.file("a.links.csv", "links[0],links[1]\n0,1\n1,2\n1,3\n");
    let create = ["create", "@a.zv", "--kind", "graphs", "--from", "@a.csv"];
    let form = [
        "--chunk-shape",
        "100,100,100",
        "--no-seal",
        "--no-node-copy",
    ];
    bench.says(&[&create[..], &form].concat());
    let change = |path: &str, change: &dyn Fn(&mut Value)| {
        let path = bench.path(path);
        let mut node: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        change(&mut node["attributes"]);
        fs::write(&path, node.to_string()).unwrap();
    };
    change("a.zv/0/zarr.json", &|attributes| {
        let level = attributes["zarr_vectors_level"].as_object_mut().unwrap();
        level.remove("fragments_tile");
        level.insert("shared_fragments".to_owned(), json!(true));
    });
    change("a.zv/zarr.json", &|attributes| {
        let root = attributes["zarr_vectors"].as_object_mut().unwrap();
        let known = root
            .entry("format_capabilities")
            .or_insert_with(|| json!([]));
        known
            .as_array_mut()
            .unwrap()
            .push(json!("shared_fragments"));
    });
    let levels = ["pyramid", "@a.zv", "--levels", "1"];
    let said = bench.refused(&[&levels[..], &["--method", "simplify"]].concat());
    assert!(said.contains("only --method bins"), "{said}");
    let made = bench.json(&levels);
    assert_eq!(made["levels"][0]["method"], "bins");
}

/// Writes streamlines in two groups, with a weight for each.
fn streamlines(bench: &Bench, name: &str, ids: core::ops::Range<u64>) {
    let mut rows = String::from("x,y,z,part,object_id\n");
    let mut groups = String::from("group,object_id\n");
    let mut objects = String::from("object_id,object.weight\n");
    for id in ids {
        let (y, z) = (id % 211, id / 211);
        for (at, x) in [0, 10, 20].iter().enumerate() {
            writeln!(rows, "{x},{y}.{},{z},{id},{id}", at % 2).unwrap();
        }
        writeln!(objects, "{id},{id}").unwrap();
        writeln!(groups, "{},{id}", id % 2).unwrap();
    }
    bench.file(&format!("{name}.csv"), &rows);
    bench.file(&format!("{name}.objects.csv"), &objects);
    bench.file(&format!("{name}.groups.csv"), &groups);
}

/// Levels of streamlines had all of them, so that their pictures took as long as those of level 0.
#[test]
fn levels_of_many_paths_have_fewer_and_simpler_ones() {
    let bench = Bench::new();
    streamlines(&bench, "a", 0..44_000);
    let create = [
        "create",
        "@a.zv",
        "--kind",
        "streamlines",
        "--from",
        "@a.csv",
    ];
    bench.says(&[&create[..], &["--chunk-shape", "80,80,80"]].concat());
    let build = ["pyramid", "@a.zv", "--levels", "2", "--overwrite"];
    let made = bench.json(&build);
    let objects = |made: &Value| -> Vec<Value> {
        let levels = made["levels"].as_array().unwrap().iter();
        levels.map(|level| level["objects"].clone()).collect()
    };
    assert_eq!(objects(&made), [11_000, 10_000], "{made}");
    assert_eq!(made["levels"][0]["method"], "simplify");
    assert!(vertices(&made)[0] < 11_000 * 3, "{made}");
    // The levels are nested, and have the groups and attributes of all objects.
    let ids = |level: &str| -> std::collections::BTreeSet<String> {
        let table = bench.result("@a.zv", &["--level", level, "--select", "object.weight"]);
        let paths = table.lines().filter_map(|row| row.split(',').nth(4));
        paths.skip(1).map(str::to_owned).collect()
    };
    assert!(ids("1").is_superset(&ids("2")) && ids("2").len() == 10_000);
    let group = ["query", "@a.zv", "--group", "1", "--level", "1", "--count"];
    let members = bench.json(&group)["objects"].as_u64().unwrap();
    assert!((5_000..6_000).contains(&members), "{members}");
    let report = bench.json(&["validate", "@a.zv"]);
    assert_eq!(report["ok"], true, "{report}");
    // A refresh gives what a new pyramid gives.
    streamlines(&bench, "b", 44_000..44_100);
    bench.says(&[
        "append",
        "@a.zv",
        "--from",
        "@b.csv",
        "--out-of-bounds",
        "expand",
    ]);
    bench.says(&["delete", "@a.zv", "--where", "object.weight < 40"]);
    bench.says(&["pyramid", "@a.zv", "--refresh"]);
    let levels = ["1", "2"].map(|level| ["--level", level]);
    let refreshed = levels.map(|level| bench.result("@a.zv", &level));
    assert_eq!(objects(&bench.json(&build)), [11_015, 10_000]);
    let again = levels.map(|level| bench.result("@a.zv", &level));
    assert!(again == refreshed);
    // Finer paths fill the budget, those of coarser levels first.
    let counted = bench.json(&["query", "@a.zv", "--budget", "60000", "--count"]);
    let count = counted["vertices"].as_u64().unwrap();
    assert!(
        (48_000..=60_000).contains(&count) && counted["level"] == 0,
        "{counted}"
    );
    assert!(counted["objects"].as_u64().unwrap() >= 11_015, "{counted}");
    // An object that a level lacks was empty within a budget.
    let kept = ids("1");
    let mut all = (40..).map(|id: u64| id.to_string());
    let missing = all.find(|id| !kept.contains(id)).unwrap();
    let object = [
        "query", "@a.zv", "--object", &missing, "--count", "--budget",
    ];
    assert_eq!(bench.json(&[&object[..], &["3"]].concat())["vertices"], 3);
    let said = bench.refused(&[&object[..], &["2"]].concat());
    assert!(said.contains("3 vertices on level 0"), "{said}");
    // The options that keep all paths.
    for option in [["--method", "bins"], ["--sparsity", "1"]] {
        let made = bench.json(&[&build[..], &option].concat());
        assert_eq!(objects(&made), [44_060, 44_060], "{option:?}");
    }
}
