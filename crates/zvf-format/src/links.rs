//! Links: edges, faces and references between vertices, in every stored form.
//!
//! A link names L vertices, each by the chunk that holds it and its row in
//! that chunk's vertex buffer. The chunks are in the path (see [`path`]); the
//! bytes hold vertex rows, all numbers i64 little-endian, nothing aligned.
//!
//! | where | bytes | type |
//! |---|---|---|
//! | `links/0/<chunk>` (0.6–0.8), `links/0/<all-zero offsets>` and `links/0/self` (0.9) | flat rows; grouped by the `link_fragments` blob beside them | [`LinkRows`], [`RowForm::Plain`] |
//! | `links/<±N>/<chunk>` (0.6–0.8), `links/<±N>/<offsets>` (0.9) | ragged blob of rows | [`RaggedLinks`], [`RowForm::Plain`] |
//! | `links/0/<offsets>` (0.9), some offset not zero | ragged blob of rows | [`RaggedLinks`], [`RowForm::Permuted`] unless the family is directed and canonical |
//! | `cross_chunk_links/<delta>/<cell key>` (0.8) | ragged blob, one record a group | [`CrossChunkCell`] |
//! | `cross_chunk_links/<delta>/data` (0.6, 0.7) | flat records that carry their chunks | [`CrossChunkTable`] |
//!
//! A [`RowForm::Plain`] row is L numbers in input order. A
//! [`RowForm::Permuted`] row is L + 1: the code of a [`Permutation`], then the
//! vertex rows in stored order, slot `i` belonging to the `i`-th chunk of the
//! path. The code gives back the input order, without which a face would lose
//! its winding and an edge its direction.
//!
//! Which order is stored: for a link with `store: canonical` that is not
//! directed, ascending by `(chunk coordinates, vertex row)`, see
//! [`Permutation::sorting`]; with `store: duplicate` one copy for each distinct
//! chunk, see [`duplicates`]; for directed links the input order. Generation
//! 0.9 sorts links of delta 0 only; 0.8 sorts all.
//!
//! Chunk offsets between levels of different chunk shape count from an anchor:
//! [`AxisScales`].
//!
//! [`path`]: crate::path

mod anchor;
#[cfg(feature = "alloc")]
mod builder;
mod cell;
mod permutation;
mod placement;
mod ragged;
mod rows;
mod table;
mod width;

pub use anchor::AxisScales;
#[cfg(feature = "alloc")]
pub use builder::{CrossChunkTableBuilder, LinkRowLimit, LinkRowsBuilder, TableLimit};
pub use cell::{CrossChunkCell, CrossChunkCellError};
pub use permutation::{Permutation, PermutationError};
pub use placement::{Duplicates, duplicates};
pub use ragged::{RaggedLinks, RaggedLinksError};
pub use rows::{LinkRow, LinkRows, LinkRowsError, RowForm};
pub use table::{CrossChunkTable, CrossChunkTableError, Endpoint, TableRecord};
pub use width::{LinkWidth, LinkWidthError, MAX_WIDTH};
