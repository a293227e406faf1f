//! Random geometry becomes a file and comes back.

use std::path::Path;

use proptest::prelude::*;
use serde_json::Value;
use zvf::{
    Column, Geometry, GeometryBuilder, GeometryKind, NumericColumn, ObjectGroup, VertexOwners,
    numeric::Kind,
};
use zvf_files::{
    FileFault, FileReadOptions, GroupTables, LosslessTarget, OutputFile, StoreDescription,
};

/// Writes geometry to a file, and reads it again.
fn there_and_back(geometry: &GeometryBuilder, kind: GeometryKind, name: &str) -> GeometryBuilder {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    write(geometry, kind, &path);
    let mut reader = zvf_files::open(&path, &FileReadOptions::default()).unwrap();
    zvf_files::read_whole(reader.as_mut())
        .unwrap()
        .into_builder()
}

fn write(geometry: &GeometryBuilder, kind: GeometryKind, path: &Path) {
    let axes = ["x", "y", "z"].map(str::to_owned).to_vec();
    let result = zvf_files::whole_result(geometry.clone(), kind, axes).unwrap();
    let mut writer = zvf_files::create(path, &StoreDescription::default()).unwrap();
    writer.write(&result).unwrap();
    writer.finish(&GroupTables::default()).unwrap();
}

/// Writes geometry to a file. Returns what it lacks.
fn lost(
    geometry: &GeometryBuilder,
    kind: GeometryKind,
    path: &Path,
) -> Result<Vec<String>, FileFault> {
    let axes = ["x", "y", "z"].map(str::to_owned).to_vec();
    let result = zvf_files::whole_result(geometry.clone(), kind, axes).unwrap();
    let mut writer = zvf_files::create(path, &StoreDescription::default()).unwrap();
    let written = writer
        .write(&result)
        .and_then(|()| writer.finish(&GroupTables::default()));
    written
        .map(|written| written.left_out)
        .map_err(|error| error.fault)
}

/// The vertices of a circle are refused instead of being dropped.
#[test]
fn swc_holds_trees_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.swc");
    let rows: Vec<[f32; 3]> = (0_u8..5).map(|row| [row.into(), 0.0, 0.0]).collect();
    let mut graph = Geometry::builder(positions(&rows));
    for links in [vec![0, 1, 1, 2, 2, 0], vec![0, 0, 1, 2]] {
        graph.links.ends = links;
        for ids in [None, Some(column("swc_id", [1_i32, 2, 3, 4, 5]))] {
            graph.vertex = ids.into_iter().collect();
            let error = lost(&graph, GeometryKind::Graphs, &path).unwrap_err();
            assert!(
                matches!(error, FileFault::Result { holds: "trees", .. }),
                "{error}"
            );
            assert!(!path.exists());
        }
    }
    // Links between objects order all vertices too.
    graph.links.ends = vec![1, 0, 2, 1, 3, 2, 4, 3];
    graph.owners = VertexOwners::Vertices(vec![7, 7, 8, 8, 7]);
    graph.vertex = vec![column("radius", [1.0_f32; 5])];
    let left_out = lost(&graph, GeometryKind::Graphs, &path).unwrap();
    assert_eq!(left_out, ["object_id: not supported by swc"]);
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), 5, "{text}");
    let path = folder.path().join("{object}.swc");
    let left_out = lost(&graph, GeometryKind::Graphs, &path).unwrap();
    assert!(
        left_out[0].starts_with("links between objects"),
        "{left_out:?}"
    );
}

