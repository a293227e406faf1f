//! The `Fetch` port of queries: cells fail individually, and nothing is fetched twice.

use core::{error::Error, ops::Range};
use std::sync::Arc;

use serde_json::{Value as Json, json};
use zvf_model::{
    fetch::{
        AnyArray, CellOptions, CellRef, CellRequest, CellSource, Fetch, FetchError, FetchProblem,
        Fetched,
    },
    key::Key,
    zarr::{Array, Node},
};
use zvf_store::{CellArray, CellReader, OpenOptions};

use crate::{
    cell::{described, frame, metadata, shard, sharded, vlen_array},
    support::{array, block_on, key, log, numbered, recorded},
};

type Objects<'a> = Vec<(&'a str, Vec<u8>)>;
type Responses = Vec<Result<Option<Fetched>, FetchError>>;

fn element(array: &CellArray, index: [u64; 2], part: Option<Range<u64>>) -> CellRequest {
    let cell = CellRef::Element(AnyArray::new(array.clone()), index.to_vec());
    CellRequest { cell, part }
}

fn child(text: &str, part: Option<Range<u64>>) -> CellRequest {
    let cell = CellRef::Child(key(text));
    CellRequest { cell, part }
}

/// Fetches cells from a store of `objects`. Returns the results and the requests.
fn cells(objects: &[(&str, Vec<u8>)], wanted: &[CellRequest]) -> (Responses, Vec<String>) {
    let reader = CellReader::new(recorded(objects));
    let responses = block_on(reader.cells(wanted, CellOptions::default()));
    assert_eq!(responses.len(), wanted.len());
    (responses, log(reader.store()))
}

#[expect(clippy::unnecessary_wraps, reason = "responses are compared with it")]
fn fetched(bytes: &[u8], size: usize) -> Option<Fetched> {
    Some(Fetched {
        bytes: bytes.to_vec().into(),
        size: u64::try_from(size).unwrap(),
    })
}

#[track_caller]
fn check_problem(
    response: &Result<Option<Fetched>, FetchError>,
    problem: FetchProblem,
    cause: &str,
) {
    let error = response.as_ref().unwrap_err();
    assert_eq!(error.problem, problem, "{error:?}");
    let causes = core::iter::successors(error.source(), |error| (*error).source());
    let chain: Vec<String> = causes.map(ToString::to_string).collect();
    assert!(chain.iter().any(|text| text.contains(cause)), "{chain:?}");
}

#[track_caller]
fn check_damaged(response: &Result<Option<Fetched>, FetchError>, cause: &str) {
    check_problem(response, FetchProblem::Damaged, cause);
}

fn blob_metadata(size: u64) -> Json {
    json!({
        "zarr_format": 3, "node_type": "array", "data_type": "uint8", "shape": [size],
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [size.max(1)]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "codecs": ["bytes"], "fill_value": 0,
    })
}

fn json_bytes(json: &Json) -> Vec<u8> {
    json.to_string().into_bytes()
}

const CHILD: &str = "0/vertices/0.0.0";
const CHILD_NODE: &str = "0/vertices/0.0.0/zarr.json";
const CHILD_CHUNK: &str = "0/vertices/0.0.0/c/0";

fn blob(payload: Vec<u8>) -> Objects<'static> {
    let size = u64::try_from(payload.len()).unwrap();
    let node = json_bytes(&blob_metadata(size));
    vec![(CHILD_NODE, node), (CHILD_CHUNK, payload)]
}

/// Fetches a child with the given metadata and chunk.
fn only_child(metadata: &Json, chunk: Option<(&str, Vec<u8>)>) -> Responses {
    let mut objects = vec![(CHILD_NODE, json_bytes(metadata))];
    objects.extend(chunk);
    cells(&objects, &[child(CHILD, None)]).0
}

