//! Interchange files carry everything of a store: rows, groups, axes, reference system, name and
//! headers survive `query -o` followed by `create --from`.

use std::{collections::BTreeMap, fs, path::Path};

use serde_json::{Value, json};
use zvf::{
    AxisSpec, Column, CreateOptions, Design, Geometry, GeometryBuilder, GeometryKind,
    NumericColumn, VertexOwners, numeric::Kind,
};
use zvf_model::random::SplitMix64;

use crate::{round_trip::typed, stores::Bench, text, zvf};

/// Small random numbers.
struct Random(SplitMix64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0.next_u64() % limit
    }

    fn small(&mut self, limit: u64) -> u16 {
        u16::try_from(self.below(limit)).unwrap()
    }
}

fn numbers(name: &str, values: NumericColumn) -> Column {
    Column::new(name.to_owned(), values)
}

fn texts(name: &str, values: impl Iterator<Item = Option<&'static str>>) -> Column {
    Column::text(name.to_owned(), values.map(|text| text.map(str::to_owned)))
}

const WORDS: [Option<&str>; 5] = [Some("a"), None, Some("β, \"γ\""), Some(" "), Some("7")];

/// Random objects of a kind with attributes in every scope and with groups.
fn geometry(kind: GeometryKind, random: &mut Random) -> GeometryBuilder {
    let (mut positions, mut owners, mut links) = (Vec::new(), Vec::new(), Vec::new());
    let (mut offsets, mut ids) = (vec![0_u64], Vec::new());
    for object in 0..3 + i64::from(random.small(4)) {
        let id = object * 7 + 2;
        let vertices = match kind {
            GeometryKind::Lines => 2,
            _ => 3 + random.below(6),
        };
        for at in 0..vertices {
            positions.extend((0..3).map(|_| f32::from(random.small(3000)) / 100.0));
            let row = i64::try_from(owners.len()).unwrap();
            match kind {
                GeometryKind::Graphs | GeometryKind::Skeletons if at > 0 => {
                    links.extend([row, row - 1]);
                }
                GeometryKind::Mesh if at > 1 => links.extend([row - 2, row - 1, row]),
                _ => {}
            }
            owners.push(id);
        }
        offsets.push(u64::try_from(owners.len()).unwrap());
        ids.push(id);
    }
    let rows = owners.len();
    let mut geometry = Geometry::builder(NumericColumn::float32(3, positions));
    if kind.is_paths() {
        geometry = geometry.paths(offsets, ids.clone());
    } else {
        geometry.owners = VertexOwners::Vertices(owners);
    }
    if kind == GeometryKind::Mesh {
        geometry.links.width = 3;
    }
    geometry.links.ends = links;
    let mut rgb = NumericColumn::new(Kind::UInt8, 3);
    rgb.bytes = (0..rows * 3)
        .map(|_| u8::try_from(random.below(256)).unwrap())
        .collect();
    let words = |random: &mut Random| WORDS[usize::from(random.small(5))];
    geometry.vertex = vec![
        numbers("rgb", rgb),
        texts("label", (0..rows).map(|_| words(random))),
    ];
    let sizes = ids.iter().map(|_| f64::from(random.small(1000)) / 8.0);
    geometry.object = vec![
        numbers("size", NumericColumn::float64(1, sizes)),
        texts("title", ids.iter().map(|_| words(random))),
    ];
    geometry.objects = Some(ids.clone());
    let mut groups = BTreeMap::new();
    groups.insert(0, ids.iter().rev().copied().step_by(2).collect());
    groups.insert(2, vec![ids[0], ids[1]]);
    geometry.groups = groups;
    geometry.group = vec![
        texts("tract", [Some("left"), None, Some("right")].into_iter()),
        numbers("weight", NumericColumn::float64(1, [0.5, 1.5, -2.0])),
    ];
    geometry
}