/// Attributes that a sample has no place for are listed, and numbers keep their digits.
#[test]
fn samples_hold_whole_types_and_finite_radii() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.swc");
    let mut tree = Geometry::builder(positions(&[[0.0; 3], [1.0, 0.0, 0.0], [2.0, 0.0, 0.0]]))
        .links(2, vec![1, 0, 2, 1]);
    let mut check = |vertex: Vec<Column>, expected: &[&str], columns: [&str; 2]| {
        tree.vertex = vertex;
        let left_out = lost(&tree, GeometryKind::Skeletons, &path).unwrap();
        assert_eq!(left_out, expected);
        let text = std::fs::read_to_string(&path).unwrap();
        for (at, expected) in [(1, columns[0]), (5, columns[1])] {
            let found = text.lines().map(|line| line.split(' ').nth(at).unwrap());
            assert_eq!(found.collect::<Vec<_>>().join(" "), expected, "{text}");
        }
        zvf_files::open(&path, &FileReadOptions::default()).unwrap();
    };
    let radius = || column("radius", [1.5_f32, 2.0, 0.25]);
    let words = Column::text("type", ["soma", "axon", "axon"].map(Some));
    let wide = NumericColumn::float32(2, [1.0, 10.0, 2.0, 20.0, 3.0, 30.0]);
    check(
        vec![Column::new("radius", wide), words],
        &[
            "vertex.radius: not supported by swc",
            "vertex.type: not supported by swc",
        ],
        ["0 0 0", "0 0 0"],
    );
    check(
        vec![radius(), column("type", [1.7, 2.0, 3e11])],
        &["vertex.type: has rows without an integer of 32 bits; 0 is written"],
        ["0 2 0", "1.5 2 0.25"],
    );
    check(
        vec![column("radius", [0.123_456_789_012_3, f64::NAN, 1.0])],
        &["vertex.radius: has rows without a finite number; 0 is written"],
        ["0 0 0", "0.1234567890123 0 1"],
    );
    for ids in [[1_i64, 1, 2], [1, 2, -1], [1, 2, 1 << 40]] {
        check(
            vec![radius(), column("swc_id", ids)],
            &["vertex.swc_id: is not a different id for each sample; samples are numbered"],
            ["0 0 0", "1.5 2 0.25"],
        );
    }
}

/// Attributes of every scope that a format lacks are listed, and a strict target refuses them.
#[test]
fn lost_attributes_of_all_scopes_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    let points = Geometry::builder(positions(&[[0.0; 3], [1.0; 3]]));
    let paths = points.clone().paths(vec![0, 2], None);
    for (name, geometry, kind) in [
        ("a.tck", &paths, GeometryKind::Streamlines),
        ("a.trk", &paths, GeometryKind::Streamlines),
        ("a.trx", &paths, GeometryKind::Streamlines),
        ("a.las", &points, GeometryKind::Points),
    ] {
        let axes = ["x", "y", "z"].map(str::to_owned).to_vec();
        let mut result = zvf_files::whole_result(geometry.clone(), kind, axes).unwrap();
        result.fragment = vec![column("site", [1_u8, 2])];
        result.link = vec![Column::new("weight", NumericColumn::new(Kind::Float32, 1))];
        let target = OutputFile::new(folder.path().join(name)).unwrap();
        let strict = LosslessTarget::new(&target, true).unwrap();
        let description = StoreDescription::default();
        let written = zvf_files::write(&result, &description, strict.file()).unwrap();
        let format = target.format();
        let expected = ["fragment.site", "link.weight"]
            .map(|name| format!("{name}: not supported by {format}"));
        assert_eq!(written.left_out, expected);
        let error = strict.publish(written).unwrap_err();
        assert!(matches!(error.fault, FileFault::Lossy(_)), "{error:?}");
        assert!(!target.path().exists());
    }
}

