//! Blosc chunks against C-Blosc, through zarrs: each reads what the other writes.

use core::ops::Range;

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::json;
use zarrs::array::{
    BytesRepresentation,
    codec::{
        BloscCodec, BloscCompressor, BloscShuffleMode,
        api::{BytesToBytesCodecTraits, CodecOptions},
    },
};
use zvf_codecs::{BlocksPrefix, ChunkBlocks, ChunkCodecs, DecodeError, DecodedSize};

use crate::{array, numbered};

const COMPRESSORS: [(&str, BloscCompressor); 6] = [
    ("blosclz", BloscCompressor::BloscLZ),
    ("lz4", BloscCompressor::LZ4),
    ("lz4hc", BloscCompressor::LZ4HC),
    ("snappy", BloscCompressor::Snappy),
    ("zlib", BloscCompressor::Zlib),
    ("zstd", BloscCompressor::Zstd),
];

const SHUFFLES: [(&str, BloscShuffleMode); 3] = [
    ("noshuffle", BloscShuffleMode::NoShuffle),
    ("shuffle", BloscShuffleMode::Shuffle),
    ("bitshuffle", BloscShuffleMode::BitShuffle),
];

/// The settings of both codecs: indexes of the tables above, and numbers.
#[derive(Clone, Copy, Debug)]
struct Settings {
    compressor: usize,
    shuffle: usize,
    level: u8,
    typesize: usize,
    blocksize: usize,
}

impl Settings {
    fn ours(self) -> ChunkCodecs {
        let configuration = json!({
            "cname": COMPRESSORS[self.compressor].0, "shuffle": SHUFFLES[self.shuffle].0,
            "clevel": self.level, "typesize": self.typesize, "blocksize": self.blocksize,
        });
        let array = array(&json!({
            "zarr_format": 3, "node_type": "array", "shape": [9], "data_type": "uint8",
            "fill_value": 0, "chunk_key_encoding": {"name": "default"},
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [9]}},
            "codecs": ["bytes", {"name": "blosc", "configuration": configuration}],
        }));
        ChunkCodecs::new(&array.codecs).unwrap()
    }

    fn theirs(self) -> BloscCodec {
        let level = self.level.try_into().unwrap();
        BloscCodec::new(
            COMPRESSORS[self.compressor].1,
            level,
            Some(self.blocksize),
            SHUFFLES[self.shuffle].1,
            Some(self.typesize),
        )
        .unwrap()
    }

    #[track_caller]
    fn check(self, payload: &[u8]) {
        let (ours, theirs) = (self.ours(), self.theirs());
        let options = CodecOptions::default();
        let size = DecodedSize::Exactly(u64::try_from(payload.len()).unwrap());

        let chunk = theirs.encode(payload.into(), &options).unwrap();
        check_blocks(&ours, &chunk, payload);
        let header = chunk.get(..16).map(<[u8]>::to_vec);
        let got = ours
            .decode(Bytes::from(chunk.into_owned()), size)
            .unwrap_or_else(|error| panic!("{error:?}: {self:?} {header:?}"));
        assert!(got == payload, "we misread C-Blosc: {self:?}");

        let chunk = ours.encode(payload).unwrap();
        check_blocks(&ours, &chunk, payload);
        let representation = BytesRepresentation::UnboundedSize;
        let got = theirs
            .decode((&chunk[..]).into(), &representation, &options)
            .unwrap();
        assert!(got == payload, "C-Blosc misreads us: {self:?}");
    }
}

fn size(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap()
}

fn offsets(range: Range<u64>) -> Range<usize> {
    usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap()
}

/// Reads the blocks of a chunk from as few of its first bytes as possible.
fn blocks(codecs: &ChunkCodecs, chunk: &[u8]) -> Result<BlocksPrefix, DecodeError> {
    let header = chunk.get(..ChunkBlocks::HEADER).unwrap_or(chunk);
    match codecs.blocks(header, size(chunk))? {
        BlocksPrefix::Longer(length) => {
            let length = usize::try_from(length).unwrap();
            let shorter = codecs.blocks(&chunk[..length - 1], size(chunk));
            assert!(
                matches!(shorter, Ok(BlocksPrefix::Longer(_))),
                "{shorter:?}"
            );
            codecs.blocks(&chunk[..length], size(chunk))
        }
        found => Ok(found),
    }
}

