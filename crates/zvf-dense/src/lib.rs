//! Dense chunked arrays next to vector data: Tetration `.tet`, Caterva, b2nd, `.npy`, NIfTI and
//! Zarr.
//!
//! [`DenseArray`] is the common interface of all formats: a shape, a [`NumpyDtype`], a [`ChunkGrid`],
//! and reads of boxes with steps ([`Hyperslab`]). Bytes come from a [`ByteSource`]: memory, a file,
//! a mapped file or an object store.
//!
//! All input is treated as hostile. Lengths, offsets and counts in a file are checked before memory
//! is reserved for them, and reads stay within a memory budget.
#![deny(clippy::as_conversions, clippy::indexing_slicing, clippy::string_slice)]

mod array;
pub mod b2nd;
mod buffer;
mod dtype;
mod error;
mod grid;
mod hyperslab;
mod memory;
mod read_cost;
mod scatter;
mod sink;
mod source;
pub mod staged;
mod strided;
mod view;

pub mod nifti;
pub mod npy;
pub mod reduce;
pub mod sample;
pub mod tet;
#[cfg(feature = "zarr")]
pub mod zarr;

pub use array::{ChunkVisitor, DenseArray};
pub use buffer::Buffer;
pub use dtype::{DtypeField, NumpyDtype, NumpyDtypeError};
pub use error::DenseError;
pub use grid::{CellPart, CellParts, ChunkGrid, ChunkGridError, GridCells};
pub use hyperslab::{AxisRange, Hyperslab, HyperslabError};
pub use memory::MemoryArray;
pub use read_cost::ReadCost;
pub use sink::{DenseSink, convert};
#[cfg(feature = "store")]
pub use source::StoreSource;
pub use source::{ByteSource, FileSource, MappedFile, MemorySource};
pub use view::ArrayView;
pub use zvf_codecs::blosc;
