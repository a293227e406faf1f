//! Attributes whose names are no identifiers.

use std::fs;

use serde_json::{Value, json};

use crate::{round_trip::typed, stores::Bench};

/// Names with every kind of character; `/` is in no path, and `.` follows a scope.
const TABLE: &str = "x,y,HLA-A,mean FA,größe,a.b/c\n\
                     1.0,1.0,1,0.5,a,3\n2.0,5.0,4,0.25,b,4\n13.0,2.0,5,2.5,c,5\n";
const NAMES: [&str; 4] = ["HLA-A", "a.b/c", "größe", "mean FA"];

fn create(bench: &Bench, store: &str, file: &str) {
    bench.says(&[
        "create",
        store,
        "--kind",
        "points",
        "--from",
        file,
        "--chunk-shape",
        "10,10",
        "--quiet",
    ]);
}

/// Returns the names of the attributes of vertices that `zvf info` prints.
fn names(bench: &Bench, store: &str) -> Vec<String> {
    let info = bench.json(&["info", store]);
    let mut names = Vec::new();
    collect(&info, &mut names);
    names.sort();
    names.dedup();
    names
}

/// Collects the names of NAMES that a document mentions, as a member or as text.
fn collect(value: &Value, names: &mut Vec<String>) {
    let mut add = |text: &str| {
        let text = text.strip_prefix("vertex.").unwrap_or(text);
        names.extend(NAMES.contains(&text).then(|| text.to_owned()));
    };
    match value {
        Value::String(text) => add(text),
        Value::Array(items) => items.iter().for_each(|item| collect(item, names)),
        Value::Object(members) => {
            for (name, value) in members {
                collect(&Value::String(name.clone()), names);
                collect(value, names);
            }
        }
        _ => {}
    }
}

#[test]
fn labels_are_names_in_every_step() {
    let bench = Bench::new();
    bench.file("a.csv", TABLE);
    create(&bench, "@a.zv", "@a.csv");
    assert_eq!(names(&bench, "@a.zv"), NAMES);
    let path = bench.path("a.zv/0/vertex_attributes/HLA_A__u2d/zarr.json");
    let node: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let stored = [&node["attributes"]["name"], &node["attributes"]["label"]];
    assert_eq!(stored, [&json!("HLA_A__u2d"), &json!("HLA-A")]);
    assert_eq!(bench.code(&["validate", "@a.zv"]), Some(0));
    let whole = bench.result("@a.zv", &[]);
    for end in typed().into_iter().chain(["csv"]) {
        let file = format!("@r.{end}");
        bench.says(&["query", "@a.zv", "-o", &file, "--quiet"]);
        let store = format!("@{end}.zv");
        create(&bench, &store, &file);
        assert_eq!(bench.result(&store, &[]), whole, "{end}");
    }
    for line in [
        &["append", "@a.zv", "--from", "@npz.zv"][..],
        &["pyramid", "@a.zv", "--levels", "1"],
        &["migrate", "@a.zv", "@old.zv", "--profile", "0.8"],
    ] {
        assert_eq!(bench.code(line), Some(0), "{line:?}");
    }
    for store in ["@a.zv", "@old.zv"] {
        assert_eq!(names(&bench, store), NAMES, "{store}");
        assert_eq!(bench.code(&["validate", store]), Some(0), "{store}");
        let found = bench.json(&["query", store, "--where", "\"HLA-A\" > 4", "--count"]);
        assert!(found.to_string().contains('2'), "{store}: {found}");
    }
}