/// Checks that each block decodes by itself to its part of the payload.
#[track_caller]
fn check_blocks(codecs: &ChunkCodecs, chunk: &[u8], payload: &[u8]) {
    let Ok(BlocksPrefix::Blocks(blocks)) = blocks(codecs, chunk) else {
        panic!("no blocks");
    };
    assert_eq!(blocks.size(), size(payload));
    let all = blocks.covering(&(0..blocks.size()));
    assert_eq!(all, blocks.covering(&(0..u64::MAX)));
    let mut end = 0;
    for block in all.clone() {
        let decoded = blocks.decoded(block);
        assert_eq!(decoded.start, end);
        end = decoded.end;
        assert_eq!(blocks.covering(&(end - 1..end)), block..block + 1);
        // Enough of them, in a build without optimizations.
        if block > 2 && block + 2 < all.end {
            continue;
        }
        let mut out = vec![0; offsets(decoded.clone()).len()];
        let stored = &chunk[offsets(blocks.stored(block))];
        blocks.decode(block, stored, &mut out).unwrap();
        assert!(out == payload[offsets(decoded)], "block {block} of {all:?}");
    }
    assert_eq!(end, size(payload));
    assert!(blocks.decoded(all.end).is_empty());
    assert!(blocks.covering(&(end..end + 1)).is_empty());
}

#[test]
fn damaged_first_bytes_are_errors_or_other_blocks_within_the_chunk() {
    let codecs = |compressor, level| Settings {
        compressor,
        shuffle: 2,
        level,
        typesize: 4,
        blocksize: 1024,
    };
    let payload = numbered(40_001);
    for settings in [codecs(1, 5), codecs(5, 5), codecs(1, 0)] {
        let codecs = settings.ours();
        let whole = codecs.encode(&payload).unwrap();
        let other = codecs.blocks(&whole, size(&whole) + 1);
        assert!(
            matches!(other, Err(DecodeError::Damaged { .. })),
            "{other:?}"
        );
        for at in 0..200 {
            for change in [1, 0x80, 0xff] {
                let mut chunk = whole.to_vec();
                chunk[at] ^= change;
                let Ok(BlocksPrefix::Blocks(blocks)) = codecs.blocks(&chunk, size(&chunk)) else {
                    continue;
                };
                for block in blocks.covering(&(0..blocks.size())).take(50) {
                    let stored = blocks.stored(block);
                    assert!(stored.end <= size(&chunk), "{stored:?}");
                    let mut out = vec![0; offsets(blocks.decoded(block)).len()];
                    let _ = blocks.decode(block, &chunk[offsets(stored)], &mut out);
                }
            }
        }
    }
}

#[test]
fn c_blosc_and_we_read_each_other() {
    for len in [1, 3, 8, 127, 1000, 4001, 300_000, 700_001] {
        let payload = numbered(len);
        for compressor in 0..COMPRESSORS.len() {
            for shuffle in 0..SHUFFLES.len() {
                for (level, typesize, blocksize) in [
                    (5, 4, 0),
                    (1, 8, 4096),
                    (9, 3, 0),
                    (0, 2, 0),
                    (5, 255, 1 << 16),
                ] {
                    let settings = Settings {
                        compressor,
                        shuffle,
                        level,
                        typesize,
                        blocksize,
                    };
                    settings.check(&payload);
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn c_blosc_and_we_read_each_other_at_random(
        part in proptest::collection::vec(any::<u8>(), 1..3000),
        repeat in 1_usize..60,
        compressor in 0..COMPRESSORS.len(),
        shuffle in 0..SHUFFLES.len(),
        level in 0_u8..=9,
        typesize in 1_usize..=255,
        blocksize in prop_oneof![Just(0), 1_usize..100_000],
    ) {
        let settings = Settings { compressor, shuffle, level, typesize, blocksize };
        settings.check(&part.repeat(repeat));
    }
}

#[test]
fn compressible_numbers_become_shorter() {
    let numbers: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
    for compressor in 0..COMPRESSORS.len() {
        let settings = Settings {
            compressor,
            shuffle: 1,
            level: 5,
            typesize: 4,
            blocksize: 0,
        };
        let chunk = settings.ours().encode(&numbers).unwrap();
        assert!(
            chunk.len() < numbers.len() / 10,
            "{settings:?}: {}",
            chunk.len()
        );
    }
}
