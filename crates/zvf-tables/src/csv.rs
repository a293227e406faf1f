//! csv: UTF-8, separated by commas, with a first line of names, quoted as in RFC 4180. An empty
//! field is a missing value; an empty field in quotes is empty text. A `.tsv` file is separated by
//! tabs, and a file whose name ends in `.gz` is decompressed while it is read.
//!
//! A file is read twice: to infer the types of its columns, then to read the values. A column with a
//! scope, such as `vertex.NAME`, is text if all of its fields are quoted, unless the file quotes all
//! fields. Text that would be read as numbers or bools is written in quotes.

mod infer;
mod record;

use std::{
    collections::HashSet,
    fs::File,
    io::{self, BufReader, Read, Write},
    path::Path,
    sync::Arc,
};

use flate2::read::MultiGzDecoder;
use zvf::ColumnValues;

use crate::table::{
    ColumnError, CsvError,
    column::{FileColumn, NullPolicy, fill_missing, join_channels},
    has_scope,
    input_table::InputTable,
    output_table::{OutputColumn, OutputTable},
    staged::Sink,
};
use crate::{FileError, FileFault, FilePlace, display::len_u64};
use infer::{InferredValues, TypeInference, is_other_than_text};
use record::{CsvField, CsvRecord, RecordReader};

/// Reads a table.
pub(crate) fn read_table(path: &Path, policy: NullPolicy) -> Result<InputTable, FileError> {
    let columns = CsvColumns::infer(path, policy)?;
    Ok(columns.rows()?.next(usize::MAX)?.0)
}

/// The columns of a file, with the types that all of its rows have.
#[derive(Clone, Debug)]
pub(crate) struct CsvColumns {
    file: Arc<Path>,
    names: Vec<String>,
    inferred: Vec<TypeInference>,
    policy: NullPolicy,
}

/// Rows of a file that are read in batches.
pub(crate) struct CsvRows {
    columns: CsvColumns,
    reader: CsvReader<BufReader<Box<dyn Read + Send>>>,
}

impl CsvColumns {
    /// Reads a file to infer the types of its columns.
    pub(crate) fn infer(path: &Path, policy: NullPolicy) -> Result<Self, FileError> {
        let mut reader = CsvReader::open(path)?;
        let mut inferred = vec![TypeInference::default(); reader.names.len()];
        while let Some((record, line)) = reader.next_line()? {
            for (inferred, field) in inferred.iter_mut().zip(record.fields()) {
                inferred.observe(field, line);
            }
        }
        // A program that quotes every field says nothing about their types.
        if inferred.iter().any(|inferred| inferred.has_unquoted) {
            for (name, inferred) in reader.names.iter().zip(&mut inferred) {
                if inferred.is_quoted() && may_be_text(name) {
                    inferred.set_text();
                }
            }
        }
        Ok(Self {
            file: path.into(),
            names: reader.names,
            inferred,
            policy,
        })
    }

    /// Returns the number of rows, and the size of a row in memory in bytes, without the words of text.
    pub(crate) fn size(&self) -> (u64, u64) {
        // No number of a column takes more but complex ones.
        const FIELD: u64 = 8;
        let rows = self.inferred.first().map_or(0, TypeInference::rows);
        (
            len_u64(rows),
            FIELD.saturating_mul(len_u64(self.names.len())),
        )
    }

    /// Returns the names of the columns.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// Opens the file to read its rows.
    pub(crate) fn rows(&self) -> Result<CsvRows, FileError> {
        let reader = CsvReader::open(&self.file)?;
        if reader.names != self.names {
            return Err(reader.error(CsvError::Changed));
        }
        Ok(CsvRows {
            columns: self.clone(),
            reader,
        })
    }
}

impl CsvRows {
    /// Reads at most this many rows. Returns them with their number.
    pub(crate) fn next(&mut self, rows: usize) -> Result<(InputTable, usize), FileError> {
        let CsvColumns {
            file,
            names,
            inferred,
            policy,
        } = &self.columns;
        let mut columns = Vec::with_capacity(inferred.len());
        for (name, inferred) in names.iter().zip(inferred) {
            columns.push(InferredValues::new(inferred).map_err(|source| {
                FileFault::Column(source).at(file, FilePlace::Column(name.clone()))
            })?);
        }
        let mut read = 0_usize;
        while read < rows
            && let Some((record, line)) = self.reader.next_line()?
        {
            for ((values, field), name) in columns.iter_mut().zip(record.fields()).zip(names) {
                let pushed = values.push(field, *policy, name);
                pushed.map_err(|source| FileFault::Csv(source).at(file, FilePlace::Line(line)))?;
            }
            read = read.saturating_add(1);
        }
        let columns = names
            .iter()
            .zip(columns)
            .zip(inferred)
            .map(|((label, values), inferred)| {
                let (values, missing) = values.finish();
                let column = FileColumn {
                    file: Arc::clone(file),
                    label: label.clone(),
                    values,
                    nulls: None,
                    first_text: inferred.clone().into_first_text(),
                };
                apply_policy(column, &missing, *policy)
            })
            .collect::<Result<Vec<_>, _>>()?;
        let table = InputTable {
            file: Arc::clone(file),
            columns: join_columns(columns)?,
            axes: None,
            crs: None,
            description: None,
        };
        Ok((table, read))
    }
}

