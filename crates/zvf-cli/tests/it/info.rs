//! `zvf info` as a user runs it.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use crate::{stores::Bench, text, unpack, zvf};

#[test]
fn info_shows_a_table() {
    let folder = tempfile::tempdir().unwrap();
    unpack("zvf-07", "graph.zv", folder.path());
    let address = folder.path().to_str().unwrap();
    let output = zvf(&["info", address]);
    assert_eq!(text(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
    let expected = "
  generation  0.7
  geometry    graph
  bounds      x 1 to 21
              y 1 to 3
              z 1 to 3
  positions   float32
  chunks      10 × 10 × 10

  level  vertices  chunks  objects  links  bytes
      0         6       3        1      6  9 370

  attribute      type
  vertex.radius  float32
  link.pair      int16
  link.weight    float32
  object.label   uint32
";
    assert_eq!(text(&output.stdout), format!("{address}{expected}"));
}

#[test]
fn info_prints_json() {
    let folder = tempfile::tempdir().unwrap();
    unpack("zvf-07", "graph.zv", folder.path());
    let output = zvf(&["info", "--json", folder.path().to_str().unwrap()]);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let level = json!({"level": 0, "vertices": 6, "chunks": 3, "objects": 1, "links": 6, "bytes": 9370,
            "behind": false, "additive": false});
    let attribute = |scope: &str, name: &str, kind: &str, channels: Option<u64>| {
        json!({"scope": scope, "name": name, "type": kind, "channels": channels,
            "channel_names": [], "unit": null, "description": null, "categories": null})
    };
    let axis = |name: &str| json!({"name": name, "type": "space", "unit": null});
    let expected = json!({
        "generation": "0.7",
        "profile": "0.7",
        "version": "0.7.0",
        "written_by": null,
        "converted_from": [],
        "name": null,
        "geometry": ["graph"],
        "axes": ["x", "y", "z"],
        "axis_details": [axis("x"), axis("y"), axis("z")],
        "winding_order": null,
        "directed": false,
        "conventions": {
            "links_convention": "explicit",
            "object_index_convention": "standard",
            "cross_chunk_strategy": "explicit_links",
            "cross_level_storage": "explicit",
        },
        "capabilities": [],
        "required_capabilities": [],
        "crs": null,
        "positions": "float32",
        "chunk_shape": [10.0, 10.0, 10.0],
        "bin_shape": [10.0, 10.0, 10.0],
        "codecs": [],
        "shard_shape": null,
        "attributes": [
            attribute("vertex", "radius", "float32", None),
            attribute("link", "pair", "int16", None),
            attribute("link", "weight", "float32", None),
            attribute("object", "label", "uint32", Some(1)),
        ],
        "groups": null,
        "bounds": [[1.0, 1.0, 1.0], [21.0, 3.0, 3.0]],
        "levels": [level],
        "notes": [],
    });
    assert_eq!(found, expected);
}

#[test]
fn errors_exit_with_2_and_give_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let address = folder.path().to_str().unwrap();
    let output = zvf(&["info", address]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(text(&output.stdout), "");
    let expected = format!(
        "error: {address} is not a Zarr store: it has no zarr.json; \
         give the root of a store, the folder whose zarr.json names zarr_vectors\n"
    );
    assert_eq!(text(&output.stderr), expected);
    assert_eq!(zvf(&["inform"]).status.code(), Some(2));
}

#[test]
fn stores_in_a_plain_folder_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["b.zv", "a.zv"] {
        fs::create_dir(folder.path().join(name)).unwrap();
        fs::write(folder.path().join(name).join("zarr.json"), "{}").unwrap();
    }
    fs::create_dir(folder.path().join("pictures")).unwrap();
    let address = folder.path().to_str().unwrap();
    let output = zvf(&["info", address]);
    assert_eq!(output.status.code(), Some(2));
    let expected = format!(
        "error: {address} is not a Zarr store: it has no zarr.json; give one of the stores in it: a.zv, b.zv\n"
    );
    assert_eq!(text(&output.stderr), expected);
}

/// Creates a store from a table and its side files, and describes it.
fn created(folder: &Path, kind: &str, create: &[&str], info: &[&str]) -> (String, Value) {
    let at = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let (out, from) = (at("out.zv"), at("in.csv"));
    let mut words = vec!["create", &out, "--kind", kind, "--from", &from];
    words.extend(create);
    let output = zvf(&words);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let mut words = vec!["info", &out];
    words.extend(info);
    let output = zvf(&words);
    assert!(output.status.success(), "{}", text(&output.stderr));
    words.push("--json");
    let json = serde_json::from_slice(&zvf(&words).stdout).unwrap();
    let (_, shown) = text(&output.stdout).split_once('\n').unwrap();
    (shown.to_owned(), json)
}

#[test]
fn info_describes_attributes_groups_and_space() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write(
        "in.csv",
        "x,y,object_id,fa,kind,big\n0,0,3,0.5,a,-9007199254740993\n1,1,3,,b,5\n2,3,4,0.25,a,7\n3,3,4,1.5,a,8\n",
    );
    write(
        "in.objects.csv",
        "object_id,length,bundle\n3,1.5,left\n4,2,right\n",
    );
    write("in.groups.csv", "group,object_id\n0,3\n1,4\n");
    let create = [
        "--axes=x:micrometer,y:micrometer",
        "--chunk-shape=8,8",
        "--shard=2,2",
        "--compression=zstd",
        "--missing=nan",
        "--name=Fibres",
    ];
    let (shown, json) = created(folder.path(), "streamlines", &create, &["--stats"]);
    let head = "  name        Fibres
  generation  0.9
  written by  zvf, transaction 0
  geometry    streamline
  bounds      x 0 to 3 micrometer
              y 0 to 3 micrometer
  positions   int64
  chunks      8 × 8
  codecs      vlen-bytes, zstd, crc32c
  shards      2 × 2 chunks
  groups      2
";
    assert!(shown.starts_with(head), "{shown}");
    let attributes = "
  attribute      type                  range
  vertex.big     int64                 -9007199254740993 to 8
  vertex.fa      float64               0.25 to 1.5, 1 missing
  vertex.kind    text of 2 categories
  object.bundle  text
  object.length  float64               1.5 to 2.0
";
    assert!(shown.ends_with(attributes), "{shown}");
    assert_eq!(json["groups"], 2);
    assert_eq!(json["axis_details"][1]["unit"], "micrometer");
    let expected = json!({
        "scope": "vertex", "name": "big", "type": "int64", "channels": 1, "channel_names": [],
        "unit": null, "description": null, "categories": null, "range": [-9_007_199_254_740_993_i64, 8], "nulls": 0,
    });
    assert_eq!(json["attributes"][0], expected);
}

