//! TRX 0.1, the exchange format of tractography: a zip file or a folder of arrays.
//!
//! Every array is a file of little-endian numbers, row by row, without a header. Its name gives the
//! type and the number of columns: `NAME.TYPE` or `NAME.COLUMNS.TYPE`.
//!
//! | path | rows | content |
//! |---|---|---|
//! | `header.json` | | `VOXEL_TO_RASMM`, `DIMENSIONS`, `NB_STREAMLINES`, `NB_VERTICES`, and others |
//! | `positions.3.TYPE` | vertices | millimetres: right, anterior, superior |
//! | `offsets.TYPE` | streamlines + 1 | the first vertex of each streamline, then the number of vertices |
//! | `dpv/NAME…` | vertices | vertex attributes |
//! | `dps/NAME…` | streamlines | object attributes |
//! | `groups/NAME.uint32` | any | numbers of streamlines |
//! | `dpg/GROUP/NAME…` | 1 | attributes of a group |
//!
//! Types are `bit`, one byte for each value, `int8` to `int64`, `uint8` to `uint64`, and `float16`,
//! `float32` and `float64`. `bit` becomes uint8. The members of a zip file are stored, or deflated and
//! then unpacked to temporary files.
//!
//! # Headers
//!
//! | key of `headers/trx` | content |
//! |---|---|
//! | `header` | the object of `header.json` |
//! | `voxel_to_rasmm`, `dimensions` | the affine map and the voxels, for other formats |
//! | `names`, `object_names`, `group_names` | original names of renamed attributes |
//! | `types` | types that differ from those of the attributes, by path |
//! | `dpg` | the attributes that each group has, with their types: integers that a group lacks are stored as floats |
//! | `offsets` | the type of the offsets |
//!
//! Numbers of streamlines are object ids from 0. The group attribute `name` has the names of the
//! groups. The writer makes a zip file of stored members. Without a map in `headers/trx` or
//! `headers/trk`, it makes one up as [`trk`](crate::trk) does. Integers among which values are missing
//! are float64. Selected streamlines are numbered anew, and `group_ID` stands for names of groups
//! that repeat or cannot be part of a path; both are listed as left out.

mod archive;
mod array;
mod reader;
mod tables;
mod writer;

pub use reader::TrxReader;
pub use writer::TrxWriter;
