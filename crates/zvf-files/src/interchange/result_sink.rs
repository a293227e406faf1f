//! Files that are written in batches.

use std::fmt;

use zvf::{Column, LevelUse, ObjectGroup, QueryResult};
use zvf_tables::{
    FileError, FileFault, FileFormat, OutputFile, Staged, StoreDescription, TableWriter,
    WrittenFiles, check_result,
};

use crate::{
    GroupTables, ResultWriter, ply::PlyWriter, unit_writer::UnitConversion,
    voxel_grid::replace_grid,
};

/// A file that is written in batches.
pub struct ResultSink {
    target: BatchTarget,
    conversion: Option<UnitConversion>,
    left_out: Option<String>,
}

impl fmt::Debug for ResultSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResultSink").finish_non_exhaustive()
    }
}

/// The writer of a format.
enum BatchTarget {
    /// A format of `zvf-files`.
    Field(Box<dyn ResultWriter>),
    Ply {
        writer: Box<PlyWriter>,
        description: Box<StoreDescription>,
        staged: Staged,
    },
    Table(Box<TableWriter>),
}

/// The parts of a result that follow its batches.
#[derive(Clone, Copy, Debug, Default)]
pub struct ResultTables<'a> {
    /// Groups of the objects.
    pub groups: &'a [ObjectGroup],
    /// Attributes of groups.
    pub group: &'a [Column],
    /// The levels of the result, if there are several.
    pub levels: &'a [LevelUse],
}

impl ResultSink {
    /// Creates the file, of a [format](FileFormat::is_in_batches) that is written in batches, or of a
    /// [table](FileFormat::is_table).
    ///
    /// # Errors
    ///
    /// [`FileError`] if the format cannot hold it, or a file cannot be written.
    pub fn create(file: &OutputFile, description: &StoreDescription) -> Result<Self, FileError> {
        let requested = UnitConversion::requested(file, description);
        let (conversion, described) = requested.map_err(|fault| fault.of(file.path()))?.unzip();
        let description = described.as_ref().unwrap_or(description);
        let left_out = file.format().crs_left_out(description.crs.as_ref());
        let regridded = file.grid().map(|grid| {
            let mut description = description.clone();
            replace_grid(&mut description.headers, grid);
            description
        });
        let description = regridded.as_ref().unwrap_or(description);
        let target = match file.format() {
            FileFormat::Ply => BatchTarget::Ply {
                writer: Box::new(PlyWriter::new(file.path())),
                description: Box::new(description.clone()),
                staged: Staged::of_output(file),
            },
            format if format.is_table() => {
                BatchTarget::Table(Box::new(TableWriter::new(file, description)))
            }
            _ => BatchTarget::Field(crate::create(file.path(), description)?),
        };
        Ok(Self {
            target,
            conversion,
            left_out,
        })
    }

    /// Writes a batch.
    ///
    /// # Errors
    ///
    /// [`FileError`] if the format cannot hold it, or a file cannot be written.
    pub fn write(&mut self, batch: &QueryResult) -> Result<(), FileError> {
        if batch.first_row == 0 {
            check_result(batch).map_err(FileFault::of_result)?;
        }
        let mut converted;
        let batch = match &mut self.conversion {
            None => batch,
            Some(conversion) => {
                converted = batch.clone();
                conversion
                    .convert(&mut converted)
                    .map_err(FileFault::of_result)?;
                &converted
            }
        };
        match &mut self.target {
            BatchTarget::Field(writer) => Ok(writer.write(batch)?),
            BatchTarget::Ply { writer, .. } => writer.write(batch),
            BatchTarget::Table(writer) => writer.write(batch),
        }
    }

    /// Tells that the objects of all batches up to now are complete.
    ///
    /// # Errors
    ///
    /// [`FileError`] if the format cannot hold it, or a file cannot be written.
    pub fn end_objects(&mut self) -> Result<(), FileError> {
        match &mut self.target {
            BatchTarget::Field(writer) => Ok(writer.end_objects()?),
            BatchTarget::Ply { .. } | BatchTarget::Table(_) => Ok(()),
        }
    }

    /// Completes the file.
    ///
    /// # Errors
    ///
    /// [`FileError`] if the format cannot hold it, or a file cannot be written.
    pub fn finish(self, tables: &ResultTables<'_>) -> Result<WrittenFiles, FileError> {
        let mut written = match self.target {
            BatchTarget::Field(writer) => {
                let tables = GroupTables {
                    groups: tables.groups.to_vec(),
                    columns: tables.group.to_vec(),
                };
                let written = writer.finish(&tables)?;
                let mut files = WrittenFiles::default();
                files.files = written.files;
                files.left_out = written.left_out;
                files.notes = written.notes;
                files
            }
            BatchTarget::Ply {
                writer,
                description,
                staged,
            } => {
                let ResultTables { groups, levels, .. } = *tables;
                writer.finish(&description, groups, levels, staged)?
            }
            BatchTarget::Table(writer) => writer.finish(tables.groups, tables.group)?,
        };
        written.left_out.extend(self.left_out);
        let conversion = self.conversion.into_iter();
        written
            .left_out
            .extend(conversion.flat_map(UnitConversion::into_left_out));
        Ok(written)
    }
}
