//! Output of the reference's encoders for seeded inputs, `testdata/codec`.

use std::{collections::BTreeSet, fs};

use serde_json::Value as Json;
use zvf_format::{
    dictionary::{Code, CodeDtype, DictionaryCodes},
    fragment::{FragmentIndex, FragmentIndexBuilder, Rows},
    links::{LinkRowsBuilder, LinkWidth, Permutation, RaggedLinks, RowForm},
    manifest::{BlockFault, FragmentRef, ManifestError, ObjectManifest, ObjectManifestBuilder},
    numeric::{self, Dtype, Element, Kind, NumericRows, Value},
    path::Offsets,
    ragged::{self, RaggedBlob},
    vlen::{self, VlenFrame},
};
use zvf_testkit::{
    filing::{FilingRules, record_from_json},
    golden::{testdata, unhex},
};

use crate::golden::{columns, encode_fragments, encode_manifest};

/// Defines a test for each file from the function that compares one of its cases.
macro_rules! files {
    ($($test:ident: $codec:ident,)*) => {
        const READ: &[&str] = &[$(stringify!($codec)),*];

        $(#[test]
        fn $test() {
            check(stringify!($codec), $codec);
        })*
    };
}

files! {
    golden_recorded_dictionary: dictionary,
    golden_recorded_fragment_index: fragment_index,
    golden_recorded_fragment_index_listed: fragment_index_listed,
    golden_recorded_link_placement: link_placement,
    golden_recorded_numeric_rows: numeric_rows,
    golden_recorded_object_manifest: object_manifest,
    golden_recorded_object_manifest_listed: object_manifest_listed,
    golden_recorded_permutation: permutation,
    golden_recorded_ragged_blob: ragged_blob,
    golden_recorded_vlen_frame: vlen_frame,
}

#[test]
fn every_recorded_file_is_read() {
    let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
    let entries = fs::read_dir(testdata().join("codec")).unwrap();
    let there: BTreeSet<String> = entries.map(|entry| name(entry.unwrap())).collect();
    // The tests of zvf-model read the streams of Draco.
    let read = READ
        .iter()
        .chain(&["draco"])
        .map(|codec| format!("{codec}.json"));
    assert_eq!(there, read.collect());
}

/// Relation between the bytes of our encoder and the recorded ones.
enum Form {
    Same,
    /// The reference stored runs as lists, on request; we never do.
    Other,
    /// Rejected: a fragment number of more than 32 bits, which no chunk has.
    Refused,
}

/// Runs `compare` on every case of a file.
fn check(codec: &str, compare: fn(&Json) -> Form) {
    let path = testdata().join(format!("codec/{codec}.json"));
    let file: Json = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    assert_eq!(file["codec"], codec);
    let cases = file["cases"].as_array().unwrap();
    assert!(!cases.is_empty(), "{codec} has no case");
    let (mut same, mut other, mut refused) = (0, 0, 0);
    for case in cases {
        let compared = std::panic::catch_unwind(|| compare(case))
            .unwrap_or_else(|_| panic!("{codec}: case {}", case["name"]));
        *match compared {
            Form::Same => &mut same,
            Form::Other => &mut other,
            Form::Refused => &mut refused,
        } += 1;
    }
    let (all, read) = (cases.len(), same + other);
    #[expect(clippy::print_stdout, reason = "`xtask conformance` shows these lines")]
    {
        println!(
            "conformance: recorded {codec}: {all} cases, {read} decoded to their input, {same} \
             encoded as recorded, {other} in another form, {refused} past our limits"
        );
    }
}

fn fragment_index(case: &Json) -> Form {
    let fragments = list(&case["input"]["fragments"]);
    let blob = blob(case);
    let index = FragmentIndex::parse(&blob).unwrap();
    assert_eq!(index.iter().len(), fragments.len());
    let mut builder = FragmentIndexBuilder::default();
    for (rows, fragment) in index.iter().zip(fragments) {
        if let Some([start, count]) = range(fragment) {
            assert_eq!(rows, Rows::Range(start..start + count));
            builder.push_range(start..start + count).unwrap();
        } else {
            let want = unsigned(&fragment["list"]);
            assert!(rows.iter().eq(want.iter().copied()), "{rows:?}");
            builder.push_list(&want).unwrap();
        }
    }
    // We always write the same form, whatever that of the bytes.
    assert_eq!(encode_fragments(&index), builder.finish());
    form(index.is_canonical(), &builder.finish(), &blob)
}

