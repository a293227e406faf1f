//! Rows of numbers: names of types, every kind in both orders, real stores.

use std::num::NonZeroU32;

use half::f16;
use proptest::prelude::*;
use zvf_format::{
    fragment::FragmentIndex,
    numeric::{
        ByteOrder, CopyLength, Dtype, DtypeError, Element, Kind, NumericRows,
        NumericRowsError as E, Value, columns_of, encode,
    },
    vlen::VlenFrame,
};
use zvf_testkit::{LeBytes, golden::Golden, hostile, laws, walk};

use crate::vlen::{chunks, uncompressed};

const ORDERS: [ByteOrder; 2] = [ByteOrder::Little, ByteOrder::Big];

fn dtype(text: &str) -> Dtype {
    Dtype::parse(text).unwrap()
}

fn columns(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).unwrap()
}

fn parse<'a>(bytes: &'a [u8], text: &str, count: u32) -> NumericRows<'a> {
    NumericRows::parse(bytes, dtype(text), columns(count)).unwrap()
}

/// Returns rows as input of the walk and the law.
fn packed(dtype: Dtype, columns: u8, body: &[u8]) -> Vec<u8> {
    let kind = Kind::ALL.iter().position(|kind| *kind == dtype.kind());
    let kind = u8::try_from(kind.unwrap()).unwrap();
    let order = match dtype.order() {
        ByteOrder::Little => 0,
        ByteOrder::Big => 0x80,
    };
    [&[kind | order, columns][..], body].concat()
}

#[test]
fn names_and_codes_of_all_kinds_are_read() {
    let codes = [
        "b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16",
    ];
    for (kind, code) in Kind::ALL.into_iter().zip(codes) {
        let size: usize = code[1..].parse().unwrap();
        assert_eq!(kind.size(), size, "{code}");
        let little = Dtype::new(kind, ByteOrder::Little);
        let big = Dtype::new(kind, ByteOrder::Big);
        assert_eq!(Dtype::parse(kind.name()), Ok(little));
        assert_eq!(Dtype::parse(&format!("<{code}")), Ok(little));
        assert_eq!(Dtype::parse(&format!("={code}")), Ok(little));
        assert_eq!(Dtype::parse(&format!(">{code}")), Ok(big));
        let unordered = if size == 1 {
            Ok(little)
        } else {
            Err(DtypeError::Order)
        };
        assert_eq!(Dtype::parse(&format!("|{code}")), unordered);
        assert_eq!(little.to_string(), kind.name());
        let want = if size == 1 {
            kind.name().to_owned()
        } else {
            format!(">{code}")
        };
        assert_eq!(big.to_string(), want);
        assert_eq!(little == big, size == 1, "one byte has no order");
    }
}

#[test]
fn types_that_are_not_numeric_are_rejected_with_the_cause() {
    use DtypeError as D;
    for text in [
        "<U5",
        ">U12",
        "|S3",
        "|a3",
        "U5",
        "str",
        "str160",
        "bytes24",
        "string",
        "fixed_length_utf32",
    ] {
        assert_eq!(Dtype::parse(text), Err(D::Text), "{text}");
    }
    for text in ["object", "|O", "O", "|O8"] {
        assert_eq!(Dtype::parse(text), Err(D::Object), "{text}");
    }
    for text in [
        "",
        "<",
        ">",
        "|",
        "f4",
        "<f3",
        "<f16",
        "<f",
        "<4",
        "<<f4",
        "<f4 ",
        " <f4",
        "<float32",
        "Float32",
        "float",
        "float128",
        "datetime64[ns]",
        "<M8[ns]",
        "|V8",
        "é",
        "<é",
        "[('x', '<f4')]",
    ] {
        assert_eq!(Dtype::parse(text), Err(D::Unknown), "{text}");
    }
}

