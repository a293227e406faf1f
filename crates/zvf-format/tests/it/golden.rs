//! Common parts of the golden tests: tallies, and comparison with recorded JSON.

use std::{fmt, num::NonZeroU32};

use serde_json::Value as Json;
use zvf_format::{
    dictionary::{CodeDtype, DictionaryCodes},
    fragment::{FragmentIndex, FragmentIndexBuilder, Rows},
    links::{LinkRows, LinkRowsBuilder, LinkWidth},
    manifest::{ObjectManifest, ObjectManifestBuilder},
    numeric::{self, Dtype, Element, KindVisitor, NumericRows, Value},
};

/// Decodes numbers in their own type and encodes them again.
struct Again<'a>(NumericRows<'a>);

impl KindVisitor for Again<'_> {
    type Output = Vec<u8>;

    fn visit<T: Element>(self) -> Vec<u8> {
        let values: Vec<T> = self.0.elements().unwrap().iter().collect();
        numeric::encode(&values, self.0.dtype().order())
    }
}

/// Counters of comparisons, which show that a run compared something.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) stores: usize,
    pub(crate) blobs: usize,
    pub(crate) compared: usize,
    pub(crate) reencoded: usize,
    pub(crate) unlisted: usize,
    /// Blobs that are not in canonical form.
    pub(crate) other_form: Vec<String>,
}

impl Tally {
    /// Compares with a recorded value.
    #[track_caller]
    pub(crate) fn same<T: PartialEq + fmt::Debug>(&mut self, got: &T, want: &T, what: &str) {
        assert_eq!(got, want, "{what}");
        self.compared += 1;
    }

    /// Compares a re-encoded blob with the original bytes.
    #[track_caller]
    pub(crate) fn reencoded(&mut self, again: &[u8], blob: &[u8], what: &str) {
        assert_eq!(again, blob, "{what} encodes differently");
        self.reencoded += 1;
    }

    /// Re-encodes a manifest. The reference has an option to store runs as lists; such a blob is
    /// recorded as another form.
    #[track_caller]
    pub(crate) fn manifest(&mut self, manifest: &ObjectManifest<'_>, blob: &[u8], what: &str) {
        if manifest.is_canonical() {
            self.reencoded(&encode_manifest(manifest), blob, what);
        } else {
            assert_ne!(encode_manifest(manifest), blob);
            self.other_form.push(what.to_owned());
        }
    }

    /// Decodes numbers in their own type and encodes them again.
    #[track_caller]
    pub(crate) fn numbers(&mut self, rows: &NumericRows<'_>, what: &str) {
        let again = rows.dtype().kind().visit(Again(*rows));
        self.reencoded(&again, rows.as_bytes(), what);
    }

    /// Decodes categorical codes and encodes them again in the canonical dtype.
    #[track_caller]
    pub(crate) fn codes(&mut self, blob: &[u8], attributes: &Json, what: &str) {
        let categories = attributes["categories"].as_array().unwrap().len();
        let categories = u32::try_from(categories).unwrap();
        let missing = attributes["_FillValue"].as_i64();
        let codes = DictionaryCodes::parse(blob, dtype(attributes), categories, missing).unwrap();
        let chosen = match missing {
            None => CodeDtype::new(categories),
            Some(_) => CodeDtype::with_missing(categories).unwrap(),
        };
        let again = chosen.encode(&codes.iter().collect::<Vec<_>>()).unwrap();
        self.reencoded(&again, blob, what);
    }

    pub(crate) fn print(&self, archive: &str) {
        report(format_args!(
            "{archive}: {} stores, {} blobs, {} comparisons, {} re-encoded \
                 byte for byte, {} decoded without a recorded value, {} in another form {:?}",
            self.stores,
            self.blobs,
            self.compared,
            self.reencoded,
            self.unlisted,
            self.other_form.len(),
            self.other_form,
        ));
    }
}

/// Prints the comparisons for `xtask conformance`.
#[expect(clippy::print_stdout, reason = "the test runner shows it on request")]
pub(crate) fn report(compared: fmt::Arguments<'_>) {
    println!("conformance: {compared}");
}