fn fragment_index_listed(case: &Json) -> Form {
    fragment_index(case)
}

fn object_manifest(case: &Json) -> Form {
    let sid_ndim = usize::try_from(case["input"]["dims"].as_u64().unwrap()).unwrap();
    let blocks = list(&case["input"]["blocks"]);
    let blob = blob(case);
    let largest = case["input"].to_string().contains("9223372036854775807");
    let manifest = match ObjectManifest::parse(&blob, sid_ndim) {
        Err(ManifestError::Block { block: 0, fault }) if largest => {
            assert_eq!(fault, BlockFault::Fragment(i64::MAX));
            return Form::Refused;
        }
        parsed => parsed.unwrap(),
    };
    assert_eq!(manifest.iter().len(), blocks.len());
    let mut builder = ObjectManifestBuilder::new(sid_ndim);
    for (block, given) in manifest.iter().zip(blocks) {
        let chunk = signed(&given["chunk"]);
        assert!(block.chunk.iter().eq(chunk.iter().copied()));
        let given = &given["fragments"];
        if let Some(one) = given["one"].as_u64() {
            let one = u32::try_from(one).unwrap();
            assert_eq!(block.fragments, FragmentRef::Single(one));
            builder.push_single(&chunk, one).unwrap();
        } else if let Some(range) = range(given) {
            let [start, count] = range.map(|number| u32::try_from(number).unwrap());
            assert_eq!(block.fragments, FragmentRef::Range(start..start + count));
            builder.push_range(&chunk, start..start + count).unwrap();
        } else {
            let want: Vec<u32> = unsigned(&given["list"])
                .into_iter()
                .map(|number| u32::try_from(number).unwrap())
                .collect();
            assert!(block.fragments.iter().eq(want.iter().copied()));
            builder.push_list(&chunk, &want).unwrap();
        }
    }
    assert_eq!(encode_manifest(&manifest), builder.finish());
    form(manifest.is_canonical(), &builder.finish(), &blob)
}

fn object_manifest_listed(case: &Json) -> Form {
    object_manifest(case)
}

fn ragged_blob(case: &Json) -> Form {
    let dtype = Dtype::parse(case["input"]["dtype"].as_str().unwrap()).unwrap();
    let width = case["input"]["columns"].as_u64().unwrap();
    let groups = list(&case["input"]["groups"]);
    let blob = blob(case);
    let found = RaggedBlob::parse(&blob).unwrap();
    assert_eq!(found.len(), groups.len());
    for (bytes, rows) in found.iter().zip(groups) {
        let found = NumericRows::parse(bytes, dtype, columns(width)).unwrap();
        check_rows(&found, list(rows));
    }
    let encoded = groups.iter().map(|rows| encode(dtype, list(rows)));
    assert_eq!(ragged::encode(&encoded.collect::<Vec<_>>()), blob);
    if dtype.kind() == Kind::Int64 {
        ragged_links(LinkWidth::new(width).unwrap(), groups, &blob);
    }
    Form::Same
}

/// Compares the same blob as a link cell, if its numbers are int64.
fn ragged_links(width: LinkWidth, groups: &[Json], blob: &[u8]) {
    let links = RaggedLinks::parse(blob, width, RowForm::Plain).unwrap();
    assert_eq!(links.group_count(), groups.len());
    let mut builder = LinkRowsBuilder::new(width, RowForm::Plain);
    for (found, rows) in links.groups().zip(groups) {
        assert_eq!(found.len(), list(rows).len());
        for (row, want) in found.iter().zip(list(rows)) {
            let want = unsigned(want);
            assert!(row.input().eq(want.iter().copied()), "{row:?}");
            let order = Permutation::identity(width);
            builder.push(order, &want).unwrap();
        }
        builder.end_group();
    }
    assert_eq!(builder.finish_ragged(), blob);
}

