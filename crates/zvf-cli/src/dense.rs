//! Dense arrays: opening, slicing and converting them, with the format chosen by file name.

mod convert;
mod format;
mod select;
mod slice;
mod values;
mod write;

pub(crate) use convert::{ConvertArgs, convert, create_b2nd};
pub(crate) use format::{MemoryArgs, b2nd, has_chunks, nifti, open, source, tet};
pub(crate) use select::BoxArgs;
pub(crate) use slice::{SliceArgs, slice};
pub(crate) use write::{DenseTargetArgs, name, spec, write_array};
