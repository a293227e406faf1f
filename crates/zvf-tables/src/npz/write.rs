//! npz: the interchange arrays, each a `.npy` stored in a zip file.

use std::{
    borrow::Cow,
    collections::HashSet,
    io::{self, Write},
};

use zip::{ZipWriter, write::SimpleFileOptions};
use zvf::{Column, ColumnValues, ErrorKind, QueryResult, Scope, numeric::Kind};
use zvf_format::numeric::{ByteOrder, NumericRows};

use zvf_dense::{NumpyDtype, npy::NpyHeader};
use zvf_model::attribute_name::stored_name;

use super::MASK;
use crate::{
    FileError, FileFault, StoreDescription,
    display::len_u64,
    npy,
    table::{
        level_names,
        staged::{Sink, Staged},
    },
};

/// Number of bytes that are checksummed and written together.
const BUFFER: usize = 1 << 16;

/// Maximum size of a column of text of fixed length, in bytes.
const MAX_TEXT_BYTES: u64 = 4 << 30;

pub(crate) fn write(
    result: &QueryResult,
    description: &StoreDescription,
    staged: &mut Staged,
) -> Result<Vec<String>, FileError> {
    staged.write(|sink| {
        let mut archive = NpzWriter {
            zip: ZipWriter::new(sink),
            names: HashSet::new(),
            buffer: Vec::with_capacity(BUFFER),
        };
        arrays(result, &mut archive)?;
        archive.attributes("group_attribute", &description.group)?;
        if let Some(text) = description.text(&level_names(result)) {
            let width = text.chars().count();
            archive.start("metadata", text_of(width), &[1])?;
            npy::write_text(&text, width, &mut archive)?;
        }
        archive.flush()?;
        archive.zip.finish().map_err(zip_fault)?;
        Ok(())
    })?;
    Ok(Vec::new())
}

fn arrays(result: &QueryResult, archive: &mut NpzWriter<'_>) -> Result<(), FileFault> {
    let positions = result
        .positions
        .view()
        .ok_or(FileFault::Broken("positions end inside a row"))?;
    archive.start(
        "positions",
        positions.dtype().kind(),
        &[positions.rows(), width(positions)],
    )?;
    archive.put(positions.as_bytes())?;
    if let Some(ids) = &result.row_ids {
        archive.u64s("row_ids", ids, &[ids.len()])?;
    }
    if let Some(ids) = &result.object_ids {
        archive.i64s("object_ids", ids.numbers())?;
    }
    if let Some(parts) = &result.parts {
        // Without paths there is still one offset.
        let offsets = if parts.offsets.is_empty() {
            &[0]
        } else {
            &parts.offsets[..]
        };
        archive.u64s("part_offsets", offsets, &[offsets.len()])?;
        archive.i64s("part_objects", &parts.objects)?;
    }
    if let Some(links) = &result.links {
        let width = usize::try_from(links.width).unwrap_or(usize::MAX);
        archive.u64s("links", &links.ends, &[links.len(), width])?;
    }
    for scope in Scope::ALL.into_iter().filter(|scope| scope.is_in_cells()) {
        archive.attributes(scope.name(), result.columns(scope))?;
    }
    let has_objects = result.object_ids.is_some() || result.parts.is_some();
    if has_objects || !result.objects.is_empty() {
        archive.i64s("objects", &result.objects)?;
        archive.attributes("object", &result.object)?;
    }
    for group in &result.groups {
        archive.i64s(&format!("group.{}", group.id), &group.members)?;
    }
    Ok(())
}

/// A zip file that is being written.
struct NpzWriter<'s> {
    zip: ZipWriter<&'s mut Sink>,
    names: HashSet<String>,
    /// Unwritten bytes of the current array.
    buffer: Vec<u8>,
}

impl Write for NpzWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.buffer.len().saturating_add(bytes.len()) > BUFFER {
            self.flush()?;
        }
        if bytes.len() > BUFFER {
            return self.zip.write(bytes);
        }
        self.buffer.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.zip.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

/// Returns the name of an attribute as part of that of an array. Names that are no part of a path, or
/// that end as that of a mask, are written as a store has them.
pub(super) fn member_name(name: &str) -> Cow<'_, str> {
    if name.contains(['/', '\\', '\0']) || name.ends_with(MASK) {
        stored_name(name)
    } else {
        name.into()
    }
}