#[test]
fn metadata_and_chunk_of_a_child_are_read_in_one_round_trip() {
    let wanted = [
        child(CHILD, None),
        child(CHILD, Some(10..20)),
        child(CHILD, None),
        child("0/vertices/1.0.0", Some(0..4)),
    ];
    let (responses, requested) = cells(&blob(numbered(100)), &wanted);
    let responses: Vec<_> = responses.into_iter().map(Result::unwrap).collect();
    let all = numbered(100);
    let whole = fetched(&all, 100);
    assert_eq!(
        responses,
        [whole.clone(), fetched(&all[10..20], 100), whole, None]
    );
    let want = [
        "0/vertices/0.0.0/zarr.json all bytes",
        "0/vertices/0.0.0/c/0 all bytes",
        "0/vertices/1.0.0/zarr.json all bytes",
        "0/vertices/1.0.0/c/0 all bytes",
    ];
    assert_eq!(requested, want);
}

#[test]
fn an_empty_child_exists_without_a_chunk() {
    let responses = only_child(&blob_metadata(0), None);
    assert_eq!(responses[0].as_ref().unwrap(), &fetched(b"", 0));
    let objects = [(CHILD_NODE, json_bytes(&blob_metadata(0)))];
    let (responses, _) = cells(
        &objects,
        &[child(CHILD, Some(0..1)), child(CHILD, Some(0..0))],
    );
    check_damaged(&responses[0], "bytes 0..1 of a payload of 0");
    assert_eq!(responses[1].as_ref().unwrap(), &fetched(b"", 0));
}

#[test]
fn a_child_without_metadata_or_chunk_is_damaged() {
    let (responses, _) = cells(&blob(numbered(9))[1..], &[child(CHILD, None)]);
    check_damaged(
        &responses[0],
        "0/vertices/0.0.0/zarr.json: is missing although 0/vertices/0.0.0/c/0 exists",
    );
    let (responses, _) = cells(&blob(numbered(9))[..1], &[child(CHILD, None)]);
    check_damaged(
        &responses[0],
        "0/vertices/0.0.0/c/0: is missing although 0/vertices/0.0.0/zarr.json exists",
    );
}

#[test]
fn a_child_may_be_compressed_or_shorter_than_its_chunk() {
    let mut packed = blob_metadata(500);
    packed["codecs"] = json!(["bytes", "zstd"]);
    let chunk = zstd::bulk::compress(&numbered(500), 3).unwrap();
    let responses = only_child(&packed, Some((CHILD_CHUNK, chunk)));
    assert_eq!(
        responses[0].as_ref().unwrap(),
        &fetched(&numbered(500), 500)
    );
    let mut longer = blob_metadata(10);
    longer["chunk_grid"]["configuration"]["chunk_shape"] = json!([16]);
    let responses = only_child(&longer, Some((CHILD_CHUNK, numbered(16))));
    assert_eq!(responses[0].as_ref().unwrap(), &fetched(&numbered(10), 10));
}

#[test]
fn the_chunk_of_a_child_may_have_an_unusual_key() {
    let mut other = blob_metadata(5);
    other["chunk_key_encoding"] = json!({"name": "v2"});
    let objects = [
        (CHILD_NODE, json_bytes(&other)),
        ("0/vertices/0.0.0/0", numbered(5)),
    ];
    let (responses, requested) = cells(&objects, &[child(CHILD, None), child(CHILD, Some(1..3))]);
    assert_eq!(responses[0].as_ref().unwrap(), &fetched(&numbered(5), 5));
    assert_eq!(responses[1].as_ref().unwrap(), &fetched(&[1, 2], 5));
    let want = [
        "0/vertices/0.0.0/zarr.json all bytes",
        "0/vertices/0.0.0/c/0 all bytes",
        "0/vertices/0.0.0/0 all bytes",
    ];
    assert_eq!(requested, want);
    check_damaged(
        &only_child(&other, None)[0],
        "0/vertices/0.0.0/0: is missing although 0/vertices/0.0.0/zarr.json exists",
    );
}

