//! Tables of points that are read in batches.

use std::error::Error;

use zvf::{AxisSpec, Design, Geometry, GeometrySource, LinkNumbering};

#[cfg(feature = "arrow")]
use std::path::Path;

#[cfg(feature = "arrow")]
use arrow_array::RecordBatch;
#[cfg(feature = "arrow")]
use arrow_schema::{ArrowError, SchemaRef};

#[cfg(feature = "parquet")]
use crate::parquet::ParquetTable;
use crate::{
    AttributeRename, FileError, FileFormat, NpzStream, StoreDescription, WholeFile,
    csv::{CsvColumns, CsvRows},
    table::{
        GeometryReadOptions, InputFile, MissingPolicy,
        arrays::{self, InterchangeArrays},
        column::NullPolicy,
        contained::contained,
        input_table::{self, InputTable},
        rename::Renaming,
    },
    table_files::{add_tables_beside, read_description},
};
#[cfg(feature = "arrow")]
use crate::{arrow, record_batch::TableBuilder, table::TableReadOptions};

/// A table, or the arrays of an npz file, that is read in batches.
#[derive(Debug)]
#[non_exhaustive]
pub enum TableStream {
    /// Arrays of an npz file.
    Npz(Box<NpzStream>),
    /// Rows of a table of points.
    Rows(Box<RowStream>),
}

/// Rows of a table of points.
pub struct RowStream {
    input: InputFile,
    options: GeometryReadOptions,
    table: TableSource,
    rows: Option<TableRows>,
    tables: Geometry,
    axes: Option<Vec<String>>,
    crs: Option<serde_json::Value>,
    description: StoreDescription,
    notes: Vec<String>,
    bytes: u64,
}

/// A table whose columns are known.
enum TableSource {
    Csv(CsvColumns),
    #[cfg(feature = "arrow")]
    Arrow(SchemaRef),
    #[cfg(feature = "parquet")]
    Parquet(ParquetTable),
}

/// Rows that are being read.
enum TableRows {
    Csv(CsvRows),
    #[cfg(feature = "arrow")]
    Batches(Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + Send>),
}

impl core::fmt::Debug for RowStream {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let mut shown = f.debug_struct("RowStream");
        shown.field("input", &self.input).finish_non_exhaustive()
    }
}

impl TableStream {
    /// Opens a file to be read in batches, or returns the reason why it has to be read whole. A file
    /// that takes less than `min` bytes in memory may be one of the reasons.
    ///
    /// # Errors
    ///
    /// Returns [`FileError`] if the file is damaged.
    pub fn open(
        input: &InputFile,
        options: &GeometryReadOptions,
        min: u64,
    ) -> Result<Result<Self, WholeFile>, FileError> {
        if input.format() == FileFormat::Npz {
            let stream = NpzStream::open(input, options)?;
            return Ok(stream.map(|stream| Self::Npz(Box::new(stream))));
        }
        let stream = contained(input.path(), || RowStream::open(input, options, min))?;
        Ok(stream.map(|stream| Self::Rows(Box::new(stream))))
    }

    /// Returns the description of the store that the file comes from.
    pub fn description(&self) -> &StoreDescription {
        match self {
            Self::Npz(stream) => stream.description(),
            Self::Rows(stream) => &stream.description,
        }
    }

    /// Returns the names of the axes, if the file has them.
    pub fn axes(&self) -> Option<&[String]> {
        match self {
            Self::Npz(_) => None,
            Self::Rows(stream) => stream.axes.as_deref(),
        }
    }

    /// Returns differences between the file and the geometry, one line each.
    pub fn notes(&self) -> &[String] {
        match self {
            Self::Npz(_) => &[],
            Self::Rows(stream) => &stream.notes,
        }
    }

    /// Returns the size of all rows in memory in bytes.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Npz(stream) => stream.bytes(),
            Self::Rows(stream) => stream.bytes,
        }
    }

    /// Completes a design: what the design leaves open is taken from the file.
    pub fn complete(&self, design: &mut Design) {
        self.description().complete(design, self.axes());
        if let (None, Some(names)) = (&design.axes, self.axes()) {
            design.axes = Some(names.iter().map(AxisSpec::new).collect());
        }
        if let (None, Self::Rows(stream)) = (&design.crs, self) {
            design.crs = stream.crs.clone().map(Into::into);
        }
    }
}

