//! Notes about files that programs read only in part, or not at all.

use std::fs;

use serde_json::Value;

use crate::stores::Bench;

/// Returns the notes about a file that holds all of its store.
#[track_caller]
fn notes(bench: &Bench, store: &str, file: &str) -> Vec<String> {
    let said = bench.json(&["query", store, "-o", file]);
    let notes = said["notes"].as_array().unwrap().iter();
    notes
        .map(|note| note.as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn ply_files_without_z_have_a_note() {
    let bench = Bench::new();
    bench.file("flat.csv", "x,y\n1,2\n3,4\n");
    bench.file("deep.csv", "x,y,z\n1,2,0\n3,4,0\n");
    for (name, count) in [("flat", 1), ("deep", 0)] {
        let (store, source) = (format!("@{name}.zv"), format!("@{name}.csv"));
        let line = ["create", &store, "--from", &source, "--kind", "points"];
        bench.says(&[&line[..], &["--quiet"]].concat());
        let notes = notes(&bench, &store, "@a.ply");
        assert_eq!(notes.len(), count, "{notes:?}");
        assert!(
            notes.iter().all(|note| note.contains("have no z")),
            "{notes:?}"
        );
    }
}

#[test]
fn swc_files_of_several_skeletons_have_a_note() {
    let bench = Bench::new();
    fs::create_dir(bench.path("cells")).unwrap();
    for (name, x) in [("3", 1), ("7", 50)] {
        let text = format!("1 1 {x} 2 3 1 -1\n2 3 {x} 3 3 1 1\n");
        bench.file(&format!("cells/{name}.swc"), &text);
    }
    bench.says(&["create", "@a.zv", "--from", "@cells", "--quiet"]);
    let notes_of_one = notes(&bench, "@a.zv", "@all.swc");
    assert!(
        notes_of_one
            .iter()
            .any(|note| note.contains("'{object}.swc'")),
        "{notes_of_one:?}"
    );
    assert_eq!(notes(&bench, "@a.zv", "@{object}.swc"), [""; 0]);
}

/// TRX files of two axes were refused with a message about their order.
#[test]
fn tractograms_of_two_axes_have_z_at_0() {
    let bench = Bench::new();
    let rows = "x,y,part,object_id\n1.5,2,0,0\n3,4,0,0\n5,6,1,1\n7,8,1,1\n";
    bench.file("flat.csv", rows);
    let line = [
        "create",
        "@a.zv",
        "--from",
        "@flat.csv",
        "--kind",
        "polylines",
    ];
    bench.says(&[&line[..], &["--quiet"]].concat());
    for format in ["trk", "tck", "trx"] {
        let file = format!("@a.{format}");
        assert_eq!(
            bench.code(&["query", "@a.zv", "-o", &file, "--quiet"]),
            Some(0)
        );
        let back = format!("@{format}.zv");
        bench.says(&["create", &back, "--from", &file, "--quiet"]);
        let bounds = &bench.json(&["info", &back])["bounds"];
        assert_eq!(bounds[0][2], 0.0, "{format}: {bounds}");
        let first = bounds[0][0].as_f64().unwrap();
        assert!((first - 1.5).abs() < 1e-6, "{format}: {bounds}");
    }
    bench.file("points.csv", "x,y\n1,2\n");
    let line = [
        "create",
        "@p.zv",
        "--from",
        "@points.csv",
        "--kind",
        "points",
    ];
    bench.says(&[&line[..], &["--quiet"]].concat());
    let refused = bench.refused(&["query", "@p.zv", "-o", "@p.trx"]);
    assert!(refused.contains("trx holds paths only"), "{refused}");
}

/// A grid that is made up is no loss, so that `--strict` takes it.
#[test]
fn grids_that_are_made_up_have_a_note() {
    let bench = Bench::new();
    bench.file("a.csv", "x,y,z,part,object_id\n1,2,3,0,0\n9,2,3,0,0\n");
    bench.says(&[
        "create",
        "@a.zv",
        "--from",
        "@a.csv",
        "--kind",
        "streamlines",
        "--quiet",
    ]);
    let is_note = |said: &Value| {
        let mut notes = said["notes"].as_array().unwrap().iter();
        notes.any(|note| {
            note.as_str()
                .unwrap()
                .starts_with("made up: the voxel grid")
        })
    };
    for file in ["@a.trk", "@a.trx"] {
        let said = bench.json(&["query", "@a.zv", "-o", file, "--strict"]);
        assert!(is_note(&said), "{said}");
        let converted = bench.json(&["convert", file, "@b.tck"]);
        assert!(!is_note(&converted), "{converted}");
        let converted = bench.json(&["convert", "@b.tck", "@c.trk"]);
        assert!(is_note(&converted), "{converted}");
        bench.says(&["create", "@b.zv", "--from", file, "--quiet", "--overwrite"]);
        let kept = bench.json(&["query", "@b.zv", "-o", "@d.trk"]);
        assert!(!is_note(&kept), "{kept}");
    }
}