fn design(kind: GeometryKind) -> Design {
    let axis = |name: &str, kind: &str, unit: Option<&str>| {
        let mut axis = AxisSpec::new(name).kind(kind);
        axis.unit = unit.map(str::to_owned);
        axis
    };
    let mut design = Design::new(kind).chunk_shape([10.0; 3]);
    design.axes = Some(vec![
        axis("east", "space", Some("micrometer")),
        axis("north", "space", None),
        axis("t", "time", Some("second")),
    ]);
    design.crs = Some(json!({"type": "EPSG", "code": 25832, "note": "σ"}).into());
    design.name = Some("Präparat 7".to_owned());
    let header = json!({"dimensions": [2, 3], "voxel_order": "RAS"});
    design.headers.insert("trk", header.into()).unwrap();
    for (scope, name, spec) in [
        (
            "vertex",
            "rgb",
            json!({"channel_names": ["r", "g", "b"], "description": "Färbung"}),
        ),
        (
            "object",
            "size",
            json!({"unit": "micrometer", "precision": 0.5}),
        ),
        ("group", "weight", json!({"description": "of the group"})),
    ] {
        let spec = spec.as_object().unwrap().clone();
        let of_scope = design.attribute_specs.entry(scope.to_owned()).or_default();
        of_scope.insert(name.to_owned(), spec);
    }
    design
}

async fn store(address: &str, kind: GeometryKind, seed: u64) {
    let geometry = geometry(kind, &mut Random(SplitMix64::new(seed)));
    zvf::create(
        address,
        geometry.build().unwrap(),
        design(kind),
        &CreateOptions::default(),
    )
    .await
    .unwrap();
}

#[track_caller]
fn run(arguments: &[&str]) -> String {
    let output = zvf(arguments);
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        text(&output.stderr)
    );
    text(&output.stdout).to_owned()
}

/// Returns the whole content of a store as csv: all files by name.
#[track_caller]
fn exported(store: &str, folder: &Path) -> BTreeMap<String, String> {
    fs::create_dir(folder).unwrap();
    run(&["query", store, "-o", folder.join("a.csv").to_str().unwrap()]);
    let files = fs::read_dir(folder).unwrap().map(|file| {
        let file = file.unwrap();
        let name = file.file_name().into_string().unwrap();
        (name, fs::read_to_string(file.path()).unwrap())
    });
    files.collect()
}

#[tokio::test]
async fn every_kind_in_every_format_keeps_everything() {
    for kind in GeometryKind::ALL {
        for seed in 1..=2 {
            let scratch = tempfile::tempdir().unwrap();
            let path = |name: &str| scratch.path().join(name).to_str().unwrap().to_owned();
            let source = path("source.zv");
            store(&source, kind, seed).await;
            let expected = exported(&source, &scratch.path().join("source"));
            let names: Vec<&str> = expected.keys().map(String::as_str).collect();
            for name in ["a.groups.csv", "a.group_attributes.csv", "a.metadata.json"] {
                assert!(names.contains(&name), "{names:?}");
            }
            let metadata: Value = serde_json::from_str(&expected["a.metadata.json"]).unwrap();
            assert_eq!(metadata["axes"][2]["type"], "time");
            assert_eq!(metadata["name"], "Präparat 7");
            assert_eq!(metadata["headers"]["trk"]["voxel_order"], "RAS");
            let attributes = &metadata["attributes"];
            assert_eq!(attributes["vertex"]["rgb"]["channel_names"][2], "b");
            assert_eq!(attributes["object"]["size"]["precision"], 0.5);
            assert_eq!(attributes["group"]["weight"]["description"], "of the group");
            for end in [&["csv"], &typed()[..]].concat() {
                let (file, copy) = (path(&format!("a.{end}")), path(&format!("{end}.zv")));
                run(&["query", &source, "-o", &file]);
                run(&[
                    "create",
                    &copy,
                    "--kind",
                    kind.name(),
                    "--from",
                    &file,
                    "--chunk-shape",
                    "10,10,10",
                ]);
                let found = exported(&copy, &scratch.path().join(end));
                assert_eq!(found, expected, "{} seed {seed} in {end}", kind.name());
            }
        }
    }
}

