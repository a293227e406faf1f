//! Tables of query results: csv, npz, Arrow and Parquet, and the names and errors of files.
//!
//! [`read`] and [`write()`] know the formats that hold everything a query returns. [`TableStream`] and
//! [`TableWriter`] do so in batches. Programs use them
//! through the functions of the same names in `zvf-files`, which add the formats of a field. Both
//! crates share the list of formats ([`FileFormat`]), the names of files ([`InputFile`],
//! [`OutputFile`]), what a file tells of a store ([`StoreDescription`]) and the error ([`FileError`]);
//! PLY and OBJ files also have the columns of a result ([`OutputTable`]).
//!
//! A table that was written can be read, so a query result becomes a store again without conversion.
//! All rows are written, in the order of the result. Files appear under their names only when all of
//! them are complete, so a run that fails leaves earlier files untouched. They replace all files of an
//! earlier result of that name.
//!
//! | format | files |
//! |---|---|
//! | `npz` | one, with the interchange arrays |
//! | `csv`, `arrow`, `parquet` | `NAME.csv` with one row per vertex; `NAME.links.csv`, `NAME.objects.csv`, `NAME.groups.csv` and `NAME.group_attributes.csv` where there are any |
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
//! Vertices have one column per axis, then `row_id` if the query requests it, for paths `part`, then
//! `object_id`, then `vertex.NAME` and `fragment.NAME`. When a table is read, the axes are the columns
//! x, y, z and w, the columns that the schema names, or the columns that the user names; a column
//! without a scope is an attribute of vertices. Consecutive rows with equal `part` and `object_id` form
//! one path.
//!
//! Links have `links`, the rows of their ends counted from 0, then `link.NAME`. Objects have
//! `object_id` and `object.NAME`; groups have `group` and `object_id`, one row per member; attributes
//! of groups have `group`, counted from 0, and `group.NAME`. In csv, a column of several channels is
//! `NAME[0]`, `NAME[1]`, …; in Arrow and Parquet it is a list of fixed size. The object ids -1 and -2
//! are [`Owner::NONE`](zvf::Owner::NONE) and [`Owner::SEVERAL`](zvf::Owner::SEVERAL).
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

#![forbid(unsafe_code)]
#![deny(clippy::as_conversions, clippy::indexing_slicing, clippy::string_slice)]

#[cfg(feature = "arrow")]
mod arrow;
mod axis_unit_error;
mod axis_units;
mod csv;
pub mod display;
mod error;
mod floats;
mod format;
mod keyed_table;
pub mod length;
mod lossless;
mod match_space;
mod npy;
mod npz;
mod object_files;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(feature = "arrow")]
mod record_batch;
mod rename;
mod source_error;
mod store_description;
mod table;
mod table_error;
mod table_files;
mod table_stream;
mod table_writer;
mod unit_names;
pub mod values;

pub use axis_unit_error::AxisUnitError;
pub use axis_units::settle_units;
pub use error::{FileError, FileFault, FilePlace};
pub use format::{FileFormat, extensions};
pub use keyed_table::{KeyedTable, TableKey, read_keyed, read_keys};
pub use lossless::LosslessTarget;
pub use match_space::{match_space, other_system};
pub use npz::{NpzStream, WholeFile};
pub use object_files::ObjectFiles;
#[cfg(feature = "arrow")]
pub use record_batch::VertexBatches;
pub use rename::AttributeRename;
pub use store_description::{FileHeader, StoreDescription};
#[cfg(feature = "geoparquet")]
pub use table::input_file::is_geoparquet;
pub use table::{
    Cancellation, ColumnError, CsvError, GeometryInput, GeometryReadOptions, InputFile,
    InputFileError, MissingPolicy, NpyReadError, OutputColumn, OutputFile, OutputFileError,
    OutputTable, RowIdPolicy, WrittenFiles,
    consistency::check as check_result,
    contained::contained,
    level_list, object_data_left_out,
    output_file::{check_writable, values_beside},
    output_table::axes as axis_columns,
    staged::{Sink, Staged},
};
pub use table_files::{read, stated_kind, write, write_bytes};
pub use table_stream::{RowStream, TableStream};
pub use table_writer::TableWriter;
pub use unit_names::check_unit;
