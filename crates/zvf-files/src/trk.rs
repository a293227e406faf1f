//! TRK, the format of TrackVis.
//!
//! A header of 1000 bytes is followed by streamlines. All numbers have the byte order in which
//! `hdr_size` is 1000.
//!
//! | at | type | field |
//! |--:|---|---|
//! | 0 | 6 bytes | `TRACK`, NUL |
//! | 6 | 3 × i16 | `dim`: voxels along each axis |
//! | 12 | 3 × f32 | `voxel_size` in millimetres |
//! | 24 | 3 × f32 | `origin`, not used |
//! | 36 | i16 | `n_scalars`: values of a point |
//! | 38 | 10 × 20 bytes | names of scalars |
//! | 238 | i16 | `n_properties`: values of a streamline |
//! | 240 | 10 × 20 bytes | names of properties |
//! | 440 | 16 × f32 | `vox_to_ras`, row by row; absent if its last number is 0 |
//! | 504 | 444 bytes | reserved |
//! | 948 | 4 bytes | `voxel_order`, as `LAS` |
//! | 952 | 28 bytes | orientation of the patient |
//! | 980 | 8 bytes | padding and flips, not used |
//! | 988 | i32 | `n_count`: streamlines, 0 if unknown |
//! | 992 | i32 | version, 1 or 2 |
//! | 996 | i32 | `hdr_size`, 1000 |
//!
//! A streamline is an i32 with the number of its points, for each point x, y, z and the scalars as
//! f32, and the properties as f32. A digit after a name and NUL is the number of values that the
//! name stands for.
//!
//! # Coordinates
//!
//! Coordinates in the file are millimetres from the corner of the first voxel. Geometry has
//! coordinates of the world, as nibabel returns them: `vox_to_ras · (p / voxel_size − 0.5)`, with
//! axes flipped where `voxel_order` names the opposite of the direction in `vox_to_ras`. They are
//! float64, from which the float32 of the file are restored exactly, except for coordinates closer
//! than about 1e-6 mm to the corner.
//!
//! # Headers
//!
//! | key of `headers/trk` | content |
//! |---|---|
//! | `header` | the 1000 bytes as base64 |
//! | `voxel_to_rasmm`, `dimensions` | the affine map and the voxels, for other formats |
//! | `names` | original names of renamed attributes |
//!
//! The writer restores the header, with the counts and names of what it writes. Without
//! `headers/trk`, the map comes from `headers/trx`. Without both, it is made up: cubes of 1 mm, or of a
//! power of two if there would be more than 32767, enclose the bounds of the store and every point, which
//! a note says. Programs drop streamlines outside the grid.

mod header;
mod reader;
mod writer;

pub use reader::TrkReader;
pub use writer::TrkWriter;
