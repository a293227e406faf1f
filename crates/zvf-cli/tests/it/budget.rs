//! Vertex budgets, and levels that are shared, additive or stale.

use std::fs;

use serde_json::{Value, json};
use zvf_testkit::stores::{
    Layers, Made, Pyramid, PyramidLinks, Recipe, StoreKind, layers, pyramid,
};

use crate::stores::Bench;

fn write(bench: &Bench, name: &str, made: &Made) {
    for (key, bytes) in &made.files {
        let file = bench.path(name).join(key);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, bytes).unwrap();
    }
}

fn points(additive: bool) -> Layers {
    let recipe = Recipe {
        seed: 9,
        kind: StoreKind::Points,
        size: 300,
        axes: 2,
        ..Recipe::default()
    };
    layers(&recipe, 2, additive)
}

fn sizes(made: &Layers) -> [u64; 3] {
    let coarse = |level: usize| made.coarse[level - 1].vertices.len() as u64;
    [made.fine.truth.vertices.len() as u64, coarse(1), coarse(2)]
}

#[test]
fn a_budget_reports_the_chosen_levels() {
    let (bench, made) = (Bench::new(), points(false));
    write(&bench, "a.zv", &made.fine);
    let [fine, middle, top] = sizes(&made);
    let max = u64::midpoint(fine, middle).to_string();
    let line = ["query", "@a.zv", "--budget", &max];
    let found = bench.json(&line);
    let levels = found["levels"].as_array().unwrap();
    let numbers: Vec<&Value> = levels.iter().map(|level| &level["level"]).collect();
    assert_eq!(numbers, [1, 0]);
    assert_eq!(found["level"], 0);
    let vertices: Vec<u64> = levels
        .iter()
        .map(|level| level["vertices"].as_u64().unwrap())
        .collect();
    assert_eq!(found["vertices"], vertices.iter().sum::<u64>());
    assert!(found["vertices"].as_u64().unwrap() <= u64::midpoint(fine, middle));
    assert!(
        levels
            .iter()
            .all(|level| level["chunks"].as_u64().unwrap() > 0)
    );
    let counted = bench.json(&[&line[..], &["--count"]].concat());
    assert_eq!(counted["levels"], found["levels"]);
    let said = bench.says(&line);
    assert!(said.starts_with("/a.zv, levels 1, 0\n"), "{said}");
    assert!(
        said.contains(&format!("\n    level 1: {} vert", vertices[0])),
        "{said}"
    );
    let explained = bench.json(&[&line[..], &["--explain"]].concat());
    assert_eq!(explained["plan"]["is_exact"], true);
    let told = explained["plan"]["levels"].as_array().unwrap();
    for (told, found) in told.iter().zip(levels) {
        assert_eq!(told["vertices"], found["vertices"]);
        assert_eq!(
            told["chunks"].as_array().unwrap().len() as u64,
            found["chunks"]
        );
    }
    let said = bench.says(&[&line[..], &["--explain"]].concat());
    assert!(said.starts_with("level 1: "), "{said}");
    // A level that fits as a whole gives the same rows as a query of the level.
    let [all, max] = [u64::MAX, top].map(|max| max.to_string());
    let table = bench.result("@a.zv", &["--budget", &all]);
    assert_eq!(table, bench.result("@a.zv", &["--level", "0"]));
    let table = bench.result("@a.zv", &["--budget", &max]);
    assert_eq!(table, bench.result("@a.zv", &["--level", "2"]));
    let said = bench.refused(&["query", "@a.zv", "--budget", "1"]);
    let expected = format!(
        "error: the selection has {top} vertices on level 2, and no level has fewer, but the \
         budget is 1; \
         raise --budget or narrow the query; zvf pyramid makes coarser levels, with fewer objects by --sparsity\n"
    );
    assert_eq!(said, expected);
    // A predicate selects among the vertices that the budget chose.
    let noted = bench.json(&["query", "@a.zv", "--budget", &max, "--where", "x > -1e9"]);
    let notes = noted["notes"].to_string();
    assert!(
        notes.contains("selects among a part of the vertices"),
        "{notes}"
    );
    let noted = bench.json(&["query", "@a.zv", "--budget", &all, "--where", "x > -1e9"]);
    assert_eq!(noted["notes"], serde_json::json!([]));
    let said = bench.refused(&["query", "@a.zv", "--budget", "9", "--focus", "1,2,3"]);
    assert!(
        said.starts_with("error: --focus has 3 axes, the store has 2"),
        "{said}"
    );
    let file = [
        "query",
        "@a.zv",
        "--budget",
        &u64::midpoint(fine, middle).to_string(),
    ];
    bench.says(&[&file[..], &["--select", "", "--quiet", "-o", "@a.ply"]].concat());
    let ply = fs::read(bench.path("a.ply")).unwrap();
    assert!(ply.windows(17).any(|line| line == b"comment level 1,0"));
}

