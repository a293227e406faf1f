//! The public header and the variable length records.

use serde_json::{Value, json};

use super::{
    dimension::SIZES,
    record::{HEADS, VariableRecord},
};
use crate::{
    FileError, FileFault, FileHeader, StoreDescription,
    input::{ByteReader, length_of},
};
use zvf_model::base64;

/// Upper bound on the size of all variable length records of a file.
const MAX_RECORD_BYTES: u64 = 4 << 20;

/// Bit of the global encoding: the waveforms of the points are in the file.
pub(super) const HAS_WAVEFORMS: u8 = 2;

/// Header and records of a file.
#[derive(Clone, Debug)]
pub(super) struct LasHeader {
    /// The public header.
    pub(super) bytes: Vec<u8>,
    pub(super) minor: u8,
    pub(super) format: u8,
    pub(super) is_compressed: bool,
    /// Size of a point record.
    pub(super) record: usize,
    pub(super) points: u64,
    /// Offset of the points.
    pub(super) start: u64,
    pub(super) scale: [f64; 3],
    pub(super) offset: [f64; 3],
    pub(super) vlrs: Vec<VariableRecord>,
    pub(super) evlrs: Vec<VariableRecord>,
    /// Number of EVLRs that are too large to be kept.
    pub(super) large: u32,
}

impl LasHeader {
    /// Reads the header and all records of a file.
    pub(super) fn read(file: &mut ByteReader) -> Result<Self, FileError> {
        let start: [u8; 100] = file.array("the header")?;
        if !start.starts_with(b"LASF") {
            let found = format!("{:02x?}", start.get(..4).unwrap_or_default());
            let fault = FileFault::field("the signature", found, "a LAS file starts with LASF");
            return Err(fault.of(file.path()));
        }
        let size = u64::from(u16_at(&start, 94));
        let mut bytes = Vec::new();
        file.seek(0)?;
        // The size is a u16.
        file.take(&mut bytes, size.max(100), "the header")?;
        let mut header = Self::parse(bytes).map_err(|fault| fault.of(file.path()))?;
        let count = u32_at(&header.bytes, 100);
        let mut total = 0_u64;
        for _ in 0..count {
            file.check(54, "a variable length record")?;
            let left = header.start.saturating_sub(file.at());
            let head: [u8; 54] = file.array("a variable length record")?;
            let length = u64::from(u16_at(&head, 20));
            total = total.saturating_add(length).saturating_add(54);
            if length.saturating_add(54) > left || total > MAX_RECORD_BYTES {
                let expected = "the records must end before the points and be smaller than 4 MiB; the file is damaged";
                let fault =
                    FileFault::field("the size of a variable length record", length, expected);
                return Err(file.error(fault));
            }
            let mut data = Vec::new();
            file.take(&mut data, length, "a variable length record")?;
            let record = VariableRecord::of_bytes([&head[..], &data].concat(), HEADS[0]);
            header.vlrs.extend(record);
        }
        header.check_points(file)?;
        header.read_extended(file)?;
        Ok(header)
    }

    /// Parses the public header.
    fn parse(bytes: Vec<u8>) -> Result<Self, FileFault> {
        let size = length_of(&bytes);
        let (major, minor) = (byte_at(&bytes, 24), byte_at(&bytes, 25));
        if major != 1 || minor > 4 {
            let found = format!("{major}.{minor}");
            return Err(FileFault::field(
                "the version",
                found,
                "1.0 to 1.4 are read",
            ));
        }
        let least = match minor {
            4 => 375,
            3 => 235,
            _ => 227,
        };
        if size < least {
            let expected = "227 bytes, 235 in version 1.3, 375 in version 1.4; the file is damaged";
            return Err(FileFault::field("the size of the header", size, expected));
        }
        let start = u64::from(u32_at(&bytes, 96));
        if start < size {
            let expected = "the points follow the header; the file is damaged";
            return Err(FileFault::field(
                "the offset of the points",
                start,
                expected,
            ));
        }
        let format = byte_at(&bytes, 104);
        let is_compressed = format & 0x80 != 0;
        let format = format & 0x3f;
        let record = usize::from(u16_at(&bytes, 105));
        let Some(least) = SIZES.get(usize::from(format)) else {
            return Err(FileFault::field(
                "the point format",
                format,
                "0 to 10 are read",
            ));
        };
        if record < *least {
            let expected = "the size of the point format, or more; the file is damaged";
            return Err(FileFault::field(
                "the size of a point record",
                record,
                expected,
            ));
        }
        let old = u64::from(u32_at(&bytes, 107));
        let new = if minor == 4 { u64_at(&bytes, 247) } else { old };
        if old != 0 && new != old {
            return Err(FileFault::Count {
                what: "points of the 64-bit count",
                found: new,
                expected: old,
            });
        }
        let floats = |at: usize| {
            let at = |axis: usize| {
                f64::from_bits(u64_at(&bytes, axis.saturating_mul(8).saturating_add(at)))
            };
            [0, 1, 2].map(at)
        };
        let (scale, offset) = (floats(131), floats(155));
        if let Some(wrong) = scale
            .iter()
            .find(|scale| !scale.is_finite() || **scale == 0.0)
        {
            let expected = "a scale is a finite number other than 0; the file is damaged";
            return Err(FileFault::field("a scale", wrong, expected));
        }
        if let Some(wrong) = offset.iter().find(|offset| !offset.is_finite()) {
            return Err(FileFault::field(
                "an offset",
                wrong,
                "an offset is finite; the file is damaged",
            ));
        }
        Ok(Self {
            bytes,
            minor,
            format,
            is_compressed,
            record,
            points: new,
            start,
            scale,
            offset,
            vlrs: Vec::new(),
            evlrs: Vec::new(),
            large: 0,
        })
    }