#[test]
fn a_child_that_is_not_a_blob_is_rejected() {
    let check_as = |problem: FetchProblem, field: &str, value: Json, cause: &str| {
        let mut metadata = blob_metadata(9);
        metadata[field] = value;
        let responses = only_child(&metadata, Some((CHILD_CHUNK, numbered(9))));
        check_problem(&responses[0], problem, cause);
        assert_eq!(responses[0].as_ref().unwrap_err().key, key(CHILD));
    };
    let check = |field: &str, value: Json, cause: &str| {
        check_as(FetchProblem::Damaged, field, value, cause);
    };
    let grid = |shape: Json| json!({"name": "regular", "configuration": {"chunk_shape": shape}});
    check("data_type", json!("int8"), "not an array of uint8");
    check("chunk_grid", grid(json!([8])), "not an array of one chunk");
    let codecs = json!(["bytes", "pcodec"]);
    let unsupported = FetchProblem::Unsupported;
    check_as(unsupported, "codecs", codecs, "cells cannot be read");
    check("shape", json!([-1]), "shape[0]");
    let mut flat = blob_metadata(9);
    flat["shape"] = json!([3, 3]);
    flat["chunk_grid"] = grid(json!([3, 3]));
    let responses = only_child(&flat, Some((CHILD_CHUNK, numbered(9))));
    check_damaged(&responses[0], "not an array of one dimension");
    let group = json!({"zarr_format": 3, "node_type": "group"});
    check_damaged(&only_child(&group, None)[0], "not an array of uint8");
    let (responses, _) = cells(&[(CHILD_NODE, b"{".to_vec())], &[child(CHILD, None)]);
    check_damaged(
        &responses[0],
        "0/vertices/0.0.0/zarr.json: $: not valid JSON",
    );
    for wrong in [8, 10] {
        let chunk = Some((CHILD_CHUNK, numbered(wrong)));
        let cause = format!("decodes to {wrong} bytes, not 9");
        check_damaged(&only_child(&blob_metadata(9), chunk)[0], &cause);
    }
}

#[test]
fn a_batch_shares_requests_and_fetches_nothing_twice() {
    let plain = vlen_array(None);
    let far = Some(50_000..50_010);
    let all = numbered(100_000);
    let objects = [
        ("0/vertices/c/0/0", frame(&all)),
        ("0/vertices/c/0/1", frame(b"whole")),
        ("0/vertices/c/0/2", frame(&all)),
    ];
    let wanted = [
        element(&plain, [0, 0], far.clone()),
        element(&plain, [0, 1], Some(1..3)),
        element(&plain, [0, 0], far),
        element(&plain, [0, 1], None),
        element(&plain, [0, 0], Some(50_005..50_020)),
        element(&plain, [0, 2], Some(0..10)),
        element(&plain, [0, 3], Some(0..10)),
        element(&plain, [0, 2], Some(4..4)),
    ];
    let (responses, requested) = cells(&objects, &wanted);
    let responses: Vec<_> = responses.into_iter().map(Result::unwrap).collect();
    let size = 100_000;
    let want = [
        fetched(&all[50_000..50_010], size),
        fetched(b"ho", 5),
        fetched(&all[50_000..50_010], size),
        fetched(b"whole", 5),
        fetched(&all[50_005..50_020], size),
        fetched(&all[..10], size),
        None,
        fetched(b"", size),
    ];
    assert_eq!(responses, want);
    let want = [
        "0/vertices/c/0/0 bytes 0..8",
        "0/vertices/c/0/0 bytes 50008..50028",
        "0/vertices/c/0/1 all bytes",
        "0/vertices/c/0/2 bytes 0..18",
        "0/vertices/c/0/3 bytes 0..18",
    ];
    assert_eq!(requested, want);
}