#[test]
fn conditions_name_labels_in_quotes() {
    let bench = Bench::new();
    bench.file("a.csv", TABLE);
    create(&bench, "@a.zv", "@a.csv");
    for (condition, rows) in [
        ("\"HLA-A\" > 3", 2),
        ("vertex.\"mean FA\" < 1 and größe = 'b'", 1),
        ("\"a.b/c\" in (3, 5)", 2),
    ] {
        let found = bench.result("@a.zv", &["--where", condition]);
        assert_eq!(found.lines().count(), rows + 1, "{condition}");
    }
    for (condition, expected) in [
        (
            "HLA-A > 3",
            "write \"HLA-A\" in double quotes if it is the name of an attribute",
        ),
        ("größe = b-c", "or 'b-c' in single quotes if it is text"),
        ("HLA_A > 3", "HLA-A"),
    ] {
        let said = bench.refused(&["query", "@a.zv", "--where", condition]);
        assert!(said.contains(expected), "{said}");
    }
}

/// The values of objects are told from coordinates by their scope.
#[test]
fn attributes_of_objects_may_have_the_name_of_an_axis() {
    let bench = Bench::new();
    bench.file("a.csv", "x,y,object_id\n1.0,1.0,7\n2.0,5.0,8\n");
    bench.file("a.objects.csv", "object_id,x\n7,1\n8,2\n");
    create(&bench, "@a.zv", "@a.csv");
    let said = bench.refused(&["query", "@a.zv", "--where", "x = 2"]);
    let expected = "several columns have this name; write object.x, or X for the axis";
    assert!(said.contains(expected), "{said}");
}

/// Regression test: `zvf edit --attributes` accepted names that `zvf create` refused.
#[test]
fn one_rule_is_for_creation_and_changes() {
    let bench = Bench::new();
    bench.file("a.csv", "x,y\n1.0,1.0\n2.0,5.0\n");
    create(&bench, "@a.zv", "@a.csv");
    let edit = ["edit", "@a.zv", "--attributes", "@t.csv", "--quiet"];
    bench.file("t.csv", "row_id,HLA-A\n0,1\n1,2\n");
    bench.says(&edit);
    let found = bench.result("@a.zv", &["--where", "\"HLA-A\" = 2"]);
    assert_eq!(found.lines().count(), 2, "{found}");
    assert!(bench.path("a.zv/0/vertex_attributes/HLA_A__u2d").exists());
    bench.says(&["edit", "@a.zv", "--drop-attribute", "HLA-A", "--quiet"]);
    assert!(!bench.path("a.zv/0/vertex_attributes/HLA_A__u2d").exists());
    bench.file("t.csv", "row_id,vertex.x\n0,1\n1,2\n");
    let said = bench.refused(&edit);
    assert!(said.contains("has the name of an axis"), "{said}");
    let long = "é".repeat(50);
    bench.file("t.csv", &format!("row_id,{long}\n0,1\n1,2\n"));
    bench.refused(&edit);
    bench.file("b.csv", &format!("x,y,{long}\n1,1,1\n"));
    let said = bench.refused(&["create", "@b.zv", "--kind", "points", "--from", "@b.csv"]);
    assert!(said.contains("at most 200"), "{said}");
}

/// Other writers use any text for the node of an attribute.
#[test]
fn nodes_with_other_names_are_read() {
    let bench = Bench::new();
    bench.file("a.csv", "x,y,HLA-A\n1.0,1.0,1\n2.0,5.0,2\n");
    let line = [
        "create", "@a.zv", "--kind", "points", "--from", "@a.csv", "--quiet",
    ];
    bench.says(&[&line[..], &["--no-node-copy", "--no-seal"]].concat());
    let folder = bench.path("a.zv/0/vertex_attributes");
    fs::rename(folder.join("HLA_A__u2d"), folder.join("HLA-A")).unwrap();
    for condition in ["\"HLA-A\" = 2", "vertex.\"HLA-A\" = 2"] {
        let found = bench.result("@a.zv", &["--where", condition]);
        assert_eq!(found.lines().count(), 2, "{condition}: {found}");
    }
    bench.says(&["edit", "@a.zv", "--drop-attribute", "HLA-A", "--quiet"]);
    assert!(!folder.join("HLA-A").exists());
}
