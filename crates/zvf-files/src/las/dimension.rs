//! Parts of a point record.

use std::borrow::Cow;

use zvf::{NumericColumn, numeric::Kind};

use super::{
    record::VariableRecord,
    scaling::{Scaling, is_scaled},
};
use crate::fields::{gather, scatter};

/// Sizes of the records of point formats 0 to 10, without extra bytes.
pub(super) const SIZES: [usize; 11] = [20, 28, 26, 34, 57, 63, 30, 36, 38, 59, 67];
/// User of the record that describes extra bytes.
pub(super) const SPECIFICATION: &str = "LASF_Spec";
/// Record that describes extra bytes.
pub(super) const EXTRA_BYTES: u16 = 4;
/// Size of the description of one extra dimension.
pub(super) const DESCRIPTOR: usize = 192;

/// Types of extra bytes by code, from 1 on. Codes from 11 on are pairs, from 21 on triples.
const EXTRA_KINDS: [Kind; 10] = [
    Kind::UInt8,
    Kind::Int8,
    Kind::UInt16,
    Kind::Int16,
    Kind::UInt32,
    Kind::Int32,
    Kind::UInt64,
    Kind::Int64,
    Kind::Float32,
    Kind::Float64,
];

/// Place of a value in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldLocation {
    /// Whole bytes from an offset on.
    Bytes(usize),
    /// Bits of a byte: the offset, the lowest bit and the mask.
    Bits(usize, u8, u8),
    /// Flags of formats 0 to 5, which share bytes 14 and 15 with other values.
    OldFlags,
}

/// Values of a record under one name.
#[derive(Clone, Debug)]
pub(super) struct Dimension {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) width: u32,
    pub(super) place: FieldLocation,
    /// The values of the attribute, if the numbers of the record are scaled.
    pub(super) scaling: Option<Scaling>,
}

impl Dimension {
    fn new(name: &str, kind: Kind, place: FieldLocation) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            width: 1,
            place,
            scaling: None,
        }
    }

    /// Returns the type of the attribute.
    pub(super) fn attribute_kind(&self) -> Kind {
        match self.scaling {
            Some(_) => Kind::Float64,
            None => self.kind,
        }
    }

    /// Returns the size of the values in an attribute.
    pub(super) fn attribute_size(&self) -> usize {
        let width = usize::try_from(self.width).unwrap_or(1);
        self.attribute_kind().size().saturating_mul(width)
    }

    /// Returns the size of the values in a record.
    pub(super) fn size(&self) -> usize {
        let width = usize::try_from(self.width).unwrap_or(1);
        self.kind.size().saturating_mul(width)
    }

    /// Appends the value of each record.
    pub(super) fn read(&self, records: &[u8], record: usize, values: &mut Vec<u8>) {
        let byte = |record: &[u8], at: usize| record.get(at).copied().unwrap_or(0);
        if let FieldLocation::Bytes(at) = self.place {
            match &self.scaling {
                None => gather(records, record, at, self.size(), values),
                Some(scaling) => {
                    let mut stored = NumericColumn::new(self.kind, self.width);
                    gather(records, record, at, self.size(), &mut stored.bytes);
                    scaling.apply(&stored, values);
                }
            }
            return;
        }
        let records = records.chunks_exact(record.max(1));
        match self.place {
            FieldLocation::Bytes(_) => {}
            FieldLocation::Bits(at, shift, mask) => {
                values.extend(records.map(|record| byte(record, at) >> shift & mask));
            }
            FieldLocation::OldFlags => values.extend(
                records.map(|record| byte(record, 15) >> 5 | byte(record, 14) & SCAN_FLAGS),
            ),
        }
    }

    /// Puts a value into each record. Returns the first value that its bits do not hold.
    pub(super) fn write(&self, values: &[u8], records: &mut [u8], record: usize) -> Option<u8> {
        if let FieldLocation::Bytes(at) = self.place {
            scatter(values, self.size(), records, record, at);
            return None;
        }
        let records = records.chunks_exact_mut(record.max(1));
        let mut too_large = None;
        // Bits belong to values of one byte.
        for (record, first) in records.zip(values) {
            let first = *first;
            let mut or = |at: usize, bits: u8| {
                if let Some(byte) = record.get_mut(at) {
                    *byte |= bits;
                }
            };
            match self.place {
                FieldLocation::Bytes(_) => {}
                FieldLocation::Bits(at, shift, mask) => {
                    or(at, (first & mask) << shift);
                    too_large = too_large.or((first > mask).then_some(first));
                }
                FieldLocation::OldFlags => {
                    or(15, (first & 7) << 5);
                    or(14, first & SCAN_FLAGS);
                    too_large = too_large.or((first & !(SCAN_FLAGS | 7) != 0).then_some(first));
                }
            }
        }
        too_large
    }
}

