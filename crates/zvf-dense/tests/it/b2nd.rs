//! Tests of Blosc2 and Caterva arrays.

mod counted;
mod edited;
mod golden;
mod mutated;
mod written;

use std::{path::Path, sync::Arc};

use zvf_dense::{
    DenseError, MemorySource,
    b2nd::{B2nd, DEFAULT_BUDGET},
};
use zvf_testkit::golden::Golden;

/// Opens a frame in memory.
pub(crate) fn open(bytes: Vec<u8>) -> Result<B2nd, DenseError> {
    open_at(bytes, 0)
}

pub(crate) fn open_at(bytes: Vec<u8>, offset: u64) -> Result<B2nd, DenseError> {
    let source = MemorySource::new("memory", bytes);
    B2nd::from_source(Arc::new(source), offset, DEFAULT_BUDGET)
}

/// Iterates over the recorded frames that are complete, in a single file, and without an
/// unsupported filter.
pub(crate) fn recorded(golden: &Golden) -> impl Iterator<Item = (&str, &[u8])> {
    golden.files().filter(|(name, _)| {
        let extension = Path::new(name).extension();
        let is_frame = extension.is_some_and(|end| end == "b2nd" || end == "cat");
        is_frame && !name.starts_with("n_") && *name != "f_ndcell.b2nd"
    })
}
