//! Tests of Tetration files.

mod golden;
mod hostile;
mod made;
mod query;

use std::sync::Arc;

use zvf_dense::{
    DenseError, MemorySource,
    tet::{TetFile, TetOptions},
};

/// Opens the bytes of a file.
fn open(name: &str, bytes: &[u8]) -> Result<TetFile, DenseError> {
    let source = MemorySource::new(name, bytes.to_vec());
    TetFile::open(Arc::new(source), TetOptions::default())
}
