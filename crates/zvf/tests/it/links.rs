//! Links of every recorded store, compared with what the reference decoded.

use serde_json::Value as Json;
use zvf::{Dataset, OpenOptions, Profile, ValidateOptions};
use zvf_catalog::{Catalog, CatalogError, LevelCache, Selection, StoredLinkFamily, StoredLinks};
use zvf_format::{numeric::Value, path::Delta};
use zvf_model::{
    fetch::{FetchProblem, Port},
    level::LevelId,
};
use zvf_query::{Column, ColumnValues};
use zvf_testkit::golden::{Golden, unhex};

use crate::{block_on, fetch::FromStore, migrated, validated};

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

fn files(golden: &Golden, store: &str) -> Vec<(String, Vec<u8>)> {
    let prefix = format!("{store}/");
    let files = golden.files().filter_map(|(path, bytes)| {
        let key = path.strip_prefix(&prefix)?;
        Some((key.to_owned(), bytes.to_vec()))
    });
    files.collect()
}

fn open(store: &str, files: Vec<(String, Vec<u8>)>, lists: bool) -> FromStore {
    let opened = OpenOptions::default().from_memory(files).unwrap();
    let dataset =
        block_on(Dataset::open(opened)).unwrap_or_else(|error| panic!("{store}: {error}"));
    FromStore {
        lists,
        ..FromStore::new(dataset)
    }
}

/// Calls `run` with a catalog of the store.
fn with<T>(fetch: &FromStore, run: impl AsyncFnOnce(Catalog<'_>) -> T) -> T {
    let levels = LevelCache::default();
    let catalog = Catalog {
        fetch: Port::new(fetch),
        layout: fetch.dataset.layout(),
        root: fetch.dataset.root(),
        levels: &levels,
    };
    block_on(run(catalog))
}

pub(crate) fn links(
    fetch: &FromStore,
    level: u32,
    delta: i32,
) -> Result<Option<StoredLinks>, CatalogError> {
    // Without a listing the names of all attributes are unknown.
    let columns = if fetch.lists {
        Selection::All
    } else {
        Selection::none()
    };
    with(fetch, async |catalog: Catalog<'_>| {
        let (level, delta) = (LevelId::new(level), Delta::new(delta));
        catalog.stored_links(level, delta, &columns, false).await
    })
}

fn deltas(fetch: &FromStore, level: u32) -> Vec<Delta> {
    with(fetch, async |catalog: Catalog<'_>| {
        let deltas = catalog.stored_link_deltas(LevelId::new(level)).await;
        deltas.unwrap()
    })
}

/// Formats records as text: `0.0.0:1 1.0.0:0`.
pub(crate) fn records(family: Option<&StoredLinkFamily>) -> Vec<String> {
    let Some(family) = family else {
        return Vec::new();
    };
    let record = |link| {
        let ends: Vec<String> = family
            .ends_of(link)
            .map(|(chunk, row)| format!("{chunk}:{row}"))
            .collect();
        ends.join(" ")
    };
    (0..family.len()).map(record).collect()
}

fn chunk(json: &Json) -> String {
    match json {
        Json::String(text) => text.clone(),
        list => {
            let numbers: Vec<String> = list
                .as_array()
                .unwrap()
                .iter()
                .map(ToString::to_string)
                .collect();
            numbers.join(".")
        }
    }
}

/// Formats recorded links as text, from either notation of chunks.
fn recorded(json: &Json) -> Vec<String> {
    let record = |record: &Json| {
        let ends: Vec<String> = record
            .as_array()
            .unwrap()
            .iter()
            .map(|end| format!("{}:{}", chunk(&end[0]), end[1]))
            .collect();
        ends.join(" ")
    };
    json.as_array().unwrap().iter().map(record).collect()
}

fn numbers(json: &Json, found: &mut Vec<f64>) {
    match json {
        Json::Array(list) => list.iter().for_each(|item| numbers(item, found)),
        number => found.push(number.as_f64().unwrap()),
    }
}

fn values(column: &Column) -> Vec<f64> {
    let ColumnValues::Numeric(rows) = &column.values else {
        panic!("{column:?}")
    };
    let view = rows.view().unwrap();
    let mut found = Vec::new();
    for row in 0..view.rows() {
        for at in 0..rows.width {
            found.push(match view.value(row, at).unwrap() {
                Value::Int(number) => i32::try_from(number).unwrap().into(),
                Value::UInt(number) => u32::try_from(number).unwrap().into(),
                Value::Float(number) => number,
                other => panic!("{other:?}"),
            });
        }
    }
    found
}

