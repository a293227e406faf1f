//! Laws of the value codecs. The bytes are split as in the walks.

use zvf_format::{
    dictionary::{Code, CodeDtype, DictionaryCodes},
    groups,
    numeric::{self, Element, Kind, KindVisitor, NumericRows, Value, columns_of},
    open_rows,
    vlen::{self, VlenFrame},
};

use crate::walk::values as walk;

/// Checks that iteration and lookup agree; encoding gives the same bytes again.
///
/// # Panics
///
/// Panics if the law is violated.
pub fn vlen_frame(bytes: &[u8]) {
    let Ok(frame) = VlenFrame::parse(bytes) else {
        return;
    };
    let items: Vec<_> = frame.iter().collect();
    assert_eq!(frame.iter().len(), items.len());
    assert_eq!(u32::try_from(items.len()), Ok(frame.len()));
    assert_eq!(frame.is_empty(), items.is_empty());
    for (at, item) in (0..).zip(&items).take(64) {
        assert_eq!(frame.get(at), Some(*item), "item {at}");
    }
    assert_eq!(frame.get(frame.len()), None);
    let only = match items[..] {
        [item] => Some(item),
        _ => None,
    };
    assert_eq!(frame.only(), only);
    assert_eq!(vlen::encode(&items).as_deref(), Ok(bytes));
}

/// Checks that iteration and lookup agree; encoding gives the same files again.
///
/// # Panics
///
/// Panics if the law is violated.
pub fn open_rows(bytes: &[u8]) {
    let Some(rows) = walk::open_rows_of(bytes) else {
        return;
    };
    let listed: Vec<_> = rows.iter().collect();
    assert_eq!(
        (rows.len(), rows.is_empty()),
        (listed.len(), listed.is_empty())
    );
    for (at, row) in listed.iter().enumerate() {
        assert_eq!(rows.get(at), Some(*row), "row {at}");
    }
    assert_eq!(rows.get(rows.len()), None);
    let files = open_rows::encode(&listed);
    let (offsets, data) = bytes[1..].split_at(bytes[0].into());
    assert_eq!((&files.offsets[..], &files.data[..]), (offsets, data));
}

/// Checks that iteration, lookup and membership agree; a list gives the same bytes again.
///
/// # Panics
///
/// Panics if the law is violated.
pub fn group_members(bytes: &[u8]) {
    let Some(members) = walk::group_members_of(bytes) else {
        return;
    };
    // A range may claim 2^64 ids: only its ends are tested.
    for (at, id) in (0..).zip(&members).take(64) {
        assert_eq!(members.get(at), Some(id), "member {at}");
        assert!(members.contains(id), "member {at}");
    }
    assert_eq!(members.get(members.len()), None);
    assert_eq!(members.get(u64::MAX), None);
    assert_eq!(members.is_empty(), members.iter().next().is_none());
    let again = members;
    assert_eq!(members, again);
    match (members.as_list(), members.as_range()) {
        (Some(list), None) => {
            let ids: Vec<_> = members.iter().collect();
            assert!(list.iter().eq(ids.iter().copied()));
            assert_eq!(u64::try_from(ids.len()), Ok(members.len()));
            assert_eq!(groups::encode_list(&ids), bytes[1..]);
        }
        (None, Some(mut range)) => {
            assert!(!members.contains(range.end));
            let last = members.len().checked_sub(1);
            let last = last.and_then(|last| members.get(last));
            assert_eq!(last, range.next_back());
        }
        both => panic!("{both:?}"),
    }
}

/// Checks that one value and all values agree; encoding gives the same bytes again.
///
/// # Panics
///
/// Panics if the law is violated.
pub fn numeric_rows(bytes: &[u8]) {
    let Some(rows) = walk::numeric_rows_of(bytes) else {
        return;
    };
    rows.dtype().kind().visit(CheckElements(rows));
    let (columns, count) = (rows.columns(), rows.rows());
    assert_eq!(rows.value(count, 0), None);
    assert_eq!(rows.value(0, columns.get()), None);
    assert_eq!(rows.slice(0..count), Some(rows));
    assert_eq!(rows.slice(0..count + 1), None);
    if count > 0 {
        let rows_u64 = u64::try_from(count).expect("fits");
        let width = columns_of(rows.as_bytes().len(), rows.dtype(), rows_u64);
        assert_eq!(width, Some(columns));
        let tail = rows.slice(1..count).expect("within");
        assert_eq!(tail.rows(), count - 1);
        assert!(same(tail.value(0, 0), rows.value(1, 0)));
    }
}

struct CheckElements<'a>(NumericRows<'a>);

impl KindVisitor for CheckElements<'_> {
    type Output = ();

    fn visit<T: Element>(self) {
        elements::<T>(&self.0);
    }
}

fn elements<T: Element>(rows: &NumericRows<'_>) {
    let elements = rows.elements::<T>().expect("of this kind");
    let listed: Vec<T> = elements.iter().collect();
    let columns = usize::try_from(rows.columns().get()).expect("fits");
    assert_eq!(listed.len(), rows.rows() * columns);
    for (at, element) in listed.iter().enumerate() {
        let column = u32::try_from(at % columns).expect("a column");
        let value = rows.value(at / columns, column);
        assert!(same(value, Some(element.value())), "value {at}");
    }
    let mut copies = listed.clone();
    elements.copy_to(&mut copies).expect("as long");
    let again = numeric::encode(&copies, rows.dtype().order());
    assert_eq!(again, numeric::encode(&listed, rows.dtype().order()));
    if T::KIND == Kind::Bool {
        let truths = rows.as_bytes().iter().map(|byte| u8::from(*byte != 0));
        assert!(truths.eq(again));
    } else {
        assert_eq!(again, rows.as_bytes(), "NaNs keep their bits");
    }
}

/// Returns whether two values are equal, treating NaN as equal.
fn same(one: Option<Value>, other: Option<Value>) -> bool {
    one == other || format!("{one:?}") == format!("{other:?}")
}

/// Checks that iteration and lookup agree, every category is in the table, and encoding in the
/// canonical dtype keeps the codes.
///
/// # Panics
///
/// Panics if the law is violated.
pub fn dictionary_codes(bytes: &[u8]) {
    let Some((codes, categories, missing)) = walk::dictionary_codes_of(bytes) else {
        return;
    };
    let listed: Vec<_> = codes.iter().collect();
    assert_eq!(
        (codes.len(), codes.is_empty()),
        (listed.len(), listed.is_empty())
    );
    for (row, code) in listed.iter().enumerate() {
        assert_eq!(codes.get(row), Some(*code), "row {row}");
        match *code {
            Code::Category(category) => assert!(category < categories, "row {row}"),
            Code::Missing => assert!(missing.is_some(), "row {row}"),
        }
    }
    assert_eq!(codes.get(codes.len()), None);
    let stored = match missing {
        None => CodeDtype::new(categories),
        Some(_) => CodeDtype::with_missing(categories).expect("few categories"),
    };
    let again = stored
        .encode(&listed)
        .expect("what was decoded can be encoded");
    let again = DictionaryCodes::parse(&again, stored.dtype(), categories, stored.missing());
    assert_eq!(again, Ok(codes));
}