#[test]
fn elements_and_children_share_requests() {
    let node = key(CHILD);
    let array = CellArray::new(node, array(blob_metadata(40))).unwrap();
    let cell = CellRef::Element(AnyArray::new(array), vec![0]);
    let part = Some(3..9);
    let wanted = [child(CHILD, None), CellRequest { cell, part }];
    let (responses, requested) = cells(&blob(numbered(40)), &wanted);
    let responses: Vec<_> = responses.into_iter().map(Result::unwrap).collect();
    let all = numbered(40);
    assert_eq!(responses, [fetched(&all, 40), fetched(&all[3..9], 40)]);
    let want = [
        "0/vertices/0.0.0/zarr.json all bytes",
        "0/vertices/0.0.0/c/0 all bytes",
    ];
    assert_eq!(requested, want);
}

struct Foreign(Key, Arc<Array>);

impl CellSource for Foreign {
    fn node(&self) -> &Key {
        &self.0
    }

    fn metadata(&self) -> &Arc<Array> {
        &self.1
    }

    fn is_plain(&self) -> bool {
        true
    }
}

#[test]
fn cells_of_arrays_of_another_port_are_unavailable() {
    let foreign = AnyArray::new(Foreign(key("a"), Arc::new(array(blob_metadata(40)))));
    let cell = CellRef::Element(foreign, vec![0]);
    let wanted = [child(CHILD, None), CellRequest { cell, part: None }];
    let (responses, _) = cells(&blob(numbered(40)), &wanted);
    assert!(responses[0].is_ok());
    check_problem(
        &responses[1],
        FetchProblem::Unavailable,
        "another kind of port",
    );
}

#[test]
fn the_size_is_that_of_the_whole_payload() {
    let codecs = json!(["bytes"]);
    let numbers = described("n", metadata("int16", &json!([5, 5]), &codecs)).unwrap();
    let packed = vlen_array(Some("zstd"));
    let shards = sharded("end", None);
    let objects = [
        ("n/c/0/0", numbered(50)),
        (
            "0/vertices/c/0/0",
            zstd::bulk::compress(&frame(&numbered(70)), 3).unwrap(),
        ),
        (
            "0/vertices/c/1/1",
            shard([None, Some(&frame(&numbered(90))), None, None], "end"),
        ),
    ];
    let wanted = [
        element(&numbers, [0, 0], Some(1..2)),
        element(&packed, [0, 0], Some(1..2)),
        element(&shards, [2, 3], Some(1..2)),
    ];
    let (responses, _) = cells(&objects, &wanted);
    for (response, size) in responses.into_iter().zip([50, 70, 90]) {
        assert_eq!(response.unwrap(), fetched(&[1], size));
    }
}

#[test]
fn a_damaged_cell_does_not_affect_other_cells() {
    let plain = vlen_array(None);
    let packed = vlen_array(Some("zstd"));
    let objects = [
        ("0/vertices/c/0/0", frame(b"good")),
        ("0/vertices/c/0/1", frame(b"cut off")[..9].to_vec()),
        ("0/vertices/c/0/2", b"no zstd frame at all".to_vec()),
        (CHILD_NODE, b"{}".to_vec()),
    ];
    let wanted = [
        element(&plain, [0, 1], None),
        element(&plain, [0, 0], None),
        element(&plain, [0, 1], Some(0..7)),
        element(&packed, [0, 2], None),
        element(&packed, [0, 2], Some(0..1)),
        element(&plain, [0, 0], Some(0..5)),
        element(&plain, [1 << 22, 0], None),
        child(CHILD, None),
        element(&plain, [0, 0], Some(0..4)),
    ];
    let (responses, _) = cells(&objects, &wanted);
    check_damaged(&responses[0], "end inside item 0");
    check_damaged(&responses[2], "end inside item 0");
    check_damaged(&responses[3], "cannot be decoded");
    check_damaged(&responses[4], "cannot be decoded");
    check_damaged(&responses[5], "bytes 0..5 of a payload of 4");
    check_damaged(&responses[6], "no such cell");
    check_damaged(&responses[7], "missing");
    for good in [1, 8] {
        assert_eq!(responses[good].as_ref().unwrap(), &fetched(b"good", 4));
    }
    assert_eq!(responses[0].as_ref().unwrap_err().key, key("0/vertices"));
}

