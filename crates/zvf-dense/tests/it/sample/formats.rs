//! Samples of every format and dtype, compared with plain loops.

use std::{path::Path, sync::Arc};

use zvf_dense::{
    DenseArray, MappedFile, MemoryArray, NumpyDtype,
    b2nd::{B2nd, B2ndDesign, B2ndWriter},
    npy::{NpyArray, NpySink},
    sample::{Affine, Interpolation, Outside, SampleOptions, Sampler},
    tet::{Compression, DatasetSpec, TetDtype, TetFile, TetOptions, TetWriter, WriteOptions},
};

use super::{Draw, plain};

const SHAPE: [u64; 3] = [9, 11, 13];
const CHUNK: [u64; 3] = [4, 6, 5];
const BLOCK: [u64; 3] = [2, 3, 5];
/// Numeric dtypes, most of them in both byte orders.
const DTYPES: [&str; 13] = [
    "|u1", "|i1", "<i2", ">i2", "<u2", "<i4", ">u4", "<f2", ">f2", "<f4", ">f4", "<f8", ">f8",
];

/// Creates elements of a dtype, as bytes and as values.
fn elements(draw: &mut Draw, dtype: &str) -> (Vec<u8>, Vec<f64>) {
    let is_big = dtype.starts_with('>');
    let is_float = dtype.contains('f');
    let (mut bytes, mut values) = (Vec::new(), Vec::new());
    for _ in 0..SHAPE.iter().product::<u64>() {
        // Small numbers, which all dtypes represent exactly.
        let sign = if dtype.contains('u') { 0 } else { 60 };
        let number = i16::try_from(draw.below(120)).unwrap() - sign;
        let is_nan = is_float && draw.below(9) == 0;
        let value = match (is_float, is_nan) {
            (_, true) => f64::NAN,
            (true, _) => f64::from(number) / 8.0,
            (false, _) => f64::from(number),
        };
        #[expect(clippy::cast_possible_truncation, reason = "eighths below 8")]
        let single = value as f32;
        let mut own = match &dtype[1..] {
            "u1" | "i1" => vec![number.to_le_bytes()[0]],
            "i2" | "u2" => number.to_le_bytes().to_vec(),
            "i4" | "u4" => i32::from(number).to_le_bytes().to_vec(),
            "f2" => half::f16::from_f32(single).to_le_bytes().to_vec(),
            "f4" => single.to_le_bytes().to_vec(),
            _ => value.to_le_bytes().to_vec(),
        };
        if is_big {
            own.reverse();
        }
        bytes.extend(own);
        values.push(value);
    }
    (bytes, values)
}

fn b2nd(path: &Path, dtype: &str, bytes: &[u8]) -> Box<dyn DenseArray> {
    let design =
        B2ndDesign::new(&SHAPE, NumpyDtype::parse(dtype).unwrap()).with_chunks(&CHUNK, &BLOCK);
    let mut writer = B2ndWriter::create(path, &design).unwrap();
    writer.put_all(bytes).unwrap();
    zvf_dense::DenseSink::finish(Box::new(writer)).unwrap();
    Box::new(B2nd::open(path).unwrap())
}

fn npy(path: &Path, array: &MemoryArray) -> Box<dyn DenseArray> {
    let sink = NpySink::create(path, array.dtype(), array.shape(), &CHUNK).unwrap();
    zvf_dense::convert(array, Box::new(sink), &mut |_| ()).unwrap();
    let source = Arc::new(MappedFile::open(path).unwrap());
    Box::new(NpyArray::open(source, None).unwrap())
}

/// Writes a `.tet` file; `None` for dtypes that the format lacks, such as big-endian ones.
fn tet(
    path: &Path,
    dtype: &str,
    bytes: &[u8],
    compression: Compression,
) -> Option<Box<dyn DenseArray>> {
    let dtype = match dtype {
        "|u1" => TetDtype::U8,
        "<i2" => TetDtype::I16,
        "<u2" => TetDtype::U16,
        "<i4" => TetDtype::I32,
        "<f4" => TetDtype::F32,
        "<f8" => TetDtype::F64,
        _ => return None,
    };
    let spec = DatasetSpec::new("a", dtype, &SHAPE, &CHUNK).compressed(compression);
    let mut writer = TetWriter::create(path, vec![spec], WriteOptions::default()).unwrap();
    writer.put_array(0, bytes).unwrap();
    writer.finish().unwrap();
    let source = Arc::new(MappedFile::open(path).unwrap());
    let file = TetFile::open(source, TetOptions::default()).unwrap();
    Some(Box::new(file.dataset("a").unwrap()))
}