fn named<'a>(family: &'a StoredLinkFamily, name: &str) -> &'a Column {
    let mut columns = family.attributes.iter();
    columns.find(|column| column.name == name).unwrap()
}

fn delta(text: &str) -> i32 {
    text.parse().unwrap()
}

#[derive(Default)]
struct Tally {
    families: usize,
    records: usize,
    values: usize,
    refused: usize,
}

#[expect(clippy::print_stdout, reason = "`xtask conformance` shows these lines")]
fn report(archive: &str, tally: &Tally) {
    println!(
        "conformance: {archive}: {} families of {} links with {} values equal, {} refused",
        tally.families, tally.records, tally.values, tally.refused
    );
}

fn as_of_0_9(lists: bool) -> Tally {
    let golden = Golden::open("zvf-09");
    let mut tally = Tally::default();
    for (store, expected) in stores(&golden) {
        let fetch = open(&store, files(&golden, &store), lists);
        for (level, json) in expected["levels"].as_object().unwrap() {
            let families = json["links"].as_object();
            let number: u32 = level.parse().unwrap();
            let at = format!("{store}/{level}");
            let mut recorded_deltas: Vec<Delta> = families
                .into_iter()
                .flatten()
                .map(|(text, _)| Delta::new(delta(text)))
                .collect();
            recorded_deltas.sort_unstable();
            assert_eq!(deltas(&fetch, number), recorded_deltas, "{at}");
            for (text, family) in families.into_iter().flatten() {
                let at = format!("{at}/links/{text}");
                let expected = recorded(&family["records"]);
                let found = match links(&fetch, number, delta(text)) {
                    Err(CatalogError::Fetch(error)) if !lists => {
                        assert_eq!(error.problem, FetchProblem::Unlistable, "{at}: {error}");
                        tally.refused += 1;
                        continue;
                    }
                    found => found.unwrap_or_else(|error| panic!("{at}: {error:?}")),
                };
                let found = found.unwrap();
                assert_eq!(
                    found.notes.iter().find(|note| note.contains("declared")),
                    None
                );
                assert!(found.missing.is_empty(), "{at}");
                let [found] = found.families.as_slice() else {
                    panic!("{at}: {found:?}")
                };
                assert_eq!(records(Some(found)), expected, "{at}");
                assert_eq!(
                    Some(u64::from(found.width)),
                    family["policy"]["link_width"].as_u64()
                );
                assert_eq!(Some(found.directed), family["policy"]["directed"].as_bool());
                tally.families += 1;
                tally.records += expected.len();
                let attributes = family["attributes"].as_object();
                let count = attributes.map_or(0, serde_json::Map::len);
                assert_eq!(
                    found.attributes.len(),
                    if lists { count } else { 0 },
                    "{at}"
                );
                for (name, json) in attributes.into_iter().flatten().filter(|_| lists) {
                    let mut expected = Vec::new();
                    numbers(&json["data"], &mut expected);
                    let column = named(found, name);
                    assert_eq!(values(column), expected, "{at}/{name}");
                    assert_eq!(column.nulls, None, "{at}/{name}");
                    tally.values += expected.len();
                }
            }
        }
    }
    tally
}

#[test]
fn golden_links_09() {
    let tally = as_of_0_9(true);
    assert!(tally.families > 30 && tally.values > 50);
    report("zvf-09", &tally);
}

/// Every family is either found completely or rejected.
#[test]
fn golden_links_09_of_stores_that_cannot_list() {
    let tally = as_of_0_9(false);
    assert!(tally.families > 30 && tally.refused > 0);
    report("zvf-09, not listed", &tally);
}

/// Returns the rows of links inside chunks, by chunk.
fn inside(json: &Json) -> Vec<String> {
    let mut chunks: Vec<(Vec<i64>, String, &Json)> = json["chunks"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(chunk, groups)| {
            let coords = chunk.split('.').map(|number| number.parse().unwrap());
            (coords.collect(), chunk.clone(), groups)
        })
        .collect();
    chunks.sort_by(|left, right| left.0.cmp(&right.0));
    let mut records = Vec::new();
    for (_, chunk, groups) in chunks {
        for row in groups
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|group| group.as_array().unwrap())
        {
            let ends: Vec<String> = row
                .as_array()
                .unwrap()
                .iter()
                .map(|row| format!("{chunk}:{row}"))
                .collect();
            records.push(ends.join(" "));
        }
    }
    records
}