/// Builds a shard with a valid cell 0 and the given index entry for cell 1.
fn with_entry(offset: u64, length: u64) -> Vec<u8> {
    let good = frame(b"good");
    let mut object = shard([Some(&good), None, None, None], "end");
    let index = object.len() - 68;
    object[index + 16..index + 24].copy_from_slice(&offset.to_le_bytes());
    object[index + 24..index + 32].copy_from_slice(&length.to_le_bytes());
    let sum = crc32c::crc32c(&object[index..index + 64]).to_le_bytes();
    object[index + 64..].copy_from_slice(&sum);
    object
}

#[test]
fn a_damaged_shard_entry_does_not_affect_other_cells() {
    let shards = sharded("end", None);
    for ((offset, length), cause) in [
        ((u64::MAX - 1, 8), "is not a range"),
        ((4, 200), "the object ends before bytes 4..204"),
        ((200, 8), "the object ends before bytes 200..208"),
        ((0, 11), "end inside item 0"),
    ] {
        let objects = [("0/vertices/c/0/0", with_entry(offset, length))];
        let wanted = [
            element(&shards, [0, 1], None),
            element(&shards, [0, 0], None),
        ];
        let (responses, _) = cells(&objects, &wanted);
        check_damaged(&responses[0], cause);
        assert_eq!(responses[1].as_ref().unwrap(), &fetched(b"good", 4));
    }
    // The frame and its index entry differ in length.
    for (length, cause) in [(13, "1 bytes left"), (11, "end inside item 0")] {
        let objects = [("0/vertices/c/0/0", with_entry(0, length))];
        let (responses, _) = cells(&objects, &[element(&shards, [0, 1], Some(0..1))]);
        check_damaged(&responses[0], cause);
    }
}

#[test]
fn a_damaged_shard_does_not_affect_other_shards() {
    let shards = sharded("end", None);
    let good = shard([Some(&frame(b"good")), None, None, None], "end");
    let mut flipped = good.clone();
    *flipped.last_mut().unwrap() ^= 1;
    let objects = [
        ("0/vertices/c/0/0", good),
        ("0/vertices/c/0/1", flipped),
        ("0/vertices/c/1/0", numbered(67)),
    ];
    let wanted = [
        element(&shards, [0, 2], None),
        element(&shards, [2, 0], None),
        element(&shards, [0, 0], None),
        element(&shards, [2, 2], None),
        element(&shards, [0, 0], Some(1..3)),
    ];
    let (responses, requested) = cells(&objects, &wanted);
    check_damaged(&responses[0], "the index of the shard is damaged");
    check_damaged(&responses[1], "the object ends before the last 68 bytes");
    assert_eq!(responses[2].as_ref().unwrap(), &fetched(b"good", 4));
    assert_eq!(responses[3].as_ref().unwrap(), &None);
    assert_eq!(responses[4].as_ref().unwrap(), &fetched(b"oo", 4));
    let want = [
        "0/vertices/c/0/0 the last 68 bytes",
        "0/vertices/c/0/1 the last 68 bytes",
        "0/vertices/c/1/0 the last 68 bytes",
        "0/vertices/c/1/1 the last 68 bytes",
        "0/vertices/c/0/0 bytes 0..12",
    ];
    assert_eq!(requested, want);
}

