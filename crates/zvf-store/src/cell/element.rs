//! One cell of an array, and all that is wanted of it in one call.

use core::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use zvf_format::vlen::{VlenFrame, VlenFrameError};
use zvf_model::{fetch::Fetched, key::Key};

use super::{Answer, CellError, indexes::Known, kept::Place};
use crate::{
    array::{Description, Items},
    codec::{DecodeError, DecodedSize},
    range::{ByteRange, Read},
    read::{Budget, ReadError},
    shard::Sharding,
};

/// A part of a payload; all of it when `None`.
pub(super) type Part = Option<Range<u64>>;
/// What the store answered to one read.
pub(super) type Delivered = Result<Option<Bytes>, ReadError>;

/// Count and length, before the payload of a frame of one item.
const FRAME_HEADER: u64 = 8;

/// A cell.
#[derive(Clone, Debug)]
pub(super) struct Element {
    array: Arc<Description>,
    /// Its object, and by which number it is kept.
    place: Place,
    at: At,
}

/// Where a cell is in its object.
#[derive(Clone, Copy, Debug)]
enum At {
    /// The array has no element.
    Nowhere,
    Object,
    /// This number in a shard.
    InShard(u64),
}

/// Which bytes of its object a cell is.
enum Extent {
    Object,
    Within(Range<u64>),
}

/// How a cell is read.
pub(super) enum Plan {
    /// Not at all: it is absent, or failed already.
    Known(Result<(), CellError>),
    /// All of it, by one read.
    Whole,
    /// The wanted parts alone, a read each, after one that tells what they
    /// cannot: the header of a frame, or whether there is a cell at all.
    Parts {
        head: bool,
        /// The size of the payload, where the cell's extent tells it.
        room: Option<u64>,
    },
}

impl Element {
    pub(super) fn new(array: &Arc<Description>, index: &[u64]) -> Result<Self, CellError> {
        let (key, at) = if array.is_empty() && index.len() == array.rank() {
            (array.node.clone(), At::Nowhere)
        } else {
            let place = array.place(index);
            let (key, in_shard) = place.map_err(|source| CellError::Index {
                node: array.node.clone(),
                source,
            })?;
            (key, in_shard.map_or(At::Object, At::InShard))
        };
        let number = match at {
            At::InShard(number) => number,
            At::Nowhere | At::Object => u64::MAX,
        };
        Ok(Self {
            array: Arc::clone(array),
            place: (key, number),
            at,
        })
    }

    /// The shard the cell is in.
    pub(super) fn shard(&self) -> Option<(&Key, &Sharding)> {
        let sharding = self.array.sharding.as_ref()?;
        matches!(self.at, At::InShard(_)).then_some((self.key(), sharding))
    }

    /// What it is kept by; `None` where there is none.
    pub(super) fn place(&self) -> Option<&Place> {
        (!matches!(self.at, At::Nowhere)).then_some(&self.place)
    }

    /// What of its payload can be kept without keeping more of an object than that.
    pub(super) fn alone(&self, payload: Bytes) -> Bytes {
        match self.at {
            At::InShard(_) if self.array.codecs.is_plain() => Bytes::copy_from_slice(&payload),
            _ => payload,
        }
    }

    /// The key of its object.
    pub(super) fn key(&self) -> &Key {
        &self.place.0
    }

    /// The answers to parts of its payload.
    pub(super) fn cut(
        &self,
        payload: &Result<Option<Bytes>, CellError>,
        parts: &[Part],
    ) -> Vec<Answer> {
        cut_each(self.key(), payload, parts)
    }