#[test]
fn vertices_are_rows_of_coordinates() {
    // (1, 1, 1), (1, 6, 6), (6, 1, 1).
    let bytes = [
        0x00, 0x00, 0x80, 0x3f, 0x00, 0x00, 0x80, 0x3f, 0x00, 0x00, 0x80, 0x3f, //
        0x00, 0x00, 0x80, 0x3f, 0x00, 0x00, 0xc0, 0x40, 0x00, 0x00, 0xc0, 0x40, //
        0x00, 0x00, 0xc0, 0x40, 0x00, 0x00, 0x80, 0x3f, 0x00, 0x00, 0x80, 0x3f,
    ];
    let rows = parse(&bytes, "float32", 3);
    assert_eq!((rows.rows(), rows.columns()), (3, columns(3)));
    assert_eq!(rows.value(1, 0), Some(Value::Float(1.0)));
    assert_eq!(rows.value(1, 2), Some(Value::Float(6.0)));
    assert_eq!(rows.value(1, 3), None, "not the first of the next row");
    assert_eq!(rows.value(3, 0), None);
    let last = rows.slice(2..3).unwrap();
    let values = last.elements::<f32>().unwrap();
    assert!(values.iter().eq([6.0, 1.0, 1.0]));
    assert_eq!(rows.slice(3..3).map(|rows| rows.rows()), Some(0));
    assert_eq!(rows.slice(3..4), None);
    #[expect(clippy::reversed_empty_ranges, reason = "the case under test")]
    let inverted = rows.slice(2..1);
    assert_eq!(inverted, None);
    assert_eq!(rows.slice(usize::MAX..usize::MAX), None);
    assert_eq!(
        format!("{last:?}"),
        "3 × float32 [Float(6.0), Float(1.0), Float(1.0)]"
    );
}

#[test]
fn owners_are_signed() {
    let bytes = LeBytes::new().i64s([3, -2, -1, 5]).done();
    let owners = parse(&bytes, "int64", 1).elements::<i64>().unwrap();
    assert!(owners.iter().eq([3, -2, -1, 5]));
}

#[test]
fn width_follows_from_the_row_count() {
    let float32 = dtype("float32");
    assert_eq!(columns_of(36, float32, 3), Some(columns(3)));
    assert_eq!(columns_of(36, float32, 9), Some(columns(1)));
    for rows in [2, 10, 36, u64::MAX] {
        assert_eq!(columns_of(36, float32, rows), None, "{rows}");
    }
    assert_eq!(columns_of(35, float32, 1), None, "half a value");
    assert_eq!(columns_of(0, float32, 3), None, "rows without a value");
    assert_eq!(columns_of(0, float32, 0), None);
    assert_eq!(columns_of(36, float32, 0), None);
}

#[cfg(target_pointer_width = "64")]
#[test]
fn width_past_32_bits_is_none() {
    let uint8 = dtype("uint8");
    assert_eq!(columns_of(1 << 32, uint8, 1), None);
    assert_eq!(columns_of(1 << 32, uint8, 2), Some(columns(1 << 31)));
}

#[test]
fn rejects_truncated_rows() {
    let check = |len: usize, text, count, want| {
        let bytes = vec![0; len];
        let error = NumericRows::parse(&bytes, dtype(text), columns(count)).unwrap_err();
        assert_eq!(error, want);
    };
    let float32 = dtype("float32");
    check(
        7,
        "float32",
        1,
        E::Value {
            len: 7,
            dtype: float32,
        },
    );
    let row = |values, count| E::Row {
        values,
        columns: columns(count),
    };
    check(16, "float32", 3, row(4, 3));
    check(8, "complex64", 2, row(1, 2));
    check(2, "bool", 3, row(2, 3));
    check(4, ">i4", u32::MAX, row(1, u32::MAX));
    let none = parse(&[], "complex128", u32::MAX);
    assert_eq!((none.rows(), none.value(0, 0)), (0, None));
    assert_eq!(none.value(usize::MAX, u32::MAX - 1), None);
}

/// A blob truncated between two rows is a valid shorter blob.
#[test]
fn rejects_prefixes_that_cut_a_row() {
    hostile::prefixes(&[0; 48], |prefix| {
        let rows = NumericRows::parse(prefix, dtype("uint16"), columns(3));
        assert_eq!(rows.is_ok(), prefix.len().is_multiple_of(6));
    });
}

