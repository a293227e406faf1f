//! Encoding of chunks, cells and shards: round trips, byte layout and rejected input.

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value as Json, json};
use zvf_format::vlen;
use zvf_store::{
    CellArray, CellRead, CellReader, ChunkCodecs, CodecsError, DecodedSize, EncodeError,
    OpenOptions,
};

use crate::{
    cell::{described, frame, metadata, sharded, vlen_array},
    support::{array, block_on, numbered},
};

fn parse(codecs: &Json) -> Result<ChunkCodecs, CodecsError> {
    let array = array(json!({
        "zarr_format": 3, "node_type": "array", "shape": [9], "data_type": "uint8", "fill_value": 0,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [9]}},
        "chunk_key_encoding": {"name": "default"}, "codecs": codecs,
    }));
    ChunkCodecs::new(&array.codecs)
}

/// Returns a chain of `bytes` and one codec.
fn codec(name: &str, configuration: &Json) -> ChunkCodecs {
    parse(&json!(["bytes", {"name": name, "configuration": configuration}])).unwrap()
}

fn every_codec() -> Vec<Json> {
    let mut all = vec![
        json!("crc32c"),
        json!("zstd"),
        json!({"name": "zstd", "configuration": {"level": 0, "checksum": true}}),
        json!({"name": "zstd", "configuration": {"level": -5, "checksum": false}}),
        json!("gzip"),
        json!({"name": "gzip", "configuration": {"level": 0}}),
        json!({"name": "gzip", "configuration": {"level": 9}}),
    ];
    if cfg!(feature = "blosc") {
        all.push(json!("blosc"));
        for cname in ["blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"] {
            for (shuffle, typesize) in [("noshuffle", 1), ("shuffle", 4), ("bitshuffle", 8)] {
                all.push(
                    json!({"name": "blosc", "configuration": {"cname": cname, "clevel": 5,
                    "shuffle": shuffle, "typesize": typesize, "blocksize": 0}}),
                );
            }
        }
    }
    all
}

#[test]
fn every_codec_round_trips() {
    for len in [0, 1, 7, 1000, 300_000] {
        let payload = numbered(len);
        for codec in every_codec() {
            let codecs = parse(&json!(["bytes", codec])).unwrap();
            let chunk = codecs.encode(&payload).unwrap();
            let size = DecodedSize::Exactly(u64::try_from(len).unwrap());
            assert!(
                codecs.decode(chunk.clone(), size).unwrap() == payload,
                "{codec} {len}"
            );
            assert_eq!(
                codecs.encode(&payload).unwrap(),
                chunk,
                "{codec} {len}: not the same twice"
            );
        }
    }
}

proptest! {
    #[test]
    fn codec_chains_round_trip(
        payload in proptest::collection::vec(any::<u8>(), 0..3000),
        repeat in 1_usize..20,
        chain in proptest::collection::vec(0..every_codec().len(), 0..4),
    ) {
        let payload = payload.repeat(repeat);
        let all = every_codec();
        let names = chain.iter().map(|at| all[*at].clone());
        let names: Vec<Json> = core::iter::once(json!("bytes")).chain(names).collect();
        let codecs = parse(&json!(names)).unwrap();
        let chunk = codecs.encode(&payload).unwrap();
        let size = DecodedSize::Exactly(u64::try_from(payload.len()).unwrap());
        prop_assert_eq!(codecs.decode(chunk, size).unwrap(), payload);
    }
}

#[test]
fn encoding_follows_the_codec_configuration() {
    let payload = numbered(20_000);
    let size = |name, configuration| codec(name, &configuration).encode(&payload).unwrap().len();
    assert!(size("gzip", json!({"level": 0})) > 20_000);
    assert!(size("gzip", json!({"level": 9})) < 2000);
    let with = size("zstd", json!({"level": 3, "checksum": true}));
    assert_eq!(
        with,
        size("zstd", json!({"level": 3, "checksum": false})) + 4
    );
    assert_eq!(
        codec("crc32c", &json!({})).encode(b"123456789").unwrap(),
        &b"123456789\x83\x92\x06\xe3"[..]
    );
    if cfg!(feature = "blosc") {
        let shuffled = codec(
            "blosc",
            &json!({"cname": "lz4", "shuffle": "shuffle", "typesize": 8}),
        );
        let chunk = shuffled.encode(&payload).unwrap();
        // Byte 2 holds the flags (byte shuffle, LZ4), byte 3 the element size.
        assert_eq!((chunk[2] & 0b1110_0101, chunk[3]), (0b0010_0001, 8));
    }
}

