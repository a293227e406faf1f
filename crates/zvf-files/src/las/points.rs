//! Point records, plain or compressed.

use std::{
    fmt,
    fs::File,
    io::{self, BufReader, Read, Seek, SeekFrom},
    panic::{AssertUnwindSafe, catch_unwind},
};

use laz::{
    LasZipDecompressor, LazItemRecordBuilder, LazItemType, LazVlr,
    laszip::{ChunkTable, ChunkTableEntry},
    par_decompress,
};

use super::header::LasHeader;
use crate::{FileError, FileFault, input::ByteReader, library};

/// Compression of each point by itself, in one chunk.
const POINT_WISE: u16 = 1;
/// Compression of each field of a chunk by itself.
const LAYERED: u16 = 3;

/// Maximum size in bytes of the records of a chunk that is decompressed in parallel with others.
const LARGEST_CHUNK: u64 = 64 << 20;

/// Approximate size in bytes of the records that are decompressed at once. Most chunks have 50,000
/// records of 20 to 40 bytes.
const BATCH_BYTES: usize = 8 << 20;

/// Records that are read from start to end.
pub(super) enum PointRecords {
    Plain,
    /// Chunk by chunk.
    Compressed(Box<LasZipDecompressor<'static, BufReader<File>>>),
    /// Several chunks at once, on all cores.
    Chunked(Box<ChunkedPoints>),
}

impl fmt::Debug for PointRecords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plain => "Plain",
            Self::Compressed(_) => "Compressed",
            Self::Chunked(_) => "Chunked",
        })
    }
}

impl PointRecords {
    /// Returns the number of points of `record` bytes to read at a time.
    pub(super) fn step(&self, record: usize) -> usize {
        match self {
            // The records stay in the cache until their values are taken.
            Self::Plain | Self::Compressed(_) => 1 << 14,
            Self::Chunked(_) => (BATCH_BYTES / record.max(1)).max(1),
        }
    }

    /// Starts at the first point.
    pub(super) fn open(file: &mut ByteReader, header: &LasHeader) -> Result<Self, FileError> {
        file.seek(header.start.min(file.length()))?;
        if !header.is_compressed || header.points == 0 {
            return Ok(Self::Plain);
        }
        let vlr = compression(header).map_err(|fault| fault.of(file.path()))?;
        let opened = open_compressed(file.handle()?, file.length(), header, vlr);
        opened.map_err(|fault| fault.of(file.path()))
    }

    /// Replaces `bytes` by the next `count` records.
    pub(super) fn take(
        &mut self,
        file: &mut ByteReader,
        bytes: &mut Vec<u8>,
        count: usize,
        record: usize,
    ) -> Result<(), FileError> {
        let size = count.saturating_mul(record);
        match self {
            Self::Plain => file.take(bytes, u64::try_from(size).unwrap_or(u64::MAX), "the points"),
            Self::Compressed(points) => {
                bytes.clear();
                bytes.resize(size, 0);
                let done = catch_panic(|| points.decompress_many(bytes));
                done.map_err(|fault| fault.of(file.path()))
            }
            Self::Chunked(points) => {
                let done = points.take(bytes, size, record);
                done.map_err(|fault| fault.of(file.path()))
            }
        }
    }
}

/// Calls the decoder. The crate `laz` panics on some damaged data, where it subtracts and indexes
/// without checks.
fn catch_panic<T, E: Into<laz::LasZipError>>(
    decode: impl FnOnce() -> Result<T, E>,
) -> Result<T, FileFault> {
    let decoded =
        catch_unwind(AssertUnwindSafe(decode)).map_err(|_| FileFault::Unsupported(DAMAGED))?;
    decoded.map_err(|error| fault_of(error.into()))
}

const DAMAGED: &str = "the compressed points are damaged; copy the file again";

fn fault_of(error: laz::LasZipError) -> FileFault {
    match error {
        laz::LasZipError::IoError(error) if error.kind() != io::ErrorKind::UnexpectedEof => {
            error.into()
        }
        laz::LasZipError::IoError(_) => FileFault::Unsupported(DAMAGED),
        other => library::laz(other),
    }
}