/// Returns whether a column is an attribute with a scope, and not one of several channels.
fn may_be_text(name: &str) -> bool {
    has_scope(name) && !name.ends_with(']')
}

fn apply_policy(
    column: FileColumn,
    missing: &[bool],
    policy: NullPolicy,
) -> Result<FileColumn, FileError> {
    let ColumnValues::Numeric(numbers) = &column.values else {
        return Ok(column);
    };
    let numbers = fill_missing(numbers.clone(), missing, policy);
    let (numbers, nulls) = numbers.map_err(|error| column.error(error))?;
    let values = ColumnValues::Numeric(numbers);
    Ok(FileColumn {
        values,
        nulls,
        ..column
    })
}

/// Joins `NAME[0]`, `NAME[1]` and so on to one column of several channels.
fn join_columns(columns: Vec<FileColumn>) -> Result<Vec<FileColumn>, FileError> {
    let mut whole = Vec::new();
    let mut rest = columns.into_iter().peekable();
    while let Some(first) = rest.next() {
        let Some(name) = first.label.strip_suffix("[0]").map(str::to_owned) else {
            whole.push(first);
            continue;
        };
        let mut channels = vec![first];
        loop {
            let next = format!("{name}[{}]", channels.len());
            let Some(channel) = rest.next_if(|column| column.label == next) else {
                break;
            };
            channels.push(channel);
        }
        let nulls = common_nulls(&mut channels);
        let parts = channels
            .iter()
            .map(FileColumn::numbers)
            .collect::<Result<Vec<_>, _>>()?;
        let numbers = join_channels(&parts);
        let Some(first) = channels.first() else {
            continue;
        };
        let numbers = numbers.map_err(|error| first.error(error))?;
        whole.push(FileColumn {
            file: Arc::clone(&first.file),
            label: name,
            values: ColumnValues::Numeric(numbers),
            nulls,
            first_text: None,
        });
    }
    Ok(whole)
}

/// Takes the rows that are null in all channels. If a row is null in some channels only, these keep
/// their nulls, so that their numbers are refused.
fn common_nulls(channels: &mut [FileColumn]) -> Option<Vec<bool>> {
    let nulls = channels.first()?.nulls.clone()?;
    let is_common = |channel: &FileColumn| channel.nulls.as_ref() == Some(&nulls);
    if !channels.iter().all(is_common) {
        return None;
    }
    for channel in channels {
        channel.nulls = None;
    }
    Some(nulls)
}

/// A reader after the first line of a file.
struct CsvReader<R> {
    path: Arc<Path>,
    records: RecordReader<R>,
    names: Vec<String>,
}

impl CsvReader<BufReader<Box<dyn Read + Send>>> {
    fn open(path: &Path) -> Result<Self, FileError> {
        let file = File::open(path).map_err(|error| FileError::unreadable(path, error))?;
        let is_compressed = has_extension(path, "gz");
        let source: Box<dyn Read + Send> = if is_compressed {
            Box::new(MultiGzDecoder::new(BufReader::new(file)))
        } else {
            Box::new(file)
        };
        let stem = path.file_stem().map(Path::new);
        let name = stem.filter(|_| is_compressed).unwrap_or(path);
        let separator = if has_extension(name, "tsv") {
            b'\t'
        } else {
            b','
        };
        Self::new(path, BufReader::with_capacity(1 << 18, source), separator)
    }
}

fn has_extension(path: &Path, wanted: &str) -> bool {
    let extension = path.extension();
    extension.is_some_and(|extension| extension.eq_ignore_ascii_case(wanted))
}

impl<R: Read + io::BufRead> CsvReader<R> {
    fn new(path: &Path, source: R, separator: u8) -> Result<Self, FileError> {
        let mut reader = Self {
            path: path.into(),
            records: RecordReader::new(source, separator),
            names: Vec::new(),
        };
        let names = match reader.record()? {
            Some(names) => names.fields().map(column_name).collect(),
            None => return Err(reader.error(CsvError::Empty)),
        };
        reader.names = names;
        if let Some(fault) = header_fault(&reader.names) {
            return Err(reader.error(fault));
        }
        let mut inferred = HashSet::new();
        if let Some(name) = reader.names.iter().find(|name| !inferred.insert(*name)) {
            return Err(
                FileFault::Column(ColumnError::Twice).at(path, FilePlace::Column(name.clone()))
            );
        }
        Ok(reader)
    }

