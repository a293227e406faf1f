//! Query results as Arrow record batches, and record batches as geometry to write.
//!
//! [`ResultBatches`] has one batch for each family of a [`QueryResult`](zvf::QueryResult):
//!
//! | batch | columns |
//! |---|---|
//! | `vertices` | `position`, `row_id`, `object_id`, `distance`, `vertex.NAME`, `fragment.NAME` |
//! | `parts`, of paths | `object_id`, `start`, `end` (rows of `vertices`), `distance` |
//! | `links` | `link` (rows of `vertices`), `distance`, `link.NAME` |
//! | `objects` | `object_id`, `object.NAME` |
//! | `groups` | `group`, `object_id` |
//!
//! Columns that the result lacks are absent. [`ResultSchemas::of`] returns the schemas of a level
//! before a query runs, with units and the coordinate reference system.
//!
//! | in zvf | in Arrow |
//! |---|---|
//! | numbers, one to a row | the type of the same name |
//! | numbers, several to a row | `FixedSizeList` |
//! | complex numbers | `FixedSizeList` of the two parts |
//! | text | `Dictionary(UInt32, Utf8)` |
//! | positions | `FixedSizeList`; with 64-bit floats of the axes x, y, and z or m or both, in this order, `geoarrow.point` |
//!
//! Numbers, ids, links and codes of text keep their memory in both directions. Copied are booleans,
//! masks of nulls, words, and memory that is not aligned for its type.
//!
//! ```
//! use zvf::{CreateOptions, Dataset, Design, Geometry, GeometryKind, NumericColumn, Query};
//! use zvf_arrow::ResultBatches;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = |name: &str| folder.path().join(name).display().to_string();
//! # let (source, copy) = (path("source.zv"), path("copy.zv"));
//! # let points = Geometry::new(NumericColumn::float32(3, [0.0, 0.0, 0.0, 9.0, 1.0, 1.0]));
//! # let design = Design::new(GeometryKind::Points);
//! # zvf::create(&source, &points, design, &CreateOptions::new()).await?;
//! let result = Dataset::open(&source).await?.query(&Query::new()).await?;
//! let batches = ResultBatches::new(result)?;
//! assert_eq!(batches.vertices.num_rows(), 2);
//!
//! // Batches, perhaps changed, are geometry for another store.
//! let geometry = batches.into_geometry()?;
//! let design = Design::new(GeometryKind::Points);
//! zvf::create(&copy, geometry, design, &CreateOptions::new()).await?;
//! # Ok(()) }
//! ```
#![forbid(unsafe_code)]

mod batches;
mod columns;
mod error;
mod schemas;

pub use batches::ResultBatches;
pub use columns::{array_of, column_of, empty_column_of, numbers_of, text_of, words_of};
pub use error::ConversionError;
pub use schemas::ResultSchemas;
