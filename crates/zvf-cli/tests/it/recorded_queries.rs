//! Queries of recorded stores through the command, from the arguments to the file.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::Output,
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{text, unpack, zvf};

/// A recorded store, and a folder for files.
struct Place {
    store: TempDir,
    files: TempDir,
}

impl Place {
    fn of(name: &str) -> Self {
        let store = tempfile::tempdir().unwrap();
        unpack("zvf-07", name, store.path());
        let files = tempfile::tempdir().unwrap();
        Self { store, files }
    }

    fn query(&self, arguments: &[&str]) -> Output {
        let store = self.store.path().to_str().unwrap();
        zvf(&[&["query", store], arguments].concat())
    }

    /// Returns the output of a successful query.
    #[track_caller]
    fn done(&self, arguments: &[&str]) -> String {
        let output = self.query(arguments);
        assert_eq!(text(&output.stderr), "");
        assert_eq!(output.status.code(), Some(0));
        text(&output.stdout).to_owned()
    }

    #[track_caller]
    fn json(&self, arguments: &[&str]) -> Value {
        let printed = self.done(&[arguments, &["--json"]].concat());
        serde_json::from_str(&printed).unwrap()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.files.path().join(name)
    }

    /// Lists the names of the written files.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.files.path()).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

#[test]
fn rows_are_shown_with_links() {
    let place = Place::of("graph.zv");
    let printed = place.done(&["--bbox", "-1,-1,-1,2.5,2.5,2.5", "--mode", "within"]);
    let (head, rows) = printed.split_once("\n\n").unwrap();
    assert!(head.contains("2 vertices, 1 object, 1 link\n"), "{head}");
    let expected = "    x    y    z  object_id  vertex.radius
  1.0  1.0  1.0          0            0.0
  2.0  2.0  2.0          0            1.0

  links  link.pair  link.weight
    0 1        0 1          0.0\n";
    assert!(rows.starts_with(expected), "{rows}");
}

#[test]
fn json_has_the_documented_keys() {
    let found = Place::of("graph.zv").json(&[]);
    let counts = ["level", "vertices", "objects", "links"].map(|key| found[key].clone());
    assert_eq!(counts, [0, 6, 1, 6].map(Value::from));
    assert!(found["requests"].as_u64() > Some(0));
    assert!(found["bytes_read"].as_u64() > Some(0));
    assert_eq!(found["missing"], json!([]));
    assert!(found["notes"].is_array());
    assert!(found.get("output").is_none());
    let paths = Place::of("streamlines.zv").json(&["--limit", "2"]);
    assert_eq!(paths["parts"], 2);
}

#[test]
fn a_count_equals_that_of_the_result() {
    for name in [
        "graph.zv",
        "streamlines.zv",
        "mesh_tri.zv",
        "points_objects.zv",
    ] {
        let place = Place::of(name);
        let (result, count) = (place.json(&[]), place.json(&["--count"]));
        for key in ["level", "vertices", "objects", "links", "parts"] {
            assert_eq!(count.get(key), result.get(key), "{name} {key}");
        }
        // No rows: only the address, the counts and the cost.
        let printed = place.done(&["--count"]);
        let lines = printed.lines().take_while(|line| !line.starts_with("note"));
        assert_eq!(
            lines.filter(|line| !line.is_empty()).count(),
            3,
            "{printed}"
        );
    }
}

/// Each file holds as many rows as the count.
#[test]
fn every_format_contains_all_rows() {
    for name in [
        "graph.zv",
        "streamlines.zv",
        "mesh_tri.zv",
        "points_objects.zv",
    ] {
        let place = Place::of(name);
        for end in ["csv", "npz", "arrow", "parquet", "ply", "obj"] {
            let format = zvf_files::FileFormat::ALL.into_iter();
            let mut format = format.filter(|format| format.extension() == end);
            if !format.all(zvf_files::FileFormat::is_built) {
                continue;
            }
            let file = place.file(&format!("a.{end}"));
            let found = place.json(&["-o", file.to_str().unwrap()]);
            assert_eq!(found["output"], file.to_str().unwrap());
            assert_eq!(rows_of(&file), found["vertices"].as_u64(), "{name} {end}");
        }
    }
}

/// Returns the number of vertices in a file, if its format states it.
fn rows_of(file: &Path) -> Option<u64> {
    let rows = match file.extension()?.to_str()? {
        "csv" => fs::read_to_string(file).unwrap().lines().count() - 1,
        "obj" => {
            let text = fs::read_to_string(file).unwrap();
            text.lines().filter(|line| line.starts_with("v ")).count()
        }
        "ply" => {
            let bytes = fs::read(file).unwrap();
            let header = String::from_utf8_lossy(&bytes).into_owned();
            let mut lines = header.lines();
            let count = lines.find_map(|line| line.strip_prefix("element vertex "));
            count?.parse().unwrap()
        }
        "npz" => {
            let mut archive = zip::ZipArchive::new(File::open(file).unwrap()).unwrap();
            let size = archive.by_name("positions.npy").unwrap().size();
            // A header of 128 bytes, and three `f32` per row.
            usize::try_from(size - 128).unwrap() / 12
        }
        #[cfg(feature = "arrow")]
        "arrow" => {
            let reader = arrow_ipc::reader::FileReader::try_new(File::open(file).unwrap(), None);
            reader.unwrap().map(|batch| batch.unwrap().num_rows()).sum()
        }
        #[cfg(feature = "parquet")]
        "parquet" => {
            use parquet::file::reader::{FileReader, SerializedFileReader};
            let reader = SerializedFileReader::new(File::open(file).unwrap()).unwrap();
            let rows = reader.metadata().file_metadata().num_rows();
            usize::try_from(rows).unwrap()
        }
        _ => return None,
    };
    u64::try_from(rows).ok()
}

#[test]
fn an_empty_result_exits_with_1_only_on_request() {
    let place = Place::of("graph.zv");
    let far = ["--bbox", "500,500,500,600,600,600"];
    assert_eq!(place.json(&far)["vertices"], 0);
    let output = place.query(&[&far[..], &["--fail-empty", "--json"]].concat());
    assert_eq!(output.status.code(), Some(1));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["vertices"], 0);
    let output = place.query(&[&far[..], &["--fail-empty", "--count"]].concat());
    assert_eq!(output.status.code(), Some(1));
    let output = place.query(&["--fail-empty"]);
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn a_reversed_box_is_reported() {
    let place = Place::of("graph.zv");
    let output = place.query(&["--bbox", "1,1,1,0,2,2"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stderr).starts_with("warning: the box is empty: its lower bound of "));
    place.done(&["--bbox", "1,1,1,0,2,2", "--quiet"]);
}

#[test]
fn quiet_prints_only_losses() {
    let place = Place::of("graph.zv");
    let csv = place.file("a.csv");
    assert_eq!(place.done(&["--quiet", "-o", csv.to_str().unwrap()]), "");
    let names = ["a.csv", "a.links.csv", "a.metadata.json", "a.objects.csv"];
    assert_eq!(place.names(), names);
    let obj = place.file("a.obj");
    let output = place.query(&["--quiet", "-o", obj.to_str().unwrap()]);
    assert_eq!(text(&output.stdout), "");
    assert!(text(&output.stderr).starts_with("warning: left out: "));
}

/// One chunk is truncated.
#[test]
fn damage_fails_without_a_file_or_is_listed_on_request() {
    let place = Place::of("graph.zv");
    let cell = place.store.path().join("0/vertices/1.0.0/c/0");
    let bytes = fs::read(&cell).unwrap();
    fs::write(&cell, &bytes[..bytes.len() - 1]).unwrap();
    let path = place.file("a.csv");
    let csv = path.to_str().unwrap();
    let output = place.query(&["-o", csv]);
    assert_eq!(output.status.code(), Some(2));
    let says = text(&output.stderr);
    assert!(says.starts_with("error: 0/vertices"), "{says}");
    assert_eq!(place.names(), [""; 0]);
    let found = place.json(&["--keep-going", "-o", csv]);
    let missing = found["missing"].as_array().unwrap();
    assert!(!missing.is_empty());
    assert!(
        missing[0]["key"]
            .as_str()
            .unwrap()
            .starts_with("0/vertices")
    );
    assert!(missing[0]["reason"].is_string());
    assert_eq!(rows_of(Path::new(csv)), found["vertices"].as_u64());
    assert!(found["vertices"].as_u64() < Some(6));
}

#[test]
fn explain_prints_a_plan_and_reads_no_data() {
    let place = Place::of("graph.zv");
    assert!(!place.done(&["--explain"]).is_empty());
    assert!(place.json(&["--explain"])["plan"].is_object());
}
