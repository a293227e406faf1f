//! `zvf create` end to end: queries find the input in the created stores.

use std::fs;

use serde_json::{Value, json};

use crate::{
    round_trip::typed,
    stores::{Bench, KINDS, tables},
};

const CHUNKS: [&str; 2] = ["10,10", "10,10,10"];

/// Queries the whole store, with groups if it has any.
#[track_caller]
fn all(bench: &Bench, store: &str, has_groups: bool) -> String {
    let of: &[&str] = if has_groups { &["--group", "0"] } else { &[] };
    bench.result(store, of)
}

#[test]
fn every_kind_in_every_format_is_read_back() {
    for (kind, files) in KINDS {
        let bench = Bench::new();
        let expected = tables(&bench, &files);
        let formats = [&["csv"], &typed()[..]].concat();
        let has_groups = expected.contains("group,");
        let axes = files[0].1.starts_with("x,y,z");
        let chunks = CHUNKS[usize::from(axes)];
        let mut from = "@a.csv".to_owned();
        for (at, end) in formats.iter().enumerate() {
            let store = format!("@{end}.zv");
            let made = bench.json(&[
                "create",
                &store,
                "--kind",
                kind,
                "--from",
                &from,
                "--chunk-shape",
                chunks,
            ]);
            let info = bench.json(&["info", &store]);
            let level = &info["levels"][0];
            for key in ["vertices", "objects", "chunks"] {
                // Points without objects have no object count.
                let counted = level[key].as_u64().unwrap_or(0);
                assert_eq!(made[key], counted, "{kind} from {end}: {key}");
            }
            assert!(made["bytes_written"].as_u64() > Some(1000), "{made}");
            assert_eq!(made["transaction"], 0, "{kind}");
            assert_eq!(
                all(&bench, &store, has_groups),
                expected,
                "{kind} from {end}"
            );
            // The next store is created from this file.
            let Some(next) = formats.get(at + 1) else {
                break;
            };
            from = format!("@next.{next}");
            let line = ["query", &store, "-o", &from, "--quiet"];
            let groups: &[&str] = if has_groups { &["--group", "0"] } else { &[] };
            bench.says(&[&line[..], groups].concat());
        }
    }
}

#[test]
fn every_profile_and_codec_is_read_back() {
    let (kind, files) = KINDS[4];
    let bench = Bench::new();
    let expected = tables(&bench, &files);
    let ways = [
        ["--profile", "0.9", "--shard", "--compression=zstd:3"],
        ["--profile", "0.9", "--shard=2,2,2", "--compression=blosc"],
        ["--profile", "0.8", "--no-checksum", "--compression=gzip"],
        [
            "--profile",
            "0.8-padded",
            "--no-checksum",
            "--compression=zstd",
        ],
    ];
    for way in ways {
        // A bare `--shard` before OUT does not take OUT as its value.
        let line = ["create", "--kind", kind, "--from", "@a.csv", "--overwrite"];
        bench.says(&[&line[..], &way, &["@a.zv", "--chunk-shape", "10,10,10"]].concat());
        let info = bench.json(&["info", "@a.zv"]);
        assert_eq!(info["profile"], way[1], "{way:?}");
        assert_eq!(all(&bench, "@a.zv", true), expected, "{way:?}");
    }
}

#[test]
fn the_text_report_describes_the_store() {
    let (kind, files) = KINDS[3];
    let bench = Bench::new();
    tables(&bench, &files);
    let said = bench.says(&["create", "@a.zv", "--kind", kind, "--from", "@a.csv"]);
    assert!(
        said.starts_with("/a.zv, polylines\n  5 vertices, 2 objects, "),
        "{said}"
    );
    let said = bench.says(&[
        "create", "@b.zv", "--kind", kind, "--from", "@a.csv", "--quiet",
    ]);
    assert_eq!(said, "");
}

