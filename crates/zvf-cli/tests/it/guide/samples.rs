//! The stores and files that the pages use.

use std::{fmt::Write, fs, os::unix::fs::PermissionsExt, path::Path};

use crate::{sample::nifti, unpack, zvf};

/// Creates the samples in a folder.
pub(super) fn make(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    let write = |name: &str, text: String| fs::write(folder.join(name), text).unwrap();
    write("tracts.csv", tracts(0..24, "object_id"));
    // Without ids, further along.
    write("more.csv", tracts(24..27, "part"));
    write("tracts.objects.csv", objects());
    write("tracts.groups.csv", groups());
    write("cells.csv", cells());
    let (nodes, edges) = wires();
    write("nodes.csv", nodes);
    write("edges.csv", edges);
    let at = |name: &str| folder.join(name).display().to_string();
    fs::write(folder.join("volume.npy"), volume()).unwrap();
    fs::write(folder.join("md.nii"), nifti([6.0, 6.0, 6.0], [-20.0; 3])).unwrap();
    create(&[
        &at("tracts.zv"),
        "--kind=streamlines",
        "--from",
        &at("tracts.csv"),
        "--chunk-shape=8,8,8",
        "--bounds=-16,-16,-16,32,32,32",
    ]);
    unpack(
        "zvf-09",
        "polylines_3d/store.zarrvectors",
        &folder.join("STORE"),
    );
    unpack("zvf-07", "graph.zv", &folder.join("old.zv"));
}

fn create(words: &[&str]) {
    let output = zvf(&[&["create", "--quiet"], words].concat());
    assert!(output.status.success(), "{output:?}");
}

/// Returns fibres through a box, with an attribute that is largest in the middle.
fn tracts(objects: std::ops::Range<u32>, key: &str) -> String {
    let mut text = format!("x,y,z,fa,{key}\n");
    for object in objects {
        let turn = f64::from(object) * 0.26;
        for step in 0..30 {
            let along = f64::from(step) / 29.0;
            let (x, y) = (28.0 * along - 4.0, 8.0 + 6.0 * (3.0 * along + turn).sin());
            let z = 10.0 + 8.0 * (2.0 * along + turn).cos();
            let fa = 0.2 + 1.2 * along * (1.0 - along) + 0.01 * f64::from(object);
            writeln!(text, "{x:.3},{y:.3},{z:.3},{fa:.3},{object}").unwrap();
        }
    }
    text
}

fn objects() -> String {
    let mut text = "object_id,length,bundle\n".to_owned();
    for object in 0..24 {
        let bundle = if object < 12 { "arcuate" } else { "cingulum" };
        let length = 3.0 + 1.5 * f64::from(object);
        writeln!(text, "{object},{length},{bundle}").unwrap();
    }
    text
}

fn groups() -> String {
    let mut text = "group,object_id\n".to_owned();
    for object in 0..24 {
        writeln!(text, "{},{object}", object / 12).unwrap();
    }
    text
}

fn cells() -> String {
    let mut text = "x,y,z,radius,kind\n".to_owned();
    for cell in 0..500_u32 {
        // Spreads positions evenly with multiples of irrational ratios such as the golden ratio.
        let at = |ratio: f64| (f64::from(cell) * ratio).fract() * 100.0;
        let kind = ["soma", "glia", "axon"][cell as usize % 3];
        let (x, y, z) = (at(0.618_034), at(0.754_878), at(0.569_840));
        let radius = f64::from(cell % 7) * 0.5 + 1.0;
        writeln!(text, "{x:.2},{y:.2},{z:.2},{radius},{kind}").unwrap();
    }
    text
}

/// Returns a mesh of nodes, and the edges between neighbours.
fn wires() -> (String, String) {
    let (mut nodes, mut edges) = ("x,y,z\n".to_owned(), "links[0],links[1]\n".to_owned());
    for node in 0..64_u32 {
        let (x, y, z) = (node % 4 * 30, node / 4 % 4 * 30, node / 16 * 30);
        writeln!(nodes, "{x},{y},{z}").unwrap();
        for (step, inside) in [(1, node % 4 < 3), (4, node / 4 % 4 < 3), (16, node < 48)] {
            if inside {
                writeln!(edges, "{node},{}", node + step).unwrap();
            }
        }
    }
    (nodes, edges)
}

/// Returns an array of 32 × 32 × 32 float32 in the format of NumPy.
fn volume() -> Vec<u8> {
    let mut header = "{'descr': '<f4', 'fortran_order': False, 'shape': (32, 32, 32), }".to_owned();
    while !(11 + header.len()).is_multiple_of(64) {
        header.push(' ');
    }
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
    bytes.extend(header.bytes());
    for at in 0..32_u16 * 32 * 32 {
        bytes.extend(f32::from(at % 997).to_le_bytes());
    }
    bytes
}

/// Copies the samples for a page.
pub(super) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Runs the program under test for `cargo run -- …`, with a small demo. Commands of xtask are not
/// run, because most of them start this test; they must only be listed in the usage.
const CARGO: &str = r#"#!/bin/sh
set -eu
case "$1" in
run)
    while [ "$1" != -- ]; do shift; done
    shift
    exec zvf "$@" ;;
install)
    [ "$2" = --path ] && [ -f "$3/Cargo.toml" ] || { echo "cargo install: no package at $3" >&2; exit 1; } ;;
xtask)
    grep -q "^  $2 " "$ZVF_ROOT/xtask/src/main.rs" || { echo "cargo xtask $2: no such command" >&2; exit 1; } ;;
*)
    echo "cargo $1: the guide's tests do not know how to run it" >&2
    exit 1 ;;
esac
"#;

/// Writes a small demo instead of the full one.
const ZVF: &str = r#"#!/bin/sh
[ "$*" != demo ] || set -- demo --small
exec "$ZVF_PROGRAM" "$@"
"#;

/// Creates the programs that blocks run, which take precedence over those of the system.
pub(super) fn programs(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    for (name, script) in [("cargo", CARGO), ("zvf", ZVF)] {
        let program = folder.join(name);
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    }
}