#[test]
fn an_invalid_configuration_is_accepted_only_for_decoding() {
    let mut bad = vec![
        ("zstd", json!({"level": "high"}), "level"),
        ("zstd", json!({"level": 5_000_000_000_u64}), "level"),
        ("zstd", json!({"checksum": 1}), "checksum"),
        ("gzip", json!({"level": 10}), "level"),
        ("gzip", json!({"level": -1}), "level"),
    ];
    if cfg!(feature = "blosc") {
        bad.extend([
            ("blosc", json!({"cname": "lzo"}), "cname"),
            ("blosc", json!({"clevel": 10}), "clevel"),
            ("blosc", json!({"shuffle": 1}), "shuffle"),
            ("blosc", json!({"typesize": 0}), "typesize"),
            ("blosc", json!({"typesize": 256}), "typesize"),
            ("blosc", json!({"blocksize": -1}), "blocksize"),
        ]);
    }
    for (name, configuration, at) in bad {
        let good = codec(name, &json!({})).encode(b"123").unwrap();
        let bad = codec(name, &configuration);
        assert_eq!(
            bad.decode(good, DecodedSize::Exactly(3)).unwrap(),
            "123",
            "{configuration}"
        );
        let error = bad.encode(b"123").unwrap_err();
        assert!(
            matches!(error, EncodeError::Configuration { codec, field } if (codec, field) == (name, at)),
            "{configuration}: {error:?}"
        );
    }
}

#[test]
fn cells_round_trip() {
    for compressor in [None, Some("zstd"), Some("gzip"), Some("crc32c")] {
        let array = vlen_array(compressor);
        for payload in [numbered(0), numbered(1), numbered(5000)] {
            let (key, number) = array.locate(&[1, 2]).unwrap();
            assert_eq!((key.as_str(), number), ("0/vertices/c/1/2", None));
            let object = array.encode(&payload).unwrap();
            if compressor.is_none() {
                assert_eq!(object, frame(&payload));
            }
            assert_eq!(
                read(&array, key.as_str(), object, &[1, 2]).unwrap(),
                payload
            );
        }
    }
}

fn read(array: &CellArray, key: &str, object: Bytes, index: &[u64]) -> Option<Bytes> {
    let store = OpenOptions::default().from_memory([(key, object)]).unwrap();
    let part = None;
    block_on(CellReader::new(store).read_one(CellRead { array, index, part })).unwrap()
}

#[test]
fn a_cell_of_several_byte_strings_is_encoded_from_their_frame() {
    let codecs = json!([{"name": "vlen-bytes"}, {"name": "zstd"}]);
    let metadata = metadata("variable_length_bytes", &json!([1, 3]), &codecs);
    let array = described("0/a", metadata).unwrap();
    let payload = vlen::encode(&[&b"one"[..], b"", b"three"]).unwrap();
    let object = array.encode(&payload).unwrap();
    assert_eq!(read(&array, "0/a/c/0/0", object, &[0, 0]).unwrap(), payload);

    let two = vlen::encode(&[b"one", b"two"]).unwrap();
    let error = array.encode(&two).unwrap_err();
    assert!(
        matches!(
            error,
            EncodeError::ItemCount {
                expected: 3,
                found: 2
            }
        ),
        "{error:?}"
    );
    let error = array.encode(b"no frame").unwrap_err();
    assert!(matches!(error, EncodeError::Frame(_)), "{error:?}");
}

