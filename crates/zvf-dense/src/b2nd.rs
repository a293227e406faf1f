//! Blosc2 arrays (`.b2nd`) and those of Caterva (`.cat`), whole files and
//! sparse directories.
//!
//! An array is cut into chunks, and chunks into blocks, each of which is
//! compressed for itself ([`blosc`](crate::blosc)). Reading a [`Selection`]
//! decodes the blocks it touches and no others. Of each chunk that is touched
//! the header and the block starts are read at once, then the blocks, those that
//! lie side by side together. The bytes of the frame around the chunks are
//! described in [`zvf_format::b2nd`].
//!
//! Metalayers of users are given as the bytes they are. Those of variable length
//! that are a value of MessagePack, as Python's `vlmeta` are, are the attributes.
//!
//! Chunks in which nothing was put read as zeros. The filter NDCELL and those of
//! plugins are refused, as are codecs of plugins.
//!
//! [`Selection`]: crate::Selection

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
pub use design::B2ndDesign;
pub use edit::B2ndEditor;
pub use open::{B2nd, DEFAULT_BUDGET, DIRECTORY_FRAME, FrameFacts};
pub use write::B2ndWriter;
