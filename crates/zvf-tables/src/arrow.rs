//! Arrow's IPC file format, also known as Feather 2.

use std::{
    collections::HashMap,
    fs::File,
    io::{BufReader, BufWriter, IntoInnerError, Read, Seek, SeekFrom},
    path::Path,
    sync::Arc,
};

use arrow_array::{ArrayRef, DictionaryArray, RecordBatch, cast::AsArray, types::UInt32Type};
use arrow_ipc::{
    reader::{FileReader, StreamReader},
    root_as_footer, root_as_message,
    writer::{FileWriter, StreamWriter},
};
use arrow_schema::{ArrowError, DataType, Schema, SchemaRef};
use zvf_arrow::words_of;

use crate::record_batch::{DecodedText, TableBuilder, TableEncoder, fault};
use crate::table::{
    OutputColumn, OutputTable, TableReadOptions, input_table::InputTable, staged::Sink,
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

/// A file that is being written.
pub(crate) struct ArrowFile {
    encoder: TableEncoder,
    form: ArrowForm,
}

/// The place of the batches of a file.
enum ArrowForm {
    File(FileWriter<Sink>),
    /// The file has one dictionary for each column of text, which is complete after the last batch.
    /// Until then batches with codes wait in a temporary file.
    Codes {
        sink: Sink,
        schema: SchemaRef,
        codes: StreamWriter<BufWriter<File>>,
        dictionaries: Vec<Option<DecodedText>>,
    },
}

impl ArrowFile {
    /// Starts a file with the columns of a table, which is the only one if `is_whole`.
    pub(crate) fn create(
        sink: Sink,
        table: &OutputTable<'_>,
        metadata: HashMap<String, String>,
        is_whole: bool,
    ) -> Result<Self, FileFault> {
        let encoder = TableEncoder::new(table, metadata)?;
        let is_text = |column: &OutputColumn<'_>| column.kind().is_none();
        if is_whole || !table.columns.iter().any(is_text) {
            let writer = FileWriter::try_new(sink, encoder.schema()).map_err(fault)?;
            let form = ArrowForm::File(writer);
            return Ok(Self { encoder, form });
        }
        let fields = encoder.schema().fields().iter().map(|field| {
            let of = match field.data_type() {
                DataType::Dictionary(codes, _) => codes.as_ref().clone(),
                other => other.clone(),
            };
            field.as_ref().clone().with_data_type(of)
        });
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let file = BufWriter::with_capacity(1 << 18, sink.get_ref().spool()?);
        let dictionaries = table
            .columns
            .iter()
            .map(|column| is_text(column).then(DecodedText::default));
        Ok(Self {
            encoder,
            form: ArrowForm::Codes {
                dictionaries: dictionaries.collect(),
                codes: StreamWriter::try_new(file, &schema).map_err(fault)?,
                schema,
                sink,
            },
        })
    }

    /// Writes the rows of a table.
    pub(crate) fn write(&mut self, table: &OutputTable<'_>) -> Result<(), FileFault> {
        for batch in self.encoder.batches(table)? {
            let batch = batch?;
            match &mut self.form {
                ArrowForm::File(writer) => writer.write(&batch).map_err(fault)?,
                ArrowForm::Codes {
                    schema,
                    codes,
                    dictionaries,
                    ..
                } => {
                    let coded = batch
                        .columns()
                        .iter()
                        .zip(dictionaries)
                        .map(|(column, text)| match text {
                            Some(text) => text.codes_of(column),
                            None => Ok(Arc::clone(column)),
                        })
                        .collect::<Result<Vec<_>, _>>()?;
                    let rows = RecordBatch::try_new(Arc::clone(schema), coded).map_err(fault)?;
                    codes.write(&rows).map_err(fault)?;
                }
            }
        }
        Ok(())
    }

    /// Completes the file.
    pub(crate) fn finish(self) -> Result<Sink, FileFault> {
        let (sink, codes, dictionaries) = match self.form {
            ArrowForm::File(writer) => return writer.into_inner().map_err(fault),
            ArrowForm::Codes {
                sink,
                codes,
                dictionaries,
                ..
            } => (sink, codes, dictionaries),
        };
        let mut file = codes
            .into_inner()
            .map_err(fault)?
            .into_inner()
            .map_err(IntoInnerError::into_error)?;
        file.rewind()?;
        let schema = self.encoder.schema();
        let words = schema
            .fields()
            .iter()
            .zip(dictionaries)
            .map(|(field, text)| {
                text.map(|text| words_of(field.name(), &text.into_words()))
                    .transpose()
            })
            .collect::<Result<Vec<_>, _>>()?;
        let mut writer = FileWriter::try_new(sink, schema).map_err(fault)?;
        for batch in StreamReader::try_new_buffered(file, None).map_err(fault)? {
            let batch = batch.map_err(fault)?;
            let columns = batch
                .columns()
                .iter()
                .zip(&words)
                .map(|(codes, words)| match words {
                    None => Ok(Arc::clone(codes)),
                    Some(words) => {
                        let codes = codes.as_primitive::<UInt32Type>().clone();
                        let text = DictionaryArray::try_new(codes, Arc::clone(words));
                        text.map(|text| -> ArrayRef { Arc::new(text) })
                            .map_err(fault)
                    }
                })
                .collect::<Result<Vec<_>, _>>()?;
            let rows = RecordBatch::try_new(Arc::clone(schema), columns).map_err(fault)?;
            writer.write(&rows).map_err(fault)?;
        }
        writer.into_inner().map_err(fault)
    }
}
