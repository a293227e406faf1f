//! Reading cells: whole or in part, plain, compressed or in shards.

use core::ops::Range;
use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use futures_util::future::try_join_all;
use zvf_format::vlen::{VlenFrame, VlenFrameError};
use zvf_model::{key::Key, zarr::IndexError};

use crate::{
    array::{CellArray, Description, Items},
    codec::{DecodeError, DecodedSize},
    off_thread::off_thread,
    range::{ByteRange, Read},
    read::{Budget, ReadError},
    shard::{ShardEntryError, ShardIndex},
    store::Store,
};

/// A cell to read.
#[derive(Clone, Debug)]
pub struct Cell<'a> {
    /// Its array.
    pub array: &'a CellArray,
    /// Which cell: from 0, one number an axis. In a sharded array this counts
    /// inner chunks.
    pub index: &'a [u64],
    /// The bytes of its payload that are wanted; all when `None`.
    pub part: Option<Range<u64>>,
}

/// Why a cell cannot be read. That it is absent is not among the reasons.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CellError {
    /// The array has no such cell.
    #[error("{node}: no such cell")]
    Index {
        /// The array.
        node: Key,
        /// What is wrong with the index.
        source: IndexError,
    },
    /// The store did not give the bytes.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The bytes cannot be decoded.
    #[error("{key}: cannot be decoded")]
    Decode {
        /// The object.
        key: Key,
        /// What is wrong with its bytes.
        source: DecodeError,
    },
    /// The decoded bytes are no frame.
    #[error("{key}: is no frame of items")]
    Frame {
        /// The object.
        key: Key,
        /// What is wrong with them.
        source: VlenFrameError,
    },
    /// A frame holds another number of items than the chunk has elements.
    #[error("{key}: a frame of {found} items where the chunk has one element")]
    Items {
        /// The object.
        key: Key,
        /// Items the frame announces.
        found: u32,
    },
    /// The wanted part does not lie in the payload.
    #[error("{key}: bytes {}..{} of a payload of {size}", part.start, part.end)]
    Part {
        /// The object.
        key: Key,
        /// What was asked for.
        part: Range<u64>,
        /// The payload's size.
        size: u64,
    },
    /// The index of a shard is damaged.
    #[error("{key}: the index of the shard is damaged")]
    ShardIndex {
        /// The shard.
        key: Key,
        /// What is wrong with its bytes.
        source: DecodeError,
    },
    /// The index of a shard has an entry that is no range.
    #[error("{key}: the index of the shard is damaged")]
    ShardEntry {
        /// The shard.
        key: Key,
        /// Which.
        source: ShardEntryError,
    },
    /// The runtime stopped before the cell was decoded.
    #[error("{key}: decoding was cut off")]
    Interrupted {
        /// The object.
        key: Key,
        /// How.
        source: Box<dyn core::error::Error + Send + Sync>,
    },
}

/// Reads cells of any arrays of one store, and keeps the indexes of shards.
///
/// What is written to a shard after its index was read is not seen: take a new
/// reader then.
#[derive(Clone, Debug)]
pub struct CellReader {
    store: Store,
    indexes: Arc<Mutex<Indexes>>,
}

/// Shard indexes by key; `None` is an absent shard.
#[derive(Debug, Default)]
struct Indexes {
    by_key: HashMap<Key, Option<ShardIndex>>,
    bytes: usize,
}

/// Indexes kept, in bytes; all are dropped at once when there are more.
const MOST_INDEXES: usize = 64 << 20;
/// Encoded bytes from which on a cell is decoded on another thread.
const HEAVY: usize = 64 << 10;
/// Count and length, before the payload of a frame of one item.
const FRAME_HEADER: u64 = 8;

impl CellReader {
    /// A reader of cells of `store`.
    pub fn new(store: Store) -> Self {
        Self {
            store,
            indexes: Arc::default(),
        }
    }

