//! Invariants of shards and of lists of annotations for arbitrary bytes, used by the tests of shards
//! and the fuzz target `precomputed_shard`.

use zvf_precomputed::{
    AnnotationKind, AnnotationList, PropertySpec, RecordLayout, ShardEncoding, ShardFile,
    ShardFileIndex, ShardHash, ShardingSpec,
};

/// Limit of unpacked bytes.
const MAX_BYTES: u64 = 1 << 16;

/// Returns a division of keys that a byte selects.
pub(crate) fn spec(byte: u8) -> ShardingSpec {
    let encoding = |bit: u8| match byte & bit {
        0 => ShardEncoding::Raw,
        _ => ShardEncoding::Gzip,
    };
    ShardingSpec {
        preshift_bits: u32::from(byte >> 6),
        hash: match byte & 4 {
            0 => ShardHash::Identity,
            _ => ShardHash::Murmur,
        },
        minishard_bits: u32::from(byte >> 3 & 3),
        shard_bits: u32::from(byte >> 5 & 1),
        minishard_index_encoding: encoding(1),
        data_encoding: encoding(2),
    }
}

/// Checks that a shard that is read by ranges has the keys and values of the whole shard, and that a
/// list of annotations that is divided has the records of the decoded list. The first two bytes
/// select the division of keys and the layout of annotations.
pub(crate) fn shard(bytes: &[u8]) {
    let [first, second, bytes @ ..] = bytes else {
        return;
    };
    let spec = spec(*first);
    let whole = ShardFile::parse(spec, bytes);
    let index = ShardFileIndex::parse(spec, 0, bytes);
    assert_eq!(whole.is_ok(), index.is_ok());
    let (Ok(whole), Ok(index)) = (whole, index) else {
        return;
    };
    let part = |start: u64, end: u64| {
        let range = usize::try_from(start).ok()?..usize::try_from(end).ok()?;
        bytes.get(range)
    };
    for (minishard, place) in index.minishards().unwrap_or_default() {
        let Some(stored) = part(place.start, place.end) else {
            continue;
        };
        let Ok(entries) = index.entries(minishard, stored, MAX_BYTES) else {
            continue;
        };
        let mut known = Vec::new();
        for entry in entries {
            let end = entry.start.checked_add(entry.size);
            let stored = end.and_then(|end| part(entry.start, end));
            // A key that repeats has the value of its first entry.
            let is_first = !known.contains(&entry.key);
            known.push(entry.key);
            if let Some(stored) = stored {
                let value =
                    ShardFileIndex::decode_value(&spec, entry.key, stored.to_vec(), MAX_BYTES);
                if is_first {
                    let found = whole
                        .get(entry.key, MAX_BYTES)
                        .map(Option::unwrap_or_default);
                    assert_eq!(found, value);
                }
                if let Ok(value) = value {
                    list(*second, &value);
                }
            }
        }
    }
}

fn list(byte: u8, bytes: &[u8]) {
    let kinds = AnnotationKind::ALL;
    let kind = kinds[usize::from(byte) % kinds.len()];
    let layout = RecordLayout::new(kind, usize::from(byte >> 6), &[PropertySpec::default()]);
    let split = AnnotationList::split(bytes, &layout);
    let whole = AnnotationList::decode(bytes, &layout);
    assert_eq!(split.is_ok(), whole.is_ok());
    let (Ok(split), Ok(whole)) = (split, whole) else {
        return;
    };
    assert!(split.iter().map(|record| record.id).eq(whole.ids));
    for (record, annotation) in split.iter().zip(whole.annotations) {
        let decoded = layout.decode_single(record.bytes, 0);
        // Values that are not numbers are not equal to themselves.
        let decoded = decoded.map(|(decoded, _)| format!("{decoded:?}"));
        assert_eq!(decoded, Ok(format!("{annotation:?}")));
    }
}
