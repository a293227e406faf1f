//! `zvf convert`, and `--strict`.

use std::{fmt::Write as _, fs, path::PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{round_trip::typed, stores::Bench, text, zvf};

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
        let words: Vec<String> = words
            .iter()
            .map(|word| {
                if word.contains('.') {
                    self.path(word).display().to_string()
                } else {
                    (*word).to_owned()
                }
            })
            .collect();
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
    let whole = fs::read(folder.path("tracts.trx")).unwrap();
    fs::write(folder.path("cut.trx"), &whole[..whole.len() - 40]).unwrap();
    let (code, said) = folder.call(&["convert", "cut.trx", "b.tck"]);
    assert!(
        code == Some(2) && said.contains("the zip archive is cut off or damaged"),
        "{said}"
    );
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

/// Such coordinates moved, and vertices of small faces became one, without a note.
#[test]
fn rounded_coordinates_are_listed() {
    let folder = Folder::new();
    let vertices = "x,y,z,object_id\n1000000,0,0,1\n1000000.01,0,0,1\n1000000,1,0,1\n";
    fs::write(folder.path("a.csv"), vertices).unwrap();
    fs::write(
        folder.path("a.links.csv"),
        "links[0],links[1],links[2]\n0,1,2\n",
    )
    .unwrap();
    // Coordinates of trk files count from the corner of the grid, so only far points are rounded.
    let far = "x,y,z,object_id\n0,0,0,1\n1000000.01,0,0,1\n";
    fs::write(folder.path("b.csv"), far).unwrap();
    let small = "x,y,z,object_id\n0.001234567890123,0.25,0,1\n0.002345678901234,0.25,0,1\n";
    fs::write(folder.path("s.csv"), small).unwrap();
    for (from, kind, to, count) in [
        ("a.csv", "mesh", "c.stl", 1),
        ("b.csv", "streamlines", "c.trk", 1),
        ("s.csv", "streamlines", "s.trk", 2),
    ] {
        let arguments = ["convert", from, to, "--kind", kind];
        let (code, said) = folder.call(&[&arguments[..], &["--strict"]].concat());
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains("are rounded to float32"), "{to}: {said}");
        let said = folder.run(&[&arguments[..], &["--json"]].concat());
        let said: Value = serde_json::from_str(&said).unwrap();
        let line = format!("{count} coordinates are rounded to float32");
        assert_eq!(said["left_out"][0], json!(line), "{to}: {said}");
    }
    // Coordinates of a file that were transformed are the same when transformed back.
    let said = folder.run(&["convert", "tracts.trk", "again.trk", "--json"]);
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(said["left_out"], json!([]));
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
    // What the reader leaves out is listed in the same form.
    let corners = "v 0 0 0\nv 1 0 0\nv 0 1 0\nvt 0 0\nf 1/1 2/1 3/1\n";
    fs::write(folder.path("a.obj"), corners).unwrap();
    let said = folder.run(&["convert", "a.obj", "a.stl", "--json"]);
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(said["left_out"], json!(["lines vt"]));
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
    assert!(
        said.contains("only .swc files and meshes are read together"),
        "{said}"
    );
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

/// A field without a text is null in every table.
#[test]
fn missing_text_is_converted() {
    let folder = Folder::new();
    fs::write(
        folder.path("cloud.csv"),
        "x,y,z,label\n0,0,0,a\n1,1,1,\n2,2,2,\"\"\n3,3,3,b\n",
    )
    .unwrap();
    let expected = "x,y,z,vertex.label\n0,0,0,a\n1,1,1,\n2,2,2,\"\"\n3,3,3,b\n";
    for (name, is_built) in [
        ("a.csv", true),
        ("a.npz", true),
        ("a.arrow", cfg!(feature = "arrow")),
        ("a.parquet", cfg!(feature = "parquet")),
    ] {
        if !is_built {
            continue;
        }
        folder.run(&["convert", "cloud.csv", name, "--kind=points", "--strict"]);
        folder.run(&["convert", name, "back.csv", "--kind=points", "--strict"]);
        let found = fs::read_to_string(folder.path("back.csv")).unwrap();
        assert_eq!(found, expected, "{name}");
    }
}

/// Attributes of fragments have a row for each vertex, and objects without a row have no values.
#[test]
fn attributes_of_objects_and_fragments_are_converted() {
    let folder = Folder::new();
    let points = "x,y,z,object_id,fragment.note\n0,0,0,1,a\n1,1,1,1,a\n2,2,2,2,\n3,3,3,1,a\n";
    fs::write(folder.path("cloud.csv"), points).unwrap();
    let read = |name: &str| fs::read_to_string(folder.path(name)).unwrap();
    folder.run(&["convert", "cloud.csv", "back.csv", "--kind=points"]);
    assert_eq!(read("back.csv"), points);
    let objects = "object_id,object.kind,object.size\n1,soma,4\n";
    fs::write(folder.path("cloud.objects.csv"), objects).unwrap();
    folder.run(&["convert", "cloud.csv", "back.csv", "--kind=points"]);
    assert_eq!(read("back.objects.csv"), format!("{objects}2,,\n"));
    let lines = points
        .replace(",object_id", ",part,object_id")
        .replace(",1,a", ",0,1,a")
        .replace(",2,\n", ",1,2,\n")
        .replace("3,3,3,0", "3,3,3,2");
    fs::write(folder.path("lines.csv"), &lines).unwrap();
    folder.run(&["convert", "lines.csv", "back.csv", "--kind=streamlines"]);
    // Each part becomes an object of its own.
    let lines = lines.replace("3,3,3,2,1", "3,3,3,2,3");
    assert_eq!(read("back.csv"), lines);
}

/// Coordinates are converted to the unit that a format implies. Other units are a loss.
#[test]
fn lengths_are_converted_to_the_unit_of_the_format() {
    let folder = Folder::new();
    let points = "x,y,z,object_id\n1500000,0,250000,3\n2000000,500000,0,3\n0,0,0,8\n750000,0,0,8\n";
    fs::write(folder.path("nm.csv"), points).unwrap();
    let create = |unit: &str| {
        let axes = format!("--axes=x:{unit},y:{unit},z:{unit}");
        let line = ["create", "a.zv", "--from", "nm.csv", "--kind=streamlines"];
        folder.run(&[&line[..], &["--overwrite", "--yes", &axes]].concat());
    };
    create("nanometer");
    folder.run(&["export", "precomputed", "a.zv", "a.layers"]);
    let skeletons = "a.layers/skeletons";
    let expected = "1.5,0.0,0.25\n2.0,0.5,0.0\n0.0,0.0,0.0\n0.75,0.0,0.0\n";
    for name in ["a.trk", "a.trx"] {
        let of_store = format!("store.{name}");
        for line in [
            &["convert", skeletons, name, "--kind=streamlines"][..],
            &["query", "a.zv", "-o", &of_store],
        ] {
            // Nothing but the ids of the objects, which the format numbers from 0, is lost.
            let (_, said) = folder.call(&[line, &["--strict"]].concat());
            let (_, format) = name.split_at(2);
            let lost = format!("lack: object_id: not supported by {format}; choose another format");
            assert!(said.contains(&lost), "{said}");
            folder.run(line);
        }
        for name in [name.to_owned(), format!("store.{name}")] {
            folder.run(&["convert", &name, "back.csv"]);
            let table = fs::read_to_string(folder.path("back.csv")).unwrap();
            let rows = table.lines().skip(1).map(|line| {
                let fields: Vec<&str> = line.split(',').take(3).collect();
                fields.join(",") + "\n"
            });
            assert_eq!(rows.collect::<String>(), expected, "{name}: {table}");
        }
    }
    create("degree");
    let (code, said) = folder.call(&["query", "a.zv", "-o", "b.trk", "--strict"]);
    assert_eq!(code, Some(2), "{said}");
    let line = "unit degree of axis x: trk holds millimetres";
    assert!(said.contains(line), "{said}");
    assert!(!folder.path("b.trk").exists());
}

#[test]
fn coordinates_of_ply_may_have_other_names() {
    let files = Folder::new();
    let text = "ply\nformat ascii 1.0\nelement vertex 2\nproperty float px\nproperty float py\n\
                property float pz\nproperty float q\nend_header\n0 1 2 3\n4 5 6 7\n";
    fs::write(files.path("a.ply"), text).unwrap();
    let (code, said) = files.call(&["convert", "a.ply", "a.csv"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("without x, and with px, py, pz, q"), "{said}");
    assert!(said.contains("--rename px=x"), "{said}");
    let names = [
        "--rename", "px=x", "--rename", "py=y", "--rename", "pz=z", "--rename", "q=r",
    ];
    files.run(&[&["convert", "a.ply", "a.csv"][..], &names].concat());
    let table = String::from_utf8(files.bytes("a.csv")).unwrap();
    assert_eq!(table, "x,y,z,vertex.r\n0.0,1.0,2.0,3.0\n4.0,5.0,6.0,7.0\n");
}

#[test]
fn tractograms_are_written_in_the_grid_of_an_image() {
    let files = Folder::new();
    let mut image = vec![0; 352];
    let mut put = |at: usize, value: &[u8]| image[at..at + value.len()].copy_from_slice(value);
    put(0, &348_i32.to_le_bytes());
    for (at, value) in [
        (40, 3_i16),
        (42, 4),
        (44, 5),
        (46, 6),
        (70, 2),
        (72, 8),
        (254, 1),
    ] {
        put(at, &value.to_le_bytes());
    }
    put(108, &352_f32.to_le_bytes());
    let rows = [
        [2.0, 0.0, 0.0, -3.0],
        [0.0, 2.0, 0.0, -4.0],
        [0.0, 0.0, 2.0, -5.0_f32],
    ];
    for (at, value) in rows.concat().into_iter().enumerate() {
        put(280 + 4 * at, &value.to_le_bytes());
    }
    put(344, b"n+1\0");
    image.extend([0; 120]);
    fs::write(files.path("t1.nii"), image).unwrap();
    fs::write(files.path("a.csv"), "x,y,z,part\n0,0,0,0\n1,1,1,0\n").unwrap();
    let given = ["--reference", "t1.nii"];
    let create = [
        "create",
        "a.zv",
        "--kind",
        "streamlines",
        "--from",
        "a.csv",
        "--axes",
        "x:millimeter,y:millimeter,z:millimeter",
        "--quiet",
    ];
    files.run(&[&create[..], &given].concat());
    files.run(&["query", "a.zv", "-o", "a.trk"]);
    files.run(&["query", "a.zv", "-o", "a.tck"]);
    files.run(&[&["convert", "a.tck", "b.trk"][..], &given].concat());
    // The grid of the image replaces the one that is made up.
    files.run(&["convert", "a.tck", "c.trk"]);
    files.run(&[&["convert", "c.trk", "d.trk"][..], &given].concat());
    files.run(&["create", "c.zv", "--from", "c.trk", "--quiet"]);
    files.run(&[&["query", "c.zv", "-o", "e.trk"][..], &given].concat());
    for name in ["a.trk", "b.trk", "d.trk", "e.trk"] {
        let header = files.bytes(name);
        assert_eq!(&header[6..12], [4, 0, 5, 0, 6, 0], "{name}");
        let matrix: Vec<f32> = header[440..488]
            .chunks(4)
            .map(|it| f32::from_le_bytes(it.try_into().unwrap()))
            .collect();
        assert_eq!(matrix, rows.concat(), "{name}");
    }
    assert_ne!(&files.bytes("c.trk")[6..12], [4, 0, 5, 0, 6, 0]);
    let (_, said) = files.call(&["query", "a.zv", "-o", "f.tck", "--reference", "t1.nii"]);
    assert!(said.contains("tck files have no voxel grid"), "{said}");
}

#[test]
fn results_state_their_kind() {
    let bench = Bench::new();
    bench.file("a.csv", "x,y\n1,2\n3,4\n");
    bench.says(&["create", "@a.zv", "--kind", "points", "--from", "@a.csv"]);
    for end in typed().into_iter().chain(["csv"]) {
        let (result, store) = (format!("@b.{end}"), format!("@{end}.zv"));
        bench.says(&["query", "@a.zv", "-o", &result]);
        bench.says(&["create", &store, "--from", &result]);
        assert_eq!(
            bench.json(&["info", &store])["geometry"],
            json!(["point_cloud"])
        );
        bench.says(&["convert", &result, "@b.ply"]);
    }
    let said = bench.refused(&["create", "@b.zv", "--from", "@a.csv"]);
    assert!(said.contains("--kind points"), "{said}");
}

/// Regression test: the direction of edges in `.graphml` files, and in results, was lost.
#[test]
fn the_direction_of_edges_is_kept() {
    let bench = Bench::new();
    let node = |id: &str, at: i32| {
        format!("<node id=\"{id}\"><data key=\"x\">{at}</data><data key=\"y\">{at}</data></node>")
    };
    let text = |direction: &str| {
        format!(
            "<?xml version=\"1.0\"?><graphml><key id=\"x\" for=\"node\" attr.name=\"x\" \
             attr.type=\"double\"/><key id=\"y\" for=\"node\" attr.name=\"y\" attr.type=\"double\"/>\
             <graph edgedefault=\"{direction}\">{}{}<edge source=\"b\" target=\"a\"/></graph></graphml>",
            node("a", 1),
            node("b", 2)
        )
    };
    for (direction, is_directed) in [("directed", true), ("undirected", false)] {
        bench.file("a.graphml", &text(direction));
        let create = ["create", "@a.zv", "--overwrite", "--from"];
        bench.says(&[&create[..], &["@a.graphml"]].concat());
        let directed = || bench.json(&["info", "@a.zv"])["directed"].clone();
        assert_eq!(directed(), is_directed);
        let said = bench.says(&["info", "@a.zv"]);
        assert_eq!(said.contains("directed"), is_directed, "{said}");
        for end in typed().into_iter().chain(["csv"]) {
            let file = format!("@b.{end}");
            bench.says(&["query", "@a.zv", "-o", &file]);
            bench.says(&[&create[..], &[&file]].concat());
            assert_eq!(directed(), is_directed, "{end}");
        }
    }
}

#[test]
fn a_table_needs_a_kind() {
    let folder = Folder::new();
    let (code, said) = folder.call(&["convert", "tracts.csv", "a.trk"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("as in --kind points"), "{said}");
}

/// Returns a PLY file of points as `zvf` writes it, with more rows than a batch.
fn large_ply(kind_of_ids: &str, last: f64) -> Vec<u8> {
    let rows = 300_000_u32;
    let header = format!(
        "ply\nformat binary_little_endian 1.0\ncomment level 0\ncomment of a test\n\
         element vertex {rows}\nproperty float x\nproperty float y\nproperty float z\n\
         property {kind_of_ids} object_id\nproperty uchar red\nproperty uchar green\n\
         property uchar blue\nend_header\n"
    );
    let mut bytes = header.into_bytes();
    for row in 0..rows {
        let [low, high, ..] = row.to_le_bytes();
        for value in [f32::from(low), f32::from(high), 0.5] {
            bytes.extend(value.to_le_bytes());
        }
        let id = if row < 299_000 { f64::from(low) } else { last };
        match kind_of_ids {
            "int" => bytes.extend(format!("{id}").parse::<i32>().unwrap().to_le_bytes()),
            _ => bytes.extend(id.to_le_bytes()),
        }
        bytes.extend([low, high, 7]);
    }
    bytes
}

/// The types of the properties are those of all batches.
#[test]
fn points_of_ply_are_the_same_after_several_batches() {
    let folder = Folder::new();
    for (kind, last) in [("int", 9.0), ("double", 3e9)] {
        let bytes = large_ply(kind, last);
        fs::write(folder.path("a.ply"), &bytes).unwrap();
        folder.run(&["convert", "a.ply", "b.ply"]);
        assert!(folder.bytes("b.ply") == bytes, "{kind}");
        folder.run(&["convert", "a.ply", "c.ply", "--strict"]);
        assert!(folder.bytes("c.ply") == bytes, "{kind}");
    }
}

/// A truncated file leaves nothing behind.
#[test]
fn damage_in_a_later_batch_leaves_no_file() {
    let folder = Folder::new();
    let mut bytes = large_ply("int", 1.0);
    let at = bytes.len() - 15 - 4;
    bytes[at..at + 4].copy_from_slice(&f32::NAN.to_le_bytes());
    fs::write(folder.path("a.ply"), &bytes).unwrap();
    let before = fs::read_dir(folder.path(".")).unwrap().count();
    let (code, said) = folder.call(&["convert", "a.ply", "b.ply"]);
    assert_eq!(code, Some(2));
    assert!(
        said.contains("a.ply") && said.contains("a coordinate is NaN"),
        "{said}"
    );
    bytes.truncate(bytes.len() - 1);
    fs::write(folder.path("a.ply"), &bytes).unwrap();
    let (code, said) = folder.call(&["convert", "a.ply", "b.ply"]);
    assert_eq!(code, Some(2));
    assert!(
        said.contains("a.ply") && said.contains("are left"),
        "{said}"
    );
    assert_eq!(fs::read_dir(folder.path(".")).unwrap().count(), before);
}

/// A grid of `side` by `side` vertices, with two triangles for each square.
fn grid_ply(side: u32) -> String {
    let faces = 2 * (side - 1) * (side - 1);
    let mut text = format!(
        "ply\nformat ascii 1.0\nelement vertex {}\nproperty float x\nproperty float y\n\
         property float z\nproperty ushort height\nelement face {faces}\n\
         property list uchar int vertex_indices\nproperty short label\nend_header\n",
        side * side
    );
    for (row, column) in (0..side).flat_map(|row| (0..side).map(move |column| (row, column))) {
        writeln!(text, "{row} {column} {} {column}", row % 5).unwrap();
    }
    for (row, column) in (1..side).flat_map(|row| (1..side).map(move |column| (row, column))) {
        let [a, b, c, d] = [(1, 1), (1, 0), (0, 1), (0, 0)];
        let at = |(up, left): (u32, u32)| (row - up) * side + column - left;
        let [a, b, c, d] = [a, b, c, d].map(at);
        writeln!(text, "3 {a} {b} {c} {row}\n3 {c} {b} {d} {column}").unwrap();
    }
    text
}

/// Files of a store in batches, and of the same rows as a whole.
#[test]
fn stores_are_written_to_ply_in_batches_as_a_whole() {
    let folder = Folder::new();
    fs::write(folder.path("mesh.ply"), grid_ply(40)).unwrap();
    folder.run(&["convert", "tracts.csv", "points.ply", "--kind=points"]);
    for (name, kind) in [
        ("mesh.ply", "mesh"),
        ("tracts.trk", "streamlines"),
        ("points.ply", "points"),
    ] {
        folder.run(&[
            "create",
            "a.zv",
            "--from",
            name,
            "--chunk-shape=7,7,7",
            "--overwrite",
            "--yes",
        ]);
        folder.run(&["query", "a.zv", "-o", "batches.ply"]);
        folder.run(&["query", "a.zv", "-o", "a.npz"]);
        folder.run(&["convert", "a.npz", "whole.ply", &format!("--kind={kind}")]);
        assert!(
            folder.bytes("batches.ply") == folder.bytes("whole.ply"),
            "{name}"
        );
    }
    folder.run(&["query", "a.zv", "--where", "fa>9", "-o", "none.ply"]);
    let none = String::from_utf8(folder.bytes("none.ply")).unwrap();
    assert!(
        none.contains("element vertex 0\nproperty double x\n"),
        "{none}"
    );
}

/// Meshes that exceed the memory are read in batches. The store equals that of meshes that fit.
#[test]
fn meshes_larger_than_the_memory_are_stored() {
    let folder = Folder::new();
    fs::write(folder.path("mesh.ply"), grid_ply(80)).unwrap();
    let shape = ["--chunk-shape=20,20,20", "--yes"];
    let create = |store: &str, more: &[&str]| {
        folder.run(&[&["create", store, "--from", "mesh.ply"], &shape[..], more].concat());
        folder.run(&["validate", store]);
        folder.run(&["query", store, "-o", "a.ply"]);
        folder.bytes("a.ply")
    };
    let whole = create("whole.zv", &[]);
    assert!(create("parts.zv", &["--memory", "128KiB"]) == whole);
    let names = |store: &str| {
        let entries = fs::read_dir(folder.path(store)).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name());
        names.collect::<std::collections::BTreeSet<_>>()
    };
    // Nothing is left of the division.
    assert_eq!(names("parts.zv"), names("whole.zv"));
    // STL files are read as a whole.
    folder.run(&["convert", "mesh.ply", "mesh.stl"]);
    let (code, said) = folder.call(&["create", "b.zv", "--from", "mesh.stl", "--memory", "128KiB"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("but --memory allows"), "{said}");
}

/// Arrays of a file that is read as a whole are not decoded if they exceed the memory.
#[test]
fn arrays_larger_than_the_memory_are_refused() {
    let folder = Folder::new();
    let text = "<GIFTI><DataArray Intent=\"NIFTI_INTENT_POINTSET\" DataType=\"NIFTI_TYPE_FLOAT32\" \
         Dimensionality=\"2\" Dim0=\"100000\" Dim1=\"3\" Encoding=\"ASCII\"><Data>0 0 0</Data>\
         </DataArray></GIFTI>";
    fs::write(folder.path("a.gii"), text).unwrap();
    for (memory, reason) in [
        ("1MiB", "unpacks to more than 1048576 bytes"),
        ("2MiB", "12 found, 1200000 declared"),
    ] {
        let (code, said) = folder.call(&["create", "b.zv", "--from", "a.gii", "--memory", memory]);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains(reason), "{said}");
    }
}

/// Neurons that exceed the memory are read and written object by object.
#[test]
fn neurons_larger_than_the_memory_are_stored_and_written() {
    let folder = Folder::new();
    fs::create_dir(folder.path("cells.d")).unwrap();
    let names: Vec<String> = (0..12)
        .map(|cell| format!("{}.swc", 100 - 9 * cell))
        .collect();
    for (cell, name) in (0_u32..).zip(&names) {
        let samples = (1..=400_u32).map(|id| {
            let parent = i64::from(id / 2);
            let parent = if parent == 0 { -1 } else { parent };
            format!("{id} 3 {} {} {cell} 0.5 {parent}\n", id % 20, id / 20)
        });
        let text = format!("# cell {cell}\n{}", samples.collect::<String>());
        fs::write(folder.path("cells.d").join(name), text).unwrap();
    }
    let shape = "--chunk-shape=10,10,10";
    folder.run(&["create", "whole.zv", "--from", "cells.d", shape, "--yes"]);
    folder.run(&[
        "create", "parts.zv", "--from", "cells.d", shape, "--yes", "--memory", "256KiB",
    ]);
    folder.run(&["validate", "parts.zv"]);
    for (number, (store, memory)) in [
        ("whole.zv", "1GiB"),
        ("parts.zv", "1GiB"),
        ("parts.zv", "1MiB"),
    ]
    .into_iter()
    .enumerate()
    {
        let back = format!("back.{number}");
        fs::create_dir(folder.path(&back)).unwrap();
        let target = format!("{back}/{{name}}.swc");
        let said = folder.run(&["query", store, "-o", &target, "--memory", memory, "--json"]);
        let said: Value = serde_json::from_str(&said).unwrap();
        assert_eq!(
            (&said["vertices"], &said["objects"]),
            (&json!(4800), &json!(12))
        );
        assert_eq!(
            (said["files"].as_array().unwrap().len(), &said["left_out"]),
            (12, &json!([]))
        );
        for name in &names {
            let read = |from: &str| fs::read_to_string(folder.path(from).join(name)).unwrap();
            assert_eq!(read(&back), read("cells.d"), "{store} {memory}");
        }
    }
}
