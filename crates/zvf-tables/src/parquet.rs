//! Parquet, written with zstd compression.

use std::{collections::HashMap, fs::File, path::Path, sync::Arc};

use arrow_schema::{DataType, Fields, Schema, SchemaRef};
use parquet::{
    arrow::{
        ArrowWriter,
        arrow_reader::{
            ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
            ParquetRecordBatchReaderBuilder,
        },
    },
    basic::{Compression, ZstdLevel},
    errors::ParquetError,
    file::{metadata::KeyValue, properties::WriterProperties},
};
use zvf::ErrorKind;

use crate::record_batch::{TableBuilder, TableEncoder};
use crate::source_error::io_of_parquet;
use crate::table::{OutputTable, TableReadOptions, input_table::InputTable, staged::Sink};
use crate::{FileError, FileFault};

/// Rows decoded at a time.
const BATCH_ROWS: usize = 1 << 16;

/// Reads a table.
pub(crate) fn read_table(path: &Path, options: TableReadOptions) -> Result<InputTable, FileError> {
    let file = ParquetTable::open(path)?;
    let mut table = TableBuilder::new(path, &file.schema, options)?;
    table.check_rows(file.rows)?;
    for batch in file.batches()? {
        let batch = batch.map_err(|source| FileError::unreadable(path, source))?;
        table.push(&batch)?;
    }
    table.finish()
}

/// An open file.
pub(crate) struct ParquetTable {
    path: Arc<Path>,
    metadata: ArrowReaderMetadata,
    pub(crate) schema: SchemaRef,
    pub(crate) rows: u64,
}

impl ParquetTable {
    /// Opens a file and reads its metadata.
    pub(crate) fn open(path: &Path) -> Result<Self, FileError> {
        let in_file = |source| FileError::unreadable(path, source);
        let file = File::open(path).map_err(|error| FileError::unreadable(path, error))?;
        let metadata =
            ArrowReaderMetadata::load(&file, ArrowReaderOptions::new()).map_err(in_file)?;
        let rows = metadata.metadata().file_metadata().num_rows();
        Ok(Self {
            path: path.into(),
            schema: Arc::clone(metadata.schema()),
            rows: u64::try_from(rows).unwrap_or(0),
            metadata: with_views(&metadata).map_err(in_file)?,
        })
    }

    /// Reads the rows in batches.
    pub(crate) fn batches(&self) -> Result<ParquetRecordBatchReader, FileError> {
        let path = &self.path;
        let file = File::open(path).map_err(|error| FileError::unreadable(path, error))?;
        ParquetRecordBatchReaderBuilder::new_with_metadata(file, self.metadata.clone())
            .with_batch_size(BATCH_ROWS)
            .build()
            .map_err(|source| FileError::unreadable(path, source))
    }
}

/// Requests views of text: the library decodes text of other types to a copy of the word for each
/// row, which may take thousands of times the size of the file.
fn with_views(metadata: &ArrowReaderMetadata) -> Result<ArrowReaderMetadata, ParquetError> {
    let schema = metadata.schema();
    let fields = schema.fields().iter().map(|field| {
        let words = match field.data_type() {
            DataType::Dictionary(_, words) => words,
            other => other,
        };
        match words {
            DataType::Utf8 | DataType::LargeUtf8 => {
                Arc::new(field.as_ref().clone().with_data_type(DataType::Utf8View))
            }
            _ => Arc::clone(field),
        }
    });
    let schema = Schema::new_with_metadata(fields.collect::<Fields>(), schema.metadata().clone());
    let options = ArrowReaderOptions::new().with_schema(Arc::new(schema));
    ArrowReaderMetadata::try_new(Arc::clone(metadata.metadata()), options)
}

/// Memory of the rows of a group before it is written. A group also ends after a million rows.
const GROUP_BYTES: usize = 16 << 20;

/// A file that is being written.
pub(crate) struct ParquetFile {
    encoder: TableEncoder,
    writer: ArrowWriter<Sink>,
}

impl ParquetFile {
    /// Starts a file with the columns of a table.
    pub(crate) fn create(
        sink: Sink,
        table: &OutputTable<'_>,
        metadata: HashMap<String, String>,
    ) -> Result<Self, FileFault> {
        let encoder = TableEncoder::new(table, metadata)?;
        let schema = encoder.schema();
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
        let writer = ArrowWriter::try_new(sink, Arc::clone(schema), Some(properties));
        Ok(Self {
            writer: writer.map_err(fault)?,
            encoder,
        })
    }

    /// Writes the rows of a table.
    pub(crate) fn write(&mut self, table: &OutputTable<'_>) -> Result<(), FileFault> {
        for batch in self.encoder.batches(table)? {
            self.writer.write(&batch?).map_err(fault)?;
            if self.writer.memory_size() > GROUP_BYTES {
                self.writer.flush().map_err(fault)?;
            }
        }
        Ok(())
    }

    /// Completes the file.
    pub(crate) fn finish(self) -> Result<Sink, FileFault> {
        self.writer.into_inner().map_err(fault)
    }
}

/// Returns the fault of a table that the library cannot write.
fn fault(error: ParquetError) -> FileFault {
    match io_of_parquet(error) {
        Ok(error) => FileFault::Io(error),
        Err(error) => {
            FileFault::library(ErrorKind::Unsupported, "parquet cannot be written", error)
        }
    }
}
