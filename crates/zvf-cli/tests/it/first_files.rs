//! Files that a first user gives, and what the command says about their mistakes.

use std::fs;

use crate::stores::Bench;

/// Checks that a table is refused with this sentence.
#[track_caller]
fn refused(kind: &str, table: &str, more: &[&str], sentence: &str) {
    let bench = Bench::new();
    bench.file("a.csv", table);
    let create = ["create", "@a.zv", "--kind", kind, "--from", "@a.csv"];
    let said = bench.refused(&[&create[..], more].concat());
    assert!(said.contains(sentence), "{said}");
    assert!(!bench.path("a.zv").exists());
}

#[test]
fn the_first_line_of_a_table_is_checked() {
    for (table, sentence) in [
        ("1,2,3\n4,5,6\n", "add a line such as x,y,z before it"),
        (",x,y,z\n0,1,2,3\n", "column 1 has no name"),
        ("x y z\n1 2 3\n", "fields are separated by ' '"),
        ("x;y;z\n1;2;3\n", "fields are separated by ';'"),
        ("X,Y,Z\n1,2,3\n", "--axes X,Y,Z"),
    ] {
        refused("points", table, &[], sentence);
    }
    // Blanks around a name are not part of it.
    let bench = Bench::new();
    bench.file("a.csv", "x, y, z , mean\n1, 2, 3, 4\n");
    bench.says(&["create", "@a.zv", "--kind", "points", "--from", "@a.csv"]);
    assert_eq!(bench.result("@a.zv", &[]), "x,y,z,vertex.mean\n1,2,3,4\n");
}

#[test]
fn errors_of_first_files_say_what_to_do() {
    let links = "give an npz file an array links with the corners of each face";
    refused("mesh", "x,y,z\n1,2,3\n", &[], links);
    let position = "remove the vertex (vertices and axes count from 0)";
    refused("points", "x,y\n1,nan\n", &[], position);
    let paths = "name it with --rename COLUMN=object_id";
    refused("polylines", "x,y,track\n1,2,3\n", &[], paths);
    let bench = Bench::new();
    bench.file("a.csv", "x,y\n0,0\n1,1\n");
    for (table, sentence) in [
        (
            "source,target\n0,1\n",
            "has no columns links[0] and links[1]",
        ),
        (
            "links[0],links[1]\n1,2\n",
            "there are 2 vertices; they count from 0",
        ),
    ] {
        bench.file("b.csv", table);
        let create = ["create", "@a.zv", "--kind", "graphs", "--from", "@a.csv"];
        let said = bench.refused(&[&create[..], &["--links", "@b.csv"]].concat());
        assert!(said.contains(sentence), "{said}");
    }
    fs::write(bench.path("a.npz"), "no zip file").unwrap();
    let said = bench.refused(&["create", "@a.zv", "--kind", "points", "--from", "@a.npz"]);
    assert!(
        said.ends_with("a.npz is not an npz file, or is truncated or damaged\n"),
        "{said}"
    );
    bench.file("a.ply", "ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nproperty float y\nend_header\n0 0\n");
    let said = bench.refused(&["create", "@a.zv", "--from", "@a.ply"]);
    assert!(said.contains("the element vertex is without z"), "{said}");
    let said = bench.refused(&["create", "@a.zv", "--from", "@a.ply", "--with", "@a.ply"]);
    assert!(said.contains("give each file once"), "{said}");
    bench.file("a.csv", "x,y,z\n1,2,3\n");
    let said = bench.refused(&["create", "@a.zv", "--from", "@a.csv", "--with", "@a.ply"]);
    assert!(said.contains("add the others with zvf append"), "{said}");
    let said = bench.refused(&["info", "@a.ply"]);
    assert!(
        said.contains("make a store of it: zvf create /a.zv --from /a.ply"),
        "{said}"
    );
}

/// Ids of paths have many names in tables of other programs.
#[test]
fn columns_of_paths_can_be_renamed() {
    let bench = Bench::new();
    bench.file(
        "a.csv",
        "x,y,track,mean fa\n0,0,7,1\n1,1,7,2\n5,5,9,3\n6,6,9,4\n",
    );
    let create = ["create", "@a.zv", "--kind", "polylines", "--from", "@a.csv"];
    let renames = ["--rename", "track=object_id", "--rename", "mean fa=fa"];
    bench.says(&[&create[..], &renames].concat());
    let found = bench.result("@a.zv", &["--object", "9"]);
    assert_eq!(
        found,
        "x,y,part,object_id,vertex.fa\n5,5,0,9,3\n6,6,0,9,4\nobject_id\n9\n"
    );
    let said = bench.refused(&[&create[..], &["--rename", "trak=object_id"]].concat());
    assert!(said.contains("trak"), "{said}");
}

#[test]
fn scattered_rows_of_a_path_are_noted() {
    let bench = Bench::new();
    bench.file("a.csv", "x,y,object_id\n0,0,1\n5,5,2\n1,1,1\n6,6,2\n");
    let create = ["create", "@a.zv", "--kind", "polylines", "--from", "@a.csv"];
    let found = bench.json(&create);
    let notes = found["notes"].to_string();
    assert!(notes.contains("sort the rows by object_id"), "{notes}");
    bench.file("b.csv", "x,y,object_id\n0,0,1\n1,1,1\n5,5,2\n6,6,2\n");
    let create = ["create", "@b.zv", "--kind", "polylines", "--from", "@b.csv"];
    assert_eq!(bench.json(&create)["notes"], serde_json::json!([]));
}

