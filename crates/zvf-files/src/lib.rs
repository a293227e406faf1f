//! Reads and writes tractograms, neurons, meshes, point clouds, graphs and other file formats.
//!
//! [`open`] reads a file in batches, as the source of [`zvf::create_from_source`]; [`create()`] makes
//! a writer for the batches of a query. [`read()`] and [`write()`] also know the tables of
//! `csv`, `npz`, `arrow` and `parquet` that hold everything a query returns. The extension of the name
//! selects the [format](FileFormat), the content of a folder otherwise:
//!
//! | format | module | geometry | read | written | kept without loss |
//! |---|---|---|---|---|---|
//! | `trk` | [`trk`] | streamlines | yes | yes | records and header |
//! | `tck`, with `tsf` | [`tck`] | streamlines | yes | yes | records and header |
//! | `trx` | [`trx`] | streamlines | yes | yes | arrays and header |
//! | `swc` | [`swc`] | skeletons | yes | yes | samples and comments |
//! | `ply` | [`ply`] | points, meshes, graphs, paths | yes | yes, by [`write()`] | |
//! | `obj` | [`obj`] | meshes, graphs | yes | yes, by [`write()`] | |
//! | `stl` | [`stl`] | meshes | yes | yes | |
//! | `las`, `laz` | [`las`] | points | yes | yes | points, scale, offset and records |
//! | `gii` | [`gifti`] | meshes with values of vertices | yes | yes | arrays and metadata |
//! | `pial`, `white`, … | [`freesurfer`] | meshes with values of vertices | yes | no | |
//! | `glb` | [`glb`] | all; meshes, graphs and points are read | yes | yes | |
//! | `graphml` | [`graphml`] | graphs | yes | no | |
//! | `edgelist`, with a table of nodes | [`edge_list`] | graphs | yes | no | |
//! | `geff` | [`geff`] | graphs | yes | no | |
//! | `geoparquet`, with the feature | `geoparquet` | points, paths, meshes | yes | yes | |
//! | folders with `info` | [`precomputed`] | skeletons, graphs, points, lines, polylines, meshes | yes | no | |
//!
//! The header of a file becomes the header of its format in the store, from which the writer
//! restores it. Coordinates are in the world: right, anterior and superior in millimetres for
//! tractograms. [`create()`] converts coordinates to the unit that a format implies.
//!
//! All bytes are untrusted. Counts reserve nothing before they are compared with the bytes of the
//! file, and an error names the file and the place.

#![forbid(unsafe_code)]
#![deny(clippy::as_conversions, clippy::indexing_slicing, clippy::string_slice)]

mod affine;
mod batches;
mod cell_column;
mod collected;
mod description;
pub mod edge_list;
mod fields;
mod folder_array;
pub mod freesurfer;
pub mod geff;
#[cfg(feature = "geoparquet")]
pub mod geoparquet;
pub mod gifti;
pub mod glb;
pub mod graphml;
mod input;
mod interchange;
pub mod las;
mod library;
mod mesh_files;
mod names;
mod node_columns;
pub mod obj;
mod object_ids;
mod open;
mod overlay;
pub mod ply;
mod polygons;
pub mod precomputed;
mod reader;
mod renamed;
pub mod stl;
pub mod swc;
pub mod tck;
mod text;
pub mod trk;
pub mod trx;
mod unit_writer;
mod voxel_grid;
mod whole;
mod writer;
mod xml;

pub use batches::{FileResults, whole_result};
pub use description::{FileDescription, GroupTables};
pub use interchange::{ResultSink, ResultTables, input_of, open_field, read, unowned, write};
pub use object_ids::FileObjectIds;
pub use open::{create, open};
pub use reader::{FileReadOptions, GeometryReader, read_whole};
pub use voxel_grid::{grid_header, replace_grid};
pub use whole::WholeReader;
pub use writer::{ResultWriter, WrittenResult};
#[cfg(feature = "arrow")]
pub use zvf_tables::VertexBatches;
pub use zvf_tables::{
    AttributeRename, AxisUnitError, Cancellation, ColumnError, CsvError, FileError, FileFault,
    FileFormat, FileHeader, FilePlace, GeometryInput, GeometryReadOptions, InputFile,
    InputFileError, KeyedTable, LosslessTarget, MissingPolicy, NpyReadError, NpzStream,
    ObjectFiles, OutputColumn, OutputFile, OutputFileError, OutputTable, RowIdPolicy,
    StoreDescription, TableKey, TableStream, WholeFile, WrittenFiles, check_unit, check_writable,
    display,
    length::{LengthConversion, LengthUnit, convert_lengths, length_scales},
    match_space, other_system, read_keyed, read_keys, settle_units, stated_kind, write_bytes,
};
use zvf_tables::{length, values};
