//! Addresses of vertices: `zvf query --row-ids`, and `zvf delete` and `zvf edit` of vertices.

use serde_json::json;

use crate::{round_trip::typed, stores::Bench};

const POINTS: &str = "x,y,fa\n1.0,2.0,0.5\n3.0,4.0,0.25\n12.0,1.0,8.0\n13.0,1.0,9.0\n";

/// Creates a store of four points without objects in two chunks.
fn points() -> Bench {
    let bench = Bench::new();
    bench.file("a.csv", POINTS);
    let line = ["create", "@a.zv", "--kind", "points", "--from", "@a.csv"];
    bench.says(&[&line[..], &["--chunk-shape", "10,10"]].concat());
    bench
}

#[test]
fn rows_have_addresses() {
    let bench = points();
    let all = bench.result("@a.zv", &["--row-ids"]);
    // The rank of the chunk is in the upper 32 bits.
    let expected = "x,y,row_id,vertex.fa\n1.0,2.0,0,0.5\n3.0,4.0,1,0.25\n\
        12.0,1.0,4294967296,8.0\n13.0,1.0,4294967297,9.0\n";
    assert_eq!(all, expected);
    let one = bench.result("@a.zv", &["--row-ids", "--where", "fa = 9"]);
    assert_eq!(one, "x,y,row_id,vertex.fa\n13.0,1.0,4294967297,9.0\n");
    let none = bench.result("@a.zv", &["--row-ids", "--where", "fa = 7"]);
    assert_eq!(none, "x,y,row_id,vertex.fa\n");
    let shown = bench.says(&["query", "@a.zv", "--row-ids", "--nearest", "13,1"]);
    assert!(shown.contains("4294967297"), "{shown}");
}

#[test]
fn formats_without_row_ids_are_refused() {
    let bench = points();
    let said = bench.refused(&["query", "@a.zv", "--row-ids", "-o", "@a.ply"]);
    let expected = "error: .ply files do not hold row ids; write .csv, .npz, .arrow or .parquet\n";
    assert_eq!(said, expected);
}

#[test]
fn row_ids_do_not_become_attributes() {
    for end in typed().into_iter().chain(["csv"]) {
        let bench = points();
        let file = format!("@b.{end}");
        bench.says(&["query", "@a.zv", "--row-ids", "-o", &file, "--quiet"]);
        let line = [
            "create", "@b.zv", "--kind", "points", "--from", &file, "--json",
        ];
        let found: serde_json::Value = serde_json::from_str(&bench.says(&line)).unwrap();
        let notes = found["notes"].to_string();
        assert!(notes.contains("row ids left out"), "{end}: {notes}");
        let expected = "x,y,vertex.fa\n1.0,2.0,0.5\n3.0,4.0,0.25\n12.0,1.0,8.0\n13.0,1.0,9.0\n";
        assert_eq!(bench.result("@b.zv", &[]), expected, "{end}");
    }
}

#[test]
fn points_without_objects_are_deleted_by_a_query() {
    let bench = points();
    let line = ["delete", "@a.zv", "--where", "fa > 0.4"];
    let found = bench.json(&[&line[..], &["--dry-run"]].concat());
    assert_eq!(
        (&found["removed"], &found["transaction"]),
        (&json!(3), &json!(null))
    );
    let found = bench.json(&[&line[..], &["--bbox", "0,0,12,9"]].concat());
    let expected = json!({"removed": 2, "objects": 0, "chunks": 2, "transaction": 1, "links": 0});
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(found[key], *value, "{key}");
    }
    let left = "x,y,vertex.fa\n3.0,4.0,0.25\n13.0,1.0,9.0\n";
    assert_eq!(bench.result("@a.zv", &[]), left);
    assert_eq!(
        bench.code(&[&line[..], &["--bbox", "0,0,1,1", "--fail-empty"]].concat()),
        Some(1)
    );
    assert_eq!(bench.code(&["validate", "@a.zv"]), Some(0));
    // The last vertex of a chunk, and the last one of all.
    bench.says(&["delete", "@a.zv", "--bbox", "12,0,14,2"]);
    assert_eq!(bench.result("@a.zv", &[]), "x,y,vertex.fa\n3.0,4.0,0.25\n");
    bench.says(&["delete", "@a.zv", "--where", "x > 0"]);
    assert_eq!(bench.result("@a.zv", &[]), "x,y,vertex.fa\n");
    assert_eq!(bench.code(&["validate", "@a.zv"]), Some(0));
}

/// Conditions on links were ignored where there are no links, so that everything was deleted.
#[test]
fn delete_refuses_conditions_on_links_of_points() {
    let bench = points();
    for text in [
        "link.weight > 1",
        "link.weight is null",
        "fa > 1 and link.w > 1",
    ] {
        let said = bench.refused(&["delete", "@a.zv", "--where", text]);
        assert!(said.contains("condition on links"), "{text}: {said}");
    }
    assert_eq!(bench.result("@a.zv", &[]).lines().count(), 5);
}

