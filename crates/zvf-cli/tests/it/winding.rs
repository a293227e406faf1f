//! The order of the corners of faces, from the command line to files.

use std::{fs, path::Path};

use serde_json::Value;

use crate::{text, zvf};

/// Faces of a tetrahedron whose normals point inward.
const INWARD: &str = "v 0 0 0\nv 9 0 0\nv 0 9 0\nv 0 0 9\nf 1 2 3\nf 1 4 2\nf 1 3 4\nf 2 4 3\n";

#[track_caller]
fn run(arguments: &[&str]) -> String {
    let output = zvf(arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout).to_owned()
}

/// Creates a store, and returns its address.
fn created(folder: &Path, name: &str, from: &str, options: &[&str]) -> String {
    let store = folder.join(name).display().to_string();
    let words = [
        &["create", &store, "--kind", "mesh", "--from", from],
        options,
    ]
    .concat();
    run(&words);
    store
}

fn winding(store: &str) -> String {
    let info: Value = serde_json::from_str(&run(&["info", store, "--json"])).unwrap();
    info["winding_order"].as_str().unwrap().to_owned()
}

/// Writes a store to a file, and returns its bytes.
fn saved(store: &str, file: &Path) -> Vec<u8> {
    run(&["query", store, "-o", file.to_str().unwrap()]);
    fs::read(file).unwrap()
}

/// Returns the normals of a binary STL file.
fn normals(stl: &[u8]) -> Vec<[f32; 3]> {
    let faces = stl[84..].chunks_exact(50);
    let number = |bytes: &[u8]| f32::from_le_bytes(bytes.try_into().unwrap());
    faces
        .map(|face| [0, 4, 8].map(|at| number(&face[at..at + 4])))
        .collect()
}

#[test]
fn files_of_surfaces_are_counter_clockwise() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    let obj = folder.join("inward.obj");
    fs::write(&obj, INWARD).unwrap();
    let obj = obj.to_str().unwrap();
    for profile in ["0.9", "0.8", "0.8-padded"] {
        let profile = ["--profile", profile];
        let plain = created(folder, &format!("plain{}.zv", profile[1]), obj, &profile);
        assert_eq!(winding(&plain), "ccw");
        let options = [&profile[..], &["--winding", "cw"]].concat();
        let turned = created(folder, &format!("turned{}.zv", profile[1]), obj, &options);
        assert_eq!(winding(&turned), "cw");
        assert!(run(&["info", &turned]).contains("winding     cw"));
        let inward = normals(&saved(&plain, &folder.join("plain.stl")));
        let outward = normals(&saved(&turned, &folder.join("turned.stl")));
        assert!(inward.contains(&[0.0, 0.0, 1.0]), "{inward:?}");
        assert!(outward.contains(&[0.0, 0.0, -1.0]), "{outward:?}");
        for extension in ["ply", "obj", "glb", "gii"] {
            let file = |name: &str| folder.join(format!("{name}.{extension}"));
            let plain = saved(&plain, &file("plain"));
            assert_ne!(plain, saved(&turned, &file("turned")), "{extension}");
        }
        // Tables keep the faces and say how they are to be read.
        for extension in ["npz", "csv", "parquet"] {
            let table = folder.join(format!("turned.{extension}"));
            saved(&turned, &table);
            let name = format!("back{}.{extension}.zv", profile[1]);
            let back = created(folder, &name, table.to_str().unwrap(), &profile);
            assert_eq!(winding(&back), "cw", "{extension}");
            let again = normals(&saved(&back, &folder.join("back.stl")));
            assert_eq!(again, outward, "{extension}");
        }
    }
}

#[test]
fn a_winding_needs_faces() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("points.csv");
    fs::write(&file, "x,y\n1,2\n").unwrap();
    let store = folder.path().join("points.zv");
    let output = zvf(&[
        "create",
        store.to_str().unwrap(),
        "--kind",
        "points",
        "--from",
        file.to_str().unwrap(),
        "--winding",
        "cw",
    ]);
    assert_eq!(output.status.code(), Some(2));
    let message = text(&output.stderr);
    assert!(message.contains("points have no faces"), "{message}");
}
