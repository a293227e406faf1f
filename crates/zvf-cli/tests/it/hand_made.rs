//! NPZ files made by hand, valid and invalid.

use std::{fs::File, io::Write, path::Path};

use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};
use zvf::{ColumnValues, GeometryBuilder, GeometryKind, NumericColumn, numeric::Kind};
use zvf_files::{
    ColumnError, FileError, FileFault, FilePlace, GeometryInput, GeometryReadOptions,
    MissingPolicy, NpyReadError,
};
use zvf_format::numeric::{ByteOrder, encode};

use crate::round_trip::file;

/// Encodes an array with this version and header dictionary.
fn array(version: u8, dictionary: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY".to_vec();
    bytes.extend([version, 0]);
    let length = u32::try_from(dictionary.len()).unwrap();
    match version {
        1 => bytes.extend(u16::try_from(length).unwrap().to_le_bytes()),
        _ => bytes.extend(length.to_le_bytes()),
    }
    bytes.extend(dictionary.as_bytes());
    bytes.extend(data);
    bytes
}

fn of(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let dictionary =
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}\n");
    array(1, &dictionary, data)
}

fn i64s(values: &[i64]) -> Vec<u8> {
    of(
        "<i8",
        &format!("{},", values.len()),
        &encode(values, ByteOrder::Little),
    )
}

/// Returns two points in a plane.
fn positions() -> (&'static str, Vec<u8>) {
    let data = encode(&[1.0_f32, 2.0, 3.0, 4.0], ByteOrder::Little);
    ("positions", of("<f4", "2, 2", &data))
}

fn pack(path: &Path, members: &[(&str, Vec<u8>)], method: CompressionMethod) {
    let mut zip = ZipWriter::new(File::create(path).unwrap());
    let options = SimpleFileOptions::default().compression_method(method);
    for (name, bytes) in members {
        zip.start_file(format!("{name}.npy"), options).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap();
}

fn read_as(kind: GeometryKind, members: &[(&str, Vec<u8>)]) -> Result<GeometryInput, FileError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npz");
    pack(&path, members, CompressionMethod::Stored);
    file(&path, &GeometryReadOptions::new(kind))
}

#[track_caller]
fn geometry(members: &[(&str, Vec<u8>)]) -> GeometryBuilder {
    read_as(GeometryKind::Points, members).unwrap().geometry
}

/// Returns the error of positions with these bytes.
#[track_caller]
fn refused(bytes: Vec<u8>) -> NpyReadError {
    let error = read_as(GeometryKind::Points, &[("positions", bytes)]).unwrap_err();
    assert_eq!(error.place, FilePlace::Array("positions".to_owned()));
    let FileFault::Npy(source) = error.fault else {
        panic!("{}", error.fault);
    };
    *source
}

/// Returns the error of this array in a file with positions.
#[track_caller]
fn refused_column(name: &str, bytes: Vec<u8>) -> ColumnError {
    let error = read_as(GeometryKind::Points, &[positions(), (name, bytes)]).unwrap_err();
    assert_eq!(error.place, FilePlace::Column(name.to_owned()));
    let FileFault::Column(source) = error.fault else {
        panic!("{}", error.fault);
    };
    source
}

const SHAPE: &str = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }";

#[test]
fn headers_of_every_version_and_order_are_read() {
    let numbers = [1.0_f32, 2.0, 3.0, 4.0];
    let little = encode(&numbers, ByteOrder::Little);
    let expected = NumericColumn::float32(2, numbers);
    for version in 1..=3 {
        let bytes = array(version, SHAPE, &little);
        assert_eq!(geometry(&[("positions", bytes)]).positions, expected);
    }
    let big = encode(&numbers, ByteOrder::Big);
    let bytes = of(">f4", "2, 2", &big);
    assert_eq!(geometry(&[("positions", bytes)]).positions, expected);
    let fortran = encode(&[1.0_f32, 3.0, 2.0, 4.0], ByteOrder::Little);
    // Written in the style of other programs than NumPy.
    let dictionary = "{\"shape\":(2L,2L),\"fortran_order\":True,\"descr\":\"<f4\"}  \n";
    let bytes = array(2, dictionary, &fortran);
    assert_eq!(geometry(&[("positions", bytes)]).positions, expected);
}