/// A file whose reader numbers objects anew, or knows none, lists their ids.
#[test]
fn lost_object_ids_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    let lost_ids = |geometry: &GeometryBuilder, kind: GeometryKind, name: &str| {
        let left_out = lost(geometry, kind, &folder.path().join(name)).unwrap();
        let mut lines = left_out.iter();
        lines.any(|line| line.starts_with("object_id: not supported by "))
    };
    let mut mesh = Geometry::builder(positions(&[[0.0; 3], [1.0; 3], [2.0; 3], [3.0; 3]]))
        .links(3, vec![0, 1, 2]);
    let paths = Geometry::builder(mesh.positions.clone());
    for (ids, are_lost) in [(None, false), (Some([0, 0]), false), (Some([3, 8]), true)] {
        let owners = ids.map(|[one, two]| VertexOwners::Vertices(vec![one, one, one, two]));
        mesh.owners = owners.unwrap_or_default();
        for name in ["a.stl", "a.gii", "a.glb"] {
            let found = lost_ids(&mesh, GeometryKind::Mesh, name);
            assert_eq!(found, are_lost, "{name}, {ids:?}");
        }
    }
    for (ids, are_lost) in [
        (None, false),
        (Some(vec![0, 1]), false),
        (Some(vec![7, 20]), true),
    ] {
        let paths = paths.clone().paths(vec![0, 2, 4], ids.clone());
        for name in ["a.trk", "a.tck", "a.trx"] {
            let found = lost_ids(&paths, GeometryKind::Streamlines, name);
            assert_eq!(found, are_lost, "{name}, {ids:?}");
        }
    }
    // A vertex without faces is lost, too.
    mesh.owners = VertexOwners::Unnamed;
    let left_out = lost(&mesh, GeometryKind::Mesh, &folder.path().join("a.stl")).unwrap();
    assert_eq!(left_out, ["1 vertices without faces: not supported by stl"]);
    // An SWC file is one object.
    let mut trees = Geometry::builder(mesh.positions.clone())
        .links(2, vec![1, 0, 3, 2])
        .object_ids(vec![4, 4, 9, 9])
        .objects(vec![4, 9]);
    trees.vertex.push(column("radius", [1.0_f32; 4]));
    trees
        .object
        .push(Column::text("name", [Some("one"), Some("two")]));
    let in_file = |name: &str| {
        let path = folder.path().join(name);
        lost(&trees, GeometryKind::Skeletons, &path).unwrap()
    };
    assert_eq!(
        in_file("a.swc"),
        [
            "object_id: not supported by swc",
            "object.name: not supported by swc in one file"
        ]
    );
    assert_eq!(in_file("{object}.swc"), [""; 0]);
}

/// Groups of one name, or of a name with a point, get distinct names of members.
#[test]
fn changed_names_of_groups_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.trx");
    let paths = Geometry::builder(positions(&[[0.0; 3], [1.0; 3], [2.0; 3], [3.0; 3]]))
        .paths(vec![0, 2, 4], None);
    let axes = ["x", "y", "z"].map(str::to_owned).to_vec();
    let result = zvf_files::whole_result(paths, GeometryKind::Streamlines, axes).unwrap();
    let mut writer = zvf_files::create(&path, &StoreDescription::default()).unwrap();
    writer.write(&result).unwrap();
    let mut tables = GroupTables::default();
    for (id, members) in [(0, vec![0]), (1, vec![1]), (2, vec![0, 1]), (3, vec![1])] {
        tables.groups.push(ObjectGroup { id, members });
    }
    let names = ["AF.left", "CST", "CST", "group_0"].map(Some);
    tables.columns.push(Column::text("name", names));
    let written = writer.finish(&tables).unwrap();
    assert!(
        written.left_out[0].starts_with("group.name: 3 names"),
        "{:?}",
        written.left_out
    );
    let mut reader = zvf_files::open(&path, &FileReadOptions::default()).unwrap();
    let back = zvf_files::read_whole(reader.as_mut())
        .unwrap()
        .into_builder();
    let names: Vec<&str> = back.group[0].texts().flatten().collect();
    let members: Vec<_> = back.groups.values().cloned().collect();
    let mut groups: Vec<_> = names.into_iter().zip(members).collect();
    groups.sort();
    let expected = [
        ("CST", vec![1]),
        ("group_0", vec![0]),
        ("group_2", vec![0, 1]),
        ("group_3", vec![1]),
    ];
    assert_eq!(groups, expected);
}

