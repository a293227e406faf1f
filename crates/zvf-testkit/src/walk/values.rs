//! Walks of the value codecs.
//!
//! The parameters of such a codec, a dtype or a second file, are taken from the front of its bytes:
//! arbitrary bytes then cover all cases, and a law tests the same case as the walk.

use zvf_format::{
    dictionary::{Code, DictionaryCodes},
    groups::GroupMembers,
    numeric::{
        ByteOrder, Dtype, Element, Elements, Kind, KindVisitor, NumericRows, Value, columns_of,
    },
    open_rows::OpenRows,
    vlen::VlenFrame,
};

use super::mix;

fn mix_len(digest: u64, len: usize) -> u64 {
    mix(digest, u64::try_from(len).unwrap_or(u64::MAX))
}

fn mix_bytes(digest: u64, bytes: &[u8]) -> u64 {
    let digest = mix_len(digest, bytes.len());
    bytes.iter().fold(digest, |d, byte| mix(d, (*byte).into()))
}

/// Walks a vlen-bytes frame: all items, some by number.
pub fn vlen_frame(bytes: &[u8]) -> Option<u64> {
    let frame = VlenFrame::parse(bytes).ok()?;
    let mut digest = mix(u64::from(frame.len()), u64::from(frame.is_empty()));
    digest = mix_len(digest, frame.iter().len());
    digest = frame.iter().fold(digest, mix_bytes);
    digest = mix_bytes(digest, frame.only().unwrap_or_default());
    for at in [0, 1, frame.len().wrapping_sub(1), frame.len()] {
        digest = mix_bytes(digest, frame.get(at).unwrap_or_default());
    }
    Some(digest)
}

/// Splits bytes: one byte with the length of `offsets`, then `offsets`, then `data`.
pub(crate) fn open_rows_of(bytes: &[u8]) -> Option<OpenRows<'_>> {
    let (&len, rest) = bytes.split_first()?;
    let (offsets, data) = rest.split_at_checked(len.into())?;
    OpenRows::parse(data, offsets).ok()
}

/// Walks open rows: all of them, in order and by number.
pub fn open_rows(bytes: &[u8]) -> Option<u64> {
    let rows = open_rows_of(bytes)?;
    let mut digest = mix_len(u64::from(rows.is_empty()), rows.len());
    digest = rows.iter().fold(digest, mix_bytes);
    for row in [0, 1, rows.len().wrapping_sub(1), rows.len()] {
        digest = mix_bytes(digest, rows.get(row).unwrap_or_default());
    }
    Some(digest)
}

/// Splits bytes: one byte with the form, then the list or the two ends of the range.
pub(crate) fn group_members_of(bytes: &[u8]) -> Option<GroupMembers<'_>> {
    let (&form, rest) = bytes.split_first()?;
    if form % 2 == 0 {
        return GroupMembers::parse_list(rest).ok();
    }
    let (start, rest) = rest.split_first_chunk()?;
    let stop = rest.first_chunk()?;
    let (start, stop) = (i64::from_le_bytes(*start), i64::from_le_bytes(*stop));
    GroupMembers::from_range(start, stop).ok()
}

/// Walks group members: the first of them, in order, by number and by membership.
pub fn group_members(bytes: &[u8]) -> Option<u64> {
    let members = group_members_of(bytes)?;
    let mut digest = mix(members.len(), u64::from(members.is_empty()));
    digest = mix_len(digest, members.iter().size_hint().0);
    for id in members.iter().take(64) {
        digest = mix(digest, id.cast_unsigned());
    }
    for at in [0, 1, members.len().wrapping_sub(1), members.len()] {
        let id = members.get(at).unwrap_or_default();
        digest = mix(digest, id.cast_unsigned());
        digest = mix(digest, u64::from(members.contains(id)));
    }
    digest = mix_bytes(digest, members.as_list().unwrap_or_default().as_bytes());
    let start = members.as_range().map_or(0, |range| range.start);
    digest = mix(digest, start.cast_unsigned());
    let again = members;
    Some(mix(digest, u64::from(members == again)))
}

/// Splits off one byte with kind and byte order.
fn dtype_of(bytes: &[u8]) -> Option<(Dtype, &[u8])> {
    let (&code, rest) = bytes.split_first()?;
    let order = match code {
        0..0x80 => ByteOrder::Little,
        0x80.. => ByteOrder::Big,
    };
    let kind = Kind::ALL.get(usize::from(code % 0x80))?;
    Some((Dtype::new(*kind, order), rest))
}

