//! NIfTI volumes, built by hand from the tables of the standard.

use std::{io::Write, sync::Arc};

use zvf_dense::{
    DenseArray, DenseError, Hyperslab, MemorySource,
    nifti::{NiftiArray, NiftiError, NiftiTransform},
    sample::{Interpolation, SampleOptions, Sampler},
};

/// Fields of a header that tests change.
#[derive(Clone)]
struct Header {
    is_big: bool,
    dim: Vec<i64>,
    datatype: i16,
    pixdim: [f64; 4],
    slope: f64,
    intercept: f64,
    qform: Option<[f64; 6]>,
    sform: Option<[f64; 12]>,
    magic: &'static [u8],
    voxels: Vec<u8>,
}

/// A volume of 2 x 3 x 4 voxels of int16, whose values count up in the order of the file.
fn header() -> Header {
    Header {
        is_big: false,
        dim: vec![2, 3, 4],
        datatype: 4,
        pixdim: [1.0; 4],
        slope: 0.0,
        intercept: 0.0,
        qform: None,
        sform: None,
        magic: b"n+1\0",
        voxels: (0..24_i16).flat_map(i16::to_le_bytes).collect(),
    }
}

impl Header {
    fn put(&self, bytes: &mut [u8], at: usize, mut value: Vec<u8>) {
        if self.is_big {
            value.reverse();
        }
        bytes[at..at + value.len()].copy_from_slice(&value);
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "numbers of tests are small"
    )]
    fn version_1(&self) -> Vec<u8> {
        let mut bytes = vec![0; 352];
        let mut float = |at: usize, value: f64| {
            self.put(&mut bytes, at, (value as f32).to_le_bytes().to_vec());
        };
        for (at, size) in self.pixdim.iter().enumerate() {
            float(76 + 4 * at, *size);
        }
        float(108, 352.0);
        float(112, self.slope);
        float(116, self.intercept);
        for (at, value) in self.qform.iter().flatten().enumerate() {
            float(256 + 4 * at, *value);
        }
        for (at, value) in self.sform.iter().flatten().enumerate() {
            float(280 + 4 * at, *value);
        }
        let mut short = |at: usize, value: i16| {
            self.put(&mut bytes, at, value.to_le_bytes().to_vec());
        };
        short(40, i16::try_from(self.dim.len()).unwrap());
        for (at, extent) in self.dim.iter().enumerate() {
            short(42 + 2 * at, i16::try_from(*extent).unwrap());
        }
        short(70, self.datatype);
        short(252, self.qform.is_some().into());
        short(254, self.sform.is_some().into());
        self.put(&mut bytes, 0, 348_i32.to_le_bytes().to_vec());
        bytes[344..348].copy_from_slice(self.magic);
        bytes.extend(&self.voxels);
        bytes
    }

    fn version_2(&self) -> Vec<u8> {
        let mut bytes = vec![0; 544];
        let mut wide = |at: usize, value: [u8; 8]| self.put(&mut bytes, at, value.to_vec());
        wide(16, i64::try_from(self.dim.len()).unwrap().to_le_bytes());
        for (at, extent) in self.dim.iter().enumerate() {
            wide(24 + 8 * at, extent.to_le_bytes());
        }
        for (at, size) in self.pixdim.iter().enumerate() {
            wide(104 + 8 * at, size.to_le_bytes());
        }
        wide(168, 544_i64.to_le_bytes());
        wide(176, self.slope.to_le_bytes());
        wide(184, self.intercept.to_le_bytes());
        for (at, value) in self.qform.iter().flatten().enumerate() {
            wide(352 + 8 * at, value.to_le_bytes());
        }
        for (at, value) in self.sform.iter().flatten().enumerate() {
            wide(400 + 8 * at, value.to_le_bytes());
        }
        let code = |is: bool| i32::from(is).to_le_bytes().to_vec();
        self.put(&mut bytes, 344, code(self.qform.is_some()));
        self.put(&mut bytes, 348, code(self.sform.is_some()));
        self.put(&mut bytes, 0, 540_i32.to_le_bytes().to_vec());
        self.put(&mut bytes, 12, self.datatype.to_le_bytes().to_vec());
        bytes[4..12].copy_from_slice(b"n+2\0\r\n\x1a\n");
        bytes.extend(&self.voxels);
        bytes
    }
}

fn open(bytes: Vec<u8>) -> Result<NiftiArray, DenseError> {
    NiftiArray::open(Arc::new(MemorySource::new("v.nii", bytes)), None)
}

