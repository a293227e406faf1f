//! `zvf append`, `zvf edit`, `zvf delete` and `zvf compact` as a user runs them.

use std::fs;

use serde_json::json;

use crate::{
    round_trip::typed,
    stores::{Bench, KINDS, tables},
    unpack,
};

const PATHS: &str = "x,y,z,part,object_id,vertex.fa\n\
    0.0,0.0,0.0,0,5,0.5\n12.0,1.0,1.0,0,5,1.5\n13.0,1.0,1.0,0,5,1.5\n\
    3.0,3.0,3.0,1,8,2.5\n4.0,4.0,4.0,1,8,3.5\n";
const OBJECTS: &str = "object_id,object.length\n5,10.5\n8,2.5\n";

/// Creates a store of two streamlines: 5 spans several chunks, 8 lies in one.
fn streamlines() -> Bench {
    let bench = Bench::new();
    bench.file("a.csv", PATHS);
    bench.file("a.objects.csv", OBJECTS);
    bench.file("a.groups.csv", "group,object_id\n0,5\n0,8\n1,8\n");
    let line = [
        "create",
        "@a.zv",
        "--kind",
        "streamlines",
        "--from",
        "@a.csv",
    ];
    bench.says(
        &[
            &line[..],
            &["--chunk-shape", "10,10,10", "--dtype", "float32"],
        ]
        .concat(),
    );
    bench
}

#[test]
fn append_adds_objects() {
    let bench = streamlines();
    bench.file("b.csv", "x,y,z,object_id,fa\n1,1,1,6,0.25\n2,2,2,6,0.75\n");
    bench.file("b.objects.csv", "object_id,length\n6,3\n");
    bench.file("b.groups.csv", "group,object_id\n1,6\n");
    let found = bench.json(&["append", "@a.zv", "--from", "@b.csv"]);
    let expected = json!({
        "vertices": 2, "removed": 0, "objects": 1, "object_ids": [6], "chunks": 1,
        "transaction": 1, "severed": 0, "notes": [],
    });
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(found[key], *value, "{key}");
    }
    assert!(found["bytes_written"].as_u64() > Some(0));
    let expected = "x,y,z,part,object_id,vertex.fa\n\
        1.0,1.0,1.0,0,6,0.25\n2.0,2.0,2.0,0,6,0.75\n3.0,3.0,3.0,1,8,2.5\n4.0,4.0,4.0,1,8,3.5\n\
        object_id,object.length\n6,3.0\n8,2.5\ngroup,object_id\n0,8\n1,8\n1,6\n";
    assert_eq!(bench.result("@a.zv", &["--group", "1"]), expected);
    let info = bench.json(&["info", "@a.zv"]);
    assert_eq!(info["levels"][0]["vertices"], 7);
    assert_eq!(info["levels"][0]["objects"], 3);
}

#[test]
fn objects_without_ids_get_new_ones() {
    let bench = streamlines();
    bench.file(
        "b.csv",
        "x,y,z,part,fa\n1,1,1,0,1\n2,2,2,0,2\n3,3,3,1,3\n6,4,4,1,4\n",
    );
    let found = bench.json(&["append", "@a.zv", "--from", "@b.csv"]);
    assert_eq!(found["object_ids"], json!([9, 10]));
    let expected = "x,y,z,part,object_id,vertex.fa\n3.0,3.0,3.0,0,10,3.0\n6.0,4.0,4.0,0,10,4.0\n\
        object_id,object.length\n10,\n";
    assert_eq!(bench.result("@a.zv", &["--object", "10"]), expected);
}

#[test]
fn appending_an_existing_object_is_an_error() {
    let bench = streamlines();
    let before = bench.result("@a.zv", &["--group", "0,1"]);
    let said = bench.refused(&["append", "@a.zv", "--from", "@a.csv"]);
    let expected = "error: object 5 already exists; \
        replace it with zvf edit, or add it under a new id with --ids new\n";
    assert_eq!(said, expected);
    assert_eq!(bench.result("@a.zv", &["--group", "0,1"]), before);
    let found = bench.json(&["append", "@a.zv", "--from", "@a.csv", "--ids", "new"]);
    assert_eq!(found["object_ids"], json!([9, 10]));
    let expected = before
        .replace(",5,", ",9,")
        .replace(",8,", ",10,")
        .replace("\n5,10.5\n8,2.5", "\n9,10.5\n10,2.5")
        .replace("\n0,5\n0,8\n1,8", "\n0,9\n0,10\n1,10");
    let added = bench.result("@a.zv", &["--object", "9,10"]);
    assert_eq!(added, expected);
    let members = bench.result("@a.zv", &["--group", "1"]);
    assert!(
        members.ends_with("group,object_id\n0,8\n0,10\n1,8\n1,10\n"),
        "{members}"
    );
}

/// Writes a tractogram of two streamlines with named groups.
fn tractogram(bench: &Bench) {
    bench.file(
        "t.csv",
        "x,y,z,part,vertex.fa\n1,1,1,0,1\n2,2,2,0,2\n3,3,3,1,3\n6,4,4,1,4\n",
    );
    bench.file("t.objects.csv", "object_id,object.length\n0,1.5\n1,2.5\n");
    bench.file("t.groups.csv", "group,object_id\nleft,0\nright,1\n");
    let line = [
        "create",
        "@t.zv",
        "--kind",
        "streamlines",
        "--from",
        "@t.csv",
    ];
    let form = ["--chunk-shape", "10,10,10", "--dtype", "float32", "--quiet"];
    bench.says(&[&line[..], &form].concat());
    bench.says(&["query", "@t.zv", "-o", "@t.trx", "--quiet"]);
}

#[test]
fn tractograms_and_stores_are_merged() {
    let bench = Bench::new();
    tractogram(&bench);
    // Objects of a tractogram have no ids, and a group of the same name is the same group.
    let found = bench.json(&["append", "@t.zv", "--from", "@t.trx"]);
    assert_eq!(found["object_ids"], json!([2, 3]));
    let said = bench.refused(&["append", "@t.zv", "--from", "@t.zv"]);
    assert!(said.contains("--ids new"), "{said}");
    let found = bench.json(&["append", "@t.zv", "--from", "@t.zv", "--ids", "new"]);
    assert_eq!(found["object_ids"], json!([4, 5, 6, 7]));
    let left = bench.result("@t.zv", &["--group", "left"]);
    assert!(
        left.ends_with("group,object_id\n0,0\n0,2\n0,4\n0,6\n"),
        "{left}"
    );
    let both = bench.json(&[
        "query", "@t.zv", "--count", "--group", "left", "--group", "1",
    ]);
    assert_eq!(both["objects"], 8);
    let lengths = "object_id,object.length\n1,2.5\n3,2.5\n5,2.5\n7,2.5\n";
    let right = bench.result("@t.zv", &["--group", "right"]);
    assert!(right.contains(lengths), "{right}");
    let said = bench.refused(&["query", "@t.zv", "--group", "lefd"]);
    let expected = "error: level 0 has no group named \"lefd\"; did you mean \"left\"?\n";
    assert_eq!(said, expected);
    bench.says(&["validate", "@t.zv", "--quiet"]);
}

