//! Arrow's IPC file format, also known as Feather 2.

use std::{
    fs::File,
    io::{Read, Seek, SeekFrom},
    path::Path,
};

use arrow_ipc::{reader::FileReader, root_as_footer, writer::FileWriter};
use arrow_schema::ArrowError;
use zvf::QueryResult;

use super::{
    GeometryReadError, MissingPolicy, ResultWriteError, StoreDescription,
    error::FillError,
    input_table::InputTable,
    record_batch::{RecordBatches, TableBuilder, write_batches},
    staged::{Sink, Staged},
};

/// Reads a table.
pub(super) fn read_table(
    path: &Path,
    missing: MissingPolicy,
) -> Result<InputTable, GeometryReadError> {
    let in_file = |source| {
        let path = path.to_path_buf();
        match source {
            ArrowError::IoError(_, source) => GeometryReadError::File { path, source },
            source => GeometryReadError::Arrow { path, source },
        }
    };
    let mut file = File::open(path).map_err(|error| GeometryReadError::file(path, error))?;
    check_blocks(&mut file).map_err(in_file)?;
    let reader = FileReader::try_new_buffered(file, None).map_err(in_file)?;
    let mut table = TableBuilder::new(path, &reader.schema())?;
    for batch in reader {
        table.push(&batch.map_err(in_file)?)?;
    }
    table.finish(missing)
}

/// Size of the end of a file: the length of the footer, and the magic.
const END_BYTES: u64 = 10;

/// Checks that the blocks in the footer lie in the file. The library reserves memory for a block
/// before it reads it.
fn check_blocks(file: &mut File) -> Result<(), ArrowError> {
    let outside = |what: &str| ArrowError::ParseError(format!("the {what} is not in the file"));
    let size = file.metadata()?.len();
    // The library reports a file without an end.
    let Some(before_end) = size.checked_sub(END_BYTES) else {
        return Ok(());
    };
    let mut length = [0; 4];
    file.seek(SeekFrom::Start(before_end))?;
    file.read_exact(&mut length)?;
    let length = u64::try_from(i32::from_le_bytes(length));
    let length = length.map_err(|_| outside("footer"))?;
    let start = before_end.checked_sub(length);
    file.seek(SeekFrom::Start(start.ok_or_else(|| outside("footer"))?))?;
    let mut footer = Vec::new();
    file.take(length).read_to_end(&mut footer)?;
    let footer = root_as_footer(&footer);
    let footer = footer.map_err(|error| ArrowError::ParseError(error.to_string()))?;
    let blocks = [footer.dictionaries(), footer.recordBatches()];
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
    }
    file.rewind()?;
    Ok(())
}

/// Writes the tables of a result.
pub(super) fn write(
    result: &QueryResult,
    description: &StoreDescription,
    staged: &mut Staged,
) -> Result<Vec<String>, ResultWriteError> {
    write_batches(result, description, staged, write_table)
}

fn write_table(batches: &RecordBatches<'_>, sink: &mut Sink<'_>) -> Result<(), FillError> {
    let mut writer = FileWriter::try_new(sink, batches.schema())?;
    for batch in batches.iter() {
        writer.write(&batch?)?;
    }
    writer.finish()?;
    Ok(())
}