    /// The store.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The payloads of cells, in the order asked for; `None` for absent ones
    /// and in arrays without elements.
    ///
    /// The payload is the one byte string of a cell, without its frame, where a
    /// chunk is one element of variable length; the frame where it is several;
    /// and otherwise the numbers. One round trip; one more when there are shards
    /// whose index was not read yet. A part of a cell is read alone where
    /// nothing is compressed, together with the frame's header, which is checked
    /// against it.
    ///
    /// # Errors
    ///
    /// The first [`CellError`].
    pub async fn read(&self, cells: &[Cell<'_>]) -> Result<Vec<Option<Bytes>>, CellError> {
        let places = cells.iter().map(Place::of).collect::<Result<Vec<_>, _>>()?;
        let indexes = self.indexes(&places).await?;
        let mut reads = Vec::with_capacity(cells.len());
        let mut wanted = Vec::with_capacity(cells.len());
        for (cell, place) in cells.iter().zip(places) {
            let first = reads.len();
            let extent = match place.at {
                At::Nowhere => Extent::Absent,
                At::Object => Extent::Object,
                At::InShard(number) => {
                    let index = indexes.get(&place.key).and_then(Option::as_ref);
                    let range = index.map_or(Ok(None), |index| index.chunk(number));
                    match range {
                        Ok(range) => range.map_or(Extent::Absent, Extent::Within),
                        Err(source) => {
                            let key = place.key;
                            return Err(CellError::ShardEntry { key, source });
                        }
                    }
                }
            };
            let wish = Wish {
                array: Arc::clone(cell.array.description()),
                key: place.key,
                part: cell.part.clone(),
            };
            wish.plan(&extent, &mut reads)?;
            wanted.push((wish, reads.len().saturating_sub(first)));
        }
        let mut answers = self.store.read(&reads).await?.into_iter();
        let budget = Arc::new(Budget::new(self.store.budget()));
        let decoded = wanted.into_iter().map(|(wish, count)| {
            let answers: Vec<Option<Bytes>> = answers.by_ref().take(count).collect();
            let budget = Arc::clone(&budget);
            async move {
                let size = answers.iter().flatten().map(Bytes::len);
                let heavy = !wish.array.codecs.is_plain() && size.sum::<usize>() >= HEAVY;
                let key = wish.key.clone();
                let decoded = off_thread(heavy, move || wish.finish(answers, &budget)).await;
                decoded.map_err(|source| CellError::Interrupted {
                    key,
                    source: Box::new(source),
                })?
            }
        });
        try_join_all(decoded).await
    }

    /// Reads one cell.
    ///
    /// # Errors
    ///
    /// As for [`read`](Self::read).
    pub async fn read_one(&self, cell: Cell<'_>) -> Result<Option<Bytes>, CellError> {
        let mut cells = self.read(&[cell]).await?;
        Ok(cells.pop().flatten())
    }

    /// The indexes of all shards that `places` are in.
    async fn indexes(
        &self,
        places: &[Place<'_>],
    ) -> Result<HashMap<Key, Option<ShardIndex>>, CellError> {
        let mut known = HashMap::new();
        let mut missing = BTreeMap::new();
        {
            let indexes = self.indexes.lock();
            let indexes = indexes.unwrap_or_else(PoisonError::into_inner);
            for place in places
                .iter()
                .filter(|place| matches!(place.at, At::InShard(_)))
            {
                let Some(sharding) = &place.array.sharding else {
                    continue;
                };
                match indexes.by_key.get(&place.key) {
                    Some(index) => {
                        known.insert(place.key.clone(), index.clone());
                    }
                    None => {
                        missing.insert(place.key.clone(), sharding);
                    }
                }
            }
        }
        let reads = missing
            .iter()
            .map(|(key, sharding)| Read::new(key.clone(), sharding.index_range()));
        let answers = self.store.read(&reads.collect::<Vec<_>>()).await?;
        let mut read = Vec::with_capacity(missing.len());
        for ((key, sharding), bytes) in missing.into_iter().zip(answers) {
            let index = bytes.map(|bytes| sharding.index(bytes)).transpose();
            let index = index.map_err(|source| CellError::ShardIndex {
                key: key.clone(),
                source,
            })?;
            read.push((key, index));
        }
        let indexes = self.indexes.lock();
        let mut indexes = indexes.unwrap_or_else(PoisonError::into_inner);
        for (key, index) in read {
            indexes.keep(&key, index.clone());
            known.insert(key, index);
        }
        Ok(known)
    }
}

impl Indexes {
    fn keep(&mut self, key: &Key, index: Option<ShardIndex>) {
        let size = index.as_ref().map_or(0, ShardIndex::size);
        let size = size.saturating_add(key.as_str().len());
        if self.bytes.saturating_add(size) > MOST_INDEXES {
            *self = Self::default();
        }
        if self.by_key.insert(key.clone(), index).is_none() {
            self.bytes = self.bytes.saturating_add(size);
        }
    }
}

/// Where a cell is in its object.
#[derive(Clone, Copy)]
enum At {
    /// The array has no element.
    Nowhere,
    Object,
    /// This number in a shard.
    InShard(u64),
}

/// The object of a cell.
struct Place<'a> {
    array: &'a Description,
    key: Key,
    at: At,
}

impl<'a> Place<'a> {
    fn of(cell: &Cell<'a>) -> Result<Self, CellError> {
        let array: &Description = cell.array.description();
        if array.is_empty() && cell.index.len() == array.rank() {
            return Ok(Self {
                array,
                key: array.node.clone(),
                at: At::Nowhere,
            });
        }
        let place = array.place(cell.index);
        let (key, in_shard) = place.map_err(|source| CellError::Index {
            node: array.node.clone(),
            source,
        })?;
        Ok(Self {
            array,
            key,
            at: in_shard.map_or(At::Object, At::InShard),
        })
    }
}

/// Which bytes of its object a cell is.
enum Extent {
    Absent,
    Object,
    Within(Range<u64>),
}

/// What is wanted of one cell.
struct Wish {
    array: Arc<Description>,
    key: Key,
    part: Option<Range<u64>>,
}

impl Wish {
    /// Puts down the reads that the wish takes.
    fn plan(&self, extent: &Extent, reads: &mut Vec<Read>) -> Result<(), CellError> {
        let (start, size) = match extent {
            Extent::Absent => return Ok(()),
            Extent::Object => (0, None),
            Extent::Within(range) => (range.start, range.end.checked_sub(range.start)),
        };
        let mut push = |range| reads.push(Read::new(self.key.clone(), range));
        let part = match &self.part {
            Some(part) if self.array.codecs.is_plain() && self.array.items != Items::Frames => part,
            _ => {
                push(match extent {
                    Extent::Within(range) => ByteRange::Bounded(range.clone()),
                    _ => ByteRange::Full,
                });
                return Ok(());
            }
        };
        let header = match self.array.items {
            Items::Framed => FRAME_HEADER,
            Items::Fixed(_) | Items::Frames => 0,
        };
        let payload = match self.array.items {
            Items::Fixed(bytes) => Some(bytes),
            _ => size.map(|size| size.saturating_sub(header)),
        };
        if let Some(size) = payload {
            self.check_part(part, size)?;
        }
        let before = start.saturating_add(header);
        if header > 0 {
            push(ByteRange::Bounded(start..before));
        }
        let first = before.saturating_add(part.start);
        push(ByteRange::Bounded(first..before.saturating_add(part.end)));
        Ok(())
    }

