//! Parquet, written with zstd compression.

use std::{fs::File, path::Path, sync::Arc};

use parquet::{
    arrow::{ArrowWriter, arrow_reader::ParquetRecordBatchReaderBuilder},
    basic::{Compression, ZstdLevel},
    file::{metadata::KeyValue, properties::WriterProperties},
};
use zvf::QueryResult;

use super::{
    GeometryReadError, MissingPolicy, ResultWriteError, StoreDescription,
    error::FillError,
    input_table::InputTable,
    record_batch::{RecordBatches, TableBuilder, write_batches},
    staged::{Sink, Staged},
};

/// Rows decoded at a time.
const BATCH_ROWS: usize = 1 << 16;

/// Reads a table.
pub(super) fn read_table(
    path: &Path,
    missing: MissingPolicy,
) -> Result<InputTable, GeometryReadError> {
    let in_file = |source| GeometryReadError::Parquet {
        path: path.to_path_buf(),
        source,
    };
    let file = File::open(path).map_err(|error| GeometryReadError::file(path, error))?;
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).map_err(in_file)?;
    let mut table = TableBuilder::new(path, reader.schema())?;
    let reader = reader
        .with_batch_size(BATCH_ROWS)
        .build()
        .map_err(in_file)?;
    for batch in reader {
        let batch = batch.map_err(|source| GeometryReadError::Arrow {
            path: path.to_path_buf(),
            source,
        })?;
        table.push(&batch)?;
    }
    table.finish(missing)
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
    let schema = batches.schema();
    // Readers without Arrow support find the metadata here, the others in the schema.
    let mut entries: Vec<KeyValue> = schema
        .metadata()
        .iter()
        .map(|(key, value)| KeyValue::new(key.clone(), value.clone()))
        .collect();
    entries.sort_by(|one, other| one.key.cmp(&other.key));
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_key_value_metadata(Some(entries))
        .build();
    let mut writer = ArrowWriter::try_new(sink, Arc::clone(schema), Some(properties))?;
    for batch in batches.iter() {
        writer.write(&batch?)?;
    }
    writer.close()?;
    Ok(())
}
