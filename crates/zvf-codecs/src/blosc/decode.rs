//! Decoding of single blocks.

use core::fmt;

use zerocopy::{FromBytes, little_endian::I32};

use super::{
    BloscCodec, ChunkError, ChunkHeader, StreamError, Stripes,
    codec::StreamDecoder,
    filter::{Pipeline, shuffle::join_planes},
};

/// The inputs of block decoding besides the bytes of the block.
#[derive(Clone, Copy, Debug, Default)]
pub struct BlockContext<'a> {
    /// Bytes of an item. The header of a chunk cannot express more than 255.
    pub typesize: u32,
    /// The dictionary of the chunk; empty if it has none.
    pub dictionary: &'a [u8],
    /// The decoded first block, if [it is needed](ChunkHeader::needs_first_block).
    pub first: Option<&'a [u8]>,
}

/// A decoder for blocks of any chunk. It reuses its buffers between blocks; use one per thread.
#[derive(Default)]
pub struct Decoder {
    streams: StreamDecoder,
    scratch: Vec<u8>,
}

impl Decoder {
    /// Decodes a block of a chunk that is not special from its `stored` bytes into `out`, which
    /// must have the length of the block.
    ///
    /// If the chunk is shuffled, allocates a buffer of the length of the block, unless an earlier call
    /// already did.
    ///
    /// # Errors
    ///
    /// [`ChunkError`] if the block is damaged or its context is incomplete. The content of `out` is
    /// unspecified afterwards.
    pub fn block(
        &mut self,
        header: &ChunkHeader,
        block: u32,
        stored: &[u8],
        context: &BlockContext<'_>,
        out: &mut [u8],
    ) -> Result<(), ChunkError> {
        let part = Stripes::first(out.len());
        self.part(header, block, stored, context, &part, out)
    }

    /// Releases the memory of the buffer above `bytes`.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        self.scratch.truncate(bytes);
        self.scratch.shrink_to(bytes);
    }

    /// Returns the size of the buffer.
    #[cfg(test)]
    pub(crate) fn capacity(&self) -> usize {
        self.scratch.capacity()
    }

    /// Decodes at least the bytes `part` of a [`block`](Self::block). Other bytes of `out` are
    /// unspecified, and damage in them may go undetected.
    ///
    /// # Errors
    ///
    /// See [`block`](Self::block).
    pub fn part(
        &mut self,
        header: &ChunkHeader,
        block: u32,
        stored: &[u8],
        context: &BlockContext<'_>,
        part: &Stripes,
        out: &mut [u8],
    ) -> Result<(), ChunkError> {
        use ChunkError as E;
        if out.is_empty() || out.len() != header.block_len(block) || header.special().is_some() {
            return Err(E::Block(block));
        }
        if header.is_raw() {
            let stored = stored.get(..out.len()).ok_or(E::Truncated)?;
            out.copy_from_slice(stored);
            return Ok(());
        }
        let codec = header.codec()?;
        let form = StreamForm {
            has_runs: header.is_blosc2(),
            // The C library gives Snappy as much room as it may take in the worst case.
            may_be_longer: !header.is_blosc2() && codec == BloscCodec::Snappy,
        };
        let pipeline = Pipeline::decoding(header, context.typesize)?;
        let first = if block > 0 && header.needs_first_block() {
            Some(context.first.ok_or(E::Context)?)
        } else {
            None
        };
        if header.has_dictionary() && context.dictionary.is_empty() {
            return Err(E::Context);
        }
        let scratch_len = if pipeline.moves() { out.len() } else { 0 };
        if self.scratch.len() < scratch_len {
            self.scratch.resize(scratch_len, 0);
        }
        let (scratch, _) = self.scratch.split_at_mut(scratch_len);
        if let Some(width) = pipeline.only_shuffle()
            && out.len().is_multiple_of(width)
            && width.is_multiple_of(header.streams(out.len()))
        {
            let shuffled = ShuffleDecoder {
                streams: &mut self.streams,
                scratch,
                codec,
                form,
                dictionary: context.dictionary,
            };
            let count = header.streams(out.len());
            let undone = shuffled.undo(stored, count, width, part, out);
            return undone.map_err(|(stream, fault)| E::Stream {
                block,
                stream,
                fault,
            });
        }
        let target = if pipeline.starts_in_place() {
            &mut *out
        } else {
            &mut *scratch
        };
        let count = header.streams(target.len());
        if !target.len().is_multiple_of(count) {
            return Err(E::Blocksize);
        }
        let len = target.len() / count;
        let mut rest = stored;
        for (stream, part) in target.chunks_exact_mut(len.max(1)).enumerate() {
            let coded = Stream::take(&mut rest, part.len(), form);
            let streams = &mut self.streams;
            let whole = part.len();
            let done =
                coded.and_then(|s| s.decode(streams, codec, context.dictionary, whole, part));
            done.map_err(|fault| E::Stream {
                block,
                stream,
                fault,
            })?;
        }
        pipeline.undo(out, scratch, first);
        Ok(())
    }
}