/// The bytes `01 02 … 10` are read as each kind.
#[test]
fn every_kind_reads_its_bytes_in_either_order() {
    let bytes: [u8; 16] = core::array::from_fn(|at| u8::try_from(at + 1).unwrap());
    let check = |text: &str, want: Value| {
        let size = dtype(text).size();
        let bytes = &bytes[..16 / size * size];
        assert_eq!(parse(bytes, text, 1).value(0, 0), Some(want), "{text}");
    };
    check("bool", Value::Bool(true));
    check("int8", Value::Int(1));
    check("<i2", Value::Int(0x0201));
    check(">i2", Value::Int(0x0102));
    check("<i4", Value::Int(0x0403_0201));
    check(">i4", Value::Int(0x0102_0304));
    check("<i8", Value::Int(0x0807_0605_0403_0201));
    check(">i8", Value::Int(0x0102_0304_0506_0708));
    check(">u1", Value::UInt(1));
    check("<u2", Value::UInt(0x0201));
    check(">u2", Value::UInt(0x0102));
    check("<u4", Value::UInt(0x0403_0201));
    check(">u4", Value::UInt(0x0102_0304));
    check("<u8", Value::UInt(0x0807_0605_0403_0201));
    check(">u8", Value::UInt(0x0102_0304_0506_0708));
    // Subnormals: the bits times the smallest of them.
    check("<f2", Value::Float(513.0 * 2.0_f64.powi(-24)));
    check(">f2", Value::Float(258.0 * 2.0_f64.powi(-24)));
    let single = |bits| f64::from(f32::from_bits(bits));
    check("<f4", Value::Float(single(0x0403_0201)));
    check(">f4", Value::Float(single(0x0102_0304)));
    check("<f8", Value::Float(f64::from_bits(0x0807_0605_0403_0201)));
    check(">f8", Value::Float(f64::from_bits(0x0102_0304_0506_0708)));
    let complex = |re, im| Value::Complex { re, im };
    check("<c8", complex(single(0x0403_0201), single(0x0807_0605)));
    check(">c8", complex(single(0x0102_0304), single(0x0506_0708)));
    let double = f64::from_bits;
    check(
        "<c16",
        complex(double(0x0807_0605_0403_0201), double(0x100f_0e0d_0c0b_0a09)),
    );
    check(
        ">c16",
        complex(double(0x0102_0304_0506_0708), double(0x090a_0b0c_0d0e_0f10)),
    );
}

#[test]
fn extremes_widen_exactly() {
    let check = |value: Value, want: Value| assert_eq!(value, want);
    check(i8::MIN.value(), Value::Int(-128));
    check(i64::MIN.value(), Value::Int(i64::MIN));
    check(u64::MAX.value(), Value::UInt(u64::MAX));
    check(f32::MAX.value(), Value::Float(f64::from(f32::MAX)));
    check(f64::MIN_POSITIVE.value(), Value::Float(f64::MIN_POSITIVE));
}

#[test]
fn any_byte_but_zero_is_true_and_true_is_written_as_one() {
    let rows = parse(&[0, 1, 2, 0x80, 0xff], "bool", 1);
    let truths: Vec<_> = rows.elements::<bool>().unwrap().iter().collect();
    assert_eq!(truths, [false, true, true, true, true]);
    assert_eq!(encode(&truths, ByteOrder::Big), [0, 1, 1, 1, 1]);
}

/// Computes the value of binary16 bits independently.
fn half_value(bits: u16) -> f64 {
    let fraction = f64::from(bits & 0x3ff);
    let sign = if bits >> 15 == 0 { 1.0 } else { -1.0 };
    match i32::from(bits >> 10 & 0x1f) {
        0 => sign * fraction * 2.0_f64.powi(-24),
        31 if fraction == 0.0 => sign * f64::INFINITY,
        31 => f64::NAN,
        exponent => sign * (1.0 + fraction / 1024.0) * 2.0_f64.powi(exponent - 15),
    }
}