/// A coordinate that float32 does not hold is refused: TCK files would end at an infinite one.
#[test]
fn coordinates_out_of_range_are_refused() {
    let line = Geometry::builder(NumericColumn::float64(
        3,
        [0.0, 1.0, 2.0, 3.0, -1e39, 5.0, 6.0, 7.0, 8.0],
    ))
    .paths(vec![0, 3], None);
    let face = Geometry::builder(line.positions.clone()).links(3, vec![0, 1, 2]);
    let folder = tempfile::tempdir().unwrap();
    for (name, geometry, kind) in [
        ("a.trk", &line, GeometryKind::Streamlines),
        ("a.tck", &line, GeometryKind::Streamlines),
        ("a.stl", &face, GeometryKind::Mesh),
        ("a.gii", &face, GeometryKind::Mesh),
        ("a.glb", &face, GeometryKind::Mesh),
    ] {
        let path = folder.path().join(name);
        let axes = ["x", "y", "z"].map(str::to_owned).to_vec();
        let result = zvf_files::whole_result(geometry.clone(), kind, axes).unwrap();
        let mut writer = zvf_files::create(&path, &StoreDescription::default()).unwrap();
        let written = writer
            .write(&result)
            .and_then(|()| writer.finish(&GroupTables::default()).map(|_| ()));
        let error = written.unwrap_err();
        assert!(
            matches!(error.fault, FileFault::CoordinateRange { .. }),
            "{error}: {:?}",
            error.fault
        );
        assert!(!path.exists(), "{name}");
    }
}

fn floats(positions: &NumericColumn) -> Vec<f64> {
    match positions.kind {
        Kind::Float32 => {
            let numbers = positions.to_vec::<f32>().unwrap().into_iter();
            numbers.map(f64::from).collect()
        }
        _ => positions.to_vec::<f64>().unwrap(),
    }
}

fn are_near(one: &[f64], two: &[f64], tolerance: f64) -> bool {
    let mut pairs = one.iter().zip(two);
    one.len() == two.len() && pairs.all(|(one, two)| (one - two).abs() <= tolerance)
}

fn positions(rows: &[[f32; 3]]) -> NumericColumn {
    NumericColumn::float32(3, rows.iter().flatten().copied())
}

fn column<T, const N: usize>(name: &str, values: [T; N]) -> Column
where
    NumericColumn: FromIterator<T>,
{
    Column::new(name, values.into_iter().collect::<NumericColumn>())
}

fn corner() -> impl Strategy<Value = [f32; 3]> {
    [-1e4_f32..1e4, -1e4_f32..1e4, -1e4_f32..1e4]
}

fn rows() -> impl Strategy<Value = Vec<[f32; 3]>> {
    prop::collection::vec(corner(), 3..60)
}

/// The content of a GLB file, as the specification of glTF describes it.
struct Scene {
    mode: u64,
    positions: Vec<f64>,
    indices: Vec<i64>,
}

impl Scene {
    fn read(bytes: &[u8]) -> Self {
        let word = |at: usize| {
            let word = u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
            usize::try_from(word).unwrap()
        };
        assert_eq!(
            (&bytes[..4], word(4), word(8)),
            (&b"glTF"[..], 2, bytes.len())
        );
        let text = word(12);
        let scene: Value = serde_json::from_slice(&bytes[20..20 + text]).unwrap();
        let data = &bytes[28 + text..];
        assert_eq!(data.len(), word(20 + text));
        let number = |value: &Value| usize::try_from(value.as_u64().unwrap()).unwrap();
        let part = |accessor: &Value| {
            let accessor = &scene["accessors"][number(accessor)];
            let view = &scene["bufferViews"][number(&accessor["bufferView"])];
            let start = number(&view["byteOffset"]);
            &data[start..start + number(&view["byteLength"])]
        };
        let primitive = &scene["meshes"][0]["primitives"][0];
        let centre = &scene["nodes"][0]["translation"];
        let (words, _) = part(&primitive["attributes"]["POSITION"]).as_chunks::<4>();
        let positions = words.iter().enumerate().map(|(at, word)| {
            f64::from(f32::from_le_bytes(*word)) + centre[at % 3].as_f64().unwrap()
        });
        let indices = primitive.get("indices").map_or(&[][..], part);
        let (words, _) = indices.as_chunks::<4>();
        Self {
            mode: primitive["mode"].as_u64().unwrap(),
            positions: positions.collect(),
            indices: words
                .iter()
                .map(|word| u32::from_le_bytes(*word).into())
                .collect(),
        }
    }
}

