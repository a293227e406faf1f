//! `zvf query` as a user runs it.

use std::fs;

use crate::{text, unpack, zvf};

fn graph() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    unpack("zvf-07", "graph.zv", folder.path());
    folder
}

#[track_caller]
fn refused(arguments: &[&str]) -> String {
    let output = zvf(arguments);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(text(&output.stdout), "");
    text(&output.stderr).to_owned()
}

/// The store is not looked at when the file cannot be written.
#[test]
fn a_file_of_no_known_kind_is_refused_first() {
    let says = refused(&["query", "absent.zv", "-o", "a.xlsx"]);
    let end = ".xlsx files cannot be written; use .csv, .npz, .arrow, .parquet, .ply or .obj";
    assert!(says.contains(end), "{says}");
    let says = refused(&["query", "absent.zv", "-o", "absent/a.csv"]);
    assert!(
        says.contains("the folder absent does not exist; create it first"),
        "{says}"
    );
}

#[test]
fn a_store_that_is_not_there_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let address = folder.path().to_str().unwrap();
    let says = refused(&["query", address]);
    assert_eq!(
        says,
        format!(
            "error: {address} is not a Zarr store: it has no zarr.json; \
             give the root of a store, the folder whose zarr.json names zarr_vectors\n"
        )
    );
}

#[test]
fn a_box_of_other_axes_is_a_mistake() {
    let store = graph();
    let says = refused(&[
        "query",
        store.path().to_str().unwrap(),
        "--bbox",
        "-1,-1,2,2",
    ]);
    let expected = "error: --bbox has 2 axes, the store has 3: x, y, z; give a value for each\n";
    assert_eq!(says, expected);
}

#[test]
fn a_failed_query_writes_no_file() {
    let store = graph();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.csv");
    let address = store.path().to_str().unwrap();
    let line = [
        "query",
        address,
        "--level",
        "99",
        "-o",
        file.to_str().unwrap(),
    ];
    refused(&line);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}