/// Options replace what the file says.
#[tokio::test]
async fn options_take_precedence_over_the_file() {
    let scratch = tempfile::tempdir().unwrap();
    let path = |name: &str| scratch.path().join(name).to_str().unwrap().to_owned();
    let (source, file, copy) = (path("source.zv"), path("a.npz"), path("copy.zv"));
    store(&source, GeometryKind::Points, 1).await;
    run(&["query", &source, "-o", &file]);
    run(&[
        "create",
        &copy,
        "--kind",
        "points",
        "--from",
        &file,
        "--name",
        "other",
        "--axes",
        "a,b,c:meter",
    ]);
    let found = exported(&copy, &scratch.path().join("copy"));
    let metadata: Value = serde_json::from_str(&found["a.metadata.json"]).unwrap();
    assert_eq!(metadata["name"], "other");
    assert_eq!(metadata["axes"][2]["unit"], "meter");
    assert_eq!(metadata["crs"]["code"], 25832);
}

#[tokio::test]
async fn members_outside_the_selection_are_noted() {
    let scratch = tempfile::tempdir().unwrap();
    let path = |name: &str| scratch.path().join(name).to_str().unwrap().to_owned();
    let (source, file) = (path("source.zv"), path("a.npz"));
    store(&source, GeometryKind::Streamlines, 1).await;
    let report = run(&["query", &source, "--object", "2", "-o", &file, "--json"]);
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["left_out"], json!([]));
    let notes = report["notes"].as_array().unwrap();
    let [line] = &notes[..] else {
        panic!("{notes:?}");
    };
    let line = line.as_str().unwrap();
    assert!(
        line.ends_with("of groups left out: not in the selection"),
        "{line}"
    );
}

/// A path that leaves a box and returns gives two parts, which may not be joined by a line.
#[tokio::test]
async fn clipped_paths_become_objects_of_their_own() {
    for end in [&["csv"], &typed()[..]].concat() {
        let scratch = tempfile::tempdir().unwrap();
        let path = |name: &str| scratch.path().join(name).to_str().unwrap().to_owned();
        let (source, file, copy) = (
            path("source.zv"),
            path(&format!("a.{end}")),
            path("copy.zv"),
        );
        let there_and_back = [
            1.0_f32, 1.0, 0.0, 9.0, 1.0, 0.0, 9.0, 2.0, 0.0, 1.0, 2.0, 0.0,
        ];
        let straight = [1.0_f32, 3.0, 0.0, 2.0, 3.0, 0.0];
        let positions = [&there_and_back[..], &straight].concat();
        let paths = Geometry::builder(NumericColumn::float32(3, positions))
            .paths(vec![0, 4, 6], vec![5, 8])
            .object(vec![numbers("size", NumericColumn::float64(1, [0.5, 1.5]))])
            .groups(BTreeMap::from([(0, vec![5])]));
        let design = Design::new(GeometryKind::Streamlines).chunk_shape([10.0; 3]);
        zvf::create(
            &source,
            paths.build().unwrap(),
            design,
            &CreateOptions::default(),
        )
        .await
        .unwrap();
        let clip = ["--bbox", "0,0,-1,4,9,1", "--mode", "clip"];
        run(&[&["query", &source, "-o", &file], &clip[..]].concat());
        let report = run(&[
            "create",
            &copy,
            "--kind",
            "streamlines",
            "--from",
            &file,
            "--chunk-shape",
            "10,10,10",
            "--json",
        ]);
        let report: Value = serde_json::from_str(&report).unwrap();
        assert_eq!(report["objects"], 3, "{end}");
        let note = report["notes"][0].as_str().unwrap();
        assert!(note.starts_with("1 path is an additional part"), "{note}");

        let result = zvf::Dataset::open(&copy)
            .await
            .unwrap()
            .query(&zvf::Query::new())
            .await
            .unwrap();
        let parts = result.parts.unwrap();
        assert_eq!(parts.objects, [5, 8, 9], "{end}");
        assert_eq!(parts.offsets, [0, 2, 4, 6]);
        let found = exported(&copy, &scratch.path().join("copy"));
        assert_eq!(
            found["a.objects.csv"],
            "object_id,object.size,object.source_object\n5,0.5,5\n8,1.5,8\n9,0.5,5\n"
        );
        assert_eq!(found["a.groups.csv"], "group,object_id\n0,5\n0,9\n");
    }
}

