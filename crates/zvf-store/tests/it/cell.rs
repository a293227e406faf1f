//! Reading of whole cells and parts: plain, compressed and sharded.

use core::{ops::Range, time::Duration};

use serde_json::{Value as Json, json};
use zvf_format::vlen;
use zvf_model::fetch::{AnyArray, Fetch};
use zvf_store::{
    CellArray, CellArrayError, CellError, CellRead, CellReader, CodecsError, OpenOptions,
    ReadError, SimulatedNetwork,
};

use crate::support::{array as parsed, block_on, key, log, numbered, recorded};

pub(crate) fn metadata(data_type: &str, chunk_shape: &Json, codecs: &Json) -> Json {
    json!({
        "zarr_format": 3, "node_type": "array", "data_type": data_type, "shape": [1 << 22, 1 << 22],
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk_shape}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "codecs": codecs, "fill_value": "",
    })
}

pub(crate) fn described(node: &str, metadata: Json) -> Result<CellArray, CellArrayError> {
    CellArray::new(key(node), parsed(metadata))
}

pub(crate) fn vlen_array(compressor: Option<&str>) -> CellArray {
    let mut codecs = vec![json!({"name": "vlen-bytes"})];
    codecs.extend(compressor.map(|name| json!({"name": name})));
    let metadata = metadata("variable_length_bytes", &json!([1, 1]), &codecs.into());
    described("0/vertices", metadata).unwrap()
}

pub(crate) fn sharded(location: &str, compressor: Option<&str>) -> CellArray {
    described("0/vertices", sharded_metadata(location, compressor)).unwrap()
}

pub(crate) fn sharded_metadata(location: &str, compressor: Option<&str>) -> Json {
    let mut codecs = vec![json!({"name": "vlen-bytes"})];
    codecs.extend(compressor.map(|name| json!({"name": name})));
    let codecs = json!([{"name": "sharding_indexed", "configuration": {
        "chunk_shape": [1, 1],
        "codecs": codecs,
        "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}],
        "index_location": location,
    }}]);
    metadata("variable_length_bytes", &json!([2, 2]), &codecs)
}

const AT: [u64; 2] = [1, 2];
const KEY: &str = "0/vertices/c/1/2";

pub(crate) fn frame(payload: &[u8]) -> Vec<u8> {
    vlen::encode(&[payload]).unwrap()
}

fn cell<'a>(array: &'a CellArray, index: &'a [u64], part: Option<Range<u64>>) -> CellRead<'a> {
    CellRead { array, index, part }
}

#[test]
fn a_part_of_a_plain_cell_takes_one_request() {
    let array = vlen_array(None);
    let reader = CellReader::new(recorded(&[(KEY, frame(&numbered(1000)))]));
    let got = block_on(reader.read_one(cell(&array, &AT, Some(10..20)))).unwrap();
    assert_eq!(got.unwrap(), numbered(1000)[10..20]);
    assert_eq!(log(reader.store()), ["0/vertices/c/1/2 bytes 0..28"]);
}

#[test]
fn a_distant_part_is_read_without_the_bytes_before_it() {
    let array = vlen_array(None);
    let reader = CellReader::new(recorded(&[(KEY, frame(&numbered(100_000)))]));
    let part = Some(50_000..50_010);
    let got = block_on(reader.read_one(cell(&array, &AT, part))).unwrap();
    assert_eq!(got.unwrap(), numbered(100_000)[50_000..50_010]);
    let want = [
        "0/vertices/c/1/2 bytes 0..8",
        "0/vertices/c/1/2 bytes 50008..50018",
    ];
    assert_eq!(log(reader.store()), want);
}

#[test]
fn a_compressed_cell_is_read_completely() {
    let array = vlen_array(Some("zstd"));
    let chunk = zstd::bulk::compress(&frame(&numbered(1000)), 3).unwrap();
    let reader = CellReader::new(recorded(&[(KEY, chunk)]));
    let got = block_on(reader.read_one(cell(&array, &AT, Some(10..20)))).unwrap();
    assert_eq!(got.unwrap(), numbered(1000)[10..20]);
    assert_eq!(log(reader.store()), ["0/vertices/c/1/2 all bytes"]);
}