#[test]
fn payloads_of_the_wrong_size_are_rejected() {
    let metadata = metadata("float32", &json!([2, 3]), &json!(["bytes", "zstd"]));
    let array = described("0/a", metadata).unwrap();
    for wrong in [0, 23, 25] {
        let error = array.encode(&numbered(wrong)).unwrap_err();
        let found = u64::try_from(wrong).unwrap();
        assert!(
            matches!(error, EncodeError::Size { expected: 24, found: f } if f == found),
            "{error:?}"
        );
    }
    let object = array.encode(&numbered(24)).unwrap();
    assert_eq!(
        read(&array, "0/a/c/0/0", object, &[0, 0]).unwrap(),
        numbered(24)
    );
}

#[test]
fn shards_have_the_byte_layout_of_the_reference() {
    let array = sharded("end", None);
    let cells = [(2, "c"), (0, "a"), (1, "bb")].map(|(n, text)| (n, Bytes::from(text)));
    let shard = array.encode_shard(&cells).unwrap();
    // Cell numbers are in C order; in the file, the first axis varies fastest.
    let (a, c, bb) = (frame(b"a"), frame(b"c"), frame(b"bb"));
    let body = [&a[..], &c, &bb].concat();
    assert_eq!(shard[..body.len()], body);
    let mut index = Vec::new();
    for (at, len) in [(0, 9), (18, 10), (9, 9), (u64::MAX, u64::MAX)] {
        index.extend_from_slice(&u64::to_le_bytes(at));
        index.extend_from_slice(&u64::to_le_bytes(len));
    }
    let sum = crc32c::crc32c(&index);
    index.extend_from_slice(&sum.to_le_bytes());
    assert_eq!(shard[body.len()..], index);
}

#[test]
fn shards_round_trip() {
    for location in ["start", "end"] {
        for compressor in [None, Some("zstd"), Some("crc32c")] {
            let array = sharded(location, compressor);
            assert_eq!(array.cells_per_shard(), Some(4));
            for present in 0..16_u64 {
                let indexes = [[2, 4], [2, 5], [3, 4], [3, 5]];
                let mut cells = Vec::new();
                for index in &indexes {
                    let (key, number) = array.locate(index).unwrap();
                    assert_eq!(key.as_str(), "0/vertices/c/1/2");
                    let number = number.unwrap();
                    if present >> number & 1 == 1 {
                        let len = usize::try_from(number * 1000).unwrap();
                        cells.push((number, Bytes::from(numbered(len))));
                    }
                }
                let shard = array.encode_shard(&cells).unwrap();
                for (number, index) in indexes.iter().enumerate() {
                    let got = read(&array, "0/vertices/c/1/2", shard.clone(), index);
                    let number = u64::try_from(number).unwrap();
                    let want = cells.iter().find(|cell| cell.0 == number);
                    assert_eq!(got, want.map(|cell| cell.1.clone()));
                }
                cells.reverse();
                assert_eq!(array.encode_shard(&cells).unwrap(), shard, "order matters");
            }
        }
    }
}

#[test]
fn cells_outside_the_shard_are_rejected() {
    let array = sharded("end", None);
    let cell = |number| (number, Bytes::from("x"));
    let error = array.encode_shard(&[cell(4)]).unwrap_err();
    assert!(
        matches!(
            error,
            EncodeError::NoSuchCell {
                number: 4,
                cells: 4
            }
        ),
        "{error:?}"
    );
    let error = array.encode_shard(&[cell(u64::MAX)]).unwrap_err();
    assert!(matches!(error, EncodeError::NoSuchCell { .. }), "{error:?}");
    let error = array
        .encode_shard(&[cell(1), cell(2), cell(1)])
        .unwrap_err();
    assert!(matches!(error, EncodeError::DuplicateCell(1)), "{error:?}");
    let error = vlen_array(None).encode_shard(&[cell(0)]).unwrap_err();
    assert!(matches!(error, EncodeError::NotSharded), "{error:?}");
    let codecs = json!([{"name": "sharding_indexed", "configuration": {
        "chunk_shape": [1, 1], "codecs": ["vlen-bytes"], "index_codecs": ["bytes"]}}]);
    let huge = metadata(
        "variable_length_bytes",
        &json!([1_u64 << 29, 1_u64 << 28]),
        &codecs,
    );
    let error = described("0/a", huge)
        .unwrap()
        .encode_shard(&[cell(0)])
        .unwrap_err();
    assert!(matches!(error, EncodeError::ShardSize), "{error:?}");
}
