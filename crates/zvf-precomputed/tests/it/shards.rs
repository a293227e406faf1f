//! Shards, hashes and Morton codes.

#[path = "../laws/shard.rs"]
mod law;

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use zvf_precomputed::{
    MortonError, ShardBuilder, ShardEncoding, ShardEntry, ShardError, ShardFile, ShardFileIndex,
    ShardHash, ShardingSpec, compressed_morton_code, murmurhash3_x86_128_low,
};

#[test]
fn the_hash_has_the_published_values() {
    for (key, hash) in [
        (0, 0x4772_b084_e028_ae41),
        (1, 0xe8bd_67d6_16d4_ce9a),
        (2, 0xd62f_9cd2_1b01_3f5a),
        (1 << 32, 0xbbb1_2d13_3b78_fd64),
        ((1 << 63) + 5, 0xca28_6505_5ac2_893d),
        (u64::MAX, 0x574f_66bd_212b_5d1a),
    ] {
        assert_eq!(murmurhash3_x86_128_low(key), hash);
    }
}

#[test]
fn codes_skip_axes_without_bits() {
    assert_eq!(compressed_morton_code(&[4, 0, 2], &[5, 1, 3]), Ok(0b11000));
    assert_eq!(compressed_morton_code(&[3, 0, 1], &[5, 1, 3]), Ok(0b111));
    assert_eq!(compressed_morton_code(&[0], &[1]), Ok(0));
    let outside = compressed_morton_code(&[5, 0, 0], &[5, 1, 3]);
    assert_eq!(outside, Err(MortonError::Outside));
    let large = compressed_morton_code(&[0; 3], &[1 << 22; 3]);
    assert_eq!(large, Err(MortonError::TooLarge));
    let largest = compressed_morton_code(&[u64::MAX - 1], &[u64::MAX]);
    assert_eq!(largest, Ok(u64::MAX - 1));
}

#[test]
fn files_have_hexadecimal_names() {
    let mut spec = ShardingSpec::default();
    assert_eq!(spec.file_name(0), "0.shard");
    spec.shard_bits = 9;
    assert_eq!(spec.file_name(0x1a), "01a.shard");
    assert_eq!(spec.shard_of("01a.shard"), Some(0x1a));
    for name in [
        "1a.shard",
        "01A.shard",
        "01a",
        "info",
        "001a.shard",
        "+1a.shard",
        ".shard",
    ] {
        assert_eq!(spec.shard_of(name), None, "{name}");
    }
}

#[test]
fn consecutive_keys_share_minishards() {
    let spec = ShardingSpec::for_consecutive(12_000_000, 12_000_000 * 40);
    let places: BTreeSet<_> = (0..4096).map(|key| spec.locate(key)).collect();
    assert_eq!(places.len(), 1);
    let shards: BTreeSet<_> = (0..12_000_000)
        .step_by(999)
        .map(|key| spec.locate(key).shard)
        .collect();
    assert_eq!(shards.len(), 6, "480 MB in shards of some 64 MB");
}

/// The number of minishards was computed from another size of a minishard than that of
/// `preshift_bits`, so that the last keys were in the first shard.
#[test]
fn shards_of_consecutive_keys_ascend() {
    for (keys, bytes) in [(20_000, 84_400_000), (1 << 40, 0), (0, 0), (1, u64::MAX)] {
        check_ascending(keys, bytes);
    }
    let spec = ShardingSpec::for_consecutive(20_000, 84_400_000);
    assert_eq!(spec.locate(0).shard, 0);
    assert_eq!(spec.locate(19_999).shard, 1);
}

fn check_ascending(keys: u64, bytes: u64) {
    let spec = ShardingSpec::for_consecutive(keys, bytes);
    let all = spec.preshift_bits + spec.minishard_bits + spec.shard_bits;
    let capacity = 1_u64.checked_shl(all).unwrap_or(u64::MAX);
    assert!(capacity >= keys, "{keys} keys, {bytes} bytes: {spec:?}");
    // The shard is that of the first key with the same high bits.
    let low = spec.preshift_bits + spec.minishard_bits;
    let firsts = (0..keys).step_by(1 << low).take(100_000);
    let shards: Vec<u64> = firsts.map(|key| spec.locate(key).shard).collect();
    assert!(shards.is_sorted(), "{keys} keys, {bytes} bytes: {spec:?}");
}

