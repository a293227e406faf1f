//! Dictionary codes: the table's bounds, the missing value, the choice of dtype.

use proptest::prelude::*;
use zvf_format::{
    dictionary::{
        Code::{self, Category, Missing},
        CodeDtype, DictionaryCodes, DictionaryCodesError as E, DictionaryLimit,
    },
    numeric::{ByteOrder, Dtype, Kind, encode},
    vlen::VlenFrame,
};
use zvf_testkit::{golden::Golden, hostile, laws, walk};

use crate::vlen::{chunks, uncompressed};

fn dtype(text: &str) -> Dtype {
    Dtype::parse(text).unwrap()
}

#[track_caller]
fn check_reads(bytes: &[u8], text: &str, missing: Option<i64>, want: &[Code]) {
    let codes = DictionaryCodes::parse(bytes, dtype(text), 3, missing).unwrap();
    assert!(codes.iter().eq(want.iter().copied()), "{codes:?}");
    assert_eq!((codes.len(), codes.iter().len()), (want.len(), want.len()));
    assert_eq!(codes.get(want.len()), None);
}

#[track_caller]
fn check_rejects(bytes: &[u8], text: &str, missing: Option<i64>, want: E) {
    let codes = DictionaryCodes::parse(bytes, dtype(text), 3, missing);
    assert_eq!(codes.unwrap_err(), want);
}

#[test]
fn the_example_of_the_format_is_read_and_written() {
    // "b", missing, "a", "b" of the table ["a", "b"].
    let (_, bytes) = [0x01, 0, 0, 0, 0x04, 0, 0, 0, 0x01, 0xff, 0x00, 0x01].split_at(8);
    let bytes = bytes.to_vec();
    let codes = DictionaryCodes::parse(&bytes, dtype("int8"), 2, Some(-1)).unwrap();
    let want = [Category(1), Missing, Category(0), Category(1)];
    assert!(codes.iter().eq(want));
    let stored = CodeDtype::with_missing(2).unwrap();
    assert_eq!(
        (stored.dtype(), stored.missing()),
        (dtype("int8"), Some(-1))
    );
    assert_eq!(stored.encode(&want), Ok(bytes));
}

#[test]
fn every_integer_kind_holds_codes() {
    let want = [Category(2), Category(0)];
    check_reads(&[2, 0], "uint8", None, &want);
    check_reads(&[2, 0], "int8", None, &want);
    check_reads(&[2, 0, 0, 0], "uint16", None, &want);
    check_reads(&[0, 2, 0, 0], ">i2", None, &want);
    check_reads(&encode(&[2_u32, 0], ByteOrder::Big), ">u4", None, &want);
    check_reads(
        &encode(&[2_i32, 0], ByteOrder::Little),
        "int32",
        None,
        &want,
    );
    check_reads(
        &encode(&[2_u64, 0], ByteOrder::Little),
        "uint64",
        None,
        &want,
    );
    check_reads(&encode(&[2_i64, 0], ByteOrder::Big), ">i8", None, &want);
}

#[test]
fn other_kinds_do_not() {
    for kind in Kind::ALL {
        let codes = DictionaryCodes::parse(&[], Dtype::new(kind, ByteOrder::Little), 3, None);
        let integer = kind.name().contains("int");
        assert_eq!(codes.err(), (!integer).then_some(E::Kind(kind)));
    }
}

#[test]
fn a_code_outside_the_table_is_named_with_its_row() {
    let stray = |row, code| E::Code { row, code };
    check_rejects(&[0, 3], "uint8", None, stray(1, 3));
    check_rejects(&[0, 1, 0xff, 3], "int8", None, stray(2, -1));
    check_rejects(&[0xff, 0xfe], "int8", Some(-1), stray(1, -2));
    check_rejects(&[0xff], "uint8", Some(-1), stray(0, 255));
    let all = encode(&[u64::MAX], ByteOrder::Little);
    check_rejects(&all, "uint64", Some(-1), stray(0, u64::MAX.into()));
    let min = encode(&[0, i64::MIN], ByteOrder::Big);
    check_rejects(&min, ">i8", None, stray(1, i64::MIN.into()));
    let none = DictionaryCodes::parse(&[0], dtype("uint8"), 0, None);
    assert_eq!(none, Err(stray(0, 0)));
}

#[test]
fn the_missing_value_may_be_any_number() {
    check_reads(&[9, 0], "uint8", Some(9), &[Missing, Category(0)]);
    // Even if the table has a row for it: the attribute takes precedence.
    check_reads(&[2, 0], "uint8", Some(0), &[Category(2), Missing]);
    check_reads(&[2, 0], "uint8", Some(256), &[Category(2), Category(0)]);
    let min = encode(&[i64::MIN], ByteOrder::Little);
    check_reads(&min, "int64", Some(i64::MIN), &[Missing]);
}

#[test]
fn equality_compares_the_meaning_of_rows() {
    let narrow = DictionaryCodes::parse(&[1, 0xff], dtype("int8"), 2, Some(-1)).unwrap();
    let wide = DictionaryCodes::parse(&[0, 1, 0, 7], dtype(">u2"), 2, Some(7)).unwrap();
    assert_eq!(narrow, wide);
    assert_eq!(format!("{wide:?}"), "[Category(1), Missing]");
    let other = DictionaryCodes::parse(&[1, 0], dtype("int8"), 2, Some(-1)).unwrap();
    assert_ne!(narrow, other);
}

/// A cell truncated between two codes is a valid shorter cell.
#[test]
fn rejects_prefixes_that_cut_a_code() {
    hostile::prefixes(&[0; 12], |prefix| {
        let codes = DictionaryCodes::parse(prefix, dtype("uint32"), 1, None);
        if prefix.len().is_multiple_of(4) {
            assert_eq!(codes.unwrap().len(), prefix.len() / 4);
        } else {
            assert_eq!(codes, Err(E::Length(prefix.len())));
        }
    });
}

