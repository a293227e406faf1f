//! Small stores, and damage to them.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use zvf::{CreateOptions, ValidateOptions};
use zvf_build::{
    CellChecksums, Column, Design, Geometry, GeometryBuilder, GeometryKind, NumericColumn, Profile,
    VertexOwners,
};
use zvf_testkit::{damage::apply, golden::Files, golden::Golden};

use super::super::findings;
use crate::block_on;

/// A store to damage.
#[derive(Clone)]
pub(super) struct Made(pub(super) Files);

/// Returns vertices in two dimensions, in chunks of 10.
pub(super) fn vertices(places: &[[f32; 2]]) -> GeometryBuilder {
    Geometry::builder(NumericColumn::float32(2, places.iter().flatten().copied()))
}

pub(super) fn design(kind: GeometryKind, profile: Profile) -> Design {
    Design::new(kind)
        .profile(profile)
        .chunk_shape([10.0; 2])
        .checksums(CellChecksums::Off)
}

/// Returns five vertices in two chunks, and five edges: two and one inside chunks, two across.
pub(super) fn graph() -> GeometryBuilder {
    let places = [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0], [11.0, 1.0], [12.0, 2.0]];
    let mut geometry = vertices(&places);
    geometry.links.ends = vec![0, 1, 1, 2, 2, 3, 4, 1, 3, 4];
    geometry.link.push(Column::new(
        "weight",
        NumericColumn::float32(1, [0.1, 0.2, 0.3, 0.4, 0.5]),
    ));
    geometry
}

/// Returns a square of two faces in one chunk, and two faces that extend into another.
pub(super) fn mesh() -> GeometryBuilder {
    let places = [
        [1.0, 1.0],
        [2.0, 1.0],
        [2.0, 2.0],
        [1.0, 2.0],
        [11.0, 1.0],
        [11.0, 2.0],
    ];
    let mut geometry = vertices(&places);
    geometry = geometry.links(3, vec![0, 1, 2, 0, 2, 3, 1, 4, 2, 4, 5, 2]);
    geometry
}

/// Returns two paths, one through three chunks and one through two.
pub(super) fn paths() -> GeometryBuilder {
    let places = [
        [1.0, 1.0],
        [9.0, 1.0],
        [11.0, 1.0],
        [19.0, 1.0],
        [21.0, 1.0],
        [5.0, 5.0],
        [15.0, 5.0],
    ];
    let mut geometry = vertices(&places);
    geometry = geometry.paths(vec![0, 5, 7], None);
    geometry
}

/// Returns two trees of two objects; one has a branch, and both span two chunks.
pub(super) fn trees() -> GeometryBuilder {
    let places = [
        [1.0, 1.0],
        [2.0, 1.0],
        [3.0, 1.0],
        [2.0, 2.0],
        [11.0, 1.0],
        [5.0, 5.0],
        [6.0, 5.0],
        [15.0, 5.0],
    ];
    let mut geometry = vertices(&places);
    geometry.links.ends = vec![1, 0, 2, 1, 3, 1, 4, 2, 6, 5, 7, 6];
    geometry.owners = VertexOwners::Vertices(vec![0, 0, 0, 0, 0, 1, 1, 1]);
    geometry
}

pub(super) fn created(geometry: GeometryBuilder, design: Design) -> Made {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let address = store.to_str().unwrap();
    let mut options = CreateOptions::new().seal(false);
    // The copy of the nodes would reveal most changes before any other rule.
    options.node_copy = false;
    block_on(zvf::create(
        address,
        geometry.build().unwrap(),
        design,
        &options,
    ))
    .unwrap();
    let mut found = Files::new();
    let mut open = vec![(folder.path().join("store"), String::new())];
    while let Some((folder, key)) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            let key = match key.as_str() {
                "" => name,
                key => format!("{key}/{name}"),
            };
            if entry.file_type().unwrap().is_dir() {
                open.push((entry.path(), key));
            } else {
                found.push((key, std::fs::read(entry.path()).unwrap()));
            }
        }
    }
    Made(found)
}

