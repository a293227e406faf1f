//! Arrow's IPC file format, also known as Feather 2.

use std::{
    fs::File,
    io::{BufReader, Read, Seek, SeekFrom},
    path::Path,
};

use arrow_ipc::{reader::FileReader, root_as_footer, root_as_message, writer::FileWriter};
use arrow_schema::ArrowError;
use zvf::QueryResult;

use crate::StoreDescription;
use crate::record_batch::{RecordBatches, TableBuilder, fault, write_batches};
use crate::table::{
    TableReadOptions,
    input_table::InputTable,
    staged::{Sink, Staged},
};
use crate::{FileError, FileFault};

/// Reads a table.
pub(crate) fn read_table(path: &Path, options: TableReadOptions) -> Result<InputTable, FileError> {
    let (reader, rows) = open(path)?;
    let mut table = TableBuilder::new(path, &reader.schema(), options)?;
    table.check_rows(rows)?;
    for batch in reader {
        table.push(&batch.map_err(|source| in_file(path, source))?)?;
    }
    table.finish()
}

/// Opens a table. Returns its batches and the number of their rows.
pub(crate) fn open(path: &Path) -> Result<(FileReader<BufReader<File>>, u64), FileError> {
    let mut file = File::open(path).map_err(|error| FileError::unreadable(path, error))?;
    let rows = check_blocks(&mut file).map_err(|source| in_file(path, source))?;
    let reader = FileReader::try_new_buffered(file, None);
    Ok((reader.map_err(|source| in_file(path, source))?, rows))
}

/// Returns the error of a file that the library cannot read.
pub(crate) fn in_file(path: &Path, source: ArrowError) -> FileError {
    match source {
        ArrowError::IoError(_, source) => FileError::unreadable(path, source),
        source => FileError::unreadable(path, source),
    }
}

/// Size of the end of a file: the length of the footer, and the magic.
const END_BYTES: u64 = 10;

/// Checks that the blocks in the footer lie in the file, and returns the number of rows in them. The
/// library reserves memory for a block before it reads it.
fn check_blocks(file: &mut File) -> Result<u64, ArrowError> {
    let outside = |what: &str| ArrowError::ParseError(format!("the {what} is not in the file"));
    let size = file.metadata()?.len();
    // The library reports a file without an end.
    let Some(before_end) = size.checked_sub(END_BYTES) else {
        return Ok(0);
    };
    let mut length = [0; 4];
    file.seek(SeekFrom::Start(before_end))?;
    file.read_exact(&mut length)?;
    let length = u64::try_from(i32::from_le_bytes(length)).map_err(|_| outside("footer"))?;
    let start = before_end.checked_sub(length);
    file.seek(SeekFrom::Start(start.ok_or_else(|| outside("footer"))?))?;
    let mut footer = Vec::new();
    (&*file).take(length).read_to_end(&mut footer)?;
    let footer =
        root_as_footer(&footer).map_err(|error| ArrowError::ParseError(error.to_string()))?;
    let blocks = [footer.dictionaries(), footer.recordBatches()];
    let mut rows = 0_u64;
    for block in blocks.into_iter().flatten().flatten() {
        let metadata = i64::from(block.metaDataLength());
        let parts = [block.offset(), metadata, block.bodyLength()].map(u64::try_from);
        let [Ok(offset), Ok(metadata), Ok(body)] = parts else {
            return Err(outside("block of a batch"));
        };
        let end = offset
            .checked_add(metadata)
            .and_then(|end| end.checked_add(body));
        if end.is_none_or(|end| end > size) {
            return Err(outside("block of a batch"));
        }
        file.seek(SeekFrom::Start(offset))?;
        rows = rows.saturating_add(rows_of_batch(file, metadata)?);
    }
    file.rewind()?;
    Ok(rows)
}

/// Returns the number of rows of the batch whose metadata starts here; 0 for dictionaries and for
/// damaged metadata, which the library reports.
fn rows_of_batch(file: &File, metadata: u64) -> Result<u64, ArrowError> {
    let mut bytes = Vec::new();
    file.take(metadata).read_to_end(&mut bytes)?;
    // The length of the message is before it, and before that, in newer files, a mark.
    let start = if bytes.starts_with(&[0xff; 4]) { 8 } else { 4 };
    let message = bytes
        .get(start..)
        .and_then(|message| root_as_message(message).ok());
    let batch = message.and_then(|message| message.header_as_record_batch());
    let rows = batch.map(|batch| u64::try_from(batch.length()));
    Ok(rows.and_then(Result::ok).unwrap_or(0))
}

/// Writes the tables of a result.
pub(crate) fn write(
    result: &QueryResult,
    description: &StoreDescription,
    staged: &mut Staged,
) -> Result<Vec<String>, FileError> {
    write_batches(result, description, staged, write_table)
}

fn write_table(batches: &RecordBatches<'_>, sink: &mut Sink<'_>) -> Result<(), FileFault> {
    let mut writer = FileWriter::try_new(sink, batches.schema()).map_err(fault)?;
    for batch in batches.iter() {
        writer.write(&batch?).map_err(fault)?;
    }
    writer.finish().map_err(fault)?;
    Ok(())
}
