//! Multi-resolution meshes: manifests, and meshes that are cut at the borders of nodes.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::HashMap;

use proptest::prelude::*;
use zvf_precomputed::{
    CutFragment, CutMesh, FragmentPlace, ManifestLevel, MeshNode, MultilodManifest,
    MultilodMeshInfo, PrecomputedError, ShardingSpec, TriangleMesh, VertexBits,
};

use crate::{hex, rejects_prefixes};

fn node(position: [u32; 3], size: u32) -> MeshNode {
    MeshNode { position, size }
}

fn manifest() -> MultilodManifest {
    let level = |scale, nodes: &[MeshNode]| ManifestLevel {
        scale,
        vertex_offset: [0.0; 3],
        nodes: nodes.to_vec(),
    };
    MultilodManifest {
        chunk_shape: [2.0; 3],
        grid_origin: [-1.0, 0.0, 1.0],
        levels: vec![
            level(0.5, &[node([1, 2, 3], 40), node([3, 2, 3], 20)]),
            level(1.0, &[node([0, 1, 1], 0), node([1, 1, 1], 10)]),
        ],
    }
}

#[test]
fn manifests_have_the_documented_bytes() {
    let wanted = hex(
        "00000040 00000040 00000040 000080bf 00000000 0000803f 02000000
        0000003f 0000803f
        00000000 00000000 00000000 00000000 00000000 00000000
        02000000 02000000
        01000000 03000000 02000000 02000000 03000000 03000000 28000000 14000000
        00000000 01000000 01000000 01000000 01000000 01000000 00000000 0a000000",
    );
    assert_eq!(wanted.len(), 28 + 20 * 2 + 16 * 4);
    let manifest = manifest();
    assert_eq!(manifest.encode().unwrap(), wanted);
    assert_eq!(MultilodManifest::decode(&wanted).unwrap(), manifest);
    rejects_prefixes(&wanted, MultilodManifest::decode);
    let longer = [wanted.as_slice(), &[0; 4]].concat();
    assert_eq!(
        MultilodManifest::decode(&longer),
        Err(PrecomputedError::Trailing(4))
    );
    let places: Vec<FragmentPlace> = manifest.fragments().collect();
    let starts: Vec<(usize, u64, u64)> = places
        .iter()
        .map(|place| (place.level, place.start, place.end))
        .collect();
    assert_eq!(starts, [(0, 0, 40), (0, 40, 60), (1, 60, 70)]);
    assert_eq!(manifest.data_size(), 70);
    let corner = manifest.position(&places[2], [0, 65_535, 0], VertexBits::Sixteen);
    assert_eq!(corner, Some([3.0, 8.0, 5.0]));
}

#[test]
fn nodes_are_in_z_order_and_have_parents() {
    let refused = |change: fn(&mut MultilodManifest)| {
        let mut changed = manifest();
        change(&mut changed);
        changed.encode().unwrap_err()
    };
    assert_eq!(
        refused(|manifest| manifest.levels[0].nodes.reverse()),
        PrecomputedError::NodeOrder(0)
    );
    assert_eq!(
        refused(|manifest| manifest.levels[1].nodes[0] = manifest.levels[1].nodes[1]),
        PrecomputedError::NodeOrder(1)
    );
    assert_eq!(
        refused(|manifest| manifest.levels[1].nodes.truncate(0)),
        PrecomputedError::Parent {
            level: 1,
            node: [0, 1, 1]
        }
    );
    for change in [
        |manifest: &mut MultilodManifest| manifest.chunk_shape[1] = 0.0,
        |manifest: &mut MultilodManifest| manifest.chunk_shape[2] = f32::NAN,
        |manifest: &mut MultilodManifest| manifest.grid_origin[0] = f32::INFINITY,
        |manifest: &mut MultilodManifest| manifest.levels[1].scale = -1.0,
        |manifest: &mut MultilodManifest| manifest.levels[0].vertex_offset[0] = f32::NAN,
    ] {
        assert!(matches!(refused(change), PrecomputedError::Manifest(_)));
    }
    // An empty node needs no parent, and a level of scale 0 has no nodes.
    let mut changed = manifest();
    changed.levels[0].nodes[0].size = 0;
    changed.levels[1].nodes.remove(0);
    changed.encode().unwrap();
    changed.levels[0].nodes[0].size = 9;
    changed.levels[1] = ManifestLevel::default();
    changed.encode().unwrap();
}