#[test]
fn dimensions_beyond_the_second_become_channels() {
    let values: Vec<u16> = (0..12).collect();
    let data = encode(&values, ByteOrder::Little);
    let found = geometry(&[positions(), ("vertex.a", of("<u2", "2, 3, 2", &data))]);
    let ColumnValues::Numeric(numbers) = &found.vertex[0].values else {
        panic!();
    };
    assert_eq!((numbers.kind, numbers.width), (Kind::UInt16, 6));
    assert_eq!(numbers.bytes, data);
    // In Fortran order the first dimension varies fastest: the next value belongs to the next row.
    let fortran: Vec<u16> = (0..6)
        .flat_map(|column| {
            let (middle, last) = (column % 3, column / 3);
            (0..2).map(move |row| row * 6 + middle * 2 + last)
        })
        .collect();
    let dictionary = "{'descr': '>u2', 'fortran_order': True, 'shape': (2, 3, 2), }";
    let bytes = array(1, dictionary, &encode(&fortran, ByteOrder::Big));
    let found = geometry(&[positions(), ("vertex.a", bytes)]);
    assert_eq!(
        found.vertex[0].values,
        ColumnValues::Numeric(numbers.clone())
    );
}

#[test]
fn text_of_characters_and_bytes_is_read() {
    let text = |order| {
        let codes: Vec<u32> = "né\0β\0\0".chars().map(u32::from).collect();
        encode(&codes, order)
    };
    let some = |text: &str| Some(text.to_owned());
    for (descr, data) in [
        ("<U3", text(ByteOrder::Little)),
        (">U3", text(ByteOrder::Big)),
        ("|S4", "né\0β\0\0".as_bytes().to_vec()),
    ] {
        let found = geometry(&[positions(), ("vertex.a", of(descr, "2,", &data))]);
        let expected = ColumnValues::text(vec![some("né"), some("β")]);
        assert_eq!(found.vertex[0].values, expected, "{descr}");
    }
    let lone = encode(&[0xd800_u32, 0], ByteOrder::Little);
    let error = refused(of("<U1", "2,", &lone));
    assert!(matches!(error, NpyReadError::Characters(0)));
    assert!(matches!(
        refused(of("|S1", "2,", b"a\xff")),
        NpyReadError::Characters(1)
    ));
    assert!(matches!(
        refused(of("<U0", "9,", b"")),
        NpyReadError::NoWidth
    ));
    assert!(matches!(
        refused(of("<U1", "1, 2", &[0; 8])),
        NpyReadError::TextColumns
    ));
}

#[test]
fn bools_and_small_numbers_are_read() {
    let found = geometry(&[
        positions(),
        ("vertex.flag", of("|b1", "2,", &[2, 0])),
        ("vertex.half", of(">f2", "2,", &[0x3e, 0x00, 0x7e, 0x00])),
        (
            "vertex.wave",
            of(
                ">c8",
                "2,",
                &encode(&[[1.0_f32, 2.0], [3.0, 4.0]], ByteOrder::Big),
            ),
        ),
    ]);
    let bytes = |at: usize| match &found.vertex[at].values {
        ColumnValues::Numeric(numbers) => numbers.bytes.clone(),
        ColumnValues::Dictionary { .. } => panic!(),
    };
    assert_eq!(bytes(0), [1, 0]);
    assert_eq!(bytes(1), [0x00, 0x3e, 0x00, 0x7e]);
    assert_eq!(
        bytes(2),
        encode(&[1.0_f32, 2.0, 3.0, 4.0], ByteOrder::Little)
    );
}

#[test]
fn compressed_members_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npz");
    let count = 100_000;
    let data = encode(&vec![0.5_f64; count], ByteOrder::Little);
    let positions = ("positions", of("<f8", &format!("{count}, 1"), &data));
    pack(&path, &[positions], CompressionMethod::Deflated);
    let reading = GeometryReadOptions::new(GeometryKind::Points);
    let found = file(&path, &reading).unwrap().geometry;
    assert_eq!(found.vertices(), count);
    // Without one byte in the middle, the file is not a valid archive or contains another array.
    let bytes = std::fs::read(&path).unwrap();
    for end in [0, 10, bytes.len() / 2, bytes.len() - 1] {
        std::fs::write(&path, &bytes[..end]).unwrap();
        assert!(
            matches!(
                file(&path, &reading).unwrap_err().fault,
                FileFault::NotNpz(_)
            ),
            "{end}"
        );
    }
}

/// A checksum or an earlier check detects every wrong byte.
#[test]
fn damaged_bytes_are_detected() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npz");
    pack(&path, &[positions()], CompressionMethod::Stored);
    let bytes = std::fs::read(&path).unwrap();
    let reading = GeometryReadOptions::new(GeometryKind::Points);
    let whole = file(&path, &reading).unwrap();
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x11;
        std::fs::write(&path, damaged).unwrap();
        // Times and versions do not matter.
        if let Ok(found) = file(&path, &reading) {
            assert_eq!(found, whole, "{at}");
        }
    }
}

