//! The footer: history, metadata, and references to spills.

use core::ops::Range;

use serde_json::{Map, Value};
use zvf_format::tetration::{Footer, FooterTail, FooterVersion};

use super::TetError;
use crate::{ByteSource, DenseError};

/// Maximum length of the JSON in a footer: sixteen times the limit for writers. Parsed JSON takes
/// about 70 times its length in memory.
const MAX_JSON: u64 = 1 << 20;
/// Maximum length of spilled metadata, set by the format.
const MAX_SPILL: u64 = 16 << 20;

/// A part of the file that the footer refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpillRef {
    /// Offset in the file.
    pub offset: u64,
    /// Length in bytes.
    pub len: u64,
}

impl SpillRef {
    pub(super) fn span(self) -> Range<u64> {
        self.offset..self.offset.saturating_add(self.len)
    }
}

/// The content of a footer.
#[derive(Clone, Debug, Default)]
pub struct FooterInfo {
    /// Version of the footer, 1 or 2.
    pub version: u32,
    /// Length of the JSON in bytes.
    pub json_len: u64,
    /// History records as stored: objects, or lists of three strings in old files.
    pub history: Vec<Value>,
    /// Metadata of the file and its datasets, under the keys `file` and `datasets`.
    pub metadata: Option<Map<String, Value>>,
    /// Location of metadata outside the footer.
    pub metadata_ref: Option<SpillRef>,
    /// Location of zone maps, which are not read.
    pub zone_maps_ref: Option<SpillRef>,
    /// Location of secondary indexes, which are not read.
    pub secondary_index_ref: Option<SpillRef>,
    /// Location of the CRC-32 checksums of all payloads, in row order.
    pub checksums: Option<SpillRef>,
}

/// The key of the checksums, an extension that other readers ignore.
pub(super) const CHECKSUMS: &str = "x_chunk_crc32";

fn fault(key: &str, fault: &'static str) -> TetError {
    TetError::FooterValue {
        key: key.to_owned(),
        fault,
    }
}

impl FooterInfo {
    /// Reads the footer at the end of a file. Returns it with the end of the payload area.
    pub(super) fn read(
        source: &dyn ByteSource,
        index_end: u64,
        rows: u64,
        budget: u64,
    ) -> Result<(Self, u64), DenseError> {
        let in_file = |error| DenseError::tet(source.name(), error);
        let len = source.len();
        let tail_start = len.saturating_sub(16).max(index_end);
        let tail = source.read(tail_start..len)?;
        let tail = FooterTail::parse(&tail).map_err(|error| in_file(error.into()))?;
        let start = len.checked_sub(tail.footer_len());
        let start = start.filter(|start| *start >= index_end).ok_or_else(|| {
            let error = zvf_format::tetration::FooterError::JsonLen(tail.json_len());
            in_file(error.into())
        })?;
        if tail.json_len() > MAX_JSON {
            return Err(in_file(fault("history_json_len", "more than 1 MiB")));
        }
        let bytes = source.read(start..len)?;
        let footer = Footer::parse(&bytes).map_err(|error| in_file(error.into()))?;
        let json = serde_json::from_slice(footer.json())
            .map_err(|error| in_file(TetError::FooterJson(error)))?;
        let info = Self::parse(json, tail, index_end, start, rows);
        let (mut info, payload_end) = info.map_err(in_file)?;
        if let Some(spill) = info.metadata_ref {
            // Parsed JSON takes about 70 times its length in memory.
            let needed = spill.len.saturating_mul(70);
            let budget = budget.max(MAX_JSON.saturating_mul(70));
            if needed > budget {
                return Err(DenseError::Budget { needed, budget });
            }
            let bytes = source.read(spill.span())?;
            let metadata = serde_json::from_slice(&bytes);
            info.metadata = metadata.map_err(|error| in_file(TetError::FooterJson(error)))?;
        }
        Ok((info, payload_end))
    }

    fn parse(
        json: Map<String, Value>,
        tail: FooterTail,
        index_end: u64,
        json_start: u64,
        rows: u64,
    ) -> Result<(Self, u64), TetError> {
        let mut info = Self {
            version: tail.version().number(),
            json_len: tail.json_len(),
            zone_maps_ref: spill(&json, "zone_maps_ref")?,
            secondary_index_ref: spill(&json, "secondary_index_ref")?,
            metadata_ref: spill(&json, "metadata_ref")?,
            checksums: spill(&json, CHECKSUMS)?,
            ..Self::default()
        };
        let spilled = [info.zone_maps_ref, info.secondary_index_ref];
        if tail.version() == FooterVersion::V1 && spilled.iter().any(Option::is_some) {
            return Err(fault(
                "zone_maps_ref",
                "belongs to version 2, and this is 1",
            ));
        }
        let long = info.metadata_ref.filter(|spill| spill.len > MAX_SPILL);
        if long.is_some() {
            return Err(fault("metadata_ref", "more than 16 MiB"));
        }
        for (key, value) in json {
            match (key.as_str(), value) {
                ("history", Value::Array(history)) => info.history = history,
                ("history", _) => return Err(fault("history", "no list")),
                ("metadata", Value::Object(metadata)) => info.metadata = Some(metadata),
                ("metadata", _) => return Err(fault("metadata", "no object")),
                _ => {}
            }
        }
        if info.metadata.is_some() && info.metadata_ref.is_some() {
            return Err(fault("metadata_ref", "beside metadata"));
        }
        // Spills are contiguous in this order and end at the JSON.
        let mut payload_end = json_start;
        for spill in spilled
            .into_iter()
            .chain([info.metadata_ref])
            .rev()
            .flatten()
        {
            if spill.span().end != payload_end || spill.offset < index_end {
                let place = "a spill that does not end where the next part starts";
                return Err(fault("offset", place));
            }
            payload_end = spill.offset;
        }
        if let Some(spill) = info.checksums {
            let is_placed = spill.offset >= index_end && spill.span().end <= payload_end;
            if !is_placed || spill.len != rows.saturating_mul(4) {
                return Err(fault(CHECKSUMS, "not four bytes a row before the footer"));
            }
        }
        Ok((info, payload_end))
    }

    /// Returns the metadata of a dataset under `key`.
    pub(super) fn of_dataset(&self, name: &str, key: &str) -> Option<&Value> {
        let datasets = self.metadata.as_ref()?.get("datasets")?;
        datasets.get(name)?.get(key)
    }
}

/// Parses a reference: an object with exactly `offset` and `len`.
fn spill(json: &Map<String, Value>, key: &str) -> Result<Option<SpillRef>, TetError> {
    let Some(value) = json.get(key).filter(|value| !value.is_null()) else {
        return Ok(None);
    };
    let number = |part: &str| value.get(part).and_then(Value::as_u64);
    let parts = value.as_object().map(Map::len);
    match (number("offset"), number("len"), parts) {
        (Some(offset), Some(len), Some(2)) if offset.checked_add(len).is_some() => {
            Ok(Some(SpillRef { offset, len }))
        }
        _ => Err(fault(key, "not an object with offset and len")),
    }
}