/// Flags of the scan direction and of the edge of a flight line.
const SCAN_FLAGS: u8 = 0xc0;

/// Returns whether points of a format have a time, a colour, and a near infrared value.
pub(super) fn contents(format: u8) -> [bool; 3] {
    [
        !matches!(format, 0 | 2),
        matches!(format, 2 | 3 | 5 | 7 | 8 | 10),
        matches!(format, 8 | 10),
    ]
}

/// Returns the values of a point format, except coordinates.
pub(super) fn of_format(format: u8) -> Vec<Dimension> {
    use FieldLocation::{Bits, Bytes, OldFlags};

    let [has_time, has_colour, has_infrared] = contents(format);
    let byte = |name: &str, place: FieldLocation| Dimension::new(name, Kind::UInt8, place);
    let word = |name: &str, at: usize| Dimension::new(name, Kind::UInt16, Bytes(at));
    let mut all = vec![word("intensity", 12)];
    let mut end = if format < 6 {
        all.extend([
            byte("return_number", Bits(14, 0, 7)),
            byte("number_of_returns", Bits(14, 3, 7)),
            byte("flags", OldFlags),
            byte("classification", Bits(15, 0, 31)),
            Dimension::new("scan_angle_rank", Kind::Int8, Bytes(16)),
            byte("user_data", Bytes(17)),
            word("point_source_id", 18),
        ]);
        20_usize
    } else {
        all.extend([
            byte("return_number", Bits(14, 0, 15)),
            byte("number_of_returns", Bits(14, 4, 15)),
            byte("flags", Bytes(15)),
            byte("classification", Bytes(16)),
            byte("user_data", Bytes(17)),
            Dimension::new("scan_angle", Kind::Int16, Bytes(18)),
            word("point_source_id", 20),
        ]);
        22
    };
    if has_time {
        all.push(Dimension::new("gps_time", Kind::Float64, Bytes(end)));
        end = end.saturating_add(8);
    }
    if has_colour {
        let mut colour = word("rgb", end);
        colour.width = 3;
        all.push(colour);
        end = end.saturating_add(6);
    }
    if has_infrared {
        all.push(word("nir", end));
    }
    if has_waves(format) {
        let size = SIZES.get(usize::from(format)).copied().unwrap_or(0);
        let start = size.saturating_sub(WAVE_PACKET);
        let value = |name: &str, kind: Kind, at: usize| {
            Dimension::new(name, kind, Bytes(start.saturating_add(at)))
        };
        let mut direction = value("wave_direction", Kind::Float32, 17);
        direction.width = 3;
        all.extend([
            value("wave_descriptor", Kind::UInt8, 0),
            value("wave_offset", Kind::UInt64, 1),
            value("wave_size", Kind::UInt32, 9),
            value("wave_return", Kind::Float32, 13),
            direction,
        ]);
    }
    all
}

/// Size of a wave packet of a point, which is the last part of its record before extra bytes.
const WAVE_PACKET: usize = 29;

/// Returns whether points of a format have wave packets.
pub(super) fn has_waves(format: u8) -> bool {
    matches!(format, 4 | 5 | 9 | 10)
}

/// Name of extra bytes that no record describes.
pub(super) const UNDESCRIBED: &str = "extra_bytes";

/// Returns whether a record describes extra bytes.
pub(super) fn is_extra(vlr: &VariableRecord) -> bool {
    vlr.user == SPECIFICATION && vlr.id == EXTRA_BYTES
}

/// Returns the descriptions of extra values.
fn descriptors(vlrs: &[VariableRecord]) -> impl Iterator<Item = &[u8]> {
    let records = vlrs.iter().filter(|vlr| is_extra(vlr)).take(1);
    records.flat_map(|vlr| vlr.data().chunks_exact(DESCRIPTOR))
}