#[test]
fn absurd_manifests_are_refused() {
    let header = |levels: u32| {
        let mut bytes = [1.0_f32; 6].map(f32::to_le_bytes).concat();
        bytes.extend(levels.to_le_bytes());
        bytes
    };
    let truncated = PrecomputedError::Truncated;
    for levels in [1, 2, u32::MAX] {
        let decoded = MultilodManifest::decode(&header(levels));
        assert_eq!(decoded, Err(truncated("levels")));
    }
    let mut bytes = header(1);
    bytes.extend([0; 16]);
    bytes.extend(u32::MAX.to_le_bytes());
    assert_eq!(MultilodManifest::decode(&bytes), Err(truncated("nodes")));
    let empty = MultilodManifest::decode(&header(0)).unwrap();
    assert_eq!((empty.levels.len(), empty.data_size()), (0, 0));
}

#[test]
fn documents_round_trip() {
    for (vertex_bits, sharding) in [
        (VertexBits::Ten, None),
        (VertexBits::Sixteen, Some(ShardingSpec::for_any(10, 100))),
    ] {
        let info = MultilodMeshInfo {
            vertex_bits,
            transform: [2., 0., 0., 1., 0., 2., 0., 1., 0., 0., 2., 1.],
            lod_scale_multiplier: 1.5,
            segment_properties: Some("props".to_owned()),
            sharding,
        };
        let parsed = MultilodMeshInfo::parse(info.to_json().as_bytes()).unwrap();
        assert_eq!(parsed, info);
    }
    for (bits, multiplier) in [("11", "1"), ("16", "0"), ("16", "-1"), ("\"a\"", "1")] {
        let json = format!(
            r#"{{"@type": "neuroglancer_multilod_draco", "vertex_quantization_bits": {bits},
                "lod_scale_multiplier": {multiplier}}}"#
        );
        assert!(MultilodMeshInfo::parse(json.as_bytes()).is_err(), "{json}");
    }
}

/// A torus of `around * along` quadrilaterals, each two triangles.
fn torus(around: u16, along: u16) -> TriangleMesh {
    let mut mesh = TriangleMesh::default();
    let angle = |at: u16, of: u16| f64::from(at) / f64::from(of) * std::f64::consts::TAU;
    for a in 0..around {
        for b in 0..along {
            let (a, b) = (angle(a, around), angle(b, along));
            let radius = 30.0 + 10.0 * b.cos();
            let position = [
                radius * a.cos() + 50.0,
                radius * a.sin() - 70.0,
                10.0 * b.sin(),
            ];
            #[expect(clippy::cast_possible_truncation, reason = "a test")]
            mesh.positions.push(position.map(|along| along as f32));
        }
    }
    let row = |a: u16, b: u16| u32::from(a % around) * u32::from(along) + u32::from(b % along);
    for a in 0..around {
        for b in 0..along {
            let corners = [row(a, b), row(a + 1, b), row(a, b + 1), row(a + 1, b + 1)];
            mesh.triangles.push([corners[0], corners[1], corners[2]]);
            mesh.triangles.push([corners[1], corners[3], corners[2]]);
        }
    }
    mesh
}

/// The triangles of a level in steps from the origin of the grid.
fn lattice(cut: &CutMesh, level: usize, bits: VertexBits) -> Vec<[[u32; 3]; 3]> {
    let fragments = cut.fragments().iter().filter(|f| f.level == level);
    let triangles = fragments.flat_map(|fragment| {
        let mesh = fragment.mesh();
        let place = |row: &u32| {
            let q = mesh.positions[usize::try_from(*row).unwrap()];
            assert!(q.iter().all(|q| *q <= bits.last()));
            std::array::from_fn(|axis| fragment.node[axis] * bits.last() + q[axis])
        };
        let triangles = mesh
            .triangles
            .iter()
            .map(|corners| corners.each_ref().map(place));
        triangles.collect::<Vec<[[u32; 3]; 3]>>()
    });
    triangles.collect()
}