/// The decoder of a block whose only filter is shuffle. It joins items directly from the decoded or
/// stored planes, and only the requested items.
struct ShuffleDecoder<'a> {
    streams: &'a mut StreamDecoder,
    /// A buffer of the length of the block.
    scratch: &'a mut [u8],
    codec: BloscCodec,
    form: StreamForm,
    dictionary: &'a [u8],
}

impl ShuffleDecoder<'_> {
    fn undo(
        self,
        stored: &[u8],
        count: usize,
        width: usize,
        part: &Stripes,
        out: &mut [u8],
    ) -> Result<(), (usize, StreamError)> {
        let len = self.scratch.len() / count;
        let plane = out.len() / width;
        let end = part.end().div_ceil(width).min(plane);
        // The last plane of each stream is decoded only up to the last requested item.
        let wanted = (len + end).saturating_sub(plane);
        let mut rest = stored;
        let mut decoded: [&[u8]; 8] = [&[]; 8];
        let targets = self.scratch.chunks_exact_mut(len.max(1));
        for ((stream, target), decoded) in targets.enumerate().zip(&mut decoded) {
            let coded = Stream::take(&mut rest, target.len(), self.form)
                .map_err(|fault| (stream, fault))?;
            *decoded = if let Stream::Raw(bytes) = coded {
                bytes
            } else {
                let done = coded.decode(self.streams, self.codec, self.dictionary, wanted, target);
                done.map_err(|fault| (stream, fault))?;
                target
            };
        }
        let mut planes: [&[u8]; 8] = [&[]; 8];
        let streams = decoded.iter().take(count);
        // A stream holds all planes, one plane, or a few.
        let each = streams.flat_map(|stream| stream.chunks_exact(plane.max(1)));
        for (slot, plane) in planes.iter_mut().zip(each).take(width) {
            *slot = plane;
        }
        for bytes in part.each() {
            let items = bytes.start / width..bytes.end.div_ceil(width).min(plane);
            let own = planes.map(|plane| plane.get(items.clone()).unwrap_or_default());
            let into = out.get_mut(items.start * width..items.end * width);
            join_planes(
                own.get(..width).unwrap_or_default(),
                into.unwrap_or_default(),
            );
        }
        Ok(())
    }
}

/// The forms that streams of a chunk may have.
#[derive(Clone, Copy, Debug)]
struct StreamForm {
    /// Zero and negative lengths stand for streams of one repeated byte.
    has_runs: bool,
    /// A compressed stream may be longer than its content.
    may_be_longer: bool,
}

/// A stream before decoding.
enum Stream<'a> {
    Run(u8),
    Raw(&'a [u8]),
    Coded(&'a [u8]),
}

impl<'a> Stream<'a> {
    /// Takes the stream of `len` decoded bytes from the start of `rest`.
    fn take(rest: &mut &'a [u8], len: usize, form: StreamForm) -> Result<Self, StreamError> {
        use StreamError as E;
        let (size, after) = I32::ref_from_prefix(rest).map_err(|_| E::Truncated)?;
        *rest = after;
        let size = size.get();
        if size <= 0 && !form.has_runs {
            return Err(E::Length(size));
        }
        let Ok(stored) = usize::try_from(size) else {
            let value = size
                .checked_neg()
                .and_then(|size| u8::try_from(size).ok())
                .ok_or(E::Length(size))?;
            let token = rest.split_off_first().ok_or(E::Truncated)?;
            if token & 1 == 0 {
                return Err(E::Token(*token));
            }
            return Ok(Self::Run(value));
        };
        if stored > len && !form.may_be_longer {
            return Err(E::Length(size));
        }
        let bytes = rest.split_off(..stored).ok_or(E::Truncated)?;
        Ok(match stored {
            0 => Self::Run(0),
            _ if stored == len => Self::Raw(bytes),
            _ => Self::Coded(bytes),
        })
    }

    /// Decodes at least the first `wanted` bytes.
    fn decode(
        self,
        streams: &mut StreamDecoder,
        codec: BloscCodec,
        dictionary: &[u8],
        wanted: usize,
        out: &mut [u8],
    ) -> Result<(), StreamError> {
        match self {
            Self::Run(value) => out.fill(value),
            Self::Raw(bytes) => out.copy_from_slice(bytes),
            Self::Coded(bytes) => streams.decode(codec, bytes, dictionary, wanted, out)?,
        }
        Ok(())
    }
}

impl fmt::Debug for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoder").finish_non_exhaustive()
    }
}
