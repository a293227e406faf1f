//! Dense arrays in chunks, beside vectors: Tetration `.tet`, Caterva and b2nd.
//!
//! [`DenseArray`] is what they have in common: a shape, a [`Dtype`], a [`ChunkGrid`] of
//! chunks, and boxes with steps ([`Hyperslab`]) read from them. Bytes come from a
//! [`ByteSource`]: memory, a file, or a mapped file.
//!
//! Every byte read is hostile: what a file says is checked before memory is
//! reserved for it, and reads stay within a budget of memory.
#![deny(clippy::as_conversions, clippy::indexing_slicing, clippy::string_slice)]

mod array;
pub mod b2nd;
pub mod blosc;
mod buffer;
mod dtype;
mod error;
mod grid;
mod hyperslab;
mod memory;
mod plan;
mod scatter;
mod sink;
mod source;
mod staged;
mod strided;
mod view;

pub mod npy;
pub mod reduce;
pub mod sample;
pub mod tet;
#[cfg(feature = "zarr")]
pub mod zarr;

pub use array::{ChunkVisitor, DenseArray};
pub use buffer::Buffer;
pub use dtype::{Dtype, DtypeError, DtypeField};
pub use error::DenseError;
pub use grid::{CellPart, CellParts, ChunkGrid, ChunkGridError, GridCells};
pub use hyperslab::{AxisRange, Hyperslab, HyperslabError};
pub use memory::MemoryArray;
pub use plan::ReadPlan;
pub use sink::{DenseSink, convert};
#[cfg(feature = "store")]
pub use source::StoreSource;
pub use source::{ByteSource, FileSource, MappedFile, MemorySource};
pub use view::ArrayView;