#[test]
fn numeric_cells_have_no_frame() {
    let codecs = json!([{"name": "bytes", "configuration": {"endian": "little"}}]);
    let array = described("a", metadata("float32", &json!([5, 5]), &codecs)).unwrap();
    let reader = CellReader::new(recorded(&[
        ("a/c/0/0", numbered(100)),
        ("a/c/0/1", numbered(99)),
    ]));
    let read = |index: &[u64], part| block_on(reader.read_one(cell(&array, index, part)));
    assert_eq!(
        read(&[0, 0], Some(4..8)).unwrap().unwrap(),
        numbered(100)[4..8]
    );
    assert_eq!(log(reader.store()), ["a/c/0/0 bytes 4..8"]);
    assert_eq!(read(&[0, 0], None).unwrap().unwrap(), numbered(100));
    let error = read(&[0, 1], None).unwrap_err();
    assert!(matches!(error, CellError::Decode { key, .. } if key.as_str() == "a/c/0/1"));
    let error = read(&[0, 0], Some(4..101)).unwrap_err();
    assert!(matches!(
        error,
        CellError::PartOutOfBounds { size: 100, .. }
    ));
}

#[test]
fn fixed_length_text_is_returned_as_bytes() {
    let text = json!({"name": "fixed_length_utf32", "configuration": {"length_bytes": 8}});
    let codecs = json!([{"name": "bytes", "configuration": {"endian": "little"}}]);
    let mut metadata = metadata("int8", &json!([1, 3]), &codecs);
    metadata["data_type"] = text;
    let array = described("a", metadata.clone()).unwrap();
    let reader = CellReader::new(recorded(&[
        ("a/c/0/0", numbered(24)),
        ("a/c/0/1", numbered(23)),
    ]));
    let read = |index: &[u64]| block_on(reader.read_one(cell(&array, index, None)));
    assert_eq!(read(&[0, 0]).unwrap().unwrap(), numbered(24));
    let error = read(&[0, 1]).unwrap_err();
    assert!(matches!(error, CellError::Decode { .. }), "{error:?}");
    metadata["codecs"] = json!(["vlen-utf8"]);
    let error = described("a", metadata).unwrap_err();
    assert_eq!(error, CellArrayError::Serialiser);
}

#[test]
fn an_empty_part_of_a_numeric_cell_distinguishes_absence() {
    let array = described("a", metadata("int8", &json!([5, 5]), &json!(["bytes"]))).unwrap();
    let reader = CellReader::new(recorded(&[("a/c/0/0", numbered(25))]));
    let read = |index: &[u64]| block_on(reader.read_one(cell(&array, index, Some(3..3))));
    assert_eq!(read(&[0, 0]).unwrap().unwrap(), "");
    assert_eq!(read(&[0, 1]).unwrap(), None);
}

#[test]
fn an_absent_cell_is_none() {
    for array in [
        vlen_array(None),
        vlen_array(Some("gzip")),
        sharded("end", None),
    ] {
        let reader = CellReader::new(recorded(&[]));
        for part in [None, Some(0..4), Some(3..3)] {
            let got = block_on(reader.read_one(cell(&array, &AT, part))).unwrap();
            assert!(got.is_none());
        }
    }
}

#[test]
fn cells_of_several_arrays_are_read_in_one_batch() {
    let (plain, packed) = (vlen_array(None), {
        let codecs = json!([{"name": "vlen-bytes"}, {"name": "gzip"}]);
        let metadata = metadata("variable_length_bytes", &json!([1, 1]), &codecs);
        described("0/links", metadata).unwrap()
    });
    let reader = CellReader::new(recorded(&[(KEY, frame(b"abc"))]));
    let cells = [
        cell(&packed, &AT, None),
        cell(&plain, &AT, None),
        cell(&plain, &AT, None),
    ];
    let cells = block_on(reader.read(&cells)).unwrap();
    let got: Vec<Option<&[u8]>> = cells.iter().map(Option::as_deref).collect();
    assert_eq!(got, [None, Some(&b"abc"[..]), Some(&b"abc"[..])]);
    assert_eq!(reader.store().activity().requests, 2);
}

#[track_caller]
fn check_error(object: Vec<u8>, part: Option<Range<u64>>, is: impl Fn(&CellError) -> bool) {
    let array = vlen_array(None);
    let reader = CellReader::new(recorded(&[(KEY, object)]));
    let error = block_on(reader.read_one(cell(&array, &AT, part))).unwrap_err();
    assert!(is(&error), "{error:?}");
}

