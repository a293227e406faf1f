//! Benchmarks of `.tet` files: opening, planning, reading, reducing and writing, compared with a
//! memory copy of the same length.
#![expect(clippy::unwrap_used, reason = "a bench")]

use std::{hint::black_box, path::Path, sync::Arc, time::Duration};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use zvf_dense::{
    DenseArray, Hyperslab, MappedFile,
    reduce::{Reduction, reduce},
    tet::{
        Compression, DatasetSpec, TetArray, TetDtype, TetFile, TetOptions, TetWriter, WriteOptions,
    },
};

const MIB: usize = 1 << 20;

/// Creates a slowly rising sequence with noise, neither constant nor random.
fn values(count: usize) -> Vec<u8> {
    let mut state = 1_u32;
    let mut bytes = Vec::with_capacity(count * 4);
    for at in 0..count {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let noise = f32::from(u16::try_from(state >> 20).unwrap());
        let trend = f32::from(u16::try_from(at / 4096 % 60_000).unwrap());
        bytes.extend((trend + noise / 65_536.0).to_le_bytes());
    }
    bytes
}

fn write(path: &Path, shape: &[u64], chunk: &[u64], bytes: &[u8], compression: Compression) {
    let spec = DatasetSpec::new("a", TetDtype::F32, shape, chunk).compressed(compression);
    let mut writer = TetWriter::create(path, vec![spec], WriteOptions::default()).unwrap();
    writer.put_array(0, bytes).unwrap();
    writer.finish().unwrap();
}

fn open(path: &Path) -> TetArray {
    let source = Arc::new(MappedFile::open(path).unwrap());
    TetFile::open(source, TetOptions::default())
        .unwrap()
        .dataset("a")
        .unwrap()
}

fn planning(c: &mut Criterion) {
    let folder = tempfile::tempdir().unwrap();
    let mut group = c.benchmark_group("plan");
    for chunks in [1_000_u64, 10_000, 100_000] {
        let path = folder.path().join(format!("{chunks}.tet"));
        let bytes = vec![0; usize::try_from(chunks).unwrap() * 16];
        write(&path, &[chunks, 4], &[1, 4], &bytes, Compression::Raw);
        group.throughput(Throughput::Elements(chunks));
        group.bench_with_input(BenchmarkId::new("open", chunks), &path, |b, path| {
            b.iter(|| open(black_box(path)));
        });
        let array = open(&path);
        let whole = Hyperslab::whole(array.shape());
        group.bench_function(BenchmarkId::new("whole", chunks), |b| {
            b.iter(|| array.read_plan(black_box(&whole)).unwrap());
        });
        let few = Hyperslab::new(&[chunks / 2, 0], &[chunks / 2 + 10, 4], None).unwrap();
        group.bench_function(BenchmarkId::new("ten", chunks), |b| {
            b.iter(|| array.read_plan(black_box(&few)).unwrap());
        });
    }
}

fn reading(c: &mut Criterion) {
    let folder = tempfile::tempdir().unwrap();
    let bytes = values(16 * MIB);
    let shape = [256, 256, 256];
    let mut into = vec![1; bytes.len()];
    let mut group = c.benchmark_group("read 64 MiB");
    group.throughput(Throughput::Bytes(u64::try_from(bytes.len()).unwrap()));
    group.bench_function("memcpy", |b| {
        b.iter(|| into.copy_from_slice(black_box(&bytes)));
    });
    let cuts: [(&str, [u64; 3], Compression); 5] = [
        ("slabs raw", [16, 256, 256], Compression::Raw),
        ("tiles raw", [64, 64, 64], Compression::Raw),
        ("planes raw", [256, 256, 16], Compression::Raw),
        ("slabs zstd", [16, 256, 256], Compression::Zstd(1)),
        ("tiles zstd", [64, 64, 64], Compression::Zstd(1)),
    ];
    for (name, chunk, compression) in cuts {
        let path = folder.path().join(name);
        write(&path, &shape, &chunk, &bytes, compression);
        let array = open(&path);
        let whole = Hyperslab::whole(&shape);
        group.bench_function(name, |b| {
            b.iter(|| array.slice_into(black_box(&whole), &mut into).unwrap());
        });
        assert!(into == bytes, "{name}");
    }
    group.finish();
    let mut group = c.benchmark_group("parts");
    for name in ["tiles raw", "tiles zstd"] {
        let array = open(&folder.path().join(name));
        let boxes = [
            (
                "plane 0",
                Hyperslab::new(&[100, 0, 0], &[101, 256, 256], None),
            ),
            (
                "plane 1",
                Hyperslab::new(&[0, 100, 0], &[256, 101, 256], None),
            ),
            (
                "plane 2",
                Hyperslab::new(&[0, 0, 100], &[256, 256, 101], None),
            ),
            (
                "box of 10",
                Hyperslab::new(&[60, 60, 60], &[70, 70, 70], None),
            ),
            ("point", Hyperslab::new(&[9, 9, 9], &[10, 10, 10], None)),
            (
                "every 4th",
                Hyperslab::new(&[0, 0, 0], &shape, Some(&[4, 4, 4])),
            ),
        ];
        for (part, selection) in boxes {
            let selection = selection.unwrap();
            let mut into = vec![0; array.byte_len(&selection).unwrap()];
            group.bench_function(BenchmarkId::new(name, part), |b| {
                b.iter(|| array.slice_into(black_box(&selection), &mut into).unwrap());
            });
        }
    }
    group.finish();
    let mut group = c.benchmark_group("fold 64 MiB");
    group.throughput(Throughput::Bytes(u64::try_from(bytes.len()).unwrap()));
    for name in ["slabs raw", "tiles raw"] {
        let array = open(&folder.path().join(name));
        for (kind, reduction) in [
            ("sum", Reduction::Sum),
            ("min", Reduction::Min),
            ("std", Reduction::Std),
        ] {
            for (over, axes) in [("all", &[][..]), ("axis 0", &[0]), ("axis 2", &[2])] {
                group.bench_function(BenchmarkId::new(name, format!("{kind} {over}")), |b| {
                    b.iter(|| reduce(black_box(&array), reduction, axes).unwrap());
                });
            }
        }
    }
}

fn writing(c: &mut Criterion) {
    let folder = tempfile::tempdir().unwrap();
    let bytes = values(4 * MIB);
    let mut group = c.benchmark_group("write 16 MiB");
    group.throughput(Throughput::Bytes(u64::try_from(bytes.len()).unwrap()));
    for (name, compression) in [("raw", Compression::Raw), ("zstd 1", Compression::Zstd(1))] {
        let path = folder.path().join(name);
        group.bench_function(name, |b| {
            b.iter(|| write(&path, &[256, 128, 128], &[64, 64, 64], &bytes, compression));
        });
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1));
    targets = planning, reading, writing
}
criterion_main!(benches);