/// Returns a fragment index as JSON, `{"range": [start, count]}` or `{"explicit": [...]}`.
pub(crate) fn fragments_json(index: &FragmentIndex<'_>) -> Vec<Json> {
    let fragment = |rows: Rows<'_>| match rows {
        Rows::Range(rows) => serde_json::json!({"range": [rows.start, rows.end - rows.start]}),
        Rows::List(rows) => serde_json::json!({"explicit": rows.iter().collect::<Vec<_>>()}),
    };
    index.iter().map(fragment).collect()
}

/// Encodes an index again.
pub(crate) fn encode_fragments(index: &FragmentIndex<'_>) -> Vec<u8> {
    let mut builder = FragmentIndexBuilder::default();
    for rows in index {
        builder.push(&rows).unwrap();
    }
    builder.finish()
}

/// Encodes a manifest again.
pub(crate) fn encode_manifest(manifest: &ObjectManifest<'_>) -> Vec<u8> {
    let mut builder = ObjectManifestBuilder::new(manifest.sid_ndim());
    for block in manifest {
        builder.push(&block).unwrap();
    }
    builder.finish()
}

/// Returns a builder with `rows`, in groups that end at `ends`.
pub(crate) fn link_builder<'a>(
    groups: impl Iterator<Item = LinkRows<'a>>,
    of: LinkRows<'_>,
) -> LinkRowsBuilder {
    let mut builder = LinkRowsBuilder::new(of.width(), of.form());
    for group in groups {
        for row in group.iter() {
            let stored: Vec<u64> = row.stored().collect();
            builder.push(row.order(), &stored).unwrap();
        }
        builder.end_group();
    }
    builder
}

/// Returns link rows as JSON, in input order.
pub(crate) fn links_json(rows: LinkRows<'_>) -> Json {
    let row = |row: zvf_format::links::LinkRow<'_>| row.input().collect::<Json>();
    rows.iter().map(row).collect()
}

pub(crate) fn columns(columns: u64) -> NonZeroU32 {
    NonZeroU32::new(u32::try_from(columns).unwrap()).unwrap()
}

pub(crate) fn dtype(attributes: &Json) -> Dtype {
    Dtype::parse(attributes["dtype"].as_str().unwrap_or("float32")).unwrap()
}

pub(crate) fn width(attributes: &Json) -> LinkWidth {
    LinkWidth::new(attributes["link_width"].as_u64().unwrap()).unwrap()
}

/// Compares the numbers in `rows` with `want`: nested in rows of several columns, or flat.
#[track_caller]
pub(crate) fn check_numbers(
    rows: &NumericRows<'_>,
    at: impl Iterator<Item = u64>,
    want: &Json,
    what: &str,
) {
    let want = flat(want);
    let columns = rows.columns().get();
    let mut got = Vec::new();
    for row in at {
        let row = usize::try_from(row).unwrap();
        got.extend((0..columns).map(|column| rows.value(row, column).unwrap()));
    }
    assert_eq!(got.len(), want.len(), "{what}");
    for (got, want) in got.into_iter().zip(want) {
        let same = match got {
            Value::Bool(got) => want.as_bool() == Some(got) || want.as_u64() == Some(got.into()),
            Value::Int(got) => want.as_i64() == Some(got),
            Value::UInt(got) => want.as_u64() == Some(got),
            Value::Float(got) if got.is_nan() => want == "NaN",
            Value::Float(got) => want.as_f64().map(f64::to_bits) == Some(got.to_bits()),
            Value::Complex { .. } => panic!("{what}: no recorded value is complex"),
        };
        assert!(same, "{what}: {got:?} is not {want}");
    }
}

/// Returns all numbers of nested arrays, in order.
pub(crate) fn flat(value: &Json) -> Vec<Json> {
    match value {
        Json::Array(items) => items.iter().flat_map(flat).collect(),
        other => vec![other.clone()],
    }
}

/// Returns a chunk key's coordinates.
pub(crate) fn coords(key: &str) -> Vec<i64> {
    let sid_ndim = key.split('.').count();
    let key = zvf_format::path::ChunkKey::parse(key, sid_ndim).unwrap();
    key.coords().collect()
}