fn link_placement(case: &Json) -> Form {
    let record = record_from_json(&case["input"]["record"]);
    let family = FilingRules::from_json(&case["input"], record.len());
    let copies = family.file(&record).unwrap();
    let want = list(&case["copies"]);
    assert_eq!(copies.len(), want.len());
    for (copy, want) in copies.iter().zip(want) {
        assert_eq!(copy.segment, want["segment"]);
        assert_eq!(copy.source, signed(&want["source"]));
        assert_eq!(copy.vertices, unsigned(&want["vertices"]));
        assert_eq!(copy.order.code(), want["perm"]);
        // The parts that a reader finds: segment, source chunk, code and rows.
        let offsets = Offsets::parse(
            want["segment"].as_str().unwrap(),
            family.width,
            copy.source.len(),
        )
        .unwrap();
        let permuted = family.form(&offsets) == RowForm::Permuted;
        assert_eq!(permuted, want["perm_column"]);
        let code = want["perm"].as_i64().unwrap();
        let order = Permutation::from_code(family.width, code).unwrap();
        let (source, vertices) = (signed(&want["source"]), unsigned(&want["vertices"]));
        let found = family.record(&offsets, &source, order, &vertices);
        assert_eq!(found, Some(record.clone()));
    }
    Form::Same
}

fn permutation(case: &Json) -> Form {
    let slots: Vec<u8> = unsigned(&case["input"])
        .into_iter()
        .map(|slot| u8::try_from(slot).unwrap())
        .collect();
    let code = case["code"].as_i64().unwrap();
    let order = Permutation::from_slots(&slots).unwrap();
    assert_eq!(order.code(), code);
    let order = Permutation::from_code(order.width(), code).unwrap();
    assert_eq!(order.slots(), slots);
    Form::Same
}

fn vlen_frame(case: &Json) -> Form {
    let cells: Vec<_> = list(&case["input"]["cells"])
        .iter()
        .map(|cell| unhex(cell.as_str().unwrap()))
        .collect();
    let blob = blob(case);
    assert!(VlenFrame::parse(&blob).unwrap().iter().eq(&cells));
    assert_eq!(vlen::encode(&cells).unwrap(), blob);
    Form::Same
}

fn dictionary(case: &Json) -> Form {
    let values = list(&case["input"]["values"]);
    let missing = case["input"]["fill"].as_i64();
    let categories = list(&case["categories"]);
    let count = u32::try_from(categories.len()).unwrap();
    let chosen = match missing {
        None => CodeDtype::new(count),
        Some(_) => CodeDtype::with_missing(count).unwrap(),
    };
    assert_eq!(chosen.dtype().to_string(), case["dtype"]);
    assert_eq!(chosen.missing(), missing);

    let blob = blob(case);
    let codes = DictionaryCodes::parse(&blob, chosen.dtype(), count, missing).unwrap();
    let word = |code| match code {
        Code::Missing => Json::Null,
        Code::Category(category) => categories[category as usize].clone(),
    };
    assert!(codes.iter().map(word).eq(values.iter().cloned()));

    let code = |value: &Json| {
        let at = categories.iter().position(|category| category == value);
        at.map_or(Code::Missing, |at| {
            Code::Category(u32::try_from(at).unwrap())
        })
    };
    let codes: Vec<_> = values.iter().map(code).collect();
    assert_eq!(chosen.encode(&codes).unwrap(), blob);
    Form::Same
}

fn numeric_rows(case: &Json) -> Form {
    let kind = Dtype::parse(case["input"]["dtype"].as_str().unwrap()).unwrap();
    let order = match case["input"]["order"].as_str() {
        Some("big") => numeric::ByteOrder::Big,
        _ => numeric::ByteOrder::Little,
    };
    let dtype = Dtype::new(kind.kind(), order);
    let rows = list(&case["input"]["rows"]);
    let blob = blob(case);
    let width = columns(case["input"]["columns"].as_u64().unwrap());
    check_rows(&NumericRows::parse(&blob, dtype, width).unwrap(), rows);
    assert_eq!(encode(dtype, rows), blob);
    Form::Same
}