#[test]
fn a_damaged_frame_is_rejected() {
    let good = frame(&numbered(20));
    let is_frame = |e: &CellError| matches!(e, CellError::Frame { key, .. } if key.as_str() == KEY);
    let is_cut = |e: &CellError| matches!(e, CellError::Read(ReadError::Truncated { .. }));
    let is_part = |e: &CellError| matches!(e, CellError::PartOutOfBounds { .. });
    check_error(good[..27].to_vec(), None, is_frame);
    check_error([&good[..], &[0]].concat(), None, is_frame);
    check_error(good[..7].to_vec(), Some(0..1), is_cut);
    check_error(good[..17].to_vec(), Some(0..10), is_cut);
    let two = vlen::encode(&[b"ab", b"cd"]).unwrap();
    check_error(two.clone(), None, |e| {
        matches!(e, CellError::ItemCount { found: 2, .. })
    });
    check_error(two, Some(0..1), |e| {
        matches!(e, CellError::ItemCount { found: 2, .. })
    });
    let reversed = Range { start: 3, end: 2 };
    check_error(good.clone(), Some(reversed), is_part);
    // The frame declares a smaller size than it contains.
    let mut short = good;
    short[4] = 5;
    check_error(short, Some(0..6), is_part);
}

#[test]
fn an_index_of_the_wrong_rank_is_rejected() {
    let array = vlen_array(None);
    let reader = CellReader::new(recorded(&[]));
    let error = block_on(reader.read_one(cell(&array, &[1], None))).unwrap_err();
    assert!(matches!(error, CellError::Index { .. }));
}

/// Builds a shard of 2 × 2 cells with its index at `location`.
pub(crate) fn shard(cells: [Option<&[u8]>; 4], location: &str) -> Vec<u8> {
    let index_size = 4 * 16 + 4;
    let mut offset = if location == "start" { index_size } else { 0 };
    let (mut index, mut bytes) = (Vec::new(), Vec::new());
    for cell in cells {
        let entry = match cell {
            Some(cell) => [offset, u64::try_from(cell.len()).unwrap()],
            None => [u64::MAX; 2],
        };
        index.extend(entry.map(u64::to_le_bytes).concat());
        bytes.extend(cell.unwrap_or_default());
        offset += u64::try_from(cell.unwrap_or_default().len()).unwrap();
    }
    let sum = crc32c::crc32c(&index).to_le_bytes();
    index.extend(sum);
    match location {
        "start" => [index, bytes].concat(),
        _ => [bytes, index].concat(),
    }
}

const SHARD: &str = "0/vertices/c/0/1";

#[test]
fn the_index_of_a_shard_is_cached() {
    for (location, index) in [("end", "the last 68 bytes"), ("start", "bytes 0..68")] {
        let array = sharded(location, None);
        let first = frame(&numbered(100));
        let last = frame(b"last");
        let object = shard([Some(&first), None, None, Some(&last)], location);
        let reader = CellReader::new(recorded(&[(SHARD, object)]));
        let read = |index: [u64; 2], part| block_on(reader.read_one(cell(&array, &index, part)));
        assert_eq!(read([0, 2], None).unwrap().unwrap(), numbered(100));
        assert_eq!(
            read([0, 2], Some(5..9)).unwrap().unwrap(),
            numbered(100)[5..9]
        );
        assert_eq!(read([1, 3], None).unwrap().unwrap(), "last");
        assert!(read([0, 3], None).unwrap().is_none());
        assert!(read([1, 2], Some(0..1)).unwrap().is_none());
        let first = if location == "start" { 68 } else { 0 };
        let want = [
            format!("{SHARD} {index}"),
            format!("{SHARD} bytes {first}..{}", first + 108),
            format!("{SHARD} bytes {first}..{}", first + 17),
            format!("{SHARD} bytes {}..{}", first + 108, first + 120),
        ];
        assert_eq!(log(reader.store()), want);
    }
}

/// Opens a sharded array of `side` × `side` cells.
fn square(side: u64) -> CellArray {
    let mut metadata = sharded_metadata("end", None);
    metadata["shape"] = json!([side, side]);
    described("0/vertices", metadata).unwrap()
}

