//! Invariants of files for arbitrary bytes, used by the property tests and by the fuzz targets
//! `files_…`, one for each format.

use std::{
    fs,
    path::{Path, PathBuf},
};

use tempfile::TempDir;
use zvf::{Column, GeometryBuilder, GeometryKind, VertexOwners};
use zvf_files::{
    FileReadOptions, FileResults, GeometryReader, GroupTables, StoreDescription, read_whole,
};

/// Upper bound on an unpacked file: bombs are refused, and other input is shorter.
const UNPACKED: u64 = 1 << 20;

/// Returns the bytes of a file: for an even first byte the bytes that follow it, otherwise a sample in
/// which they change bytes. Changes are three bytes each: place and value. A first byte of 3, 7, …
/// cuts the sample at the first place.
pub(crate) fn content(sample: &[u8], data: &[u8]) -> Vec<u8> {
    let Some((mode, data)) = data.split_first() else {
        return Vec::new();
    };
    if mode & 1 == 0 {
        return data.to_vec();
    }
    let mut bytes = sample.to_vec();
    for (number, change) in data.chunks_exact(3).enumerate() {
        let place = usize::from(u16::from_le_bytes([change[0], change[1]]));
        if mode & 2 != 0 && number == 0 {
            bytes.truncate(place);
            continue;
        }
        let length = bytes.len().max(1);
        if let Some(byte) = bytes.get_mut(place % length) {
            *byte = change[2];
        }
    }
    bytes
}

/// A folder for the files of a thread, which are read several times.
fn folder() -> PathBuf {
    thread_local! {
        static FOLDER: TempDir = tempfile::tempdir().unwrap();
    }
    FOLDER.with(|folder| folder.path().to_path_buf())
}

/// Reads a file of this name with the bytes, and checks what is read.
pub(crate) fn file(name: &str, bytes: &[u8]) {
    let path = folder().join(name);
    fs::write(&path, bytes).unwrap();
    read(&path, &FileReadOptions::default());
}

/// Reads a file beside another one with values of its vertices or nodes; either has the bytes.
pub(crate) fn file_with((name, bytes): (&str, &[u8]), (other, values): (&str, &[u8])) {
    let (path, other) = (folder().join(name), folder().join(other));
    fs::write(&path, bytes).unwrap();
    fs::write(&other, values).unwrap();
    let mut options = FileReadOptions::default();
    options.with = vec![other];
    read(&path, &options);
}

/// Reads an edge list beside a table of its nodes; either has the bytes.
pub(crate) fn edge_list(list: &[u8], nodes: &[u8]) {
    file_with(("a.edgelist", list), ("nodes.csv", nodes));
}

/// Reads a folder of these files.
pub(crate) fn members(name: &str, members: &[(&str, Vec<u8>)]) {
    let path = folder().join(name);
    for (member, bytes) in members {
        let member = path.join(member);
        fs::create_dir_all(member.parent().unwrap()).unwrap();
        fs::write(member, bytes).unwrap();
    }
    read(&path, &FileReadOptions::default());
}

fn read(path: &Path, options: &FileReadOptions) {
    let mut options = options.clone();
    options.unpacked = UNPACKED;
    let Ok(mut reader) = zvf_files::open(path, &options) else {
        return;
    };
    let Ok(whole) = read_whole(reader.as_mut()) else {
        return;
    };
    let whole = whole.into_builder();
    check(&whole);
    reader.rewind().unwrap();
    let mut batches: Option<GeometryBuilder> = None;
    let mut vertices = 0;
    while let Some(batch) = reader.next(7).unwrap() {
        vertices += batch.vertices();
        batches.get_or_insert(batch.into_builder());
    }
    assert_eq!(vertices, whole.vertices(), "batches and the whole differ");
    write(path, reader.as_mut(), &whole);
    // A file that is not held in memory has the same geometry.
    options.in_memory = 0;
    let mut reader = zvf_files::open(path, &options).unwrap();
    let again = read_whole(reader.as_mut()).unwrap().into_builder();
    assert!(again == whole, "a file that is not held differs");
}

/// Checks that all parts of a geometry fit together.
fn check(geometry: &GeometryBuilder) {
    let vertices = geometry.vertices();
    let numbers = &geometry.positions;
    let row = numbers.row_size();
    assert_eq!(numbers.bytes.len(), vertices * row);
    let view = numbers.view().unwrap();
    for row in 0..view.rows() {
        for axis in 0..numbers.width {
            assert!(view.value(row, axis).unwrap().to_f64().is_finite());
        }
    }
    let rows = |columns: &[Column], expected: usize, scope: &str| {
        for column in columns {
            assert_eq!(column.len(), expected, "{scope}.{}", column.name);
            let nulls = column.nulls.as_ref();
            assert!(nulls.is_none_or(|nulls| nulls.len() == expected));
        }
    };
    rows(&geometry.vertex, vertices, "vertex");
    rows(&geometry.link, geometry.links.len(), "link");
    if let Some(objects) = &geometry.objects {
        rows(&geometry.object, objects.len(), "object");
    }
    let end = i64::try_from(vertices).unwrap();
    assert!(
        geometry
            .links
            .ends
            .iter()
            .all(|link| (0..end).contains(link))
    );
    if let VertexOwners::Vertices(ids) = &geometry.owners {
        assert_eq!(ids.len(), vertices);
    }
    if let Some(offsets) = geometry.owners.offsets() {
        assert!(offsets.is_sorted() && offsets.first() == Some(&0));
        assert_eq!(offsets.last(), Some(&u64::try_from(vertices).unwrap()));
    }
}

/// Writes a file again, in its format or in one that holds its kind. What is written can be read,
/// with all of its vertices.
fn write(path: &Path, reader: &mut dyn GeometryReader, whole: &GeometryBuilder) {
    reader.rewind().unwrap();
    let description = reader.description().clone();
    let name = path.file_name().unwrap().to_str().unwrap();
    let target = match description.kind {
        _ if [".trk", ".tck", ".trx", ".las", ".laz", ".gii"]
            .iter()
            .any(|end| name.ends_with(end)) =>
        {
            name
        }
        GeometryKind::Skeletons => "back.swc",
        GeometryKind::Mesh | GeometryKind::Graphs => "back.glb",
        GeometryKind::Points => "back.las",
        _ => "back.trx",
    };
    let target = folder().join(format!("written-{target}"));
    let header = (
        description.format.header_name().to_owned(),
        description.header.clone(),
    );
    let from = StoreDescription::from_parts(
        description.axes.clone(),
        description.crs.clone(),
        [header].into(),
    );
    let Ok(mut writer) = zvf_files::create(&target, &from) else {
        return;
    };
    let mut batches = FileResults::new(reader).unwrap();
    while let Ok(Some(batch)) = batches.next(50) {
        if writer.write(&batch).is_err() {
            return;
        }
    }
    let groups: GroupTables = batches.groups();
    if writer.finish(&groups).is_err() || target.extension().is_some_and(|end| end == "glb") {
        return;
    }
    let options = FileReadOptions::default();
    let mut back = zvf_files::open(&target, &options).unwrap();
    let back = read_whole(back.as_mut()).unwrap().into_builder();
    assert_eq!(
        back.vertices(),
        whole.vertices(),
        "{} has other vertices",
        target.display()
    );
    assert_eq!(
        back.owners.offsets(),
        whole.owners.offsets(),
        "{} has other paths",
        target.display()
    );
}
