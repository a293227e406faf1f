//! Output files: recognized names, and the files left after success and failure.

use std::{fs, path::Path};

use zvf::{Links, ObjectIds, QueryResult};
use zvf_files::{FileFault, FileFormat, OutputFile, OutputFileError};

use crate::results::{in_axes, numbers, points, words, written};

/// Formats of results of any shape.
const FORMATS: [FileFormat; 6] = [
    FileFormat::Csv,
    FileFormat::Npz,
    FileFormat::Arrow,
    FileFormat::Parquet,
    FileFormat::Ply,
    FileFormat::Obj,
];

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn the_file_extension_selects_the_format() {
    let folder = tempfile::tempdir().unwrap();
    for format in FORMATS {
        let path = folder.path().join(format!("a.b.{format}"));
        let target = OutputFile::new(path);
        if format.is_built() {
            assert_eq!(target.unwrap().format(), format);
        } else {
            assert_eq!(target.err(), Some(OutputFileError::NotBuilt(format)));
        }
    }
    let upper = OutputFile::new(folder.path().join("A.CSV"));
    assert_eq!(upper.unwrap().format(), FileFormat::Csv);
}

#[test]
fn a_path_that_cannot_be_a_file_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |name: &str| OutputFile::new(folder.path().join(name)).unwrap_err();
    assert_eq!(refused("a"), OutputFileError::NoExtension);
    assert_eq!(
        refused("a.xlsx"),
        OutputFileError::Extension("xlsx".to_owned())
    );
    let absent = folder.path().join("absent");
    assert_eq!(refused("absent/a.csv"), OutputFileError::NoFolder(absent));
    fs::create_dir(folder.path().join("a.csv")).unwrap();
    assert_eq!(refused("a.csv"), OutputFileError::NotAFile);
    assert!(OutputFile::new("a.csv").is_ok());
}

#[test]
fn a_file_is_replaced_atomically() {
    let folder = tempfile::tempdir().unwrap();
    // All of them belong to an earlier result.
    for name in ["a.csv", "a.group_attributes.csv", "a.metadata.json"] {
        fs::write(folder.path().join(name), "old").unwrap();
    }
    written(&in_axes(1), folder.path(), "a.csv").unwrap();
    let found = fs::read_to_string(folder.path().join("a.csv")).unwrap();
    assert_eq!(found, "x\n0.25\n1.25\n");
    assert_eq!(names(folder.path()), ["a.csv"]);
}

#[cfg(unix)]
#[test]
fn files_have_default_permissions() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let mode = |name: &str| {
        let metadata = fs::metadata(folder.path().join(name)).unwrap();
        metadata.permissions().mode()
    };
    written(&in_axes(1), folder.path(), "a.csv").unwrap();
    fs::write(folder.path().join("other"), "").unwrap();
    assert_eq!(mode("a.csv"), mode("other"));
}

#[test]
fn a_failed_write_keeps_the_previous_file() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.npz"), "old").unwrap();
    let mut result = points();
    // Detected only after most of the file is written.
    result.object = vec![numbers("a", 1, &[1_u8, 2]), numbers("a", 1, &[1_u8, 2])];
    let error = written(&result, folder.path(), "a.npz").unwrap_err();
    assert!(matches!(error.fault, FileFault::TwoColumns(name) if name == "object.a"));
    assert_eq!(
        fs::read_to_string(folder.path().join("a.npz")).unwrap(),
        "old"
    );
    assert_eq!(names(folder.path()), ["a.npz"]);
}

#[test]
fn a_failed_table_prevents_all_files_of_the_result() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.csv", "a.group_attributes.csv"] {
        fs::write(folder.path().join(name), "old").unwrap();
    }
    let mut result = points();
    result.object = vec![numbers("a", 1, &[1_u8, 2]), numbers("a", 1, &[1_u8, 2])];
    let error = written(&result, folder.path(), "a.csv").unwrap_err();
    assert!(matches!(error.fault, FileFault::TwoColumns(name) if name == "object.a"));
    assert_eq!(names(folder.path()), ["a.csv", "a.group_attributes.csv"]);
    let kept = fs::read_to_string(folder.path().join("a.csv")).unwrap();
    assert_eq!(kept, "old");
}

#[track_caller]
fn check_broken(change: impl Fn(&mut QueryResult), expected: &str) {
    let folder = tempfile::tempdir().unwrap();
    for format in FORMATS.into_iter().filter(|format| format.is_built()) {
        let mut result = points();
        change(&mut result);
        let error = written(&result, folder.path(), &format!("a.{format}")).unwrap_err();
        assert_eq!(error.to_string(), expected, "{format}");
    }
    assert_eq!(names(folder.path()), [""; 0]);
}

#[test]
fn an_inconsistent_result_is_not_written() {
    check_broken(
        |result| result.vertex.push(numbers("a", 1, &[1_u8])),
        "vertex.a has 1 rows, but needs 3",
    );
    check_broken(
        |result| result.vertex.push(words("a", &[0, 1, 2], &["x", "y"])),
        "the result is inconsistent: a word is not in its dictionary",
    );
    check_broken(
        |result| result.object_ids = Some(ObjectIds::from_numbers(vec![1])),
        "object_ids has 1 rows, but needs 3",
    );
    check_broken(
        |result| result.positions.bytes.truncate(35),
        "the result is inconsistent: positions end inside a row",
    );
    check_broken(
        |result| result.axes.truncate(2),
        "the result is inconsistent: axes do not fit positions",
    );
    let ends = |width, ends: &[u64]| {
        let ends = ends.to_vec();
        move |result: &mut QueryResult| {
            result.links = Some(Links {
                width,
                ends: ends.clone(),
            });
        }
    };
    let absent = "the result is inconsistent: a link refers to a vertex that does not exist";
    check_broken(ends(2, &[0, 3]), absent);
    let cut = "the result is inconsistent: links end inside a row";
    check_broken(ends(2, &[0, 1, 2]), cut);
    check_broken(ends(0, &[]), cut);
    let parts = |offsets: &[u64]| {
        let offsets = offsets.to_vec();
        move |result: &mut QueryResult| {
            result.parts = Some(zvf::Parts {
                offsets: offsets.clone(),
                objects: vec![1, 2],
            });
        }
    };
    let order = "the result is inconsistent: parts do not ascend from 0";
    check_broken(parts(&[1, 2, 3]), order);
    check_broken(parts(&[0, 2, 1]), order);
    let end = "the result is inconsistent: parts do not end with the vertices";
    check_broken(parts(&[0, 1, 2]), end);
    check_broken(parts(&[0, 3]), "part_objects has 2 rows, but needs 1");
}