#[test]
fn an_existing_store_is_replaced_only_on_request() {
    let bench = Bench::new();
    bench.file("a.csv", "x,y\n1,2\n");
    bench.file("b.csv", "x,y\n3,4\n");
    let line = ["create", "@a.zv", "--kind", "points", "--from"];
    bench.says(&[&line[..], &["@a.csv"]].concat());
    let said = bench.refused(&[&line[..], &["@b.csv"]].concat());
    let expected = "error: /a.zv cannot be created: a store already exists; \
        replace it with --overwrite, or add to it with zvf append\n";
    assert_eq!(said, expected);
    assert_eq!(bench.result("@a.zv", &[]), "x,y\n1,2\n");
    let made = bench.json(&[&line[..], &["@b.csv", "--overwrite"]].concat());
    assert_eq!(
        (&made["vertices"], &made["transaction"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(bench.result("@a.zv", &[]), "x,y\n3,4\n");
}

#[test]
fn a_folder_without_a_store_is_not_replaced() {
    let bench = Bench::new();
    bench.file("a.csv", "x,y\n1,2\n");
    fs::create_dir(bench.path("mine")).unwrap();
    bench.file("mine/note.txt", "keep");
    let line = ["create", "@mine", "--kind", "points", "--from", "@a.csv"];
    for more in [&[][..], &["--overwrite"]] {
        let said = bench.refused(&[&line[..], more].concat());
        assert!(said.contains("note.txt"), "{said}");
        assert!(
            said.ends_with("choose another address, or move the contents away\n"),
            "{said}"
        );
    }
    assert_eq!(fs::read_dir(bench.path("mine")).unwrap().count(), 1);
}

#[test]
fn rejected_input_leaves_no_files() {
    let refusals: [(&str, &str, &[&str], &str); 6] = [
        ("points", "x,y\n1,nan\n", &[], "coordinate of NaN"),
        (
            "points",
            "x,y\n1,2\n",
            &["--chunk-shape", "1,1,1"],
            "3 axes",
        ),
        (
            "points",
            "x,y\n1,2\n",
            &["--bounds", "5,5,9,9"],
            "--out-of-bounds expand",
        ),
        (
            "lines",
            "x,object_id\n1,1\n2,1\n3,1\n",
            &[],
            "line 0 has 3 vertices",
        ),
        (
            "polylines",
            "x,y\n1,1\n2,1\n",
            &[],
            "give a table a column part or object_id",
        ),
        (
            "polylines",
            "x,y,part\n1,2,0\n",
            &["--memory", "10"],
            "--memory allows 10; raise it",
        ),
    ];
    for (kind, csv, more, why) in refusals {
        let bench = Bench::new();
        bench.file("a.csv", csv);
        let line = ["create", "@a.zv", "--kind", kind, "--from", "@a.csv"];
        let said = bench.refused(&[&line[..], more].concat());
        assert!(said.contains(why), "{said}");
        assert_eq!(bench.names(), ["a.csv"], "{said}");
    }
}

#[test]
fn geometry_outside_the_bounds_is_dropped_or_expands_them() {
    let bench = Bench::new();
    bench.file("a.csv", "x,y\n1,2\n7,8\n");
    let line = [
        "create",
        "@a.zv",
        "--kind",
        "points",
        "--from",
        "@a.csv",
        "--threads",
        "1",
    ];
    let ignore = ["--bounds", "0,0,5,5", "--out-of-bounds", "ignore"];
    let said = bench.says(&[&line[..], &ignore].concat());
    assert!(
        said.contains("1 vertex dropped: outside the bounds"),
        "{said}"
    );
    assert_eq!(bench.result("@a.zv", &[]), "x,y\n1,2\n");
    let expand = [
        "--bounds",
        "0,0,5,5",
        "--out-of-bounds",
        "expand",
        "--overwrite",
    ];
    bench.says(&[&line[..], &expand].concat());
    let info: Value = bench.json(&["info", "@a.zv"]);
    assert_eq!(info["bounds"], json!([[0.0, 0.0], [7.0, 8.0]]));
}