/// Declarations follow the attributes: new names, attributes that are not selected, and options.
#[tokio::test]
async fn declarations_of_attributes_follow_the_attributes() {
    let scratch = tempfile::tempdir().unwrap();
    let path = |name: &str| scratch.path().join(name).to_str().unwrap().to_owned();
    let source = path("source.zv");
    store(&source, GeometryKind::Points, 1).await;
    let attributes = |store: &str| {
        let info: Value = serde_json::from_str(&run(&["info", store, "--json"])).unwrap();
        let list = info["attributes"].as_array().unwrap().clone();
        move |name: &str| {
            list.iter()
                .find(|it| it["name"] == name)
                .cloned()
                .unwrap_or_default()
        }
    };
    let of = attributes(&source);
    assert_eq!(of("rgb")["channel_names"], json!(["r", "g", "b"]));
    assert_eq!(of("rgb")["description"], "Färbung");
    assert_eq!(of("size")["unit"], "micrometer");
    for file in ["a.npz", "a.csv"] {
        let (file, copy) = (path(file), path(&format!("{file}.zv")));
        run(&["query", &source, "--select", "rgb", "-o", &file]);
        let create = ["create", &copy, "--kind", "points", "--from", &file];
        let more = ["--rename", "rgb=colour", "--attribute-unit", "colour=nit"];
        run(&[&create[..], &more].concat());
        let of = attributes(&copy);
        assert_eq!(of("size"), Value::Null);
        assert_eq!(of("colour")["description"], "Färbung");
        assert_eq!(of("colour")["unit"], "nit");
        assert_eq!(of("colour")["channel_names"], json!(["r", "g", "b"]));
        let shown = run(&["info", &copy]);
        assert!(shown.contains("× 3 (r, g, b)  nit   Färbung"), "{shown}");
        // Also if the rows are read in batches.
        let large = path(&format!("{file}.large.zv"));
        let create = ["create", &large, "--kind", "points", "--from", &file];
        let more = ["--memory", "1KiB", "--describe", "vertex.rgb= new "];
        if file.ends_with("npz") {
            run(&[&create[..], &more].concat());
            let of = attributes(&large);
            assert_eq!(of("rgb")["description"], "new");
            assert_eq!(of("rgb")["channel_names"], json!(["r", "g", "b"]));
        }
        let create = [
            "create",
            &path("no.zv"),
            "--kind",
            "points",
            "--from",
            &file,
        ];
        let output = zvf(&[&create[..], &["--describe", "rbg=red"]].concat());
        assert_eq!(output.status.code(), Some(2));
        let said = text(&output.stderr);
        let expected = "rbg is not an attribute of the file, which has vertex.rgb";
        assert!(said.contains(expected), "{said}");
    }
    let report = run(&["validate", &source]);
    assert!(!report.contains("attribute_specs"), "{report}");
}

/// Regression test: further parts of an object without a row had zeros, and looked measured.
#[test]
fn further_parts_of_an_object_without_attributes_have_none() {
    let bench = Bench::new();
    bench.file(
        "a.csv",
        "x,y,part,object_id\n1,1,0,1\n2,2,0,1\n3,3,1,1\n4,4,1,1\n5,5,2,2\n6,6,2,2\n",
    );
    bench.file(
        "a.objects.csv",
        "object_id,object.a,object.k,object.t\n2,5,3,hello\n",
    );
    let kind = "streamlines";
    bench.says(&["create", "@a.zv", "--kind", kind, "--from", "@a.csv"]);
    let tables = bench.result("@a.zv", &["--object", "3"]);
    assert!(tables.ends_with("\n3,,,1,\n"), "{tables}");
}

/// Paths of two objects, in a group that has both and in one without members.
const PATHS: [(&str, &str); 4] = [
    (
        "a.csv",
        "x,y,z,part,object_id\n0,0,0,0,0\n1,1,1,0,0\n2,2,2,1,1\n3,3,3,1,1\n",
    ),
    ("a.objects.csv", "object_id,object.rank\n0,5\n1,8\n"),
    ("a.groups.csv", "group,object_id\n0,0\n0,1\n"),
    (
        "a.group_attributes.csv",
        "group,group.name,group.weight\n0,full,1.0\n1,empty,2.0\n",
    ),
];

