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

/// The format is checked before the store is opened.
#[test]
fn an_unknown_file_format_is_rejected_first() {
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
fn a_missing_store_is_named() {
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
fn a_box_with_a_wrong_number_of_axes_is_an_error() {
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
