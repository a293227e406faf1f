//! Files that are read and written in batches give the same as files that are read as a whole.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use tempfile::TempDir;
use zvf::{
    Column, ColumnValues, Geometry, GeometryBuilder, GeometryKind, LinkNumbering, NumericColumn,
    Query, QueryResult, VertexOwners,
};
use zvf_files::{
    FileReadOptions, FileResults, GeometryReader, GroupTables, StoreDescription, read_whole,
};

use crate::{
    damage::{chain, prefixes},
    round_trip::{export, import, members},
    samples::{self, Random},
};

const FORMS: [&str; 3] = ["ascii", "binary_little_endian", "binary_big_endian"];

/// An element of a PLY file: the lines that declare its properties, and its rows.
struct Element {
    name: &'static str,
    properties: &'static str,
    rows: Vec<Vec<f64>>,
}

/// Encodes a PLY file. A list is a number of values, and the values.
fn ply(form: &str, elements: &[Element]) -> Vec<u8> {
    let mut bytes = format!("ply\nformat {form} 1.0\ncomment a test\n").into_bytes();
    for Element {
        name,
        properties,
        rows,
    } in elements
    {
        bytes.extend(format!("element {name} {}\n", rows.len()).bytes());
        let lines = properties.split(';');
        bytes.extend(lines.flat_map(|line| format!("property {line}\n").into_bytes()));
    }
    bytes.extend(b"end_header\n");
    for Element {
        properties, rows, ..
    } in elements
    {
        for row in rows {
            let mut values = row.iter().copied();
            for property in properties.split(';') {
                let words: Vec<&str> = property.split(' ').collect();
                let (count, kind) = match words[..] {
                    ["list", count, kind, _] => {
                        let length = values.next().unwrap();
                        put(form, count, length, &mut bytes);
                        (whole(length), kind)
                    }
                    [kind, _] => (1, kind),
                    _ => panic!("{property}"),
                };
                for _ in 0..count {
                    put(form, kind, values.next().unwrap(), &mut bytes);
                }
            }
            assert_eq!(values.next(), None);
            if form == "ascii" {
                bytes.pop();
                bytes.push(b'\n');
            }
        }
    }
    bytes
}

#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the numbers are small"
)]
fn whole(value: f64) -> usize {
    value as usize
}

#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the numbers are in the range of their types"
)]
fn put(form: &str, kind: &str, value: f64, bytes: &mut Vec<u8>) {
    if form == "ascii" {
        bytes.extend(format!("{value} ").bytes());
        return;
    }
    let mut field = match kind {
        "uchar" => vec![value as u8],
        "short" => (value as i16).to_le_bytes().to_vec(),
        "int" => (value as i32).to_le_bytes().to_vec(),
        "float" => (value as f32).to_le_bytes().to_vec(),
        "double" => value.to_le_bytes().to_vec(),
        _ => panic!("{kind}"),
    };
    if form == "binary_big_endian" {
        field.reverse();
    }
    bytes.extend(field);
}

fn number(at: usize) -> f64 {
    f64::from(u32::try_from(at).unwrap())
}

/// Coordinates that float32 holds.
fn corner(at: usize) -> [f64; 3] {
    [number(at) * 0.5, number(at % 7), 100.0 - number(at)]
}

fn camera() -> Element {
    Element {
        name: "camera",
        properties: "float view;list uchar int marks",
        rows: vec![vec![1.5, 3.0, 7.0, 8.0, 9.0], vec![2.5, 0.0]],
    }
}

/// 40 points with attributes, and with lists if `tags`.
fn points(tags: bool) -> [Element; 3] {
    let row = |at: usize| {
        let [x, y, z] = corner(at);
        let mut row = vec![
            x,
            y,
            z,
            255.0,
            number(at),
            0.0,
            number(at / 9),
            0.25,
            number(at),
        ];
        if tags {
            row.extend([2.0, 4.0, 5.0]);
        }
        row
    };
    let properties = "float x;float y;float z;uchar red;uchar green;uchar blue;int object_id;\
                      double q_0;double q_1;list uchar short tags";
    let properties = if tags {
        properties
    } else {
        properties.rsplit_once(';').unwrap().0
    };
    let vertices = Element {
        name: "vertex",
        properties,
        rows: (0..40).map(row).collect(),
    };
    let rest = Element {
        name: "rest",
        properties: "int a",
        rows: vec![vec![5.0]],
    };
    [camera(), vertices, rest]
}

