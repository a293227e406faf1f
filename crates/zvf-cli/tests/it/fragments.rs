//! Values of fragments, as a user writes and reads them.

use crate::{stores::Bench, text};

/// Two paths through three chunks of 10, with a value for each path and chunk. The first is in the
/// first chunk twice.
const PATHS: &str = "x,y,part,object_id,fragment.k,fragment.name
1,1,0,7,0.5,a
2,1,0,7,0.5,a
11,1,0,7,1.5,b
3,1,0,7,2.5,a
12,2,1,9,3.5,b
22,2,1,9,4.5,c
23,2,1,9,4.5,c
";
const PROFILES: [&str; 3] = ["0.9", "0.8", "0.8-padded"];

fn create(bench: &Bench, store: &str, options: &[&str]) {
    let words = ["create", store, "--kind", "streamlines", "--from", "@a.csv"];
    let bounds = ["--bounds", "0,0,30,30"];
    let space = ["--chunk-shape", "10,10", "--fragment-rows"];
    bench.says(&[&words[..], &bounds, &space, options].concat());
}

/// Returns lines of columns of a result by name, sorted.
#[track_caller]
fn columns(bench: &Bench, store: &str, names: &[&str], of: &[&str]) -> Vec<String> {
    let result = bench.result(store, of);
    let mut lines = result.split("\n\n").next().unwrap().lines();
    let head: Vec<&str> = lines.next().unwrap().split(',').collect();
    let at = |name: &&str| {
        let found = head.iter().position(|column| column == name);
        found.unwrap_or_else(|| panic!("{name}: {result}"))
    };
    let places: Vec<usize> = names.iter().map(at).collect();
    let rows = lines.take_while(|line| line.split(',').count() == head.len());
    let mut cells: Vec<String> = rows
        .map(|row| {
            let row: Vec<&str> = row.split(',').collect();
            let cells: Vec<&str> = places.iter().map(|place| row[*place]).collect();
            cells.join(",")
        })
        .collect();
    cells.sort();
    cells
}

const NAMES: [&str; 4] = ["x", "object_id", "fragment.k", "fragment.name"];

fn given(objects: &[&str]) -> Vec<String> {
    let rows = PATHS.lines().skip(1).map(|row| row.split(',').collect());
    let own = rows.filter(|row: &Vec<&str>| objects.contains(&row[3]));
    let mut rows: Vec<String> = own
        .map(|row| [row[0], row[3], row[4], row[5]].join(","))
        .collect();
    rows.sort();
    rows
}

#[test]
fn each_fragment_has_its_value() {
    for profile in PROFILES {
        let bench = Bench::new();
        bench.file("a.csv", PATHS);
        create(&bench, "@a.zv", &["--profile", profile]);
        assert_eq!(columns(&bench, "@a.zv", &NAMES, &[]), given(&["7", "9"]));
        bench.says(&["validate", "@a.zv"]);
        let found = columns(&bench, "@a.zv", &["x"], &["--where", "fragment.k > 2"]);
        assert_eq!(found, ["12", "22", "23", "3"]);
    }
}

#[test]
fn edits_and_migrations_keep_values_of_fragments() {
    let bench = Bench::new();
    bench.file("a.csv", PATHS);
    create(&bench, "@a.zv", &["--fragment-owners"]);
    // Another path, and another value in the second chunk of path 9.
    bench.file(
        "b.csv",
        "x,y,part,object_id,fragment.k,fragment.name\n13,3,0,9,6.5,d\n24,3,0,9,7.5,c\n",
    );
    bench.says(&["edit", "@a.zv", "--from", "@b.csv", "--fragment-rows"]);
    bench.file(
        "c.csv",
        "x,y,part,object_id,fragment.k,fragment.name\n4,4,0,10,8.5,a\n14,4,0,10,9.5,d\n",
    );
    bench.says(&["append", "@a.zv", "--from", "@c.csv", "--fragment-rows"]);
    let mut expected = given(&["7"]);
    for row in ["13,9,6.5,d", "24,9,7.5,c", "4,10,8.5,a", "14,10,9.5,d"] {
        expected.push(row.to_owned());
    }
    expected.sort();
    assert_eq!(columns(&bench, "@a.zv", &NAMES, &[]), expected);
    bench.says(&["compact", "@a.zv"]);
    bench.says(&["validate", "@a.zv"]);
    assert_eq!(columns(&bench, "@a.zv", &NAMES, &[]), expected);
    let owners = ["object_id", "fragment.object_id"];
    let found = columns(&bench, "@a.zv", &owners, &[]);
    assert!(
        found
            .iter()
            .all(|row| ["7,7", "9,9", "10,10"].contains(&row.as_str()))
    );
    // Values that are not given, or differ within a fragment.
    bench.file("d.csv", "x,y,part,object_id\n5,5,0,11\n");
    let said = bench.refused(&["append", "@a.zv", "--from", "@d.csv"]);
    assert!(said.contains("fragment attribute"), "{said}");
    bench.says(&["delete", "@a.zv", "--object", "7"]);
    bench.says(&["validate", "@a.zv"]);
    for profile in PROFILES.iter().skip(1) {
        let bench = Bench::new();
        bench.file("a.csv", PATHS);
        create(
            &bench,
            "@a.zv",
            &["--profile", profile, "--fragment-owners"],
        );
        bench.says(&["migrate", "@a.zv", "@b.zv"]);
        bench.says(&["validate", "@b.zv"]);
        assert_eq!(columns(&bench, "@b.zv", &NAMES, &[]), given(&["7", "9"]));
        let found = columns(&bench, "@b.zv", &owners, &[]);
        assert!(
            found
                .iter()
                .all(|row| ["7,7", "9,9"].contains(&row.as_str())),
            "{found:?}"
        );
    }
}

