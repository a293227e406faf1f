//! Names that would control a terminal or become markup.

use std::fs;

use serde_json::{Value, json};

use crate::{stores::Bench, text, zvf};

/// A text that sets the title of a terminal, clears it, reverses the rest of a line, and is markup.
const NAME: &str = "x\u{1b}]0;t\u{7}\u{9b}2J\u{202e}<script>\"&,\r";

/// Writes a store with that text wherever a root has names.
fn store(bench: &Bench) {
    bench.file("a.csv", "x,y,group,fa\n1,1,a,2\n2,5,b,3\n3,2,a,4\n");
    bench.says(&[
        "create",
        "@a.zv",
        "--kind",
        "points",
        "--from",
        "@a.csv",
        "--no-node-copy",
        "--no-seal",
    ]);
    let path = bench.path("a.zv/zarr.json");
    let mut root: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let axes = root["attributes"]["multiscales"][0]["axes"].as_array_mut();
    for axis in axes.unwrap() {
        axis["name"] = format!("{}{NAME}", axis["name"].as_str().unwrap()).into();
        axis["unit"] = NAME.into();
    }
    root["attributes"]["multiscales"][0]["name"] = NAME.into();
    root["attributes"]["zarr_vectors"]["crs"] = json!({"name": NAME});
    root["attributes"]["zarr_vectors"]["required_capability"] = NAME.into();
    fs::write(path, root.to_string()).unwrap();
}

#[track_caller]
fn check(what: &str, said: &str) {
    let bad = |letter: char| {
        (letter.is_control() && letter != '\n' && letter != '\t') || letter == '\u{202e}'
    };
    let found = said.find(bad);
    assert_eq!(found, None, "{what}: {said:?}");
}

#[test]
fn names_cannot_control_the_terminal() {
    let bench = Bench::new();
    store(&bench);
    let path = bench.path("a.zv").display().to_string();
    let mut escapes = 0;
    for line in [
        &["info", &path][..],
        &["info", &path, "--json"],
        &["query", &path],
        &["query", &path, "--json"],
        &["query", &path, "--explain"],
        &["query", &path, "--where", "vertex.nothing > 1"],
        &["validate", &path],
        &["validate", &path, "--json"],
        &["pyramid", &path, "--levels", "1"],
        &["query", NAME],
        &[NAME],
        &["query", &path, &format!("--{NAME}")],
        &["query", &path, "--mode", NAME],
        &["query", &path, "--bbox", NAME],
        &["query", &path, NAME],
    ] {
        let output = zvf(line);
        let is_about_names = line.iter().any(|word| word.contains(NAME));
        let escapes_before = escapes;
        for stream in [&output.stdout, &output.stderr] {
            check(&line.join(" "), text(stream));
            escapes += text(stream).matches("\\u001b").count();
            escapes += text(stream).matches("\\u202e").count();
        }
        assert!(!is_about_names || escapes > escapes_before, "{line:?}");
        if line.contains(&"--json") && output.status.code() != Some(2) {
            serde_json::from_slice::<Value>(&output.stdout).unwrap();
        }
    }
    assert!(escapes > 4, "{escapes}");
}

#[test]
fn names_are_fields_of_csv_files() {
    let bench = Bench::new();
    store(&bench);
    bench.says(&["query", "@a.zv", "-o", "@b.csv"]);
    let written = fs::read_to_string(bench.path("b.csv")).unwrap();
    let quoted = format!("\"x{}\"", NAME.replace('"', "\"\""));
    assert!(written.starts_with(&quoted), "{written:?}");
}