#[cfg(feature = "zarr")]
mod zarr {
    use std::fs;

    use super::*;
    use zvf_dense::{
        ChunkGrid, Hyperslab,
        zarr::{ZarrArray, ZarrCompression, ZarrSink},
    };

    pub(super) fn v3(path: &Path, array: &MemoryArray) -> Box<dyn DenseArray> {
        let grid = ChunkGrid::new(SHAPE.to_vec(), CHUNK.to_vec(), None).unwrap();
        let (codec, attributes) = (ZarrCompression::Zstd(1), serde_json::Map::new());
        let sink = ZarrSink::create(path, array.dtype(), grid, codec, &attributes, None);
        zvf_dense::convert(array, Box::new(sink.unwrap()), &mut |_| ()).unwrap();
        Box::new(ZarrArray::open(path, None).unwrap())
    }

    /// Writes raw chunks, which Zarr 2 stores at full size at the edges too.
    pub(super) fn v2(path: &Path, dtype: &str, array: &MemoryArray) -> Box<dyn DenseArray> {
        fs::create_dir(path).unwrap();
        let metadata = format!(
            r#"{{"zarr_format": 2, "shape": {SHAPE:?}, "chunks": {CHUNK:?}, "dtype": "{dtype}",
            "compressor": null, "fill_value": 0, "filters": null, "order": "C"}}"#
        );
        fs::write(path.join(".zarray"), metadata).unwrap();
        let size = usize::try_from(array.dtype().size()).unwrap();
        let counts = [0, 1, 2].map(|axis| SHAPE[axis].div_ceil(CHUNK[axis]));
        for number in 0..counts.iter().product() {
            let at = [
                number / (counts[1] * counts[2]),
                number / counts[2] % counts[1],
                number % counts[2],
            ];
            let mut bytes = Vec::new();
            for element in 0..CHUNK.iter().product() {
                let within = [
                    element / (CHUNK[1] * CHUNK[2]),
                    element / CHUNK[2] % CHUNK[1],
                    element % CHUNK[2],
                ];
                let place = [0, 1, 2].map(|axis| at[axis] * CHUNK[axis] + within[axis]);
                if place.iter().zip(SHAPE).any(|(at, extent)| *at >= extent) {
                    bytes.resize(bytes.len() + size, 0);
                    continue;
                }
                let ends = place.map(|at| at + 1);
                let one = Hyperslab::new(&place, &ends, None).unwrap();
                bytes.extend_from_slice(&array.slice(&one).unwrap());
            }
            fs::write(path.join(format!("{}.{}.{}", at[0], at[1], at[2])), bytes).unwrap();
        }
        Box::new(ZarrArray::open(path, None).unwrap())
    }
}

/// Samples positions and converts the values to `f64`.
fn sampled(array: &dyn DenseArray, options: &SampleOptions, positions: &[f64]) -> Vec<f64> {
    let sampler = Sampler::new(array, 3, options).unwrap();
    // Two calls; the second one uses tiles that the first one read.
    let (first, second) = positions.split_at(positions.len() / 6 * 3);
    let mut bytes = sampler.sample(first).unwrap().values;
    bytes.extend(sampler.sample(second).unwrap().values);
    let dtype = NumpyDtype::from(sampler.kind());
    let count = u64::try_from(positions.len() / 3).unwrap();
    let values = MemoryArray::new("values", dtype, vec![count], bytes).unwrap();
    numbers(&values)
}

fn numbers(values: &MemoryArray) -> Vec<f64> {
    let bytes = crate::convert::read(values);
    let size = usize::try_from(values.dtype().size()).unwrap();
    let text = values.dtype().to_string();
    let one = |own: &[u8]| match (&text[1..], own) {
        ("u1", [a]) => f64::from(*a),
        ("i1", [a]) => f64::from(i8::from_le_bytes([*a])),
        ("u2", &[a, b]) => f64::from(u16::from_le_bytes([a, b])),
        ("i2", &[a, b]) => f64::from(i16::from_le_bytes([a, b])),
        ("u4", &[a, b, c, d]) => f64::from(u32::from_le_bytes([a, b, c, d])),
        ("i4", &[a, b, c, d]) => f64::from(i32::from_le_bytes([a, b, c, d])),
        ("f4", &[a, b, c, d]) => f64::from(f32::from_le_bytes([a, b, c, d])),
        ("f8", own) => f64::from_le_bytes(own.try_into().unwrap()),
        (other, _) => unreachable!("{other}"),
    };
    bytes.chunks(size).map(one).collect()
}