/// Creates a store of 0.9 with geometry of a kind above.
pub(super) fn made(kind: GeometryKind) -> Made {
    let geometry = match kind {
        GeometryKind::Graphs => graph(),
        GeometryKind::Mesh => mesh(),
        GeometryKind::Skeletons => trees(),
        _ => paths(),
    };
    created(geometry, design(kind, Profile::V09))
}

/// Loads a recorded store.
pub(super) fn recorded(archive: &str, store: &str) -> Made {
    Made(Golden::open(archive).store(store))
}

impl Made {
    /// Sets an attribute of a node; `path` is a list of names separated by dots.
    pub(super) fn set(mut self, node: &str, path: &str, value: &Value) -> Self {
        let edit = json!({"op": "set", "file": file(node), "path": steps(path), "value": value});
        apply(&mut self.0, &edit);
        self
    }

    /// Removes an attribute of a node.
    pub(super) fn del(mut self, node: &str, path: &str) -> Self {
        let edit = json!({"op": "del", "file": file(node), "path": steps(path)});
        apply(&mut self.0, &edit);
        self
    }

    pub(super) fn remove(mut self, path: &str) -> Self {
        apply(&mut self.0, &json!({"op": "rm", "file": path}));
        self
    }

    pub(super) fn rename(mut self, path: &str, to: &str) -> Self {
        apply(
            &mut self.0,
            &json!({"op": "rename", "file": path, "to": to}),
        );
        self
    }

    pub(super) fn add(mut self, path: &str, bytes: &[u8]) -> Self {
        self.0.push((path.to_owned(), bytes.to_vec()));
        self
    }

    /// Changes the bytes of a file.
    #[track_caller]
    pub(super) fn bytes(mut self, path: &str, change: impl FnOnce(&mut Vec<u8>)) -> Self {
        let file = self.0.iter_mut().find(|(key, _)| key == path);
        change(&mut file.unwrap_or_else(|| panic!("no {path}")).1);
        self
    }

    /// Changes the payload of a cell in an array of byte strings.
    #[track_caller]
    pub(super) fn cell(self, path: &str, change: impl FnOnce(&mut Vec<u8>)) -> Self {
        self.bytes(path, |file| {
            let mut payload = file.split_off(8);
            change(&mut payload);
            file.truncate(4);
            file.extend(u32::try_from(payload.len()).unwrap().to_le_bytes());
            file.extend(payload);
        })
    }

    /// Sets one of the 64-bit integers of a payload.
    #[track_caller]
    pub(super) fn number(self, path: &str, at: usize, number: i64) -> Self {
        self.cell(path, |payload| set(payload, at, number))
    }

    /// Returns the code of every finding, once.
    pub(super) fn codes(&self) -> BTreeSet<String> {
        let lines = findings(&self.0, &ValidateOptions::default());
        let codes = lines.iter().map(|line| line.split(' ').next().unwrap());
        codes.map(str::to_owned).collect()
    }

    /// Asserts that exactly these rules are violated.
    #[track_caller]
    pub(super) fn breaks(&self, expected: &[&str]) {
        let violated = self.codes();
        let codes: Vec<&str> = violated.iter().map(|code| &code[3..]).collect();
        let all = findings(&self.0, &ValidateOptions::default());
        assert_eq!(codes, expected, "{all:#?}");
    }
}

/// Sets one of the 64-bit integers of a buffer.
pub(super) fn set(bytes: &mut [u8], at: usize, number: i64) {
    bytes[at * 8..at * 8 + 8].copy_from_slice(&number.to_le_bytes());
}

fn file(node: &str) -> String {
    match node {
        "" => "zarr.json".to_owned(),
        node => format!("{node}/zarr.json"),
    }
}

fn steps(path: &str) -> Vec<&str> {
    ["attributes"].into_iter().chain(path.split('.')).collect()
}