impl RowStream {
    fn open(
        input: &InputFile,
        options: &GeometryReadOptions,
        min: u64,
    ) -> Result<Result<Self, WholeFile>, FileError> {
        let kind = options.kind;
        if kind.is_linked() {
            return Ok(Err(WholeFile::Kind(kind.name())));
        }
        if kind.is_paths() {
            return Ok(Err(WholeFile::TablePaths));
        }
        if options.missing == MissingPolicy::Nan {
            return Ok(Err(WholeFile::Missing));
        }
        let nulls = NullPolicy::of_rows(options.missing);
        let (table, rows, row, names) = match input.format() {
            FileFormat::Csv => {
                if is_small(input, min) {
                    return Ok(Err(WholeFile::Small));
                }
                let columns = CsvColumns::infer(input.path(), nulls)?;
                let (rows, row) = columns.size();
                let names = columns.names().to_vec();
                (TableSource::Csv(columns), rows, row, names)
            }
            #[cfg(feature = "arrow")]
            FileFormat::Arrow => {
                let (reader, rows) = arrow::open(input.path())?;
                let schema = reader.schema();
                let row = row_size(input.path(), &schema)?;
                let names = labels(&schema);
                (TableSource::Arrow(schema), rows, row, names)
            }
            #[cfg(feature = "parquet")]
            FileFormat::Parquet => {
                let table = ParquetTable::open(input.path())?;
                let row = row_size(input.path(), &table.schema)?;
                let (rows, names) = (table.rows, labels(&table.schema));
                (TableSource::Parquet(table), rows, row, names)
            }
            _ => return Ok(Err(WholeFile::Format)),
        };
        // Values of fragments are compared within each object.
        if let Some(name) = names.iter().find(|name| name.starts_with("fragment.")) {
            return Ok(Err(WholeFile::Array(name.clone())));
        }
        let mut stream = Self {
            input: input.clone(),
            options: options.clone(),
            table,
            rows: None,
            tables: Geometry::new(zvf::NumericColumn::float64(1, [])),
            axes: None,
            crs: None,
            description: StoreDescription::default(),
            notes: Vec::new(),
            bytes: rows.saturating_mul(row),
        };
        // Without rows, for the types of the columns and the tables beside the file.
        let none = stream.rows()?.next(&stream, 0)?.0;
        let (mut arrays, renames) = stream.arrays(none)?;
        let mut renaming = Renaming::new(&renames);
        add_tables_beside(input, options, &mut arrays)?;
        let (described, _) = read_description(input)?;
        if let Some(described) = described {
            arrays.axes = arrays.axes.or_else(|| described.axis_names());
            arrays.description = described;
        }
        renaming.apply(&mut arrays);
        renaming.finish(input.path())?;
        let mut whole = arrays::assemble(arrays, options)?;
        let Ok(tables) = whole.geometry.take_tables().build() else {
            return Ok(Err(WholeFile::Inconsistent));
        };
        stream.tables = tables;
        stream.axes = whole.axes;
        stream.crs = whole.crs;
        stream.description = whole.description;
        stream.notes = whole.notes;
        Ok(Ok(stream))
    }

    /// Returns the arrays of rows, and the renames that are left.
    fn arrays(
        &self,
        mut table: InputTable,
    ) -> Result<(InterchangeArrays, Vec<AttributeRename>), FileError> {
        let renames = table.rename_structure(&self.options.renames);
        let arrays = input_table::vertices(table, &self.options)?;
        Ok((arrays, renames))
    }

    /// Starts at the first row.
    fn rows(&self) -> Result<TableRows, FileError> {
        Ok(match &self.table {
            TableSource::Csv(columns) => TableRows::Csv(columns.rows()?),
            #[cfg(feature = "arrow")]
            TableSource::Arrow(_) => {
                let (reader, _) = arrow::open(self.input.path())?;
                TableRows::Batches(Box::new(reader))
            }
            #[cfg(feature = "parquet")]
            TableSource::Parquet(table) => TableRows::Batches(Box::new(table.batches()?)),
        })
    }