#[test]
fn a_cell_over_the_budget_does_not_affect_other_cells() {
    let plain = vlen_array(None);
    let packed = vlen_array(Some("zstd"));
    let zeros = zstd::bulk::compress(&frame(&vec![0; 5000]), 3).unwrap();
    let options = OpenOptions::default().budget(1000).record_requests(true);
    let objects = [
        ("0/vertices/c/0/0", frame(&numbered(2000))),
        ("0/vertices/c/0/1", frame(b"small")),
        ("0/vertices/c/0/2", zeros),
    ];
    let reader = CellReader::new(options.from_memory(objects).unwrap());
    assert_eq!(reader.budget(), 1000);
    let wanted = [
        element(&plain, [0, 0], None),
        element(&packed, [0, 2], None),
        element(&plain, [0, 1], None),
    ];
    let responses = block_on(reader.cells(&wanted, CellOptions::default()));
    check_problem(&responses[0], FetchProblem::OverBudget, "2008 more bytes");
    check_problem(&responses[1], FetchProblem::OverBudget, "memory budget");
    assert_eq!(responses[2].as_ref().unwrap(), &fetched(b"small", 5));
    assert!(reader.store().activity().bytes_read < 100);
    // The range alone exceeds the budget, so nothing is requested.
    log(reader.store());
    let wanted = [element(&plain, [0, 0], Some(0..1500))];
    let responses = block_on(reader.cells(&wanted, CellOptions::default()));
    check_problem(&responses[0], FetchProblem::OverBudget, "budget of 1000");
    assert!(log(reader.store()).is_empty());
}

#[test]
fn one_damaged_node_fails_the_batch() {
    let group = json_bytes(&json!({"zarr_format": 3, "node_type": "group"}));
    let mut objects = blob(numbered(3));
    objects.push(("zarr.json", group));
    let reader = CellReader::new(recorded(&objects));
    let keys = [key(""), key("0/absent"), key(CHILD), key("")];
    let nodes = block_on(reader.nodes(&keys)).unwrap();
    let [
        Some(Node::Group(_)),
        None,
        Some(Node::Array(array)),
        Some(Node::Group(_)),
    ] = &nodes[..]
    else {
        panic!("{nodes:?}");
    };
    assert_eq!(array.shape, [3]);
    let want = [
        "zarr.json all bytes",
        "0/absent/zarr.json all bytes",
        "0/vertices/0.0.0/zarr.json all bytes",
    ];
    assert_eq!(log(reader.store()), want);
    objects.push(("0/zarr.json", b"[]".to_vec()));
    let reader = CellReader::new(recorded(&objects));
    let error = block_on(reader.nodes(&[key(""), key("0")])).unwrap_err();
    assert_eq!(error.problem, FetchProblem::Damaged);
    assert_eq!(error.to_string(), "0/zarr.json: is damaged");
}

#[test]
fn children_are_folders() {
    let mut objects = blob(numbered(3));
    objects.push(("0/links/zarr.json", b"{}".to_vec()));
    objects.push(("0/zarr.json", b"{}".to_vec()));
    let reader = CellReader::new(recorded(&objects));
    let children = |text| block_on(reader.children(&key(text))).unwrap();
    assert_eq!(children("0"), ["links", "vertices"]);
    assert_eq!(children("0/vertices"), ["0.0.0"]);
    assert!(children("0/nothing").is_empty());
}

#[test]
fn arrays_are_prepared_or_rejected() {
    let reader = CellReader::new(recorded(&[]));
    let good = Arc::new(array(blob_metadata(3)));
    let prepared = reader.array(&key("a"), Arc::clone(&good)).unwrap();
    assert_eq!(prepared.node(), &key("a"));
    assert_eq!(prepared.metadata(), &good);
    assert!(prepared.is_plain());
    let mut odd = blob_metadata(3);
    odd["codecs"] = json!(["pcodec"]);
    let error = reader.array(&key("a"), Arc::new(array(odd))).unwrap_err();
    assert_eq!(
        (error.problem, error.key),
        (FetchProblem::Unsupported, key("a"))
    );
}