/// Estimates are marked as such.
#[test]
fn estimates_are_marked() {
    let (bench, made) = (Bench::new(), points(false));
    write(&bench, "a.zv", &made.fine);
    let extent = made
        .fine
        .truth
        .chunk_shape
        .iter()
        .map(|extent| extent * 1.5);
    let far: Vec<String> = extent.map(|far| far.to_string()).collect();
    let region = format!("0.01,0.01,{}", far.join(","));
    let line = [
        "query",
        "@a.zv",
        "--budget",
        "100",
        "--bbox",
        &region,
        "--explain",
    ];
    assert!(bench.says(&line).contains(": about "));
    assert_eq!(bench.json(&line)["plan"]["is_exact"], false);
}

#[test]
fn additive_and_stale_levels_are_marked() {
    let (bench, mut made) = (Bench::new(), points(true));
    for (key, bytes) in &mut made.fine.files {
        if key == "zarr.json" {
            let mut root: Value = serde_json::from_slice(bytes).unwrap();
            root["attributes"]["zvf_stale_levels"] = json!([1, 2]);
            *bytes = serde_json::to_vec(&root).unwrap();
        }
    }
    write(&bench, "a.zv", &made.fine);
    let [fine, ..] = sizes(&made);
    let found = bench.json(&["query", "@a.zv", "--level", "1"]);
    assert_eq!(found["vertices"], fine);
    assert_eq!(found["levels"].as_array().unwrap().len(), 2);
    assert_eq!(found["notes"].as_array().unwrap().len(), 2);
    let info = bench.json(&["info", "@a.zv"]);
    let flags = |name: &str| {
        let levels = info["levels"].as_array().unwrap().iter();
        levels.map(|level| level[name].clone()).collect::<Vec<_>>()
    };
    assert_eq!(flags("behind"), [false, true, true]);
    assert_eq!(flags("additive"), [false, true, true]);
    let said = bench.says(&["info", "@a.zv"]);
    assert!(
        said.contains("\nout of date since the store changed (zvf pyramid --refresh): 1, 2\n"),
        "{said}"
    );
    assert!(
        said.contains("\nadditive, drawn together with all coarser levels: 1, 2"),
        "{said}"
    );
}

/// Returns a pyramid with a coarse level whose paths share rows.
fn shared() -> Pyramid {
    let mut seeds = (1..).filter(|seed: &u64| !seed.is_multiple_of(3));
    let made = seeds.find_map(|seed| {
        let recipe = Recipe {
            seed,
            kind: StoreKind::Polylines,
            axes: 2,
            size: 200,
            ..Recipe::default()
        };
        let made = pyramid(&recipe, PyramidLinks::Implicit);
        let truth = &made.coarse;
        let objects = truth.objects.as_ref().unwrap().iter();
        let named: usize = objects
            .map(|object| truth.vertices_of(object).count())
            .sum();
        (named > truth.vertices.len() * 2).then_some(made)
    });
    made.unwrap()
}

/// In every format, each path has its own vertices.
#[test]
fn paths_with_shared_vertices_are_written_completely() {
    let (bench, made) = (Bench::new(), shared());
    write(&bench, "a.zv", &made.fine);
    let truth = &made.coarse;
    let objects = truth.objects.as_ref().unwrap().iter();
    let paths: Vec<(i64, Vec<usize>)> = objects
        .map(|object| (object.id, truth.vertices_of(object).collect()))
        .collect();
    let rows: Vec<(i64, usize)> = paths
        .iter()
        .flat_map(|(id, own)| own.iter().map(move |at| (*id, *at)))
        .collect();
    let table = bench.result("@a.zv", &["--level", "1"]);
    let mut lines = table.lines();
    let titles: Vec<&str> = lines.next().unwrap().split(',').collect();
    let place = |name: &str| titles.iter().position(|title| *title == name).unwrap();
    let [x, y, object] = ["x", "y", "object_id"].map(place);
    for (line, (id, at)) in lines.by_ref().zip(&rows) {
        let cells: Vec<&str> = line.split(',').collect();
        let position = [x, y].map(|at| cells[at].parse::<f32>().map(f64::from).unwrap());
        assert_eq!(position[..], truth.vertices[*at].position, "{line}");
        assert_eq!(cells[object], id.to_string());
    }
    let found = bench.json(&["query", "@a.zv", "--level", "1", "--count"]);
    assert_eq!(found["vertices"], rows.len());
    for name in ["a.npz", "a.ply", "a.obj"] {
        let target = format!("@{name}");
        let line = ["query", "@a.zv", "--level", "1", "-o", &target];
        assert_eq!(bench.json(&line)["vertices"], rows.len());
    }
    let ply = fs::read(bench.path("a.ply")).unwrap();
    let header = format!("element vertex {}\n", rows.len());
    assert!(
        ply.windows(header.len())
            .any(|line| line == header.as_bytes())
    );
    let obj = fs::read_to_string(bench.path("a.obj")).unwrap();
    assert_eq!(
        obj.lines().filter(|line| line.starts_with("v ")).count(),
        rows.len()
    );
    // The written file makes the same paths again.
    bench.says(&["create", "@b.zv", "--kind", "polylines", "--from", "@a.npz"]);
    let again = bench.json(&["query", "@b.zv", "--count"]);
    assert_eq!(again["vertices"], rows.len());
    assert_eq!(again["parts"], found["parts"]);
}