/// Every edge of a closed surface belongs to as many triangles in one direction as in the other.
#[track_caller]
fn assert_closed(triangles: &[[[u32; 3]; 3]]) {
    let mut edges: HashMap<([u32; 3], [u32; 3]), i32> = HashMap::new();
    for [a, b, c] in triangles {
        for (from, to) in [(a, b), (b, c), (c, a)] {
            *edges.entry((*from.min(to), *from.max(to))).or_default() +=
                if from < to { 1 } else { -1 };
        }
    }
    let open = edges.iter().filter(|(_, count)| **count != 0);
    assert_eq!(open.collect::<Vec<_>>().len(), 0, "of {}", edges.len());
}

fn area(triangles: impl Iterator<Item = [[f64; 3]; 3]>) -> f64 {
    let areas = triangles.map(|[a, b, c]| {
        let u: [f64; 3] = std::array::from_fn(|axis| b[axis] - a[axis]);
        let v: [f64; 3] = std::array::from_fn(|axis| c[axis] - a[axis]);
        let cross = [
            u[1] * v[2] - u[2] * v[1],
            u[2] * v[0] - u[0] * v[2],
            u[0] * v[1] - u[1] * v[0],
        ];
        cross.iter().map(|along| along * along).sum::<f64>().sqrt() / 2.0
    });
    areas.sum()
}