    /// Returns a record and its line number.
    fn next_line(&mut self) -> Result<Option<(CsvRecord<'_>, u64)>, FileError> {
        let expected = self.names.len();
        let path = Arc::clone(&self.path);
        let Some((record, line)) = self.record_line()? else {
            return Ok(None);
        };
        let found = record.fields().len();
        if found != expected {
            let fault = CsvError::Fields { expected, found };
            return Err(FileFault::Csv(fault).at(&path, FilePlace::Line(line)));
        }
        Ok(Some((record, line)))
    }

    fn record(&mut self) -> Result<Option<CsvRecord<'_>>, FileError> {
        Ok(self.record_line()?.map(|(record, _)| record))
    }

    fn record_line(&mut self) -> Result<Option<(CsvRecord<'_>, u64)>, FileError> {
        let path = &self.path;
        self.records.next().map_err(|(line, error)| match error {
            CsvError::Io(error) => FileError::unreadable(path, error),
            fault => FileFault::Csv(fault).at(path, FilePlace::Line(line)),
        })
    }

    fn error(&self, source: CsvError) -> FileError {
        FileFault::Csv(source).at(&self.path, FilePlace::Line(1))
    }
}

/// Returns the name of a column. Blanks around it are not part of it, unless it is quoted.
fn column_name(field: CsvField<'_>) -> String {
    if field.is_quoted {
        field.text.to_owned()
    } else {
        field.text.trim().to_owned()
    }
}

/// Returns the fault of the names of columns.
fn header_fault(names: &[String]) -> Option<CsvError> {
    if let [name] = names {
        let mut marks = [';', '\t', ' '].into_iter();
        let mark = marks.find(|mark| name.contains(*mark));
        return mark.map(CsvError::Separator);
    }
    if names.iter().all(|name| name.parse::<f64>().is_ok()) {
        return Some(CsvError::NoNames(names.join(",")));
    }
    let unnamed = names.iter().position(String::is_empty)?;
    Some(CsvError::Unnamed(unnamed.saturating_add(1)))
}

/// A file that is being written.
pub(crate) struct CsvFile {
    sink: Sink,
    line: String,
}

impl CsvFile {
    /// Starts a file with the names of the columns of a table.
    pub(crate) fn create(mut sink: Sink, table: &OutputTable<'_>) -> io::Result<Self> {
        let mut line = String::new();
        for column in &table.columns {
            for channel in 0..column.channels() {
                push_field(&column.header(channel), &mut line);
                line.push(',');
            }
        }
        end_line(&mut line, &mut sink)?;
        Ok(Self { sink, line })
    }

    /// Writes the rows of a table. Text that reads as numbers or bools throughout is quoted; if that of
    /// another table of the file is not, the column is text, quoted or not.
    pub(crate) fn write(&mut self, table: &OutputTable<'_>) -> io::Result<()> {
        let line = &mut self.line;
        let words = |column: &OutputColumn<'_>| {
            let present = (0..table.rows).filter(|row| !column.is_null(*row));
            is_other_than_text(present.map_while(|row| column.word(row)))
        };
        let are_quoted: Vec<bool> = table.columns.iter().map(words).collect();
        for row in 0..table.rows {
            for (column, is_quoted) in table.columns.iter().zip(&are_quoted) {
                for channel in 0..column.channels() {
                    if column.is_null(row) {
                        // An empty field.
                    } else if let Some(word) = column.word(row) {
                        if *is_quoted {
                            push_quoted(word, line);
                        } else {
                            push_field(word, line);
                        }
                    } else {
                        column.push_number(row, channel, line);
                    }
                    line.push(',');
                }
            }
            end_line(line, &mut self.sink)?;
        }
        Ok(())
    }

    pub(crate) fn finish(self) -> Sink {
        self.sink
    }
}

/// Writes a line without the comma after its last field.
fn end_line(line: &mut String, sink: &mut Sink) -> io::Result<()> {
    line.pop();
    line.push('\n');
    sink.write_all(line.as_bytes())?;
    line.clear();
    Ok(())
}

/// Appends a field. Empty text is quoted; without quotes it would be a missing value.
fn push_field(text: &str, line: &mut String) {
    let is_plain =
        !text.is_empty() && text.trim() == text && !text.contains([',', '"', '\n', '\r']);
    if is_plain {
        line.push_str(text);
    } else {
        push_quoted(text, line);
    }
}

fn push_quoted(text: &str, line: &mut String) {
    line.push('"');
    for (at, part) in text.split('"').enumerate() {
        if at > 0 {
            line.push_str("\"\"");
        }
        line.push_str(part);
    }
    line.push('"');
}
