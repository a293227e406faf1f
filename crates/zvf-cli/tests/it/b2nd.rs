//! `zvf b2nd`, as a user runs it.

use std::fs;

use serde_json::{Value, json};
use zvf_dense::{DenseArray, MemoryArray, NumpyDtype, npy::NpySink};
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
    let cases: [(&str, &[&str], &str); 12] = [
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
        ("@b.npy", &["--blocks", "1,1,1"], "--blocks does not apply"),
        (
            "@b.tet",
            &["--metalayer", "a=1"],
            "--metalayer does not apply",
        ),
        ("@b.cat", &["--blocks", "9,9,9"], "blocks divide chunks"),
        ("@b.cat", &["--blocks", "1,1"], "--blocks has 2 extents"),
        ("@b.cat", &["--metalayer", "unit"], "NAME=VALUE"),
        ("@b.b2nd", &["--dtype", "<i4"], "items of the array are"),
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
    let output = zvf(&[
        "b2nd",
        "convert",
        &path(&bench, "m.b2nd"),
        &path(&bench, "n.npy"),
    ]);
    let said = text(&output.stderr);
    for line in ["metalayer \"author\" is left out", "because .npy has none"] {
        assert!(said.contains(line), "{said}");
    }
    // Arrays of Blosc2 keep metalayers of the header.
    for out in ["@n.b2nd", "@n.cat"] {
        zvf(&[
            "b2nd",
            "convert",
            &path(&bench, "m.b2nd"),
            &path(&bench, &out[1..]),
        ]);
        let (from, to) = (["b2nd", "info", "@m.b2nd"], ["b2nd", "info", out]);
        let (from, to) = (bench.json(&from), bench.json(&to));
        assert_eq!(from["metalayers"], to["metalayers"]);
        assert_eq!(from["metalayer_values"], to["metalayer_values"]);
    }
}

fn path(bench: &Bench, name: &str) -> String {
    bench.path(name).to_str().unwrap().to_owned()
}

/// Writes a `.npy` of `<f4` numbers.
fn npy(bench: &Bench, name: &str, shape: &[u64], values: &[f32]) {
    let bytes = values.iter().flat_map(|value| value.to_le_bytes());
    let dtype = NumpyDtype::parse("<f4").unwrap();
    let array = MemoryArray::new(name, dtype, shape.to_vec(), bytes.collect()).unwrap();
    let chunk: Vec<u64> = shape.iter().map(|extent| (*extent).max(1)).collect();
    let sink = NpySink::create(&bench.path(name), array.dtype(), shape, &chunk).unwrap();
    zvf_dense::convert(&array, Box::new(sink), &mut |_| {}).unwrap();
}

#[track_caller]
fn check_values(bench: &Bench, file: &str, expected: &[f64]) {
    let mut line = vec!["b2nd", "slice", file];
    if file == "@a.cat" {
        line.extend(["--dtype", "f4"]);
    }
    assert_eq!(bench.json(&line)["values"], json!(expected), "{file}");
}

