//! NPZ files, read back by an independent reader.

use std::{collections::BTreeMap, fs::File, io::Read};

use zvf::QueryResult;
use zvf_files::FileFault;
use zvf_format::numeric::{ByteOrder, Element, encode};

use crate::results::{
    graph, in_axes, lacking, mesh, nothing, numbers, paths, points, words, written,
};

/// An array as stored in the file.
#[derive(Debug, PartialEq)]
struct Array {
    code: String,
    shape: String,
    data: Vec<u8>,
}

/// Reads all arrays of a file.
fn arrays(result: &QueryResult) -> BTreeMap<String, Array> {
    let folder = tempfile::tempdir().unwrap();
    written(result, folder.path(), "a.npz").unwrap();
    let file = File::open(folder.path().join("a.npz")).unwrap();
    let mut archive = zip::ZipArchive::new(file).unwrap();
    let mut arrays = BTreeMap::new();
    for at in 0..archive.len() {
        let mut file = archive.by_index(at).unwrap();
        let name = file
            .name()
            .unwrap()
            .strip_suffix(".npy")
            .unwrap()
            .to_owned();
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).unwrap();
        arrays.insert(name, array(&bytes));
    }
    arrays
}

fn array(bytes: &[u8]) -> Array {
    let rest = bytes.strip_prefix(b"\x93NUMPY\x01\x00").unwrap();
    let (length, rest) = rest.split_first_chunk().unwrap();
    let (header, data) = rest.split_at(u16::from_le_bytes(*length).into());
    assert_eq!((bytes.len() - data.len()) % 64, 0);
    let header = core::str::from_utf8(header)
        .unwrap()
        .strip_prefix("{'descr': '")
        .unwrap();
    let (code, header) = header
        .split_once("', 'fortran_order': False, 'shape': (")
        .unwrap();
    let (shape, end) = header.split_once("), }").unwrap();
    assert_eq!(end.trim_start_matches(' '), "\n");
    Array {
        code: code.to_owned(),
        shape: shape.to_owned(),
        data: data.to_vec(),
    }
}

fn of<T: Element>(code: &str, shape: &str, values: &[T]) -> Array {
    Array {
        code: code.to_owned(),
        shape: shape.to_owned(),
        data: encode(values, ByteOrder::Little),
    }
}

/// Returns text padded with zeros to this width in characters.
fn text(code: &str, width: usize, texts: &[&str]) -> Array {
    let characters: Vec<u32> = texts
        .iter()
        .flat_map(|text| {
            let characters = text.chars().map(u32::from);
            characters.chain(std::iter::repeat(0)).take(width)
        })
        .collect();
    of(code, &format!("{},", texts.len()), &characters)
}

#[track_caller]
fn check(result: &QueryResult, expected: Vec<(&str, Array)>) {
    let found = arrays(result);
    let names: Vec<_> = found.keys().map(String::as_str).collect();
    let mut expected_names: Vec<_> = expected.iter().map(|(name, _)| *name).collect();
    expected_names.sort_unstable();
    assert_eq!(names, expected_names);
    for (name, array) in expected {
        assert_eq!(found[name], array, "{name}");
    }
}

#[test]
fn points_keep_attributes_of_every_type() {
    let nan = f32::NAN;
    // The bits of the missing value are those of NumPy's NaN.
    let half = [0x3e00_u16, 0x7e00, 0xae66];
    check(
        &points(),
        vec![
            (
                "positions",
                of(
                    "<f4",
                    "3, 3",
                    &[0.1_f32, 2.0, -3.0, 1e20, 0.0, 5e-7, 7.0, 8.0, 9.0],
                ),
            ),
            ("object_ids", of("<i8", "3,", &[7_i64, -1, -2])),
            ("vertex.radius", of("<f4", "3,", &[0.1, nan, nan])),
            ("vertex.kind", text("<U5", 5, &["a,\"b\"", "", ""])),
            // An empty word that is present, and a missing word.
            (
                "vertex.kind.missing",
                of("|b1", "3,", &[false, true, false]),
            ),
            (
                "vertex.rgb",
                of("|u1", "3, 3", &[255_u8, 0, 1, 2, 3, 4, 5, 6, 7]),
            ),
            ("vertex.rgb.missing", of("|b1", "3,", &[false, false, true])),
            ("vertex.flag", of("|b1", "3,", &[true, false, true])),
            (
                "vertex.big",
                of("<i8", "3,", &[9_007_199_254_740_993_i64, -1, 5]),
            ),
            ("vertex.half", of("<f2", "3,", &half)),
            (
                "vertex.wave",
                of("<c8", "3,", &[[1.0_f32, -2.5], [0.0, 0.1], [-0.0, nan]]),
            ),
            ("fragment.label", text("<U3", 3, &["été", "été", "β"])),
            ("objects", of("<i8", "2,", &[7_i64, 12])),
            ("object.length", of("<f8", "2,", &[0.1_f64, f64::NAN])),
            ("object.length.missing", of("|b1", "2,", &[false, true])),
            ("object.count", of("<u8", "2,", &[u64::MAX, 0])),
            ("object.count.missing", of("|b1", "2,", &[false, true])),
            ("group.5", of("<i8", "2,", &[12_i64, 7])),
        ],
    );
}