    /// Makes the payload out of the answers to the planned reads.
    fn finish(
        &self,
        answers: Vec<Option<Bytes>>,
        budget: &Budget,
    ) -> Result<Option<Bytes>, CellError> {
        // Absent in one answer, absent in all.
        let answers: Option<Vec<Bytes>> = answers.into_iter().collect();
        let Some(mut answers) = answers.filter(|answers| !answers.is_empty()) else {
            return Ok(None);
        };
        let Some(last) = answers.pop() else {
            return Ok(None);
        };
        if let Some(header) = answers.pop() {
            self.check_header(&header)?;
            return Ok(Some(last));
        }
        let in_part = matches!(self.array.items, Items::Fixed(_))
            && self.array.codecs.is_plain()
            && self.part.is_some();
        if in_part {
            return Ok(Some(last));
        }
        let size = self.decoded_size(budget)?;
        let decoded = self.array.codecs.undo(last, size);
        let decoded = decoded.map_err(|source| CellError::Decode {
            key: self.key.clone(),
            source,
        })?;
        if let DecodedSize::AtMost(_) = size {
            let size = u64::try_from(decoded.len()).unwrap_or(u64::MAX);
            budget.reserve(&self.key, size)?;
        }
        let payload = self.payload(&decoded)?;
        let Some(part) = &self.part else {
            return Ok(Some(payload));
        };
        let size = u64::try_from(payload.len()).unwrap_or(u64::MAX);
        self.check_part(part, size)?;
        let range = usize::try_from(part.start)
            .ok()
            .zip(usize::try_from(part.end).ok());
        Ok(range.map(|(start, end)| payload.slice(start..end)))
    }

    /// What the cell may decode to. What is declared is reserved.
    fn decoded_size(&self, budget: &Budget) -> Result<DecodedSize, ReadError> {
        let Items::Fixed(bytes) = self.array.items else {
            return Ok(DecodedSize::AtMost(budget.left()));
        };
        budget.reserve(&self.key, bytes)?;
        Ok(DecodedSize::Exactly(bytes))
    }

    /// The payload of a decoded cell, its frame checked.
    fn payload(&self, decoded: &Bytes) -> Result<Bytes, CellError> {
        if let Items::Fixed(_) = self.array.items {
            return Ok(decoded.clone());
        }
        let frame = VlenFrame::parse(decoded).map_err(|source| CellError::Frame {
            key: self.key.clone(),
            source,
        })?;
        if self.array.items == Items::Frames {
            return Ok(decoded.clone());
        }
        let payload = frame.only().ok_or_else(|| CellError::Items {
            key: self.key.clone(),
            found: frame.len(),
        })?;
        Ok(decoded.slice_ref(payload))
    }

    /// A frame's header read beside a part of the payload.
    fn check_header(&self, header: &[u8]) -> Result<(), CellError> {
        let numbers = header.split_first_chunk::<4>().and_then(|(items, rest)| {
            let (length, _) = rest.split_first_chunk::<4>()?;
            Some((u32::from_le_bytes(*items), u32::from_le_bytes(*length)))
        });
        match (numbers, &self.part) {
            (Some((1, length)), Some(part)) => self.check_part(part, length.into()),
            (Some((1, _)), None) => Ok(()),
            (Some((found, _)), _) => Err(CellError::Items {
                key: self.key.clone(),
                found,
            }),
            (None, _) => Err(CellError::Frame {
                key: self.key.clone(),
                source: VlenFrameError::Header,
            }),
        }
    }

    fn check_part(&self, part: &Range<u64>, size: u64) -> Result<(), CellError> {
        if part.start <= part.end && part.end <= size {
            return Ok(());
        }
        Err(CellError::Part {
            key: self.key.clone(),
            part: part.clone(),
            size,
        })
    }
}
