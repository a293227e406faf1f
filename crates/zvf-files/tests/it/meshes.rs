//! PLY, OBJ, STL and GLB files as geometry, folders of them, and STL and GLB files of stores.

use std::{collections::BTreeSet, fs};

use zvf::{Column, ColumnValues, GeometryBuilder, GeometryKind, NumericColumn, Query};
use zvf_files::{FileObjectIds, FileReadOptions, open, read_whole};

use crate::{
    damage::{chain, flips, prefixes, refused},
    round_trip::{export, import},
    samples,
};

/// Reads a file, and returns its kind, its geometry and its notes.
fn read(name: &str, bytes: &[u8]) -> (GeometryKind, GeometryBuilder, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    let mut reader = open(&path, &FileReadOptions::default()).unwrap();
    let geometry = read_whole(reader.as_mut()).unwrap().into_builder();
    let description = reader.description();
    (description.kind, geometry, description.notes.clone())
}

fn numbers(geometry: &GeometryBuilder, name: &str) -> NumericColumn {
    let columns = geometry.vertex.iter().chain(&geometry.link);
    let mut found = columns.filter(|attribute| attribute.name == name);
    match found.next().map(|attribute| attribute.values.clone()) {
        Some(ColumnValues::Numeric(numbers)) => numbers,
        other => panic!("{name}: {other:?}"),
    }
}

const HEADER: &str = "element vertex 4\nproperty float x\nproperty float y\nproperty float z\n\
    property uchar red\nproperty uchar green\nproperty uchar blue\nproperty double q_0\n\
    property double q_1\nelement face 2\nproperty list uchar int vertex_indices\n\
    property short part_of\nend_header\n";

fn ply_ascii() -> Vec<u8> {
    let rows = "0 0 0 255 0 1 0.5 1\r\n1 0 0 255 0 2 0.5 2\r\n1 1 0 255 0 3 0.5 3\r\n0 1 0.25 255 0 4 0.5 4\r\n\
        4 0 1 2 3 7\n3 0 1 2 -8\n";
    format!("ply\nformat ascii 1.0\ncomment a\n{HEADER}{rows}").into_bytes()
}

fn ply_binary(is_big_endian: bool) -> Vec<u8> {
    let order = if is_big_endian { "big" } else { "little" };
    let mut bytes = format!("ply\nformat binary_{order}_endian 1.0\n{HEADER}").into_bytes();
    let mut put = |value: &[u8]| {
        if is_big_endian {
            bytes.extend(value.iter().rev());
        } else {
            bytes.extend(value);
        }
    };
    let corners = [
        [0.0_f32, 0.0, 0.0],
        [1.0, 0.0, 0.0],
        [1.0, 1.0, 0.0],
        [0.0, 1.0, 0.25],
    ];
    for (row, corner) in (1_u8..).zip(corners) {
        for value in corner {
            put(&value.to_le_bytes());
        }
        for value in [255, 0, row] {
            put(&[value]);
        }
        put(&0.5_f64.to_le_bytes());
        put(&f64::from(row).to_le_bytes());
    }
    for (face, part) in [(&[0_i32, 1, 2, 3][..], 7_i16), (&[0, 1, 2], -8)] {
        put(&[u8::try_from(face.len()).unwrap()]);
        for corner in face {
            put(&corner.to_le_bytes());
        }
        put(&part.to_le_bytes());
    }
    bytes
}

#[test]
fn every_form_of_ply_is_the_same_mesh() {
    let (kind, mesh, notes) = read("a.ply", &ply_ascii());
    assert_eq!((kind, notes.len()), (GeometryKind::Mesh, 0));
    assert_eq!(mesh.vertices(), 4);
    // Polygons of 4 and 3 corners become triangles that know their face.
    assert_eq!(mesh.links.ends, [0, 1, 2, 0, 2, 3, 0, 1, 2]);
    assert_eq!(numbers(&mesh, "face"), [0_u32, 0, 1].into_iter().collect());
    assert_eq!(
        numbers(&mesh, "part_of"),
        [7_i16, 7, -8].into_iter().collect()
    );
    assert_eq!(numbers(&mesh, "rgb").row(3), Some([255, 0, 4].as_slice()));
    assert_eq!(numbers(&mesh, "q").width, 2);
    for is_big_endian in [false, true] {
        assert_eq!(read("a.ply", &ply_binary(is_big_endian)).1, mesh);
    }
}

