//! Counts of every recorded store, compared with what the reference decoded.

use serde_json::Value as Json;
use zvf::{Dataset, LevelInfo, OpenOptions, StoreInfo};
use zvf_testkit::golden::Golden;

use crate::block_on;

/// Returns the recorded stores of an archive: folder and expectation.
pub(crate) fn stores(golden: &Golden) -> Vec<(String, Json)> {
    let paths = golden.files().map(|(path, _)| path);
    let found = paths.filter_map(|path| {
        let store = match path.strip_suffix(".expected.json") {
            Some(name) => format!("{name}.zv"),
            None => format!("{}/store.zarrvectors", path.strip_suffix("/expected.json")?),
        };
        Some((store, golden.json(path)))
    });
    found.collect()
}

pub(crate) fn open(golden: &Golden, store: &str) -> Dataset {
    let prefix = format!("{store}/");
    let files = golden.files();
    let objects = files.filter_map(|(path, bytes)| {
        let key = path.strip_prefix(&prefix)?;
        Some((key.to_owned(), bytes.to_vec()))
    });
    let opened = OpenOptions::default().from_memory(objects).unwrap();
    let dataset = block_on(Dataset::open(opened));
    dataset.unwrap_or_else(|error| panic!("{store}: {error}"))
}

fn info(golden: &Golden, store: &str) -> StoreInfo {
    let dataset = open(golden, store);
    block_on(dataset.info()).unwrap_or_else(|error| panic!("{store}: {error}"))
}

fn length(json: &Json) -> u64 {
    let length = json.as_array().map_or(0, Vec::len);
    u64::try_from(length).unwrap()
}

/// Iterates over the values of an object; empty for `null`.
fn each(json: &Json) -> impl Iterator<Item = &Json> {
    json.as_object()
        .into_iter()
        .flat_map(|fields| fields.values())
}

fn row_bytes(dtype: &Json, axes: usize) -> u64 {
    let size = match dtype.as_str() {
        Some("float64") => 8,
        Some("float32") => 4,
        other => panic!("dtype {other:?}"),
    };
    size * u64::try_from(axes).unwrap()
}

/// Counts the rows of a payload in hexadecimal digits.
fn rows(hex: &Json, row: u64) -> u64 {
    let bytes = u64::try_from(hex.as_str().unwrap().len()).unwrap() / 2;
    assert_eq!(bytes % row, 0);
    bytes / row
}

/// Counts the links of a family. A link stored with each endpoint counts once.
fn recorded_links(family: &Json, policy: &Json) -> u64 {
    match policy["store"].as_str() {
        Some("duplicate") => policy["num_links"].as_u64().unwrap(),
        _ => length(&family["records"]),
    }
}

fn level<'a>(info: &'a StoreInfo, name: &str) -> &'a LevelInfo {
    let mut levels = info.levels.iter();
    levels
        .find(|level| level.level.to_string() == name)
        .unwrap()
}

#[expect(clippy::print_stdout, reason = "`xtask conformance` shows these lines")]
pub(crate) fn report(archive: &str, seen: usize, equal: usize, of: &str, what: &str) {
    assert!(equal > 0);
    println!("conformance: {archive}: {seen} {of}, {equal} {what} equal");
}

#[test]
fn golden_counts_09() {
    let golden = Golden::open("zvf-09");
    let stores = stores(&golden);
    let mut counts = 0;
    for (store, expected) in &stores {
        let info = info(&golden, store);
        assert_eq!(info.profile, "0.9", "{store}");
        let levels = expected["levels"].as_object().unwrap();
        assert_eq!(info.levels.len(), levels.len(), "{store}");
        for (name, expected) in levels {
            let level = level(&info, name);
            let at = format!("{store}/{name}");
            let row = row_bytes(&expected["vertex_dtype"], info.axes.len());
            let cells = &expected["cells"]["vertices"];
            let vertices: u64 = each(cells).map(|hex| rows(hex, row)).sum();
            let draco = level.vertices.is_none();
            if !draco {
                assert_eq!(level.vertices, Some(vertices), "{at}");
            }
            assert_eq!(level.chunks, each(cells).count() as u64, "{at}");
            let links = expected["links"]
                .get("0")
                .map_or(0, |family| recorded_links(family, &family["policy"]));
            assert_eq!(level.links, Some(links), "{at}");
            let present = expected.get("objects").map(|objects| {
                let present = objects["present"].as_array().unwrap().iter();
                present
                    .filter(|present| **present == Json::Bool(true))
                    .count() as u64
            });
            assert_eq!(level.objects, present, "{at}");
            let prefix = format!("{at}/");
            let files = golden.files().filter(|(path, _)| path.starts_with(&prefix));
            let bytes: u64 = files.map(|(_, bytes)| bytes.len() as u64).sum();
            assert_eq!(level.bytes, bytes, "{at}");
            counts += 5;
        }
    }
    report("zvf-09", stores.len(), counts, "stores opened", "counts");
}

