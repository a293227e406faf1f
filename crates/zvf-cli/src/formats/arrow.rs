//! Arrow's IPC file format, also known as Feather 2.

use std::{fs::File, path::Path};

use arrow_ipc::{reader::FileReader, writer::FileWriter};
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
    let file = File::open(path).map_err(|error| GeometryReadError::file(path, error))?;
    let reader = FileReader::try_new_buffered(file, None).map_err(in_file)?;
    let mut table = TableBuilder::new(path, &reader.schema())?;
    for batch in reader {
        table.push(&batch.map_err(in_file)?)?;
    }
    table.finish(missing)
}

/// Writes the tables of a result.
pub(super) fn write(
    answer: &QueryResult,
    description: &StoreDescription,
    staged: &mut Staged,
) -> Result<Vec<String>, ResultWriteError> {
    write_batches(answer, description, staged, write_table)
}

fn write_table(batches: &RecordBatches<'_>, sink: &mut Sink<'_>) -> Result<(), FillError> {
    let mut writer = FileWriter::try_new(sink, batches.schema())?;
    for batch in batches.iter() {
        writer.write(&batch?)?;
    }
    writer.finish()?;
    Ok(())
}