#[test]
fn ply_holds_points_graphs_and_paths() {
    let file = |more: &str, rows: &str| {
        let header = "ply\nformat ascii 1.0\nelement vertex 3\nproperty double x\nproperty int y\nproperty float z\n";
        read(
            "a.ply",
            format!("{header}{more}end_header\n{rows}").as_bytes(),
        )
    };
    let (kind, points, _) = file("", "0.1 1 2\n0.2 3 4\n0.3 5 6\n");
    assert_eq!(kind, GeometryKind::Points);
    assert_eq!(
        points.positions.to_vec::<f64>().unwrap()[..3],
        [0.1, 1.0, 2.0]
    );
    let edges = "element edge 2\nproperty int vertex1\nproperty int vertex2\n";
    let (kind, graph, _) = file(edges, "0 1 2\n0 3 4\n0 5 6\n0 1\n2 1\n");
    assert_eq!(
        (kind, graph.links.ends),
        (GeometryKind::Graphs, vec![0, 1, 2, 1])
    );
    let labels = "property int part\nproperty int object_id\n";
    let rows = "0 1 2 0 9\n0 3 4 0 9\n0 5 6 1 4\n";
    let steps = format!("{labels}element edge 1\nproperty int vertex1\nproperty int vertex2\n");
    let (kind, paths, _) = file(&steps, &format!("{rows}0 1\n"));
    assert_eq!(kind, GeometryKind::Polylines);
    assert_eq!(paths.owners.offsets(), Some([0, 2, 3].as_slice()));
    assert_eq!(paths.owners.ids(), Some([9, 4].as_slice()));
    // Without the edges of paths, a part is an attribute as any other.
    let of_edges = (GeometryKind::Graphs, format!("{rows}1 2\n"));
    let faces = format!("{labels}element face 1\nproperty list uchar int vertex_indices\n");
    for (header, (expected, rows)) in [
        (labels, (GeometryKind::Points, rows.to_owned())),
        (&steps, of_edges),
        (&faces, (GeometryKind::Mesh, format!("{rows}3 0 1 2\n"))),
    ] {
        let (kind, other, _) = file(header, &rows);
        assert_eq!(kind, expected);
        let parts: NumericColumn = [0, 0, 1].into_iter().collect();
        assert_eq!(other.vertex, [Column::new("part", parts)]);
        assert_eq!(other.owners.ids(), Some([9, 9, 4].as_slice()));
    }
    // Paths can be requested.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.ply");
    let header = "ply\nformat ascii 1.0\nelement vertex 3\nproperty double x\nproperty int y\nproperty float z\n";
    fs::write(&path, format!("{header}{labels}end_header\n{rows}")).unwrap();
    let mut options = FileReadOptions::default();
    options.kind = Some(GeometryKind::Polylines);
    let mut reader = open(&path, &options).unwrap();
    let paths = read_whole(reader.as_mut()).unwrap().into_builder();
    assert_eq!(paths.owners.ids(), Some([9, 4].as_slice()));
}

#[test]
fn obj_names_objects_and_counts_back() {
    let text = "# a\nmtllib ../../secret.mtl\no one\nv 0 0 0\nv 1 0 0\nv 0 1 \\\n0\nf 1/1/1 2//1 -1\n\
        g two\nv 5 5 5\nv 6 5 5\nv 5 6 5\nv 5.123456789 6 5 # a comment\nf 4 5 6 7 # another\n";
    let (kind, mesh, notes) = read("a.obj", text.as_bytes());
    assert_eq!(kind, GeometryKind::Mesh);
    // 5.123456789 needs float64.
    assert_eq!(mesh.positions.row_size(), 24);
    assert_eq!(mesh.links.ends, [0, 1, 2, 3, 4, 5, 3, 5, 6]);
    assert_eq!(mesh.owners.ids(), Some([1, 1, 1, 2, 2, 2, 2].as_slice()));
    let names = ["one", "two"].map(|name| Some(name.to_owned())).to_vec();
    assert_eq!(mesh.object[0].values, ColumnValues::text(names));
    assert_eq!(notes, ["left out: lines mtllib"]);
    let (kind, graph, _) = read("a.obj", b"v 0 0 0\nv 1 0 0\nv 1 1 0\nl 1 2 3");
    assert_eq!(
        (kind, graph.links.ends),
        (GeometryKind::Graphs, vec![0, 1, 1, 2])
    );
}