#[track_caller]
fn refused(bytes: Vec<u8>) -> NiftiError {
    match open(bytes) {
        Err(DenseError::Nifti { name, source }) => {
            assert_eq!(name, "v.nii");
            source
        }
        other => unreachable!("{other:?}"),
    }
}

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut into = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    into.write_all(bytes).unwrap();
    into.finish().unwrap()
}

/// All voxels in row-major order.
fn int16s(array: &NiftiArray) -> Vec<i16> {
    let bytes = array.slice(&Hyperslab::whole(array.shape())).unwrap();
    let values = bytes.chunks_exact(2);
    values.map(|v| i16::from_le_bytes([v[0], v[1]])).collect()
}

/// The values at positions, by the map of the header.
fn sampled(array: &NiftiArray, positions: &[[f64; 3]]) -> Vec<f32> {
    let options = SampleOptions {
        interpolation: Interpolation::Linear,
        affine: Some(array.world_to_voxel().unwrap().clone()),
        outside: None,
        budget: None,
    };
    let sampler = Sampler::new(array, 3, &options).unwrap();
    let sampled = sampler.sample(&positions.concat()).unwrap();
    let values = sampled.values.chunks_exact(4);
    values
        .map(|v| f32::from_le_bytes([v[0], v[1], v[2], v[3]]))
        .collect()
}

#[test]
fn the_first_axis_is_the_fastest_in_both_versions() {
    let mut expected = Vec::new();
    for x in 0..2 {
        for y in 0..3 {
            expected.extend((0..4).map(|z| x + 2 * y + 6 * z));
        }
    }
    for bytes in [header().version_1(), header().version_2()] {
        for bytes in [gzipped(&bytes), bytes] {
            let array = open(bytes).unwrap();
            assert_eq!(array.shape(), [2, 3, 4]);
            assert_eq!(int16s(&array), expected);
        }
    }
    let mut big = header();
    big.is_big = true;
    big.voxels = (0..24_i16).flat_map(i16::to_be_bytes).collect();
    for bytes in [big.version_1(), big.version_2()] {
        assert_eq!(sampled(&open(bytes).unwrap(), &[[1.0, 2.0, 3.0]]), [23.0]);
    }
}

#[test]
fn axes_of_extent_1_at_the_end_are_dropped() {
    let shape = |dim: &[i64]| {
        let mut header = header();
        header.dim = dim.to_vec();
        open(header.version_1()).unwrap().shape().to_vec()
    };
    assert_eq!(shape(&[2, 3, 4, 1, 1]), [2, 3, 4]);
    assert_eq!(shape(&[2, 3, 2, 2]), [2, 3, 2, 2]);
    assert_eq!(shape(&[24, 1, 1]), [24, 1, 1]);
    assert_eq!(shape(&[24]), [24, 1, 1]);
}

#[test]
fn scaling_makes_floats() {
    let mut header = header();
    (header.slope, header.intercept) = (0.5, -3.0);
    let array = open(header.version_1()).unwrap();
    assert_eq!(array.dtype().to_string(), "<f4");
    let at = [[0.0; 3], [1.0, 0.0, 0.0], [1.0, 2.0, 3.0]];
    assert_eq!(sampled(&array, &at), [-3.0, -2.5, 8.5]);
    (header.slope, header.intercept) = (1.0, 0.0);
    assert_eq!(open(header.version_1()).unwrap().dtype().to_string(), "<i2");
    // A slope of 0 or NaN means no scaling.
    (header.slope, header.intercept) = (f64::NAN, f64::NAN);
    assert_eq!(open(header.version_2()).unwrap().dtype().to_string(), "<i2");
}

#[test]
fn the_sform_precedes_the_qform_and_that_the_voxel_sizes() {
    let mut header = header();
    header.pixdim = [1.0, 2.0, 2.0, 2.0];
    let array = open(header.version_1()).unwrap();
    assert_eq!(array.transform(), NiftiTransform::Pixdim);
    assert_eq!(sampled(&array, &[[2.0, 4.0, 6.0]]), [23.0]);
    // By 180 degrees about z: x and y change their signs.
    header.qform = Some([0.0, 0.0, 1.0, 10.0, 20.0, 30.0]);
    for bytes in [header.version_1(), header.version_2()] {
        let array = open(bytes).unwrap();
        assert_eq!(array.transform(), NiftiTransform::Qform);
        assert_eq!(
            sampled(&array, &[[8.0, 16.0, 36.0], [10.0, 20.0, 30.0]]),
            [23.0, 0.0]
        );
    }
    // A left-handed volume.
    header.pixdim[0] = -1.0;
    let array = open(header.version_1()).unwrap();
    assert_eq!(sampled(&array, &[[8.0, 16.0, 24.0]]), [23.0]);
    // By 90 degrees about z: voxel (i, j) is at (-2j, 2i).
    let half = 0.5_f64.sqrt();
    header.pixdim[0] = 1.0;
    header.qform = Some([0.0, 0.0, half, 0.0, 0.0, 0.0]);
    let array = open(header.version_2()).unwrap();
    let value = sampled(&array, &[[-2.0, 2.0, 2.0]])[0];
    assert!((value - 9.0).abs() < 1e-4, "{value}");
    // Axes exchanged, and shifted.
    header.sform = Some([0.0, 0.0, 3.0, 1.0, 0.0, 2.0, 0.0, 2.0, -1.0, 0.0, 0.0, 3.0]);
    for bytes in [header.version_1(), header.version_2()] {
        let array = open(bytes).unwrap();
        assert_eq!(array.transform(), NiftiTransform::Sform);
        assert_eq!(
            sampled(&array, &[[10.0, 6.0, 2.0], [1.0, 2.0, 3.0]]),
            [23.0, 0.0]
        );
    }
}