#[test]
fn every_float16_widens_exactly_and_keeps_its_bits() {
    let values: Vec<_> = (0..=u16::MAX).map(f16::from_bits).collect();
    for order in ORDERS {
        let bytes = encode(&values, order);
        let float16 = Dtype::new(Kind::Float16, order);
        let rows = NumericRows::parse(&bytes, float16, NonZeroU32::MIN).unwrap();
        let elements = rows.elements::<f16>().unwrap();
        for (bits, row) in (0..=u16::MAX).zip(0..) {
            assert_eq!(elements.get(row).map(f16::to_bits), Some(bits));
            let Some(Value::Float(value)) = rows.value(row, 0) else {
                panic!("{bits:#06x} is not a float");
            };
            let want = half_value(bits);
            assert_eq!(value.is_nan(), want.is_nan(), "{bits:#06x}");
            let same = value.to_bits() == want.to_bits();
            assert!(same || want.is_nan(), "{bits:#06x}: {value}");
        }
        let mut copies = vec![f16::ZERO; values.len()];
        elements.copy_to(&mut copies).unwrap();
        let bits = copies.iter().map(|copy| copy.to_bits());
        assert!(bits.eq(0..=u16::MAX));
    }
}

#[test]
fn elements_require_the_matching_kind() {
    let bytes = [0; 16];
    let rows = parse(&bytes, "int32", 1);
    assert!(rows.elements::<i32>().is_some());
    assert!(rows.elements::<u32>().is_none());
    assert!(rows.elements::<f32>().is_none());
    let complex = parse(&bytes, "complex64", 1);
    assert!(complex.elements::<[f32; 2]>().is_some());
    assert!(complex.elements::<f64>().is_none());
}

#[test]
fn copying_requires_a_destination_of_equal_length() {
    let rows = parse(&[1, 2, 3], "uint8", 1);
    let elements = rows.elements::<u8>().unwrap();
    for found in [0, 2, 4] {
        let mut places = vec![9; found];
        let error = elements.copy_to(&mut places).unwrap_err();
        assert_eq!(error, CopyLength { needed: 3, found });
        assert!(places.iter().all(|place| *place == 9));
    }
}

#[test]
fn reads_at_every_alignment() {
    for kind in Kind::ALL {
        for order in ORDERS {
            let body: Vec<_> = (1..=96).collect();
            let bytes = packed(Dtype::new(kind, order), 3, &body);
            let want = walk::numeric_rows(&bytes).unwrap();
            hostile::alignments(&bytes, |moved| {
                assert_eq!(walk::numeric_rows(moved), Some(want));
            });
        }
    }
}

#[test]
fn survives_damage_to_every_byte() {
    for kind in Kind::ALL {
        let body: Vec<_> = (1..=64).collect();
        let bytes = packed(Dtype::new(kind, ByteOrder::Big), 2, &body);
        hostile::damage(&bytes, laws::numeric_rows);
    }
}

/// Attribute cells of the 0.9 stores: the extent of the chunk's fragments determines their width,
/// independent of `row_shape`.
#[test]
fn attributes_of_real_stores_have_a_width() {
    let golden = Golden::open("zvf-09");
    let plain = uncompressed(&golden);
    let mut kinds = Vec::new();
    for array in &plain {
        let Some((level, _)) = array.split_once("/vertex_attributes/") else {
            continue;
        };
        let fragments = format!("{level}/vertex_fragments");
        assert!(plain.contains(&fragments), "{array}");
        let attributes = &golden.json(&format!("{array}/zarr.json"))["attributes"];
        let dtype = dtype(attributes["dtype"].as_str().unwrap());
        for (path, bytes) in chunks(&golden, array) {
            let index = golden.file(&path.replace(array.as_str(), &fragments));
            let index = VlenFrame::parse(index).unwrap().only().unwrap();
            let extent = FragmentIndex::parse(index).unwrap().extent();
            let cell = VlenFrame::parse(bytes).unwrap().only().unwrap();
            let Some(width) = columns_of(cell.len(), dtype, extent) else {
                // Editors append rows to a chunk without attributes.
                assert!(path.starts_with("edit_"), "{path}");
                continue;
            };
            if let Some(declared) = attributes["row_shape"][0].as_u64() {
                assert_eq!(u64::from(width.get()), declared, "{path}");
            }
            let rows = NumericRows::parse(cell, dtype, width).unwrap();
            assert_eq!(u64::try_from(rows.rows()).unwrap(), extent);
            let columns = u8::try_from(width.get()).unwrap();
            laws::numeric_rows(&packed(dtype, columns, cell));
            kinds.push(dtype.kind().name());
        }
    }
    kinds.sort_unstable();
    kinds.dedup();
    assert!(kinds.len() >= 10, "{kinds:?}");
}