#[test]
fn coordinates_of_another_system_are_refused() {
    let bench = Bench::new();
    let create = |name: &str, code: &str| {
        bench.file("p.csv", "x,y\n1,1\n2,2\n");
        let line = ["create", name, "--kind", "points", "--from", "@p.csv"];
        let form = ["--chunk-shape", "10,10", "--crs", code, "--quiet"];
        bench.says(&[&line[..], &form].concat());
    };
    create("@a.zv", "EPSG:25832");
    create("@b.zv", "EPSG:25833");
    create("@c.zv", "EPSG:25832");
    let line = ["append", "@a.zv", "--from", "@b.zv"];
    let said = bench.refused(&line);
    let expected = "error: the coordinates of the file are in EPSG:25833, and those of the store in \
        EPSG:25832; transform the file first, for example with pdal or ogr2ogr, or add --assume-crs \
        if they are the same\n";
    assert_eq!(said, expected);
    bench.says(&[&line[..], &["--assume-crs"]].concat());
    bench.says(&["append", "@a.zv", "--from", "@c.zv"]);
    assert_eq!(bench.json(&["query", "@a.zv", "--count"])["vertices"], 6);
}

#[test]
fn values_of_objects_reach_all_levels() {
    let bench = Bench::new();
    tractogram(&bench);
    bench.says(&["pyramid", "@t.zv", "--levels", "2", "--quiet"]);
    bench.file(
        "v.csv",
        "object_id,object.length,object.side\n1,9.5,r\n0,8.5,l\n",
    );
    bench.says(&[
        "edit",
        "@t.zv",
        "--attributes",
        "@v.csv",
        "--key",
        "object_id",
    ]);
    let levels = bench.json(&["info", "@t.zv"]);
    for level in ["0", "1", "2"] {
        let at = level.parse::<usize>().unwrap();
        assert_ne!(levels["levels"][at]["is_behind"], true);
        let found = bench.result("@t.zv", &["--level", level]);
        let values = "object_id,object.length,object.side\n0,8.5,l\n1,9.5,r\n";
        assert!(found.contains(values), "{found}");
    }
    // All levels have the values.
    bench.file("side.csv", "object_id,object.side\n0,x\n");
    let found = bench.json(&["edit", "@t.zv", "--attributes", "@side.csv"]);
    assert_eq!(found["notes"], json!([]));
    let found = bench.json(&["validate", "@t.zv"]);
    assert_eq!(found["findings"], json!([]));
}

#[test]
fn geometry_outside_the_bounds_is_rejected_dropped_or_expands_them() {
    let bench = streamlines();
    let far = "x,y,z,object_id,fa\n1,1,1,6,1\n2,2,2,6,1\n1,1,1,7,2\n25,2,2,7,2\n";
    bench.file("b.csv", far);
    let line = ["append", "@a.zv", "--from", "@b.csv"];
    let said = bench.refused(&line);
    let expected = "error: vertex 3 lies outside the bounds on axis 0: 25 is not in 0 to 13; \
        extend the bounds with --out-of-bounds expand, or drop such items with --out-of-bounds ignore\n";
    assert_eq!(said, expected);
    let found = bench.json(&[&line[..], &["--out-of-bounds", "ignore"]].concat());
    assert_eq!(
        (&found["vertices"], &found["object_ids"]),
        (&json!(2), &json!([6]))
    );
    let note = "2 vertices dropped: outside the bounds, or in a path that leaves them";
    assert_eq!(found["notes"], json!([note]));
    bench.file("b.csv", &far.replace(",6,", ",10,"));
    let found = bench.json(&[&line[..], &["--out-of-bounds", "expand"]].concat());
    assert_eq!(found["object_ids"], json!([7, 10]));
    let info = bench.json(&["info", "@a.zv"]);
    assert_eq!(info["bounds"][1], json!([25.0, 4.0, 4.0]));
    let expected = "x,y,z,part,object_id,vertex.fa\n1.0,1.0,1.0,0,7,2.0\n25.0,2.0,2.0,0,7,2.0\n\
        object_id,object.length\n7,\n";
    assert_eq!(bench.result("@a.zv", &["--object", "7"]), expected);
}

#[test]
fn bounds_expand_upwards_only() {
    let bench = Bench::new();
    bench.file("a.csv", "x,y,object_id\n15,5,1\n");
    let line = ["create", "@a.zv", "--kind", "points", "--from", "@a.csv"];
    bench.says(&[&line[..], &["--chunk-shape", "10,10"]].concat());
    bench.file("b.csv", "x,y,object_id\n5,5,2\n");
    let line = [
        "append",
        "@a.zv",
        "--from",
        "@b.csv",
        "--out-of-bounds",
        "expand",
    ];
    let said = bench.refused(&line);
    let expected = "error: the addition reaches chunk 0 on axis 0, but the grid starts at \
        chunk 1; rewrite the store with lower bounds; zvf query STORE -o all.npz, then zvf create NEW \
        --from all.npz --bounds LOWER,UPPER\n";
    assert_eq!(said, expected);
    // Once the store is empty, no chunk would have to move.
    bench.says(&["delete", "@a.zv", "--object", "1"]);
    bench.says(&line);
    assert_eq!(
        bench.result("@a.zv", &[]),
        "x,y,object_id\n5,5,2\nobject_id\n2\n"
    );
    bench.says(&["append", "@a.zv", "--from", "@a.csv"]);
    let expected = "x,y,object_id\n5,5,2\n15,5,1\nobject_id\n1\n2\n";
    assert_eq!(bench.result("@a.zv", &[]), expected);
}