/// Splits bytes: one byte of dtype, one byte with the number of columns, then the rows.
pub(crate) fn numeric_rows_of(bytes: &[u8]) -> Option<NumericRows<'_>> {
    let (dtype, rest) = dtype_of(bytes)?;
    let (&columns, rest) = rest.split_first()?;
    NumericRows::parse(rest, dtype, u32::from(columns).try_into().ok()?).ok()
}

/// Walks rows of numbers: widened, in bulk and in part.
pub fn numeric_rows(bytes: &[u8]) -> Option<u64> {
    let rows = numeric_rows_of(bytes)?;
    let columns = rows.columns().get();
    let mut digest = mix_len(u64::from(columns), rows.rows());
    digest = mix_bytes(digest, rows.as_bytes());
    for row in [0, 1, rows.rows().wrapping_sub(1), rows.rows(), usize::MAX] {
        for column in [0, columns.wrapping_sub(1), columns] {
            digest = mix_value(digest, rows.value(row, column));
        }
        let part = rows.slice(1..row).or_else(|| rows.slice(row..row));
        digest = mix_len(digest, part.map_or(0, |part| part.rows()));
    }
    let elements = rows.dtype().kind().visit(WalkElements(rows));
    digest = mix(digest, elements.unwrap_or_default());
    let count = u64::try_from(rows.rows()).unwrap_or(u64::MAX);
    let width = columns_of(rows.as_bytes().len(), rows.dtype(), count);
    Some(mix(digest, width.map_or(0, |width| width.get().into())))
}

struct WalkElements<'a>(NumericRows<'a>);

impl KindVisitor for WalkElements<'_> {
    type Output = Option<u64>;

    fn visit<T: Element>(self) -> Option<u64> {
        elements(self.0.elements::<T>()?)
    }
}

fn elements<T: Element>(elements: Elements<'_, T>) -> Option<u64> {
    let mut digest = mix_len(u64::from(elements.is_empty()), elements.len());
    for element in elements.iter() {
        digest = mix_value(digest, Some(element.value()));
    }
    let mut copies = [elements.get(0)?; 16];
    let copies = copies.get_mut(..elements.len())?;
    elements.copy_to(copies).ok()?;
    for element in &*copies {
        digest = mix_value(digest, Some(element.value()));
    }
    Some(digest)
}

fn mix_value(digest: u64, value: Option<Value>) -> u64 {
    match value {
        None => mix(digest, 1),
        Some(Value::Bool(value)) => mix(digest, value.into()),
        Some(Value::Int(value)) => mix(digest, value.cast_unsigned()),
        Some(Value::UInt(value)) => mix(digest, value),
        Some(Value::Float(value)) => mix(digest, value.to_bits()),
        Some(Value::Complex { re, im }) => mix(mix(digest, re.to_bits()), im.to_bits()),
    }
}

/// Splits bytes: one byte of dtype, one byte with the number of categories, one byte with the
/// missing value (none if 128), then the codes.
pub(crate) fn dictionary_codes_of(bytes: &[u8]) -> Option<(DictionaryCodes<'_>, u32, Option<i64>)> {
    let (dtype, rest) = dtype_of(bytes)?;
    let (&[categories, missing], rest) = rest.split_first_chunk()?;
    let missing = (missing != 0x80).then(|| missing.cast_signed().into());
    let categories = categories.into();
    let codes = DictionaryCodes::parse(rest, dtype, categories, missing).ok()?;
    Some((codes, categories, missing))
}

/// Walks dictionary codes: all of them, in order and by row.
pub fn dictionary_codes(bytes: &[u8]) -> Option<u64> {
    let (codes, ..) = dictionary_codes_of(bytes)?;
    let mut digest = mix_len(u64::from(codes.is_empty()), codes.len());
    digest = mix_bytes(digest, codes.as_rows().as_bytes());
    for code in codes.iter() {
        digest = mix_code(digest, Some(code));
    }
    for row in [0, 1, codes.len().wrapping_sub(1), codes.len()] {
        digest = mix_code(digest, codes.get(row));
    }
    let again = codes;
    Some(mix(digest, u64::from(codes == again)))
}

fn mix_code(digest: u64, code: Option<Code>) -> u64 {
    match code {
        None => mix(digest, 1),
        Some(Code::Missing) => mix(digest, 2),
        Some(Code::Category(category)) => mix(digest, category.into()),
    }
}
