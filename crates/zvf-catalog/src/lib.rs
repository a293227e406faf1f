//! Open levels of Zarr Vectors stores.
//!
//! A [`Catalog`] combines the metadata of a store with a port to read its cells
//! ([`zvf_model::fetch::Port`]), and opens the parts of its levels on first use. Queries, changes and
//! migrations read levels through it. It knows metadata and cells, but no queries.
//!
//! Functions are async over the port: they open nothing themselves and depend on no executor. One call
//! to the port is one round trip. Differences between generations end here.
//!
//! | type | contents |
//! |---|---|
//! | [`Catalog`], [`Level`], [`LevelCache`] | a store, an open level, and the open levels of a store; modules above keep their own state with a level in an [extension](Level::extension) |
//! | [`Schema`], [`Names`], [`Selection`] | the arrays that are read for each chunk, and the choice of attributes |
//! | [`Chunk`], [`ChunkRequest`] | rows of a chunk, and the request for them |
//! | [`ObjectSet`], [`ObjectLookup`] | objects with the fragments that they consist of |
//! | [`LinkSet`], [`LinkRecords`] | the cells of links of a level, and the links of a cell |
//! | [`GroupList`] | groups of objects |
//! | [`StoredArray`], [`StoredManifests`], [`StoredLinks`], [`LinkCells`] | data as stored, for tools that rewrite it |
//! | [`LevelCells`] | all nodes and tables of a level, for changes |
//! | [`CatalogError`], [`Damage`], [`Fault`] | the reasons that a level cannot be read |
//! | [`Diagnostics`] | the record of damage that is skipped |
#![forbid(unsafe_code)]
#![deny(clippy::as_conversions, clippy::indexing_slicing, clippy::string_slice)]

mod catalog;
mod cell_rows;
mod chunk;
mod chunked_array;
mod composite;
mod content;
mod coordinates;
mod cores;
mod deferred;
mod diagnostics;
mod error;
mod fragment_rows;
mod fragments;
mod headers;
mod level;
mod links;
mod listing;
#[cfg(test)]
mod memory;
mod objects;
mod parametric;
mod row_selection;
mod schema;
mod selection;
mod stored;
mod sync;
mod tables;

pub use catalog::Catalog;
pub use cell_rows::{CellRows, check_attribute_cell};
pub use chunk::{Chunk, ChunkRequest, RequestedRows};
pub use chunked_array::{ChunkedArray, EVERYWHERE, child, object_of};
pub use composite::{CompositeGeometry, CompositeGeometryLinks, CompositeLinkRows};
pub use content::LevelCells;
pub use coordinates::Coordinates;
pub use cores::{MIN_PARALLEL_BYTES, cores, on_cores};
pub use deferred::presence;
pub use diagnostics::{Diagnostics, Skipped};
pub use error::{CatalogError, Damage, Fault};
pub use fragments::{FragmentRows, FragmentTable};
pub use headers::Header;
pub use level::{Level, LevelCache};
pub use links::{
    CellLinks, FetchedLinks, LinkAttribute, LinkBlobs, LinkCellSource, LinkCells, LinkRecords,
    LinkSet, LinkView, StoredLinkFamily, StoredLinks,
};
pub use objects::{
    ChunkOwners, FragmentsByChunk, ObjectFragment, ObjectLookup, ObjectSet, ObjectTable,
    StoredManifests,
};
pub use parametric::{Coefficient, ParametricGeometry, ParametricObject};
pub use row_selection::{RowRun, RowSelection};
pub use schema::{ChunkAttribute, Names, Schema, advise_naming_attributes};
pub use selection::Selection;
pub use stored::{PaddedRows, StoredArray};
pub use tables::{GroupList, ObjectGroup};
pub use zvf_model::scope::Scope;
