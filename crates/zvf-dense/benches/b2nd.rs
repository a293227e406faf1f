//! Benchmarks of Blosc2: reads of boxes into existing memory, and decoding and encoding of chunks.

#![expect(clippy::unwrap_used, reason = "a bench")]

use std::{hint::black_box, sync::Arc};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use zvf_dense::{
    DenseArray, Hyperslab, MemorySource, NumpyDtype,
    b2nd::{B2nd, B2ndDesign, B2ndWriter, DEFAULT_BUDGET},
    blosc::{BloscChunk, BloscCodec, BloscFilter, ChunkEncoder, Decoder},
};

const EXTENT: u64 = 256;

/// Creates waves with noise in the low bits, similar to scanner data.
fn volume() -> Vec<u8> {
    let mut state = 1_u32;
    let mut bytes = Vec::new();
    for i in 0..EXTENT * EXTENT * EXTENT {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let wave = ((i % EXTENT) ^ (i >> 8 & 0xff)) << 14 | (i >> 16) << 22;
        let value = 0x3f80_0000 | u32::try_from(wave).unwrap_or(0) & 0x007f_f000 | state >> 22;
        bytes.extend(value.to_le_bytes());
    }
    bytes
}

fn boxes(criterion: &mut Criterion) {
    let dtype = NumpyDtype::parse("<f4").unwrap();
    let design = B2ndDesign::new(&[EXTENT; 3], dtype).with_chunks(&[64; 3], &[16; 3]);
    let frame = B2ndWriter::encode(&design, &volume()).unwrap();
    let source = MemorySource::new("memory", frame);
    let array = B2nd::from_source(Arc::new(source), 0, DEFAULT_BUDGET).unwrap();
    let mut group = criterion.benchmark_group("b2nd 256^3 f4");
    for (name, start, stop) in [
        ("plane 0", [100, 0, 0], [101, 256, 256]),
        ("plane 1", [0, 100, 0], [256, 101, 256]),
        ("plane 2", [0, 0, 100], [256, 256, 101]),
        ("10^3 box", [60, 60, 60], [70, 70, 70]),
        ("point", [99, 99, 99], [100, 100, 100]),
        ("whole", [0, 0, 0], [256, 256, 256]),
    ] {
        let selection = Hyperslab::new(&start, &stop, None).unwrap();
        let mut into = vec![0; array.byte_len(&selection).unwrap()];
        group.throughput(Throughput::Bytes(u64::try_from(into.len()).unwrap()));
        group.bench_function(name, |bencher| {
            bencher.iter(|| array.slice_into(black_box(&selection), &mut into).unwrap());
        });
    }
    group.finish();
}

fn chunks(criterion: &mut Criterion) {
    let bytes: Vec<u8> = volume().into_iter().take(1 << 20).collect();
    let mut group = criterion.benchmark_group("blosc chunk 1 MiB");
    group.throughput(Throughput::Bytes(u64::try_from(bytes.len()).unwrap()));
    for (name, codec, filter) in [
        ("lz4 shuffle", BloscCodec::Lz4, BloscFilter::Shuffle),
        ("lz4 bitshuffle", BloscCodec::Lz4, BloscFilter::BitShuffle),
        ("zstd shuffle", BloscCodec::Zstd, BloscFilter::Shuffle),
    ] {
        let encoder = ChunkEncoder::new(codec, 4, 16 << 10)
            .with_level(3)
            .with_filters(&[filter])
            .unwrap();
        let stored = encoder.encode(&bytes).unwrap();
        let chunk = BloscChunk::parse(&stored).unwrap();
        let (mut decoder, mut into) = (Decoder::default(), vec![0; bytes.len()]);
        group.bench_function(format!("decode {name}"), |bencher| {
            bencher.iter(|| chunk.decode(4, &mut decoder, &mut into).unwrap());
        });
        group.bench_function(format!("encode {name}"), |bencher| {
            bencher.iter(|| encoder.encode(black_box(&bytes)).unwrap());
        });
    }
    group.finish();
}

criterion_group!(benches, boxes, chunks);
criterion_main!(benches);
