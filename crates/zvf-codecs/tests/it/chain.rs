//! Decoding of chunks: correct output, rejected input, and bounded memory.

use std::io::Write;

use bytes::Bytes;
use serde_json::{Value as Json, json};
use zvf_codecs::{ChunkCodecs, CodecsError, DecodeError, DecodedForm, DecodedSize};

use crate::{array, numbered};

fn parse(codecs: &Json) -> Result<ChunkCodecs, CodecsError> {
    let array = array(&json!({
        "zarr_format": 3, "node_type": "array", "shape": [9], "data_type": "uint8", "fill_value": 0,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [9]}},
        "chunk_key_encoding": {"name": "default"}, "codecs": codecs,
    }));
    ChunkCodecs::new(&array.codecs)
}

fn codecs(names: &[&str]) -> ChunkCodecs {
    parse(&json!(names)).unwrap()
}

fn zstd_of(bytes: &[u8]) -> Bytes {
    zstd::bulk::compress(bytes, 3).unwrap().into()
}

/// Compresses to a frame without a declared size, as streaming writers do.
fn zstd_stream_of(bytes: &[u8]) -> Bytes {
    zstd::stream::encode_all(bytes, 3).unwrap().into()
}

fn gzip_of(bytes: &[u8]) -> Bytes {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap().into()
}

fn crc_of(bytes: &[u8]) -> Bytes {
    let sum = crc32c::crc32c(bytes).to_le_bytes();
    [bytes, &sum].concat().into()
}

/// Builds a Blosc chunk that stores its bytes uncompressed after the header.
fn blosc_of(bytes: &[u8]) -> Bytes {
    let size = u32::try_from(bytes.len()).unwrap();
    let mut chunk = vec![2, 1, 0b10, 1];
    for number in [size, size, size + 16] {
        chunk.extend(number.to_le_bytes());
    }
    chunk.extend(bytes);
    chunk.into()
}

