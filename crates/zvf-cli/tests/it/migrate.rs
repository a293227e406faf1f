//! `zvf migrate`, as a user runs it.

use std::fs;

use serde_json::json;

use crate::{stores::Bench, unpack};

#[test]
fn a_store_is_migrated_to_another_generation() {
    let bench = Bench::new();
    unpack("zvf-07", "streamlines.zv", &bench.path("old.zv"));
    let said = bench.says(&["migrate", "@old.zv", "@new.zv", "--no-checksum"]);
    let size = said.lines().nth(2).unwrap();
    assert!(size.contains("bytes written in"), "{said}");
    let said = said.replace(&format!("{size}\n"), "");
    let expected = "/new.zv, from 0.7 to 0.9\n  1 level, 8 vertices, 2 links\n  repaired:\n    \
        0/cross_chunk_links/0: 2, links between pieces of paths with wrong rows\n";
    assert_eq!(said, expected);
    let report = bench.json(&["migrate", "@new.zv", "@older.zv", "--profile", "0.8"]);
    assert_eq!(report["from"], "0.9");
    assert_eq!(report["to"], "0.8");
    assert_eq!(
        (&report["repaired"], &report["lost"]),
        (&json!([]), &json!([]))
    );
    for store in ["@old.zv", "@new.zv", "@older.zv"] {
        let info = bench.json(&["info", store]);
        assert_eq!(info["levels"][0]["vertices"], 8, "{store}");
    }
}

/// The files of the new store were damage of the old one, which has an inventory.
#[test]
fn a_target_in_the_old_store_is_refused() {
    let bench = Bench::new();
    bench.file("in.csv", "x,y,z\n1,2,3\n");
    bench.says(&["create", "@a.zv", "--from", "@in.csv", "--kind", "points"]);
    for line in [
        &["migrate", "@a.zv", "@a.zv/b.zv"][..],
        &[
            "task",
            "plan",
            "@p.json",
            "migrate",
            "@a.zv",
            "@a.zv/0/b.zv",
        ],
    ] {
        let said = bench.refused(line);
        let place = "b.zv cannot be created: it is in the folder of the store";
        assert!(said.contains(place), "{said}");
        assert!(said.contains("; name an address outside of it"), "{said}");
    }
    assert_eq!(bench.json(&["validate", "@a.zv"])["findings"], json!([]));
    // A name that begins with that of the store is not in it.
    bench.says(&["migrate", "@a.zv", "@a.zv2"]);
}

#[test]
fn errors_contain_a_hint() {
    let bench = Bench::new();
    unpack("zvf-07", "graph.zv", &bench.path("old.zv"));
    let said = bench.refused(&["migrate", "@old.zv", "@old.zv"]);
    assert!(
        said.contains("a store already exists; replace it with --overwrite"),
        "{said}"
    );
    let said = bench.refused(&["migrate", "@no.zv", "@new.zv"]);
    assert!(!said.contains("zvf create"), "{said}");
    fs::write(bench.path("old.zv/0/vertices/0.0.0/c/0"), b"short").unwrap();
    let said = bench.refused(&["migrate", "@old.zv", "@new.zv"]);
    assert!(
        said.contains("0/vertices") && said.contains("--skip-damaged"),
        "{said}"
    );
    assert!(!bench.path("new.zv/zarr.json").exists());
    // The rows of the chunk are lost, and with them a part of an object.
    let report = bench.json(&["migrate", "@old.zv", "@new.zv", "--skip-damaged"]);
    let lost = report["lost"].as_array().unwrap().iter();
    let lost: Vec<_> = lost
        .filter(|lost| lost["what"].as_str().unwrap().contains("cannot be read"))
        .map(|lost| {
            (
                lost["path"].as_str().unwrap(),
                lost["what"].as_str().unwrap(),
            )
        })
        .collect();
    let expected = [
        (
            "0/object_index",
            "parts of objects whose vertices cannot be read",
        ),
        ("0/vertices/0.0.0", "cannot be read"),
    ];
    assert!(expected.iter().all(|note| lost.contains(note)), "{lost:?}");
    let report = bench.json(&[
        "migrate",
        "@old.zv",
        "@old.zv",
        "--overwrite",
        "--skip-damaged",
    ]);
    assert_eq!(report["to"], "0.9");
    assert_eq!(bench.json(&["info", "@old.zv"])["generation"], "0.9");
}

#[test]
fn the_root_has_a_copy_of_the_nodes_by_default() {
    let bench = Bench::new();
    unpack("zvf-07", "graph.zv", &bench.path("old.zv"));
    bench.says(&["migrate", "@old.zv", "@with.zv"]);
    bench.says(&["migrate", "@old.zv", "@without.zv", "--no-node-copy"]);
    for (store, expected) in [("with.zv", true), ("without.zv", false)] {
        let root = fs::read_to_string(bench.path(store).join("zarr.json")).unwrap();
        assert_eq!(root.contains("\"zvf_nodes\""), expected, "{store}");
    }
}
