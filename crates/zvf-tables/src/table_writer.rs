//! Tables of a result that comes in batches.

#[cfg(feature = "arrow")]
use std::collections::HashMap;
use std::{collections::HashSet, fmt, hash::BuildHasher, io::Write as _, path::PathBuf};

use zvf::{Column, ObjectGroup, QueryResult};

#[cfg(feature = "arrow")]
use crate::arrow::ArrowFile;
#[cfg(feature = "parquet")]
use crate::parquet::ParquetFile;
#[cfg(feature = "arrow")]
use crate::record_batch::metadata;
use crate::{
    FileError, FileFault, FileFormat, StoreDescription,
    csv::CsvFile,
    table::{
        OutputFile, OutputTable, WrittenFiles, level_names,
        output_file::SIDECARS,
        staged::{Sink, Staged},
    },
};

/// A writer of the files of a table: rows of vertices, and the tables beside them.
///
/// The files appear when [`finish`](Self::finish) succeeds. A writer that is dropped leaves none.
pub struct TableWriter {
    staged: Staged,
    form: TableForm,
    vertices: Option<TableFile>,
    links: Option<TableFile>,
    objects: Option<TableFile>,
    /// Number of paths in earlier batches.
    parts: i64,
}

/// The form that all tables of a result have.
struct TableForm {
    format: FileFormat,
    description: StoreDescription,
    /// Levels of the result.
    level: String,
    #[cfg(feature = "arrow")]
    metadata: HashMap<String, String>,
    #[cfg(feature = "arrow")]
    is_whole: bool,
}

/// A table that is being written.
enum TableFile {
    Csv(Box<CsvFile>),
    #[cfg(feature = "arrow")]
    Arrow(Box<ArrowFile>),
    #[cfg(feature = "parquet")]
    Parquet(Box<ParquetFile>),
}

impl fmt::Debug for TableWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("TableWriter");
        shown.field("staged", &self.staged).finish_non_exhaustive()
    }
}

impl TableWriter {
    /// Creates the writer of a [table](FileFormat::is_table) for a result that comes in batches.
    pub fn new(file: &OutputFile, description: &StoreDescription) -> Self {
        Self {
            staged: Staged::of_output(file),
            form: TableForm {
                format: file.format(),
                description: description.clone(),
                level: String::new(),
                #[cfg(feature = "arrow")]
                metadata: HashMap::new(),
                #[cfg(feature = "arrow")]
                is_whole: false,
            },
            vertices: None,
            links: None,
            objects: None,
            parts: 0,
        }
    }

    /// Writes a whole result.
    pub(crate) fn write_whole(
        mut self,
        result: &QueryResult,
        siblings: &HashSet<PathBuf, impl BuildHasher>,
    ) -> Result<WrittenFiles, FileError> {
        #[cfg(feature = "arrow")]
        {
            self.form.is_whole = true;
        }
        self.write(result)?;
        let attributes = std::mem::take(&mut self.form.description.group);
        self.finish_beside(&result.groups, &attributes, siblings)
    }

    /// Writes the next batch. All batches have the same columns.
    ///
    /// # Errors
    ///
    /// [`FileError`] if the format cannot hold the batch, or a file cannot be written.
    pub fn write(&mut self, batch: &QueryResult) -> Result<(), FileError> {
        let is_first = self.vertices.is_none();
        if is_first {
            self.form.level = level_names(batch);
            #[cfg(feature = "arrow")]
            {
                self.form.metadata = metadata(batch, &self.form.description);
            }
        }
        if is_first || !batch.positions.is_empty() {
            let table =
                OutputTable::vertices_after(batch, self.parts).map_err(FileFault::of_result)?;
            self.form
                .add(&self.staged, &mut self.vertices, None, &table)?;
        }
        let parts = batch.parts.as_ref().map_or(0, |parts| parts.objects.len());
        let parts = i64::try_from(parts).unwrap_or(i64::MAX);
        self.parts = self.parts.saturating_add(parts);
        let [links, objects, ..] = SIDECARS;
        for (part, table, file) in [
            (links, OutputTable::links(batch), &mut self.links),
            (objects, OutputTable::objects(batch), &mut self.objects),
        ] {
            if let Some(table) = table.map_err(FileFault::of_result)? {
                self.form.add(&self.staged, file, Some(part), &table)?;
            }
        }
        Ok(())
    }