    /// Checks that the file has the points, as far as their count says it.
    fn check_points(&self, file: &mut ByteReader) -> Result<(), FileError> {
        file.seek(self.start.min(file.length()))?;
        let needed = match (self.is_compressed, self.points) {
            (_, 0) => 0,
            (true, _) => 8,
            (false, points) => points.saturating_mul(length_of_record(self.record)),
        };
        let start = self.start.saturating_sub(file.at());
        file.check(needed.saturating_add(start), "the points")
    }

    fn read_extended(&mut self, file: &mut ByteReader) -> Result<(), FileError> {
        if self.minor < 4 {
            return Ok(());
        }
        let (start, count) = (u64_at(&self.bytes, 235), u32_at(&self.bytes, 243));
        if count > 0 {
            if start < self.start || start > file.length() {
                let expected = "the records follow the points; the file is cut off or damaged";
                let fault = FileFault::field("the offset of extended records", start, expected);
                return Err(fault.of(file.path()));
            }
            file.seek(start)?;
        }
        let mut total = 0_u64;
        for _ in 0..count {
            let head: [u8; 60] = file.array("an extended variable length record")?;
            let length = u64_at(&head, 20);
            file.check(length, "an extended variable length record")?;
            let record = VariableRecord::of_bytes(head.to_vec(), HEADS[1]);
            let is_packing = record.as_ref().is_some_and(VariableRecord::is_packing);
            if is_packing || total.saturating_add(length) > MAX_RECORD_BYTES {
                self.large = self.large.saturating_add(u32::from(!is_packing));
                file.seek(file.at().saturating_add(length))?;
                continue;
            }
            total = total.saturating_add(length).saturating_add(60);
            let mut data = Vec::new();
            file.take(&mut data, length, "an extended variable length record")?;
            let record = VariableRecord::of_bytes([&head[..], &data].concat(), HEADS[1]);
            self.evlrs.extend(record);
        }
        Ok(())
    }

    /// Returns whether the waveforms of the points are in the file.
    pub(super) fn has_waveforms(&self) -> bool {
        byte_at(&self.bytes, 6) & HAS_WAVEFORMS != 0
    }

    /// Returns whether the record of waveforms is kept.
    pub(super) fn keeps_waveforms(&self) -> bool {
        self.evlrs.iter().any(VariableRecord::is_waveforms)
    }

    /// Returns the header as attributes of a store.
    pub(super) fn kept(&self) -> FileHeader {
        let records = |records: &[VariableRecord]| -> Vec<String> {
            let records = records.iter().filter(|record| !record.is_packing());
            records
                .map(|record| base64::encode(&record.bytes))
                .collect()
        };
        let mut kept = FileHeader::new();
        kept.insert("header".to_owned(), base64::encode(&self.bytes).into());
        kept.insert("vlrs".to_owned(), json!(records(&self.vlrs)));
        kept.insert("evlrs".to_owned(), json!(records(&self.evlrs)));
        kept
    }

    /// Returns the header that a store has kept.
    pub(super) fn of_result(description: &StoreDescription) -> Result<Option<Self>, FileFault> {
        let kept = description.headers.get("las");
        let bytes = |value: &Value| {
            let text = value.as_str().unwrap_or_default();
            base64::decode(text.as_bytes()).map_err(FileFault::base64)
        };
        let Some((kept, header)) = kept.and_then(|kept| Some((kept, kept.get("header")?))) else {
            return Ok(None);
        };
        let mut header = Self::parse(bytes(header)?)?;
        let records = |key: &str, head: usize| {
            let records = kept
                .get(key)
                .and_then(Value::as_array)
                .map(Vec::as_slice)
                .unwrap_or_default()
                .iter()
                .map(|record| Ok(VariableRecord::of_bytes(bytes(record)?, head)));
            records
                .filter_map(Result::transpose)
                .collect::<Result<Vec<_>, FileFault>>()
        };
        header.vlrs = records("vlrs", HEADS[0])?;
        header.evlrs = records("evlrs", HEADS[1])?;
        Ok(Some(header))
    }
}

fn length_of_record(record: usize) -> u64 {
    u64::try_from(record).unwrap_or(u64::MAX)
}

fn byte_at(bytes: &[u8], at: usize) -> u8 {
    bytes.get(at).copied().unwrap_or(0)
}

fn array_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let found = bytes.get(at..).and_then(|bytes| bytes.first_chunk());
    found.copied().unwrap_or([0; N])
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(array_at(bytes, at))
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array_at(bytes, at))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array_at(bytes, at))
}
