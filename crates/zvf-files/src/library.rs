//! Faults that the decoders of other crates report.

use zvf::ErrorKind;
use zvf_codecs::{CodecsError, DecodeError};
use zvf_precomputed::{InfoError, PrecomputedError, ShardError};

use crate::FileFault;

/// The compression of points is damaged or unknown.
pub(crate) fn laz(error: laz::LasZipError) -> FileFault {
    FileFault::library(
        ErrorKind::Damaged,
        "the compressed points cannot be read or written",
        error,
    )
}

/// XML that cannot be parsed.
pub(crate) fn xml(error: impl Into<quick_xml::Error>) -> FileFault {
    FileFault::library(ErrorKind::Damaged, "is not valid XML", error.into())
}

/// Codecs of a Zarr array that are not read.
pub(crate) fn codecs(error: CodecsError) -> FileFault {
    FileFault::library(
        ErrorKind::Unsupported,
        "the codecs of the array are not supported",
        error,
    )
}

/// A chunk of a Zarr array that cannot be decoded.
pub(crate) fn chunk(error: DecodeError) -> FileFault {
    FileFault::library(ErrorKind::Damaged, "the chunk is damaged", error)
}

/// A document of precomputed data that cannot be used.
pub(crate) fn info(error: InfoError) -> FileFault {
    FileFault::library(
        ErrorKind::Damaged,
        "is not the info document of a supported source",
        error,
    )
}

/// A value of precomputed data that cannot be decoded.
pub(crate) fn precomputed(error: PrecomputedError) -> FileFault {
    FileFault::library(ErrorKind::Damaged, "the value is damaged", error)
}

/// A shard that cannot be read.
pub(crate) fn shard(error: ShardError) -> FileFault {
    FileFault::library(ErrorKind::Damaged, "the shard is damaged", error)
}
