//! `zvf query` as a user runs it.

use std::{collections::BTreeSet, fs};

use crate::{round_trip::typed, stores::Bench, text, unpack, zvf};

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
    let end = ".xlsx files cannot be written; use .csv, .npz, .arrow, .parquet, .ply, .obj, .trk, .tck, .trx, .swc, .stl, .las, .laz, .gii, .glb or .geoparquet";
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
    let found = bench.result("@a.zv", &line);
    let expected = "x,y,z,vertex.a,vertex.distance\n3,1,2,3,0.25\n4,1,2,0,0.75\n2,1,2,2,1.25\n";
    assert_eq!(found, expected);
    let json = bench.json(&[&["query", "@a.zv"][..], &line].concat());
    assert_eq!(json["distances"], serde_json::json!([0.25, 0.75, 1.25]));
    let shown = bench.says(&[&["query", "@a.zv"][..], &line].concat());
    assert!(shown.contains("vertex.distance"), "{shown}");
    assert!(!bench.result("@a.zv", &[]).contains("distance"));
}

#[test]
fn the_nearest_paths_and_links_have_distances() {
    let bench = Bench::new();
    bench.file(
        "p.csv",
        "x,y,z,part,object_id\n0,0,0,0,5\n9,0,0,0,5\n0,4,0,1,8\n9,4,0,1,8\n",
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
    let found = bench.result("@p.zv", &["--nearest", "5,3,0", "--k", "2"]);
    let expected = "x,y,z,part,object_id,fragment.distance\n0,4,0,0,8,1.0\n9,4,0,0,8,1.0\n\
        0,0,0,1,5,3.0\n9,0,0,1,5,3.0\nobject_id,object.distance\n8,1.0\n5,3.0\n";
    assert_eq!(found, expected);
    let json = bench.json(&["query", "@p.zv", "--nearest", "5,3,0", "--k", "2"]);
    assert_eq!(json["distances"], serde_json::json!([1.0, 3.0]));
    bench.file("g.csv", "x,y,z\n0,0,0\n9,0,0\n0,4,0\n9,4,0\n");
    bench.file("g.links.csv", "links[0],links[1]\n0,1\n2,3\n");
    let create = ["create", "@g.zv", "--kind", "graphs", "--from", "@g.csv"];
    bench.says(&[&create[..], &["--quiet"]].concat());
    let found = bench.result("@g.zv", &["--nearest", "5,3,0"]);
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

/// An object with several paths has the distance of the nearest one.
#[test]
fn objects_have_the_distance_of_their_nearest_path() {
    let bench = of_objects();
    let line = ["--nearest", "0,3", "--k", "3", "--where", "x < 5"];
    let found = bench.result("@p.zv", &line);
    let expected = "x,y,part,object_id,fragment.distance\n0.0,4.0,0,8,1.0\n0.0,1.0,1,5,2.0\n\
        0.0,0.0,2,5,3.0\nobject_id,object.distance\n8,1.0\n5,2.0\n";
    assert_eq!(found, expected);
}

/// Creates a store of two meshes, one with a name, and a store of two paths.
fn of_objects() -> Bench {
    let bench = Bench::new();
    bench.file(
        "m.csv",
        "x,y,z,object_id,a\n0,0,0,3,1\n1,0,0,3,2\n0,1,0,3,3\n5,5,5,8,4\n6,5,5,8,5\n5,6,5,8,6\n",
    );
    bench.file(
        "m.links.csv",
        "links[0],links[1],links[2]\n0,1,2\n3,4,5\n2,3,4\n",
    );
    bench.file("m.objects.csv", "object_id,object.name\n3,soma\n8,../x\n");
    bench.file("m.groups.csv", "group,object_id\n0,3\n0,8\n1,8\n");
    let create = [
        "create", "@m.zv", "--kind", "mesh", "--from", "@m.csv", "--quiet",
    ];
    bench.says(&create);
    bench.file(
        "p.csv",
        "x,y,part,object_id\n0.0,0.0,0,5\n9.0,0.0,0,5\n9.0,1.0,0,5\n0.0,1.0,0,5\n0.0,4.0,1,8\n9.0,4.0,1,8\n",
    );
    let create = ["create", "@p.zv", "--kind", "polylines", "--from", "@p.csv"];
    bench.says(&create);
    bench
}

#[test]
fn each_object_gets_a_file_in_every_format() {
    let bench = of_objects();
    let said = bench.json(&["query", "@m.zv", "-o", "@m_{name}.csv"]);
    assert_eq!(
        said["left_out"],
        serde_json::json!(["1 link: between objects"])
    );
    let read = |name: &str| fs::read_to_string(bench.path(name)).unwrap();
    assert_eq!(
        read("m_soma.links.csv"),
        "links[0],links[1],links[2]\n0,1,2\n"
    );
    // The name of the other object would lead to another folder.
    let expected = "x,y,z,object_id,vertex.a\n5,5,5,8,4\n5,6,5,8,6\n6,5,5,8,5\n";
    assert_eq!(read("m_8.csv"), expected);
    assert_eq!(read("m_8.links.csv"), "links[0],links[1],links[2]\n0,2,1\n");
    assert_eq!(read("m_8.objects.csv"), "object_id,object.name\n8,../x\n");
    assert_eq!(read("m_8.groups.csv"), "group,object_id\n0,8\n1,8\n");

    bench.json(&["query", "@m.zv", "-o", "@{object}.ply", "--select", "a"]);
    let back = ["create", "@8.zv", "--from", "@8.ply"];
    assert_eq!(bench.json(&back)["vertices"], 3);

    // A path that leaves the box and returns gives two parts.
    let clip = ["--bbox", "-1,-1,5,9", "--mode", "clip"];
    bench.json(&[&["query", "@p.zv", "-o", "@path_{object}.csv"][..], &clip].concat());
    let found = read("path_5.csv");
    let expected = "x,y,part,object_id\n0.0,0.0,0,5\n5.0,0.0,0,5\n5.0,1.0,1,5\n0.0,1.0,1,5\n";
    assert_eq!(found, expected);
    assert_eq!(read("path_8.csv").lines().count(), 3);
}

#[test]
fn files_of_objects_have_distinct_and_known_names() {
    let bench = of_objects();
    let says = bench.refused(&["query", "@m.zv", "-o", "@m_{id}.ply"]);
    assert!(says.contains("{id} is not a placeholder"), "{says}");
    assert!(
        says.contains("{object} stands for the id of an object"),
        "{says}"
    );
    bench.file("p.objects.csv", "object_id,object.name\n5,a\n8,a\n");
    let create = ["create", "@q.zv", "--kind", "polylines", "--from", "@p.csv"];
    bench.says(&create);
    let says = bench.refused(&["query", "@q.zv", "-o", "@{name}.csv"]);
    assert!(says.contains("use {object} in the name"), "{says}");
    assert!(!bench.path("a.csv").exists());
    bench.file("c.csv", "x,y\n0,0\n");
    bench.says(&["create", "@c.zv", "--kind", "points", "--from", "@c.csv"]);
    let says = bench.refused(&["query", "@c.zv", "-o", "@{object}.csv"]);
    assert!(says.contains("no vertex has an object"), "{says}");
}

/// Tables of the earlier result stayed, and were read as tables of the new one.
#[test]
fn a_result_replaces_the_tables_of_an_earlier_one() {
    let bench = Bench::new();
    bench.file("a.csv", "x,y,object_id\n1,2,5\n3,4,5\n");
    bench.file("a.links.csv", "links[0],links[1]\n0,1\n");
    bench.file("a.groups.csv", "group,object_id\n0,5\n");
    bench.says(&["create", "@a.zv", "--kind", "graphs", "--from", "@a.csv"]);
    bench.file("b.csv", "x,y\n7,8\n");
    bench.says(&["create", "@b.zv", "--kind", "points", "--from", "@b.csv"]);
    let tables = typed().into_iter().filter(|end| *end != "npz");
    for end in tables.chain(["csv"]) {
        for strict in [&[][..], &["--strict"]] {
            fs::create_dir(bench.path("out")).unwrap();
            let near = format!("@out/near.{end}");
            // Neither is a table of the result.
            bench.file(&format!("out/near.other.{end}"), "");
            bench.file("out/near.groups.txt", "");
            let save = |store: &str| {
                bench.says(&[&["query", store, "-o", &near, "--quiet"], strict].concat());
                let entries = fs::read_dir(bench.path("out")).unwrap();
                let names = entries
                    .map(|entry| entry.unwrap().file_name())
                    .map(|name| name.into_string().unwrap());
                names.collect::<BTreeSet<_>>()
            };
            let first = save("@a.zv");
            for part in ["links", "objects", "groups"] {
                let name = format!("near.{part}.{end}");
                assert!(first.contains(&name), "{name}: {first:?}");
            }
            let mut expected = BTreeSet::from([
                format!("near.{end}"),
                format!("near.other.{end}"),
                "near.groups.txt".to_owned(),
            ]);
            if end == "csv" {
                expected.insert("near.metadata.json".to_owned());
            }
            assert_eq!(save("@b.zv"), expected, "{end} {strict:?}");
            fs::remove_dir_all(bench.path("out")).unwrap();
        }
    }
}

/// Tables of the user were removed if they had the name of a table of the result.
#[test]
fn tables_that_belong_to_no_earlier_result_are_kept() {
    let bench = of_objects();
    let tables = typed().into_iter().filter(|end| *end != "npz");
    for end in tables.chain(["csv"]) {
        for part in ["links", "objects", "groups", "group_attributes"] {
            let own = format!("near.{part}.{end}");
            bench.file(&own, "own");
            for strict in [&[][..], &["--strict"]] {
                let near = format!("@near.{end}");
                let said = bench.refused(&[&["query", "@p.zv", "-o", &near], strict].concat());
                let reason = format!("/{own} exists, and /near.{end} does not");
                assert!(said.contains(&reason), "{said}");
                // The name of object 5, whose table it would be.
                bench.file(&format!("5.{part}.{end}"), "own");
                let each = format!("@{{object}}.{end}");
                let said = bench.refused(&[&["query", "@p.zv", "-o", &each], strict].concat());
                assert!(said.contains(&format!("/5.{part}.{end} exists")), "{said}");
            }
            let kept = fs::read_to_string(bench.path(&own)).unwrap();
            assert_eq!(kept, "own");
            fs::remove_file(bench.path(&own)).unwrap();
            fs::remove_file(bench.path(&format!("5.{part}.{end}"))).unwrap();
        }
        let names = bench.names();
        let is_result = |name: &&String| name.ends_with(&format!("near.{end}"));
        assert_eq!(names.iter().find(is_result), None);
    }
    bench.file("near.metadata.json", "own");
    let said = bench.refused(&["query", "@p.zv", "-o", "@near.csv"]);
    assert!(said.contains("/near.metadata.json exists"), "{said}");
    bench.says(&["query", "@p.zv", "-o", "@near.npz", "--quiet"]);
}

/// An object without a value could be written and not read.
#[test]
fn objects_without_a_value_are_read_back() {
    let bench = Bench::new();
    bench.file("a.csv", "x,y,object_id\n1,2,5\n3,4,6\n5,6,7\n");
    let objects = "object_id,object.flag,object.lanes,object.length,object.name,object.rgb[0],object.rgb[1]\n\
        5,1,4,0.5,a,1,2\n6,,,,,,\n7,0,7,NaN,b,3,4\n";
    let header = objects.lines().next().unwrap();
    bench.file(
        "a.objects.csv",
        &format!("{header}\n5,true,4,0.5,a,1,2\n6,,,,,,\n7,false,7,NaN,b,3,4\n"),
    );
    bench.says(&["create", "@a.zv", "--kind", "points", "--from", "@a.csv"]);
    let result = bench.result("@a.zv", &[]);
    assert!(result.contains(objects), "{result}");
    for end in typed().into_iter().chain(["csv"]) {
        let (file, store) = (format!("@b.{end}"), format!("@{end}.zv"));
        bench.says(&["query", "@a.zv", "-o", &file, "--quiet"]);
        bench.says(&["create", &store, "--kind", "points", "--from", &file]);
        assert_eq!(bench.result(&store, &[]), result, "{end}");
        assert_eq!(bench.code(&["validate", &store]), Some(0));
    }
    // Ids are needed, and a row has all its numbers or none.
    for (rows, column) in [
        ("5,1,2\n,3,4\n", "object_id"),
        ("5,1,2\n6,,4\n7,3,4\n", "object.v[0]"),
    ] {
        bench.file("d.csv", "x,y,object_id\n1,2,5\n3,4,6\n5,6,7\n");
        bench.file(
            "d.objects.csv",
            &format!("object_id,object.v[0],object.v[1]\n{rows}"),
        );
        let said = bench.refused(&["create", "@d.zv", "--kind", "points", "--from", "@d.csv"]);
        assert!(
            said.contains(&format!("d.objects.csv: {column}: row 1 has no value")),
            "{said}"
        );
    }
}

/// The name of an object may look like a table of another one.
#[test]
fn files_of_objects_are_not_replaced_by_each_other() {
    let bench = Bench::new();
    bench.file("a.csv", "x,y,object_id\n1,2,5\n3,4,8\n");
    bench.file("a.objects.csv", "object_id,name\n5,soma.groups\n8,soma\n");
    bench.says(&["create", "@a.zv", "--kind", "points", "--from", "@a.csv"]);
    bench.says(&["query", "@a.zv", "-o", "@{name}.csv", "--quiet"]);
    for name in ["soma.groups.csv", "soma.csv"] {
        assert!(bench.path(name).is_file(), "{name}");
    }
}
