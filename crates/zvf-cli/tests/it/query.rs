//! `zvf query` as a user runs it.

use std::fs;

use crate::{stores::Bench, text, unpack, zvf};

fn graph() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    unpack("zvf-07", "graph.zv", folder.path());
    folder
}

#[track_caller]
fn refused(arguments: &[&str]) -> String {
    let output = zvf(arguments);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(text(&output.stdout), "");
    text(&output.stderr).to_owned()
}

/// The format is checked before the store is opened.
#[test]
fn an_unknown_file_format_is_rejected_first() {
    let says = refused(&["query", "absent.zv", "-o", "a.xlsx"]);
    let end = ".xlsx files cannot be written; use .csv, .npz, .arrow, .parquet, .ply, .obj, .trk, .tck, .trx, .swc, .stl, .las, .laz, .gii or .glb";
    assert!(says.contains(end), "{says}");
    let says = refused(&["query", "absent.zv", "-o", "absent/a.csv"]);
    assert!(
        says.contains("the folder absent does not exist; create it first"),
        "{says}"
    );
}

#[test]
fn a_missing_store_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let address = folder.path().to_str().unwrap();
    let says = refused(&["query", address]);
    assert_eq!(
        says,
        format!(
            "error: {address} is not a Zarr store: it has no zarr.json; \
             give the root of a store, the folder whose zarr.json names zarr_vectors\n"
        )
    );
}

#[test]
fn a_box_with_a_wrong_number_of_axes_is_an_error() {
    let store = graph();
    let says = refused(&[
        "query",
        store.path().to_str().unwrap(),
        "--bbox",
        "-1,-1,2,2",
    ]);
    let expected = "error: --bbox has 2 axes, the store has 3: x, y, z; give a lower and an upper \
                    bound for each axis, as --bbox X0,Y0,Z0,X1,Y1,Z1\n";
    assert_eq!(says, expected);
}

#[test]
fn a_failed_query_writes_no_file() {
    let store = graph();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.csv");
    let address = store.path().to_str().unwrap();
    let line = [
        "query",
        address,
        "--level",
        "99",
        "-o",
        file.to_str().unwrap(),
    ];
    refused(&line);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// A point cloud in three chunks.
fn points() -> Bench {
    let bench = Bench::new();
    let rows = (0..30).map(|x| format!("{x},1,2,{}\n", x % 4));
    bench.file(
        "a.csv",
        &format!("x,y,z,vertex.a\n{}", rows.collect::<String>()),
    );
    let line = ["create", "@a.zv", "--kind", "points", "--from", "@a.csv"];
    bench.says(&[&line[..], &["--chunk-shape", "10,10,10", "--quiet"]].concat());
    bench
}

#[test]
fn the_nearest_points_have_distances() {
    let bench = points();
    let line = ["--nearest", "3.25,1,2", "--k", "3"];
    let found = bench.answer("@a.zv", &line);
    let expected = "x,y,z,vertex.a,vertex.distance\n3,1,2,3,0.25\n4,1,2,0,0.75\n2,1,2,2,1.25\n";
    assert_eq!(found, expected);
    let json = bench.json(&[&["query", "@a.zv"][..], &line].concat());
    assert_eq!(json["distances"], serde_json::json!([0.25, 0.75, 1.25]));
    let shown = bench.says(&[&["query", "@a.zv"][..], &line].concat());
    assert!(shown.contains("vertex.distance"), "{shown}");
    assert!(!bench.answer("@a.zv", &[]).contains("distance"));
}

#[test]
fn the_nearest_paths_and_links_have_distances() {
    let bench = Bench::new();
    bench.file(
        "p.csv",
        "x,y,z,part,object\n0,0,0,0,5\n9,0,0,0,5\n0,4,0,1,8\n9,4,0,1,8\n",
    );
    let create = [
        "create",
        "@p.zv",
        "--kind",
        "streamlines",
        "--from",
        "@p.csv",
    ];
    bench.says(&[&create[..], &["--quiet"]].concat());
    let found = bench.answer("@p.zv", &["--nearest", "5,3,0", "--k", "2"]);
    let objects = "object_id,object.distance\n8,1.0\n5,3.0\n";
    assert!(found.ends_with(objects), "{found}");
    let json = bench.json(&["query", "@p.zv", "--nearest", "5,3,0", "--k", "2"]);
    assert_eq!(json["distances"], serde_json::json!([1.0, 3.0]));
    bench.file("g.csv", "x,y,z\n0,0,0\n9,0,0\n0,4,0\n9,4,0\n");
    bench.file("g.links.csv", "links[0],links[1]\n0,1\n2,3\n");
    let create = ["create", "@g.zv", "--kind", "graphs", "--from", "@g.csv"];
    bench.says(&[&create[..], &["--quiet"]].concat());
    let found = bench.answer("@g.zv", &["--nearest", "5,3,0"]);
    let links = "links[0],links[1],link.distance\n0,1,1.0\n";
    assert!(found.contains(links), "{found}");
}

#[test]
fn axes_are_columns_of_predicates() {
    let bench = points();
    let found = bench.json(&[
        "query",
        "@a.zv",
        "--where",
        "x >= 12 && !(a == 1 || a <> 2)",
    ]);
    assert_eq!(found["vertices"], 4);
    let says = bench.refused(&["query", "@a.zv", "--where", "x => 12"]);
    assert!(says.contains("at byte 2: write `>=`"), "{says}");
    let says = bench.refused(&["query", "@a.zv", "--where", "größe > 12"]);
    let expected = "there is no attribute größe; there is x, y, z, a";
    assert!(says.contains(expected), "{says}");
}
