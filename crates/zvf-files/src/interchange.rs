//! File formats of geometry: each module reads and writes one format.
//!
//! The extension of the file name selects the [`FileFormat`]. [`read`] accepts what [`write()`] writes,
//! so a query result becomes a store again without conversion. All rows are written, in the order
//! of the result. Files appear under their names only when all of them are complete, so a run that
//! fails leaves earlier files untouched. They replace all files of an earlier result of that name.
//!
//! | format | files | read | written |
//! |---|---|---|---|
//! | `npz` | one, with the interchange arrays | yes | yes |
//! | `csv`, `arrow`, `parquet` | `NAME.csv` with one row per vertex; `NAME.links.csv`, `NAME.objects.csv`, `NAME.groups.csv` and `NAME.group_attributes.csv` where there are any | yes | yes |
//! | `ply`, `obj` | one, for rendering programs | by this crate | yes |
//! | `trk`, `tck`, `trx`, `swc`, `stl`, `las`, `laz`, `gii`, `glb`, `graphml`, `edgelist`, `geff`, `geoparquet` | one or several, see this crate | yes, but `glb` | yes, but graphs |
//!
//! # Arrays of npz
//!
//! | array | shape | content |
//! |---|---|---|
//! | `positions` | (vertices, axes) | coordinates |
//! | `row_ids` | (vertices,) | the address of each vertex in its store, if the query requests it |
//! | `object_ids` | (vertices,) | the object of each vertex |
//! | `part_offsets`, `part_objects` | (parts + 1,), (parts,) | paths: the first vertex of each, and its object |
//! | `links` | (links, ends) | rows of `positions` |
//! | `vertex.NAME`, `link.NAME`, `object.NAME` | one row per item | attributes |
//! | `fragment.NAME` | one row per vertex or object | attributes of the fragments in which objects are stored |
//! | `objects` | (objects,) | the ids to which the rows of `object.NAME` belong |
//! | `group.NUMBER`, `group.NAME` | (members,) | ids of objects |
//! | `group_attribute.NAME` | one row per group number, up to the largest | attributes of groups |
//! | `….missing` | one bool per row | true where an attribute has no value |
//! | `metadata` | (1,) | JSON text with axes, coordinate reference system, name and headers of the store |
//!
//! # Columns of tables
//!
//! Vertices have one column per axis, then `row_id` if the query requests it, for paths `part`, then `object_id`, then
//! `vertex.NAME` and `fragment.NAME`. When a table is read, the axes are the columns x, y, z and w,
//! the columns that the schema names, or the columns that the user names; a column without a scope
//! is an attribute of vertices. Consecutive rows with equal `part` and `object_id`
//! form one path.
//!
//! Links have `links`, the rows of their ends counted from 0, then `link.NAME`. Objects have
//! `object_id` and `object.NAME`; groups have `group` and `object_id`, one row per member; attributes
//! of groups have `group`, counted from 0, and `group.NAME`. In csv, a column of several channels is
//! `NAME[0]`, `NAME[1]`, …; in Arrow and Parquet it is a list of fixed size. The object ids -1 and -2
//! are [`NO_OBJECT`](zvf::NO_OBJECT) and [`SEVERAL_OBJECTS`](zvf::SEVERAL_OBJECTS).
//!
//! # Types
//!
//! Arrays and typed columns keep their type. A csv column takes the first type that fits all of
//! its fields: bool, int64 (uint64 where needed), float64, complex, text. A column with a scope is text
//! if all of its fields are quoted, unless the file quotes all fields.
//!
//! # Missing values
//!
//! | format | number | text |
//! |---|---|---|
//! | `csv` | an empty field | an empty field; empty text is `""` |
//! | `npz` | NaN; for integers and bools, true in the array `NAME.missing` | empty text; if the column has empty text, true in `NAME.missing` |
//! | `arrow`, `parquet` | null | null |
//! | `ply` | NaN | text is not written |

mod field;
mod keyed_table;
mod lossless;
mod per_object;
mod result_sink;

use std::{
    collections::HashSet,
    io::Write as _,
    path::{Path, PathBuf},
};

use zvf::QueryResult;

pub use field::{input_of, open_field};
pub use keyed_table::{KeyedTable, TableKey, read_keyed, read_keys};
pub use lossless::LosslessTarget;
pub use per_object::unowned;
pub use result_sink::{ResultSink, ResultTables};

#[cfg(feature = "arrow")]
use crate::arrow;
#[cfg(feature = "parquet")]
use crate::parquet;
use crate::{
    FileFormat, StoreDescription, csv, npz, obj,
    table::{
        GeometryInput, GeometryReadError, GeometryReadOptions, InputFile, OutputFile, Rename,
        ResultWriteError, TableReadOptions, WrittenFiles,
        arrays::{self, InterchangeArrays},
        column::NullPolicy,
        consistency,
        contained::contained,
        input_table::{self, InputTable},
        rename::Renaming,
        staged::Staged,
    },
};

