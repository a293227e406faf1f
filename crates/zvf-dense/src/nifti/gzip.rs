//! Files compressed by gzip.

use std::{
    io::{self, BufReader, BufWriter, Read, Write},
    sync::Arc,
};

use flate2::read::MultiGzDecoder;

use crate::{ByteSource, DenseError, FileSource};

const MAGIC: &[u8] = &[0x1f, 0x8b];
/// Bytes read at a time.
const BUFFER: usize = 1 << 16;

/// Returns whether the bytes are compressed.
pub(super) fn is_gzip(source: &dyn ByteSource) -> Result<bool, DenseError> {
    let head = source.read(0..source.len().min(2))?;
    Ok(&*head == MAGIC)
}

/// Decompresses the first bytes, at most `len`.
pub(super) fn first_bytes(source: &Arc<dyn ByteSource>, len: u64) -> Result<Vec<u8>, DenseError> {
    let mut bytes = Vec::new();
    let read = decoder(source).take(len).read_to_end(&mut bytes);
    match read {
        Ok(_) => Ok(bytes),
        Err(error) => Err(DenseError::io(source.name(), error)),
    }
}

/// Decompresses at most `len` bytes into a temporary file without name.
pub(super) fn decompressed(
    source: &Arc<dyn ByteSource>,
    len: u64,
) -> Result<Arc<dyn ByteSource>, DenseError> {
    let decompress = || {
        let file = tempfile::tempfile()?;
        let mut into = BufWriter::with_capacity(BUFFER, file);
        let mut decoder = decoder(source);
        let copied = io::copy(&mut (&mut decoder).take(len), &mut into)?;
        into.flush()?;
        // The checksum follows the last byte.
        io::copy(&mut decoder.take(1), &mut io::sink())?;
        let file = into.into_inner().map_err(io::IntoInnerError::into_error)?;
        Ok::<_, io::Error>((copied, file))
    };
    let (copied, file) = decompress().map_err(|error| DenseError::io(source.name(), error))?;
    Ok(Arc::new(FileSource::of_file(source.name(), file, copied)))
}

fn decoder(source: &Arc<dyn ByteSource>) -> MultiGzDecoder<BufReader<SourceReader>> {
    let reader = SourceReader {
        source: Arc::clone(source),
        at: 0,
    };
    MultiGzDecoder::new(BufReader::with_capacity(BUFFER, reader))
}

/// Reads a source from start to end.
struct SourceReader {
    source: Arc<dyn ByteSource>,
    at: u64,
}

impl Read for SourceReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = self.source.len().saturating_sub(self.at);
        let len = usize::try_from(left).unwrap_or(usize::MAX).min(into.len());
        let into = into.get_mut(..len).unwrap_or_default();
        if !into.is_empty() {
            self.source.read_into(self.at, into)?;
            let read = u64::try_from(len).unwrap_or(u64::MAX);
            self.at = self.at.saturating_add(read);
        }
        Ok(len)
    }
}
