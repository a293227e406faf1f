//! Random geometry becomes a PLY or OBJ file, and comes back.

use proptest::prelude::*;
use zvf::{Geometry, GeometryBuilder, GeometryKind, NumericColumn, VertexOwners};
use zvf_files::{FileReadOptions, OutputFile, StoreDescription, write};

/// A piece of a mesh or of a graph: vertices, and the number of ends of its links.
type Piece = Vec<[f32; 3]>;

fn pieces() -> impl Strategy<Value = Vec<Piece>> {
    let number = prop_oneof![
        -1e4_f32..1e4,
        any::<f32>().prop_filter("finite", |it| it.is_finite())
    ];
    let row = [number.clone(), number.clone(), number];
    prop::collection::vec(prop::collection::vec(row, 5..12), 1..5)
}

/// Returns geometry whose links join each vertex with the next ones of its piece.
fn joined(pieces: &[Piece], width: usize, has_objects: bool) -> GeometryBuilder {
    let rows = pieces.iter().flatten().flatten().copied();
    let mut geometry = Geometry::builder(NumericColumn::float32(3, rows));
    geometry.links.width = width.max(2);
    let (mut first, mut owners) = (0, Vec::new());
    for (object, piece) in (0..).map(|number| number * 7 + 2).zip(pieces) {
        for row in 0..piece.len() {
            let end = |step: usize| i64::try_from(first + (row + step) % piece.len()).unwrap();
            if width > 1 {
                geometry.links.ends.extend((0..width).map(end));
            }
            owners.push(object);
        }
        first += piece.len();
    }
    if has_objects {
        geometry.owners = VertexOwners::Vertices(owners);
    }
    geometry
}

fn kind(width: usize) -> GeometryKind {
    match width {
        1 => GeometryKind::Points,
        2 => GeometryKind::Graphs,
        _ => GeometryKind::Mesh,
    }
}

/// Writes geometry to a file, and reads it again.
fn there_and_back(geometry: &GeometryBuilder, kind: GeometryKind, name: &str) -> GeometryBuilder {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    let axes = ["x", "y", "z"].map(str::to_owned).to_vec();
    let result = zvf_files::whole_result(geometry.clone(), kind, axes).unwrap();
    let target = OutputFile::new(&path).unwrap();
    write(&result, &StoreDescription::new(kind.name()), &target).unwrap();
    let mut reader = zvf_files::open(&path, &FileReadOptions::default()).unwrap();
    assert_eq!(reader.description().kind, kind, "{name}");
    zvf_files::read_whole(reader.as_mut())
        .unwrap()
        .into_builder()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn meshes_graphs_and_points_survive(
        pieces in pieces(),
        width in 1..=5_usize,
        has_objects: bool,
    ) {
        let geometry = joined(&pieces, width, has_objects);
        for name in ["a.ply", "a.obj"] {
            // Points of OBJ have no objects.
            if name == "a.obj" && width == 1 && has_objects {
                continue;
            }
            let back = there_and_back(&geometry, kind(width), name);
            prop_assert_eq!(&back.positions, &geometry.positions, "{}", name);
            prop_assert_eq!(&back.links, &geometry.links, "{}", name);
            prop_assert_eq!(&back.owners.ids(), &geometry.owners.ids(), "{}", name);
        }
    }

    #[test]
    fn paths_and_attributes_of_ply_survive(pieces in pieces()) {
        let mut geometry = joined(&pieces, 1, false);
        let values: NumericColumn = (0_u16..).zip(pieces.iter().flatten()).map(|(row, _)| row * 31).collect();
        geometry.vertex.push(zvf::Column::new("value", values));
        let mut offsets = vec![0_u64];
        for piece in &pieces {
            offsets.push(offsets.last().unwrap() + u64::try_from(piece.len()).unwrap());
        }
        geometry = geometry.paths(offsets, (0..).take(pieces.len()).map(|path| path * 2).collect::<Vec<_>>());
        let back = there_and_back(&geometry, GeometryKind::Polylines, "a.ply");
        prop_assert_eq!(&back.positions, &geometry.positions);
        prop_assert_eq!(&back.owners.offsets(), &geometry.owners.offsets());
        prop_assert_eq!(&back.owners.ids(), &geometry.owners.ids());
        prop_assert_eq!(&back.vertex, &geometry.vertex);
    }
}