    #[cfg(feature = "arrow")]
    fn builder(&self) -> Result<TableBuilder, FileError> {
        let schema = match &self.table {
            TableSource::Csv(_) => return Err(crate::FileFault::NoTable.of(self.input.path())),
            TableSource::Arrow(schema) => schema,
            #[cfg(feature = "parquet")]
            TableSource::Parquet(table) => &table.schema,
        };
        TableBuilder::new(self.input.path(), schema, read_options(&self.options))
    }
}

impl TableRows {
    /// Reads about this many rows. Returns them with their number.
    #[cfg_attr(
        not(feature = "arrow"),
        expect(unused_variables, reason = "only batches of Arrow need the schema")
    )]
    fn next(&mut self, of: &RowStream, rows: usize) -> Result<(InputTable, usize), FileError> {
        match self {
            Self::Csv(reader) => reader.next(rows),
            #[cfg(feature = "arrow")]
            Self::Batches(batches) => {
                let mut table = of.builder()?;
                let mut read = 0_usize;
                while read < rows
                    && let Some(batch) = batches.next()
                {
                    let batch = batch.map_err(|source| arrow::in_file(of.input.path(), source))?;
                    read = read.saturating_add(batch.num_rows());
                    table.push(&batch)?;
                }
                Ok((table.finish()?, read))
            }
        }
    }
}

impl GeometrySource for TableStream {
    fn next(&mut self, vertices: usize) -> Result<Option<Geometry>, Box<dyn Error + Send + Sync>> {
        let stream = match self {
            Self::Npz(stream) => return stream.next(vertices),
            Self::Rows(stream) => stream,
        };
        let started = stream.rows.take();
        let (rows, (table, read)) = contained(stream.input.path(), || {
            let mut rows = match started {
                Some(rows) => rows,
                None => stream.rows()?,
            };
            let read = rows.next(stream, vertices.max(1))?;
            Ok((rows, read))
        })?;
        stream.rows = Some(rows);
        if read == 0 {
            return Ok(None);
        }
        let (mut arrays, renames) = stream.arrays(table)?;
        Renaming::new(&renames).apply(&mut arrays);
        let input = arrays::assemble(arrays, &stream.options)?;
        Ok(Some(input.geometry.build()?))
    }

    fn rewind(&mut self) -> Result<(), Box<dyn Error + Send + Sync>> {
        match self {
            Self::Npz(stream) => stream.rewind(),
            Self::Rows(stream) => {
                stream.rows = None;
                Ok(())
            }
        }
    }

    fn link_numbering(&self) -> LinkNumbering {
        match self {
            Self::Npz(stream) => stream.link_numbering(),
            Self::Rows(_) => LinkNumbering::Batch,
        }
    }

    fn tables(&self) -> Result<Geometry, Box<dyn Error + Send + Sync>> {
        match self {
            Self::Npz(stream) => stream.tables(),
            Self::Rows(stream) => Ok(stream.tables.clone()),
        }
    }
}

#[cfg(feature = "arrow")]
fn read_options(options: &GeometryReadOptions) -> TableReadOptions {
    TableReadOptions {
        nulls: NullPolicy::of_rows(options.missing),
        memory: options.memory,
    }
}

/// Returns the size in memory of a row of a table with this schema.
#[cfg(feature = "arrow")]
fn row_size(path: &Path, schema: &SchemaRef) -> Result<u64, FileError> {
    let options = TableReadOptions {
        nulls: NullPolicy::Reject,
        memory: None,
    };
    Ok(TableBuilder::new(path, schema, options)?.row_size())
}

#[cfg(feature = "arrow")]
fn labels(schema: &SchemaRef) -> Vec<String> {
    let fields = schema.fields().iter();
    fields.map(|field| field.name().clone()).collect()
}

/// Returns whether a file of text takes less than `min` bytes in memory by its size: a field takes two
/// bytes or more in the file, and text of numbers is compressed to a fifth.
fn is_small(input: &InputFile, min: u64) -> bool {
    let path = input.path();
    let is_compressed = path
        .extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("gz"));
    let growth = if is_compressed { 20 } else { 4 };
    let size = std::fs::metadata(path).map_or(0, |file| file.len());
    size.saturating_mul(growth) < min
}
