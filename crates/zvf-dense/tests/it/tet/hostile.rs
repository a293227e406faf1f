//! Damaged files are rejected or read, in bounded memory, without a panic.

use std::sync::Arc;

use zvf_dense::{
    DenseArray, DenseError, Hyperslab, MemorySource,
    tet::{
        Compression, DatasetSpec, MemoryBudget, TetDtype, TetFile, TetOptions, TetWriter,
        WriteOptions, verify,
    },
};
use zvf_testkit::golden::Golden;

#[path = "../../laws/tet.rs"]
mod law;

use law::tet as walk;

use crate::peak;

#[test]
fn mutated_files_are_rejected_or_read() {
    let golden = Golden::open("tet");
    let good: Vec<_> = golden
        .files()
        .filter(|(path, _)| path.starts_with("good/"))
        .filter(|(_, bytes)| bytes.len() < 9000)
        .collect();
    let mut state = 0x5eed_u64;
    let mut next = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695);
        usize::try_from(state >> 33).unwrap() % below
    };
    let (mut read, mut refused) = (0, 0);
    let before = peak();
    for round in 0..30_000 {
        let (_, bytes) = good[round % good.len()];
        let mut mutant = bytes.to_vec();
        for _ in 0..=next(3) {
            // Most significant damage is before the payloads and at the end.
            let len = mutant.len();
            let at = match next(4) {
                0 => next(len),
                1 => len - 1 - next(len.min(120)),
                _ => next(len.min(400)),
            };
            match next(6) {
                0 => mutant[at] ^= 1 << next(8),
                1 => mutant[at] = [0, 1, 0x7f, 0x80, 0xff][next(5)],
                2 => mutant.truncate(at.max(1)),
                3 => {
                    let (from, count) = (next(len), next(16));
                    for k in 0..count.min(len - at).min(len - from) {
                        mutant[at + k] = mutant[from + k];
                    }
                }
                4 => {
                    let value = [u64::MAX, u64::MAX / 2, 1 << 40, 0][next(4)].to_le_bytes();
                    let end = len.min(at + 8);
                    mutant[at..end].copy_from_slice(&value[..end - at]);
                }
                _ => mutant.insert(at, 0),
            }
        }
        if walk(&mutant) {
            read += 1;
        } else {
            refused += 1;
        }
    }
    // Both outcomes must occur, otherwise the mutations test nothing.
    assert!(
        read > 3000 && refused > 10_000,
        "{read} read, {refused} refused"
    );
    // A result takes at most 1 MiB, plus at most 64 MiB while reading.
    let grown = peak() - before;
    assert!(grown < 128 << 20, "{grown} bytes more");
}

#[test]
fn every_prefix_is_rejected() {
    let golden = Golden::open("tet");
    for name in ["footer_v2_zone_index", "f64_1d_edges_zstd"] {
        let bytes = golden.file(&format!("good/{name}.tet"));
        assert!(walk(bytes));
        for len in 0..bytes.len() {
            assert!(!walk(&bytes[..len]), "{name}: {len} bytes");
        }
    }
}