/// A mesh of 30 vertices and 25 faces, of three corners, or of three to five.
fn mesh(is_mixed: bool) -> [Element; 4] {
    let vertex = |at: usize| {
        let [x, y, z] = corner(at);
        vec![x, y, z, number(at / 10)]
    };
    let face = |at: usize| {
        let corners = if is_mixed { 3 + at % 3 } else { 3 };
        let ends = (0..corners).map(|corner| number((at + corner * 4) % 30));
        let mut row = vec![number(corners)];
        row.extend(ends);
        row.push(number(at) - 10.0);
        row
    };
    let vertices = Element {
        name: "vertex",
        properties: "float x;float y;float z;int object_id",
        rows: (0..30).map(vertex).collect(),
    };
    let faces = Element {
        name: "face",
        properties: "list uchar int vertex_indices;short label",
        rows: (0..25).map(face).collect(),
    };
    let edges = Element {
        name: "edge",
        properties: "int vertex1;int vertex2",
        rows: vec![vec![0.0, 1.0]],
    };
    [camera(), vertices, faces, edges]
}

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn put(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }
}

/// Opens a file; those above `in_memory` bytes are not held.
fn open(path: &Path, in_memory: u64) -> Box<dyn GeometryReader> {
    let mut options = FileReadOptions::default();
    options.in_memory = in_memory;
    zvf_files::open(path, &options).unwrap()
}

fn append(columns: &mut [Column], more: Vec<Column>) {
    for more in more {
        let found = columns.iter_mut().find(|column| column.name == more.name);
        found.unwrap().append(more).unwrap();
    }
}

/// Reads batches and joins them. Also returns their number.
fn joined(reader: &mut dyn GeometryReader, vertices: usize) -> (GeometryBuilder, usize) {
    reader.rewind().unwrap();
    let mut all = reader.next(vertices).unwrap().unwrap().into_builder();
    let mut count = 1;
    while let Some(batch) = reader.next(vertices).unwrap() {
        count += 1;
        let batch = batch.into_builder();
        let first = match reader.link_numbering() {
            LinkNumbering::Batch => i64::try_from(all.vertices()).unwrap(),
            LinkNumbering::Input => 0,
        };
        assert_eq!(all.links.width, batch.links.width);
        let ends = batch.links.ends.iter().map(|end| end + first);
        all.links.ends.extend(ends);
        all.positions.append(batch.positions).unwrap();
        append(&mut all.vertex, batch.vertex);
        append(&mut all.link, batch.link);
        if let Some(ids) = batch.owners.ids() {
            all.owners.ids_mut().unwrap().extend(ids);
        }
    }
    let tables = reader.tables().unwrap().into_builder();
    (all.objects, all.object) = (tables.objects, tables.object);
    (all, count)
}

fn column(geometry: &GeometryBuilder, name: &str) -> NumericColumn {
    let columns = geometry.vertex.iter().chain(&geometry.link);
    let found = columns.filter(|column| column.name == name);
    match found.map(|column| &column.values).next() {
        Some(ColumnValues::Numeric(numbers)) => numbers.clone(),
        other => panic!("{name}: {other:?}"),
    }
}

