//! Links: edges, faces and references between vertices, in every stored form.
//!
//! A link names L vertices, each by its chunk and its row in the vertex buffer of that chunk. The
//! chunks are in the path (see [`path`]) or, in old stores, in the record; all numbers are i64,
//! little-endian, nothing is aligned, vertex rows are not negative.
//!
//! # Where links are
//!
//! | cell | bytes | type |
//! |---|---|---|
//! | `links/0/<chunk>` (0.6–0.8); `links/0/<offsets>` with all offsets zero, `links/0/self` (0.9) | plain rows; the `link_fragments` blob beside them groups them | [`LinkRows`] |
//! | `links/0/<chunk>` without `link_fragments`, as in the 0.4 schema | ragged blob of plain rows, or plain rows | [`LinkRows::parse_maybe_grouped`] |
//! | `links/<±N>/<chunk>` (0.6–0.8); `links/<±N>/<offsets>` (0.9) | [ragged blob](crate::ragged) of plain rows | [`RaggedLinks`] |
//! | `links/0/<offsets>` (0.9), some offset not zero | ragged blob of permuted rows; of plain ones in a family that is directed and canonical | [`RaggedLinks`] |
//! | `cross_chunk_links/<delta>/<cell key>` (0.8) | ragged blob of permuted rows, one record a group | [`CrossChunkCell`] |
//! | `cross_chunk_links/<delta>/data` (0.6, 0.7) | flat records with their chunks, in input order | [`CrossChunkTable`] |
//! | `links_<kind>` of composite stores | plain rows, of vertex numbers in the whole level | [`LinkRows`] |
//!
//! | row or record | numbers |
//! |---|---|
//! | plain row | L vertex rows, in input order |
//! | permuted row | the code of a permutation, then L vertex rows in stored order |
//! | table record | L endpoints in input order, each `sid_ndim` chunk coordinates and then the vertex row |
//!
//! Slot `i` of a row is a vertex of the `i`-th chunk: of the cell key in 0.8; in
//! 0.9 of the source chunk, which is the cell, for `i` = 0, and of the chunk that
//! the `i`-th offset names for the others.
//!
//! # What the attributes say
//!
//! | parameter | attribute | of the node | when absent |
//! |---|---|---|---|
//! | L | `link_width` | `links/<delta>`, `cross_chunk_links/<delta>`, `links_<kind>` | no links |
//! | K, numbers in a chunk key | `sid_ndim` | `links/<delta>` (0.9), `cross_chunk_links/<delta>` | no links |
//! | directed | `directed` | the family, from 0.8.1 | false |
//! | one copy or one a chunk | `store`: `canonical` or `duplicate` | the family, from 0.8.1 | `canonical` |
//! | permuted rows | `has_perm` | `links/<delta>/<offsets>` (0.9) | by the table above |
//! | records stored | `num_physical_records` | the family, from 0.8.1 | `num_links` |
//! | records given | `num_links` | the family | not known |
//!
//! # Stored order and its code
//!
//! The stored order is `slots`: slot `i` holds the endpoint at input position
//! `slots[i]`, so `input[slots[i]] = stored[i]`. Its code is the rank of `slots`
//! among all permutations in lexicographic order,
//!
//! ```text
//! code = Σ i in 0..L  rank(i) · (L − 1 − i)!       0 ≤ code < L!
//! rank(i) = how many later slots j > i hold a smaller input position
//! ```
//!
//! 0 is the identity and always a legal code of geometry without orientation.
//!
//! The stored order is:
//!
//! * `canonical` and not directed: endpoints ascending by chunk coordinates, as
//!   numbers, axis by axis, then by vertex row; equal ones keep their order. In
//!   0.8 this holds for every delta, in 0.9 for delta 0 only.
//! * `canonical` and directed, in 0.9 also every delta but 0, and all plain rows:
//!   the input order. (A record inside one chunk goes to the plain rows of delta
//!   0; equal chunk coordinates at two levels are not one chunk.)
//! * `duplicate`: one copy for each *distinct* chunk of the record. Each copy starts with the first
//!   endpoint of its chunk in canonical order; the others follow in ascending input position. Every
//!   copy has a code, directed or not.
//!
//! [`Permutation`] converts in both directions, [`Permutation::sorting`] the canonical order,
//! [`duplicates`] the copies.
//!
//! # Anchors
//!
//! An offset of 0.9 counts from the *anchor* of the source chunk, the chunk of
//! the target level that holds its lower corner:
//!
//! ```text
//! anchor(c) = ⌊ c · source / target ⌋               axis by axis
//! chunk of endpoint k = anchor(source chunk) + offset k
//! ```
//!
//! `source` and `target` are the chunk shapes of the two levels (`chunk_shape` of
//! `zarr_vectors_level`) over the root's (`chunk_shape` of `zarr_vectors`), whole
//! numbers. A level without one has the root's, so that both are 1 and the anchor
//! is the chunk itself; so is the leading axis of a level chunked by an attribute.
//! See [`AxisScales`].
//!
//! # Groups
//!
//! The groups of a ragged blob, and the fragments that `link_fragments` makes of the plain rows,
//! record which rows were written together. Link fragments are numbered on their own, not as the
//! vertex fragments of the chunk, and may exist for a chunk without a link cell and therefore
//! without rows.
//!
//! # Reading order
//!
//! Records of a family come by array, in ascending ASCII order of the offsets
//! segment; then by cell, in ascending ASCII order of the chunk or cell key
//! (`-1.0` before `-2.0` before `0.0` before `10.0` before `2.0`); then as stored.
//! Rows of link attributes come in the same order.
//!
//! # Refused
//!
//! Bytes that are not a whole number of rows or records, negative vertex rows, codes not below L!,
//! a group that ends inside a row, and a cell whose groups are not one record each. Row counts are
//! not stored: a blob truncated between two rows is a valid shorter blob. `num_physical_records`
//! (before 0.8.1 `num_links`) reveals this, and for plain rows the extent of `link_fragments`.
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