#[test]
fn incompatible_geometry_is_rejected() {
    let refusals = [
        (
            "x,y,z,object_id\n1,1,1,6\n2,2,2,6\n",
            "the store has the vertex attribute \"fa\"",
        ),
        (
            "x,y,z,object_id,fa,b\n1,1,1,6,1,1\n2,2,2,6,1,1\n",
            "no vertex attribute \"b\"",
        ),
        (
            "x,y,z,object_id,fa\n1,1,1,6,a\n2,2,2,6,b\n",
            "\"fa\" is 1 x float64 in the store, but text",
        ),
        ("x,y,object_id,fa\n1,1,6,1\n", "has no column z"),
        (
            "x,y,z,fa\n1,1,1,1\n",
            "give a table a column part or object_id, which marks the rows of a path",
        ),
        (
            "x,y,z,object_id,fa\n1,1,1,6,1\n2,nan,2,6,1\n",
            "vertex 1 has a coordinate of NaN",
        ),
    ];
    let bench = streamlines();
    let before = bench.result("@a.zv", &[]);
    for (csv, why) in refusals {
        bench.file("b.csv", csv);
        let said = bench.refused(&["append", "@a.zv", "--from", "@b.csv"]);
        assert!(said.contains(why), "{said}");
    }
    assert_eq!(bench.result("@a.zv", &[]), before);
}

#[test]
fn only_existing_stores_of_0_9_are_edited() {
    let bench = streamlines();
    for verb in ["append", "edit"] {
        let said = bench.refused(&[verb, "@b.zv", "--from", "@a.csv"]);
        assert_eq!(
            said,
            "error: /b.zv does not exist; create a store with zvf create\n"
        );
    }
    for verb in [
        &["compact", "@b.zv"][..],
        &["delete", "@b.zv", "--object", "1"],
    ] {
        let said = bench.refused(verb);
        assert_eq!(
            said,
            "error: /b.zv does not exist; create a store with zvf create\n"
        );
    }
    let line = [
        "create",
        "@b.zv",
        "--kind",
        "streamlines",
        "--from",
        "@a.csv",
    ];
    bench.says(&[&line[..], &["--profile", "0.8"]].concat());
    let said = bench.refused(&["compact", "@b.zv"]);
    let expected = "error: /b.zv is a store of 0.8, and only stores of 0.9 and 0.10 can be changed; \
        convert it with zvf migrate\n";
    assert_eq!(said, expected);
}

#[test]
fn edit_replaces_objects() {
    for end in typed().into_iter().chain(["csv"]) {
        let bench = streamlines();
        let file = format!("@eight.{end}");
        bench.says(&["query", "@a.zv", "--object", "8", "-o", &file, "--quiet"]);
        if end == "csv" {
            let moved =
                "x,y,z,part,object_id,vertex.fa\n3.5,3.0,3.0,0,8,9.0\n11.0,4.0,4.0,0,8,3.5\n";
            bench.file("eight.csv", moved);
            bench.file("eight.objects.csv", "object_id,object.length\n8,7.75\n");
        }
        let found = bench.json(&["edit", "@a.zv", "--from", &file]);
        let chunks = if end == "csv" { 2 } else { 1 };
        let expected = json!({
            "vertices": 2, "removed": 2, "objects": 1, "object_ids": [8], "chunks": chunks,
            "transaction": 1, "severed": 0,
        });
        for (key, value) in expected.as_object().unwrap() {
            assert_eq!(found[key], *value, "{end}: {key}");
        }
        let mut expected = format!("{PATHS}{OBJECTS}group,object_id\n0,5\n0,8\n1,8\n");
        if end == "csv" {
            expected = expected.replace("3.0,3.0,3.0,1,8,2.5", "3.5,3.0,3.0,1,8,9.0");
            expected = expected
                .replace("4.0,4.0,4.0,", "11.0,4.0,4.0,")
                .replace("8,2.5\n", "8,7.75\n");
        }
        // Object 8 is in both groups and is replaced once.
        assert_eq!(
            bench.result("@a.zv", &["--group", "0,1"]),
            expected,
            "{end}"
        );
    }
}

#[test]
fn edit_splits_and_merges() {
    let bench = streamlines();
    bench.file(
        "b.csv",
        "x,y,z,object_id,fa\n0,0,0,5,1\n9,1,1,5,1\n12,1,1,9,1\n13,1,1,9,1\n",
    );
    let said = bench.refused(&["edit", "@a.zv", "--from", "@b.csv"]);
    let expected = "error: there is no object 9; \
        add objects with zvf append, or name the objects to replace with --remove\n";
    assert_eq!(said, expected);
    let found = bench.json(&["edit", "@a.zv", "--from", "@b.csv", "--remove", "5"]);
    assert_eq!(
        (&found["object_ids"], &found["removed"]),
        (&json!([5, 9]), &json!(3))
    );
    let expected = "x,y,z,part,object_id,vertex.fa\n12.0,1.0,1.0,0,9,1.0\n13.0,1.0,1.0,0,9,1.0\n\
        object_id,object.length\n9,\n";
    assert_eq!(bench.result("@a.zv", &["--object", "9"]), expected);
    bench.file("c.csv", "x,y,z,object_id,fa\n0,0,0,5,1\n13,1,1,5,1\n");
    let line = ["edit", "@a.zv", "--from", "@c.csv", "--remove", "9"];
    let said = bench.refused(&line);
    let expected = "error: object 5 already exists; \
        name it in --remove as well, or give it another id\n";
    assert_eq!(said, expected);
    let found = bench.json(&[&line[..], &["--remove", "5"]].concat());
    assert_eq!(
        (&found["vertices"], &found["removed"]),
        (&json!(2), &json!(4))
    );
    let expected = "x,y,z,part,object_id,vertex.fa\n0.0,0.0,0.0,0,5,1.0\n13.0,1.0,1.0,0,5,1.0\n\
        3.0,3.0,3.0,1,8,2.5\n4.0,4.0,4.0,1,8,3.5\nobject_id\n5\n8\n\
        group,object_id\n0,5\n0,8\n1,8\n";
    assert_eq!(bench.result("@a.zv", &["--select", "fa"]), expected);
}

#[test]
fn replacements_must_name_their_objects() {
    let bench = streamlines();
    bench.file("b.csv", "x,y,z,part,fa\n1,1,1,0,1\n2,2,2,0,2\n");
    let before = bench.result("@a.zv", &[]);
    let said = bench.refused(&["edit", "@a.zv", "--from", "@b.csv"]);
    assert!(
        said.contains(
            "no vertex or path has an object id; name the objects to replace with --remove"
        ),
        "{said}"
    );
    assert_eq!(bench.result("@a.zv", &[]), before);
}