/// Vertices that nothing joins are points, instead of lines and triangles of consecutive vertices.
#[test]
fn scenes_without_indices_are_points() {
    let rows = [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0], [6.0, 7.0, 9.0]];
    let paths = Geometry::builder(positions(&rows)).paths(vec![0, 1, 2, 3], None);
    let skeletons = Geometry::builder(positions(&rows)).object_ids(vec![4, 5, 6]);
    let mesh = Geometry::builder(positions(&rows)).links(3, Vec::new());
    let folder = tempfile::tempdir().unwrap();
    for (geometry, kind) in [
        (paths, GeometryKind::Streamlines),
        (skeletons, GeometryKind::Skeletons),
        (mesh, GeometryKind::Mesh),
    ] {
        let path = folder.path().join("a.glb");
        write(&geometry, kind, &path);
        let scene = Scene::read(&std::fs::read(&path).unwrap());
        assert_eq!((scene.mode, scene.indices.len()), (0, 0), "{}", kind.name());
        assert_eq!(scene.positions, floats(&geometry.positions));
    }
}

/// Regression test: attributes with the name of colours but without their numbers were not listed, and
/// hid the colours.
#[test]
fn attributes_that_are_no_colours_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.glb");
    let mut points = Geometry::builder(positions(&[[0.0; 3], [1.0; 3]]));
    let colours = NumericColumn::from_values(3, [1_u8, 2, 3, 4, 5, 6]);
    points.vertex = vec![
        column("color", [0.5, 1.0]),
        Column::text("colors", ["red", "blue"].map(Some)),
        Column::new("rgb", colours.clone()),
        Column::new("rgba", colours),
        column("size", [1_u8, 2]),
    ];
    let left_out = lost(&points, GeometryKind::Points, &path).unwrap();
    let expected = ["color", "colors", "rgba", "size"]
        .map(|name| format!("vertex.{name}: not supported by glb"));
    assert_eq!(left_out, expected);
    let bytes = std::fs::read(&path).unwrap();
    assert!(bytes.ends_with(&[1, 2, 3, 255, 4, 5, 6, 255]));
}

/// Regression test: values whose names had equal beginnings got one name, under which other programs
/// find one of them.
#[test]
fn long_names_of_trk_stay_different() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.trk");
    let names = [
        "abcdefghijklmnopqrst",
        "abcdefghijklmnopqrstu",
        "abcdefghijklmnopqrst_v",
    ];
    let mut paths = Geometry::builder(positions(&[[0.0; 3], [1.0; 3]]))
        .paths(vec![0, 2], None)
        .objects(vec![0]);
    for (at, name) in (0_u8..).zip(names) {
        paths.vertex.push(column(name, [f32::from(at), 9.0]));
        let pair = NumericColumn::float32(2, [f32::from(at), 8.0]);
        paths.object.push(Column::new(name, pair));
    }
    let left_out = lost(&paths, GeometryKind::Streamlines, &path).unwrap();
    let expected = [
        "vertex.abcdefghijklmnopqrstu: its name becomes abcdefghijklmnopqr_2 in trk",
        "vertex.abcdefghijklmnopqrst_v: its name becomes abcdefghijklmnopqr_3 in trk",
        "object.abcdefghijklmnopqrst: its name becomes abcdefghijklmnopqr in trk",
        "object.abcdefghijklmnopqrstu: its name becomes abcdefghijklmnop_2 in trk",
        "object.abcdefghijklmnopqrst_v: its name becomes abcdefghijklmnop_3 in trk",
    ];
    assert_eq!(left_out, expected);
    let mut reader = zvf_files::open(&path, &FileReadOptions::default()).unwrap();
    let back = zvf_files::read_whole(reader.as_mut())
        .unwrap()
        .into_builder();
    let found: Vec<&str> = back
        .vertex
        .iter()
        .map(|column| column.name.as_str())
        .collect();
    assert_eq!(
        found,
        [
            "abcdefghijklmnopqrst",
            "abcdefghijklmnopqr_2",
            "abcdefghijklmnopqr_3"
        ]
    );
    for (found, written) in back.vertex.iter().zip(&paths.vertex) {
        assert_eq!(found.values, written.values);
    }
    for (found, written) in back.object.iter().zip(&paths.object) {
        assert_eq!(found.values, written.values);
    }
}