#[test]
fn levels_are_cut_without_gaps() {
    let levels = [torus(160, 60), torus(80, 30), torus(40, 16)];
    for bits in [VertexBits::Ten, VertexBits::Sixteen] {
        let cut = CutMesh::new(&levels, bits, 700).unwrap().unwrap();
        let sizes: Vec<usize> = cut.fragments().iter().map(CutFragment::triangles).collect();
        assert!(
            sizes.len() > 30 && sizes.iter().all(|size| *size < 1000),
            "{sizes:?}"
        );
        let sizes = vec![vec![1; 8]; cut.fragments().len()];
        let joined = cut.join(&sizes).unwrap();
        let bytes = joined.manifest.encode().unwrap();
        assert_eq!(MultilodManifest::decode(&bytes).unwrap(), joined.manifest);
        assert_eq!(joined.manifest.levels.len(), 3);
        for (level, mesh) in levels.iter().enumerate() {
            let triangles = lattice(&cut, level, bits);
            assert_closed(&triangles);
            let extent = f64::from(joined.manifest.chunk_shape[0])
                * f64::from(u32::try_from(level).unwrap()).exp2();
            let step = extent / f64::from(bits.last());
            let origin = joined.manifest.grid_origin.map(f64::from);
            let place = |point: [u32; 3]| -> [f64; 3] {
                std::array::from_fn(|axis| origin[axis] + f64::from(point[axis]) * step)
            };
            let known: std::collections::HashSet<[u32; 3]> =
                triangles.iter().flatten().copied().collect();
            for position in &mesh.positions {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "a test"
                )]
                let nearest: [u32; 3] = std::array::from_fn(|axis| {
                    ((f64::from(position[axis]) - origin[axis]) / step).round() as u32
                });
                assert!(known.contains(&nearest));
                let moved = place(nearest);
                for axis in 0..3 {
                    let distance = (moved[axis] - f64::from(position[axis])).abs();
                    assert!(distance <= step / 2.0 * 1.000_001, "{distance} {step}");
                }
            }
            let at = |row: u32| mesh.positions[usize::try_from(row).unwrap()].map(f64::from);
            let wanted = area(mesh.triangles.iter().map(|t| t.map(at)));
            let found = area(triangles.iter().map(|t| t.map(place)));
            assert!((found / wanted - 1.0).abs() < step, "{found} {wanted}");
            // No triangle crosses a border, nor above level 0 a middle plane.
            for fragment in cut
                .fragments()
                .iter()
                .filter(|f| f.level == level && level > 0)
            {
                let mesh = fragment.mesh();
                assert_eq!(mesh.triangles.len(), fragment.triangles());
                for triangle in &mesh.triangles {
                    for axis in 0..3 {
                        let q =
                            triangle.map(|row| mesh.positions[usize::try_from(row).unwrap()][axis]);
                        let middle = bits.middle();
                        let is_below = q.iter().all(|q| *q <= middle);
                        assert!(is_below || q.iter().all(|q| *q >= middle), "{q:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn levels_that_are_not_coarser_are_left_out() {
    let (fine, coarse) = (torus(40, 20), torus(20, 10));
    let levels = [fine.clone(), fine, TriangleMesh::default(), coarse];
    let cut = CutMesh::new(&levels, VertexBits::Sixteen, 20_000)
        .unwrap()
        .unwrap();
    let levels: Vec<usize> = cut.fragments().iter().map(|f| f.level).collect();
    assert_eq!(levels, [0, 1]);
    let manifest = cut.join(&vec![vec![0]; 2]).unwrap().manifest;
    assert!(manifest.levels[0].scale < manifest.levels[1].scale);
}

#[test]
fn meshes_without_area_are_none() {
    let cut = |mesh: TriangleMesh| CutMesh::new(&[mesh], VertexBits::Sixteen, 100);
    let point = TriangleMesh {
        positions: vec![[1.0; 3]; 3],
        triangles: vec![[0, 1, 2]],
    };
    assert!(cut(point.clone()).unwrap().is_none());
    assert!(cut(TriangleMesh::default()).unwrap().is_none());
    let outside = TriangleMesh {
        triangles: vec![[0, 1, 3]],
        ..point.clone()
    };
    assert_eq!(
        cut(outside).unwrap_err(),
        PrecomputedError::Row {
            row: 3,
            vertices: 3
        }
    );
    let mut infinite = point;
    infinite.positions[1][0] = f32::INFINITY;
    assert!(matches!(
        cut(infinite).unwrap_err(),
        PrecomputedError::Manifest(_)
    ));
    let widest = TriangleMesh {
        positions: vec![[f32::MAX, 0.0, 0.0], [f32::MIN, 0.0, 0.0], [0.0, 1.0, 0.0]],
        triangles: vec![[0, 1, 2]],
    };
    assert!(matches!(
        cut(widest).unwrap_err(),
        PrecomputedError::Manifest(_)
    ));
}

#[test]
fn long_triangles_do_not_multiply() {
    // Each of 500 triangles spans the whole mesh, so that smaller nodes only add triangles.
    let mut mesh = TriangleMesh::default();
    for at in 0..500_u16 {
        let along = f32::from(at) * 0.01;
        let first = u32::from(at) * 3;
        mesh.positions
            .extend([[0.0, 0.0, along], [100.0, 3.0, along], [2.0, 100.0, along]]);
        mesh.triangles.push([first, first + 1, first + 2]);
    }
    let cut = CutMesh::new(&[mesh], VertexBits::Sixteen, 10)
        .unwrap()
        .unwrap();
    let parts: usize = cut.fragments().iter().map(CutFragment::triangles).sum();
    assert!(parts < 500 * 8, "{parts}");
}

proptest! {
    #[test]
    fn any_triangles_are_cut_without_gaps(
        positions in prop::collection::vec(prop::array::uniform3(-100.0_f32..100.0), 4..40),
        rows in prop::collection::vec(prop::array::uniform4(0_usize..40), 1..30),
        most in 1_usize..20,
    ) {
        // Surfaces of tetrahedra are closed, wherever their corners are.
        let mut triangles = Vec::new();
        for corners in rows {
            let [a, b, c, d] = corners.map(|row| u32::try_from(row % positions.len()).unwrap());
            triangles.extend([[a, b, c], [a, c, d], [a, d, b], [b, d, c]]);
        }
        let mesh = TriangleMesh { positions, triangles };
        let coarse = TriangleMesh {
            positions: mesh.positions.iter().map(|p| p.map(|along| along * 1.5)).collect(),
            triangles: mesh.triangles[..mesh.triangles.len() - 4].to_vec(),
        };
        for bits in [VertexBits::Ten, VertexBits::Sixteen] {
            let cut = CutMesh::new(&[mesh.clone(), coarse.clone()], bits, most).unwrap();
            if let Some(cut) = cut {
                for level in 0..2 {
                    assert_closed(&lattice(&cut, level, bits));
                }
                let encoded = vec![vec![7; 3]; cut.fragments().len()];
                let joined = cut.join(&encoded).unwrap();
                let bytes = joined.manifest.encode().unwrap();
                prop_assert_eq!(MultilodManifest::decode(&bytes).unwrap(), joined.manifest);
            }
        }
    }

    #[test]
    fn manifests_of_any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(manifest) = MultilodManifest::decode(&bytes) {
            prop_assert_eq!(manifest.encode().unwrap(), bytes);
        }
    }
}