type Encoded = (&'static str, Bytes);

fn encoded(bytes: &[u8]) -> Vec<Encoded> {
    let mut all = vec![
        ("zstd", zstd_of(bytes)),
        ("zstd", zstd_stream_of(bytes)),
        ("gzip", gzip_of(bytes)),
        ("crc32c", crc_of(bytes)),
    ];
    if cfg!(feature = "blosc") {
        all.push(("blosc", blosc_of(bytes)));
    }
    all
}

#[test]
fn every_codec_is_decoded() {
    for len in [0, 1, 1000, 300_000] {
        let bytes = numbered(len);
        let size = u64::try_from(len).unwrap();
        for (name, encoded) in encoded(&bytes) {
            for size in [DecodedSize::Exactly(size), DecodedSize::AtMost(size)] {
                let got = codecs(&["bytes", name]).decode(encoded.clone(), size);
                assert!(got.unwrap() == bytes, "{name} {len} {size:?}");
            }
        }
    }
}

#[test]
fn codec_chains_are_decoded_in_reverse_order() {
    let bytes = numbered(5000);
    let chunk = crc_of(&gzip_of(&zstd_of(&crc_of(&bytes))));
    let chain = codecs(&["bytes", "crc32c", "zstd", "gzip", "crc32c"]);
    let got = chain.decode(chunk, DecodedSize::Exactly(5000)).unwrap();
    assert_eq!(got, bytes);
}

#[test]
fn concatenated_streams_decode_to_one_chunk() {
    let (first, second) = (numbered(700), numbered(300));
    let both = [&first[..], &second].concat();
    for (name, parts) in [
        ("zstd", [zstd_of(&first), zstd_of(&second)]),
        ("gzip", [gzip_of(&first), gzip_of(&second)]),
    ] {
        let chunk = Bytes::from(parts.concat());
        let got = codecs(&["bytes", name]).decode(chunk, DecodedSize::Exactly(1000));
        assert_eq!(got.unwrap(), both, "{name}");
    }
}

#[test]
fn a_chunk_of_the_wrong_size_is_rejected() {
    let bytes = numbered(1000);
    for (name, encoded) in encoded(&bytes) {
        let codecs = codecs(&["bytes", name]);
        let long = codecs.decode(encoded.clone(), DecodedSize::Exactly(1001));
        let found = (1001, 1000);
        assert!(
            matches!(long, Err(DecodeError::Size { expected, found: f }) if (expected, f) == found),
            "{name}"
        );
        for size in [DecodedSize::Exactly(999), DecodedSize::AtMost(999)] {
            let error = codecs.decode(encoded.clone(), size).unwrap_err();
            let refused = matches!(
                error,
                DecodeError::OverLimit { limit: 999 } | DecodeError::Size { found: 1000, .. }
            );
            assert!(refused, "{name} {size:?}: {error:?}");
        }
    }
}

#[test]
fn every_prefix_is_rejected() {
    let bytes = numbered(300);
    for (name, encoded) in encoded(&bytes) {
        for end in 0..encoded.len() {
            let codecs = codecs(&["bytes", name]);
            let got = codecs.decode(encoded.slice(..end), DecodedSize::Exactly(300));
            assert!(got.is_err(), "{name}, {end} bytes");
        }
    }
}

#[test]
fn damaged_chunks_fail_or_decode_to_the_expected_size() {
    let bytes = numbered(300);
    for (name, encoded) in encoded(&bytes) {
        for at in 0..encoded.len() {
            for bits in [1, 0x80, 0xff] {
                let mut damaged = encoded.to_vec();
                damaged[at] ^= bits;
                let codecs = codecs(&["bytes", name]);
                let got = codecs.decode(damaged.into(), DecodedSize::Exactly(300));
                assert!(got.is_err() || got.unwrap().len() == 300);
            }
        }
    }
}

/// Builds a frame of blocks that repeat one byte: 4 bytes decode to 128 KiB.
fn zstd_bomb(blocks: usize, declared: Option<u64>) -> Bytes {
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd];
    match declared {
        // Descriptor: content size of 8 bytes. Window: 128 KiB.
        Some(size) => {
            frame.extend([0xc0, 0x38]);
            frame.extend(size.to_le_bytes());
        }
        None => frame.extend([0x00, 0x38]),
    }
    for block in 0..blocks {
        let last = u32::from(block + 1 == blocks);
        let header = last | 1 << 1 | (128 << 10) << 3;
        frame.extend(&header.to_le_bytes()[..3]);
        frame.push(0);
    }
    frame.into()
}

/// Compresses `mib` MiB of zeros.
fn gzip_bomb(mib: usize) -> Bytes {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    let zeros = vec![0; 1 << 20];
    for _ in 0..mib {
        encoder.write_all(&zeros).unwrap();
    }
    encoder.finish().unwrap().into()
}

/// Returns the peak resident memory of this process in bytes.
fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib << 10)
}

#[test]
fn a_decompression_bomb_uses_no_more_memory_than_the_limit() {
    let before = peak();
    let gib = 1 << 30;
    // 32 KiB that expand to 1 GiB: with no declared size, the true size, and false sizes.
    let bombs = [
        ("zstd", zstd_bomb(8192, None)),
        ("zstd", zstd_bomb(8192, Some(gib))),
        ("zstd", zstd_bomb(1, Some(u64::MAX - 2))),
        ("zstd", zstd_bomb(8192, Some(1000))),
        ("gzip", gzip_bomb(256)),
    ];
    for (name, bomb) in bombs {
        assert!(bomb.len() < 2 << 20, "{name}");
        for size in [DecodedSize::Exactly(1000), DecodedSize::AtMost(1 << 20)] {
            let codecs = codecs(&["bytes", name]);
            let error = codecs.decode(bomb.clone(), size).unwrap_err();
            let refused = matches!(
                error,
                DecodeError::OverLimit { .. } | DecodeError::Damaged { .. }
            );
            assert!(refused, "{name}: {error:?}");
        }
    }
    // The margin covers other tests that run in parallel.
    if let (Some(before), Some(after)) = (before, peak()) {
        assert!(after - before < 200 << 20, "{} bytes", after - before);
    }
}