#[test]
fn damaged_meshes_are_refused_or_read() {
    prefixes("a.ply", &ply_binary(false), false);
    flips("a.ply", &ply_binary(false), 31);
    flips("a.ply", &ply_ascii(), 32);
    let cases = [
        (
            "a.ply",
            "ply\nformat ascii 1.0\nelement vertex 1099511627776\nproperty float x\nend_header\n1\n",
            "are left",
        ),
        (
            "a.ply",
            "ply\nformat ascii 1.0\nelement vertex -1\nend_header\n",
            "line 3",
        ),
        ("a.ply", "plz\n", "starts with a line ply"),
        (
            "a.ply",
            "ply\nformat ascii 1.0\nelement vertex 1\nproperty uchar x\nproperty float y\nproperty float z\nend_header\n256 0 0\n",
            "line 8",
        ),
        ("a.obj", "v 0 0 0\nf 0 1 1\n", "line 2"),
        ("a.obj", "v 0 0 0\nf 1 1 2\n", "no vertex has this number"),
        ("a.obj", "v 0 0\n", "line 1"),
        ("a.obj", "v 0 0 nan\n", "NaN"),
        (
            "a.stl",
            "solid a\nfacet normal 0 0 1\nouter loop\nvertex 0 0 0\nendloop\nendfacet\n",
            "a facet has 3 vertices",
        ),
        (
            "a.stl",
            "not solid",
            "the file is cut off or another format",
        ),
    ];
    for (name, text, reason) in cases {
        let error = refused(name, text.as_bytes());
        assert!(error.contains(reason), "{reason:?} not in {error:?}");
    }
}

fn stl() -> Vec<u8> {
    let mut bytes = vec![b' '; 80];
    bytes[..5].copy_from_slice(b"solid");
    bytes.extend(2_u32.to_le_bytes());
    let corners = [
        [0.0_f32, 0.0, 0.0],
        [1.0, 0.0, 0.0],
        [0.0, 1.0, 0.0],
        [1.0, 1.0, 0.0],
    ];
    for facet in [[0, 1, 2], [2, 1, 3]] {
        let normal = [0.0_f32, 0.0, 1.0];
        let numbers = std::iter::once(normal).chain(facet.map(|corner: usize| corners[corner]));
        bytes.extend(numbers.flatten().flat_map(f32::to_le_bytes));
        bytes.extend([0, 0]);
    }
    bytes
}

/// A binary file that is cut is no text, although it starts with solid.
#[test]
fn cut_binary_stl_is_refused() {
    let error = refused("a.stl", &stl()[..150]);
    assert!(error.contains("the size of the file is 150"), "{error}");
}

#[tokio::test]
async fn stl_is_welded_and_comes_back() {
    let (kind, mesh, _) = read("a.stl", &stl());
    assert_eq!((kind, mesh.vertices()), (GeometryKind::Mesh, 4));
    assert_eq!(mesh.links.ends, [0, 1, 2, 2, 1, 3]);
    prefixes("a.stl", &stl(), false);
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("a.stl"), stl()).unwrap();
    import(
        &at("a.stl"),
        &at("a.zv"),
        &FileReadOptions::default(),
        false,
    )
    .await;
    assert_eq!(
        export(&at("a.zv"), &at("b.stl"), &Query::new()).await,
        [""; 0]
    );
    // Facets and the corner that they start with survive, in any order.
    let facets = |bytes: &[u8]| {
        let facets = bytes[84..].chunks(50).map(|facet| facet[12..48].to_vec());
        facets.collect::<BTreeSet<_>>()
    };
    assert_eq!(facets(&fs::read(at("b.stl")).unwrap()), facets(&stl()));
    let text = "solid one\nfacet normal 0 0 0\nouter loop\nvertex 0 0 0\nvertex 1 0 0\nvertex 0 1 0\nendloop\nendfacet\nendsolid one\n";
    let (_, solids, _) = read("a.stl", text.repeat(2).as_bytes());
    assert_eq!(solids.owners.ids(), Some([0, 0, 0, 1, 1, 1].as_slice()));
}