/// The source of a store is named for formats without a header, and comments survive.
#[test]
fn stores_name_the_format_of_their_source() {
    let bench = Bench::new();
    let ply = "ply\nformat ascii 1.0\ncomment made by hand\nobj_info none\nelement vertex 1\n\
        property float x\nproperty float y\nproperty float z\nend_header\n0.1 0.3 1\n";
    bench.file("a.ply", ply);
    bench.file("b.obj", "v 0 0 0\nv 1 0 0\nl 1 2\n");
    for (file, format) in [("a.ply", "ply"), ("b.obj", "obj")] {
        let (from, store) = (format!("@{file}"), format!("@{format}.zv"));
        bench.says(&["create", &store, "--from", &from]);
        let info = bench.json(&["info", &store]);
        assert_eq!(info["converted_from"], serde_json::json!([format]));
    }
    bench.says(&["query", "@ply.zv", "-o", "@back.ply"]);
    let back = fs::read(bench.path("back.ply")).unwrap();
    let back = String::from_utf8_lossy(&back).into_owned();
    assert!(
        back.contains("\ncomment made by hand\nobj_info none\n"),
        "{back}"
    );
    // Digits of float32, not those of float64.
    let shown = bench.says(&["info", "@ply.zv"]);
    assert!(
        shown.contains("bounds      x 0.1 to 0.1000000015\n"),
        "{shown}"
    );
}

/// Names and ids of objects survive OBJ files; the ids were listed as left out.
#[test]
fn objects_of_obj_files_come_back() {
    let bench = Bench::new();
    let triangle = |x: u32| format!("v {x} 0 0\nv {x} 1 0\nv {x} 0 1\n");
    let vertices = [0, 10, 20].map(triangle).concat();
    let text = format!("{vertices}o soma\nf 1 2 3\ng object_7\nf 4 5 6\no axon 2\nf 7 8 9\n");
    bench.file("a.obj", &text);
    bench.says(&["create", "@a.zv", "--from", "@a.obj"]);
    let objects = |store: &str| {
        let found = bench.result(store, &[]);
        found[found.find("object_id,object.name").unwrap()..].to_owned()
    };
    let expected = "object_id,object.name\n1,soma\n3,axon 2\n7,\n";
    assert_eq!(objects("@a.zv"), expected);
    bench.says(&["query", "@a.zv", "-o", "@b.obj"]);
    let names = |file: &str| {
        let text = fs::read_to_string(bench.path(file)).unwrap();
        let names = text.lines().filter(|line| line.starts_with(['o', 'g']));
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(names("b.obj"), ["o soma", "o axon 2", "o object_7"]);
    // Ids without names come back with `object_ID`.
    bench.file(
        "c.obj",
        &text
            .replace("soma", "object_5")
            .replace("axon 2", "object_6"),
    );
    bench.says(&["create", "@c.zv", "--from", "@c.obj"]);
    let done = bench.json(&["query", "@c.zv", "-o", "@d.obj", "--strict"]);
    assert_eq!(done["left_out"], serde_json::json!([]));
    bench.says(&["create", "@d.zv", "--from", "@d.obj"]);
    assert_eq!(bench.result("@d.zv", &[]), bench.result("@c.zv", &[]));
    // A name may occur again: it is the same object.
    let again = format!("{vertices}g a\nf 1 2 3\ng b\nf 4 5 6\ng a\nf 7 8 9\n");
    bench.file("e.obj", &again);
    bench.says(&["create", "@e.zv", "--from", "@e.obj"]);
    assert_eq!(objects("@e.zv"), "object_id,object.name\n1,a\n2,b\n");
}

/// The comment about the level was added by each conversion.
#[test]
fn comments_of_ply_files_do_not_grow() {
    let bench = Bench::new();
    let ply = "ply\nformat ascii 1.0\ncomment made by hand\nobj_info scan 7\nelement vertex 1\n\
        property float x\nproperty float y\nproperty float z\nend_header\n0 0 1\n";
    bench.file("a.ply", ply);
    bench.says(&["create", "@a.zv", "--from", "@a.ply"]);
    bench.says(&["query", "@a.zv", "-o", "@b.ply"]);
    bench.says(&["create", "@b.zv", "--from", "@b.ply"]);
    bench.says(&["query", "@b.zv", "-o", "@c.ply"]);
    let read = |name: &str| fs::read(bench.path(name)).unwrap();
    assert_eq!(read("b.ply"), read("c.ply"));
    // Some readers refuse `obj_info` behind an element.
    let text = String::from_utf8_lossy(&read("c.ply")).into_owned();
    let at = |line: &str| text.find(line).unwrap();
    assert!(at("comment made by hand") < at("element vertex"), "{text}");
    assert!(at("obj_info scan 7") < at("element vertex"), "{text}");
}