#[test]
fn edits_that_would_lose_links_to_others_are_rejected() {
    let bench = Bench::new();
    bench.file("a.csv", "x,y,z,object_id\n0,0,0,5\n2,0,0,8\n3,1,1,8\n");
    bench.file("a.links.csv", "links[0],links[1]\n0,1\n1,2\n");
    let line = [
        "create",
        "@a.zv",
        "--kind",
        "graphs",
        "--from",
        "@a.csv",
        "--chunk-shape",
        "10,10,10",
    ];
    bench.says(&line);
    bench.file("b.csv", "x,y,z,object_id\n1,0,0,5\n");
    let said = bench.refused(&["edit", "@a.zv", "--from", "@b.csv"]);
    let expected = "error: 1 links to other objects would be lost; \
        add the objects at their other ends, and the links, to the file\n";
    assert_eq!(said, expected);
    let said = bench.says(&["delete", "@a.zv", "--object", "5"]);
    assert!(
        said.contains(
            "1 vertex removed, 1 object\n  object 5\n  1 link to other objects also removed"
        ),
        "{said}"
    );
    let expected = "x,y,z,object_id\n2,0,0,8\n3,1,1,8\nlinks[0],links[1]\n0,1\nobject_id\n8\n";
    assert_eq!(bench.result("@a.zv", &[]), expected);
}

#[test]
fn delete_selects_objects_by_id_group_region_and_attribute() {
    let ways: [(&[&str], &[i64]); 8] = [
        (&["--object", "8"], &[8]),
        (&["--object", "8,5"], &[5, 8]),
        (&["--group", "1"], &[8]),
        (&["--where", "object.length > 5"], &[5]),
        (&["--where", "vertex.fa = 3.5"], &[8]),
        (&["--bbox", "5,0,0,6,1,1"], &[5]),
        (&["--bbox", "0,0,0,12.5,9,9", "--mode", "within"], &[8]),
        (&["--object", "5", "--where", "vertex.fa > 2"], &[]),
    ];
    for (way, ids) in ways {
        let bench = streamlines();
        let line = [&["delete", "@a.zv"], way].concat();
        let before = bench.result("@a.zv", &["--group", "0,1"]);
        let mut dry = bench.json(&[&line[..], &["--dry-run"]].concat());
        assert_eq!(
            bench.result("@a.zv", &["--group", "0,1"]),
            before,
            "{way:?}"
        );
        let found = bench.json(&line);
        assert_eq!(found["object_ids"], json!(ids), "{way:?}");
        assert_eq!(found["objects"], ids.len(), "{way:?}");
        for key in ["objects", "object_ids", "removed"] {
            assert_eq!(dry[key].take(), found[key], "{way:?}: {key}");
        }
        let mut expected = PATHS.to_owned();
        let mut named = vec![5, 8];
        named.retain(|id| !ids.contains(id));
        let (five, eight) = PATHS.split_at(PATHS.find("3.0,3.0,3.0").unwrap());
        let title = five.lines().next().unwrap();
        match ids {
            [5] => expected = format!("{title}\n{}", eight.replace(",1,8,", ",0,8,")),
            [8] => expected = five.to_owned(),
            [5, 8] => expected = format!("{title}\n"),
            _ => assert_eq!(found["transaction"], json!(null)),
        }
        if !named.is_empty() {
            expected += "object_id\n";
        }
        for id in &named {
            expected += if *id == 5 { "5\n" } else { "8\n" };
        }
        if !named.is_empty() {
            expected += "group,object_id\n";
        }
        for id in &named {
            expected += if *id == 5 { "0,5\n" } else { "0,8\n" };
        }
        if named.contains(&8) {
            expected += "1,8\n";
        }
        let found = bench.result("@a.zv", &["--select", "fa"]);
        assert_eq!(found, expected, "{way:?}");
    }
}