fn grouped(words: &[&str]) -> Bench {
    let bench = Bench::new();
    for (name, text) in PATHS {
        bench.file(name, text);
    }
    create(&bench, words);
    bench
}

fn create(bench: &Bench, words: &[&str]) {
    let line = [
        "create",
        "@a.zv",
        "--from",
        "@a.csv",
        "--kind",
        "streamlines",
    ];
    bench.says(&[&line, words, &["--quiet"]].concat());
}

/// Replaces the values below a node by bytes that cannot be decoded.
fn damage(bench: &Bench, node: &str) {
    let mut folders = vec![bench.path("a.zv").join(node)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.file_name().unwrap() != "zarr.json" {
                fs::write(path, [0xff; 5]).unwrap();
            }
        }
    }
}

/// A selection by a group kept this group alone.
#[test]
fn objects_selected_by_a_group_stay_in_their_other_groups() {
    let bench = Bench::new();
    for (name, text) in PATHS {
        bench.file(name, text);
    }
    bench.file("a.groups.csv", "group,object_id\n0,0\n0,1\n1,1\n2,0\n");
    bench.file(
        "a.group_attributes.csv",
        "group,group.name\n0,both\n1,two\n2,one\n",
    );
    create(&bench, &[]);
    for file in ["@b.csv", "@b.npz", "@b.trx"] {
        let query = ["query", "@a.zv", "--group", "two", "-o", file, "--quiet"];
        assert_eq!(bench.code(&query), Some(0));
        let store = format!("{file}.zv");
        bench.says(&["create", &store, "--from", file, "--quiet"]);
        for (group, members) in [("both", 1), ("two", 1)] {
            let found = bench.json(&["query", &store, "--group", group]);
            assert_eq!(found["objects"], members, "{file}, {group}");
        }
    }
}

/// They were left out with a line, and the exit code was 0.
#[test]
fn damaged_tables_beside_a_selection_are_errors() {
    for words in [&[][..], &["--no-seal"]] {
        for node in ["0/groups", "0/group_attributes/weight"] {
            let bench = grouped(words);
            damage(&bench, node);
            for file in ["@b.csv", "@b.npz", "@b.trx", "@b.trk", "@b.ply"] {
                if file.ends_with("ply") && node != "0/groups" {
                    // The format cannot hold groups, so the query reads only whether there are any.
                    continue;
                }
                let line = ["query", "@a.zv", "-o", file, "--quiet"];
                let output = bench.run(&line);
                assert_ne!(output.status.code(), Some(0), "{node}, {file}: {output:?}");
                assert!(!bench.names().contains(&file[1..].to_owned()), "{file}");
                let kept = bench.run(&[&line[..], &["--keep-going"]].concat());
                assert_eq!(kept.status.code(), Some(0), "{node}, {file}: {kept:?}");
                let said = text(&kept.stderr);
                assert!(said.contains("left out: groups"), "{node}, {file}: {said}");
            }
        }
    }
}

/// A group without members that has a name was lost without a word, and its number counted as unused.
#[test]
fn groups_without_members_are_kept() {
    let bench = grouped(&[]);
    bench.says(&["query", "@a.zv", "-o", "@b.trx", "--strict", "--quiet"]);
    bench.says(&["create", "@b.zv", "--from", "@b.trx", "--quiet"]);
    bench.says(&["query", "@b.zv", "-o", "@c.csv", "--quiet"]);
    let groups = fs::read_to_string(bench.path("c.group_attributes.csv")).unwrap();
    assert!(
        groups.contains("empty") && groups.contains("2.0"),
        "{groups}"
    );
    let refused = bench.refused(&["query", "@a.zv", "-o", "@b.trk", "--strict", "--quiet"]);
    assert!(refused.contains("2 groups"), "{refused}");
    // The selection leaves out members, not groups.
    let line = ["query", "@a.zv", "--object", "1", "-o", "@d.trx", "--quiet"];
    assert_eq!(bench.code(&line), Some(0));
    bench.says(&["create", "@d.zv", "--from", "@d.trx", "--quiet"]);
    assert_eq!(bench.json(&["info", "@d.zv"])["groups"], 2);
}