/// Checks that encoding reproduces `blob` exactly if the view calls it canonical.
fn form(canonical: bool, encoded: &[u8], blob: &[u8]) -> Form {
    assert_eq!(canonical, encoded == blob, "canonical, encoded alike");
    if canonical { Form::Same } else { Form::Other }
}

fn check_rows(found: &NumericRows<'_>, want: &[Json]) {
    assert_eq!(found.rows(), want.len());
    for (row, want) in want.iter().enumerate() {
        for (column, want) in (0..).zip(list(want)) {
            let found = found.value(row, column).unwrap();
            let same = match found {
                Value::Bool(found) => want.as_bool() == Some(found),
                Value::Int(found) => want.as_i64() == Some(found),
                Value::UInt(found) => want.as_u64() == Some(found),
                Value::Float(found) => same_float(found, want),
                Value::Complex { re, im } => same_float(re, &want[0]) && same_float(im, &want[1]),
            };
            assert!(same, "row {row}, column {column}: {found:?} is not {want}");
        }
        assert_eq!(found.columns().get() as usize, list(want).len());
    }
}

fn same_float(found: f64, want: &Json) -> bool {
    let want = float(want);
    found.to_bits() == want.to_bits() || found.is_nan() && want.is_nan()
}

/// Encodes the numbers of all rows in their dtype.
fn encode(dtype: Dtype, rows: &[Json]) -> Vec<u8> {
    fn all<T: Element>(dtype: Dtype, values: &[&Json], number: fn(&Json) -> T) -> Vec<u8> {
        let numbers: Vec<T> = values.iter().map(|value| number(value)).collect();
        numeric::encode(&numbers, dtype.order())
    }
    let values: Vec<&Json> = rows.iter().flat_map(list).collect();
    match dtype.kind() {
        Kind::Bool => all(dtype, &values, |value| value.as_bool().unwrap()),
        Kind::Int8 => all::<i8>(dtype, &values, integer),
        Kind::Int16 => all::<i16>(dtype, &values, integer),
        Kind::Int32 => all::<i32>(dtype, &values, integer),
        Kind::Int64 => all::<i64>(dtype, &values, integer),
        Kind::UInt8 => all::<u8>(dtype, &values, integer),
        Kind::UInt16 => all::<u16>(dtype, &values, integer),
        Kind::UInt32 => all::<u32>(dtype, &values, integer),
        Kind::UInt64 => all::<u64>(dtype, &values, integer),
        Kind::Float16 => all(dtype, &values, |value| half::f16::from_f64(float(value))),
        Kind::Float32 => all(dtype, &values, single),
        Kind::Float64 => all(dtype, &values, float),
        Kind::Complex64 => all(dtype, &values, |value| [0, 1].map(|at| single(&value[at]))),
        Kind::Complex128 => all(dtype, &values, |value| [0, 1].map(|at| float(&value[at]))),
    }
}

fn integer<T: TryFrom<i128>>(value: &Json) -> T {
    let number = value
        .as_i64()
        .map(i128::from)
        .or_else(|| value.as_u64().map(i128::from));
    T::try_from(number.unwrap()).ok().unwrap()
}

fn float(value: &Json) -> f64 {
    match value.as_str() {
        None => value.as_f64().unwrap(),
        Some("nan") => f64::NAN,
        Some("inf") => f64::INFINITY,
        Some("-inf") => f64::NEG_INFINITY,
        Some(other) => panic!("{other} is not a number"),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "recorded numbers are singles"
)]
fn single(value: &Json) -> f32 {
    float(value) as f32
}

fn blob(case: &Json) -> Vec<u8> {
    unhex(case["hex"].as_str().unwrap())
}

fn range(fragments: &Json) -> Option<[u64; 2]> {
    fragments["range"].as_array()?;
    unsigned(&fragments["range"]).try_into().ok()
}

fn unsigned(numbers: &Json) -> Vec<u64> {
    let numbers = list(numbers).iter();
    numbers.map(|number| number.as_u64().unwrap()).collect()
}

fn signed(numbers: &Json) -> Vec<i64> {
    let numbers = list(numbers).iter();
    numbers.map(|number| number.as_i64().unwrap()).collect()
}

fn list(value: &Json) -> &[Json] {
    value.as_array().unwrap()
}
