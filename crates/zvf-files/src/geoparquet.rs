//! `GeoParquet` 1.1: tables with a column of geometry as well-known binary.
//!
//! The key `geo` of the file names the column, its encoding, types of geometry, coordinate reference
//! system and bounds.
//!
//! | geometry | written for | read as |
//! |---|---|---|
//! | `Point`, `MultiPoint` | points | points, with other columns as vertex attributes |
//! | `LineString`, `MultiLineString` | paths; links of graphs; skeletons, one row for each object | polylines, with other columns as object attributes |
//! | `Polygon`, `MultiPolygon` | faces of meshes | a mesh, if all polygons have one ring of 3 to 8 corners, all of one number, with other columns as link attributes; otherwise the rings as polylines, with a note |
//!
//! | column | content |
//! |---|---|
//! | `geometry` | well-known binary: a byte 1 for little-endian, a u32 type (1 to 6, with 1000 added for z), and for the types 2 to 6 a u32 count |
//! | `bbox` | bounds of the row, of whose axes `covering` names x and y, so that readers skip row groups |
//! | `object_id` | object of the row, if the store has objects |
//! | other columns | attributes of the rows, and of vertices of paths as lists with a value for each vertex |
//!
//! Vertices without links are left out of geometry with links. Integers and booleans of rows without a
//! value cannot be stored; [`FileReadOptions::nan_for_missing`](crate::FileReadOptions::nan_for_missing)
//! turns them into float64.
//!
//! The coordinate reference system of a store is written if it is PROJJSON, otherwise `null`. A file
//! that does not name one is in longitude and latitude, which becomes `OGC:CRS84`.

mod projjson;
mod reader;
mod wkb;
mod writer;

use serde_json::{Value, json};

pub use reader::open;
pub use writer::GeoParquetWriter;
pub use zvf_tables::is_geoparquet;

/// Key of the metadata of geometry.
const GEO: &str = "geo";

/// Returns the reference system of files that name none.
fn default_crs() -> Value {
    json!({"name": "OGC:CRS84", "id": {"authority": "OGC", "code": "CRS84"}})
}

/// Returns whether a reference system is that of files that name none.
fn is_default_crs(crs: &Value) -> bool {
    let id = |key| crs.pointer(key).and_then(Value::as_str);
    (id("/id/authority"), id("/id/code")) == (Some("OGC"), Some("CRS84"))
}