#[test]
fn rows_are_deleted_by_address() {
    for end in typed().into_iter().chain(["csv"]) {
        let bench = points();
        let file = format!("@rows.{end}");
        bench.says(&[
            "query",
            "@a.zv",
            "--row-ids",
            "--where",
            "fa > 8",
            "-o",
            &file,
            "--quiet",
        ]);
        let found = bench.json(&["delete", "@a.zv", "--rows", &file]);
        assert_eq!(
            (&found["removed"], &found["chunks"]),
            (&json!(1), &json!(1)),
            "{end}"
        );
        let left = "x,y,vertex.fa\n1.0,2.0,0.5\n3.0,4.0,0.25\n12.0,1.0,8.0\n";
        assert_eq!(bench.result("@a.zv", &[]), left, "{end}");
        // The file says to which transaction its addresses belong.
        let said = bench.refused(&["delete", "@a.zv", "--rows", &file]);
        let expected = "error: the ids are of transaction 0, but the store is at transaction 1; \
            query them again\n";
        assert_eq!(said, expected, "{end}");
        assert_eq!(bench.result("@a.zv", &[]), left, "{end}");
    }
}

#[test]
fn wrong_addresses_change_nothing() {
    let bench = points();
    for (rows, expected) in [
        (
            "5",
            "there is no row 5 in chunk 0.0; row ids are outdated by each change",
        ),
        ("12884901888", "there is no row 0 in chunk number 3;"),
        ("-4", "row_id -4 is negative"),
        ("1\n1", "contains 1 more than once"),
        ("0.5", "row_id"),
    ] {
        bench.file("rows.csv", &format!("row_id\n{rows}\n"));
        let said = bench.refused(&["delete", "@a.zv", "--rows", "@rows.csv"]);
        assert!(said.contains(expected), "{rows}: {said}");
    }
    bench.file("rows.csv", "id\n1\n");
    let said = bench.refused(&["delete", "@a.zv", "--rows", "@rows.csv"]);
    assert!(said.contains("has no column row_id; it has id"), "{said}");
    bench.file("rows.csv", "row_id\n1\n");
    let line = ["delete", "@a.zv", "--rows", "@rows.csv"];
    let said = bench.refused(&[&line[..], &["--at-transaction", "3"]].concat());
    assert!(
        said.contains("of transaction 3, but the store is at transaction 0"),
        "{said}"
    );
    let said = bench.refused(&[&line[..], &["--where", "fa > 1"]].concat());
    assert!(
        said.contains("--rows names the vertices to delete"),
        "{said}"
    );
    assert_eq!(bench.result("@a.zv", &[]).lines().count(), 5);
    let found = bench.json(&[&line[..], &["--at-transaction", "0"]].concat());
    assert_eq!(found["removed"], 1);
}

#[test]
fn links_go_with_their_vertices() {
    let bench = Bench::new();
    bench.file(
        "a.csv",
        "x,y,z,radius\n0.0,0,0,1\n2,0,0,2\n3,1,1,3\n11,1,1,4\n",
    );
    bench.file(
        "a.links.csv",
        "links[0],links[1],weight\n0,3,1.5\n1,2,2.5\n2,3,4.5\n0,1,3.5\n",
    );
    let line = ["create", "@a.zv", "--kind", "graphs", "--from", "@a.csv"];
    bench.says(&[&line[..], &["--chunk-shape", "10,10,10"]].concat());
    let said = bench.refused(&["delete", "@a.zv", "--vertices", "--where", "weight > 9"]);
    assert!(said.contains("condition on links"), "{said}");
    let line = ["delete", "@a.zv", "--vertices", "--where", "radius > 2.5"];
    let found = bench.json(&line);
    assert_eq!((&found["removed"], &found["links"]), (&json!(2), &json!(3)));
    let left = bench.result("@a.zv", &["--no-objects"]);
    let expected = "x,y,z,vertex.radius\n0.0,0.0,0.0,1\n2.0,0.0,0.0,2\n\
        links[0],links[1],link.weight\n0,1,3.5\n";
    assert_eq!(left, expected);
    assert_eq!(bench.code(&["validate", "@a.zv"]), Some(0));
}

#[test]
fn vertices_of_paths_are_not_deleted() {
    let bench = Bench::new();
    bench.file("a.csv", "x,y,z,object_id\n0,0,0,5\n2,0,0,5\n3,1,1,5\n");
    bench.says(&[
        "create",
        "@a.zv",
        "--kind",
        "streamlines",
        "--from",
        "@a.csv",
    ]);
    let said = bench.refused(&["delete", "@a.zv", "--vertices", "--bbox", "1,0,0,9,9,9"]);
    let expected =
        "error: vertices of streamlines cannot be removed one by one; remove whole objects\n";
    assert_eq!(said, expected);
    // A dry run promises nothing else.
    let line = [
        "delete",
        "@a.zv",
        "--vertices",
        "--where",
        "x > 1",
        "--dry-run",
    ];
    assert_eq!(bench.refused(&line), expected);
}

