//! Files of all formats, of tables and of fields.
//!
//! The extension of the file name selects the [`FileFormat`]. [`read`] accepts what [`write()`] writes,
//! so a query result becomes a store again without conversion. The arrays and columns of tables are
//! documented in [`zvf_tables`].

mod field;
mod per_object;
mod result_sink;

use std::{collections::HashSet, path::PathBuf};

use zvf::QueryResult;
use zvf_tables::{
    FileError, FileFault, FileFormat, GeometryInput, GeometryReadOptions, InputFile, OutputFile,
    Staged, StoreDescription, WrittenFiles, check_result, contained,
};

pub use field::{input_of, open_field};
pub use per_object::unowned;
pub use result_sink::{ResultSink, ResultTables};

use crate::{obj, unit_writer::UnitConversion};

/// Reads a file of geometry, and the tables beside a table.
///
/// # Errors
///
/// Returns [`FileError`], which names the file and the line, column or array.
pub fn read(file: &InputFile, options: &GeometryReadOptions) -> Result<GeometryInput, FileError> {
    if file.format().is_interchange() {
        return zvf_tables::read(file, options);
    }
    contained(file.path(), || field::read(file, options))
}

/// Writes a query result with a description of its store. `ply` holds only
/// comments of it, and `obj` nothing. If
/// the name of the file has a placeholder for an object, each object gets a file.
///
/// Beside the result this holds two numbers per vertex of a path, one per end of a link, and the
/// buffer of the format: 65 536 rows for Arrow, about 16 MiB for Parquet.
///
/// The files of the result replace those of an earlier one: tables of links, objects and groups
/// under its name that this result does not have are removed.
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
) -> Result<WrittenFiles, FileError> {
    check_result(result).map_err(FileFault::of_result)?;
    match file.of_objects() {
        Some(files) => per_object::write(result, description, file, files),
        None => write_one(result, description, file, &HashSet::new()),
    }
}

/// Writes a query result to one file, and the files beside it. Of an earlier result, `siblings`
/// are not removed.
fn write_one(
    result: &QueryResult,
    description: &StoreDescription,
    file: &OutputFile,
    siblings: &HashSet<PathBuf>,
) -> Result<WrittenFiles, FileError> {
    if !file.format().is_in_batches() && file.unit().is_some() {
        let requested = UnitConversion::requested(file, description);
        if let Some((mut conversion, described)) =
            requested.map_err(|fault| fault.of(file.path()))?
        {
            let mut converted = result.clone();
            conversion
                .convert(&mut converted)
                .map_err(FileFault::of_result)?;
            let file = file.clone().in_unit(None);
            let mut written = write_one(&converted, &described, &file, siblings)?;
            written.left_out.extend(conversion.into_left_out());
            return Ok(written);
        }
    }
    if file.format().is_in_batches() {
        let mut sink = ResultSink::create(file, description)?;
        sink.write(result)?;
        return sink.finish(&ResultTables {
            groups: &result.groups,
            group: &description.group,
            levels: &result.levels,
        });
    }
    if file.format() != FileFormat::Obj {
        return zvf_tables::write(result, description, file, siblings);
    }
    let mut staged = Staged::of_output(file);
    let mut left_out = obj::write(result, &mut staged)?;
    left_out.extend(FileFormat::Obj.crs_left_out(description.crs.as_ref()));
    let mut written = staged.publish()?;
    written.left_out = left_out;
    Ok(written)
}
