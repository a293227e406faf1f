//! Integration tests of the public API.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod b2nd;
mod convert;
mod nifti;
mod reduce;
#[cfg(feature = "store")]
mod remote;
mod sample;
mod tet;
#[cfg(feature = "zarr")]
mod zarr;

/// Opens the bytes of a recorded file.
#[cfg(feature = "store")]
fn tet_of(bytes: &[u8]) -> zvf_dense::tet::TetFile {
    let source = zvf_dense::MemorySource::new("bytes", bytes.to_vec());
    let options = zvf_dense::tet::TetOptions::default();
    zvf_dense::tet::TetFile::open(std::sync::Arc::new(source), options).unwrap()
}

/// Returns the peak memory of the process in bytes.
#[cfg(target_os = "linux")]
pub(crate) fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn peak() -> u64 {
    0
}