/// Returns the description of the compression, which has to be the one of the point format.
fn compression(header: &LasHeader) -> Result<LazVlr, FileFault> {
    let mut vlrs = header.vlrs.iter();
    let vlr = vlrs.find(|vlr| vlr.user == "laszip encoded");
    let missing = "the record `laszip encoded` is missing; the file is damaged";
    let vlr = vlr.ok_or(FileFault::Unsupported(missing))?;
    let parsed = catch_panic(|| LazVlr::from_buffer(vlr.data()))?;
    let base = super::dimension::SIZES.get(usize::from(header.format));
    let extra = header
        .record
        .saturating_sub(base.copied().unwrap_or(header.record));
    let extra = u16::try_from(extra).unwrap_or(u16::MAX);
    let expected = LazItemRecordBuilder::default_for_point_format_id(header.format, extra)
        .map_err(library::laz)?;
    let items = |items: &[laz::LazItem]| -> Vec<(LazItemType, u16)> {
        let items = items.iter();
        items.map(|item| (item.item_type(), item.size())).collect()
    };
    if items(parsed.items()) != items(&expected) {
        let other = "the compressed items are not those of the point format; the file is damaged";
        return Err(FileFault::Unsupported(other));
    }
    Ok(parsed)
}

fn open_compressed(
    mut file: File,
    length: u64,
    header: &LasHeader,
    vlr: LazVlr,
) -> Result<PointRecords, FileFault> {
    let compressor = header
        .vlrs
        .iter()
        .find(|vlr| vlr.user == "laszip encoded")
        .map_or(0, |vlr| super::header::u16_at(vlr.data(), 0));
    if compressor != POINT_WISE {
        let chunks = check_chunks(&mut file, length, header, &vlr, compressor == LAYERED)?;
        if let Some(chunks) = independent(&chunks, header) {
            // The offset of the table comes first.
            file.seek(SeekFrom::Start(header.start.saturating_add(8)))?;
            let points = ChunkedPoints {
                file,
                vlr,
                chunks: chunks.into_iter(),
                packed: Vec::new(),
                ready: Vec::new(),
                used: 0,
            };
            return Ok(PointRecords::Chunked(Box::new(points)));
        }
    }
    file.seek(SeekFrom::Start(header.start))?;
    let source = BufReader::with_capacity(1 << 18, file);
    let points = catch_panic(|| LasZipDecompressor::new(source, vlr))?;
    Ok(PointRecords::Compressed(Box::new(points)))
}

/// Returns the chunks with their numbers of points if they can be decompressed in parallel: no
/// chunk is so large that too much memory would be reserved, and the chunks have all points of the
/// file.
fn independent(chunks: &ChunkTable, header: &LasHeader) -> Option<Vec<ChunkTableEntry>> {
    let record = u64::try_from(header.record).unwrap_or(u64::MAX).max(1);
    let mut left = header.points;
    let mut all = Vec::new();
    for chunk in chunks {
        let mut chunk = *chunk;
        // The table gives the last chunk the size of the others.
        chunk.point_count = chunk.point_count.min(left);
        if !(1..=LARGEST_CHUNK / record).contains(&chunk.point_count) {
            break;
        }
        left = left.saturating_sub(chunk.point_count);
        all.push(chunk);
    }
    (left == 0).then_some(all)
}

/// Points that are decompressed chunk by chunk, several chunks at once.
pub(super) struct ChunkedPoints {
    file: File,
    vlr: LazVlr,
    /// Chunks that are not yet read.
    chunks: std::vec::IntoIter<ChunkTableEntry>,
    packed: Vec<u8>,
    /// Records of the chunks that were read last.
    ready: Vec<u8>,
    /// Number of their bytes that were taken.
    used: usize,
}

impl ChunkedPoints {
    /// Replaces `bytes` by the next `size` bytes of records.
    fn take(&mut self, bytes: &mut Vec<u8>, size: usize, record: usize) -> Result<(), FileFault> {
        bytes.clear();
        while bytes.len() < size {
            if self.used >= self.ready.len() {
                self.read(record)?;
            }
            let rest = self.ready.get(self.used..).unwrap_or_default();
            let count = rest.len().min(size.saturating_sub(bytes.len()));
            bytes.extend_from_slice(rest.get(..count).unwrap_or_default());
            self.used = self.used.saturating_add(count);
        }
        Ok(())
    }