    /// Writes the groups of the result and their attributes, and gives the files their names.
    ///
    /// # Errors
    ///
    /// [`FileError`] if a file cannot be written.
    pub fn finish(
        self,
        groups: &[ObjectGroup],
        attributes: &[Column],
    ) -> Result<WrittenFiles, FileError> {
        self.finish_beside(groups, attributes, &HashSet::<PathBuf>::new())
    }

    /// Completes the files. Of an earlier result, `siblings` are not removed.
    fn finish_beside(
        mut self,
        groups: &[ObjectGroup],
        attributes: &[Column],
        siblings: &HashSet<PathBuf, impl BuildHasher>,
    ) -> Result<WrittenFiles, FileError> {
        let mut of_groups = [None, None];
        for ((file, table), part) in of_groups
            .iter_mut()
            .zip([
                OutputTable::groups(groups),
                OutputTable::group_attributes(attributes),
            ])
            .zip(SIDECARS.into_iter().skip(2))
        {
            if let Some(table) = table.map_err(FileFault::of_result)? {
                self.form.add(&self.staged, file, Some(part), &table)?;
            }
        }
        let [members, of_each] = of_groups;
        let beside = [self.links, self.objects, members, of_each];
        if let Some(vertices) = self.vertices {
            vertices.finish(&mut self.staged, None)?;
        }
        for (file, part) in beside.into_iter().zip(SIDECARS) {
            match file {
                Some(file) => file.finish(&mut self.staged, Some(part))?,
                None => self.staged.omit_sidecar(part),
            }
        }
        if self.form.format == FileFormat::Csv {
            match self.form.description.text(&self.form.level) {
                Some(text) => self.staged.write_beside("metadata.json", |sink| {
                    Ok(sink.write_all(format!("{text}\n").as_bytes())?)
                })?,
                None => self.staged.omit_beside("metadata.json"),
            }
        }
        self.staged.keep(siblings);
        self.staged.publish()
    }
}

impl TableForm {
    /// Writes the rows of a table to its file, which the first table creates.
    fn add(
        &self,
        staged: &Staged,
        file: &mut Option<TableFile>,
        part: Option<&str>,
        table: &OutputTable<'_>,
    ) -> Result<(), FileError> {
        let path = staged.path_of(part);
        let open = match file {
            Some(open) => open,
            None => {
                let sink = staged.create(path.clone())?;
                let made = self.create(sink, table);
                file.insert(made.map_err(|fault| fault.of_target(&path))?)
            }
        };
        open.write(table).map_err(|fault| fault.of_target(&path))
    }

    fn create(&self, sink: Sink, table: &OutputTable<'_>) -> Result<TableFile, FileFault> {
        Ok(match self.format {
            #[cfg(feature = "arrow")]
            FileFormat::Arrow => TableFile::Arrow(Box::new(ArrowFile::create(
                sink,
                table,
                self.metadata.clone(),
                self.is_whole,
            )?)),
            #[cfg(feature = "parquet")]
            FileFormat::Parquet => TableFile::Parquet(Box::new(ParquetFile::create(
                sink,
                table,
                self.metadata.clone(),
            )?)),
            FileFormat::Csv => TableFile::Csv(Box::new(CsvFile::create(sink, table)?)),
            _ => return Err(FileFault::NoTable),
        })
    }
}

impl TableFile {
    fn write(&mut self, table: &OutputTable<'_>) -> Result<(), FileFault> {
        match self {
            Self::Csv(file) => Ok(file.write(table)?),
            #[cfg(feature = "arrow")]
            Self::Arrow(file) => file.write(table),
            #[cfg(feature = "parquet")]
            Self::Parquet(file) => file.write(table),
        }
    }

    fn finish(self, staged: &mut Staged, part: Option<&str>) -> Result<(), FileError> {
        let sink: Result<_, FileFault> = match self {
            Self::Csv(file) => Ok(file.finish()),
            #[cfg(feature = "arrow")]
            Self::Arrow(file) => file.finish(),
            #[cfg(feature = "parquet")]
            Self::Parquet(file) => file.finish(),
        };
        let path = staged.path_of(part);
        staged.add(sink.map_err(|fault| fault.of_target(&path))?)
    }
}