/// One damaged attribute ended the command.
#[test]
fn statistics_name_damaged_attributes() {
    let folder = tempfile::tempdir().unwrap();
    unpack("zvf-07", "graph.zv", folder.path());
    let mut open = vec![folder.path().join("0/vertex_attributes/radius")];
    while let Some(path) = open.pop() {
        match path.is_dir() {
            true => open.extend(
                fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            ),
            false if path.ends_with("zarr.json") => {}
            false => fs::write(&path, [0]).unwrap(),
        }
    }
    let output = zvf(&["info", "--stats", "--json", folder.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let note = found["notes"][0].as_str().unwrap();
    assert!(note.starts_with("vertex.radius cannot be read: "), "{note}");
    for attribute in found["attributes"].as_array().unwrap() {
        let is_damaged = attribute["name"] == "radius";
        assert_eq!(attribute.get("range").is_none(), is_damaged, "{attribute}");
    }
}

/// Stores before 0.9 do not declare the channels of attributes; the values show them.
#[test]
fn statistics_find_undeclared_channels() {
    let folder = tempfile::tempdir().unwrap();
    unpack("zvf-07", "graph.zv", folder.path());
    let output = zvf(&["info", "--stats", "--json", folder.path().to_str().unwrap()]);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let pair = &found["attributes"][1];
    assert_eq!(
        (&pair["name"], &pair["channels"]),
        (&json!("pair"), &json!(2))
    );
    assert_eq!(found["attributes"][0]["channels"], 1);
}

#[test]
fn info_counts_stored_links_and_on_request_the_implied_ones() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write(
        "in.csv",
        "x,y,z,object_id\n0,0,0,1\n1,0,0,1\n2,0,0,1\n1,1,0,1\n9,0,0,1\n",
    );
    write("edges.csv", "links[0],links[1]\n1,0\n2,1\n3,1\n4,2\n");
    let edges = folder.path().join("edges.csv");
    let create = ["--links", edges.to_str().unwrap(), "--chunk-shape=8,8,8"];
    let (shown, json) = created(folder.path(), "skeletons", &create, &[]);
    let stored = json["levels"][0]["links"].as_u64().unwrap();
    assert!(stored < 4, "{json}");
    assert!(json["levels"][0].get("logical_links").is_none());
    assert!(shown.contains("--physical counts both"), "{shown}");
    let out = folder.path().join("out.zv");
    let words = ["info", out.to_str().unwrap(), "--physical"];
    let output = zvf(&words);
    let shown = text(&output.stdout);
    assert!(shown.contains("  links  stored links  "), "{shown}");
    let json: Value =
        serde_json::from_slice(&zvf(&[&words[..], &["--json"]].concat()).stdout).unwrap();
    assert_eq!(json["levels"][0]["logical_links"], 4);
    assert_eq!(json["levels"][0]["links"], stored);
}

/// The pipe closes early, for example in `zvf info | head`.
#[test]
fn a_closed_pipe_is_not_an_error() {
    let folder = tempfile::tempdir().unwrap();
    unpack("zvf-07", "graph.zv", folder.path());
    let mut command = Command::new(env!("CARGO_BIN_EXE_zvf"));
    command.args(["info", folder.path().to_str().unwrap()]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(text(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
}

/// `info` listed attributes of links to other levels, and a query then said that they do not exist.
#[test]
fn attributes_of_links_to_other_levels_are_not_those_of_the_level() {
    let bench = Bench::new();
    bench.file("a.csv", "x,y\n1,2\n3,4\n");
    bench.file(
        "a.links.csv",
        "links[0],links[1],link.own,link.other\n0,1,0.5,7\n",
    );
    let line = ["create", "@a.zv", "--from", "@a.csv", "--kind", "graphs"];
    bench.says(&[&line[..], &["--no-node-copy", "--no-seal", "--quiet"]].concat());
    let folder = bench.path("a.zv/0/link_attributes/other");
    fs::rename(folder.join("0"), folder.join("+1")).unwrap();
    let info = bench.json(&["info", "@a.zv"]);
    let attributes = info["attributes"].as_array().unwrap().iter();
    let names: Vec<&str> = attributes.map(|of| of["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["own"]);
    for name in ["other", "link.other"] {
        let refused = bench.refused(&["query", "@a.zv", "--select", name]);
        assert!(refused.contains("own"), "{refused}");
        assert_eq!(refused.matches("other").count(), 1, "{refused}");
    }
}