#[test]
fn decompression_bombs_are_rejected_without_allocation() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bomb.tet");
    let len = 16 << 20;
    let spec = DatasetSpec::new("a", TetDtype::U8, &[len], &[len]).compressed(Compression::Zstd(3));
    let mut writer = TetWriter::create(&path, vec![spec], WriteOptions::default()).unwrap();
    writer
        .put_chunk(0, &vec![0; usize::try_from(len).unwrap()])
        .unwrap();
    writer.finish().unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    assert!(bytes.len() < 4096);
    // The frame declares 16 MiB, the tile one byte.
    let edit = |bytes: &mut Vec<u8>, at: usize, value: u64| {
        bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
    };
    let record = 40 + 16 + 8;
    let row = record + 16 + 32;
    let mut small = bytes.clone();
    edit(&mut small, record, 1);
    edit(&mut small, record + 8, 1);
    edit(&mut small, row + 80, 1);
    let source = Arc::new(MemorySource::new("small", small));
    let before = peak();
    let found = verify(source, TetOptions::default(), true).unwrap();
    assert!(!found.is_ok());
    // The tile declares 2^50 bytes: the budget rejects it before memory is reserved.
    for at in [record, record + 8, row + 80] {
        edit(&mut bytes, at, 1 << 50);
    }
    let source = Arc::new(MemorySource::new("large", bytes));
    let file = TetFile::open(source, TetOptions::default()).unwrap();
    let array = file.dataset("a").unwrap();
    let one = Hyperslab::new(&[0], &[1], None).unwrap();
    let error = array.slice(&one).unwrap_err().to_string();
    assert!(
        error.contains("the result takes 1125899906842624 bytes"),
        "{error}"
    );
    assert!(array.slice(&Hyperslab::whole(array.shape())).is_err());
    // Neither declared length was reserved.
    let grown = peak() - before;
    assert!(grown < 8 << 20, "{grown} bytes more");
}

/// The budget of the caller, or else of the file, limits results to the byte. Many zstd tiles are
/// decoded one batch at a time.
#[test]
fn budgets_limit_results_to_the_byte() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tet");
    let (len, chunk) = (512_u64 << 20, 1 << 20);
    let spec =
        DatasetSpec::new("a", TetDtype::U8, &[len], &[chunk]).compressed(Compression::Zstd(1));
    let options = WriteOptions {
        memory_budget_bytes: 3 << 20,
        ..WriteOptions::default()
    };
    let mut writer = TetWriter::create(&path, vec![spec], options).unwrap();
    let tile = vec![0; usize::try_from(chunk).unwrap()];
    for _ in 0..len / chunk {
        writer.put_chunk(0, &tile).unwrap();
    }
    writer.finish().unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let file = |budget| {
        let source = Arc::new(MemorySource::new("a", bytes.clone()));
        TetFile::open(source, TetOptions { budget }).unwrap()
    };
    let take = |file: &TetFile, count: u64| {
        let array = file.dataset("a").unwrap();
        array.slice(&Hyperslab::new(&[5], &[5 + count], None).unwrap())
    };
    let of_file = file(MemoryBudget::default());
    assert_eq!(take(&of_file, 3 << 20).unwrap().len(), 3 << 20);
    assert!(matches!(
        take(&of_file, (3 << 20) + 1),
        Err(DenseError::Budget { needed, budget }) if (needed, budget) == ((3 << 20) + 1, 3 << 20)
    ));
    let of_caller = file(MemoryBudget {
        bytes: Some(1000),
        bps: None,
    });
    assert!(matches!(
        take(&of_caller, 1001),
        Err(DenseError::Budget {
            needed: 1001,
            budget: 1000
        })
    ));
    // A chunk must fit as well.
    assert!(matches!(
        take(&of_caller, 1000),
        Err(DenseError::Budget { needed, budget: 1000 }) if needed == chunk
    ));
    let array = of_caller.dataset("a").unwrap();
    assert!(matches!(
        array.visit_chunks(&mut |_, _| Ok(())),
        Err(DenseError::Budget { needed, budget: 1000 }) if needed == chunk
    ));
    // All chunks together exceed the budget; those in memory do not.
    let before = peak();
    let mut seen = 0;
    let array = of_file.dataset("a").unwrap();
    array
        .visit_chunks(&mut |_, bytes| {
            seen += bytes.len();
            Ok(())
        })
        .unwrap();
    let source = Arc::new(MemorySource::new("a", bytes.clone()));
    assert!(verify(source, TetOptions::default(), true).unwrap().is_ok());
    assert_eq!(u64::try_from(seen).unwrap(), len);
    let grown = peak() - before;
    assert!(grown < 48 << 20, "{grown} bytes more");
}
