//! The filters between items and streams.

use super::{
    ChunkError, ChunkHeader,
    filter_id::{BITSHUFFLE, BYTEDELTA, DELTA, INT_TRUNC, SHUFFLE, TRUNC_PREC},
    memory_len,
};

mod bitshuffle;
mod delta;
mod interleave;
pub(super) mod shuffle;
mod truncate;

/// Slots there are for filters.
pub(super) const SLOTS: usize = 6;

/// A filter to encode with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BloscFilter {
    /// The first bytes of all items, then the second ones, and so on.
    Shuffle,
    /// The lowest bits of all items, then the next ones, and so on.
    BitShuffle,
    /// Each block less (XOR) the first one, and that one less itself an item
    /// before. Only as the first filter.
    Delta,
    /// Each byte less the one before, after [`Shuffle`](Self::Shuffle).
    ByteDelta,
    /// Sets the low bits of float32 or float64 mantissas to zero: keeps as many
    /// as the number says or, of a negative one, drops as many. Loses data.
    TruncPrec(i8),
}

impl BloscFilter {
    /// The number and the parameter in the header of a chunk.
    pub fn numbers(self) -> (u8, u8) {
        match self {
            Self::Shuffle => (SHUFFLE, 0),
            Self::BitShuffle => (BITSHUFFLE, 0),
            Self::Delta => (DELTA, 0),
            Self::ByteDelta => (BYTEDELTA, 0),
            Self::TruncPrec(bits) => (TRUNC_PREC, bits.cast_unsigned()),
        }
    }
}

/// A filter as a chunk has it, with what it needs to be undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Shuffle { width: usize },
    BitShuffle { width: usize, whole: bool },
    Delta { width: usize },
    ByteDelta { width: usize },
    TruncPrec { width: usize, bits: i8 },
}

impl Step {
    /// Whether it needs another buffer than the one its input is in.
    fn moves(self) -> bool {
        matches!(self, Self::Shuffle { .. } | Self::BitShuffle { .. })
    }
}

/// The filters of a chunk.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pipeline {
    steps: [Option<Step>; SLOTS],
}

impl Pipeline {
    /// The filters to decode a chunk with. `typesize` is the frame's.
    pub(super) fn decoding(header: &ChunkHeader, typesize: u32) -> Result<Self, ChunkError> {
        let item = usize::from(header.typesize());
        let mut steps = header.filters().map(|(filter, meta)| {
            let width = if meta == 0 { item } else { usize::from(meta) };
            Ok(match filter {
                SHUFFLE => Some(Step::Shuffle { width }),
                BITSHUFFLE => Some(Step::BitShuffle {
                    width: item,
                    whole: !header.is_blosc2(),
                }),
                DELTA => Some(Step::Delta {
                    width: delta::width(item),
                }),
                BYTEDELTA => Some(Step::ByteDelta {
                    width: if meta == 0 {
                        memory_len(typesize)
                    } else {
                        width
                    },
                }),
                // What they dropped does not come back.
                TRUNC_PREC | INT_TRUNC => None,
                other => return Err(ChunkError::Filter(other)),
            })
        });
        let mut pipeline = Self::default();
        for slot in &mut pipeline.steps {
            *slot = steps.next().transpose()?.flatten();
        }
        Ok(pipeline)
    }

    /// The filters to encode with.
    pub(super) fn encoding(filters: &[BloscFilter], typesize: u32) -> Self {
        let item = u8::try_from(typesize).map_or(1, usize::from);
        let mut pipeline = Self::default();
        for (slot, filter) in pipeline.steps.iter_mut().zip(filters) {
            *slot = Some(match *filter {
                BloscFilter::Shuffle => Step::Shuffle { width: item },
                BloscFilter::BitShuffle => Step::BitShuffle {
                    width: item,
                    whole: false,
                },
                BloscFilter::Delta => Step::Delta {
                    width: delta::width(item),
                },
                BloscFilter::ByteDelta => Step::ByteDelta {
                    width: memory_len(typesize),
                },
                BloscFilter::TruncPrec(bits) => Step::TruncPrec { width: item, bits },
            });
        }
        pipeline
    }

    /// The width of the shuffle, where that is all there is to undo and it can be
    /// undone in part.
    pub(super) fn only_shuffle(&self) -> Option<usize> {
        let mut steps = self.steps.iter().flatten();
        match (steps.next(), steps.next()) {
            (
                Some(Step::Shuffle {
                    width: width @ (2 | 4 | 8),
                }),
                None,
            ) => Some(*width),
            _ => None,
        }
    }

    /// Whether nothing is filtered.
    pub(super) fn is_empty(&self) -> bool {
        self.steps.iter().all(Option::is_none)
    }

    /// Whether the decoded streams belong into the buffer that the block is
    /// wanted in, given that each filter that moves swaps the two.
    pub(super) fn starts_in_place(&self) -> bool {
        let moves = self.steps.iter().flatten().filter(|step| step.moves());
        moves.count().is_multiple_of(2)
    }

    /// Undoes the filters. The streams are in `out` if
    /// [`starts_in_place`](Self::starts_in_place), else in `other`, which is as
    /// long; the block ends in `out`. `first` is the decoded first block, for
    /// all blocks but itself.
    pub(super) fn undo(&self, out: &mut [u8], other: &mut [u8], first: Option<&[u8]>) {
        let mut here = self.starts_in_place();
        for step in self.steps.iter().rev().flatten() {
            let (from, to) = if here {
                (&mut *out, &mut *other)
            } else {
                (&mut *other, &mut *out)
            };
            match *step {
                Step::Shuffle { width } => shuffle::undo(width, from, to),
                Step::BitShuffle { width, whole } => bitshuffle::undo(width, whole, from, to),
                Step::Delta { width } => delta::undo(width, from, first),
                Step::ByteDelta { width } => delta::undo_bytes(width, from),
                Step::TruncPrec { .. } => {}
            }
            here ^= step.moves();
        }
    }

    /// Applies the filters to `block`, which is in `here` and ends in there.
    /// `first` is the first block before any filter, for all blocks but itself.
    pub(super) fn apply(&self, here: &mut Vec<u8>, other: &mut Vec<u8>, first: Option<&[u8]>) {
        other.resize(here.len(), 0);
        for step in self.steps.iter().flatten() {
            match *step {
                Step::Shuffle { width } => shuffle::apply(width, here, other),
                Step::BitShuffle { width, .. } => bitshuffle::apply(width, here, other),
                Step::Delta { width } => delta::apply(width, here, first),
                Step::ByteDelta { width } => delta::apply_bytes(width, here),
                Step::TruncPrec { width, bits } => truncate::apply(width, bits, here),
            }
            if step.moves() {
                core::mem::swap(here, other);
            }
        }
    }
}

/// Whether floats of `width` bytes have a mantissa that `bits` leaves something
/// of.
pub(super) fn can_truncate(width: u32, bits: i8) -> bool {
    usize::try_from(width).is_ok_and(|width| truncate::dropped(width, bits).is_some())
}
