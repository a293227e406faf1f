//! GLB, the binary form of glTF 2.0: meshes, lines and points.
//!
//! | part | content |
//! |---|---|
//! | header | `glTF`, u32 2, u32 length of the file |
//! | chunk `JSON` | u32 length, `JSON`, the scene, padded with blanks to a multiple of 4 |
//! | chunk `BIN` | u32 length, `BIN` and NUL, positions, colours and indices |
//!
//! # Reading
//!
//! | part of the scene | in the geometry |
//! |---|---|
//! | node with a mesh | object, with the name of the node or the mesh as `object.name`, numbered from 1; `object_ID` has this id and no name. A file of one such node has no objects |
//! | `matrix`, or `translation`, `rotation`, `scale` | applied to the positions |
//! | `POSITION`, also quantized | position: float32 if that is exact, otherwise float64 |
//! | `COLOR_0`, if all vertices have it | `vertex.rgb` or `vertex.rgba`, as they are stored |
//! | triangles, strips and fans | faces |
//! | lines, strips and loops | edges, in a file without triangles |
//!
//! Axes and numbers stay as they are. Everything else is left out, with a note. Compressed data, sparse
//! accessors, data in other files and meshes of several nodes are refused.
//!
//! # Writing
//!
//! Points become a primitive of mode 0, paths and edges of mode 1, polygons triangles of mode 4. The
//! attributes `rgb`, `rgba`, `color` and `colors` become `COLOR_0`. Coordinates are relative to the
//! centre of the result, which is the translation of the node, so that large coordinates keep their
//! digits. Axes stay as they are in the store: glTF has y up and metres.
//!
//! The centre and the numbers of vertices and indices are known at the end, so the content is kept in
//! temporary files beside the target.

mod accessor;
mod reader;
mod scene;
mod writer;

pub use reader::open;
pub use writer::GlbWriter;

/// Type codes of accessors.
const BYTE: u64 = 5120;
const UNSIGNED_BYTE: u64 = 5121;
const SHORT: u64 = 5122;
const UNSIGNED_SHORT: u64 = 5123;
const UNSIGNED_INT: u64 = 5125;
const FLOAT: u64 = 5126;
