//! Metadata model of Zarr Vectors stores of generations 0.6 to 0.10: validated metadata types,
//! detection of the generation, chunks of positions, and paths of chunks.
//!
//! This crate reads no files. The caller passes the bytes of a `zarr.json` and gets types, or an
//! error that names the key and the path in the JSON. [`zvf_format`] decodes the bytes of cells.
//!
//! # The layers of metadata
//!
//! | metadata | location | module |
//! |---|---|---|
//! | a node: group or array, shape, chunks, codecs | every `zarr.json` | [`zarr`] |
//! | the store: axes, chunk shape, bounds, conventions, bins of each level | attributes `zarr_vectors`, `multiscales` of the root | [`root`] |
//! | the kinds of geometry, and what they imply | `geometry_types` of the root | [`geometry_kind`] |
//! | a level: own chunk shape, counts, build method | attribute `zarr_vectors_level` of `<n>` | [`level`] |
//! | an array: dtype, chunks, link policy, object counts | attributes of the array or of the group that represents it | [`mod@array`] |
//! | the name of an attribute: its label, and the identifier that is stored | the name of the node | [`attribute_name`] |
//! | the generation: layout of all metadata | the form of a few nodes, then the version | [`generation`], [`detection`], [`version`] |
//! | paths: node and element of every cell | derived from the generation | [`layout`], [`key`] |
//! | the grid: chunks and bins of positions and boxes | derived from the chunk shape | [`grid`] |
//! | the dialect of 0.10, in which these attributes are members of one object | every `zarr.json` | converted when a node is parsed and written; see [`zarr::Node`] |
//! | a copy of all nodes, for remote readers | attribute `zvf_nodes` of the root | [`node_copy`] |
//! | levels that no longer match a finer one | attributes `zvf_stale_levels`, `zvf_stale_chunks` of the root | [`stale_levels`] |
//!
//! [`fetch`] is the port through which plans read. [`json`] holds JSON that the engine stores or returns
//! without interpreting it.
//!
//! # Strict and lenient
//!
//! A store is opened in a few steps: parse the root node, [detect] the generation, parse the levels
//! and arrays that are requested. What cannot be read at all is a [`MetadataError`]. What is wrong
//! but can be read past, as the format allows or as other readers do, is a [`MetadataNote`]: where,
//! what was found, what was assumed. Nothing is dropped without one of the two, and attributes that
//! are unknown to this crate are kept.
//!
//! ```
//! use zvf_model::{key::Key, root::RootMetadata, zarr::Node};
//!
//! let json = br#"{"zarr_format": 3, "node_type": "group", "attributes": {
//!   "zarr_vectors": {"zv_version": "0.9.2", "chunk_shape": [10, 10],
//!     "bounds": [[0, 0], [64, 32]], "geometry_types": ["point_cloud"]},
//!   "multiscales": [{"axes": [{"name": "x"}, {"name": "y"}], "datasets": []}]}}"#;
//! let key = Key::root().metadata()?;
//! let node = Node::parse(&key, json)?;
//! let root = RootMetadata::parse(&key, node.attributes())?;
//! let chunk = root.chunk_shape.chunk_of(&[-0.5, 31.0]).ok_or("not a position")?;
//! assert_eq!(chunk.to_string(), "-1.3");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [detect]: detection::Evidence::detect
//! [`MetadataError`]: metadata::MetadataError
//! [`MetadataNote`]: metadata::MetadataNote
#![deny(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::indexing_slicing,
    clippy::string_slice
)]

mod excerpt;
mod level_id;
mod rank;
mod setters;

pub mod array;
pub mod attribute_name;
pub mod base64;
pub mod closest;
pub mod column;
pub mod detection;
pub mod draco;
pub mod error_chain;
pub mod error_kind;
pub mod fetch;
pub mod generation;
pub mod geometry_kind;
pub mod grid;
pub mod json;
pub mod key;
pub mod layout;
pub mod level;
pub mod level_content;
pub mod metadata;
pub mod node_copy;
pub mod object_ids;
pub mod payload_cache;
pub mod random;
pub mod root;
pub mod row_id;
pub mod scope;
pub mod stale_levels;
pub mod version;
pub mod word;
pub mod zarr;