#[test]
fn an_implausible_declared_size_allocates_nothing() {
    // The declared gigabyte is within one limit and over the other, but five bytes cannot hold it.
    let codecs = codecs(&["bytes", "zstd"]);
    for limit in [1 << 31, 1 << 20] {
        let bomb = zstd_bomb(1, Some(1 << 30));
        let error = codecs.decode(bomb, DecodedSize::AtMost(limit)).unwrap_err();
        assert!(
            matches!(error, DecodeError::Damaged { codec: "zstd", .. }),
            "{error:?}"
        );
    }
}

#[cfg(feature = "blosc")]
#[test]
fn a_false_size_in_a_blosc_header_is_rejected() {
    let codecs = codecs(&["bytes", "blosc"]);
    let claiming = |flags: u8, claimed: u32, limit| {
        let mut chunk = blosc_of(&numbered(100)).to_vec();
        chunk[2] = flags;
        chunk[4..8].copy_from_slice(&claimed.to_le_bytes());
        // One block.
        chunk[8..12].copy_from_slice(&claimed.to_le_bytes());
        codecs.decode(chunk.into(), DecodedSize::AtMost(limit))
    };
    let (raw, zstd) = (0b10, 4 << 5);
    let over = claiming(zstd, 1 << 30, 1 << 20).unwrap_err();
    assert!(matches!(over, DecodeError::OverLimit { .. }), "{over:?}");
    for (flags, claimed) in [(raw, u32::MAX), (raw, 1 << 30), (zstd, 1 << 30)] {
        let error = claiming(flags, claimed, u64::MAX).unwrap_err();
        let damaged = matches!(error, DecodeError::Damaged { codec: "blosc", .. });
        assert!(damaged, "{flags} {claimed}: {error:?}");
    }
}

#[test]
fn a_wrong_checksum_is_reported_with_both_values() {
    let mut chunk = crc_of(b"payload").to_vec();
    chunk[0] ^= 1;
    let codecs = codecs(&["bytes", "crc32c"]);
    let error = codecs
        .decode(chunk.into(), DecodedSize::Exactly(7))
        .unwrap_err();
    let DecodeError::Checksum { stored, computed } = error else {
        panic!("{error:?}");
    };
    assert_eq!(stored, crc32c::crc32c(b"payload"));
    assert_ne!(stored, computed);
}

#[track_caller]
fn check_refused(codecs: &Json, want: &CodecsError) {
    assert_eq!(&parse(codecs).unwrap_err(), want);
}

#[test]
fn codec_lists_are_parsed() {
    let form = |codecs: Json| parse(&codecs).unwrap().form();
    assert_eq!(form(json!(["bytes"])), DecodedForm::LittleEndian);
    let big = json!([{"name": "bytes", "configuration": {"endian": "big"}}]);
    assert_eq!(form(big), DecodedForm::BigEndian);
    let frame = json!([{"name": "vlen-bytes", "configuration": {}}, {"name": "zstd"}]);
    assert_eq!(form(frame.clone()), DecodedForm::VlenFrame);
    assert!(!parse(&frame).unwrap().is_plain());
}

#[test]
fn unsupported_codec_lists_are_rejected() {
    let unsupported = |name: &str| CodecsError::Unsupported(name.to_owned());
    check_refused(&json!([{"name": "zstd"}]), &CodecsError::NoSerialiser);
    check_refused(&json!(["transpose", "bytes"]), &unsupported("transpose"));
    check_refused(&json!(["bytes", "pcodec"]), &unsupported("pcodec"));
    check_refused(&json!(["bytes", "bytes"]), &unsupported("bytes"));
    let odd = json!([{"name": "bytes", "configuration": {"endian": "middle"}}]);
    let field = |codec: &str, field| CodecsError::Configuration {
        codec: codec.to_owned(),
        field,
    };
    check_refused(&odd, &field("bytes", "endian"));
    let start = json!(["bytes", {"name": "crc32c", "configuration": {"location": "start"}}]);
    check_refused(&start, &field("crc32c", "location"));
    if !cfg!(feature = "blosc") {
        let feature = CodecsError::Feature {
            codec: "blosc".to_owned(),
            feature: "blosc",
        };
        check_refused(&json!(["bytes", "blosc"]), &feature);
    }
}
