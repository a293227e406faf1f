//! Point records, plain or compressed.

use std::{
    fmt,
    fs::File,
    io::{self, BufReader, Read, Seek, SeekFrom},
    panic::{AssertUnwindSafe, catch_unwind},
};

use laz::{LasZipDecompressor, LazItemRecordBuilder, LazItemType, LazVlr, laszip::ChunkTable};

use super::header::LasHeader;
use crate::{FileError, FileFault, input::ByteReader};

/// Compression of each point by itself, in one chunk.
const POINT_WISE: u16 = 1;
/// Compression of each field of a chunk by itself.
const LAYERED: u16 = 3;

/// Records that are read from start to end.
pub(super) enum PointRecords {
    Plain,
    Compressed(Box<LasZipDecompressor<'static, BufReader<File>>>),
}

impl fmt::Debug for PointRecords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plain => "Plain",
            Self::Compressed(_) => "Compressed",
        })
    }
}

impl PointRecords {
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
                let done = guarded(|| points.decompress_many(bytes));
                done.map_err(|fault| fault.of(file.path()))
            }
        }
    }
}

/// Calls the decoder. The crate `laz` panics on some damaged data, where it subtracts and indexes
/// without checks.
fn guarded<T, E: Into<laz::LasZipError>>(
    decode: impl FnOnce() -> Result<T, E>,
) -> Result<T, FileFault> {
    let decoded = catch_unwind(AssertUnwindSafe(decode));
    let decoded = decoded.map_err(|_| FileFault::Unsupported(DAMAGED))?;
    decoded.map_err(|error| fault_of(error.into()))
}

const DAMAGED: &str = "the compressed points are damaged; copy the file again";

fn fault_of(error: laz::LasZipError) -> FileFault {
    match error {
        laz::LasZipError::IoError(error) if error.kind() != io::ErrorKind::UnexpectedEof => {
            error.into()
        }
        laz::LasZipError::IoError(_) => FileFault::Unsupported(DAMAGED),
        other => FileFault::Laz(other),
    }
}

/// Returns the description of the compression, which has to be the one of the point format.
fn compression(header: &LasHeader) -> Result<LazVlr, FileFault> {
    let mut vlrs = header.vlrs.iter();
    let vlr = vlrs.find(|vlr| vlr.user == "laszip encoded");
    let missing = "the record `laszip encoded` is missing; the file is damaged";
    let vlr = vlr.ok_or(FileFault::Unsupported(missing))?;
    let parsed = guarded(|| LazVlr::from_buffer(vlr.data()))?;
    let base = super::dimension::SIZES.get(usize::from(header.format));
    let extra = header
        .record
        .saturating_sub(base.copied().unwrap_or(header.record));
    let extra = u16::try_from(extra).unwrap_or(u16::MAX);
    let expected = LazItemRecordBuilder::default_for_point_format_id(header.format, extra);
    let expected = expected.map_err(FileFault::Laz)?;
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
        check_chunks(&mut file, length, header, &vlr, compressor == LAYERED)?;
    }
    file.seek(SeekFrom::Start(header.start))?;
    let source = BufReader::with_capacity(1 << 18, file);
    let points = guarded(|| LasZipDecompressor::new(source, vlr))?;
    Ok(PointRecords::Compressed(Box::new(points)))
}

/// Checks the sizes for which the decoder reserves memory: the number of chunks, and the layers of
/// each chunk.
fn check_chunks(
    file: &mut File,
    length: u64,
    header: &LasHeader,
    vlr: &LazVlr,
    is_layered: bool,
) -> Result<(), FileFault> {
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
    let at = u64::try_from(at).ok().filter(|at| *at > header.start);
    let at = at.ok_or_else(damaged)?;
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
    let chunks = guarded(|| ChunkTable::read_from(&mut source, vlr))?;
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
    Ok(())
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
    let layers = vlr.items().iter().map(|item| match item.item_type() {
        LazItemType::Point14 => 9,
        LazItemType::RGBNIR14 => 2,
        LazItemType::Byte14(count) => u64::from(count),
        _ => 1,
    });
    let layers = layers.fold(0, u64::saturating_add);
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