    /// Puts down the reads that `parts` take.
    pub(super) fn plan(&self, parts: &[Part], known: &Known, reads: &mut Vec<Read>) -> Plan {
        let extent = match self.extent(known) {
            Ok(Some(extent)) => extent,
            Ok(None) => return Plan::Known(Ok(())),
            Err(error) => return Plan::Known(Err(error)),
        };
        let mut push = |range| reads.push(Read::new(self.key().clone(), range));
        let apart = self.array.codecs.is_plain() && self.array.items != Items::Frames;
        let parts: Option<Vec<&Range<u64>>> = parts.iter().map(Option::as_ref).collect();
        let Some(parts) = parts.filter(|_| apart) else {
            push(match extent {
                Extent::Object => ByteRange::Full,
                Extent::Within(range) => ByteRange::Bounded(range),
            });
            return Plan::Whole;
        };
        let (start, stored) = match extent {
            Extent::Object => (0, None),
            Extent::Within(range) => (range.start, Some(range.end.saturating_sub(range.start))),
        };
        let (header, room) = match self.array.items {
            Items::Fixed(size) => (0, Some(size)),
            Items::Framed | Items::Frames => {
                let room = stored.map(|stored| stored.saturating_sub(FRAME_HEADER));
                (FRAME_HEADER, room)
            }
        };
        let payload = start.saturating_add(header);
        // An empty part is answered without asking, and would not tell absence.
        let head = header > 0 || parts.iter().any(|part| part.is_empty());
        if head {
            push(ByteRange::Bounded(
                start..payload.max(start.saturating_add(1)),
            ));
        }
        for part in parts {
            // What does not fit is refused when the size is known, and not read.
            let fits = room.is_none_or(|room| part.end <= room);
            let part = if fits { part.clone() } else { 0..0 };
            push(ByteRange::Bounded(
                payload.saturating_add(part.start)..payload.saturating_add(part.end),
            ));
        }
        Plan::Parts { head, room }
    }

    /// Which bytes of its object the cell is; `None` when it is absent.
    fn extent(&self, known: &Known) -> Result<Option<Extent>, CellError> {
        let number = match self.at {
            At::Nowhere => return Ok(None),
            At::Object => return Ok(Some(Extent::Object)),
            At::InShard(number) => number,
        };
        let index = known.get(self.key()).cloned().transpose()?.flatten();
        let range = index.map_or(Ok(None), |index| index.chunk(number));
        let range = range.map_err(|source| CellError::ShardEntry {
            key: self.key().clone(),
            source,
        })?;
        let Some(range) = range else {
            return Ok(None);
        };
        let found = range.end.saturating_sub(range.start);
        match self.array.items {
            Items::Fixed(expected) if self.array.codecs.is_plain() && found != expected => {
                Err(self.undecodable(DecodeError::Size { expected, found }))
            }
            _ => Ok(Some(Extent::Within(range))),
        }
    }

    /// How much work it is to decode so many bytes, in bytes of a compression.
    pub(super) fn work(&self, bytes: usize) -> usize {
        self.array.codecs.work(bytes)
    }

    /// Parts that were read alone.
    pub(super) fn take_parts(
        &self,
        parts: &[Part],
        mut delivered: impl Iterator<Item = Delivered>,
        head: bool,
        room: Option<u64>,
    ) -> Vec<Answer> {
        let head = head.then(|| delivered.next().unwrap_or(Ok(None)));
        let size = self.size(head, room);
        let answer = |(part, delivered): (&Part, Delivered)| {
            let part = part.clone().unwrap_or_default();
            if let Some(room) = room {
                check_part(self.key(), &part, room)?;
            }
            let Some(size) = size.clone()? else {
                return Ok(None);
            };
            check_part(self.key(), &part, size)?;
            Ok(delivered?.map(|bytes| Fetched { bytes, size }))
        };
        parts.iter().zip(delivered).map(answer).collect()
    }

    /// The size of a payload of which parts are read; `None` when it is absent.
    fn size(&self, head: Option<Delivered>, room: Option<u64>) -> Result<Option<u64>, CellError> {
        let Some(head) = head else {
            return Ok(room);
        };
        let Some(head) = head? else {
            return Ok(None);
        };
        match self.array.items {
            Items::Fixed(size) => Ok(Some(size)),
            Items::Framed | Items::Frames => self.framed_size(&head, room).map(Some),
        }
    }

    /// The payload of a cell that was read whole.
    pub(super) fn payload(
        &self,
        stored: Delivered,
        budget: &Budget,
    ) -> Result<Option<Bytes>, CellError> {
        stored?
            .map(|stored| self.decode(stored, budget))
            .transpose()
    }