#[test]
fn keys_of_other_shards_and_twice_are_refused() {
    let spec = ShardingSpec {
        shard_bits: 1,
        ..ShardingSpec::default()
    };
    let mut shard = ShardBuilder::new(spec, 0);
    shard.push(2, b"a").unwrap();
    assert_eq!(shard.push(2, b"b"), Err(ShardError::Twice(2)));
    let other = ShardError::OtherShard { key: 3, shard: 1 };
    assert_eq!(shard.push(3, b"b"), Err(other));
}

#[test]
fn a_shard_has_these_bytes() {
    let spec = ShardingSpec {
        minishard_bits: 1,
        ..ShardingSpec::default()
    };
    let mut shard = ShardBuilder::new(spec, 0);
    shard.push(4, b"four").unwrap();
    shard.push(2, b"xy").unwrap();
    let words =
        |words: &[i64]| -> Vec<u8> { words.iter().flat_map(|word| word.to_le_bytes()).collect() };
    let mut wanted = words(&[6, 54, 54, 54]);
    wanted.extend_from_slice(b"fourxy");
    // Keys 2 and 4; starts 4 and 0, the second from the end of the first value; sizes.
    wanted.extend(words(&[2, 2, 4, -6, 2, 4]));
    assert_eq!(shard.finish(), wanted);
}

#[test]
fn a_bomb_is_refused() {
    let spec = ShardingSpec::default().data_encoding(ShardEncoding::Gzip);
    let mut shard = ShardBuilder::new(spec, 0);
    shard.push(0, &vec![0; 1 << 20]).unwrap();
    let bytes = shard.finish();
    assert!(bytes.len() < 2000);
    let file = ShardFile::parse(spec, &bytes).unwrap();
    let refused = ShardError::Value {
        key: 0,
        limit: (1 << 20) - 1,
    };
    assert_eq!(file.get(0, (1 << 20) - 1), Err(refused));
    assert_eq!(file.get(0, 1 << 20).unwrap().unwrap().len(), 1 << 20);
}

