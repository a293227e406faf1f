//! Files of tables, read and written. The crate documents their arrays and columns.

use std::{
    collections::HashSet,
    hash::BuildHasher,
    io::Write as _,
    path::{Path, PathBuf},
};

use zvf::{GeometryKind, QueryResult};

#[cfg(feature = "arrow")]
use crate::arrow;
#[cfg(feature = "parquet")]
use crate::parquet;
#[cfg(feature = "arrow")]
use crate::record_batch;
use crate::{
    AttributeRename, FileError, FileFault, FileFormat, StoreDescription, TableWriter, csv, npz,
    table::{
        GeometryInput, GeometryReadOptions, InputFile, OutputFile, TableReadOptions, WrittenFiles,
        arrays::{self, InterchangeArrays},
        column::NullPolicy,
        contained::contained,
        input_table::{self, InputTable},
        rename::Renaming,
        staged::Staged,
    },
};

/// Reads the geometry of a table and of the tables beside it.
///
/// # Errors
///
/// Returns [`FileError`], which names the file and the line, column or array.
pub fn read(file: &InputFile, options: &GeometryReadOptions) -> Result<GeometryInput, FileError> {
    let (mut arrays, renames) = match file.format() {
        FileFormat::Npz => {
            let arrays = contained(file.path(), || npz::read(file, options))?;
            (arrays, options.renames.clone())
        }
        _ => read_tables(file, options)?,
    };
    let mut renaming = Renaming::new(&renames);
    renaming.apply(&mut arrays);
    renaming.finish(file.path())?;
    arrays::assemble(arrays, options)
}

/// Reads the table of vertices and, where they exist, the tables of links, objects and groups. Returns
/// them with the renames of attributes.
fn read_tables(
    file: &InputFile,
    options: &GeometryReadOptions,
) -> Result<(InterchangeArrays, Vec<AttributeRename>), FileError> {
    let (nulls, memory) = (NullPolicy::of_rows(options.missing), options.memory);
    let of_rows = TableReadOptions { nulls, memory };
    let (description, described) = read_description(file)?;
    let mut table = read_table(file, of_rows)?;
    if let Some(description) = &description
        && table.axes.is_none()
    {
        table.axes = description.axis_names();
    }
    let renames = table.rename_structure(&options.renames);
    let mut arrays = input_table::vertices(table, options)?;
    if let Some(description) = description {
        arrays.description = description;
    }
    add_tables_beside(file, options, &mut arrays)?;
    arrays.files.extend(described);
    Ok((arrays, renames))
}

/// Reads the tables of links, objects and groups beside that of vertices, where they exist.
pub(crate) fn add_tables_beside(
    file: &InputFile,
    options: &GeometryReadOptions,
    arrays: &mut InterchangeArrays,
) -> Result<(), FileError> {
    let (nulls, memory) = (NullPolicy::of_rows(options.missing), options.memory);
    let of_rows = TableReadOptions { nulls, memory };
    let nulls = NullPolicy::of_tables(options.missing);
    let of_objects = TableReadOptions { nulls, memory };
    arrays.files.push(file.path().to_path_buf());
    let links = options.links.clone().or_else(|| file.sidecar("links"));
    if let Some(links) = links {
        let path = links.path().to_path_buf();
        if !options.kind.is_linked() {
            return Err(FileFault::Links(options.kind.name()).of(&path));
        }
        input_table::add_links(read_table(&links, of_rows)?, arrays)?;
        arrays.files.push(path);
    }
    if let Some(objects) = file.sidecar("objects") {
        input_table::add_objects(read_table(&objects, of_objects)?, arrays)?;
        arrays.files.push(objects.path().to_path_buf());
    }
    if let Some(groups) = file.sidecar("groups") {
        input_table::add_groups(read_table(&groups, of_rows)?, arrays)?;
        arrays.files.push(groups.path().to_path_buf());
    }
    if let Some(groups) = file.sidecar("group_attributes") {
        input_table::add_group_attributes(read_table(&groups, of_rows)?, arrays)?;
        arrays.files.push(groups.path().to_path_buf());
    }
    Ok(())
}