#[test]
fn invalid_arrays_are_explained() {
    let data = [0; 16];
    assert!(matches!(refused(b"PK".to_vec()), NpyReadError::Truncated));
    assert!(matches!(
        refused(b"NUMPY\x93\x01\x00".to_vec()),
        NpyReadError::Magic
    ));
    assert!(matches!(
        refused(array(4, SHAPE, &data)),
        NpyReadError::Version(4, 0)
    ));
    let whole = array(1, SHAPE, &data);
    for end in 0..whole.len() {
        let error = refused(whole[..end].to_vec());
        assert!(
            matches!(error, NpyReadError::Truncated | NpyReadError::Size { .. }),
            "{end}: {error}"
        );
    }
    let error = refused([whole, vec![0]].concat());
    assert!(matches!(
        error,
        NpyReadError::Size {
            needed: 16,
            found: 17
        }
    ));
    let mut long = array(2, SHAPE, &data);
    long[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(matches!(
        refused(long),
        NpyReadError::HeaderLength(u32::MAX)
    ));
}

#[test]
fn invalid_headers_are_explained() {
    for dictionary in [
        "",
        "{}",
        "{'descr': '<f4'}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)} x",
        "{'descr': '<f4', 'fortran_order': 0, 'shape': (2, 2)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': [2, 2]}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-2, 2)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2 2)}",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), 'more': 'x'}",
    ] {
        let error = refused(array(1, dictionary, &[0; 16]));
        assert!(
            matches!(error, NpyReadError::Header),
            "{dictionary}: {error}"
        );
    }
}

#[test]
fn absurd_shapes_allocate_no_memory() {
    let max = u64::MAX;
    for shape in [
        format!("{max}, {max}"),
        "4611686018427387904, 2".to_owned(),
        "99999999999999999999999, 1".to_owned(),
        format!("0, {max}, 8"),
    ] {
        let error = refused(of("<f4", &shape, &[]));
        assert!(matches!(error, NpyReadError::Shape), "{shape}: {error}");
    }
    let error = refused(of("<f4", "1000000000000, 3", &[0; 12]));
    assert!(matches!(error, NpyReadError::Size { found: 12, .. }));
    let error = refused(of("<U9999999999999999999", "2,", &[]));
    assert!(matches!(error, NpyReadError::Shape), "{error}");
    assert!(matches!(
        refused(of("<f4", "", &[0; 4])),
        NpyReadError::NoDimension
    ));
    assert!(matches!(
        refused(of("<f4", "9000000000, 0", &[])),
        NpyReadError::NoColumns
    ));
}

#[test]
fn unsupported_types_are_rejected() {
    for descr in ["|O", "|O8", "O"] {
        assert!(matches!(
            refused(of(descr, "2,", &[0; 16])),
            NpyReadError::Object
        ));
    }
    for descr in ["<M8[ns]", "<f16", "|V8", "float32", "x", ""] {
        let error = refused(of(descr, "1,", &[0; 16]));
        assert!(matches!(error, NpyReadError::Dtype(_)), "{descr}: {error}");
    }
    let records = "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }";
    assert!(matches!(
        refused(array(1, records, &[0; 4])),
        NpyReadError::Records
    ));
}

#[test]
fn ids_must_be_integers_in_range() {
    let ids = of("<u8", "2,", &encode(&[5, u64::MAX], ByteOrder::Little));
    let value = u64::MAX;
    assert_eq!(
        refused_column("object_ids", ids),
        ColumnError::TooLarge { row: 1, value }
    );
    let ids = of("<u8", "2,", &encode(&[5_u64, 6], ByteOrder::Little));
    let found = geometry(&[positions(), ("object_ids", ids)]);
    assert_eq!(found.owners.ids(), Some([5, 6].as_slice()));
    let floats = of("<f4", "2,", &[0; 8]);
    let error = ColumnError::NotIntegers("float32");
    assert_eq!(refused_column("object_ids", floats), error);
    let text = of("<U1", "2,", &[0; 8]);
    assert_eq!(refused_column("objects", text), ColumnError::Text);
    assert_eq!(
        refused_column("part_offsets", i64s(&[0, -1])),
        ColumnError::Negative(1)
    );
    let (expected, found) = (2, 1);
    let dimensions = ColumnError::Dimensions { expected, found };
    assert_eq!(refused_column("links", i64s(&[0, 1])), dimensions);
    let error = read_as(GeometryKind::Points, &[("positions", i64s(&[1]))]).unwrap_err();
    assert!(matches!(error.fault, FileFault::Column(source) if source == dimensions));
}