#[test]
fn samples_of_every_format_and_dtype_match_plain_loops() {
    let mut draw = Draw::new(0x5eed_1234);
    let folder = tempfile::tempdir().unwrap();
    // A rotation tells axes apart; some points are outside.
    let matrix = [
        0.9, 0.2, -0.1, 0.3, -0.2, 1.1, 0.15, 0.2, 0.1, -0.15, 0.95, 0.1, 0.0, 0.0, 0.0, 1.0,
    ];
    let mut positions = Vec::new();
    for _ in 0..24 {
        positions.extend([8.0, 10.0, 12.0].map(|end| draw.float(-1.0, end + 1.5)));
    }
    // NaN, infinity, and positions exactly on voxels and borders.
    positions.extend([f64::NAN, 1.0, 1.0, f64::INFINITY, 0.0, 0.0]);
    positions.extend([
        0.0, 0.0, 0.0, 4.0, 6.0, 5.0, 8.0, 10.0, 12.0, -0.5, 0.0, 0.0,
    ]);
    for (at, dtype) in DTYPES.into_iter().enumerate() {
        let (bytes, values) = elements(&mut draw, dtype);
        let path = |end: &str| folder.path().join(format!("{at}{end}"));
        let memory = MemoryArray::new(
            "memory",
            NumpyDtype::parse(dtype).unwrap(),
            SHAPE.to_vec(),
            bytes.clone(),
        )
        .unwrap();
        let mut arrays = vec![
            b2nd(&path(".b2nd"), dtype, &bytes),
            npy(&path(".npy"), &memory),
        ];
        for (end, compression) in [(".raw", Compression::Raw), (".zstd", Compression::Zstd(1))] {
            arrays.extend(tet(&path(end), dtype, &bytes, compression));
        }
        #[cfg(feature = "zarr")]
        {
            arrays.push(zarr::v2(&path(".zarr2"), dtype, &memory));
            if !dtype.starts_with('>') {
                arrays.push(zarr::v3(&path(".zarr3"), &memory));
            }
        }
        arrays.push(Box::new(memory));
        for interpolation in [
            Interpolation::Nearest,
            Interpolation::Linear,
            Interpolation::Cubic,
        ] {
            for (is_mapped, is_edge, budget) in [
                (false, false, None),
                (true, false, None),
                (true, true, Some(8000)),
            ] {
                let options = SampleOptions {
                    interpolation,
                    affine: is_mapped.then(|| Affine::of(&matrix).unwrap()),
                    outside: Some(if is_edge {
                        Outside::Edge
                    } else {
                        Outside::Fill(77.0)
                    }),
                    budget,
                };
                let mapped = |row: &[f64], at: &[f64]| {
                    row.iter().zip(at).map(|(a, b)| a * b).sum::<f64>() + row[3]
                };
                let places: Vec<Vec<f64>> = positions
                    .chunks(3)
                    .map(|position| {
                        if is_mapped {
                            matrix
                                .chunks(4)
                                .take(3)
                                .map(|row| mapped(row, position))
                                .collect()
                        } else {
                            position.to_vec()
                        }
                    })
                    .collect();
                let expected: Vec<f64> = places
                    .iter()
                    .map(|at| expected(&values, at, interpolation, is_edge, dtype))
                    .collect();
                for array in &arrays {
                    let found = sampled(&**array, &options, &positions);
                    for ((found, expected), at) in found.iter().zip(&expected).zip(&places) {
                        let is_same = found.is_nan() && expected.is_nan();
                        assert!(
                            is_same || (found - expected).abs() < 1e-4,
                            "{} {dtype}, {interpolation:?} at {at:?}: {found}, not {expected}",
                            array.name()
                        );
                    }
                }
            }
        }
    }
}

/// Computes the value of plain loops; 77 outside.
fn expected(
    values: &[f64],
    at: &[f64],
    interpolation: Interpolation,
    is_edge: bool,
    dtype: &str,
) -> f64 {
    let ends = SHAPE.map(|extent| f64::from(u32::try_from(extent).unwrap()) - 0.5);
    let is_nan = at.iter().any(|at| at.is_nan());
    let is_inside = at
        .iter()
        .zip(ends)
        .all(|(at, end)| (-0.5..=end).contains(at));
    match (is_nan, is_edge, is_inside) {
        // NaN positions at the edge: integers have no NaN and give 0.
        (true, true, _) if interpolation == Interpolation::Nearest && !dtype.contains('f') => 0.0,
        (true, true, _) => f64::NAN,
        (true, false, _) | (_, false, false) => 77.0,
        _ => plain(values, &SHAPE, 1, at, (interpolation, is_edge))[0],
    }
}
