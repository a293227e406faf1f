//! `zvf edit --attributes`: attributes of vertices and objects from tables.

use std::fs;

use serde_json::json;

use crate::{round_trip::typed, stores::Bench};

const POINTS: &str = "x,y,fa\n1.0,2.0,0.5\n3.0,4.0,0.25\n12.0,1.0,8.0\n13.0,1.0,9.0\n";
/// Addresses of the points, in their order.
const ROWS: [&str; 4] = ["0", "1", "4294967296", "4294967297"];

/// Creates a store of four points without objects in two chunks.
fn points() -> Bench {
    let bench = Bench::new();
    bench.file("a.csv", POINTS);
    create(&bench, "a", "points");
    bench
}

fn create(bench: &Bench, name: &str, kind: &str) {
    let (store, file) = (format!("@{name}.zv"), format!("@{name}.csv"));
    let line = ["create", &store, "--kind", kind, "--from", &file];
    bench.says(&[&line[..], &["--chunk-shape", "10,10", "--dtype", "float64"]].concat());
}

/// Writes a table of attributes with these rows below its header, and gives it to the store.
fn edit(bench: &Bench, header: &str, rows: &[String], more: &[&str]) -> serde_json::Value {
    bench.file("t.csv", &format!("{header}\n{}\n", rows.join("\n")));
    bench.json(&[&["edit", "@a.zv", "--attributes", "@t.csv"], more].concat())
}

#[track_caller]
fn refused(bench: &Bench, header: &str, rows: &[&str], more: &[&str]) -> String {
    bench.file("t.csv", &format!("{header}\n{}\n", rows.join("\n")));
    bench.refused(&[&["edit", "@a.zv", "--attributes", "@t.csv"], more].concat())
}

#[track_caller]
fn is_valid(bench: &Bench) {
    assert_eq!(bench.code(&["validate", "@a.zv"]), Some(0));
}

#[test]
fn columns_of_a_query_are_given_back() {
    for end in typed().into_iter().chain(["csv"]) {
        let bench = points();
        bench.file(
            "b.csv",
            "x,y,fa,class\n1.0,2.0,1.5,2\n3.0,4.0,2.5,3\n12.0,1.0,3.5,2\n13.0,1.0,4.5,7\n",
        );
        create(&bench, "b", "points");
        let file = format!("@t.{end}");
        bench.says(&["query", "@b.zv", "--row-ids", "-o", &file, "--quiet"]);
        let found = bench.json(&["edit", "@a.zv", "--attributes", &file]);
        let expected = json!({
            "attributes": ["class", "fa"], "key": "row_id", "rows": 4, "chunks": 2, "transaction": 1,
        });
        for (key, value) in expected.as_object().unwrap() {
            assert_eq!(found[key], *value, "{end}: {key}");
        }
        let result = bench.result("@b.zv", &[]);
        assert_eq!(bench.result("@a.zv", &[]), result, "{end}");
        is_valid(&bench);
        // The file says to which transaction its addresses belong.
        let said = bench.refused(&["edit", "@a.zv", "--attributes", &file]);
        assert!(
            said.contains("of transaction 0, but the store is at transaction 1"),
            "{end}: {said}"
        );
    }
}

/// Regression test: row ids of a table without a transaction, as other programs write it, named other
/// rows after a change without a word.
#[test]
fn row_ids_of_no_transaction_are_noted_after_a_change() {
    let bench = points();
    bench.says(&["query", "@a.zv", "--row-ids", "-o", "@t.csv", "--quiet"]);
    fs::remove_file(bench.path("t.metadata.json")).unwrap();
    let edit = ["edit", "@a.zv", "--attributes", "@t.csv"];
    let note = |line: &[&str]| bench.json(line)["notes"].to_string();
    let warning = "give the transaction of the query with --at-transaction";
    assert!(!note(&edit).contains(warning));
    assert!(note(&edit).contains(warning));
    let known = [&edit[..], &["--at-transaction", "2"]].concat();
    assert!(!note(&known).contains(warning));
    let points = note(&["edit", "@a.zv", "--from", "@t.csv"]);
    assert!(points.contains("row ids were not checked"), "{points}");
    let rows = note(&["delete", "@a.zv", "--rows", "@t.csv", "--dry-run"]);
    assert!(rows.contains("row ids were not checked"), "{rows}");
}

#[test]
fn other_vertices_keep_their_values() {
    let bench = points();
    edit(&bench, "row_id,fa", &[format!("{},7", ROWS[2])], &[]);
    let expected = "x,y,vertex.fa\n1.0,2.0,0.5\n3.0,4.0,0.25\n12.0,1.0,7.0\n13.0,1.0,9.0\n";
    assert_eq!(bench.result("@a.zv", &[]), expected);
    // New floats and texts may lack values.
    edit(
        &bench,
        "row_id,depth,kind",
        &[
            format!("{},1.5,axon", ROWS[3]),
            format!("{},2.5,soma", ROWS[0]),
        ],
        &[],
    );
    let expected = "x,y,vertex.depth,vertex.fa,vertex.kind\n1.0,2.0,2.5,0.5,soma\n3.0,4.0,NaN,0.25,\n\
        12.0,1.0,NaN,7.0,\n13.0,1.0,1.5,9.0,axon\n";
    assert_eq!(bench.result("@a.zv", &[]), expected);
    is_valid(&bench);
    // Words that the dictionary lacks are added to it.
    edit(
        &bench,
        "row_id,kind",
        &[format!("{},dendrite", ROWS[1])],
        &[],
    );
    let found = bench.result(
        "@a.zv",
        &["--where", "kind = 'dendrite'", "--select", "kind"],
    );
    assert_eq!(found, "x,y,vertex.kind\n3.0,4.0,dendrite\n");
    let found = bench.result("@a.zv", &["--where", "kind is null", "--select", "fa"]);
    assert_eq!(found, "x,y,vertex.fa\n12.0,1.0,7.0\n");
    is_valid(&bench);
}