impl NpzWriter<'_> {
    /// Starts an array; its data follows.
    fn start(
        &mut self,
        name: &str,
        dtype: impl Into<NumpyDtype>,
        shape: &[usize],
    ) -> Result<(), FileFault> {
        // Unpacking the file must not write outside of the target folder.
        if name.contains(['/', '\\', '\0']) {
            return Err(FileFault::Name(name.to_owned()));
        }
        if !self.names.insert(name.to_owned()) {
            return Err(FileFault::TwoColumns(name.to_owned()));
        }
        self.flush()?;
        // As numpy does: not compressed, and with 64-bit sizes.
        let options = SimpleFileOptions::default()
            .compression_method(zip::CompressionMethod::Stored)
            .large_file(true);
        let file = self.zip.start_file(format!("{name}.npy"), options);
        file.map_err(zip_fault)?;
        let shape: Vec<u64> = shape.iter().copied().map(len_u64).collect();
        self.put(&NpyHeader::encode(&dtype.into(), &shape))
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), FileFault> {
        Ok(self.write_all(bytes)?)
    }

    fn i64s(&mut self, name: &str, values: &[i64]) -> Result<(), FileFault> {
        self.start(name, Kind::Int64, &[values.len()])?;
        Ok(npy::write_i64s(values.iter().copied(), self)?)
    }

    /// Writes signed numbers, which numpy accepts as indices. Row numbers fit.
    fn u64s(&mut self, name: &str, values: &[u64], shape: &[usize]) -> Result<(), FileFault> {
        self.start(name, Kind::Int64, shape)?;
        let values = values
            .iter()
            .map(|value| i64::try_from(*value))
            .map(|value| value.unwrap_or(i64::MAX));
        Ok(npy::write_i64s(values, self)?)
    }

    fn attributes(&mut self, scope: &str, columns: &[Column]) -> Result<(), FileFault> {
        for column in columns {
            let name = format!("{scope}.{}", member_name(&column.name));
            let is_marked = match &column.values {
                ColumnValues::Numeric(rows) => {
                    let rows = rows
                        .view()
                        .ok_or(FileFault::Broken("an attribute ends inside a row"))?;
                    self.numbers(&name, rows, column)?;
                    // A store tells an object without a value from one whose value is NaN.
                    let has_nan = rows.dtype().kind().nan().is_some() && scope != "object";
                    !has_nan && column.nulls.is_some()
                }
                ColumnValues::Dictionary { codes, words } => {
                    self.words(&name, codes, words, column)?;
                    // Empty text is a missing value unless the column has empty text.
                    let mut rows = codes.iter().enumerate();
                    rows.any(|(row, code)| word(words, *code).is_empty() && !column.is_null(row))
                }
            };
            if is_marked {
                let rows = column.values.len();
                self.start(&format!("{name}.missing"), Kind::Bool, &[rows])?;
                for row in 0..rows {
                    self.put(&[u8::from(column.is_null(row))])?;
                }
            }
        }
        Ok(())
    }

    fn numbers(
        &mut self,
        name: &str,
        rows: NumericRows<'_>,
        column: &Column,
    ) -> Result<(), FileFault> {
        let kind = rows.dtype().kind();
        let shape = [rows.rows(), width(rows)];
        let shape = if shape[1] == 1 { &shape[..1] } else { &shape };
        self.start(name, kind, shape)?;
        let bytes = rows.as_bytes();
        if kind == Kind::Bool {
            // Stores accept any byte but 0 as true; numpy requires 1.
            for byte in bytes {
                self.put(&[u8::from(*byte != 0)])?;
            }
            return Ok(());
        }
        let (Some(nan), Some(_)) = (kind.nan(), &column.nulls) else {
            return self.put(bytes);
        };
        let row_size = kind.size().saturating_mul(width(rows)).max(1);
        let none = nan.repeat(width(rows));
        for (row, bytes) in bytes.chunks_exact(row_size).enumerate() {
            self.put(if column.is_null(row) { &none } else { bytes })?;
        }
        Ok(())
    }

    fn words(
        &mut self,
        name: &str,
        codes: &[u32],
        words: &[String],
        column: &Column,
    ) -> Result<(), FileFault> {
        let rows = codes.iter().copied().enumerate();
        let widths: Vec<usize> = words.iter().map(|word| word.chars().count()).collect();
        let used = rows
            .clone()
            .filter(|(row, _)| !column.is_null(*row))
            .filter_map(|(_, code)| widths.get(usize::try_from(code).ok()?));
        // numpy has no text type of length 0.
        let width = used.copied().max().unwrap_or(0).max(1);
        let bytes = width.saturating_mul(4).saturating_mul(codes.len());
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        if bytes > MAX_TEXT_BYTES {
            let column = name.to_owned();
            return Err(FileFault::Text { column, bytes });
        }
        self.start(name, text_of(width), &[codes.len()])?;
        for (row, code) in rows {
            let is_missing = column.is_null(row);
            let text = if is_missing { "" } else { word(words, code) };
            npy::write_text(text, width, self)?;
        }
        Ok(())
    }
}

fn word(words: &[String], code: u32) -> &str {
    let word = usize::try_from(code).ok().and_then(|code| words.get(code));
    word.map_or("", String::as_str)
}

fn width(rows: NumericRows<'_>) -> usize {
    usize::try_from(rows.columns().get()).unwrap_or(usize::MAX)
}

/// Converts an error of the zip library.
fn zip_fault(error: zip::result::ZipError) -> FileFault {
    match error {
        zip::result::ZipError::Io(error) => error.into(),
        error => FileFault::library(ErrorKind::Unsupported, "npz cannot be written", error),
    }
}

/// Returns the type of text of `width` characters.
fn text_of(width: usize) -> NumpyDtype {
    NumpyDtype::Unicode {
        width: u32::try_from(width).unwrap_or(u32::MAX),
        order: ByteOrder::Little,
    }
}