proptest! {
    #[test]
    fn shards_of_any_number_of_keys_ascend(keys in 0..1_u64 << 24, bytes in 0..1_u64 << 40) {
        check_ascending(keys, bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn shards_round_trip(
        values in prop::collection::btree_map(0..2000_u64, prop::collection::vec(any::<u8>(), 0..20), 0..40),
        preshift_bits in 0..4_u32,
        minishard_bits in 0..4_u32,
        shard_bits in 0..4_u32,
        is_hashed: bool,
        encodings in 0..4_u8,
    ) {
        let encoding = |bit: u8| if encodings & bit == 0 { ShardEncoding::Raw } else { ShardEncoding::Gzip };
        let spec = ShardingSpec {
            preshift_bits,
            hash: if is_hashed { ShardHash::Murmur } else { ShardHash::Identity },
            minishard_bits,
            shard_bits,
            minishard_index_encoding: encoding(1),
            data_encoding: encoding(2),
        };
        prop_assert_eq!(ShardingSpec::from_json(&spec.to_json()).unwrap(), spec);
        let mut shards: BTreeMap<u64, ShardBuilder> = BTreeMap::new();
        for (key, value) in &values {
            let shard = spec.locate(*key).shard;
            let builder = shards.entry(shard).or_insert_with(|| ShardBuilder::new(spec, shard));
            builder.push(*key, value).unwrap();
        }
        let (mut found, mut indexed) = (Vec::new(), Vec::new());
        for (shard, builder) in shards {
            let bytes = builder.finish();
            let file = ShardFile::parse(spec, &bytes).unwrap();
            found.extend(file.keys().unwrap());
            for (key, value) in values.iter().filter(|(key, _)| spec.locate(**key).shard == shard) {
                let found = file.get(*key, 100).unwrap();
                prop_assert_eq!(found.as_ref(), Some(value));
            }
            prop_assert_eq!(file.get(5000, 100).unwrap(), None);
            let index = ShardFileIndex::parse(spec, shard, &bytes).unwrap();
            for (minishard, place) in index.minishards().unwrap() {
                let range = |start: u64, end: u64| {
                    usize::try_from(start).unwrap()..usize::try_from(end).unwrap()
                };
                let stored = &bytes[range(place.start, place.end)];
                for ShardEntry { key, start, size } in index.entries(minishard, stored, 1 << 20).unwrap() {
                    let stored = bytes[range(start, start + size)].to_vec();
                    let value = ShardFileIndex::decode_value(&spec, key, stored, 100).unwrap();
                    prop_assert_eq!(Some(&value), values.get(&key));
                    indexed.push(key);
                }
            }
        }
        found.sort_unstable();
        indexed.sort_unstable();
        prop_assert_eq!(&indexed, &found);
        prop_assert_eq!(found, values.into_keys().collect::<Vec<_>>());
    }
}

#[test]
fn fragments_lie_directly_before_their_manifest() {
    let spec = ShardingSpec::for_any(3, 100);
    let shard = spec.locate(5).shard;
    let mut builder = ShardBuilder::new(spec, shard);
    builder.push_after(5, b"fragments", b"manifest").unwrap();
    assert_eq!(
        builder.push_after(5, b"others", b"again"),
        Err(ShardError::Twice(5))
    );
    let bytes = builder.finish();
    let file = ShardFile::parse(spec, &bytes).unwrap();
    assert_eq!(file.get(5, 100).unwrap().unwrap(), b"manifest");
    let raw = spec.data_encoding(ShardEncoding::Raw);
    let mut builder = ShardBuilder::new(raw, shard);
    builder.push_after(5, b"fragments", b"manifest").unwrap();
    let joined = b"fragmentsmanifest";
    let bytes = builder.finish();
    assert!(bytes.windows(joined.len()).any(|part| part == joined));
}

#[test]
fn damaged_places_in_indexes_are_refused() {
    let spec = ShardingSpec {
        minishard_bits: 1,
        shard_bits: 1,
        ..ShardingSpec::default()
    };
    let words =
        |words: &[u64]| -> Vec<u8> { words.iter().flat_map(|word| word.to_le_bytes()).collect() };
    let parse = |places: &[u64]| ShardFileIndex::parse(spec, 0, &words(places));
    assert_eq!(parse(&[0, 0, 0]).unwrap_err(), ShardError::Index);
    let index = parse(&[0, 24, 48, 24]).unwrap();
    assert_eq!(index.minishards(), Err(ShardError::Minishard(1)));
    let index = parse(&[0, u64::MAX, 0, 0]).unwrap();
    assert_eq!(index.minishards(), Err(ShardError::Minishard(0)));
    let index = parse(&[0, 24, 24, 48]).unwrap();
    assert_eq!(index.minishards().unwrap(), [(0, 32..56), (1, 56..80)]);
    let entries = |minishard, row: &[u64]| index.entries(minishard, &words(row), 1 << 20);
    let entry = ShardEntry {
        key: 4,
        start: 34,
        size: 9,
    };
    assert_eq!(entries(0, &[4, 2, 9]), Ok(vec![entry]));
    for (minishard, row, error) in [
        (0, vec![4, 2], ShardError::Minishard(0)),
        (0, vec![4, u64::MAX, 9], ShardError::Outside(4)),
        (0, vec![4, 2, u64::MAX], ShardError::Outside(4)),
        (
            0,
            vec![2, 2, 9],
            ShardError::OtherShard { key: 2, shard: 1 },
        ),
        (
            1,
            vec![4, 2, 9],
            ShardError::OtherShard { key: 4, shard: 0 },
        ),
    ] {
        assert_eq!(entries(minishard, &row), Err(error), "{row:?}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        law::shard(&bytes);
    }

    /// Most random bytes are refused at their first word, but not those of a shard with a few changes.
    #[test]
    fn damaged_shards_are_refused_or_read(
        keys in prop::collection::btree_set(0..200_u64, 1..20),
        changes in prop::collection::vec((any::<usize>(), any::<u8>()), 0..4),
        spec in any::<u8>(),
    ) {
        let sharding = law::spec(spec);
        let mut shard = ShardBuilder::new(sharding, 0);
        for key in keys.iter().filter(|key| sharding.locate(**key).shard == 0) {
            shard.push(*key, &[0, 0, 0, 0, 0, 0, 0, 0]).unwrap();
        }
        let mut bytes = [&[spec, 0], shard.finish().as_slice()].concat();
        for (at, byte) in changes {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        law::shard(&bytes);
    }
}