#[test]
fn types_are_checked() {
    let bench = points();
    let said = refused(&bench, "row_id,class", &["0,3", "1,4"], &[]);
    let expected = "error: 2 vertices have no value of \"class\"; give one for each vertex, or use \
        floats, which have NaN\n";
    assert_eq!(said, expected);
    let said = refused(&bench, "row_id,fa", &["0,axon"], &[]);
    let expected = "error: the vertex attribute \"fa\" is 1 x float64 in the store, but text in the \
        addition; convert the column, or replace the attribute with --replace\n";
    assert_eq!(said, expected);
    assert_eq!(
        bench.result("@a.zv", &[]).lines().nth(1),
        Some("1.0,2.0,0.5")
    );
    edit(&bench, "row_id,fa", &["0,axon".to_owned()], &["--replace"]);
    let expected = "x,y,vertex.fa\n1.0,2.0,axon\n3.0,4.0,\n12.0,1.0,\n13.0,1.0,\n";
    assert_eq!(bench.result("@a.zv", &[]), expected);
    is_valid(&bench);
}

#[test]
fn wrong_tables_change_nothing() {
    let bench = points();
    for (header, row, expected) in [
        ("row_id,fa", "5,1", "there is no row 5 in chunk 0.0"),
        (
            "row_id,fa",
            "8589934592,1",
            "there is no row 0 in chunk number 2",
        ),
        ("row_id,fa", "0,1\n0,2", "contains 0 more than once"),
        ("row_id,x,y", "0,1,2", "has no attributes to write"),
        ("id,fa", "0,1", "has no column row_id; it has id, fa"),
        ("object_id,fa", "0,1", "the store has no objects"),
        ("row_id,fa", "0,1\n1,", "fa: row 1 has no value"),
    ] {
        let said = refused(&bench, header, &[row], &[]);
        assert!(said.contains(expected), "{header}: {said}");
    }
    let said = refused(&bench, "row_id,fa", &["0,1"], &["--at-transaction", "2"]);
    assert!(said.contains("of transaction 2"), "{said}");
    let said = bench.refused(&["edit", "@a.zv"]);
    assert!(said.contains("--from <FILE>"), "{said}");
    let info = bench.json(&["info", "@a.zv"]);
    assert_eq!(info["written_by"]["transaction"], 0);
}

#[test]
fn objects_get_attributes_by_their_ids() {
    let bench = Bench::new();
    bench.file("a.csv", "x,y,object_id\n1.0,2.0,5\n3.0,4.0,8\n12.0,1.0,8\n");
    bench.file("a.objects.csv", "object_id,length\n5,1.5\n8,2.5\n");
    create(&bench, "a", "points");
    let rows = ["8,3.5,soma,4".to_owned()];
    let found = edit(&bench, "object_id,length,kind,class", &rows, &[]);
    assert_eq!(
        (&found["key"], &found["rows"]),
        (&json!("object_id"), &json!(1))
    );
    let result = bench.result("@a.zv", &[]);
    let expected = "object_id,object.class,object.kind,object.length\n5,,,1.5\n8,4,soma,3.5\n";
    assert!(result.ends_with(expected), "{result}");
    is_valid(&bench);
    let said = refused(&bench, "object_id,length", &["6,1"], &[]);
    assert!(said.contains("there is no object 6"), "{said}");
    let said = refused(&bench, "object_id,length", &["5,long"], &[]);
    assert!(said.contains("but text in the addition"), "{said}");
    edit(
        &bench,
        "object_id,length",
        &["5,long".to_owned()],
        &["--replace"],
    );
    let result = bench.result("@a.zv", &["--select", "object.length"]);
    assert!(
        result.ends_with("object_id,object.length\n5,long\n8,\n"),
        "{result}"
    );
    is_valid(&bench);
}

/// `--rename` was ignored, and the attribute was written under its name in the table.
#[test]
fn attributes_and_the_key_are_renamed() {
    let bench = Bench::new();
    bench.file("a.csv", "x,y,object_id\n1.0,2.0,5\n3.0,4.0,8\n");
    create(&bench, "a", "points");
    let rows = ["5,1.5".to_owned(), "8,2.5".to_owned()];
    let found = edit(&bench, "object_id,p2", &rows, &["--rename", "p2=weight"]);
    assert_eq!(found["attributes"], json!(["weight"]));
    let more = ["--rename", "cell=object_id", "--rename", "object.p2=size"];
    let found = edit(&bench, "cell,object.p2", &rows, &more);
    assert_eq!(
        (&found["key"], &found["attributes"]),
        (&json!("object_id"), &json!(["size"]))
    );
    let result = bench.result("@a.zv", &[]);
    let expected = "object_id,object.size,object.weight\n5,1.5,1.5\n8,2.5,2.5\n";
    assert!(result.ends_with(expected), "{result}");
    for unused in ["p3=weight", "vertex.p2=weight"] {
        let said = refused(&bench, "object_id,p2", &["5,1"], &["--rename", unused]);
        let old = unused.split_once('=').unwrap().0;
        assert!(said.contains(old) && said.contains("object.p2"), "{said}");
    }
    is_valid(&bench);
}

#[test]
fn options_without_effect_on_attributes_are_refused() {
    let bench = points();
    for more in [&["--out-of-bounds", "expand"][..], &["--yes"]] {
        let said = refused(&bench, "row_id,fa", &["0,1"], more);
        assert!(said.contains("cannot be used with"), "{said}");
    }
}