#[test]
fn paths_are_offsets_and_objects() {
    let positions = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 0.1, 5.5];
    check(
        &paths(),
        vec![
            ("positions", of::<f64>("<f8", "6, 2", &positions)),
            ("part_offsets", of("<i8", "4,", &[0_i64, 3, 4, 6])),
            ("part_objects", of("<i8", "3,", &[4_i64, 9, 9])),
            ("objects", of("<i8", "2,", &[4_i64, 9])),
        ],
    );
}

#[test]
fn links_keep_the_order_of_their_ends() {
    let positions = [0_i16, 1, 2, 10, 11, 12, 20, 21, 22, 30, 31, 32];
    check(
        &graph(),
        vec![
            ("positions", of("<i2", "4, 3", &positions)),
            ("object_ids", of("<i8", "4,", &[1_i64, 1, 1, 1])),
            ("objects", of("<i8", "1,", &[1_i64])),
            ("links", of("<i8", "3, 2", &[1_i64, 0, 2, 1, 3, 0])),
            ("link.weight", of("<i4", "3,", &[1, 2, 3])),
            (
                "link.weight.missing",
                of("|b1", "3,", &[false, true, false]),
            ),
        ],
    );
    assert_eq!(
        arrays(&mesh(4))["links"],
        of("<i8", "1, 4", &[0_i64, 1, 2, 3])
    );
    assert_eq!(arrays(&mesh(3))["links"].shape, "2, 3");
}

#[test]
fn an_empty_result_has_arrays_of_zero_rows() {
    check(
        &nothing(),
        vec![
            ("positions", of::<f32>("<f4", "0, 3", &[])),
            ("object_ids", of::<i64>("<i8", "0,", &[])),
            ("objects", of::<i64>("<i8", "0,", &[])),
            ("links", of::<i64>("<i8", "0, 2", &[])),
            ("vertex.radius", of::<f32>("<f4", "0,", &[])),
            ("vertex.kind", text("<U1", 1, &[])),
        ],
    );
    let mut result = QueryResult::default();
    result.parts = Some(zvf::Parts::default());
    assert_eq!(arrays(&result)["part_offsets"], of("<i8", "1,", &[0_i64]));
}

#[test]
fn every_number_of_axes_is_written() {
    for axes in 1..=5 {
        let found = &arrays(&in_axes(axes))["positions"];
        assert_eq!(found.shape, format!("2, {axes}"));
        let values: Vec<f64> = (0..2 * axes).map(|value| f64::from(value) + 0.25).collect();
        assert_eq!(found.data, encode(&values, ByteOrder::Little));
    }
}

/// Larger than the write buffer.
#[test]
fn large_arrays_are_complete() {
    let mut result = in_axes(1);
    let count = 300_000_u32;
    let values: Vec<f64> = (0..count).map(f64::from).collect();
    result.positions = crate::results::rows(1, &values);
    let missing: Vec<bool> = (0..count).map(|at| at % 7 == 0).collect();
    let numbers_of: Vec<u32> = (0..count).collect();
    result.vertex = vec![lacking(numbers("n", 1, &numbers_of), &missing)];
    let shape = format!("{count},");
    let found = arrays(&result);
    assert_eq!(found["positions"].data, encode(&values, ByteOrder::Little));
    assert_eq!(found["vertex.n"], of("<u4", &shape, &numbers_of));
    assert_eq!(found["vertex.n.missing"], of("|b1", &shape, &missing));
}

#[test]
fn fixed_width_text_of_excessive_size_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let mut result = in_axes(1);
    let count = 5000;
    result.positions = crate::results::rows(1, &vec![0.0_f64; count]);
    let long = "a".repeat(300_000);
    result.vertex = vec![words("name", &vec![0; count], &[&long])];
    let error = written(&result, folder.path(), "a.npz").unwrap_err();
    let FileFault::Text { column, bytes } = error.fault else {
        panic!("{error}");
    };
    assert_eq!((column.as_str(), bytes), ("vertex.name", 6_000_000_000));
    // A long word that no row uses takes no space.
    result.vertex = vec![words("name", &vec![1; count], &[&long, "b"])];
    assert_eq!(arrays(&result)["vertex.name"].code, "<U1");
}

/// The name of an attribute would collide with that of a derived array.
#[test]
fn a_name_that_ends_as_that_of_a_mask_is_written_as_stored() {
    let folder = tempfile::tempdir().unwrap();
    let mut result = in_axes(1);
    result.vertex = vec![
        lacking(numbers("n", 1, &[1_u8, 2]), &[true, false]),
        numbers("n.missing", 1, &[1_u8, 2]),
    ];
    written(&result, folder.path(), "a.npz").unwrap();
    let arrays = arrays(&result);
    for name in ["vertex.n", "vertex.n.missing", "vertex.n_missing__u2e"] {
        assert!(arrays.contains_key(name), "{name}");
    }
}