fn check_round_trip<T: Element + PartialEq>(values: &[T]) {
    for order in ORDERS {
        let bytes = encode(values, order);
        let dtype = Dtype::new(T::KIND, order);
        let rows = NumericRows::parse(&bytes, dtype, NonZeroU32::MIN).unwrap();
        let elements = rows.elements::<T>().unwrap();
        // Compared by their bits through the encoder, where NaN equals itself.
        let again: Vec<_> = elements.iter().collect();
        assert_eq!(encode(&again, order), bytes);
        assert_eq!(elements.len(), values.len());
        laws::numeric_rows(&packed(dtype, 1, &bytes));
    }
    let mut turned: Vec<_> = encode(values, ByteOrder::Big)
        .chunks(size_of::<T>())
        .map(<[u8]>::to_vec)
        .collect();
    if !matches!(T::KIND, Kind::Complex64 | Kind::Complex128) {
        for value in &mut turned {
            value.reverse();
        }
        assert_eq!(turned.concat(), encode(values, ByteOrder::Little));
    }
}

proptest! {
    #[test]
    fn decoding_returns_the_encoded_values(
        words in prop::collection::vec(any::<(u64, u64)>(), 0..40),
    ) {
        let low = || words.iter().map(|word| word.0);
        check_round_trip(&low().map(|word| word & 1 == 1).collect::<Vec<_>>());
        check_round_trip(&low().map(|word| word.to_le_bytes()[0]).collect::<Vec<_>>());
        check_round_trip(&low().map(|word| word.to_le_bytes()[1].cast_signed()).collect::<Vec<_>>());
        let short = |word: u64| u16::try_from(word & 0xffff).unwrap();
        check_round_trip(&low().map(short).collect::<Vec<_>>());
        check_round_trip(&low().map(|word| short(word).cast_signed()).collect::<Vec<_>>());
        check_round_trip(&low().map(|word| f16::from_bits(short(word))).collect::<Vec<_>>());
        let int = |word: u64| u32::try_from(word >> 32).unwrap();
        check_round_trip(&low().map(int).collect::<Vec<_>>());
        check_round_trip(&low().map(|word| int(word).cast_signed()).collect::<Vec<_>>());
        check_round_trip(&low().map(|word| f32::from_bits(int(word))).collect::<Vec<_>>());
        check_round_trip(&low().collect::<Vec<_>>());
        check_round_trip(&low().map(u64::cast_signed).collect::<Vec<_>>());
        check_round_trip(&low().map(f64::from_bits).collect::<Vec<_>>());
        let pairs = words.iter().map(|word| [word.0, word.1]);
        check_round_trip(&pairs.clone().map(|pair| pair.map(f64::from_bits)).collect::<Vec<_>>());
        check_round_trip(&pairs.map(|pair| pair.map(|word| f32::from_bits(int(word)))).collect::<Vec<_>>());
    }

    #[test]
    fn any_bytes_obey_the_laws(
        kind in 0..14_u8,
        big in any::<bool>(),
        columns in 0..4_u8,
        body in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        let code = kind | if big { 0x80 } else { 0 };
        laws::numeric_rows(&[&[code, columns][..], &body].concat());
    }

    #[test]
    fn a_dtype_reads_what_it_writes(kind in 0..14_usize, big in any::<bool>(), text in ".{0,4}") {
        let dtype = Dtype::new(Kind::ALL[kind], ORDERS[usize::from(big)]);
        prop_assert_eq!(Dtype::parse(&dtype.to_string()), Ok(dtype));
        if let Ok(read) = Dtype::parse(&text) {
            prop_assert_eq!(Dtype::parse(&read.to_string()), Ok(read));
        }
    }
}
