//! csv: text in UTF-8, commas between, a first line of names, quoted as RFC 4180 has
//! it. An empty field is a missing value; in quotes, it is an empty word.
//!
//! The file is read twice: to see what each column is, and to take it.

mod record;
mod sort;

use std::{
    collections::HashSet,
    fs::File,
    io::{BufReader, Read},
    path::Path,
    sync::Arc,
};

use zvf::build::Values;

use super::{
    ColumnError, Gaps, ReadError,
    column::{Column, beside, filled},
    table::Table,
};
use record::{Record, Records};
use sort::{Filling, Seen};

/// Reads a table.
pub(super) fn table(path: &Path, gaps: Gaps) -> Result<Table, ReadError> {
    let file: Arc<Path> = path.into();
    let mut reading = Reading::open(path)?;
    let mut seen = vec![Seen::default(); reading.names.len()];
    while let Some(record) = reading.next()? {
        for (seen, field) in seen.iter_mut().zip(record.fields()) {
            seen.look(field);
        }
    }
    let mut columns = Vec::with_capacity(seen.len());
    for (name, seen) in reading.names.iter().zip(&seen) {
        columns.push(Filling::of(seen).map_err(|source| ReadError::Column {
            path: path.to_path_buf(),
            column: name.clone(),
            source,
        })?);
    }
    let mut reading = Reading::open(path)?;
    if reading.names.len() != columns.len() {
        return Err(reading.error(CsvError::Changed));
    }
    let names = reading.names.clone();
    while let Some((record, line)) = reading.next_line()? {
        for ((filling, field), name) in columns.iter_mut().zip(record.fields()).zip(&names) {
            let filled = filling.push(field, gaps, name);
            filled.map_err(|source| ReadError::Line {
                path: path.to_path_buf(),
                line,
                source,
            })?;
        }
    }
    let columns = names.into_iter().zip(columns).map(|(label, filling)| {
        let (values, missing) = filling.finish();
        let column = Column {
            file: Arc::clone(&file),
            label,
            values,
        };
        with_gaps(column, &missing, gaps)
    });
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    Ok(Table {
        file,
        columns: joined(columns)?,
        axes: None,
    })
}

fn with_gaps(column: Column, missing: &[bool], gaps: Gaps) -> Result<Column, ReadError> {
    let Values::Numbers(numbers) = &column.values else {
        return Ok(column);
    };
    let numbers = filled(numbers.clone(), missing, gaps);
    let numbers = numbers.map_err(|error| column.error(error))?;
    let values = Values::Numbers(numbers);
    Ok(Column { values, ..column })
}

/// `NAME[0]`, `NAME[1]` and so on are one column of several numbers.
fn joined(columns: Vec<Column>) -> Result<Vec<Column>, ReadError> {
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
        let parts = channels.iter().map(Column::numbers);
        let parts = parts.collect::<Result<Vec<_>, _>>()?;
        let numbers = beside(&parts);
        let Some(first) = channels.first() else {
            continue;
        };
        let numbers = numbers.map_err(|error| first.error(error))?;
        whole.push(Column {
            file: Arc::clone(&first.file),
            label: name,
            values: Values::Numbers(numbers),
        });
    }
    Ok(whole)
}

/// A file under way, its first line read.
struct Reading<'a, R> {
    path: &'a Path,
    records: Records<R>,
    names: Vec<String>,
}

impl<'a> Reading<'a, BufReader<File>> {
    fn open(path: &'a Path) -> Result<Self, ReadError> {
        let file = File::open(path).map_err(|error| ReadError::file(path, error))?;
        Self::new(path, BufReader::with_capacity(1 << 18, file))
    }
}

impl<'a, R: Read + std::io::BufRead> Reading<'a, R> {
    fn new(path: &'a Path, source: R) -> Result<Self, ReadError> {
        let mut reading = Self {
            path,
            records: Records::new(source),
            names: Vec::new(),
        };
        let names = match reading.record()? {
            Some(names) => names.fields().map(|field| field.text.to_owned()).collect(),
            None => return Err(reading.error(CsvError::Empty)),
        };
        reading.names = names;
        let mut seen = HashSet::new();
        if let Some(name) = reading.names.iter().find(|name| !seen.insert(*name)) {
            return Err(ReadError::Column {
                path: path.to_path_buf(),
                column: name.clone(),
                source: ColumnError::Twice,
            });
        }
        Ok(reading)
    }

    fn next(&mut self) -> Result<Option<Record<'_>>, ReadError> {
        Ok(self.next_line()?.map(|(record, _)| record))
    }

    /// A record with its line.
    fn next_line(&mut self) -> Result<Option<(Record<'_>, u64)>, ReadError> {
        let expected = self.names.len();
        let path = self.path;
        let Some((record, line)) = self.record_line()? else {
            return Ok(None);
        };
        let found = record.fields().len();
        if found != expected {
            let source = CsvError::Fields { expected, found };
            let path = path.to_path_buf();
            return Err(ReadError::Line { path, line, source });
        }
        Ok(Some((record, line)))
    }

    fn record(&mut self) -> Result<Option<Record<'_>>, ReadError> {
        Ok(self.record_line()?.map(|(record, _)| record))
    }

    fn record_line(&mut self) -> Result<Option<(Record<'_>, u64)>, ReadError> {
        let path = self.path;
        self.records.next().map_err(|(line, error)| match error {
            CsvError::Io(error) => ReadError::file(path, error),
            source => {
                let path = path.to_path_buf();
                ReadError::Line { path, line, source }
            }
        })
    }

    fn error(&self, source: CsvError) -> ReadError {
        ReadError::Line {
            path: self.path.to_path_buf(),
            line: 1,
            source,
        }
    }
}

/// Why a line of csv is not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CsvError {
    /// There is no first line.
    #[error("there have to be the names of the columns, and there is nothing")]
    Empty,
    /// Another number of fields than the first line has.
    #[error("has {found} fields, and the first line names {expected} columns")]
    Fields {
        /// Columns.
        expected: usize,
        /// Fields.
        found: usize,
    },
    /// A quote is not closed.
    #[error("a field in quotes does not end")]
    Unclosed,
    /// Something stands behind a closing quote.
    #[error("a field goes on behind its closing quote; a quote inside is written twice")]
    Behind,
    /// Bytes that are no UTF-8.
    #[error("is no UTF-8; save the file as UTF-8")]
    Encoding,
    /// More bytes than a line may have.
    #[error("is longer than 64 MiB")]
    Long,
    /// A number that is missing.
    #[error(
        "{column} has no value; give it one, leave the column out, or store NaN with --missing nan"
    )]
    Missing {
        /// The column.
        column: String,
    },
    /// The file is another than it was.
    #[error("the file changed while it was read")]
    Changed,
    /// The file cannot be read.
    #[error("cannot be read")]
    Io(#[from] std::io::Error),
}
