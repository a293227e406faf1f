//! The public side of the crate.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod b2nd;
mod convert;
mod reduce;
#[cfg(feature = "store")]
mod remote;
mod sample;
mod tet;
#[cfg(feature = "zarr")]
mod zarr;

/// A recorded file in memory.
#[cfg(feature = "store")]
fn tet_of(bytes: &[u8]) -> zvf_dense::tet::TetFile {
    let source = zvf_dense::MemorySource::new("bytes", bytes.to_vec());
    let options = zvf_dense::tet::TetOptions::default();
    zvf_dense::tet::TetFile::open(std::sync::Arc::new(source), options).unwrap()
}