    fn decode(&self, stored: Bytes, budget: &Budget) -> Result<Bytes, CellError> {
        let size = match self.array.items {
            // What is declared is reserved.
            Items::Fixed(bytes) => {
                budget.reserve(self.key(), bytes)?;
                DecodedSize::Exactly(bytes)
            }
            Items::Framed | Items::Frames => DecodedSize::AtMost(budget.left()),
        };
        let decoded = self.array.codecs.decode(stored, size);
        let decoded = decoded.map_err(|source| match (size, source) {
            (DecodedSize::AtMost(left), DecodeError::OverLimit { .. }) => CellError::OverBudget {
                key: self.key().clone(),
                left,
            },
            (_, source) => self.undecodable(source),
        })?;
        if let DecodedSize::AtMost(_) = size {
            budget.reserve(self.key(), length(&decoded))?;
        }
        self.unframe(decoded)
    }

    /// The payload of a decoded cell, its frame checked.
    fn unframe(&self, decoded: Bytes) -> Result<Bytes, CellError> {
        if let Items::Fixed(_) = self.array.items {
            return Ok(decoded);
        }
        let frame = VlenFrame::parse(&decoded).map_err(|source| self.no_frame(source))?;
        if self.array.items == Items::Frames {
            return Ok(decoded);
        }
        let payload = frame.only().ok_or_else(|| CellError::ItemCount {
            key: self.key().clone(),
            found: frame.len(),
        })?;
        Ok(decoded.slice_ref(payload))
    }

    /// The size of a payload, from the header of its frame, which fills its
    /// room where that is known.
    fn framed_size(&self, header: &[u8], room: Option<u64>) -> Result<u64, CellError> {
        let numbers = header.split_first_chunk::<4>().and_then(|(items, rest)| {
            let (length, _) = rest.split_first_chunk::<4>()?;
            Some((u32::from_le_bytes(*items), u32::from_le_bytes(*length)))
        });
        let size = match numbers {
            Some((1, length)) => u64::from(length),
            Some((found, _)) => {
                let key = self.key().clone();
                return Err(CellError::ItemCount { key, found });
            }
            None => return Err(self.no_frame(VlenFrameError::Header)),
        };
        match room.map_or(Some(0), |room| room.checked_sub(size)) {
            Some(0) => Ok(size),
            Some(left) => {
                let left = usize::try_from(left).unwrap_or(usize::MAX);
                Err(self.no_frame(VlenFrameError::TrailingBytes(left)))
            }
            None => Err(self.no_frame(VlenFrameError::Item(0))),
        }
    }

    fn undecodable(&self, source: DecodeError) -> CellError {
        CellError::Decode {
            key: self.key().clone(),
            source,
        }
    }

    fn no_frame(&self, source: VlenFrameError) -> CellError {
        CellError::Frame {
            key: self.key().clone(),
            source,
        }
    }
}

/// The answers to `parts` of a payload at hand. No copy.
pub(super) fn cut_each(
    key: &Key,
    payload: &Result<Option<Bytes>, CellError>,
    parts: &[Part],
) -> Vec<Answer> {
    let answer = |part: &Part| match payload {
        Ok(None) => Ok(None),
        Ok(Some(payload)) => cut(key, payload, part.as_ref()).map(Some),
        Err(error) => Err(error.clone()),
    };
    parts.iter().map(answer).collect()
}

fn cut(key: &Key, payload: &Bytes, part: Option<&Range<u64>>) -> Result<Fetched, CellError> {
    let size = length(payload);
    let Some(part) = part else {
        let bytes = payload.clone();
        return Ok(Fetched { bytes, size });
    };
    check_part(key, part, size)?;
    let at = |n: u64| usize::try_from(n).unwrap_or(usize::MAX).min(payload.len());
    let bytes = payload.slice(at(part.start)..at(part.end));
    Ok(Fetched { bytes, size })
}

fn check_part(key: &Key, part: &Range<u64>, size: u64) -> Result<(), CellError> {
    if part.start <= part.end && part.end <= size {
        return Ok(());
    }
    Err(CellError::PartOutOfBounds {
        key: key.clone(),
        part: part.clone(),
        size,
    })
}

pub(super) fn length(bytes: &Bytes) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}
