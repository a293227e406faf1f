//! The cache of decoded cells.

use zvf_store::{CellArray, CellError, CellRead, CellReader, OpenOptions};

use crate::{
    cell::{frame, sharded, vlen_array},
    support::{block_on, log, numbered, recorded},
};

const KEYS: [&str; 3] = ["0/vertices/c/1/0", "0/vertices/c/1/1", "0/vertices/c/1/2"];

fn packed(payload: &[u8]) -> Vec<u8> {
    zstd::bulk::compress(&frame(payload), 3).unwrap()
}

fn cells(array: &CellArray) -> [CellRead<'_>; 3] {
    [&[1, 0], &[1, 1], &[1, 2]].map(|index| CellRead {
        array,
        index,
        part: None,
    })
}

#[test]
fn cached_cells_are_not_read_again() {
    let array = vlen_array(Some("zstd"));
    let store = recorded(&KEYS.map(|key| (key, packed(&numbered(1000)))));
    let reader = CellReader::new(store).with_cache(1 << 20);
    let [first, second, third] = cells(&array);
    let payload = || Some(numbered(1000).into());
    for _ in 0..2 {
        let read = block_on(reader.read(&[first.clone(), second.clone()]));
        assert_eq!(read.unwrap(), [payload(), payload()]);
    }
    assert_eq!(
        log(reader.store()),
        [KEYS[0], KEYS[1]].map(|key| format!("{key} all bytes"))
    );
    // A part of a cached cell and an uncached cell; clones share the cache.
    let part = CellRead {
        part: Some(10..20),
        ..second
    };
    let read = block_on(reader.clone().read(&[part, third])).unwrap();
    assert_eq!(
        read,
        [Some(numbered(1000)[10..20].to_vec().into()), payload()]
    );
    assert_eq!(log(reader.store()), [format!("{} all bytes", KEYS[2])]);
}

#[test]
fn nothing_is_cached_by_default() {
    let array = vlen_array(Some("zstd"));
    let store = recorded(&KEYS.map(|key| (key, packed(&numbered(1000)))));
    for reader in [
        CellReader::new(store.clone()),
        CellReader::new(store).with_cache(0),
    ] {
        for _ in 0..2 {
            block_on(reader.read(&cells(&array))).unwrap();
            assert_eq!(log(reader.store()).len(), 3);
        }
    }
}

#[test]
fn errors_and_absent_cells_are_not_cached() {
    let array = vlen_array(Some("zstd"));
    let store = recorded(&[(KEYS[0], b"nothing that is zstd".to_vec())]);
    let reader = CellReader::new(store).with_cache(1 << 20);
    let [damaged, absent, _] = cells(&array);
    for _ in 0..2 {
        let read = block_on(reader.read_one(damaged.clone()));
        assert!(matches!(read, Err(CellError::Decode { .. })), "{read:?}");
        assert_eq!(block_on(reader.read_one(absent.clone())).unwrap(), None);
        assert_eq!(log(reader.store()).len(), 2);
    }
}

#[test]
fn cached_cells_count_towards_the_budget() {
    let array = vlen_array(Some("zstd"));
    let options = OpenOptions::default().budget(2500);
    let objects = KEYS.map(|key| (key, packed(&numbered(1000))));
    let store = options.from_memory(objects).unwrap();
    let reader = CellReader::new(store).with_cache(1 << 20);
    for cell in cells(&array) {
        block_on(reader.read_one(cell)).unwrap();
    }
    let read = block_on(reader.read(&cells(&array)));
    assert!(read.unwrap_err().is_over_budget());
}

/// Reads cells of a shard: each is cached under its number, without its neighbours.
#[test]
fn cells_of_shards_are_cached_by_number() {
    let array = sharded("end", None);
    let payloads = [numbered(300), numbered(200)];
    let frames = payloads.clone().map(|payload| frame(&payload));
    let mut shard = frames.concat();
    let mut index = Vec::new();
    let mut start = 0;
    for frame in &frames {
        let len = u64::try_from(frame.len()).unwrap();
        index.extend([start, len].map(u64::to_le_bytes).concat());
        start += len;
    }
    index.extend([0xff; 32]);
    shard.extend_from_slice(&index);
    shard.extend(crc32c::crc32c(&index).to_le_bytes());
    let reader = CellReader::new(recorded(&[("0/vertices/c/0/0", shard)])).with_cache(1 << 20);
    let read = |index: &[u64]| {
        let (array, part) = (&array, None);
        block_on(reader.read_one(CellRead { array, index, part })).unwrap()
    };
    for _ in 0..2 {
        assert_eq!(read(&[0, 0]).unwrap(), payloads[0]);
        assert_eq!(read(&[0, 1]).unwrap(), payloads[1]);
        assert_eq!(read(&[1, 1]), None);
    }
    let requests = log(reader.store());
    assert_eq!(
        requests.len(),
        3,
        "the index, and each cell once: {requests:?}"
    );
}