#[test]
fn indexes_of_few_shards_are_prepared_over_a_network() {
    let first = frame(&numbered(100));
    let objects = [(SHARD, shard([Some(&first), None, None, None], "end"))];
    let network = SimulatedNetwork {
        latency: Duration::ZERO,
        bandwidth: 0,
    };
    let options = OpenOptions::default().record_requests(true);
    let far = options.clone().simulate_network(network);
    let far = CellReader::new(far.from_memory(objects.clone()).unwrap());
    let near = CellReader::new(options.from_memory(objects).unwrap());
    let array = square(4);

    let prepare = |reader: &CellReader, arrays: &[CellArray], max_requests| {
        let arrays = arrays.iter().cloned().map(AnyArray::new);
        block_on(reader.prepare(&arrays.collect::<Vec<_>>(), max_requests));
    };

    prepare(&near, core::slice::from_ref(&array), 4);
    assert_eq!(log(near.store()).len(), 0);

    prepare(&far, &[square(1 << 22)], 100);
    prepare(&far, &[square(6), array.clone()], 12);
    // The index of one shard of 256 × 256 cells has more than a megabyte.
    let mut large = sharded_metadata("end", None);
    large["shape"] = json!([256, 256]);
    large["chunk_grid"]["configuration"]["chunk_shape"] = json!([256, 256]);
    prepare(&far, &[described("0/vertices", large).unwrap()], 12);
    assert_eq!(log(far.store()).len(), 0);

    prepare(&far, &[vlen_array(None), array.clone()], 4);
    let index = "the last 68 bytes";
    let shards = ["0/0", "0/1", "1/0", "1/1"];
    let want = shards.map(|shard| format!("0/vertices/c/{shard} {index}"));
    assert_eq!(log(far.store()), want);
    prepare(&far, core::slice::from_ref(&array), 4);
    let read = |index: [u64; 2]| block_on(far.read_one(cell(&array, &index, None)));
    assert_eq!(read([0, 2]).unwrap().unwrap(), numbered(100));
    assert!(read([2, 2]).unwrap().is_none());
    assert_eq!(log(far.store()), [format!("{SHARD} bytes 0..108")]);
}

#[test]
fn compressed_cells_of_a_shard_are_read_by_range() {
    let array = sharded("end", Some("zstd"));
    let packed = zstd::bulk::compress(&frame(&numbered(500)), 3).unwrap();
    let object = shard([None, Some(&packed), None, None], "end");
    let reader = CellReader::new(recorded(&[(SHARD, object)]));
    let got = block_on(reader.read_one(cell(&array, &[0, 3], Some(7..11)))).unwrap();
    assert_eq!(got.unwrap(), numbered(500)[7..11]);
}

#[test]
fn damaged_shards_are_rejected() {
    let array = sharded("end", None);
    let payload = frame(&numbered(100));
    let good = shard([Some(&payload), None, None, None], "end");
    let read = |object: Vec<u8>, part| {
        let reader = CellReader::new(recorded(&[(SHARD, object)]));
        block_on(reader.read_one(cell(&array, &[0, 2], part))).unwrap_err()
    };
    let mut flipped = good.clone();
    flipped[110] ^= 1;
    let error = read(flipped, None);
    assert!(matches!(error, CellError::ShardIndex { key, .. } if key.as_str() == SHARD));
    let error = read(good[good.len() - 60..].to_vec(), None);
    assert!(matches!(
        error,
        CellError::Read(ReadError::Truncated { .. })
    ));
    let entry = |offset: u64, length: u64| {
        let mut object = good.clone();
        let index = object.len() - 68;
        object[index..index + 8].copy_from_slice(&offset.to_le_bytes());
        object[index + 8..index + 16].copy_from_slice(&length.to_le_bytes());
        let sum = crc32c::crc32c(&object[index..index + 64]).to_le_bytes();
        object[index + 64..].copy_from_slice(&sum);
        object
    };
    let error = read(entry(u64::MAX - 1, 8), None);
    assert!(matches!(error, CellError::ShardEntry { .. }), "{error:?}");
    let error = read(entry(1 << 40, 8), None);
    assert!(
        matches!(error, CellError::Read(ReadError::Truncated { .. })),
        "{error:?}"
    );
    let error = read(entry(0, 1 << 60), None);
    assert!(
        matches!(error, CellError::Read(ReadError::OverBudget { .. })),
        "{error:?}"
    );
    let error = read(entry(0, 50), Some(0..60));
    assert!(
        matches!(error, CellError::PartOutOfBounds { size: 42, .. }),
        "{error:?}"
    );
}