#[test]
fn points_of_ply_are_the_same_in_batches_of_any_size() {
    let folder = Folder::new();
    for (form, tags) in FORMS
        .into_iter()
        .flat_map(|form| [(form, false), (form, true)])
    {
        let path = folder.put("a.ply", &ply(form, &points(tags)));
        let mut reader = open(&path, u64::MAX);
        assert!(!reader.is_whole());
        let description = reader.description();
        assert_eq!(description.kind, GeometryKind::Points);
        assert_eq!(description.header["comments"][0], "comment a test");
        let lists = if tags { ", list tags" } else { "" };
        let out = format!("left out: element camera, element rest{lists}");
        assert_eq!(description.notes, [out]);
        let all = read_whole(reader.as_mut()).unwrap().into_builder();
        let expected: Vec<f64> = (0..40).flat_map(corner).collect();
        let found = all.positions.to_vec::<f32>().unwrap().into_iter();
        assert_eq!(found.map(f64::from).collect::<Vec<_>>(), expected);
        let ids = all.owners.ids().unwrap();
        assert_eq!((ids[8], ids[9], ids[39]), (0, 1, 4));
        assert_eq!(column(&all, "rgb").row(33), Some([255, 33, 0].as_slice()));
        let q = column(&all, "q").to_vec::<f64>().unwrap();
        assert_eq!(q[66..68], [0.25, 33.0]);
        assert_eq!(all.vertex.len(), 2);
        for (size, count) in [(1, 40), (7, 6), (39, 2), (1000, 1)] {
            assert_eq!(
                joined(reader.as_mut(), size),
                (all.clone(), count),
                "{form}"
            );
        }
    }
}

#[test]
fn ids_of_objects_of_ply_are_whole_numbers() {
    let folder = Folder::new();
    for (last, is_whole) in [(3e9, true), (0.5, false)] {
        for form in FORMS {
            let ids = [5e9, 2.0, last];
            let rows = ids.iter().map(|id| vec![*id, 0.0, 0.0, 0.0]);
            let vertices = Element {
                name: "vertex",
                properties: "double object_id;float x;float y;float z",
                rows: rows.collect(),
            };
            let path = folder.put("a.ply", &ply(form, &[camera(), vertices]));
            let (points, count) = joined(open(&path, 0).as_mut(), 1);
            assert_eq!(count, 3);
            if is_whole {
                let ids = vec![5_000_000_000, 2, 3_000_000_000];
                assert_eq!(points.owners, VertexOwners::Vertices(ids));
                assert_eq!(points.vertex, []);
            } else {
                let ids = column(&points, "object_id").to_vec::<f64>();
                assert_eq!(ids.unwrap(), [5e9, 2.0, 0.5]);
                assert_eq!(points.owners.ids(), None);
            }
        }
    }
}

#[test]
fn damaged_points_of_ply_are_errors_of_a_batch() {
    for form in FORMS {
        let is_open_ended = form == "ascii";
        let mut elements = Vec::from(points(false));
        prefixes("a.ply", &ply(form, &elements), is_open_ended);
        // The last element has no rows behind the vertices.
        elements.pop();
        prefixes("a.ply", &ply(form, &elements), is_open_ended);
    }
    let folder = Folder::new();
    let mut elements = points(false);
    elements[1].rows[30][1] = f64::INFINITY;
    for form in FORMS {
        let path = folder.put("a.ply", &ply(form, &elements));
        let mut reader = open(&path, 0);
        for _ in 0..30 {
            reader.next(1).unwrap().unwrap();
        }
        let error = reader.next(1).unwrap_err();
        assert!(
            chain(error.as_ref()).contains("a coordinate is inf"),
            "{error}"
        );
    }
    let mut longer = ply("binary_little_endian", &points(false));
    longer.push(0);
    let path = folder.put("a.ply", &longer);
    let error = read_whole(open(&path, 0).as_mut()).unwrap_err();
    assert!(
        chain(error.as_ref()).contains("1 bytes follow the end"),
        "{error}"
    );
}

#[test]
fn meshes_of_ply_are_the_same_in_batches_of_any_size() {
    let folder = Folder::new();
    for (form, is_mixed) in FORMS
        .into_iter()
        .flat_map(|form| [(form, false), (form, true)])
    {
        let bytes = ply(form, &mesh(is_mixed));
        let path = folder.put("a.ply", &bytes);
        let mut whole = open(&path, u64::MAX);
        assert!(whole.is_whole());
        let expected = read_whole(whole.as_mut()).unwrap().into_builder();
        let mut reader = open(&path, 0);
        assert!(!reader.is_whole());
        let (one, other) = (whole.description(), reader.description());
        assert_eq!((one.kind, &one.notes), (other.kind, &other.notes));
        assert_eq!(one.header, other.header);
        assert_eq!(
            other.notes,
            ["left out: element camera, element edge, beside faces"]
        );
        assert_eq!(
            read_whole(reader.as_mut()).unwrap().into_builder(),
            expected,
            "{form}"
        );
        for (size, count) in [(1, 55), (8, 8), (1000, 2)] {
            assert_eq!(
                joined(reader.as_mut(), size),
                (expected.clone(), count),
                "{form}"
            );
        }
    }
}