/// Returns whether a record describes a value with the name of undescribed bytes.
pub(super) fn names_undescribed(vlrs: &[VariableRecord]) -> bool {
    descriptors(vlrs).any(|descriptor| name_of(descriptor) == UNDESCRIBED)
}

/// Returns the names of values that have a scale which is not applied.
pub(super) fn unscaled(vlrs: &[VariableRecord]) -> impl Iterator<Item = Cow<'_, str>> {
    let unscaled = descriptors(vlrs).filter(|descriptor| {
        let described = described_at(descriptor, 0);
        is_scaled(descriptor) && described.is_some_and(|it| it.scaling.is_none())
    });
    unscaled.map(name_of)
}

/// Returns the extra values of records of `record` bytes. Bytes that no record describes are one
/// value, `extra_bytes`.
pub(super) fn extra(vlrs: &[VariableRecord], format: u8, record: usize) -> Vec<Dimension> {
    let mut at = SIZES.get(usize::from(format)).copied().unwrap_or(record);
    let mut all = Vec::new();
    for descriptor in descriptors(vlrs) {
        let Some(dimension) = described_at(descriptor, at) else {
            break;
        };
        let end = at.saturating_add(dimension.size());
        if end > record {
            break;
        }
        at = end;
        all.push(dimension);
    }
    if at < record {
        let mut rest = Dimension::new(UNDESCRIBED, Kind::UInt8, FieldLocation::Bytes(at));
        rest.width = u32::try_from(record.saturating_sub(at)).unwrap_or(1);
        all.push(rest);
    }
    all
}

/// Returns a described value at an offset of the record; `None` if the description is not valid.
pub(super) fn described_at(descriptor: &[u8], at: usize) -> Option<Dimension> {
    let code = descriptor.get(2).copied().unwrap_or(0);
    let (kind, width) = if code == 0 {
        let options = descriptor.get(3).copied().unwrap_or(0);
        (Kind::UInt8, u32::from(options))
    } else {
        let place = usize::from(code.wrapping_sub(1)) % EXTRA_KINDS.len();
        let kind = EXTRA_KINDS.get(place).copied().unwrap_or(Kind::UInt8);
        (kind, u32::from(code.wrapping_sub(1)) / 10 + 1)
    };
    let mut dimension = Dimension::new(&name_of(descriptor), kind, FieldLocation::Bytes(at));
    dimension.width = width;
    if code > 0 {
        dimension.scaling = Scaling::of_descriptor(descriptor, kind);
    }
    (code <= 30 && width > 0).then_some(dimension)
}

/// Returns the name of a described extra value.
pub(super) fn name_of(descriptor: &[u8]) -> Cow<'_, str> {
    let name = descriptor
        .get(4..36)
        .unwrap_or_default()
        .split(|byte| *byte == 0)
        .next()
        .unwrap_or_default();
    String::from_utf8_lossy(name)
}

/// Returns the description of an extra value; `None` if extra bytes have no such type.
pub(super) fn descriptor(name: &str, kind: Kind, width: u32) -> Option<[u8; DESCRIPTOR]> {
    let mut bytes = [0; DESCRIPTOR];
    let (code, options) = match (kind, width) {
        (Kind::UInt8, 4..=255) => (0, u8::try_from(width).ok()?),
        (_, 1..=3) => {
            let place = EXTRA_KINDS.iter().position(|other| *other == kind)?;
            let tens = u8::try_from(width)
                .ok()?
                .saturating_sub(1)
                .saturating_mul(10);
            (
                u8::try_from(place)
                    .ok()?
                    .saturating_add(1)
                    .saturating_add(tens),
                0,
            )
        }
        _ => return None,
    };
    *bytes.get_mut(2)? = code;
    *bytes.get_mut(3)? = options;
    let target = bytes.get_mut(4..36)?;
    if name.len() > target.len() {
        return None;
    }
    for (target, byte) in target.iter_mut().zip(name.bytes()) {
        *target = byte;
    }
    Some(bytes)
}

/// Returns a value in a field of a record; `descriptor` has its type.
pub(super) fn of_descriptor(name: &str, kind: Kind, width: u32, at: usize) -> Dimension {
    let mut dimension = Dimension::new(name, kind, FieldLocation::Bytes(at));
    dimension.width = width;
    dimension
}