    /// Reads the next chunks.
    fn read(&mut self, record: usize) -> Result<(), FileFault> {
        let (mut points, mut packed) = (0_usize, 0_usize);
        let mut chunks = Vec::new();
        while points.saturating_mul(record) < BATCH_BYTES
            && let Some(chunk) = self.chunks.next()
        {
            let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
            points = points.saturating_add(size(chunk.point_count));
            packed = packed.saturating_add(size(chunk.byte_count));
            chunks.push(chunk);
        }
        if chunks.is_empty() {
            return Err(FileFault::Unsupported(DAMAGED));
        }
        // `check_chunks` has compared the sizes with the file.
        self.packed.resize(packed, 0);
        self.file.read_exact(&mut self.packed)?;
        self.ready.resize(points.saturating_mul(record), 0);
        self.used = 0;
        let (vlr, packed, ready) = (&self.vlr, &self.packed, &mut self.ready);
        catch_panic(|| par_decompress(packed, ready, vlr, &chunks))
    }
}

/// Checks the sizes for which the decoder reserves memory: the number of chunks, and the layers of
/// each chunk. Returns the chunks.
fn check_chunks(
    file: &mut File,
    length: u64,
    header: &LasHeader,
    vlr: &LazVlr,
    is_layered: bool,
) -> Result<ChunkTable, FileFault> {
    let damaged = || {
        FileFault::Unsupported(
            "the table of chunks is missing or damaged; write the file again with a program that closes it",
        )
    };
    let mut table = [0; 8];
    file.seek(SeekFrom::Start(header.start))?;
    file.read_exact(&mut table)?;
    let mut at = i64::from_le_bytes(table);
    if u64::try_from(at).is_ok_and(|at| at <= header.start) || at < 0 {
        file.seek(SeekFrom::End(-8))?;
        file.read_exact(&mut table)?;
        at = i64::from_le_bytes(table);
    }
    let at = u64::try_from(at)
        .ok()
        .filter(|at| *at > header.start)
        .ok_or_else(damaged)?;
    if at.saturating_add(8) > length {
        return Err(damaged());
    }
    file.seek(SeekFrom::Start(at))?;
    file.read_exact(&mut table)?;
    let chunks = u64::from(super::header::u32_at(&table, 4));
    // The first point of each chunk is stored uncompressed.
    let record = u64::try_from(header.record).unwrap_or(u64::MAX);
    if chunks.saturating_mul(record) > length {
        return Err(damaged());
    }
    file.seek(SeekFrom::Start(header.start))?;
    let mut source = BufReader::new(file);
    let chunks = catch_panic(|| ChunkTable::read_from(&mut source, vlr))?;
    let file = source.into_inner();
    let mut start = header.start.saturating_add(8);
    for chunk in chunks.as_ref() {
        let end = start.saturating_add(chunk.byte_count);
        if end > at {
            return Err(damaged());
        }
        if is_layered {
            check_layers(file, start, end, header, vlr)?;
        }
        start = end;
    }
    Ok(chunks)
}

/// Checks that the layers of a chunk fit it: after the first point and the number of points comes
/// the size of each layer.
fn check_layers(
    file: &mut File,
    start: u64,
    end: u64,
    header: &LasHeader,
    vlr: &LazVlr,
) -> Result<(), FileFault> {
    let layers = vlr
        .items()
        .iter()
        .map(|item| match item.item_type() {
            LazItemType::Point14 => 9,
            LazItemType::RGBNIR14 => 2,
            LazItemType::Byte14(count) => u64::from(count),
            _ => 1,
        })
        .fold(0, u64::saturating_add);
    let record = u64::try_from(header.record).unwrap_or(u64::MAX);
    let sizes = start.saturating_add(record).saturating_add(4);
    let size = layers.saturating_mul(4);
    let damaged = FileFault::Unsupported("a chunk is smaller than its layers; the file is damaged");
    if sizes.saturating_add(size) > end {
        return Err(damaged);
    }
    // A record has fewer than 65,536 extra bytes, and one layer for each.
    let mut bytes = vec![0; usize::try_from(size).unwrap_or(0)];
    file.seek(SeekFrom::Start(sizes))?;
    file.read_exact(&mut bytes)?;
    let (words, _) = bytes.as_chunks::<4>();
    let words = words
        .iter()
        .map(|word| u64::from(u32::from_le_bytes(*word)));
    let data = words.fold(sizes.saturating_add(size), u64::saturating_add);
    if data > end { Err(damaged) } else { Ok(()) }
}
