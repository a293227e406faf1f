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
//! | `glb` | [`glb`] | all | no | yes | |
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
#[cfg(feature = "arrow")]
mod arrow;
mod batches;
mod cell_column;
mod collected;
mod csv;
mod description;
pub mod display;
pub mod edge_list;
mod error;
mod fields;
mod folder_array;
mod format;
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
mod length;
mod names;
mod node_columns;
mod npy;
mod npz;
pub mod obj;
mod object_files;
mod object_ids;
mod open;
mod overlay;
#[cfg(feature = "parquet")]
mod parquet;
pub mod ply;
mod polygons;
pub mod precomputed;
mod reader;
#[cfg(feature = "arrow")]
mod record_batch;
mod rename;
mod renamed;
pub mod stl;
mod store_description;
pub mod swc;
mod table;
pub mod tck;
mod text;
pub mod trk;
pub mod trx;
mod unit_writer;
mod values;
mod voxel_grid;
mod whole;
mod writer;
mod xml;

pub use batches::{FileResults, whole_result};
pub use description::{FileDescription, FileHeader, GroupTables};
pub use error::{FileError, FileFault, FilePlace};
pub use format::FileFormat;
pub use interchange::{
    KeyedTable, LosslessTarget, ResultSink, ResultTables, TableKey, input_of, open_field, read,
    read_keyed, read_keys, unowned, write, write_bytes,
};
pub use length::{LengthConversion, convert_lengths};
pub use npz::{NpzStream, WholeFile};
pub use object_files::ObjectFiles;
pub use object_ids::FileObjectIds;
pub use open::{create, open};
pub use reader::{FileReadOptions, GeometryReader, read_whole};
pub use rename::AttributeRename;
pub use store_description::StoreDescription;
pub use table::{
    Cancellation, ColumnError, CsvError, GeometryInput, GeometryReadError, GeometryReadOptions,
    InputFile, InputFileError, MissingPolicy, NpyReadError, OutputColumn, OutputFile,
    OutputFileError, OutputTable, Rename, ResultWriteError, RowIdPolicy, WrittenFiles,
    output_file::check_writable,
};
pub use whole::WholeReader;
pub use writer::{ResultWriter, WrittenResult};