#[test]
fn delete_explains_errors() {
    let bench = streamlines();
    let line = |more: &[&'static str]| [&["delete", "@a.zv"], more].concat();
    assert!(
        bench
            .refused(&line(&[]))
            .contains("give --object, --group, --where, --bbox")
    );
    for dry in [&["--object", "9"][..], &["--object", "9", "--dry-run"]] {
        assert_eq!(bench.refused(&line(dry)), "error: there is no object 9\n");
    }
    assert!(
        bench
            .refused(&line(&["--bbox", "0,0,1,1"]))
            .contains("--bbox has 2 axes")
    );
    let clip = ["--bbox", "0,0,0,1,1,1", "--mode", "clip"];
    assert!(
        bench
            .refused(&line(&clip))
            .contains("only be deleted whole")
    );
    assert!(
        bench
            .refused(&line(&["--group", "7"]))
            .contains("no group 7")
    );
    let nothing = ["--bbox", "90,90,90,91,91,91", "--fail-empty"];
    assert_eq!(bench.code(&line(&nothing)), Some(1));
    bench.file("p.csv", "x,y\n1,2\n3,4\n");
    bench.says(&["create", "@p.zv", "--kind", "points", "--from", "@p.csv"]);
    for way in [["--object", "0"], ["--group", "0"]] {
        let said = bench.refused(&[&["delete", "@p.zv"], &way[..]].concat());
        assert!(
            said.contains("there is no group 0\n") || said.contains("no object"),
            "{said}"
        );
    }
}

#[test]
fn compact_keeps_the_content() {
    let bench = streamlines();
    bench.says(&["delete", "@a.zv", "--object", "5"]);
    bench.file("b.csv", "x,y,z,object_id,fa\n1,1,1,6,0.25\n2,2,2,6,0.75\n");
    bench.says(&["append", "@a.zv", "--from", "@b.csv"]);
    let found = bench.json(&["compact", "@a.zv"]);
    assert_eq!(
        (&found["vertices"], &found["removed"]),
        (&json!(0), &json!(0))
    );
    assert_eq!(
        (&found["transaction"], &found["chunks"]),
        (&json!(3), &json!(1))
    );
    let expected = "x,y,z,part,object_id,vertex.fa\n1.0,1.0,1.0,0,6,0.25\n2.0,2.0,2.0,0,6,0.75\n\
        3.0,3.0,3.0,1,8,2.5\n4.0,4.0,4.0,1,8,3.5\nobject_id\n6\n8\n\
        group,object_id\n0,8\n1,8\n";
    assert_eq!(bench.result("@a.zv", &["--select", "fa"]), expected);
    let said = bench.says(&["compact", "@a.zv"]);
    assert_eq!(said, "/a.zv\n  nothing to do, nothing changed\n");
}

/// Deleting and appending object 8 of every kind restores the store.
#[test]
fn every_kind_can_be_deleted_from_appended_to_and_edited() {
    for (kind, files) in &KINDS[1..] {
        let bench = Bench::new();
        let expected = tables(&bench, files);
        let axes = if *kind == "points" {
            "10,10"
        } else {
            "10,10,10"
        };
        let line = [
            "create",
            "@a.zv",
            "--kind",
            kind,
            "--from",
            "@a.csv",
            "--chunk-shape",
            axes,
        ];
        bench.says(&line);
        bench.says(&[
            "query",
            "@a.zv",
            "--object",
            "8",
            "-o",
            "@eight.npz",
            "--quiet",
        ]);
        bench.says(&[
            "query",
            "@a.zv",
            "--object",
            "5",
            "-o",
            "@five.csv",
            "--quiet",
        ]);
        let five = bench.result("@a.zv", &["--object", "5"]);
        let eight = bench.result("@a.zv", &["--object", "8"]);
        let found = bench.json(&["delete", "@a.zv", "--object", "8"]);
        assert_eq!(found["severed"], 0, "{kind}");
        assert_eq!(bench.result("@a.zv", &[]), five, "{kind}");
        let found = bench.json(&["append", "@a.zv", "--from", "@eight.npz"]);
        assert_eq!(found["object_ids"], json!([8]), "{kind}");
        assert_eq!(bench.result("@a.zv", &["--object", "8"]), eight, "{kind}");
        bench.says(&["edit", "@a.zv", "--from", "@five.csv"]);
        assert_eq!(bench.result("@a.zv", &["--object", "5"]), five, "{kind}");
        bench.says(&["compact", "@a.zv"]);
        assert_eq!(bench.result("@a.zv", &["--object", "5"]), five, "{kind}");
        assert_eq!(bench.result("@a.zv", &["--object", "8"]), eight, "{kind}");
        let info = bench.json(&["info", "@a.zv"]);
        let vertices = files[0].1.lines().count() - 1;
        assert_eq!(info["levels"][0]["vertices"], vertices, "{kind}");
        assert!(expected.contains("group"), "{kind}");
    }
}

#[test]
fn points_without_objects_are_appended() {
    let bench = Bench::new();
    bench.file("a.csv", "x,y,kind\n1,2,a\n3,4,b\n12,1,a\n");
    let line = ["create", "@a.zv", "--kind", "points", "--from", "@a.csv"];
    bench.says(&[&line[..], &["--chunk-shape", "10,10", "--dtype", "float32"]].concat());
    bench.file("b.csv", "x,y,kind\n2,2,c\n11,2,a\n");
    let found = bench.json(&["append", "@a.zv", "--from", "@b.csv"]);
    assert_eq!(
        (&found["vertices"], &found["objects"]),
        (&json!(2), &json!(0))
    );
    let expected = "x,y,vertex.kind\n1.0,2.0,a\n3.0,4.0,b\n2.0,2.0,c\n12.0,1.0,a\n11.0,2.0,a\n";
    assert_eq!(bench.result("@a.zv", &[]), expected);
    let said = bench.refused(&["edit", "@a.zv", "--from", "@b.csv"]);
    assert!(
        said.contains("no vertex or path has an object id"),
        "{said}"
    );
}

/// Only vertices and tables have addresses, which belong to a transaction. The option was ignored.
#[test]
fn objects_are_not_replaced_at_a_transaction() {
    let bench = streamlines();
    bench.says(&["query", "@a.zv", "--object", "8", "-o", "@b.csv", "--quiet"]);
    let line = [
        "edit",
        "@a.zv",
        "--from",
        "@b.csv",
        "--at-transaction",
        "77",
    ];
    let said = bench.refused(&line);
    assert!(said.contains("which are replaced by their ids"), "{said}");
    let said = bench.refused(&[&line[..], &["--remove", "8"]].concat());
    assert!(said.contains("cannot be used with"), "{said}");
    let info = bench.json(&["info", "@a.zv"]);
    assert_eq!(info["written_by"]["transaction"], 0);
}

/// Objects that satisfy a predicate in part only were deleted as well, unlike by `Dataset.delete`.
#[test]
fn delete_within_a_predicate_needs_all_vertices_of_an_object() {
    let bench = Bench::new();
    bench.file(
        "a.csv",
        "x,y,object_id,r\n0,0,1,9\n1,0,1,0\n2,0,1,0\n0,5,2,0\n1,5,2,0\n",
    );
    bench.file("a.links.csv", "links[0],links[1]\n1,0\n2,1\n4,3\n");
    let line = ["create", "@a.zv", "--kind", "skeletons", "--from", "@a.csv"];
    bench.says(&line);
    let line = ["delete", "@a.zv", "--where", "vertex.r < 1", "--dry-run"];
    let found = bench.json(&line);
    assert_eq!(found["object_ids"], json!([1, 2]));
    let found = bench.json(&[&line[..], &["--mode", "within"]].concat());
    assert_eq!(found["object_ids"], json!([2]));
}

/// Regression test: coordinates were taken in the unit of the store and in the order of its axes.
#[test]
fn files_in_other_units_and_orders_of_axes_fit_the_store() {
    let bench = Bench::new();
    bench.file("a.swc", "1 1 1000 0 0 500 -1\n2 3 2000 0 0 250 1\n");
    let axes = "x:nanometer,y:nanometer,z:nanometer";
    let bounds = "0,-9,-9,5000,9,9";
    bench.says(&[
        "create", "@a.zv", "--from", "@a.swc", "--axes", axes, "--bounds", bounds,
    ]);
    let before = bench.result("@a.zv", &[]);
    assert!(before.contains("2000"), "{before}");
    let same = |file: &str, expected: &str| {
        bench.says(&["query", "@a.zv", "-o", "@c.swc"]);
        assert_eq!(fs::read_to_string(bench.path("c.swc")).unwrap(), expected);
        let found = bench.json(&["edit", "@a.zv", "--from", file, "--ids", "keep"]);
        // Skeletons have the names of their files.
        let name = file.trim_start_matches('@').trim_end_matches(".swc");
        let after = bench.result("@a.zv", &[]);
        assert_eq!(after.replace(&format!("0,{name}"), "0,a"), before);
        found["notes"].to_string()
    };
    // A file is in the unit that it states, or else in that of the store.
    let samples = "1 1 1000 0 0 500 -1\n2 3 2000 0 0 250 1\n";
    let stated = format!("# Meta: {{\"units\": \"nanometer\"}}\n{samples}");
    assert_eq!(same("@a.swc", &stated), "[]");
    bench.says(&["query", "@a.zv", "-o", "@b.swc", "--unit", "micrometer"]);
    let notes = same("@b.swc", &stated);
    assert!(
        notes.contains("x converted from micrometer to nanometer"),
        "{notes}"
    );
    let lacking = "1 1 1 0 0 0.5 -1\n2 3 2 0 0 0.25 1\n";
    bench.file("d.swc", lacking);
    let edit = ["edit", "@a.zv", "--from", "@d.swc", "--ids", "keep"];
    bench.says(&[&edit[..], &["--unit", "micrometer"]].concat());
    assert_eq!(bench.result("@a.zv", &[]).replace("0,d", "0,a"), before);
    // Files that contradict the store or the command are refused.
    bench.file(
        "e.swc",
        &format!("# Meta: {{\"units\": \"8 nanometer\"}}\n{lacking}"),
    );
    for (line, fault) in [
        (
            &["append", "@a.zv", "--from", "@b.swc", "--unit", "nanometer"][..],
            "x is in micrometer in the file, not in nanometer",
        ),
        (
            &["append", "@a.zv", "--from", "@d.swc", "--unit", "foot"],
            "x is in foot in the file and in nanometer",
        ),
        (
            &[
                "create",
                "@c.zv",
                "--from",
                "@e.swc",
                "--unit",
                "micrometer",
            ],
            "x is in nanometer in the file, not in micrometer",
        ),
        (
            &["create", "@c.zv", "--from", "@b.swc", "--unit", "nanometer"],
            "x is in micrometer in the file, not in nanometer",
        ),
        (
            &["query", "@a.zv", "-o", "@c.gii", "--unit", "nanometer"],
            "gii files hold millimetres, not nanometer",
        ),
    ] {
        let said = bench.refused(line);
        assert!(said.contains(fault), "{said}");
    }
    bench.says(&["create", "@c.zv", "--from", "@e.swc"]);
    bench.says(&[
        "create",
        "@d.zv",
        "--from",
        "@d.swc",
        "--unit",
        "micrometer",
    ]);
    let unit = |store: &str| bench.json(&["info", store])["axis_details"][0]["unit"].clone();
    assert_eq!(
        (unit("@c.zv"), unit("@d.zv")),
        (json!("nanometer"), json!("micrometer"))
    );
    // Lengths in a multiple of a unit are those in the unit.
    let rows = bench.result("@c.zv", &[]);
    assert!(
        rows.contains("\n16.0,0.0,0.0,") && rows.contains(",2.0,"),
        "{rows}"
    );
    bench.says(&["query", "@c.zv", "-o", "@f.swc"]);
    let text = fs::read_to_string(bench.path("f.swc")).unwrap();
    assert!(
        text.contains(r#""units":"nanometer""#) && text.contains("1 1 8 0 0 4 -1"),
        "{text}"
    );
    bench.says(&["query", "@d.zv", "-o", "@d.csv", "--unit", "nanometer"]);
    let rows = fs::read_to_string(bench.path("d.csv")).unwrap();
    assert!(rows.contains("\n1000.0,0.0,0.0,"), "{rows}");
}

#[test]
fn tractograms_are_in_millimetres_unless_a_unit_is_given() {
    let bench = Bench::new();
    let unit = |store: &str| bench.json(&["info", store])["axis_details"][0]["unit"].clone();
    bench.file(
        "e.csv",
        "x,y,z,fa,object_id,part\n3,2,1,1,0,0\n6,5,4,1,0,0\n",
    );
    let lines = ["--kind", "streamlines", "--from", "@e.csv"];
    bench.says(&[&["create", "@e.zv"][..], &lines].concat());
    for file in ["@e.tck", "@e.trk"] {
        bench.says(&["query", "@e.zv", "-o", file]);
        let create = ["create", "@f.zv", "--from", file, "--overwrite", "--unit"];
        bench.says(&[&create[..], &["micrometer"]].concat());
        assert_eq!(unit("@f.zv"), json!("micrometer"), "{file}");
        assert!(bench.result("@f.zv", &[]).contains("6.0"), "{file}");
    }
    // Without streamlines there are no values, and so no names of values: nibabel refuses such files.
    bench.says(&["query", "@e.zv", "--where", "fa > 5", "-o", "@g.trk"]);
    let [some, none] = ["e.trk", "g.trk"].map(|file| fs::read(bench.path(file)).unwrap());
    assert_eq!(
        (&some[36..38], &none[36..38], none.len()),
        (&[1, 0][..], &[0, 0][..], 1000)
    );
}

#[test]
fn files_in_other_orders_of_axes_fit_the_store() {
    let bench = Bench::new();
    bench.file("b.csv", "z,y,x,object_id,part\n3,2,1,0,0\n6,5,4,0,0\n");
    let axes = "z:millimeter,y:millimeter,x:millimeter";
    let line = [
        "create",
        "@b.zv",
        "--kind",
        "streamlines",
        "--from",
        "@b.csv",
    ];
    let space = [
        "--axes",
        axes,
        "--bounds",
        "0,0,0,9,9,9",
        "--dtype",
        "float32",
    ];
    bench.says(&[&line[..], &space].concat());
    let before = bench.result("@b.zv", &[]);
    for file in ["@b.tck", "@b.npz"] {
        bench.says(&["query", "@b.zv", "-o", file]);
        let found = bench.json(&["edit", "@b.zv", "--from", file, "--ids", "keep"]);
        assert_eq!(found["notes"], json!([]));
        assert_eq!(bench.result("@b.zv", &[]), before);
    }
}

/// Regression test: files without ids replaced objects 0, 1, …, also with `--ids new`, and `append`
/// gave neurons whose file names are ids others.
#[test]
fn files_without_ids_replace_named_objects_only() {
    let bench = Bench::new();
    fs::create_dir(bench.path("n")).unwrap();
    let neuron = |name: &str, x: i32| {
        bench.file(name, &format!("1 1 {x} 0 0 1 -1\n2 3 {x} 1 0 1 1\n"));
    };
    for id in 0..3 {
        neuron(&format!("n/{id}.swc"), id);
    }
    bench.says(&["create", "@n.zv", "--from", "@n"]);
    tractogram(&bench);
    neuron("fixed.swc", 1);
    for (store, file) in [("@n.zv", "@fixed.swc"), ("@t.zv", "@t.trx")] {
        let before = bench.result(store, &[]);
        for ids in [&[][..], &["--ids", "new"]] {
            let edit = ["edit", store, "--from", file];
            let said = bench.refused(&[&edit[..], ids].concat());
            assert!(said.contains("has no ids of objects"), "{said}");
            assert!(said.contains("--remove"), "{said}");
        }
        assert_eq!(bench.result(store, &[]), before);
    }
    bench.says(&["query", "@n.zv", "--object", "1", "-o", "@one.npz"]);
    let said = bench.refused(&["edit", "@n.zv", "--from", "@one.npz", "--ids", "new"]);
    assert!(said.contains("new ids replace none"), "{said}");
    // The name of the file is an id.
    neuron("2.swc", 1);
    let found = bench.json(&["edit", "@n.zv", "--from", "@2.swc"]);
    assert_eq!(found["object_ids"], json!([2]));
    for (store, file, ids) in [
        ("@n.zv", "@fixed.swc", json!([3])),
        ("@t.zv", "@t.trx", json!([2, 3])),
    ] {
        let found = bench.json(&["edit", store, "--from", file, "--remove", "1"]);
        assert_eq!(found["object_ids"], ids);
    }
    neuron("7.swc", 1);
    let found = bench.json(&["append", "@n.zv", "--from", "@7.swc"]);
    assert_eq!(found["object_ids"], json!([7]));
    let said = bench.refused(&["append", "@n.zv", "--from", "@7.swc"]);
    assert!(said.contains("object 7 already exists"), "{said}");
    let found = bench.json(&["append", "@n.zv", "--from", "@fixed.swc"]);
    assert_eq!(found["object_ids"], json!([8]));
}

/// Regression test: edits ignored attributes with this name, as if they were folders of chunks.
#[test]
fn edits_keep_attributes_named_c() {
    let bench = Bench::new();
    bench.file(
        "a.csv",
        "x,y,z,object_id,part,vertex.c\n0,0,0,0,0,5\n1,1,1,1,1,6\n2,2,2,2,2,7\n",
    );
    bench.file("a.objects.csv", "object_id,object.c\n0,7\n1,8\n2,9\n");
    bench.says(&[
        "create",
        "@a.zv",
        "--kind",
        "streamlines",
        "--from",
        "@a.csv",
    ]);
    bench.says(&["delete", "@a.zv", "--object", "1"]);
    let expected = "x,y,z,part,object_id,vertex.c\n0,0,0,0,0,5\n2,2,2,1,2,7\n\
        object_id,object.c\n0,7\n2,9\n";
    assert_eq!(bench.result("@a.zv", &[]), expected);
    bench.says(&["validate", "@a.zv"]);

    bench.file(
        "g.csv",
        "x,y,z,object_id\n0,0,0,0\n1,1,1,0\n2,2,2,1\n3,3,3,1\n",
    );
    bench.file("g.links.csv", "links[0],links[1],c\n0,1,5\n2,3,6\n");
    bench.says(&["create", "@g.zv", "--kind", "graphs", "--from", "@g.csv"]);
    bench.says(&["delete", "@g.zv", "--object", "0"]);
    let found = bench.result("@g.zv", &[]);
    assert!(found.contains("link.c\n0,1,6\n"), "{found}");
    bench.says(&["validate", "@g.zv"]);
}

#[test]
fn attributes_are_removed_from_every_level() {
    let bench = streamlines();
    bench.says(&["pyramid", "@a.zv", "--levels", "1"]);
    let drop = |names: &str| bench.says(&["edit", "@a.zv", "--drop-attribute", names]);
    let refused = |names: &str| bench.refused(&["edit", "@a.zv", "--drop-attribute", names]);
    let said = refused("fb");
    assert!(
        said.contains("there is no attribute fb") && said.contains("fa"),
        "{said}"
    );
    assert!(refused("object.fa").contains("there is no attribute object.fa"));
    bench.file("b.csv", "object_id,fa\n5,1\n8,2\n");
    bench.says(&["edit", "@a.zv", "--attributes", "@b.csv"]);
    let said = refused("fa");
    assert!(
        said.contains("several scopes have an attribute of this name"),
        "{said}"
    );
    drop("object.fa");
    drop("vertex.fa,length");
    let info = bench.json(&["info", "@a.zv"]);
    assert_eq!(info["written_by"]["transaction"], 4);
    let header = bench.result("@a.zv", &[]);
    assert!(header.starts_with("x,y,z,part,object_id\n"), "{header}");
    for level in ["0", "1"] {
        bench.says(&["query", "@a.zv", "--level", level, "-o", "@c.csv"]);
        let rows = fs::read_to_string(bench.path("c.csv")).unwrap();
        assert!(rows.starts_with("x,y,z,part,object_id\n"), "{rows}");
    }
    for folder in ["vertex_attributes/fa", "object_attributes/length"] {
        for level in ["0", "1"] {
            assert!(
                !bench
                    .path(&format!("a.zv/{level}/{folder}"))
                    .join("zarr.json")
                    .exists()
            );
        }
    }
    bench.says(&["validate", "@a.zv"]);
}

/// Whole objects near a position needed two queries, and a picture of them a store of its own.
#[test]
fn parts_of_a_store_are_selected_whole_and_drawn() {
    let bench = streamlines();
    let near = ["query", "@a.zv", "--nearest", "3,3,3", "--whole"];
    let found = bench.json(&near);
    assert_eq!(
        (&found["objects"], &found["vertices"]),
        (&json!(1), &json!(2))
    );
    assert_eq!(found["notes"], json!(["object 8 at a distance of 0"]));
    let found = bench.json(&[&near[..], &["--k", "2"]].concat());
    assert_eq!(
        (&found["objects"], &found["vertices"]),
        (&json!(2), &json!(5))
    );
    let found = bench.json(&[&near[..], &["--k", "9", "--where", "fa < 1"]].concat());
    assert_eq!(
        (&found["objects"], &found["vertices"]),
        (&json!(1), &json!(3))
    );
    let said = bench.refused(&["query", "@a.zv", "--whole"]);
    assert!(said.contains("--nearest"), "{said}");
    for (selection, vertices) in [
        (&[][..], 5),
        (&["--where", "fa < 2"], 3),
        (&["--object", "8"], 2),
        (&["--group", "1"], 2),
        (&["--nearest", "3,3,3", "--whole"], 2),
        (&["--sphere", "12,1,1,1"], 3),
        (&["--bbox", "10,0,0,14,2,2", "--mode", "touch"], 3),
    ] {
        let draw = ["render", "@a.zv", "-o", "@a.png", "--size", "200x150"];
        let drawn = bench.json(&[&draw[..], selection].concat());
        assert_eq!(drawn["vertices"], vertices, "{selection:?}");
    }
    let said = bench.refused(&["render", "@a.zv", "-o", "@a.png", "--where", "fb < 2"]);
    assert!(said.contains("fa"), "{said}");
}

/// Regression test: the file named members that the selection lacks, and could not be read.
#[test]
fn requested_groups_have_the_members_of_the_selection() {
    let bench = streamlines();
    let line = ["query", "@a.zv", "--group", "0", "--bbox", "2,2,2,5,5,5"];
    let found = bench.json(&[&line[..], &["-o", "@b.npz"]].concat());
    assert!(
        found.to_string().contains("1 member of groups left out"),
        "{found}"
    );
    bench.says(&[
        "create",
        "@b.zv",
        "--kind",
        "streamlines",
        "--from",
        "@b.npz",
    ]);
    assert!(
        bench
            .result("@b.zv", &[])
            .ends_with("group,object_id\n0,8\n1,8\n")
    );
}

/// Regression test: only the columns of the first batch, which had vertices and no links, were listed.
#[test]
fn attributes_of_links_are_listed_as_left_out() {
    let bench = Bench::new();
    bench.file("m.csv", "x,y,z\n0,0,0\n1,0,0\n1,1,0\n");
    bench.file("m.links.csv", "links[0],links[1],links[2],w\n0,1,2,7\n");
    bench.says(&["create", "@m.zv", "--kind", "mesh", "--from", "@m.csv"]);
    for end in ["stl", "gii", "glb"] {
        let file = format!("@m.{end}");
        let line = ["query", "@m.zv", "--no-objects", "--strict", "-o", &file];
        let error = bench.refused(&line);
        assert!(error.contains("link.w: not supported by"), "{error}");
    }
}

/// Regression test: groups were left out without a line.
#[test]
fn groups_are_listed_by_formats_without_them() {
    let bench = streamlines();
    for (file, format) in [("@b.ply", "ply"), ("@b.obj", "obj")] {
        let found = bench.json(&["query", "@a.zv", "-o", file]);
        let line = format!("groups: not supported by {format}");
        let left_out = found["left_out"].as_array().unwrap();
        assert!(left_out.contains(&json!(line)), "{found}");
    }
}

/// Regression test: the owners of fragments, which the store has as an attribute and fills by itself,
/// were refused as a name that the format reserves.
#[test]
fn files_of_a_store_with_owners_of_fragments_fit_it() {
    let bench = Bench::new();
    let store = bench.path("a.zv");
    unpack("zvf-09", "fragment_owner/store.zarrvectors", &store);
    for file in ["@b.csv", "@b.npz"] {
        bench.says(&["query", "@a.zv", "--object", "3", "-o", file, "--quiet"]);
        let found = bench.json(&["edit", "@a.zv", "--from", file]);
        let notes = found["notes"].to_string();
        assert!(notes.contains("fragment.object_id left out"), "{notes}");
        // The object shares no fragment any more.
        let expected = "x,y,z,object_id,fragment.object_id\n0.0,0.0,0.0,3,3\n0.0,0.0,0.0,3,3\n\
            1.0,1.0,1.0,3,3\n1.0,1.0,1.0,3,3\nobject_id\n3\n";
        assert_eq!(
            bench.result("@a.zv", &["--object", "3"]),
            expected,
            "{file}"
        );
    }
}

/// Points without an object were refused beside points of objects.
#[test]
fn points_without_an_object_are_created_appended_and_coarsened() {
    let bench = Bench::new();
    bench.file(
        "a.csv",
        "x,y,object_id,vertex.q\n2,2,-1,2\n1,1,7,1\n25,2,-1,4\n3,3,7,3\n26,2,9,5\n",
    );
    let line = ["create", "@a.zv", "--kind", "points", "--from", "@a.csv"];
    bench.says(&[&line[..], &["--chunk-shape", "10,10"]].concat());
    let expected = "x,y,object_id,vertex.q\n1,1,7,1\n3,3,7,3\n2,2,-1,2\n26,2,9,5\n25,2,-1,4\n\
                    object_id\n7\n9\n";
    assert_eq!(bench.result("@a.zv", &[]), expected);
    bench.file("b.csv", "x,y,object_id,vertex.q\n4,4,-1,6\n5,5,7,7\n");
    bench.says(&[
        "append",
        "@a.zv",
        "--from",
        "@b.csv",
        "--ids",
        "new",
        "--out-of-bounds",
        "expand",
    ]);
    let expected = "x,y,object_id,vertex.q\n1,1,7,1\n3,3,7,3\n2,2,-1,2\n5,5,10,7\n4,4,-1,6\n\
                    26,2,9,5\n25,2,-1,4\nobject_id\n7\n9\n10\n";
    assert_eq!(bench.result("@a.zv", &[]), expected);
    let found = bench.json(&["delete", "@a.zv", "--where", "q = 4", "--dry-run"]);
    let note = "1 selected vertex belongs to no object; add --vertices to delete vertices \
        instead of objects";
    assert_eq!(found["notes"], json!([note]));
    bench.says(&["delete", "@a.zv", "--object", "7"]);
    // One point of each object and one without an object are kept in a cell.
    let line = [
        "pyramid",
        "@a.zv",
        "--levels",
        "1",
        "--cell",
        "20,20",
        "--chunk-scale",
        "2",
    ];
    bench.says(&[&line[..], &["--sparsity", "1"]].concat());
    let coarse = bench.result("@a.zv", &["--level", "1", "--select", ""]);
    let column = coarse.lines().filter_map(|line| line.split(',').nth(2));
    let owners: Vec<&str> = column.skip(1).collect();
    assert_eq!(owners, ["10", "-1", "9", "-1"], "{coarse}");
    let report = bench.json(&["validate", "@a.zv"]);
    assert_eq!(report["ok"], true, "{report}");
    bench.file("c.csv", "x,y,part,object_id\n1,1,0,-1\n2,2,0,-1\n");
    let said = bench.refused(&["create", "@c.zv", "--kind", "polylines", "--from", "@c.csv"]);
    assert!(
        said.contains("-1 is reserved for points without an object"),
        "{said}"
    );
}
