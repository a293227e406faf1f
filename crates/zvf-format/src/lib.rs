//! Byte-level codecs of the Zarr Vectors Format (ZVF), generations 0.6 to 0.9, and of two
//! containers for dense arrays, Tetration `.tet` and Caterva/b2nd.
//!
//! This crate converts one blob to one borrowed view and back. It is independent of files, JSON,
//! compression and Zarr: the caller passes the bytes of a cell after decoding its Zarr codecs. It
//! is `no_std`, has no unsafe code, decodes without allocating, and never panics for any bytes. The
//! documentation of each module gives the layout byte by byte and is sufficient for writing a
//! decoder in another language.
//!
//! # Which blob is where
//!
//! A store is a Zarr v3 hierarchy. Each level `<n>/` holds these arrays; one
//! cell belongs to one spatial chunk unless the table says otherwise.
//!
//! | array | cell | module |
//! |---|---|---|
//! | `vertices`, `vertices_<kind>` | rows of coordinates | [`numeric`] |
//! | `vertex_fragments`, `link_fragments` | rows of each fragment | [`fragment`] |
//! | inventory of a sealed store | lengths of the fragments of a chunk | [`fragment_lengths`] |
//! | `vertex_attributes/<name>` | a row for each vertex, or codes of a dictionary | [`numeric`], [`dictionary`] |
//! | `fragment_attributes/<name>` | a row for each fragment | [`numeric`] |
//! | `links/<delta>/…`, `cross_chunk_links/<delta>/…` | edges, faces, references between levels | [`links`] |
//! | `link_attributes/<name>/<delta>/…`, `cross_chunk_link_attributes/…` | a row for each link of the matching cell | [`numeric`] |
//! | `object_index/manifests` | fragments of consecutive objects, one item for each object | [`manifest`] |
//! | `object_index/{data,offsets}` (0.6, early 0.7) | the same manifests back to back | [`open_rows`], [`manifest`] |
//! | `groups` | one group's object ids | [`groups`]; up to 0.8.0 inside [`open_rows`] |
//! | `object_index/object_ids`, `links_<kind>` | packed numbers | [`int64s`], [`links`] |
//! | `object_attributes/<name>`, `group_attributes/<name>`, `parametric/objects` | rows of numbers | [`numeric`] |
//! | `object_attributes/<name>/present_mask` (up to 0.8.0) | a byte for each object | [`numeric`] |
//! | `parametric/groups` | as `groups` | [`groups`] |
//! | `parametric/names` | UTF-8, one vlen item a name; up to 0.8.0 one blob with line feeds between | |
//! | `__shard_<number>` in any of them (up to 0.8.0) | cells back to back; the attribute `shard_index` has `[offset, length]` for each chunk key | |
//!
//! Up to 0.8.0, one blob for a whole level (`object_attributes/<name>`, `group_attributes/<name>`,
//! `links_<kind>`, `parametric/…`, up to 0.7 also `cross_chunk_links/<delta>` and its attributes)
//! is an array `data` inside a group of that name. `headers/<name>` and `geometry_index` have
//! attributes only.
//!
//! Arrays of the type `variable_length_bytes` wrap their cells in a frame,
//! [`vlen`]. Link cells that cross chunks or levels wrap their rows in a
//! [`ragged`] blob. The names of deltas, chunks, cells and offsets in paths and
//! attributes are read and written by [`path`].
//!
//! The two dense containers are files rather than stores: [`tetration`] reads
//! what surrounds the payloads of a `.tet` file, [`b2nd`] what surrounds the
//! chunks of a Caterva or Blosc2 array.
//!
//! # What the codecs have in common
//!
//! * Integers and floats are little-endian and packed. Nothing is aligned, so
//!   a view may start at any address. Only [`numeric`] cells of arrays that
//!   declare it, and the headers of [`b2nd`], are big-endian.
//! * `parse` checks once everything that a blob determines by itself; the accessors of the view
//!   then neither fail nor panic, and out-of-range lookups are `None`. Checks that need a second
//!   blob, such as comparing rows with the stored vertices, are documented, and the view returns
//!   the number to compare.
//! * `parse` is strict: unknown versions and modes, reserved flags, counts that disagree, offsets
//!   that do not ascend, negative rows and bytes left over are errors. Padding and fields
//!   documented as reserved are ignored.
//! * Errors are small `Copy` enums, one for each codec, which tests can compare; add the key of the
//!   cell when propagating them.
//! * Encoders, behind the feature `alloc`, have one canonical form: equal input gives equal bytes,
//!   those of the reference writer.
//!
//! # Features
//!
//! * `alloc` (default): the encoders. Decoding needs none.
#![no_std]
#![forbid(unsafe_code)]
#![deny(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::indexing_slicing,
    clippy::std_instead_of_core,
    clippy::alloc_instead_of_core,
    clippy::string_slice
)]

#[cfg(feature = "alloc")]
extern crate alloc;

mod bits;
mod cursor;
mod run;
mod sign;

pub mod b2nd;
pub mod dictionary;
pub mod fragment;
pub mod fragment_lengths;
pub mod groups;
pub mod int64s;
pub mod links;
pub mod manifest;
pub mod numeric;
pub mod open_rows;
pub mod path;
pub mod ragged;
pub mod tetration;
pub mod vlen;