#[test]
fn points_are_replaced_by_address() {
    for end in typed().into_iter().chain(["csv"]) {
        let bench = points();
        // The table of a store with other coordinates and values, as another program would write it.
        let name = format!("@b.{end}");
        let file = name.as_str();
        let query = ["query", "@a.zv", "--row-ids", "--where", "fa > 8", "-o"];
        bench.says(&[&query[..], &[file, "--quiet"]].concat());
        let found = bench.json(&["edit", "@a.zv", "--from", file]);
        let counts = (&found["removed"], &found["vertices"], &found["transaction"]);
        assert_eq!(counts, (&json!(1), &json!(1), &json!(1)), "{end}");
        assert_eq!(found["notes"], json!([]), "{end}");
        let all = "x,y,vertex.fa\n1.0,2.0,0.5\n3.0,4.0,0.25\n12.0,1.0,8.0\n13.0,1.0,9.0\n";
        assert_eq!(bench.result("@a.zv", &[]), all, "{end}");
        // The file says to which transaction its addresses belong.
        let said = bench.refused(&["edit", "@a.zv", "--from", file]);
        assert!(said.contains("of transaction 0"), "{end}: {said}");
    }
}

#[test]
fn replaced_points_move_between_chunks() {
    let bench = points();
    bench.file(
        "b.csv",
        "x,y,row_id,fa\n2.5,1.5,4294967297,7.0\n12.5,3.5,1,6.0\n",
    );
    let edit = ["edit", "@a.zv", "--from", "@b.csv"];
    let said = bench.refused(&[&edit[..], &["--at-transaction", "1"]].concat());
    assert!(said.contains("of transaction 1"), "{said}");
    let found = bench.json(&[&edit[..], &["--at-transaction", "0"]].concat());
    let counts = (&found["removed"], &found["vertices"], &found["chunks"]);
    assert_eq!(counts, (&json!(2), &json!(2), &json!(2)));
    let all = "x,y,vertex.fa\n1.0,2.0,0.5\n2.5,1.5,7.0\n12.0,1.0,8.0\n12.5,3.5,6.0\n";
    assert_eq!(bench.result("@a.zv", &[]), all);
    assert_eq!(bench.code(&["validate", "@a.zv"]), Some(0));
    for (table, sentence) in [
        ("x,y,row_id,fa\n99,1,1,6\n", "lies outside the bounds"),
        (
            "x,y,row_id,fa\n1,1,0,6\n1,2,0,6\n",
            "contains 0 more than once",
        ),
        ("x,y,row_id,fa\n1,1,7,6\n", "there is no row 7 in chunk 0.0"),
        ("x,y,row_id\n1,1,0\n", "\"fa\", which the addition lacks"),
        ("x,y,fa\n1,1,6\n", "--row-ids"),
    ] {
        bench.file("b.csv", table);
        let said = bench.refused(&edit);
        assert!(said.contains(sentence), "{said}");
    }
    assert_eq!(bench.result("@a.zv", &[]), all);
}

#[test]
fn vertices_with_links_or_an_order_are_not_replaced_by_address() {
    for (kind, why) in [
        ("graphs", "the store holds graphs, not points with row ids"),
        ("streamlines", "row ids left out: objects are replaced"),
    ] {
        let bench = Bench::new();
        bench.file("a.csv", "x,y,z,object_id\n0,0,0,5\n2,0,0,5\n3,1,1,5\n");
        bench.file("a.links.csv", "links[0],links[1]\n0,1\n");
        let mut create = vec!["create", "@a.zv", "--kind", kind, "--from", "@a.csv"];
        if kind == "streamlines" {
            std::fs::remove_file(bench.path("a.links.csv")).unwrap();
        }
        create.push("--quiet");
        bench.says(&create);
        bench.file("b.csv", "x,y,z,row_id\n1,1,1,0\n");
        if kind == "graphs" {
            let said = bench.refused(&["edit", "@a.zv", "--from", "@b.csv"]);
            assert!(said.contains(why), "{said}");
        } else {
            bench.file("b.csv", "x,y,z,object_id,row_id\n1,1,1,5,0\n");
            let said = bench.says(&["edit", "@a.zv", "--from", "@b.csv"]);
            assert!(said.contains(why), "{said}");
        }
    }
}

/// Regression test: numbers were required in columns that have nothing to do with the addresses.
#[test]
fn other_columns_of_tables_of_addresses_may_lack_numbers() {
    let bench = points();
    bench.file("b.csv", "row_id,vertex.fa,object.n\n0,7.5,\n1,8.5,3\n");
    let line = ["edit", "@a.zv", "--attributes", "@b.csv"];
    let found = bench.json(&line);
    assert_eq!(found["rows"], 2);
    bench.file("b.csv", "row_id,vertex.fa\n0,\n1,8.5\n");
    let said = bench.refused(&line);
    assert!(said.contains("vertex.fa"), "{said}");
    let found = bench.json(&["delete", "@a.zv", "--rows", "@b.csv"]);
    assert_eq!(found["removed"], 2);
    bench.file("b.csv", "id,vertex.fa\n0,\n");
    let said = bench.refused(&["delete", "@a.zv", "--rows", "@b.csv"]);
    assert!(said.contains("it has id, vertex.fa"), "{said}");
}