#[test]
fn damaged_meshes_of_ply_are_refused() {
    let folder = Folder::new();
    for form in FORMS {
        let mut elements = mesh(false);
        elements[2].rows[20][2] = 30.0;
        let path = folder.put("a.ply", &ply(form, &elements));
        let mut reader = open(&path, 0);
        let error = read_whole(reader.as_mut()).unwrap_err();
        let reason = "the corner of a polygon is 30; no vertex has this number";
        assert!(chain(error.as_ref()).contains(reason), "{error}");
        if form == "ascii" {
            continue;
        }
        let bytes = ply(form, &mesh(true));
        for length in 0..bytes.len() {
            let path = folder.put("a.ply", &bytes[..length]);
            let mut options = FileReadOptions::default();
            options.in_memory = 0;
            let Ok(mut reader) = zvf_files::open(&path, &options) else {
                continue;
            };
            assert!(
                read_whole(reader.as_mut()).is_err(),
                "{form}: {length} bytes"
            );
        }
    }
}

/// Three trees whose files are in another order than their ids.
fn neurons(folder: &Folder) -> PathBuf {
    let plain = "# one\n1 1 0 0 0 1 -1\n2 3 1 2 3.5 0.5 1\n# end\n";
    let wide = "1 1 0.1 0.2 1234.56789012 1 -1\n2 300 1 1 1 1 1\n3 2 2 2 2 1 1\n";
    folder.put("cells/100.swc", plain.as_bytes());
    folder.put("cells/17.swc", samples::swc().as_bytes());
    folder.put("cells/5.swc", wide.as_bytes());
    folder.path("cells")
}

#[test]
fn folders_of_swc_files_are_the_same_in_batches_of_files() {
    let folder = Folder::new();
    let path = neurons(&folder);
    let mut whole = open(&path, u64::MAX);
    let (expected, count) = joined(whole.as_mut(), 1000);
    assert_eq!((expected.vertices(), count), (9, 1));
    assert_eq!(expected.objects, Some(vec![100, 17, 5]));
    let mut reader = open(&path, 0);
    for (size, count) in [(1, 3), (3, 2), (1000, 1)] {
        for reader in [whole.as_mut(), reader.as_mut()] {
            assert_eq!(joined(reader, size), (expected.clone(), count));
        }
    }
    let (one, other) = (whole.description(), reader.description());
    assert_eq!(one.header, other.header);
    assert_eq!((&one.notes, one.bytes), (&other.notes, other.bytes));
}

/// The types of the first pass hold for the second one.
#[test]
fn swc_files_that_change_while_they_are_read_are_refused() {
    let folder = Folder::new();
    let plain = b"1 1 0 0 0 1 -1\n2 1 0 0 1 1 1\n";
    for (name, changed) in [
        ("wide", "1 1 0.12345678901 0 0 1 -1\n"),
        ("types", "1 1000 0 0 0 1 -1\n"),
        ("order", "2 1 0 0 0 1 -1\n1 1 0 0 0 1 -1\n"),
        ("empty", "# nothing\n"),
    ] {
        let at = |file: &str| format!("{name}/{file}");
        folder.put(&at("1.swc"), plain);
        folder.put(&at("2.swc"), plain);
        let mut reader = open(&folder.path(name), 0);
        reader.next(1).unwrap().unwrap();
        folder.put(&at("2.swc"), changed.as_bytes());
        let error = reader.next(1).unwrap_err();
        let said = chain(error.as_ref());
        assert!(
            said.contains("2.swc: the file changed while"),
            "{name}: {said}"
        );
    }
}

