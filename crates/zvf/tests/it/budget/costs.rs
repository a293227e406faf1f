//! The requests that counting takes.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};
use zvf::{Dataset, OpenOptions, Query};
use zvf_catalog::Selection;
use zvf_query::{VertexBudget, geometry::Bbox};
use zvf_testkit::stores::{Cells, Layers, Recipe, StoreKind, layers};

use super::total;
use crate::block_on;

fn made(cells: Cells) -> Layers {
    let recipe = Recipe {
        seed: 5,
        kind: StoreKind::Points,
        cells,
        size: 400,
        axes: 2,
        ..Recipe::default()
    };
    layers(&recipe, 2, false)
}

fn open(made: &Layers) -> Dataset {
    let files = made.fine.files.iter().cloned();
    let options = OpenOptions::default().record_requests(true);
    let store = options.from_memory(files).unwrap();
    let dataset = block_on(Dataset::open(store)).unwrap();
    dataset.store().take_request_log();
    dataset
}

/// Counts the requests of a query by level and array, without metadata.
fn requests(dataset: &Dataset, query: &Query) -> BTreeMap<String, usize> {
    block_on(dataset.count(query)).unwrap();
    let mut parts = BTreeMap::new();
    for read in dataset.store().take_request_log() {
        if let Some((part, _)) = read.key.as_str().split_once("/c/") {
            *parts.entry(part.to_owned()).or_default() += 1;
        }
    }
    parts
}

fn chunks(made: &Layers, level: u32) -> usize {
    super::rule::level(made, level).chunks().len()
}

fn parts(parts: &[(&str, usize)]) -> BTreeMap<String, usize> {
    let there = parts.iter().filter(|(_, count)| *count > 0);
    there
        .map(|(part, count)| ((*part).to_owned(), *count))
        .collect()
}

/// Counting reads one fragment index for each chunk of the level that fits and of the next finer
/// level, which does not fit. Other levels are not read because their declared counts are correct.
#[test]
fn counting_reads_one_fragment_index_per_chunk() {
    let made = made(Cells::Plain);
    let [fine, middle, top] = [0, 1, 2].map(|level| chunks(&made, level));
    let query = |max| {
        let query = Query::new().level(VertexBudget::new(max));
        query.columns(Selection::none()).owners(false)
    };
    // Level 1 is out of reach. All chunks of level 2 are read, and their fragments again because
    // the level does not declare that fragments tile chunks.
    let little = total(&made, 2, false);
    let drawn = super::rule::drawn(&made, false, little, None);
    assert_eq!(drawn.len(), 1, "{drawn:?}");
    let dataset = open(&made);
    let expected = [
        ("1/vertex_fragments", middle),
        ("2/vertex_fragments", top + top),
        ("2/vertices", top),
    ];
    assert_eq!(requests(&dataset, &query(little)), parts(&expected));
    // The counted indexes are cached.
    let expected = [("2/vertices", top)];
    assert_eq!(requests(&dataset, &query(little)), parts(&expected));
    let all = requests(&open(&made), &query(u64::MAX));
    assert_eq!(all["0/vertices"], fine);
    let expected = [
        ("0/vertex_fragments", all["0/vertex_fragments"]),
        ("0/vertices", fine),
    ];
    assert_eq!(all, parts(&expected));
}

/// A box counts only the chunks that it intersects.
#[test]
fn a_box_counts_only_the_chunks_it_intersects() {
    let made = made(Cells::Plain);
    let truth = &made.fine.truth;
    let at = &truth.vertices[0].position;
    let region = Bbox::new(at, at).unwrap();
    let query = Query::new()
        .level(VertexBudget::new(u64::MAX))
        .region(region);
    let requests = requests(&open(&made), &query.columns(Selection::none()));
    let read: usize = requests.values().sum();
    // A box at a border intersects several of the dozens of chunks.
    assert!(read <= 4 * 4, "{requests:?}");
    assert!(chunks(&made, 0) > 24);
}

/// A shard costs one request for its index and one for all requested cells.
#[test]
fn indexes_in_a_shard_take_two_requests() {
    let made = made(Cells::Sharded);
    let dataset = open(&made);
    let query = Query::new().level(VertexBudget::new(0));
    assert!(block_on(dataset.query(&query)).is_err());
    let mut shards: BTreeMap<String, usize> = BTreeMap::new();
    for read in dataset.store().take_request_log() {
        if read.key.as_str().contains("vertex_fragments/c/") {
            *shards.entry(read.key.to_string()).or_default() += 1;
        }
    }
    assert!(shards.values().all(|requests| *requests == 2), "{shards:?}");
    assert!(shards.len() < chunks(&made, 2));
}

/// `explain` reads only the counts, and its text contains all of them.
#[test]
fn explain_reads_only_the_counts() {
    let made = made(Cells::Plain);
    let dataset = open(&made);
    let max = total(&made, 1, false) + 1;
    let query = Query::new()
        .level(VertexBudget::new(max))
        .columns(Selection::none());
    let explained = block_on(dataset.explain(&query)).unwrap();
    let log = dataset.store().take_request_log();
    let cells: Vec<&str> = log
        .iter()
        .filter(|read| read.key.as_str().contains("/c/"))
        .map(|read| read.key.as_str())
        .collect();
    assert!(
        cells.iter().all(|key| key.contains("/vertex_fragments/c/")),
        "{cells:?}"
    );
    let counted: usize = (0..2).map(|level| chunks(&made, level)).sum();
    assert_eq!(cells.len(), counted);
    let explained_vertices: usize = explained
        .levels
        .iter()
        .map(|level| level.chunks.len())
        .sum();
    let vertices = explained
        .first
        .iter()
        .filter(|reads| reads.array.as_str().ends_with("vertices"))
        .map(|reads| reads.requests)
        .sum::<u64>();
    assert_eq!(vertices, explained_vertices as u64);
}

/// Declared counts only choose the level where counting starts.
#[test]
fn wrong_declared_counts_do_not_change_the_result() {
    let mut made = made(Cells::Plain);
    let max = [1, 2].map(|level| total(&made, level, false) + 7);
    let queries = max.map(|max| Query::new().level(VertexBudget::new(max)));
    let results = |made: &Layers| {
        let dataset = open(made);
        queries
            .each_ref()
            .map(|query| block_on(dataset.query(query)).unwrap())
    };
    let right = results(&made);
    for declared in [json!(0), json!(1_000_000), Json::Null] {
        for (key, bytes) in &mut made.fine.files {
            if ["0/zarr.json", "1/zarr.json", "2/zarr.json"].contains(&key.as_str()) {
                let mut node: Json = serde_json::from_slice(bytes).unwrap();
                node["attributes"]["zarr_vectors_level"]["vertex_count"] = declared.clone();
                *bytes = serde_json::to_vec(&node).unwrap();
            }
        }
        assert_eq!(results(&made), right, "{declared}");
    }
}