/// Returns the number of rows that the fragments of a chunk span.
fn extent(fragments: &Json) -> u64 {
    let fragments = fragments.as_array().unwrap().iter();
    let ends = fragments.map(|fragment| match fragment["range"].as_array() {
        Some(range) => range[0].as_u64().unwrap() + range[1].as_u64().unwrap(),
        None => each(fragment)
            .flat_map(|rows| rows.as_array().unwrap())
            .map(|row| row.as_u64().unwrap() + 1)
            .max()
            .unwrap_or(0),
    });
    ends.max().unwrap_or(0)
}

fn older(archive: &str) {
    let golden = Golden::open(archive);
    let stores = stores(&golden);
    let mut counts = 0;
    for (store, expected) in &stores {
        let info = info(&golden, store);
        let Some(levels) = expected["levels"].as_object() else {
            // The reference of that version could not read its own shards: only cells are recorded.
            let [level] = info.levels.as_slice() else {
                panic!("{store}: {info:?}")
            };
            let row = row_bytes(&Json::from("float32"), info.axes.len());
            let cells: Vec<u64> = expected["vlen"]["0/vertices"]
                .as_array()
                .unwrap()
                .iter()
                .map(|hex| rows(hex, row))
                .collect();
            assert_eq!(level.vertices, Some(cells.iter().sum()), "{store}");
            let chunks = cells.iter().filter(|rows| **rows > 0).count();
            assert_eq!(level.chunks, chunks as u64, "{store}");
            counts += 2;
            continue;
        };
        assert_eq!(info.levels.len(), levels.len(), "{store}");
        for (name, level_json) in levels {
            let level = level(&info, name);
            let at = format!("{store}/{name}");
            assert_eq!(level.chunks, length(&level_json["chunk_keys"]), "{at}");
            let row = row_bytes(&level_json["vertices_meta"]["dtype"], info.axes.len());
            let chunks = level_json["chunks"].as_object().unwrap().iter();
            let vertices: u64 = chunks
                .map(|(chunk, json)| {
                    let blob = expected["blobs"].get(format!("{name}/vertices/{chunk}"));
                    blob.map_or_else(|| extent(&json["fragments"]), |hex| rows(hex, row))
                })
                .sum();
            assert_eq!(level.vertices, Some(vertices), "{at}");
            let inside: u64 = each(&level_json["links"]["0"]["chunks"])
                .flat_map(|fragments| fragments.as_array().unwrap())
                .map(length)
                .sum();
            let between = &level_json["cross_chunk_links"]["0"];
            let between = recorded_links(between, &between["meta"]);
            assert_eq!(level.links, Some(inside + between), "{at}");
            let manifests = level_json.get("manifests").and_then(Json::as_array);
            let present = manifests.map(|manifests| {
                let present = manifests.iter().filter(|manifest| length(manifest) > 0);
                present.count() as u64
            });
            assert_eq!(level.objects, present, "{at}");
            counts += 4;
        }
    }
    report(archive, stores.len(), counts, "stores opened", "counts");
}

#[test]
fn golden_counts_06() {
    older("zvf-06");
}

#[test]
fn golden_counts_07() {
    older("zvf-07");
}

#[test]
fn golden_counts_08() {
    older("zvf-08");
}