/// Writes a file in batches. Returns what was left out.
fn convert(reader: &mut dyn GeometryReader, vertices: usize, target: &Path) -> Vec<String> {
    reader.rewind().unwrap();
    let description = reader.description();
    let header = description.header.clone();
    let header = (description.format.header_name().to_owned(), header);
    let description = StoreDescription::from_parts(Vec::new(), None, [header].into());
    let mut writer = zvf_files::create(target, &description).unwrap();
    let mut batches = FileResults::new(reader).unwrap();
    let has_whole_objects = batches.has_whole_objects();
    while let Some(batch) = batches.next(vertices).unwrap() {
        writer.write(&batch).unwrap();
        if has_whole_objects {
            writer.end_objects().unwrap();
        }
    }
    let tables: GroupTables = batches.groups();
    writer.finish(&tables).unwrap().left_out
}

#[test]
fn batches_are_written_like_the_whole() {
    let folder = Folder::new();
    for is_mixed in [false, true] {
        let path = folder.put("a.ply", &ply(FORMS[1], &mesh(is_mixed)));
        for format in ["stl", "glb", "gii"] {
            let (one, other) = (format!("one.{format}"), format!("other.{format}"));
            let (one, other) = (folder.path(&one), folder.path(&other));
            let lost = convert(open(&path, u64::MAX).as_mut(), 1000, &one);
            let expected = fs::read(&one).unwrap();
            for size in [1, 4, 1000] {
                assert_eq!(convert(open(&path, 0).as_mut(), size, &other), lost);
                assert!(fs::read(&other).unwrap() == expected, "{format}: {size}");
            }
        }
    }
    let points = folder.put("p.ply", &ply(FORMS[1], &points(false)));
    let tracts = folder.put("a.trk", &samples::trk(&mut Random::new(5), false));
    for (path, format) in [(&points, "glb"), (&tracts, "glb")] {
        let (one, other) = (format!("one.{format}"), format!("other.{format}"));
        let (one, other) = (folder.path(&one), folder.path(&other));
        convert(open(path, 0).as_mut(), 1000, &one);
        convert(open(path, 0).as_mut(), 5, &other);
        assert!(
            fs::read(&other).unwrap() == fs::read(&one).unwrap(),
            "{format}"
        );
    }
}

#[test]
fn objects_of_swc_are_written_when_they_are_complete() {
    let folder = Folder::new();
    let path = neurons(&folder);
    fs::create_dir(folder.path("back")).unwrap();
    let target = folder.path("back/{name}.swc");
    let mut reader = open(&path, 0);
    let mut batches = FileResults::new(reader.as_mut()).unwrap();
    assert!(batches.has_whole_objects());
    let description = batches.description();
    let header = ("swc".to_owned(), description.header.clone());
    let description = StoreDescription::from_parts(Vec::new(), None, [header].into());
    let mut writer = zvf_files::create(&target, &description).unwrap();
    let mut written = Vec::new();
    while let Some(batch) = batches.next(1).unwrap() {
        writer.write(&batch).unwrap();
        writer.end_objects().unwrap();
        written.push(fs::read_dir(folder.path("back")).unwrap().count());
    }
    assert_eq!(written, [1, 2, 3]);
    assert_eq!(
        writer.finish(&GroupTables::default()).unwrap().files.len(),
        3
    );
    for name in ["100.swc", "17.swc"] {
        let [one, other] = ["cells", "back"].map(|from| folder.path(from).join(name));
        assert_eq!(
            fs::read_to_string(one).unwrap(),
            fs::read_to_string(other).unwrap()
        );
    }
}

