//! Blosc chunks against C-Blosc, through zarrs: each reads what the other writes.

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
use zvf_codecs::{ChunkCodecs, DecodedSize};

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
        let header = chunk.get(..16).map(<[u8]>::to_vec);
        let got = ours
            .decode(Bytes::from(chunk.into_owned()), size)
            .unwrap_or_else(|error| panic!("{error:?}: {self:?} {header:?}"));
        assert!(got == payload, "we misread C-Blosc: {self:?}");

        let chunk = ours.encode(payload).unwrap();
        let representation = BytesRepresentation::UnboundedSize;
        let got = theirs
            .decode((&chunk[..]).into(), &representation, &options)
            .unwrap();
        assert!(got == payload, "C-Blosc misreads us: {self:?}");
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
