//! `zvf export`, as a user runs it. `cargo xtask conformance --precomputed` has other
//! programs read the exports.

use std::{collections::BTreeMap, fmt::Write as _, fs, path::Path};

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::json;
use zvf_precomputed::{
    Annotation, AnnotationInfo, AnnotationList, PropertyValue, RecordLayout, ShardFile,
};

use crate::stores::Bench;

/// Creates 12 000 points, half of them in a small cluster, with a number and a word each.
fn bench() -> Bench {
    let bench = Bench::new();
    let mut table = "x,y,z,depth,kind\n".to_owned();
    for at in 0..12_000_u32 {
        let scale = if at % 2 == 0 { 1.0 } else { 0.05 };
        let [x, y, z] = [37_u32, 23, 11].map(|step| f64::from(at * step % 7919) / 79.19 * scale);
        let kind = ["soma", "axon"][usize::from(at % 3 == 0)];
        writeln!(table, "{x},{y},{z},{at},{kind}").unwrap();
    }
    bench.file("a.csv", &table);
    let line = ["create", "@a.zv", "--kind", "points", "--from", "@a.csv"];
    bench.says(&[&line[..], &["--chunk-shape", "30,30,30", "--quiet"]].concat());
    bench
}

#[test]
fn pages_contain_a_store() {
    let bench = bench();
    let written = bench.json(&["export", "viewer", "@viewer.html"]);
    let page = fs::read_to_string(bench.path("viewer.html")).unwrap();
    assert_eq!(written["bytes"], page.len());
    bench.says(&[
        "export", "viewer", "@a.html", "--inline", "@a.zv", "--quiet",
    ]);
    let inline = fs::read_to_string(bench.path("a.html")).unwrap();
    let (before, after) = inline.split_once("id=\"store\" data-name=\"a\">").unwrap();
    let (store, _) = after.split_once('<').unwrap();
    assert!(page.starts_with(before) && store.len() > 10_000);
    let zip = BASE64_STANDARD.decode(store).unwrap();
    fs::write(bench.path("a.zip"), zip).unwrap();
    let counted = |store| bench.says(&["query", store, "--count", "--json"]);
    assert_eq!(counted("@a.zip"), counted("@a.zv"));
    let why = bench.refused(&["export", "viewer", "@a.html"]);
    assert!(why.contains("a.html cannot be written"), "{why}");
    let why = bench.refused(&["export", "viewer", "@b.html", "--inline", "@b.zv"]);
    assert!(why.contains("b.zv does not exist"), "{why}");
}

/// Reads the annotations of every cell of every level.
fn annotations(folder: &Path) -> BTreeMap<u64, Annotation> {
    let info = AnnotationInfo::parse(&fs::read(folder.join("info")).unwrap()).unwrap();
    let layout = RecordLayout::of(&info);
    let mut found = BTreeMap::new();
    let mut add = |bytes: &[u8], limit: u64| {
        let list = AnnotationList::decode(bytes, &layout).unwrap();
        assert!(u64::try_from(list.ids.len()).unwrap() <= limit);
        for (id, annotation) in list.ids.into_iter().zip(list.annotations) {
            assert!(found.insert(id, annotation).is_none(), "{id} occurs twice");
        }
    };
    for level in &info.spatial {
        for file in fs::read_dir(folder.join(&level.key)).unwrap() {
            let bytes = fs::read(file.unwrap().path()).unwrap();
            let Some(spec) = level.sharding else {
                add(&bytes, level.limit);
                continue;
            };
            let shard = ShardFile::parse(spec, &bytes).unwrap();
            for key in shard.keys().unwrap() {
                add(&shard.get(key, 1 << 30).unwrap().unwrap(), level.limit);
            }
        }
    }
    found
}

#[test]
fn the_cells_of_all_levels_hold_each_point_once() {
    let bench = bench();
    for (target, more) in [("@files", &[][..]), ("@shards", &["--sharded"][..])] {
        let line = ["export", "precomputed", "@a.zv", target];
        let report = bench.json(&[&line[..], more].concat());
        assert_eq!(report["layers"][0]["items"], json!(12_000), "{report}");
        let found = annotations(&bench.path(&target[1..]).join("annotations"));
        assert!(found.keys().copied().eq(0..12_000));
        let result = bench.result("@a.zv", &[]);
        for (line, annotation) in result.lines().skip(1).zip(found.values()) {
            let words: Vec<&str> = line.split(',').collect();
            let number = |at: usize| words[at].parse::<f32>().unwrap();
            assert_eq!(annotation.coordinates, [number(0), number(1), number(2)]);
            assert!(words.len() > 4, "{line}");
            assert_eq!(annotation.properties.len(), 2);
            let is_word = |value: &PropertyValue| matches!(value, PropertyValue::Uint8(0 | 1));
            assert!(annotation.properties.iter().any(is_word), "{annotation:?}");
        }
    }
    let names = bench.names();
    let is_rest = |name: &&String| name.starts_with(".zvf-export");
    assert_eq!(names.iter().find(is_rest), None);
}

#[test]
fn a_folder_that_exists_is_kept() {
    let bench = bench();
    bench.file("out", "mine");
    let why = bench.refused(&["export", "precomputed", "@a.zv", "@out"]);
    assert!(why.contains("exists; name another folder"), "{why}");
    assert_eq!(fs::read_to_string(bench.path("out")).unwrap(), "mine");
}

#[test]
fn layers_that_the_kind_does_not_have_are_refused() {
    let bench = bench();
    let before = bench.names();
    let line = ["export", "precomputed", "@a.zv", "@out", "--layers"];
    let why = bench.refused(&[&line[..], &["meshes"]].concat());
    assert!(why.contains("annotations, segments"), "{why}");
    assert_eq!(bench.names(), before);
}

#[test]
fn a_damaged_store_leaves_no_folder() {
    let bench = bench();
    let mut folders = vec![bench.path("a.zv")];
    let mut damaged = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.components().any(|part| part.as_os_str() == "vertices")
                && path.extension().is_none()
            {
                fs::write(path, [0xff; 7]).unwrap();
                damaged += 1;
            }
        }
    }
    assert!(damaged > 0);
    let before = bench.names();
    bench.refused(&["export", "precomputed", "@a.zv", "@out"]);
    assert_eq!(bench.names(), before);
}

#[test]
fn a_link_shows_every_layer() {
    let bench = bench();
    let line = ["export", "precomputed", "@a.zv", "@out"];
    let report = bench.json(&[&line[..], &["--url", "http://localhost:8080/"]].concat());
    let link = report["neuroglancer"].as_str().unwrap();
    let (client, state) = link.split_once("/#!").unwrap();
    assert_eq!(client, "https://neuroglancer-demo.appspot.com");
    assert!(
        state.starts_with("%7B%22dimensions%22:%7B%22x%22"),
        "{state}"
    );
    assert!(
        state.contains("precomputed://http://localhost:8080/annotations"),
        "{state}"
    );
}
