//! `zvf b2nd`, as a user runs it.

use std::fs;

use serde_json::{Value, json};
use zvf_testkit::golden::{Golden, unhex};

use crate::{stores::Bench, text, zvf};

const NAME: &str = "g04_3d_f4_zstd";

/// Creates a bench with the array, and returns the recorded expectation.
fn bench() -> (Bench, Value) {
    let (bench, golden) = (Bench::new(), Golden::open("b2nd"));
    let file = golden.file(&format!("{NAME}.b2nd"));
    fs::write(bench.path("a.b2nd"), file).unwrap();
    let expected = golden.json("expected.json");
    let mut cases = expected["cases"].as_array().unwrap().iter();
    let case = cases.find(|case| case["name"] == NAME).unwrap().clone();
    (bench, case)
}

#[test]
fn info_shows_the_chunks_and_storage_of_an_array() {
    let (bench, case) = bench();
    let info = bench.json(&["b2nd", "info", "@a.b2nd"]);
    let nd = &case["nd"];
    assert_eq!(info["shape"], nd["shape"]);
    assert_eq!(info["chunk_shape"], nd["chunkshape"]);
    assert_eq!(info["block_shape"], nd["blockshape"]);
    assert_eq!(info["dtype"], nd["dtype"]);
    assert_eq!(info["chunks"], case["frame"]["nchunks"]);
    assert_eq!(info["stored_bytes"], case["frame"]["cbytes"]);
    assert_eq!(info["codec"], "zstd");
    let said = bench.says(&["b2nd", "info", "@a.b2nd"]);
    for part in ["9×11×13", "4×6×7", "2×4×5", "zstd", "shuffle"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn verify_names_the_damaged_chunk() {
    let (bench, case) = bench();
    let good = bench.json(&["b2nd", "verify", "@a.b2nd"]);
    assert_eq!(good["ok"], true);
    assert_eq!(good["chunks"], case["frame"]["nchunks"]);
    // A directory with one missing chunk.
    let golden = Golden::open("b2nd");
    fs::create_dir(bench.path("s.b2nd")).unwrap();
    for (name, bytes) in golden.files() {
        if let Some((_, file)) = name.split_once("m_sframe.b2nd/")
            && file != "00000002.chunk"
            && !file.is_empty()
        {
            fs::write(bench.path("s.b2nd").join(file), bytes).unwrap();
        }
    }
    let path = bench.path("s.b2nd").display().to_string();
    let output = zvf(&["b2nd", "verify", &path, "--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let found: Value = serde_json::from_str(text(&output.stdout)).unwrap();
    assert_eq!((&found["ok"], &found["chunks"]), (&json!(false), &json!(4)));
    let broken = found["broken"].as_array().unwrap();
    assert_eq!((broken.len(), &broken[0]["chunk"]), (1, &json!(2)));
    assert_eq!(bench.code(&["b2nd", "verify", "@nothing.b2nd"]), Some(2));
}

#[test]
fn a_slice_has_the_recorded_values() {
    let (bench, case) = bench();
    let mut compared = 0;
    for slice in case["slices"].as_array().unwrap() {
        let Some(hex) = slice["hex"].as_str() else {
            continue;
        };
        let part = |key: &str| {
            let axes = slice[key].as_array().unwrap().iter();
            axes.map(ToString::to_string).collect::<Vec<_>>().join(",")
        };
        let (start, stop) = (part("start"), part("stop"));
        let words = ["b2nd", "slice", "@a.b2nd", "-o", "@s.npy"];
        let ranges = ["--start", &start, "--stop", &stop];
        let report = bench.json(&[&words[..], &ranges].concat());
        assert_eq!(report["shape"], slice["shape"]);
        assert_eq!(report["bytes"], slice["nbytes"]);
        let values = unhex(hex);
        let written = fs::read(bench.path("s.npy")).unwrap();
        assert!(written.ends_with(&values) && written.len() == 128 + values.len());
        let shown = bench.json(&[&words[..3], &ranges].concat());
        // Slices with few values are also recorded as numbers.
        if let Some(first) = slice["values"].get(0) {
            assert_eq!(&shown["values"][0], first);
        }
        compared += 1;
    }
    assert!(compared > 3, "{compared}");
}

#[test]
fn created_and_converted_arrays_keep_their_values() {
    let (bench, _) = bench();
    bench.says(&["b2nd", "convert", "@a.b2nd", "@a.npy"]);
    let report = bench.json(&[
        "b2nd",
        "create",
        "@a.npy",
        "@b.b2nd",
        "--chunks",
        "5,5,5",
        "--compression",
        "zstd",
        "--level",
        "3",
    ]);
    assert_eq!(report["chunk_shape"], json!([5, 5, 5]));
    let info = bench.json(&["b2nd", "info", "@b.b2nd"]);
    assert_eq!(
        (&info["codec"], &info["level"]),
        (&json!("zstd"), &json!(3))
    );
    assert_eq!(bench.json(&["b2nd", "verify", "@b.b2nd"])["ok"], true);
    bench.says(&["b2nd", "convert", "@b.b2nd", "@c.tet"]);
    let between = if cfg!(feature = "zarr") {
        "@d.zarr"
    } else {
        "@d.npy"
    };
    bench.says(&["b2nd", "convert", "@c.tet", between]);
    bench.says(&["b2nd", "convert", between, "@e.b2nd"]);
    bench.says(&["b2nd", "slice", "@e.b2nd", "-o", "@e.npy"]);
    assert!(fs::read(bench.path("e.npy")).unwrap() == fs::read(bench.path("a.npy")).unwrap());
}

#[test]
fn errors_contain_a_hint() {
    let (bench, _) = bench();
    let said = bench.refused(&["b2nd", "create", "@a.b2nd", "@a.npy"]);
    assert!(
        said.contains("write other formats with zvf b2nd convert"),
        "{said}"
    );
    let golden = Golden::open("b2nd");
    let short = golden.file("n_truncated.b2nd");
    fs::write(bench.path("short.b2nd"), short).unwrap();
    for verb in ["info", "verify", "slice"] {
        bench.refused(&["b2nd", verb, "@short.b2nd"]);
    }
    let said = bench.refused(&["b2nd", "slice", "@a.b2nd", "--stop", "99,1,1"]);
    assert!(said.contains("element 98 of axis 0"), "{said}");
}

#[cfg(not(feature = "zarr"))]
#[test]
fn a_build_without_zarr_names_the_feature() {
    let (bench, _) = bench();
    let said = bench.refused(&["b2nd", "convert", "@a.b2nd", "@a.zarr"]);
    assert!(said.contains("--features zarr"), "{said}");
}

/// Regression test: these options had no effect, and `.cat` files were not Caterva.
#[test]
fn options_that_a_format_lacks_are_refused() {
    let (bench, _) = bench();
    let cases: [(&str, &[&str], &str); 7] = [
        ("@b.npy", &["--chunks", "1,1,1"], "--chunks does not apply"),
        (
            "@b.npy",
            &["--compression", "zstd"],
            "--compression does not apply",
        ),
        ("@b.npy", &["--checksums"], "--checksums does not apply"),
        ("@b.b2nd", &["--checksums"], "--checksums does not apply"),
        (
            "@b.b2nd",
            &["--compression", "none", "--level", "9"],
            "--level does not apply",
        ),
        ("@b.b2nd", &["--chunks", "0,1,1"], "an extent of 0"),
        ("@b.cat", &[], "write .b2nd"),
    ];
    for (out, options, reason) in cases {
        let line = [&["b2nd", "convert", "@a.b2nd", out][..], options].concat();
        let said = bench.refused(&line);
        assert!(said.contains(reason), "{said}");
    }
    let said = bench.refused(&["b2nd", "slice", "@a.b2nd", "--start", "1"]);
    assert!(said.contains("array has 3"), "{said}");
}

/// Regression test: conversions dropped these without a line.
#[test]
fn conversions_list_what_the_output_lacks() {
    let (bench, golden) = (Bench::new(), Golden::open("b2nd"));
    let file = golden.file("m_meta_vlmeta.b2nd");
    fs::write(bench.path("m.b2nd"), file).unwrap();
    for (out, line) in [
        ("n.b2nd", "metalayer \"author\" is left out"),
        ("n.npy", "because .npy has none"),
    ] {
        let output = zvf(&[
            "b2nd",
            "convert",
            &path(&bench, "m.b2nd"),
            &path(&bench, out),
        ]);
        let said = text(&output.stderr);
        assert!(said.contains(line), "{said}");
    }
}

fn path(bench: &Bench, name: &str) -> String {
    bench.path(name).to_str().unwrap().to_owned()
}