#[test]
fn what_is_no_volume_is_refused() {
    assert_eq!(refused(Vec::new()), NiftiError::Header);
    assert_eq!(refused(vec![0; 400]), NiftiError::Header);
    let change = |change: fn(&mut Header)| {
        let mut header = header();
        change(&mut header);
        refused(header.version_1())
    };
    assert_eq!(change(|header| header.magic = b"ni1\0"), NiftiError::Pair);
    assert_eq!(
        change(|header| header.datatype = 128),
        NiftiError::Datatype(128)
    );
    assert_eq!(change(|header| header.dim = Vec::new()), NiftiError::Shape);
    assert_eq!(
        change(|header| header.dim = vec![2, -3, 4]),
        NiftiError::Shape
    );
    assert_eq!(
        change(|header| header.dim = vec![2, 0, 4]),
        NiftiError::Shape
    );
    // The header, and the four bytes after it, are no voxels.
    for offset in [0_u16, 4, 348, 351] {
        let mut bytes = header().version_1();
        bytes[108..112].copy_from_slice(&f32::from(offset).to_le_bytes());
        assert_eq!(refused(bytes), NiftiError::Offset, "{offset}");
    }
    for offset in [-1, 0, 4, 540, 543_i64] {
        let mut bytes = header().version_2();
        bytes[168..176].copy_from_slice(&offset.to_le_bytes());
        assert_eq!(refused(gzipped(&bytes)), NiftiError::Offset, "{offset}");
    }
}

/// The voxels of such a volume can be read all the same, and sampled with another map.
#[test]
fn a_map_that_cannot_be_inverted_is_an_error_only_where_it_is_needed() {
    let nearly_flat = [1.0, 2.0, 3.0, 0.0, 2.0, 4.0, 6.0, 0.0, 1.0, 1.0, 2.0, 0.0];
    for sform in [[0.0; 12], [f64::NAN; 12], nearly_flat] {
        let mut header = header();
        header.sform = Some(sform);
        let array = open(header.version_1()).unwrap();
        assert_eq!(int16s(&array).len(), 24);
        let Err(DenseError::Nifti { source, .. }) = array.world_to_voxel() else {
            unreachable!("{sform:?} is inverted")
        };
        assert_eq!(source, NiftiError::Singular("sform"));
    }
}

/// Every prefix of a file is refused, and a huge shape takes no memory.
#[test]
fn files_that_end_early_are_refused() {
    for whole in [header().version_1(), header().version_2()] {
        for len in 0..whole.len() {
            let part = whole[..len].to_vec();
            assert!(open(part.clone()).is_err(), "{len}");
            if len % 37 == 0 {
                assert!(open(gzipped(&part)).is_err(), "{len}");
            }
        }
        let packed = gzipped(&whole);
        for len in 0..packed.len() {
            assert!(open(packed[..len].to_vec()).is_err(), "{len}");
        }
    }
    let mut huge = header();
    huge.dim = vec![i64::MAX, 2, 2];
    assert_eq!(refused(huge.version_2()), NiftiError::Shape);
    huge.dim = vec![1 << 40, 2, 2];
    let size = NiftiError::Size {
        needed: (1 << 43) + 544,
        found: 592,
    };
    assert_eq!(refused(huge.version_2()), size);
    assert_eq!(refused(gzipped(&huge.version_2())), size);
}

/// A damaged checksum is found after the last voxel.
#[test]
fn damaged_compression_is_an_error() {
    let mut bytes = gzipped(&header().version_1());
    let at = bytes.len() - 6;
    bytes[at] ^= 1;
    assert!(matches!(open(bytes), Err(DenseError::Io { .. })));
}
