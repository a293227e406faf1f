//! Dense arrays: opening, slicing and converting them, with the format chosen by file name.

mod convert;
mod format;
mod metalayer;
mod reference;
mod select;
mod slice;
mod values;
mod write;

pub(crate) use convert::{ConvertArgs, convert, create_b2nd};
pub(crate) use format::{
    ItemTypeArgs, MemoryArgs, b2nd, b2nd_editor, has_chunks, nifti, open, source, tet,
};
pub(crate) use metalayer::{MetalayerValue, parse as parse_metalayer};
pub use reference::reference_grid;
pub(crate) use select::BoxArgs;
pub(crate) use slice::{SliceArgs, slice};
pub(crate) use write::{DenseTargetArgs, name, spec, write_array};