/// Reads a file of geometry and the tables beside it.
///
/// # Errors
///
/// Returns [`GeometryReadError`], which names the file and the line, column or array.
pub fn read(
    file: &InputFile,
    options: &GeometryReadOptions,
) -> Result<GeometryInput, GeometryReadError> {
    if !file.format().is_interchange() {
        return contained(file.path(), || field::read(file, options));
    }
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
) -> Result<(InterchangeArrays, Vec<Rename>), GeometryReadError> {
    let (nulls, memory) = (NullPolicy::of_rows(options.missing), options.memory);
    let of_rows = TableReadOptions { nulls, memory };
    let nulls = NullPolicy::of_tables(options.missing);
    let of_objects = TableReadOptions { nulls, memory };
    let (description, described) = read_description(file)?;
    let mut table = read_table(file, of_rows)?;
    if let Some(description) = &description
        && table.axes.is_none()
    {
        table.axes = description.axis_names();
    }
    let renames = table.rename_structure(&options.renames);
    let mut arrays = input_table::vertices(table, options)?;
    arrays.files.push(file.path().to_path_buf());
    if let Some(description) = description {
        arrays.description = description;
    }
    let links = options.links.clone().or_else(|| file.sidecar("links"));
    if let Some(links) = links {
        let path = links.path().to_path_buf();
        if !options.kind.is_linked() {
            let kind = options.kind.name();
            return Err(GeometryReadError::Links { path, kind });
        }
        input_table::add_links(read_table(&links, of_rows)?, &mut arrays)?;
        arrays.files.push(path);
    }
    if let Some(objects) = file.sidecar("objects") {
        input_table::add_objects(read_table(&objects, of_objects)?, &mut arrays)?;
        arrays.files.push(objects.path().to_path_buf());
    }
    if let Some(groups) = file.sidecar("groups") {
        input_table::add_groups(read_table(&groups, of_rows)?, &mut arrays)?;
        arrays.files.push(groups.path().to_path_buf());
    }
    if let Some(groups) = file.sidecar("group_attributes") {
        input_table::add_group_attributes(read_table(&groups, of_rows)?, &mut arrays)?;
        arrays.files.push(groups.path().to_path_buf());
    }
    arrays.files.extend(described);
    Ok((arrays, renames))
}

/// Reads `NAME.metadata.json` beside a table of csv. Other formats hold the description.
fn read_description(
    file: &InputFile,
) -> Result<(Option<StoreDescription>, Option<PathBuf>), GeometryReadError> {
    let path = file.path().with_extension("metadata.json");
    if file.format() != FileFormat::Csv || !path.is_file() {
        return Ok((None, None));
    }
    let text =
        std::fs::read_to_string(&path).map_err(|error| GeometryReadError::file(&path, error))?;
    let description =
        StoreDescription::parse(&text).map_err(|reason| GeometryReadError::Metadata {
            path: path.clone(),
            reason,
        })?;
    Ok((Some(description), Some(path)))
}

fn read_table(
    file: &InputFile,
    options: TableReadOptions,
) -> Result<InputTable, GeometryReadError> {
    contained(file.path(), || match file.format() {
        FileFormat::Csv => csv::read_table(file.path(), options.nulls),
        #[cfg(feature = "arrow")]
        FileFormat::Arrow => arrow::read_table(file.path(), options),
        #[cfg(feature = "parquet")]
        FileFormat::Parquet => parquet::read_table(file.path(), options),
        _ => Err(GeometryReadError::NotBuilt {
            path: file.path().to_path_buf(),
        }),
    })
}

/// Writes a query result with a description of its store. `ply` holds only
/// comments of it, and `obj` nothing. If
/// the name of the file has a placeholder for an object, each object gets a file.
///
/// Beside the result this holds two numbers per vertex of a path, one per end of a link, and the
/// buffer of the format: 65 536 rows for Arrow, one million for Parquet.
///
/// The files of the result replace those of an earlier one: tables of links, objects and groups
/// under its name that this result does not have are removed.
///
/// # Errors
///
/// Returns [`ResultWriteError`] if the result does not fit the format or a file cannot be written.
/// No file has changed then, unless the final step, removing files of an earlier result and
/// renaming several finished ones, fails half way.
pub fn write(
    result: &QueryResult,
    description: &StoreDescription,
    file: &OutputFile,
) -> Result<WrittenFiles, ResultWriteError> {
    consistency::check(result)?;
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
) -> Result<WrittenFiles, ResultWriteError> {
    if file.format().is_in_batches() {
        let mut sink = ResultSink::create(file, description)?;
        sink.write(result)?;
        return sink.finish(&ResultTables {
            groups: &result.groups,
            group: &description.group,
            levels: &result.levels,
        });
    }
    let mut staged = Staged::of_output(file);
    let mut left_out = match file.format() {
        FileFormat::Csv => csv::write(result, description, &mut staged)?,
        FileFormat::Npz => npz::write(result, description, &mut staged)?,
        FileFormat::Obj => obj::write(result, &mut staged)?,
        #[cfg(feature = "arrow")]
        FileFormat::Arrow => arrow::write(result, description, &mut staged)?,
        #[cfg(feature = "parquet")]
        FileFormat::Parquet => parquet::write(result, description, &mut staged)?,
        // Written above.
        #[cfg(all(feature = "arrow", feature = "parquet"))]
        _ => Vec::new(),
        #[cfg(not(all(feature = "arrow", feature = "parquet")))]
        format => {
            return Err(ResultWriteError::NotBuilt(format));
        }
    };
    left_out.extend(file.format().crs_left_out(description.crs.as_ref()));
    staged.keep(siblings);
    let mut written = staged.publish()?;
    written.left_out = left_out;
    Ok(written)
}

/// Writes `bytes` to a file, which appears when it is complete.
///
/// # Errors
///
/// Returns [`ResultWriteError`] if the file cannot be written.
pub fn write_bytes(path: &Path, bytes: &[u8]) -> Result<(), ResultWriteError> {
    let mut staged = Staged::new(path);
    staged.write(|sink| Ok(sink.write_all(bytes)?))?;
    staged.publish().map(|_| ())
}