#[test]
fn a_cell_that_decodes_to_more_than_the_budget_is_rejected() {
    let array = vlen_array(Some("zstd"));
    let packed = zstd::bulk::compress(&frame(&vec![0; 10_000]), 3).unwrap();
    let options = OpenOptions::default().budget(9000);
    let store = options.from_memory([(KEY, packed)]).unwrap();
    let error = block_on(CellReader::new(store).read_one(cell(&array, &AT, None))).unwrap_err();
    assert!(
        matches!(error, CellError::OverBudget { left: 9000, .. }),
        "{error:?}"
    );
    let codecs = json!([{"name": "bytes"}, {"name": "zstd"}]);
    let array = described(
        "0/vertices",
        metadata("uint8", &json!([1 << 20, 1 << 20]), &codecs),
    );
    let store = options.from_memory([(KEY, vec![0; 8])]).unwrap();
    let error =
        block_on(CellReader::new(store).read_one(cell(&array.unwrap(), &AT, None))).unwrap_err();
    assert!(
        matches!(error, CellError::Read(ReadError::OverBudget { .. })),
        "{error:?}"
    );
}

#[test]
fn large_cells_are_decoded_on_another_thread() {
    let array = vlen_array(Some("crc32c"));
    let framed = frame(&numbered(1 << 20));
    let sum = crc32c::crc32c(&framed).to_le_bytes();
    let store = recorded(&[(KEY, [&framed[..], &sum].concat())]);
    let got = block_on(CellReader::new(store).read_one(cell(&array, &AT, None))).unwrap();
    assert_eq!(got.unwrap(), numbered(1 << 20));
}

#[track_caller]
fn check_refused(data_type: &str, chunk_shape: &Json, codecs: &Json, want: &CellArrayError) {
    let error = described("a", metadata(data_type, chunk_shape, codecs)).unwrap_err();
    assert_eq!(&error, want);
}

#[test]
fn unsupported_arrays_are_rejected() {
    use CellArrayError as E;
    let one = json!([1, 1]);
    check_refused(
        "r16",
        &one,
        &json!(["bytes"]),
        &E::DataType("r16".to_owned()),
    );
    check_refused("int8", &one, &json!(["vlen-bytes"]), &E::Serialiser);
    check_refused("bytes", &one, &json!(["bytes"]), &E::Serialiser);
    let large = json!([1_u64 << 31, 1_u64 << 31]);
    check_refused("int64", &large, &json!(["bytes"]), &E::ChunkSize);
    let odd = E::Codecs(CodecsError::Unsupported("pcodec".to_owned()));
    check_refused("int8", &one, &json!(["pcodec"]), &odd);
}

#[test]
fn unsupported_sharding_is_rejected() {
    let codecs = |field: &str, value: Json| {
        let mut sharding = json!({"name": "sharding_indexed", "configuration": {
            "chunk_shape": [1, 1], "codecs": ["vlen-bytes"],
            "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        }});
        sharding["configuration"][field] = value;
        sharding
    };
    let parse = |codecs: Json| {
        let metadata = metadata("variable_length_bytes", &json!([2, 2]), &codecs);
        described("a", metadata).map_err(|error| match error {
            CellArrayError::Codecs(error) => error,
            other => panic!("{other:?}"),
        })
    };
    let field = |field| CodecsError::Configuration {
        codec: "sharding_indexed".to_owned(),
        field,
    };
    assert!(
        parse(json!([codecs("index_location", json!("end"))]))
            .unwrap()
            .is_sharded()
    );
    for (name, value) in [
        ("index_codecs", json!(["bytes", "zstd"])),
        (
            "index_codecs",
            json!([{"name": "bytes", "configuration": {"endian": "big"}}]),
        ),
    ] {
        assert_eq!(
            parse(json!([codecs(name, value)])).unwrap_err(),
            field(name)
        );
    }
    let plain = codecs("index_location", json!("end"));
    let around = parse(json!([plain, "zstd"])).unwrap_err();
    assert_eq!(around, CodecsError::Unsupported("zstd".to_owned()));
    let nested = parse(json!([codecs("codecs", json!([plain]))])).unwrap_err();
    assert_eq!(
        nested,
        CodecsError::Unsupported("sharding_indexed".to_owned())
    );
}