/// Reads `NAME.metadata.json` beside a table of csv. Other formats hold the description.
pub(crate) fn read_description(
    file: &InputFile,
) -> Result<(Option<StoreDescription>, Option<PathBuf>), FileError> {
    let mut path = file.path().with_extension("metadata.json");
    if let Some(table) = file.path().file_stem().map(Path::new)
        && FileFormat::of_input(table) == Some(FileFormat::Csv)
    {
        // The name of a compressed table has two extensions.
        path = file
            .path()
            .with_file_name(table)
            .with_extension("metadata.json");
    }
    if file.format() != FileFormat::Csv || !path.is_file() {
        return Ok((None, None));
    }
    let text =
        std::fs::read_to_string(&path).map_err(|error| FileError::unreadable(&path, error))?;
    let description = StoreDescription::parse(&text)
        .map_err(|reason| FileFault::Description(reason).of(&path))?;
    Ok((Some(description), Some(path)))
}

/// Returns the kind of geometry that the description in or beside a table states, as files of results
/// have it. Reads no rows.
///
/// # Errors
///
/// Returns [`FileError`] if the file or its description is damaged.
pub fn stated_kind(file: &InputFile) -> Result<Option<GeometryKind>, FileError> {
    let description = contained(file.path(), || match file.format() {
        FileFormat::Csv => Ok(read_description(file)?.0),
        FileFormat::Npz => npz::read_description(file.path()),
        #[cfg(feature = "arrow")]
        FileFormat::Arrow => {
            let (reader, _) = arrow::open(file.path())?;
            record_batch::description(file.path(), &reader.schema())
        }
        #[cfg(feature = "parquet")]
        FileFormat::Parquet => {
            let table = parquet::ParquetTable::open(file.path())?;
            record_batch::description(file.path(), &table.schema)
        }
        _ => Ok(None),
    })?;
    Ok(description.and_then(|description| description.kind()))
}

pub(crate) fn read_table(
    file: &InputFile,
    options: TableReadOptions,
) -> Result<InputTable, FileError> {
    contained(file.path(), || match file.format() {
        FileFormat::Csv => csv::read_table(file.path(), options.nulls),
        #[cfg(feature = "arrow")]
        FileFormat::Arrow => arrow::read_table(file.path(), options),
        #[cfg(feature = "parquet")]
        FileFormat::Parquet => parquet::read_table(file.path(), options),
        format => Err(no_table(format).of(file.path())),
    })
}

/// Returns the fault of a format whose tables this build neither reads nor writes.
fn no_table(format: FileFormat) -> FileFault {
    if format.is_interchange() {
        FileFault::NotBuilt(format.extension())
    } else {
        FileFault::NoTable
    }
}

/// Writes a consistent query result with a description of its store to the file of a table, and the
/// files beside it. Of an earlier result, `siblings` are not removed.
///
/// Beside the result this holds two numbers per vertex of a path, one per end of a link, and the
/// buffer of the format: 65 536 rows for Arrow, about 16 MiB for Parquet.
///
/// # Errors
///
/// Returns [`FileError`] if the result does not fit the format or a file cannot be written.
/// No file has changed then, unless the final step, removing files of an earlier result and
/// renaming several finished ones, fails half way.
pub fn write(
    result: &QueryResult,
    description: &StoreDescription,
    file: &OutputFile,
    siblings: &HashSet<PathBuf, impl BuildHasher>,
) -> Result<WrittenFiles, FileError> {
    let format = file.format();
    if format.is_table() && format.is_built() {
        return TableWriter::new(file, description).write_whole(result, siblings);
    }
    if format != FileFormat::Npz {
        return Err(no_table(format).of(file.path()));
    }
    let mut staged = Staged::of_output(file);
    let left_out = npz::write(result, description, &mut staged)?;
    staged.keep(siblings);
    let mut written = staged.publish()?;
    written.left_out = left_out;
    Ok(written)
}

/// Writes `bytes` to a file, which appears when it is complete.
///
/// # Errors
///
/// Returns [`FileError`] if the file cannot be written.
pub fn write_bytes(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let mut staged = Staged::new(path);
    staged.write(|sink| Ok(sink.write_all(bytes)?))?;
    staged.publish().map(|_| ())
}

#[cfg(test)]
mod tests {
    use zvf::GeometryKind;

    use super::*;

    #[test]
    fn formats_of_a_field_are_no_tables() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.trk");
        let file = OutputFile::new(&path).unwrap();
        let description = StoreDescription::default();
        let written = write(
            &QueryResult::default(),
            &description,
            &file,
            &HashSet::new(),
        );
        assert!(matches!(written.unwrap_err().fault, FileFault::NoTable));
        assert!(!path.exists());
        std::fs::write(&path, b"TRACK").unwrap();
        let file = InputFile::new(&path).unwrap();
        let options = GeometryReadOptions::new(GeometryKind::Streamlines);
        let read = read(&file, &options);
        assert!(matches!(read.unwrap_err().fault, FileFault::NoTable));
    }
}
