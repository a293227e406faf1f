//! Fragments as Draco streams.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "../laws/multilod.rs"]
mod law;

use proptest::prelude::*;
use zvf_precomputed::{CutMesh, PrecomputedError, QuantizedMesh, TriangleMesh, VertexBits};

/// The triangles as positions, each starting at its least corner, sorted.
fn triangles(mesh: &QuantizedMesh) -> Vec<[[u32; 3]; 3]> {
    let at = |row: u32| mesh.positions[usize::try_from(row).unwrap()];
    let mut triangles: Vec<[[u32; 3]; 3]> = mesh
        .triangles
        .iter()
        .map(|rows| {
            let [a, b, c] = rows.map(at);
            [[a, b, c], [b, c, a], [c, a, b]].into_iter().min().unwrap()
        })
        .collect();
    triangles.sort_unstable();
    triangles
}

#[track_caller]
fn check_round_trip(mesh: &QuantizedMesh) {
    let bytes = mesh.encode().unwrap();
    assert_eq!(bytes, mesh.encode().unwrap());
    let most = u32::try_from(mesh.triangles.len()).unwrap();
    let decoded = QuantizedMesh::decode(&bytes, most).unwrap();
    assert_eq!(triangles(&decoded), triangles(mesh));
    let fewer = QuantizedMesh::decode(&bytes, most - 1);
    assert!(
        matches!(fewer, Err(PrecomputedError::Draco(_))),
        "{fewer:?}"
    );
}

fn grid(side: u32) -> QuantizedMesh {
    let mut mesh = QuantizedMesh::default();
    for y in 0..side {
        for x in 0..side {
            mesh.positions
                .push([x * 65_535 / (side - 1), y * 300, (x * y) % 65_536]);
        }
    }
    for y in 0..side - 1 {
        for x in 0..side - 1 {
            let at = y * side + x;
            mesh.triangles.push([at, at + 1, at + side]);
            mesh.triangles.push([at + 1, at + side + 1, at + side]);
        }
    }
    mesh
}

#[test]
fn meshes_round_trip() {
    check_round_trip(&grid(2));
    check_round_trip(&grid(60));
    // Two tetrahedra that share an edge, and a triangle that shares a vertex with them.
    let mesh = QuantizedMesh {
        positions: vec![
            [0, 0, 0],
            [9, 0, 0],
            [0, 9, 0],
            [0, 0, 9],
            [0, 0, 65_535],
            [5, 5, 5],
        ],
        triangles: vec![
            [0, 1, 2],
            [0, 2, 3],
            [0, 3, 1],
            [1, 3, 2],
            [0, 1, 4],
            [0, 4, 5],
            [0, 5, 1],
            [1, 5, 4],
            [4, 2, 5],
        ],
    };
    check_round_trip(&mesh);
}

#[test]
fn streams_are_smaller_than_plain_arrays() {
    let mesh = grid(100);
    let plain = mesh.positions.len() * 12 + mesh.triangles.len() * 12;
    assert!(mesh.encode().unwrap().len() * 6 < plain);
}

#[test]
fn wrong_meshes_are_refused() {
    let mut mesh = grid(2);
    mesh.triangles[0][1] = 4;
    let outside = PrecomputedError::Row {
        row: 4,
        vertices: 4,
    };
    assert_eq!(mesh.encode(), Err(outside));
    mesh.triangles.clear();
    assert!(matches!(mesh.encode(), Err(PrecomputedError::Draco(_))));
    let mut mesh = grid(2);
    mesh.positions[3][1] = 65_536;
    assert!(matches!(mesh.encode(), Err(PrecomputedError::Draco(_))));
}

#[test]
fn damaged_streams_are_refused_or_decoded() {
    let bytes = grid(12).encode().unwrap();
    assert_eq!(law::multilod(&bytes), (false, true));
    for end in 0..bytes.len() {
        assert_eq!(
            law::multilod(&bytes[..end]),
            (false, false),
            "prefix of {end} bytes"
        );
    }
    let torn = (0..bytes.len() * 8).filter(|bit| {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        !law::multilod(&damaged).1
    });
    assert!(torn.count() > bytes.len());
}

proptest! {
    /// Triangles that share edges and vertices in any way.
    #[test]
    fn any_triangles_round_trip(
        positions in prop::collection::vec(prop::array::uniform3(0_f32..9.0), 3..30),
        rows in prop::collection::vec(prop::array::uniform3(0_usize..30), 1..60),
    ) {
        let rows = rows.iter().map(|corners| {
            corners.map(|row| u32::try_from(row % positions.len()).unwrap())
        });
        let mesh = TriangleMesh { triangles: rows.collect(), positions };
        if let Some(cut) = CutMesh::new(&[mesh], VertexBits::Sixteen, 5).unwrap() {
            for fragment in cut.fragments() {
                check_round_trip(&fragment.mesh());
            }
        }
    }

    #[test]
    fn any_bytes_are_refused_or_decoded(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut stream = b"DRACO\x02\x02\x01\x01\0\0".to_vec();
        stream.extend(&bytes);
        law::multilod(&bytes);
        law::multilod(&stream);
    }
}
