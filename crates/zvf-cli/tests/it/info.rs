//! `zvf info` as a user runs it.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::{text, unpack, zvf};

#[test]
fn info_shows_a_table() {
    let folder = tempfile::tempdir().unwrap();
    unpack("zvf-07", "graph.zv", folder.path());
    let address = folder.path().to_str().unwrap();
    let output = zvf(&["info", address]);
    assert_eq!(text(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
    let expected = "
  generation  0.7
  geometry    graph
  bounds      x 1 to 21
              y 1 to 3
              z 1 to 3

  level  vertices  chunks  objects  links  bytes
      0         6       3        1      6  9 370
";
    assert_eq!(text(&output.stdout), format!("{address}{expected}"));
}

#[test]
fn info_prints_json() {
    let folder = tempfile::tempdir().unwrap();
    unpack("zvf-07", "graph.zv", folder.path());
    let output = zvf(&["info", "--json", folder.path().to_str().unwrap()]);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let level = json!({"level": 0, "vertices": 6, "chunks": 3, "objects": 1, "links": 6, "bytes": 9370,
            "behind": false, "additive": false});
    let expected = json!({
        "generation": "0.7",
        "profile": "0.7",
        "geometry": ["graph"],
        "axes": ["x", "y", "z"],
        "bounds": [[1.0, 1.0, 1.0], [21.0, 3.0, 3.0]],
        "levels": [level],
        "notes": [],
    });
    assert_eq!(found, expected);
}

#[test]
fn errors_exit_with_2_and_give_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let address = folder.path().to_str().unwrap();
    let output = zvf(&["info", address]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(text(&output.stdout), "");
    let expected = format!(
        "error: {address} is not a Zarr store: it has no zarr.json; \
         give the root of a store, the folder whose zarr.json names zarr_vectors\n"
    );
    assert_eq!(text(&output.stderr), expected);
    assert_eq!(zvf(&["inform"]).status.code(), Some(2));
}

#[test]
fn stores_in_a_plain_folder_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["b.zv", "a.zv"] {
        std::fs::create_dir(folder.path().join(name)).unwrap();
        std::fs::write(folder.path().join(name).join("zarr.json"), "{}").unwrap();
    }
    std::fs::create_dir(folder.path().join("pictures")).unwrap();
    let address = folder.path().to_str().unwrap();
    let output = zvf(&["info", address]);
    assert_eq!(output.status.code(), Some(2));
    let expected = format!(
        "error: {address} is not a Zarr store: it has no zarr.json; give one of the stores in it: a.zv, b.zv\n"
    );
    assert_eq!(text(&output.stderr), expected);
}

/// The pipe closes early, for example in `zvf info | head`.
#[test]
fn a_closed_pipe_is_not_an_error() {
    let folder = tempfile::tempdir().unwrap();
    unpack("zvf-07", "graph.zv", folder.path());
    let mut command = Command::new(env!("CARGO_BIN_EXE_zvf"));
    command.args(["info", folder.path().to_str().unwrap()]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(text(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
}