/// The engine divides geometry with links, too.
#[tokio::test]
async fn stores_of_batches_with_links_are_written_back() {
    let folder = Folder::new();
    let mut options = FileReadOptions::default();
    options.in_memory = 0;
    let cells = neurons(&folder);
    import(&cells, &folder.path("cells.zv"), &options, true).await;
    fs::create_dir(folder.path("back")).unwrap();
    let back = folder.path("back/{name}.swc");
    export(&folder.path("cells.zv"), &back, &Query::new()).await;
    for name in ["100.swc", "17.swc", "5.swc"] {
        let [one, other] = ["cells", "back"].map(|from| folder.path(from).join(name));
        assert_eq!(
            fs::read_to_string(one).unwrap(),
            fs::read_to_string(other).unwrap()
        );
    }
    let path = folder.put("a.ply", &ply(FORMS[2], &mesh(true)));
    let facets = |path: PathBuf| {
        let bytes = fs::read(path).unwrap();
        let facets = bytes[84..].chunks(50).map(|facet| facet[12..48].to_vec());
        facets.collect::<BTreeSet<_>>()
    };
    convert(open(&path, 0).as_mut(), 3, &folder.path("one.stl"));
    import(&path, &folder.path("a.zv"), &options, true).await;
    export(
        &folder.path("a.zv"),
        &folder.path("other.stl"),
        &Query::new(),
    )
    .await;
    assert_eq!(
        facets(folder.path("other.stl")),
        facets(folder.path("one.stl"))
    );
}

/// Returns one streamline of two points for each object. Objects with ids of 2 and above have no
/// attribute values.
fn streamlines(objects: &[i64]) -> QueryResult {
    let large = |id: &i64| (1_i64 << 60) + id;
    let lacking = |name: &str, values: NumericColumn| {
        let mut column = Column::new(name, values);
        let nulls = objects.iter().map(|id| *id >= 2).collect();
        column.nulls = Some(nulls).filter(|nulls: &Vec<bool>| nulls.contains(&true));
        column
    };
    let geometry = Geometry::builder(NumericColumn::float32(3, vec![0.5; objects.len() * 6]))
        .paths(
            (0..=objects.len())
                .map(|at| 2 * u64::try_from(at).unwrap())
                .collect(),
            objects.to_vec(),
        )
        .objects(objects.to_vec())
        .object(vec![
            lacking(
                "few",
                NumericColumn::from_values(1, vec![7_i32; objects.len()]),
            ),
            lacking("large", NumericColumn::int64(1, objects.iter().map(large))),
            lacking("near", NumericColumn::float32(1, vec![0.25; objects.len()])),
            Column::new("full", NumericColumn::int64(1, objects.iter().map(large))),
        ]);
    let axes = ["x", "y", "z"].map(str::to_owned).to_vec();
    zvf_files::whole_result(geometry, GeometryKind::Streamlines, axes).unwrap()
}

/// Integers become floats if a value is missing in any batch, not only in the first one.
#[test]
fn types_of_trx_arrays_do_not_depend_on_batches() {
    let folder = Folder::new();
    let path = folder.path("a.trx");
    let (nan, seven) = (f64::NAN, 7.0_f64);
    let near = [0.25, 0.25, f32::NAN, f32::NAN].map(f32::to_le_bytes);
    for batches in [
        &[&[0, 1, 2, 3][..]][..],
        &[&[0, 1], &[2, 3]],
        &[&[0], &[1, 2], &[3]],
    ] {
        let mut writer = zvf_files::create(&path, &StoreDescription::default()).unwrap();
        let mut first_row = 0;
        for objects in batches {
            let mut batch = streamlines(objects);
            batch.first_row = first_row;
            for offset in &mut batch.parts.as_mut().unwrap().offsets {
                *offset += first_row;
            }
            first_row += u64::try_from(batch.positions.len()).unwrap();
            writer.write(&batch).unwrap();
        }
        let written = writer.finish(&GroupTables::default()).unwrap();
        let reason = "are rounded to float64, because trx has no missing integers";
        assert_eq!(
            written.left_out,
            [format!("object.large: 1 integers {reason}")]
        );
        let members = members(fs::read(&path).unwrap());
        let few = [seven, seven, nan, nan].map(f64::to_le_bytes);
        assert_eq!(members["dps/few.float64"], few.concat());
        assert_eq!(members["dps/near.float32"], near.concat());
        let full = [0, 1, 2, 3].map(|id| ((1_i64 << 60) + id).to_le_bytes());
        assert_eq!(members["dps/full.int64"], full.concat());
        assert_eq!(members["dps/large.float64"].len(), 32);
    }
}