#[test]
fn owners_of_fragments_are_kept_by_levels_and_written_from_batches() {
    for profile in PROFILES {
        let bench = Bench::new();
        bench.file(
            "a.csv",
            "x,y,object_id\n1,1,3\n2,2,4\n12,1,3\n13,1,3\n24,2,5\n",
        );
        let words = ["create", "@a.zv", "--kind", "points", "--from", "@a.csv"];
        let options = [
            "--chunk-shape",
            "10,10",
            "--fragment-owners",
            "--profile",
            profile,
        ];
        bench.says(&[&words[..], &options].concat());
        let owners = ["object_id", "fragment.object_id"];
        let all = ["3,3", "3,3", "3,3", "4,4", "5,5"];
        assert_eq!(columns(&bench, "@a.zv", &owners, &[]), all);
        bench.says(&["validate", "@a.zv"]);
        if profile != "0.8-padded" {
            let words = ["create", "@b.zv", "--kind", "points", "--from", "@a.csv"];
            let batches = ["--memory", "64KiB", "--bounds", "0,0,30,30"];
            let output = bench.run(&[&words[..], &options, &batches].concat());
            assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
            assert_eq!(columns(&bench, "@b.zv", &owners, &[]), all);
            bench.says(&["validate", "@b.zv"]);
        }
        if profile == "0.9" {
            let levels = ["pyramid", "@a.zv", "--levels", "1", "--chunk-scale", "2"];
            bench.says(&[&levels[..], &["--method", "bins", "--cell", "5,5"]].concat());
            bench.says(&["validate", "@a.zv"]);
            let found = columns(&bench, "@a.zv", &owners, &["--level", "1"]);
            assert!(
                found
                    .iter()
                    .all(|row| ["3,3", "4,4", "5,5"].contains(&row.as_str()))
            );
        }
    }
}

#[test]
fn values_that_differ_within_a_fragment_are_refused() {
    let bench = Bench::new();
    bench.file("a.csv", &PATHS.replace("2,1,0,7,0.5", "2,1,0,7,0.75"));
    let words = [
        "create",
        "@a.zv",
        "--kind",
        "streamlines",
        "--from",
        "@a.csv",
    ];
    let options = ["--chunk-shape", "10,10", "--fragment-rows"];
    let said = bench.refused(&[&words[..], &options].concat());
    assert!(
        said.contains("fragment attribute k differs between vertices of fragment 0"),
        "{said}"
    );
    bench.file("b.csv", "x,y\n1,1\n");
    let words = ["create", "@b.zv", "--kind", "points", "--from", "@b.csv"];
    let said = bench.refused(&[&words[..], &["--fragment-owners"]].concat());
    assert!(said.contains("have no owners of fragments"), "{said}");
}

#[test]
fn values_of_fragments_are_replaced_by_chunk() {
    let bench = Bench::new();
    bench.file("a.csv", PATHS);
    create(&bench, "@a.zv", &["--fragment-owners"]);
    bench.says(&["query", "@a.zv", "--row-ids", "-o", "@rows.csv", "--quiet"]);
    let table = std::fs::read_to_string(bench.path("rows.csv")).unwrap();
    let head: Vec<&str> = table.lines().next().unwrap().split(',').collect();
    let place = |name: &str| head.iter().position(|column| *column == name).unwrap();
    let (x, id) = (place("x"), place("row_id"));
    let rows = |of: &[(&str, &str)]| {
        let mut text = "row_id,fragment.k,fragment.new\n".to_owned();
        for row in table
            .lines()
            .skip(1)
            .map(|row| row.split(',').collect::<Vec<_>>())
        {
            if let Some((_, value)) = of.iter().find(|(own, _)| *own == row[x]) {
                text.push_str(&[row[id], ",", value, ".25,", value, "\n"].concat());
            }
        }
        text
    };
    let write = [
        "edit",
        "@a.zv",
        "--attributes",
        "@b.csv",
        "--key",
        "fragment",
    ];
    // The first fragment by one of its vertices, and one of another path in the second chunk.
    let text = rows(&[("1", "60"), ("12", "61")])
        .replace(",60\n", ",p\n")
        .replace(",61\n", ",q\n");
    bench.file("b.csv", &text);
    let said = bench.says(&[&write[..], &["--at-transaction", "0"]].concat());
    assert!(
        said.contains("k, new of the fragments of 2 vertices written"),
        "{said}"
    );
    let found = columns(&bench, "@a.zv", &["x", "fragment.k", "fragment.new"], &[]);
    let expected = [
        "1,60.25,p",
        "11,1.5,",
        "12,61.25,q",
        "2,60.25,p",
        "22,4.5,",
        "23,4.5,",
        "3,2.5,",
    ];
    assert_eq!(found, expected);
    bench.says(&["validate", "@a.zv"]);
    // Vertices of a fragment that differ, a new attribute without null, and a row that does not exist.
    bench.says(&["query", "@a.zv", "--row-ids", "-o", "@rows.csv", "--quiet"]);
    for (text, reason) in [
        (
            rows(&[("22", "1"), ("23", "2")]),
            "differs between vertices of fragment",
        ),
        (rows(&[("22", "1")]).replace("new", "other"), "no value"),
        ("row_id,fragment.k\n99,1\n".to_owned(), "row 99"),
        (
            "row_id,fragment.object_id\n0,1\n".to_owned(),
            "no attributes",
        ),
    ] {
        bench.file("b.csv", &text);
        let said = bench.refused(&[&write[..], &["--at-transaction", "1"]].concat());
        assert!(said.contains(reason), "{reason}: {said}");
        assert_eq!(
            columns(&bench, "@a.zv", &["x", "fragment.k", "fragment.new"], &[]),
            expected
        );
    }
}