/// An empty result is an empty scene, which has no data.
#[test]
fn empty_scenes_have_no_data() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.glb");
    write(
        &Geometry::builder(positions(&[])),
        GeometryKind::Points,
        &path,
    );
    let bytes = std::fs::read(&path).unwrap();
    let word = |at: usize| {
        let word = u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        usize::try_from(word).unwrap()
    };
    assert_eq!((word(8), word(12)), (bytes.len(), bytes.len() - 20));
    let scene: Value = serde_json::from_slice(&bytes[20..]).unwrap();
    assert_eq!(scene["scenes"], serde_json::json!([{}]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn paths_survive(paths in prop::collection::vec(prop::collection::vec(corner(), 1..12), 1..20)) {
        let mut geometry = Geometry::builder(positions(&paths.concat()));
        let mut offsets = vec![0];
        for path in &paths {
            offsets.push(offsets.last().unwrap() + u64::try_from(path.len()).unwrap());
        }
        geometry = geometry.paths(offsets, None);
        // TRK moves coordinates by half a voxel and back.
        for (name, tolerance) in [("a.tck", 0.0), ("a.trx", 0.0), ("a.trk", 1e-3)] {
            let back = there_and_back(&geometry, GeometryKind::Streamlines, name);
            prop_assert_eq!(&back.owners.offsets(), &geometry.owners.offsets(), "{}", name);
            let (one, two) = (floats(&back.positions), floats(&geometry.positions));
            prop_assert!(are_near(&one, &two, tolerance), "{}", name);
        }
    }

    #[test]
    fn points_survive(rows in rows()) {
        let mut geometry = Geometry::builder(positions(&rows));
        let numbers: Vec<u16> = (0..).zip(&rows).map(|(row, _)| row * 7).collect();
        let numbers: NumericColumn = numbers.into_iter().collect();
        geometry.vertex.push(Column::new("intensity", numbers.clone()));
        geometry.vertex.push(Column::new("other", numbers));
        for name in ["a.las", "a.laz"] {
            let back = there_and_back(&geometry, GeometryKind::Points, name);
            let (one, two) = (floats(&back.positions), floats(&geometry.positions));
            prop_assert!(are_near(&one, &two, 0.05), "{}", name);
            for column in &geometry.vertex {
                prop_assert!(back.vertex.contains(column), "{}: {}", name, column.name);
            }
        }
    }

    #[test]
    fn meshes_survive(rows in rows(), turns in prop::collection::vec(0..1000_usize, 1..40)) {
        let mut geometry = Geometry::builder(positions(&rows));
        geometry.links.width = 3;
        for turn in turns {
            let corner = |step: usize| i64::try_from((turn + step) % rows.len()).unwrap();
            geometry.links.ends.extend([0, 1, 2].map(corner));
        }
        let back = there_and_back(&geometry, GeometryKind::Mesh, "a.gii");
        prop_assert_eq!(&back.positions, &geometry.positions);
        prop_assert_eq!(&back.links, &geometry.links);
        // STL has no indices: the corners are the same.
        let back = there_and_back(&geometry, GeometryKind::Mesh, "a.stl");
        let corners = |geometry: &GeometryBuilder| {
            let rows = geometry.links.ends.iter().map(|row| usize::try_from(*row).unwrap());
            geometry.positions.take(rows.collect::<Vec<_>>()).unwrap()
        };
        prop_assert_eq!(corners(&back), corners(&geometry));
    }

    #[test]
    fn skeletons_survive(
        trees in prop::collection::vec(prop::collection::vec((corner(), any::<prop::sample::Index>()), 1..20), 1..5),
    ) {
        let rows: Vec<[f32; 3]> = trees.iter().flatten().map(|(row, _)| *row).collect();
        let mut geometry = Geometry::builder(positions(&rows));
        geometry.links.width = 2;
        let (mut first, mut owners) = (0, Vec::new());
        for (object, tree) in (3..).zip(&trees) {
            for (row, (_, parent)) in tree.iter().enumerate() {
                // The first sample is a root, and others may be.
                let parent = parent.index(row + 1);
                if parent < row {
                    let ends = [first + row, first + parent];
                    geometry.links.ends.extend(ends.map(|end| i64::try_from(end).unwrap()));
                }
                owners.push(object);
            }
            first += tree.len();
        }
        geometry.owners = VertexOwners::Vertices(owners);
        let radius = NumericColumn::float32(1, rows.iter().map(|row| row[0].abs()));
        geometry.vertex.push(Column::new("radius", radius));
        let back = there_and_back(&geometry, GeometryKind::Skeletons, "a.swc");
        // Parents come first, and each sample with its parent is the same.
        let edges = |geometry: &GeometryBuilder| {
            let rows = floats(&geometry.positions);
            let place = |row: usize| [0, 1, 2].map(|axis| rows[row * 3 + axis].to_bits());
            let mut parents = vec![None; geometry.vertices()];
            for ends in geometry.links.ends.chunks(2) {
                let [child, parent] = [0, 1].map(|end| usize::try_from(ends[end]).unwrap());
                parents[child] = Some(place(parent));
            }
            let mut edges: Vec<_> = (0..geometry.vertices()).map(|row| (place(row), parents[row])).collect();
            edges.sort_unstable();
            edges
        };
        prop_assert_eq!(edges(&back), edges(&geometry));
        let radius = back.vertex.iter().find(|column| column.name == "radius").unwrap();
        let zvf::ColumnValues::Numeric(radius) = &radius.values else { unreachable!() };
        let rows = floats(&back.positions);
        let expected: Vec<f64> = rows.chunks(3).map(|row| row[0].abs()).collect();
        prop_assert_eq!(floats(radius), expected);
    }

    #[test]
    fn scenes_have_the_geometry(
        rows in rows(),
        turns in prop::collection::vec(0..1000_usize, 1..40),
        width in 1..=4_usize,
    ) {
        let mut geometry = Geometry::builder(positions(&rows));
        let corners = width.min(rows.len());
        let kind = match corners {
            1 => GeometryKind::Points,
            2 => GeometryKind::Graphs,
            _ => GeometryKind::Mesh,
        };
        if corners > 1 {
            geometry.links.width = corners;
            for turn in turns {
                let corner = |step: usize| i64::try_from((turn + step) % rows.len()).unwrap();
                geometry.links.ends.extend((0..corners).map(corner));
            }
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.glb");
        write(&geometry, kind, &path);
        let scene = Scene::read(&std::fs::read(&path).unwrap());
        let expected = floats(&geometry.positions);
        // Coordinates are float32 beside a centre.
        prop_assert!(are_near(&scene.positions, &expected, 4e-3));
        let triangles: Vec<i64> = match corners {
            1 => Vec::new(),
            4 => geometry
                .links
                .ends.chunks(4)
                .flat_map(|face| [face[0], face[1], face[2], face[0], face[2], face[3]])
                .collect(),
            _ => geometry.links.ends.clone(),
        };
        prop_assert_eq!(scene.mode, [0, 0, 1, 4, 4][corners]);
        prop_assert_eq!(scene.indices, triangles);
    }

    /// Any bytes behind the start of a format are refused or read.
    #[test]
    fn any_bytes_are_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..1500)) {
        let folder = tempfile::tempdir().unwrap();
        let starts: [(&str, &[u8]); 11] = [
            ("a.trk", b"TRACK\0"),
            ("a.tck", b"mrtrix tracks\n"),
            ("a.trx", b"PK\x03\x04"),
            ("a.swc", b"1 1 0 0 0 1 -1\n"),
            ("a.ply", b"ply\nformat binary_little_endian 1.0\nelement vertex 9\n"),
            ("a.obj", b"v 0 0 0\nf "),
            ("a.stl", b"solid a\n"),
            ("a.las", b"LASF"),
            ("a.laz", b"LASF"),
            ("a.gii", b"<GIFTI><DataArray>"),
            ("lh.pial", b"\xff\xff\xfea\n\n"),
        ];
        for (name, start) in starts {
            let path = folder.path().join(name);
            std::fs::write(&path, [start, &bytes[..]].concat()).unwrap();
            if let Ok(mut reader) = zvf_files::open(&path, &FileReadOptions::default()) {
                drop(zvf_files::read_whole(reader.as_mut()));
            }
        }
    }
}
