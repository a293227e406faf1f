//! TCK, the tracks of MRtrix, and TSF, its track scalars.
//!
//! A header of text is followed by rows of floats.
//!
//! ```text
//! mrtrix tracks
//! key: value
//! datatype: Float32LE
//! file: . 67
//! END
//! ```
//!
//! `file` gives the offset of the data. `datatype` is `Float32LE`, `Float32BE`, `Float64LE` or
//! `Float64BE`. A line without a colon continues the line before it, and keys may repeat. `count` is a
//! hint, which is often wrong.
//!
//! | row | TCK | TSF (`mrtrix track scalars`) |
//! |---|---|---|
//! | point | x, y, z in millimetres: right, anterior, superior | one value |
//! | end of a streamline | three NaN | NaN |
//! | end of the data | three infinities | infinity, or the end of the file |
//!
//! Streamlines without points are kept. A TSF file becomes a vertex attribute with the name of the
//! file. It has to have the streamlines of the TCK file.
//!
//! # Headers
//!
//! | key of `headers/tck` | content |
//! |---|---|
//! | `header` | the bytes before the data, as text, or as base64 in `header_base64` |
//! | `nan`, `end` | the bytes of the rows of NaN and of infinity as base64, if they are unusual |
//!
//! The writer restores the header if its `count` is the number of streamlines that are written;
//! otherwise the value of `count` changes. It writes the type of the kept header, or float32.

mod header;
mod reader;
mod writer;

pub use reader::TckReader;
pub use writer::TckWriter;
