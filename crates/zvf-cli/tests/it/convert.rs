//! `zvf convert`, and `--strict`.

use std::{fs, path::PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{text, zvf};

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        let points = "x,y,z,fa,object_id\n0,0,0,0.5,0\n1,0.5,0,0.25,0\n2,0,7,0.75,1\n3,1,0,1,1\n";
        fs::write(folder.path("tracts.csv"), points).unwrap();
        folder.run(&["convert", "tracts.csv", "tracts.trk", "--kind=streamlines"]);
        fs::write(
            folder.path("cell.swc"),
            "1 1 0 0 0 1 -1\n2 3 1 2 3.5 0.5 1\n",
        )
        .unwrap();
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Runs a command whose arguments with a dot are files. Returns its exit code and its output.
    fn call(&self, words: &[&str]) -> (Option<i32>, String) {
        let words = words.iter().map(|word| match word.contains('.') {
            true => self.path(word).display().to_string(),
            false => (*word).to_owned(),
        });
        let words: Vec<String> = words.collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let output = zvf(&words);
        let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
        (output.status.code(), said)
    }

    fn run(&self, words: &[&str]) -> String {
        let (code, said) = self.call(words);
        assert_eq!(code, Some(0), "{words:?}: {said}");
        said
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }
}

/// Attributes and the order of streamlines survive formats that hold them.
#[test]
fn trk_is_the_same_after_trx_and_after_a_store() {
    let folder = Folder::new();
    folder.run(&["convert", "tracts.trk", "again.trk"]);
    assert_eq!(folder.bytes("again.trk"), folder.bytes("tracts.trk"));
    folder.run(&["convert", "tracts.trk", "tracts.trx", "--strict"]);
    folder.run(&["create", "a.zv", "--from", "tracts.trx"]);
    folder.run(&["query", "a.zv", "-o", "store.npz"]);
    folder.run(&["convert", "tracts.trk", "file.npz"]);
    let read = |name: &str| {
        folder.run(&[
            "convert",
            name,
            &name.replace("npz", "csv"),
            "--kind=streamlines",
        ]);
        fs::read_to_string(folder.path(&name.replace("npz", "csv"))).unwrap()
    };
    assert_eq!(read("store.npz"), read("file.npz"));
}

#[test]
fn swc_is_the_same_line_for_line() {
    let folder = Folder::new();
    folder.run(&["convert", "cell.swc", "again.swc", "--strict"]);
    assert_eq!(folder.bytes("again.swc"), folder.bytes("cell.swc"));
}

#[test]
fn losses_are_reported_and_refused_by_strict() {
    let folder = Folder::new();
    let said = folder.run(&["convert", "tracts.trk", "tracts.tck", "--json"]);
    let said: Value = serde_json::from_str(&said).unwrap();
    let expected = json!({
        "vertices": 4,
        "files": [folder.path("tracts.tck")],
        "notes": [],
        "left_out": [
            "positions: float64 is rounded to float32 in tck",
            "vertex.fa: not supported by tck",
        ],
    });
    assert_eq!(said, expected);
    fs::write(folder.path("b.tck"), "untouched").unwrap();
    let (code, said) = folder.call(&["convert", "tracts.trk", "b.tck", "--strict"]);
    assert_eq!(code, Some(2));
    assert!(
        said.contains("it would lack: positions: float64 is rounded"),
        "{said}"
    );
    folder.run(&["create", "a.zv", "--from", "tracts.trk"]);
    let (code, said) = folder.call(&["query", "a.zv", "-o", "b.tck", "--strict"]);
    assert_eq!(code, Some(2), "{said}");
    assert_eq!(folder.bytes("b.tck"), b"untouched");
    folder.run(&["query", "a.zv", "-o", "b.trk", "--strict"]);
    assert_eq!(folder.bytes("b.trk"), folder.bytes("tracts.trk"));
    let left: Vec<String> = fs::read_dir(folder.0.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with(".zvf-"))
        .collect();
    assert_eq!(left, [""; 0]);
}

/// A shell replaces a pattern by the names of the files. They are read together, by both commands.
#[test]
fn files_of_a_pattern_of_the_shell_are_read_together() {
    let folder = Folder::new();
    for name in ["one.swc", "two.swc"] {
        fs::write(folder.path(name), "1 1 0 0 0 1 -1\n2 3 1 2 3.5 0.5 1\n").unwrap();
    }
    let names = ["cell.swc", "one.swc", "two.swc"];
    let create: Vec<&str> = [&["create", "a.zv", "--from"][..], &names].concat();
    folder.run(&[&create[..], &["--ids", "4,8,15"]].concat());
    folder.run(&["query", "a.zv", "-o", "a.csv"]);
    let table = fs::read_to_string(folder.path("a.csv")).unwrap();
    assert_eq!(table.lines().count(), 7, "{table}");
    for id in [",4", ",8", ",15"] {
        let rows = table
            .lines()
            .filter(|line| format!("{line},").contains(&format!("{id},")));
        assert!(rows.count() >= 2, "{id}: {table}");
    }
    folder.run(&["convert", "cell.swc", "one.swc", "two.swc", "all.glb"]);
    // The store is not the last of the files.
    let (code, said) = folder.call(&["create", "--from", "cell.swc", "one.swc", "b.zv"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("b.zv"), "{said}");
    let (code, said) = folder.call(&["create", "b.zv", "--from", "tracts.trk", "tracts.trk"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("only .swc files are read together"), "{said}");
    let (code, said) = folder.call(&[
        "create",
        "b.zv",
        "--from",
        "tracts.csv",
        "--ids",
        "1",
        "--kind=points",
    ]);
    assert_eq!(code, Some(2));
    assert!(said.contains("--ids does not apply to csv files"), "{said}");
}

#[test]
fn a_table_needs_a_kind() {
    let folder = Folder::new();
    let (code, said) = folder.call(&["convert", "tracts.csv", "a.trk"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("as in --kind points"), "{said}");
}