#[test]
fn unknown_arrays_are_rejected() {
    for name in ["radius", "vertices.a", "object_id"] {
        let error =
            read_as(GeometryKind::Points, &[positions(), (name, i64s(&[1, 2]))]).unwrap_err();
        assert!(
            matches!(&error.fault, FileFault::UnknownArray(array) if array == name),
            "{error}"
        );
    }
    let error = read_as(GeometryKind::Points, &[("object_ids", i64s(&[1]))]).unwrap_err();
    assert!(matches!(error.fault, FileFault::NoPositions(_)));
    let mask = of("|b1", "2,", &[1, 0]);
    assert_eq!(
        refused_column("vertex.a.missing", mask.clone()),
        ColumnError::Mask
    );
    let short = of("|b1", "1,", &[1]);
    let error = read_as(
        GeometryKind::Points,
        &[
            positions(),
            ("vertex.a", i64s(&[1, 2])),
            ("vertex.a.missing", short),
        ],
    );
    let source = ColumnError::Rows {
        expected: 2,
        found: 1,
    };
    assert!(matches!(error.unwrap_err().fault, FileFault::Column(found) if found == source));
}

#[test]
fn groups_are_read_by_number_or_name() {
    let members = |ids: &[i64]| i64s(ids);
    let input = read_as(
        GeometryKind::Points,
        &[
            positions(),
            ("object_ids", i64s(&[1, 2])),
            ("group.left", members(&[1])),
            ("group.3", members(&[2, 1])),
            ("group_attribute.size", i64s(&[0, 0, 0, 2, 1])),
        ],
    )
    .unwrap();
    let geometry = input.geometry;
    assert_eq!(geometry.groups[&3], [2, 1]);
    assert_eq!(geometry.groups[&4], [1]);
    assert_eq!(input.group_names[&4], "left");
    let names = geometry
        .group
        .iter()
        .map(|attribute| attribute.name.as_str());
    assert_eq!(names.collect::<Vec<_>>(), ["size", "name"]);
    let left = Some("left".to_owned());
    let expected = ColumnValues::text(vec![None, None, None, None, left]);
    assert_eq!(geometry.group[1].values, expected);
    for name in ["group.4294967296", "group.007"] {
        assert!(
            matches!(refused_column(name, i64s(&[1])), ColumnError::Group(_)),
            "{name}"
        );
    }
}

/// Without part offsets, consecutive vertices of one object form a path.
#[test]
fn paths_may_be_given_by_object() {
    let data = encode(&[0.0_f32; 5], ByteOrder::Little);
    let members = [
        ("positions", of("<f4", "5, 1", &data)),
        ("object_ids", i64s(&[7, 7, 3, 3, 7])),
        ("fragment.a", i64s(&[1, 1, 2, 2, 1])),
    ];
    let found = read_as(GeometryKind::Polylines, &members).unwrap().geometry;
    assert_eq!(found.owners.offsets(), Some([0, 2, 4, 5].as_slice()));
    assert_eq!(found.owners.ids(), Some([7, 3, 7].as_slice()));
    assert_eq!(found.objects, Some(vec![7, 3]));
    let ColumnValues::Numeric(numbers) = &found.fragment[0].values else {
        panic!();
    };
    assert_eq!(numbers.bytes, encode(&[1_i64, 2], ByteOrder::Little));
}

/// Ids of paths without their offsets were dropped in silence beside ids of vertices.
#[test]
fn ids_of_paths_need_offsets() {
    let data = encode(&[0.0_f32; 2], ByteOrder::Little);
    let members = [
        ("positions", of("<f4", "2, 1", &data)),
        ("object_ids", i64s(&[7, 7])),
        ("part_objects", i64s(&[3])),
    ];
    let error = read_as(GeometryKind::Polylines, &members).unwrap_err();
    assert!(error.to_string().contains("part_offsets"), "{error}");
}

/// Masked integers become floats; masked text becomes missing.
#[test]
fn masks_mark_missing_values() {
    let mask = || of("|b1", "2,", &[0, 1]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npz");
    let word = of("|S1", "2,", b"\0b");
    let members = [
        positions(),
        ("vertex.n", i64s(&[1, 2])),
        ("vertex.n.missing", mask()),
        ("object.missing", i64s(&[3])),
        ("vertex.w", word),
        ("vertex.w.missing", mask()),
    ];
    pack(&path, &members, CompressionMethod::Stored);
    let mut reading = GeometryReadOptions::new(GeometryKind::Points);
    let error = file(&path, &reading).unwrap_err();
    assert!(matches!(
        error.fault,
        FileFault::Column(ColumnError::Missing(1))
    ));
    reading.missing = MissingPolicy::Nan;
    let found = file(&path, &reading).unwrap().geometry;
    let expected = ColumnValues::Numeric(NumericColumn::float64(1, [1.0, f64::NAN]));
    assert_eq!(found.vertex[0].values, expected);
    assert_eq!(
        found.vertex[1].values,
        ColumnValues::text(vec![Some(String::new()), None])
    );
    assert_eq!(found.object[0].name, "missing");
}