#[tokio::test]
async fn glb_has_chunks_of_the_declared_lengths() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("a.ply"), ply_ascii()).unwrap();
    import(
        &at("a.ply"),
        &at("a.zv"),
        &FileReadOptions::default(),
        false,
    )
    .await;
    export(&at("a.zv"), &at("a.glb"), &Query::new()).await;
    let bytes = fs::read(at("a.glb")).unwrap();
    let word = |at: usize| {
        let word = u32::from_le_bytes(*bytes[at..].first_chunk().unwrap());
        usize::try_from(word).unwrap()
    };
    assert_eq!(
        (&bytes[..4], word(4), word(8)),
        (&b"glTF"[..], 2, bytes.len())
    );
    let json = &bytes[20..20 + word(12)];
    let scene: serde_json::Value = serde_json::from_slice(json).unwrap();
    assert_eq!(scene["meshes"][0]["primitives"][0]["mode"], 4);
    assert_eq!(scene["accessors"][1]["type"], "VEC4");
    assert_eq!(scene["accessors"][2]["count"], 9);
    assert_eq!(word(20 + json.len()), scene["buffers"][0]["byteLength"]);
}

#[test]
fn glb_is_read_with_its_nodes() {
    let (kind, geometry, notes) = read("a.glb", &samples::glb());
    assert_eq!(
        (kind, notes),
        (
            GeometryKind::Mesh,
            vec!["left out: colours, which some vertices lack or have of another type".to_owned(),]
        )
    );
    // The first name is an id; the second mesh has another name, and is mirrored.
    assert_eq!(
        geometry.owners.ids(),
        Some([17, 17, 17, 17, 2, 2, 2, 2].as_slice())
    );
    assert_eq!(geometry.objects, Some(vec![2, 17]));
    let names = Column::text("name", [Some("strip".to_owned()), None]);
    assert_eq!(geometry.object, [names]);
    assert_eq!(
        geometry.links.ends,
        [0, 1, 2, 0, 2, 3, 4, 6, 5, 5, 6, 7].map(i64::from)
    );
    let positions = geometry.positions.view().unwrap();
    let at = |row: usize| [0, 1, 2].map(|axis| positions.value(row, axis).unwrap().to_f64());
    assert_eq!(
        (at(2), at(5), at(7)),
        ([1.0, 1.0, 0.5], [8.0, 0.0, 0.1], [8.0, 2.0, 4.1])
    );
}

/// A mesh that is written as GLB has the same positions, faces and colours when it is read.
#[tokio::test]
async fn glb_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("a.ply"), samples::PLY).unwrap();
    let options = FileReadOptions::default();
    import(&at("a.ply"), &at("a.zv"), &options, false).await;
    export(&at("a.zv"), &at("a.glb"), &Query::new()).await;
    let (_, ply, _) = read("a.ply", samples::PLY.as_bytes());
    let (kind, glb, _) = read("b.glb", &fs::read(at("a.glb")).unwrap());
    assert_eq!(kind, GeometryKind::Mesh);
    let [rgb, rgba] = [numbers(&ply, "rgb"), numbers(&glb, "rgba")];
    assert_eq!(rgba.kind, rgb.kind);
    // A store has its own order of vertices and faces.
    let faces = |mesh: &GeometryBuilder, colours: &NumericColumn, width: usize| {
        let size = mesh.positions.kind.size() * 3;
        let corner = |end: &i64| {
            let row = usize::try_from(*end).unwrap();
            let position = mesh.positions.bytes[row * size..][..size].to_vec();
            (position, colours.bytes[row * width..][..3].to_vec())
        };
        let faces = mesh.links.ends.chunks(3).map(|ends| {
            let corners: BTreeSet<_> = ends.iter().map(corner).collect();
            corners
        });
        faces.collect::<BTreeSet<_>>()
    };
    assert_eq!(faces(&glb, &rgba, 4), faces(&ply, &rgb, 3));
    assert_eq!(glb.links.ends.len(), ply.links.ends.len());
}