fn older(archive: &str) {
    let golden = Golden::open(archive);
    let mut tally = Tally::default();
    for (store, expected) in stores(&golden) {
        let Some(levels) = expected["levels"].as_object() else {
            continue;
        };
        let fetch = open(&store, files(&golden, &store), true);
        for (level, json) in levels {
            let number: u32 = level.parse().unwrap();
            let inner = json["links"].as_object();
            let crossing = json["cross_chunk_links"].as_object();
            let texts = inner
                .into_iter()
                .flatten()
                .chain(crossing.into_iter().flatten());
            let mut expected_deltas: Vec<Delta> =
                texts.map(|(text, _)| Delta::new(delta(text))).collect();
            expected_deltas.sort_unstable();
            expected_deltas.dedup();
            let found = deltas(&fetch, number);
            assert_eq!(found, expected_deltas, "{store}/{level}");
            for delta in found {
                let at = format!("{store}/{level}, delta {delta}");
                let text = delta.to_string();
                let found = links(&fetch, number, delta.levels())
                    .unwrap_or_else(|error| panic!("{at}: {error:?}"));
                let is_path = store.contains("lines.zv") && archive != "zvf-08";
                let known = found.as_ref().is_none_or(|found| found.rows_are_known);
                assert_eq!(known, !(is_path && text == "0"), "{at}");
                let mut families = found.iter().flat_map(|found| found.families.iter());
                for note in found.iter().flat_map(|found| &found.notes) {
                    assert!(!note.contains("declared"), "{at}: {note}");
                }
                if let Some(json) = inner.and_then(|inner| inner.get(&text)) {
                    let family = families.next();
                    let expected_records = inside(json);
                    assert_eq!(records(family), expected_records, "{at}");
                    tally.families += 1;
                    tally.records += expected_records.len();
                    tally.values += blobs(&expected, level, &text, family.unwrap(), &at);
                }
                let Some(json) = crossing.and_then(|crossing| crossing.get(&text)) else {
                    continue;
                };
                let family = families.next();
                let expected = recorded(&json["records"]);
                assert_eq!(records(family), expected, "{at}");
                tally.families += 1;
                tally.records += expected.len();
                let attributes = levels[level]["cross_chunk_link_attributes"].as_object();
                for (name, json) in attributes.into_iter().flatten() {
                    let mut expected = Vec::new();
                    let Some(json) = json.get(&text) else {
                        continue;
                    };
                    numbers(&json["values"]["data"], &mut expected);
                    let column = named(family.unwrap(), name);
                    assert_eq!(values(column), expected, "{at}/{name}");
                    assert_eq!(column.nulls, None, "{at}/{name}");
                    tally.values += expected.len();
                }
            }
        }
    }
    assert!(tally.families > 10 && tally.values > 0, "{archive}");
    report(archive, &tally);
}

/// Compares attributes of links inside chunks with the recorded payloads.
fn blobs(expected: &Json, level: &str, delta: &str, family: &StoredLinkFamily, at: &str) -> usize {
    let mut compared = 0;
    for column in &family.attributes {
        let prefix = format!("{level}/link_attributes/{}/{delta}/", column.name);
        let mut blobs: Vec<(Vec<i64>, Vec<u8>)> = expected["blobs"]
            .as_object()
            .into_iter()
            .flatten()
            .filter_map(|(path, hex)| {
                let chunk = path.strip_prefix(&prefix)?;
                let coords = chunk.split('.').map(|number| number.parse().unwrap());
                Some((coords.collect(), unhex(hex.as_str().unwrap())))
            })
            .collect();
        if blobs.is_empty() {
            continue;
        }
        blobs.sort_unstable();
        let blobs: Vec<u8> = blobs.into_iter().flat_map(|(_, bytes)| bytes).collect();
        let ColumnValues::Numeric(rows) = &column.values else {
            panic!("{column:?}")
        };
        assert_eq!(rows.bytes, blobs, "{at}/{}", column.name);
        assert_eq!(rows.len(), family.len());
        compared += rows.len();
    }
    compared
}