#[test]
fn the_dtype_follows_from_the_number_of_categories() {
    let check = |categories, want| assert_eq!(CodeDtype::new(categories).dtype(), dtype(want));
    check(0, "uint8");
    check(255, "uint8");
    check(256, "uint16");
    check(65_535, "uint16");
    check(65_536, "uint32");
    check(u32::MAX, "uint32");
    let check = |categories, want| {
        let stored = CodeDtype::with_missing(categories).unwrap();
        assert_eq!(stored.dtype(), dtype(want));
        assert_eq!(stored.missing(), Some(-1));
        assert_eq!(stored.categories(), categories);
    };
    check(0, "int8");
    check(127, "int8");
    check(128, "int16");
    check(32_767, "int16");
    check(32_768, "int32");
    check(2_147_483_647, "int32");
    let past = 2_147_483_648;
    let limit = DictionaryLimit::Categories(past);
    assert_eq!(CodeDtype::with_missing(past), Err(limit));
}

#[test]
fn encoder_rejects_codes_outside_the_table() {
    let stored = CodeDtype::new(2);
    let category = DictionaryLimit::Category {
        row: 1,
        category: 2,
    };
    assert_eq!(stored.encode(&[Category(1), Category(2)]), Err(category));
    let missing = DictionaryLimit::Missing(0);
    assert_eq!(stored.encode(&[Missing]), Err(missing));
    assert_eq!(stored.encode(&[]), Ok(vec![]));
}

#[test]
fn the_highest_code_of_each_dtype_fits() {
    for categories in [255, 256, 65_535, 65_536, u32::MAX] {
        check_highest(CodeDtype::new(categories));
    }
    for categories in [127, 128, 32_767, 32_768, 2_147_483_647] {
        check_highest(CodeDtype::with_missing(categories).unwrap());
    }
}

#[track_caller]
fn check_highest(stored: CodeDtype) {
    let mut want = vec![Category(stored.categories() - 1), Category(0)];
    want.extend(stored.missing().map(|_| Missing));
    let bytes = stored.encode(&want).unwrap();
    let codes = DictionaryCodes::parse(
        &bytes,
        stored.dtype(),
        stored.categories(),
        stored.missing(),
    );
    assert!(codes.unwrap().iter().eq(want));
}

/// Returns input of the walk and the law: `int8`, three categories, -1 is missing.
fn packed() -> Vec<u8> {
    vec![1, 3, 0xff, 2, 0xff, 0, 1]
}

#[test]
fn reads_at_every_alignment() {
    let bytes = packed();
    let want = walk::dictionary_codes(&bytes).unwrap();
    hostile::alignments(&bytes, |moved| {
        assert_eq!(walk::dictionary_codes(moved), Some(want));
    });
}

#[test]
fn survives_damage_to_every_byte() {
    hostile::damage(&packed(), laws::dictionary_codes);
}

#[test]
fn attributes_of_real_stores_are_codes_of_their_table() {
    let golden = Golden::open("zvf-09");
    let mut seen = Vec::new();
    for array in uncompressed(&golden) {
        let attributes = &golden.json(&format!("{array}/zarr.json"))["attributes"];
        if attributes["encoding"] != "dictionary" {
            continue;
        }
        let stored = dtype(attributes["dtype"].as_str().unwrap());
        let categories = attributes["categories"].as_array().unwrap().len();
        let categories = u32::try_from(categories).unwrap();
        let missing = attributes["_FillValue"].as_i64();
        let canonical = match missing {
            None => CodeDtype::new(categories),
            Some(_) => CodeDtype::with_missing(categories).unwrap(),
        };
        assert_eq!(canonical.dtype(), stored, "{array}");
        assert_eq!(canonical.missing(), missing, "{array}");
        for (path, bytes) in chunks(&golden, &array) {
            let cell = VlenFrame::parse(bytes).unwrap().only().unwrap();
            let codes = DictionaryCodes::parse(cell, stored, categories, missing)
                .unwrap_or_else(|error| panic!("{path}: {error}"));
            let listed: Vec<_> = codes.iter().collect();
            assert_eq!(canonical.encode(&listed).unwrap(), cell, "{path}");
        }
        seen.push(stored.to_string());
    }
    seen.sort_unstable();
    assert_eq!(seen, ["int8", "uint8"]);
}

proptest! {
    #[test]
    fn decoding_returns_the_encoded_values(
        categories in prop_oneof![1..300_u32, 32_000..70_000_u32, 1..=0x7fff_ffff_u32],
        rows in prop::collection::vec(any::<Option<u32>>(), 0..20),
    ) {
        let codes: Vec<_> = rows.iter().map(|row| match row {
            Some(row) => Category(row % categories),
            None => Missing,
        }).collect();
        let stored = if codes.contains(&Missing) {
            CodeDtype::with_missing(categories).unwrap()
        } else {
            CodeDtype::new(categories)
        };
        let bytes = stored.encode(&codes).unwrap();
        let read = DictionaryCodes::parse(&bytes, stored.dtype(), categories, stored.missing());
        prop_assert!(read.unwrap().iter().eq(codes));
    }

    #[test]
    fn any_bytes_obey_the_laws(
        kind in 1..9_u8,
        big in any::<bool>(),
        parameters in any::<[u8; 2]>(),
        body in prop::collection::vec(prop_oneof![4 => Just(0_u8), 1 => any::<u8>()], 0..40),
    ) {
        let code = kind | if big { 0x80 } else { 0 };
        laws::dictionary_codes(&[&[code][..], &parameters, &body].concat());
    }
}
