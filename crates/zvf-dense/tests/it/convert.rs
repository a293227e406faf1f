//! Conversions between array formats and back.

use std::{path::Path, sync::Arc};

use zvf_dense::{
    ArrayView, DenseArray, FileSource, Hyperslab, MappedFile, MemoryArray, MemorySource,
    NumpyDtype, convert,
    npy::{NpyArray, NpySink},
};

pub(crate) fn read(array: &dyn DenseArray) -> Vec<u8> {
    let bytes = array.slice(&Hyperslab::whole(array.shape()));
    bytes.unwrap().into()
}

pub(crate) fn counted(dtype: &str, shape: &[u64]) -> MemoryArray {
    let dtype: NumpyDtype = dtype.parse().unwrap();
    let len = shape.iter().product::<u64>() * dtype.size();
    let bytes = (0..len)
        .map(|at| u8::try_from(at * 31 % 253).unwrap())
        .collect();
    MemoryArray::new("a", dtype, shape.to_vec(), bytes).unwrap()
}

#[track_caller]
fn through_npy(folder: &Path, array: &dyn DenseArray, chunk: &[u64]) {
    let path = folder.join("a.npy");
    let sink = NpySink::create(&path, array.dtype(), array.shape(), chunk).unwrap();
    convert(array, Box::new(sink), &mut |_| ()).unwrap();
    let mapped = NpyArray::open(Arc::new(MappedFile::open(&path).unwrap()), None).unwrap();
    let file = NpyArray::open(Arc::new(FileSource::open(&path).unwrap()), None).unwrap();
    for back in [mapped, file] {
        assert_eq!((back.dtype(), back.shape()), (array.dtype(), array.shape()));
        assert!(read(&back) == read(array));
        if array.shape().iter().all(|extent| *extent > 1) {
            let starts = vec![1; array.shape().len()];
            let steps = vec![2; array.shape().len()];
            let selection = Hyperslab::new(&starts, array.shape(), Some(&steps)).unwrap();
            assert!(back.slice(&selection).unwrap() == array.slice(&selection).unwrap());
        }
    }
}

#[test]
fn npy_round_trips_every_dtype_and_rank() {
    let folder = tempfile::tempdir().unwrap();
    for dtype in [
        "u1",
        ">i2",
        "<f8",
        "<c16",
        "S3",
        "<U2",
        "<M8[s]",
        "[('a', '<i4'), ('é', 'S1')]",
    ] {
        through_npy(folder.path(), &counted(dtype, &[4, 3, 5]), &[2, 2, 2]);
    }
    through_npy(folder.path(), &counted("<f4", &[]), &[]);
    through_npy(folder.path(), &counted("<f4", &[0, 3]), &[1, 2]);
    through_npy(folder.path(), &counted("<f4", &[9]), &[4]);
    // Slabs of partial rows: a slab of whole rows would take more than 16 MiB.
    through_npy(
        folder.path(),
        &counted("<f8", &[70, 40, 1000]),
        &[33, 40, 100],
    );
}

#[test]
fn npy_in_fortran_order_is_read() {
    let header = "{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3), }";
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
    bytes.extend(header.as_bytes());
    // Column by column.
    bytes.extend(
        [0_i16, 10, 1, 11, 2, 12]
            .iter()
            .flat_map(|value| value.to_le_bytes()),
    );
    let array = NpyArray::open(Arc::new(MemorySource::new("a", bytes.clone())), None).unwrap();
    let numbers = |selection: &Hyperslab| {
        let bytes = array.slice(selection).unwrap();
        let (values, _) = bytes.as_chunks::<2>();
        values
            .iter()
            .map(|value| i16::from_le_bytes(*value))
            .collect::<Vec<_>>()
    };
    assert_eq!(numbers(&Hyperslab::whole(&[2, 3])), [0, 1, 2, 10, 11, 12]);
    let odd = Hyperslab::new(&[1, 0], &[2, 3], Some(&[1, 2])).unwrap();
    assert_eq!(numbers(&odd), [10, 12]);
    bytes.pop();
    assert!(NpyArray::open(Arc::new(MemorySource::new("a", bytes)), None).is_err());
}

#[test]
fn views_compose_boxes_in_little_endian_order() {
    let bytes = (0..24_u16).flat_map(u16::to_be_bytes).collect();
    let array = MemoryArray::new("a", ">u2".parse().unwrap(), vec![4, 6], bytes).unwrap();
    let outer = Hyperslab::new(&[1, 0], &[4, 6], Some(&[2, 2])).unwrap();
    let view = ArrayView::new(&array, outer).unwrap();
    assert_eq!(
        (view.shape(), view.dtype().to_string().as_str()),
        (&[2, 3][..], "<u2")
    );
    let inner = Hyperslab::new(&[0, 0], &[2, 3], Some(&[1, 2])).unwrap();
    let bytes = view.slice(&inner).unwrap();
    let (values, _) = bytes.as_chunks::<2>();
    let values: Vec<u16> = values
        .iter()
        .map(|value| u16::from_le_bytes(*value))
        .collect();
    assert_eq!(values, [6, 10, 18, 22]);
    assert!(view.slice(&Hyperslab::whole(&[3, 3])).is_err());
}