#[test]
fn golden_links_06() {
    older("zvf-06");
}

#[test]
fn golden_links_07() {
    older("zvf-07");
}

#[test]
fn golden_links_08() {
    older("zvf-08");
}

/// Gives the links inside chunks a header of one or two groups, and removes their fragments; returns
/// the number of cells.
fn with_headers(files: &mut Vec<(String, Vec<u8>)>) -> usize {
    let is_cell = |path: &str| {
        let names: Vec<&str> = path.split('/').collect();
        matches!(names.as_slice(), [_, "links", "0", cell, "c", "0"] if !cell.contains("__"))
    };
    let cells: Vec<String> = files.iter().map(|(path, _)| path.clone()).collect();
    let cells: Vec<String> = cells.into_iter().filter(|path| is_cell(path)).collect();
    for path in &cells {
        let node = path.replace("/c/0", "/zarr.json");
        let (_, node) = files.iter_mut().find(|(path, _)| *path == node).unwrap();
        let mut json: Json = serde_json::from_slice(node).unwrap();
        let codecs = json["codecs"].as_array_mut().unwrap();
        let is_packed = codecs.len() > 1;
        codecs.truncate(1);
        let (_, bytes) = files.iter().find(|(other, _)| other == path).unwrap();
        let rows = if is_packed {
            zstd::decode_all(&bytes[..]).unwrap()
        } else {
            bytes.clone()
        };
        let half = i64::try_from(rows.len() / 2).unwrap();
        // Both halves are rows of two or three ends.
        let header = match rows.len() % 96 {
            0 => vec![2, 0, half],
            _ => vec![1, 0],
        };
        let header = header.iter().flat_map(|number: &i64| number.to_le_bytes());
        let blob: Vec<u8> = header.chain(rows).collect();
        json["shape"] = vec![blob.len()].into();
        json["chunk_grid"]["configuration"]["chunk_shape"] = vec![blob.len()].into();
        let json = serde_json::to_vec(&json).unwrap();
        for (other, bytes) in files.iter_mut() {
            if other == path {
                bytes.clone_from(&blob);
            } else if *other == path.replace("/c/0", "/zarr.json") {
                bytes.clone_from(&json);
            }
        }
    }
    files.retain(|(path, _)| !path.contains("/link_fragments/"));
    cells.len()
}

/// Links inside chunks may declare their groups themselves, as in the 0.4 schema.
#[test]
fn links_with_a_header_of_groups_are_read_validated_and_migrated() {
    let mut count = 0;
    for archive in ["zvf-06", "zvf-07", "zvf-08"] {
        let golden = Golden::open(archive);
        for (store, _) in stores(&golden) {
            let plain = files(&golden, &store);
            let mut grouped = plain.clone();
            let cells = with_headers(&mut grouped);
            if cells == 0 {
                continue;
            }
            count += cells;
            let found = validated::findings(&grouped, &ValidateOptions::default());
            let healthy = validated::findings(&plain, &ValidateOptions::default());
            let more: Vec<&str> = found
                .iter()
                .filter(|line| !healthy.contains(line))
                .map(|line| &line[..9])
                .collect();
            assert!(
                more.iter()
                    .all(|code| ["ZV-L1-016", "ZV-L1-020"].contains(code)),
                "{store}: {found:?}"
            );
            assert!(more.contains(&"ZV-L1-016"), "{store}: {found:?}");
            let (plain, grouped) = (open(&store, plain, true), open(&store, grouped, true));
            let migrate = |fetch: &FromStore| {
                let migrated = migrated::migrated(&fetch.dataset, Profile::V09);
                FromStore::new(block_on(migrated).unwrap().0)
            };
            let inside = |fetch: &FromStore| {
                let links = links(fetch, 0, 0).unwrap().unwrap();
                let all = links.families.iter();
                all.flat_map(|family| records(Some(family)))
                    .collect::<Vec<_>>()
            };
            assert_eq!(inside(&grouped), inside(&plain), "{store}");
            assert_eq!(
                inside(&migrate(&grouped)),
                inside(&migrate(&plain)),
                "{store}"
            );
        }
    }
    assert!(count > 15, "{count}");
}