#[test]
fn arrays_of_both_forms_are_created_and_changed_in_place() {
    let bench = Bench::new();
    npy(&bench, "a.npy", &[2, 3], &[1., 2., 3., 4., 5., 6.]);
    npy(&bench, "row.npy", &[1, 3], &[7., 8., 9.]);
    npy(&bench, "box.npy", &[2, 1], &[0.5, -0.5]);
    for file in ["@a.b2nd", "@a.cat"] {
        let words = ["b2nd", "create", "@a.npy", file, "--chunks", "2,2"];
        let more = [
            "--blocks",
            "1,2",
            "--metalayer",
            "unit=mm",
            "--metalayer",
            "n=[1,2]",
        ];
        bench.says(&[&words[..], &more].concat());
        let info = bench.json(&["b2nd", "info", file]);
        let form = if file == "@a.cat" { "caterva" } else { "b2nd" };
        assert_eq!(info["form"], form);
        assert_eq!(
            (&info["chunk_shape"], &info["block_shape"]),
            (&json!([2, 2]), &json!([1, 2]))
        );
        assert_eq!(info["metalayer_values"], json!({"unit": "mm", "n": [1, 2]}));
        check_values(&bench, file, &[1., 2., 3., 4., 5., 6.]);
        let changed = bench.json(&["b2nd", "append", file, "@row.npy", "--axis", "0"]);
        assert_eq!(
            (&changed["shape"], &changed["chunks"]),
            (&json!([3, 3]), &json!(4))
        );
        check_values(&bench, file, &[1., 2., 3., 4., 5., 6., 7., 8., 9.]);
        let words = [
            "b2nd", "update", file, "@box.npy", "--start", "0,1", "--step", "2,1",
        ];
        bench.says(&words);
        check_values(&bench, file, &[1., 0.5, 3., 4., 5., 6., 7., -0.5, 9.]);
        let said = bench.says(&["b2nd", "resize", file, "--shape", "2,4"]);
        assert!(said.contains("2×4 in 2 chunks"), "{said}");
        check_values(&bench, file, &[1., 0.5, 3., 0., 4., 5., 6., 0.]);
        bench.says(&["b2nd", "set", file, "unit=um", "made={\"by\": 1}"]);
        let info = bench.json(&["b2nd", "info", file]);
        assert_eq!(info["metalayer_values"]["unit"], "um");
        assert_eq!(info["attributes"], json!({"made": {"by": 1}}));
        let said = bench.says(&["b2nd", "info", file]);
        for part in ["\"unit\", 3 bytes: \"um\"", "\"made\", 5 bytes: {\"by\":1}"] {
            assert!(said.contains(part), "{part}: {said}");
        }
        bench.says(&["b2nd", "set", file, "--remove", "made"]);
        assert_eq!(bench.json(&["b2nd", "info", file])["attributes"], json!({}));
        assert_eq!(bench.json(&["b2nd", "verify", file])["ok"], true);
    }
    // Caterva records no type; a conversion with it does.
    bench.says(&["b2nd", "convert", "@a.cat", "@b.b2nd", "--dtype", "f4"]);
    check_values(&bench, "@b.b2nd", &[1., 0.5, 3., 0., 4., 5., 6., 0.]);
    assert_eq!(
        bench.json(&["b2nd", "info", "@a.cat"])["dtype"],
        Value::Null
    );
}

#[test]
fn refused_changes_leave_an_array_as_it_is() {
    let bench = Bench::new();
    npy(&bench, "a.npy", &[2, 3], &[1., 2., 3., 4., 5., 6.]);
    npy(&bench, "flat.npy", &[3], &[7., 8., 9.]);
    bench.says(&[
        "b2nd",
        "create",
        "@a.npy",
        "@a.cat",
        "--metalayer",
        "unit=mm",
    ]);
    let before = fs::read(bench.path("a.cat")).unwrap();
    let cases: [(&[&str], &str); 10] = [
        (&["append", "@a.cat", "@flat.npy"], "shape [3]"),
        (
            &["append", "@a.cat", "@a.npy", "--axis", "2"],
            "there is no axis 2 of an array of 2 axes",
        ),
        (
            &["append", "@a.cat", "@a.npy", "--dtype", "i4"],
            "are <i4, not <f4",
        ),
        (
            &["append", "@a.cat", "@a.npy", "--dtype", "f8"],
            "items have 4 bytes",
        ),
        (&["append", "@none.cat", "@a.npy"], "does not exist"),
        (&["update", "@a.cat", "@flat.npy"], "has 1 axes"),
        (
            &["update", "@a.cat", "@a.npy", "--start", "1,0"],
            "element 2 of axis 0",
        ),
        (&["resize", "@a.cat", "--shape", "2"], "axes"),
        (&["set", "@a.cat", "unit=nanometre"], "cannot be set to"),
        (
            &["set", "@a.cat", "--remove", "unit"],
            "no metalayer \"unit\" to remove",
        ),
    ];
    for (line, reason) in cases {
        let said = bench.refused(&[&["b2nd"], line].concat());
        assert!(said.contains(reason), "{line:?}: {said}");
        check_values(&bench, "@a.cat", &[1., 2., 3., 4., 5., 6.]);
    }
    assert!(fs::read(bench.path("a.cat")).unwrap() == before);
}
