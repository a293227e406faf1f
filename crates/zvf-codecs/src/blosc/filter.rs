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

/// Number of filter slots in a header.
pub(super) const SLOTS: usize = 6;

/// A filter for encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BloscFilter {
    /// Groups bytes by their position in the item: all first bytes, then all second bytes, and so
    /// on.
    Shuffle,
    /// Groups bits by their position in the item: all lowest bits, then all second lowest bits, and
    /// so on.
    BitShuffle,
    /// XORs each block with the first block, and each item of the first block with the item before
    /// it. Must be the first filter.
    Delta,
    /// Subtracts from each byte the byte before it. Used after [`Shuffle`](Self::Shuffle).
    ByteDelta,
    /// Sets the low mantissa bits of float32 or float64 to zero. A positive number is the count of
    /// bits to keep, a negative number the count of bits to drop. Lossy.
    TruncPrec(i8),
}

impl BloscFilter {
    /// Returns the filter number and parameter in the header of a chunk.
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

/// A filter with the parameters needed to undo it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Shuffle { width: usize },
    BitShuffle { width: usize, whole: bool },
    Delta { width: usize },
    ByteDelta { width: usize },
    TruncPrec { width: usize, bits: i8 },
}

impl Step {
    /// Returns whether the step writes its output to another buffer.
    fn moves(self) -> bool {
        matches!(self, Self::Shuffle { .. } | Self::BitShuffle { .. })
    }
}

/// The filters of a chunk in the order of their application.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pipeline {
    steps: [Option<Step>; SLOTS],
}

impl Pipeline {
    /// Creates the pipeline that decodes a chunk. `typesize` is the item length of the frame.
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
                // Lossy filters have no inverse.
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

    /// Creates the pipeline that encodes items of `typesize` bytes. With `whole`, bitshuffle applies
    /// to whole blocks only, as in Blosc 1.
    pub(super) fn encoding(filters: &[BloscFilter], typesize: u32, whole: bool) -> Self {
        let item = u8::try_from(typesize).map_or(1, usize::from);
        let mut pipeline = Self::default();
        for (slot, filter) in pipeline.steps.iter_mut().zip(filters) {
            *slot = Some(match *filter {
                BloscFilter::Shuffle => Step::Shuffle { width: item },
                BloscFilter::BitShuffle => Step::BitShuffle { width: item, whole },
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

    /// Returns the item width if shuffle is the only filter and can be undone in part.
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

    /// Returns whether no filter applies.
    pub(super) fn is_empty(&self) -> bool {
        self.steps.iter().all(Option::is_none)
    }

    /// Returns whether a step writes its output to another buffer than its input.
    pub(super) fn moves(&self) -> bool {
        self.steps.iter().flatten().any(|step| step.moves())
    }

    /// Returns whether decoded streams go to the final buffer of the block. Each step that moves
    /// data swaps the two buffers.
    pub(super) fn starts_in_place(&self) -> bool {
        let moves = self.steps.iter().flatten().filter(|step| step.moves());
        moves.count().is_multiple_of(2)
    }

    /// Undoes the filters. The input is in `out` if [`starts_in_place`](Self::starts_in_place),
    /// else in `other`, which has the same length, or none if no step [moves](Self::moves) data. The
    /// result is in `out`. `first` is the decoded
    /// first block, `None` for the first block itself.
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

    /// Applies the filters to the block in `here`, and leaves the result there. `first` is the
    /// unfiltered first block, `None` for the first block itself.
    pub(super) fn apply(&self, here: &mut Vec<u8>, other: &mut Vec<u8>, first: Option<&[u8]>) {
        other.resize(here.len(), 0);
        for step in self.steps.iter().flatten() {
            match *step {
                Step::Shuffle { width } => shuffle::apply(width, here, other),
                Step::BitShuffle { width, whole } => bitshuffle::apply(width, whole, here, other),
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

/// Returns whether items of `width` bytes are floats, and `bits` leaves part of their mantissa.
pub(super) fn can_truncate(width: u32, bits: i8) -> bool {
    usize::try_from(width).is_ok_and(|width| truncate::dropped(width, bits).is_some())
}
