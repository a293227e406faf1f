//! LAS and LAZ, points of laser scanners. COPC files are read as LAZ.
//!
//! A file has a public header, variable length records (VLRs), point records of one size, and, since
//! version 1.4, extended variable length records (EVLRs). All numbers are little-endian.
//!
//! | at | type | field | at | type | field |
//! |--:|---|---|--:|---|---|
//! | 0 | 4 bytes | `LASF` | 107 | u32, 5 × u32 | points, points by return, 0 where 64-bit fields are needed |
//! | 24 | u8, u8 | version | 131 | 3 × f64, 3 × f64 | scale, offset |
//! | 94 | u16 | size of the header: 227; 235 in 1.3; 375 in 1.4 | 179 | 6 × f64 | maximum and minimum of x, of y, of z |
//! | 96 | u32, u32 | offset of the points, number of VLRs | 235 | u64, u32 | offset and number of EVLRs |
//! | 104 | u8, u16 | point format, with the top bit set in LAZ; size of a record | 247 | u64, 15 × u64 | points, points by return |
//!
//! The points of LAZ are compressed in chunks, whose table follows them; the VLR `laszip encoded`
//! describes the compression.
//!
//! # Geometry
//!
//! Coordinates are `X · scale + offset` as float64, from which X is restored exactly. Attributes have
//! the names and types of the file:
//!
//! | attribute | type | point formats |
//! |---|---|---|
//! | `intensity`, `point_source_id` | uint16 | all |
//! | `return_number`, `number_of_returns`, `classification`, `user_data` | uint8 | all |
//! | `flags` | uint8: synthetic, key point, withheld, overlap, two bits of the channel, scan direction, edge of flight line | all |
//! | `scan_angle_rank`; `scan_angle` in units of 0.006° | int8; int16 | 0–5; 6–10 |
//! | `gps_time` | float64 | all but 0 and 2 |
//! | `rgb`; `nir` | three uint16; uint16 | 2, 3, 5, 7, 8, 10; 8, 10 |
//! | `wave_descriptor`, `wave_offset`, `wave_size`, `wave_return`, `wave_direction` | uint8, uint64, uint32, float32, three float32 | 4, 5, 9, 10 |
//! | extra bytes | as described; float64 if they have a scale or an offset | all |
//!
//! Scaled extra bytes are `number · scale + offset`, from which the number is restored exactly, and NaN
//! where the number is that of missing data. Numbers of 64 bits are not scaled, with a note, because
//! float64 would round them.
//!
//! Waveforms in a record of up to 4 MiB are kept. Others are left out, with a note.
//!
//! # Headers
//!
//! | key of `headers/las` | content |
//! |---|---|
//! | `header` | the public header as base64 |
//! | `vlrs`, `evlrs` | the records as base64, except those of LAZ and COPC |
//! | `names` | original names of renamed attributes |
//! | `order` | the attribute with the number of each point, if [`keep_order`] is set |
//!
//! [`keep_order`]: crate::FileReadOptions::keep_order
//!
//! The writer restores version, scale, offset and records, and makes counts and bounds anew. Points
//! are written in the order of the file if it was kept, and otherwise in that of the query. If the store
//! has another coordinate reference system than the records, its WKT replaces them, in version 1.4.
//! Without `headers/las`, files have version 1.4, and a scale that is chosen from the first batch.
//! `rgb` of type uint8 is multiplied by 257.

mod crs;
mod dimension;
mod header;
mod numbers;
mod order;
mod points;
mod reader;
mod record;
mod scaling;
mod writer;

#[cfg(feature = "geoparquet")]
pub(crate) use crs::epsg;
pub use reader::LasReader;
pub use writer::LasWriter;

/// Attribute with the number of each point in its file.
const SOURCE_ROW: &str = "source_row";
/// Key of the header: the name of this attribute, if the order of the points is kept.
const ORDER: &str = "order";
