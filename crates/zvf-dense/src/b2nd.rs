//! Blosc2 arrays (`.b2nd`) and Caterva arrays (`.cat`), as single files or sparse directories.
//!
//! An array is divided into chunks, and chunks into blocks, which are compressed separately
//! ([`blosc`](crate::blosc)). Reading a [`Hyperslab`] decodes only the blocks it touches. For each
//! touched chunk, the header and the block starts are read together, then the blocks, with adjacent
//! blocks in one read. [`zvf_format::b2nd`] documents the frame around the chunks.
//!
//! User metalayers are returned as bytes. Variable-length metalayers that contain a MessagePack value,
//! like Python's `vlmeta`, are the attributes.
//!
//! Uninitialised chunks read as zeros. The filter NDCELL, and plugin filters and codecs, are rejected.
//!
//! [`Hyperslab`]: crate::Hyperslab

mod attributes;
mod design;
mod edit;
mod gather;
mod index;
mod layers;
mod open;
mod place;
mod read;
mod write;

pub use crate::error::B2ndError;
pub use attributes::{pack, unpack};
pub use design::B2ndDesign;
pub use edit::B2ndEditor;
pub use open::{B2nd, DEFAULT_BUDGET, DIRECTORY_FRAME, FrameFacts};
pub use write::B2ndWriter;