/// Files in a folder, and several files, become an object each; names that are numbers are ids.
#[test]
fn names_of_meshes_are_ids() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let triangle = |x: f64| format!("v {x} 0 0\nv 1 0 0\nv 1 1 0.5\nf 1 2 3\n");
    fs::write(at("0001.obj"), triangle(0.0)).unwrap();
    // Coordinates that need 64 bits, and a colour that the other files lack.
    fs::write(at("722817260.obj"), triangle(0.123_456_789_012_3)).unwrap();
    fs::write(at("30.stl"), samples::STL).unwrap();
    fs::write(at("4.ply"), samples::PLY).unwrap();
    fs::write(at("notes.txt"), "no mesh").unwrap();
    let read = |path: &std::path::Path, options: &FileReadOptions| {
        let mut reader = open(path, options).map_err(|error| chain(&error))?;
        let whole = read_whole(reader.as_mut()).map_err(|error| chain(error.as_ref()))?;
        reader.rewind().unwrap();
        let mut batches = 0;
        while reader.next(1).unwrap().is_some() {
            batches += 1;
        }
        let description = reader.description();
        let is_named = !description.numbers_objects;
        Ok::<_, String>((
            whole.into_builder(),
            is_named,
            batches,
            description.notes.clone(),
        ))
    };
    let mut options = FileReadOptions::default();
    let (whole, is_named, batches, notes) = read(folder.path(), &options).unwrap();
    assert!(is_named && whole.object.is_empty());
    assert_eq!((batches, whole.vertices()), (4, 14));
    assert_eq!(whole.objects, Some(vec![1, 30, 4, 722_817_260]));
    assert_eq!(whole.positions.kind.name(), "float64");
    assert_eq!(whole.links.ends[..6], [0, 1, 2, 3, 4, 5]);
    let owners = whole.owners.ids().unwrap();
    assert_eq!(owners[..4], [1, 1, 1, 30]);
    assert_eq!(
        notes,
        ["left out: attributes that some files lack: label, rgb"]
    );

    options.ids = Some(FileObjectIds::Numbers);
    let (whole, ..) = read(folder.path(), &options).unwrap();
    assert_eq!(whole.objects, Some(vec![0, 1, 2, 3]));
    options.ids = Some(FileObjectIds::Names);
    // Several files.
    options.with = vec![at("4.ply")];
    let (whole, ..) = read(&at("30.stl"), &options).unwrap();
    assert_eq!(whole.objects, Some(vec![30, 4]));
    options.with.clear();
    // A single file, whose name is an id if it is a number.
    let (whole, is_named, ..) = read(&at("722817260.obj"), &options).unwrap();
    assert_eq!(
        (whole.owners.ids(), is_named),
        (Some([722_817_260; 3].as_slice()), true)
    );
    options.ids = None;
    let (whole, is_named, ..) = read(&at("4.ply"), &options).unwrap();
    assert_eq!(
        (whole.owners.ids(), is_named),
        (Some([4; 4].as_slice()), true)
    );
    assert_eq!(whole.vertex.len(), 1);

    fs::write(at("left.obj"), samples::OBJ).unwrap();
    let (whole, is_named, ..) = read(&at("left.obj"), &options).unwrap();
    assert_eq!((whole.objects, is_named), (Some(vec![1, 2]), false));
    let (whole, is_named, ..) = read(folder.path(), &options).unwrap();
    assert_eq!(
        (whole.objects, is_named),
        (Some(vec![0, 1, 2, 3, 4]), false)
    );
    let names = ["0001", "30", "4", "722817260", "left"].map(|name| Some(name.to_owned()));
    assert_eq!(whole.object, [Column::text("name", names)]);
    options.ids = Some(FileObjectIds::Names);
    let error = read(folder.path(), &options).unwrap_err();
    assert!(
        error.contains("the name of a file is left; names that are ids"),
        "{error}"
    );
    fs::write(
        at("quads.obj"),
        "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nf 1 2 3 4\n",
    )
    .unwrap();
    options.ids = None;
    let error = read(folder.path(), &options).unwrap_err();
    assert!(
        error.contains("quads.obj") && error.contains("triangulate"),
        "{error}"
    );
}
